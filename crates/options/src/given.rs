//! The options that are given for a model, each of which is checked.
//!
//! A key that does not exist, or that has nothing to say to the other choices, is an error: a misspelt or misplaced
//! option that is silently ignored costs its user a night of training.

use super::entry::{Entry, Needs, invalid};
use super::table::{self, Options};
use errors::Result;
use loss::{Hyperparameters, ModelKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The options as given.
pub struct Given {
    values: Map<String, Value>,
    kind: ModelKind,
}

impl Given {
    /// Each of them can be what it is, and has something to say to this model and to the other options. All of them are
    /// known.
    pub fn new(values: Map<String, Value>, kind: ModelKind) -> Result<Given> {
        let mut given = Given { values, kind };
        let entries: Vec<&Entry> = table::options().filter(|entry| given.contains(entry.name)).collect();
        entries.iter().try_for_each(|entry| given.check_place(entry))?;
        for entry in entries {
            let checked = entry.checked(&given.values[entry.name])?;
            given.values.insert(entry.name.to_owned(), checked);
        }
        Ok(given)
    }

    /// Has this key something to say?
    fn check_place(&self, entry: &Entry) -> Result<()> {
        let has = match entry.needs {
            None => true,
            Some(Needs::Option(key)) => self.contains(key),
            Some(Needs::Word(key, word)) => {
                self.values.get(key).map_or(Ok(Value::Null), |value| table::entry(key).checked(value))?;
                self.word(key) == word
            }
        };
        if let Some(needs) = entry.needs.filter(|_| !has) {
            return Err(invalid(entry.name, &needs.refusal()));
        }
        match entry.models.refusal() {
            Some(reason) if !entry.models.include(self.kind) => Err(invalid(entry.name, &reason)),
            _ => Ok(()),
        }
    }

    /// Is this option given?
    pub fn contains(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// What is given, or the default; None if there is neither.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.values.get(key).map_or_else(|| table::default(key), |value| T::deserialize(value).ok())
    }

    /// The learning rate; NaN for one that is not finite.
    pub fn learning_rate(&self) -> Option<f64> {
        self.values.get("learning_rate").map(|rate| rate.as_f64().unwrap_or(f64::NAN))
    }

    /// A number that has a default.
    pub fn number(&self, key: &str) -> f64 {
        self.get(key).unwrap_or_default()
    }

    /// One of the words that an option may be, or its default. Options of an optimizer are for that which the model has
    /// by default, too.
    pub fn word(&self, key: &str) -> String {
        self.get(key).unwrap_or_else(|| Hyperparameters::new(self.kind).optimizer.name().to_owned())
    }

    /// What they say beyond the hyperparameters.
    pub fn options(self) -> Options {
        Options::deserialize(Value::Object(self.values)).expect("options that were checked")
    }
}
