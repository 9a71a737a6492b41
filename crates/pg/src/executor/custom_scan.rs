//! Custom scan nodes as a Rust trait.
//!
//! A node implements [`CustomScan`]; the C callbacks are written once, in [`callbacks`](super::callbacks).

use super::explain::Explain;
pub use super::methods::Methods;
pub use super::node::{Flags, Node};
pub use super::scan::Scan;
pub use crate::tuples::slot::Slot;

/// A plan node of ours: what PostgreSQL's executor calls between the start and the end of a query.
pub trait CustomScan: Sized + 'static {
    /// The callbacks, made by [`Methods::new`].
    fn methods() -> &'static Methods;
    /// BeginCustomScan: children are started with [`Node::begin_child`]; no row is read yet, and for plain EXPLAIN
    /// (`eflags.explain_only()`) nothing ever will be.
    fn begin(node: Node<'_>, eflags: Flags) -> Self;
    /// Stores the next row in the node's scan slot (through `node.store_*`), or returns false at the end.
    fn next(&mut self, node: Node<'_>) -> bool;
    /// Starts over; children have not been told yet.
    fn rescan(&mut self, node: Node<'_>);
    /// Releases what the node holds of PostgreSQL; not called on ERROR.
    fn end(&mut self, node: Node<'_>);
    /// The number of blocks of a table of `pages` that the node reads, if not in sequence, by its private text.
    fn seeks(_private: &str, _pages: u32) -> u32 {
        0
    }
    /// Adds the node's properties to EXPLAIN.
    fn explain(&mut self, node: Node<'_>, explain: Explain);
}
