//! Blocks in random order, the tuples within them as they lie.

use super::definition::{BlockOrder, Definition};

pub(super) const DEFINITION: Definition =
    Definition { name: "block_only", blocks: BlockOrder::Random, ..Definition::NATURAL };
