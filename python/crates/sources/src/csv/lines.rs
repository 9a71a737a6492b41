//! Finds rows: by the parser that reads them, so that both agree about quotes and empty lines.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use source::SourceError;

use crate::files::DataFile;
use crate::index::IndexedFormat;
use crate::index::scan::{Input, Row, Scan};

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

impl CsvLines {
    pub(super) fn parser(&self) -> Reader {
        ReaderBuilder::new().delimiter(self.delimiter).quote(self.quote).build()
    }
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

/// The fields of the first row of a file.
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
    let mut start = 0;
    let row = ends[..ended].iter().map(|&end| {
        let field = &fields[start..end];
        start = end;
        String::from_utf8(field.to_vec()).map_err(|_| file.damaged(0, "the first row is no UTF-8"))
    });
    row.collect::<Result<_, _>>().map(Some)
}
