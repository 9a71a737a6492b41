//! The readable form of a compressed mini-batch.
//!
//! `toc 4x3: 1:1.5 3:-2; ; 2:7; 1:NaN`: the encoding, rows times columns, and behind the colon the rows, with a
//! semicolon between one and the next, each with the columns (from 1, ascending) that have an entry other than 0, and
//! their values: the shortest decimal numbers that give the same bits again. A NaN of other bits than usual is written
//! with these: `NaN(7ff0000000000001)`.

use tuples::pause::Pauses;

use crate::{Encoding, Error, Rows, decode, encode, encode_smallest, info, limits};

/// Most bytes of a text: what one value of a database may have, and room for its own header.
const MAX_BYTES: usize = 0x3FFF_FF00;

/// How many plain numbers take as long as one that is written or read as text.
const NUMBERS_PER_TEXT: usize = 16;

/// The text of these bytes.
///
/// # Errors
/// Those of [`decode`], and [`Error`] if the text would be too long.
pub fn write(bytes: &[u8]) -> Result<String, Error> {
    use std::fmt::Write;
    let (encoding, rows) = (info(bytes)?.encoding, decode(bytes)?);
    let mut text = format!("{encoding} {}x{}:", rows.len(), rows.columns());
    let mut pauses = Pauses::default();
    for i in 0..rows.len() {
        let (columns, values) = rows.row(i);
        // an entry takes 40 bytes at most
        allocation::grow(text.len(), || text.try_reserve(1 + 40 * columns.len()));
        text.push_str(if i == 0 { "" } else { ";" });
        for (column, value) in columns.iter().zip(values) {
            pauses.after(NUMBERS_PER_TEXT);
            // writing to a string does not fail
            let _ = match value {
                value if value.is_nan() && value.to_bits() != f64::NAN.to_bits() => {
                    write!(text, " {}:NaN({:016x})", column + 1, value.to_bits())
                }
                value => write!(text, " {}:{value:?}", column + 1),
            };
        }
        if text.len() > MAX_BYTES {
            return Err(Error::Malformed("its text would be too long"));
        }
    }
    Ok(text)
}

/// The bytes of a text. In place of an encoding it may say `auto`.
///
/// # Errors
/// [`Error`] if the text is not as [`write`] writes it.
pub fn read(text: &str) -> Result<Vec<u8>, Error> {
    let malformed = Error::Malformed;
    let (head, body) = text.split_once(':').ok_or_else(|| malformed("it has no colon behind its size"))?;
    let (name, size) = head.trim().split_once(char::is_whitespace).ok_or_else(|| malformed("it has no size"))?;
    let encoding: Option<Encoding> = match name {
        name if name.eq_ignore_ascii_case("auto") => None,
        name => Some(name.parse().map_err(|_| malformed("its encoding is not known"))?),
    };
    let (len, columns) = size.trim().split_once('x').ok_or_else(|| malformed("its size is not rows x columns"))?;
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| malformed("its size is not rows x columns"));
    let (len, columns) = (number(len)?, number(columns)?);
    if len > limits::MAX_ROWS || columns > limits::MAX_COLUMNS {
        return Err(Error::TooLarge { rows: len, columns, entries: 0 });
    }
    let mut rows = Rows::new(columns);
    let is_empty = len == 0 && body.trim().is_empty();
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    let mut pauses = Pauses::default();
    for row in body.split(';').filter(|_| !is_empty) {
        if rows.len() == len {
            return Err(malformed("it has more rows than it says"));
        }
        indices.clear();
        values.clear();
        for entry in row.split_whitespace() {
            pauses.after(NUMBERS_PER_TEXT);
            let (index, value) = entry.split_once(':').ok_or_else(|| malformed("an entry has no column"))?;
            let index: u32 = index.parse().map_err(|_| malformed("a column is not a number"))?;
            let index = index.checked_sub(1).ok_or_else(|| malformed("columns count from 1"))?;
            allocation::push(&mut indices, index);
            allocation::push(&mut values, number_of(value)?);
        }
        // in the text columns count from 1
        rows.push_sparse(&indices, &values).map_err(|error| match error {
            Error::Index { .. } => malformed("a column is not there"),
            Error::Order { .. } => malformed("columns of a row are not ascending"),
            error => error,
        })?;
    }
    if rows.len() != len {
        return Err(malformed("it has fewer rows than it says"));
    }
    match encoding {
        Some(encoding) => encode(&rows, encoding),
        None => encode_smallest(&rows),
    }
}

