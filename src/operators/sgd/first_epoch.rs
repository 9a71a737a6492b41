//! What is known only when all rows have been seen once, but should be said before learning on.

use super::request::Request;
use crate::errors::{Notice, Result, TrainingError};
use crate::operators::buffers::Buffers;
use crate::pg;
use shuffle::Geometry;

/// With fewer blocks in the buffer, one block more of a class changes the class's share in it by over a tenth.
const FEW_BLOCKS: u32 = 10;

/// Checks the rows that the first epoch has seen.
///
/// # Errors
/// [`TrainingError::OneClass`], [`TrainingError::NoSuchClass`], [`TrainingError::NoWeight`]
pub fn check_first_epoch(request: &Request, buffers: &Buffers) -> Result<()> {
    buffers.decoder.labels().check()?;
    if buffers.decoder.all_weigh_nothing() {
        return Err(TrainingError::NoWeight.into());
    }
    notice_few_blocks(request, buffers);
    Ok(())
}

/// A small table of which the buffer holds a few pages is learned from page by page.
fn notice_few_blocks(request: &Request, buffers: &Buffers) {
    if buffers.decoder.has_mini_batches() {
        return; // whose mini-batches were mixed when they were made
    }
    let Geometry { pages, buffer_blocks, blocks, pages_per_block } = buffers.report().geometry();
    let shuffling = &request.shuffling;
    if shuffling.strategy.shuffles_tuples() && buffer_blocks < blocks.min(FEW_BLOCKS) {
        // by its pages, or by what arrays take that are TOASTed
        let planned = shuffling.geometry(pages).map_or(buffer_blocks, |planned| planned.buffer_blocks);
        let (are_large, is_cut) = (
            pages_per_block > 1,
            shuffling.is_cut_to_memory(pages) || shuffling.is_a_share() && planned > buffer_blocks,
        );
        pg::report_notice(Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut });
    }
}
