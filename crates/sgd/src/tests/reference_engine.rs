//! What the general code promises: the same bits however the tuples come, the same model from dense and from sparse
//! tuples, and from features that no tuple has for long.

use loss::math::{exp, ln};
use loss::{Diverged, EpochReport, Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};
use proptest::prelude::*;
use sgd_tests::{BINARY, Noise};
use simd::Level;
use tuples::Batch;

use super::textbook::{dense, outputs_of, sparse, tuples};
use crate::Trainer;

fn bits(model: &ModelParameters) -> Vec<u32> {
    model.weights.iter().chain(&model.intercepts).map(|p| p.to_bits()).collect()
}

/// Every kind, optimizer, batch size and penalty that matters for bits.
fn combinations() -> impl Iterator<Item = Hyperparameters> {
    let kinds = ModelKind::LINEAR.into_iter();
    let with_optimizers = kinds.flat_map(|kind| Optimizer::ALL.map(|optimizer| (kind, optimizer)));
    let with_batches = with_optimizers.flat_map(|(kind, optimizer)| [1, 5].map(|size| (kind, optimizer, size)));
    with_batches.flat_map(|(kind, optimizer, batch_size)| {
        [(0.0, 0.0), (0.01, 0.1)].map(|(l1, l2)| {
            let hyper = Hyperparameters::new(kind);
            Hyperparameters { learning_rate: 0.01, optimizer, batch_size, l1, l2, ..hyper }
        })
    })
}

/// Two epochs, cut into ranges at `cuts`.
fn train(hyper: Hyperparameters, level: Level, batch: &Batch, cuts: &[usize]) -> (Vec<u32>, EpochReport) {
    let outputs = outputs_of(hyper.kind);
    let mut trainer = Trainer::with_level(hyper, 1, outputs, batch.is_sparse(), level);
    if !batch.is_sparse() {
        trainer = Trainer::with_level(hyper, batch.dim(), outputs, false, level);
    }
    let mut trainer = trainer.unwrap();
    let mut report = None;
    for _ in 0..2 {
        trainer.begin_epoch();
        let mut start = 0;
        for &cut in cuts.iter().chain([&batch.order().len()]) {
            trainer.learn(batch, start..cut).unwrap();
            start = cut;
        }
        report = Some(trainer.end_epoch().unwrap());
    }
    (bits(&trainer.model().unwrap()), report.unwrap())
}

#[test]
fn every_instruction_set_and_every_cut_gives_the_same_bits() {
    for hyper in combinations() {
        let tuples = tuples(hyper.kind, 37, outputs_of(hyper.kind), 60, 11);
        for batch in [dense(&tuples, true), sparse(&tuples, true)] {
            let expected = train(hyper, Level::PORTABLE, &batch, &[]);
            for level in Level::available() {
                assert!(train(hyper, level, &batch, &[]) == expected, "{hyper:?} {level:?}");
            }
            assert!(train(hyper, Level::detect(), &batch, &[0, 1, 4, 17, 17, 58]) == expected, "{hyper:?}");
        }
    }
}

#[test]
fn looking_at_the_model_changes_no_bit() {
    for hyper in combinations() {
        let tuples = tuples(hyper.kind, 20, outputs_of(hyper.kind), 40, 12);
        let batch = sparse(&tuples, false);
        let expected = train(hyper, Level::detect(), &batch, &[]);
        let mut trainer = Trainer::new(hyper, 0, outputs_of(hyper.kind), true).unwrap();
        let mut report = None;
        for _ in 0..2 {
            trainer.begin_epoch();
            for i in 0..40 {
                trainer.learn(&batch, i..i + 1).unwrap();
                trainer.check().unwrap();
                trainer.model().unwrap();
            }
            report = Some(trainer.end_epoch().unwrap());
        }
        assert_eq!((bits(&trainer.model().unwrap()), report.unwrap()), expected);
    }
}

