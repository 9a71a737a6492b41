//! CorgiPileSGD: trains models, linear ones or networks, on the tuples from below.
//!
//! The node stands where corgipile_train() stood in FROM. On the first call it trains through all epochs, each a rescan
//! of the plan below, and stores the model. Then it gives a row per epoch. The rows are kept: a rescan gives them again
//! and never trains twice.

mod constant;
mod data_parallel;
mod epoch_row;
mod explain;
mod features;
mod first_epoch;
mod group_order;
mod learn;
mod learners;
mod nodes;
mod opening;
mod phases;
mod resume;
mod search;
mod sigmoids;
mod store;
mod training;
mod validation;
mod workers;

use crate::errors::OrRaise;
use crate::options::call::TrainArguments;
use crate::pg::call::arguments::Arguments;
use crate::pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use crate::pg::executor::explain::Explain;
pub use epoch_row::EpochRow;
pub use features::{check_options, feature_kind};
pub use nodes::{NodeScan, step};
pub use search::{Search, SearchRow, SearchScan};
pub use training::Training;
pub use workers::KIND as TRAINING_WORKERS;

/// State of the node.
pub struct Sgd {
    /// None in the copies of the plan that EvalPlanQual makes and never runs
    training: Option<Training>,
    position: usize,
}

static METHODS: Methods = Methods::new::<Sgd>(c"CorgiPileSGD");

impl CustomScan for Sgd {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> Sgd {
        let open = || {
            let arguments = TrainArguments::of_call(&Arguments::of_node(node));
            Training::open(arguments.or_raise(), node.snapshot(), node.instrument(), eflags).or_raise()
        };
        Sgd { training: (!node.in_eval_plan_qual()).then(open), position: 0 }
    }

    fn next(&mut self, node: Node) -> bool {
        let Some(training) = &mut self.training else { return false };
        let Some(row) = training.rows().or_raise().get(self.position) else { return false };
        self.position += 1;
        node.store_values(&row.values());
        true
    }

    fn rescan(&mut self, _node: Node) {
        self.position = 0;
    }

    fn end(&mut self, _node: Node) {
        if let Some(training) = self.training.take() {
            training.close();
        }
    }

    fn explain(&mut self, _node: Node, explain: Explain) {
        if let Some(training) = &self.training {
            explain::explain(training, explain);
        }
    }
}
