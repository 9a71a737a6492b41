//! The schedule of Theorem 1 against the optimum that Newton's method finds in f64.

use std::rc::Rc;

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};
use sgd_tests::{Noise, noisy_batch, sparse_of};
use tuples::{Batch, MiniBatch};

use super::mini_batches::Plain;
use crate::Trainer;

const L2: f64 = 0.01;
const EPOCHS: u32 = 100;
const BUFFERS: usize = 10;

/// Rows with the constant 1 of the intercept at their ends, and their labels.
fn rows_of(batch: &Batch) -> Vec<(Vec<f64>, f64)> {
    let row = |i: usize| batch.features(i).iter().map(|x| f64::from(*x)).chain([1.0]).collect();
    (0..batch.len()).map(|i| (row(i), f64::from(batch.label(i)))).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The mean loss with its penalty, in which the last parameter has no part.
fn objective(rows: &[(Vec<f64>, f64)], w: &[f64]) -> f64 {
    let loss = |(x, y): &(Vec<f64>, f64)| (-y * dot(x, w)).exp().ln_1p();
    let weights = &w[..w.len() - 1];
    rows.iter().map(loss).sum::<f64>() / rows.len() as f64 + L2 / 2.0 * dot(weights, weights)
}

/// Solves `matrix` x = `right` by elimination.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let n = right.len();
    for k in 0..n {
        let (pivot, below) = matrix[k..].split_first_mut().unwrap();
        for (i, row) in below.iter_mut().enumerate() {
            let factor = row[k] / pivot[k];
            row.iter_mut().zip(&*pivot).for_each(|(a, b)| *a -= factor * b);
            right[k + 1 + i] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| matrix[k][j] * right[j]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    right
}

/// The least value of the logistic objective.
fn optimum(rows: &[(Vec<f64>, f64)]) -> f64 {
    let (dim, n) = (rows[0].0.len(), rows.len() as f64);
    let mut w = vec![0.0; dim];
    for _ in 0..30 {
        let penalty = |j: usize| if j + 1 < dim { L2 } else { 0.0 };
        let mut gradient: Vec<f64> = (0..dim).map(|j| penalty(j) * w[j]).collect();
        let mut hessian: Vec<Vec<f64>> =
            (0..dim).map(|i| (0..dim).map(|j| if i == j { penalty(i) } else { 0.0 }).collect()).collect();
        for (x, y) in rows {
            let p = 1.0 / (1.0 + (y * dot(x, &w)).exp());
            for i in 0..dim {
                gradient[i] -= y * p * x[i] / n;
                (0..dim).for_each(|j| hessian[i][j] += p * (1.0 - p) * x[i] * x[j] / n);
            }
        }
        let step = solve(hessian, gradient);
        w.iter_mut().zip(step).for_each(|(w, step)| *w -= step);
    }
    objective(rows, &w)
}

/// The order of an epoch.
fn shuffle(order: &mut [u32], noise: &mut Noise) {
    for i in (1..order.len()).rev() {
        let draw = f64::from(noise.next()) / 2.0 + 0.5;
        order.swap(i, ((draw * (i + 1) as f64) as usize).min(i));
    }
}

/// Trains on a batch whose places are shuffled before each epoch, and fall into ten buffers.
fn train(hyper: Hyperparameters, epochs: u32, batch: &mut Batch) -> Result<ModelParameters, loss::Diverged> {
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, batch.is_sparse()).unwrap();
    let mut noise = Noise::new(11);
    for _ in 0..epochs {
        shuffle(batch.order_mut(), &mut noise);
        trainer.begin_epoch();
        let all = batch.order().len();
        for from in (0..all).step_by(all.div_ceil(BUFFERS)) {
            let places = from..all.min(from + all.div_ceil(BUFFERS));
            trainer.begin_buffer(batch.tuples_in(places.clone()), batch, places.clone()).unwrap();
            trainer.learn(batch, places).unwrap();
        }
        trainer.end_epoch()?;
    }
    Ok(trainer.model().unwrap())
}

/// Mini-batches of this many rows, each a matrix of its own.
fn mini_batches_of(batch: &Batch, rows: usize) -> Batch {
    let mut mini_batches = Batch::mini_batches(batch.dim());
    for from in (0..batch.len()).step_by(rows) {
        let rows = from..batch.len().min(from + rows);
        let entries = rows.clone().flat_map(|i| batch.features(i).to_vec()).collect();
        let matrix = Box::new(Plain { columns: batch.dim(), entries });
        mini_batches.push_mini_batch(Rc::new(MiniBatch::new(matrix, rows.map(|i| batch.label(i)).collect()))).unwrap();
    }
    mini_batches
}

fn theorem1(batch_size: u32) -> Hyperparameters {
    let schedule = Schedule::Theorem1 { mu: L2, a: None };
    Hyperparameters { schedule, l2: L2, batch_size, ..Hyperparameters::new(ModelKind::Logistic) }
}

fn as_sparse(batch: &Batch) -> Batch {
    sparse_of((0..batch.len()).map(|i| (batch.label(i), batch.features(i))))
}

#[test]
fn theorem_1_comes_as_near_to_the_optimum_with_mini_batches_as_with_tuples() {
    let mut batch = noisy_batch(10, 5_000, 5);
    let rows = rows_of(&batch);
    let least = optimum(&rows);
    let gap = |what: &str, hyper: Hyperparameters, batch: &mut Batch| {
        let model = train(hyper, EPOCHS, batch).unwrap();
        let w: Vec<f64> = model.weights.iter().chain(&model.intercepts).map(|w| f64::from(*w)).collect();
        let gap = objective(&rows, &w) - least;
        println!("gap to the optimum after {EPOCHS} epochs, {what}: {gap:.1e}");
        gap
    };
    for batch_size in [1, 32, 250] {
        let (dense, sparse) = (format!("batch {batch_size}"), format!("batch {batch_size}, sparse"));
        assert!(gap(&dense, theorem1(batch_size), &mut batch) < 1e-6);
        assert!(gap(&sparse, theorem1(batch_size), &mut as_sparse(&batch)) < 1e-6);
    }
    let mut mini_batches = mini_batches_of(&batch, 250);
    assert!(
        gap("mini-batches of 250 as matrices", theorem1(Hyperparameters::WHOLE_MINI_BATCHES), &mut mini_batches) < 1e-6
    );
}

#[test]
fn the_rates_of_a_buffer_have_the_sum_of_the_theorem_whatever_the_mini_batches() {
    // no features, margins below 1: each step of the hinge adds its rate to the intercept
    let tuples = || (0..530).map(|_| (1.0, &[0.0][..]));
    let (mu, a, buffer) = (0.5, 200.0, 265);
    let sum: f64 = [1.0, 2.0].iter().map(|s| 6.0 / (mu * (s + a))).sum();
    let check = |what: &str, batch_size: u32, batch: &Batch, places_of_buffer: usize| {
        let schedule = Schedule::Theorem1 { mu, a: Some(a) };
        let hyper = Hyperparameters { schedule, batch_size, ..Hyperparameters::new(ModelKind::Svm) };
        let mut trainer = Trainer::new(hyper, 1, 1, batch.is_sparse()).unwrap();
        trainer.begin_epoch();
        for from in [0, places_of_buffer] {
            let places = from..from + places_of_buffer;
            trainer.begin_buffer(buffer, batch, places.clone()).unwrap();
            trainer.learn(batch, places).unwrap();
        }
        trainer.end_epoch().unwrap();
        // the mean of the models after the buffers, which is what there is to see, follows from the last one
        let iterate = f64::from(trainer.engine.model().unwrap().intercepts[0]);
        assert!((iterate / sum - 1.0).abs() < 5e-3, "{what} of {batch_size}: {iterate} and not {sum}");
    };
    for batch_size in [1, 5, 32, 53, 250, 530] {
        // the last mini-batch is not full, and some cross from buffer to buffer
        check("tuples", batch_size, &sgd_tests::batch_of(1, tuples()), buffer);
        check("sparse tuples", batch_size, &sparse_of(tuples()), buffer);
    }
    for rows in [5, 53, 265] {
        let mini_batches = mini_batches_of(&sgd_tests::batch_of(1, tuples()), rows);
        check("blocks", Hyperparameters::WHOLE_MINI_BATCHES, &mini_batches, buffer / rows);
    }
}

#[test]
fn mini_batches_do_not_diverge_where_tuples_do_not() {
    // the loss of a feature of 10 bends a hundred times as much as that of a feature of 1:
    // 250 rates of 0.005 are too many
    let mut batch = noisy_batch(10, 2_000, 5);
    (0..batch.len()).for_each(|i| batch.features_mut(i)[0] *= 10.0);
    let mut mini_batches = mini_batches_of(&batch, 250);
    for kind in [ModelKind::Linear, ModelKind::Logistic, ModelKind::Svm] {
        for optimizer in [Optimizer::Sgd, Optimizer::MOMENTUM] {
            let of_size =
                |batch_size| Hyperparameters { kind, optimizer, learning_rate: 0.002, ..theorem1(batch_size) };
            let length = |model: ModelParameters| model.weights.iter().map(|w| w * w).sum::<f32>().sqrt();
            let expected = length(train(of_size(1), 20, &mut batch).unwrap());
            for batch_size in [32, 250, 2_000] {
                let sparse = &mut as_sparse(&batch);
                let found = [&mut batch, sparse].map(|batch| length(train(of_size(batch_size), 20, batch).unwrap()));
                assert!(found.iter().all(|found| *found < 1.5 * expected), "{kind} {batch_size}: {found:?} {expected}");
            }
            let found = length(train(of_size(Hyperparameters::WHOLE_MINI_BATCHES), 20, &mut mini_batches).unwrap());
            assert!(found < 1.5 * expected, "{kind} of matrices: {found} and not {expected}");
        }
    }
}

/// Rows that are all alike, an even number of them in a mini-batch; and one mini-batch of rows that are much longer
/// than all others, which is not the first.
#[test]
fn mini_batches_do_not_diverge_where_rows_are_alike_or_few_of_them_long() {
    let alike = |_: usize| 30.0_f32;
    let long = |i: usize| if (1000..1250).contains(&i) { 30.0 + (i % 7) as f32 } else { (i % 11) as f32 / 11.0 };
    for (name, value) in [("alike", &alike as &dyn Fn(usize) -> f32), ("long", &long)] {
        let mut batch = Batch::dense(1);
        for i in 0..5000 {
            batch.push(3.0 + (i % 5) as f32 / 5.0).unwrap().copy_from_slice(&[value(i)]);
        }
        for rows in [32, 250] {
            let hyper =
                |batch_size| Hyperparameters { kind: ModelKind::Linear, learning_rate: 1e-3, ..theorem1(batch_size) };
            let mut mini_batches = mini_batches_of(&batch, rows as usize);
            for (kind, model) in
                [("", train(hyper(rows), 5, &mut batch)), ("compressed", train(hyper(rows), 5, &mut mini_batches))]
            {
                let model = model.unwrap_or_else(|error| panic!("{name}, {kind} mini-batches of {rows}: {error}"));
                let decision = |i: usize| model.weights[0] * batch.features(i)[0] + model.intercepts[0];
                let errors = (0..batch.len()).map(|i| f64::from(decision(i) - batch.label(i)).powi(2));
                let mean = errors.sum::<f64>() / batch.len() as f64;
                // a model of zeros has 11.6
                assert!(mean < 11.6, "{name}, {kind} mini-batches of {rows}: {mean}");
            }
        }
    }
}

#[test]
fn measuring_the_curvature_makes_a_pause_for_every_row_that_is_looked_at() {
    thread_local! {
        static PAUSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
    let mut batch = Batch::dense(3);
    (0..1000).for_each(|i| batch.push(if i % 2 == 0 { 1.0 } else { -1.0 }).unwrap().fill(i as f32 / 1000.0));
    let schedule = loss::Schedule::Theorem1 { mu: 0.01, a: None };
    let hyper = Hyperparameters { batch_size: 64, schedule, ..Hyperparameters::new(ModelKind::Logistic) };
    for (batch, expected) in [(mini_batches_of(&batch, 50), 20 * 6), (batch, 2 * 6 * 64)] {
        let size = if batch.has_mini_batches() { Hyperparameters::WHOLE_MINI_BATCHES } else { 64 };
        let mut trainer = Trainer::new(Hyperparameters { batch_size: size, ..hyper }, 3, 1, batch.is_sparse()).unwrap();
        trainer.begin_epoch();
        tuples::pause::set_host(|| PAUSES.set(PAUSES.get() + 1));
        PAUSES.set(0);
        trainer.begin_buffer(1000, &batch, 0..batch.order().len()).unwrap();
        tuples::pause::set_host(|| ());
        assert!(PAUSES.get() >= expected, "{} pauses, {expected} expected", PAUSES.get());
    }
}
