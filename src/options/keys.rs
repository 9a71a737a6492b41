//! The keys of a JSON object, read one by one as the table says.
//!
//! A key that does not exist, or that has nothing to say to the other choices, is an error: a misspelt or misplaced
//! option that is silently ignored costs its user a night of training.

use super::choices::Choice;
use super::entry::{Default, Entry, Needs, Values};
use super::table;
use crate::errors::{ArgumentError, Error, Result, excerpt};
use serde_json::{Map, Value};
use sgd::{Hyperparameters, ModelKind};

/// The options as given.
pub struct Keys {
    keys: Map<String, Value>,
    /// is the optimizer that of the model, because nobody has said another?
    has_default_optimizer: bool,
}

impl Keys {
    /// Each of them with something to say: to this model, and to the other options. All of them are known.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn new(options: Map<String, Value>, kind: ModelKind) -> Result<Keys> {
        let has_default_optimizer = !options.contains_key("optimizer");
        let mut keys = Keys { keys: options, has_default_optimizer };
        // options of an optimizer are for that which the model has by default, too
        let default = Hyperparameters::new(kind).optimizer.name();
        keys.keys.entry("optimizer").or_insert_with(|| default.into());
        for entry in table::options().filter(|entry| keys.keys.contains_key(entry.name)) {
            keys.check_place(entry, kind)?;
        }
        Ok(keys)
    }

    /// Has this key something to say?
    fn check_place(&self, entry: &'static Entry, kind: ModelKind) -> Result<()> {
        if let Some(needs) = entry.needs
            && !self.has(needs)?
        {
            return Err(invalid(entry.name, &needs.refusal()));
        }
        match entry.models.refusal() {
            Some(reason) if !entry.models.include(kind) => Err(invalid(entry.name, &reason)),
            _ => Ok(()),
        }
    }

    fn has(&self, needs: Needs) -> Result<bool> {
        match needs {
            Needs::Word(key, word) => Ok(self.word(key)? == Some(word)),
            Needs::Option(key) => Ok(self.keys.contains_key(key)),
        }
    }

    /// Is this key there?
    pub fn contains(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Is this key one that was given?
    pub fn is_given(&self, key: &str) -> bool {
        self.contains(key) && !(key == "optimizer" && self.has_default_optimizer)
    }

    /// The value of a key, which must be `what`.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn get<T>(&self, key: &str, what: &str, read: impl FnOnce(&Value) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.keys.get(key) else { return Ok(None) };
        read(value).map(Some).ok_or_else(|| not(key, what, value))
    }

    /// A number in its range, or None if it is not given.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        let Values::Number(range) = table::entry(key).values else { panic!("{key} is no number") };
        let number = self.get(key, "a number", Value::as_f64)?;
        match number {
            Some(number) if !range.contains(number) => {
                Err(not(key, &range.words(), self.keys.get(key).unwrap_or(&Value::Null)))
            }
            number => Ok(number),
        }
    }

    /// A number in its range, or its default.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn number_or_default(&self, key: &str) -> Result<f64> {
        Ok(self.number(key)?.unwrap_or_else(|| table::default_number(key)))
    }

    /// A whole number in its range, or None if it is not given.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn integer(&self, key: &str) -> Result<Option<u64>> {
        let (least, most) = table::limits(key);
        let whole = |value: &Value| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            (least as f64..=most as f64).contains(&number).then_some(number as u64)
        };
        self.get(key, &format!("a whole number from {least} to {most}"), whole)
    }

    /// True or false, or the default.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn boolean(&self, key: &str) -> Result<bool> {
        let given = self.get(key, "true or false", Value::as_bool)?;
        Ok(given.unwrap_or(matches!(table::entry(key).default, Default::Boolean(true))))
    }

    /// True or false, or None if it is not given.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn optional_boolean(&self, key: &str) -> Result<Option<bool>> {
        self.get(key, "true or false", Value::as_bool)
    }

    /// The name of a column.
    ///
    /// # Errors
    /// [`ArgumentError::InvalidOption`]
    pub fn column(&self, key: &str) -> Result<Option<String>> {
        self.get(key, "the name of a column", |value| value.as_str().map(str::to_owned))
    }

    /// One of the words that a key may be, the default if it is not given, None if there is neither.
    ///
    /// # Errors
    /// [`ArgumentError::UnknownWord`]
    pub fn word(&self, key: &'static str) -> Result<Option<&'static str>> {
        let Entry { values: Values::Words(words), default, .. } = table::entry(key) else { panic!("{key} is no word") };
        let Some(value) = self.keys.get(key) else {
            return Ok(if let Default::Word(word) = default { Some(*word) } else { None });
        };
        let known = words();
        match known.iter().copied().find(|word| value.as_str() == Some(word)) {
            Some(word) => Ok(Some(word)),
            None => {
                let given = value.as_str().unwrap_or_default().to_owned();
                Err(ArgumentError::UnknownWord { key, given, known }.into())
            }
        }
    }

    /// What a key chooses; None if it is not given.
    ///
    /// # Errors
    /// [`ArgumentError::UnknownWord`]
    pub fn choice<T: Choice>(&self, key: &'static str) -> Result<Option<T>> {
        if !self.contains(key) {
            return Ok(None);
        }
        Ok(self.word(key)?.and_then(T::named))
    }
}

/// The error about an option that must be something else than what is given.
pub fn not(key: &str, what: &str, given: &Value) -> Error {
    invalid(key, &format!("must be {what}, not {}", excerpt(&given.to_string())))
}

/// The error about an option.
pub fn invalid(key: &str, reason: &str) -> Error {
    ArgumentError::InvalidOption { key: key.to_owned(), reason: reason.to_owned() }.into()
}
