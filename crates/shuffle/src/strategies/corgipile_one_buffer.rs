//! The paper's Algorithm 1: an epoch is one buffer, whose blocks are drawn from the whole table again, and its tuples
//! are shuffled.

use super::definition::{BlockOrder, Definition};

pub(super) const DEFINITION: Definition = Definition {
    name: "corgipile_one_buffer",
    blocks: BlockOrder::OneBuffer,
    shuffles_tuples: true,
    permutes: false,
    uncacheable: Some("each epoch reads other blocks"),
    ..Definition::NATURAL
};
