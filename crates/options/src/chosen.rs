//! What `options`, and the points of a `grid`, say once they are read.

use super::entry::Policy;
use super::rounding::rounded;
use super::row_groups::HoldOut;
pub use super::rows::Keep;
use super::rows::{By, Clip, Nulls, Standardize};
use super::table;
pub use super::table::Options;
use loss::{Extent, Hyperparameters, ModelKind, Schedule, Solver};
use serde_json::{Map, Value, json};
use sgd::Stopping;

impl Options {
    pub fn nulls(&self) -> Nulls {
        self.nulls.unwrap_or_default()
    }

    /// Which rows are held out for validation: also if that is only because probabilities are to be fitted to some.
    pub fn validation(&self) -> Option<Validation> {
        let fraction = self.validation_fraction.or(self.default_validation());
        let fraction = fraction.map(|fraction| Validation::Fraction { fraction, by: self.validation_by });
        fraction.or(self.validation_column.clone().map(Validation::Column))
    }

    /// The share of the rows that is held out because probabilities are wanted, and nothing was said of validation.
    pub fn default_validation(&self) -> Option<f64> {
        let is_default = self.probability && self.validation_fraction.is_none() && self.validation_column.is_none();
        is_default.then_some(Validation::USUAL_FRACTION)
    }

    /// Where standardized features of a model of this kind are cut off.
    pub fn clip(&self, kind: ModelKind) -> Clip {
        let is_default = kind == ModelKind::MlpRegression && self.standardize == Standardize::Automatic;
        if is_default && self.winsorize == Clip::Automatic { Clip::DEFAULT } else { self.winsorize }
    }

    pub fn record(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut record)) = serde_json::to_value(self) else { panic!("options are an object") };
        // what may differ from point to point is that of its hyperparameters
        record.retain(|name, _| table::entry(name).policy != Policy::OfCall && !table::entry(name).in_grid);
        let always = [
            ("nulls", json!(self.nulls())),
            ("standardize", json!(self.standardize)),
            ("statistics", json!(self.statistics)),
        ];
        record.extend(always.map(|(name, value)| (name.to_owned(), value)));
        if let Some(Validation::Fraction { fraction, by }) = self.validation() {
            record.insert("validation_fraction".into(), json!(fraction));
            record.insert("validation_by".into(), json!(by));
        }
        record
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
    /// is nothing said that Newton's method knows nothing of, if it can train the model?
    pub may_take_newton: bool,
    /// is the penalty to be chosen by the number of rows?
    pub has_open_penalty: bool,
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
            self.max_epochs = self.hyperparameters.automatic_epochs(data);
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
    /// Which part of the rows is held out if rows must be, and no one has said how many.
    pub const USUAL_FRACTION: f64 = 0.1;

    pub fn hold_out(&self, seed: i64) -> HoldOut {
        match self {
            Validation::Column(name) => HoldOut::Column(name.clone()),
            Validation::Fraction { fraction, by: By::Row } => HoldOut::Rows { fraction: *fraction, seed },
            Validation::Fraction { fraction, by: By::Block } => HoldOut::Blocks { fraction: *fraction, seed },
        }
    }
}
