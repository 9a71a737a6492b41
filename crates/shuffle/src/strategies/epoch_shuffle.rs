//! A copy in a new random order for every epoch.

use super::definition::{Definition, Sort};

pub(super) const DEFINITION: Definition = Definition {
    name: "epoch_shuffle",
    sort: Sort::EachEpoch,
    uncacheable: Some("epoch_shuffle makes a new copy for each epoch"),
    ..Definition::NATURAL
};
