//! What `COPY ... (FORMAT binary)` sends: a header, and for each row its fields with their lengths.

use std::io::BufRead;

use ::postgres::Client;
use source::{Cancel, SourceError};

use super::connect::refused;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// All that the statement sends.
pub(super) fn read(client: &mut Client, query: &str, cancel: &Cancel) -> Result<Vec<u8>, SourceError> {
    let mut all = Vec::new();
    each_chunk(client, query, cancel, &mut |bytes| {
        all.extend(bytes);
        Ok(())
    })?;
    Ok(all)
}

/// Hands out what the statement sends, as it comes.
pub(super) fn each_chunk(
    client: &mut Client,
    query: &str,
    cancel: &Cancel,
    use_it: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
) -> Result<(), SourceError> {
    let mut reader = client.copy_out(query).map_err(refused)?;
    loop {
        let received = reader.fill_buf().map_err(failed)?;
        if received.is_empty() {
            return Ok(());
        }
        let length = received.len();
        use_it(received)?;
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
    let mut decoder = Decoder::default();
    decoder.whole_rows(bytes, row)?;
    if decoder.has_ended() { Ok(()) } else { Err("what the database sent is cut off".to_owned()) }
}

/// Reads rows out of what has come so far.
#[derive(Default)]
pub(super) struct Decoder {
    begun: bool,
    ended: bool,
}

impl Decoder {
    /// Whether the end of the rows has come.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Hands out the fields of the rows that have come whole; how many bytes these took.
    pub(super) fn whole_rows<'a>(
        &mut self,
        bytes: &'a [u8],
        row: &mut dyn FnMut(&[Sent<'a>]) -> Result<(), String>,
    ) -> Result<usize, String> {
        let (mut rest, mut used) = (bytes, 0);
        if !self.begun {
            if header(&mut rest).is_none() {
                let begins = SIGNATURE.starts_with(&bytes[..bytes.len().min(SIGNATURE.len())]);
                return if begins { Ok(0) } else { Err("what the database sent is not a COPY of rows".to_owned()) };
            }
            self.begun = true;
            used = bytes.len() - rest.len();
        }
        let mut fields = Vec::new();
        while !self.ended {
            let Some(count) = take(&mut rest, 2) else { break };
            let count = i16::from_be_bytes([count[0], count[1]]);
            self.ended = count < 0;
            fields.clear();
            fields.extend((0..count).map_while(|_| field(&mut rest)));
            if fields.len() < count.max(0) as usize {
                break;
            }
            if !self.ended {
                row(&fields)?;
            }
            used = bytes.len() - rest.len();
        }
        Ok(used)
    }
}

/// Passes over what stands before the rows.
fn header(rest: &mut &[u8]) -> Option<()> {
    *rest = rest.strip_prefix(SIGNATURE)?;
    number(rest)?; // flags: none that matter
    let extension = number(rest)?;
    take(rest, usize::try_from(extension).ok()?).map(drop)
}

/// A value with its length before it, which is -1 of NULL.
pub(super) fn field<'a>(rest: &mut &'a [u8]) -> Option<Sent<'a>> {
    match number(rest)? {
        -1 => Some(None),
        length => Some(Some(take(rest, usize::try_from(length).ok()?)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_whole_wherever_what_comes_is_cut() {
        // two rows of a number and a NULL, and the end
        let mut sent = [SIGNATURE, &[0; 8]].concat();
        for number in [7u8, 9] {
            sent.extend([0, 2, 0, 0, 0, 1, number, 255, 255, 255, 255]);
        }
        sent.extend([255, 255]);
        for cut in 0..=sent.len() {
            let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
            let mut row = |fields: &[Sent<'_>]| {
                assert!(fields.len() == 2 && fields[1].is_none());
                seen.push(fields[0].map(<[u8]>::to_vec));
                Ok(())
            };
            let used = decoder.whole_rows(&sent[..cut], &mut row).unwrap();
            assert!(used <= cut);
            decoder.whole_rows(&sent[used..], &mut row).unwrap();
            assert_eq!(seen, [Some(vec![7]), Some(vec![9])], "cut at {cut}");
            assert!(decoder.has_ended());
        }
        assert!(each_row(&sent[..sent.len() - 1], &mut |_| Ok(())).is_err());
        assert!(Decoder::default().whole_rows(b"text", &mut |_| Ok(())).is_err());
    }
}
