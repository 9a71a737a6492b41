//! The port between those who decode tuples and those who learn from them.
//!
//! It guarantees that a learner can go through the same tuples epoch after epoch without knowing whether they come from
//! heap pages, a spool or a test, and prevents the executor's types from leaking into the algorithms.

use crate::Batch;

/// Anyone who can fill a [`Batch`] epoch after epoch.
pub trait TupleSource {
    /// What can go wrong while reading.
    type Error;

    /// Fills `batch`, the same in every call, with the next buffer of tuples, to be learned from in the order that
    /// [`Batch::order`] then holds: no tuple, or one and the same twice, may be in it, and tuples may stay in the batch
    /// from one call to the next. Returns false, with an empty order, at the end of the epoch.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, Self::Error>;

    /// Rewinds for the next epoch.
    fn next_epoch(&mut self) -> Result<(), Self::Error>;
}
