//! Decisions that probabilities are fitted to where few rows are held out: for all rows, each fifth of them by a model
//! that has learned from the others, as scikit-learn's CalibratedClassifierCV(ensemble=False) has them.
//!
//! The smoothed targets of some dozens of rows keep probabilities far from 0 and 1, however good the model is.

use super::group_order::Rows;
use super::learn::learn;
use super::learners::Learner;
use super::new_trainer::new_trainer;
use super::resume::Resume;
use super::validation::{EndedEpoch, HeldOut, PER_EVALUATION, copy, like, read_again};
use decode::Decoder;
use errors::Result;
use loss::ModelParameters;
use options::chosen::{Keep, Validation};
use options::request::Request;
use sgd::Trainer;
use shuffle::{BlockPartition, shuffle_dealt_tuples};
use std::collections::{BTreeSet, HashMap};
use tuples::Batch;

/// With fewer rows held out of a group, all of its rows are decided for.
const FEW_HELD_OUT: usize = 500;

/// Parts of the rows, each decided for by a model of its own: scikit-learn's default.
const PARTS: usize = 5;

/// Memory for all rows of such groups.
const MEMORY: usize = 128 << 20;

/// All rows of groups of which few are held out.
pub struct CrossFit {
    /// by group; None of the others
    rows: Vec<Option<Batch>>,
}

impl CrossFit {
    /// Reads the source once more for those of these groups, unless it was said which rows are held out, and not only
    /// how many. The draw may have held out none at all of a group of few rows or mini-batches. None without any,
    /// or they need too much memory together.
    pub fn read(
        request: &Request,
        groups: &BTreeSet<usize>,
        held_out: &HeldOut,
        rows: &mut EndedEpoch<'_>,
    ) -> Result<Option<CrossFit>> {
        let Some(Validation::Fraction { fraction, .. }) = request.options.validation() else { return Ok(None) };
        if held_out.must_be_read() {
            return Ok(None);
        }
        let held_out_of = |group: &usize| held_out.of_group(*group).map_or(0, Batch::tuples_in_order);
        let small: BTreeSet<usize> = groups.iter().copied().filter(|group| held_out_of(group) < FEW_HELD_OUT).collect();
        let Some(last) = small.last() else { return Ok(None) };
        // what is held out says about how much all is, before anything is read
        let held_out_bytes: usize = small.iter().filter_map(|group| held_out.of_group(*group)).map(Batch::bytes).sum();
        if held_out_bytes as f64 > MEMORY as f64 * fraction {
            return Ok(None);
        }
        let mut kept: Vec<Option<Batch>> = Vec::new();
        kept.resize_with(last + 1, || None);
        let mut bytes = 0;
        read_again(rows.again(), Rows::All, |group, _, batch, places| {
            if small.contains(&group) && bytes <= MEMORY {
                let kept = kept[group].get_or_insert_with(|| like(batch));
                bytes -= kept.bytes();
                copy(batch, places, kept)?;
                bytes += kept.bytes();
            }
            Ok(())
        })?;
        Ok((bytes <= MEMORY).then_some(CrossFit { rows: kept }))
    }

    /// Gives a model that is trained as the learner was, from the first epoch on, but on four fifths of its group, and
    /// the other fifth in pieces, to `decide`: fifth by fifth. False if the group has none of these, or such a model
    /// diverges.
    pub fn decide(
        &mut self,
        (request, resume): (&Request, Option<&Resume>),
        decoder: &Decoder,
        learner: &Learner,
        mut decide: impl FnMut(&ModelParameters, &Batch),
    ) -> Result<bool> {
        let Some(Some(rows)) = self.rows.get_mut(learner.group) else { return Ok(false) };
        let (parts, epochs) = (parts(rows), epochs(request, resume, learner));
        let mut decided = like(rows);
        for part in 0..PARTS {
            let places = |of: bool| (0..).zip(&parts).filter(move |(_, p)| (**p == part) == of).map(|(place, _)| place);
            let Some(trainer) =
                train(request, decoder, (learner.point, epochs), rows, allocation::collect(places(false)))?
            else {
                return Ok(false);
            };
            let (model, own) = (trainer.model()?, allocation::collect(places(true)));
            for places in own.chunks(PER_EVALUATION) {
                decided.clear();
                copy(rows, places, &mut decided)?;
                decide(&model, &decided);
            }
        }
        Ok(true)
    }
}

/// The part of each row, by place: each has as much of a class as another. Mini-batches go round.
fn parts(rows: &Batch) -> Vec<usize> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let class = |place: usize| if rows.has_mini_batches() { 0 } else { rows.label(place).to_bits() };
    let next = |place| {
        let count = counts.entry(class(place)).or_default();
        *count += 1;
        (*count - 1) % PARTS
    };
    (0..rows.len()).map(next).collect()
}

/// A model of a point that learns from these rows for this many epochs; None if it diverges.
fn train(
    request: &Request,
    decoder: &Decoder,
    (point, epochs): (usize, u32),
    rows: &mut Batch,
    places: Vec<u32>,
) -> Result<Option<Trainer>> {
    let (outputs, shuffling) = (decoder.labels().outputs(), &request.shuffling);
    let mut trainer = new_trainer(decoder, None, request.points[point].hyperparameters, rows)?;
    if places.is_empty() {
        return Ok(Some(trainer)); // whose decisions say nothing
    }
    for epoch in 1..=epochs {
        let mut order = places.clone();
        shuffle_dealt_tuples(BlockPartition::SINGLE, shuffling.strategy, shuffling.seed, [epoch.into(), 0], &mut order);
        rows.set_order(&order)?;
        trainer.begin_epoch();
        trainer.begin_buffer(rows.tuples_in_order(), rows, 0..order.len())?;
        learn(&mut trainer, rows, outputs, 0..order.len())?;
        if trainer.check().is_err() || trainer.finish_epoch().is_err() {
            return Ok(None);
        }
    }
    Ok(Some(trainer))
}

/// The epoch whose model is the learner's, counted from the first one of the training that it continues.
fn epochs(request: &Request, resume: Option<&Resume>, learner: &Learner) -> u32 {
    if let (Some(resume), true) = (resume, learner.keeps_earlier(request)) {
        return resume.best_epoch();
    }
    let best = || learner.history.iter().min_by(|a, b| a.deciding_loss().total_cmp(&b.deciding_loss()));
    let row = if request.options.keep == Keep::Best { best() } else { learner.history.last() };
    row.map_or(0, |row| row.epoch as u32)
}
