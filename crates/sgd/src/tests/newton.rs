//! Newton's method against optima found in another way, and what it guarantees to the bit.

use loss::{EpochReport, Hyperparameters, ModelKind, Solver, Standardizer};
use newton::{Inference, Weighting};
use sgd_tests::{Noise, SMOOTH, noisy_batch, smooth_batch};
use tuples::Batch;

use crate::{Moments, Trainer};

fn hyper(kind: ModelKind, l2: f64) -> Hyperparameters {
    Hyperparameters { solver: Solver::Newton, l2, ..Hyperparameters::new(kind) }
}

/// Trains until the model has converged, for at most 50 passes.
fn train(hyper: Hyperparameters, batch: &Batch) -> (Trainer, Vec<EpochReport>) {
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, batch.is_sparse()).unwrap();
    let mut reports = Vec::new();
    while trainer.has_converged() != Some(true) && reports.len() < 50 {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        reports.push(trainer.end_epoch().unwrap());
    }
    (trainer, reports)
}

fn bits(trainer: &Trainer) -> Vec<u32> {
    let model = trainer.model().unwrap();
    model.weights.iter().chain(&model.intercepts).map(|w| w.to_bits()).collect()
}

/// The gradient of the objective at a model, by the derivative of the loss as its definition has it.
fn gradient(kind: ModelKind, l2: f64, batch: &Batch, weights: &[f32], intercept: f32) -> Vec<f64> {
    let mut gradient = vec![0.0; weights.len() + 1];
    for i in 0..batch.len() {
        let x: Vec<f64> = batch.features(i).iter().map(|x| f64::from(*x)).chain([1.0]).collect();
        let w = weights.iter().chain([&intercept]).map(|w| f64::from(*w));
        let (z, y) = (x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>(), f64::from(batch.label(i)));
        let slope = match kind {
            ModelKind::Linear => z - y,
            ModelKind::Poisson => z.exp() - y,
            _ => -y / (1.0 + (y * z).exp()),
        };
        let weight = batch.weights().map_or(1.0, |weights| f64::from(weights[i]));
        gradient.iter_mut().zip(&x).for_each(|(g, x)| *g += weight * slope * x / batch.len() as f64);
    }
    gradient.iter_mut().zip(weights).for_each(|(g, w)| *g += l2 * f64::from(*w));
    gradient
}

#[test]
fn the_gradient_vanishes_at_the_model_after_a_few_passes() {
    for kind in SMOOTH {
        for (dim, l2, weighted) in [(1, 0.0, false), (7, 0.0, true), (28, 0.01, false), (40, 0.0, false)] {
            let plain = smooth_batch(kind, dim, 2000, 1);
            let mut batch = Batch::new(dim);
            batch.set_weighted(weighted);
            for i in 0..plain.len() {
                batch.push(plain.label(i)).unwrap().copy_from_slice(plain.features(i));
                if weighted {
                    batch.weights_mut()[i] = (i % 4) as f32 / 2.0;
                }
            }
            let (trainer, reports) = train(hyper(kind, l2), &batch);
            let model = trainer.model().unwrap();
            let most = if kind == ModelKind::Linear { 2 } else { 12 };
            assert!(reports.len() <= most, "{kind} {dim}: {reports:?}");
            let gradient = gradient(kind, l2, &batch, &model.weights, model.intercepts[0]);
            // what is left is that of weights rounded to f32
            assert!(gradient.iter().all(|g| g.abs() < 1e-6), "{kind} {dim}: {gradient:?}");
            assert!(reports.windows(2).all(|pair| pair[1].loss <= pair[0].loss), "{kind} {dim}");
            assert_eq!(reports.iter().map(|report| report.learning_rate).fold(1.0, f64::min), 1.0);
        }
    }
}

#[test]
fn sparse_tuples_have_the_model_of_dense_ones() {
    for kind in SMOOTH {
        let dense = smooth_batch(kind, 12, 500, 5);
        let mut sparse = Batch::sparse();
        for i in 0..dense.len() {
            let features = dense.features(i);
            sparse.set_dim(12);
            let (indices, values) = sparse.push_sparse(dense.label(i), features.len()).unwrap();
            indices.iter_mut().enumerate().for_each(|(j, index)| *index = j as u32);
            values.copy_from_slice(features);
        }
        let (of_dense, _) = train(hyper(kind, 0.001), &dense);
        let mut of_sparse = Trainer::new(hyper(kind, 0.001), 0, 1, true).unwrap();
        for _ in 0..12 {
            of_sparse.begin_epoch();
            of_sparse.learn(&sparse, 0..500).unwrap();
            of_sparse.end_epoch().unwrap();
        }
        let (a, b) = (of_dense.model().unwrap(), of_sparse.model().unwrap());
        for (a, b) in a.weights.iter().chain(&a.intercepts).zip(b.weights.iter().chain(&b.intercepts)) {
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{kind}: {a} {b}");
        }
    }
}