fn number_of(text: &str) -> Result<f64, Error> {
    let none = Error::Malformed("a value is not a number");
    if let Some(bits) = text.strip_prefix("NaN(").and_then(|rest| rest.strip_suffix(')')) {
        let bits = u64::from_str_radix(bits, 16).ok().filter(|_| bits.len() == 16).ok_or(none)?;
        return Some(f64::from_bits(bits)).filter(|value| value.is_nan()).ok_or(none);
    }
    let value: f64 = text.parse().map_err(|_| none)?;
    // as PostgreSQL has it: beyond the largest is not infinity, below the smallest not 0
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let says_zero = !mantissa.contains(|c: char| ('1'..='9').contains(&c));
    let says_infinity = !mantissa.contains(|c: char| c.is_ascii_digit());
    if value.is_infinite() && !says_infinity || value == 0.0 && !says_zero {
        return Err(Error::Malformed("a value is out of range"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows_of(columns: usize, rows: &[Vec<f64>]) -> Rows {
        let mut all = Rows::new(columns);
        rows.iter().for_each(|row| all.push_dense(row).unwrap());
        all
    }

    #[test]
    fn a_text_is_as_documented() {
        let rows = rows_of(3, &[vec![1.5, 0.0, -2.0], vec![0.0; 3], vec![0.0, 7.0, 0.0], vec![f64::NAN, -0.0, 0.1]]);
        let text = write(&encode(&rows, Encoding::Csr).unwrap()).unwrap();
        assert_eq!(text, "csr 4x3: 1:1.5 3:-2.0;; 2:7.0; 1:NaN 2:-0.0 3:0.1");
        assert_eq!(write(&read(&text).unwrap()).unwrap(), text);
        for (text, columns) in [("den 0x5:", 5), ("auto 0x0: ", 0), ("TOC 2x1: ;", 1), ("dvi 1x2:", 2)] {
            assert_eq!(decode(&read(text).unwrap()).unwrap().columns(), columns, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_none_is_refused() {
        for text in [
            "",
            "toc",
            "toc 1x1",
            "toc 1: 1:1",
            "zip 1x1: 1:1",
            "toc 1x1: 2:1",
            "toc 1x1: 0:1",
            "toc 1x1: 1:one",
            "toc 1x1: 1:1 1:1",
            "toc 1x2: 2:1 1:1",
            "toc 1x1: 1:1; 1:1",
            "toc 2x1: 1:1",
            "toc 1x1: 1",
            "toc -1x1: 1:1",
            "toc 99999999999x99999999999: 1:1",
            "toc 1x1: 1:NaN(0000000000000001)",
            "toc 1x1: 1:NaN(7ff8)",
            "toc 1x1: 1:1e400",
            "toc 1x1: 1:-1e400",
            "toc 1x1: 1:1e-400",
            "toc 0x1: ;",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_bit_comes_back(bits in prop::collection::vec(prop::collection::vec(any::<u64>(), 3), 0..6)) {
            let rows: Vec<Vec<f64>> = bits.iter().map(|row| row.iter().map(|bits| f64::from_bits(*bits)).collect()).collect();
            let bytes = encode(&rows_of(3, &rows), Encoding::Toc).unwrap();
            prop_assert_eq!(read(&write(&bytes).unwrap()).unwrap(), bytes);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-zA-Z0-9x:;. ()+-]{0,40}") {
            let _ = read(&text);
        }
    }
}
