//! Values of type corgipile.sgd_state: the trainer's state, and a header for the aggregate.
//!
//! Guarantees: bytes from a client, from another server or from a table written by hand are checked before they are
//! used, so that they are an error and never a crash. Between epochs a state has a report of the last one.
//!
//! The bytes: a header of little-endian numbers, mean and scale of each feature as doubles if features are to be
//! standardized, and the state of [`linear::aggregate`].

use super::text::MAX_BYTES;
use errors::{AggregateError, Error, PgError, Result, RowFault, TrainingError};
use linear::aggregate::{self, StateError};
use loss::{EpochReport, Hyperparameters, ModelParameters, Schedule, Standardizer};
use pg::context::Context;
use pg::values::varlena::Bytes;
use tuples::pause::pausing;

const MAGIC: [u8; 4] = *b"cgs1";
/// Offsets of the header's fields, and its length, a multiple of the alignment that the trainer's state wants.
mod at {
    pub const FLAGS: usize = 4;
    pub const INDEX_BASE: usize = 5;
    pub const OUTPUTS: usize = 8;
    pub const EPOCH: usize = 12;
    pub const DIM: usize = 16;
    /// rows that this epoch has looked at
    pub const ROWS: usize = 24;
    /// those of them that were left out
    pub const SKIPPED: usize = 32;
    // the report of the last epoch
    pub const LOSS: usize = 40;
    pub const ACCURACY: usize = 48;
    pub const R2: usize = 56;
    pub const LEARNING_RATE: usize = 64;
    pub const TUPLES: usize = 72;
    pub const END: usize = 80;
}
/// An epoch has begun and not ended.
const IN_EPOCH: u8 = 1;
/// Rows with NULLs are left out and counted.
const SKIP_NULLS: u8 = 2;
/// Mean and scale are there.
const STANDARDIZE: u8 = 4;
/// Tuples are sparse.
const SPARSE: u8 = 8;
/// The report has an accuracy.
const HAS_ACCURACY: u8 = 16;
/// The report has an R².
const HAS_R2: u8 = 32;
const KNOWN: u8 = IN_EPOCH | SKIP_NULLS | STANDARDIZE | SPARSE | HAS_ACCURACY | HAS_R2;

/// What a new state is made of.
pub struct NewState<'a> {
    pub hyperparameters: Hyperparameters,
    pub dim: usize,
    /// numbers that the model gives: the classes of `softmax`, else 1
    pub outputs: usize,
    pub sparse: bool,
    /// what the user calls the first dimension of a sparse tuple
    pub index_base: u32,
    pub skip_nulls: bool,
    pub standardizer: Option<&'a Standardizer>,
}

impl NewState<'_> {
    /// The state before the first epoch.
    pub fn bytes<'m>(&self, context: Context<'m>) -> Result<Bytes<'m>> {
        let Hyperparameters { schedule, .. } = self.hyperparameters;
        if matches!(schedule, Schedule::Theorem1 { .. }) {
            return Err(trouble(StateError::NoBuffers));
        }
        let of_trainer = (self.hyperparameters, self.dim, self.outputs, self.sparse);
        let size = aggregate::size(of_trainer).map_err(trouble)?;
        let start = at::END + self.standardizer.map_or(0, |_| 16 * self.dim);
        check_size(size.saturating_add(start))?;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let mut bytes = Bytes::zeros(context, start + size)?;
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[at::FLAGS] = flag(self.skip_nulls, SKIP_NULLS)
            | flag(self.standardizer.is_some(), STANDARDIZE)
            | flag(self.sparse, SPARSE);
        bytes[at::INDEX_BASE] = self.index_base as u8;
        put(&mut bytes, at::OUTPUTS, (self.outputs as u32).to_le_bytes());
        put(&mut bytes, at::DIM, (self.dim as u64).to_le_bytes());
        if let Some(standardizer) = self.standardizer {
            let numbers = pausing(standardizer.mean.iter().chain(&standardizer.scale));
            let places = bytes[at::END..start].as_chunks_mut::<8>().0;
            places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
        }
        aggregate::begin(of_trainer, &mut bytes[start..]).map_err(trouble)?;
        Ok(bytes)
    }
}

/// Checks whether a state has so few bytes that it can be written as text, by pg_dump for one.
pub fn check_size(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES { Err(PgError::StateTooLarge(bytes).into()) } else { Ok(()) }
}

/// The report of the last epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateReport {
    /// number 0, of no tuples, if there was none
    pub epoch: EpochReport,
    /// rows left out because of NULLs
    pub skipped: u64,
}

/// A state, to be read or changed.
pub struct StateMut<'a> {
    header: &'a mut [u8],
    /// means and then scales; empty if features are taken as they are
    moments: &'a [u8],
    trainer: &'a mut [u8],
}

