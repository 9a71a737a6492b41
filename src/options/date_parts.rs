//! The option `date_parts`: which parts of dates and times are features.

use pg::values::date_part::{DatePart, TimeType};
use serde_json::{Value, json};

/// Which parts of dates and times are features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateParts {
    /// those that are usual for the type of the column
    Usual,
    These(Vec<DatePart>),
}

impl DateParts {
    /// What the option may be.
    pub const WHAT: &'static str =
        "true, or an array of \"year\", \"month\", \"day\", \"dow\", \"hour\", \"doy\" and \"epoch\"";

    /// The option as it is written, None inside for false; None for what it cannot be.
    pub fn read(value: &Value) -> Option<Option<DateParts>> {
        match value {
            Value::Bool(true) => Some(Some(DateParts::Usual)),
            Value::Bool(false) => Some(None),
            Value::Array(names) if !names.is_empty() => {
                let parts: Option<Vec<DatePart>> = names.iter().map(|name| DatePart::named(name.as_str()?)).collect();
                let parts = parts?;
                let is_there_twice = |i: usize| parts[..i].contains(&parts[i]);
                let is_list = !(0..parts.len()).any(is_there_twice);
                is_list.then_some(Some(DateParts::These(parts)))
            }
            _ => None,
        }
    }

    /// The option as it is recorded.
    pub fn to_json(&self) -> Value {
        match self {
            DateParts::Usual => json!(true),
            DateParts::These(parts) => parts.iter().map(|part| part.name()).collect(),
        }
    }

    /// The parts of a column of this type.
    pub fn of_type(&self, time: TimeType) -> Vec<DatePart> {
        let parts = match self {
            DateParts::Usual => time.usual_parts(),
            DateParts::These(parts) => parts,
        };
        parts.iter().copied().filter(|part| time.has(*part)).collect()
    }
}
