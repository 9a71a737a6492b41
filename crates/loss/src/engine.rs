//! What learns: the port between a trainer, which knows epochs, buffers and schedules, and an engine,
//! which knows tuples and steps.

use std::fmt::Debug;
use std::ops::Range;

use tuples::{Batch, OutOfMemory};

use crate::bytes::Coder;
use crate::exchange::{Interrupted, OpenExchange};
use crate::mean::Mean;
use crate::totals::Totals;
use crate::{Collinearity, ModelParameters, Standardizer};

/// What learns. All of its methods but those that learn take a time proportional to the number of weights.
pub trait Engine: Debug {
    /// Features that there are weights for.
    fn dim(&self) -> usize;

    /// Begins the next epoch, also if the last one was not ended.
    fn begin_epoch(&mut self);

    /// Changes the learning rate.
    fn set_rate(&mut self, rate: f64);

    /// Changes the number of the loss, at the begin of an epoch.
    fn set_loss_number(&mut self, _number: f64) {
        unreachable!("a loss without a number")
    }

    /// Leaves the weights of these features of sparse tuples without the penalty of l2, from the first epoch on.
    fn exempt(&mut self, _features: &[u32]) -> Result<(), OutOfMemory> {
        unreachable!("an engine whose penalty is on all weights")
    }

    /// Learns from the tuples at the places `range` of the batch's order; of [mini-batches](tuples::MiniBatch),
    /// each makes a step.
    fn learn(&mut self, batch: &Batch, range: Range<usize>) -> Result<(), OutOfMemory>;

    /// Adds the gradients of the [mini-batches](tuples::MiniBatch) at the places `range` of the batch's order, of which
    /// a later [step](Engine::step_synchronized) is made.
    fn add_mini_batches(&mut self, _: &Batch, _: Range<usize>) -> Result<(), OutOfMemory> {
        unreachable!("no mini-batches")
    }

    /// The most tuples that are worth learning from at once, if it is for the engine to say.
    fn piece(&self) -> Option<usize> {
        None
    }

    /// Which features were another number than 0 in some tuple of the last epoch, if the engine knows.
    fn seen(&self) -> Option<Vec<bool>> {
        None
    }

    /// Tuples of the gradient that has not made a step yet.
    fn pending(&self) -> usize {
        0
    }

    /// Ends an epoch: makes the step of a mini-batch that is not full, and brings all weights up to date.
    fn flush(&mut self) {}

    /// Whether neither a number nor the loss has become infinite or NaN.
    fn is_finite(&self) -> bool;

    /// What the tuples of the epoch add up to.
    fn totals(&self) -> Totals;

    /// The same, to be changed.
    fn totals_mut(&mut self) -> &mut Totals;

    /// |w|² and |w|₁ of a model that is flushed.
    fn norms(&self) -> (f64, f64);

    /// The model as it is now, with every step made but that of a mini-batch that is not full.
    fn model(&self) -> Result<ModelParameters, OutOfMemory>;

    /// Makes this the model of an engine that has not learned anything. It has as many numbers as
    /// [`model`](Engine::model) gives.
    fn set_model(&mut self, model: &ModelParameters);

    /// Adds the model to a mean, of which it is to have this share.
    fn add_to(&mut self, _: &mut Mean, _share: f64) {
        unreachable!("no mean of the models")
    }

    /// Makes one step of the gradients that are pending in all processes, of this many tuples in all.
    fn step_synchronized(&mut self, _tuples: u32, _: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        unreachable!("no replicas, or no mini-batches")
    }

    /// Makes the model, and what the optimizer remembers, the mean of those of all processes, each with its share.
    /// There is no pending gradient.
    fn average_synchronized(&mut self, _shares: &[f64], _: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        unreachable!("no replicas")
    }

    /// Makes what the tuples of the epoch add up to that of all processes. Once in an epoch, before it is ended.
    fn count_synchronized(&mut self, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let own: [Totals; 1] = [self.totals()];
        let all = exchange.gather_all(bytemuck::cast_slice(&own))?;
        let totals = self.totals_mut();
        *totals = Totals::default();
        for words in &all {
            totals.add(&bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)));
        }
        Ok(())
    }

    /// The length of the last step, if it is for the engine to choose: 1 unless it was shortened.
    fn step_length(&self) -> Option<f64> {
        None
    }

    /// Whether the model is the optimum, but for rounding; None if the engine cannot tell.
    fn has_converged(&self) -> Option<bool> {
        None
    }

    /// Features that are combinations of others, or nearly, in the last epoch; none if the engine cannot tell.
    fn collinear(&self, _: Option<&Standardizer>) -> Result<Collinearity, OutOfMemory> {
        Ok(Collinearity::default())
    }

    /// Features that there is memory for.
    fn room(&self) -> usize {
        self.dim()
    }

    /// Writes everything that learning goes on from, of an engine that is flushed; or reads it into a new one that has
    /// as much room. None if what is read is not that.
    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()>;
}

/// |w|² and |w|₁ of weights.
pub fn norms(weights: impl Iterator<Item = f64>) -> (f64, f64) {
    weights.fold((0.0, 0.0), |(squares, magnitudes), w| (squares + w * w, magnitudes + w.abs()))
}
