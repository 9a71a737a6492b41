//! A sample of rows, and the quantiles of what is in it.

use super::{BINS, Ends, FeatureProfile, Profile};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use tuples::Batch;

/// A sample of rows of numbers, each equally likely, while rows arrive (Vitter 1985; Li 1994, algorithm L): of those
/// that are not taken none is looked at. NaN stands for what is missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "SampledRows", into = "SampledRows")]
pub struct RowSample {
    dim: usize,
    size: usize,
    seen: u64,
    /// the number of the next row to be taken
    next: u64,
    weight: f64,
    random: Xoshiro256PlusPlus,
    values: Vec<f32>,
}

/// A sample on its way to another process. Numbers are their bits, as no text has NaN.
#[derive(Serialize, Deserialize)]
struct SampledRows {
    dim: usize,
    seen: u64,
    bits: Vec<u32>,
}

impl From<RowSample> for SampledRows {
    fn from(sample: RowSample) -> SampledRows {
        let bits = allocation::collect(sample.values.iter().map(|value| value.to_bits()));
        SampledRows { dim: sample.dim, seen: sample.seen, bits }
    }
}

impl TryFrom<SampledRows> for RowSample {
    type Error = &'static str;

    fn try_from(rows: SampledRows) -> Result<RowSample, &'static str> {
        let SampledRows { dim, seen, bits } = rows;
        if dim > Profile::MAX_FEATURES {
            return Err("a sample of too many features");
        }
        let mut sample = RowSample::new(dim);
        let sampled = (sample.size as u64).min(seen) as usize;
        if bits.len() != sampled * dim {
            return Err("a sample of another size");
        }
        (sample.seen, sample.values) = (seen, allocation::collect(bits.into_iter().map(f32::from_bits)));
        Ok(sample)
    }
}

impl RowSample {
    /// Rows that are kept, at most.
    pub const ROWS: usize = 4096;
    /// Numbers that are kept, at most.
    const NUMBERS: usize = 1 << 20;

    /// No rows yet, of `dim` numbers, at most [`Profile::MAX_FEATURES`].
    pub fn new(dim: usize) -> RowSample {
        let size = (RowSample::NUMBERS / dim.max(1)).clamp(1, RowSample::ROWS);
        let random = Xoshiro256PlusPlus::seed_from_u64(u64::from_le_bytes(*b"profile\0"));
        let mut sample = RowSample { dim, size, seen: 0, next: 0, weight: 1.0, random, values: Vec::new() };
        sample.lower();
        sample
    }

