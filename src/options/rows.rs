//! Options that say which rows are learned from, and how much each counts.

use super::choices::choice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
        Zero = "zero",
        /// it is an error
        Error = "error",
    }
}

/// Which features are brought to mean 0 and deviation 1 before they are learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Standardize {
    /// dense numbers but columns of 0 and 1; the targets of a regression
    #[default]
    Automatic,
    /// all numbers; sparse features are divided by their deviation
    All,
    None,
}

impl Standardize {
    /// The word beside true and false.
    pub const AUTO: &'static str = "auto";

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

choice! {
    /// What is drawn for validation.
    By {
        Row = "row",
        Block = "block",
    }
}

/// Weights of whole classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClassWeight {
    /// n / (k n_c) for class c, with n rows and k classes in all: what scikit-learn calls balanced
    Balanced,
    /// weights by label; 1 for all others
    Given(Vec<(String, f64)>),
}

impl ClassWeight {
    /// The only word that the option may be.
    pub const BALANCED: &'static str = "balanced";

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
