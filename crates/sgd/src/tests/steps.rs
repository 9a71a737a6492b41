//! Steps and epochs whose outcome is known from mathematics.

use std::f64::consts::LN_2;

use loss::{Diverged, Hyperparameters, ModelKind, ModelParameters, Schedule};
use sgd_tests::{BINARY, batch_of, noisy_batch};
use tuples::Batch;

use crate::{Evaluation, Trainer};

fn hyper(kind: ModelKind, learning_rate: f64) -> Hyperparameters {
    Hyperparameters { learning_rate, ..Hyperparameters::new(kind) }
}

fn model_of(weights: Vec<f32>, intercept: f32) -> ModelParameters {
    ModelParameters { dim: weights.len(), outputs: 1, weights, intercepts: vec![intercept], network: None }
}

/// A trainer that has seen the tuples once, in its first epoch.
fn trained(hyper: Hyperparameters, batch: &Batch) -> Trainer {
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, false).unwrap();
    trainer.begin_epoch();
    trainer.learn(batch, 0..batch.len()).unwrap();
    trainer
}

#[test]
fn the_first_logistic_step_is_half_the_learning_rate_along_the_row() {
    let batch = batch_of(2, [(-1.0, &[3.0, -1.0][..])]);
    let mut trainer = trained(hyper(ModelKind::Logistic, 0.25), &batch);
    assert_eq!(trainer.model().unwrap(), model_of(vec![-0.375, 0.125], -0.125));
    let report = trainer.end_epoch().unwrap();
    assert!((report.loss - LN_2).abs() < 1e-7);
    assert_eq!((report.epoch, report.accuracy, report.learning_rate, report.tuples), (1, Some(0.0), 0.25, 1));
}

#[test]
fn a_hinge_step_is_not_made_at_a_margin_of_exactly_1() {
    let row = &[1.0][..];
    let mut trainer = trained(hyper(ModelKind::Svm, 0.5), &batch_of(1, [(1.0, row), (1.0, row), (1.0, row)]));
    assert_eq!(trainer.model().unwrap(), model_of(vec![0.5], 0.5));
    let report = trainer.end_epoch().unwrap();
    assert_eq!((report.loss, report.accuracy, report.tuples), (1.0 / 3.0, Some(2.0 / 3.0), 3));
}

#[test]
fn the_penalty_shrinks_the_weights_but_not_the_intercept() {
    let hyper = Hyperparameters { l2: 0.5, schedule: Schedule::Constant, ..hyper(ModelKind::Svm, 0.5) };
    let mut trainer = trained(hyper, &batch_of(1, [(1.0, &[1.0][..]), (1.0, &[8.0])]));
    assert_eq!(trainer.model().unwrap(), model_of(vec![0.375], 0.5));
    let report = trainer.end_epoch().unwrap();
    assert_eq!(report.loss, 0.5 + 0.25 * 0.375 * 0.375);
}

#[test]
fn a_step_is_minus_the_learning_rate_times_the_gradient_by_finite_differences() {
    for dim in [4, 20, 70] {
        let hyper = Hyperparameters { l2: 0.2, ..hyper(ModelKind::Logistic, 0.1) };
        let batch = noisy_batch(dim, 50, 5);
        let mut trainer = Trainer::new(hyper, dim, 1, false).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..49).unwrap();
        let before = trainer.model().unwrap();
        trainer.learn(&batch, 49..50).unwrap();
        let after = trainer.model().unwrap();
        let last = batch.order()[49] as usize;
        let (row, y) = (batch.features(last), f64::from(batch.label(last)));
        let objective = |changed: usize, by: f64| {
            let weight = |i: usize| f64::from(before.weights[i]) + if i == changed { by } else { 0.0 };
            let z: f64 = (0..dim).map(|i| weight(i) * f64::from(row[i])).sum();
            let squares: f64 = (0..dim).map(|i| weight(i).powi(2)).sum();
            (-y * (z + f64::from(before.intercepts[0]))).exp().ln_1p() + hyper.l2 / 2.0 * squares
        };
        for i in 0..dim {
            let gradient = (objective(i, 1e-5) - objective(i, -1e-5)) / 2e-5;
            let step = f64::from(after.weights[i]) - f64::from(before.weights[i]);
            assert!((step + 0.1 * gradient).abs() < 3e-7, "{step} {gradient}");
        }
    }
}

#[test]
fn the_steps_of_later_epochs_are_made_at_their_learning_rates() {
    let batch = batch_of(1, [(1.0, &[0.0][..])]);
    let mut trainer = Trainer::new(
        Hyperparameters { schedule: Schedule::Exponential { decay: 0.5 }, ..hyper(ModelKind::Svm, 0.25) },
        1,
        1,
        false,
    )
    .unwrap();
    assert_eq!(trainer.epoch(), 0);
    for (epoch, learning_rate, intercept) in [(1, 0.25, 0.25), (2, 0.125, 0.375), (3, 0.0625, 0.4375)] {
        trainer.begin_epoch();
        trainer.learn(&batch, 0..1).unwrap();
        let report = trainer.end_epoch().unwrap();
        assert_eq!((report.epoch, report.learning_rate, report.tuples), (epoch, learning_rate, 1));
        assert_eq!((trainer.epoch(), trainer.model().unwrap().intercepts[0]), (epoch, intercept));
    }
}

