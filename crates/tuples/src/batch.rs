//! A growing buffer of tuples, dense or sparse or whole blocks of them, with labels, weights, and the order in which to learn from them.
//!
//! Guarantees: after every change to its tuples the order is the identity over them, unless somebody else
//! [makes it](Batch::detach_order); what a tuple consists of (row, label, weight, tag) moves together; growing either succeeds or
//! leaves the batch as it was.

use std::ops::Range;

use crate::OutOfMemory;
use crate::dense::{Allocator, Dense, Memory};
use crate::mini_batches::{MiniBatch, MiniBatches};
use crate::sparse::Sparse;
use std::rc::Rc;

/// A buffer of training tuples, and the order in which to learn from them.
///
/// Dense: row `i` has [`stride`](Batch::stride) floats: `dim` features, a constant 1 (the input of the intercept), zeros.
/// Sparse: row `i` has the ascending 0-based indices of its entries and their values. Blocks: in place of a tuple there is a
/// [`MiniBatch`], which has the labels and weights of its own.
#[derive(Debug)]
pub struct Batch {
    rows: Rows,
    len: usize,
    labels: Vec<f32>,
    /// None: all weights are 1
    weights: Option<Vec<f32>>,
    /// None: nobody wants any
    tags: Option<Vec<u32>>,
    order: Vec<u32>,
    state: OrderState,
    /// where memory for dense rows comes from, unless it is the process's own
    allocator: Option<Rc<dyn Allocator>>,
}

/// What is known of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderState {
    Identity,
    /// it may be anything
    Reordered,
    /// it is made by somebody else, and empty as long as that has not been done
    Left,
}

/// Tuples that another process has decoded: what [`Batch::adopt_rows`] needs of them beside dense rows.
#[derive(Debug)]
pub struct TupleColumns<'a> {
    /// by place, one for each tuple
    pub labels: &'a [f32],
    /// by place; None if all are 1
    pub weights: Option<&'a [f32]>,
    /// places to learn from, one after the other
    pub order: &'a [u32],
}

/// Sparse rows, back to back, as [`Batch::sparse_parts`] gives them.
#[derive(Debug, Clone, Copy)]
pub struct SparseParts<'a> {
    /// features per tuple
    pub dim: usize,
    /// where each row ends
    pub ends: &'a [usize],
    /// 0-based, ascending in each row
    pub indices: &'a [u32],
    /// one for each index
    pub values: &'a [f32],
}

#[derive(Debug)]
enum Rows {
    Dense(Dense),
    Sparse(Sparse),
    MiniBatches(MiniBatches),
}

const DENSE_ONLY: &str = "a batch of dense tuples";
const SPARSE_ONLY: &str = "a batch of sparse tuples";
const MINI_BATCHES_ONLY: &str = "a batch of blocks";

impl Batch {
    /// An empty batch of dense tuples with `dim` features. Allocates nothing.
    pub fn new(dim: usize) -> Batch {
        Batch::of(Rows::Dense(Dense::new(dim)))
    }

    /// The same as [`new`](Batch::new).
    pub fn dense(dim: usize) -> Batch {
        Batch::new(dim)
    }

    /// An empty batch of sparse tuples. Allocates nothing.
    pub fn sparse() -> Batch {
        Batch::of(Rows::Sparse(Sparse::new()))
    }

    /// An empty batch of blocks of tuples with `dim` features. Allocates nothing.
    pub fn mini_batches(dim: usize) -> Batch {
        Batch::of(Rows::MiniBatches(MiniBatches::new(dim)))
    }

    /// An empty batch, so far of dense tuples without features, whose dense rows will lie in memory of `allocator`.
    pub fn with_allocator(allocator: Rc<dyn Allocator>) -> Batch {
        Batch { allocator: Some(allocator), ..Batch::new(0) }
    }

    fn of(rows: Rows) -> Batch {
        Batch {
            rows,
            len: 0,
            labels: Vec::new(),
            weights: None,
            tags: None,
            order: Vec::new(),
            state: OrderState::Identity,
            allocator: None,
        }
    }

