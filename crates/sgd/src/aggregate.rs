//! The state of training as one flat piece of bytes: for the user-defined aggregate, which is handed a row at a time
//! and whose state PostgreSQL copies, sends and prints.
//!
//! Guarantees: a state is stepped in place and allocates nothing; bytes from anywhere are checked before they are used,
//! and whatever they say, the worst that comes of them is an error or a wrong number; the text form is exact.
//!
//! A state is a header of plain numbers and the memory of the reference engine, as a trainer has it; machines of the
//! other byte order do not recognise it. It begins in epoch 1.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytemuck::{bytes_of, pod_read_unaligned, try_cast_slice, try_cast_slice_mut};
use simd::Level;
use tuples::pause::{self, PER_PAUSE};

use crate::reference::{self, TrainerState};
use crate::{EpochReport, Hyperparameters, ModelParameters, Task};

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
    /// A target below 0 of a model that predicts what is above.
    #[error("target {0} is negative")]
    NegativeTarget(f32),
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

/// Bytes of the header.
const HEADER: usize = size_of::<TrainerState>();

/// What a new state is of: valid hyperparameters, features, outputs (1, or the number of classes with softmax), and
/// whether its rows are sparse.
pub type NewState = (Hyperparameters, usize, usize, bool);

/// How many bytes a state has.
///
/// # Errors
/// [`StateError::OutOfMemory`] if no memory could hold it.
pub fn size((hyper, dim, outputs, sparse): NewState) -> Result<usize, StateError> {
    size_of_state(&TrainerState::new(hyper, dim, outputs, sparse))
}

fn size_of_state(header: &TrainerState) -> Result<usize, StateError> {
    let impossible = tuples::OutOfMemory { bytes: usize::MAX };
    let floats = reference::memory_size(header)?;
    Ok(floats.checked_mul(size_of::<f32>()).and_then(|bytes| bytes.checked_add(HEADER)).ok_or(impossible)?)
}

/// Makes zeros, [as many](size) as it has bytes, a new state before the first tuple of its first epoch.
///
/// # Errors
/// [`StateError::NoBuffers`]; [`StateError::Corrupt`] if `outputs` does not fit the model.
///
/// # Panics
/// If they are fewer.
pub fn begin((hyper, dim, outputs, sparse): NewState, zeros: &mut [u8]) -> Result<(), StateError> {
    if hyper.schedule.averages() {
        return Err(StateError::NoBuffers);
    }
    let mut header = TrainerState::new(hyper, dim, outputs, sparse);
    header.begin_epoch();
    header.check().map_err(StateError::Corrupt)?;
    zeros[..HEADER].copy_from_slice(bytes_of(&header));
    Ok(())
}

/// Reads and checks the header of a state.
#[inline(always)]
fn read_header(bytes: &[u8]) -> Result<TrainerState, StateError> {
    let header = bytes.get(..HEADER).ok_or(StateError::Corrupt("it is too short"))?;
    let header: TrainerState = pod_read_unaligned(header);
    header.check().map_err(StateError::Corrupt)?;
    if header.hyperparameters().schedule.averages() {
        return Err(StateError::NoBuffers);
    }
    if size_of_state(&header) != Ok(bytes.len()) {
        return Err(StateError::Corrupt("its length does not fit its sizes"));
    }
    Ok(header)
}

const UNALIGNED: StateError = StateError::Corrupt("it is not aligned");

/// A sparse state with room for more features.
struct Grown(Vec<u8>);

impl AsMut<[f32]> for Grown {
    fn as_mut(&mut self) -> &mut [f32] {
        try_cast_slice_mut(&mut self.0[HEADER..]).unwrap_or_default()
    }
}

