//! The option `servers`: whether rows of other servers are trained on there.

use super::as_written::as_written;
use serde_json::{Value, json};

as_written!(Nodes);

/// Whether rows of other servers are trained on there, or are fetched here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Nodes {
    /// They are fetched here.
    #[default]
    Off,
    /// They are trained on there, if they can be.
    Auto,
    /// They are trained on there, and they are nowhere but on these servers.
    Servers(Vec<String>),
}

impl Nodes {
    /// What the option may be.
    pub const WHAT: &'static str = "\"off\", \"auto\", or names of servers: an array, or a string with commas";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Nodes> {
        let names: Vec<String> = match value {
            Value::String(word) if word == "off" => return Some(Nodes::Off),
            Value::String(word) if word == "auto" => return Some(Nodes::Auto),
            Value::String(names) => names_of(names).split(',').map(|name| name.trim().to_owned()).collect(),
            Value::Array(names) => {
                names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        };
        let is_there_twice = |i: usize| names[..i].contains(&names[i]);
        let are_names = !names.is_empty() && names.iter().all(|name| !name.is_empty());
        (are_names && !(0..names.len()).any(is_there_twice)).then_some(Nodes::Servers(names))
    }

    /// The option as it is recorded.
    pub fn to_json(&self) -> Value {
        match self {
            Nodes::Off => json!("off"),
            Nodes::Auto => json!("auto"),
            Nodes::Servers(names) => json!(names),
        }
    }
}

/// Names with commas, also in braces, as PostgreSQL writes an array.
fn names_of(text: &str) -> &str {
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text)
}
