//! Options that say which rows are learned from, and how much each counts.

use super::as_written::as_written;
use choices::choice;
use errors::limits::MAX_WEIGHTS;
use serde_json::{Value, json};

as_written!(Standardize, Clip, Transform, Hashing, ClassWeight);

choice! {
    /// What to do with NULLs.
    Nulls {
        /// those of features are taken for the mean or for a category of their own; rows with others are left out
        Impute = "impute",
        /// rows with NULLs are left out
        Skip = "skip",
        Error = "error",
    }
}

choice! {
    /// Which rows the pass before the first epoch goes through.
    Prepare {
        /// a sample of them, if there are many
        Sample = "sample",
        Exact = "exact",
    }
}

choice! {
    /// What to do with rows that have NULLs where nothing stands for them.
    NullRows {
        Error = "error",
        Skip = "skip",
    }
}

choice! {
    /// What to do, in prediction, with a category that training has not met, or an index beyond the model's.
    Unseen {
        /// it counts as 0
        Zero = "ignore",
        /// it is an error
        Error = "error",
    }
}

choice! {
    /// What the models of groups answer, under the name of all of them, to a row of a group that training has not seen.
    UnseenGroup {
        /// it is an error
        Error = "error",
        /// NULL
        Null = "null",
        /// what one more model says, which is trained on all rows
        All = "all",
    }
}

/// Which features are brought to mean 0 and deviation 1 before they are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standardize {
    /// dense numbers but columns of 0 and 1; the targets of a regression
    #[default]
    Automatic,
    /// all numbers; sparse features are divided by their deviation
    All,
    None,
}

impl Standardize {
    /// The word in addition to true and false.
    pub const AUTO: &'static str = "auto";

    /// What it may be, in words.
    pub const WHAT: &'static str = "true, false or \"auto\"";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Standardize> {
        match value {
            Value::Bool(true) => Some(Standardize::All),
            Value::Bool(false) => Some(Standardize::None),
            Value::String(word) if word == Self::AUTO => Some(Standardize::Automatic),
            _ => None,
        }
    }

    /// The option as it is recorded.
    pub fn to_json(self) -> Value {
        match self {
            Standardize::Automatic => json!(Self::AUTO),
            Standardize::All => json!(true),
            Standardize::None => json!(false),
        }
    }
}

/// Where standardized features are cut off, in deviations from the mean.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Clip {
    /// by the model, and by what is standardized
    #[default]
    Automatic,
    None,
    At(f64),
}

impl Clip {
    pub const AUTO: &'static str = "auto";
    const NONE: &'static str = "none";

    /// Of networks that predict numbers, if it is not said.
    pub const DEFAULT: Clip = Clip::At(5.0);

    /// What it may be, in words.
    pub const WHAT: &'static str = "\"auto\", \"none\" or a number above 0";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Clip> {
        match value {
            Value::String(word) if word == Self::AUTO => Some(Clip::Automatic),
            Value::String(word) if word == Self::NONE => Some(Clip::None),
            number => {
                let clip = Clip::At(number.as_f64()?);
                clip.deviations().filter(|deviations| *deviations > 0.0 && deviations.is_finite()).map(|_| clip)
            }
        }
    }

    /// The option as it is recorded.
    pub fn to_json(self) -> Value {
        match self {
            Clip::Automatic => json!(Self::AUTO),
            Clip::None => json!(Self::NONE),
            Clip::At(deviations) => json!(deviations),
        }
    }

    /// At how many deviations they are cut off, if they are.
    pub fn deviations(self) -> Option<f32> {
        match self {
            Clip::Automatic | Clip::None => None,
            Clip::At(deviations) => Some(deviations as f32),
        }
    }

    /// What a model obeys, as the record of its training says it; None for what cannot be.
    pub fn of_record(recorded: Option<&Value>) -> Option<Option<f32>> {
        recorded.map_or(Some(Clip::Automatic), Clip::read).map(Clip::deviations)
    }
}

/// Which numbers are taken by sign and logarithm, sign(x) ln(1 + |x|).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Transform {
    /// columns whose values span decades, where `standardize` is automatic, too
    #[default]
    Automatic,
    None,
    Log,
    /// these columns
    These(Vec<String>),
}

impl Transform {
    pub const AUTO: &'static str = "auto";
    const NONE: &'static str = "none";
    const LOG: &'static str = "log";

