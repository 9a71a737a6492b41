//! A model as errors speak of it: what it is called, how a call names it, and which features it has in which order.

use std::fmt;

/// The `model_id` of a model that is given as a value and not stored.
pub const INLINE_MODEL_ID: i64 = 0;

/// A model as errors speak of it. In a box, because what is returned by every prediction is to be small.
#[derive(Debug)]
pub struct TheModel(Box<Parts>);

#[derive(Debug)]
struct Parts {
    id: i64,
    name: Option<String>,
    features: Vec<String>,
    /// how many there are: of many, only some are listed
    count: usize,
}

impl TheModel {
    /// Features that are listed.
    pub const LISTED: usize = 32;

    /// A model with this id and name, and this many features, of which these are the first.
    pub fn new(id: i64, name: Option<&str>, features: Vec<String>, count: usize) -> TheModel {
        TheModel(Box::new(Parts { id, name: name.map(str::to_owned), features, count }))
    }

    /// What the features are called, in their order.
    pub(super) fn features(&self) -> String {
        let Parts { features, count, .. } = &*self.0;
        let more = if *count > features.len() { format!(", ... ({count} in all)") } else { String::new() };
        format!("{}{more}", features.join(", "))
    }

    /// The features, in a sentence for a hint.
    pub(super) fn features_in_order(&self) -> String {
        format!("The model's features, in order: {}.", self.features())
    }

    /// What stands for it in a call: its name or its id.
    pub(super) fn in_call(&self) -> String {
        match (&self.0.name, self.0.id) {
            (_, INLINE_MODEL_ID) => "model".to_owned(),
            (Some(name), _) => format!("'{}'", name.replace('\'', "''")),
            (None, id) => id.to_string(),
        }
    }
}

impl fmt::Display for TheModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.name, self.0.id) {
            (_, INLINE_MODEL_ID) => f.write_str("the given model"),
            // its id is another on the server that asks
            (Some(name), _) if pg::serves_another() => write!(f, "model \"{name}\""),
            (Some(name), id) => write!(f, "model {id} \"{name}\""),
            (None, id) => write!(f, "model {id}"),
        }
    }
}
