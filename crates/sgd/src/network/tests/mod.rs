//! Networks against finite differences, a computation by hand, one by the book in f64, and themselves in other forms.

mod evaluation;
mod pauses;
mod small;

use std::rc::Rc;

use choices::Choice;
use proptest::prelude::*;
use simd::Level;
use tuples::{Batch, Matrix, MiniBatch};

use super::rows::Rows;
use super::*;
use crate::engine::Engine;
use crate::tests::{Noise, batch_of, textbook_step};
use crate::totals::Totals;
use crate::{
    Activation, Design, Hidden, Hyperparameters, ModelKind, ModelParameters, Network, Optimizer, Output, Schedule,
    Trainer,
};

const OPTIMIZERS: [Optimizer; 3] =
    [Optimizer::Sgd, Optimizer::Momentum { beta: 0.8 }, Optimizer::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-3 }];

/// The outputs, with classes that they make a difference for; 1 stands for targets that are numbers.
const OUTPUTS: [(Output, usize); 5] =
    [(Output::Sigmoid, 2), (Output::Sigmoid, 4), (Output::Softmax, 2), (Output::Softmax, 5), (Output::Identity, 1)];

fn hyper(hidden: &[u32], activation: Activation, output: Output) -> Hyperparameters {
    let design = Design { hidden: Hidden::new(hidden).unwrap(), activation, output: Some(output), seed: 3 };
    let (learning_rate, batch_size) = (Activation::Sigmoid.learning_rate(), 250);
    let (schedule, optimizer) = (Schedule::Constant, Optimizer::Sgd);
    let other = Hyperparameters::new(if output.has_classes() { ModelKind::Mlp } else { ModelKind::MlpRegression });
    Hyperparameters { design: Some(design), learning_rate, batch_size, schedule, optimizer, ..other }
}

/// Class numbers or targets, features of which about half are 0, and weights.
fn tuples(n: usize, dim: usize, classes: usize, seed: u64) -> Vec<(f32, Vec<f32>, f32)> {
    let mut noise = Noise::new(seed);
    let mut tuple = || {
        let features = (0..dim).map(|_| if noise.next() > 0.0 { noise.next() } else { 0.0 }).collect();
        let class = ((noise.next() + 1.0) / 2.0 * classes as f32) as usize;
        let label = if classes > 1 { class.min(classes - 1) as f32 } else { 3.0 * noise.next() };
        (label, features, 1.0 + noise.next())
    };
    (0..n).map(|_| tuple()).collect()
}

fn dense(tuples: &[(f32, Vec<f32>, f32)]) -> Batch {
    let mut batch = Batch::new(tuples[0].1.len());
    batch.set_weighted(true);
    for (i, (y, x, weight)) in tuples.iter().enumerate() {
        batch.push(*y).unwrap().copy_from_slice(x);
        batch.weights_mut()[i] = *weight;
    }
    batch
}

fn sparse(tuples: &[(f32, Vec<f32>, f32)]) -> Batch {
    let mut batch = Batch::sparse();
    batch.set_weighted(true);
    for (i, (y, x, weight)) in tuples.iter().enumerate() {
        batch.set_dim(x.len());
        let entries = || (0..).zip(x).filter(|(_, x)| **x != 0.0);
        let (indices, values) = batch.push_sparse(*y, entries().count()).unwrap();
        entries().enumerate().for_each(|(k, (j, x))| (indices[k], values[k]) = (j, *x));
        batch.weights_mut()[i] = *weight;
    }
    batch
}

fn mini_batch(tuples: &[(f32, Vec<f32>, f32)]) -> Rc<MiniBatch> {
    let mut rows = Rows::new(false, tuples[0].1.len(), Level::detect());
    let batch = dense(tuples);
    (0..tuples.len()).for_each(|i| rows.push(&batch, i).unwrap());
    Rc::new(MiniBatch::new(Box::new(rows), batch.labels().into()).with_weights(batch.weights().unwrap().into()))
}