/// A copy of a sparse state with room for at least `dim` features; more than that, lest it grows at each row.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::OtherKind`], [`StateError::OutOfMemory`]
pub fn grow(state: &[u8], dim: usize) -> Result<Vec<u8>, StateError> {
    let mut header = read_header(state)?;
    if !header.sparse() {
        return Err(StateError::OtherKind);
    }
    let memory: &[f32] = try_cast_slice(&state[HEADER..]).map_err(|_| UNALIGNED)?;
    let allocate = |floats: usize| {
        let bytes = allocation::try_zeros(HEADER.saturating_add(floats.saturating_mul(size_of::<f32>())));
        bytes.map(Grown).map_err(|_| tuples::OutOfMemory { bytes: floats.saturating_mul(size_of::<f32>()) })
    };
    let mut bytes = match reference::grow(&mut header, memory, dim, allocate)? {
        Some(Grown(bytes)) => bytes,
        None => copy(state)?,
    };
    bytes[..HEADER].copy_from_slice(bytes_of(&header));
    Ok(bytes)
}

fn copy(state: &[u8]) -> Result<Vec<u8>, StateError> {
    let mut bytes = allocation::try_zeros(state.len())?;
    pause::parts_mut(&mut bytes).zip(state.chunks(PER_PAUSE)).for_each(|(to, from)| to.copy_from_slice(from));
    Ok(bytes)
}

/// A state in place.
#[derive(Debug)]
pub struct StateMut<'a> {
    header: TrainerState,
    stored_header: &'a mut [u8],
    memory: &'a mut [f32],
    level: Level,
}

