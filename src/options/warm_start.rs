//! What a warm start takes over: what the arguments do not say is as it was in the training that goes on.

use super::call::TrainArguments;
use super::entry::{Group, Inherited, Needs};
use super::table;
use serde_json::{Map, Value};

/// A training that goes on, as far as its arguments matter.
pub struct Before<'a> {
    pub model: &'a str,
    pub label: &'a str,
    pub features: &'a [String],
    /// the record of its training
    pub record: &'a Map<String, Value>,
}

/// Gives the arguments what they leave open.
pub fn inherit(arguments: &mut TrainArguments, before: &Before) {
    let given = std::mem::take(&mut arguments.options);
    arguments.model.get_or_insert_with(|| before.model.to_owned());
    arguments.label.get_or_insert_with(|| before.label.to_owned());
    arguments.features.get_or_insert_with(|| before.features.iter().cloned().map(Some).collect());
    let decided = decided(&given, before.record);
    // the rate of theorem1 is either given or follows from a
    let takes_schedule = !decided.contains(&Group::Schedule);
    let rate_from_a =
        given.contains_key("a") || (takes_schedule && before.record.get("a").is_some_and(Value::is_number));
    for argument in table::entries().filter(|entry| !entry.is_option() && entry.inherited == Inherited::Record) {
        if let Some(value) = before.record.get(argument.name)
            && !(argument.name == "learning_rate" && rate_from_a)
        {
            arguments.take_over(argument.name, value);
        }
    }
    arguments.options = inherited_options(given, &decided, before.record);
}

/// The groups of which an option is given: the others of the group have their defaults then. An option that says again
/// what was recorded leaves them as they were. So does one that belongs to what was recorded, as momentum does to the
/// optimizer of that name.
fn decided(given: &Map<String, Value>, record: &Map<String, Value>) -> Vec<Group> {
    let says_again = |name: &str| given.contains_key(name) && given.get(name) == record.get(name);
    let goes_with_record = |needs: Option<Needs>| match needs {
        Some(Needs::Word(option, word)) => {
            let is_open = !given.contains_key(option) || says_again(option);
            is_open && record.get(option).and_then(Value::as_str) == Some(word)
        }
        _ => false,
    };
    let decides = |name: &str, needs| given.contains_key(name) && !says_again(name) && !goes_with_record(needs);
    table::options().filter(|option| decides(option.name, option.needs)).filter_map(|option| option.group).collect()
}

/// What decides which weights a training comes to, but for the order of the rows.
const DECISIVE: [&str; 25] = [
    "solver",
    "loss",
    "quantile",
    "loss_epsilon",
    "learning_rate",
    "bounded_steps",
    "averaging",
    "schedule",
    "decay",
    "power",
    "mu",
    "a",
    "optimizer",
    "momentum",
    "beta1",
    "beta2",
    "epsilon",
    "batch_size",
    "l1",
    "l2",
    "weight",
    "class_weight",
    "standardize",
    "nulls",
    "activation",
];

/// Do two records of trainings agree in all that decides which weights they come to?
pub fn decides_the_same(before: &Map<String, Value>, now: &Map<String, Value>) -> bool {
    // what was learned from compressed mini-batches has no size of its own
    let has_no_size = |name: &str| name == "batch_size" && !before.contains_key(name);
    DECISIVE.iter().all(|name| before.get(*name) == now.get(*name) || has_no_size(name))
}

fn inherited_options(
    mut given: Map<String, Value>,
    decided: &[Group],
    record: &Map<String, Value>,
) -> Map<String, Value> {
    for option in table::options().filter(|option| option.inherited == Inherited::Record) {
        let is_decided = option.group.is_some_and(|group| decided.contains(&group));
        let recorded = record.get(option.name).filter(|value| !value.is_null() && !is_decided);
        if let Some(value) = recorded {
            given.entry(option.name).or_insert_with(|| value.clone());
        }
    }
    given
}

#[cfg(any(test, feature = "pg_test"))]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pgrx::prelude::*;

    #[pg_test]
    fn test_what_decides_is_recorded() {
        let is_recorded = |name: &str| table::entries().any(|entry| entry.name == name && entry.record.is_some());
        assert!(DECISIVE.into_iter().all(is_recorded));
    }
}
