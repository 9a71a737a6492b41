//! Argument `grid`: the points at which models are trained side by side, from the same tuples.
//!
//! A point is what it says and, for the rest, what the other arguments say. It may say what makes a difference to
//! learning only: what makes tuples is the same for all.

use super::call::refused;
use super::chosen::{Options, Point, Rate};
use super::entry::Group;
use super::parse::{self, Parsed};
use super::rounding::AUTO_TIMES;
use super::table;
use errors::{Error, Result, meant};
use loss::{Hyperparameters, Link, ModelKind};
use serde_json::{Map, Value};

/// More points than this are no grid.
const MAX_POINTS: usize = 1_000;

/// What is the same for all points, unless they say something else.
pub struct Base {
    /// `learning_rate` among them
    pub options: Map<String, Value>,
    pub kind: ModelKind,
    pub max_epochs: Option<u32>,
    /// is what is not given chosen by the tuples?
    pub automatic: bool,
}

/// The options that all points share, and the points: one if there is no grid.
pub fn points(base: Base, grid: Option<Value>) -> Result<(Options, Vec<Point>)> {
    let Some(grid) = grid else {
        let (options, point) = base.point(None)?;
        return Ok((options, vec![point]));
    };
    let all = all(grid)?;
    let mut options: Option<Options> = None;
    let mut points = Vec::with_capacity(all.len());
    for says in all {
        let (of_point, point) = base.point(Some(says))?;
        match &mut options {
            None => options = Some(of_point),
            // what some sources refuse is refused at any point
            Some(shared) => {
                shared.batch_size = shared.batch_size.or(of_point.batch_size);
                shared.bounded_steps = shared.bounded_steps.max(of_point.bounded_steps);
            }
        }
        points.push(point);
    }
    Ok((options.ok_or_else(|| invalid("it has no points"))?, points))
}

impl Base {
    fn point(&self, says: Option<Map<String, Value>>) -> Result<(Options, Point)> {
        let (mut options, mut max_epochs, mut rate_times) = (self.options.clone(), self.max_epochs, None);
        for (key, value) in says.iter().flatten() {
            match key.as_str() {
                "learning_rate" if value.is_object() => {
                    let times = value.get(AUTO_TIMES).and_then(Value::as_f64).filter(|times| *times > 0.0);
                    rate_times = Some(times.ok_or_else(|| invalid("learning_rate must be a number"))?);
                }
                "learning_rate" if !value.is_number() => return Err(invalid("learning_rate must be a number")),
                "max_epochs" => max_epochs = Some(epochs(value)?),
                _ => drop(options.insert(key.clone(), value.clone())),
            }
        }
        let says_penalty = ["l1", "l2"].into_iter().any(|key| options.contains_key(key));
        let has_open_decay = !options.contains_key("decay");
        let leaves_solver_open = leaves_solver_open(&options);
        let parsed = parse::parse(options, self.kind, self.automatic)?;
        let Parsed { options, hyperparameters, rate, stopping } = parsed;
        let has_open_batch_size = self.automatic && hyperparameters.design.is_some() && options.batch_size.is_none();
        let has_open_epochs = rate == Rate::Open && max_epochs.is_none();
        let max_epochs = max_epochs.unwrap_or(Hyperparameters::EPOCHS);
        let may_take_newton = leaves_solver_open && rate == Rate::Open && rate_times.is_none() && self.kind.is_smooth();
        let mut point = Point {
            hyperparameters,
            rate,
            rate_times,
            has_open_batch_size,
            has_open_decay,
            has_open_solver: may_take_newton && self.kind.link() == Link::Logarithm,
            may_take_newton,
            has_open_penalty: rate == Rate::Open && !says_penalty && self.kind.has_automatic_penalty(),
            has_open_epochs,
            max_epochs,
            stopping,
            says,
        };
        if rate == Rate::Given {
            point.multiply_rate();
        }
        Ok((options, point))
    }
}

/// Is it for the tuples to say whether Newton's method trains the model? Not if something is said that it knows nothing
/// of. It does where the model has the mean of e^z: a rate that is good for that is far too long for the few rows where
/// it is largest, and these decide what is predicted. It may on several servers.
fn leaves_solver_open(options: &Map<String, Value>) -> bool {
    let is_of_sgd = |group| matches!(group, Some(Group::Optimizer | Group::Schedule));
    let grouped = |name: &str| table::entries().any(|entry| entry.name == name && is_of_sgd(entry.group));
    let of_sgd = |name: &str| parse::OF_SGD.contains(&name) || ["solver", "l1"].contains(&name) || grouped(name);
    !options.keys().any(|name| of_sgd(name))
}

