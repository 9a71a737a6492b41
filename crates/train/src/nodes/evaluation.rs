//! A model that is evaluated where the rows are: each node evaluates it on its own rows, and the coordinator adds up
//! what they have counted and merges their scores.
//!
//! Guarantees: each metric is that of one server with all rows, but for rounding of sums, and areas under curves are
//! exact. Scores come in ascending order, a piece at a time, so that neither side holds more than a piece per node.

use super::choice::open_for;
use super::cluster::Cluster;
use super::messages::{ModelTask, Order, bytes_of};
use super::models::document_of;
use crate::model_evaluation::{EvaluatedSums, ModelEvaluation};
use crate::model_rows::{ModelRows, PlannedRows};
use decode::EpochCounts;
use errors::{Errand, Result};
use model::{Model, Policies};
use options::nodes::Nodes;
use sgd::{AreaSums, Areas, Tied, read_tied};
use std::collections::VecDeque;

/// Evaluates the model on the planned rows where they are, if that was asked for and can be; that it cannot is
/// reported. What is counted of the rows is added to the evaluation and to the decoder of the rows. Gives the areas
/// under the curves.
pub fn evaluate_there(
    model: &Model,
    reading: &ModelRows<'_>,
    rows: &mut PlannedRows,
    (nodes, evaluation): (&Nodes, &mut ModelEvaluation),
) -> Result<Option<Vec<Areas>>> {
    if *nodes == Nodes::Off {
        return Ok(None);
    }
    let (document, unfit) = document_of(model)?;
    let cluster = open_for(rows, &reading.spec(model), nodes, (Errand::Evaluation, unfit))?;
    let evaluate = |cluster: &mut Cluster| cluster.evaluate_model(reading.policies, &document, rows, evaluation);
    cluster.map(|mut cluster| cluster.sensible(evaluate)).transpose()
}

impl Cluster {
    fn evaluate_model(
        &mut self,
        policies: Policies,
        document: &str,
        rows: &mut PlannedRows,
        evaluation: &mut ModelEvaluation,
    ) -> Result<Vec<Areas>> {
        self.order(|_| Order::EvaluateModel(ModelTask { document: document.len(), policies }));
        self.attach(document.as_bytes());
        for (sums, counts) in self.ask::<(EvaluatedSums, EpochCounts)>()? {
            if !evaluation.add_sums(&sums) {
                return Err(self.nonsense());
            }
            rows.decoder.count_rows_of_others(&counts);
        }
        (0..evaluation.curves()).map(|curve| self.areas(evaluation.totals(curve))).collect()
    }

    /// The areas under the next curve, of as many negative and positive tuples.
    fn areas(&mut self, totals: [u64; 2]) -> Result<Areas> {
        let mut streams: Vec<Stream> = self.servers().map(|_| Stream::default()).collect();
        let mut sums = AreaSums::new(totals);
        loop {
            self.refill(&mut streams)?;
            let least = streams.iter_mut().filter(|stream| !stream.has_ended).min_by_key(|stream| stream.least());
            let Some(stream) = least else { return Ok(sums.areas()) };
            stream.piece.pop_front().into_iter().for_each(|tied| sums.add_tied(tied));
        }
    }

    /// Asks those nodes for more of whose scores none is left.
    fn refill(&mut self, streams: &mut [Stream]) -> Result<()> {
        let is_empty = |stream: &Stream| stream.piece.is_empty() && !stream.has_ended;
        let empty: Vec<usize> = (0..streams.len()).filter(|i| is_empty(&streams[*i])).collect();
        if empty.is_empty() {
            return Ok(());
        }
        empty.iter().for_each(|node| self.order_of(*node, Order::Scores));
        let answers = self.ask_words::<Option<usize>>()?;
        for node in empty {
            let (stream, (length, words)) = (&mut streams[node], &answers[node]);
            let scores = length.and_then(|length| read_tied(bytes_of(words).get(..length)?));
            stream.take(scores.ok_or_else(|| self.nonsense())?).ok_or_else(|| self.nonsense())?;
        }
        Ok(())
    }
}

/// The scores of a node, of one curve.
#[derive(Default)]
struct Stream {
    piece: VecDeque<Tied>,
    last: Option<i64>,
    has_ended: bool,
}

impl Stream {
    fn least(&self) -> Option<i64> {
        self.piece.front().map(|tied| tied.score)
    }

    /// The next piece, of which none is left after the last score. None if it is below the one before.
    fn take(&mut self, piece: Vec<Tied>) -> Option<()> {
        self.has_ended = piece.is_empty();
        if let [first, ..] = piece.as_slice()
            && self.last.is_some_and(|last| first.score <= last)
        {
            return None;
        }
        self.last = piece.last().map(|tied| tied.score);
        self.piece = piece.into();
        Some(())
    }
}
