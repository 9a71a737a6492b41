//! Nodes of ours in plans, queries of our own, and the planner's hooks that lead to them.

mod callbacks;
pub mod custom_scan;
pub mod estimates;
pub mod explain;
mod extension_nodes;
mod foreign;
mod function_paths;
mod hazard;
mod methods;
pub mod node;
mod origin;
mod paths;
mod plan;
pub mod plan_bytes;
mod planned;
pub mod planner;
pub mod query;
pub mod remote_rows;
mod running;
mod scan;
mod seeks;
mod shards;
mod sorted;
mod spread_rows;
pub mod support;
mod table_sample;
mod walk;

pub use function_paths::FunctionNode;
