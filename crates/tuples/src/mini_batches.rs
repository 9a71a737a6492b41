//! Mini-batches that are learned from as a whole: of each the features as a [`Matrix`], and its labels.
//!
//! In a [`Batch`](crate::Batch) a block stands where otherwise a tuple does: blocks are put in order, kept and dropped.

use std::rc::Rc;

use crate::{Matrix, Opened, OutOfMemory, PackedMatrix};

/// A mini-batch.
#[derive(Debug, Clone)]
pub struct MiniBatch {
    features: Features,
    columns: usize,
    /// bytes of the open matrix
    open_bytes: usize,
    labels: Box<[f32]>,
    /// None if all are 1
    weights: Option<Box<[f32]>>,
    /// the labels in double precision, if they are known
    exact: Option<Box<[f64]>>,
}

/// A row for each of its tuples.
#[derive(Debug, Clone)]
enum Features {
    Open(Rc<dyn Matrix>),
    Packed(Rc<dyn PackedMatrix>),
    /// Until it is known which of the two stays.
    Both(Rc<dyn Matrix>, Rc<dyn PackedMatrix>),
}

impl MiniBatch {
    /// A block of these tuples, all of weight 1.
    ///
    /// # Panics
    /// If there are not as many labels as rows.
    pub fn new(matrix: Box<dyn Matrix>, labels: Box<[f32]>) -> MiniBatch {
        assert_eq!(matrix.rows(), labels.len(), "a label for each row");
        let (columns, open_bytes) = (matrix.columns(), matrix.bytes());
        MiniBatch { features: Features::Open(matrix.into()), columns, open_bytes, labels, weights: None, exact: None }
    }

    /// The same block, which can also be kept in the form that its matrix was opened from.
    pub fn with_packed(self, packed: Box<dyn PackedMatrix>) -> MiniBatch {
        let features = match self.features {
            Features::Open(matrix) | Features::Both(matrix, _) => Features::Both(matrix, packed.into()),
            Features::Packed(_) => Features::Packed(packed.into()),
        };
        MiniBatch { features, ..self }
    }

    /// Keeps the features in one form: packed, to be opened whenever they are needed, or open. Of a block that has only
    /// one form this changes nothing.
    pub fn settle(&mut self, packed: bool) {
        if let Features::Both(matrix, bytes) = &self.features {
            self.features = if packed { Features::Packed(Rc::clone(bytes)) } else { Features::Open(Rc::clone(matrix)) };
        }
    }

    /// Memory that it would take [settled](MiniBatch::settle) like this.
    pub fn settled_bytes(&self, packed: bool) -> usize {
        let features = match &self.features {
            Features::Packed(bytes) => bytes.bytes(),
            Features::Both(_, bytes) if packed => bytes.bytes(),
            Features::Open(_) | Features::Both(..) => self.open_bytes,
        };
        features + self.label_bytes()
    }

    /// The same block with these weights.
    ///
    /// # Panics
    /// If there are not as many as labels.
    pub fn with_weights(self, weights: Box<[f32]>) -> MiniBatch {
        assert_eq!(weights.len(), self.labels.len(), "a weight for each row");
        MiniBatch { weights: Some(weights), ..self }
    }

    /// The same block with these labels in double precision.
    ///
    /// # Panics
    /// If there are not as many as labels.
    pub fn with_exact_labels(self, exact: Box<[f64]>) -> MiniBatch {
        assert_eq!(exact.len(), self.labels.len(), "a label for each row");
        MiniBatch { exact: Some(exact), ..self }
    }

    /// The label of row `i` as exactly as it is known.
    pub fn exact_label(&self, i: usize) -> f64 {
        self.exact.as_ref().map_or_else(|| f64::from(self.labels[i]), |exact| exact[i])
    }

    /// The features, opened if they are not. Call it once for all that is computed with them.
    pub fn matrix(&self) -> Opened<'_> {
        match &self.features {
            Features::Open(matrix) | Features::Both(matrix, _) => Opened::Kept(&**matrix),
            Features::Packed(packed) => Opened::Now(packed.open()),
        }
    }

    /// Features of each tuple.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One for each row: as [`Batch::labels`](crate::Batch::labels).
    pub fn labels(&self) -> &[f32] {
        &self.labels
    }

    /// One for each row; None if all are 1.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// Tuples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no tuple.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Memory that it takes with an open matrix, in bytes. It is the same when the matrix is packed, so that buffers
    /// are cut in the same places whatever a cache does.
    pub fn bytes(&self) -> usize {
        self.open_bytes + self.label_bytes()
    }

    fn label_bytes(&self) -> usize {
        let numbers = self.labels.len() + self.weights.as_ref().map_or(0, |weights| weights.len());
        let exact = self.exact.as_ref().map_or(0, |exact| size_of_val(&**exact));
        size_of::<MiniBatch>() + numbers * size_of::<f32>() + exact
    }
}

/// Blocks of the same number of features.
#[derive(Debug)]
pub(crate) struct MiniBatches {
    pub(crate) dim: usize,
    mini_batches: Vec<Rc<MiniBatch>>,
    /// of all of them
    bytes: usize,
}

impl MiniBatches {
    pub(crate) fn new(dim: usize) -> MiniBatches {
        MiniBatches { dim, mini_batches: Vec::new(), bytes: 0 }
    }

    pub(crate) fn get(&self, i: usize) -> &Rc<MiniBatch> {
        &self.mini_batches[i]
    }

    pub(crate) fn push(&mut self, mini_batch: Rc<MiniBatch>) -> Result<(), OutOfMemory> {
        allocation::try_reserve(&mut self.mini_batches, 1)?;
        self.bytes += mini_batch.bytes();
        self.mini_batches.push(mini_batch);
        Ok(())
    }

    /// Settles the blocks at these places.
    pub(crate) fn settle(&mut self, places: std::ops::Range<usize>, packed: bool) {
        self.mini_batches[places].iter_mut().for_each(|mini_batch| Rc::make_mut(mini_batch).settle(packed));
    }

    /// Memory that the blocks at these places take when they are settled.
    pub(crate) fn settled_bytes(&self, places: std::ops::Range<usize>, packed: bool) -> usize {
        self.mini_batches[places].iter().map(|mini_batch| mini_batch.settled_bytes(packed)).sum()
    }

    /// Puts block `from` also where block `to` is.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        let mini_batch = Rc::clone(&self.mini_batches[from]);
        self.bytes += mini_batch.bytes();
        self.bytes -= self.mini_batches[to].bytes();
        self.mini_batches[to] = mini_batch;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        for mini_batch in self.mini_batches.drain(len.min(self.mini_batches.len())..) {
            self.bytes -= mini_batch.bytes();
        }
    }

    /// Bytes of the blocks at these places.
    pub(crate) fn bytes_of(&self, places: std::ops::Range<usize>) -> usize {
        if places == (0..self.mini_batches.len()) {
            return self.bytes;
        }
        self.mini_batches[places].iter().map(|mini_batch| mini_batch.bytes()).sum()
    }

    /// Entries that the features of all blocks would have unfolded.
    pub(crate) fn cells(&self) -> usize {
        self.mini_batches.iter().map(|mini_batch| mini_batch.len() * self.dim).sum()
    }
}
