//! Tuples that are held out, and what they say of a model.
//!
//! They are kept from the first epoch on, as long as they are not too many. If they are, the source is read once more
//! after each epoch: they are the same then, whatever it costs.

use super::group_order::GroupOrder;
use super::learners::{Judged, Judgement};
use crate::errors::{Result, TrainingError};
use crate::operators::buffers::Buffers;
use crate::operators::decoder::Labels;
use crate::operators::scan_control::ScanControl;
use crate::pg::check_for_interrupts;
use sgd::{Evaluation, ModelKind};
use tuples::{Batch, TupleSource};

/// Memory for tuples that are held out.
const MEMORY: usize = 128 << 20;

/// Tuples that are judged at once.
pub const PER_JUDGEMENT: usize = 4096;

/// The tuples that are held out, group by group.
pub struct HeldOut {
    kept: Vec<Batch>,
    /// bytes of all that is kept: with thousands of groups it is not to be added up for each of them
    bytes: usize,
    state: HeldOutState,
    /// held out in the first epoch
    tuples: u64,
}

#[derive(PartialEq, Eq)]
enum HeldOutState {
    /// the first epoch is under way
    Filling,
    Kept,
    TooMany,
}

impl HeldOut {
    pub fn new() -> HeldOut {
        HeldOut { kept: Vec::new(), bytes: 0, state: HeldOutState::Filling, tuples: 0 }
    }

    /// Takes tuples of a group, if this is the first epoch.
    ///
    /// # Errors
    /// [`ResourceError::OutOfMemory`]
    pub fn add(&mut self, group: usize, batch: &Batch, places: &[u32]) -> Result<()> {
        self.tuples += if self.state == HeldOutState::Kept { 0 } else { places.len() as u64 };
        if self.state != HeldOutState::Filling {
            return Ok(());
        }
        while self.kept.len() <= group {
            self.kept.push(like(batch));
        }
        let kept = &mut self.kept[group];
        self.bytes -= kept.bytes();
        copy(batch, places, kept)?;
        self.bytes += kept.bytes();
        if self.bytes > MEMORY {
            self.kept.clear();
            self.state = HeldOutState::TooMany;
        }
        Ok(())
    }

    /// The first epoch is over. True if anything was held out.
    fn end_first_epoch(&mut self) -> bool {
        if self.state == HeldOutState::Filling {
            self.state = HeldOutState::Kept;
        }
        self.tuples > 0
    }

    /// What was kept of a group, if anything was.
    pub fn of_group(&self, group: usize) -> Option<&Batch> {
        self.kept.get(group)
    }

    /// Must the source be read once more to judge?
    pub fn must_be_read(&self) -> bool {
        self.state == HeldOutState::TooMany
    }

    /// Judges a model on what was kept of a group.
    fn judge(&self, kind: ModelKind, judged: &Judged) -> Option<Judgement> {
        let batch = self.kept.get(judged.group)?;
        let mut evaluation = Evaluation::new(kind).with_loss_number(judged.loss_number);
        evaluation.add(&judged.model, batch);
        judgement(&evaluation)
    }
}

/// Judges models, group and model of each, at the end of an epoch, in their sequence.
///
/// # Errors
/// [`TrainingError::NoRows`] if nothing is held out; [`ResourceError::OutOfMemory`]; what is wrong with the rows,
/// if they are read once more
pub fn judge(
    held_out: &mut HeldOut,
    kind: ModelKind,
    models: Vec<Judged>,
    epoch: EndedEpoch<'_>,
) -> Result<Vec<Option<Judgement>>> {
    if epoch.is_first && !held_out.end_first_epoch() {
        return Err(TrainingError::NoRows("validate on").into());
    }
    if held_out.must_be_read() {
        return judge_by_reading(epoch, Judges::new(kind, models));
    }
    let judge = |judged: Judged| {
        check_for_interrupts();
        held_out.judge(kind, &judged)
    };
    Ok(models.into_iter().map(judge).collect())
}

/// The epoch that has ended, and the means to read it once more.
pub struct EndedEpoch<'a> {
    pub epoch: u32,
    pub is_first: bool,
    pub buffers: &'a mut Buffers,
    pub group_order: &'a mut GroupOrder,
    pub batch: &'a mut Batch,
}

