//! Into which parts the rows of a search fall, for its folds.

use serde::{Deserialize, Serialize};
use shuffle::FoldRule;

/// How rows fall into the parts of which folds are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoldSpec {
    #[serde(with = "FoldRuleVariants")]
    pub rule: FoldRule,
    pub by: FoldsBy,
    pub seed: i64,
    /// the table whose rows are identified by their columns tableoid and ctid, because they come from a sorted copy
    pub reads_place: Option<u32>,
}

/// What decides in which part a row is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FoldsBy {
    /// what identifies the row; classes are cut each by itself if it is stratified
    Row { stratified: bool },
    /// the value of this column
    Group(String),
    /// the time, or number, in this column
    Time(String),
}

/// As serde sees [`FoldRule`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "FoldRule")]
pub enum FoldRuleVariants {
    Each(u32),
    Forward(u32),
    HeldOut,
}

impl FoldSpec {
    /// The columns that it takes, in the sequence in which a decoder expects them.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let column = match &self.by {
            FoldsBy::Row { .. } => None,
            FoldsBy::Group(name) | FoldsBy::Time(name) => Some(name.as_str()),
        };
        let place = if self.reads_place.is_some() { &["tableoid", "ctid"][..] } else { &[] };
        column.into_iter().chain(place.iter().copied())
    }

    /// The column that is named, and is neither label nor feature.
    pub fn column(&self) -> Option<&str> {
        match &self.by {
            FoldsBy::Row { .. } => None,
            FoldsBy::Group(name) | FoldsBy::Time(name) => Some(name),
        }
    }

    /// The column by which they go forward, if they do.
    pub fn time(&self) -> Option<&str> {
        self.column().filter(|_| matches!(self.by, FoldsBy::Time(_)))
    }

    /// The folds, in words.
    pub fn describe(&self) -> String {
        let how = match (&self.by, self.rule) {
            (FoldsBy::Group(name), _) => format!("by {name}"),
            (FoldsBy::Time(name), _) => format!("forward in {name}"),
            (FoldsBy::Row { stratified: true }, _) => "stratified by label".to_owned(),
            (FoldsBy::Row { stratified: false }, _) => "of rows".to_owned(),
        };
        format!("{} {how}", self.rule.folds())
    }
}