#[test]
fn features_that_depend_on_others_keep_their_weights_and_the_others_are_those_without_them() {
    for kind in SMOOTH {
        let plain = smooth_batch(kind, 3, 400, 9);
        let mut doubled = Batch::new(5);
        for i in 0..plain.len() {
            let [a, b, c] = plain.features(i).try_into().unwrap();
            // the sum is exact, and the last says the same as the intercept
            doubled.push(plain.label(i)).unwrap().copy_from_slice(&[a, b, c, 2.0 * a, 1.0]);
        }
        let (with, _) = train(hyper(kind, 0.0), &doubled);
        let (with, without) = (with.model().unwrap(), train(hyper(kind, 0.0), &plain).0.model().unwrap());
        assert_eq!(with.weights[3..], [0.0, 0.0]);
        for (a, b) in with.weights.iter().zip(&without.weights) {
            assert!((a - b).abs() < 1e-5, "{kind}: {with:?} {without:?}");
        }
    }
}

/// Rows of a and b near a number, and a third feature that follows from both; targets a - b and noise.
fn near(mean: f64, third: impl Fn(f64, f64, f64) -> f64) -> (Batch, Standardizer) {
    let (mut noise, mut raw) = (Noise::new(11), Batch::new(3));
    let mut moments = Moments::new(3);
    for _ in 0..2000 {
        let mut next = || (0..6).map(|_| f64::from(noise.next())).sum::<f64>();
        let (a, b) = (next(), next());
        let features = [a + mean, b + mean, third(a + mean, b + mean, next())].map(|x| x as f32);
        raw.push((a - b + next()) as f32).unwrap().copy_from_slice(&features);
    }
    moments.add(&raw).unwrap();
    let standardizer = moments.finish();
    loss::Scaler::new(standardizer.clone(), None).apply(&mut raw, 0..2000);
    (raw, standardizer)
}

#[test]
fn a_feature_that_others_determine_but_for_rounding_is_told_and_one_that_is_correlated_is_not() {
    for mean in [0.0, 100.0, 1e4, 1e5] {
        for (what, is_told, third) in [
            ("sum", true, (|a, b, _| a + b) as fn(f64, f64, f64) -> f64),
            ("difference", true, |a, b, _| a - b),
            ("sum and a thousandth of noise", mean < 1e4, |a, b, noise| a + b + 5e-4 * noise),
            ("correlation of .99", false, |a, _, noise| a + 0.14 * noise),
            ("correlation of .9999", false, |a, _, noise| a + 0.014 * noise),
        ] {
            if what.contains("thousandth") && mean >= 1e4 {
                continue; // between both
            }
            let (batch, standardizer) = near(mean, third);
            let (trainer, _) = train(hyper(ModelKind::Linear, 0.0), &batch);
            let found = trainer.collinear(Some(&standardizer)).unwrap();
            let expected = if is_told { vec![2] } else { vec![] };
            assert_eq!(found.features, expected, "{what} near {mean}: {found:?}");
            assert!(found.condition < if is_told { f64::INFINITY } else { 1.1 }, "{what} near {mean}: {found:?}");
            let model = trainer.model().unwrap();
            let mut inference = Inference::new(ModelKind::Linear, &model, (0.0, Vec::new()), false).unwrap();
            inference.add(&batch);
            let estimates = inference.finish(Some(&standardizer), &[0..1, 1..2, 2..3], Weighting::Frequencies).unwrap();
            assert_eq!(estimates.collinear.features, found.features, "{what} near {mean}");
            let [a, b, third, _] = estimates.all[..] else { panic!("{estimates:?}") };
            let is_left_out = matches!(what, "sum" | "difference");
            assert_eq!(third.std_error.is_none(), is_left_out, "{what} near {mean}: {estimates:?}");
            if is_left_out {
                assert_eq!(third.value, 0.0);
                assert!(
                    (a.value - 1.0).abs() < 0.2 && (b.value + 1.0).abs() < 0.2,
                    "{what} near {mean}: {estimates:?}"
                );
            }
            let (trainer, _) = train(hyper(ModelKind::Linear, 0.001), &batch);
            assert_eq!(
                trainer.collinear(Some(&standardizer)).unwrap().features,
                [0; 0],
                "{what} near {mean}, with a penalty"
            );
        }
    }
}

