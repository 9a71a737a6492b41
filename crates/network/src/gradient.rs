//! Through the layers and back: what tuples say of every weight.

use loss::design::products;
use loss::design::units::{Activate, AddRows, Derive};
use tuples::pause::{self, PER_PAUSE, pause};
use tuples::{Matrix, OutOfMemory};

use super::engine::{NetworkEngine, fill_up};
use super::losses::LossAndGradient;

impl NetworkEngine {
    /// Makes room for what the units say of this many tuples.
    pub(super) fn reserve(&mut self, rows: usize) -> Result<(), OutOfMemory> {
        let widest = self.layers.iter().map(|layer| layer.outputs).max().unwrap_or(0);
        let activations =
            self.activations.iter_mut().zip(&self.layers).map(|(activations, layer)| (activations, layer.outputs));
        for (numbers, width) in activations.chain([(&mut self.gradients, widest)]) {
            let needed = rows.saturating_mul(width);
            allocation::try_reserve_exact(numbers, needed.saturating_sub(numbers.len()))?;
        }
        Ok(())
    }

    /// Counts tuples and adds their gradients, with minus, to the sum.
    /// There is [room](NetworkEngine::reserve) for them.
    pub(super) fn add_gradient(&mut self, features: &dyn Matrix, labels: &[f32], weights: Option<&[f32]>) {
        self.forward(features);
        let NetworkEngine { activations, totals, network, outputs, level, .. } = self;
        let numbers = &mut activations[network.hidden.sizes().len()][..];
        level.run(LossAndGradient { output: network.output, outputs: *outputs, totals, numbers, labels, weights });
        self.backward(features);
        self.pending += labels.len();
    }

    /// Fills `activations`.
    fn forward(&mut self, features: &dyn Matrix) {
        let rows = features.rows();
        for (i, layer) in self.layers.iter().enumerate() {
            let weights = &self.numbers[layer.weights.clone()];
            let (before, rest) = self.activations.split_at_mut(i);
            let numbers = &mut rest[0];
            numbers.truncate(rows * layer.outputs);
            fill_up(numbers, rows * layer.outputs);
            match before.last() {
                None => features.times_matrix(weights, layer.outputs, numbers, &mut self.scratch),
                Some(inputs) => products::times(inputs, weights, rows, layer.outputs, numbers),
            }
            let activation = (i + 1 < self.layers.len()).then_some(self.network.activation);
            let (scale, intercepts) = (self.steps.scale as f32, &self.numbers[layer.intercepts.clone()]);
            let run = |(numbers, intercepts): (&mut [f32], &[f32])| {
                self.level.run(Activate { activation, numbers, scale, intercepts });
                pause();
            };
            if layer.outputs <= PER_PAUSE {
                numbers.chunks_mut(at_once(layer.outputs)).for_each(|rows| run((rows, intercepts)));
            } else {
                let parts = |row| pause::parts_mut(row).zip(pause::parts(intercepts));
                numbers.chunks_mut(layer.outputs).flat_map(parts).for_each(run);
            }
        }
    }

    /// Goes back from the derivatives by the last layer's numbers, adding what they say of each layer.
    fn backward(&mut self, features: &dyn Matrix) {
        let rows = features.rows();
        for (i, layer) in self.layers.iter().enumerate().rev() {
            let (before, rest) = self.activations.split_at_mut(i);
            let own = &mut rest[0];
            for rows in own.chunks(at_once(layer.outputs)) {
                self.level.run(AddRows { rows, sum: &mut self.gradient[layer.intercepts.clone()] });
                pause();
            }
            let gradient = &mut self.gradient[layer.weights.clone()];
            let Some(inputs) = before.last_mut() else {
                features.transposed_times_matrix(own, layer.outputs, gradient, &mut self.scratch);
                return;
            };
            products::add_transposed_times(inputs, own, rows, layer.outputs, gradient);
            self.gradients.truncate(rows * layer.inputs);
            fill_up(&mut self.gradients, rows * layer.inputs);
            let weights = &self.numbers[layer.weights.clone()];
            products::times_transposed(own, weights, rows, layer.outputs, &mut self.gradients);
            let (activation, scale) = (self.network.activation, self.steps.scale as f32);
            for (gradients, activations) in pause::parts(&self.gradients).zip(pause::parts_mut(inputs)) {
                self.level.run(Derive { activation, gradients, activations, scale });
            }
        }
    }
}

/// Numbers of as many rows as are gone through between two pauses.
fn at_once(width: usize) -> usize {
    (PER_PAUSE / width.max(1)).max(1) * width.max(1)
}
