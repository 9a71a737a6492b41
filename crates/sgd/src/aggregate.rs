//! The state of training as one flat piece of bytes: for the user-defined aggregate, which is handed a row at a time and
//! whose state PostgreSQL copies, sends and prints.
//!
//! Guarantees: a state is stepped in place and allocates nothing; bytes from anywhere are checked before they are used,
//! and whatever they say, the worst that comes of them is an error or a wrong number; the text form is exact.
//!
//! A state is a head of plain numbers and the memory of a general training, as a trainer has it; machines of the other byte
//! order do not recognise it. It begins in epoch 1.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytemuck::{bytes_of, pod_read_unaligned, try_cast_slice, try_cast_slice_mut};

use crate::kernels::Level;
use crate::reference::{self, TrainerState};
use crate::{EpochReport, Hyperparameters, ModelKind, ModelParameters, Schedule};

/// What is wrong with a state, or with what it should learn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StateError {
    /// The bytes or the text are no state, or one of another version.
    #[error("not a training state: {0}")]
    Corrupt(&'static str),
    /// [`Schedule::Theorem1`] needs buffers, which an aggregate has not.
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
    /// Indices and values of different numbers.
    #[error("{indices} indices and {values} values")]
    Values {
        /// How many indices.
        indices: usize,
        /// How many values.
        values: usize,
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
    /// A label that the model does not know: neither -1 nor 1, or no class number; or one that is not finite.
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

/// Bytes of the head.
const HEAD: usize = size_of::<TrainerState>();

/// How many bytes a state has.
///
/// # Errors
/// [`StateError::OutOfMemory`] if no memory could hold it.
pub fn size(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<usize, StateError> {
    size_of_state(&TrainerState::new(hyper, dim, outputs, sparse))
}

fn size_of_state(head: &TrainerState) -> Result<usize, StateError> {
    let impossible = tuples::OutOfMemory { bytes: usize::MAX };
    let floats = reference::memory_size(head)?;
    Ok(floats.checked_mul(size_of::<f32>()).and_then(|bytes| bytes.checked_add(HEAD)).ok_or(impossible)?)
}

/// A new state before the first tuple of its first epoch, for valid hyperparameters; `outputs` is 1, or the number of
/// classes with softmax.
///
/// # Errors
/// [`StateError::NoBuffers`], [`StateError::OutOfMemory`]; [`StateError::Corrupt`] if `outputs` does not fit the model.
pub fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Vec<u8>, StateError> {
    if matches!(hyper.schedule, Schedule::Theorem1 { .. }) {
        return Err(StateError::NoBuffers);
    }
    let mut head = TrainerState::new(hyper, dim, outputs, sparse);
    head.begin_epoch();
    head.check().map_err(StateError::Corrupt)?;
    let mut bytes = zeros(size_of_state(&head)?)?;
    bytes[..HEAD].copy_from_slice(bytes_of(&head));
    Ok(bytes)
}

fn zeros(size: usize) -> Result<Vec<u8>, StateError> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| tuples::OutOfMemory { bytes: size })?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Reads and checks the head of a state.
#[inline(always)]
fn head_of(bytes: &[u8]) -> Result<TrainerState, StateError> {
    let head = bytes.get(..HEAD).ok_or(StateError::Corrupt("it is too short"))?;
    let head: TrainerState = pod_read_unaligned(head);
    head.check().map_err(StateError::Corrupt)?;
    if matches!(head.hyperparameters().schedule, Schedule::Theorem1 { .. }) {
        return Err(StateError::NoBuffers);
    }
    if size_of_state(&head) != Ok(bytes.len()) {
        return Err(StateError::Corrupt("its length does not fit its sizes"));
    }
    Ok(head)
}

const UNALIGNED: StateError = StateError::Corrupt("it is not aligned");

/// A sparse state with room for more features.
struct Grown(Vec<u8>);

impl AsMut<[f32]> for Grown {
    fn as_mut(&mut self) -> &mut [f32] {
        try_cast_slice_mut(&mut self.0[HEAD..]).unwrap_or_default()
    }
}

/// A copy of a sparse state with room for at least `dim` features; more than that, lest it grows at each row.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::OtherKind`], [`StateError::OutOfMemory`]
pub fn grow(state: &[u8], dim: usize) -> Result<Vec<u8>, StateError> {
    let mut head = head_of(state)?;
    if !head.sparse() {
        return Err(StateError::OtherKind);
    }
    let memory: &[f32] = try_cast_slice(&state[HEAD..]).map_err(|_| UNALIGNED)?;
    let allocate = |floats: usize| {
        let bytes = zeros(HEAD.saturating_add(floats.saturating_mul(size_of::<f32>())));
        bytes.map(Grown).map_err(|_| tuples::OutOfMemory { bytes: floats.saturating_mul(size_of::<f32>()) })
    };
    let mut bytes = match reference::grow(&mut head, memory, dim, allocate)? {
        Some(Grown(bytes)) => bytes,
        None => copy(state)?,
    };
    bytes[..HEAD].copy_from_slice(bytes_of(&head));
    Ok(bytes)
}

fn copy(state: &[u8]) -> Result<Vec<u8>, StateError> {
    let mut bytes = zeros(state.len())?;
    bytes.copy_from_slice(state);
    Ok(bytes)
}

/// A state in place.
#[derive(Debug)]
pub struct StateMut<'a> {
    head: TrainerState,
    stored_head: &'a mut [u8],
    memory: &'a mut [f32],
    level: Level,
}

impl<'a> StateMut<'a> {
    /// The state in these bytes, aligned to 4.
    ///
    /// # Errors
    /// [`StateError::Corrupt`], [`StateError::NoBuffers`]
    #[inline(always)]
    pub fn of(bytes: &'a mut [u8]) -> Result<StateMut<'a>, StateError> {
        let head = head_of(bytes)?;
        let (stored_head, memory) = bytes.split_at_mut(HEAD);
        let memory = try_cast_slice_mut(memory).map_err(|_| UNALIGNED)?;
        Ok(StateMut { head, stored_head, memory, level: Level::detect() })
    }

    #[inline(always)]
    fn store(&mut self) {
        self.stored_head.copy_from_slice(bytes_of(&self.head));
    }

    /// Learns from one dense row: `dim` features; the label as [`Trainer::learn`](crate::Trainer::learn) has it.
    ///
    /// # Errors
    /// [`StateError::Features`], [`StateError::OtherKind`], [`StateError::Label`]; then nothing was learned.
    #[inline(always)]
    pub fn learn_dense(&mut self, label: f32, features: &[f32], weight: f32) -> Result<(), StateError> {
        self.check_row(label, false)?;
        let expected = self.head.dim as usize;
        if features.len() != expected {
            return Err(StateError::Features { expected, given: features.len() });
        }
        reference::learn_dense(self.level, &mut self.head, self.memory, label, features, weight);
        self.store();
        Ok(())
    }

    /// Learns from one sparse row: ascending 0-based indices and their values.
    ///
    /// # Errors
    /// [`StateError::Index`], [`StateError::Values`], [`StateError::OtherKind`], [`StateError::Label`]; then nothing was
    /// learned.
    #[inline(always)]
    pub fn learn_sparse(&mut self, label: f32, indices: &[u32], values: &[f32], weight: f32) -> Result<(), StateError> {
        self.check_row(label, true)?;
        if indices.len() != values.len() {
            return Err(StateError::Values { indices: indices.len(), values: values.len() });
        }
        let dim = self.head.capacity as usize;
        let greatest = indices.iter().copied().max();
        if let Some(index) = greatest.filter(|&index| index as usize >= dim) {
            return Err(StateError::Index { index, dim });
        }
        self.head.dim = self.head.dim.max(greatest.map_or(0, |index| u64::from(index) + 1));
        reference::learn_sparse(self.level, &mut self.head, self.memory, label, (indices, values), weight);
        self.store();
        Ok(())
    }

    #[inline(always)]
    fn check_row(&self, label: f32, sparse: bool) -> Result<(), StateError> {
        if self.head.sparse() != sparse {
            return Err(StateError::OtherKind);
        }
        let known = match self.head.kind() {
            ModelKind::Logistic | ModelKind::Svm => label == 1.0 || label == -1.0,
            ModelKind::Linear => label.is_finite(),
            ModelKind::Mlp => unreachable!("no linear model"),
            ModelKind::Softmax => label >= 0.0 && label < self.head.outputs as f32 && label.fract() == 0.0,
        };
        if known { Ok(()) } else { Err(StateError::Label(label)) }
    }

    /// Ends the epoch: makes the step of a mini-batch that is not full, reports, and sets totals and learning rate to those
    /// of the next one.
    ///
    /// # Errors
    /// [`StateError::Diverged`]
    pub fn finish_epoch(&mut self) -> Result<EpochReport, StateError> {
        reference::flush(self.level, &mut self.head, self.memory);
        let report = self.head.report(reference::norms(&self.head, self.memory));
        if !report.loss.is_finite() || !reference::is_finite(&self.head, self.memory) {
            return Err(StateError::Diverged(self.head.epoch));
        }
        self.head.begin_epoch();
        self.store();
        Ok(report)
    }

    /// How it is trained.
    pub fn hyperparameters(&self) -> Hyperparameters {
        self.head.hyperparameters()
    }

    /// Features so far: sparse ones that were met, or what was said at first.
    pub fn dim(&self) -> usize {
        self.head.dim as usize
    }

    /// 1, or the number of classes with softmax.
    pub fn outputs(&self) -> usize {
        self.head.outputs as usize
    }

    /// Whether its rows are sparse.
    pub fn is_sparse(&self) -> bool {
        self.head.sparse()
    }

    /// The epoch that is going on, counted from 1.
    pub fn epoch(&self) -> u32 {
        self.head.epoch
    }

    /// Tuples learned from in this epoch.
    pub fn tuples(&self) -> u64 {
        self.head.totals.tuples
    }

    /// The model as it is now. Steps that a state owes to features that no row has touched are made first.
    ///
    /// # Errors
    /// [`StateError::OutOfMemory`]
    pub fn model(&mut self) -> Result<ModelParameters, StateError> {
        reference::apply_pending(self.level, &mut self.head, self.memory);
        self.store();
        Ok(reference::model(&self.head, self.memory)?)
    }
}

/// One state of two that began the epoch alike and learned from different tuples: the averages of their parameters,
/// weighted by how many tuples each has learned from in this epoch, and the sums of their totals. Mini-batches that are
/// not full make their steps.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::Different`], [`StateError::OutOfMemory`]
pub fn merge(a: &[u8], b: &[u8]) -> Result<Vec<u8>, StateError> {
    let (head_a, head_b) = (head_of(a)?, head_of(b)?);
    let sizes = |head: &TrainerState| (head.hyperparameters(), head.outputs, head.sparse(), head.epoch);
    if sizes(&head_a) != sizes(&head_b) || (!head_a.sparse() && head_a.dim != head_b.dim) {
        return Err(StateError::Different);
    }
    let dim = head_a.dim.max(head_b.dim) as usize;
    let fitted = |state: &[u8]| if head_a.sparse() { grow(state, dim) } else { copy(state) };
    // the one with more room, so that the other has its features as a beginning
    let (mut into, mut from) = (fitted(a)?, fitted(b)?);
    if head_of(&into)?.capacity < head_of(&from)?.capacity {
        into = grow(&into, head_of(&from)?.capacity as usize)?;
    }
    let mut target = StateMut::of(&mut into)?;
    let mut source = StateMut::of(&mut from)?;
    if target.tuples() == 0 {
        return Ok(from);
    }
    if source.tuples() > 0 {
        reference::flush(target.level, &mut target.head, target.memory);
        reference::flush(source.level, &mut source.head, source.memory);
        let all = target.tuples().saturating_add(source.tuples());
        let share = (source.tuples() as f64 / all as f64) as f32;
        reference::average(&target.head, target.memory, &source.head, source.memory, share);
        target.head.add(&source.head);
        target.store();
    }
    Ok(into)
}

/// The text form of a state: exact, in letters, digits, + and / (base64).
pub fn to_text(state: &[u8]) -> String {
    STANDARD_NO_PAD.encode(state)
}

/// The state of a text form.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::NoBuffers`]
pub fn from_text(text: &str) -> Result<Vec<u8>, StateError> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| StateError::Corrupt("it is not base64"))?;
    head_of(&bytes)?;
    Ok(bytes)
}
