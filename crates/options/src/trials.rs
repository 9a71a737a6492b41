//! Random points of a search: what is drawn for each option, by the seed.

use super::call::{invalid, refused};
use super::entry::Values;
use super::rounding::{AUTO_TIMES, rounded};
use super::search::TRIALS;
use super::table;
use errors::Result;
use loss::{Link, ModelKind, Solver};
use serde_json::{Map, Value, json};
use shuffle::SortKeys;

/// More points than this are no search.
const MAX_TRIALS: i32 = 1_000;

/// What one option is drawn from.
enum Draw {
    Of(Vec<Value>),
    /// a number from the first to the second: its logarithm is uniform, or itself
    Between {
        least: f64,
        most: f64,
        is_log: bool,
        is_whole: bool,
    },
    /// as many times the rate of a call without it
    TimesAuto {
        least: f64,
        most: f64,
    },
}

/// The points of a search: those of a grid, or `trials` that are drawn; None of neither is [`TRIALS`] that are drawn.
pub fn points(
    grid: Option<Value>,
    trials: Option<i32>,
    given: &dyn Fn(&str) -> bool,
    (kind, solver): (ModelKind, Solver),
    seed: i64,
) -> Result<Value> {
    let trials = match (grid.is_some(), trials) {
        (true, None) => return Ok(grid.unwrap_or_default()),
        (false, None) => TRIALS,
        (_, Some(trials)) if (1..=MAX_TRIALS).contains(&trials) => trials as usize,
        (_, Some(trials)) => return Err(invalid("trials", format!("{trials} is not between 1 and {MAX_TRIALS}"))),
    };
    let (draws, begins_with_default) = match grid {
        Some(grid) => (read(grid)?, false),
        None => (defaults(kind, solver, given), true),
    };
    // draws that differ from those of rows by the same seed
    const SALT: i64 = i64::from_le_bytes(*b"trials\0\0");
    let keys = SortKeys::once(seed ^ SALT);
    let point = |trial: usize| {
        let uniform = |option: usize| unit(keys.key((trial * draws.len() + option) as u64));
        let values = draws.iter().enumerate().map(|(i, (name, draw))| {
            let value = if begins_with_default && trial == 0 { default_of(name, kind) } else { draw.value(uniform(i)) };
            (name.clone(), value)
        });
        Value::Object(values.collect())
    };
    Ok(Value::Array((0..trials).map(point).collect()))
}

/// A key as a number from 0 to 1.
fn unit(key: i64) -> f64 {
    (key.cast_unsigned() >> 11) as f64 / (1_u64 << 53) as f64
}

/// What a call says that no one has given ranges: options that were given stay as they are.
fn defaults(kind: ModelKind, solver: Solver, given: &dyn Fn(&str) -> bool) -> Vec<(String, Draw)> {
    let layers = [json!([16]), json!([100]), json!([64]), json!([128]), json!([32, 32]), json!([64, 32])];
    let l2 = Draw::Between { least: 1e-7, most: 1e-2, is_log: true, is_whole: false };
    let mut draws = vec![("l2".to_owned(), l2)];
    // what Newton's method trains has none
    if kind.link() == Link::Identity && solver == Solver::Sgd {
        draws.insert(0, ("learning_rate".to_owned(), Draw::TimesAuto { least: 0.1, most: 10.0 }));
    }
    if !kind.is_linear() {
        draws.push(("hidden_layer_sizes".to_owned(), Draw::Of(layers.to_vec())));
    }
    draws.retain(|(name, _)| !given(name));
    draws
}

/// What a call without it has.
fn default_of(name: &str, kind: ModelKind) -> Value {
    match name {
        "learning_rate" => json!({ AUTO_TIMES: 1.0 }),
        "l2" => json!(0.0),
        _ => {
            let hidden = loss::Hyperparameters::new(kind).design.map(|design| design.hidden.sizes().to_vec());
            json!(hidden.unwrap_or_default())
        }
    }
}

impl Draw {
    fn value(&self, place: f64) -> Value {
        let between = |least: f64, most: f64, is_log: bool| match is_log {
            true => (least.ln() + place * (most.ln() - least.ln())).exp(),
            false => least + place * (most - least),
        };
        match self {
            Draw::Of(values) => values[((place * values.len() as f64) as usize).min(values.len() - 1)].clone(),
            Draw::TimesAuto { least, most } => json!({ AUTO_TIMES: rounded(between(*least, *most, true)) }),
            Draw::Between { least, most, is_log, is_whole: true } => {
                // each whole number from the first to the second
                let number = between(*least, most + 1.0, *is_log).floor().min(*most);
                json!(number as u64)
            }
            Draw::Between { least, most, is_log, .. } => {
                json!(rounded(between(*least, *most, *is_log)).clamp(*least, *most))
            }
        }
    }
}

