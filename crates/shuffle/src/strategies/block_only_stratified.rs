//! Blocks as `corgipile` draws them, the tuples within them as they lie: what the shuffle of tuples adds, and nothing
//! else.

use super::definition::{BlockOrder, Definition};

pub(super) const DEFINITION: Definition =
    Definition { name: "block_only_stratified", blocks: BlockOrder::Stratified, ..Definition::NATURAL };
