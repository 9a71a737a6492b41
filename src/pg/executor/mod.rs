//! What the executor does with queries of ours.

pub(super) mod extension_nodes;
