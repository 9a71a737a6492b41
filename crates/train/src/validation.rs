//! Tuples that are held out, and what they say of a model.
//!
//! They are kept from the first epoch on, as long as they are not too many. If they are, the source is read once more
//! after each epoch: they are the same then, whatever it costs.

use super::group_order::{GroupOrder, Rows};
use super::learners::{GroupModel, HeldOutResult};
use decode::Decoder;
use errors::{Result, TrainingError};
use loss::ModelKind;
use options::chosen::Validation;
use options::request::Request;
use options::shuffling::Shuffling;
use pg::check_for_interrupts;
use scan::Buffers;
use scan::scan_control::{CacheControl, Rank, ScanControl};
use serde::{Deserialize, Serialize};
use sgd::{Evaluation, EvaluationSums};
use shuffle::BlockPartition;
use std::ops::Range;
use tuples::{Batch, TupleSource};

/// Memory for tuples that are held out.
const MEMORY: usize = 128 << 20;

/// Tuples that models are evaluated on at once.
pub const PER_EVALUATION: usize = 4096;

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
    fn new() -> HeldOut {
        HeldOut { kept: Vec::new(), bytes: 0, state: HeldOutState::Filling, tuples: 0 }
    }

    /// Takes tuples of a group, if this is the first epoch.
    fn add(&mut self, group: usize, batch: &Batch, places: &[u32]) -> Result<()> {
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

    fn end_first_epoch(&mut self) {
        if self.state == HeldOutState::Filling {
            self.state = HeldOutState::Kept;
        }
    }

    /// What was kept of a group, if anything was.
    pub fn of_group(&self, group: usize) -> Option<&Batch> {
        self.kept.get(group)
    }

    /// Must the source be read once more to evaluate models?
    pub fn must_be_read(&self) -> bool {
        self.state == HeldOutState::TooMany
    }
}

/// Checks whether anything is held out. For probabilities a draw may have held out none of few rows: they are fitted to
/// all of them then, and nothing evaluates the model but the loss that it learns by.
pub fn check_held_out(request: &Request, held_out: u64) -> Result<()> {
    let column = match request.options.validation() {
        Some(Validation::Column(column)) => Some(column),
        Some(Validation::Fraction { .. }) if request.options.probability => return Ok(()),
        _ => None,
    };
    if held_out == 0 { Err(TrainingError::NothingHeldOut { column }.into()) } else { Ok(()) }
}

/// Models, or the like, each of a group, in ascending sequence of their groups, to which tuples of these are shown.
pub struct ByGroup<T> {
    pub all: Vec<(usize, T)>,
    /// some tuples of a group
    scratch: Option<Batch>,
}

impl<T> ByGroup<T> {
    pub fn new(all: Vec<(usize, T)>) -> ByGroup<T> {
        debug_assert!(all.is_sorted_by_key(|(group, _)| *group), "models by group");
        ByGroup { all, scratch: None }
    }

    /// Shows tuples of a group, at these places of a batch, to those of the group, a few at a time.
    pub fn show(
        &mut self,
        group: usize,
        (batch, places): (&Batch, &[u32]),
        mut to: impl FnMut(&mut T, &Batch),
    ) -> Result<()> {
        // whose they are is searched for each group of each buffer
        let first = self.all.partition_point(|(of, _)| *of < group);
        let count = self.all[first..].iter().take_while(|(of, _)| *of == group).count();
        if count == 0 {
            return Ok(()); // none that still learns
        }
        let scratch = self.scratch.get_or_insert_with(|| like(batch));
        for places in places.chunks(PER_EVALUATION) {
            scratch.clear();
            copy(batch, places, scratch)?;
            for (_, one) in &mut self.all[first..first + count] {
                check_for_interrupts();
                to(one, scratch);
            }
        }
        Ok(())
    }

    /// Shows each what is held out of its group: all at once if it was kept, else by reading the epoch once more.
    pub fn show_held_out(
        &mut self,
        held_out: &HeldOut,
        epoch: EndedEpoch<'_>,
        mut to: impl FnMut(&mut T, &Batch, &Decoder),
    ) -> Result<()> {
        if held_out.must_be_read() {
            return read_again(epoch, Rows::HeldOut, |group, decoder, batch, places| {
                self.show(group, (batch, places), |one, batch| to(one, batch, decoder))
            });
        }
        for (group, one) in &mut self.all {
            check_for_interrupts();
            held_out.of_group(*group).into_iter().for_each(|batch| to(one, batch, &epoch.buffers.decoder));
        }
        Ok(())
    }
}

