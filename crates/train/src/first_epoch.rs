//! Checks that need all rows, made after the first epoch rather than at the end.

use errors::{ArgumentError, Result, excerpt, some_of};
use options::request::Request;
use scan::Buffers;
use shuffle::{FEW_BLOCKS, Geometry};

/// Checks the rows that the first epoch has seen.
pub fn check_first_epoch(request: &Request, buffers: &Buffers) -> Result<()> {
    buffers.decoder.labels().check()?;
    if let (Some(positive), Some(classes)) = (&request.options.positive, buffers.decoder.labels().classes()) {
        check_positive(positive, &classes.names)?;
    }
    notice_few_blocks(request, buffers);
    Ok(())
}

pub fn check_positive(positive: &str, labels: &[String]) -> Result<usize> {
    labels.iter().position(|label| label == positive).ok_or_else(|| {
        let reason = format!("\"{}\" is not one of the labels: {}", excerpt(positive), some_of(labels));
        ArgumentError::InvalidArgument { argument: "positive", reason, hint: None }.into()
    })
}

/// Tells the user if the buffer holds so few blocks that their tuples are barely mixed.
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
        let is_cut = shuffling.is_cut_to_memory(pages) || shuffling.is_a_share() && planned > buffer_blocks;
        pg::notice(
            format!(
                "the buffer holds only {buffer_blocks} of {blocks} blocks, too few to mix them well: the reported loss and \
                 accuracy, computed during the epoch, may differ from the model's"
            ),
            match (pages_per_block > 1, is_cut) {
                (false, false) => "Use a larger buffer_size; '100%' shuffles a small table fully.",
                (true, false) => "Use a smaller block_size, or a larger buffer_size.",
                (false, true) => {
                    "Raise the setting corgipile.max_buffer_memory: it limits the buffer to less than buffer_size."
                }
                (true, true) => {
                    "Use a smaller block_size, or raise the setting corgipile.max_buffer_memory: it limits the \
                     buffer to less than buffer_size."
                }
            },
        );
    }
}
