//! The inner loops, written once on chunks of 16 lanes and compiled for several instruction sets.
//!
//! Guarantees: the same bits from every instruction set. All arithmetic is plain multiplication and addition in f32 (no
//! fused multiply-add, which some machines lack), and every sum has an order that is written here: lane by lane, then
//! the lanes folded in halves. Rust never reorders floating-point operations, so that the compiler is left with one
//! choice, how many lanes fit a register.

mod columns;
mod dispatch;
mod evaluate;
mod learn;
mod narrow;
mod wide;

use tuples::LANES;

pub(crate) use columns::{Columns, Squares, Standardize, Sums, standardize};
pub(crate) use dispatch::Level;
pub(crate) use evaluate::Decisions;
pub(crate) use learn::{Learn, Rates, State};

/// As many floats as one step of a kernel handles: one AVX-512 register, or two of AVX2.
pub(crate) type Chunk = [f32; LANES];

/// Independent sums in a dot product over many chunks, to hide the latency of addition.
const UNROLL: usize = 4;

/// `sum + a * b`, lane by lane.
#[inline(always)]
fn multiply_add(sum: &mut Chunk, a: &Chunk, b: &Chunk) {
    for lane in 0..LANES {
        sum[lane] += a[lane] * b[lane];
    }
}

/// The sum of the lanes, folded in halves.
#[inline(always)]
fn sum_lanes(mut chunk: Chunk) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            chunk[lane] += chunk[lane + half];
        }
        half /= 2;
    }
    chunk[0]
}

/// The sum of all lanes of the independent sums.
#[inline(always)]
fn sum_all(sums: [Chunk; UNROLL]) -> f32 {
    let mut total = [0.0; LANES];
    for lane in 0..LANES {
        total[lane] = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
    }
    sum_lanes(total)
}

/// The dot product of vectors of as many chunks.
#[inline(always)]
fn dot(a: &[Chunk], b: &[Chunk]) -> f32 {
    let mut sums = [[0.0; LANES]; UNROLL];
    let (a, a_rest) = a.as_chunks::<UNROLL>();
    let (b, b_rest) = b.as_chunks::<UNROLL>();
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            multiply_add(sum, a, b);
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        multiply_add(sum, a, b);
    }
    sum_all(sums)
}

/// The dot product of vectors of the same length, bit for bit what [`dot`] gives for them padded with zeros.
pub(crate) fn padded_dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [[0.0; LANES]; UNROLL];
    let chunks = a.iter().copied().zip(b.iter().copied());
    for (i, (a, b)) in chunks.chain([(padded(a_rest), padded(b_rest))]).enumerate() {
        multiply_add(&mut sums[i % UNROLL], &a, &b);
    }
    sum_all(sums)
}

/// Up to 16 floats, and zeros.
fn padded(floats: &[f32]) -> Chunk {
    let mut chunk = [0.0; LANES];
    chunk[..floats.len()].copy_from_slice(floats);
    chunk
}

/// `floats` as chunks, the last of them padded with zeros, and always one that has a zero, for the intercept.
pub(crate) fn to_chunks(floats: &[f32]) -> Vec<Chunk> {
    let (chunks, rest) = floats.as_chunks::<LANES>();
    chunks.iter().copied().chain([padded(rest)]).collect()
}
