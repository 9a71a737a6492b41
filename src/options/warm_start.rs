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
    /// the record of its training
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
