//! How many values are distinct, in a sample and, by it, in all rows.

/// The counts of a sample's values that are not NULL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Distinct {
    /// values, with repetitions
    pub values: u64,
    /// different values
    pub distinct: u64,
    /// values that the sample has once
    pub singles: u64,
    /// of the values, those that the sample has often, with repetitions
    pub frequent: u64,
    /// and how many different ones they are
    pub distinct_frequent: u64,
}

/// A value that the sample has more often than this is frequent.
const FREQUENT: u64 = 10;

impl Distinct {
    /// Counts runs of equal values, given by their lengths.
    pub fn of_runs(runs: impl Iterator<Item = u64>) -> Distinct {
        runs.fold(Distinct::default(), |sum, run| Distinct {
            values: sum.values + run,
            distinct: sum.distinct + 1,
            singles: sum.singles + u64::from(run == 1),
            frequent: sum.frequent + if run > FREQUENT { run } else { 0 },
            distinct_frequent: sum.distinct_frequent + u64::from(run > FREQUENT),
        })
    }

    /// How many values are distinct among this many, of which the sample is a part: frequent ones are known, and of the
    /// others Haas and Stokes' estimator "Duj1" says it, by which ANALYZE estimates, too. Exact if the sample has them
    /// all.
    pub fn estimate(&self, all_values: f64) -> f64 {
        if all_values <= self.values as f64 || self.values == 0 {
            return self.distinct as f64;
        }
        let n = (self.values - self.frequent) as f64;
        if n == 0.0 {
            return self.distinct as f64;
        }
        let (d, singles) = ((self.distinct - self.distinct_frequent) as f64, self.singles as f64);
        let share = self.values as f64 / all_values;
        let others = n * d / (n - singles + singles * share);
        self.distinct_frequent as f64 + others.clamp(d, n / share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(values: u64, distinct: u64, singles: u64) -> Distinct {
        Distinct { values, distinct, singles, ..Distinct::default() }
    }

    #[test]
    fn runs_are_counted() {
        assert_eq!(Distinct::of_runs([1, 3, 1, 2].into_iter()), counts(7, 4, 2));
        assert_eq!(Distinct::of_runs(std::iter::empty()), counts(0, 0, 0));
    }

    #[test]
    fn a_complete_sample_needs_no_estimate() {
        assert_eq!(counts(100, 40, 10).estimate(100.0), 40.0);
        assert_eq!(counts(0, 0, 0).estimate(0.0), 0.0);
    }

    #[test]
    fn values_that_are_all_single_are_all_distinct_and_values_that_all_repeat_are_known() {
        assert_eq!(counts(3000, 3000, 3000).estimate(1e6), 1e6);
        assert_eq!(counts(3000, 40, 0).estimate(1e6), 40.0);
        assert_eq!(Distinct::of_runs([1500, 1500].into_iter()).estimate(1e6), 2.0);
    }

    #[test]
    fn one_frequent_value_does_not_hide_that_the_others_are_unique() {
        let runs = std::iter::once(300).chain(std::iter::repeat_n(1, 2700));
        assert_eq!(Distinct::of_runs(runs).estimate(1e6), 900_001.0);
    }

    /// 50,000 categories of 20 rows each: a sample of 3000 of 1,000,000 rows has about 3000² / (2 · 50,000) = 90 pairs.
    #[test]
    fn categories_that_are_single_in_a_sample_may_recur_in_all_rows() {
        let estimate = counts(3000, 2910, 2820).estimate(1e6);
        assert!((40_000.0..60_000.0).contains(&estimate), "{estimate}");
    }
}
