//! The one table of arguments and options. Parser, grid, warm start, record, `corgipile_options()` and the reference
//! page come from it.

mod default_texts;
mod entries;

use super::entry::{Default, Entry, Values};
pub use entries::Options;

/// All of them.
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

/// That of this name.
///
/// # Panics
/// If there is none: names are those that code gives.
pub fn entry(name: &str) -> &'static Entry {
    entries().find(|entry| entry.name == name).unwrap_or_else(|| panic!("there is no option {name}"))
}

/// The least and the most that a whole number may be.
///
/// # Panics
/// If the entry is not one of whole numbers.
pub fn limits(name: &str) -> (u64, u64) {
    match entry(name).values {
        Values::Integer(least, most) => (least, most),
        _ => panic!("{name} is no whole number"),
    }
}

/// The word that an entry has for default.
///
/// # Panics
/// If it has none.
pub fn default_word(name: &str) -> &'static str {
    match entry(name).default {
        Default::Word(word) => word,
        _ => panic!("{name} has no word for default"),
    }
}

/// The whole number that an entry has for default.
///
/// # Panics
/// If it has none.
pub fn default_integer(name: &str) -> u64 {
    match entry(name).default {
        Default::Integer(number) => number,
        _ => panic!("{name} has no whole number for default"),
    }
}

/// The number that an entry has for default.
///
/// # Panics
/// If it has none.
pub fn default_number(name: &str) -> f64 {
    match entry(name).default {
        Default::Number(number) => number,
        _ => panic!("{name} has no number for default"),
    }
}
