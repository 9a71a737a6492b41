//! The trainer against a textbook's mini-batch training in f64, for every kind of model, optimizer, penalty and batch
//! size, on dense and on sparse tuples.

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};
use proptest::prelude::*;
use sgd_tests::{Noise, textbook_step};
use tuples::Batch;

use crate::Trainer;

/// A tuple as everybody understands it.
#[derive(Debug, Clone)]
pub(super) struct Tuple {
    pub(super) features: Vec<f32>,
    pub(super) label: f32,
    pub(super) weight: f32,
}

/// Tuples around a random model, a third of whose features are 0.
pub(super) fn tuples(kind: ModelKind, dim: usize, outputs: usize, n: usize, seed: u64) -> Vec<Tuple> {
    let mut noise = Noise::new(seed);
    let truth: Vec<Vec<f32>> = (0..outputs).map(|_| (0..dim).map(|_| noise.next()).collect()).collect();
    let tuple = |_| {
        let features: Vec<f32> = (0..dim).map(|_| noise.next()).map(|x| if x < -0.3 { 0.0 } else { x }).collect();
        let mut z: Vec<f32> = truth.iter().map(|w| w.iter().zip(&features).map(|(w, x)| w * x).sum()).collect();
        z.iter_mut().for_each(|z| *z += 0.3 * noise.next());
        let label = match kind {
            ModelKind::Logistic | ModelKind::Svm | ModelKind::SquaredHinge => {
                if z[0] > 0.1 {
                    1.0
                } else {
                    -1.0
                }
            }
            ModelKind::Linear | ModelKind::Quantile | ModelKind::EpsilonInsensitive | ModelKind::Huber => z[0],
            ModelKind::Poisson => (4.0 * z[0]).abs().floor(),
            ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
            ModelKind::Softmax | ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest => {
                ModelParameters::class_of(&z) as f32
            }
        };
        Tuple { features, label, weight: 1.5 + noise.next() }
    };
    (0..n).map(tuple).collect()
}

pub(super) fn dense(tuples: &[Tuple], weighted: bool) -> Batch {
    let mut batch = Batch::dense(tuples[0].features.len());
    batch.set_weighted(weighted);
    for tuple in tuples {
        batch.push(tuple.label).unwrap().copy_from_slice(&tuple.features);
    }
    weigh(&mut batch, tuples);
    batch
}

pub(super) fn sparse(tuples: &[Tuple], weighted: bool) -> Batch {
    let mut batch = Batch::sparse();
    batch.set_weighted(weighted);
    for tuple in tuples {
        let entries = || tuple.features.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let (indices, values) = batch.push_sparse(tuple.label, entries().count()).unwrap();
        for (i, (j, x)) in entries().enumerate() {
            (indices[i], values[i]) = (j as u32, *x);
        }
    }
    weigh(&mut batch, tuples);
    batch
}

fn weigh(batch: &mut Batch, tuples: &[Tuple]) {
    batch.weights_mut().iter_mut().zip(tuples).for_each(|(weight, tuple)| *weight = tuple.weight);
}

/// Training as the definitions have it, step by step, parameter by parameter.
struct Textbook {
    hyper: Hyperparameters,
    /// per output the weights, then the intercept
    w: Vec<Vec<f64>>,
    m: Vec<Vec<f64>>,
    v: Vec<Vec<f64>>,
    t: i32,
    /// of the residuals of the epoch before, which Huber's threshold follows
    scale: f64,
}