/// How a process assigns the rows that it reads to groups, and what it holds out. Each of several, which learn
/// together, evaluates the models on its own.
pub struct OwnParts {
    order: GroupOrder,
    held_out: HeldOut,
    /// that models learn from, if that is known beforehand; others are passed over
    groups: usize,
    /// that it has gone through, or is in
    epochs: u64,
}

/// The epoch that has ended, the process's rows, and a batch for them.
type Ended<'a> = (u32, &'a mut Buffers, &'a mut Batch);

impl OwnParts {
    /// Of the process with this part of the blocks.
    pub fn new(shuffling: &Shuffling, deal: BlockPartition, groups: usize) -> OwnParts {
        OwnParts { order: GroupOrder::new(shuffling, deal), held_out: HeldOut::new(), groups, epochs: 0 }
    }

    /// Of the only process.
    pub fn of_one(shuffling: &Shuffling) -> OwnParts {
        OwnParts::new(shuffling, BlockPartition::SINGLE, 0)
    }

    pub fn begin_epoch(&mut self, epoch: u64) {
        self.order.begin_epoch(epoch);
        self.epochs += 1;
    }

    /// Takes what is held out of a buffer, and leaves the rest to be learned from: the groups that have some, and where
    /// in the buffer's order.
    pub fn take(&mut self, batch: &mut Batch) -> Result<Vec<(usize, Range<usize>)>> {
        let OwnParts { order, held_out, epochs, .. } = self;
        order.learn_order(batch, |group, batch, places| match epochs {
            1 => held_out.add(group, batch, places),
            _ => Ok(()),
        })
    }

    /// As [`take`](OwnParts::take), for each group.
    pub fn take_each(&mut self, batch: &mut Batch) -> Result<Vec<Range<usize>>> {
        let mut parts = vec![0..0; self.groups];
        for (group, places) in self.take(batch)?.into_iter().filter(|(group, _)| *group < self.groups) {
            parts[group] = places;
        }
        Ok(parts)
    }

    /// Evaluates models, in the sequence of their groups, at the end of an epoch. Also gives how many tuples are held
    /// out, those of groups without models among them.
    pub fn evaluate(
        &mut self,
        kind: ModelKind,
        models: Vec<GroupModel>,
        ended: Ended<'_>,
    ) -> Result<(Vec<Evaluation>, u64)> {
        if self.epochs == 1 {
            self.held_out.end_first_epoch();
        }
        let (held_out, rows) = self.ended(ended);
        let evaluation =
            |model: GroupModel| (model.group, (model.model, Evaluation::new(kind).with_loss_number(model.loss_number)));
        let mut models = ByGroup::new(models.into_iter().map(evaluation).collect());
        models.show_held_out(held_out, rows, |(model, evaluation), batch, _| evaluation.add(model, batch))?;
        Ok((models.all.into_iter().map(|(_, (_, evaluation))| evaluation).collect(), held_out.tuples))
    }

    /// Keeps what several processes have held out, each its own, by reading the whole epoch once more.
    pub fn hold_out_all(&mut self, (epoch, buffers, batch): Ended<'_>) -> Result<()> {
        let OwnParts { order, held_out, .. } = self;
        let mut rows = EndedEpoch { epoch, buffers, group_order: order, batch };
        rows.read_all_blocks();
        read_again(rows, Rows::HeldOut, |group, _, batch, places| held_out.add(group, batch, places))?;
        held_out.end_first_epoch();
        Ok(())
    }

    /// What it holds out, and how to read the epoch that has ended once more.
    pub fn ended<'a>(&'a mut self, (epoch, buffers, batch): Ended<'a>) -> (&'a HeldOut, EndedEpoch<'a>) {
        let OwnParts { order, held_out, .. } = self;
        (held_out, EndedEpoch { epoch, buffers, group_order: order, batch })
    }
}

