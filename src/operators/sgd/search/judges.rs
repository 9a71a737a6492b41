//! Judging models of a search: by the rows that are held out of their folds, while the source is read once more.

use super::super::validation::{PER_JUDGEMENT, copy, judgement, like};
use super::team::Outcome;
use crate::errors::Result;
use crate::operators::decoder::HELD_OUT;
use pg::check_for_interrupts;
use sgd::{Evaluation, ModelParameters};
use shuffle::FoldRule;
use std::ops::Range;
use tuples::Batch;

/// The part that a tag stands for.
#[inline]
pub fn part(rule: FoldRule, tag: u32) -> u32 {
    match rule {
        FoldRule::HeldOut => u32::from(tag & HELD_OUT != 0),
        _ => tag,
    }
}

/// Models that are judged while the source is read.
pub struct Judges {
    rule: FoldRule,
    folds: Range<u32>,
    /// number of the candidate, its fold and its model
    models: Vec<(usize, u32, ModelParameters, Evaluation)>,
    /// some tuples of a part
    scratch: Option<Batch>,
    places: Vec<u32>,
}

impl Judges {
    /// Those of these models, each with the number of its candidate and its fold, which is one of `folds`.
    pub fn new(rule: FoldRule, folds: Range<u32>, models: Vec<(usize, u32, ModelParameters, Evaluation)>) -> Judges {
        Judges { rule, folds, models, scratch: None, places: Vec::new() }
    }

    /// Is there nothing to judge?
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// Takes the tuples of a buffer.
    ///
    /// # Errors
    /// [`PgError::OutOfMemory`]
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        let Judges { rule, folds, models, scratch, places } = self;
        let scratch = scratch.get_or_insert_with(|| like(batch));
        let tags = batch.tags().unwrap_or_default();
        for fold in folds.clone() {
            let judges = |place: &u32| {
                let tag = tags.get(*place as usize).copied().unwrap_or_default();
                rule.judged_by(part(*rule, tag)) == Some(fold)
            };
            places.clear();
            allocation::extend(places, batch.order().iter().copied().filter(judges));
            for some in places.chunks(PER_JUDGEMENT) {
                scratch.clear();
                copy(batch, some, scratch)?;
                for (_, _, model, evaluation) in models.iter_mut().filter(|(_, of, ..)| *of == fold) {
                    check_for_interrupts();
                    evaluation.add(model, scratch);
                }
            }
        }
        Ok(())
    }

    /// What came out, the losses in units of the targets.
    pub fn outcomes(self, unit: f64) -> Vec<Outcome> {
        let outcome = |(candidate, _, _, evaluation): (usize, u32, ModelParameters, Evaluation)| {
            let judged = judgement(&evaluation).filter(|judged| (judged.loss * unit).is_finite());
            let is_defined = evaluation.kind().is_classifier() || evaluation.has_r2();
            judged.map_or(Outcome::diverged(candidate), |judged| Outcome {
                candidate,
                loss: judged.loss * unit,
                score: if is_defined { judged.score } else { f64::NAN },
            })
        };
        self.models.into_iter().map(outcome).collect()
    }
}
