//! The table's own order, in every epoch. The baseline that suffers from clustered labels.

use super::definition::Definition;

pub(super) const DEFINITION: Definition =
    Definition { name: "no_shuffle", supports_aggregate: true, ..Definition::NATURAL };