#[test]
fn swapping_the_classes_negates_the_general_model_to_the_bit() {
    for hyper in combinations().filter(|hyper| BINARY.contains(&hyper.kind)) {
        let mut tuples = tuples(hyper.kind, 20, 1, 100, 13);
        let train = |batch: Batch| {
            let mut trainer = Trainer::new(hyper, 20, 1, batch.is_sparse()).unwrap();
            trainer.begin_epoch();
            trainer.learn(&batch, 0..100).unwrap();
            (trainer.end_epoch().unwrap(), trainer.model().unwrap())
        };
        let before = [dense(&tuples, false), sparse(&tuples, false)].map(train);
        tuples.iter_mut().for_each(|tuple| tuple.label = -tuple.label);
        let after = [dense(&tuples, false), sparse(&tuples, false)].map(train);
        for ((report, mut model), (swapped_report, swapped)) in before.into_iter().zip(after) {
            model.negate();
            assert_eq!((bits(&swapped), swapped_report), (bits(&model), report), "{hyper:?}");
        }
    }
}

#[test]
fn the_order_may_repeat_and_leave_out_tuples() {
    for hyper in combinations().filter(|hyper| hyper.batch_size == 5 || hyper.l1 == 0.0) {
        let tuples = tuples(hyper.kind, 9, outputs_of(hyper.kind), 6, 14);
        let places = [3, 3, 0, 5, 0, 3, 1, 1];
        let chosen: Vec<_> = places.iter().map(|&i| tuples[i as usize].clone()).collect();
        for (mut batch, expected) in
            [(dense(&tuples, true), dense(&chosen, true)), (sparse(&tuples, true), sparse(&chosen, true))]
        {
            batch.set_order(&places).unwrap();
            let expected = train(hyper, Level::detect(), &expected, &[]);
            assert!(train(hyper, Level::detect(), &batch, &[3]) == expected, "{hyper:?}");
        }
    }
}

proptest! {
    #[test]
    fn weights_of_1_change_no_bit(kind in prop::sample::select(&ModelKind::LINEAR[..]), dim in 1usize..80, seed: u64) {
        let mut tuples = tuples(kind, dim, outputs_of(kind), 50, seed);
        tuples.iter_mut().for_each(|tuple| tuple.weight = 1.0);
        let hyper = Hyperparameters { l2: 0.1, ..Hyperparameters::new(kind) };
        for make in [dense, sparse] {
            let weighted = train(hyper, Level::detect(), &make(&tuples, true), &[]);
            prop_assert_eq!(weighted, train(hyper, Level::detect(), &make(&tuples, false), &[]));
        }
    }
}

/// Tuples of which each feature is in few, with long gaps in between.
fn rare(n: usize, dim: usize) -> (Batch, Batch) {
    let mut noise = Noise::new(21);
    let (mut dense, mut sparse) = (Batch::dense(dim), Batch::sparse());
    for i in 0..n {
        let y = if noise.next() > 0.0 { 1.0 } else { -1.0 };
        // feature 0 is in every tuple, feature j in every (40 j)th
        let mut features = vec![0.0; dim];
        for (j, x) in features.iter_mut().enumerate() {
            if i % (40 * j).max(1) == j {
                *x = 1.0 + noise.next();
            }
        }
        features[0] = noise.next();
        dense.push(y).unwrap().copy_from_slice(&features);
        let entries = || features.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let (indices, values) = sparse.push_sparse(y, entries().count()).unwrap();
        for (k, (j, x)) in entries().enumerate() {
            (indices[k], values[k]) = (j as u32, *x);
        }
    }
    (dense, sparse)
}

#[test]
fn features_that_no_tuple_has_for_long_get_the_weights_that_dense_training_gives_them() {
    let (dense, sparse) = rare(3000, 12);
    for optimizer in [
        Optimizer::Sgd,
        Optimizer::MOMENTUM,
        Optimizer::Momentum { beta: 0.99 },
        Optimizer::ADAM,
        Optimizer::Adam { beta1: 0.5, beta2: 0.9, epsilon: 1e-6 },
        Optimizer::Adam { beta1: 0.0, beta2: 0.99, epsilon: 1e-6 },
    ] {
        for (l1, l2) in [(0.0, 0.0), (0.0, 0.3), (0.002, 0.0), (0.002, 0.3), (1e-5, 1e-5), (0.0, 10.0)] {
            for batch_size in [1, 3] {
                let logistic = Hyperparameters::new(ModelKind::Logistic);
                let hyper = Hyperparameters { learning_rate: 0.01, optimizer, l1, l2, batch_size, ..logistic };
                let models = [&dense, &sparse].map(|batch| {
                    let mut trainer = Trainer::new(hyper, 12, 1, batch.is_sparse()).unwrap();
                    for _ in 0..2 {
                        trainer.begin_epoch();
                        trainer.learn(batch, 0..3000).unwrap();
                        trainer.end_epoch().unwrap();
                    }
                    trainer.model().unwrap()
                });
                for (j, (a, b)) in models[0].weights.iter().zip(&models[1].weights).enumerate() {
                    // gathered cuts come at other steps: a thousandth of a learning rate
                    assert!((a - b).abs() < 3e-5 + 1e-4 * a.abs(), "{hyper:?} weight {j}: {a} {b}");
                }
            }
        }
    }
}

