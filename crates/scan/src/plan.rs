//! Puts the shuffling nodes into the plan of a query.

use super::block_shuffle::BlockShuffle;
use super::tuple_shuffle::TupleShuffle;
use options::shuffling::Shuffling;
use pg::executor::query::{Planned, Query};

/// Plans a query so that its rows come shuffled. What is sorted as a whole comes from an ordinary plan. What seeks cost
/// is looked up here, once: the plan tells it to all processes that read the source.
pub fn shuffled(query: Query, shuffling: &Shuffling) -> Planned {
    let shuffling = &Shuffling { pages_cheap_to_seek: query.pages_cheap_to_seek(), ..shuffling.clone() };
    let private = serde_json::to_string(shuffling).expect("a struct of plain values is always JSON");
    query.plan::<TupleShuffle, BlockShuffle>(&private, !shuffling.strategy.sorts())
}
