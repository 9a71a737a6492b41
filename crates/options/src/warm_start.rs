//! What a warm start takes over: what the arguments do not say is as it was in the training that goes on.

use super::call::TrainArguments;
use super::entry::{Entry, Group, Needs, Policy};
use super::table;
use serde_json::{Map, Value, json};

/// A training that goes on, as far as its arguments matter.
pub struct Before<'a> {
    pub model: &'a str,
    pub label: &'a str,
    pub features: &'a [String],
    pub record: &'a Map<String, Value>,
}

/// Gives the arguments what they leave open.
pub fn inherit(arguments: &mut TrainArguments, before: &Before) {
    let decided = decided(arguments, before.record);
    // the rate of theorem1 is either given or follows from a
    let takes_schedule = !decided.contains(&Group::Schedule);
    let rate_from_a =
        arguments.says("a").is_some() || (takes_schedule && before.record.get("a").is_some_and(Value::is_number));
    arguments.set_open("model", before.model.into());
    arguments.set_open("label", before.label.into());
    arguments.set_open("features", json!(before.features));
    let is_open = |entry: &&Entry| match entry.group {
        Some(group) => !decided.contains(&group),
        None => !(entry.name == "learning_rate" && rate_from_a),
    };
    for entry in table::entries().filter(|entry| entry.policy.is_taken_over()).filter(is_open) {
        if let Some(value) = before.record.get(entry.name).filter(|value| !value.is_null()) {
            arguments.set_open(entry.name, value.clone());
        }
    }
}

/// The groups of which an option is given: the others of the group have their defaults then. An option that says again
/// what was recorded leaves them as they were. So does one that belongs to what was recorded, as momentum does to the
/// optimizer of that name.
fn decided(given: &TrainArguments, record: &Map<String, Value>) -> Vec<Group> {
    let says_again = |name: &str| given.says(name).is_some() && given.says(name) == record.get(name);
    let goes_with_record = |needs: Option<Needs>| match needs {
        Some(Needs::Word(option, word)) => {
            let is_open = given.says(option).is_none() || says_again(option);
            is_open && record.get(option).and_then(Value::as_str) == Some(word)
        }
        _ => false,
    };
    let decides = |entry: &&Entry| {
        given.says(entry.name).is_some_and(|_| !says_again(entry.name) && !goes_with_record(entry.needs))
    };
    table::options().filter(decides).filter_map(|option| option.group).collect()
}

/// What the arguments say that must be as in the training before, and is not: the reason and the hint of the error.
pub fn other_than_fixed(
    given: &TrainArguments,
    record: impl Fn(&str) -> Option<Value>,
) -> Option<(String, &'static str)> {
    table::entries().find_map(|entry| {
        let Policy::Fixed { unsaid, reason, hint } = entry.policy else { return None };
        let was = entry.checked(&record(entry.name).or(unsaid.map(Value::from))?).ok()?;
        // what it cannot be is refused later
        let is = entry.checked(given.says(entry.name)?).ok()?;
        (is != was).then(|| (reason.replace("{}", was.to_string().trim_matches('"')), hint))
    })
}

