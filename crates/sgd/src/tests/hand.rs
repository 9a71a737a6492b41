//! Single steps of every optimizer, penalty and schedule against numbers worked out by hand,
//! on dense and sparse tuples.

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};
use sgd_tests::{batch_of, sparse_of};
use tuples::Batch;

use crate::Trainer;

/// One feature, squared error, learning rate 1/2, the same in all epochs.
fn hyper() -> Hyperparameters {
    Hyperparameters { learning_rate: 0.5, schedule: Schedule::Constant, ..Hyperparameters::new(ModelKind::Linear) }
}

/// The models after each of the tuples (label, features), learned one call at a time in one epoch:
/// weights and intercept.
fn path(hyper: Hyperparameters, tuples: &[(f32, &[f32])], sparse: bool) -> Vec<(Vec<f32>, f32)> {
    let dim = tuples[0].1.len();
    let mut trainer = Trainer::new(hyper, dim, 1, sparse).unwrap();
    trainer.begin_epoch();
    let learned = tuples.iter().map(|tuple| {
        let batch = if sparse { sparse_of([*tuple]) } else { batch_of(dim, [*tuple]) };
        trainer.learn(&batch, 0..1).unwrap();
        let model = trainer.model().unwrap();
        (model.weights, model.intercepts[0])
    });
    learned.collect()
}

fn assert_path(hyper: Hyperparameters, tuples: &[(f32, &[f32])], expected: &[(&[f32], f32)]) {
    for sparse in [false, true] {
        let path = path(hyper, tuples, sparse);
        for (i, ((weights, intercept), (expected_weights, expected_intercept))) in path.iter().zip(expected).enumerate()
        {
            let pairs = weights.iter().zip(*expected_weights).chain([(intercept, expected_intercept)]);
            for (a, b) in pairs {
                assert!((a - b).abs() < 1e-6, "step {i}, sparse: {sparse}: {weights:?} {intercept} {expected:?}");
            }
        }
    }
}

#[test]
fn plain_sgd_of_the_squared_error() {
    // z = 0, error 2: w = 0.5 * 2 * 2, b = 0.5 * 2; then z = 2 + 1, error -1
    assert_path(hyper(), &[(2.0, &[2.0]), (2.0, &[1.0])], &[(&[2.0], 1.0), (&[1.5], 0.5)]);
}

#[test]
fn momentum_goes_on_with_nine_tenths_of_its_velocity() {
    let hyper = Hyperparameters { optimizer: Optimizer::Momentum { beta: 0.5 }, ..hyper() };
    // v = 2, w = b = 1; z = 2, no error, v = 1: w = b = 1.5; a tuple without the feature, error -0.5:
    // v_w = 0.5, w = 1.75; v_b = 0.5 - 0.5 = 0
    let tuples: [(f32, &[f32]); 3] = [(2.0, &[1.0]), (2.0, &[1.0]), (1.0, &[0.0])];
    assert_path(hyper, &tuples, &[(&[1.0], 1.0), (&[1.5], 1.5), (&[1.75], 1.5)]);
}

#[test]
fn the_first_step_of_adam_is_the_learning_rate_whatever_the_gradient_is() {
    let optimizer = Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
    let adam = Hyperparameters { optimizer, learning_rate: 0.125, ..hyper() };
    // m / (1 - beta1) = g, v / (1 - beta2) = g²
    assert_path(adam, &[(100.0, &[-3.0])], &[(&[-0.125], 0.125)]);
    // β1 = 1/2, β2 = 3/4: g = 4 then g = 0 for the feature: m = 2, v = 4, then m = 1, v = 3;
    // the second step is η (1 / 0.75) / √(3 / 0.4375)
    let optimizer = Optimizer::Adam { beta1: 0.5, beta2: 0.75, epsilon: 1e-8 };
    let hyper = Hyperparameters { optimizer, learning_rate: 0.125, ..hyper() };
    let second = 0.125 * (1.0 / 0.75) / (3.0f32 / 0.4375).sqrt();
    // the intercept has g = 4 and then an error of 0.125 - 0.125 = 0
    let tuples: [(f32, &[f32]); 2] = [(4.0, &[1.0]), (0.125, &[0.0])];
    assert_path(hyper, &tuples, &[(&[0.125], 0.125), (&[0.125 + second], 0.125 + second)]);
}

