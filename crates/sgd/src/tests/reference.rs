//! The trainer against plain SGD in f64, without tables, look-ahead or scale factor.

use loss::{Hyperparameters, ModelKind, Schedule};
use proptest::prelude::*;
use sgd_tests::noisy_batch;
use tuples::Batch;

use crate::Trainer;

/// What the trainer should come to, computed as the textbook has it.
struct Reference {
    hyper: Hyperparameters,
    weights: Vec<f64>,
    intercept: f64,
}

/// Loss and accuracy of an epoch.
struct Report {
    loss: f64,
    accuracy: f64,
}

fn loss_of(kind: ModelKind, margin: f64) -> f64 {
    match kind {
        ModelKind::Logistic => (-margin).exp().ln_1p(),
        ModelKind::Svm => (1.0 - margin).max(0.0),
        _ => unreachable!(),
    }
}

fn slope_of(kind: ModelKind, margin: f64) -> f64 {
    match kind {
        ModelKind::Logistic => 1.0 / (1.0 + margin.exp()),
        ModelKind::Svm => f64::from(u8::from(margin < 1.0)),
        _ => unreachable!(),
    }
}

impl Reference {
    fn new(hyper: Hyperparameters, dim: usize) -> Reference {
        Reference { hyper, weights: vec![0.0; dim], intercept: 0.0 }
    }

    fn epoch(&mut self, batch: &Batch, learning_rate: f64) -> Report {
        let (mut loss, mut correct) = (0.0, 0);
        for &i in batch.order() {
            let (features, y) = (batch.features(i as usize), f64::from(batch.label(i as usize)));
            let z: f64 = self.weights.iter().zip(features).map(|(w, &x)| w * f64::from(x)).sum();
            let margin = y * (z + self.intercept);
            loss += loss_of(self.hyper.kind, margin);
            correct += usize::from(margin > 0.0);
            let step = learning_rate * slope_of(self.hyper.kind, margin) * y;
            for (w, &x) in self.weights.iter_mut().zip(features) {
                *w = *w * (1.0 - learning_rate * self.hyper.l2) + step * f64::from(x);
            }
            self.intercept += step;
        }
        let penalty = self.hyper.l2 / 2.0 * self.weights.iter().map(|w| w * w).sum::<f64>();
        Report { loss: loss / batch.len() as f64 + penalty, accuracy: correct as f64 / batch.len() as f64 }
    }
}

/// The learning rate of an epoch of an exponential schedule.
fn rate(hyper: Hyperparameters, epoch: u32) -> f64 {
    let Schedule::Exponential { decay } = hyper.schedule else { unreachable!() };
    hyper.learning_rate * decay.powi(epoch as i32 - 1)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + b.abs())
}

fn assert_agree(hyper: Hyperparameters, batch: &Batch, epochs: u32, tolerance: f64) {
    let mut reference = Reference::new(hyper, batch.dim());
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, false).unwrap();
    for epoch in 1..=epochs {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        let report = trainer.end_epoch().unwrap();
        let expected = reference.epoch(batch, rate(hyper, epoch));
        assert!(close(report.loss, expected.loss, tolerance), "loss {} {}", report.loss, expected.loss);
        assert!((report.accuracy.unwrap() - expected.accuracy).abs() <= 2.5 / batch.len() as f64);
    }
    let model = trainer.model().unwrap();
    for (&w, &expected) in model.weights.iter().zip(&reference.weights) {
        assert!(close(w.into(), expected, tolerance), "weight {w} {expected}");
    }
    assert!(close(model.intercepts[0].into(), reference.intercept, tolerance));
}

#[test]
fn logistic_agrees_with_plain_sgd_in_f64_for_every_kernel() {
    for dim in [1, 2, 15, 16, 17, 31, 32, 47, 48, 63, 64, 79, 100, 128, 2000] {
        for l2 in [0.0, 0.03] {
            let hyper = Hyperparameters { learning_rate: 0.05, l2, ..Hyperparameters::new(ModelKind::Logistic) };
            assert_agree(hyper, &noisy_batch(dim, 300, dim as u64), 3, 2e-5);
        }
    }
}

#[test]
fn svm_agrees_with_plain_sgd_in_f64_for_every_kernel() {
    for dim in [1, 2, 15, 16, 17, 31, 32, 47, 48, 63, 64, 79, 100, 128, 2000] {
        for l2 in [0.0, 0.03] {
            let hyper = Hyperparameters { learning_rate: 0.05, l2, ..Hyperparameters::new(ModelKind::Svm) };
            assert_agree(hyper, &noisy_batch(dim, 300, 100 + dim as u64), 3, 2e-5);
        }
    }
}

#[test]
fn a_penalty_that_nearly_erases_the_weights_agrees_with_plain_sgd() {
    for dim in [3, 20, 40, 60, 100] {
        for l2 in [6.0, 15.0, 19.999] {
            let hyper = Hyperparameters { learning_rate: 0.05, l2, ..Hyperparameters::new(ModelKind::Logistic) };
            assert_agree(hyper, &noisy_batch(dim, 300, dim as u64), 2, 2e-5);
        }
    }
}

#[test]
fn a_penalty_too_small_for_one_step_in_f32_still_shrinks_the_weights() {
    // 1 - 1e-8 is 1 in f32
    let hyper = Hyperparameters {
        learning_rate: 1e-3,
        schedule: Schedule::Constant,
        l2: 1e-5,
        ..Hyperparameters::new(ModelKind::Svm)
    };
    let mut trainer = Trainer::new(hyper, 1, 1, false).unwrap();
    trainer.begin_epoch();
    let mut batch = noisy_batch(1, 1, 1);
    (batch.features_mut(0)[0], batch.labels_mut()[0]) = (1e4, 1.0);
    trainer.learn(&batch, 0..1).unwrap();
    let before = trainer.model().unwrap().weights[0];
    for _ in 0..1_000_000 {
        trainer.learn(&batch, 0..1).unwrap();
    }
    let after = trainer.model().unwrap().weights[0];
    assert!((f64::from(after / before) - (-0.01f64).exp()).abs() < 1e-5, "{before} {after}");
}

proptest! {
    #[test]
    fn logistic_agrees_with_plain_sgd_for_any_hyperparameters(
        dim in 1usize..90, n in 1usize..200, seed: u64, learning_rate in 0.001..0.5, decay in 0.1..1.0, l2 in 0.0..1.0,
    ) {
        let schedule = Schedule::Exponential { decay };
        let hyper = Hyperparameters { learning_rate, schedule, l2, ..Hyperparameters::new(ModelKind::Logistic) };
        assert_agree(hyper, &noisy_batch(dim, n, seed), 2, 5e-5);
    }
}
