//! Loss and accuracy of a finished model.
//!
//! Guarantees: a tuple counts as correct exactly if [`LinearModel::decision`] puts it into its class, since both
//! compute the same bits; the losses are computed and summed in f64.

use tuples::Batch;

use crate::kernels::{Decisions, Level};
use crate::loss::softplus;
use crate::{LinearModel, ModelKind};

/// Judges a model over any number of batches.
#[derive(Debug, Clone)]
pub struct Evaluation {
    kind: ModelKind,
    level: Level,
    loss: f64,
    correct: u64,
    tuples: u64,
    decisions: Vec<f32>,
}

impl Evaluation {
    /// Nothing judged yet, by the loss of `kind`.
    pub fn new(kind: ModelKind) -> Evaluation {
        Evaluation::with_level(kind, Level::detect())
    }

    pub(crate) fn with_level(kind: ModelKind, level: Level) -> Evaluation {
        Evaluation { kind, level, loss: 0.0, correct: 0, tuples: 0, decisions: Vec::new() }
    }

    /// Judges `model` on all tuples of `batch`, whose labels are -1 or 1.
    ///
    /// # Panics
    /// If the batch has not as many features as the model has weights.
    pub fn add(&mut self, model: &LinearModel, batch: &Batch) {
        assert_eq!(batch.dim(), model.weights.len(), "as many features as weights");
        let (weights, intercept) = (&model.weights[..], model.intercept);
        self.decisions.clear();
        self.level.run(Decisions { weights, intercept, batch, decisions: &mut self.decisions });
        for (&z, &y) in self.decisions.iter().zip(batch.labels()) {
            let margin = f64::from(y * z);
            self.loss += match self.kind {
                ModelKind::Logistic => softplus(-margin),
                ModelKind::Svm if margin >= 1.0 => 0.0,
                ModelKind::Svm => 1.0 - margin,
            };
            self.correct += u64::from((z > 0.0) == (y > 0.0));
        }
        self.tuples += batch.len() as u64;
    }

    /// The mean loss, without a penalty; 0 if nothing was judged; infinite or NaN if a decision is beyond f32.
    pub fn loss(&self) -> f64 {
        self.mean(self.loss)
    }

    /// The fraction of tuples in their class: positive if the decision is above 0, negative otherwise; 0 of none.
    pub fn accuracy(&self) -> f64 {
        self.mean(self.correct as f64)
    }

    /// How many tuples were judged.
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.tuples == 0 { 0.0 } else { sum / self.tuples as f64 }
    }
}