#[test]
fn l2_shrinks_before_the_step_and_l1_cuts_after_it_but_not_the_intercept() {
    let hyper = Hyperparameters { l1: 0.25, l2: 0.5, ..hyper() };
    // w = 2 - 1/8; then z = 1.875 * 0 + 1, error 0: w = 1.875 * 0.75 - 0.125,
    // though the tuple does not have the feature
    let tuples: [(f32, &[f32]); 2] = [(2.0, &[2.0]), (1.0, &[0.0])];
    assert_path(hyper, &tuples, &[(&[1.875], 1.0), (&[1.28125], 1.0)]);
}

#[test]
fn l1_stops_at_0() {
    let hyper = Hyperparameters { l1: 1.5, ..hyper() };
    // w = 1 - 0.75; then twice nothing but the cut
    let tuples: [(f32, &[f32]); 3] = [(2.0, &[1.0]), (1.0, &[0.0]), (1.0, &[0.0])];
    assert_path(hyper, &tuples, &[(&[0.25], 1.0), (&[0.0], 1.0), (&[0.0], 1.0)]);
}

#[test]
fn a_small_l1_takes_as_much_in_the_end_as_a_step_at_a_time() {
    for sparse in [false, true] {
        for optimizer in [Optimizer::Sgd, Optimizer::Momentum { beta: 0.5 }] {
            let hyper = Hyperparameters { l1: 1e-5, optimizer, ..hyper() };
            let mut trainer = Trainer::new(hyper, 2, 1, sparse).unwrap();
            trainer.begin_epoch();
            let tuples: [(f32, &[f32]); 2] = [(64.0, &[1.0, 0.0]), (0.0, &[0.0, 0.0])];
            let batch = if sparse { sparse_of(tuples) } else { batch_of(2, tuples) };
            trainer.learn(&batch, 0..1).unwrap();
            for _ in 0..9999 {
                trainer.learn(&batch, 1..2).unwrap();
            }
            trainer.end_epoch().unwrap();
            // 10,000 cuts of 5e-6, each less than half a unit in the last place of the weight
            let begin = if optimizer == Optimizer::Sgd { 32.0 } else { 64.0 };
            let taken = begin - f64::from(trainer.model().unwrap().weights[0]);
            assert!((taken - 0.05).abs() < 1e-3, "{sparse} {optimizer:?} {taken}");
        }
    }
}

#[test]
fn a_mini_batch_steps_along_the_mean_and_the_last_one_of_an_epoch_over_its_own_size() {
    let hyper = Hyperparameters { batch_size: 2, ..hyper() };
    for sparse in [false, true] {
        let tuples: [(f32, &[f32]); 3] = [(2.0, &[1.0]), (4.0, &[3.0]), (3.5, &[1.0])];
        let batch = if sparse { sparse_of(tuples) } else { batch_of(1, tuples) };
        let mut trainer = Trainer::new(hyper, 1, 1, sparse).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..1).unwrap();
        assert_eq!(trainer.model().unwrap(), ModelParameters::new(1, 1), "no step yet");
        trainer.learn(&batch, 1..3).unwrap();
        // (2 * 1 + 4 * 3) / 2 * 0.5 and (2 + 4) / 2 * 0.5
        assert_eq!(trainer.model().unwrap().weights, [3.5]);
        assert_eq!(trainer.model().unwrap().intercepts, [1.5]);
        // z = 5, error -1.5
        let report = trainer.end_epoch().unwrap();
        assert_eq!(trainer.model().unwrap().weights, [2.75]);
        assert_eq!(trainer.model().unwrap().intercepts, [0.75]);
        assert_eq!(report.loss, (2.0 + 8.0 + 1.125) / 3.0);
        // mean 19/6, squares 42.25/18...: SST = 4 + 16 + 12.25 - 9.5²/3
        let sst = 32.25 - 9.5f64.powi(2) / 3.0;
        assert!((report.r2.unwrap() - (1.0 - 22.25 / sst)).abs() < 1e-12);
        assert_eq!(report.accuracy, None);
    }
}

