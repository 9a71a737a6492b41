//! Checks that need all rows, made after the first epoch rather than at the end.

use crate::errors::{Notice, Result};
use crate::operators::buffers::Buffers;
use crate::options::request::Request;
use shuffle::{FEW_BLOCKS, Geometry};

/// Checks the rows that the first epoch has seen.
///
/// # Errors
/// [`TrainingError::OneClass`](crate::errors::TrainingError::OneClass)
pub fn check_first_epoch(request: &Request, buffers: &Buffers) -> Result<()> {
    buffers.decoder.labels().check()?;
    notice_few_blocks(request, buffers);
    Ok(())
}

/// Tells the user if the buffer holds so few blocks that their tuples are hardly mixed.
fn notice_few_blocks(request: &Request, buffers: &Buffers) {
    if buffers.decoder.has_mini_batches() {
        return; // whose mini-batches were mixed when they were made
    }
    let report = buffers.report();
    let Geometry { pages, buffer_blocks, blocks, pages_per_block } = report.geometry();
    let shuffling = &request.shuffling;
    if shuffling.strategy.shuffles_tuples() && buffer_blocks < blocks.min(FEW_BLOCKS) {
        // the buffer may be small by its pages, or because TOASTed arrays fill it
        let planned = report.planned_geometry.buffer_blocks;
        let (are_large, is_cut) = (
            pages_per_block > 1,
            shuffling.is_cut_to_memory(pages) || shuffling.is_a_share() && planned > buffer_blocks,
        );
        pg::report_notice(Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut });
    }
}
