//! Block and buffer sizes as users write them.
//!
//! It guarantees that a size means what the same text means in PostgreSQL's memory settings, and that what is written
//! back is read as the same value. It prevents nonsense, zero, negative and overflowing sizes from getting anywhere.

use std::fmt;
use std::str::FromStr;

/// The largest block that is chosen automatically, in bytes: 10 MB, of which the papers show that larger ones gain
/// little on most disks. On request blocks may be larger.
pub const MAX_BLOCK_BYTES: u64 = 10 << 20;

/// The largest block that is chosen automatically where seeks are cheap, in bytes.
pub const CHEAP_BLOCK_BYTES: u64 = 64 << 10;

/// The largest table that an automatic buffer holds as a whole, in bytes of heap: then all tuples are shuffled fully.
pub const WHOLE_TABLE_BYTES: u64 = 64 << 20;

/// How large a block is: a run of contiguous heap pages, the unit of the first shuffle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockSize {
    /// The largest block of at most [`MAX_BLOCK_BYTES`], or [`CHEAP_BLOCK_BYTES`] where [seeks](crate::Seeks) are
    /// cheap, of which the buffer still holds [`MIN_BLOCKS_IN_BUFFER`](crate::MIN_BLOCKS_IN_BUFFER).
    Auto,
    /// This many bytes of heap, rounded down to whole pages.
    Bytes(u64),
}

/// How much of the table the buffer holds: the unit of the second shuffle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BufferSize {
    /// The whole table, if that has at most [`WHOLE_TABLE_BYTES`]. Else, where [seeks](crate::Seeks) are cheap,
    /// [`MIN_BLOCKS_IN_BUFFER`](crate::MIN_BLOCKS_IN_BUFFER) automatic blocks or a few more. Else a tenth of the
    /// table's pages, or as many as make that many blocks of a page, or [`FEW_BLOCKS`](crate::FEW_BLOCKS) of a size
    /// that was asked for, if these are more.
    Auto,
    /// This many percent of the table's pages, in (0, 100].
    Percent(f64),
    /// This many bytes of heap.
    Bytes(u64),
}

/// What is wrong with a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text is no block size.
    #[error("\"{0}\" is not a block size")]
    NotABlockSize(String),
    /// The text is no buffer size.
    #[error("\"{0}\" is not a buffer size")]
    NotABufferSize(String),
    /// The size is zero, rounds to zero bytes, or is negative.
    #[error("\"{0}\" is not greater than zero")]
    NotPositive(String),
    /// The size does not fit 64 bits.
    #[error("\"{0}\" is too large")]
    Overflow(String),
    /// The percentage is not in (0, 100].
    #[error("\"{0}\" is not above 0% and at most 100%")]
    PercentOutOfRange(String),
    /// The block does not hold one page.
    #[error("a block of {bytes} bytes is smaller than a page of {page_bytes} bytes")]
    BlockBelowPage {
        /// Size asked for.
        bytes: u64,
        /// Size of a heap page.
        page_bytes: u32,
    },
}

impl SizeError {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            SizeError::NotABlockSize(_) => {
                "Use 'auto' or a size such as '64kB' or '1MB'. Valid units are B, kB, MB, GB and TB."
            }
            SizeError::NotABufferSize(_) => {
                "Use 'auto', a percentage of the table such as '10%' or a size such as '64MB'. \
                 Valid units are %, B, kB, MB, GB and TB."
            }
            SizeError::NotPositive(_) => "Use a size such as '64kB' or '1MB'.",
            SizeError::Overflow(_) => "Use a smaller size, such as '64kB' or '1MB'.",
            SizeError::PercentOutOfRange(_) => "Use a percentage of the table such as '10%'.",
            SizeError::BlockBelowPage { .. } => "Use 'auto' or at least one page, such as '8kB'.",
        }
    }
}

impl FromStr for BlockSize {
    type Err = SizeError;

    /// Reads `auto`, or a number of bytes with an optional unit: `64kB`, `1.5 MB`, `8192`.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        if is_auto(text) {
            return Ok(BlockSize::Auto);
        }
        let (number, unit) = split(text);
        let bytes = bytes(text, number, unit).unwrap_or_else(|| Err(SizeError::NotABlockSize(text.to_owned())));
        bytes.map(BlockSize::Bytes)
    }
}

