//! CorgiPileSGD: trains models, linear ones or networks, on the tuples from below.
//!
//! The node stands where corgipile_train() stood in FROM. On the first call it trains through all epochs, each a rescan
//! of the plan below, and stores the model. Then it gives a row per epoch. The rows are kept: a rescan gives them again
//! and never trains twice.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

pub mod by_group;
mod choices;
pub mod clusters;
mod constant;
mod cross_fit;
mod data_parallel;
mod epoch_row;
mod explain;
mod fallback;
pub mod feature_profile;
mod features;
mod first_epoch;
mod group_order;
mod learn;
mod learners;
mod model_choice;
pub mod model_evaluation;
pub mod model_rows;
mod new_trainer;
mod nodes;
mod opening;
mod penalty;
mod phases;
mod processes;
mod resume;
mod rows_once;
mod search;
mod sigmoids;
mod start_again;
mod store;
mod team;
mod together;
mod training;
mod validation;
mod workers;
mod zeros;

pub use epoch_row::EpochRow;
use errors::Result;
pub use features::{check_options, feature_kind};
pub use first_epoch::check_positive;
pub use model_choice::source_and_model;
pub use nodes::{NodeScan, Rows, clusters_at_there, clusters_there, evaluate_there, features_there, step};
use options::call::TrainArguments;
use pg::call::arguments::Arguments;
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use pg::executor::explain::Explain;
use pg::process::parallel::WorkerKind;
use pg::values::output::OutputValue;
use rows_once::{RowsOnce, Work};
use scan::block_shuffle::BlockShuffle;
use scan::shuffle_scan::ShuffleScan;
use scan::tuple_shuffle::TupleShuffle;
pub use search::{SEARCH_WORKERS, Search, SearchRow, SearchScan};
pub use training::Training;
pub use validation::like;
pub use workers::KIND as TRAINING_WORKERS;

pub type Sgd = RowsOnce<Training>;

/// Makes the nodes known to PostgreSQL; called once per backend.
pub fn register() {
    BlockShuffle::methods().register();
    TupleShuffle::methods().register();
    Sgd::methods().register();
    NodeScan::methods().register();
    ShuffleScan::methods().register();
}

pub static WORKER_KINDS: [WorkerKind; 3] = [TRAINING_WORKERS, SEARCH_WORKERS, scan::loader::KIND];

static METHODS: Methods = Methods::new::<Sgd>(c"CorgiPileSGD");

impl Work for Training {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn open(node: Node, flags: Flags) -> Result<Training> {
        let arguments = TrainArguments::of_call(&Arguments::of_node(node))?;
        Training::open(arguments, node.snapshot(), node.instrument(), flags)
    }

    fn row(&mut self, position: usize) -> Result<Option<impl AsRef<[OutputValue]>>> {
        Ok(self.rows()?.get(position).map(EpochRow::values))
    }

    fn close(self) {
        Training::close(self);
    }

    fn show(&self, explain: Explain) {
        explain::explain(self, explain);
    }
}
