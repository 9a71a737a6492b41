//! Argument `grid`: the points at which models are trained side by side, from the same tuples.
//!
//! A point is what it says and, for the rest, what the other arguments say. It may say what makes a difference to learning
//! only: what makes tuples is the same for all.

use super::options::Options;
use super::request::MAX_EPOCHS;
use crate::errors::{ArgumentError, Error, Result};
use serde_json::{Map, Value};
use sgd::{Hyperparameters, ModelKind, Stopping};

/// More points than this are no grid.
const MAX_POINTS: usize = 1_000;

/// What a point may say: arguments, and keys of options.
const KEYS: [&str; 20] = [
    "a",
    "activation",
    "batch_size",
    "beta1",
    "beta2",
    "decay",
    "epsilon",
    "hidden_layers",
    "l1",
    "l2",
    "learning_rate",
    "max_epochs",
    "momentum",
    "mu",
    "optimizer",
    "output",
    "patience",
    "power",
    "schedule",
    "tolerance",
];

/// What is the same for all points, unless they say something else.
pub struct Base {
    pub options: Option<Value>,
    pub kind: ModelKind,
    pub learning_rate: Option<f64>,
    pub max_epochs: u32,
}

/// What one model is trained with.
#[derive(Debug, Clone)]
pub struct Point {
    pub hyperparameters: Hyperparameters,
    pub max_epochs: u32,
    pub stopping: Option<Stopping>,
    /// what the grid says of it; None without a grid
    pub says: Option<Map<String, Value>>,
}

/// The options that all points share, and the points: one if there is no grid.
///
/// # Errors
/// Those of [`Options::parse`], of any point; [`ArgumentError::InvalidArgument`]
pub fn points(base: Base, grid: Option<Value>) -> Result<(Options, Vec<Point>)> {
    let Some(grid) = grid else {
        let (options, point) = base.point(None)?;
        return Ok((options, vec![point]));
    };
    let all = all(grid)?;
    let mut options = None;
    let mut points = Vec::with_capacity(all.len());
    for says in all {
        let (of_point, point) = base.point(Some(says))?;
        options.get_or_insert(of_point);
        points.push(point);
    }
    Ok((options.ok_or_else(|| invalid("it has no points"))?, points))
}

impl Base {
    fn point(&self, says: Option<Map<String, Value>>) -> Result<(Options, Point)> {
        let (mut learning_rate, mut max_epochs) = (self.learning_rate, self.max_epochs);
        let mut options = self.options.clone();
        for (key, value) in says.iter().flatten() {
            match key.as_str() {
                "learning_rate" => {
                    let rate = value.as_f64().ok_or_else(|| invalid("learning_rate must be a number"))?;
                    learning_rate = Some(rate);
                }
                "max_epochs" => max_epochs = epochs(value)?,
                _ => match options.get_or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(options) => drop(options.insert(key.clone(), value.clone())),
                    _ => return Err(ArgumentError::OptionsNotAnObject.into()),
                },
            }
        }
        let (options, hyperparameters) = Options::parse(options, self.kind, learning_rate)?;
        let stopping = options.stopping;
        Ok((options, Point { hyperparameters, max_epochs, stopping, says }))
    }
}

fn epochs(value: &Value) -> Result<u32> {
    let whole = value.as_u64().and_then(|epochs| u32::try_from(epochs).ok());
    whole
        .filter(|epochs| (1..=MAX_EPOCHS as u32).contains(epochs))
        .ok_or_else(|| invalid(&format!("max_epochs must be a whole number from 1 to {MAX_EPOCHS}")))
}

/// What each point says: the product of an object's arrays, the last of its keys running fastest, or what an array lists.
fn all(grid: Value) -> Result<Vec<Map<String, Value>>> {
    let points = match grid {
        Value::Object(axes) => product(axes)?,
        Value::Array(points) => {
            let object = |point| match point {
                Value::Object(point) => Ok(point),
                _ => Err(invalid("it must be an object of arrays, or an array of objects")),
            };
            points.into_iter().map(object).collect::<Result<Vec<_>>>()?
        }
        _ => return Err(invalid("it must be an object of arrays, or an array of objects")),
    };
    if points.len() > MAX_POINTS {
        return Err(invalid(&format!("it has {} points, more than {MAX_POINTS}", points.len())));
    }
    match points.iter().flat_map(Map::keys).find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(ArgumentError::InvalidArgument {
            argument: "grid",
            reason: format!("\"{key}\" cannot differ from point to point"),
            hint: Some(format!("A point may say {}.", KEYS.join(", "))),
        }
        .into()),
        None => Ok(points),
    }
}

fn product(axes: Map<String, Value>) -> Result<Vec<Map<String, Value>>> {
    let mut points = vec![Map::new()];
    for (key, values) in axes {
        let Value::Array(values) = values else {
            return Err(invalid(&format!("the values of \"{key}\" must be an array")));
        };
        if points.len().saturating_mul(values.len()) > MAX_POINTS {
            return Err(invalid(&format!("it has more than {MAX_POINTS} points")));
        }
        let with = |point: &Map<String, Value>, value: &Value| {
            let mut point = point.clone();
            point.insert(key.clone(), value.clone());
            point
        };
        points = points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
    }
    Ok(points)
}

fn invalid(reason: &str) -> Error {
    ArgumentError::InvalidArgument { argument: "grid", reason: reason.to_owned(), hint: None }.into()
}