fn train(trainer: &mut Trainer, batch: &Batch, epochs: u32) -> Vec<f64> {
    let epoch = |_| {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        trainer.end_epoch().unwrap().loss
    };
    (0..epochs).map(epoch).collect()
}

/// A trainer for dense tuples, as of a small network or not.
fn trainer(hyper: Hyperparameters, dim: usize, classes: usize, small: bool) -> Trainer {
    let mut trainer = Trainer::new(hyper, dim, classes, false).unwrap();
    let mut engine = NetworkEngine::new(hyper, dim, classes, false, Level::detect()).unwrap();
    engine.small = engine.small.take().filter(|_| small);
    trainer.engine = Box::new(engine);
    trainer
}

fn assert_close(a: &ModelParameters, b: &ModelParameters, tolerance: f32) {
    let numbers = |model: &ModelParameters| [&model.weights[..], &model.intercepts[..]].concat();
    for (a, b) in numbers(a).into_iter().zip(numbers(b)) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}");
    }
    assert_eq!((a.dim, a.outputs, a.network), (b.dim, b.outputs, b.network));
}

/// A network in f64, as books have it, on all numbers in one row: those of a [`ModelParameters`].
struct Book {
    network: Network,
    dim: usize,
    outputs: usize,
    numbers: Vec<f64>,
    moments: [Vec<f64>; 2],
    steps: i32,
}

impl Book {
    fn new(model: &ModelParameters) -> Book {
        let numbers: Vec<f64> = model.weights.iter().chain(&model.intercepts).map(|&x| x.into()).collect();
        let moments = [vec![0.0; numbers.len()], vec![0.0; numbers.len()]];
        let (dim, outputs) = (model.dim, model.outputs);
        Book { network: model.network.unwrap(), dim, outputs, numbers, moments, steps: 0 }
    }

    fn activate(&self, z: f64) -> f64 {
        match self.network.activation {
            Activation::Sigmoid => 1.0 / (1.0 + (-z).exp()),
            Activation::Relu => z.max(0.0),
            Activation::Tanh => z.tanh(),
        }
    }

    /// The loss of a tuple.
    fn loss(&self, x: &[f32], y: f32) -> f64 {
        let mut said: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let (mut w, mut b) = (0, self.network.weights(self.dim, self.outputs));
        let layers: Vec<_> = self.network.layers(self.dim, self.outputs).collect();
        for (i, (inputs, outputs)) in layers.iter().enumerate() {
            let unit = |k: usize| {
                let weights = &self.numbers[w + k * inputs..][..*inputs];
                weights.iter().zip(&said).map(|(w, x)| w * x).sum::<f64>() + self.numbers[b + k]
            };
            let z: Vec<f64> = (0..*outputs).map(unit).collect();
            (w, b) = (w + inputs * outputs, b + outputs);
            said = if i + 1 < layers.len() { z.into_iter().map(|z| self.activate(z)).collect() } else { z };
        }
        let binary = |z: f64, positive: bool| (1.0 + (if positive { -z } else { z }).exp()).ln();
        match (self.network.output, &said[..]) {
            (Output::Sigmoid, [z]) => binary(*z, y == 1.0),
            (Output::Sigmoid, many) => many.iter().enumerate().map(|(k, &z)| binary(z, k == y as usize)).sum(),
            (Output::Softmax, many) => many.iter().map(|z| z.exp()).sum::<f64>().ln() - many[y as usize],
            (Output::Identity, z) => (z[0] - f64::from(y)).powi(2) / 2.0,
        }
    }