impl<'a> StateMut<'a> {
    /// The state in these bytes, aligned to 4.
    ///
    /// # Errors
    /// [`StateError::Corrupt`], [`StateError::NoBuffers`]
    #[inline(always)]
    pub fn from_bytes(bytes: &'a mut [u8]) -> Result<StateMut<'a>, StateError> {
        let header = read_header(bytes)?;
        let (stored_header, memory) = bytes.split_at_mut(HEADER);
        let memory = try_cast_slice_mut(memory).map_err(|_| UNALIGNED)?;
        Ok(StateMut { header, stored_header, memory, level: Level::detect() })
    }

    #[inline(always)]
    fn store(&mut self) {
        self.stored_header.copy_from_slice(bytes_of(&self.header));
    }

    /// Learns from one dense row: `dim` features; the label as [`Trainer::learn`](crate::Trainer::learn) has it.
    ///
    /// # Errors
    /// [`StateError::Features`], [`StateError::OtherKind`], [`StateError::Label`], [`StateError::NegativeTarget`]; then
    /// nothing was learned.
    #[inline(always)]
    pub fn learn_dense(&mut self, label: f32, features: &[f32], weight: f32) -> Result<(), StateError> {
        self.check_row(label, false)?;
        let expected = self.header.dim as usize;
        if features.len() != expected {
            return Err(StateError::Features { expected, given: features.len() });
        }
        reference::learn_dense(self.level, &mut self.header, self.memory, label, features, weight);
        self.store();
        Ok(())
    }

    /// Learns from one sparse row: ascending 0-based indices and their values.
    ///
    /// # Errors
    /// [`StateError::Index`], [`StateError::Values`], [`StateError::OtherKind`], [`StateError::Label`]; then nothing
    /// was learned.
    #[inline(always)]
    pub fn learn_sparse(&mut self, label: f32, indices: &[u32], values: &[f32], weight: f32) -> Result<(), StateError> {
        self.check_row(label, true)?;
        if indices.len() != values.len() {
            return Err(StateError::Values { indices: indices.len(), values: values.len() });
        }
        let dim = self.header.capacity as usize;
        let greatest = indices.iter().copied().max();
        if let Some(index) = greatest.filter(|&index| index as usize >= dim) {
            return Err(StateError::Index { index, dim });
        }
        self.header.dim = self.header.dim.max(greatest.map_or(0, |index| u64::from(index) + 1));
        reference::learn_sparse(self.level, &mut self.header, self.memory, label, (indices, values), weight);
        self.store();
        Ok(())
    }

    #[inline(always)]
    fn check_row(&self, label: f32, sparse: bool) -> Result<(), StateError> {
        if self.header.sparse() != sparse {
            return Err(StateError::OtherKind);
        }
        let kind = self.header.kind();
        match kind.accepts_label(label, self.header.outputs) {
            true => Ok(()),
            false if kind.task() == Task::Regression && label < 0.0 => Err(StateError::NegativeTarget(label)),
            false => Err(StateError::Label(label)),
        }
    }

    /// Ends the epoch: makes the step of a mini-batch that is not full, reports, and sets totals and learning rate to
    /// those of the next one.
    ///
    /// # Errors
    /// [`StateError::Diverged`]
    pub fn finish_epoch(&mut self) -> Result<EpochReport, StateError> {
        reference::flush(self.level, &mut self.header, self.memory);
        let report = self.header.report(reference::norms(&self.header, self.memory));
        let is_loss = self.header.kind().is_loss(report.loss, self.header.totals.targets.moments().0);
        let may_be = report.loss.is_finite() && (self.header.epoch <= 1 || is_loss);
        if !may_be || !reference::is_finite(&self.header, self.memory) {
            return Err(StateError::Diverged(self.header.epoch));
        }
        self.header.begin_epoch();
        self.store();
        Ok(report)
    }

    /// How it is trained.
    pub fn hyperparameters(&self) -> Hyperparameters {
        self.header.hyperparameters()
    }

    /// Features so far: sparse ones that were met, or those of the beginning.
    pub fn dim(&self) -> usize {
        self.header.dim as usize
    }

    /// 1, or the number of classes with softmax.
    pub fn outputs(&self) -> usize {
        self.header.outputs as usize
    }

    /// Whether its rows are sparse.
    pub fn is_sparse(&self) -> bool {
        self.header.sparse()
    }

    /// The epoch that is going on, counted from 1.
    pub fn epoch(&self) -> u32 {
        self.header.epoch
    }

    /// Tuples learned from in this epoch.
    pub fn tuples(&self) -> u64 {
        self.header.totals.tuples
    }

    /// The model as it is now. Features that no row has touched are brought up to date first.
    ///
    /// # Errors
    /// [`StateError::OutOfMemory`]
    pub fn model(&mut self) -> Result<ModelParameters, StateError> {
        reference::apply_pending(self.level, &mut self.header, self.memory);
        self.store();
        Ok(reference::model(&self.header, self.memory)?)
    }
}

/// One state of two that began the epoch alike and learned from different tuples: the averages of their parameters,
/// weighted by how many tuples each has learned from in this epoch, and the sums of their totals. Mini-batches that are
/// not full make their steps.
///
/// # Errors
/// [`StateError::Corrupt`], [`StateError::Different`], [`StateError::OutOfMemory`]
pub fn merge(a: &[u8], b: &[u8]) -> Result<Vec<u8>, StateError> {
    let (header_a, header_b) = (read_header(a)?, read_header(b)?);
    let sizes = |header: &TrainerState| (header.hyperparameters(), header.outputs, header.sparse(), header.epoch);
    if sizes(&header_a) != sizes(&header_b) || (!header_a.sparse() && header_a.dim != header_b.dim) {
        return Err(StateError::Different);
    }
    let dim = header_a.dim.max(header_b.dim) as usize;
    let fitted = |state: &[u8]| if header_a.sparse() { grow(state, dim) } else { copy(state) };
    // the one with more room, so that the other has its features as a beginning
    let (mut into, mut from) = (fitted(a)?, fitted(b)?);
    if read_header(&into)?.capacity < read_header(&from)?.capacity {
        into = grow(&into, read_header(&from)?.capacity as usize)?;
    }
    let mut target = StateMut::from_bytes(&mut into)?;
    let mut source = StateMut::from_bytes(&mut from)?;
    if target.tuples() == 0 {
        return Ok(from);
    }
    if source.tuples() > 0 {
        reference::flush(target.level, &mut target.header, target.memory);
        reference::flush(source.level, &mut source.header, source.memory);
        let all = target.tuples().saturating_add(source.tuples());
        let share = (source.tuples() as f64 / all as f64) as f32;
        reference::average(&target.header, target.memory, &source.header, source.memory, share);
        target.header.add(&source.header);
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
    read_header(&bytes)?;
    Ok(bytes)
}
