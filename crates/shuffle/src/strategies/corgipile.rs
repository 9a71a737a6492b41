//! Blocks in random order, and the tuples of a buffer full of blocks shuffled among each other.

use super::definition::{BlockOrder, Definition};

pub(super) const DEFINITION: Definition = Definition {
    name: "corgipile",
    blocks: BlockOrder::Stratified,
    shuffles_tuples: true,
    supports_workers: true,
    ..Definition::NATURAL
};
