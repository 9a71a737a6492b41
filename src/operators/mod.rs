//! The physical operators: SGD over TupleShuffle over BlockShuffle, and what they share.
//!
//! Between our own nodes whole buffers travel ([`tuples::Batch`]); to any other parent each node speaks the executor's
//! protocol of one slot at a time.

pub mod block_shuffle;
mod buffers;
pub mod clusters;
mod column_facts;
mod compressed_type;
mod decoder;
mod default_features;
pub mod feature_profile;
mod loader;
pub mod mini_batches;
pub mod model_evaluation;
pub mod model_rows;
pub mod notices;
mod plan;
pub mod preparation;
pub mod progress;
pub mod reading_groups;
pub mod scan_control;
pub mod sgd;
pub mod shuffle_scan;
mod source;
pub mod tuple_shuffle;
pub mod wanted;
mod worker_rows;

use block_shuffle::BlockShuffle;
pub use buffers::Buffers;
pub use compressed_type::compressed_type;
pub use decoder::{Decoder, DecoderSpec, FeatureColumns, is_vector};
pub use default_features::Takes;
use pg::executor::custom_scan::CustomScan;
use pg::process::parallel::WorkerKind;
pub use source::Source;
use tuple_shuffle::TupleShuffle;

/// Makes the nodes known to PostgreSQL; called once per backend.
pub fn register() {
    BlockShuffle::methods().register();
    TupleShuffle::methods().register();
    sgd::Sgd::methods().register();
    sgd::NodeScan::methods().register();
    shuffle_scan::ShuffleScan::methods().register();
}

/// The kinds of our worker processes.
pub static WORKER_KINDS: [WorkerKind; 3] = [sgd::TRAINING_WORKERS, sgd::SEARCH_WORKERS, loader::KIND];
