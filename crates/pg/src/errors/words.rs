//! Parts of messages: texts of which the end is left out.

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
