//! Tuples as words of 32 bits: to be kept in a file, or where other processes read them.
//!
//! A record begins with its [`RecordHeader`]: how many tuples, entries (if they are sparse) and left out rows there
//! are. Then come the labels, the weights and the group tags if there are some, and the features: of dense tuples row
//! by row without padding, of sparse ones how many entries each has, all indices, all values. What a batch is like is
//! not in the record: who reads it has a batch of the same kind.

use crate::{Batch, OutOfMemory};
use std::ops::Range;

/// How a record begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// tuples of the record
    pub tuples: u32,
    /// entries of all of them, if they are sparse; else 0
    pub entries: u32,
    /// rows that have not become tuples
    pub skipped: u32,
}

impl RecordHeader {
    /// Words of a header.
    pub const WORDS: usize = 3;

    /// The header of the record of the tuples at `places`, which are no mini-batches.
    pub fn new(batch: &Batch, places: Range<usize>, skipped: u32) -> RecordHeader {
        let tuples = places.len() as u32;
        let entries = match batch.is_sparse() {
            true => places.map(|i| batch.sparse_row(i).0.len() as u32).sum(),
            false => 0,
        };
        RecordHeader { tuples, entries, skipped }
    }

    /// The header of the record that begins with these words.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn read(words: &[u32]) -> RecordHeader {
        RecordHeader { tuples: words[0], entries: words[1], skipped: words[2] }
    }

    /// Words of the record behind the header, of tuples like those of `batch`.
    pub fn body(&self, batch: &Batch) -> usize {
        let tuples = self.tuples as usize;
        if tuples == 0 {
            return 0; // the batch may not have a shape yet
        }
        let of_tuple = 1 + usize::from(batch.weights().is_some()) + usize::from(batch.tags().is_some());
        tuples * of_tuple + self.features(batch)
    }

    /// Words of the features alone.
    pub fn features(&self, batch: &Batch) -> usize {
        let (tuples, entries) = (self.tuples as usize, self.entries as usize);
        match batch.is_sparse() {
            _ if tuples == 0 => 0,
            true => tuples + 2 * entries,
            false => tuples * batch.dim(),
        }
    }
}

impl Batch {
    /// Writes the record of the tuples at `places`, of which this is the header, to `words`.
    ///
    /// # Panics
    /// If the record has another number of words.
    pub fn write_record(&self, places: Range<usize>, header: RecordHeader, words: &mut [u32]) {
        assert_eq!(words.len(), RecordHeader::WORDS + header.body(self), "words of the record");
        let mut words = Words(words);
        words.put([header.tuples, header.entries, header.skipped]);
        words.put_floats(&self.labels()[places.clone()]);
        if let Some(weights) = self.weights() {
            words.put_floats(&weights[places.clone()]);
        }
        if let Some(tags) = self.tags() {
            words.put(tags[places.clone()].iter().copied());
        }
        if self.is_sparse() {
            words.put(places.clone().map(|i| self.sparse_row(i).0.len() as u32));
            places.clone().for_each(|i| words.put(self.sparse_row(i).0.iter().copied()));
            places.for_each(|i| words.put_floats(self.sparse_row(i).1));
        } else {
            places.for_each(|i| words.put_floats(self.features(i)));
        }
    }

    /// Appends the tuples of the record with this header, whose other words are `body`.
    ///
    /// # Panics
    /// If the record has another number of words: it is of another kind of batch.
    pub fn read_record(&mut self, header: RecordHeader, body: &[u32]) -> Result<(), OutOfMemory> {
        assert_eq!(body.len(), header.body(self), "words of the record");
        if header.tuples == 0 {
            return Ok(());
        }
        let (first, tuples) = (self.len(), header.tuples as usize);
        let (labels, words) = body.split_at(tuples);
        let (weights, words) = words.split_at(if self.weights().is_some() { tuples } else { 0 });
        let (tags, words) = words.split_at(if self.tags().is_some() { tuples } else { 0 });
        self.read_features(labels, words)?;
        if !weights.is_empty() {
            copy(weights, &mut self.weights_mut()[first..]);
        }
        if !tags.is_empty() {
            self.tags_mut()[first..].copy_from_slice(tags);
        }
        Ok(())
    }

    /// Appends tuples with these labels, each a float's bits, and these features, of weight 1 and without tags.
    ///
    /// # Panics
    /// If they are features of another kind of batch.
    pub fn read_features(&mut self, labels: &[u32], features: &[u32]) -> Result<(), OutOfMemory> {
        match self.is_sparse() {
            true => self.read_sparse(labels, features),
            false => self.read_dense(labels, features),
        }
    }

    fn read_dense(&mut self, labels: &[u32], features: &[u32]) -> Result<(), OutOfMemory> {
        let dim = self.dim();
        let mut tuples = self.extend(labels.len())?;
        let (to_labels, rows, stride) = tuples.parts_mut();
        copy(labels, to_labels);
        for (i, to) in rows.chunks_exact_mut(stride).enumerate() {
            copy(&features[i * dim..(i + 1) * dim], &mut to[..dim]);
        }
        Ok(())
    }

    fn read_sparse(&mut self, labels: &[u32], words: &[u32]) -> Result<(), OutOfMemory> {
        let (lengths, entries) = words.split_at(labels.len());
        let (mut indices, mut values) = entries.split_at(entries.len() / 2);
        for (label, len) in labels.iter().zip(lengths) {
            let (to_indices, to_values) = self.push_sparse(f32::from_bits(*label), *len as usize)?;
            to_indices.copy_from_slice(indices.split_off(..*len as usize).unwrap_or_default());
            copy(values.split_off(..*len as usize).unwrap_or_default(), to_values);
        }
        Ok(())
    }
}

/// Words that are still to be written.
struct Words<'a>(&'a mut [u32]);

impl Words<'_> {
    fn put(&mut self, words: impl IntoIterator<Item = u32, IntoIter: ExactSizeIterator>) {
        let words = words.into_iter();
        let to = self.0.split_off_mut(..words.len()).unwrap_or_default();
        to.iter_mut().zip(words).for_each(|(to, word)| *to = word);
    }

    fn put_floats(&mut self, floats: &[f32]) {
        self.put(floats.iter().map(|float| float.to_bits()));
    }
}

fn copy(from: &[u32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = f32::from_bits(*from);
    }
}
