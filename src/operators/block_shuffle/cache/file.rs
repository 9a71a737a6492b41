//! Decoded tuples in a temporary file.
//!
//! A record per page, one behind the other, of words: how many tuples, entries (if they are sparse) and left out rows
//! there are, then the labels, the weights and the group tags if there are some, and the features: of dense
//! tuples row by row without padding, of sparse ones how many entries each has, all indices, all values.

use crate::errors::Result;
use crate::operators::decoder::Decoder;
use crate::pg::tuples::temp_file::{TempFile, temp_file_limit};
use std::ops::Range;
use tuples::Batch;

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

/// Words before a record's tuples.
const HEADER: usize = 3;

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

    /// Bytes of the file.
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
        let to = &mut self.pending;
        let header = to.len();
        to.extend([places.len() as u32, 0, skipped]);
        to.extend(batch.labels()[places.clone()].iter().map(|label| label.to_bits()));
        if let Some(weights) = batch.weights() {
            to.extend(weights[places.clone()].iter().map(|weight| weight.to_bits()));
        }
        if let Some(tags) = batch.tags() {
            to.extend(&tags[places.clone()]);
        }
        if places.is_empty() {
            // the batch may not have a shape yet
        } else if batch.is_sparse() {
            to.extend(places.clone().map(|i| batch.sparse_row(i).0.len() as u32));
            places.clone().for_each(|i| to.extend_from_slice(batch.sparse_row(i).0));
            let indices = to.len();
            places.for_each(|i| to.extend(batch.sparse_row(i).1.iter().map(|value| value.to_bits())));
            to[header + 1] = (to.len() - indices) as u32;
        } else {
            places.for_each(|i| to.extend(batch.features(i).iter().map(|value| value.to_bits())));
        }
        start..self.end()
    }

    /// Writes what is pending, if it is much. False if the file is full.
    ///
    /// # Errors
    /// As [`TempFile::append`].
    pub fn flush_much(&mut self) -> Result<bool> {
        if self.pending.len() >= CHUNK { self.flush() } else { Ok(true) }
    }

    /// Writes what is pending. False if the file is full: then it is lost.
    ///
    /// # Errors
    /// As [`TempFile::append`].
    pub fn flush(&mut self) -> Result<bool> {
        let written = match self.limit {
            None => self.file.append(&self.pending).map(|()| true)?,
            Some(limit) => self.end() <= limit && self.file.append_within_limit(&self.pending)?,
        };
        self.pending.clear();
        Ok(written)
    }

    /// Is all of the area in the file?
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
    ///
    /// # Errors
    /// As [`TempFile::read`]; [`ResourceError::OutOfMemory`](crate::errors::Error::OutOfMemory)
    pub fn read_page(&mut self, decoder: &mut Decoder, batch: &mut Batch) -> Result<()> {
        let header = self.take(HEADER)?;
        let (tuples, entries) = (self.read[header] as usize, self.read[header + 1] as usize);
        decoder.leave_out(self.read[header + 2].into());
        if tuples == 0 {
            return Ok(());
        }
        decoder.shape(batch);
        let first = batch.len();
        let (weighted, tagged) = (usize::from(batch.weights().is_some()), usize::from(batch.tags().is_some()));
        let of_tuple = 1 + weighted + tagged;
        let features = if batch.is_sparse() { tuples + 2 * entries } else { tuples * batch.dim() };
        let start = self.take(tuples * of_tuple + features)?;
        let words = &self.read[start..self.used];
        let (labels, words) = words.split_at(tuples);
        let (weights, words) = words.split_at(tuples * weighted);
        let (tags, words) = words.split_at(tuples * tagged);
        if batch.is_sparse() {
            push_sparse(batch, labels, words)?
        } else {
            push_dense(batch, labels, words)?
        }
        if !weights.is_empty() {
            copy(weights, &mut batch.weights_mut()[first..]);
        }
        if !tags.is_empty() {
            batch.tags_mut()[first..].copy_from_slice(tags);
        }
        Ok(())
    }

    /// Reads on until there are `len` words that were not used, uses them, and says where they begin.
    fn take(&mut self, len: usize) -> Result<usize> {
        let left = self.read.len() - self.used;
        if left < len {
            self.read.copy_within(self.used.., 0);
            let more = (self.rest.end - self.rest.start).min((len - left).max(CHUNK) as u64) as usize;
            self.read.resize(left + more, 0);
            self.file.read(self.rest.start, &mut self.read[left..])?;
            self.rest.start += more as u64;
            self.used = 0;
        }
        let start = self.used;
        self.used += len;
        Ok(start)
    }

    /// Deletes the file.
    pub fn delete(self) {
        self.file.end();
    }
}

fn push_dense(batch: &mut Batch, labels: &[u32], features: &[u32]) -> Result<()> {
    let dim = batch.dim();
    let mut tuples = batch.extend(labels.len())?;
    let (to_labels, rows, stride) = tuples.parts_mut();
    copy(labels, to_labels);
    for (from, to) in features.chunks_exact(dim).zip(rows.chunks_exact_mut(stride)) {
        copy(from, &mut to[..dim]);
    }
    Ok(())
}

fn push_sparse(batch: &mut Batch, labels: &[u32], words: &[u32]) -> Result<()> {
    let (lengths, entries) = words.split_at(labels.len());
    let (mut indices, mut values) = entries.split_at(entries.len() / 2);
    for (label, len) in labels.iter().zip(lengths) {
        let (to_indices, to_values) = batch.push_sparse(f32::from_bits(*label), *len as usize)?;
        to_indices.copy_from_slice(indices.split_off(..*len as usize).unwrap_or_default());
        copy(values.split_off(..*len as usize).unwrap_or_default(), to_values);
    }
    Ok(())
}

fn copy(from: &[u32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(*from);
    }
}
