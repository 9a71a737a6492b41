//! What the table says of an argument or an option.

use super::loss::Loss;
use super::rows::{ClassWeight, whole};
use errors::{ArgumentError, Error, Result, did_you_mean, excerpt};
use loss::{ModelKind, Range};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An argument of corgipile_train(), or a key of its argument `options`.
pub struct Entry {
    pub name: &'static str,
    pub place: Place,
    pub values: Values,
    pub default: Default,
    pub models: Models,
    /// what else has to be given for it to say anything
    pub needs: Option<Needs>,
    /// who gives one of a group, gives all of it: in a warm start the others have their defaults
    pub group: Option<Group>,
    /// may it differ from point to point of a grid?
    pub in_grid: bool,
    /// what a warm start makes of it
    pub policy: Policy,
    /// a value as it is recorded, None if it cannot be; of what has a type of its own
    pub read: Option<fn(&Value) -> Option<Value>>,
    /// one line of documentation
    pub description: &'static str,
}

/// Where it stands in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// an argument of this type, which is taken out of `options` if it is a key there
    Argument(&'static str),
    /// a key of `options`
    Option,
    /// a key of `options` that is an argument of this type, too
    NamedOption(&'static str),
    /// an argument of this type that is no key
    Only(&'static str),
}

/// What it may be.
#[derive(Clone, Copy)]
pub enum Values {
    Boolean,
    Number(Range),
    /// whole numbers from the first to the second
    Integer(u64, u64),
    /// one of these words, of which the first is the default
    Words(fn() -> Vec<&'static str>),
    /// the name of a column
    Column,
    /// what can be [read](Entry::read): its type in JSON, what it may be, and the same in a sentence
    Read(&'static str, &'static str, fn() -> String),
    /// anything of the argument's type; what else there is to say of it
    Any(Option<&'static str>),
}

/// What it is if it is not given.
#[derive(Clone, Copy)]
pub enum Default {
    None,
    Boolean(bool),
    Number(f64),
    Integer(u64),
    Word(&'static str),
    /// it depends on other choices, and this is what to say of it: of one model, or of all
    Depends(fn(Option<ModelKind>) -> String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Models {
    All,
    /// models that tell classes apart
    Classifiers,
    /// those without hidden layers
    Linear,
    /// those with one decision and a loss that has a second derivative
    Smooth,
    /// linear models that predict numbers, and SVMs
    WithLosses,
    /// those that tell classes apart, but have no probabilities by themselves
    WithoutProbabilities,
    /// those whose loss has a number of this name
    LossNumber(&'static str),
    Networks,
}

/// What else has to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// an option, with this word
    Word(&'static str, &'static str),
    Option(&'static str),
}

/// Options that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Schedule,
    Optimizer,
    Validation,
}

/// What a warm start makes of an argument or option, and whether it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It belongs to the call, and is forgotten with it.
    OfCall,
    /// The record tells it, but a warm start does not take it over.
    Told,
    /// It follows from what the model is.
    OfModel,
    /// It is taken over from the record, unless the call says something else.
    Kept,
    /// So it is, and if the call says something else, it is a new training that begins with the weights.
    Decisive,
    /// It is taken over, and the call may not say anything else. The record of who has said nothing of it is as if it
    /// said `unsaid`; None: then anything goes. In `reason`, {} is what it was.
    Fixed { unsaid: Option<&'static str>, reason: &'static str, hint: &'static str },
}

impl Policy {
    /// Does a warm start take it over from the record?
    pub fn is_taken_over(self) -> bool {
        matches!(self, Policy::Kept | Policy::Decisive | Policy::Fixed { .. })
    }
}

/// An option of all models that a warm start takes over, and that differs from point to point of no grid. The table
/// gives it name and description.
pub const fn option(values: Values, default: Default) -> Entry {
    Entry {
        name: "",
        place: Place::Option,
        values,
        default,
        models: Models::All,
        needs: None,
        group: None,
        in_grid: false,
        policy: Policy::Kept,
        read: None,
        description: "",
    }
}

/// An argument of this type that belongs to the call.
pub const fn argument(sql_type: &'static str, values: Values, default: Default) -> Entry {
    Entry { place: Place::Argument(sql_type), policy: Policy::OfCall, ..option(values, default) }
}

/// How a training learns: it may differ from point to point.
pub const fn learning(values: Values, default: Default) -> Entry {
    Entry { in_grid: true, policy: Policy::Decisive, ..option(values, default) }
}

/// What the type of an option makes of a value: the value as it is recorded, None if it cannot be.
pub fn read<T: Serialize + DeserializeOwned>(value: &Value) -> Option<Value> {
    let value = T::deserialize(value).ok().filter(|_| !value.is_null())?;
    serde_json::to_value(value).ok()
}

impl Entry {
    /// An argument of this type, too.
    pub const fn named(self, sql_type: &'static str) -> Entry {
        Entry { place: Place::NamedOption(sql_type), ..self }
    }

    pub const fn of(self, models: Models) -> Entry {
        Entry { models, ..self }
    }

    pub const fn in_group(self, group: Group) -> Entry {
        Entry { group: Some(group), ..self }
    }

    /// It says something only where option `key` is `word`, with which it makes a group.
    pub const fn with(self, group: Group, key: &'static str, word: &'static str) -> Entry {
        Entry { needs: Some(Needs::Word(key, word)), ..self.in_group(group) }
    }

    pub const fn warm_start(self, policy: Policy) -> Entry {
        Entry { policy, ..self }
    }

    /// Is it read as a key of `options`?
    pub fn is_option(&self) -> bool {
        matches!(self.place, Place::Option | Place::NamedOption(_))
    }

    pub fn is_key(&self) -> bool {
        !matches!(self.place, Place::Only(_))
    }

    /// Its type as an argument; None if it is not one.
    pub fn sql_type(&self) -> Option<&'static str> {
        match self.place {
            Place::Argument(sql_type) | Place::NamedOption(sql_type) | Place::Only(sql_type) => Some(sql_type),
            Place::Option => None,
        }
    }

    /// Its type: SQL's of an argument, JSON's of what is only an option.
    pub fn type_name(&self) -> String {
        match (self.sql_type(), self.values) {
            (Some(sql_type), _) => sql_type.to_owned(),
            (_, Values::Boolean) => "JSON boolean".into(),
            (_, Values::Number(_) | Values::Integer(..)) => "JSON number".into(),
            (_, Values::Words(_) | Values::Column | Values::Any(_)) => "JSON string".into(),
            (_, Values::Read(json_type, ..)) => format!("JSON {json_type}"),
        }
    }

    /// What it is, if it is not given, for this model, or for all; None if that is nothing.
    pub fn default_text(&self, model: Option<ModelKind>) -> Option<String> {
        match self.default {
            Default::Number(value) if value != 0.0 && value.abs() < 1e-4 => Some(format!("{value:e}")),
            Default::Number(value) => Some(value.to_string()),
            Default::Word(word) => Some(word.to_owned()),
            Default::Depends(text) => Some(text(model)),
            other => other.value().map(|value| value.to_string()),
        }
    }

    /// What it may be; None if its type says that.
    pub fn range_text(&self) -> Option<String> {
        match self.values {
            Values::Boolean | Values::Column => None,
            Values::Number(range) => Some(range.to_string()),
            Values::Integer(least, most) => Some(format!("{least} to {most}")),
            Values::Words(words) => Some(words().join(", ")),
            Values::Read(_, range, _) => Some(range.to_owned()),
            Values::Any(range) => range.map(str::to_owned),
        }
    }

    /// The models it applies to, and what has to be given with it.
    pub fn applies_to(&self) -> String {
        let models = match self.models {
            Models::All => "all models".to_owned(),
            some => names(|kind| some.include(kind)).join(", "),
        };
        match self.needs {
            Some(Needs::Word(key, word)) => format!("{models}, with {key} {word}"),
            Some(Needs::Option(key)) => format!("{models}, with {key}"),
            None => models,
        }
    }

    /// A value of it as it is recorded.
    pub fn checked(&self, value: &Value) -> Result<Value> {
        let is = |is: bool| is.then(|| value.clone());
        let checked = match self.values {
            Values::Boolean => is(value.is_boolean()),
            Values::Number(range) => value.as_f64().filter(|number| range.contains(*number)).map(Value::from),
            Values::Integer(least, most) => whole(value, least, most).map(Value::from),
            Values::Words(words) => is(value.as_str().is_some_and(|word| words().contains(&word))),
            Values::Column => is(value.is_string()),
            Values::Read(..) => self.read.and_then(|read| read(value)),
            Values::Any(_) => is(true),
        };
        checked.ok_or_else(|| self.refusal(value))
    }

    fn refusal(&self, value: &Value) -> Error {
        let word = value.as_str().unwrap_or_default();
        let unknown = |known| ArgumentError::UnknownWord { key: self.name, given: word.to_owned(), known }.into();
        let what = match self.values {
            Values::Boolean => "true or false".to_owned(),
            Values::Number(range) if value.is_number() => range.words(),
            Values::Number(_) => "a number".to_owned(),
            Values::Integer(least, most) => format!("an integer from {least} to {most}"),
            Values::Words(words) => return unknown(words()),
            Values::Column | Values::Any(_) => "the name of a column".to_owned(),
            Values::Read(..)
                if self.name == "class_weight" && did_you_mean(word, [ClassWeight::BALANCED]).is_some() =>
            {
                return unknown(vec![ClassWeight::BALANCED]);
            }
            Values::Read(_, _, what) => what(),
        };
        not(self.name, &what, value)
    }
}

impl Default {
    /// The value; None if there is no default, or it depends on other choices.
    pub fn value(self) -> Option<Value> {
        match self {
            Default::None | Default::Depends(_) => None,
            Default::Boolean(value) => Some(value.into()),
            Default::Number(value) => Some(value.into()),
            Default::Integer(value) => Some(value.into()),
            Default::Word(word) => Some(word.into()),
        }
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

fn names(which: impl Fn(ModelKind) -> bool) -> Vec<&'static str> {
    ModelKind::ALL.into_iter().filter(|kind| which(*kind)).map(ModelKind::name).collect()
}

impl Models {
    pub fn include(self, kind: ModelKind) -> bool {
        match self {
            Models::All => true,
            Models::Classifiers => kind.is_classifier(),
            Models::Linear => kind.is_linear(),
            Models::Smooth => kind.is_smooth(),
            Models::WithoutProbabilities => kind.is_classifier() && !kind.has_probabilities(),
            Models::LossNumber(name) => kind.loss_number().is_some_and(|number| number.name == name),
            Models::WithLosses => Loss::of(kind).is_some(),
            Models::Networks => !kind.is_linear(),
        }
    }

    /// Why an option does not go with a model that is not one of them; None if that is said of the option that it
    /// needs.
    pub fn refusal(self) -> Option<String> {
        match self {
            Models::All | Models::Linear | Models::Smooth => None,
            Models::Classifiers => Some(format!("applies to classes, and models {} have none", without_classes())),
            Models::WithoutProbabilities => Some("applies only to model svm".to_owned()),
            Models::WithLosses => Some("applies only to models linear and svm".to_owned()),
            Models::LossNumber(_) => {
                let of = names(|kind| self.include(kind));
                Some(format!("applies only to loss {}", of.join(" and ")))
            }
            Models::Networks => Some("applies only to model mlp".to_owned()),
        }
    }
}

/// The models that have no classes: "a, b and c".
pub fn without_classes() -> String {
    let names = names(|kind| !kind.is_classifier());
    let (last, others) = names.split_last().expect("models that predict numbers");
    format!("{} and {last}", others.join(", "))
}

impl Needs {
    /// Why an option does not go without it.
    pub fn refusal(self) -> String {
        match self {
            Needs::Word(key, word) => format!("applies only with {key} \"{word}\""),
            Needs::Option(key) => format!("applies only with {key}"),
        }
    }
}
