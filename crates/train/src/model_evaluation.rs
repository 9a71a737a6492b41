//! Evaluating a model on rows with labels: what is counted, and the scores of all rows, sorted.
//!
//! Guarantees: what is counted of parts of the rows and added up is what is counted of all of them, sums but for
//! rounding; areas under curves are exact. Sorts spill to disk within work_mem, so that memory does not grow with the
//! rows.

use errors::{PredictError, Result};
use loss::ModelParameters;
use model::Model;
use pg::check_for_interrupts;
use pg::tuples::number_sort::{NumberSort, SortedNumbers};
use scan::Buffers;
use serde::{Deserialize, Serialize};
use sgd::conformal::class_of_label;
use sgd::{AreaSums, Areas, Confusion, Evaluation, EvaluationSums, Tied, rank_key, rank_key_of_f32};
use std::iter::Peekable;
use std::rc::Rc;
use tuples::{Batch, TupleSource};

/// What a model is worth on rows that are shown to it.
pub struct ModelEvaluation {
    model: Rc<Model>,
    evaluation: Evaluation,
    /// log losses of probabilities that were fitted to decisions, whose own loss is another
    fitted_log_loss: f64,
    curves: Curves,
    /// of a tuple, one per class
    probabilities: Vec<f64>,
}

/// What was counted, for another process.
#[derive(Serialize, Deserialize)]
pub struct EvaluatedSums {
    evaluation: EvaluationSums,
    /// bits of the sum
    fitted_log_loss: u64,
}

impl ModelEvaluation {
    /// No rows yet.
    pub fn new(model: Rc<Model>) -> ModelEvaluation {
        ModelEvaluation {
            evaluation: Evaluation::new(model.kind).with_loss_number(model.loss_number),
            fitted_log_loss: 0.0,
            curves: Curves::new(&model),
            probabilities: vec![0.0; model.classes.len()],
            model,
        }
    }

    /// Evaluates the model, as these parameters, on all rows that come.
    pub fn read(&mut self, parameters: &ModelParameters, buffers: &mut Buffers) -> Result<()> {
        let (model, mut batch) = (self.model.clone(), Batch::new(self.model.dim()));
        while buffers.next_batch(&mut batch)? {
            check_for_interrupts();
            self.add((&model, parameters), &batch)?;
        }
        Ok(())
    }

    /// Evaluates a model, as these parameters, on some rows: this one or one like it.
    pub fn add(&mut self, (model, parameters): (&Model, &ModelParameters), batch: &Batch) -> Result<()> {
        let ModelEvaluation { evaluation, fitted_log_loss, curves, probabilities, .. } = self;
        evaluation.set_loss_number(model.loss_number);
        evaluate_batch((model, parameters), batch, evaluation, |decisions, label, weight| {
            curves.add(parameters, decisions, label);
            if model.sigmoids.is_some() {
                model.probabilities(decisions, probabilities);
                // never infinite, as scikit-learn has it
                *fitted_log_loss -= weight * probabilities[class_of_label(model.kind, label)].max(f64::EPSILON).ln();
            }
        })
    }

    /// What was counted so far.
    pub fn sums(&self) -> EvaluatedSums {
        EvaluatedSums { evaluation: self.evaluation.sums(), fitted_log_loss: self.fitted_log_loss.to_bits() }
    }

    /// Adds what another process has counted with the same model. False if it was another model: then nothing is added.
    pub fn add_sums(&mut self, other: &EvaluatedSums) -> bool {
        let is_alike = self.evaluation.add_sums(&other.evaluation);
        if is_alike {
            self.fitted_log_loss += f64::from_bits(other.fitted_log_loss);
        }
        is_alike
    }

    /// What the model is worth by what was counted.
    pub fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// The mean log loss, of fitted probabilities if there are some.
    pub fn log_loss(&self) -> f64 {
        match self.model.sigmoids {
            Some(_) => self.fitted_log_loss / self.evaluation.weight(),
            None => self.evaluation.log_loss(),
        }
    }

    /// How many curves there are: one of two classes, else one of each class against the others, unless there are too
    /// many classes for it.
    pub fn curves(&self) -> usize {
        self.curves.sorts.len()
    }

    /// Negative and positive tuples of a curve.
    pub fn totals(&self, curve: usize) -> [u64; 2] {
        let of_classes = self.evaluation.confusion().of_classes();
        let of = |class: usize| of_classes.get(class).copied().unwrap_or_default();
        match self.curves() {
            1 => [of(0), of(1)],
            _ => [self.evaluation.tuples().saturating_sub(of(curve)), of(curve)],
        }
    }

