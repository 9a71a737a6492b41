//! The blocks of a running query, and how much they differ.

use super::model_rows::parameters_for;
use decode::Decoder;
use errors::Result;
use model::Model;
use pg::check_for_interrupts;
use scan::Buffers;
use sgd::ClusterFactor;
use tuples::{Batch, TupleSource};

/// At this model, of rows as a decoder gives them.
pub fn factor_at(model: &Model, decoder: &Decoder) -> ClusterFactor {
    ClusterFactor::at(model.kind, parameters_for(model, decoder), model.loss_number)
}

/// Adds all rows, block by block.
pub fn measure_clusters(buffers: &mut Buffers, batch: &mut Batch, mut factor: ClusterFactor) -> Result<ClusterFactor> {
    let mut block = 0;
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        // a block may be larger than the memory, and there may be blocks without tuples
        let next = buffers.report().block;
        if next != block {
            factor.end_block()?;
            block = next;
        }
        factor.add(batch)?;
    }
    factor.end_block()?;
    Ok(factor)
}
