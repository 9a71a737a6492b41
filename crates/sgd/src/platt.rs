//! Probabilities of a model that only decides: for each output a sigmoid of its decision, fitted on rows that were held
//! out of training.
//!
//! Guarantees: P(class | f) = 1 / (1 + e^(a f + b)), with a and b of the least cross entropy against the smoothed
//! targets of Platt ("Probabilistic Outputs for Support Vector Machines", 1999), found by the Newton iteration with
//! backtracking of Lin, Lin and Weng ("A Note on Platt's Probabilistic Outputs for Support Vector Machines", 2007),
//! whose loss no large decision takes out of range. Of several outputs, each tells its class from all others, and the
//! probabilities are divided by their sum (Zadrozny and Elkan 2002).
//!
//! Decisions that do not tell a class from the others say nothing of its probability, which is constant then, and never
//! inverted.
//!
//! It prevents that many rows need much memory: decisions that are nearly the same are counted together, at their mean,
//! so that the error is of second order.

use std::collections::BTreeMap;

use loss::math::{probability_f64, softplus};
use serde::{Deserialize, Serialize};

/// P(class | f) = 1 / (1 + e^(a f + b)) of the decision f.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sigmoid {
    /// a, below 0 if the decision says anything, and else 0.
    pub slope: f64,
    /// b.
    pub offset: f64,
}

/// The sigmoids of a model's outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Sigmoids(Vec<Sigmoid>);

/// Decisions of one output for rows that were held out, nearly equal ones together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeldOutDecisions {
    /// by the leading bits of the decision
    bins: BTreeMap<u32, Bin>,
    /// how many of the last bits do not count
    dropped: u32,
    /// of the rows of other classes, and of the class
    rows: [u64; 2],
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Bin {
    /// of the rows of other classes, and of the class
    weights: [f64; 2],
    /// of weights and decisions
    moment: f64,
}

impl Sigmoid {
    /// The probability of the class at this decision.
    pub fn probability(&self, decision: f32) -> f64 {
        probability_f64(-self.exponent(decision))
    }

    /// The probability of all other classes, as exact near 0 as near 1.
    fn of_others(&self, decision: f32) -> f64 {
        probability_f64(self.exponent(decision))
    }

    fn exponent(&self, decision: f32) -> f64 {
        self.slope * f64::from(decision) + self.offset
    }
}

impl Sigmoids {
    /// By output, slopes and offsets; None if these are not as many, none, or not finite.
    pub fn new(slopes: &[f64], offsets: &[f64]) -> Option<Sigmoids> {
        let fits = slopes.len() == offsets.len() && !slopes.is_empty();
        let is_finite = slopes.iter().chain(offsets).all(|number| number.is_finite());
        let sigmoid = |(slope, offset): (&f64, &f64)| Sigmoid { slope: *slope, offset: *offset };
        (fits && is_finite).then(|| Sigmoids(slopes.iter().zip(offsets).map(sigmoid).collect()))
    }

    /// Those of the least cross entropy; None if an output has no rows of any weight.
    pub fn fit(outputs: &[HeldOutDecisions]) -> Option<Sigmoids> {
        outputs.iter().map(HeldOutDecisions::fit).collect::<Option<_>>().map(Sigmoids)
    }

    /// By output.
    pub fn all(&self) -> &[Sigmoid] {
        &self.0
    }

    /// Whether the probability of a class is the same for all rows, at least before all are divided by their sum.
    pub fn are_constant(&self) -> bool {
        self.0.iter().any(|sigmoid| sigmoid.slope == 0.0)
    }

    /// By output, the slopes.
    pub fn slopes(&self) -> Vec<f64> {
        self.0.iter().map(|sigmoid| sigmoid.slope).collect()
    }

    /// By output, the offsets.
    pub fn offsets(&self) -> Vec<f64> {
        self.0.iter().map(|sigmoid| sigmoid.offset).collect()
    }

    /// Makes them those of the model with the opposite decisions, whose only output is for the other of two classes.
    pub fn negate(&mut self) {
        self.0.iter_mut().for_each(|sigmoid| sigmoid.offset = -sigmoid.offset);
    }