#[test]
fn softmax_steps_along_indicator_minus_probability() {
    let hyper = Hyperparameters { learning_rate: 1.0, ..Hyperparameters::new(ModelKind::Softmax) };
    for sparse in [false, true] {
        let tuples: [(f32, &[f32]); 1] = [(2.0, &[0.0, 4.0])];
        let batch = if sparse { sparse_of(tuples) } else { batch_of(2, tuples) };
        let mut trainer = Trainer::new(hyper, 2, 4, sparse).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..1).unwrap();
        let model = trainer.model().unwrap();
        assert_eq!(model.weights, [0.0, -1.0, 0.0, -1.0, 0.0, 3.0, 0.0, -1.0]);
        assert_eq!(model.intercepts, [-0.25, -0.25, 0.75, -0.25]);
        let report = trainer.end_epoch().unwrap();
        assert!((report.loss - 4f64.ln()).abs() < 1e-6);
        assert_eq!((report.accuracy, report.r2), (Some(0.0), None), "a tie is wrong");
    }
}

#[test]
fn a_weight_multiplies_the_gradient_and_the_loss() {
    for (sparse, batch_size) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        let mut batch = if sparse { Batch::sparse() } else { Batch::dense(1) };
        batch.set_weighted(true);
        for y in [2.0, 6.0] {
            if sparse {
                let (indices, values) = batch.push_sparse(y, 1).unwrap();
                (indices[0], values[0]) = (0, 0.5);
            } else {
                batch.push(y).unwrap()[0] = 0.5;
            }
        }
        batch.weights_mut().copy_from_slice(&[0.5, 1.0]);
        let mut trainer = Trainer::new(Hyperparameters { batch_size, ..hyper() }, 1, 1, sparse).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..2).unwrap();
        let report = trainer.end_epoch().unwrap();
        let model = trainer.model().unwrap();
        if batch_size == 1 {
            // w = 0.25, b = 0.5; z = 0.625, error 5.375
            assert_eq!((model.weights[0], model.intercepts[0]), (0.25 + 1.34375, 0.5 + 2.6875));
            assert_eq!(report.loss, (0.5 * 2.0 + 5.375 * 5.375 / 2.0) / 1.5);
        } else {
            // (0.5 * 2 + 6) / 2 * 0.5
            assert_eq!((model.weights[0], model.intercepts[0]), (0.875, 1.75));
            assert_eq!(report.loss, (0.5 * 2.0 + 18.0) / 1.5);
        }
    }
}

#[test]
fn a_weight_of_2_in_a_batch_is_the_tuple_twice() {
    for optimizer in [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM] {
        let rows: [(f32, &[f32]); 2] = [(1.0, &[0.5, 2.0]), (-1.0, &[1.0, -1.0])];
        let mut weighted = Batch::dense(2);
        weighted.set_weighted(true);
        for (y, x) in rows {
            weighted.push(y).unwrap().copy_from_slice(x);
        }
        weighted.weights_mut().copy_from_slice(&[2.0, 1.0]);
        let twice = batch_of(2, [rows[0], rows[0], rows[1]]);
        let train = |batch: &Batch, learning_rate: f64| {
            let logistic = Hyperparameters::new(ModelKind::Logistic);
            let hyper = Hyperparameters { learning_rate, optimizer, batch_size: 3, ..logistic };
            let mut trainer = Trainer::new(hyper, 2, 1, false).unwrap();
            trainer.begin_epoch();
            trainer.learn(batch, 0..batch.len()).unwrap();
            (trainer.end_epoch().unwrap().loss, trainer.model().unwrap())
        };
        // the mean is over tuples, not over weights; adam does not see the difference
        let rate = if optimizer == Optimizer::ADAM { 0.3 } else { 0.2 };
        let ((loss, a), (loss_twice, b)) = (train(&weighted, rate), train(&twice, 0.3));
        assert!((loss - loss_twice).abs() < 1e-7);
        assert!(a.weights.iter().zip(&b.weights).all(|(a, b)| (a - b).abs() < 1e-6), "{optimizer:?} {a:?} {b:?}");
    }
}