impl FromStr for BufferSize {
    type Err = SizeError;

    /// Reads `auto`, a percentage, `10%`, or a number of bytes with an optional unit: `64MB`, `1.5 GB`, `65536`.
    fn from_str(text: &str) -> Result<Self, SizeError> {
        if is_auto(text) {
            return Ok(BufferSize::Auto);
        }
        let (number, unit) = split(text);
        if unit != "%" {
            let bytes = bytes(text, number, unit).unwrap_or_else(|| Err(SizeError::NotABufferSize(text.to_owned())));
            return bytes.map(BufferSize::Bytes);
        }
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(BufferSize::Percent(percent)),
            Ok(_) => Err(SizeError::PercentOutOfRange(text.to_owned())),
            Err(_) => Err(SizeError::NotABufferSize(text.to_owned())),
        }
    }
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BlockSize::Auto => f.write_str("auto"),
            BlockSize::Bytes(bytes) => write_bytes(f, bytes),
        }
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BufferSize::Auto => f.write_str("auto"),
            BufferSize::Percent(percent) => write!(f, "{percent}%"),
            BufferSize::Bytes(bytes) => write_bytes(f, bytes),
        }
    }
}

/// Units of memory and their bytes, the largest first.
const UNITS: [(&str, u64); 5] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

fn is_auto(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("auto")
}

/// Number and unit, each without surrounding spaces.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let unit = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c))).unwrap_or(text.len());
    (&text[..unit], text[unit..].trim())
}

/// The bytes that `number` of `unit` are, or why they are no size; None if they are not even a number and a unit.
fn bytes(text: &str, number: &str, unit: &str) -> Option<Result<u64, SizeError>> {
    let unit = if unit.is_empty() { "B" } else { unit };
    let (_, unit) = UNITS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let value = number.parse::<f64>().ok()?;
    // a whole number is multiplied exactly, a fraction rounded to the nearest byte as PostgreSQL does
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit),
        Err(_) => Some((value * unit as f64).round_ties_even()).filter(|&b| b < u64::MAX as f64).map(|b| b as u64),
    };
    Some(match bytes {
        None => Err(SizeError::Overflow(text.to_owned())),
        // a negative number has become 0 bytes
        Some(0) => Err(SizeError::NotPositive(text.to_owned())),
        Some(bytes) => Ok(bytes),
    })
}

