//! How tuples come, and how the batch grows for them.

use std::rc::Rc;

use super::Batch;
use super::rows::{MINI_BATCHES_ONLY, Rows, RowsMut};
use crate::dense::Dense;
use crate::{MiniBatch, OutOfMemory};

impl Batch {
    /// Makes room for `more` tuples behind those that are there: exactly, or twice the old room if that is more. For
    /// sparse tuples it assumes as many entries as those that are there have on average.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator refuses or the number of tuples would not fit an index of 32 bits. The batch is
    /// as it was, but perhaps for its capacity.
    pub fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        match self.len.checked_add(more) {
            Some(needed) if needed <= self.capacity() && !self.is_sparse() => Ok(()),
            Some(needed) => self.grow(needed),
            None => Err(OutOfMemory { bytes: usize::MAX }),
        }
    }

    /// Appends one dense tuple, of weight 1, and returns its features, `dim` long.
    ///
    /// They hold unspecified values, those of an earlier tuple in the same place for instance, and must all be written.
    #[inline]
    pub fn push(&mut self, label: f32) -> Result<&mut [f32], OutOfMemory> {
        self.append(1)?;
        let last = self.len - 1;
        self.columns.labels[last] = label;
        self.exact_labels_mut().last_mut().into_iter().for_each(|exact| *exact = label.into());
        Ok(self.features_mut(last))
    }

    /// Appends one sparse tuple with `nnz` entries, of weight 1, and returns its indices and its values.
    ///
    /// They hold unspecified values, and must all be written: indices count from 0 and ascend without repetition.
    #[inline]
    pub fn push_sparse(&mut self, label: f32, nnz: usize) -> Result<(&mut [u32], &mut [f32]), OutOfMemory> {
        // first what can fail and is not taken back by anybody
        self.sparse_rows_mut().make_room(nnz)?;
        self.append_labels(1, label)?;
        self.sparse_rows_mut().push(nnz)
    }

    /// Appends `n` dense tuples at once, a heap page's worth, whose labels and features the caller fills in any order.
    ///
    /// Their labels are 0, their weights 1. Their features hold unspecified values and must all be written.
    #[inline]
    pub fn extend(&mut self, n: usize) -> Result<RowsMut<'_>, OutOfMemory> {
        let first = self.len;
        self.append(n)?;
        Ok(self.rows_of(first..self.len))
    }

    /// Appends a whole mini-batch.
    ///
    /// # Panics
    /// If the batch is not one of mini-batches, or of another number of features.
    pub fn push_mini_batch(&mut self, mini_batch: Rc<MiniBatch>) -> Result<(), OutOfMemory> {
        let Rows::MiniBatches(mini_batches) = &mut self.rows else { panic!("{MINI_BATCHES_ONLY}") };
        assert_eq!(mini_batches.dim, mini_batch.columns(), "as many features as the others");
        mini_batches.push(mini_batch)?;
        if let Err(error) = self.append_labels(1, 0.0) {
            let len = self.len;
            let Rows::MiniBatches(mini_batches) = &mut self.rows else { panic!("{MINI_BATCHES_ONLY}") };
            mini_batches.truncate(len);
            return Err(error);
        }
        Ok(())
    }

    /// Appends a copy of tuple `i` of another batch of the same kind, without its tag; with its weight, if both batches
    /// have weights, and with its exact label.
    ///
    /// # Panics
    /// If one batch is sparse and the other is not, or dense tuples have other numbers of features.
    pub fn push_copy(&mut self, from: &Batch, i: usize) -> Result<(), OutOfMemory> {
        let label = from.label(i);
        if from.has_mini_batches() {
            return self.push_mini_batch(Rc::clone(from.mini_batch(i)));
        }
        if from.is_sparse() {
            let (indices, values) = from.sparse_row(i);
            let (to_indices, to_values) = self.push_sparse(label, indices.len())?;
            to_indices.copy_from_slice(indices);
            to_values.copy_from_slice(values);
        } else {
            let features = from.features(i);
            self.push(label)?.copy_from_slice(features);
        }
        if let (Some(to), Some(weights)) = (self.weights_mut().last_mut(), from.weights()) {
            *to = weights[i];
        }
        if let Some(to) = self.exact_labels_mut().last_mut() {
            *to = from.exact_label(i);
        }
        Ok(())
    }

    #[inline]
    fn append(&mut self, n: usize) -> Result<(), OutOfMemory> {
        self.dense_rows(); // a dense batch
        self.append_labels(n, 0.0)?;
        let len = self.len;
        self.dense_rows_mut().use_up_to(len);
        Ok(())
    }

    /// Makes room for `n` tuples and counts them in; their rows are the caller's.
    #[inline]
    fn append_labels(&mut self, n: usize, label: f32) -> Result<(), OutOfMemory> {
        if n > self.capacity() - self.len {
            self.grow(self.len.checked_add(n).ok_or(OutOfMemory { bytes: usize::MAX })?)?;
        }
        let len = self.len + n;
        self.order.resize(self.len, len);
        self.columns.extend_to(len, label);
        self.len = len;
        Ok(())
    }

    #[cold]
    fn grow(&mut self, needed: usize) -> Result<(), OutOfMemory> {
        let wanted = needed.max(self.capacity().saturating_mul(2));
        let wanted = wanted.min(needed.max(u32::MAX as usize));
        let row_bytes = match &self.rows {
            Rows::Dense(dense) => Dense::row_bytes(dense.dim),
            Rows::Sparse(_) => size_of::<usize>(),
            Rows::MiniBatches(_) => size_of::<Rc<MiniBatch>>(),
        };
        let error = OutOfMemory { bytes: wanted.saturating_mul(row_bytes.saturating_add(self.extra_bytes())) };
        if u32::try_from(needed).is_err() {
            return Err(error);
        }
        let more = wanted - self.len;
        self.columns.reserve(more, error)?;
        self.order.reserve(wanted, error)?;
        match &mut self.rows {
            Rows::Dense(dense) if wanted > dense.capacity => dense.grow(self.len, wanted, error),
            Rows::Dense(_) | Rows::MiniBatches(_) => Ok(()),
            Rows::Sparse(sparse) => {
                let entries = (sparse.nnz() / self.len.max(1)).saturating_mul(more);
                sparse.reserve(more, entries)
            }
        }
    }
}
