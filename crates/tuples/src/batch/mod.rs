//! A growing buffer of tuples, dense or sparse or whole mini-batches of them, with labels, weights, and the order in
//! which to learn from them.
//!
//! Guarantees: after every change to its tuples the order is the identity over them, unless somebody else
//! [makes it](Batch::detach_order); what a tuple consists of (row, label, weight, tag) moves together; growing either
//! succeeds or leaves the batch as it was.

mod columns;
mod grow;
mod order;
mod remove;
mod rows;
mod transfer;

use std::ops::Range;
use std::rc::Rc;

use crate::OutOfMemory;
use crate::dense::{Allocator, Dense};
use crate::mini_batches::{MiniBatch, MiniBatches};
use crate::sparse::Sparse;
use columns::Columns;
use order::Order;
pub use rows::RowsMut;
use rows::{DENSE_ONLY, MINI_BATCHES_ONLY, Rows, SPARSE_ONLY};
pub use transfer::TupleColumns;

/// A buffer of training tuples, and the order in which to learn from them.
///
/// Dense: row `i` has [`stride`](Batch::stride) floats: `dim` features, a constant 1 (the input of the intercept),
/// zeros. Sparse: row `i` has the ascending 0-based indices of its entries and their values. Whole mini-batches: in
/// place of a tuple there is a [`MiniBatch`], which has the labels and weights of its own.
#[derive(Debug)]
pub struct Batch {
    rows: Rows,
    len: usize,
    columns: Columns,
    order: Order,
    /// where memory for dense rows comes from, unless it is the process's own
    allocator: Option<Rc<dyn Allocator>>,
}

impl Batch {
    /// An empty batch of dense tuples with `dim` features. Allocates nothing.
    pub fn new(dim: usize) -> Batch {
        Batch::with_rows(Rows::Dense(Dense::new(dim)))
    }

    /// The same as [`new`](Batch::new).
    pub fn dense(dim: usize) -> Batch {
        Batch::new(dim)
    }

    /// An empty batch of sparse tuples. Allocates nothing.
    pub fn sparse() -> Batch {
        Batch::with_rows(Rows::Sparse(Sparse::new()))
    }

    /// An empty batch of whole mini-batches of tuples with `dim` features. Allocates nothing.
    pub fn mini_batches(dim: usize) -> Batch {
        Batch::with_rows(Rows::MiniBatches(MiniBatches::new(dim)))
    }

    /// An empty batch, so far of dense tuples without features, whose dense rows will lie in memory of `allocator`.
    pub fn with_allocator(allocator: Rc<dyn Allocator>) -> Batch {
        Batch { allocator: Some(allocator), ..Batch::new(0) }
    }

    fn with_rows(rows: Rows) -> Batch {
        Batch { rows, len: 0, columns: Columns::default(), order: Order::EMPTY, allocator: None }
    }

    /// Makes this an empty batch of dense tuples with `dim` features, without weights.
    pub fn become_dense(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        let mut dense = Dense::new(dim);
        dense.allocator.clone_from(&allocator);
        *self = Batch::with_rows(Rows::Dense(dense));
        self.allocator = allocator;
    }

    /// Makes this an empty batch of sparse tuples with at least `dim` features, without weights.
    pub fn become_sparse(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        *self = Batch::sparse();
        self.set_dim(dim);
        self.allocator = allocator;
    }

    /// Makes this an empty batch of whole mini-batches of tuples with `dim` features.
    pub fn become_blocks(&mut self, dim: usize) {
        let allocator = self.allocator.take();
        *self = Batch::mini_batches(dim);
        self.allocator = allocator;
    }