impl<'a> StateMut<'a> {
    #[inline(always)]
    pub fn of(bytes: &'a mut [u8]) -> Result<StateMut<'a>> {
        let Some((header, rest)) = bytes.split_at_mut_checked(at::END) else {
            return Err(malformed("it is too short"));
        };
        if header[..4] != MAGIC {
            return Err(malformed("it has another format"));
        }
        let dim = u64::from_le_bytes(field(header, at::DIM)) as usize;
        let len = if header[at::FLAGS] & STANDARDIZE != 0 { dim.saturating_mul(16) } else { 0 };
        let Some((moments, trainer)) = rest.split_at_mut_checked(len) else { return Err(malformed("it is too short")) };
        Ok(StateMut { header, moments, trainer })
    }

    /// Checks all of it, because it comes from outside.
    pub fn check(&mut self) -> Result<()> {
        let sizes = self.trainer().map(|trainer| (trainer.dim(), trainer.outputs()))?;
        if sizes != (self.dim(), self.outputs()) || self.dim() == 0 {
            return Err(malformed("its dimensions contradict each other"));
        }
        if self.header[at::FLAGS] & !KNOWN != 0 || self.header[at::INDEX_BASE] > 1 {
            return Err(malformed("it has unknown flags"));
        }
        let (mean, scale) = self.moments.split_at(self.moments.len() / 2);
        let sound = doubles(mean).all(f64::is_finite) && doubles(scale).all(|s| s.is_finite() && s > 0.0);
        let report = [at::LOSS, at::ACCURACY, at::R2, at::LEARNING_RATE];
        if !sound || report.iter().any(|&at| !self.number(at).is_finite()) {
            return Err(malformed("a number in it is not finite"));
        }
        Ok(())
    }

    pub fn begin_epoch(&mut self) -> Result<()> {
        if self.in_epoch() {
            return Err(AggregateError::UnfinishedEpoch.into());
        }
        self.header[at::FLAGS] |= IN_EPOCH;
        put(self.header, at::ROWS, [0; 8]);
        put(self.header, at::SKIPPED, [0; 8]);
        Ok(())
    }

    pub fn finish_epoch(&mut self) -> Result<()> {
        if !self.in_epoch() {
            return Err(AggregateError::NoEpoch.into());
        }
        let standardized = !self.moments.is_empty();
        let report = self.trainer()?.finish_epoch().map_err(|e| match e {
            StateError::Diverged(epoch) => TrainingError::Diverged { epoch, standardized }.into(),
            e => trouble(e),
        })?;
        let flag = |value: Option<f64>, flag: u8| if value.is_some() { flag } else { 0 };
        self.header[at::FLAGS] &= !(IN_EPOCH | HAS_ACCURACY | HAS_R2);
        self.header[at::FLAGS] |= flag(report.accuracy, HAS_ACCURACY) | flag(report.r2, HAS_R2);
        put(self.header, at::EPOCH, report.epoch.to_le_bytes());
        put(self.header, at::LOSS, report.loss.to_le_bytes());
        put(self.header, at::ACCURACY, report.accuracy.unwrap_or_default().to_le_bytes());
        put(self.header, at::R2, report.r2.unwrap_or_default().to_le_bytes());
        put(self.header, at::LEARNING_RATE, report.learning_rate.to_le_bytes());
        put(self.header, at::TUPLES, report.tuples.to_le_bytes());
        Ok(())
    }

    /// Adds what another process has learned in the same epoch from the same state.
    pub fn merge(&mut self, other: StateMut) -> Result<()> {
        if !self.in_epoch() || !other.in_epoch() {
            return Err(AggregateError::NoEpoch.into());
        }
        // all that does not change during an epoch
        let same = |header: &[u8]| (header[..at::ROWS].to_vec(), header[at::LOSS..].to_vec());
        if same(self.header) != same(other.header) || self.moments != other.moments {
            return Err(AggregateError::OtherState.into());
        }
        let merged = aggregate::merge(self.trainer, other.trainer).map_err(trouble)?;
        if merged.len() != self.trainer.len() {
            return Err(AggregateError::OtherState.into());
        }
        self.trainer.copy_from_slice(&merged);
        for at in [at::ROWS, at::SKIPPED] {
            let sum = self.count(at).saturating_add(other.count(at));
            put(self.header, at, sum.to_le_bytes());
        }
        Ok(())
    }

    /// Learns from a dense tuple; `features` are standardized in place.
    #[inline(always)]
    pub fn learn_dense(&mut self, label: f64, features: &mut [f32]) -> std::result::Result<(), Failure> {
        let label = narrow_label(label)?;
        if !self.moments.is_empty() {
            for (i, feature) in features.iter_mut().enumerate() {
                *feature = self.standardized(i, *feature);
            }
        }
        self.trainer()?.learn_dense(label, features, 1.0).map_err(|e| self.failure(e))?;
        self.count_row();
        Ok(())
    }

    /// Learns from a sparse tuple with ascending indices from 0; `values` are standardized in place.
    #[inline(always)]
    pub fn learn_sparse(
        &mut self,
        label: f64,
        indices: &[u32],
        values: &mut [f32],
    ) -> std::result::Result<(), Failure> {
        let label = narrow_label(label)?;
        if !self.moments.is_empty() {
            for (index, value) in indices.iter().zip(values.iter_mut()) {
                *value = self.standardized(*index as usize, *value);
            }
        }
        self.trainer()?.learn_sparse(label, indices, values, 1.0).map_err(|e| self.failure(e))?;
        self.count_row();
        Ok(())
    }

    #[inline(always)]
    fn trainer(&mut self) -> Result<aggregate::StateMut<'_>> {
        aggregate::StateMut::from_bytes(self.trainer).map_err(trouble)
    }

