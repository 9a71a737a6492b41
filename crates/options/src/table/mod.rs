//! The one table of arguments and options. Parser, grid, warm start, record, `corgipile_options()` and the reference
//! page come from it.

mod default_texts;
mod entries;

use super::entry::{Entry, Values};
pub use entries::Options;
use serde::de::DeserializeOwned;

pub fn entries() -> impl Iterator<Item = &'static Entry> {
    entries::ENTRIES.iter()
}

/// What is read as a key of `options`, whether it is an argument too or not.
pub fn options() -> impl Iterator<Item = &'static Entry> {
    entries().filter(|entry| entry.is_option())
}

/// The names of entries, sorted, for the hint of an error.
pub fn sorted_names(of: impl Iterator<Item = &'static Entry>) -> Vec<&'static str> {
    let mut names: Vec<_> = of.map(|entry| entry.name).collect();
    names.sort_unstable();
    names
}

pub fn entry(name: &str) -> &'static Entry {
    entries().find(|entry| entry.name == name).unwrap_or_else(|| panic!("there is no option {name}"))
}

/// The least and the most that a whole number may be.
pub fn limits(name: &str) -> (u64, u64) {
    match entry(name).values {
        Values::Integer(least, most) => (least, most),
        _ => panic!("{name} is not an integer"),
    }
}

/// What an argument or option is if it is not given; None if it is nothing, or depends on other choices.
pub fn default<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(entry(name).default.value()?).ok()
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pgrx::prelude::*;
    use serde_json::json;
    use std::collections::HashSet;

    #[pg_test]
    fn test_defaults_are_values_that_an_entry_may_have() {
        assert_eq!(entries().map(|entry| entry.name).collect::<HashSet<_>>().len(), entries().count());
        for entry in entries() {
            let Some(default) = entry.default.value() else { continue };
            assert!(entry.checked(&default).is_ok(), "{} {default}", entry.name);
        }
    }

    #[pg_test]
    fn test_what_is_checked_can_be_checked_again_and_is_the_same() {
        for (name, given, checked) in [
            ("l2", json!(1), json!(1.0)),
            ("batch_size", json!(3.0), json!(3)),
            ("hidden_layer_sizes", json!([4.0, 2]), json!([4, 2])),
            ("transform", json!(["x"]), json!({"log": ["x"]})),
            ("hash", json!(0), json!("off")),
            ("servers", json!("a, b"), json!(["a", "b"])),
            ("winsorize", json!(4), json!(4.0)),
            ("date_parts", json!(["dow"]), json!(["dow"])),
        ] {
            assert_eq!(entry(name).checked(&given).unwrap(), checked, "{name}");
            assert_eq!(entry(name).checked(&checked).unwrap(), checked, "{name}");
        }
    }
}
