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
}

impl Distinct {
    /// Counts runs of equal values, given by their lengths.
    pub fn of_runs(runs: impl Iterator<Item = u64>) -> Distinct {
        runs.fold(Distinct::default(), |sum, run| Distinct {
            values: sum.values + run,
            distinct: sum.distinct + 1,
            singles: sum.singles + u64::from(run == 1),
        })
    }

    /// How many values are distinct among this many, of which the sample is a part: Haas and Stokes' estimator "Duj1",
    /// by which ANALYZE estimates, too. Exact if the sample has them all.
    pub fn estimate(&self, all_values: f64) -> f64 {
        let (n, d, singles) = (self.values as f64, self.distinct as f64, self.singles as f64);
        if all_values <= n || n == 0.0 {
            return d;
        }
        (n * d / (n - singles + singles * n / all_values)).clamp(d, all_values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(values: u64, distinct: u64, singles: u64) -> Distinct {
        Distinct { values, distinct, singles }
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
    }

    /// 50,000 categories of 20 rows each: a sample of 3000 of 1,000,000 rows has about 3000² / (2 · 50,000) = 90 pairs.
    #[test]
    fn categories_that_are_single_in_a_sample_may_recur_in_all_rows() {
        let estimate = counts(3000, 2910, 2820).estimate(1e6);
        assert!((40_000.0..60_000.0).contains(&estimate), "{estimate}");
    }
}