    /// The probability of each class, which add up to 1: with one output, of the negative class and of the positive
    /// one. Of several, each is divided by the sum, also if all of them are next to nothing.
    ///
    /// # Panics
    /// If there are not as many decisions as outputs, or `out` has not a place for every class.
    pub fn probabilities(&self, decisions: &[f32], out: &mut [f64]) {
        assert_eq!(decisions.len(), self.0.len(), "a decision for every output");
        if let ([sigmoid], [decision]) = (self.0.as_slice(), decisions) {
            assert_eq!(out.len(), 2, "a place for every class");
            (out[0], out[1]) = (sigmoid.of_others(*decision), sigmoid.probability(*decision));
            return;
        }
        assert_eq!(out.len(), self.0.len(), "a place for every class");
        // by their logarithms, which are never out of range
        for ((p, sigmoid), decision) in out.iter_mut().zip(&self.0).zip(decisions) {
            *p = -softplus(sigmoid.exponent(*decision));
        }
        let most = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        out.iter_mut().for_each(|p| *p = (*p - most).exp());
        let sum: f64 = out.iter().sum();
        out.iter_mut().for_each(|p| *p /= sum);
    }
}

impl Bin {
    fn add(&mut self, other: &Bin) {
        self.weights[0] += other.weights[0];
        self.weights[1] += other.weights[1];
        self.moment += other.moment;
    }
}

impl HeldOutDecisions {
    /// More different decisions are counted together where they are nearly the same.
    const MAX_BINS: usize = 1 << 14;

    /// Bytes that one output takes at most, roughly.
    pub const MAX_BYTES: usize = HeldOutDecisions::MAX_BINS * 2 * (size_of::<u32>() + size_of::<Bin>());

    /// Takes the decision for a row, which is of the output's class or not, and counts as much as its weight says. What
    /// is not finite, or has no weight, does not count.
    pub fn add(&mut self, decision: f32, is_of_class: bool, weight: f64) {
        if !decision.is_finite() || weight.is_nan() || weight <= 0.0 {
            return;
        }
        let class = usize::from(is_of_class);
        self.rows[class] += 1;
        // -0.0 is 0.0
        let bin = self.bins.entry((decision + 0.0).to_bits() >> self.dropped).or_default();
        bin.weights[class] += weight;
        bin.moment += weight * f64::from(decision);
        self.limit();
    }

    /// Takes those for other rows, of the same output.
    pub fn unite(&mut self, mut other: HeldOutDecisions) {
        // of a float no more bits count than it has
        for decisions in [&mut *self, &mut other] {
            decisions.dropped = decisions.dropped.min(u32::BITS - 1);
        }
        while self.dropped < other.dropped {
            self.merge();
        }
        while other.dropped < self.dropped {
            other.merge();
        }
        for (bits, bin) in &other.bins {
            self.bins.entry(*bits).or_default().add(bin);
        }
        self.rows.iter_mut().zip(other.rows).for_each(|(rows, others)| *rows += others);
        self.limit();
    }

    fn limit(&mut self) {
        while self.bins.len() > HeldOutDecisions::MAX_BINS {
            self.merge();
        }
    }

    /// Rows that count, of other classes and of the class.
    pub fn rows(&self) -> [u64; 2] {
        self.rows
    }

    /// Brings together decisions that differ in one bit more.
    fn merge(&mut self) {
        self.dropped += 1;
        let mut merged: BTreeMap<u32, Bin> = BTreeMap::new();
        for (bits, bin) in std::mem::take(&mut self.bins) {
            merged.entry(bits >> 1).or_default().add(&bin);
        }
        self.bins = merged;
    }

    /// With fewer rows of a class, or of all others, no slope is fitted: a model that has not learned from the only row
    /// has learned nothing.
    const FEWEST: u64 = 2;

    /// The sigmoid of the least cross entropy among those that grow with the decision; None if there are no rows. Where
    /// that would fall, it is the best constant.
    fn fit(&self) -> Option<Sigmoid> {
        let mut priors = [0.0; 2];
        for bin in self.bins.values() {
            priors[0] += bin.weights[0];
            priors[1] += bin.weights[1];
        }
        let [others, own] = priors;
        if others + own <= 0.0 {
            return None;
        }
        let (high, low) = ((own + 1.0) / (own + 2.0), 1.0 / (others + 2.0));
        let point = |bin: &Bin| {
            let weight = bin.weights[0] + bin.weights[1];
            let target = (bin.weights[1] * high + bin.weights[0] * low) / weight;
            Point { decision: bin.moment / weight, target, weight: weight / (others + own) }
        };
        let mut points: Vec<Point> = self.bins.values().map(point).collect();
        // in units of the largest, so that no size of decisions is out of range
        let unit = points.iter().map(|point| point.decision.abs()).fold(0.0, f64::max);
        let unit = if unit > 0.0 { unit } else { 1.0 };
        points.iter_mut().for_each(|point| point.decision /= unit);
        let start = Sigmoid { slope: 0.0, offset: ((others + 1.0) / (own + 1.0)).ln() };
        let Sigmoid { slope, offset } = newton(&points, start);
        let slope = slope / unit;
        if slope < 0.0 && self.rows.iter().all(|rows| *rows >= HeldOutDecisions::FEWEST) {
            return Some(Sigmoid { slope, offset });
        }
        let share: f64 = points.iter().map(|point| point.weight * point.target).sum();
        Some(Sigmoid { slope: 0.0, offset: ((1.0 - share) / share).ln() })
    }
}

