//! Areas under curves, and the curves themselves, from scores in ascending order.
//!
//! Guarantees: areas are exact but for the rounding of one sum: the average precision is scikit-learn's, the sum over
//! thresholds of the step in recall times the precision. Each point of a curve is exact; of many only some are kept,
//! at about equal numbers of rows from each other, with the first and the last.

use crate::roc::{RocAuc, Tied};

/// The areas under the curves of one list of scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Areas {
    /// under the ROC curve; None unless there are tuples of both classes
    pub roc: Option<f64>,
    /// under the curves of precision and recall of either class, the negative one by the scores with the other sign;
    /// None of a class without tuples
    pub precision_recall: [Option<f64>; 2],
}

/// Finds them while tuples go by.
#[derive(Debug, Clone)]
pub struct AreaSums {
    roc: RocAuc,
    /// negative and positive tuples, of all
    totals: [u64; 2],
    /// of the score under way
    tied: Option<Tied>,
    /// of lower scores
    below: [u64; 2],
    sums: [f64; 2],
}

impl AreaSums {
    /// For as many negative and positive tuples as will come.
    pub fn new(totals: [u64; 2]) -> AreaSums {
        AreaSums { roc: RocAuc::default(), totals, tied: None, below: [0; 2], sums: [0.0; 2] }
    }

    /// The next tuples of one score; scores must ascend, and may be the one before.
    pub fn add_tied(&mut self, tied: Tied) {
        self.roc.add_tied(tied);
        match &mut self.tied {
            Some(known) if known.score == tied.score => {
                known.tuples.iter_mut().zip(tied.tuples).for_each(|(own, more)| *own = own.saturating_add(more));
            }
            _ => {
                self.end_ties();
                self.tied = Some(tied);
            }
        }
    }

    fn end_ties(&mut self) {
        let Some(Tied { tuples: [negative, positive], .. }) = self.tied.take() else { return };
        let above = [0, 1].map(|i| self.totals[i].saturating_sub(self.below[i]) as f64);
        self.below = [self.below[0] + negative, self.below[1] + positive];
        let up_to = self.below.map(|count| count as f64);
        let precision = |of: f64, other: f64| if of + other > 0.0 { of / (of + other) } else { 0.0 };
        self.sums[1] += positive as f64 * precision(above[1], above[0]);
        self.sums[0] += negative as f64 * precision(up_to[0], up_to[1]);
    }

    /// The areas.
    pub fn areas(mut self) -> Areas {
        self.end_ties();
        let mean = |class: usize| {
            let total = self.totals[class];
            (total > 0).then(|| self.sums[class] / total as f64)
        };
        Areas { roc: self.roc.area(), precision_recall: [mean(0), mean(1)] }
    }
}

/// What is on the right side of a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// the score from which on tuples are put into the class
    pub threshold: f64,
    /// tuples of the class from the threshold on
    pub of_class: u64,
    /// other tuples from the threshold on
    pub others: u64,
}

/// Tuples whose probabilities are in one of the bins of equal width.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CalibrationBin {
    /// tuples
    pub tuples: u64,
    /// of the class
    pub of_class: u64,
    /// the sum of their probabilities
    pub probabilities: f64,
}

/// The curves of one class against all others.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassCurves {
    /// tuples of the class, and others
    pub totals: [u64; 2],
    /// by descending threshold
    pub points: Vec<CurvePoint>,
    /// of equal width from 0 to 1; none of scores that are not probabilities
    pub bins: Vec<CalibrationBin>,
}

/// Bins of a calibration curve.
pub const BINS: usize = 10;

/// Finds the curves of a class while tuples go by.
pub struct CurvesOfClass<F> {
    /// makes the score of the class out of a tuple's key
    score: F,
    /// are they of the negative class?
    is_other: bool,
    /// negative and positive tuples, of all
    totals: [u64; 2],
    /// tuples between two points
    step: u64,
    /// since the last one
    passed: u64,
    /// of lower scores
    below: [u64; 2],
    points: Vec<CurvePoint>,
    last: Option<CurvePoint>,
    bins: Vec<CalibrationBin>,
}

impl<F: Fn(i64) -> f64> CurvesOfClass<F> {
    /// For as many negative and positive tuples as will come: `score` makes the score of the positive class out of a
    /// tuple's key or, if `is_other`, that of the negative one. About this many points are kept.
    pub fn new(totals: [u64; 2], (score, is_other, are_probabilities): (F, bool, bool), points: usize) -> Self {
        let step = totals.iter().sum::<u64>().div_ceil(points.max(1) as u64).max(1);
        let bins = vec![CalibrationBin::default(); if are_probabilities { BINS } else { 0 }];
        CurvesOfClass {
            score,
            is_other,
            totals,
            step,
            passed: step,
            below: [0; 2],
            points: Vec::new(),
            last: None,
            bins,
        }
    }

    /// The tuples of the next score; scores must ascend.
    pub fn add(&mut self, Tied { score: key, tuples }: Tied) {
        let (class, other) = if self.is_other { (0, 1) } else { (1, 0) };
        let (threshold, all) = ((self.score)(key), tuples[0] + tuples[1]);
        let bin = (threshold * BINS as f64).clamp(0.0, BINS as f64 - 1.0) as usize;
        if let Some(bin) = self.bins.get_mut(bin) {
            bin.tuples += all;
            bin.of_class += tuples[class];
            bin.probabilities += threshold * all as f64;
        }
        let up_to = [self.below[0] + tuples[0], self.below[1] + tuples[1]];
        // from the threshold on: of the other class these are the lower scores
        let above = |i: usize| self.totals[i].saturating_sub(self.below[i]);
        let counts = if self.is_other { up_to } else { [above(0), above(1)] };
        let point = CurvePoint { threshold, of_class: counts[class], others: counts[other] };
        self.below = up_to;
        self.passed += all;
        self.last = Some(point);
        if self.passed >= self.step {
            allocation::push(&mut self.points, point);
            self.passed = 0;
        }
    }