#[test]
fn inverse_scaling_divides_the_steps_by_a_power_of_the_epoch() {
    let schedule = Schedule::InverseScaling { power: 0.5 };
    let hyper = Hyperparameters { learning_rate: 1.0, schedule, ..Hyperparameters::new(ModelKind::Svm) };
    for sparse in [false, true] {
        let tuples: [(f32, &[f32]); 1] = [(1.0, &[0.0])];
        let batch = if sparse { sparse_of(tuples) } else { batch_of(1, tuples) };
        let mut trainer = Trainer::new(Hyperparameters { learning_rate: 0.25, ..hyper }, 1, 1, sparse).unwrap();
        let mut rates = Vec::new();
        for _ in 0..4 {
            trainer.begin_epoch();
            trainer.learn(&batch, 0..1).unwrap();
            rates.push(trainer.end_epoch().unwrap().learning_rate);
        }
        assert_eq!(rates, [0.25, 0.25 / 2f64.sqrt(), 0.25 / 3f64.sqrt(), 0.125]);
        let sum = 0.25 + 0.25 / 2f32.sqrt() + 0.25 / 3f32.sqrt() + 0.125;
        assert!((trainer.model().unwrap().intercepts[0] - sum).abs() < 1e-6);
    }
}

#[test]
fn theorem_1_sets_the_rate_of_each_buffer_and_averages_the_models_after_them() {
    let schedule = Schedule::Theorem1 { mu: 0.5, a: Some(2.0) };
    for (sparse, optimizer) in
        [(false, Optimizer::Sgd), (true, Optimizer::Sgd), (false, Optimizer::Momentum { beta: 0.0 })]
    {
        let hyper = Hyperparameters { schedule, optimizer, ..Hyperparameters::new(ModelKind::Svm) };
        // no features, margin below 1: each step adds its rate to the intercept
        let tuples: [(f32, &[f32]); 4] = [(1.0, &[0.0]); 4];
        let batch = if sparse { sparse_of(tuples) } else { batch_of(1, tuples) };
        let mut trainer = Trainer::new(hyper, 1, 1, sparse).unwrap();
        trainer.begin_epoch();
        trainer.begin_buffer(400, &batch, 0..2).unwrap();
        trainer.learn(&batch, 0..2).unwrap();
        trainer.begin_buffer(100, &batch, 0..1).unwrap();
        trainer.learn(&batch, 0..1).unwrap();
        let report = trainer.end_epoch().unwrap();
        // 6 / (400 * 0.5 * (s + 2)); the second buffer is smaller, but counts like the first
        let rates = [0.03 / 3.0, 0.03 / 4.0];
        assert!((report.learning_rate - rates[1]).abs() < 1e-12);
        let iterates = [2.0 * rates[0], 2.0 * rates[0] + rates[1]];
        let average = (27.0 * iterates[0] + 64.0 * iterates[1]) / 91.0;
        assert!((f64::from(trainer.model().unwrap().intercepts[0]) - average).abs() < 1e-8);
        trainer.begin_epoch();
        trainer.begin_buffer(400, &batch, 0..2).unwrap();
        trainer.learn(&batch, 0..1).unwrap();
        trainer.end_epoch().unwrap();
        let third = iterates[1] + 0.03 / 5.0;
        let average = (27.0 * iterates[0] + 64.0 * iterates[1] + 125.0 * third) / 216.0;
        assert!((f64::from(trainer.model().unwrap().intercepts[0]) - average).abs() < 1e-8);
    }
}

#[test]
fn theorem_1_begins_with_the_learning_rate_unless_a_is_given() {
    let rates = |learning_rate: f64, a: Option<f64>| {
        let schedule = Schedule::Theorem1 { mu: 0.01, a };
        let hyper = Hyperparameters { learning_rate, schedule, ..Hyperparameters::new(ModelKind::Svm) };
        let mut trainer = Trainer::new(hyper, 1, 1, false).unwrap();
        let batch = batch_of(1, [(1.0, &[0.0][..])]);
        [(); 2].map(|()| {
            trainer.begin_epoch();
            trainer.begin_buffer(1000, &batch, 0..1).unwrap();
            trainer.learn(&batch, 0..1).unwrap();
            trainer.end_epoch().unwrap().learning_rate
        })
    };
    // 6 / (1000 * 0.01 * (1 + a)) = 0.1 if a = 5
    let [first, second] = rates(0.1, None);
    assert!((first - 0.1).abs() < 1e-15 && (second - 0.6 / 7.0).abs() < 1e-15);
    assert_eq!(rates(0.1, Some(0.0)), [0.6, 0.3]);
    assert_eq!(rates(5.0, None), [0.6, 0.3], "no a makes it larger");
}
