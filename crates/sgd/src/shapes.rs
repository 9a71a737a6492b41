//! How columns are distributed, as they are and by their logarithms, and which of them are to be taken by these.
//!
//! A column is taken by its logarithm if its values span decades and their logarithms do not: if its skewness is beyond
//! ±6, as that of a lognormal distribution of deviation 1 is, and that of the logarithms is small. It may be 1.5 in the
//! same direction, which is what remains of values around 1, but not beyond 1 in the other: then there is a heap at 0
//! that stands out. Of columns that are skewed but have no such shape, most of which are 0 for the most part, nothing
//! is gained, and of those of a moderate skewness a linear model loses as often as it gains. Where the labels are
//! targets, the logarithms must tell as much of them as the values do: an amount that is a share of another one is not
//! one of its logarithm.
//!
//! Guarantees: no cancellation, as in [`Moments`]; what is missing does not count.

use loss::logarithm::{inverse_signed_log, signed_log_f64};
use serde::{Deserialize, Serialize};
use simd::{Kernel, Level, Simd};
use tuples::Batch;

use crate::Moments;

/// Rows whose sums are taken together.
const BLOCK_ROWS: usize = 512;

/// A column is skewed from here on.
const SKEWED: f64 = 6.0;

/// What may remain of the skewness, in its direction or the other.
const REMAINS: std::ops::Range<f64> = -1.0..1.5;

/// The shapes of all columns, while dense rows arrive. NaN stands for what is missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "ShapesParts", from = "ShapesParts")]
pub struct Shapes {
    level: Level,
    rows: u64,
    /// as they are, and by their logarithms
    columns: Vec<[Shape; 2]>,
    values: Vec<f64>,
    logs: Vec<f64>,
    labels: Vec<f64>,
    weights: Vec<f64>,
}

/// Sums of powers of deviations from the mean, each times its weight, of which `count` is the sum.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Shape {
    count: f64,
    mean: f64,
    squares: f64,
    cubes: f64,
    /// of the labels
    label_mean: f64,
    /// of deviations with those of the labels
    products: f64,
}

/// [`Shapes`] as they are sent.
#[derive(Serialize, Deserialize)]
struct ShapesParts {
    rows: u64,
    columns: Vec<[Shape; 2]>,
}

impl From<Shapes> for ShapesParts {
    fn from(Shapes { rows, columns, .. }: Shapes) -> ShapesParts {
        ShapesParts { rows, columns }
    }
}

impl From<ShapesParts> for Shapes {
    fn from(ShapesParts { rows, columns }: ShapesParts) -> Shapes {
        Shapes { rows, columns, ..Shapes::new(0) }
    }
}