    /// A number above 0 and below 1.
    fn unit(&mut self) -> f64 {
        ((self.random.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    fn lower(&mut self) {
        self.weight *= (self.unit().ln() / self.size as f64).exp();
    }

    /// Adds the rows of a dense batch.
    ///
    /// # Panics
    /// If it has rows of another number of features.
    pub fn add(&mut self, batch: &Batch) {
        let end = self.seen + batch.len() as u64;
        while self.next < end {
            self.take(batch.features((self.next - self.seen) as usize));
        }
        self.seen = end;
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of features.
    pub fn add_row(&mut self, row: &[f32]) {
        if self.next == self.seen {
            self.take(row);
        }
        self.seen += 1;
    }

    fn take(&mut self, row: &[f32]) {
        assert_eq!(row.len(), self.dim, "as many features as the sample was made for");
        if self.values.len() < self.size * self.dim {
            allocation::append(&mut self.values, row);
            self.next += 1;
            if self.values.len() < self.size * self.dim {
                return;
            }
        } else {
            let place = (self.unit() * self.size as f64) as usize * self.dim;
            self.values[place..place + self.dim].copy_from_slice(row);
            self.lower();
            self.next += 1;
        }
        let skip = (self.unit().ln() / (1.0 - self.weight).ln()).floor();
        self.next = self.next.saturating_add(skip as u64);
    }

    /// Makes it a sample of its own rows and another's, after which none is to be added. False if the other has rows of
    /// another number of features.
    pub fn unite(&mut self, other: &RowSample) -> bool {
        if self.dim != other.dim {
            return false;
        }
        let mut rows = [&*self, other].map(|sample| sample.values.chunks(self.dim.max(1)).collect::<Vec<_>>());
        // rows that each of them stands for, less those that are taken
        let mut left = [self.seen, other.seen];
        let (mut random, mut values) = (self.random.clone(), Vec::new());
        let mut below = |end: u64| random.next_u64() % end.max(1);
        while values.len() < self.size * self.dim && !rows.iter().all(Vec::is_empty) {
            let from = usize::from(rows[0].is_empty() || below(left[0].saturating_add(left[1])) >= left[0]);
            let from = if rows[from].is_empty() { 1 - from } else { from };
            let place = below(rows[from].len() as u64) as usize;
            allocation::append(&mut values, rows[from].swap_remove(place));
            left[from] -= 1;
        }
        (self.seen, self.random, self.values) = (self.seen.saturating_add(other.seen), random, values);
        true
    }

    /// Each number's distribution, with mean, deviation and missing share of the sample.
    pub fn features(&self, ends: Ends) -> Vec<FeatureProfile> {
        (0..self.dim).map(|j| self.feature(j, ends)).collect()
    }

    fn feature(&self, j: usize, ends: Ends) -> FeatureProfile {
        let all = self.values.iter().skip(j).step_by(self.dim).copied();
        let mut values: Vec<f32> = all.filter(|value| !value.is_nan()).collect();
        let rows = self.values.len() / self.dim.max(1);
        let missing = (rows - values.len()) as f64 / rows.max(1) as f64;
        sort(&mut values);
        let n = values.len();
        if n == 0 {
            return FeatureProfile { missing, mean: Some(0.0), deviation: Some(0.0), ..FeatureProfile::default() };
        }
        // values beyond the outermost edges
        let beyond = match ends {
            Ends::Extremes => 0,
            Ends::Hundredths => (n / 100).max(1).min((n - 1) / 2),
        };
        let (least, greatest) = (beyond, n - 1 - beyond);
        let mut edges = vec![f64::from(values[least])];
        for bin in 1..=BINS {
            let place = (bin * n).div_ceil(BINS) - 1;
            let upper = f64::from(values[place.clamp(least, greatest)]);
            if edges.len() == 1 || edges[edges.len() - 1] < upper {
                edges.push(upper);
            }
        }
        let mean = values.iter().map(|value| f64::from(*value)).sum::<f64>() / n as f64;
        let squares = values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>();
        let mut feature = FeatureProfile {
            missing,
            mean: Some(mean),
            deviation: Some((squares / n as f64).sqrt()),
            edges,
            sampled: n as u64,
            ..FeatureProfile::default()
        };
        // values ascend, and so do their bins
        let end = |bin: usize| values.partition_point(|value| feature.bin(f64::from(*value)) <= bin);
        let ends: Vec<usize> = (0..=feature.edges.len()).map(end).collect();
        let begins = std::iter::once(&0).chain(&ends);
        feature.shares = ends.iter().zip(begins).map(|(end, begin)| (end - begin) as f64 / n as f64).collect();
        feature
    }
}

/// Sorts by [`f32::total_cmp`], by integers in the same order, which are sorted several times faster.
fn sort(values: &mut [f32]) {
    // the bits of a negative number descend: all but the sign are turned
    let turn = |bits: i32| bits ^ ((bits >> 31) as u32 >> 1) as i32;
    let keys: &mut [i32] = bytemuck::cast_slice_mut(values);
    keys.iter_mut().for_each(|key| *key = turn(*key));
    keys.sort_unstable();
    keys.iter_mut().for_each(|key| *key = turn(*key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_two_parts_has_as_many_rows_of_each_as_it_has_of_all() {
        let sample_of = |rows: std::ops::Range<usize>| {
            let mut sample = RowSample::new(1);
            rows.for_each(|i| sample.add_row(&[i as f32]));
            sample
        };
        let (few, many) = (100, 9 * RowSample::ROWS);
        for (a, b) in [(0..few, few..2 * few), (0..many, many..4 * many), (0..few, few..many), (0..0, 0..few)] {
            let (share, rows) = (a.len() as f64 / (a.len() + b.len()) as f64, a.len() + b.len());
            let (end, mut sample) = (a.end as f32, sample_of(a));
            let other = serde_json::to_string(&sample_of(b)).unwrap();
            assert!(sample.unite(&serde_json::from_str(&other).unwrap()));
            assert_eq!(sample.values.len(), rows.min(RowSample::ROWS));
            let of_first = sample.values.iter().filter(|value| **value < end).count() as f64;
            let n = sample.values.len() as f64;
            assert!(
                (of_first - share * n).abs() <= 4.0 * (n * share * (1.0 - share)).sqrt() + 1e-9,
                "{of_first} of {n}"
            );
            let mut values = sample.values.clone();
            values.sort_unstable_by(f32::total_cmp);
            values.dedup();
            assert_eq!(values.len(), sample.values.len(), "no row is there twice");
        }
        assert!(!sample_of(0..few).unite(&RowSample::new(2)));
        assert!(serde_json::from_str::<RowSample>(r#"{"dim": 1, "seen": 3, "bits": [0]}"#).is_err());
        assert!(serde_json::from_str::<RowSample>(r#"{"dim": 3000000000, "seen": 0, "bits": []}"#).is_err());
    }

    #[test]
    fn values_are_sorted_as_total_cmp_does() {
        let mut values =
            [1.5, -0.0, f32::INFINITY, 0.0, -2.5, f32::MIN_POSITIVE, f32::NEG_INFINITY, -1e-42, 1e-42, 3.0, -2.5];
        let mut expected = values;
        expected.sort_by(f32::total_cmp);
        sort(&mut values);
        assert_eq!(values.map(f32::to_bits), expected.map(f32::to_bits));
    }

    #[test]
    fn every_row_is_as_likely_in_the_sample() {
        let mut sample = RowSample::new(1);
        let n = 40 * RowSample::ROWS;
        (0..n).for_each(|i| sample.add_row(&[i as f32]));
        assert_eq!(sample.values.len(), RowSample::ROWS);
        let mut sorted = sample.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "no row twice");
        for (i, value) in sorted.iter().enumerate() {
            let (expected, found) = (i as f64 / sorted.len() as f64, f64::from(*value) / n as f64);
            assert!((expected - found).abs() < 1.95 / (sorted.len() as f64).sqrt(), "row {value} at {i}");
        }
    }

    #[test]
    fn a_batch_gives_the_sample_that_its_rows_give() {
        let (mut by_row, mut by_batch) = (RowSample::new(3), RowSample::new(3));
        for first in (0..30_000).step_by(777) {
            let mut batch = Batch::new(3);
            for i in first..first + 777 {
                let row = [i as f32, (i * i) as f32, -(i as f32)];
                by_row.add_row(&row);
                batch.push(0.0).unwrap().copy_from_slice(&row);
            }
            by_batch.add(&batch);
        }
        assert_eq!(by_row.values, by_batch.values);
    }

    #[test]
    fn bins_are_closed_above_and_repeated_values_make_one() {
        let mut sample = RowSample::new(2);
        (1..=100).for_each(|i| sample.add_row(&[i as f32, f32::from(i > 50)]));
        let features = sample.features(Ends::Extremes);
        assert_eq!(features[0].edges, [1., 10., 20., 30., 40., 50., 60., 70., 80., 90., 100.]);
        assert_eq!(features[0].shares, [0., 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.]);
        assert_eq!([0.5, 1.0, 10.0, 10.1, 100.0, 101.0].map(|value| features[0].bin(value)), [0, 1, 1, 2, 10, 11]);
        assert_eq!((&features[1].edges[..], &features[1].shares[..]), (&[0., 0., 1.][..], &[0., 0.5, 0.5, 0.][..]));
        // Without the extremes no row's own value stands for the end of the range.
        let features = sample.features(Ends::Hundredths);
        assert_eq!(features[0].edges, [2., 10., 20., 30., 40., 50., 60., 70., 80., 90., 99.]);
        assert_eq!(features[0].shares[..2], [0.01, 0.09]);
        assert_eq!(features[0].shares[10..], [0.09, 0.01]);
        for rows in 1..40 {
            let mut few = RowSample::new(1);
            (0..rows).for_each(|i| few.add_row(&[i as f32]));
            let edges = &few.features(Ends::Hundredths)[0].edges;
            assert!(edges.is_sorted() && edges.len() > 1, "{edges:?}");
            assert!(rows < 3 || (edges[0] > 0.0 && edges[edges.len() - 1] < f64::from(rows - 1)), "{edges:?}");
        }
        let mut constant = RowSample::new(1);
        (0..10).for_each(|_| constant.add_row(&[7.0]));
        let constant = &constant.features(Ends::Hundredths)[0];
        assert_eq!([6.0, 7.0, 8.0].map(|value| constant.bin(value)), [0, 1, 2]);
        assert_eq!(constant.shares, [0.0, 1.0, 0.0]);
    }
}
