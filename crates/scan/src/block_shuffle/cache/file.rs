//! Decoded tuples in a temporary file.
//!
//! A record per page, one behind the other.

use decode::Decoder;
use errors::Result;
use pg::tuples::temp_file::{TempFile, temp_file_limit};
use std::ops::Range;
use tuples::{Batch, RecordHeader};

/// A file of decoded tuples: written page by page, then read by area.
pub struct TupleFile {
    file: TempFile,
    /// words that are still to be written
    pending: Vec<u32>,
    /// words that the file may have; None if PostgreSQL's error is to come when it is too large
    limit: Option<u64>,
    /// words of the area under way that were read, and how many of them are used up
    read: Vec<u32>,
    used: usize,
    /// what else of the area is to be read
    rest: Range<u64>,
}

/// Words to write, or to read, at once: 256 kB.
const CHUNK: usize = 1 << 16;

impl TupleFile {
    /// An empty file. If it is to be `strict`, it is an error to exceed temp_file_limit; otherwise it takes at most
    /// half of that, so that others of the session find room, and less if they have taken more.
    pub fn create(strict: bool) -> TupleFile {
        let half = temp_file_limit().map_or(u64::MAX, |bytes| bytes / 2);
        TupleFile {
            file: TempFile::create(),
            pending: Vec::new(),
            limit: (!strict).then_some(half / size_of::<u32>() as u64),
            read: Vec::new(),
            used: 0,
            rest: 0..0,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.file.len() * size_of::<u32>() as u64
    }

    /// Where the next record begins.
    pub fn end(&self) -> u64 {
        self.file.len() + self.pending.len() as u64
    }

    /// Appends the record of a page, whose tuples are at `places` of the batch, and gives its area.
    pub fn push(&mut self, batch: &Batch, places: Range<usize>, skipped: u32) -> Range<u64> {
        let start = self.end();
        let header = RecordHeader::new(batch, places.clone(), skipped);
        let before = self.pending.len();
        allocation::resize(&mut self.pending, before + RecordHeader::WORDS + header.body(batch), 0);
        batch.write_record(places, header, &mut self.pending[before..]);
        start..self.end()
    }

    /// Writes what is pending, if it is much. False if the file is full.
    pub fn flush_much(&mut self) -> Result<bool> {
        if self.pending.len() >= CHUNK { self.flush() } else { Ok(true) }
    }

    /// Writes what is pending. False if the file is full: then it is lost.
    pub fn flush(&mut self) -> Result<bool> {
        let written = match self.limit {
            None => self.file.append(&self.pending).map(|()| true)?,
            Some(limit) => self.end() <= limit && self.file.append_within_limit(&self.pending)?,
        };
        self.pending.clear();
        Ok(written)
    }

    pub fn has(&self, area: &Range<u64>) -> bool {
        !area.is_empty() && area.end <= self.file.len()
    }

    /// Begins to read an area.
    pub fn open(&mut self, area: Range<u64>) {
        self.read.clear();
        self.used = 0;
        self.rest = area;
    }

    /// Appends the tuples of the area's next record to the batch, which `decoder` gives its shape if it is new.
    pub fn read_page(&mut self, decoder: &mut Decoder, batch: &mut Batch) -> Result<()> {
        let header = self.take(RecordHeader::WORDS)?;
        let header = RecordHeader::read(&self.read[header..self.used]);
        decoder.leave_out(header.skipped.into());
        if header.tuples > 0 {
            decoder.shape(batch);
            let body = self.take(header.body(batch))?;
            batch.read_record(header, &self.read[body..self.used])?;
        }
        Ok(())
    }

    /// Reads on until there are `len` words that were not used, uses them, and says where they begin.
    fn take(&mut self, len: usize) -> Result<usize> {
        let left = self.read.len() - self.used;
        if left < len {
            self.read.copy_within(self.used.., 0);
            let more = (self.rest.end - self.rest.start).min((len - left).max(CHUNK) as u64) as usize;
            allocation::resize(&mut self.read, left + more, 0);
            self.file.read(self.rest.start, &mut self.read[left..])?;
            self.rest.start += more as u64;
            self.used = 0;
        }
        let start = self.used;
        self.used += len;
        Ok(start)
    }

    pub fn delete(self) {
        self.file.end();
    }
}
