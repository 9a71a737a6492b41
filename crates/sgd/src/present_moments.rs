//! Mean and standard deviation of the values that are there, where rows have missing ones.
//!
//! Guarantees: no cancellation, however many values are missing and wherever the first one is: each block of rows is
//! gone through twice, and blocks are merged by the formulas of Chan, Golub and LeVeque (1983) with the counts of each
//! column. It prevents a value that was put in place of missing ones, and taken out of the sums again,
//! from leaving its rounding errors.

use serde::{Deserialize, Serialize};
use tuples::{Batch, OutOfMemory};

use crate::Moments;
use crate::moment::Moment;

/// Rows whose sums are taken together.
const BLOCK_ROWS: usize = 512;

/// Mean and variance of what is there of every column, while dense rows arrive. NaN stands for what is missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PresentMoments {
    rows: u64,
    columns: Vec<Present>,
}

/// The values that are there of one column.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Present {
    count: u64,
    /// each as much as its row weighs
    moment: Moment,
    /// the first of them
    first: f32,
}

impl PresentMoments {
    /// No rows yet, of `dim` features.
    pub fn new(dim: usize) -> PresentMoments {
        PresentMoments { rows: 0, columns: allocation::filled(Present::default(), dim) }
    }

    /// Adds all rows of `batch`, each as much as it weighs. Where values are missing, the first value of the column
    /// that was there is put in their place, so that others who look at the batch find only what can be; 0 as long as
    /// there was none.
    ///
    /// # Panics
    /// If the batch is not dense, or has another number of features.
    pub fn add(&mut self, batch: &mut Batch, has_missing: bool) -> Result<(), OutOfMemory> {
        assert_eq!(batch.dim(), self.columns.len(), "as many features as the moments were made for");
        self.rows += batch.len() as u64;
        if !has_missing {
            let mut moments = Moments::new(batch.dim());
            moments.add(batch)?;
            for (i, (column, (mean, squares))) in self.columns.iter_mut().zip(moments.means_and_squares()).enumerate() {
                let first = if batch.is_empty() { 0.0 } else { batch.features(0)[i] };
                let moment = Moment { weight: moments.weight(), mean, squares };
                column.merge(Present { count: moments.count(), moment, first });
            }
            return Ok(());
        }
        for first in (0..batch.len()).step_by(BLOCK_ROWS) {
            self.add_block(batch, first..(first + BLOCK_ROWS).min(batch.len()));
        }
        Ok(())
    }

    /// Adds the rows that were measured elsewhere. False if they have another number of features; then nothing was
    /// added.
    pub fn unite(&mut self, other: &PresentMoments) -> bool {
        if other.columns.len() != self.columns.len() {
            return false;
        }
        self.rows += other.rows;
        self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.merge(*other));
        true
    }

    /// Adds the rows at these places, and puts values in place of the missing ones.
    fn add_block(&mut self, batch: &mut Batch, rows: std::ops::Range<usize>) {
        let mut block = allocation::filled(Present::default(), self.columns.len());
        // sums of differences from the first value
        for i in rows.clone() {
            for (value, column) in batch.features(i).iter().zip(&mut block).filter(|(value, _)| !value.is_nan()) {
                if column.count == 0 {
                    column.first = *value;
                }
                column.count += 1;
                column.moment.weight += f64::from(batch.weight(i));
                column.moment.mean += f64::from(batch.weight(i)) * (f64::from(*value) - f64::from(column.first));
            }
        }
        for column in block.iter_mut().filter(|column| column.count > 0) {
            column.moment.mean = f64::from(column.first) + column.moment.mean / column.moment.weight;
        }
        for i in rows.clone() {
            for (value, column) in batch.features(i).iter().zip(&mut block).filter(|(value, _)| !value.is_nan()) {
                column.moment.squares += f64::from(batch.weight(i)) * (f64::from(*value) - column.moment.mean).powi(2);
            }
        }
        self.columns.iter_mut().zip(block).for_each(|(column, block)| column.merge(block));
        for i in rows {
            let values = batch.features_mut(i).iter_mut().zip(&self.columns);
            values.filter(|(value, _)| value.is_nan()).for_each(|(value, column)| *value = column.first);
        }
    }

    /// The mean of each column, to be put in place of missing values; 0 if all are missing.
    pub fn means(&self) -> Vec<f32> {
        allocation::collect(self.columns.iter().map(|column| column.moment.mean as f32))
    }

    /// Mean and deviation of the values that are there, and the share of those that are not, of each column.
    pub fn describe(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        self.columns.iter().map(|column| {
            let Moment { weight, mean, squares } = column.moment;
            let deviation = if column.count > 0 { (squares / weight).sqrt() } else { 0.0 };
            (mean, deviation, (self.rows - column.count) as f64 / self.rows.max(1) as f64)
        })
    }

    /// Mean, and sum of squared deviations from it, of each column in which values are missing, once its mean stands
    /// for these; None of others.
    fn means_and_squares(&self) -> impl Iterator<Item = Option<(f64, f64)>> {
        let imputed =
            |column: &Present| (column.count < self.rows).then_some((column.moment.mean, column.moment.squares));
        self.columns.iter().map(imputed)
    }
}