    /// Whether the tuples are sparse.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        matches!(self.rows, Rows::Sparse(_))
    }

    /// Whether there are whole mini-batches in place of tuples.
    #[inline]
    pub fn has_mini_batches(&self) -> bool {
        matches!(self.rows, Rows::MiniBatches(_))
    }

    /// Tuples in the order: those of all its mini-batches if there are some.
    pub fn tuples_in_order(&self) -> usize {
        self.tuples_in(0..self.order().len())
    }

    /// Tuples at these places of the order.
    ///
    /// # Panics
    /// If the order is shorter.
    pub fn tuples_in(&self, range: Range<usize>) -> usize {
        match &self.rows {
            Rows::MiniBatches(mini_batches) => {
                self.order()[range].iter().map(|&place| mini_batches.get(place as usize).len()).sum()
            }
            _ => range.len(),
        }
    }

    /// Mini-batch `i`.
    ///
    /// # Panics
    /// If there is no such mini-batch.
    #[inline]
    pub fn mini_batch(&self, i: usize) -> &Rc<MiniBatch> {
        let Rows::MiniBatches(mini_batches) = &self.rows else { panic!("{MINI_BATCHES_ONLY}") };
        mini_batches.get(i)
    }

    /// Features per tuple. Sparse: 1 + the largest index so far, or what [`set_dim`](Batch::set_dim) said if that is
    /// more; it never shrinks.
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

    /// Memory that the tuples in the batch take, in bytes. The allocation may be up to twice as large, and three times
    /// while it grows: anyone who knows the number of tuples calls [`reserve`](Batch::reserve) first.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes_of(0..self.len)
    }

    /// Memory that the tuples at `places` take, in bytes.
    ///
    /// # Panics
    /// If the tuples are sparse and one of the places has no tuple.
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

    /// Keeps the mini-batches at `places` packed or open ([`MiniBatch::settle`]); tuples are as they are.
    pub fn settle(&mut self, places: Range<usize>, packed: bool) {
        if let Rows::MiniBatches(mini_batches) = &mut self.rows {
            mini_batches.settle(places, packed);
        }
    }

    /// Memory that what is at `places` takes, in bytes, mini-batches [settled](Batch::settle) like this.
    pub fn settled_bytes_of(&self, places: Range<usize>, packed: bool) -> usize {
        match &self.rows {
            Rows::MiniBatches(mini_batches) => {
                places.len() * self.extra_bytes() + mini_batches.settled_bytes(places, packed)
            }
            Rows::Dense(_) | Rows::Sparse(_) => self.bytes_of(places),
        }
    }

    /// Bytes of a tuple besides its row.
    #[inline]
    fn extra_bytes(&self) -> usize {
        self.columns.tuple_bytes() + size_of::<u32>()
    }

    /// Tuples that fit without another allocation, but for the entries of sparse ones.
    #[inline]
    pub fn capacity(&self) -> usize {
        let rows = match &self.rows {
            Rows::Dense(dense) => dense.capacity,
            Rows::Sparse(_) | Rows::MiniBatches(_) => usize::MAX,
        };
        rows.min(self.columns.capacity()).min(self.order.capacity())
    }

    /// Removes all tuples and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.columns.truncate(0);
        self.order.clear();
        match &mut self.rows {
            Rows::Dense(_) => {}
            Rows::Sparse(sparse) => sparse.clear(),
            Rows::MiniBatches(mini_batches) => mini_batches.truncate(0),
        }
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

    /// The dense rows at `places` to be changed in place.
    pub fn rows_of(&mut self, places: Range<usize>) -> RowsMut<'_> {
        assert!(places.end <= self.len, "no tuple {} in a batch of {}", places.end, self.len);
        let Rows::Dense(dense) = &mut self.rows else { panic!("{DENSE_ONLY}") };
        RowsMut {
            dim: dense.dim,
            stride: dense.stride,
            labels: &mut self.columns.labels[places.clone()],
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

    /// The features of tuple `i` that are stored, with their indices: of a dense one all.
    #[inline]
    pub fn entries(&self, i: usize) -> impl Iterator<Item = (usize, f32)> {
        let ((indices, values), dense) = match self.is_sparse() {
            true => (self.sparse_row(i), &[][..]),
            false => ((&[][..], &[][..]), self.features(i)),
        };
        let sparse = indices.iter().map(|j| *j as usize).zip(values.iter().copied());
        sparse.chain(dense.iter().copied().enumerate())
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
        self.columns.labels[i]
    }

    /// The labels, by place, not by order: -1 or 1 (logistic, svm), the target (linear),
    /// or the class's number (softmax).
    #[inline]
    pub fn labels(&self) -> &[f32] {
        &self.columns.labels
    }

    /// The labels, by place, not by order.
    #[inline]
    pub fn labels_mut(&mut self) -> &mut [f32] {
        &mut self.columns.labels
    }

    /// Says whether the tuples have weights, and removes all tuples.
    pub fn set_weighted(&mut self, weighted: bool) {
        self.clear();
        if weighted != self.columns.weights.is_some() {
            self.columns.weights = weighted.then(Vec::new);
        }
    }

    /// The weights, by place, not by order; None if all are 1.
    #[inline]
    pub fn weights(&self) -> Option<&[f32]> {
        self.columns.weights.as_deref()
    }

    /// The weight of tuple `i`: 1 without any.
    #[inline]
    pub fn weight(&self, i: usize) -> f32 {
        self.weights().map_or(1.0, |weights| weights[i])
    }

    /// The weights, by place, not by order: 1 for a new tuple. Empty if the batch is not weighted.
    #[inline]
    pub fn weights_mut(&mut self) -> &mut [f32] {
        self.columns.weights.as_deref_mut().unwrap_or_default()
    }

    /// Says whether labels are also kept in double precision, and removes all tuples.
    pub fn set_exact(&mut self, exact: bool) {
        self.clear();
        if exact != self.columns.exact.is_some() {
            self.columns.exact = exact.then(Vec::new);
        }
    }

    /// The labels in double precision, by place, not by order; None if they are not kept.
    #[inline]
    pub fn exact_labels(&self) -> Option<&[f64]> {
        self.columns.exact.as_deref()
    }

    /// The labels in double precision, by place, not by order: the [label](Batch::label) of a new tuple. Empty if they
    /// are not kept.
    #[inline]
    pub fn exact_labels_mut(&mut self) -> &mut [f64] {
        self.columns.exact.as_deref_mut().unwrap_or_default()
    }

    /// The label of tuple `i` as exactly as it is known.
    #[inline]
    pub fn exact_label(&self, i: usize) -> f64 {
        self.columns.exact.as_ref().map_or_else(|| f64::from(self.label(i)), |exact| exact[i])
    }

    /// Says whether the tuples have tags, and removes all tuples.
    pub fn set_tagged(&mut self, tagged: bool) {
        self.clear();
        if tagged != self.columns.tags.is_some() {
            self.columns.tags = tagged.then(Vec::new);
        }
    }

    /// The tags, by place, not by order; None without any. What they mean is between who fills the batch and who
    /// reads it.
    #[inline]
    pub fn tags(&self) -> Option<&[u32]> {
        self.columns.tags.as_deref()
    }

    /// The tags, by place, not by order: 0 for a new tuple. Empty if the batch is not tagged.
    #[inline]
    pub fn tags_mut(&mut self) -> &mut [u32] {
        self.columns.tags.as_deref_mut().unwrap_or_default()
    }

    /// The order in which SGD sees the tuples: the identity after a fill, until shuffled or set.
    #[inline]
    pub fn order(&self) -> &[u32] {
        &self.order.places
    }

    /// The order, to be permuted. It stays until the next tuple comes or one goes.
    #[inline]
    pub fn order_mut(&mut self) -> &mut [u32] {
        self.order.places_mut()
    }

    /// Makes the order any sequence of places, of any length; a place may come twice or never.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the order is as it was.
    ///
    /// # Panics
    /// If there is no tuple at one of the places.
    pub fn set_order(&mut self, places: &[u32]) -> Result<(), OutOfMemory> {
        self.assert_places(places);
        let order = self.order.places_mut();
        let more = places.len().saturating_sub(order.len());
        allocation::try_reserve(order, more)?;
        order.clear();
        order.extend_from_slice(places);
        Ok(())
    }

    /// The same, without a copy of the places if the order is [detached](Batch::detach_order): the batch then has those
    /// of `places`, which has the ones before.
    ///
    /// # Panics
    /// As in the item above.
    pub fn take_order(&mut self, places: &mut Vec<u32>) -> Result<(), OutOfMemory> {
        if !self.order.is_detached() {
            return self.set_order(places);
        }
        self.assert_places(places);
        std::mem::swap(self.order.places_mut(), places);
        Ok(())
    }

    /// The greatest is compared, because that is found many places at a time.
    fn assert_places(&self, places: &[u32]) {
        let greatest = places.iter().max();
        assert!(greatest.is_none_or(|&place| (place as usize) < self.len), "no tuple at a place of the order");
    }

    /// Leaves the order to the caller, who [sets](Batch::set_order) it after every change to the tuples: from now on,
    /// until the batch is cleared, each of them empties it. So it costs nothing to take a few tuples away from many.
    pub fn detach_order(&mut self) {
        self.order.detach();
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
}
