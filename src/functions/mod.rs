//! The SQL functions, one file per family. They are declared in sql/.

mod aggregate;
mod calibrate;
mod cluster_factor;
mod coefficients;
mod compress;
mod drift;
mod evaluate;
mod explain;
mod export;
mod importance;
mod io_profile;
mod management;
mod nodes;
mod of_model_and_source;
mod options;
mod predict;
mod progress;
mod reading_groups;
mod search;
mod shuffle;
mod shuffle_order;
mod stat_models;
mod toc;
mod train;
mod train_uda;

use crate::errors::Result;
use crate::operators::sgd::{NodeScan, SearchScan, Sgd};
use crate::operators::shuffle_scan::ShuffleScan;
use pg::catalog::relation::Relation;
use pg::encoding::Text;
use pg::executor::FunctionNode;
use pg::executor::custom_scan::CustomScan;
use pgrx::prelude::*;

/// A source that is given as a text.
fn text(source: Text<'_>) -> Result<String> {
    Ok(source.to_owned())
}

/// The name of a relation that is given by its OID.
fn relation_name(relation: pg_sys::Oid) -> Result<String> {
    Ok(Relation::name_of_oid(relation)?)
}

/// The planner support function of the functions that are nodes. It supports nothing. Calling it loads this library,
/// and with it our planner hook, before the planner looks for hooks in the first statement of a session.
#[pg_extern(sql = false)]
fn corgipile_support(_request: i64) -> i64 {
    0 // a null pointer: no
}

/// The functions that are nodes when they stand in FROM.
pub static NODES: [FunctionNode; 4] = [
    FunctionNode { symbol: c"corgipile_train_wrapper", address: train::corgipile_train_wrapper, methods: Sgd::methods },
    FunctionNode {
        symbol: c"corgipile_search_wrapper",
        address: search::corgipile_search_wrapper,
        methods: SearchScan::methods,
    },
    FunctionNode {
        symbol: c"corgipile_shuffle_wrapper",
        address: shuffle::corgipile_shuffle_wrapper,
        methods: ShuffleScan::methods,
    },
    FunctionNode {
        symbol: c"corgipile_node_training_wrapper",
        address: nodes::corgipile_node_training_wrapper,
        methods: NodeScan::methods,
    },
];