impl Moments {
    /// Takes columns in which values are missing as they are once their means stand for these.
    ///
    /// # Panics
    /// If the rows were sparse, or others than those of `present`.
    pub fn impute(&mut self, present: &PresentMoments) {
        self.replace_some(present.rows, present.means_and_squares());
    }
}

impl Present {
    /// Adds values that were met elsewhere, or later.
    fn merge(&mut self, other: Present) {
        if self.count == 0 {
            self.first = other.first;
        }
        self.count += other.count;
        self.moment.merge(other.moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loss::Standardizer;

    const NONE: f32 = f32::NAN;

    fn batch(rows: &[[f32; 3]]) -> Batch {
        let mut batch = Batch::dense(3);
        for row in rows {
            batch.push(1.0).unwrap().copy_from_slice(row);
        }
        batch
    }

    /// Means, and deviations of the columns with their means in place of what is missing, from doubles.
    fn reference(rows: &[[f32; 3]]) -> Standardizer {
        let column = |i: usize| {
            let present: Vec<f64> = rows.iter().map(|row| f64::from(row[i])).filter(|v| !v.is_nan()).collect();
            let mean = present.iter().sum::<f64>() / present.len().max(1) as f64;
            let squares: f64 = present.iter().map(|v| (v - mean).powi(2)).sum();
            (mean, if squares > 0.0 { (squares / rows.len() as f64).sqrt() } else { 1.0 })
        };
        let (mean, scale) = (0..3).map(column).unzip();
        Standardizer { mean, scale }
    }

    #[track_caller]
    fn check(rows: &[[f32; 3]], cuts: &[usize]) -> PresentMoments {
        let (mut present, mut all) = (PresentMoments::new(3), Moments::new(3));
        for cut in cuts.windows(2) {
            let mut batch = batch(&rows[cut[0]..cut[1]]);
            let has_missing = rows[cut[0]..cut[1]].iter().flatten().any(|v| v.is_nan());
            present.add(&mut batch, has_missing).unwrap();
            all.add(&batch).unwrap();
        }
        all.impute(&present);
        let (found, expected) = (all.finish(), reference(rows));
        let pairs = found.mean.iter().chain(&found.scale).zip(expected.mean.iter().chain(&expected.scale));
        for (a, b) in pairs {
            assert!((a - b).abs() <= 1e-9 * b.abs(), "{found:?} {expected:?}");
        }
        present
    }

    #[test]
    fn missing_values_neither_move_the_mean_nor_count_in_it() {
        let rows = [[1.0, NONE, 5.0], [NONE, NONE, 5.0], [3.0, 8.0, 5.0], [8.0, NONE, 5.0]];
        let present = check(&rows, &[0, 1, 4]);
        assert_eq!(present.means(), [4.0, 8.0, 5.0]);
        assert_eq!(present.columns.iter().map(|column| column.count).collect::<Vec<_>>(), [3, 1, 4]);
    }

    #[test]
    fn a_late_column_far_from_zero_keeps_its_deviation() {
        // one value in a thousand, after a thousand rows without any
        let mut rows = vec![[0.0, NONE, 1.0]; 1000];
        rows.extend((0..1000).map(|i| [1.0, if i % 100 == 0 { 1.6e9 + 256.0 * i as f32 } else { NONE }, 1.0]));
        check(&rows, &[0, 700, 1300, 2000]);
    }

    #[test]
    fn a_constant_is_a_constant_however_many_are_missing() {
        let rows: Vec<[f32; 3]> =
            (0..2000).map(|i| [0.1, if i % 7 == 3 { 16_777_215.0 } else { NONE }, NONE]).collect();
        let present = check(&rows, &[0, 2000]);
        assert_eq!(present.means(), [0.1, 16_777_215.0, 0.0]);
    }

    #[test]
    fn what_is_missing_gets_the_first_value_that_was_there() {
        let mut present = PresentMoments::new(3);
        let mut first = batch(&[[NONE, 2.0, NONE], [4.0, NONE, NONE]]);
        present.add(&mut first, true).unwrap();
        assert_eq!([first.features(0), first.features(1)], [[4.0, 2.0, 0.0], [4.0, 2.0, 0.0]]);
        let mut second = batch(&[[NONE, 3.0, 7.0]]);
        present.add(&mut second, true).unwrap();
        assert_eq!(second.features(0), [4.0, 3.0, 7.0]);
    }
}