/// The epoch that has ended, and the means to read it once more.
pub struct EndedEpoch<'a> {
    pub epoch: u32,
    pub buffers: &'a mut Buffers,
    pub group_order: &'a mut GroupOrder,
    pub batch: &'a mut Batch,
}

impl EndedEpoch<'_> {
    /// From now on this process reads all blocks, which it has read with others.
    pub fn read_all_blocks(&mut self) {
        let (rank, cache) = (Some(Rank { processes: 1, rank: 0 }), Some(CacheControl::Free));
        *self.batch = Batch::dense(0);
        self.buffers.control(&ScanControl { rank, cache, ..ScanControl::default() });
    }

    /// The same, to be read once more before it is.
    pub fn again(&mut self) -> EndedEpoch<'_> {
        let EndedEpoch { epoch, buffers, group_order, batch } = self;
        EndedEpoch { epoch: *epoch, buffers, group_order, batch }
    }
}

/// Reads the epoch once more, and passes some of its rows to `take`, which gets a group, the decoder, and places in a
/// batch.
pub fn read_again(
    epoch: EndedEpoch<'_>,
    rows: Rows,
    mut take: impl FnMut(usize, &Decoder, &Batch, &[u32]) -> Result<()>,
) -> Result<()> {
    let EndedEpoch { epoch, buffers, group_order, batch } = epoch;
    buffers.decoder.begin_epoch();
    buffers.control(&ScanControl::epoch(epoch.into()));
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        group_order.show(rows, batch, |group, batch, places| take(group, &buffers.decoder, batch, places))?;
    }
    Ok(())
}

/// What one of several has found.
#[derive(Serialize, Deserialize)]
pub struct OwnEvaluation {
    /// of each model, on tuples of its own
    sums: Vec<EvaluationSums>,
    /// tuples that it holds out, those of groups without models among them
    held_out: u64,
}

impl OwnEvaluation {
    /// Of models, and the tuples held out.
    pub fn new((evaluations, held_out): (Vec<Evaluation>, u64)) -> OwnEvaluation {
        OwnEvaluation { sums: evaluations.iter().map(Evaluation::sums).collect(), held_out }
    }

    /// The same, with nothing for models that were not evaluated: `is_here` says of each model whether it was.
    pub fn spread(self, kind: ModelKind, is_here: &[bool]) -> OwnEvaluation {
        let OwnEvaluation { sums, held_out } = self;
        let (mut found, nothing) = (sums.into_iter(), Evaluation::new(kind).sums());
        let sums = is_here.iter().filter_map(|is_here| if *is_here { found.next() } else { Some(nothing.clone()) });
        OwnEvaluation { sums: sums.collect(), held_out }
    }
}

/// What all have found.
pub struct United {
    /// of each model
    pub evaluations: Vec<Evaluation>,
    pub held_out: u64,
}

impl United {
    /// Evaluations of this many models by what several have counted; None if they have evaluated other models.
    pub fn new(kind: ModelKind, models: usize, all: &[OwnEvaluation]) -> Option<United> {
        let mut evaluations = vec![Evaluation::new(kind); models];
        let mut add = |own: &OwnEvaluation| {
            own.sums.len() == models && evaluations.iter_mut().zip(&own.sums).all(|(all, sums)| all.add_sums(sums))
        };
        let agree = all.iter().all(&mut add);
        let held_out = all.iter().fold(0, |sum: u64, own| sum.saturating_add(own.held_out));
        agree.then_some(United { evaluations, held_out })
    }
}

/// What an evaluation says; None if there were no tuples.
pub fn held_out_result(evaluation: &Evaluation) -> Option<HeldOutResult> {
    let score = evaluation.accuracy().or(evaluation.r2())?;
    let loss = if evaluation.has_diverged() { f64::INFINITY } else { evaluation.loss() };
    (evaluation.tuples() > 0).then_some(HeldOutResult { loss, score })
}

pub fn like(batch: &Batch) -> Batch {
    let mut like = kind_of(batch);
    like.set_weighted(batch.weights().is_some());
    like.set_exact(batch.exact_labels().is_some());
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
pub fn copy(from: &Batch, places: &[u32], to: &mut Batch) -> Result<()> {
    for place in places {
        to.push_copy(from, *place as usize)?;
    }
    Ok(())
}
