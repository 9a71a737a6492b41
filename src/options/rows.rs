//! Options that say which rows are learned from, and how much each counts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What to do with rows that have a NULL label, feature or weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nulls {
    #[default]
    Error,
    Skip,
}

/// What to do, in prediction, with a category that training has not met, or an index beyond the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unseen {
    /// it is an error
    #[default]
    Error,
    /// it counts as 0
    Zero,
}

/// Option class_weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ClassWeight {
    /// n / (k n_c) for class c, with n rows and k classes in all: what scikit-learn calls balanced
    Balanced,
    /// weights by label; 1 for all others
    Given(Vec<(String, f64)>),
}

impl ClassWeight {
    /// As the option is written.
    pub fn to_json(&self) -> Value {
        match self {
            ClassWeight::Balanced => json!("balanced"),
            ClassWeight::Given(weights) => {
                weights.iter().map(|(label, weight)| (label.clone(), json!(weight))).collect()
            }
        }
    }
}
