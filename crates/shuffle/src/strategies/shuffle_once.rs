//! A copy in random order, made before the first epoch and read in every one.

use super::definition::{Definition, Sort};

pub(super) const DEFINITION: Definition =
    Definition { name: "shuffle_once", sort: Sort::Once, supports_aggregate: true, ..Definition::NATURAL };