impl Shapes {
    /// No rows yet, of `dim` features.
    pub fn new(dim: usize) -> Shapes {
        let columns = allocation::filled([Shape::default(); 2], dim);
        let (values, logs, labels, weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Shapes { level: Level::detect(), rows: 0, columns, values, logs, labels, weights }
    }

    /// Adds all rows of `batch`, each as much as it weighs.
    ///
    /// # Panics
    /// If the batch is not dense, or has another number of features.
    pub fn add(&mut self, batch: &Batch) {
        self.add_some(batch, |_| true);
    }

    /// The same of those columns alone for which `is_measured` is true: the others have no shape.
    ///
    /// # Panics
    /// As [`Shapes::add`].
    pub fn add_some(&mut self, batch: &Batch, is_measured: impl Fn(usize) -> bool) {
        assert_eq!(batch.dim(), self.columns.len(), "as many features as the shapes were made for");
        self.rows += batch.len() as u64;
        let Shapes { level, columns, values, logs, labels, weights, .. } = self;
        for first in (0..batch.len()).step_by(BLOCK_ROWS) {
            let rows = first..(first + BLOCK_ROWS).min(batch.len());
            for (j, [plain, log]) in columns.iter_mut().enumerate().filter(|(j, _)| is_measured(*j)) {
                values.clear();
                labels.clear();
                weights.clear();
                for i in rows.clone().filter(|i| !batch.features(*i)[j].is_nan()) {
                    allocation::push(values, f64::from(batch.features(i)[j]));
                    allocation::push(labels, f64::from(batch.labels()[i]));
                    allocation::push(weights, f64::from(batch.weight(i)));
                }
                allocation::resize(logs, values.len(), 0.0);
                let [of_values, of_logs] = level.run(OfBlock { values, logs, labels, weights });
                plain.merge(of_values);
                log.merge(of_logs);
            }
        }
    }

    /// Adds the rows that were measured elsewhere. False if they have another number of features; then nothing was
    /// added.
    pub fn unite(&mut self, other: &Shapes) -> bool {
        if other.columns.len() != self.columns.len() {
            return false;
        }
        self.rows += other.rows;
        let columns = self.columns.as_flattened_mut().iter_mut().zip(other.columns.as_flattened());
        columns.for_each(|(shape, other)| shape.merge(*other));
        true
    }

    /// The columns that are to be taken by their logarithms, where the labels are targets or where they are not.
    pub fn spanning_decades(&self, are_targets: bool) -> Vec<u32> {
        let spans = |[plain, log]: &[Shape; 2]| {
            let (before, after) = (plain.skewness(), log.skewness());
            let is_gained = !are_targets || log.explained() >= plain.explained();
            before.abs() > SKEWED && REMAINS.contains(&(after * before.signum())) && is_gained
        };
        (0..).zip(&self.columns).filter(|(_, shapes)| spans(shapes)).map(|(i, _)| i).collect()
    }

    /// Takes the moments of these columns as those of their logarithms, the mean standing for what is missing.
    ///
    /// # Panics
    /// If the rows were others.
    pub fn replace(&self, columns: &[u32], moments: &mut Moments) {
        assert_eq!(moments.count(), self.rows, "the same rows");
        for j in columns {
            let [_, log] = self.columns[*j as usize];
            moments.replace(*j as usize, log.mean, log.squares);
        }
    }

    /// What the mean of the logarithms of a column is the logarithm of.
    pub fn mean(&self, column: u32) -> f32 {
        inverse_signed_log(self.columns[column as usize][1].mean)
    }
}

impl Shape {
    #[inline(always)]
    fn of(values: &[f64], labels: &[f64], weights: &[f64]) -> Shape {
        if values.is_empty() {
            return Shape::default();
        }
        let count: f64 = weights.iter().sum();
        let mean_of = |numbers: &[f64]| {
            let first = numbers[0];
            first + numbers.iter().zip(weights).map(|(number, weight)| weight * (number - first)).sum::<f64>() / count
        };
        let (mean, label_mean) = (mean_of(values), mean_of(labels));
        let (mut squares, mut cubes, mut products) = (0.0, 0.0, 0.0);
        for ((value, label), weight) in values.iter().zip(labels).zip(weights) {
            let square = weight * ((value - mean) * (value - mean));
            squares += square;
            cubes += square * (value - mean);
            products += weight * ((value - mean) * (label - label_mean));
        }
        Shape { count, mean, squares, cubes, label_mean, products }
    }

    /// The formulas of Chan, Golub and LeVeque (1983), and Pébay's (2008) for the cubes.
    fn merge(&mut self, other: Shape) {
        if other.count == 0.0 {
            return;
        }
        let (a, b, count) = (self.count, other.count, self.count + other.count);
        let difference = other.mean - self.mean;
        let product = difference * difference * (a * b / count);
        self.cubes += other.cubes
            + product * difference * (a - b) / count
            + 3.0 * difference * (a * other.squares - b * self.squares) / count;
        self.squares += other.squares + product;
        let label_difference = other.label_mean - self.label_mean;
        self.products += other.products + difference * label_difference * (a * b / count);
        self.label_mean += label_difference * (b / count);
        self.mean += difference * (b / count);
        self.count = count;
    }

    /// By how much a straight line in this column lessens the sum of the squares of the labels' deviations.
    fn explained(&self) -> f64 {
        if self.squares > 0.0 { self.products * self.products / self.squares } else { 0.0 }
    }

    fn skewness(&self) -> f64 {
        if self.squares > 0.0 { self.count.sqrt() * self.cubes / self.squares.powf(1.5) } else { 0.0 }
    }
}

/// The shapes of some values and of their logarithms.
struct OfBlock<'a> {
    values: &'a [f64],
    /// as many
    logs: &'a mut [f64],
    /// as many
    labels: &'a [f64],
    /// as many, above 0
    weights: &'a [f64],
}

