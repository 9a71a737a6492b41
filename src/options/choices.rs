//! What arguments and options choose between, each choice by its name.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One of a few things, each of which has a name in SQL.
pub trait Choice: Copy + Default + 'static {
    /// All of them and their names, the default first.
    const ALL: &'static [(&'static str, Self)];

    /// The names, the default first.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|(name, _)| *name).collect()
    }

    /// That of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }
}

/// An enum whose variants have names, the first being the default.
macro_rules! choice {
    ($(#[$about:meta])* $choice:ident { $(#[$first_about:meta])* $first:ident = $first_name:literal, $($(#[$variant_about:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum $choice {
            $(#[$first_about])*
            #[default]
            #[serde(rename = $first_name)]
            $first,
            $($(#[$variant_about])* #[serde(rename = $name)] $variant,)*
        }

        impl Choice for $choice {
            const ALL: &'static [(&'static str, $choice)] =
                &[($first_name, $choice::$first), $(($name, $choice::$variant),)*];
        }
    };
}

choice! {
    /// What to do with rows that have a NULL label, feature or weight.
    Nulls {
        Error = "error",
        Skip = "skip",
    }
}

choice! {
    /// What to do, in prediction, with a category that training has not met, or an index beyond the model's.
    Unseen {
        /// it is an error
        Error = "error",
        /// it counts as 0
        Zero = "zero",
    }
}

choice! {
    /// Whether decoded tuples are to be kept.
    CacheMode {
        /// if they fit into memory, and in files if they are dear to decode
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

choice! {
    /// What is drawn for validation.
    By {
        Row = "row",
        Block = "block",
    }
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
    /// Where the buffers of a training are filled.
    Loader {
        Auto = "auto",
        Worker = "worker",
        InProcess = "in_process",
    }
}

/// Rows that are held out for validation.
#[derive(Debug, Clone, PartialEq)]
pub enum Validation {
    Fraction { fraction: f64, by: By },
    Column(String),
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
