//! A model that a node has evaluated on its rows: what was counted, and the scores, which it says a piece at a time.

use crate::model_evaluation::{EvaluatedSums, ModelEvaluation, Scores};
use crate::model_rows::{ModelRows, parameters_for};
use decode::OwnedSpec;
use errors::Result;
use model::{Model, Policies};
use scan::Buffers;
use sgd::TiedWriter;
use std::rc::Rc;

/// Bytes of scores that a node says at once, or a few more.
const PIECE: usize = 1 << 18;

/// A model that a node has evaluated, and its scores.
pub struct EvaluatedModel {
    evaluation: ModelEvaluation,
    /// those whose scores were not said yet
    curves: Box<dyn Iterator<Item = Scores>>,
    /// the curve whose scores are being said
    curve: Option<Scores>,
}

impl EvaluatedModel {
    /// Reads all rows, and evaluates the model on them.
    pub fn new(
        model: Rc<Model>,
        policies: Policies,
        spec: &OwnedSpec,
        buffers: &mut Buffers,
    ) -> Result<EvaluatedModel> {
        let rows = ModelRows { weight: spec.spec.weight.as_deref(), ..ModelRows::plain(policies) };
        buffers.decoder = rows.decoder(&model, &spec.columns)?;
        let mut evaluation = ModelEvaluation::new(model.clone());
        evaluation.read(&parameters_for(&model, &buffers.decoder), buffers)?;
        Ok(EvaluatedModel { curves: Box::new(evaluation.scores()), evaluation, curve: None })
    }

    pub fn sums(&self) -> EvaluatedSums {
        self.evaluation.sums()
    }

    /// The next scores: none at the end of each curve.
    pub fn next_scores(&mut self) -> TiedWriter {
        let mut piece = TiedWriter::default();
        let Some(mut scores) = self.curve.take().or_else(|| self.curves.next()) else { return piece };
        while piece.bytes().len() < PIECE {
            let Some(tied) = scores.next() else { break };
            piece.push(tied);
        }
        self.curve = (!piece.bytes().is_empty()).then_some(scores);
        piece
    }
}