/// Judges models by reading the epoch once more.
fn judge_by_reading(epoch: EndedEpoch<'_>, mut judges: Judges) -> Result<Vec<Option<Judgement>>> {
    read_held_out(epoch, |group, _, batch, places| judges.add(group, batch, places))?;
    Ok(judges.judgements().collect())
}

/// Reads the epoch once more, and passes what is held out to `hold`, which gets a group, what labels mean, and places in
/// the batch.
///
/// # Errors
/// Those of `hold`; what is wrong with the rows
pub fn read_held_out(
    epoch: EndedEpoch<'_>,
    mut hold: impl FnMut(usize, &Labels, &Batch, &[u32]) -> Result<()>,
) -> Result<()> {
    let EndedEpoch { epoch, buffers, group_order, batch, .. } = epoch;
    buffers.decoder.begin_epoch();
    buffers.control(&ScanControl::epoch(epoch.into()));
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        let labels = buffers.decoder.labels();
        group_order.held_out(batch, |group, batch, places| hold(group, labels, batch, places))?;
    }
    Ok(())
}

/// Models that are judged while the source is read.
struct Judges {
    /// a group and a model of it, by group: whose they are is searched for each group of each buffer
    models: Vec<(Judged, Evaluation)>,
    /// some tuples of a group
    scratch: Option<Batch>,
}

impl Judges {
    /// For these models, in ascending sequence of their groups.
    fn new(kind: ModelKind, models: Vec<Judged>) -> Judges {
        debug_assert!(models.is_sorted_by_key(|judged| judged.group), "models by group");
        let evaluation = |judged: &Judged| Evaluation::new(kind).with_loss_number(judged.loss_number);
        let evaluations: Vec<Evaluation> = models.iter().map(evaluation).collect();
        let models = models.into_iter().zip(evaluations).collect();
        Judges { models, scratch: None }
    }

    /// Takes tuples of a group.
    ///
    /// # Errors
    /// [`ResourceError::OutOfMemory`]
    pub fn add(&mut self, group: usize, batch: &Batch, places: &[u32]) -> Result<()> {
        let first = self.models.partition_point(|(judged, _)| judged.group < group);
        let models = self.models[first..].iter_mut().take_while(|(judged, _)| judged.group == group).count();
        let models = &mut self.models[first..first + models];
        if models.is_empty() {
            return Ok(()); // none that still learns
        }
        let scratch = self.scratch.get_or_insert_with(|| like(batch));
        for places in places.chunks(PER_JUDGEMENT) {
            scratch.clear();
            copy(batch, places, scratch)?;
            for (judged, evaluation) in models.iter_mut() {
                check_for_interrupts();
                evaluation.add(&judged.model, scratch);
            }
        }
        Ok(())
    }

    /// What came out, in the sequence of the models.
    fn judgements(&self) -> impl Iterator<Item = Option<Judgement>> {
        self.models.iter().map(|(_, evaluation)| judgement(evaluation))
    }
}

/// What an evaluation says; None if there were no tuples.
pub fn judgement(evaluation: &Evaluation) -> Option<Judgement> {
    let score = evaluation.accuracy().or(evaluation.r2())?;
    let loss = if evaluation.in_range() { evaluation.loss() } else { f64::INFINITY };
    (evaluation.tuples() > 0).then_some(Judgement { loss, score })
}

/// An empty batch for tuples like these.
pub fn like(batch: &Batch) -> Batch {
    let mut like = kind_of(batch);
    like.set_weighted(batch.weights().is_some());
    like
}

fn kind_of(batch: &Batch) -> Batch {
    if batch.has_mini_batches() {
        Batch::mini_batches(batch.dim())
    } else if batch.is_sparse() {
        let mut sparse = Batch::sparse();
        sparse.set_dim(batch.dim());
        sparse
    } else {
        Batch::dense(batch.dim())
    }
}

/// Appends tuples at these places of a batch to another like it.
///
/// # Errors
/// [`ResourceError::OutOfMemory`]
pub fn copy(from: &Batch, places: &[u32], to: &mut Batch) -> Result<()> {
    for place in places {
        to.push_copy(from, *place as usize)?;
    }
    Ok(())
}