impl Kernel for OfBlock<'_> {
    type Output = [Shape; 2];

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> [Shape; 2] {
        self.logs.iter_mut().zip(self.values).for_each(|(log, value)| *log = signed_log_f64(*value));
        [Shape::of(self.values, self.labels, self.weights), Shape::of(self.logs, self.labels, self.weights)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Approximately standard normal, without a generator: the sum of twelve uniform numbers.
    fn normal(i: u64) -> f64 {
        let uniform = |k: u64| {
            let mixed = (i * 12 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(uniform).sum::<f64>() - 6.0
    }

    fn chosen(value: impl Fn(u64) -> f64) -> bool {
        let mut batch = Batch::dense(1);
        (0..20_000).for_each(|i| batch.push(1.0).unwrap()[0] = value(i) as f32);
        let mut shapes = Shapes::new(1);
        shapes.add(&batch);
        shapes.spanning_decades(false) == [0]
    }

    #[test]
    fn logarithms_are_taken_where_they_tell_more_of_the_targets() {
        let amount = |i: u64| (2.0 * normal(i)).exp();
        let chosen = |target: &dyn Fn(f64) -> f64, are_targets: bool| {
            let mut shapes = Shapes::new(1);
            for part in [0..900_u64, 900..901, 901..20_000] {
                let mut batch = Batch::dense(1);
                for i in part {
                    batch.push(target(amount(i)) as f32).unwrap()[0] = amount(i) as f32;
                }
                shapes.add(&batch);
            }
            shapes.spanning_decades(are_targets) == [0]
        };
        assert!(!chosen(&|x| 5.0 - 0.1 * x, true), "a share of it");
        assert!(!chosen(&|x| x * x, true), "what grows faster");
        assert!(chosen(&|x| 3.0 * x.ln_1p(), true), "its logarithm");
        assert!(chosen(&|x| -x.sqrt().min(2.0), true), "what grows slower");
        assert!(chosen(&|_| 7.0, true), "neither helps");
        assert!(chosen(&|x| 0.1 * x, false), "classes have no line");
    }

    #[test]
    fn products_are_those_of_all_rows_whatever_the_batches() {
        let rows: Vec<(f64, f64)> = (0..3000).map(|i| (1e3 + normal(i), 1e4 + normal(i) + normal(i + 9))).collect();
        let mut shapes = Shapes::new(1);
        for part in rows.chunks(701) {
            let mut batch = Batch::dense(1);
            part.iter().for_each(|(x, y)| batch.push(*y as f32).unwrap()[0] = *x as f32);
            shapes.add(&batch);
        }
        let rows: Vec<(f64, f64)> = rows.iter().map(|(x, y)| (f64::from(*x as f32), f64::from(*y as f32))).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| rows.iter().map(of).sum::<f64>() / 3000.0;
        let (x, y) = (mean(|row| row.0), mean(|row| row.1));
        let products: f64 = rows.iter().map(|row| (row.0 - x) * (row.1 - y)).sum();
        let squares: f64 = rows.iter().map(|row| (row.0 - x).powi(2)).sum();
        let explained = products * products / squares;
        assert!((shapes.columns[0][0].explained() - explained).abs() < 1e-6 * explained);
    }

    #[test]
    fn what_spans_decades_is_chosen_and_nothing_else() {
        let heavy = |i: u64| (1.6 * normal(i)).exp();
        assert!(chosen(heavy), "lognormal");
        assert!(chosen(|i| (1000.0 * heavy(i)).floor()), "counts");
        assert!(chosen(|i| -heavy(i)), "negative");
        assert!(!chosen(normal), "normal");
        assert!(!chosen(|i| 1e6 + normal(i)), "far from 0");
        assert!(!chosen(|i| normal(i).exp().min(8.0)), "moderately skewed");
        assert!(!chosen(|i| (i % 1000) as f64), "uniform");
        assert!(!chosen(|i| if i % 2 == 0 { 0.0 } else { 1e6 } + normal(i)), "bimodal");
        assert!(!chosen(|i| f64::from(i % 500 == 0)), "rare flag");
        assert!(!chosen(|i| if i % 100 == 0 { heavy(i) * 1e4 } else { 0.0 }), "0 for the most part");
        assert!(!chosen(|i| 1.6e9 + if i % 1000 == 0 { 1e9 } else { 0.0 }), "timestamps");
        assert!(!chosen(|_| 5.0), "constant");
    }

    #[test]
    fn moments_are_those_of_the_logarithms_that_are_there() {
        let value = |i: u64| if i % 7 == 3 { f32::NAN } else { (2.0 * normal(i)).exp() as f32 };
        let (mut shapes, mut moments) = (Shapes::new(2), Moments::new(2));
        for part in [0..700, 700..701, 701..5000] {
            let mut batch = Batch::dense(2);
            part.for_each(|i| batch.push(1.0).unwrap().copy_from_slice(&[value(i), 1.0]));
            shapes.add(&batch);
            moments.add(&batch).unwrap();
        }
        let logs: Vec<f64> = (0..5000).map(value).filter(|v| !v.is_nan()).map(|v| f64::from(v).ln_1p()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let power = |n| logs.iter().map(|log| (log - mean).powi(n)).sum::<f64>();
        let skewness = (logs.len() as f64).sqrt() * power(3) / power(2).powf(1.5);
        assert!((shapes.columns[0][1].skewness() - skewness).abs() < 1e-9);
        shapes.replace(&[0], &mut moments);
        let scaling = moments.finish_automatically().unwrap();
        assert!((scaling.mean[0] - mean).abs() < 1e-12);
        assert!((scaling.scale[0] - (power(2) / 5000.0).sqrt()).abs() < 1e-12);
        assert!((f64::from(shapes.mean(0)) - mean.exp_m1()).abs() < 1e-6 * mean.exp_m1());
    }
}
