//! Finds rows: by the parser that reads them, so that both agree about quotes and empty lines.

use std::ops::Range;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use source::SourceError;

use crate::files::DataFile;
use crate::index::IndexedFormat;
use crate::index::scan::{Input, Row, Scan};
use crate::indexed::bytes_of;

/// The format, as far as an index is concerned.
#[derive(Clone, Copy, Debug)]
pub struct CsvLines {
    /// Whether the first row has the columns' names.
    pub header: bool,
    /// What is between two values. An index does not depend on it, unless quotes follow it.
    pub delimiter: u8,
    /// What is around values that have a delimiter or an end of line.
    pub quote: u8,
}

/// The lowest and the highest bit of each of eight bytes.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x80 * LOW_BITS;

impl CsvLines {
    pub(super) fn parser(&self) -> Reader {
        ReaderBuilder::new().delimiter(self.delimiter).quote(self.quote).build()
    }

    /// Where some whole rows are, and how many fields each has.
    pub(super) fn places(&self, bytes: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut parser = self.parser();
        let (mut fields, mut ends) = ([0; 4096], [0; 512]);
        let (mut places, mut start, mut at, mut count) = (Vec::new(), 0, 0, 0);
        loop {
            let (result, read, _, ended) = parser.read_record(&bytes[at..], &mut fields, &mut ends);
            at += read;
            count += ended;
            match result {
                ReadRecordResult::Record => {
                    places.push((start..at, count));
                    (start, count) = (at, 0);
                }
                ReadRecordResult::End => return places,
                _ => {}
            }
        }
    }

    /// Where in some whole rows a quote ends a value, but not the field: behind it stands something else. The parser
    /// takes that for a part of the value, and so joins rows between which a quote is missing.
    ///
    /// A quote in a value that none begins, as in `5" pipe`, is a character like any other.
    pub(super) fn stray_quote(&self, rows: &[u8]) -> Option<usize> {
        if self.has_plain_quotes(rows) {
            return None;
        }
        let bounds = |byte: u8| byte == self.delimiter || byte == b'\n' || byte == b'\r';
        let first = if rows.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let (mut within, mut doubled) = (false, usize::MAX);
        for at in memchr::memchr_iter(self.quote, rows) {
            if !within {
                within = at == first || (at > 0 && bounds(rows[at - 1]));
            } else if at != doubled {
                match rows.get(at + 1) {
                    Some(&next) if next == self.quote => doubled = at + 1,
                    Some(&next) if !bounds(next) => return Some(at),
                    _ => within = false,
                }
            }
        }
        None
    }

    /// Whether every second quote is followed by the end of a field or by another quote, and the others come behind
    /// such: then none is stray. It does not look at each quote for what it means, which takes longer than the parser.
    fn has_plain_quotes(&self, rows: &[u8]) -> bool {
        let mut is_fit = [false; 256];
        for byte in [self.delimiter, self.quote, b'\n', b'\r'] {
            is_fit[usize::from(byte)] = true;
        }
        let (mut all_fit, mut is_second) = (true, false);
        let mut look = |at: usize| {
            let beside = if is_second { at + 1 } else { at.wrapping_sub(1) };
            all_fit &= rows.get(beside).is_none_or(|&byte| is_fit[usize::from(byte)]);
            is_second = !is_second;
        };
        let (eights, rest) = rows.as_chunks::<8>();
        for (number, eight) in eights.iter().enumerate() {
            // the highest bit of each byte that is a quote
            let differing = u64::from_le_bytes(*eight) ^ (u64::from(self.quote) * LOW_BITS);
            let mut quotes = !(((differing & !HIGH_BITS) + !HIGH_BITS) | differing) & HIGH_BITS;
            while quotes != 0 {
                look(8 * number + quotes.trailing_zeros() as usize / 8);
                quotes &= quotes - 1;
            }
        }
        let behind = 8 * eights.len();
        rest.iter().enumerate().filter(|(_, byte)| **byte == self.quote).for_each(|(at, _)| look(behind + at));
        all_fit
    }

