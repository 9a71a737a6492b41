//! A network between two epochs as bytes.

use super::Neural;
use crate::Hyperparameters;
use crate::kernels::Level;
use crate::saved::{Reader, Writer};

impl Neural {
    /// Everything that learning goes on from, of a network that is settled.
    pub(crate) fn save(&self, to: &mut Writer) {
        self.unbiased.iter().chain([&self.taken]).for_each(|number| to.double(*number));
        for array in [&self.numbers, &self.first, &self.second] {
            to.floats(array.iter().copied());
        }
    }

    /// The network that was saved, for so many features and classes, to go on with these hyperparameters; None if it is not
    /// one. Nothing may come behind it.
    pub(crate) fn read(
        from: &mut Reader<'_>,
        hyper: Hyperparameters,
        [dim, classes]: [usize; 2],
        sparse: bool,
        level: Level,
    ) -> Option<Neural> {
        let unbiased = [from.double()?, from.double()?];
        let taken = from.double()?;
        let network = hyper.design?.network(classes);
        let outputs = network.outputs(classes);
        let numbers = network.weights(dim, outputs).checked_add(network.intercepts(outputs))?;
        // before there is any memory for them
        let bytes = numbers.checked_mul((1 + hyper.optimizer.moments()) * size_of::<f32>())?;
        if from.left() != bytes || !unbiased.iter().chain([&taken]).all(|number| number.is_finite()) {
            return None;
        }
        let mut neural = Neural::zeros(hyper, dim, classes, sparse, level).ok()?;
        (neural.unbiased, neural.taken) = (unbiased, taken);
        let Neural { numbers, first, second, .. } = &mut neural;
        for array in [numbers, first, second] {
            from.floats_into(array.iter_mut())?;
        }
        Some(neural)
    }
}
