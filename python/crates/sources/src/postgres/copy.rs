//! What `COPY ... (FORMAT binary)` sends: a header, and for each row its fields with their lengths.

use std::io::BufRead;

use ::postgres::Client;
use source::{Cancel, SourceError};

use super::connect::refused;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// All that the statement sends.
pub(super) fn read(client: &mut Client, query: &str, cancel: &Cancel) -> Result<Vec<u8>, SourceError> {
    let mut reader = client.copy_out(query).map_err(refused)?;
    let mut bytes = Vec::new();
    loop {
        let received = reader.fill_buf().map_err(failed)?;
        if received.is_empty() {
            return Ok(bytes);
        }
        let length = received.len();
        bytes.extend(received);
        reader.consume(length);
        cancel.check()?;
    }
}

/// The reader wraps what the database says in an error of input and output.
fn failed(error: std::io::Error) -> SourceError {
    let text = error.to_string();
    match error.into_inner().map(|inner| inner.downcast::<::postgres::Error>()) {
        Some(Ok(error)) => refused(*error),
        _ => SourceError::Database(text),
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(take(bytes, 4)?.try_into().ok()?))
}

/// A value as it was sent; none is NULL.
pub(super) type Sent<'a> = Option<&'a [u8]>;

/// Hands out the fields of each row.
pub(super) fn each_row<'a>(
    bytes: &'a [u8],
    row: &mut dyn FnMut(&[Sent<'a>]) -> Result<(), String>,
) -> Result<(), String> {
    let mut fields = Vec::new();
    let cut_off = || "what the database sent is cut off".to_owned();
    let mut rest = bytes.strip_prefix(SIGNATURE).ok_or_else(cut_off)?;
    number(&mut rest).ok_or_else(cut_off)?; // flags: none that matter
    let extension = number(&mut rest).ok_or_else(cut_off)?;
    take(&mut rest, extension as usize).ok_or_else(cut_off)?;
    loop {
        let count = take(&mut rest, 2).ok_or_else(cut_off)?;
        let count = i16::from_be_bytes([count[0], count[1]]);
        if count < 0 {
            return Ok(());
        }
        fields.clear();
        for _ in 0..count {
            fields.push(field(&mut rest).ok_or_else(cut_off)?);
        }
        row(&fields)?;
    }
}

/// A value with its length before it, which is -1 of NULL.
pub(super) fn field<'a>(rest: &mut &'a [u8]) -> Option<Sent<'a>> {
    match number(rest)? {
        -1 => Some(None),
        length => Some(Some(take(rest, usize::try_from(length).ok()?)?)),
    }
}
