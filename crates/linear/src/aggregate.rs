//! The state of training as one flat piece of bytes: for the user-defined aggregate, which is handed a row at a time
//! and whose state PostgreSQL copies and sends.
//!
//! Guarantees: a state is stepped in place and allocates nothing; bytes from anywhere are checked before they are used,
//! and whatever they say, the worst that comes of them is an error or a wrong number.
//!
//! A state is a header of plain numbers and the memory of the reference engine, as a trainer has it; machines of the
//! other byte order do not recognise it. It begins in epoch 1.

use bytemuck::{Pod, Zeroable, bytes_of, pod_read_unaligned, try_cast_slice, try_cast_slice_mut};
use loss::{EpochReport, Hyperparameters, ModelKind, ModelParameters, Optimizer, Penalized, Schedule, Solver, Task};
use simd::Level;
use tuples::pause::{self, PER_PAUSE};

use crate::reference::{self, Progress, Row, TrainerState, Training};

/// What is wrong with a state, or with what it should learn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StateError {
    /// The bytes are no state, or one of another version.
    #[error("not a training state: {0}")]
    Corrupt(&'static str),
    /// [`Schedule::Theorem1`](loss::Schedule::Theorem1) needs buffers, which an aggregate has not.
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
    #[error("label {0} is not one of the model's")]
    Label(f32),
    /// A target below 0 of a model that predicts what is above.
    #[error("target {0} is negative")]
    NegativeTarget(f32),
    /// Two states to be merged are of different trainings.
    #[error("the states belong to different trainings")]
    Different,
    /// The epoch's loss or a parameter is infinite or NaN.
    #[error("the model diverged in epoch {0}")]
    Diverged(u32),
    /// The state or the model would not fit into memory.
    #[error(transparent)]
    OutOfMemory(#[from] tuples::OutOfMemory),
}

/// Says that bytes are a state, and of which version.
const MAGIC: u64 = u64::from_le_bytes(*b"cgpsgd04");

/// More outputs than classes could be distinguished in f32 labels.
const MAX_OUTPUTS: u32 = 1 << 24;

/// Stands for a number of a schedule that is left open.
const NO_NUMBER: f64 = -1.0;

/// What a state begins with: plain numbers without padding.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    magic: u64,
    learning_rate: f64,
    /// l1 and l2
    penalties: [f64; 2],
    reach: f64,
    loss_number: f64,
    schedule_numbers: [f64; 2],
    optimizer_numbers: [f64; 3],
    kind: u32,
    schedule: u32,
    optimizer: u32,
    batch_size: u32,
    sparse: u32,
    bounded: u32,
    now: Progress,
}

impl Header {
    fn new(TrainerState { hyper, sparse, now }: &TrainerState) -> Header {
        let (schedule, schedule_numbers) = hyper.schedule.place_and_values();
        let (optimizer, optimizer_numbers) = hyper.optimizer.place_and_values();
        let kind = ModelKind::LINEAR.iter().position(|kind| *kind == hyper.kind);
        Header {
            magic: MAGIC,
            learning_rate: hyper.learning_rate,
            penalties: [hyper.l1, hyper.l2],
            reach: hyper.reach,
            loss_number: hyper.loss_number,
            schedule_numbers: schedule_numbers.map(|number| number.unwrap_or(NO_NUMBER)),
            optimizer_numbers,
            kind: kind.expect("a linear model") as u32,
            schedule,
            optimizer,
            batch_size: hyper.batch_size,
            sparse: u32::from(*sparse),
            bounded: u32::from(hyper.bounded),
            now: *now,
        }
    }

    fn hyperparameters(&self) -> Option<Hyperparameters> {
        let schedule_numbers = self.schedule_numbers.map(|number| (number != NO_NUMBER).then_some(number));
        Some(Hyperparameters {
            kind: *ModelKind::LINEAR.get(self.kind as usize)?,
            learning_rate: self.learning_rate,
            schedule: Schedule::new(self.schedule, schedule_numbers)?,
            optimizer: Optimizer::new(self.optimizer, self.optimizer_numbers)?,
            batch_size: self.batch_size,
            l1: self.penalties[0],
            l2: self.penalties[1],
            l2_on: Penalized::All,
            bounded: self.bounded != 0,
            reach: self.reach,
            averaging: false,
            solver: Solver::Sgd,
            loss_number: self.loss_number,
            design: None,
        })
    }

