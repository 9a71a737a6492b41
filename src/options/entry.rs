//! What the table says of an argument or an option.

use super::loss::Loss;
use super::resolved::Resolved;
use pg::executor::explain::Explain;
use serde_json::Value;
use sgd::{ModelKind, Range};

/// An argument of corgipile_train(), or a key of its argument `options`.
pub struct Entry {
    pub name: &'static str,
    pub place: Place,
    pub values: Values,
    pub default: Default,
    /// the models it applies to
    pub models: Models,
    /// what else has to be given for it to say anything
    pub needs: Option<Needs>,
    /// who gives one of a group, gives all of it: in a warm start the others have their defaults
    pub group: Option<Group>,
    /// may it differ from point to point of a grid?
    pub in_grid: bool,
    /// where a warm start takes it from if it is not given
    pub inherited: Inherited,
    /// what is recorded of it with the model, if anything
    pub record: Option<fn(&Resolved) -> Option<Value>>,
    /// what EXPLAIN says of it, if anything
    pub explain: Option<fn(&Resolved, Explain)>,
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

impl Place {
    /// Its type as an argument; None if it is none.
    pub fn sql_type(self) -> Option<&'static str> {
        match self {
            Place::Argument(sql_type) | Place::NamedOption(sql_type) | Place::Only(sql_type) => Some(sql_type),
            Place::Option => None,
        }
    }

    /// May it be a key of `options`?
    pub fn is_key(self) -> bool {
        !matches!(self, Place::Only(_))
    }
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
    /// anything of a type of JSON, or of the argument's type; what else there is to say of it
    Other(&'static str, Option<&'static str>),
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

/// The models it applies to.
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

/// Where a warm start takes from what is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherited {
    /// from nowhere: it belongs to the call
    Never,
    /// from the record of the model's training
    Record,
    /// from what the model is
    Model,
}

impl Entry {
    /// An option of all models that a warm start takes over from the record,
    /// and that differs from point to point of no grid.
    pub const fn option(name: &'static str, values: Values, default: Default, description: &'static str) -> Entry {
        Entry {
            name,
            place: Place::Option,
            values,
            default,
            models: Models::All,
            needs: None,
            group: None,
            in_grid: false,
            inherited: Inherited::Record,
            record: None,
            explain: None,
            description,
        }
    }

    /// An argument of this type that belongs to the call.
    pub const fn argument(
        name: &'static str,
        sql_type: &'static str,
        values: Values,
        default: Default,
        description: &'static str,
    ) -> Entry {
        let option = Entry::option(name, values, default, description);
        Entry { place: Place::Argument(sql_type), inherited: Inherited::Never, ..option }
    }

    /// Is it read as a key of `options`?
    pub fn is_option(&self) -> bool {
        matches!(self.place, Place::Option | Place::NamedOption(_))
    }

    /// Its type: SQL's of an argument, JSON's of what is only an option.
    pub fn type_name(&self) -> String {
        match (self.place.sql_type(), self.values) {
            (Some(sql_type), _) => sql_type.to_owned(),
            (_, Values::Boolean) => "JSON boolean".into(),
            (_, Values::Number(_) | Values::Integer(..)) => "JSON number".into(),
            (_, Values::Words(_) | Values::Column) => "JSON string".into(),
            (_, Values::Other(json_type, _)) => format!("JSON {json_type}"),
        }
    }

    /// What it is, if it is not given, for this model, or for all; None if that is nothing.
    pub fn default_text(&self, model: Option<ModelKind>) -> Option<String> {
        match self.default {
            Default::None => None,
            Default::Boolean(value) => Some(value.to_string()),
            Default::Number(value) if value != 0.0 && value.abs() < 1e-4 => Some(format!("{value:e}")),
            Default::Number(value) => Some(value.to_string()),
            Default::Integer(value) => Some(value.to_string()),
            Default::Word(word) => Some(word.to_owned()),
            Default::Depends(text) => Some(text(model)),
        }
    }

    /// What it may be; None if its type says that.
    pub fn range_text(&self) -> Option<String> {
        match self.values {
            Values::Boolean | Values::Column => None,
            Values::Number(range) => Some(range.to_string()),
            Values::Integer(least, most) => Some(format!("{least} to {most}")),
            Values::Words(words) => Some(words().join(", ")),
            Values::Other(_, range) => range.map(str::to_owned),
        }
    }

    /// The models it applies to, and what has to be given beside it.
    pub fn applies_to(&self) -> String {
        let models = match self.models {
            Models::All => "all models".to_owned(),
            some => ModelKind::ALL
                .into_iter()
                .filter(|kind| some.include(*kind))
                .map(ModelKind::name)
                .collect::<Vec<_>>()
                .join(", "),
        };
        match self.needs {
            Some(Needs::Word(key, word)) => format!("{models}, with {key} {word}"),
            Some(Needs::Option(key)) => format!("{models}, with {key}"),
            None => models,
        }
    }
}

impl Models {
    /// Is this one of them?
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

    /// Why an option does not go with a model that is none of them; None if that is said of the option that it needs.
    pub fn refusal(self) -> Option<String> {
        match self {
            Models::All | Models::Linear | Models::Smooth => None,
            Models::Classifiers => Some(format!("applies to classes, and models {} have none", without_classes())),
            Models::WithoutProbabilities => Some("applies only to model svm".to_owned()),
            Models::WithLosses => Some("applies only to models linear and svm".to_owned()),
            Models::LossNumber(_) => {
                let of = ModelKind::ALL.into_iter().filter(|kind| self.include(*kind)).map(ModelKind::name);
                Some(format!("applies only to loss {}", of.collect::<Vec<_>>().join(" and ")))
            }
            Models::Networks => Some("applies only to model mlp".to_owned()),
        }
    }
}

/// The models that have no classes: "a, b and c".
pub fn without_classes() -> String {
    let names = ModelKind::ALL.into_iter().filter(|kind| !kind.is_classifier()).map(ModelKind::name);
    let names: Vec<&str> = names.collect();
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