fn epochs(value: &Value) -> Result<u32> {
    let (least, most) = table::limits("max_epochs");
    let whole = value.as_u64().filter(|epochs| (least..=most).contains(epochs));
    whole
        .and_then(|epochs| u32::try_from(epochs).ok())
        .ok_or_else(|| invalid(&format!("max_epochs must be an integer from {least} to {most}")))
}

/// What each point says: the product of an object's arrays, the last of its keys running fastest,
/// or what an array lists.
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
    check_keys(&points)?;
    Ok(points)
}

/// Looks whether points say what they may.
fn check_keys(points: &[Map<String, Value>]) -> Result<()> {
    let known = table::sorted_names(table::entries().filter(|entry| entry.in_grid));
    let Some(key) = points.iter().flat_map(Map::keys).find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    // what is known, but the same for all points, is not misspelt
    let is_known = table::entries().any(|entry| entry.name == key);
    let known = known.join(", ");
    let (reason, meant) = match is_known {
        true => (format!("\"{key}\" must be the same for all points"), String::new()),
        false => (format!("no option is called \"{key}\""), meant("options", key, &known)),
    };
    Err(refused("grid", reason, format!("{meant}The keys of a point are {known}.")))
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
    const FORMS: &str = r#"Write a grid as '{"l2": [0, 0.01]}', or as '[{"l2": 0}, {"l2": 0.01}]'."#;
    refused("grid", reason, FORMS)
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pgrx::prelude::*;
    use serde_json::json;

    fn grid(grid: Value) -> Result<Vec<Point>> {
        let Value::Object(options) = json!({"l2": 0.5, "learning_rate": 0.25}) else { panic!("an object") };
        let base = Base { options, kind: ModelKind::Logistic, max_epochs: Some(7), automatic: true };
        Ok(points(base, Some(grid))?.1)
    }

    #[pg_test]
    fn test_the_last_key_of_a_grid_runs_fastest_and_what_a_point_leaves_out_is_that_of_the_call() {
        let points = grid(json!({"l2": [0, 1], "l1": [0.5, 0.25]})).unwrap();
        let penalties = points.iter().map(|point| (point.hyperparameters.l1, point.hyperparameters.l2));
        assert!(penalties.eq([(0.5, 0.0), (0.5, 1.0), (0.25, 0.0), (0.25, 1.0)]));
        assert!(points.iter().all(|point| point.hyperparameters.learning_rate == 0.25 && point.max_epochs == 7));
        let points = grid(json!([{}, {"max_epochs": 3, "learning_rate": 1}, {"learning_rate": {"auto_times": 2}}]));
        let rates = points.unwrap().into_iter().map(|point| (point.hyperparameters.learning_rate, point.max_epochs));
        assert!(rates.eq([(0.25, 7), (1.0, 3), (0.5, 7)]));
    }

    #[pg_test]
    fn test_a_grid_is_refused_with_a_reason() {
        let axis: Vec<u32> = (1..=40).collect();
        for (wrong, reason) in [
            (json!([]), "it has no points"),
            (json!({"l2": []}), "it has no points"),
            (json!(7), "it must be an object of arrays, or an array of objects"),
            (json!([7]), "it must be an object of arrays, or an array of objects"),
            (json!({"l2": 7}), "the values of \"l2\" must be an array"),
            (json!({"batch_size": axis, "patience": axis}), "it has more than 1000 points"),
            (json!({"learning_rate": ["fast"]}), "learning_rate must be a number"),
            (json!({"learning_rate": [{"auto_times": 0}]}), "learning_rate must be a number"),
            (json!({"max_epochs": [0]}), "max_epochs must be an integer from 1 to 1000000"),
            (json!({"nulls": ["skip"]}), "\"nulls\" must be the same for all points"),
        ] {
            let error = grid(wrong.clone()).err().map(|error| error.to_string());
            assert_eq!(error, Some(format!("invalid value for argument \"grid\": {reason}")), "{wrong}");
        }
    }
}
