//! Networks, tuples for them, and a network as books have it.

use loss::{
    Activation, Design, Hidden, Hyperparameters, ModelKind, ModelParameters, Network, Optimizer, Output, Schedule,
};
use tuples::Batch;

use crate::{Noise, textbook_step};

/// One of each kind.
pub const OPTIMIZERS: [Optimizer; 3] =
    [Optimizer::Sgd, Optimizer::Momentum { beta: 0.8 }, Optimizer::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-3 }];

/// The outputs, with classes that they make a difference for; 1 stands for targets that are numbers.
pub const OUTPUTS: [(Output, usize); 5] =
    [(Output::Sigmoid, 2), (Output::Sigmoid, 4), (Output::Softmax, 2), (Output::Softmax, 5), (Output::Identity, 1)];

/// Plain SGD at a constant rate, with mini-batches of 250.
pub fn hyper(hidden: &[u32], activation: Activation, output: Output) -> Hyperparameters {
    let design = Design { hidden: Hidden::new(hidden).unwrap(), activation, output: Some(output), seed: 3 };
    let (learning_rate, batch_size) = (Activation::Sigmoid.learning_rate(), 250);
    let (schedule, optimizer) = (Schedule::Constant, Optimizer::Sgd);
    let other = Hyperparameters::new(if output.has_classes() { ModelKind::Mlp } else { ModelKind::MlpRegression });
    Hyperparameters { design: Some(design), learning_rate, batch_size, schedule, optimizer, ..other }
}

/// Class numbers or targets, features of which about half are 0, and weights.
pub fn tuples(n: usize, dim: usize, classes: usize, seed: u64) -> Vec<(f32, Vec<f32>, f32)> {
    let mut noise = Noise::new(seed);
    let mut tuple = || {
        let features = (0..dim).map(|_| if noise.next() > 0.0 { noise.next() } else { 0.0 }).collect();
        let class = ((noise.next() + 1.0) / 2.0 * classes as f32) as usize;
        let label = if classes > 1 { class.min(classes - 1) as f32 } else { 3.0 * noise.next() };
        (label, features, 1.0 + noise.next())
    };
    (0..n).map(|_| tuple()).collect()
}

/// A dense batch of them.
pub fn dense(tuples: &[(f32, Vec<f32>, f32)]) -> Batch {
    let mut batch = Batch::new(tuples[0].1.len());
    batch.set_weighted(true);
    for (i, (y, x, weight)) in tuples.iter().enumerate() {
        batch.push(*y).unwrap().copy_from_slice(x);
        batch.weights_mut()[i] = *weight;
    }
    batch
}

/// A sparse batch of them, without their zeros.
pub fn sparse(tuples: &[(f32, Vec<f32>, f32)]) -> Batch {
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

/// Asserts that all numbers of two models are within this tolerance, relatively where they are above 1.
pub fn assert_close(a: &ModelParameters, b: &ModelParameters, tolerance: f32) {
    let numbers = |model: &ModelParameters| [&model.weights[..], &model.intercepts[..]].concat();
    for (a, b) in numbers(a).into_iter().zip(numbers(b)) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} {b}");
    }
    assert_eq!((a.dim, a.outputs, a.network), (b.dim, b.outputs, b.network));
}

/// A network in f64, as books have it, on all numbers in one row: those of a [`ModelParameters`].
pub struct Book {
    /// its layers
    pub network: Network,
    dim: usize,
    /// decisions of a tuple
    pub outputs: usize,
    /// weights layer after layer, then intercepts
    pub numbers: Vec<f64>,
    moments: [Vec<f64>; 2],
    steps: i32,
}

impl Book {
    /// The network of this model, before its first step.
    pub fn new(model: &ModelParameters) -> Book {
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
    pub fn loss(&self, x: &[f32], y: f32) -> f64 {
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
    pub fn gradient(&mut self, batch: &[(f32, Vec<f32>, f32)]) -> Vec<f64> {
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

    /// Makes the step of a mini-batch.
    pub fn step(&mut self, batch: &[(f32, Vec<f32>, f32)], hyper: &Hyperparameters) {
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
