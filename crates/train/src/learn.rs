//! How a trainer goes through a part of a buffer.

use errors::Result;
use pg::check_for_interrupts;
use sgd::Trainer;
use std::ops::Range;
use tuples::Batch;

/// Floats that SGD may go through between two looks at pending interrupts: a fraction of a millisecond's work.
const FLOATS_PER_CHUNK: usize = 1 << 18;

/// A stored value of a sparse tuple takes as long as this many floats: its weight lies anywhere in memory.
const FLOATS_PER_ENTRY: usize = 8;

/// Floats that learning from a tuple of the batch goes through on average.
pub fn floats_per_tuple(batch: &Batch) -> usize {
    match () {
        _ if batch.is_sparse() => FLOATS_PER_ENTRY * (batch.nnz() / batch.len().max(1) + 1),
        _ if batch.has_mini_batches() => batch.nnz() / batch.len().max(1) + 1,
        _ => batch.stride(),
    }
}

/// Floats of rows that all models learn from before the next rows come: what the second cache level holds.
const FLOATS_SIDE_BY_SIDE: usize = 1 << 16;

/// Several models learn from these places of a batch's order. All go through a few rows before the next ones come, so
/// that the rows are in the processor's cache.
pub fn learn_side_by_side(
    trainers: &mut [&mut Trainer],
    batch: &Batch,
    outputs: usize,
    places: Range<usize>,
) -> Result<()> {
    if let [trainer] = trainers {
        return learn(trainer, batch, outputs, places);
    }
    let chunk = (FLOATS_SIDE_BY_SIDE / floats_per_tuple(batch)).max(1);
    for from in places.clone().step_by(chunk) {
        for trainer in trainers.iter_mut() {
            learn(trainer, batch, outputs, from..(from + chunk).min(places.end))?;
        }
        check_for_interrupts();
    }
    Ok(())
}

/// Learns from these places of a batch's order, for a model with this many outputs.
pub fn learn(trainer: &mut Trainer, batch: &Batch, outputs: usize, places: Range<usize>) -> Result<()> {
    let floats = floats_per_tuple(batch);
    let chunk = match trainer.piece() {
        Some(_) if batch.has_mini_batches() => 1,
        Some(piece) => piece,
        None => (FLOATS_PER_CHUNK / (floats * outputs)).max(1),
    };
    for from in places.clone().step_by(chunk) {
        trainer.learn(batch, from..(from + chunk).min(places.end))?;
        check_for_interrupts();
    }
    Ok(())
}