    #[inline(always)]
    fn count_row(&mut self) {
        put(self.header, at::ROWS, (self.count(at::ROWS) + 1).to_le_bytes());
    }

    /// As [`Standardizer`] does it.
    #[inline(always)]
    fn standardized(&self, i: usize, value: f32) -> f32 {
        let (mean, scale) = self.moments.split_at(self.moments.len() / 2);
        let (mean, scale) = (f64::from_le_bytes(field(mean, i * 8)), f64::from_le_bytes(field(scale, i * 8)));
        ((f64::from(value) - mean) / scale) as f32
    }

    #[cold]
    fn failure(&self, error: StateError) -> Failure {
        match error {
            StateError::Label(label) if self.outputs() > 1 => {
                RowFault::NotAClass { label: label.into(), classes: self.outputs() }.into()
            }
            StateError::NegativeTarget(label) => RowFault::NegativeLabel(label.into()).into(),
            StateError::Label(label) => RowFault::NotASign(label.into()).into(),
            e => Failure::State(trouble(e)),
        }
    }

    /// Counts a row that is left out because of NULLs; false if that is not asked for.
    pub fn skip(&mut self) -> bool {
        let skips = self.header[at::FLAGS] & SKIP_NULLS != 0;
        if skips {
            put(self.header, at::SKIPPED, (self.count(at::SKIPPED) + 1).to_le_bytes());
            self.count_row();
        }
        skips
    }

    /// The number of the row that comes next, counted from 1 within the epoch.
    pub fn next_row(&self) -> u64 {
        self.count(at::ROWS) + 1
    }

    /// Number of features.
    #[inline(always)]
    pub fn dim(&self) -> usize {
        self.count(at::DIM) as usize
    }

    #[inline(always)]
    pub fn is_sparse(&self) -> bool {
        self.header[at::FLAGS] & SPARSE != 0
    }

    /// What the user calls the first dimension of a sparse tuple.
    #[inline(always)]
    pub fn index_base(&self) -> u32 {
        u32::from(self.header[at::INDEX_BASE])
    }

    /// The model as it is now.
    pub fn model(&mut self) -> Result<ModelParameters> {
        self.trainer()?.model().map_err(trouble)
    }

    /// The report of the last epoch.
    pub fn report(&self) -> StateReport {
        let has = |flag: u8, at| (self.header[at::FLAGS] & flag != 0).then(|| self.number(at));
        let epoch = EpochReport {
            epoch: u32::from_le_bytes(field(self.header, at::EPOCH)),
            loss: self.number(at::LOSS),
            accuracy: has(HAS_ACCURACY, at::ACCURACY),
            r2: has(HAS_R2, at::R2),
            learning_rate: self.number(at::LEARNING_RATE),
            tuples: self.count(at::TUPLES),
        };
        StateReport { epoch, skipped: self.count(at::SKIPPED) }
    }

    fn outputs(&self) -> usize {
        u32::from_le_bytes(field(self.header, at::OUTPUTS)) as usize
    }

    fn in_epoch(&self) -> bool {
        self.header[at::FLAGS] & IN_EPOCH != 0
    }

    #[inline(always)]
    fn count(&self, at: usize) -> u64 {
        u64::from_le_bytes(field(self.header, at))
    }

    fn number(&self, at: usize) -> f64 {
        f64::from_le_bytes(field(self.header, at))
    }
}

/// Why nothing was learned from a row.
pub enum Failure {
    Row(RowFault),
    State(Error),
}

impl From<RowFault> for Failure {
    fn from(fault: RowFault) -> Failure {
        Failure::Row(fault)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::State(error)
    }
}

#[inline(always)]
fn narrow_label(label: f64) -> std::result::Result<f32, RowFault> {
    let narrow = label as f32;
    match narrow.is_finite() {
        true => Ok(narrow),
        false if label.is_finite() => Err(RowFault::LabelOutOfRange(label)),
        false => Err(RowFault::LabelNotFinite(label)),
    }
}

fn malformed(reason: &str) -> Error {
    AggregateError::MalformedState(reason.to_owned()).into()
}

/// Our error for what is wrong with the trainer's state.
#[cold]
fn trouble(error: StateError) -> Error {
    match error {
        StateError::NoBuffers => AggregateError::NotByAggregate("schedule \"theorem1\"".into()).into(),
        StateError::Different => AggregateError::OtherState.into(),
        StateError::OutOfMemory(e) => e.into(),
        e => AggregateError::MalformedState(e.to_string()).into(),
    }
}

#[inline(always)]
fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

/// The `N` bytes at an offset. The length of `bytes` was checked.
#[inline(always)]
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as many bytes as asked for")
}

fn doubles(bytes: &[u8]) -> impl Iterator<Item = f64> {
    pausing(bytes.chunks_exact(8)).map(|bytes| f64::from_le_bytes(field(bytes, 0)))
}
