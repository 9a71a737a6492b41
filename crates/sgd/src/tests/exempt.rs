//! A penalty that is not on all features, against the definition.

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer};
use sgd_tests::sparse_of;
use tuples::Batch;

use super::textbook::{dense, outputs_of, sparse, tuples};
use crate::Trainer;

const EXEMPT: [u32; 2] = [1, 3];

fn hyper(kind: ModelKind, batch_size: u32) -> Hyperparameters {
    Hyperparameters { learning_rate: 0.02, l2: 0.2, batch_size, ..Hyperparameters::new(kind) }
}

fn train(hyper: Hyperparameters, batch: &Batch, epochs: u32, exempt: &[u32]) -> ModelParameters {
    let outputs = outputs_of(hyper.kind);
    let mut trainer = Trainer::new(hyper, batch.dim(), outputs, true).unwrap().exempt(exempt).unwrap();
    for _ in 0..epochs {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        trainer.end_epoch().unwrap();
    }
    trainer.model().unwrap()
}

fn furthest(a: &ModelParameters, b: &ModelParameters) -> f32 {
    let numbers = |model: &ModelParameters| [&model.weights[..], &model.intercepts].concat();
    numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn weights_without_the_penalty_are_what_sgd_makes_of_them() {
    let rows = tuples(ModelKind::Linear, 5, 1, 3000, 7);
    let batch = sparse(&rows, false);
    let exact = dense(&rows, false);
    let (mut w, mut b, rate, l2) = ([0.0f64; 5], 0.0, 0.02, 0.2);
    for i in 0..exact.len() {
        let x: Vec<f64> = exact.features(i).iter().map(|x| f64::from(*x)).collect();
        let error = w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>() + b - f64::from(exact.label(i));
        for (j, (w, x)) in w.iter_mut().zip(&x).enumerate() {
            let shrink = if EXEMPT.contains(&(j as u32)) { 1.0 } else { 1.0 - rate * l2 };
            *w = shrink * *w - rate * error * x;
        }
        b -= rate * error;
    }
    let model = train(hyper(ModelKind::Linear, 1), &batch, 1, &EXEMPT);
    for (ours, exact) in model.weights.iter().zip(w) {
        assert!((f64::from(*ours) - exact).abs() < 0.002 * exact.abs() + 1e-3, "{:?} {w:?}", model.weights);
    }
    assert!(furthest(&model, &train(hyper(ModelKind::Linear, 1), &batch, 1, &[])) > 0.05, "the penalty shows");
}

#[test]
fn all_kinds_and_sizes_of_steps_leave_the_same_weights_alone() {
    for kind in ModelKind::LINEAR {
        let batch = sparse(&tuples(kind, 5, outputs_of(kind), 1500, 3), false);
        let momentum = Optimizer::Momentum { beta: 0.5 };
        for (batch_size, averaging, optimizer) in [
            (1, false, Optimizer::Sgd),
            (7, false, Optimizer::Sgd),
            (1, true, Optimizer::Sgd),
            (16, true, Optimizer::Sgd),
            (1, false, momentum),
            (16, true, momentum),
        ] {
            // where a loss has a kink, rounding decides on which side of it a long step ends
            if optimizer == momentum && !kind.is_smooth() {
                continue;
            }
            let own = Hyperparameters { averaging, optimizer, ..hyper(kind, batch_size) };
            let all_exempt = train(own, &batch, 2, &[0, 1, 2, 3, 4]);
            let without = train(Hyperparameters { l2: 0.0, ..own }, &batch, 2, &[]);
            let size = without.weights.iter().map(|w| w.abs()).fold(0.0, f32::max);
            let difference = furthest(&all_exempt, &without);
            assert!(
                difference < 0.004 * size + 1e-3,
                "{kind} {batch_size} {averaging} {optimizer:?}: {difference} of {size}"
            );
        }
    }
}

/// What is read of the iterates changes nothing but rounding.
#[test]
fn a_mean_of_the_iterates_does_not_change_the_steps() {
    let rows: Vec<(f32, [f32; 3])> =
        (0..4000).map(|i| (i as f32 % 7.0, [(i % 5) as f32, (i % 3) as f32, 1.0])).collect();
    let batch = sparse_of(rows.iter().map(|(y, x)| (*y, &x[..])));
    let losses = |averaging| {
        let hyper = Hyperparameters { averaging, ..hyper(ModelKind::Linear, 1) };
        let mut trainer = Trainer::new(hyper, 3, 1, true).unwrap().exempt(&[0]).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..batch.len()).unwrap();
        trainer.engine.totals().loss
    };
    let (read, unread) = (losses(true), losses(false));
    assert!((read - unread).abs() < 1e-6 * unread, "{read} {unread}");
}
