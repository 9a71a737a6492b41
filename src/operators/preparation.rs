//! The preparation pass: epoch 0, over all rows in natural order.
//!
//! It finds the classes of a softmax model or a network and the number of rows of each, the categories of columns of
//! text, and, if asked, mean and deviation of the features. If none of these is needed, there is no such pass.

use super::buffers::Buffers;
use super::decoder::{FeatureColumns, HELD_OUT};
use crate::errors::{Result, TrainingError};
use crate::pg::check_for_interrupts;
use sgd::{Moments, Standardizer};
use tuples::{Batch, TupleSource};

/// Goes through all rows, here or in the worker, and ends the decoder's preparation. `batch` is empty afterwards; the
/// next epoch is still to be begun.
///
/// # Errors
/// [`TrainingError::NoRows`]; what can be wrong with the rows; those of
/// [`Decoder::end_preparation`](super::Decoder::end_preparation).
pub fn prepare(buffers: &mut Buffers, batch: &mut Batch, standardize: bool) -> Result<()> {
    if buffers.prepare_elsewhere()? {
        return Ok(());
    }
    let mut moments: Option<Moments> = None;
    let mut counts: Vec<u64> = Vec::new();
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        buffers.decoder.meet_dim(batch.dim());
        leave_held_out(batch);
        if standardize && batch.dim() > 0 {
            buffers.decoder.check_size(batch.dim(), true)?;
            let dim = if batch.is_sparse() { 0 } else { batch.dim() };
            moments.get_or_insert_with(|| Moments::new(dim)).add(batch)?;
        }
        let labels_of_blocks =
            (0..if batch.has_mini_batches() { batch.len() } else { 0 }).flat_map(|i| batch.mini_batch(i).labels());
        let labels_of_tuples = if batch.has_mini_batches() { &[] } else { batch.labels() };
        for label in labels_of_tuples.iter().chain(labels_of_blocks) {
            let class = buffers.decoder.labels().class(*label);
            if class >= counts.len() {
                counts.resize(class + 1, 0);
            }
            counts[class] += 1;
        }
    }
    if counts.is_empty() {
        return Err(TrainingError::NoRows("train on").into());
    }
    let standardizer = moments.map(|moments| scaling(&moments, buffers.decoder.features()));
    *batch = Batch::dense(0);
    buffers.decoder.end_preparation(&counts, standardizer)
}

/// Removes the tuples that are held out for validation: nothing is learned from them.
fn leave_held_out(batch: &mut Batch) {
    let Some(tags) = batch.tags().filter(|tags| tags.iter().any(|tag| tag & HELD_OUT != 0)) else { return };
    let stay: Vec<u32> = (0..).zip(tags).filter(|(_, tag)| *tag & HELD_OUT == 0).map(|(place, _)| place).collect();
    batch.retain(&stay);
}

/// Sparse features keep their zeros: they are divided by their deviation, but not centred.
fn scaling(moments: &Moments, features: &FeatureColumns) -> Standardizer {
    let mut standardizer = moments.finish();
    if matches!(features, FeatureColumns::Sparse(_)) {
        standardizer.mean.fill(0.0);
    }
    standardizer
}