#[test]
fn an_epoch_without_tuples_has_loss_and_accuracy_0() {
    let mut trainer = Trainer::new(Hyperparameters::new(ModelKind::Logistic), 40, 1, false).unwrap();
    trainer.begin_epoch();
    trainer.learn(&Batch::new(40), 0..0).unwrap();
    let report = trainer.end_epoch().unwrap();
    assert_eq!((report.loss, report.accuracy, report.tuples), (0.0, Some(0.0), 0));
    assert_eq!(trainer.model().unwrap(), ModelParameters::new(40, 1));
}

#[test]
fn a_learning_rate_that_is_too_large_is_noticed_in_the_epoch() {
    for (dim, kind) in [(3, ModelKind::Logistic), (28, ModelKind::Svm), (100, ModelKind::Logistic)] {
        let batch = noisy_batch(dim, 200, 6);
        let mut trainer = trained(Hyperparameters { l2: 1e-40, ..hyper(kind, 1e38) }, &batch);
        assert_eq!(trainer.check(), Err(Diverged { epoch: 1 }), "{kind} {dim}");
        assert_eq!(trainer.end_epoch(), Err(Diverged { epoch: 1 }));
        trainer.begin_epoch();
        trainer.learn(&batch, 0..200).unwrap();
        assert_eq!(trainer.end_epoch(), Err(Diverged { epoch: 2 }));
    }
}

#[test]
fn a_nan_among_the_features_is_noticed_wherever_it_is() {
    for (dim, place) in [(3, 0), (28, 27), (100, 50), (100, 99)] {
        for kind in BINARY {
            let mut batch = noisy_batch(dim, 9, 7);
            batch.features_mut(4)[place] = f32::NAN;
            let trainer = trained(hyper(kind, 0.1), &batch);
            assert_eq!(trainer.check(), Err(Diverged { epoch: 1 }), "{kind} {dim}");
        }
    }
}

#[test]
fn a_decision_beyond_f32_is_noticed_although_the_model_is_finite() {
    let batch = batch_of(2, [(1.0, &[1e20, 1e20][..]), (-1.0, &[1e20, 1e20])]);
    let trainer = trained(hyper(ModelKind::Svm, 0.1), &batch);
    assert!(trainer.model().unwrap().is_finite());
    assert_eq!(trainer.check(), Err(Diverged { epoch: 1 }));
}

/// The minimum of the mean logistic loss plus l2/2 |w|², for one feature, by Newton's method: weight and intercept.
fn newton(batch: &Batch, l2: f64) -> (f64, f64) {
    let (mut w, mut b) = (0.0, 0.0);
    for _ in 0..30 {
        let (mut gw, mut gb, mut hww, mut hwb, mut hbb) = (l2 * w, 0.0, l2, 0.0, 0.0);
        for i in 0..batch.len() {
            let (x, y) = (f64::from(batch.features(i)[0]), f64::from(batch.label(i)));
            let p = 1.0 / (1.0 + (y * (w * x + b)).exp());
            let (slope, curve) = (-p * y / batch.len() as f64, p * (1.0 - p) / batch.len() as f64);
            gw += slope * x;
            gb += slope;
            hww += curve * x * x;
            hwb += curve * x;
            hbb += curve;
        }
        let determinant = hww * hbb - hwb * hwb;
        w -= (hbb * gw - hwb * gb) / determinant;
        b -= (hww * gb - hwb * gw) / determinant;
    }
    (w, b)
}

#[test]
fn training_converges_to_the_minimum_that_newtons_method_finds() {
    let batch = noisy_batch(1, 400, 8);
    for l2 in [0.01, 0.1] {
        let hyper =
            Hyperparameters { schedule: Schedule::Exponential { decay: 0.97 }, l2, ..hyper(ModelKind::Logistic, 0.2) };
        let mut trainer = Trainer::new(hyper, 1, 1, false).unwrap();
        for _ in 0..300 {
            trainer.begin_epoch();
            trainer.learn(&batch, 0..400).unwrap();
            trainer.end_epoch().unwrap();
        }
        let (model, (w, b)) = (trainer.model().unwrap(), newton(&batch, l2));
        assert!((f64::from(model.weights[0]) - w).abs() < 2e-3, "{model:?} {w} {b}");
        assert!((f64::from(model.intercepts[0]) - b).abs() < 2e-3, "{model:?} {w} {b}");
    }
}

#[test]
fn the_support_vector_machine_separates_what_a_hyperplane_separates() {
    let mut batch = noisy_batch(10, 500, 9);
    for i in 0..batch.len() {
        let side = batch.features(i)[0] - batch.features(i)[9];
        batch.labels_mut()[i] = if side > 0.0 { 1.0 } else { -1.0 };
        batch.features_mut(i)[0] += 0.2 * side.signum();
    }
    let mut trainer = Trainer::new(hyper(ModelKind::Svm, 0.1), 10, 1, false).unwrap();
    for _ in 0..50 {
        trainer.begin_epoch();
        trainer.learn(&batch, 0..500).unwrap();
    }
    let mut evaluation = Evaluation::new(ModelKind::Svm);
    evaluation.add(&trainer.model().unwrap(), &batch);
    assert_eq!(evaluation.accuracy(), Some(1.0));
}

#[test]
#[should_panic(expected = "an epoch has begun")]
fn learning_before_the_first_epoch_is_refused() {
    Trainer::new(hyper(ModelKind::Svm, 0.1), 1, 1, false).unwrap().learn(&noisy_batch(1, 1, 1), 0..1).unwrap();
}

#[test]
fn a_report_survives_json() {
    let mut trainer = trained(hyper(ModelKind::Logistic, 0.1), &noisy_batch(3, 9, 1));
    let report = trainer.end_epoch().unwrap();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<loss::EpochReport>(&json).unwrap(), report);
}