/// Do two records of trainings agree in all that decides which weights they come to, but for the order of the rows?
pub fn decides_the_same(before: &Map<String, Value>, now: &Map<String, Value>) -> bool {
    // what was learned from compressed mini-batches has no size of its own
    let has_no_size = |name: &str| name == "batch_size" && !before.contains_key(name);
    let mut decisive = table::entries().filter(|entry| entry.policy == Policy::Decisive).map(|entry| entry.name);
    decisive.all(|name| before.get(name) == now.get(name) || has_no_size(name))
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use crate::request::Request;
    use pgrx::prelude::*;

    /// Models and options that have everything that is recorded.
    fn calls() -> Vec<(&'static str, Value)> {
        vec![
            ("logistic", json!({})),
            ("svm", json!({"weight": "w", "class_weight": {"1": 2}, "nulls": "skip", "standardize": false, "l1": 0.1})),
            ("svm", json!({"probability": true, "keep": "best", "patience": 3, "transform": ["x"], "hash": 8})),
            ("softmax", json!({"optimizer": "momentum", "momentum": 0.5, "batch_size": 8, "date_parts": true})),
            ("linear", json!({"schedule": "theorem1", "mu": 2, "a": 3, "validation_fraction": 0.25})),
            ("linear", json!({"schedule": "inverse_scaling", "power": 0.25, "learning_rate": 0.5, "seed": 7})),
            ("linear", json!({"solver": "newton", "validation_column": "v", "statistics": "exact", "index_base": 0})),
            ("poisson", json!({"l2": 0.5, "l2_on": "categories"})),
            ("linear", json!({"loss": "quantile", "quantile": 0.9, "bounded_steps": false, "decay": 0.5})),
            ("huber", json!({"loss_epsilon": 2, "handle_unknown": "error", "dimensions": 9, "averaging": false})),
            ("mlp", json!({"optimizer": "adam", "beta2": 0.5, "hidden_layer_sizes": [3, 2], "activation": "tanh"})),
            ("mlp", json!({"objective": "regression", "winsorize": 4, "shuffle": "mrs", "tolerance": 0.1})),
        ]
    }

    fn given(model: &str, options: Value) -> TrainArguments {
        let arguments = TrainArguments::of(Some("t".into())).with("model", Some(model));
        arguments.with_options(Some(options), &["seed", "learning_rate", "shuffle"]).unwrap()
    }

    fn record(arguments: TrainArguments) -> (String, Map<String, Value>) {
        let request = Request::new(arguments, None).unwrap();
        (request.kind.name().to_owned(), request.record(request.first_point()))
    }

    fn continued(arguments: TrainArguments, model: &str, record: &Map<String, Value>) -> TrainArguments {
        let mut arguments = arguments;
        inherit(&mut arguments, &Before { model, label: "label", features: &[], record });
        arguments.take::<Value>("features");
        arguments
    }

    #[pg_test]
    fn test_what_decides_is_recorded() {
        let records: Vec<_> = calls().into_iter().map(|(model, options)| record(given(model, options)).1).collect();
        for entry in table::entries().filter(|entry| entry.policy == Policy::Decisive) {
            assert!(records.iter().any(|record| record.contains_key(entry.name)), "{}", entry.name);
        }
    }

    #[pg_test]
    fn test_who_says_nothing_goes_on_as_the_record_says() {
        for (model, options) in calls() {
            let (kind, before) = record(given(model, options.clone()));
            let nothing = TrainArguments::of(Some("t".into()));
            let (_, now) = record(continued(nothing, &kind, &before));
            assert!(decides_the_same(&before, &now), "{model} {options}: {before:?} {now:?}");
            let mut kept = table::entries().filter(|entry| entry.policy.is_taken_over()).map(|entry| entry.name);
            assert!(kept.all(|name| before.get(name) == now.get(name)), "{model} {options}: {before:?} {now:?}");
        }
    }

    #[pg_test]
    fn test_one_of_a_group_gives_the_others_their_defaults() {
        let (kind, before) = record(given("mlp", json!({"optimizer": "adam", "beta1": 0.5, "beta2": 0.5})));
        let now = |options| record(continued(given("mlp", options), &kind, &before)).1;
        for (options, beta1, beta2) in [
            (json!({}), 0.5, 0.5),
            (json!({"optimizer": "adam"}), 0.5, 0.5),
            (json!({"beta1": 0.8}), 0.8, 0.5),
            (json!({"beta1": 0.5}), 0.5, 0.5),
            (json!({"schedule": "constant"}), 0.5, 0.5),
        ] {
            let now = now(options.clone());
            assert_eq!((&now["beta1"], &now["beta2"]), (&json!(beta1), &json!(beta2)), "{options}");
        }
        let other = now(json!({"optimizer": "momentum"}));
        assert!(!other.contains_key("beta1") && other["momentum"] == json!(0.9), "{other:?}");
        let (kind, before) = record(given("linear", json!({"schedule": "theorem1", "mu": 2, "a": 3})));
        let constant = continued(given("linear", json!({"schedule": "constant"})), &kind, &before);
        assert!(constant.says("a").is_none() && constant.says("mu").is_none());
    }

    #[pg_test]
    fn test_what_is_fixed_may_be_said_again_and_not_be_another() {
        let (record, index_base) = (json!({"winsorize": 5.0, "hash": {"buckets": 8, "columns": ["x"]}}), json!(0));
        let was = |name: &str| if name == "index_base" { Some(index_base.clone()) } else { record.get(name).cloned() };
        let reason = |options| other_than_fixed(&given("mlp", options), was).map(|(reason, _)| reason);
        for options in [
            json!({}),
            json!({"winsorize": 5, "index_base": 0.0, "solver": "sgd", "transform": "none"}),
            json!({"hash": {"columns": ["x"], "buckets": 8.0}}),
            // what it cannot be is refused where options are read
            json!({"winsorize": "five", "solver": "simplex"}),
        ] {
            assert_eq!(reason(options.clone()), None, "{options}");
        }
        for (options, words) in [
            (json!({"winsorize": 4}), "clipped at other values"),
            (json!({"winsorize": "auto"}), "clipped at other values"),
            (json!({"hash": "off"}), "hashed differently"),
            (json!({"transform": "auto"}), "other numbers were transformed"),
            (json!({"index_base": 1}), "it was trained with index_base 0"),
            (json!({"solver": "newton"}), "it was trained with solver sgd"),
        ] {
            assert!(reason(options.clone()).is_some_and(|reason| reason.contains(words)), "{options}");
        }
    }
}