/// Loss, and derivative by each decision.
fn loss(hyper: &Hyperparameters, number: f64, z: &[f64], y: f64) -> (f64, Vec<f64>) {
    match hyper.kind {
        ModelKind::SvmOneVsRest => {
            let sign = |k: usize| if k == y as usize { 1.0 } else { -1.0 };
            let margins = || z.iter().enumerate().map(|(k, z)| (sign(k), sign(k) * z));
            let slopes = margins().map(|(sign, m)| if m < 1.0 { -sign } else { 0.0 }).collect();
            (margins().map(|(_, m)| (1.0 - m).max(0.0)).sum(), slopes)
        }
        ModelKind::SquaredHingeOneVsRest => {
            let sign = |k: usize| if k == y as usize { 1.0 } else { -1.0 };
            let short = || z.iter().enumerate().map(|(k, z)| (sign(k), (1.0 - sign(k) * z).max(0.0)));
            (short().map(|(_, s)| s * s).sum(), short().map(|(sign, s)| -2.0 * sign * s).collect())
        }
        ModelKind::Huber => {
            let (error, cut) = ((y - z[0]).abs(), (y - z[0]).clamp(-number, number));
            (cut.abs() * (error - cut.abs() / 2.0), vec![-cut])
        }
        ModelKind::Quantile if z[0] > y => ((1.0 - number) * (z[0] - y), vec![1.0 - number]),
        ModelKind::Quantile => (number * (y - z[0]), vec![-number]),
        ModelKind::EpsilonInsensitive => {
            let beyond = (y - z[0]).abs() - number;
            (beyond.max(0.0), vec![if beyond > 0.0 { (z[0] - y).signum() } else { 0.0 }])
        }
        ModelKind::Logistic => ((-y * z[0]).exp().ln_1p(), vec![-y / (1.0 + (y * z[0]).exp())]),
        ModelKind::Svm => ((1.0 - y * z[0]).max(0.0), vec![if y * z[0] < 1.0 { -y } else { 0.0 }]),
        ModelKind::SquaredHinge => {
            let short = (1.0 - y * z[0]).max(0.0);
            (short * short, vec![-2.0 * y * short])
        }
        ModelKind::Linear => ((z[0] - y).powi(2) / 2.0, vec![z[0] - y]),
        ModelKind::Poisson => {
            let logarithms = if y > 0.0 { y * (z[0] - y.ln()) } else { 0.0 };
            (z[0].exp() - y - logarithms, vec![z[0].exp() - y])
        }
        ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
        ModelKind::Softmax => {
            let sum: f64 = z.iter().map(|z| z.exp()).sum();
            let slopes = z.iter().enumerate().map(|(k, z)| z.exp() / sum - f64::from(u8::from(k == y as usize)));
            (sum.ln() - z[y as usize], slopes.collect())
        }
    }
}

/// The second derivative of the loss at most.
fn curvature(kind: ModelKind) -> f64 {
    match kind {
        ModelKind::Logistic => 0.25,
        ModelKind::Softmax => 0.5,
        ModelKind::SquaredHinge | ModelKind::SquaredHingeOneVsRest => 2.0,
        _ => 1.0,
    }
}

impl Textbook {
    fn new(hyper: Hyperparameters, dim: usize, outputs: usize) -> Textbook {
        let zeros = vec![vec![0.0; dim + 1]; outputs];
        Textbook { hyper, w: zeros.clone(), m: zeros.clone(), v: zeros, t: 0, scale: 1.0 }
    }

    fn decisions(&self, x: &[f32]) -> Vec<f64> {
        let dot = |w: &Vec<f64>| w.iter().zip(x).map(|(w, &x)| w * f64::from(x)).sum::<f64>() + w[x.len()];
        self.w.iter().map(dot).collect()
    }

    /// Goes through the tuples and returns the loss, the fraction that is correct, that which is so near the border
    /// between classes that it may be either, and the R².
    fn epoch(&mut self, tuples: &[Tuple], weighted: bool, rate: f64) -> (f64, [f64; 2], f64) {
        const NEAR: f64 = 1e-4;
        let (mut sum, mut weights, mut correct, mut near, mut residuals) = (0.0, 0.0, 0, 0, 0.0);
        let (number, mut cut) = (self.hyper.loss_number * self.scale, 0.0);
        for batch in tuples.chunks(self.hyper.batch_size as usize) {
            let mut gradient = vec![vec![0.0; self.w[0].len()]; self.w.len()];
            let mut squares = 0.0;
            for tuple in batch {
                let (z, y) = (self.decisions(&tuple.features), f64::from(tuple.label));
                let weight = if weighted { f64::from(tuple.weight) } else { 1.0 };
                let (loss, slopes) = loss(&self.hyper, number, &z, y);
                sum += weight * loss;
                weights += weight;
                let predicted = if self.hyper.kind == ModelKind::Poisson { z[0].exp() } else { z[0] };
                residuals += (predicted - y).powi(2);
                cut += weight * (predicted - y).abs().min(number).powi(2);
                correct += usize::from(match self.hyper.kind {
                    ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
                    ModelKind::Softmax | ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest => {
                        z.iter().filter(|&&other| other >= z[y as usize]).count() == 1
                    }
                    _ => y * z[0] > 0.0,
                });
                near += usize::from(match self.hyper.kind {
                    ModelKind::Softmax | ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest => {
                        z.iter().filter(|other| (*other - z[y as usize]).abs() < NEAR).count() > 1
                    }
                    _ => z[0].abs() < NEAR,
                });
                let bend = if self.hyper.kind == ModelKind::Poisson { z[0].exp().max(y) } else { 1.0 };
                squares += bend * weight * (1.0 + tuple.features.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>());
                for (gradient, slope) in gradient.iter_mut().zip(slopes) {
                    let row = tuple.features.iter().map(|&x| f64::from(x)).chain([1.0]);
                    gradient.iter_mut().zip(row).for_each(|(g, x)| *g += weight * slope * x / batch.len() as f64);
                }
            }
            if self.hyper.bounded {
                let beta = if let Optimizer::Momentum { beta } = self.hyper.optimizer { beta } else { 0.0 };
                let bound = rate / (1.0 - beta) * curvature(self.hyper.kind) * squares / batch.len() as f64;
                gradient.iter_mut().flatten().for_each(|g| *g /= 1.0 + bound);
            }
            self.step(&gradient, rate);
        }
        let n = tuples.len() as f64;
        if self.hyper.kind == ModelKind::Huber {
            self.scale = (cut / weights).sqrt();
        }
        let mean = tuples.iter().map(|tuple| f64::from(tuple.label)).sum::<f64>() / n;
        let total: f64 = tuples.iter().map(|tuple| (f64::from(tuple.label) - mean).powi(2)).sum();
        let all = || self.w.iter().flat_map(|w| &w[..w.len() - 1]);
        let (squares, magnitudes) = (all().map(|w| w * w).sum::<f64>(), all().map(|w| w.abs()).sum::<f64>());
        let penalty = self.hyper.l2 / 2.0 * squares + self.hyper.l1 * magnitudes;
        (sum / weights + penalty, [correct as f64 / n, near as f64 / n], 1.0 - residuals / total)
    }