/// What a grid says to draw from.
fn read(grid: Value) -> Result<Vec<(String, Draw)>> {
    let Value::Object(options) = grid else {
        return Err(refused("grid", "with trials it must be an object", FORMS));
    };
    options.into_iter().map(|(name, from)| Ok((name.clone(), draw(&name, from)?))).collect()
}

const FORMS: &str =
    r#"Write it as '{"l2": {"min": 1e-6, "max": 0.1}, "batch_size": [1, 16]}'; "scale" can be "log" or "linear"."#;

fn draw(name: &str, from: Value) -> Result<Draw> {
    let is_in_grid = table::entries().find(|entry| entry.in_grid && entry.name == name);
    let is_whole = is_in_grid.is_some_and(|entry| matches!(entry.values, Values::Integer(..)));
    let refuse = |reason: &str| Err(refused("grid", format!("\"{name}\" {reason}"), FORMS));
    match from {
        Value::Array(values) if values.is_empty() => refuse("has no values"),
        Value::Array(values) => Ok(Draw::Of(values)),
        Value::Object(range) => match between(&range, is_whole) {
            Some(draw) => Ok(draw),
            None => refuse("has no range from \"min\" to \"max\", which is above 0 for scale \"log\""),
        },
        _ => refuse("must be an array of values, or a range"),
    }
}

/// A range: by its logarithm, unless it begins at 0 or below, or is said to be linear.
fn between(range: &Map<String, Value>, is_whole: bool) -> Option<Draw> {
    let number = |key: &str| range.get(key).map(|value| value.as_f64().filter(|number| number.is_finite()));
    if range.keys().any(|key| !["min", "max", "scale"].contains(&key.as_str())) {
        return None;
    }
    let (least, most) = (number("min")??, number("max")??);
    let is_log = match range.get("scale").map(|scale| scale.as_str()) {
        None => least > 0.0,
        Some(Some("log")) if least > 0.0 => true,
        Some(Some("linear")) => false,
        Some(_) => return None,
    };
    let can_be = least <= most && (!is_whole || (least >= 0.0 && least.fract() == 0.0 && most.fract() == 0.0));
    can_be.then_some(Draw::Between { least, most, is_log, is_whole })
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn test_trials_are_drawn_from_their_ranges_by_the_seed() {
        let from = json!({"l2": {"min": 1e-6, "max": 0.1}, "l1": {"min": 0, "max": 2}, "batch_size": {"min": 1, "max": 4},
                          "schedule": ["constant", "exponential"]});
        let drawn = |seed| {
            let kind = (ModelKind::Logistic, Solver::Sgd);
            points(Some(from.clone()), Some(400), &|_| false, kind, seed).unwrap().as_array().unwrap().clone()
        };
        let trials = drawn(1);
        assert_eq!(trials, drawn(1));
        assert_ne!(trials, drawn(2));
        let numbers = |name: &str| trials.iter().map(|trial| trial[name].as_f64().unwrap()).collect::<Vec<_>>();
        let share = |name: &str, below: f64| numbers(name).iter().filter(|number| **number < below).count();
        assert!(numbers("l2").iter().all(|l2| (1e-6..=0.1).contains(l2)));
        assert!((150..250).contains(&share("l2", 3e-4)), "logarithms are uniform");
        assert!((150..250).contains(&share("l1", 1.0)), "from 0 on, numbers are");
        assert!(numbers("batch_size").iter().all(|size| [1.0, 2.0, 3.0, 4.0].contains(size)));
        assert!((150..250).contains(&trials.iter().filter(|trial| trial["schedule"] == "constant").count()));
    }

    #[pg_test]
    fn test_without_ranges_the_first_trial_is_the_default_and_what_is_given_is_not_drawn() {
        let names = |kind, given: &'static str| {
            let trials = points(None, None, &|name| name == given, (kind, Solver::Sgd), 1).unwrap();
            let trials = trials.as_array().unwrap().clone();
            assert_eq!(trials.len(), TRIALS);
            trials[0].as_object().unwrap().clone().into_iter().collect::<Vec<_>>()
        };
        let (rate, l2) = (("learning_rate".to_owned(), json!({"auto_times": 1.0})), ("l2".to_owned(), json!(0.0)));
        assert_eq!(names(ModelKind::Svm, ""), [l2.clone(), rate.clone()]);
        assert_eq!(names(ModelKind::Svm, "learning_rate"), [l2]);
        let layers = ("hidden_layer_sizes".to_owned(), json!([100]));
        assert_eq!(names(ModelKind::Mlp, "l2"), [layers, rate]);
    }
}
