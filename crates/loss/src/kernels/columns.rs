//! Passes over the columns of a block of rows, in f64.

use simd::{Chunk, Kernel, Simd};
use tuples::{LANES, RowsMut};

/// A chunk of columns, with the precision that sums over many rows need.
pub type Columns = [f64; LANES];

/// Adds up the differences of all rows from `origin`, or their squares, column by column, into `sums`.
pub struct Sums<'a, const SQUARED: bool> {
    /// Whole rows of as many chunks as `origin` has.
    pub rows: &'a [Chunk],
    /// What each row counts; all the same if that is None.
    pub weights: Option<&'a [f32]>,
    /// What to subtract.
    pub origin: &'a [Columns],
    /// What results.
    pub sums: &'a mut [Columns],
}

impl<const SQUARED: bool> Kernel for Sums<'_, SQUARED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let term = |difference| if SQUARED { difference * difference } else { difference };
        fold((self.rows, self.weights), self.origin, self.sums, term);
    }
}

/// Sums `term` of the differences from `origin`: the columns of a chunk at a time, whose sums then stay in registers.
#[inline(always)]
fn fold(
    (rows, weights): (&[Chunk], Option<&[f32]>),
    origin: &[Columns],
    sums: &mut [Columns],
    term: impl Fn(f64) -> f64,
) {
    for (c, (origin_of_chunk, out)) in origin.iter().zip(sums).enumerate() {
        let mut sum = [0.0; LANES];
        let rows = rows.chunks_exact(origin.len());
        match weights {
            None => {
                for row in rows {
                    for lane in 0..LANES {
                        sum[lane] += term(f64::from(row[c][lane]) - origin_of_chunk[lane]);
                    }
                }
            }
            Some(weights) => {
                for (row, weight) in rows.zip(weights) {
                    for lane in 0..LANES {
                        let difference = f64::from(row[c][lane]) - origin_of_chunk[lane];
                        sum[lane] += f64::from(*weight) * term(difference);
                    }
                }
            }
        }
        *out = sum;
    }
}

/// Subtracts `mean` from and multiplies `factor` to every row, and cuts the rest out off at ±`clip`.
/// Gives how many numbers were cut.
pub(crate) struct Standardize<'a> {
    pub(crate) rows: RowsMut<'a>,
    /// One for every feature.
    pub(crate) mean: &'a [f64],
    /// One for every feature.
    pub(crate) factor: &'a [f64],
    /// Above 0.
    pub(crate) clip: Option<f32>,
}

impl Kernel for Standardize<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(mut self, _: S) -> u64 {
        let mut cut = 0;
        for i in 0..self.rows.len() {
            let (_, features) = self.rows.row_mut(i);
            standardize(features, self.mean, self.factor);
            if let Some(clip) = self.clip {
                cut += clip_all(features, clip);
            }
        }
        cut
    }
}

/// Cuts numbers off at ±`clip`. Gives how many were beyond. NaN stays what it is.
#[inline(always)]
pub(crate) fn clip_all(features: &mut [f32], clip: f32) -> u64 {
    let mut cut = 0;
    for x in features {
        cut += u32::from(x.abs() > clip);
        *x = x.clamp(-clip, clip);
    }
    cut.into()
}

/// (x - mean) * factor in f64, feature by feature.
#[inline(always)]
fn standardize(features: &mut [f32], mean: &[f64], factor: &[f64]) {
    for (x, (mean, factor)) in features.iter_mut().zip(mean.iter().zip(factor)) {
        *x = ((f64::from(*x) - mean) * factor) as f32;
    }
}
