//! Split conformal prediction: intervals and sets of labels that hold the truth with a stated probability.
//!
//! Guarantees: let `n` rows be held out of training, and a further one be exchangeable with them (drawn the same way,
//! in any order). The probability that the further row's score is at most the k-th smallest of theirs, where
//! k = ceil(c (n + 1)), is at least c, whatever the model is worth; and below c + 1 / (n + 1) if no scores are tied
//! (Vovk, Gammerman and Shafer 2005; Lei et al. 2018). Where k > n, nothing less than everything holds the truth so
//! often.
//!
//! It prevents a sketch of the scores whose error eats the guarantee: of many scores only some are kept, but these are
//! order statistics with their ranks, and the rank that is asked for is rounded up to one that is kept.

use loss::{ModelKind, ParametersView, probability};

/// The scores of rows that were held out, of which a bounded number is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    rows: u64,
    /// of the [ranks](Calibration::ranks) of this many rows, ascending
    scores: Vec<f64>,
}

/// Why numbers are no calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncalibrated {
    /// there are not as many scores as this many rows have
    Count {
        /// as many as there should be
        expected: usize,
    },
    /// the score at this place, from 0, is not finite, or is less than the one before
    Score(usize),
}

impl Calibration {
    /// Scores that are kept at ranks of about equal distance.
    const EVEN: u64 = 2048;
    /// The largest scores, which are all kept: coverages near 1 need them.
    const LARGEST: u64 = 1024;
    /// Scores that are kept at most.
    const MAX_SCORES: u64 = Calibration::EVEN + Calibration::LARGEST;

    /// Scores of `rows` rows, ascending: those of their ranks.
    pub fn new(rows: u64, scores: Vec<f64>) -> Result<Calibration, Uncalibrated> {
        let expected = Calibration::kept(rows);
        if scores.len() != expected {
            return Err(Uncalibrated::Count { expected });
        }
        let is_wrong = |i: &usize| !scores[*i].is_finite() || (*i > 0 && scores[*i] < scores[*i - 1]);
        match (0..scores.len()).find(is_wrong) {
            Some(place) => Err(Uncalibrated::Score(place)),
            None => Ok(Calibration { rows, scores }),
        }
    }

    /// How many scores are kept of this many rows.
    pub fn kept(rows: u64) -> usize {
        rows.min(Calibration::MAX_SCORES) as usize
    }

    /// The rank, from 1, of score number `i`, from 0, among those of this many rows.
    fn rank(rows: u64, i: usize) -> u64 {
        let i = i as u64;
        if rows <= Calibration::EVEN + Calibration::LARGEST {
            return i + 1;
        }
        let below = rows - Calibration::LARGEST;
        match i.checked_sub(Calibration::EVEN) {
            Some(largest) => below + largest + 1,
            None => (u128::from(i + 1) * u128::from(below)).div_ceil(Calibration::EVEN.into()) as u64,
        }
    }

    /// The ranks, from 1 and ascending, whose scores are kept of this many rows: all of up to 3,072 rows; of n more,
    /// those of ceil(j (n - 1024) / 2048) for j from 1 to 2048, and the 1024 largest.
    pub fn ranks(rows: u64) -> impl Iterator<Item = u64> {
        (0..Calibration::kept(rows)).map(move |i| Calibration::rank(rows, i))
    }

    /// How many rows were held out.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The scores that are kept, ascending.
    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The largest coverage for which there is a threshold.
    pub fn max_coverage(&self) -> f64 {
        self.rows as f64 / (self.rows as f64 + 1.0)
    }

    /// What a score is at most, in as large a part of all rows as `coverage` says, which is above 0 and below 1; None
    /// if no rows were held out with which to say it.
    pub fn threshold(&self, coverage: f64) -> Option<f64> {
        // a product such as 0.7 * 10 may lie above the whole number that is meant
        let rank = (coverage * (self.rows as f64 + 1.0) * (1.0 - 1e-14)).ceil().max(1.0);
        let (mut low, mut high) = (0, self.scores.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if (Calibration::rank(self.rows, middle) as f64) < rank { low = middle + 1 } else { high = middle }
        }
        self.scores.get(low).copied()
    }
}

/// What is left to rounding where a score is compared with a threshold: decisions are of single precision,
/// and a row that gave the threshold is to be within it.
fn slack(size: f64) -> f64 {
    4.0 * f64::from(f32::EPSILON) * size.abs()
}

/// The score of a regression: how far the truth is from the prediction.
pub fn residual(prediction: f64, truth: f64) -> f64 {
    (truth - prediction).abs()
}

/// The numbers that are no farther from the prediction than `threshold`; all numbers without one.
pub fn interval(prediction: f64, threshold: Option<f64>) -> (f64, f64) {
    let Some(threshold) = threshold else { return (f64::NEG_INFINITY, f64::INFINITY) };
    let half = threshold + slack(prediction.abs() + threshold);
    (prediction - half, prediction + half)
}

