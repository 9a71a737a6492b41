//! Parts of messages: numbers, names and lists as they stand in a sentence.

use std::fmt::{Display, Write};

/// The most bytes of a message: what a user gave may be a gigabyte, and an error that repeats it as much again,
/// several times.
const MAX_MESSAGE_BYTES: usize = 2000;

/// A text, of which the end is left out if it is long.
pub(super) fn shortened(text: &impl Display) -> String {
    struct Short(String);

    impl Write for Short {
        fn write_str(&mut self, more: &str) -> std::fmt::Result {
            let room = MAX_MESSAGE_BYTES - self.0.len();
            if more.len() <= room {
                self.0.push_str(more);
                return Ok(());
            }
            let end = (0..=room).rev().find(|end| more.is_char_boundary(*end)).unwrap_or_default();
            self.0.push_str(&more[..end]);
            Err(std::fmt::Error)
        }
    }

    let mut short = Short(String::new());
    if write!(short, "{text}").is_err() {
        short.0.push_str(" ...");
    }
    short.0
}

/// The beginning of a user's value: as much as a message has room for.
pub fn excerpt(value: &str) -> String {
    const ROOM: usize = 60;
    if value.chars().count() <= ROOM {
        value.to_owned()
    } else {
        value.chars().take(ROOM).chain("...".chars()).collect()
    }
}

/// NaN and infinities as SQL writes them; a number beyond double precision has become an infinity.
pub(super) fn in_words(value: f64) -> String {
    match value {
        f64::INFINITY => "Infinity or out of range".into(),
        f64::NEG_INFINITY => "-Infinity or out of range".into(),
        value => value.to_string(),
    }
}

/// One of what is named in the plural.
pub(super) fn singular(plural: &str) -> String {
    match plural.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => plural.trim_end_matches('s').to_owned(),
    }
}

/// Words of which one is to be chosen: `"auto", "on" or "off"`.
pub fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => quoted.concat(),
    }
}

/// Some of several names.
pub(super) fn alternatives(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let more = if names.len() > SHOWN { format!(", or one of {} others", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(" or "))
}
