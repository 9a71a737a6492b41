//! Mini-batches that are learned from as a whole: of each the features as a [`Matrix`], and its labels.
//!
//! In a [`Batch`](crate::Batch) a block stands where otherwise a tuple does: blocks are put in order, kept and dropped.

use std::rc::Rc;

use crate::{Matrix, OutOfMemory};

/// A mini-batch.
#[derive(Debug)]
pub struct MiniBatch {
    /// a row for each of its tuples
    matrix: Box<dyn Matrix>,
    labels: Box<[f32]>,
    /// None if all are 1
    weights: Option<Box<[f32]>>,
    /// the labels in double precision, if they are known
    exact: Option<Box<[f64]>>,
}

impl MiniBatch {
    /// A block of these tuples, all of weight 1.
    ///
    /// # Panics
    /// If there are not as many labels as rows.
    pub fn new(matrix: Box<dyn Matrix>, labels: Box<[f32]>) -> MiniBatch {
        assert_eq!(matrix.rows(), labels.len(), "a label for each row");
        MiniBatch { matrix, labels, weights: None, exact: None }
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

    /// The features.
    pub fn matrix(&self) -> &dyn Matrix {
        &*self.matrix
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

    /// Memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = self.labels.len() + self.weights.as_ref().map_or(0, |weights| weights.len());
        let exact = self.exact.as_ref().map_or(0, |exact| size_of_val(&**exact));
        size_of::<MiniBatch>() + self.matrix.bytes() + numbers * size_of::<f32>() + exact
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