    /// What it describes, if that is a training.
    #[inline(always)]
    fn state(&self) -> Result<TrainerState, StateError> {
        if self.magic != MAGIC {
            return Err(StateError::Corrupt("it has the wrong beginning"));
        }
        let hyper = self.hyperparameters().ok_or(StateError::Corrupt("unknown hyperparameters"))?;
        hyper.validate().map_err(|_| StateError::Corrupt("hyperparameters out of range"))?;
        if hyper.schedule.averages() {
            return Err(StateError::NoBuffers);
        }
        let outputs = if hyper.kind.has_class_numbers() { 1..=MAX_OUTPUTS } else { 1..=1 };
        let state = TrainerState { hyper, sparse: self.sparse != 0, now: self.now };
        if !outputs.contains(&self.now.outputs) || self.sparse > 1 || !state.has_room() {
            return Err(StateError::Corrupt("sizes that do not fit each other"));
        }
        if state.is_sound() { Ok(state) } else { Err(StateError::Corrupt("numbers out of range")) }
    }
}

const HEADER: usize = size_of::<Header>();

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

fn size_of_state(state: &TrainerState) -> Result<usize, StateError> {
    let impossible = tuples::OutOfMemory { bytes: usize::MAX };
    let floats = reference::memory_size(state)?;
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
    let mut state = TrainerState::new(hyper, dim, outputs, sparse);
    state.begin_epoch();
    let header = Header::new(&state);
    header.state()?;
    zeros[..HEADER].copy_from_slice(bytes_of(&header));
    Ok(())
}