#[test]
fn classes_that_are_separated_never_converge_and_never_diverge() {
    let mut batch = Batch::new(1);
    for i in -20..20 {
        batch.push(if i < 0 { -1.0 } else { 1.0 }).unwrap()[0] = i as f32 + 0.5;
    }
    let mut trainer = Trainer::new(hyper(ModelKind::Logistic, 0.0), 1, 1, false).unwrap();
    let mut losses = Vec::new();
    for _ in 0..15 {
        trainer.begin_epoch();
        trainer.learn(&batch, 0..40).unwrap();
        losses.push(trainer.end_epoch().unwrap().loss);
    }
    assert_eq!(trainer.has_converged(), Some(false));
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "{losses:?}");
    let (penalised, _) = train(hyper(ModelKind::Logistic, 0.01), &batch);
    assert_eq!(penalised.has_converged(), Some(true));
}

#[test]
fn an_exact_fit_has_converged() {
    // targets that f32 holds exactly, of whole features, which leave nothing but the rounding of the weights
    let whole = |dim: usize, y: fn(&[f32]) -> f32| {
        let noisy = noisy_batch(dim, 1000, 4);
        let mut batch = Batch::new(dim);
        for i in 0..noisy.len() {
            let x: Vec<f32> = noisy.features(i).iter().map(|x| (x * 1000.0).round()).collect();
            batch.push(y(&x)).unwrap().copy_from_slice(&x);
        }
        batch
    };
    let line = |x: &[f32]| 3.0 * x[0] - x[1];
    for (batch, l2) in
        [(whole(2, line), 0.0), (whole(3, line), 0.0), (whole(2, |_| 7.0), 0.0), (whole(2, |_| 7.0), 0.1)]
    {
        let (trainer, reports) = train(hyper(ModelKind::Linear, l2), &batch);
        assert!(trainer.has_converged() == Some(true) && reports.len() <= 3, "{reports:?}");
        let r2 = reports.last().and_then(|report| report.r2);
        assert!(r2 > Some(1.0 - 1e-12), "{r2:?}");
    }
}

#[test]
fn a_weight_without_a_least_loss_is_known_to_be_infinite() {
    // the second of three categories has only labels of 0
    for (kind, zero, other) in [(ModelKind::Poisson, 0.0, 3.0), (ModelKind::Logistic, -1.0, 1.0)] {
        for finite in [false, true] {
            let mut batch = Batch::new(3);
            for i in 0..600 {
                let (category, noise) = (i % 3, if i % 7 < 3 { zero } else { other });
                let label = if category == 1 && (i > 1 || !finite) { zero } else { noise };
                let row = batch.push(label).unwrap();
                row.fill(0.0);
                row[category] = 1.0;
            }
            if finite {
                batch.labels_mut()[1] = other;
            }
            let mut trainer = Trainer::new(hyper(kind, 0.0), 3, 1, false).unwrap();
            for _ in 0..15 {
                trainer.begin_epoch();
                trainer.learn(&batch, 0..batch.len()).unwrap();
                trainer.end_epoch().unwrap();
            }
            let mut inference = Inference::new(kind, &trainer.model().unwrap(), (0.0, Vec::new()), false).unwrap();
            inference.add(&batch);
            let estimates = inference.finish(None, std::slice::from_ref(&(0..3)), Weighting::Frequencies).unwrap();
            assert_eq!(estimates.infinite, if finite { vec![] } else { vec![1] }, "{kind}: {estimates:?}");
        }
    }
}

#[test]
fn a_step_that_is_too_long_is_shortened() {
    // one tuple far out: from 0, Newton's step along it overshoots, and plain steps run away
    let mut batch = Batch::new(1);
    for (x, y) in [(100.0, 1.0), (1.0, -1.0), (1.1, -1.0), (-2.0, 1.0), (0.9, -1.0), (95.0, -1.0), (-1.0, -1.0)] {
        batch.push(y).unwrap()[0] = x;
    }
    let (trainer, reports) = train(hyper(ModelKind::Logistic, 0.0), &batch);
    let model = trainer.model().unwrap();
    assert_eq!(trainer.has_converged(), Some(true), "{reports:?}");
    let gradient = gradient(ModelKind::Logistic, 0.0, &batch, &model.weights, model.intercepts[0]);
    assert!(gradient.iter().all(|g| g.abs() < 1e-5), "{gradient:?}");
}