    /// The gradient of the weighted mean loss, by finite differences.
    fn gradient(&mut self, batch: &[(f32, Vec<f32>, f32)]) -> Vec<f64> {
        let h = 1e-5;
        let mean = |book: &Book| {
            batch.iter().map(|(y, x, weight)| f64::from(*weight) * book.loss(x, *y)).sum::<f64>() / batch.len() as f64
        };
        let all = self.numbers.len();
        let mut one = |i: usize| {
            let before = self.numbers[i];
            self.numbers[i] = before + h;
            let above = mean(self);
            self.numbers[i] = before - h;
            let below = mean(self);
            self.numbers[i] = before;
            (above - below) / (2.0 * h)
        };
        (0..all).map(&mut one).collect()
    }

    fn step(&mut self, batch: &[(f32, Vec<f32>, f32)], hyper: &Hyperparameters) {
        let gradient = self.gradient(batch);
        let (rate, weights) = (hyper.learning_rate, self.network.weights(self.dim, self.outputs));
        self.steps += 1;
        for (i, g) in gradient.into_iter().enumerate() {
            let w = &mut self.numbers[i];
            let shrink = if i < weights { 1.0 - rate * hyper.l2 } else { 1.0 };
            let moments = self.moments.each_mut().map(|moments| &mut moments[i]);
            let step = textbook_step(hyper.optimizer, self.steps, moments, g);
            *w = *w * shrink - rate * step;
            if i < weights {
                *w = w.signum() * (w.abs() - rate * hyper.l1).max(0.0);
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for &(_, activation) in Activation::ALL {
        for (output, classes) in OUTPUTS {
            for (hidden, small) in [(&[4][..], true), (&[5, 3], true), (&[2, 3, 2], false), (&[5, 3], false)] {
                let tuples = tuples(7, 6, classes, 1 + classes as u64);
                let hyper = Hyperparameters { batch_size: 100, ..hyper(hidden, activation, output) };
                let mut engine = NetworkEngine::new(hyper, 6, classes, false, Level::detect()).unwrap();
                let expected = Book::new(&engine.model().unwrap()).gradient(&tuples);
                engine.small = engine.small.take().filter(|_| small);
                let batch = dense(&tuples);
                engine.learn(&batch, 0..7).unwrap();
                engine.take_rows();
                // the gradient in the model's order
                engine.numbers.clone_from(&engine.gradient);
                let found = engine.model().unwrap();
                for (found, expected) in found.weights.iter().chain(&found.intercepts).zip(expected) {
                    let found = -f64::from(*found) / 7.0;
                    assert!((found - expected).abs() < 1e-6 + 1e-5 * expected.abs(), "{found} {expected} {hyper:?}");
                }
            }
        }
    }
}

#[test]
fn two_steps_are_those_that_were_computed_by_hand() {
    let hyper =
        Hyperparameters { batch_size: 1, learning_rate: 0.5, ..hyper(&[1], Activation::Sigmoid, Output::Sigmoid) };
    let mut engine = NetworkEngine::new(hyper, 1, 2, false, Level::detect()).unwrap();
    engine.numbers = vec![0.5, 1.0, 0.0, -0.25];
    let batch = batch_of(1, [(1.0, &[2.0][..]), (0.0, &[-1.0])]);
    for (i, expected, loss) in [
        (0, [0.575_106_2, 1.139_633, 0.037_553_094, -0.058_998_905], 0.481_270_37),
        (1, [0.653_276_1, 1.030_970_9, -0.040_616_84, -0.353_670_25], 0.889_996_17),
    ] {
        engine.totals = Totals::default();
        engine.learn(&batch, i..i + 1).unwrap();
        for (found, expected) in engine.numbers.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert!((engine.totals.loss - loss).abs() < 1e-6);
    }
}

#[test]
fn training_agrees_with_the_book() {
    for (output, classes) in OUTPUTS {
        for optimizer in OPTIMIZERS {
            for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.002, 0.01)] {
                for (batch_size, small) in [(1, true), (5, true), (5, false)] {
                    let (learning_rate, other) = (0.05, hyper(&[4, 3], Activation::Tanh, output));
                    let hyper = Hyperparameters { optimizer, l1, l2, batch_size, learning_rate, ..other };
                    agrees_with_the_book(hyper, classes, small);
                }
            }
        }
    }
}

/// Asserts that three epochs are those of the book, as of a small network or not.
fn agrees_with_the_book(hyper: Hyperparameters, classes: usize, small: bool) {
    let tuples = tuples(13, 4, classes, 5);
    let mut trainer = trainer(hyper, 4, classes, small);
    let mut book = Book::new(&trainer.model().unwrap());
    for _ in 0..3 {
        let mut expected = 0.0;
        for batch in tuples.chunks(hyper.batch_size as usize) {
            expected += batch.iter().map(|(y, x, w)| f64::from(*w) * book.loss(x, *y)).sum::<f64>();
            book.step(batch, &hyper);
        }
        expected /= tuples.iter().map(|tuple| f64::from(tuple.2)).sum::<f64>();
        let weights = &book.numbers[..book.network.weights(4, book.outputs)];
        expected += weights.iter().map(|w| hyper.l2 / 2.0 * w * w + hyper.l1 * w.abs()).sum::<f64>();
        let loss = train(&mut trainer, &dense(&tuples), 1)[0];
        assert!((loss - expected).abs() < 1e-4, "{loss} {expected} {hyper:?}");
    }
    let model = trainer.model().unwrap();
    for (found, expected) in model.weights.iter().chain(&model.intercepts).zip(book.numbers) {
        assert!((f64::from(*found) - expected).abs() < 2e-4, "{found} {expected} {hyper:?}");
    }
}

#[test]
fn sparse_tuples_and_matrices_give_the_same_model_as_dense_ones() {
    for optimizer in OPTIMIZERS {
        for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.01, 0.0)] {
            let tuples = tuples(300, 20, 3, 9);
            let learning_rate = 0.01;
            let hyper = hyper(&[8, 5], Activation::Sigmoid, Output::Softmax);
            let hyper = Hyperparameters { optimizer, l1, l2, batch_size: 60, learning_rate, ..hyper };
            let new = |sparse| Trainer::new(hyper, 20, 3, sparse).unwrap();
            let (mut of_dense, mut of_sparse, mut of_mini_batches) = (new(false), new(true), new(true));
            train(&mut of_dense, &dense(&tuples), 3);
            train(&mut of_sparse, &sparse(&tuples), 3);
            let mut mini_batches = Batch::mini_batches(20);
            for tuples in tuples.chunks(60) {
                mini_batches.push_mini_batch(mini_batch(tuples)).unwrap();
            }
            for _ in 0..3 {
                of_mini_batches.begin_epoch();
                of_mini_batches.learn(&mini_batches, 0..5).unwrap();
                of_mini_batches.end_epoch().unwrap();
            }
            let model = of_dense.model().unwrap();
            assert_close(&of_sparse.model().unwrap(), &model, 1e-5);
            assert_close(&of_mini_batches.model().unwrap(), &model, 1e-5);
        }
    }
}