    /// What it may be, in words.
    pub const WHAT: &'static str = "\"auto\", \"none\", \"log\", or an array of columns";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Transform> {
        let columns = |names: &Value| {
            let names: Option<Vec<String>> =
                names.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            names.filter(|names| !names.is_empty()).map(Transform::These)
        };
        match value {
            Value::String(word) if word == Self::AUTO => Some(Transform::Automatic),
            Value::String(word) if word == Self::NONE => Some(Transform::None),
            Value::String(word) if word == Self::LOG => Some(Transform::Log),
            Value::Object(object) if object.len() == 1 => columns(object.get(Self::LOG)?),
            names => columns(names),
        }
    }

    /// The option as it is recorded.
    pub fn to_json(&self) -> Value {
        match self {
            Transform::Automatic => json!(Self::AUTO),
            Transform::None => json!(Self::NONE),
            Transform::Log => json!(Self::LOG),
            Transform::These(columns) => json!({ "log": columns }),
        }
    }
}

/// Which columns of text are hashed, and into how many buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hashing {
    /// None: as many as suit the model
    pub buckets: Option<u32>,
    pub columns: ToHash,
}

/// Which columns are hashed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToHash {
    /// those with more categories than suit the model
    #[default]
    Large,
    Nothing,
    These(Vec<String>),
}

impl Hashing {
    pub const AUTO: &'static str = "auto";
    pub const OFF: &'static str = "off";

    /// What it may be, in words.
    pub fn what() -> String {
        format!(
            "\"auto\", \"off\", a number of buckets from 1 to {MAX_WEIGHTS}, or an object of buckets and an array of columns"
        )
    }

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Hashing> {
        let automatic = Hashing::default();
        match value {
            Value::String(word) if word == Self::AUTO => Some(automatic),
            Value::String(word) if word == Self::OFF => Some(Hashing { columns: ToHash::Nothing, ..automatic }),
            Value::Number(number) if number.as_f64() == Some(0.0) => {
                Some(Hashing { columns: ToHash::Nothing, ..automatic })
            }
            Value::Number(_) => Some(Hashing { buckets: Some(read_buckets(value)?), ..automatic }),
            Value::Object(keys) if keys.keys().all(|key| ["buckets", "columns"].contains(&key.as_str())) => {
                let buckets = keys.get("buckets").map_or(Some(None), |buckets| read_buckets(buckets).map(Some))?;
                let column = |name: &Value| name.as_str().map(str::to_owned);
                let columns: Vec<String> =
                    keys.get("columns")?.as_array()?.iter().map(column).collect::<Option<_>>()?;
                (!columns.is_empty()).then_some(Hashing { buckets, columns: ToHash::These(columns) })
            }
            _ => None,
        }
    }

    /// The option as it is recorded.
    pub fn to_json(&self) -> Value {
        match (&self.columns, self.buckets) {
            (ToHash::Nothing, _) => json!(Self::OFF),
            (ToHash::Large, None) => json!(Self::AUTO),
            (ToHash::Large, Some(buckets)) => json!(buckets),
            (ToHash::These(columns), None) => json!({ "columns": columns }),
            (ToHash::These(columns), Some(buckets)) => json!({ "buckets": buckets, "columns": columns }),
        }
    }
}

fn read_buckets(value: &Value) -> Option<u32> {
    whole(value, 1, MAX_WEIGHTS as u64).map(|number| number as u32)
}

/// A whole number in this range.
pub fn whole(value: &Value, least: u64, most: u64) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
    (least as f64..=most as f64).contains(&number).then_some(number as u64)
}

choice! {
    /// Which model is stored.
    Keep {
        /// that of the last epoch
        Last = "last",
        /// that of the epoch with the lowest loss
        Best = "best",
    }
}

choice! {
    /// What is drawn for validation.
    By {
        Row = "row",
        Block = "block",
    }
}

/// Weights of whole classes.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeight {
    /// n / (k n_c) for class c, with n rows and k classes in all: what scikit-learn calls balanced
    Balanced,
    /// weights by label; 1 for all others
    Given(Vec<(String, f64)>),
}

impl ClassWeight {
    /// The only word that the option may be.
    pub const BALANCED: &'static str = "balanced";

    /// What it may be, in words.
    pub const WHAT: &'static str =
        "\"balanced\", or an object of labels and their weights, which are finite and at least 0";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<ClassWeight> {
        match value {
            Value::String(word) => (word == Self::BALANCED).then_some(ClassWeight::Balanced),
            Value::Object(weights) => {
                let weight = |(label, weight): (&String, &Value)| {
                    let weight = weight.as_f64().filter(|w| *w >= 0.0 && (*w as f32).is_finite())?;
                    Some((label.clone(), weight))
                };
                let weights: Vec<_> = weights.iter().map(weight).collect::<Option<_>>()?;
                (!weights.is_empty()).then_some(ClassWeight::Given(weights))
            }
            _ => None,
        }
    }

    /// As the option is written.
    pub fn to_json(&self) -> Value {
        match self {
            ClassWeight::Balanced => json!(Self::BALANCED),
            ClassWeight::Given(weights) => {
                weights.iter().map(|(label, weight)| (label.clone(), json!(weight))).collect()
            }
        }
    }
}
