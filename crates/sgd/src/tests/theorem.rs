//! The schedule of Theorem 1 against the optimum that Newton's method finds in f64.

use std::rc::Rc;

use tuples::{Batch, Block};

use super::blocks::Plain;
use super::{Noise, noisy_batch, sparse_of};
use crate::{Hyperparameters, LinearModel, ModelKind, Optimizer, Schedule, Trainer};

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
fn train(hyper: Hyperparameters, batch: &mut Batch) -> Result<LinearModel, crate::Diverged> {
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, batch.is_sparse()).unwrap();
    let mut noise = Noise(11);
    for _ in 0..EPOCHS {
        shuffle(batch.order_mut(), &mut noise);
        trainer.begin_epoch();
        let all = batch.order().len();
        for from in (0..all).step_by(all.div_ceil(BUFFERS)) {
            let places = from..all.min(from + all.div_ceil(BUFFERS));
            trainer.begin_buffer(batch.tuples_in(places.clone()));
            trainer.learn(batch, places).unwrap();
        }
        trainer.end_epoch()?;
    }
    Ok(trainer.model().unwrap())
}

/// Mini-batches of so many rows, each a matrix of its own.
fn blocks_of(batch: &Batch, rows: usize) -> Batch {
    let mut blocks = Batch::blocks(batch.dim());
    for from in (0..batch.len()).step_by(rows) {
        let rows = from..batch.len().min(from + rows);
        let entries = rows.clone().flat_map(|i| batch.features(i).to_vec()).collect();
        let matrix = Box::new(Plain { columns: batch.dim(), entries });
        blocks.push_block(Rc::new(Block::new(matrix, rows.map(|i| batch.label(i)).collect()))).unwrap();
    }
    blocks
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
    let mut gap = |what: &str, hyper: Hyperparameters, batch: &mut Batch| {
        let model = train(hyper, batch).unwrap();
        let w: Vec<f64> = model.weights.iter().chain(&model.intercepts).map(|w| f64::from(*w)).collect();
        let gap = objective(&rows, &w) - least;
        println!("gap to the optimum after {EPOCHS} epochs, {what}: {gap:.1e}");
        gap
    };
    for batch_size in [1, 32, 250] {
        let (dense, sparse) = (format!("batch {batch_size}"), format!("batch {batch_size}, sparse"));
        gap(&dense, theorem1(batch_size), &mut batch);
        gap(&sparse, theorem1(batch_size), &mut as_sparse(&batch));
    }
    let mut blocks = blocks_of(&batch, 250);
    gap("mini-batches of 250 as matrices", theorem1(Hyperparameters::WHOLE_BLOCKS), &mut blocks);
}
