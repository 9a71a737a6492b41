//! The inner loops, written once on chunks of 16 lanes and compiled for several instruction sets.
//!
//! Guarantees: the same bits from every instruction set. Where a multiplication and an addition are fused, they are fused
//! everywhere (a processor without the instruction computes it in f64), and every sum has an order that is written here:
//! lane by lane, then the lanes folded in halves. All that differs is how many lanes a register has.

mod columns;
mod evaluate;
mod learn;
mod loss_accumulator;
mod narrow;
mod products;
mod saved;
mod simd;
mod wide;

use tuples::LANES;

pub(crate) use columns::{Columns, Squares, Standardize, Sums, standardize};
pub(crate) use evaluate::{Decisions, decision, sparse_decision};
pub(crate) use learn::{Learn, Rates, State};
pub(crate) use products::{add_products, add_rows, lane_products};
#[cfg(test)]
pub(crate) use simd::portable;
pub(crate) use simd::{Kernel, Level, Simd, prefetch, prefetch_far};

/// As many floats as one step of a kernel handles: one AVX-512 register, or two of AVX2.
pub(crate) type Chunk = [f32; LANES];

/// A chunk of weights, in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Aligned(Chunk);

/// Independent sums in a dot product over many chunks, to hide the latency of addition.
const UNROLL: usize = 4;

/// The sum of all lanes of independent sums.
#[inline(always)]
fn sum_all<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; UNROLL]) -> f32 {
    simd.sum(simd.add(simd.add(a, b), simd.add(c, d)))
}

/// Up to 16 floats, and zeros.
fn padded(floats: &[f32]) -> Chunk {
    let mut chunk = [0.0; LANES];
    chunk[..floats.len()].copy_from_slice(floats);
    chunk
}

/// `floats` as chunks, the last of them padded with at least one zero: the place of the constant 1 of a row.
pub(crate) fn to_chunks(floats: &[f32]) -> impl Iterator<Item = Chunk> {
    let (chunks, rest) = floats.as_chunks::<LANES>();
    chunks.iter().copied().chain([padded(rest)])
}
