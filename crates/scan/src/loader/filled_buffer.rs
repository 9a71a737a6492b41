//! How a filled buffer travels from the worker to the leader.

use bytemuck::{AnyBitPattern, NoUninit};
use pg::process::dsm::{Handle, Segment};
use serde::{Deserialize, Serialize};
use tuples::{Batch, OutOfMemory, SparseParts, TupleColumns};

/// A buffer: its dense rows are in one segment, all the rest in another.
#[derive(Serialize, Deserialize)]
pub struct FilledBuffer {
    /// None if the rows are sparse
    pub rows: Option<Handle>,
    pub rest: Handle,
    /// which of the worker's buffers it is
    pub slot: usize,
    pub dim: usize,
    pub len: usize,
    weighted: bool,
    order: usize,
    entries: usize,
}

impl FilledBuffer {
    /// What is in a batch, of which `rows` has the dense rows.
    pub fn new(batch: &Batch, slot: usize, rows: Option<Handle>, rest: Handle) -> FilledBuffer {
        FilledBuffer {
            rows,
            rest,
            slot,
            dim: batch.dim(),
            len: batch.len(),
            weighted: batch.weights().is_some(),
            order: batch.order().len(),
            entries: if batch.is_sparse() { batch.nnz() } else { 0 },
        }
    }

    pub fn rest_bytes(batch: &Batch) -> usize {
        let sparse = batch
            .sparse_parts()
            .map_or(0, |rows| size_of_val(rows.ends) + size_of_val(rows.indices) + size_of_val(rows.values));
        let weights = batch.weights().map_or(0, size_of_val);
        sparse + size_of_val(batch.labels()) + weights + size_of_val(batch.order())
    }

    /// Writes the rest, which fits.
    pub fn write(batch: &Batch, rest: &mut Segment) {
        let mut at = 0;
        // usize first, for their alignment
        if let Some(rows) = batch.sparse_parts() {
            at = put(rest, at, rows.ends);
            at = put(rest, at, rows.indices);
            at = put(rest, at, rows.values);
        }
        at = put(rest, at, batch.labels());
        at = put(rest, at, batch.weights().unwrap_or_default());
        put(rest, at, batch.order());
    }

    /// Makes `batch` what the worker's was. Sparse tuples are copied, of dense ones all but the rows,
    /// which lie in `rows`.
    pub fn read(&self, rows: Option<Segment>, rest: &Segment, batch: &mut Batch) -> Result<(), OutOfMemory> {
        let mut at = 0;
        let sparse = SparseParts {
            dim: self.dim,
            ends: take(rest, &mut at, if rows.is_none() { self.len } else { 0 }),
            indices: take(rest, &mut at, self.entries),
            values: take(rest, &mut at, self.entries),
        };
        let labels = take(rest, &mut at, self.len);
        let weights = self.weighted.then(|| take(rest, &mut at, self.len));
        let columns = TupleColumns { labels, weights, order: take(rest, &mut at, self.order) };
        match rows {
            Some(rows) => batch.adopt_rows(self.dim, Box::new(rows), &columns),
            None => batch.copy_rows(&sparse, &columns),
        }
    }
}

fn put<T: AnyBitPattern + NoUninit>(segment: &mut Segment, at: usize, values: &[T]) -> usize {
    segment.get_mut(at, values.len()).copy_from_slice(values);
    at + size_of_val(values)
}

fn take<'a, T: AnyBitPattern>(segment: &'a Segment, at: &mut usize, len: usize) -> &'a [T] {
    let values = segment.get(*at, len);
    *at += size_of_val(values);
    values
}