#[test]
fn steps_are_minus_the_learning_rate_times_the_gradient_by_finite_differences() {
    for kind in ModelKind::LINEAR {
        let outputs = outputs_of(kind);
        let tuples = tuples(kind, 5, outputs, 40, 15);
        for batch in [dense(&tuples, true), sparse(&tuples, true)] {
            let hyper = Hyperparameters { learning_rate: 0.1, l2: 0.2, batch_size: 39, ..Hyperparameters::new(kind) };
            let mut trainer = Trainer::new(hyper, 5, outputs, batch.is_sparse()).unwrap();
            trainer.begin_epoch();
            trainer.learn(&batch, 0..39).unwrap();
            let before = trainer.model().unwrap();
            // the mean over the same tuples again, plus the penalty
            trainer.learn(&batch, 0..39).unwrap();
            let after = trainer.model().unwrap();
            let objective = |k: usize, j: usize, by: f64| {
                let loss = |tuple: &super::textbook::Tuple| {
                    let z: Vec<f64> = (0..outputs)
                        .map(|o| {
                            let w =
                                |i: usize| f64::from(before.weights_of(o)[i]) + if (o, i) == (k, j) { by } else { 0.0 };
                            let b = f64::from(before.intercepts[o]) + if (o, 5) == (k, j) { by } else { 0.0 };
                            (0..5).map(|i| w(i) * f64::from(tuple.features[i])).sum::<f64>() + b
                        })
                        .collect();
                    let y = f64::from(tuple.label);
                    f64::from(tuple.weight)
                        * match kind {
                            ModelKind::Logistic => (-y * z[0]).exp().ln_1p(),
                            ModelKind::Svm => (1.0 - y * z[0]).max(0.0),
                            ModelKind::SquaredHinge => (1.0 - y * z[0]).max(0.0).powi(2),
                            ModelKind::SquaredHingeOneVsRest => {
                                let margin = |(k, z): (usize, &f64)| if k == y as usize { *z } else { -z };
                                z.iter().enumerate().map(|z| (1.0 - margin(z)).max(0.0).powi(2)).sum::<f64>()
                            }
                            ModelKind::Linear => (z[0] - y).powi(2) / 2.0,
                            ModelKind::Quantile => (y - z[0]).abs() / 2.0,
                            ModelKind::EpsilonInsensitive => (y - z[0]).abs(),
                            ModelKind::Huber => {
                                let near = (y - z[0]).abs().min(1.35);
                                near * ((y - z[0]).abs() - near / 2.0)
                            }
                            ModelKind::SvmOneVsRest => {
                                let margin = |(k, z): (usize, &f64)| if k == y as usize { *z } else { -z };
                                z.iter().enumerate().map(|z| (1.0 - margin(z)).max(0.0)).sum::<f64>()
                            }
                            ModelKind::Poisson => z[0].exp() - y * z[0],
                            ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
                            ModelKind::Softmax => z.iter().map(|z| z.exp()).sum::<f64>().ln() - z[y as usize],
                        }
                };
                let penalty = |w: f64| hyper.l2 / 2.0 * w * w;
                let penalty = if j < 5 { penalty(f64::from(before.weights_of(k)[j]) + by) } else { 0.0 };
                tuples[..39].iter().map(loss).sum::<f64>() / 39.0 + penalty
            };
            for k in 0..outputs {
                for j in 0..=5 {
                    let parameter = |model: &ModelParameters| {
                        f64::from(if j < 5 { model.weights_of(k)[j] } else { model.intercepts[k] })
                    };
                    let gradient = (objective(k, j, 1e-5) - objective(k, j, -1e-5)) / 2e-5;
                    let step = parameter(&after) - parameter(&before);
                    assert!((step + 0.1 * gradient).abs() < 1e-6, "{kind} {k} {j}: {step} {gradient}");
                }
            }
        }
    }
}

