//! The processes of a search, and what they tell each other.
//!
//! All read the same rows in the same order, and each trains its own of the models. So there is nothing to be averaged:
//! a model is bit for bit what it would be if one process had all of them. What came of an epoch is given to everybody,
//! so that all know how all models are doing, and no one needs to be told when to stop.

use super::super::validation::held_out_result;
use bytemuck::{Pod, Zeroable};
use pg::process::all_gather::AllGather;
use scan::scan_control::Rank;
use sgd::Evaluation;

/// What came of a model, after an epoch or when it was evaluated.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Outcome {
    /// its number among all models
    pub candidate: u64,
    /// not a number: it has diverged
    pub loss: f64,
    /// not a number: it is R² of labels that are all the same
    pub score: f64,
}

impl Outcome {
    pub fn diverged(candidate: usize) -> Outcome {
        Outcome { candidate: candidate as u64, loss: f64::NAN, score: 0.0 }
    }

    /// What an evaluation says of a model, whose loss is to be multiplied by `unit` to be in units of the targets.
    pub fn new(candidate: usize, evaluation: &Evaluation, unit: f64) -> Outcome {
        let result = held_out_result(evaluation).filter(|result| (result.loss * unit).is_finite());
        let is_defined = evaluation.kind().is_classifier() || evaluation.has_r2();
        result.map_or(Outcome::diverged(candidate), |result| Outcome {
            candidate: candidate as u64,
            loss: result.loss * unit,
            score: if is_defined { result.score } else { f64::NAN },
        })
    }

    pub fn has_diverged(self) -> bool {
        self.loss.is_nan()
    }
}

/// This process's place among those of a search.
pub struct Team {
    /// None of the only one
    all_gather: Option<AllGather>,
    rank: Rank,
}

impl Team {
    /// The only process.
    pub const fn alone() -> Team {
        Team { all_gather: None, rank: Rank { processes: 1, rank: 0 } }
    }

    /// One of several.
    pub fn new(all_gather: AllGather, rank: Rank) -> Team {
        Team { all_gather: Some(all_gather), rank }
    }

    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn is_leader(&self) -> bool {
        self.rank.rank == 0
    }

    /// The outcomes of all processes' models, those of this one being `own`. All make the same calls in the same
    /// sequence.
    pub fn share(&mut self, own: Vec<Outcome>) -> Vec<Outcome> {
        let Some(all_gather) = &mut self.all_gather else { return own };
        let mut all = vec![Vec::<u32>::new(); all_gather.processes()];
        all_gather.gather(bytemuck::cast_slice(&own), |pieces| {
            all.iter_mut().zip(pieces).for_each(|(words, piece)| words.extend_from_slice(piece));
        });
        all.iter().flat_map(|words| bytemuck::pod_collect_to_vec::<u32, Outcome>(words)).collect()
    }
}
