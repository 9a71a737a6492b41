//! Weights that l1 holds at 0, against the Lasso by coordinate descent.

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Solver};
use sgd_tests::Noise;
use tuples::Batch;

use super::mini_batches::mini_batches_of;
use super::textbook::outputs_of;
use crate::{Trainer, Zeros};

const DIM: usize = 10;

/// What the labels depend on: the features from 3 on do not matter.
const TRUTH: [f32; 3] = [2.0, -1.5, 1.0];

/// Tuples whose labels of this kind depend on the first three features, with one of two weights each if they should
/// have some.
fn table(kind: ModelKind, weighted: bool) -> Batch {
    let (mut noise, mut batch) = (Noise::new(7), Batch::new(DIM));
    batch.set_weighted(weighted);
    for i in 0..2000 {
        let features: Vec<f32> = (0..DIM).map(|_| 1.7 * noise.next()).collect();
        let z: f32 = TRUTH.iter().zip(&features).map(|(w, x)| w * x).sum::<f32>() + 0.6 * noise.next();
        let label = match kind {
            _ if kind.is_binary() => {
                if z > 0.0 {
                    1.0
                } else {
                    -1.0
                }
            }
            // a class between two others would have all margins at a corner of the hinge
            _ if kind.has_class_numbers() => {
                let mut score = |k: usize| TRUTH[k] * features[k] + 0.6 * noise.next();
                let scores = [score(0), score(1), score(2)];
                (0..3).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap() as f32
            }
            ModelKind::Poisson => (0.3 * z).exp(),
            _ => z,
        };
        batch.push(label).unwrap().copy_from_slice(&features);
        if weighted {
            *batch.weights_mut().last_mut().unwrap() = if i % 2 == 0 { 0.5 } else { 1.5 };
        }
    }
    batch
}

/// The same tuples as sparse ones.
fn sparse(batch: &Batch) -> Batch {
    let mut sparse = Batch::sparse();
    sparse.set_dim(DIM);
    sparse.set_weighted(batch.weights().is_some());
    for i in 0..batch.len() {
        let (indices, values) = sparse.push_sparse(batch.label(i), DIM).unwrap();
        (0..DIM).for_each(|j| indices[j] = j as u32);
        values.copy_from_slice(batch.features(i));
        if let Some(weights) = batch.weights() {
            sparse.weights_mut()[i] = weights[i];
        }
    }
    sparse
}

fn train(hyper: Hyperparameters, batch: &Batch, epochs: u32) -> Trainer {
    let mut trainer = Trainer::new(hyper, DIM, outputs_of(hyper.kind), batch.is_sparse()).unwrap();
    for _ in 0..epochs {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        trainer.end_epoch().unwrap();
    }
    trainer
}

/// The model of a trainer with its zeros, and without.
fn with_zeros(trainer: &Trainer, batch: &Batch) -> (ModelParameters, ModelParameters) {
    let model = trainer.model().unwrap();
    let mut zeros = Zeros::new(trainer, model.clone(), trainer.loss_number()).unwrap();
    let places: Vec<u32> = (0..batch.len() as u32).collect();
    places.chunks(700).for_each(|places| zeros.add(batch, places).unwrap());
    (zeros.cut(), model)
}

/// The weights of the Lasso.
fn lasso(batch: &Batch, l1: f64) -> Vec<f64> {
    let weight = |i: usize| batch.weights().map_or(1.0, |weights| f64::from(weights[i]));
    let x = |i: usize, j: usize| if j < DIM { f64::from(batch.features(i)[j]) } else { 1.0 };
    let total: f64 = (0..batch.len()).map(weight).sum();
    let mut rest: Vec<f64> = batch.labels().iter().map(|y| f64::from(*y)).collect();
    let mut weights = vec![0.0_f64; DIM + 1];
    for _ in 0..100 {
        (0..=DIM).for_each(|j| {
            let mean = |of: &dyn Fn(usize) -> f64| (0..batch.len()).map(|i| weight(i) * of(i)).sum::<f64>() / total;
            let h = mean(&|i| x(i, j).powi(2));
            let free = mean(&|i| x(i, j) * rest[i]) + h * weights[j];
            let l1 = if j < DIM { l1 } else { 0.0 };
            let new = if free.abs() <= l1 { 0.0 } else { (free - l1.copysign(free)) / h };
            (0..batch.len()).for_each(|i| rest[i] -= (new - weights[j]) * x(i, j));
            weights[j] = new;
        });
    }
    weights.truncate(DIM);
    weights
}

