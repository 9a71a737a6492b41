//! The blocks of a running query, and how much they differ.

use super::buffers::Buffers;
use crate::errors::Result;
use pg::check_for_interrupts;
use sgd::{ClusterFactor, ModelKind};
use tuples::{Batch, TupleSource};

/// Reads all rows, block by block.
///
/// # Errors
/// Whatever can be wrong with rows.
pub fn measure_clusters(buffers: &mut Buffers, batch: &mut Batch, kind: ModelKind) -> Result<ClusterFactor> {
    let mut factor = ClusterFactor::new(kind);
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