    /// Makes this an empty batch of dense tuples with `dim` features, without weights.
    pub fn become_dense(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        let mut dense = Dense::new(dim);
        dense.allocator.clone_from(&allocator);
        *self = Batch::of(Rows::Dense(dense));
        self.allocator = allocator;
    }

    /// Makes this an empty batch of sparse tuples with at least `dim` features, without weights.
    pub fn become_sparse(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        *self = Batch::sparse();
        self.set_dim(dim);
        self.allocator = allocator;
    }

    /// Makes this an empty batch of blocks of tuples with `dim` features.
    pub fn become_blocks(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        *self = Batch::mini_batches(dim);
        self.allocator = allocator;
    }

    /// Makes this a batch of dense tuples with `dim` features whose rows lie in `rows`, one [`stride`](Batch::stride)
    /// after the other, complete with their constant 1.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then the batch is empty.
    ///
    /// # Panics
    /// If there are fewer rows than labels, or other numbers of weights than of labels, or the order has a place without
    /// a tuple.
    pub fn adopt_rows(
        &mut self,
        dim: usize,
        rows: Box<dyn Memory>,
        others: &TupleColumns<'_>,
    ) -> Result<(), OutOfMemory> {
        self.rows = Rows::Dense(Dense::adopt(dim, rows));
        assert!(self.dense_rows().capacity >= others.labels.len(), "a row for each label");
        self.take_columns(others)
    }

    /// Makes this a batch of sparse tuples with copies of these rows.
    ///
    /// # Errors
    /// [`OutOfMemory`]; then the batch is empty.
    ///
    /// # Panics
    /// If there are not as many rows as labels and weights, or the rows do not end where the entries do, or the order has
    /// a place without a tuple.
    pub fn copy_rows(&mut self, rows: &SparseParts<'_>, others: &TupleColumns<'_>) -> Result<(), OutOfMemory> {
        assert!(rows.ends.len() == others.labels.len(), "a row for each label");
        let mut sparse = match std::mem::replace(&mut self.rows, Rows::Sparse(Sparse::new())) {
            Rows::Sparse(sparse) => sparse,
            Rows::Dense(_) | Rows::MiniBatches(_) => Sparse::new(),
        };
        sparse.copy_from(rows)?;
        self.rows = Rows::Sparse(sparse);
        self.take_columns(others)
    }

    fn take_columns(&mut self, others: &TupleColumns<'_>) -> Result<(), OutOfMemory> {
        let len = others.labels.len();
        assert!(others.weights.is_none_or(|weights| weights.len() == len), "a weight for each label");
        self.len = 0;
        self.tags = None;
        copy(&mut self.labels, others.labels)?;
        self.weights = match (self.weights.take(), others.weights) {
            (_, None) => None,
            (old, Some(weights)) => {
                let mut copied = old.unwrap_or_default();
                copy(&mut copied, weights)?;
                Some(copied)
            }
        };
        self.len = len;
        self.set_order(others.order)
    }

    /// Lets go of memory that is not the process's own, and of all tuples.
    pub fn release(&mut self) {
        self.clear();
        if let Rows::Dense(dense) = &mut self.rows {
            let allocator = dense.allocator.take();
            *dense = Dense::new(dense.dim);
            dense.allocator = allocator;
        }
    }

    /// The memory in which the dense rows lie, if it is not the process's own.
    pub fn memory(&self) -> Option<&dyn Memory> {
        match &self.rows {
            Rows::Dense(dense) => dense.memory(),
            Rows::Sparse(_) | Rows::MiniBatches(_) => None,
        }
    }

