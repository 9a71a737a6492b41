//! Products of rows with weights, and sums of multiples of rows: what mini-batches consist of.
//!
//! Guarantees: every sum has one order, no matter who asks for it: over the chunks of a row, and over the rows of a
//! batch.

use simd::{Chunk, Simd};

use super::chunks::UNROLL;

/// The products of the lanes of two rows, added up over their chunks: of up to four one after the other, of more in
/// four sums.
#[inline(always)]
pub fn lane_products<S: Simd>(simd: S, weights: &[Chunk], row: &[Chunk]) -> S::Vector {
    match (weights, row) {
        ([a], [p]) => simd.mul(simd.load(a), simd.load(p)),
        ([a, b], [p, q]) => simd.fma(simd.load(b), simd.load(q), simd.mul(simd.load(a), simd.load(p))),
        ([w @ .., c], [x @ .., r]) if w.len() < UNROLL && x.len() == w.len() => {
            let mut sum = simd.mul(simd.load(&w[0]), simd.load(&x[0]));
            for (w, x) in w[1..].iter().zip(&x[1..]) {
                sum = simd.fma(simd.load(w), simd.load(x), sum);
            }
            simd.fma(simd.load(c), simd.load(r), sum)
        }
        _ => long_products(simd, weights, row),
    }
}

/// Chunk i goes to sum i mod 4.
#[inline(always)]
fn long_products<S: Simd>(simd: S, weights: &[Chunk], row: &[Chunk]) -> S::Vector {
    let mut sums = [simd.splat(0.0); UNROLL];
    let (weights, weights_rest) = weights.as_chunks::<UNROLL>();
    let (row, row_rest) = row.as_chunks::<UNROLL>();
    for (w, x) in weights.iter().zip(row) {
        for i in 0..UNROLL {
            sums[i] = simd.fma(simd.load(&w[i]), simd.load(&x[i]), sums[i]);
        }
    }
    for ((sum, w), x) in sums.iter_mut().zip(weights_rest).zip(row_rest) {
        *sum = simd.fma(simd.load(w), simd.load(x), *sum);
    }
    simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))
}

/// The same for short rows in registers.
#[inline(always)]
pub fn products<const N: usize, S: Simd>(simd: S, a: &[S::Vector; N], b: &[S::Vector; N]) -> S::Vector {
    let mut sum = simd.mul(a[0], b[0]);
    for i in 1..N {
        sum = simd.fma(a[i], b[i], sum);
    }
    sum
}

/// Adds `factors` times `rows` to `sum`, row after row; `meanwhile(c)` is called for each chunk.
#[inline(always)]
pub fn add_products<S: Simd>(
    simd: S,
    sum: &mut [Chunk],
    rows: &[&[Chunk]],
    factors: &[f32],
    mut meanwhile: impl FnMut(usize),
) {
    let length = sum.len();
    let (blocks, rest) = sum.as_chunks_mut::<UNROLL>();
    for (block, sums) in blocks.iter_mut().enumerate() {
        add_block(simd, sums, block * UNROLL, rows, factors);
        (block * UNROLL..(block + 1) * UNROLL).for_each(&mut meanwhile);
    }
    let first = length - rest.len();
    match rest {
        [a, b, c] => {
            let mut sums = [*a, *b, *c];
            add_block(simd, &mut sums, first, rows, factors);
            [*a, *b, *c] = sums;
        }
        [a, b] => {
            let mut sums = [*a, *b];
            add_block(simd, &mut sums, first, rows, factors);
            [*a, *b] = sums;
        }
        [a] => add_block(simd, std::array::from_mut(a), first, rows, factors),
        _ => {}
    }
    (first..length).for_each(meanwhile);
}

/// The chunks from `first` on.
#[inline(always)]
fn add_block<const N: usize, S: Simd>(
    simd: S,
    sums: &mut [Chunk; N],
    first: usize,
    rows: &[&[Chunk]],
    factors: &[f32],
) {
    add_rows(simd, sums, rows.iter().map(|row| row[first..].first_chunk().expect("rows of as many chunks")), factors);
}

/// Adds `factors` times `rows` to `sums`, which stay in registers.
#[inline(always)]
pub fn add_rows<'a, const N: usize, S: Simd>(
    simd: S,
    sums: &mut [Chunk; N],
    rows: impl Iterator<Item = &'a [Chunk; N]>,
    factors: &[f32],
) {
    let mut vectors = [simd.splat(0.0); N];
    for i in 0..N {
        vectors[i] = simd.load(&sums[i]);
    }
    for (row, &factor) in rows.zip(factors) {
        let factor = simd.splat(factor);
        for i in 0..N {
            vectors[i] = simd.fma(factor, simd.load(&row[i]), vectors[i]);
        }
    }
    for i in 0..N {
        simd.store(vectors[i], &mut sums[i]);
    }
}
