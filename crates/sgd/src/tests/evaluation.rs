//! Decisions and evaluation.

use loss::math::softplus;
use loss::{ModelKind, ModelParameters};
use sgd_tests::{batch_of, decision, noisy_batch};
use simd::Level;

use crate::Evaluation;

fn model_of(weights: Vec<f32>, intercept: f32) -> ModelParameters {
    ModelParameters { dim: weights.len(), outputs: 1, weights, intercepts: vec![intercept], network: None }
}

/// A model of weights and intercept that are all different.
fn some_model(dim: usize) -> ModelParameters {
    let mut model = ModelParameters::new(dim, 1);
    let batch = noisy_batch(dim, 1, 77);
    model.weights.copy_from_slice(batch.features(0));
    model.intercepts[0] = 0.125;
    model
}

#[test]
fn evaluation_computes_the_bits_of_decision_on_every_instruction_set() {
    for dim in [1, 2, 15, 16, 17, 31, 32, 48, 64, 100, 2000] {
        let (model, batch) = (some_model(dim), noisy_batch(dim, 50, dim as u64));
        let margins = (0..50).map(|i| batch.label(i) * decision(&model, batch.features(i)));
        let expected = margins.map(|m| softplus(-f64::from(m))).sum::<f64>() / 50.0;
        for level in Level::available() {
            let mut evaluation = Evaluation::with_level(ModelKind::Logistic, level);
            evaluation.add(&model, &batch);
            assert_eq!(evaluation.loss().to_bits(), expected.to_bits(), "{dim} {level:?}");
        }
    }
}

#[test]
fn the_decision_is_the_dot_product_plus_the_intercept() {
    for dim in [1, 15, 16, 100, 2000] {
        let (model, batch) = (some_model(dim), noisy_batch(dim, 1, 3));
        let products = model.weights.iter().zip(batch.features(0)).map(|(&w, &x)| f64::from(w) * f64::from(x));
        let expected = products.sum::<f64>() + 0.125;
        assert!((f64::from(decision(&model, batch.features(0))) - expected).abs() < 1e-4);
    }
}

#[test]
fn a_decision_of_0_is_negative_and_losses_are_means() {
    let model = model_of(vec![1.0], -1.0);
    let batch = batch_of(1, [(1.0, &[1.0][..]), (-1.0, &[1.0]), (1.0, &[1.5]), (-1.0, &[3.0])]);
    let mut evaluation = Evaluation::new(ModelKind::Svm);
    evaluation.add(&model, &batch);
    evaluation.add(&model, &batch);
    assert_eq!((evaluation.tuples(), evaluation.accuracy()), (8, Some(0.5)));
    assert_eq!(evaluation.loss(), (1.0 + 1.0 + 0.5 + 3.0) / 4.0);
}

#[test]
fn an_evaluation_of_nothing_is_0() {
    let evaluation = Evaluation::new(ModelKind::Logistic);
    assert_eq!((evaluation.loss(), evaluation.accuracy(), evaluation.tuples()), (0.0, Some(0.0), 0));
}

#[test]
fn negating_flips_all_signs_but_that_of_0() {
    let mut model = model_of(vec![1.5, 0.0, f32::MIN_POSITIVE], -2.0);
    model.negate();
    assert_eq!(model, model_of(vec![-1.5, 0.0, -f32::MIN_POSITIVE], 2.0));
    assert!(model.weights[1].is_sign_positive());
}

#[test]
fn a_model_with_any_infinite_or_nan_parameter_is_not_finite() {
    assert!(some_model(20).is_finite());
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(!ModelParameters { intercepts: vec![bad], ..some_model(20) }.is_finite());
        let mut model = some_model(20);
        model.weights[19] = bad;
        assert!(!model.is_finite());
    }
}