/// The score of each class, were it the true one: 1 less its probability (Sadinle, Lei and Wasserman 2019). Where a
/// model has no probabilities, it is what speaks against the class: its decision with the other sign.
///
/// # Panics
/// If `out` has not a place for every class.
pub fn class_scores(kind: ModelKind, model: &ParametersView, decisions: &[f32], out: &mut [f64]) {
    match (kind.is_binary(), kind.has_probabilities()) {
        (true, true) => {
            // as exact near 0 as near 1
            (out[0], out[1]) = (probability(decisions[0]), probability(-decisions[0]));
        }
        (true, false) => (out[0], out[1]) = (f64::from(decisions[0]), f64::from(-decisions[0])),
        (false, true) => {
            model.probabilities(decisions, out);
            out.iter_mut().for_each(|score| *score = 1.0 - *score);
        }
        (false, false) => out.iter_mut().zip(decisions).for_each(|(score, z)| *score = f64::from(-z)),
    }
}

/// The class that a label stands for, as training has it.
pub fn class_of_label(kind: ModelKind, label: f64) -> usize {
    if kind.is_binary() { usize::from(label > 0.0) } else { label as usize }
}

/// Does a class of this score belong to the set? All do without a threshold.
pub fn belongs(score: f64, threshold: Option<f64>) -> bool {
    threshold.is_none_or(|threshold| score <= threshold + slack(1.0 + threshold.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(scores: &[f64]) -> Calibration {
        Calibration::new(scores.len() as u64, scores.to_vec()).unwrap()
    }

    #[test]
    fn the_threshold_is_the_order_statistic_of_the_finite_sample() {
        let nine = calibration(&[0., 1., 2., 3., 4., 5., 6., 7., 8.]);
        assert_eq!(nine.threshold(0.9), Some(8.0)); // ceil(0.9 * 10) = 9
        assert_eq!(nine.threshold(0.7), Some(6.0)); // 0.7 * 10 is 7, and not 8
        assert_eq!(nine.threshold(0.71), Some(7.0));
        assert_eq!(nine.threshold(1e-9), Some(0.0));
        assert_eq!(nine.threshold(0.901), None, "rank 10 of 9");
        assert_eq!(nine.max_coverage(), 0.9);
        assert_eq!(calibration(&[]).threshold(0.5), None);
        for n in 1..200u64 {
            let all = calibration(&(0..n).map(|i| i as f64).collect::<Vec<_>>());
            for rank in 1..=n {
                assert_eq!(all.threshold(rank as f64 / (n + 1) as f64), Some(rank as f64 - 1.0), "{rank} of {n}");
            }
        }
    }

    #[test]
    fn of_many_scores_a_bounded_number_is_kept_and_no_coverage_is_undercut() {
        for n in [3072, 3073, 5000, 1_000_000, 1 << 40] {
            let ranks: Vec<u64> = Calibration::ranks(n).collect();
            assert_eq!(ranks.len() as u64, Calibration::MAX_SCORES);
            assert!(ranks.is_sorted_by(|a, b| a < b), "no rank twice, of {n}");
            assert_eq!(ranks.last(), Some(&n));
            let scores = ranks.iter().map(|rank| *rank as f64).collect();
            let calibration = Calibration::new(n, scores).unwrap();
            for coverage in [0.001, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999] {
                let exact = coverage * (n as f64 + 1.0);
                let given = calibration.threshold(coverage).unwrap();
                assert!(given >= exact * (1.0 - 1e-12), "{given} of {n} for {coverage}");
                assert!(given - exact <= 1.0 + n as f64 / 2048.0, "{given} of {n} for {coverage}");
            }
        }
        let million = Calibration::new(1_000_000, Calibration::ranks(1_000_000).map(|rank| rank as f64).collect());
        assert_eq!(million.unwrap().threshold(0.9999), Some(999_901.0), "near 1 it is exact");
    }

    #[test]
    fn numbers_that_are_no_calibration_are_refused() {
        assert_eq!(Calibration::new(3, vec![1.0, 2.0]), Err(Uncalibrated::Count { expected: 3 }));
        assert_eq!(Calibration::new(3, vec![1.0, 2.0, 1.5]), Err(Uncalibrated::Score(2)));
        assert_eq!(Calibration::new(2, vec![1.0, f64::INFINITY]), Err(Uncalibrated::Score(1)));
        assert!(Calibration::new(3, vec![1.0, 1.0, 2.0]).is_ok());
    }

    #[test]
    fn the_row_that_gave_the_threshold_is_within_it() {
        for (prediction, truth) in [(f64::from(0.3f32), 0.1f64), (1e6, 1e6 + 0.1), (-2.5, 7.3), (0.0, 0.1)] {
            let (low, high) = interval(prediction, Some(residual(prediction, truth)));
            assert!(low <= truth && truth <= high, "{prediction} {truth}: {low} {high}");
        }
        assert_eq!(interval(1.0, None), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(belongs(0.3, Some(0.3)) && belongs(0.300_000_01, Some(0.3)) && !belongs(0.301, Some(0.3)));
        assert!(belongs(1.0, None));
    }
}