#[inline(always)]
fn read_header(bytes: &[u8]) -> Result<TrainerState, StateError> {
    let header = bytes.get(..HEADER).ok_or(StateError::Corrupt("it is too short"))?;
    let state = pod_read_unaligned::<Header>(header).state()?;
    match size_of_state(&state) == Ok(bytes.len()) {
        true => Ok(state),
        false => Err(StateError::Corrupt("its length does not fit its sizes")),
    }
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
pub fn grow(state: &[u8], dim: usize) -> Result<Vec<u8>, StateError> {
    let mut of_training = read_header(state)?;
    if !of_training.sparse {
        return Err(StateError::OtherKind);
    }
    let memory: &[f32] = try_cast_slice(&state[HEADER..]).map_err(|_| UNALIGNED)?;
    let allocate = |floats: usize| {
        let bytes = allocation::try_zeros(HEADER.saturating_add(floats.saturating_mul(size_of::<f32>())));
        bytes.map(Grown).map_err(|_| tuples::OutOfMemory { bytes: floats.saturating_mul(size_of::<f32>()) })
    };
    let mut bytes = match reference::grow(&mut of_training, memory, dim, allocate)? {
        Some(Grown(bytes)) => bytes,
        None => copy(state)?,
    };
    bytes[..HEADER].copy_from_slice(bytes_of(&Header::new(&of_training)));
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
    training: Training<&'a mut [f32]>,
    stored: &'a mut [u8],
}

/// Where the numbers that change are in a state.
const PROGRESS: usize = std::mem::offset_of!(Header, now);

impl<'a> StateMut<'a> {
    /// The state in these bytes, aligned to 4.
    #[inline(always)]
    pub fn from_bytes(bytes: &'a mut [u8]) -> Result<StateMut<'a>, StateError> {
        let state = read_header(bytes)?;
        let (header, memory) = bytes.split_at_mut(HEADER);
        let memory = try_cast_slice_mut(memory).map_err(|_| UNALIGNED)?;
        let training = Training { state, memory, level: Level::detect(), exempt: None, is_open: false };
        Ok(StateMut { training, stored: &mut header[PROGRESS..] })
    }

    #[inline(always)]
    fn store(&mut self) {
        self.stored.copy_from_slice(bytes_of(&self.training.state.now));
    }

    /// Learns from one dense row: `dim` features; the label as `sgd::Trainer::learn` has it.
    ///
    /// # Errors
    /// [`StateError::Features`], [`StateError::OtherKind`], [`StateError::Label`], [`StateError::NegativeTarget`]; then
    /// nothing was learned.
    #[inline(always)]
    pub fn learn_dense(&mut self, label: f32, features: &[f32], weight: f32) -> Result<(), StateError> {
        self.check_row(label, false)?;
        let expected = self.training.state.now.dim as usize;
        if features.len() != expected {
            return Err(StateError::Features { expected, given: features.len() });
        }
        self.training.learn_dense(label, features, weight);
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
        let now = &mut self.training.state.now;
        let dim = now.capacity as usize;
        let greatest = indices.iter().copied().max();
        if let Some(index) = greatest.filter(|&index| index as usize >= dim) {
            return Err(StateError::Index { index, dim });
        }
        now.dim = now.dim.max(greatest.map_or(0, |index| u64::from(index) + 1));
        self.training.learn_sparse(Row { indices, values, label, weight });
        self.store();
        Ok(())
    }

    #[inline(always)]
    fn check_row(&self, label: f32, sparse: bool) -> Result<(), StateError> {
        let TrainerState { hyper: Hyperparameters { kind, .. }, now, .. } = &self.training.state;
        if self.is_sparse() != sparse {
            return Err(StateError::OtherKind);
        }
        match kind.accepts_label(label, now.outputs) {
            true => Ok(()),
            false if kind.task() == Task::Regression && label < 0.0 => Err(StateError::NegativeTarget(label)),
            false => Err(StateError::Label(label)),
        }
    }

    /// Ends the epoch: makes the step of a mini-batch that is not full, reports, and sets totals and learning rate to
    /// those of the next one.
    pub fn finish_epoch(&mut self) -> Result<EpochReport, StateError> {
        self.training.flush();
        let Training { state, .. } = &mut self.training;
        let epoch = state.now.epoch;
        let mean_target = state.now.totals.targets.moments().0;
        let report = self.training.state.report(self.training.norms());
        let is_loss = || self.training.state.hyper.kind.is_loss(report.loss, mean_target);
        let may_be = report.loss.is_finite() && (epoch <= 1 || is_loss());
        if !may_be || !self.training.is_finite() {
            return Err(StateError::Diverged(epoch));
        }
        self.training.state.begin_epoch();
        self.store();
        Ok(report)
    }

    /// Features so far: sparse ones that were met, or those of the beginning.
    pub fn dim(&self) -> usize {
        self.training.state.now.dim as usize
    }

    /// 1, or the number of classes with softmax.
    pub fn outputs(&self) -> usize {
        self.training.state.now.outputs as usize
    }

    /// Whether its rows are sparse.
    pub fn is_sparse(&self) -> bool {
        self.training.state.sparse
    }

    /// Tuples learned from in this epoch.
    pub fn tuples(&self) -> u64 {
        self.training.state.now.totals.tuples
    }

    /// The model as it is now. Features that no row has touched are brought up to date first.
    pub fn model(&mut self) -> Result<ModelParameters, StateError> {
        self.training.apply_pending();
        self.store();
        Ok(self.training.model()?)
    }
}

/// One state of two that began the epoch alike and learned from different tuples: the averages of their parameters,
/// weighted by how many tuples each has learned from in this epoch, and the sums of their totals. Mini-batches that are
/// not full make their steps.
pub fn merge(a: &[u8], b: &[u8]) -> Result<Vec<u8>, StateError> {
    let (of_a, of_b) = (read_header(a)?, read_header(b)?);
    let sizes = |state: &TrainerState| (state.hyper, state.now.outputs, state.sparse, state.now.epoch);
    if sizes(&of_a) != sizes(&of_b) || (!of_a.sparse && of_a.now.dim != of_b.now.dim) {
        return Err(StateError::Different);
    }
    let dim = of_a.now.dim.max(of_b.now.dim) as usize;
    let fitted = |state: &[u8]| if of_a.sparse { grow(state, dim) } else { copy(state) };
    // the one with more room, so that the other has its features as a beginning
    let (mut into, mut from) = (fitted(a)?, fitted(b)?);
    let room = |state: &[u8]| Ok::<u64, StateError>(read_header(state)?.now.capacity);
    if room(&into)? < room(&from)? {
        into = grow(&into, room(&from)? as usize)?;
    }
    let mut target = StateMut::from_bytes(&mut into)?;
    let mut source = StateMut::from_bytes(&mut from)?;
    if target.tuples() == 0 {
        return Ok(from);
    }
    if source.tuples() > 0 {
        target.training.flush();
        source.training.flush();
        let all = target.tuples().saturating_add(source.tuples());
        let share = (source.tuples() as f64 / all as f64) as f32;
        target.training.average(&mut source.training, share);
        target.training.state.add(&source.training.state);
        target.store();
    }
    Ok(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a penalty, a rate above its bound would make the scale of the weights negative, which no doubling mends.
    #[test]
    fn a_rate_that_somebody_else_has_written_is_refused() {
        let hyper = Hyperparameters { l2: 0.1, ..Hyperparameters::new(ModelKind::Logistic) };
        let at = std::mem::offset_of!(Header, now.rate);
        for (rate, is_sound) in [(1.0_f64, true), (10.0, false), (1e300, false), (-1.0, false), (f64::NAN, false)] {
            let of = (hyper, 6, 1, false);
            let mut state = vec![0; size(of).unwrap()];
            begin(of, &mut state).unwrap();
            state[at..at + 8].copy_from_slice(&rate.to_ne_bytes());
            assert_eq!(StateMut::from_bytes(&mut state).is_ok(), is_sound, "{rate}");
        }
    }
}
