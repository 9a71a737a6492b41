//! Products with panels, for several tuples at once.
//!
//! Guarantees: every sum has one order, for however many tuples it is made at once and on whatever processor.

use simd::{Chunk, Simd};

/// Independent sums over the rows of a panel, to hide the latency of addition.
const UNROLL: usize = 4;

/// A processor with registers for this many chunks keeps the sums of a whole block in them.
const MANY_REGISTERS: usize = 32;

/// The sum of the chunks of a panel times coefficients, for each tuple's coefficients.
#[inline(always)]
pub(super) fn combine<const R: usize, S: Simd>(simd: S, panel: &[Chunk], of: [&[f32]; R]) -> [S::Vector; R] {
    if S::REGISTERS >= MANY_REGISTERS {
        return combine_together(simd, panel, of);
    }
    let mut sums = [simd.splat(0.0); R];
    for r in 0..R {
        [sums[r]] = combine_together(simd, panel, [of[r]]);
    }
    sums
}

/// Row i goes to sum i mod 4.
#[inline(always)]
fn combine_together<const R: usize, S: Simd>(simd: S, panel: &[Chunk], of: [&[f32]; R]) -> [S::Vector; R] {
    let mut sums = [[simd.splat(0.0); UNROLL]; R];
    let (rows, rest) = panel.as_chunks::<UNROLL>();
    let of = of.map(|coefficients| coefficients[..panel.len()].as_chunks::<UNROLL>());
    for (i, rows) in rows.iter().enumerate() {
        for q in 0..UNROLL {
            let row = simd.load(&rows[q]);
            for r in 0..R {
                sums[r][q] = simd.fma(simd.splat(of[r].0[i][q]), row, sums[r][q]);
            }
        }
    }
    for (q, row) in rest.iter().enumerate() {
        let row = simd.load(row);
        for r in 0..R {
            sums[r][q] = simd.fma(simd.splat(of[r].1[q]), row, sums[r][q]);
        }
    }
    let mut all = [simd.splat(0.0); R];
    for r in 0..R {
        let [a, b, c, d] = sums[r];
        all[r] = simd.add(simd.add(a, b), simd.add(c, d));
    }
    all
}

/// Adds each tuple's vector, times its coefficients, to the chunks of a panel, tuple after tuple; with `fresh`, the
/// chunks are taken for 0.
#[inline(always)]
pub(super) fn spread<const R: usize, S: Simd>(
    simd: S,
    panel: &mut [Chunk],
    of: [&[f32]; R],
    vectors: [S::Vector; R],
    fresh: bool,
) {
    let of = of.map(|coefficients| &coefficients[..panel.len()]);
    let zero = simd.splat(0.0);
    for (i, chunk) in panel.iter_mut().enumerate() {
        let mut sum = if fresh { zero } else { simd.load(chunk) };
        for r in 0..R {
            sum = simd.fma(simd.splat(of[r][i]), vectors[r], sum);
        }
        simd.store(sum, chunk);
    }
}

/// Panels of as many rows, for the sums over lanes of rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) panels: &'a [Chunk],
    pub(super) count: usize,
}

impl Rows<'_> {
    /// The products of each row with each tuple's chunks, added up; those of a tuple are `stride` numbers behind those
    /// of the one before.
    #[inline(always)]
    pub(super) fn dots<const R: usize, S: Simd>(self, simd: S, of: [&[Chunk]; R], out: &mut [f32], stride: usize) {
        if let [a, b, c, d] = of[..] {
            for row in 0..self.count {
                let sums = self.four_dots(simd, [(row, a), (row, b), (row, c), (row, d)]);
                for r in 0..R {
                    out[r * stride + row] = sums[r];
                }
            }
            return;
        }
        for r in 0..R {
            self.dots_of_one(simd, of[r], &mut out[r * stride..][..self.count]);
        }
    }

    #[inline(always)]
    fn dots_of_one<S: Simd>(self, simd: S, of: &[Chunk], out: &mut [f32]) {
        let (fours, rest) = out.as_chunks_mut::<UNROLL>();
        let whole = self.count - rest.len();
        for (i, four) in fours.iter_mut().enumerate() {
            let row = UNROLL * i;
            *four = self.four_dots(simd, [(row, of), (row + 1, of), (row + 2, of), (row + 3, of)]);
        }
        match rest {
            [a] => *a = simd.sum(self.lanes(simd, whole, of)),
            [a, rest @ ..] => {
                let last = whole + rest.len();
                let lanes = [self.lanes(simd, whole, of), self.lanes(simd, whole + 1, of), self.lanes(simd, last, of)];
                let [sum, rest_of @ ..] = simd.sums(lanes);
                *a = sum;
                rest.iter_mut().zip(rest_of).for_each(|(rest, sum)| *rest = sum);
            }
            [] => {}
        }
    }

    #[inline(always)]
    fn four_dots<S: Simd>(self, simd: S, [a, b, c, d]: [(usize, &[Chunk]); 4]) -> [f32; 4] {
        let (a, b) = (self.lanes(simd, a.0, a.1), self.lanes(simd, b.0, b.1));
        let (c, d) = (self.lanes(simd, c.0, c.1), self.lanes(simd, d.0, d.1));
        simd.four_sums([a, b, c, d])
    }

    /// The products of a row's lanes with those of the chunks, added up panel after panel.
    #[inline(always)]
    fn lanes<S: Simd>(self, simd: S, row: usize, of: &[Chunk]) -> S::Vector {
        let mut sum = simd.mul(simd.load(&self.panels[row]), simd.load(&of[0]));
        for (i, chunk) in of.iter().enumerate().skip(1) {
            sum = simd.fma(simd.load(&self.panels[i * self.count + row]), simd.load(chunk), sum);
        }
        sum
    }
}