    /// The curves.
    pub fn finish(self) -> ClassCurves {
        let CurvesOfClass { is_other, totals, mut points, last, bins, .. } = self;
        if let Some(last) = last.filter(|last| points.last() != Some(last)) {
            allocation::push(&mut points, last);
        }
        if !is_other {
            points.reverse();
        }
        let totals = if is_other { totals } else { [totals[1], totals[0]] };
        ClassCurves { totals, points, bins }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roc::{rank_key, score_of_key};
    use proptest::prelude::*;

    fn tied(tuples: &[(f64, bool)]) -> Vec<Tied> {
        let mut keys: Vec<i64> = tuples.iter().map(|(score, positive)| rank_key(*score, *positive)).collect();
        keys.sort_unstable();
        keys.iter()
            .map(|key| Tied { score: key & !1, tuples: [u64::from(key & 1 == 0), u64::from(key & 1 == 1)] })
            .collect()
    }

    fn totals(tuples: &[(f64, bool)]) -> [u64; 2] {
        let positive = tuples.iter().filter(|(_, positive)| *positive).count() as u64;
        [tuples.len() as u64 - positive, positive]
    }

    fn areas(tuples: &[(f64, bool)]) -> Areas {
        let mut sums = AreaSums::new(totals(tuples));
        tied(tuples).into_iter().for_each(|tied| sums.add_tied(tied));
        sums.areas()
    }

    /// The definition, threshold by threshold.
    fn average_precision(tuples: &[(f64, bool)]) -> Option<f64> {
        let mut thresholds: Vec<f64> = tuples.iter().map(|(score, _)| *score).collect();
        thresholds.sort_by(|a, b| b.total_cmp(a));
        thresholds.dedup();
        let all = tuples.iter().filter(|(_, positive)| *positive).count() as f64;
        let (mut sum, mut before) = (0.0, 0.0);
        for threshold in thresholds {
            let above = tuples.iter().filter(|(score, _)| *score >= threshold);
            let (rows, hits) = (above.clone().count() as f64, above.filter(|(_, positive)| *positive).count() as f64);
            sum += (hits / all - before) * hits / rows;
            before = hits / all;
        }
        (all > 0.0).then_some(sum)
    }

    #[test]
    fn the_average_precision_is_that_of_scikit_learns_documentation() {
        // average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]) is 0.83...
        let found = areas(&[(0.1, false), (0.4, false), (0.35, true), (0.8, true)]);
        assert!((found.precision_recall[1].unwrap() - 5.0 / 6.0).abs() < 1e-15);
        assert_eq!(found.roc, Some(0.75));
        assert_eq!(areas(&[(1.0, true)]), Areas { roc: None, precision_recall: [None, Some(1.0)] });
    }

    #[test]
    fn few_scores_are_all_points_and_bins_hold_all_tuples() {
        let tuples = [(0.1, false), (0.4, false), (0.35, true), (0.8, true), (0.4, true)];
        let sorted = tied(&tuples);
        let scores = || sorted.chunk_by(|a, b| a.score == b.score).map(unite);
        let counts = |curves: &ClassCurves| curves.points.iter().map(|p| (p.of_class, p.others)).collect::<Vec<_>>();
        let mut curves = CurvesOfClass::new(totals(&tuples), (score_of_key, false, true), 100);
        scores().for_each(|tied| curves.add(tied));
        let curves = curves.finish();
        assert_eq!(counts(&curves), [(1, 0), (2, 1), (3, 1), (3, 2)]);
        assert_eq!(curves.totals, [3, 2]);
        assert_eq!(curves.bins.iter().map(|bin| bin.tuples).sum::<u64>(), 5);
        // scores lose their last digit
        let of_class: u64 = curves.bins[3..5].iter().map(|bin| bin.of_class).sum();
        assert_eq!(of_class, 2);
        let mut other = CurvesOfClass::new(totals(&tuples), (|key| 1.0 - score_of_key(key), true, false), 100);
        scores().for_each(|tied| other.add(tied));
        assert_eq!(counts(&other.finish()), [(1, 0), (1, 1), (2, 2), (2, 3)]);
        let mut few = CurvesOfClass::new(totals(&tuples), (score_of_key, false, false), 2);
        scores().for_each(|tied| few.add(tied));
        assert_eq!(counts(&few.finish()), [(1, 0), (2, 1), (3, 2)]);
    }

    fn unite(tied: &[Tied]) -> Tied {
        let sum = |class: usize| tied.iter().map(|tied| tied.tuples[class]).sum();
        Tied { score: tied[0].score, tuples: [sum(0), sum(1)] }
    }

    proptest! {
        #[test]
        fn the_average_precision_is_its_definition(tuples in proptest::collection::vec((-4i8..4, any::<bool>()), 0..60)) {
            let tuples: Vec<(f64, bool)> = tuples.iter().map(|(s, p)| (f64::from(*s), *p)).collect();
            let other: Vec<(f64, bool)> = tuples.iter().map(|(s, p)| (-s, !p)).collect();
            let found = areas(&tuples).precision_recall;
            for (found, expected) in [(found[1], average_precision(&tuples)), (found[0], average_precision(&other))] {
                prop_assert_eq!(found.is_some(), expected.is_some());
                prop_assert!((found.unwrap_or(0.0) - expected.unwrap_or(0.0)).abs() < 1e-12);
            }
        }
    }
}