    /// All sparse rows, to be copied elsewhere; None if the tuples are not sparse.
    pub fn sparse_parts(&self) -> Option<SparseParts<'_>> {
        match &self.rows {
            Rows::Dense(_) | Rows::MiniBatches(_) => None,
            Rows::Sparse(sparse) => Some(sparse.parts()),
        }
    }

    /// Whether the tuples are sparse.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        matches!(self.rows, Rows::Sparse(_))
    }

    /// Whether there are blocks of tuples in place of tuples.
    #[inline]
    pub fn has_mini_batches(&self) -> bool {
        matches!(self.rows, Rows::MiniBatches(_))
    }

    /// Tuples in the order: those of all its blocks if there are blocks.
    pub fn tuples_in_order(&self) -> usize {
        self.tuples_in(0..self.order.len())
    }

    /// Tuples at these places of the order.
    ///
    /// # Panics
    /// If the order is shorter.
    pub fn tuples_in(&self, range: Range<usize>) -> usize {
        match &self.rows {
            Rows::MiniBatches(mini_batches) => {
                self.order[range].iter().map(|&place| mini_batches.get(place as usize).len()).sum()
            }
            _ => range.len(),
        }
    }

    /// Block `i`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn mini_batch(&self, i: usize) -> &Rc<MiniBatch> {
        let Rows::MiniBatches(mini_batches) = &self.rows else { panic!("{MINI_BATCHES_ONLY}") };
        mini_batches.get(i)
    }

    /// Appends a block.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    ///
    /// # Panics
    /// If the batch is not one of blocks, or of another number of features.
    pub fn push_mini_batch(&mut self, mini_batch: Rc<MiniBatch>) -> Result<(), OutOfMemory> {
        let Rows::MiniBatches(mini_batches) = &mut self.rows else { panic!("{MINI_BATCHES_ONLY}") };
        assert_eq!(mini_batches.dim, mini_batch.matrix().columns(), "as many features as the others");
        mini_batches.push(mini_batch)?;
        if let Err(error) = self.append_labels(1, 0.0) {
            let len = self.len;
            let Rows::MiniBatches(mini_batches) = &mut self.rows else { panic!("{MINI_BATCHES_ONLY}") };
            mini_batches.truncate(len);
            return Err(error);
        }
        Ok(())
    }

    /// Features per tuple. Sparse: 1 + the largest index so far, or what [`set_dim`](Batch::set_dim) said if that is more;
    /// it never shrinks.
    #[inline]
    pub fn dim(&self) -> usize {
        match &self.rows {
            Rows::Dense(dense) => dense.dim,
            Rows::Sparse(sparse) => sparse.dim(),
            Rows::MiniBatches(mini_batches) => mini_batches.dim,
        }
    }

    /// Makes a sparse batch have at least `dim` features.
    ///
    /// # Panics
    /// If the batch is dense.
    pub fn set_dim(&mut self, dim: usize) {
        self.sparse_rows_mut().set_dim(dim);
    }

    /// Floats from one dense row to the next: `dim + 1`, rounded up to a multiple of [`LANES`](crate::LANES).
    ///
    /// # Panics
    /// If the batch is sparse; so do all methods that speak of features and rows.
    #[inline]
    pub fn stride(&self) -> usize {
        self.dense_rows().stride
    }

    /// Tuples in the batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no tuple in the batch.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Entries of all sparse rows; of others all features.
    #[inline]
    pub fn nnz(&self) -> usize {
        match &self.rows {
            Rows::Dense(dense) => self.len * dense.dim,
            Rows::Sparse(sparse) => sparse.nnz(),
            Rows::MiniBatches(mini_batches) => mini_batches.cells(),
        }
    }

    /// Memory that one dense tuple of `dim` features without a weight takes, in bytes: its row, its label and its place in
    /// the order.
    pub fn row_bytes(dim: usize) -> usize {
        Dense::row_bytes(dim).saturating_add(size_of::<f32>() + size_of::<u32>())
    }

    /// Memory that the tuples in the batch take, in bytes. The allocation may be up to twice as large, and three times
    /// while it grows: whoever knows the number of tuples calls [`reserve`](Batch::reserve) first.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes_of(0..self.len)
    }

    /// Memory that the tuples at `places` take, in bytes.
    ///
    /// # Panics
    /// If the tuples are sparse and there is none at one of the places.
    #[inline]
    pub fn bytes_of(&self, places: Range<usize>) -> usize {
        let extra = places.len() * self.extra_bytes();
        extra
            + match &self.rows {
                Rows::Dense(dense) => places.len() * dense.stride * size_of::<f32>(),
                Rows::Sparse(sparse) => Sparse::bytes(places.len(), sparse.entries(places)),
                Rows::MiniBatches(mini_batches) => mini_batches.bytes_of(places),
            }
    }

    /// Bytes of a tuple beside its row.
    #[inline]
    fn extra_bytes(&self) -> usize {
        let own = 1 + usize::from(self.weights.is_some()) + usize::from(self.tags.is_some());
        size_of::<f32>() * own + size_of::<u32>()
    }

    /// Tuples that fit without another allocation, but for the entries of sparse ones.
    #[inline]
    pub fn capacity(&self) -> usize {
        let mut rows = match &self.rows {
            Rows::Dense(dense) => dense.capacity,
            Rows::Sparse(_) | Rows::MiniBatches(_) => self.labels.capacity(),
        };
        if self.state != OrderState::Left {
            rows = rows.min(self.order.capacity());
        }
        let rows = self.weights.as_ref().map_or(rows, |weights| weights.capacity().min(rows));
        self.tags.as_ref().map_or(rows, |tags| tags.capacity().min(rows))
    }

    /// Removes all tuples and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.labels.clear();
        self.order.clear();
        self.state = OrderState::Identity;
        if let Some(weights) = &mut self.weights {
            weights.clear();
        }
        if let Some(tags) = &mut self.tags {
            tags.clear();
        }
        match &mut self.rows {
            Rows::Dense(_) => {}
            Rows::Sparse(sparse) => sparse.clear(),
            Rows::MiniBatches(mini_batches) => mini_batches.truncate(0),
        }
    }

    /// Removes all tuples behind the first `len`; the order becomes the identity again.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.labels.truncate(len);
        if let Some(weights) = &mut self.weights {
            weights.truncate(len);
        }
        if let Some(tags) = &mut self.tags {
            tags.truncate(len);
        }
        match &mut self.rows {
            Rows::Dense(_) => {}
            Rows::Sparse(sparse) => sparse.truncate(len),
            Rows::MiniBatches(mini_batches) => mini_batches.truncate(len),
        }
        self.restore_order();
        self.order.truncate(len);
    }

    /// Leaves the order to the caller, who [sets](Batch::set_order) it after every change to the tuples: from now on, until
    /// the batch is cleared, each of them empties it. So it costs nothing to take a few tuples away from many.
    pub fn detach_order(&mut self) {
        self.order.clear();
        self.state = OrderState::Left;
    }

    /// Takes the last tuple back, if there is one; the order becomes the identity again. Whatever indices a sparse tuple
    /// had, they do not count for [`dim`](Batch::dim), if it was the last one to be pushed.
    pub fn pop(&mut self) {
        self.truncate(self.len.saturating_sub(1));
    }

    /// Removes the tuples behind the first `first` whose label `keep` refuses; the others close up in their sequence, and
    /// the order becomes the identity again.
    pub fn retain_from(&mut self, first: usize, keep: impl Fn(f32) -> bool) {
        let first = first.min(self.len);
        let places: Vec<u32> = (first..self.len).filter(|i| keep(self.labels[*i])).map(|i| i as u32).collect();
        if first + places.len() < self.len {
            self.close_up(first, &places);
        }
        self.truncate(first + places.len());
    }

    /// Keeps the tuples at `places`, which ascend; they close up in their sequence, the others are removed, and the order
    /// becomes the identity again.
    ///
    /// # Panics
    /// If the places do not ascend or there is no tuple at one of them.
    pub fn retain(&mut self, places: &[u32]) {
        assert!(places.is_sorted_by(|a, b| a < b), "places ascend");
        assert!(places.last().is_none_or(|&last| (last as usize) < self.len), "no tuple behind the last");
        self.close_up(0, places);
        self.truncate(places.len());
    }

    /// Moves dense tuples or blocks, one after the other, each from one place to another where it replaces what is there; then
    /// removes those behind the first `len`. The order becomes the identity again.
    ///
    /// # Panics
    /// If there is no tuple at one of the places, or the batch is sparse, where a tuple may not fit another's place.
    pub fn fill_holes(&mut self, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        for (from, to) in moves.map(|(from, to)| (from as usize, to as usize)) {
            assert!(from.max(to) < self.len, "no tuple {} in a batch of {}", from.max(to), self.len);
            self.labels[to] = self.labels[from];
            if let Some(weights) = &mut self.weights {
                weights[to] = weights[from];
            }
            if let Some(tags) = &mut self.tags {
                tags[to] = tags[from];
            }
            match &mut self.rows {
                Rows::Dense(dense) => dense.copy(from, to),
                Rows::Sparse(_) => panic!("{DENSE_ONLY}"),
                Rows::MiniBatches(mini_batches) => mini_batches.copy(from, to),
            }
        }
        self.truncate(len);
    }

    /// Moves the tuples at ascending places, none of them before `first`, to the places from `first` on.
    fn close_up(&mut self, first: usize, places: &[u32]) {
        let places = || places.iter().map(|&place| place as usize);
        for (to, from) in (first..).zip(places()).filter(|(to, from)| to != from) {
            self.labels[to] = self.labels[from];
            if let Some(weights) = &mut self.weights {
                weights[to] = weights[from];
            }
            if let Some(tags) = &mut self.tags {
                tags[to] = tags[from];
            }
            match &mut self.rows {
                Rows::Dense(dense) => dense.copy(from, to),
                Rows::Sparse(_) => {} // all at once
                Rows::MiniBatches(mini_batches) => mini_batches.copy(from, to),
            }
        }
        if let Rows::Sparse(sparse) = &mut self.rows {
            sparse.retain_from(first, places());
        }
    }

    /// Makes room for `more` tuples behind those that are there: exactly, or twice the old room if that is more. For sparse
    /// tuples it assumes as many entries as those that are there have on average.
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
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    #[inline]
    pub fn push(&mut self, label: f32) -> Result<&mut [f32], OutOfMemory> {
        self.append(1)?;
        let last = self.len - 1;
        self.labels[last] = label;
        Ok(self.features_mut(last))
    }

    /// Appends one sparse tuple with `nnz` entries, of weight 1, and returns its indices and its values, both to be
    /// written: indices count from 0 and ascend without repetition.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    #[inline]
    pub fn push_sparse(&mut self, label: f32, nnz: usize) -> Result<(&mut [u32], &mut [f32]), OutOfMemory> {
        // first what can fail and is not taken back by anybody
        self.sparse_rows_mut().reserve(1, nnz)?;
        self.append_labels(1, label)?;
        self.sparse_rows_mut().push(nnz)
    }

    /// Appends `n` dense tuples at once, a heap page's worth, whose labels and features the caller fills in any order.
    ///
    /// Their labels are 0, their weights 1. Their features hold unspecified values and must all be written.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
    #[inline]
    pub fn extend(&mut self, n: usize) -> Result<RowsMut<'_>, OutOfMemory> {
        let first = self.len;
        self.append(n)?;
        Ok(self.rows_of(first..self.len))
    }

    /// The features of dense tuple `i`, `dim` long.
    ///
    /// # Panics
    /// If there is no tuple `i`; so do all methods that take an `i`.
    #[inline]
    pub fn features(&self, i: usize) -> &[f32] {
        &self.row(i)[..self.dim()]
    }

    /// The features of dense tuple `i`, `dim` long.
    #[inline]
    pub fn features_mut(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.len, "no tuple {i} in a batch of {}", self.len);
        self.dense_rows_mut().features_mut(i)
    }

    /// The whole row of dense tuple `i`: features, constant 1, zeros; `stride` long.
    #[inline]
    pub fn row(&self, i: usize) -> &[f32] {
        assert!(i < self.len, "no tuple {i} in a batch of {}", self.len);
        self.dense_rows().row(i)
    }

    /// All dense rows, `len * stride` long; row `i` begins at `i * stride`.
    #[inline]
    pub fn rows(&self) -> &[f32] {
        self.dense_rows().rows(self.len)
    }

    /// All dense rows to be changed in place, as a [`RowsMut`] over the whole batch.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        self.rows_of(0..self.len)
    }

    /// The dense rows at `places` to be changed in place.
    pub fn rows_of(&mut self, places: Range<usize>) -> RowsMut<'_> {
        assert!(places.end <= self.len, "no tuple {} in a batch of {}", places.end, self.len);
        let Rows::Dense(dense) = &mut self.rows else { panic!("{DENSE_ONLY}") };
        RowsMut {
            dim: dense.dim,
            stride: dense.stride,
            labels: &mut self.labels[places.clone()],
            rows: dense.rows_mut(places.start, places.end),
        }
    }

    /// Indices and values of sparse tuple `i`.
    ///
    /// # Panics
    /// If there is no tuple `i`, or the batch is dense.
    #[inline]
    pub fn sparse_row(&self, i: usize) -> (&[u32], &[f32]) {
        let Rows::Sparse(sparse) = &self.rows else { panic!("{SPARSE_ONLY}") };
        sparse.row(i)
    }

    /// Indices of sparse tuple `i`, and its values to be changed.
    ///
    /// # Panics
    /// If there is no tuple `i`, or the batch is dense.
    #[inline]
    pub fn sparse_row_mut(&mut self, i: usize) -> (&[u32], &mut [f32]) {
        self.sparse_rows_mut().values_mut(i)
    }

    /// The label of tuple `i`.
    #[inline]
    pub fn label(&self, i: usize) -> f32 {
        self.labels[i]
    }

    /// The labels, by place, not by order: -1 or 1 (logistic, svm), the target (linear), or the class's number (softmax).
    #[inline]
    pub fn labels(&self) -> &[f32] {
        &self.labels
    }

    /// The labels, by place, not by order.
    #[inline]
    pub fn labels_mut(&mut self) -> &mut [f32] {
        &mut self.labels
    }

    /// Says whether the tuples have weights, and removes all tuples.
    pub fn set_weighted(&mut self, weighted: bool) {
        self.clear();
        if weighted != self.weights.is_some() {
            self.weights = weighted.then(Vec::new);
        }
    }

    /// The weights, by place, not by order; None if all are 1.
    #[inline]
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// The weights, by place, not by order: 1 for a new tuple. Empty if the batch is not weighted.
    #[inline]
    pub fn weights_mut(&mut self) -> &mut [f32] {
        self.weights.as_deref_mut().unwrap_or_default()
    }

    /// Says whether the tuples have tags, and removes all tuples.
    pub fn set_tagged(&mut self, tagged: bool) {
        self.clear();
        if tagged != self.tags.is_some() {
            self.tags = tagged.then(Vec::new);
        }
    }

    /// The tags, by place, not by order; None if there are none. What they mean is between who fills the batch and who
    /// reads it.
    #[inline]
    pub fn tags(&self) -> Option<&[u32]> {
        self.tags.as_deref()
    }

    /// The tags, by place, not by order: 0 for a new tuple. Empty if the batch is not tagged.
    #[inline]
    pub fn tags_mut(&mut self) -> &mut [u32] {
        self.tags.as_deref_mut().unwrap_or_default()
    }

    /// Appends a copy of tuple `i` of another batch of the same kind, without its weight and tag.
    ///
    /// # Errors
    /// As [`reserve`](Batch::reserve).
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
        Ok(())
    }

    /// The order in which SGD sees the tuples: the identity after a fill, until shuffled or set.
    #[inline]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The order, to be permuted. It stays until the next tuple comes or one goes.
    #[inline]
    pub fn order_mut(&mut self) -> &mut [u32] {
        self.order_was_given();
        &mut self.order
    }

    /// Makes the order any sequence of places, of any length; a place may come twice or never.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the order is as it was.
    ///
    /// # Panics
    /// If there is no tuple at one of the places.
    pub fn set_order(&mut self, places: &[u32]) -> Result<(), OutOfMemory> {
        // the greatest, because that is found many places at a time
        assert!(
            places.iter().max().is_none_or(|&place| (place as usize) < self.len),
            "no tuple at a place of the order"
        );
        self.order_was_given();
        let more = places.len().saturating_sub(self.order.len());
        self.order.try_reserve(more).map_err(|_| OutOfMemory { bytes: size_of_val(places) })?;
        self.order.clear();
        self.order.extend_from_slice(places);
        Ok(())
    }

    /// The order, to be made any sequence of places, of any length; who lengthens it reserves first. Whoever learns in an
    /// order with a place without a tuple panics.
    pub fn order_vec_mut(&mut self) -> &mut Vec<u32> {
        self.order_was_given();
        &mut self.order
    }

    #[inline]
    fn order_was_given(&mut self) {
        if self.state == OrderState::Identity {
            self.state = OrderState::Reordered;
        }
    }

    #[inline]
    fn dense_rows(&self) -> &Dense {
        let Rows::Dense(dense) = &self.rows else { panic!("{DENSE_ONLY}") };
        dense
    }

    #[inline]
    fn dense_rows_mut(&mut self) -> &mut Dense {
        let Rows::Dense(dense) = &mut self.rows else { panic!("{DENSE_ONLY}") };
        dense
    }

    #[inline]
    fn sparse_rows_mut(&mut self) -> &mut Sparse {
        let Rows::Sparse(sparse) = &mut self.rows else { panic!("{SPARSE_ONLY}") };
        sparse
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
        self.restore_order();
        let len = self.len + n;
        self.labels.resize(len, label);
        if let Some(weights) = &mut self.weights {
            weights.resize(len, 1.0);
        }
        if let Some(tags) = &mut self.tags {
            tags.resize(len, 0);
        }
        if self.state == OrderState::Identity {
            // grow() refuses what does not fit 32 bits
            self.order.extend(self.len as u32..len as u32);
        }
        self.len = len;
        Ok(())
    }

    /// Makes the order what it is when the tuples change.
    #[inline]
    fn restore_order(&mut self) {
        match self.state {
            OrderState::Identity => {}
            OrderState::Reordered => self.make_identity(),
            OrderState::Left => self.order.clear(),
        }
    }

    #[cold]
    fn make_identity(&mut self) {
        self.order.clear();
        self.order.extend(0..self.len as u32);
        self.state = OrderState::Identity;
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
        self.labels.try_reserve_exact(more).map_err(|_| error)?;
        if self.state != OrderState::Left {
            self.order.try_reserve_exact(wanted.saturating_sub(self.order.len())).map_err(|_| error)?;
        }
        if let Some(weights) = &mut self.weights {
            weights.try_reserve_exact(more).map_err(|_| error)?;
        }
        if let Some(tags) = &mut self.tags {
            tags.try_reserve_exact(more).map_err(|_| error)?;
        }
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

/// Makes `to` a copy of `from`.
fn copy<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<(), OutOfMemory> {
    to.clear();
    to.try_reserve(from.len()).map_err(|_| OutOfMemory { bytes: size_of_val(from) })?;
    to.extend_from_slice(from);
    Ok(())
}

/// Dense tuples that were appended together and wait for their contents.
#[derive(Debug)]
pub struct RowsMut<'a> {
    dim: usize,
    stride: usize,
    labels: &'a mut [f32],
    rows: &'a mut [f32],
}

impl RowsMut<'_> {
    /// How many tuples there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// All labels, and all rows, [`Batch::stride`] floats apart, of which the first `dim` floats each are to be written.
    #[inline]
    pub fn parts_mut(&mut self) -> (&mut [f32], &mut [f32], usize) {
        (self.labels, self.rows, self.stride)
    }

    /// Label and features (`dim` long) of the `i`th of these tuples.
    ///
    /// # Panics
    /// If there is no `i`th.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> (&mut f32, &mut [f32]) {
        let start = i * self.stride;
        (&mut self.labels[i], &mut self.rows[start..start + self.dim])
    }
}
