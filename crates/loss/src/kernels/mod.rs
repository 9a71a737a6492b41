//! The inner loops, written once on chunks of 16 lanes and compiled for several instruction sets.
//!
//! Guarantees: the same bits from every instruction set. Where a multiplication and an addition are fused, they are
//! fused everywhere (a processor without the instruction computes it in f64), and every sum has an order that is
//! written here: lane by lane, then the lanes folded in halves. All that differs is how many lanes a register has.

mod chunks;
mod columns;
mod evaluate;
mod products;

pub use chunks::{Aligned, UNROLL, sum_all, to_chunks};
pub use columns::{Columns, Sums};
pub(crate) use columns::{Standardize, clip_all};
pub(crate) use evaluate::decision;
pub use evaluate::{Decisions, RowDecision, sparse_decision};
pub use products::{add_products, add_rows, lane_products, products};