    fn step(&mut self, gradient: &[Vec<f64>], rate: f64) {
        self.t += 1;
        let Hyperparameters { l1, l2, optimizer, reach, bounded, .. } = self.hyper;
        let beta = if let Optimizer::Momentum { beta } = optimizer { beta } else { 0.0 };
        let bound = rate / (1.0 - beta) * curvature(self.hyper.kind) * reach;
        let of_penalties = if bounded { rate / (1.0 + bound) } else { rate };
        for (k, gradient) in gradient.iter().enumerate() {
            let intercept = gradient.len() - 1;
            for (j, &g) in gradient.iter().enumerate() {
                let (w, m, v) = (&mut self.w[k][j], &mut self.m[k][j], &mut self.v[k][j]);
                if j < intercept {
                    *w *= 1.0 - of_penalties * l2;
                }
                *w -= rate * textbook_step(optimizer, self.t, [m, v], g);
                if j < intercept {
                    *w = w.signum() * (w.abs() - of_penalties * l1).max(0.0);
                }
            }
        }
    }
}

/// Trains by both and compares every parameter and every report.
fn assert_agree(hyper: Hyperparameters, tuples: &[Tuple], outputs: usize, weighted: bool, tolerance: f64) {
    hyper.validate().unwrap();
    let dim = tuples[0].features.len();
    for batch in [dense(tuples, weighted), sparse(tuples, weighted)] {
        let what = format!("{hyper:?} {dim} features, {} tuples, sparse: {}", tuples.len(), batch.is_sparse());
        let close = |name: &str, a: f64, b: f64, tolerance: f64| {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{name} {a} instead of {b}: {what}");
        };
        let mut textbook = Textbook::new(hyper, dim, outputs);
        let mut trainer = Trainer::new(hyper, dim, outputs, batch.is_sparse()).unwrap();
        for epoch in 1..=3 {
            trainer.begin_epoch();
            trainer.learn(&batch, 0..batch.len()).unwrap();
            let report = trainer.end_epoch().unwrap();
            let (loss, [accuracy, near], r2) = textbook.epoch(tuples, weighted, hyper.learning_rate_at(epoch));
            close("loss", report.loss, loss, tolerance);
            let half = 0.5 / tuples.len() as f64;
            if let Some(a) = report.accuracy {
                assert!((a - accuracy).abs() < near + half, "accuracy {a} instead of {accuracy}, {near} near: {what}");
            }
            // of equal targets it is 1 or 0, which a rounding decides
            report.r2.iter().filter(|_| r2.is_finite()).for_each(|&r| close("r2", r, r2, 10.0 * tolerance));
            assert_eq!(
                (report.accuracy.is_some(), report.r2.is_some()),
                match hyper.kind {
                    kind if kind.is_classifier() => (true, false),
                    _ => (false, true),
                }
            );
            let model = trainer.model().unwrap();
            for k in 0..outputs {
                for (j, (&w, &expected)) in model.weights_of(k).iter().zip(&textbook.w[k]).enumerate() {
                    close(&format!("epoch {epoch} weight {k} {j}"), w.into(), expected, tolerance);
                }
                close("intercept", model.intercepts[k].into(), textbook.w[k][dim], tolerance);
            }
        }
    }
}

const OPTIMIZERS: [Optimizer; 3] =
    [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-4 }];

