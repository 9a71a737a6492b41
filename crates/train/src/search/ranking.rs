//! What came of each point, and which is the best.

use options::search::Score;
use pg::values::output::OutputValue;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// One point of a search, as corgipile_search() returns it.
#[derive(Debug, Clone)]
pub struct SearchRow {
    /// its place among the points of the request, from 0
    pub point: usize,
    pub grid_point: Map<String, Value>,
    /// of each fold; None where training diverged, or R² of labels that are all the same
    pub scores: Vec<Option<f64>>,
    /// of each fold, of the rows held out
    pub losses: Vec<Option<f64>>,
    /// the mean over the folds, rounded, of those that were learned from
    pub epochs: u32,
    /// of the best
    pub model_id: Option<i64>,
    rank: i32,
}

impl SearchRow {
    /// Columns of the result of corgipile_search().
    pub const COLUMNS: usize = 8;

    /// A point that is not ranked yet.
    pub fn new(point: usize, grid_point: Map<String, Value>, folds: usize) -> SearchRow {
        let nothing = vec![None; folds];
        SearchRow { point, grid_point, scores: nothing.clone(), losses: nothing, epochs: 0, model_id: None, rank: 0 }
    }

    /// The mean score; None if training diverged in a fold, or it is undefined there.
    pub fn score(&self) -> Option<f64> {
        mean(&self.scores)
    }

    pub fn loss(&self) -> Option<f64> {
        mean(&self.losses)
    }

    pub fn values(&self) -> [OutputValue; SearchRow::COLUMNS] {
        [
            self.rank.into(),
            Value::Object(self.grid_point.clone()).into(),
            self.score().into(),
            deviation(&self.scores).into(),
            self.loss().into(),
            OutputValue::Doubles(self.scores.clone()),
            (self.epochs as i32).into(),
            self.model_id.into(),
        ]
    }
}

/// Ranks points by their mean scores, then by their mean losses, then as they were listed. Those that have diverged are
/// last.
pub fn rank(rows: &mut [SearchRow], score: Score) {
    let least_is_best = score == Score::Loss;
    rows.sort_by(|a, b| {
        let by_score = match least_is_best {
            true => compare(a.score(), b.score()),
            false => compare(a.score().map(|score| -score), b.score().map(|score| -score)),
        };
        by_score.then_with(|| compare(a.loss(), b.loss())).then(a.point.cmp(&b.point))
    });
    (1..).zip(rows).for_each(|(rank, row)| row.rank = rank);
}

/// Ascending; nothing is behind everything.
fn compare(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

fn mean(numbers: &[Option<f64>]) -> Option<f64> {
    let sum: f64 = numbers.iter().copied().sum::<Option<f64>>()?;
    Some(sum / numbers.len() as f64)
}

/// The standard deviation of a sample; None of one number.
fn deviation(numbers: &[Option<f64>]) -> Option<f64> {
    let mean = mean(numbers)?;
    let squares: f64 = numbers.iter().flatten().map(|number| (number - mean).powi(2)).sum();
    (numbers.len() > 1).then(|| (squares / (numbers.len() - 1) as f64).sqrt())
}
