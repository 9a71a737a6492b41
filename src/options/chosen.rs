//! What `options`, and the points of a `grid`, say once they are read.

use super::cache::CacheMode;
use super::choices::choice;
use super::date_parts::DateParts;
use super::nodes::Nodes;
use super::rounding::rounded;
use super::row_groups::HoldOut;
use super::rows::{By, ClassWeight, Clip, Hashing, Nulls, Prepare, Standardize, Transform, Unseen};
use serde_json::{Map, Value};
use sgd::{Extent, Hyperparameters, ModelKind, Schedule, Solver, Stopping};

/// What `options` say beyond the hyperparameters.
#[derive(Default, Clone)]
pub struct Options {
    /// was the size of mini-batches said?
    pub has_batch_size: bool,
    /// was it said that steps are bounded?
    pub wants_bounded_steps: bool,
    /// was it said that the model is the mean of its iterates?
    pub wants_averaging: bool,
    /// which features are standardized
    pub standardize: Standardize,
    /// which numbers are taken by their logarithms, if it was said or is to be chosen
    pub transform: Option<Transform>,
    /// where standardized features are cut off, if it was said or is settled
    pub clip: Option<Clip>,
    /// what to do with NULLs, if it was said
    pub nulls: Option<Nulls>,
    /// column of the rows' weights
    pub weight: Option<String>,
    pub class_weight: Option<ClassWeight>,
    /// what sparse tuples call their first dimension
    pub index_base: Option<u32>,
    /// dimensions of sparse tuples
    pub dimensions: Option<usize>,
    pub unseen: Option<Unseen>,
    /// parts of dates and times that are features in their place
    pub date_parts: Option<DateParts>,
    /// which columns of text are hashed, if it was said or chosen
    pub hash: Option<Hashing>,
    /// whether decoded tuples are kept for the next epochs
    pub cache: Option<CacheMode>,
    /// what is held out for validation
    pub validation: Option<Validation>,
    /// fit probabilities to the decisions, on what is held out
    pub probability: bool,
    /// is a share of the rows held out only because probabilities are wanted?
    pub has_default_validation: bool,
    /// when to stop before the last epoch
    pub stopping: Option<Stopping>,
    pub keep: Keep,
    /// how many versions of the model are kept, if it was said; 0 for all
    pub keep_versions: Option<u32>,
    /// how many epochs are to be trained in all, where this call trains a part of them
    pub planned_epochs: Option<u32>,
    /// whether a warm start measures the rows again
    pub remeasure: bool,
    /// which rows the pass before the first epoch goes through
    pub prepare: Prepare,
    /// whether the source is read together with other sessions, if it was said
    pub share: Option<bool>,
    /// where rows of other servers are trained on
    pub nodes: Nodes,
    /// tell the client of each epoch
    pub notice: bool,
}

impl Options {
    /// What to do with NULLs.
    pub fn nulls(&self) -> Nulls {
        self.nulls.unwrap_or_default()
    }

    /// Holds rows out if probabilities are to be fitted to some, and none are held out anyway.
    pub fn hold_out_for_probabilities(&mut self) {
        if self.probability && self.validation.is_none() {
            self.validation = Some(Validation::Fraction { fraction: Validation::USUAL_FRACTION, by: By::Row });
            self.has_default_validation = true;
        }
    }

    /// Where standardized features of a model of this kind are cut off, unless there is nothing to decide.
    pub fn clip(&self, kind: ModelKind) -> Option<Clip> {
        let is_default = kind == ModelKind::MlpRegression && self.standardize == Standardize::Automatic;
        self.clip.or(is_default.then_some(Clip::DEFAULT))
    }
}

