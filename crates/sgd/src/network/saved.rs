//! A network between two epochs as bytes.

use super::engine::NetworkEngine;
use crate::Hyperparameters;
use crate::bytes::{Reader, Writer};
use simd::Level;

impl NetworkEngine {
    /// Writes everything that learning goes on from, of a network that is flushed.
    pub(super) fn write(&self, to: &mut Writer) {
        to.numbers(&[self.steps.unbiased[0], self.steps.unbiased[1], self.steps.l1_applied]);
        for array in [&self.numbers, &self.first, &self.second] {
            to.slice(array);
        }
    }

    /// The network that was saved, for so many features and classes, to go on with these hyperparameters; None if it is
    /// not one. Nothing may come behind it.
    pub(crate) fn read(
        from: &mut Reader<'_>,
        hyper: Hyperparameters,
        [dim, classes]: [usize; 2],
        sparse: bool,
        level: Level,
    ) -> Option<NetworkEngine> {
        let [first, second, l1_applied] = from.numbers::<[f64; 3]>()?;
        let network = hyper.design?.network(classes);
        let outputs = network.outputs(classes);
        let numbers = network.weights(dim, outputs).checked_add(network.intercepts(outputs))?;
        // before there is any memory for them
        let bytes = numbers.checked_mul((1 + hyper.optimizer.moments()) * size_of::<f32>())?;
        if from.left() != bytes || ![first, second, l1_applied].iter().all(|number| number.is_finite()) {
            return None;
        }
        let mut engine = NetworkEngine::zeros(hyper, dim, classes, sparse, level).ok()?;
        (engine.steps.unbiased, engine.steps.l1_applied) = ([first, second], l1_applied);
        let NetworkEngine { numbers, first, second, .. } = &mut engine;
        for array in [numbers, first, second] {
            from.floats_into(array.iter_mut())?;
        }
        Some(engine)
    }
}