#[test]
fn a_sparse_trainer_grows_with_its_batches() {
    for hyper in combinations() {
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 30, outputs, 50, 16);
        let mut narrow = tuples[..20].to_vec();
        narrow.iter_mut().for_each(|tuple| tuple.features[7..].fill(0.0));
        let all: Vec<_> = narrow.iter().chain(&tuples[20..]).cloned().collect();
        let train = |batches: &[Batch], dim: usize| {
            let mut trainer = Trainer::new(hyper, dim, outputs, true).unwrap();
            trainer.begin_epoch();
            for batch in batches {
                trainer.learn(batch, 0..batch.len()).unwrap();
            }
            trainer.end_epoch().unwrap();
            trainer.model().unwrap()
        };
        let grown = train(&[sparse(&narrow, false), sparse(&tuples[20..], false)], 0);
        let at_once = train(&[sparse(&all, false)], 30);
        assert_eq!((grown.dim, bits(&grown)), (30, bits(&at_once)), "{hyper:?}");
    }
}

#[test]
fn divergence_is_noticed_in_every_kind_of_training() {
    for hyper in combinations() {
        let hyper = Hyperparameters { learning_rate: 1e36, schedule: Schedule::Constant, l2: 0.0, ..hyper };
        let tuples = tuples(hyper.kind, 30, outputs_of(hyper.kind), 50, 17);
        for batch in [dense(&tuples, true), sparse(&tuples, true)] {
            let mut trainer = Trainer::new(hyper, 30, outputs_of(hyper.kind), batch.is_sparse()).unwrap();
            let mut outcomes = (1..=40).map(|epoch| {
                trainer.begin_epoch();
                trainer.learn(&batch, 0..50).unwrap();
                (epoch, trainer.end_epoch())
            });
            // only with large steps does the model diverge at once, and an SVM may stand still
            if let Some((epoch, error)) = outcomes.find_map(|(epoch, result)| result.err().map(|error| (epoch, error)))
            {
                assert_eq!(error, Diverged { epoch });
            }
        }
    }
}

#[test]
fn a_nan_among_sparse_values_is_noticed() {
    for hyper in combinations() {
        let mut tuples = tuples(hyper.kind, 30, outputs_of(hyper.kind), 50, 18);
        tuples[17].features[3] = f32::NAN;
        for batch in [dense(&tuples, false), sparse(&tuples, false)] {
            let mut trainer = Trainer::new(hyper, 30, outputs_of(hyper.kind), batch.is_sparse()).unwrap();
            trainer.begin_epoch();
            trainer.learn(&batch, 0..50).unwrap();
            assert_eq!(trainer.end_epoch(), Err(Diverged { epoch: 1 }), "{hyper:?}");
        }
    }
}

#[test]
fn momentum_of_rare_features_leaves_no_number_too_small_for_the_processor() {
    let mut trainer = Trainer::new(
        Hyperparameters { optimizer: Optimizer::MOMENTUM, ..Hyperparameters::new(ModelKind::Svm) },
        2,
        1,
        false,
    )
    .unwrap();
    let batch = sgd_tests::batch_of(2, [(1.0, &[1.0, 0.0][..]), (-1.0, &[0.0, 1.0])]);
    trainer.begin_epoch();
    trainer.learn(&batch, 0..1).unwrap();
    for _ in 0..3000 {
        trainer.learn(&batch, 1..2).unwrap();
    }
    let model = trainer.model().unwrap();
    assert!(model.weights[0].is_normal());
}

#[test]
fn the_exponential_function_is_within_2e_7() {
    for i in 0..87_000 {
        let x = -i as f32 / 1000.0;
        let truth = f64::from(x).exp();
        assert!((f64::from(exp(x)) / truth - 1.0).abs() < 2e-7, "{x}");
    }
    assert_eq!([exp(0.0), exp(-0.0), exp(-1e30), exp(f32::NEG_INFINITY)], [1.0, 1.0, 0.0, 0.0]);
    assert!(exp(f32::NAN).is_nan());
}

#[test]
fn the_logarithm_is_within_2e_7() {
    for i in 0..200_000 {
        let x = 1.0 + i as f32 / 1000.0;
        let truth = f64::from(x).ln();
        assert!((f64::from(ln(x)) - truth).abs() <= 2e-7 * truth.max(1.0), "{x}");
    }
    assert_eq!([ln(1.0), ln(f32::INFINITY)], [0.0, f32::INFINITY]);
    assert!(ln(f32::NAN).is_nan());
}
