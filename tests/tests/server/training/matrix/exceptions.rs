//! Where an invariance cannot hold, and why. A run of the whole matrix fails if an entry is not needed.

use super::outcome::Same;

/// What holds in place of the invariance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Holds {
    /// So much.
    Same(Same),
    /// Nothing.
    Nothing,
    /// The second way is refused with this SQLSTATE.
    Refused(&'static str),
}

/// A rule for the cells of some invariances that have all of these features.
pub struct Exception {
    /// Beginnings of the invariances' names.
    pub invariances: &'static [&'static str],
    /// Any of these features.
    pub features: &'static [&'static str],
    pub holds: Holds,
    pub because: &'static str,
}

pub const EXCEPTIONS: &[Exception] = &[];