#[test]
fn an_evaluation_says_whether_all_decisions_were_in_range() {
    let model = model_of(vec![2.0, 2.0], 0.0);
    let mut evaluation = Evaluation::new(ModelKind::Logistic);
    evaluation.add(&model, &batch_of(2, [(1.0, &[1e38, 0.0][..]), (-1.0, &[-1e38, 1e38])]));
    assert!(!evaluation.has_diverged());
    // right by its sign, and of no loss
    evaluation.add(&model, &batch_of(2, [(1.0, &[3e38, 3e38][..])]));
    assert!(evaluation.has_diverged() && evaluation.loss().is_finite());
}

#[test]
fn evaluations_that_were_sent_and_united_are_those_of_all_tuples() {
    for kind in [ModelKind::Logistic, ModelKind::Softmax, ModelKind::Linear, ModelKind::Quantile] {
        let outputs = if kind.has_class_numbers() { 3 } else { 1 };
        let (mut batch, mut model) = (noisy_batch(4, 60, 5), ModelParameters::new(4, outputs));
        let weights = noisy_batch(4 * outputs, 1, 6);
        model.weights.copy_from_slice(weights.features(0));
        if outputs > 1 {
            batch.labels_mut().iter_mut().enumerate().for_each(|(i, label)| *label = (i % 3) as f32);
        }
        let evaluate = |places: std::ops::Range<usize>| {
            let mut part = tuples::Batch::dense(4);
            places.for_each(|i| part.push_copy(&batch, i).unwrap());
            let mut evaluation = Evaluation::new(kind);
            evaluation.add(&model, &part);
            evaluation
        };
        let (all, mut united) = (evaluate(0..60), Evaluation::new(kind));
        for part in [0..0, 0..13, 13..13, 13..60] {
            let sent = serde_json::to_string(&evaluate(part).sums()).unwrap();
            assert!(united.add_sums(&serde_json::from_str(&sent).unwrap()));
        }
        assert_eq!((united.tuples(), united.accuracy()), (60, all.accuracy()), "{kind}");
        assert_eq!(united.fraction_below(), all.fraction_below(), "{kind}");
        for (actual, predicted) in (0..3).flat_map(|actual| (0..3).map(move |predicted| (actual, predicted))) {
            assert_eq!(united.confusion().cell(actual, predicted), all.confusion().cell(actual, predicted), "{kind}");
        }
        for (a, b) in [(united.loss(), all.loss()), (united.log_loss(), all.log_loss())].into_iter().chain(
            [united.r2(), united.rmse(), united.mae()]
                .into_iter()
                .zip([all.r2(), all.rmse(), all.mae()])
                .flat_map(|(a, b)| a.zip(b)),
        ) {
            assert!((a - b).abs() < 1e-12, "{kind}: {a} {b}");
        }
        let other = Evaluation::new(ModelKind::Softmax);
        let mut of_two = Evaluation::new(ModelKind::Softmax);
        let (mut two, classes) = (ModelParameters::new(4, 2), noisy_batch(4, 3, 1));
        two.weights.fill(0.5);
        let mut labelled = classes;
        labelled.labels_mut().fill(1.0);
        of_two.add(&two, &labelled);
        assert_eq!(
            united.add_sums(&of_two.sums()),
            outputs == 1 && kind == ModelKind::Logistic || !kind.is_classifier(),
            "{kind}"
        );
        assert!(of_two.add_sums(&other.sums()), "nothing goes with everything");
    }
}

#[test]
fn an_infinite_loss_of_another_process_is_that_of_all() {
    let mut far = Evaluation::new(ModelKind::Linear);
    far.add(&model_of(vec![f32::INFINITY], 0.0), &batch_of(1, [(1.0, &[1.0][..])]));
    let mut united = Evaluation::new(ModelKind::Linear);
    assert!(united.add_sums(&serde_json::from_str(&serde_json::to_string(&far.sums()).unwrap()).unwrap()));
    assert!(united.has_diverged() && united.loss().is_infinite());
}
