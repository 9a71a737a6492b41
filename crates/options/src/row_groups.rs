//! Which model a row is for: the groups that rows fall into, and what is held out for validation.

use super::call::refused;
use super::folds::FoldSpec;
use super::request::Request;
use super::rows::UnseenGroup;
use errors::Result;
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
    pub group: Option<String>,
    /// of the model of all rows, the column of the groups whose models have the same name
    pub all_of: Option<String>,
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

impl Request {
    /// Refuses to say what groups that training has not seen are to get, where no name stands for models of groups.
    pub(super) fn check_unseen_group(&self) -> Result<()> {
        let (reason, hint) = match () {
            () if self.options.unseen_group == UnseenGroup::Error => return Ok(()),
            () if self.row_groups.group.is_none() => ("group_by is not given", "Give group_by, or leave it out."),
            () if self.name.is_none() => ("name is not given", "Give name, by which corgipile_predict() is called."),
            () if self.points.len() > 1 => {
                ("a grid trains several models per group", "Train with the best point of the grid.")
            }
            () if self.resume.is_some() => ("warm_start continues one model", "Train the groups without warm_start."),
            () => return Ok(()),
        };
        let reason = format!("it applies to the models of groups under one name, and {reason}");
        Err(refused("unseen_group", reason, hint))
    }

    /// The training of one more model, of all rows, for rows of groups that were not seen: None if it was not asked
    /// for.
    pub fn of_all_rows(&self) -> Option<Request> {
        let column = self.row_groups.group.clone().filter(|_| self.options.unseen_group == UnseenGroup::All)?;
        let mut request = self.clone();
        (request.row_groups.group, request.row_groups.all_of) = (None, Some(column));
        Some(request)
    }
}
