//! Nodes of ours in plans, queries of our own, and the planner's hooks that lead to them.

pub mod custom_scan;
pub mod explain;
pub mod extension_nodes;
pub mod planner;
pub mod query;
