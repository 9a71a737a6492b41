//! The state of training as one flat piece of bytes: for the user-defined aggregate, which is handed a row at a time and
//! whose state PostgreSQL copies, sends and prints.
//!
//! Guarantees: a state is stepped in place and allocates nothing; bytes from anywhere are checked before they are used,
//! and whatever they say, the worst that comes of them is an error or a wrong number; the text form is exact.

use crate::{EpochReport, Hyperparameters, LinearModel};

/// What is wrong with a state, or with what it should learn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StateError {
    /// The bytes or the text are no state, or one of another version.
    #[error("not a training state: {0}")]
    Corrupt(&'static str),
    /// [`Schedule::Theorem1`](crate::Schedule::Theorem1) needs buffers, which an aggregate has not.
    #[error("schedule theorem1 needs buffers")]
    NoBuffers,
    /// Dense features of another number.
    #[error("{given} features instead of {expected}")]
    Features {
        /// The state's.
        expected: usize,
        /// The row's.
        given: usize,
    },
    /// A dense row for a sparse state, or the other way round.
    #[error("the state is for the other kind of features, dense or sparse")]
    OtherKind,
    /// A sparse index at or beyond the state's features, counted from 0: [`grow`] makes room.
    #[error("index {index} is not below {dim}")]
    Index {
        /// The index.
        index: u32,
        /// The state's features.
        dim: usize,
    },
    /// A label that the model does not know: neither -1 nor 1, or no class number.
    #[error("label {0} is none of the model's")]
    Label(f32),
    /// Two states to be merged are of different trainings.
    #[error("the states are of different trainings")]
    Different,
    /// The epoch's loss or a parameter is infinite or NaN.
    #[error("the model diverged in epoch {0}")]
    Diverged(u32),
    /// The state or the model would not fit into memory.
    #[error(transparent)]
    OutOfMemory(#[from] tuples::OutOfMemory),
}

/// A new state before the first tuple of its first epoch.
///
/// # Errors
/// [`StateError::NoBuffers`], [`StateError::OutOfMemory`]
pub fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Vec<u8>, StateError> {
    let _ = (hyper, dim, outputs, sparse);
    unimplemented!()
}

/// A copy of a sparse state with room for at least `dim` features; more than that, lest it grows at each row.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::OtherKind`], [`StateError::OutOfMemory`]
pub fn grow(state: &[u8], dim: usize) -> Result<Vec<u8>, StateError> {
    let _ = (state, dim);
    unimplemented!()
}

/// A state in place.
#[derive(Debug)]
pub struct StateMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> StateMut<'a> {
    /// The state in these bytes, aligned to 4.
    ///
    /// # Errors
    /// [`StateError::Corrupt`]
    pub fn of(bytes: &'a mut [u8]) -> Result<StateMut<'a>, StateError> {
        Ok(StateMut { bytes })
    }

    /// Learns from one dense row.
    ///
    /// # Errors
    /// [`StateError::Features`], [`StateError::OtherKind`], [`StateError::Label`]; then nothing was learned.
    pub fn learn_dense(&mut self, label: f32, features: &[f32], weight: f32) -> Result<(), StateError> {
        let _ = (label, features, weight, &self.bytes);
        unimplemented!()
    }

    /// Learns from one sparse row: ascending 0-based indices and their values.
    ///
    /// # Errors
    /// [`StateError::Index`], [`StateError::OtherKind`], [`StateError::Label`]; then nothing was learned.
    pub fn learn_sparse(&mut self, label: f32, indices: &[u32], values: &[f32], weight: f32) -> Result<(), StateError> {
        let _ = (label, indices, values, weight);
        unimplemented!()
    }

    /// Ends the epoch: reports, and sets totals and learning rate to those of the next one.
    ///
    /// # Errors
    /// [`StateError::Diverged`]
    pub fn finish_epoch(&mut self) -> Result<EpochReport, StateError> {
        unimplemented!()
    }

    /// How it is trained.
    pub fn hyperparameters(&self) -> Hyperparameters {
        unimplemented!()
    }

    /// The model as it is now.
    ///
    /// # Errors
    /// [`StateError::OutOfMemory`]
    pub fn model(&self) -> Result<LinearModel, StateError> {
        unimplemented!()
    }
}

/// One state of two that began the epoch alike and learned from different tuples: the averages of their parameters,
/// weighted by how many tuples each has learned from in this epoch, and the sums of their totals.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::Different`], [`StateError::OutOfMemory`]
pub fn merge(a: &[u8], b: &[u8]) -> Result<Vec<u8>, StateError> {
    let _ = (a, b);
    unimplemented!()
}

/// The text form of a state: exact, in printable ASCII without blanks and quotes.
pub fn to_text(state: &[u8]) -> String {
    let _ = state;
    unimplemented!()
}

/// The state of a text form.
///
/// # Errors
/// [`StateError::Corrupt`]
pub fn from_text(text: &str) -> Result<Vec<u8>, StateError> {
    let _ = text;
    unimplemented!()
}