    /// The areas under all curves: after the last row, and once.
    pub fn areas(&mut self) -> Vec<Areas> {
        let totals: Vec<[u64; 2]> = (0..self.curves()).map(|curve| self.totals(curve)).collect();
        self.scores().zip(totals).map(|(scores, totals)| scores.areas(totals)).collect()
    }

    /// The scores of all rows in ascending order, curve by curve: after the last row, and once.
    pub fn scores(&mut self) -> impl Iterator<Item = Scores> + use<> {
        std::mem::take(&mut self.curves.sorts).into_iter().map(|sort| Scores(sort.sort().peekable()))
    }
}

/// Evaluates a model, as these parameters, on all rows that come, and shows the decisions for each, its label and its
/// weight.
pub fn evaluate(
    model: (&Model, &ModelParameters),
    buffers: &mut Buffers,
    evaluation: &mut Evaluation,
    mut show: impl FnMut(&[f32], f64, f64),
) -> Result<()> {
    let mut batch = Batch::new(model.0.dim());
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        evaluate_batch(model, &batch, evaluation, &mut show)?;
    }
    Ok(())
}

/// The same of some rows.
pub fn evaluate_batch(
    (model, parameters): (&Model, &ModelParameters),
    batch: &Batch,
    evaluation: &mut Evaluation,
    mut show: impl FnMut(&[f32], f64, f64),
) -> Result<()> {
    let (before, mut rows, mut fault) = (evaluation.tuples(), 0, None);
    let mut weights = batch.weights().unwrap_or_default().iter();
    evaluation.add_and_show(parameters, batch, |decisions, label| {
        rows += 1;
        let weight = weights.next().copied().map_or(1.0, f64::from);
        let is_in_range = |z: &f32| z.is_finite() && model.kind.link().prediction(*z).is_finite();
        match decisions.iter().all(is_in_range) {
            true => show(decisions, label, weight),
            false => _ = fault.get_or_insert(before + rows),
        }
    });
    match fault {
        Some(row) => Err(PredictError::DecisionOutOfRange { model: model.in_error(), row: Some(row) }.into()),
        None => Ok(()),
    }
}

/// The scores of all tuples, sorted to find the areas under the ROC curves: of the positive of two classes, or of each
/// class against the others.
struct Curves {
    sorts: Vec<NumberSort>,
    /// of a tuple; decisions of a model that has no probabilities
    probabilities: Vec<f64>,
    has_probabilities: bool,
}

impl Curves {
    /// For many classes there are no curves: each has a sort of its own.
    fn new(model: &Model) -> Curves {
        let outputs = model.linear().outputs;
        let curves = if model.kind.is_classifier() && outputs <= Confusion::CELLS { outputs } else { 0 };
        let sorts = (0..curves).map(|_| NumberSort::new(curves)).collect();
        Curves { sorts, probabilities: vec![0.0; curves], has_probabilities: model.kind.has_probabilities() }
    }

    fn add(&mut self, model: &ModelParameters, decisions: &[f32], label: f64) {
        match self.sorts.as_mut_slice() {
            [] => {}
            [binary] => binary.push(rank_key_of_f32(decisions[0], label > 0.0)),
            sorts => {
                match self.has_probabilities {
                    true => model.view().probabilities(decisions, &mut self.probabilities),
                    false => self.probabilities.iter_mut().zip(decisions).for_each(|(p, z)| *p = f64::from(*z)),
                }
                for (class, (sort, p)) in sorts.iter_mut().zip(&self.probabilities).enumerate() {
                    sort.push(rank_key(*p, class == label as usize));
                }
            }
        }
    }
}

/// The scores of a curve in ascending order, each with the tuples that have it.
pub struct Scores(Peekable<SortedNumbers>);

impl Scores {
    /// The areas under the curves, of as many negative and positive tuples as there are.
    pub fn areas(self, totals: [u64; 2]) -> Areas {
        let mut sums = AreaSums::new(totals);
        self.for_each(|tied| sums.add_tied(tied));
        sums.areas()
    }
}

impl Iterator for Scores {
    type Item = Tied;

    fn next(&mut self) -> Option<Tied> {
        let first = self.0.next()?;
        let mut tied = Tied { score: first & !1, tuples: [0; 2] };
        let mut key = first;
        loop {
            tied.tuples[(key & 1) as usize] += 1;
            match self.0.next_if(|next| next & !1 == tied.score) {
                Some(next) => key = next,
                None => return Some(tied),
            }
        }
    }
}
