//! Chunks of floats.

use bytemuck::{Pod, Zeroable};
use simd::{Chunk, Simd};
use tuples::LANES;

/// A chunk of weights, in one cache line.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Aligned(pub Chunk);

/// Independent sums in a dot product over many chunks, to hide the latency of addition.
pub const UNROLL: usize = 4;

/// The sum of all lanes of independent sums.
#[inline(always)]
pub fn sum_all<S: Simd>(simd: S, [a, b, c, d]: [S::Vector; UNROLL]) -> f32 {
    simd.sum(simd.add(simd.add(a, b), simd.add(c, d)))
}

/// Up to 16 floats, and zeros.
#[inline(always)]
pub(super) fn padded(floats: &[f32]) -> Chunk {
    let mut chunk = [0.0; LANES];
    chunk[..floats.len()].copy_from_slice(floats);
    chunk
}

/// `floats` as chunks, the last of them padded with at least one zero: the place of the constant 1 of a row.
pub fn to_chunks(floats: &[f32]) -> impl Iterator<Item = Chunk> {
    let (chunks, rest) = floats.as_chunks::<LANES>();
    chunks.iter().copied().chain([padded(rest)])
}