    /// What is wrong at a [stray quote](Self::stray_quote).
    pub(super) const STRAY: &str = "behind a quote that ends a value stands neither a delimiter nor an end of line: \
                                    a quote is missing before it, or not doubled within the value";
}

impl IndexedFormat for CsvLines {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn settings(&self) -> String {
        let header = if self.header { "a header" } else { "no header" };
        let (delimiter, quote) = (char::from(self.delimiter), char::from(self.quote));
        format!("{header}, delimiter {delimiter:?} and quote {quote:?}")
    }

    fn scanner(&self) -> Box<dyn Scan> {
        Box::new(Scanner { parser: self.parser(), quote: self.quote, header: self.header, ended: false })
    }
}

struct Scanner {
    parser: Reader,
    quote: u8,
    header: bool,
    ended: bool,
}

impl Scanner {
    /// The row that the end of the file ends, if there is one, which began here.
    fn end(&mut self, start: u64, input: &Input) -> Result<Option<Row>, SourceError> {
        // within quotes, an end of line ends no row, but one behind another quote does
        let mut ends_a_row = |text: &[u8]| {
            let (mut fields, mut ends) = ([0; 8], [0; 8]);
            matches!(self.parser.read_record(text, &mut fields, &mut ends).0, ReadRecordResult::Record)
        };
        if self.ended {
            return Ok(None);
        }
        if ends_a_row(b"\n") {
            return Ok(Some(Row { end: input.position(), most: [0, 0] }));
        }
        self.ended = true;
        match ends_a_row(&[self.quote, b'\n']) {
            true => Err(input.damaged(start, "the file ends within quotes that this row has opened")),
            false => Ok(None),
        }
    }
}

impl Scan for Scanner {
    fn begin(&mut self, input: &mut Input) -> Result<u64, SourceError> {
        if self.header {
            self.next(input)?;
        }
        Ok(input.position())
    }

    fn next(&mut self, input: &mut Input) -> Result<Option<Row>, SourceError> {
        let (mut fields, mut ends) = ([0; 4096], [0; 512]);
        let start = input.position();
        loop {
            let bytes = input.buffered()?;
            if bytes.is_empty() {
                return self.end(start, input);
            }
            let (result, read, ..) = self.parser.read_record(bytes, &mut fields, &mut ends);
            input.consume(read);
            match result {
                ReadRecordResult::Record => return Ok(Some(Row { end: input.position(), most: [0, 0] })),
                ReadRecordResult::End => return Ok(None),
                // The fields themselves are of no interest.
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {}
            }
        }
    }
}

/// The fields of the first row of a file: the names of its columns.
pub(super) fn first_row(file: &DataFile, lines: &CsvLines) -> Result<Option<Vec<String>>, SourceError> {
    let mut input = Input::open(file)?;
    let mut parser = lines.parser();
    let (mut fields, mut ends) = (vec![0; 1 << 16], vec![0; 1 << 10]);
    let (mut written, mut ended) = (0, 0);
    loop {
        let (result, read, wrote, end) =
            parser.read_record(input.buffered()?, &mut fields[written..], &mut ends[ended..]);
        input.consume(read);
        written += wrote;
        ended += end;
        match result {
            ReadRecordResult::End => return Ok(None),
            ReadRecordResult::Record => break,
            ReadRecordResult::OutputFull => fields.resize(2 * fields.len(), 0),
            ReadRecordResult::OutputEndsFull => ends.resize(2 * ends.len(), 0),
            ReadRecordResult::InputEmpty => {}
        }
    }
    let bytes = bytes_of(file, &file.open()?, 0, input.position() as usize)?;
    if let Some(at) = lines.stray_quote(&bytes) {
        return Err(file.damaged(at as u64, CsvLines::STRAY));
    }
    let mut start = 0;
    let row = ends[..ended].iter().map(|&end| {
        let field = &fields[start..end];
        start = end;
        String::from_utf8(field.to_vec()).map_err(|_| file.damaged(0, "the first row is not valid UTF-8"))
    });
    row.collect::<Result<_, _>>().map(Some)
}
