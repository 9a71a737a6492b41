//! Which model a row is for: the groups that rows fall into, and what is held out for validation.

use super::folds::FoldSpec;
use serde::{Deserialize, Serialize};

/// Which rows are held out for validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum HoldOut {
    /// those of which this column of booleans is true
    Column(String),
    /// about this many of all rows, drawn by this seed
    Rows { fraction: f64, seed: i64 },
    /// whole blocks, one of each run of 1 / fraction of them
    Blocks { fraction: f64, seed: i64 },
}

/// How rows fall into groups, each of which has a model, and which of them are held out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RowGroupSpec {
    /// the column of the groups
    pub group: Option<String>,
    pub hold_out: Option<HoldOut>,
    /// the folds of a search, if nothing is held out
    pub folds: Option<FoldSpec>,
}

impl RowGroupSpec {
    /// Are all rows of one group, and none held out, nor in folds?
    pub fn is_empty(&self) -> bool {
        self.group.is_none() && self.hold_out.is_none() && self.folds.is_none()
    }

    /// Has another server written what the options can be? A search runs on the coordinator only.
    pub fn is_sound(&self) -> bool {
        let is_fraction = match &self.hold_out {
            Some(HoldOut::Rows { fraction, .. } | HoldOut::Blocks { fraction, .. }) => {
                *fraction > 0.0 && *fraction < 1.0
            }
            Some(HoldOut::Column(_)) | None => true,
        };
        is_fraction && self.folds.is_none()
    }

    /// The columns that it takes, in the sequence in which a decoder expects them.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let flag = match &self.hold_out {
            Some(HoldOut::Column(name)) => Some(name.as_str()),
            _ => None,
        };
        self.group.as_deref().into_iter().chain(flag).chain(self.folds.iter().flat_map(FoldSpec::columns))
    }
}