/// Writes `bytes` in the largest unit that divides them, so that reading it gives the same number.
fn write_bytes(f: &mut fmt::Formatter<'_>, bytes: u64) -> fmt::Result {
    let (name, unit) = UNITS.into_iter().find(|(_, unit)| bytes.is_multiple_of(*unit)).unwrap_or(("B", 1));
    write!(f, "{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;

    #[test]
    fn block_sizes_are_read_as_postgresql_reads_memory_settings() {
        for (text, bytes) in [
            ("8192", 8 * KB),
            ("8192B", 8 * KB),
            ("64kB", 64 * KB),
            ("64KB", 64 * KB),
            ("64 kb", 64 * KB),
            ("  1MB  ", MB),
            ("+1MB", MB),
            ("1.5MB", MB + MB / 2),
            (".5MB", MB / 2),
            ("2.MB", 2 * MB),
            ("0.00000953674316MB", 10),
            ("1.5", 2),
            ("10MB", 10 * MB),
            ("0.001GB", 1_073_742),
        ] {
            assert_eq!(text.parse(), Ok(BlockSize::Bytes(bytes)), "{text}");
        }
        assert_eq!(" Auto ".parse(), Ok(BlockSize::Auto));
    }

    #[test]
    fn buffer_sizes_are_percentages_or_memory() {
        assert_eq!(" Auto ".parse(), Ok(BufferSize::Auto));
        assert_eq!("10%".parse(), Ok(BufferSize::Percent(10.0)));
        assert_eq!(" 0.5 % ".parse(), Ok(BufferSize::Percent(0.5)));
        assert_eq!("100%".parse(), Ok(BufferSize::Percent(100.0)));
        assert_eq!("64MB".parse(), Ok(BufferSize::Bytes(64 * MB)));
        assert_eq!("2TB".parse(), Ok(BufferSize::Bytes(2 << 40)));
        assert_eq!("18446744073709551615".parse(), Ok(BufferSize::Bytes(u64::MAX)));
    }

    #[test]
    fn nonsense_is_no_size() {
        for text in [
            "", " ", "auto%", "ten", "MB", ".", "-", "+-1MB", "1.2.3MB", "1MBs", "1 M B", "1e3kB", "0x10kB", "1,5MB",
            "NaN", "inf", "∞", "1٣",
        ] {
            assert_eq!(text.parse::<BlockSize>(), Err(SizeError::NotABlockSize(text.to_owned())));
            assert_eq!(text.parse::<BufferSize>(), Err(SizeError::NotABufferSize(text.to_owned())));
        }
        assert_eq!("10%".parse::<BlockSize>(), Err(SizeError::NotABlockSize("10%".to_owned())));
        for text in ["%", "x%", "NaN%", "inf%", "10%%", "10% MB", "1e1%"] {
            assert_eq!(text.parse::<BufferSize>(), Err(SizeError::NotABufferSize(text.to_owned())));
        }
    }

    #[test]
    fn zero_and_negative_sizes_are_refused() {
        for text in ["0", "0MB", "-0", "-1", "-64kB", "-1.5MB", "0.4", "0.0001kB"] {
            assert_eq!(text.parse::<BlockSize>(), Err(SizeError::NotPositive(text.to_owned())));
            assert_eq!(text.parse::<BufferSize>(), Err(SizeError::NotPositive(text.to_owned())));
        }
    }

    #[test]
    fn sizes_beyond_64_bits_are_refused() {
        for text in ["18446744073709551616", "16777216TB", "16777216.5TB", "99999999999999999999999999TB"] {
            assert_eq!(text.parse::<BlockSize>(), Err(SizeError::Overflow(text.to_owned())));
            assert_eq!(text.parse::<BufferSize>(), Err(SizeError::Overflow(text.to_owned())));
        }
    }

    #[test]
    fn percentages_outside_of_0_to_100_are_refused() {
        for text in ["0%", "-10%", "100.01%", "1000%", "0.0%"] {
            assert_eq!(text.parse::<BufferSize>(), Err(SizeError::PercentOutOfRange(text.to_owned())));
        }
    }

    #[test]
    fn blocks_may_be_larger_than_automatic_ones() {
        assert_eq!("50MB".parse(), Ok(BlockSize::Bytes(50 * MB)));
        assert_eq!("1TB".parse(), Ok(BlockSize::Bytes(1 << 40)));
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_divides_them() {
        for text in ["auto", "8kB", "10MB", "1025B", "1536kB"] {
            assert_eq!(text.parse::<BlockSize>().unwrap().to_string(), text);
        }
        for text in ["auto", "10%", "0.1%", "100%", "64MB", "3GB", "1024TB", "18446744073709551615B"] {
            assert_eq!(text.parse::<BufferSize>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_error_says_what_was_given_and_every_hint_shows_a_valid_size() {
        let errors = [
            ("x".parse::<BlockSize>().unwrap_err(), "\"x\" is not a block size"),
            ("x".parse::<BufferSize>().map(|_| BlockSize::Auto).unwrap_err(), "\"x\" is not a buffer size"),
            ("0".parse::<BlockSize>().unwrap_err(), "\"0\" is not greater than zero"),
            ("16777216TB".parse::<BlockSize>().unwrap_err(), "\"16777216TB\" is too large"),
            (
                "0%".parse::<BufferSize>().map(|_| BlockSize::Auto).unwrap_err(),
                "\"0%\" is not above 0% and at most 100%",
            ),
            (
                SizeError::BlockBelowPage { bytes: 100, page_bytes: 8192 },
                "a block of 100 bytes is smaller than a page of 8192 bytes",
            ),
        ];
        for (error, message) in errors {
            assert_eq!(error.to_string(), message);
            let examples: Vec<&str> = error.hint().split('\'').skip(1).step_by(2).collect();
            assert!(!examples.is_empty(), "{error}");
            for example in examples {
                assert!(example.parse::<BlockSize>().is_ok() || example.parse::<BufferSize>().is_ok(), "{example}");
            }
        }
    }
}
