//! The row of an epoch.

use loss::EpochReport;
use pg::values::output::OutputValue;
use serde::Serialize;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;

/// One epoch, as corgipile_train() returns it and as it is kept with the model.
#[derive(Debug, Clone, Serialize)]
pub struct EpochRow {
    #[serde(skip)]
    pub model_id: i64,
    pub epoch: i32,
    pub loss: f64,
    /// None for a model without classes
    pub accuracy: Option<f64>,
    pub learning_rate: f64,
    pub tuples: i64,
    /// without a full shuffle before the epoch
    pub seconds: f64,
    /// None for a model with classes
    pub r2: Option<f64>,
    /// time for a full shuffle before the epoch
    pub shuffle_seconds: f64,
    /// loss of the model at the end of the epoch on the rows that are held out; None if none are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// accuracy, or R²
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_score: Option<f64>,
    /// the arguments that the grid overrides for the model, as JSON
    #[serde(skip)]
    pub grid_point: Option<Rc<str>>,
    /// the model's group
    #[serde(skip)]
    pub group_value: Option<Rc<str>>,
}

impl EpochRow {
    /// Columns of the result of corgipile_train().
    pub const COLUMNS: usize = 12;

    /// The row of an epoch of a model that is not stored yet. A loss is to be multiplied by `unit`; `elapsed` is
    /// without the full shuffle before it.
    pub fn new(report: EpochReport, unit: f64, elapsed: Duration, shuffle: Duration) -> EpochRow {
        EpochRow {
            model_id: 0,
            epoch: report.epoch as i32,
            loss: report.loss * unit,
            accuracy: report.accuracy,
            learning_rate: report.learning_rate,
            tuples: report.tuples as i64,
            seconds: elapsed.as_secs_f64(),
            r2: report.r2,
            shuffle_seconds: shuffle.as_secs_f64(),
            validation_loss: None,
            validation_score: None,
            grid_point: None,
            group_value: None,
        }
    }

    /// The loss by which the epochs of a model are compared: that on held out rows, if there are some.
    pub fn deciding_loss(&self) -> f64 {
        self.validation_loss.unwrap_or(self.loss)
    }

    /// Loss and score, for a message.
    pub fn figures(&self) -> String {
        let figure = |name: &str, value: Option<f64>| value.map(|value| format!(", {name} {value:.6}"));
        let more = [
            figure("accuracy", self.accuracy),
            figure("R2", self.r2),
            figure("validation loss", self.validation_loss),
            figure("validation score", self.validation_score),
        ];
        format!("loss {:.6}{}", self.loss, more.into_iter().flatten().collect::<String>())
    }

    /// How many tuples a second were learned from, and how long the training takes if all epochs up to `last` take as
    /// long as this one; perhaps it `may_stop` before.
    pub fn speed(&self, last: u32, may_stop: bool) -> String {
        let seconds = self.seconds + self.shuffle_seconds;
        let rate = self.tuples as f64 / seconds;
        let rate = if rate.is_finite() { format!("{rate:.0} tuples/s") } else { "no time".to_owned() };
        match last.saturating_sub(self.epoch as u32) {
            0 => rate,
            epochs => {
                let at_most = if may_stop { "at most " } else { "" };
                format!("{rate}, {at_most}{} left", duration(seconds * f64::from(epochs)))
            }
        }
    }

    pub fn values(&self) -> [OutputValue; EpochRow::COLUMNS] {
        [
            self.model_id.into(),
            self.epoch.into(),
            self.loss.into(),
            self.accuracy.into(),
            self.learning_rate.into(),
            self.tuples.into(),
            self.seconds.into(),
            self.r2.into(),
            self.validation_loss.into(),
            self.validation_score.into(),
            self.grid_point.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok()).into(),
            self.group_value.as_deref().into(),
        ]
    }
}

/// A time as it is said: 1.5 s, 42 s, 3 min 20 s, 2 h 5 min.
fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}