#[test]
fn the_zeros_of_a_linear_regression_are_those_of_the_lasso() {
    for weighted in [false, true] {
        let batch = table(ModelKind::Linear, weighted);
        for batch in [&batch, &sparse(&batch)] {
            for l1 in [0.002, 0.005, 0.01, 0.1, 1.2, 1.6] {
                for averaging in [false, true] {
                    let hyper = Hyperparameters {
                        l1,
                        averaging,
                        learning_rate: 0.002,
                        ..Hyperparameters::new(ModelKind::Linear)
                    };
                    let (cut, _) = with_zeros(&train(hyper, batch, 40), batch);
                    let expected = lasso(&table(ModelKind::Linear, weighted), l1);
                    for (found, expected) in cut.weights.iter().zip(&expected) {
                        // of a weight that is 0 by a hair, SGD cannot say that it is
                        let is_close = expected.abs() < 1e-3 && *expected != 0.0;
                        assert!(
                            is_close || (*found == 0.0) == (*expected == 0.0),
                            "{l1} {averaging}: {found} {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn weights_of_features_that_do_not_matter_are_0_whatever_the_loss_is() {
    for kind in ModelKind::LINEAR {
        for weighted in [false, true] {
            let dense = table(kind, weighted);
            for batch in [&dense, &sparse(&dense), &mini_batches_of(&dense, 100), &mini_batches_of(&dense, 2000)] {
                for optimizer in [Optimizer::Sgd, Optimizer::Momentum { beta: 0.5 }, Optimizer::ADAM] {
                    let whole = batch.has_mini_batches();
                    let batch_size = if whole { Hyperparameters::WHOLE_MINI_BATCHES } else { 4 };
                    let learning_rate = if whole { 0.1 } else { 0.01 };
                    let l1 = if matches!(optimizer, Optimizer::Momentum { .. }) { 0.12 } else { 0.06 };
                    // the noise of a gradient is to that of a step as the root of the mini-batch is to that of all rows
                    let l1 = match optimizer {
                        Optimizer::Adam { .. } if batch.len() == 1 => continue,
                        Optimizer::Adam { .. } if whole => 0.8,
                        Optimizer::Adam { .. } => 0.3,
                        _ => l1 * kind.curvature().max(1.0),
                    };
                    let hyper =
                        Hyperparameters { l1, batch_size, optimizer, learning_rate, ..Hyperparameters::new(kind) };
                    let trainer = train(hyper, batch, if batch.len() < 20 { 300 } else { 30 });
                    let (cut, before) = with_zeros(&trainer, batch);
                    assert_eq!(cut.intercepts, before.intercepts);
                    let what =
                        format!("{kind} {weighted} {optimizer:?} {} rows: {before:?} {:?}", batch.len(), cut.weights);
                    for j in 0..DIM {
                        let of_feature = || (0..cut.outputs).map(|k| cut.weights_of(k)[j]);
                        assert_eq!(of_feature().any(|w| w != 0.0), j < TRUTH.len(), "{j} {what}");
                    }
                    for (cut, before) in cut.weights.iter().zip(&before.weights) {
                        assert!(*cut == 0.0 || cut == before);
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_is_cut_at_the_optimum_and_everything_by_a_large_penalty() {
    let batch = table(ModelKind::Linear, false);
    for l1 in [0.05, 0.5] {
        let trainer =
            Trainer::new(Hyperparameters { l1, ..Hyperparameters::new(ModelKind::Linear) }, DIM, 1, false).unwrap();
        let optimum: Vec<f32> = lasso(&batch, l1).iter().map(|w| *w as f32).collect();
        for scale in [1.0, 1.01, 0.99] {
            let weights: Vec<f32> = optimum.iter().map(|w| w * scale).collect();
            let model = ModelParameters { weights: weights.clone(), ..ModelParameters::new(DIM, 1) };
            let mut zeros = Zeros::new(&trainer, model, 0.0).unwrap();
            zeros.add(&batch, batch.order()).unwrap();
            assert_eq!(zeros.cut().weights, weights);
        }
    }
    let large = Hyperparameters { l1: 1e3, ..Hyperparameters::new(ModelKind::Linear) };
    let trainer = Trainer::new(large, DIM, 1, false).unwrap();
    let model = ModelParameters { weights: vec![1.0; DIM], ..ModelParameters::new(DIM, 1) };
    let mut zeros = Zeros::new(&trainer, model.clone(), 0.0).unwrap();
    zeros.add(&batch, batch.order()).unwrap();
    assert_eq!(zeros.cut().weights, vec![0.0; DIM]);
    assert_eq!(Zeros::new(&trainer, model.clone(), 0.0).unwrap().cut(), model, "without tuples nothing is known");
}

#[test]
fn only_linear_models_that_sgd_trains_with_l1_may_miss_zeros() {
    let may = |hyper: Hyperparameters| Zeros::may_be_missing(&Trainer::new(hyper, 2, 1, false).unwrap());
    let linear = Hyperparameters { l1: 0.1, ..Hyperparameters::new(ModelKind::Linear) };
    assert!(may(linear));
    assert!(!may(Hyperparameters { l1: 0.0, ..linear }));
    assert!(!may(Hyperparameters { solver: Solver::Newton, ..linear }));
    assert!(!may(Hyperparameters { l1: 0.1, ..Hyperparameters::new(ModelKind::MlpRegression) }));
}
