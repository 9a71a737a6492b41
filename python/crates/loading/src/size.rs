//! Sizes of blocks and buffers as users write them: rows, bytes, or a share.

use std::fmt;
use std::str::FromStr;

/// How much of a data set a block or the buffer holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// What suits the data set.
    Auto,
    /// This many rows.
    Rows(u64),
    /// This many bytes of memory.
    Bytes(u64),
    /// This many percent of the rows, above 0 and at most 100.
    Percent(f64),
}

/// What is wrong with a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Neither rows, nor bytes, nor a share.
    #[error(
        "{0:?} is not a size: use a number of rows such as 10000, bytes such as \"64MiB\", a share such as \"10%\", or \"auto\""
    )]
    NotASize(String),
    /// Nothing, or less.
    #[error("{0:?} is not greater than zero")]
    NotPositive(String),
    /// A share above the whole.
    #[error("{0:?} is more than 100%")]
    AboveAll(String),
}

/// Units of memory and their bytes. As in PostgreSQL, a megabyte has 1024 kilobytes, with and without the i.
const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

impl FromStr for Size {
    type Err = SizeError;

    /// Reads `auto`, rows (`10000`), bytes (`64MiB`, `1.5 GB`) or a share (`10%`).
    fn from_str(text: &str) -> Result<Size, SizeError> {
        let (given, text) = (text, text.trim().to_ascii_lowercase());
        if text == "auto" {
            return Ok(Size::Auto);
        }
        let not_a_size = || SizeError::NotASize(given.to_owned());
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let value: f64 = number.parse().map_err(|_| not_a_size())?;
        if value <= 0.0 {
            return Err(SizeError::NotPositive(given.to_owned()));
        }
        match unit {
            "" => number.parse().map(Size::Rows).map_err(|_| not_a_size()),
            "%" if value > 100.0 => Err(SizeError::AboveAll(given.to_owned())),
            "%" => Ok(Size::Percent(value)),
            _ => {
                let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(not_a_size)?;
                Ok(Size::Bytes(((value * *unit as f64) as u64).max(1)))
            }
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Auto => f.write_str("auto"),
            Size::Rows(rows) => write!(f, "{rows}"),
            Size::Bytes(bytes) => write!(f, "{bytes}B"),
            Size::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rows_bytes_or_shares() {
        for (text, size) in [
            ("auto", Size::Auto),
            ("10000", Size::Rows(10_000)),
            ("64MiB", Size::Bytes(64 << 20)),
            (" 64 mb ", Size::Bytes(64 << 20)),
            ("1.5 kB", Size::Bytes(1536)),
            ("10%", Size::Percent(10.0)),
            ("0.5 %", Size::Percent(0.5)),
        ] {
            assert_eq!(text.parse(), Ok(size), "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_size() {
        for text in ["", "x", "1.5", "64 MiBs", "%", "1..5MB", "--1"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::NotASize(text.to_owned())));
        }
        for text in ["0", "0%", "-1", "-1MB"] {
            assert_eq!(text.parse::<Size>(), Err(SizeError::NotPositive(text.to_owned())));
        }
        assert_eq!("101%".parse::<Size>(), Err(SizeError::AboveAll("101%".to_owned())));
    }

    #[test]
    fn a_size_is_read_as_it_was_written() {
        for size in [Size::Auto, Size::Rows(7), Size::Bytes(1 << 33), Size::Percent(2.5)] {
            assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