pub(super) fn outputs_of(kind: ModelKind) -> usize {
    if kind.has_class_numbers() { 4 } else { 1 }
}

/// A rate with which last digits are not magnified: the loss of counts bends without a bound.
pub(super) fn gentle(kind: ModelKind, rate: f64) -> f64 {
    match kind {
        ModelKind::Poisson => rate / 30.0,
        // bends twice as much as the squared error
        ModelKind::SquaredHinge | ModelKind::SquaredHingeOneVsRest => rate / 2.0,
        _ => rate,
    }
}

/// Whether a derivative may jump by the last digit of a decision.
fn has_corners(kind: ModelKind) -> bool {
    matches!(kind, ModelKind::Svm | ModelKind::SvmOneVsRest | ModelKind::Quantile | ModelKind::EpsilonInsensitive)
}

#[test]
fn bounded_steps_agree_with_the_textbook_for_every_kind_and_length_of_rows() {
    for kind in ModelKind::LINEAR {
        for optimizer in [Optimizer::Sgd, Optimizer::MOMENTUM] {
            for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.01, 0.05)] {
                for batch_size in [1, 7, 300] {
                    // one, two, four chunks and more, with and without a lane behind the constant
                    for (dim, weighted) in [(3, false), (15, true), (17, true), (60, false), (40, true), (100, true)] {
                        let learning_rate = 3.0 / (dim as f64 + 10.0);
                        let other = Hyperparameters::new(kind);
                        let hyper = Hyperparameters {
                            learning_rate,
                            optimizer,
                            batch_size,
                            l1,
                            l2,
                            bounded: true,
                            reach: 3.0,
                            ..other
                        };
                        let outputs = outputs_of(kind);
                        let tuples = tuples(kind, dim, outputs, 130, dim as u64);
                        // hinges are 0 or 1, by the last digit of a margin
                        assert_agree(hyper, &tuples, outputs, weighted, if has_corners(kind) { 3e-3 } else { 5e-4 });
                    }
                }
            }
        }
    }
}

#[test]
fn every_kind_optimizer_penalty_and_batch_size_agrees_with_the_textbook() {
    for kind in ModelKind::LINEAR {
        for optimizer in OPTIMIZERS {
            for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.01, 0.0), (0.01, 0.05)] {
                for batch_size in [1, 7, 300] {
                    for (dim, weighted) in [(3, false), (40, true), (100, false)] {
                        let hyper = Hyperparameters {
                            // more would magnify the last digits
                            learning_rate: gentle(kind, 0.3 / (dim as f64 + 10.0)),
                            optimizer,
                            batch_size,
                            l1,
                            l2,
                            ..Hyperparameters::new(kind)
                        };
                        let outputs = outputs_of(kind);
                        assert_agree(hyper, &tuples(kind, dim, outputs, 250, dim as u64), outputs, weighted, 2e-4);
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_hyperparameters_agree_with_the_textbook(
        kind in prop::sample::select(&ModelKind::LINEAR[..]),
        optimizer in prop_oneof![
            Just(Optimizer::Sgd),
            (0.0..0.97).prop_map(|beta| Optimizer::Momentum { beta }),
            (0.0..0.95, 0.9..0.999).prop_map(|(beta1, beta2)| Optimizer::Adam { beta1, beta2, epsilon: 1e-3 }),
        ],
        schedule in prop_oneof![
            Just(Schedule::Constant),
            (0.5..1.0).prop_map(|decay| Schedule::Exponential { decay }),
            (0.1..1.0).prop_map(|power| Schedule::InverseScaling { power }),
        ],
        batch_size in 1u32..20,
        // below 1/1024 the cuts are gathered, which is seen in the last digits
        l1 in prop_oneof![Just(0.0), 0.001..0.1],
        l2 in prop_oneof![Just(0.0), 0.0..1.0],
        learning_rate in 0.001..0.03,
        (dim, n) in (1usize..40, 1usize..120),
        weighted: bool,
        seed: u64,
    ) {
        let outputs = outputs_of(kind);
        let learning_rate = gentle(kind, learning_rate);
        // a derivative that jumps elsewhere moves the model by a step
        let has_jumps = matches!(kind, ModelKind::Quantile | ModelKind::EpsilonInsensitive | ModelKind::SvmOneVsRest);
        let tolerance = if has_jumps { 0.05 } else { 1e-3 };
        let hyper = Hyperparameters { kind, learning_rate, schedule, optimizer, batch_size, l1, l2, ..Hyperparameters::new(kind) };
        assert_agree(hyper, &tuples(kind, dim, outputs, n, seed), outputs, weighted, tolerance);
    }
}
