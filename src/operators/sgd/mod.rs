//! CorgiPileSGD: trains models, linear ones or networks, on the tuples from below.
//!
//! The node stands where corgipile_train() stood in FROM. On the first call it trains through all epochs, each a rescan
//! of the plan below, and stores the model. Then it gives a row per epoch. The rows are kept: a rescan gives them again
//! and never trains twice.

mod constant;
mod cross_fit;
mod data_parallel;
mod epoch_row;
mod explain;
mod fallback;
mod features;
mod first_epoch;
mod group_order;
mod learn;
mod learners;
mod new_trainer;
mod nodes;
mod opening;
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

use crate::errors::Result;
use crate::options::call::TrainArguments;
pub use epoch_row::EpochRow;
pub use features::{check_options, feature_kind};
pub use nodes::{NodeScan, Rows, clusters_at_there, clusters_there, evaluate_there, features_there, step};
use pg::call::arguments::Arguments;
use pg::executor::custom_scan::{Flags, Methods, Node};
use pg::executor::explain::Explain;
use pg::values::output::OutputValue;
use rows_once::{RowsOnce, Work};
pub use search::{SEARCH_WORKERS, Search, SearchRow, SearchScan};
pub use training::Training;
pub use validation::like;
pub use workers::KIND as TRAINING_WORKERS;

pub type Sgd = RowsOnce<Training>;

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
