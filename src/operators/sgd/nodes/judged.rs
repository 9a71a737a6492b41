//! A model that a node has judged by its rows: what was counted, and the scores, which it says a piece at a time.

use crate::errors::Result;
use crate::models::{Model, Policies};
use crate::operators::buffers::Buffers;
use crate::operators::decoder::OwnedSpec;
use crate::operators::judge::{Judge, JudgedSums, Scores};
use crate::operators::model_rows::{ModelRows, parameters_for};
use sgd::TiedWriter;
use std::rc::Rc;

/// Bytes of scores that a node says at once, or a few more.
const PIECE: usize = 1 << 18;

/// A model that a node has judged, and its scores.
pub struct JudgedModel {
    judge: Judge,
    /// those whose scores were not said yet
    curves: Box<dyn Iterator<Item = Scores>>,
    /// the curve whose scores are being said
    curve: Option<Scores>,
}

impl JudgedModel {
    /// Reads all rows, and judges the model by them.
    pub fn new(model: Rc<Model>, policies: Policies, spec: &OwnedSpec, buffers: &mut Buffers) -> Result<JudgedModel> {
        let rows = ModelRows { weight: spec.spec.weight.as_deref(), ..ModelRows::plain(policies) };
        buffers.decoder = rows.decoder(&model, &spec.columns)?;
        let mut judge = Judge::new(model.clone());
        judge.read(&parameters_for(&model, &buffers.decoder), buffers)?;
        Ok(JudgedModel { curves: Box::new(judge.scores()), judge, curve: None })
    }

    /// What was counted.
    pub fn sums(&self) -> JudgedSums {
        self.judge.sums()
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