/// What one model is trained with.
#[derive(Debug, Clone)]
pub struct Point {
    /// without a meaning for the learning rate while that is to be chosen
    pub hyperparameters: Hyperparameters,
    pub rate: Rate,
    /// what the learning rate is still to be multiplied by, once there is one
    pub rate_times: Option<f64>,
    /// is the size of mini-batches still to be chosen?
    pub has_open_batch_size: bool,
    /// is the decay of the learning rate the default of the model, or to be chosen together with it?
    pub has_open_decay: bool,
    /// may Newton's method train the model, if it can?
    pub has_open_solver: bool,
    /// are the epochs to be chosen together with the learning rate?
    pub has_open_epochs: bool,
    pub max_epochs: u32,
    pub stopping: Option<Stopping>,
    /// what the grid says of it; None without a grid
    pub says: Option<Map<String, Value>>,
}

/// Where a learning rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// the call, or a default
    Given,
    /// the tuples, which are still to be measured
    Open,
    /// the tuples
    Chosen,
}

/// Rows that are held out for validation.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    Fraction { fraction: f64, by: By },
    Column(String),
}

impl Point {
    /// Would several processes have to average networks, which means nothing, because each step is that of one tuple?
    pub fn averages_networks(&self) -> bool {
        self.hyperparameters.design.is_some() && self.hyperparameters.batch_size == 1 && !self.has_open_batch_size
    }

    /// Newton's method trains the model.
    pub fn take_newton(&mut self) {
        let Hyperparameters { learning_rate, schedule, .. } = Hyperparameters::new(self.hyperparameters.kind);
        let of_newton = Hyperparameters { learning_rate, schedule, ..self.hyperparameters };
        self.hyperparameters =
            Hyperparameters { solver: Solver::Newton, bounded: false, averaging: false, ..of_newton };
        (self.rate, self.has_open_epochs, self.has_open_solver) = (Rate::Given, false, false);
    }

    /// Chooses the learning rate for such data, with this mean of |x|² and this one of the targets, and what else is
    /// open with it.
    pub fn choose_rate(&mut self, data: Extent, mean_square: f64, mean_target: Option<f64>) {
        let Hyperparameters { bounded, averaging, schedule, .. } = self.hyperparameters;
        let chosen = self.hyperparameters.with_automatic_rate(mean_square, mean_target);
        (self.hyperparameters, self.rate) = (Hyperparameters { bounded, averaging, ..chosen }, Rate::Chosen);
        if self.has_open_epochs {
            self.max_epochs = Hyperparameters::automatic_epochs(data);
            self.has_open_epochs = false;
        }
        if matches!(schedule, Schedule::Exponential { .. }) && self.has_open_decay {
            self.hyperparameters = self.hyperparameters.with_automatic_decay(data);
        }
        self.multiply_rate();
    }

    /// Multiplies the learning rate, which is settled, if it is to be. What the point says then says it.
    pub fn multiply_rate(&mut self) {
        let Some(times) = self.rate_times.take() else { return };
        let Hyperparameters { learning_rate, l2, .. } = &mut self.hyperparameters;
        // the penalty must not turn signs
        let longest = if *l2 > 0.0 { 0.5 / *l2 } else { f64::MAX };
        *learning_rate = rounded(*learning_rate * times).clamp(f64::from(f32::MIN_POSITIVE), longest);
        if let Some(says) = &mut self.says {
            says.insert("learning_rate".into(), (*learning_rate).into());
        }
    }
}

impl Validation {
    /// Which part of the rows is held out if rows must be, and nobody has said how many.
    pub const USUAL_FRACTION: f64 = 0.1;

    /// What a decoder is to hold out.
    pub fn hold_out(&self, seed: i64) -> HoldOut {
        match self {
            Validation::Column(name) => HoldOut::Column(name.clone()),
            Validation::Fraction { fraction, by: By::Row } => HoldOut::Rows { fraction: *fraction, seed },
            Validation::Fraction { fraction, by: By::Block } => HoldOut::Blocks { fraction: *fraction, seed },
        }
    }
}

choice! {
    /// Which model is stored.
    Keep {
        /// that of the last epoch
        Last = "last",
        /// that of the epoch with the lowest loss
        Best = "best",
    }
}
