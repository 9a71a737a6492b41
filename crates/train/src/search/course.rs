//! What is to be tried in a search, and what it costs.

use linear::Panel;
use loss::{Hyperparameters, ModelKind};
use options::chosen::Keep;
use options::folds::FoldRuleVariants;
use options::request::Request;
use serde::{Deserialize, Serialize};
use sgd::{Load, Stopping};
use shuffle::FoldRule;
use std::ops::Range;
use tuples::Batch;

/// What is to be tried, once everything is chosen that depends on the rows; the same in every process.
#[derive(Serialize, Deserialize)]
pub struct Course {
    pub kind: ModelKind,
    pub trials: Vec<Trial>,
    #[serde(with = "FoldRuleVariants")]
    pub rule: FoldRule,
    /// how many folds there is memory for
    pub folds_at_once: u32,
    pub keep: Keep,
    /// of the trial that has most
    pub last_epoch: u32,
    /// is the client to be told of each epoch?
    pub notice: bool,
}

/// What the models of a point are trained by.
#[derive(Serialize, Deserialize)]
pub struct Trial {
    pub hyperparameters: Hyperparameters,
    pub max_epochs: u32,
    pub stopping: Option<Stopping>,
}

impl Course {
    /// That of a request's points, on this many folds at once.
    pub fn new(request: &Request, rule: FoldRule, folds_at_once: u32) -> Course {
        let trials = request.points.iter().map(|point| Trial {
            hyperparameters: point.hyperparameters,
            max_epochs: point.max_epochs,
            stopping: point.stopping,
        });
        Course {
            kind: request.kind,
            trials: trials.collect(),
            rule,
            folds_at_once,
            keep: request.options.keep,
            last_epoch: request.last_epoch(),
            notice: request.options.verbose,
        }
    }

    /// The folds that are trained at once, turn by turn.
    pub fn turns(&self) -> impl Iterator<Item = Range<u32>> {
        let (folds, at_once) = (self.rule.folds(), self.folds_at_once.max(1));
        (0..folds).step_by(at_once as usize).map(move |first| first..(first + at_once).min(folds))
    }

    /// What all points on these folds take, fold by fold, to learn from tuples like those of the batch.
    pub fn loads(&self, folds: Range<u32>, batch: &Batch, outputs: usize) -> Vec<Load> {
        let (dim, is_dense) = (batch.dim(), !batch.is_sparse() && !batch.has_mini_batches());
        let load = |fold, trial: &Trial| {
            let hyper = &trial.hyperparameters;
            let learned = (0..self.rule.parts()).filter(|part| self.rule.learns(fold, *part)).count();
            let tuples = learned as u64 * u64::from(trial.max_epochs);
            Load {
                in_panel: is_dense && Panel::supports(hyper, dim, false),
                cost: (hyper.weights(dim, outputs) as u64).saturating_mul(tuples),
            }
        };
        folds.flat_map(|fold| self.trials.iter().map(move |trial| load(fold, trial))).collect()
    }
}
