//! The paper's draw: the blocks of a buffer are a simple random sample of the table's, and its tuples are shuffled.

use super::definition::{BlockOrder, Definition};

pub(super) const DEFINITION: Definition =
    Definition { name: "corgipile_simple", blocks: BlockOrder::Random, shuffles_tuples: true, ..Definition::NATURAL };
