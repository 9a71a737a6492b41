//! Whether a worker can fill the buffers of a training.

use crate::operators::decoder::Decoder;
use crate::options::request::Request;

/// Why a worker cannot fill the buffers of such a training, if it cannot.
pub fn no_loader_because(request: &Request, decoder: &Decoder) -> Option<&'static str> {
    let obstacles = [
        (request.workers > 1, "each of several processes loads its own"),
        (!request.row_groups.is_empty(), "the rows fall into groups or a validation part"),
        (decoder.has_mini_batches(), "the rows are compressed"),
        (request.shuffling.strategy.keeps_tuples(), "the strategy keeps tuples in the buffer"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why)
}
