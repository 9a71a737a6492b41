//! The arguments of corgipile_search() that corgipile_train() has not, and what they choose.

use super::call::{invalid, refused};
use super::chosen::{Options, Validation};
use super::folds::{FoldSpec, FoldsBy};
use super::loss::Loss;
use super::parse::argument_choice;
use super::row_groups::RowGroupSpec;
use choices::{Choice, choice};
use errors::Result;
use loss::ModelKind;
use pg::call::arguments::Arguments;
use shuffle::FoldRule;

/// Folds, if it is not said how many.
pub const FOLDS: u32 = 5;

pub const MAX_FOLDS: u32 = 100;

/// Random trials, if there is no grid and it is not said how many.
pub const TRIALS: usize = 20;

/// The arguments as they come; None is NULL.
#[derive(Default)]
pub struct SearchArguments {
    pub trials: Option<i32>,
    pub folds: Option<i32>,
    pub folds_by: Option<String>,
    pub folds_by_time: Option<String>,
    pub stratify: Option<bool>,
    pub score: Option<String>,
}

choice! {
    /// What points are ranked by.
    Score {
        /// the share of rows whose class is right, of models that tell classes apart
        Accuracy = "accuracy",
        /// R², of models that predict numbers
        R2 = "r2",
        /// the loss, of which less is better
        Loss = "loss",
    }
}

/// What a search is to do besides training.
#[derive(Debug, Clone)]
pub struct SearchSpec {
    pub rule: FoldRule,
    /// None: by the model
    score: Option<Score>,
    /// may classes be cut each by itself?
    stratify: bool,
    /// the folds in words, once they are settled
    pub folds: String,
    /// processes that the models are distributed to
    pub workers: u32,
}

impl SearchArguments {
    /// Where they begin among the arguments of a call, behind source, model, label and features, and how many they are.
    const PLACES: std::ops::Range<usize> = 4..10;

    /// Takes them out of a call, and leaves those of corgipile_train().
    pub fn split<'a>(call: Arguments<'a>) -> (SearchArguments, Arguments<'a>) {
        let (own, rest) = call.split(SearchArguments::PLACES);
        let own = SearchArguments {
            trials: own.get(0),
            folds: own.get(1),
            folds_by: own.get(2),
            folds_by_time: own.get(3),
            stratify: own.get(4),
            score: own.get(5),
        };
        (own, rest)
    }

    /// What is asked for, and how rows fall into groups for it.
    pub fn read(&self, options: &Options, seed: i64, workers: u32) -> Result<(SearchSpec, RowGroupSpec)> {
        let score = self.score.as_deref().map(|given| argument_choice("scoring", given)).transpose()?;
        let stratify = self.stratify.unwrap_or(true);
        let by = match (&self.folds_by, &self.folds_by_time) {
            (Some(_), Some(_)) => return Err(invalid("folds_by", "it cannot be combined with folds_by_time")),
            (Some(group), None) => FoldsBy::Group(group.clone()),
            (None, Some(time)) => FoldsBy::Time(time.clone()),
            (None, None) => FoldsBy::Row { stratified: false },
        };
        let is_by_column = !matches!(by, FoldsBy::Row { .. });
        if is_by_column && self.stratify == Some(true) {
            return Err(invalid("stratify", "it applies only to folds of single rows"));
        }
        let stratify = stratify && !is_by_column;
        let spec = |rule| SearchSpec { rule, score, stratify, folds: String::new(), workers };
        if let Some(validation) = options.validation() {
            self.check_no_folds(is_by_column)?;
            let folds = match &validation {
                Validation::Fraction { fraction, .. } => format!("{fraction} of rows held out"),
                Validation::Column(name) => format!("rows held out by {name}"),
            };
            let hold_out = Some(validation.hold_out(seed));
            let held_out = SearchSpec { folds, ..spec(FoldRule::HeldOut) };
            return Ok((held_out, RowGroupSpec { hold_out, ..RowGroupSpec::default() }));
        }
        let folds = self.folds()?;
        let rule = if matches!(by, FoldsBy::Time(_)) { FoldRule::Forward(folds) } else { FoldRule::Each(folds) };
        let folds = Some(FoldSpec { rule, by, seed, reads_place: None });
        Ok((spec(rule), RowGroupSpec { folds, ..RowGroupSpec::default() }))
    }

    fn folds(&self) -> Result<u32> {
        match self.folds.map(|folds| (folds, u32::try_from(folds))) {
            None => Ok(FOLDS),
            Some((_, Ok(folds))) if (2..=MAX_FOLDS).contains(&folds) => Ok(folds),
            Some((folds, _)) => {
                let hint = "For a single validation set, use validation_fraction => 0.2.";
                Err(refused("folds", format!("{folds} is not between 2 and {MAX_FOLDS}"), hint))
            }
        }
    }

    /// A part that is held out takes the place of folds.
    fn check_no_folds(&self, is_by_column: bool) -> Result<()> {
        if self.folds.is_none() && !is_by_column {
            return Ok(());
        }
        let argument = if is_by_column { "folds_by" } else { "folds" };
        let hint = "Leave validation_fraction and validation_column out to use folds.";
        Err(refused(argument, "it cannot be combined with a validation set", hint))
    }
}

impl SearchSpec {
    /// Settles what depends on the kind of the model, and on whether a row is a whole mini-batch.
    pub fn settle(&mut self, kind: ModelKind, has_mini_batches: bool, row_groups: &mut RowGroupSpec) -> Result<()> {
        let of_kind = if kind.is_classifier() { Score::Accuracy } else { Score::R2 };
        let other = if kind.is_classifier() { Score::R2 } else { Score::Accuracy };
        if self.score == Some(other) {
            let hint = format!("It can be \"{}\" or \"loss\".", of_kind.name());
            return Err(refused("scoring", format!("model {kind} has no {}", other.name()), hint));
        }
        self.score =
            self.score.or(Some(if Loss::of(kind).is_none_or(Loss::goes_with_r2) { of_kind } else { Score::Loss }));
        if let Some(folds) = &mut row_groups.folds {
            if let FoldsBy::Row { stratified } = &mut folds.by {
                *stratified = self.stratify && kind.is_classifier() && !has_mini_batches;
            }
            self.folds = folds.describe();
            if has_mini_batches {
                self.folds = format!("{} of mini-batches", folds.rule.folds());
            }
        }
        Ok(())
    }

    /// What points are ranked by, once it is settled.
    pub fn score(&self) -> Score {
        self.score.unwrap_or_default()
    }
}