#[test]
fn counts_of_any_size_start_at_the_best_constant() {
    for size in [1e-6f32, 1.0, 1e6] {
        let mut batch = smooth_batch(ModelKind::Poisson, 4, 500, 21);
        batch.labels_mut().iter_mut().for_each(|y| *y *= size);
        let (trainer, reports) = train(hyper(ModelKind::Poisson, 0.0), &batch);
        assert_eq!(trainer.has_converged(), Some(true), "{size}: {reports:?}");
        assert!(reports.len() <= 8, "{size}: {reports:?}");
        let labels: Vec<f64> = batch.labels().iter().map(|y| f64::from(*y)).collect();
        let mean = labels.iter().sum::<f64>() / 500.0;
        // half of the deviance of the constant, and no more of the variance is explained than by the mean
        let deviance = |y: f64| if y > 0.0 { y * (y / mean).ln() - (y - mean) } else { mean };
        let expected = labels.into_iter().map(deviance).sum::<f64>() / 500.0;
        assert!((reports[0].loss / expected - 1.0).abs() < 1e-6, "{size}: {} {expected}", reports[0].loss);
        assert!(reports[0].r2.unwrap().abs() < 1e-9, "{size}: {:?}", reports[0].r2);
    }
    // counts that are all 0 have no logarithm: the intercept falls without end, step by step
    let mut none = smooth_batch(ModelKind::Poisson, 1, 100, 3);
    none.labels_mut().fill(0.0);
    let (trainer, reports) = train(hyper(ModelKind::Poisson, 0.0), &none);
    assert!(reports.windows(2).all(|pair| pair[1].loss <= pair[0].loss), "{reports:?}");
    assert!(trainer.model().unwrap().intercepts[0] < -5.0);
}

#[test]
fn the_other_class_has_the_negated_model() {
    let batch = smooth_batch(ModelKind::Logistic, 9, 300, 13);
    let mut swapped = smooth_batch(ModelKind::Logistic, 9, 300, 13);
    swapped.labels_mut().iter_mut().for_each(|y| *y = -*y);
    let (one, _) = train(hyper(ModelKind::Logistic, 0.0), &batch);
    let (other, _) = train(hyper(ModelKind::Logistic, 0.0), &swapped);
    let negated: Vec<u32> = bits(&other).into_iter().map(|bits| bits ^ (1 << 31)).collect();
    assert_eq!(bits(&one), negated);
}

#[test]
fn a_training_that_was_saved_goes_on_bit_for_bit() {
    let batch = smooth_batch(ModelKind::Logistic, 9, 300, 17);
    let hyper = hyper(ModelKind::Logistic, 0.0);
    let pass = |trainer: &mut Trainer| {
        trainer.begin_epoch();
        trainer.learn(&batch, 0..300).unwrap();
        trainer.end_epoch().unwrap()
    };
    for passes in 0..8 {
        let mut whole = Trainer::new(hyper, 9, 1, false).unwrap();
        for _ in 0..passes {
            pass(&mut whole);
        }
        let mut again = Trainer::resume(hyper, 1, false, &whole.save(Vec::new())).unwrap();
        assert_eq!((again.epoch(), again.has_converged()), (passes, whole.has_converged()));
        assert_eq!(pass(&mut again), pass(&mut whole));
        assert_eq!(bits(&again), bits(&whole));
    }
    let saved = Trainer::new(hyper, 9, 1, false).unwrap().save(Vec::new());
    let of_sgd = Hyperparameters::new(ModelKind::Logistic);
    assert!(Trainer::resume(of_sgd, 1, false, &saved).is_err());
}

#[test]
fn what_the_method_cannot_do_is_refused_by_name() {
    let refused = |hyper: Hyperparameters| hyper.validate().unwrap_err().name;
    for kind in [ModelKind::Svm, ModelKind::Huber, ModelKind::Softmax, ModelKind::Mlp, ModelKind::MlpRegression] {
        assert_eq!(refused(hyper(kind, 0.0)), "solver", "{kind}");
    }
    assert_eq!(refused(Hyperparameters { l1: 0.1, ..hyper(ModelKind::Linear, 0.0) }), "l1");
    assert_eq!(refused(Hyperparameters { averaging: true, ..hyper(ModelKind::Linear, 0.0) }), "solver");
    assert_eq!(hyper(ModelKind::Linear, 1e6).validate(), Ok(()), "no rate that a penalty could be too large for");
}