/// Rows of nearly one decision, and how much of them is of the class.
struct Point {
    decision: f64,
    target: f64,
    /// all of them are 1
    weight: f64,
}

/// The mean cross entropy.
fn loss(points: &[Point], sigmoid: Sigmoid) -> f64 {
    let one = |point: &Point| {
        let exponent = sigmoid.slope * point.decision + sigmoid.offset;
        point.weight * (point.target * exponent + softplus(-exponent))
    };
    points.iter().map(one).sum()
}

/// Newton's method on a convex function of two numbers, with steps that are halved until the loss falls enough.
fn newton(points: &[Point], start: Sigmoid) -> Sigmoid {
    const ITERATIONS: usize = 100;
    const LEAST_STEP: f64 = 1e-10;
    // keeps the Hessian invertible where all decisions are one
    const RIDGE: f64 = 1e-12;
    const TOLERANCE: f64 = 1e-12;
    let (mut at, mut least) = (start, loss(points, start));
    for _ in 0..ITERATIONS {
        let (mut gradient, mut hessian) = ([0.0; 2], [RIDGE, 0.0, RIDGE]);
        for point in points {
            let exponent = at.slope * point.decision + at.offset;
            let (own, others) = (probability_f64(-exponent), probability_f64(exponent));
            let (first, second) = (point.weight * (point.target - own), point.weight * own * others);
            gradient[0] += first * point.decision;
            gradient[1] += first;
            hessian[0] += second * point.decision * point.decision;
            hessian[1] += second * point.decision;
            hessian[2] += second;
        }
        if gradient.iter().all(|g| g.abs() < TOLERANCE) {
            break;
        }
        let determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1];
        let step = [
            -(hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant,
            -(hessian[0] * gradient[1] - hessian[1] * gradient[0]) / determinant,
        ];
        let along = gradient[0] * step[0] + gradient[1] * step[1];
        let mut size = 1.0;
        let improved = loop {
            let next = Sigmoid { slope: at.slope + size * step[0], offset: at.offset + size * step[1] };
            let loss = loss(points, next);
            if loss < least + 1e-4 * size * along {
                break Some((next, loss));
            }
            size /= 2.0;
            if size < LEAST_STEP {
                break None; // all that is left is rounding
            }
        };
        let Some(better) = improved else { break };
        (at, least) = better;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decision and a class for each of 40 rows, and a weight.
    fn rows() -> impl Iterator<Item = (f32, bool, f64)> {
        (0..40u32).map(|i| {
            let f = (f64::from(i * 37 % 40) / 10.0 - 2.0) as f32;
            let p = 1.0 / (1.0 + (-1.5 * f64::from(f) - 0.3).exp());
            (f, f64::from(i * 7 % 11) / 11.0 < p, f64::from(1 + i % 3))
        })
    }

    /// Decisions that lie so close together that bins are merged, more of them in the one half than in the other.
    #[test]
    fn decisions_of_parts_are_together_those_of_all_rows() {
        let many = |i: u32| {
            ((f64::from(i) * 0.618_033_988_749).fract() as f32 * 8.0 - 4.0, i.is_multiple_of(3), f64::from(1 + i % 2))
        };
        let of = |rows: std::ops::Range<u32>| {
            let mut decisions = HeldOutDecisions::default();
            rows.map(many).for_each(|(f, is_of_class, weight)| decisions.add(f, is_of_class, weight));
            decisions
        };
        let end = 5 * HeldOutDecisions::MAX_BINS as u32;
        let all = of(0..end);
        for parts in [[0..0, 0..end], [0..100, 100..end], [0..end - 100, end - 100..end], [0..end / 2, end / 2..end]] {
            let [mut united, other] = parts.map(of);
            united.unite(serde_json::from_str(&serde_json::to_string(&other).unwrap()).unwrap());
            assert_eq!((united.rows(), united.dropped, united.bins.len()), (all.rows(), all.dropped, all.bins.len()));
            let (united, all) = (united.fit().unwrap(), all.fit().unwrap());
            assert!((united.slope - all.slope).abs() < 1e-9 && (united.offset - all.offset).abs() < 1e-9);
        }
        // what no one counts so does not hang
        let absurd = HeldOutDecisions { dropped: u32::MAX, ..of(0..10) };
        let mut united = of(0..10);
        united.unite(absurd);
        assert_eq!(united.rows().iter().sum::<u64>(), 20);
    }

    fn fitted(rows: impl Iterator<Item = (f32, bool, f64)>) -> Sigmoid {
        let mut decisions = HeldOutDecisions::default();
        rows.for_each(|(f, is_of_class, weight)| decisions.add(f, is_of_class, weight));
        decisions.fit().unwrap()
    }

    fn is_near(sigmoid: Sigmoid, slope: f64, offset: f64, tolerance: f64) {
        let near = |a: f64, b: f64| (a - b).abs() <= tolerance * b.abs().max(1.0);
        assert!(near(sigmoid.slope, slope) && near(sigmoid.offset, offset), "{sigmoid:?}: {slope} {offset}");
    }

    #[test]
    fn sigmoids_are_those_of_the_least_cross_entropy() {
        // sklearn.calibration._sigmoid_calibration of scikit-learn 1.9.1, which stops within 1e-5 of the least loss,
        // and scipy 1.17.1's minimize(method="trust-exact", gtol=1e-13) on the same loss
        let plain = fitted(rows().map(|(f, is_of_class, _)| (f, is_of_class, 1.0)));
        is_near(plain, -1.238_884_245_102_415_6, -0.648_042_525_766_476_3, 1e-5);
        is_near(plain, -1.238_884_240_674_585_7, -0.648_042_520_792_664_2, 1e-8);
        let weighted = fitted(rows());
        is_near(weighted, -1.545_096_864_786_875_5, -0.939_168_728_197_879_1, 1e-5);
        is_near(weighted, -1.545_096_872_301_768_8, -0.939_168_741_423_193_5, 1e-8);
        // distinguished: the smoothed targets keep the slope finite
        let apart = fitted(rows().map(|(f, ..)| (f, f > 0.05, 1.0)));
        is_near(apart, -2.977_134_950_926_13, 0.147_944_256_099_149_2, 1e-5);
        is_near(apart, -2.977_135_807_641_590_6, 0.147_944_287_601_161_66, 1e-8);
        let one_class = fitted(rows().map(|(f, ..)| (f, false, 1.0)));
        is_near(one_class, 0.0, 3.713_572_066_704_308, 1e-9);
    }

    #[test]
    fn decisions_that_do_not_tell_a_class_apart_have_the_best_constant() {
        // decisions that are wrong, and a class with only one row: of the smoothed targets the mean
        let inverted = fitted(rows().map(|(f, ..)| (f, f < 0.05, 1.0)));
        let own = rows().filter(|(f, ..)| *f < 0.05).count() as f64;
        let constant = |own: f64| {
            let share = (own * (own + 1.0) / (own + 2.0) + (40.0 - own) / (42.0 - own)) / 40.0;
            ((1.0 - share) / share).ln()
        };
        is_near(inverted, 0.0, constant(own), 1e-12);
        let one = fitted(rows().enumerate().map(|(i, (f, ..))| (f, i == 7, 1.0)));
        is_near(one, 0.0, constant(1.0), 1e-12);
        assert!(Sigmoids(vec![inverted]).are_constant());
        let told_apart = fitted(rows());
        assert!(told_apart.slope < 0.0 && !Sigmoids(vec![told_apart]).are_constant());
    }

    #[test]
    fn weights_count_as_so_many_rows_and_their_sequence_does_not_matter() {
        let weighted = fitted(rows());
        let repeated = rows().flat_map(|(f, is_of_class, weight)| vec![(f, is_of_class, 1.0); weight as usize]);
        let repeated = fitted(repeated.collect::<Vec<_>>().into_iter().rev());
        is_near(repeated, weighted.slope, weighted.offset, 1e-9);
        let mut without = HeldOutDecisions::default();
        rows().for_each(|(f, is_of_class, weight)| without.add(f, is_of_class, weight));
        for (f, weight) in [(f32::NAN, 1.0), (f32::INFINITY, 1.0), (1.0, 0.0), (1.0, f64::NAN), (1.0, -1.0)] {
            without.add(f, true, weight);
        }
        assert_eq!(without.fit(), Some(weighted));
        assert_eq!(without.rows().iter().sum::<u64>(), 40);
        assert_eq!(HeldOutDecisions::default().fit(), None);
    }

    #[test]
    fn many_different_decisions_take_bounded_memory_and_hardly_move_the_sigmoid() {
        let many = || {
            (0..300_000u32).map(|i| {
                let u = f64::from(i.wrapping_mul(2_654_435_761)) / 4_294_967_296.0;
                let f = (u * 6.0 - 3.0 + f64::from(i) * 1e-9) as f32;
                (f, f64::from(i * 7 % 1009) / 1009.0 < 1.0 / (1.0 + (1.0 - 2.0 * f64::from(f)).exp()))
            })
        };
        let mut decisions = HeldOutDecisions::default();
        many().for_each(|(f, is_of_class)| decisions.add(f, is_of_class, 1.0));
        assert!(decisions.bins.len() <= HeldOutDecisions::MAX_BINS && decisions.dropped > 0);
        // the same loss over all of them, by the same iteration
        let own = many().filter(|(_, is_of_class)| *is_of_class).count() as f64;
        let others = 300_000.0 - own;
        let target = |is_of_class| if is_of_class { (own + 1.0) / (own + 2.0) } else { 1.0 / (others + 2.0) };
        let point = |(f, is_of_class)| Point { decision: f64::from(f), target: target(is_of_class), weight: 1.0 / 3e5 };
        let points: Vec<Point> = many().map(point).collect();
        let exact = newton(&points, Sigmoid { slope: 0.0, offset: 0.0 });
        is_near(decisions.fit().unwrap(), exact.slope, exact.offset, 1e-6);
    }

    #[test]
    fn decisions_of_any_size_have_a_finite_sigmoid() {
        for size in [1e-38, 1e-20, 1e20, 1e38] {
            let sigmoid = fitted(rows().map(|(f, is_of_class, weight)| (f * size, is_of_class, weight)));
            let usual = fitted(rows());
            for (f, ..) in rows() {
                let (p, expected) = (sigmoid.probability(f * size), usual.probability(f));
                assert!((p - expected).abs() < 1e-5, "{f} {size}: {p} {expected}");
            }
        }
        let constant = fitted(rows().map(|(_, is_of_class, _)| (0.5, is_of_class, 1.0)));
        assert!((constant.probability(0.5) - 0.6).abs() < 0.03, "{constant:?}");
    }

    #[test]
    fn probabilities_add_up_to_one_and_the_opposite_model_has_the_opposite_ones() {
        let mut two = Sigmoids::new(&[-1.5], &[0.25]).unwrap();
        let mut p = [0.0; 2];
        two.probabilities(&[2.0], &mut p);
        let expected = 1.0 / (1.0 + (-2.75f64).exp());
        assert!((p[1] - expected).abs() < 1e-15 && (p[0] + p[1] - 1.0).abs() < 1e-15);
        two.probabilities(&[40.0], &mut p);
        assert!((p[0] / (-59.75f64).exp() - 1.0).abs() < 1e-12, "exact next to 0: {}", p[0]);
        two.negate();
        let mut opposite = [0.0; 2];
        two.probabilities(&[-40.0], &mut opposite);
        assert_eq!([opposite[1], opposite[0]], p);

        let three = Sigmoids::new(&[-1.0, -2.0, -1.0], &[0.0, 0.5, 1e3]).unwrap();
        let mut p = [0.0; 3];
        three.probabilities(&[0.5, -0.25, 3.0], &mut p);
        let each = [1.0 / (1.0 + (-0.5f64).exp()), 1.0 / (1.0 + 1f64.exp()), 0.0];
        let sum: f64 = each.iter().sum();
        assert!(p.iter().zip(each).all(|(p, each)| (p - each / sum).abs() < 1e-15), "{p:?}");
        three.probabilities(&[-1e30, -1e30, -1e30], &mut p);
        assert_eq!(p, [0.5, 0.0, 0.5], "none of them is likely, and the second less than the others");
    }

    #[test]
    fn what_is_no_sigmoid_for_each_output_is_refused() {
        assert_eq!(Sigmoids::new(&[], &[]), None);
        assert_eq!(Sigmoids::new(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Sigmoids::new(&[f64::NAN], &[1.0]), None);
        let sigmoids = Sigmoids::new(&[-1.0, -2.0], &[3.0, 4.0]).unwrap();
        assert_eq!((sigmoids.slopes(), sigmoids.offsets()), (vec![-1.0, -2.0], vec![3.0, 4.0]));
        assert_eq!(sigmoids.all().len(), 2);
    }
}