#[test]
fn products_with_sparse_rows_are_those_with_dense_ones() {
    let tuples = tuples(9, 11, 2, 4);
    let filled = |batch: Batch| {
        let mut rows = Rows::new(batch.is_sparse(), 11, Level::detect());
        (0..9).for_each(|i| rows.push(&batch, i).unwrap());
        rows
    };
    let (of_dense, of_sparse) = (filled(dense(&tuples)), filled(sparse(&tuples)));
    assert_eq!((of_sparse.rows(), of_sparse.columns()), (9, 11));
    assert!(of_dense.bytes() >= 9 * 11 * 4);
    let mut noise = Noise::new(1);
    for width in [1, 3] {
        let m: Vec<f32> = (0..11 * width).map(|_| noise.next()).collect();
        let product = |rows: &Rows| {
            let (mut forth, mut back) = (vec![7.0; 9 * width], vec![1.0; 11 * width]);
            match width {
                1 => rows.times_vector(&m, &mut forth, &mut Vec::new()),
                _ => rows.times_matrix(&m, width, &mut forth, &mut Vec::new()),
            }
            match width {
                1 => rows.vector_times(&forth, &mut back, &mut Vec::new()),
                _ => rows.transposed_times_matrix(&forth, width, &mut back, &mut Vec::new()),
            }
            [forth, back].concat()
        };
        for (a, b) in product(&of_dense).into_iter().zip(product(&of_sparse)) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

proptest! {
    #[test]
    fn how_the_sequence_is_cut_changes_no_bit(
        batch_size in 1u32..700, cuts in prop::collection::vec(0usize..700, 0..6), is_sparse: bool, adam: bool,
        small: bool
    ) {
        let tuples = tuples(700, 9, 2, 2);
        let optimizer = if adam { Optimizer::ADAM } else { Optimizer::Sgd };
        let hyper = Hyperparameters { batch_size, optimizer, ..hyper(&[5], Activation::Relu, Output::Sigmoid) };
        let batch = if is_sparse { sparse(&tuples) } else { dense(&tuples) };
        let new = || if is_sparse { Trainer::new(hyper, 9, 2, true).unwrap() } else { trainer(hyper, 9, 2, small) };
        let (mut whole, mut cut) = (new(), new());
        train(&mut whole, &batch, 2);
        let mut ends = [cuts, vec![0, 700]].concat();
        ends.sort_unstable();
        for _ in 0..2 {
            cut.begin_epoch();
            for pair in ends.windows(2) {
                // of its own memory
                let part = if is_sparse { sparse } else { dense };
                if pair[0] < pair[1] {
                    cut.learn(&part(&tuples[pair[0]..pair[1]]), 0..pair[1] - pair[0]).unwrap();
                }
            }
            cut.end_epoch().unwrap();
        }
        prop_assert_eq!(whole.model().unwrap(), cut.model().unwrap());
    }

    #[test]
    fn what_is_saved_goes_on_as_if_nothing_had_happened(
        batch_size in 1u32..60, is_sparse: bool, which in 0usize..3, l1: bool, l2: bool
    ) {
        let tuples = tuples(130, 9, 3, 2);
        let (l1, l2) = (if l1 { 1e-5 } else { 0.0 }, if l2 { 0.1 } else { 0.0 });
        let optimizer = OPTIMIZERS[which];
        let hyper = Hyperparameters {
            batch_size, optimizer, l1, l2, schedule: Schedule::EXPONENTIAL, learning_rate: 0.05,
            ..hyper(&[5, 4], Activation::Sigmoid, Output::Softmax)
        };
        let batch = if is_sparse { sparse(&tuples) } else { dense(&tuples) };
        let mut whole = Trainer::new(hyper, 9, 3, is_sparse).unwrap();
        let losses = train(&mut whole, &batch, 5);
        let mut first = Trainer::new(hyper, 9, 3, is_sparse).unwrap();
        train(&mut first, &batch, 3);
        let mut second = Trainer::resume(hyper, 3, is_sparse, &first.save(Vec::new())).unwrap();
        prop_assert_eq!(second.model().unwrap(), first.model().unwrap());
        prop_assert_eq!(train(&mut second, &batch, 2), &losses[3..]);
        prop_assert_eq!(second.model().unwrap(), whole.model().unwrap());
    }

    #[test]
    fn forged_bytes_do_no_harm(place in 0usize..1000, byte: u8, cut in 0usize..1000) {
        let tuples = tuples(20, 4, 2, 2);
        let hyper = hyper(&[3], Activation::Sigmoid, Output::Sigmoid);
        let mut trainer = Trainer::new(hyper, 4, 2, true).unwrap();
        train(&mut trainer, &sparse(&tuples), 1);
        let mut saved = trainer.save(Vec::new());
        let place = place % saved.len();
        saved[place] = byte;
        if let Ok(mut forged) = Trainer::resume(hyper, 2, true, &saved) {
            forged.begin_epoch();
            forged.learn(&sparse(&tuples), 0..20).unwrap();
            let _ = forged.end_epoch();
        }
        saved.truncate(cut % saved.len());
        prop_assert!(Trainer::resume(hyper, 2, true, &saved).is_err());
    }
}

#[test]
fn another_network_cannot_go_on() {
    let hyper = hyper(&[3], Activation::Sigmoid, Output::Sigmoid);
    let saved = Trainer::new(hyper, 4, 2, false).unwrap().save(Vec::new());
    let design = hyper.design.unwrap();
    for other in [
        Design { hidden: Hidden::new(&[2, 1]).unwrap(), ..design },
        Design { activation: Activation::Relu, ..design },
        Design { output: Some(Output::Softmax), ..design },
    ] {
        let other = Hyperparameters { design: Some(other), ..hyper };
        assert_eq!(Trainer::resume(other, 2, false, &saved).unwrap_err(), crate::Unfit::OtherWay);
    }
    let linear = Hyperparameters::new(ModelKind::Softmax);
    assert_eq!(Trainer::resume(linear, 2, false, &saved).unwrap_err(), crate::Unfit::OtherWay);
    let reseeded = Hyperparameters { design: Some(Design { seed: 9, ..design }), batch_size: 3, l1: 0.1, ..hyper };
    assert!(Trainer::resume(reseeded, 2, false, &saved).is_ok());
    assert!(Trainer::resume(hyper, 3, false, &saved).is_err());
}

#[test]
fn features_that_come_later_change_nothing_that_was_there() {
    let tuples = tuples(40, 12, 2, 8);
    for optimizer in OPTIMIZERS {
        let hyper = hyper(&[6], Activation::Sigmoid, Output::Sigmoid);
        let hyper = Hyperparameters { optimizer, batch_size: 10, l2: 0.1, learning_rate: 0.1, ..hyper };
        let mut trainer = Trainer::new(hyper, 5, 2, true).unwrap();
        let small: Vec<_> = tuples.iter().map(|(y, x, w)| (*y, x[..5].to_vec(), *w)).collect();
        train(&mut trainer, &sparse(&small), 1);
        let before = trainer.model().unwrap();
        trainer.begin_epoch();
        trainer.learn(&sparse(&tuples), 0..9).unwrap();
        let after = trainer.model().unwrap();
        assert_eq!((trainer.dim(), after.dim, after.weights.len()), (12, 12, 12 * 6 + 6));
        for k in 0..6 {
            assert_eq!(after.weights[k * 12..][..5], before.weights[k * 5..][..5]);
            assert!(after.weights[k * 12..][5..12].iter().all(|w| *w != 0.0));
        }
        assert_eq!((&after.weights[72..], &after.intercepts), (&before.weights[30..], &before.intercepts));
        trainer.learn(&sparse(&tuples), 9..40).unwrap();
        trainer.end_epoch().unwrap();
        let resumed = Trainer::resume(hyper, 2, true, &trainer.save(Vec::new())).unwrap();
        assert_eq!(resumed.model().unwrap(), trainer.model().unwrap());
    }
}

#[test]
fn instruction_sets_differ_in_no_bit_beside_the_products() {
    // sparse features, and layers so small that products have a single sum
    let tuples = tuples(50, 9, 2, 2);
    let hyper = hyper(&[1], Activation::Tanh, Output::Sigmoid);
    let model = |level| {
        let mut engine = NetworkEngine::new(hyper, 9, 2, true, level).unwrap();
        engine.learn(&sparse(&tuples), 0..50).unwrap();
        engine.flush();
        engine.model().unwrap()
    };
    for level in Level::available() {
        assert_eq!(model(level), model(Level::PORTABLE));
    }
}
