//! Loss, accuracy and R² of a finished model.
//!
//! Guarantees: a tuple counts as correct exactly if the model's decisions put it into its class, since both compute the
//! same bits; the losses are computed and summed in f64.

use tuples::Batch;

use crate::kernels::{Decisions, Level, sparse_decision};
use crate::loss::{cross_entropy, softplus};
use crate::spread::Spread;
use crate::{LinearModel, ModelKind};

/// Judges a model over any number of batches. Weights of tuples do not count.
#[derive(Debug, Clone)]
pub struct Evaluation {
    kind: ModelKind,
    level: Level,
    loss: f64,
    correct: u64,
    tuples: u64,
    targets: Spread,
    /// of a batch, output by output
    decisions: Vec<f32>,
}

impl Evaluation {
    /// Nothing judged yet, by the loss of `kind`.
    pub fn new(kind: ModelKind) -> Evaluation {
        Evaluation::with_level(kind, Level::detect())
    }

    pub(crate) fn with_level(kind: ModelKind, level: Level) -> Evaluation {
        let targets = Spread::default();
        Evaluation { kind, level, loss: 0.0, correct: 0, tuples: 0, targets, decisions: Vec::new() }
    }

    /// Judges `model` on all tuples of `batch`, whose labels are as in training.
    ///
    /// # Panics
    /// If the batch is dense and has not as many features as the model. A sparse one may have more, of weight 0.
    pub fn add(&mut self, model: &LinearModel, batch: &Batch) {
        self.decisions.clear();
        for k in 0..model.outputs {
            let (weights, intercept, decisions) = (model.weights_of(k), model.intercepts[k], &mut self.decisions);
            if batch.is_sparse() {
                decisions.extend((0..batch.len()).map(|i| {
                    let (indices, values) = batch.sparse_row(i);
                    sparse_decision(weights, intercept, indices, values)
                }));
            } else {
                assert_eq!(batch.dim(), model.dim, "as many features as weights");
                self.level.run(Decisions { weights, intercept, batch, decisions });
            }
        }
        let mut row = vec![0.0; model.outputs];
        for (i, &y) in batch.labels().iter().enumerate() {
            for (k, z) in row.iter_mut().enumerate() {
                *z = self.decisions[k * batch.len() + i];
            }
            self.judge(&row, y);
        }
        self.tuples += batch.len() as u64;
    }

    /// Counts one tuple of the given decisions and label.
    fn judge(&mut self, decisions: &[f32], y: f32) {
        let z = decisions[0];
        let margin = f64::from(y * z);
        self.loss += match self.kind {
            ModelKind::Logistic => softplus(-margin),
            ModelKind::Svm if margin >= 1.0 => 0.0,
            ModelKind::Svm => 1.0 - margin,
            ModelKind::Linear => (f64::from(z) - f64::from(y)).powi(2) / 2.0,
            ModelKind::Softmax => cross_entropy(decisions, y as usize),
        };
        self.correct += u64::from(match self.kind {
            ModelKind::Logistic | ModelKind::Svm => (z > 0.0) == (y > 0.0),
            ModelKind::Softmax => LinearModel::class_of(decisions) == y as usize,
            ModelKind::Linear => false,
        });
        if self.kind == ModelKind::Linear {
            self.targets.add(y.into());
        }
    }

    /// The mean loss, without a penalty; 0 if nothing was judged; infinite or NaN if a decision is beyond f32.
    pub fn loss(&self) -> f64 {
        self.mean(self.loss)
    }

    /// The fraction of tuples in their class, 0 of none: positive if the decision is above 0, negative otherwise; with
    /// softmax the class of the greatest decision. None for linear.
    pub fn accuracy(&self) -> Option<f64> {
        self.kind.is_classifier().then(|| self.mean(self.correct as f64))
    }

    /// 1 - Σ (y - z)² / Σ (y - mean y)², for linear only. If all targets are the same it is 1 if they were met, else 0.
    pub fn r2(&self) -> Option<f64> {
        (self.kind == ModelKind::Linear).then(|| self.targets.r2(2.0 * self.loss))
    }

    /// How many tuples were judged.
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.tuples == 0 { 0.0 } else { sum / self.tuples as f64 }
    }
}
