//! corgipile_evaluate(): metrics of a model on other rows.

use super::model_rows::ModelRows;
use crate::errors::{ArgumentError, OrRaise, PredictError, Result, TrainingError};
use crate::models::{self, Model, Policies};
use crate::operators::Buffers;
use crate::operators::nulls::{notice_imputed, notice_left_out, notice_unseen};
use crate::options::shuffling::Shuffling;
use crate::pg::catalog::relation::Relation;
use crate::pg::check_for_interrupts;
use crate::pg::tuples::number_sort::NumberSort;
use pgrx::prelude::*;
use sgd::conformal::class_of_label;
use sgd::{Confusion, Evaluation, ModelKind, ModelParameters, Retrieval, RocAuc, rank_key};
use std::borrow::Cow;
use std::rc::Rc;
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_evaluate(
    model: Option<i64>,
    source: Option<&str>,
    nulls: Option<&str>,
    unseen: Option<&str>,
) -> TableIterator<'static, (name!(metric, String), name!(value, Option<f64>))> {
    TableIterator::new(evaluate(model, "model_id", models::by_id, source, [nulls, unseen]).or_raise())
}

#[pg_extern(sql = false)]
fn corgipile_evaluate_by_name(
    model: Option<&str>,
    source: Option<&str>,
    nulls: Option<&str>,
    unseen: Option<&str>,
) -> TableIterator<'static, (name!(metric, String), name!(value, Option<f64>))> {
    TableIterator::new(evaluate(model, "name", models::by_name, source, [nulls, unseen]).or_raise())
}

#[pg_extern(sql = false)]
fn corgipile_evaluate_relation(
    model: Option<i64>,
    source: Option<pg_sys::Oid>,
    nulls: Option<&str>,
    unseen: Option<&str>,
) -> TableIterator<'static, (name!(metric, String), name!(value, Option<f64>))> {
    let source = source.map(Relation::name_of_oid).transpose().or_raise();
    TableIterator::new(evaluate(model, "model_id", models::by_id, source.as_deref(), [nulls, unseen]).or_raise())
}

#[pg_extern(sql = false)]
fn corgipile_evaluate_relation_by_name(
    model: Option<&str>,
    source: Option<pg_sys::Oid>,
    nulls: Option<&str>,
    unseen: Option<&str>,
) -> TableIterator<'static, (name!(metric, String), name!(value, Option<f64>))> {
    let source = source.map(Relation::name_of_oid).transpose().or_raise();
    TableIterator::new(evaluate(model, "name", models::by_name, source.as_deref(), [nulls, unseen]).or_raise())
}

/// Evaluates the model that the argument of this name names. No rows for a NULL would look like success.
fn evaluate<M>(
    model: Option<M>,
    argument: &'static str,
    find: impl Fn(M) -> Result<Rc<Model>>,
    source: Option<&str>,
    policies: [Option<&str>; 2],
) -> Result<Vec<Metric>> {
    let model = model.ok_or(ArgumentError::NullArgument(argument))?;
    let source = source.ok_or(ArgumentError::NullArgument("source"))?;
    let model = find(model)?;
    let policies = Policies::of_call(&model, policies)?;
    read(&model, source, policies)
}

/// Rows that a model is asked about, with their labels, as they come.
pub(super) struct LabelledRows {
    pub buffers: Buffers,
    /// the model, for the rows as the buffers give them
    pub linear: ModelParameters,
}

/// Opens label and features of `source`, by the names of the columns that the model was trained on.
///
/// # Errors
/// Whatever can be wrong with the source.
pub(super) fn open(model: &Model, source: &str, policies: Policies) -> Result<LabelledRows> {
    let buffers = ModelRows { weight: None, shuffling: Shuffling::none(), policies }.open(model, source)?;
    let mut linear = model.linear().to_model();
    if let Some((mean, scale)) = model.scaling().filter(|_| buffers.decoder.has_mini_batches()) {
        // compressed rows are multiplied as they are, not standardized
        linear.take_unstandardized(mean, scale);
    }
    Ok(LabelledRows { buffers, linear })
}

/// Ends the read, and tells what was imputed, left out and unknown. Gives how many rows were left out.
pub(super) fn finish(buffers: Buffers) -> u64 {
    let decoder = buffers.into_decoder();
    notice_imputed(&decoder);
    notice_left_out(&decoder, decoder.decoded());
    notice_unseen(&decoder);
    decoder.skipped()
}

/// Evaluates the model on the rows of `source`.
///
/// # Errors
/// Those of [`open`]; whatever can be wrong with rows; [`PredictError::DecisionOutOfRange`]
fn read(model: &Model, source: &str, policies: Policies) -> Result<Vec<Metric>> {
    let LabelledRows { mut buffers, linear } = open(model, source, policies)?;
    let mut evaluation = Evaluation::new(model.kind).with_loss_number(model.loss_number);
    let mut curves = Curves::new(model);
    let mut log_loss = LogLoss::new(model);
    let mut batch = Batch::new(model.dim());
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        if let Some(row) = add_batch(&linear, &batch, &mut evaluation, (&mut curves, &mut log_loss)) {
            return Err(PredictError::DecisionOutOfRange { model: model.in_error(), row: Some(row) }.into());
        }
    }
    let skipped = finish(buffers);
    if evaluation.tuples() == 0 {
        return Err(TrainingError::no_rows("evaluate on", skipped).into());
    }
    Ok(metrics(model, &evaluation, &log_loss, curves.areas(), skipped))
}

/// Evaluates the model on a buffer of tuples. Returns the number, from 1, of the first whose decision is not finite.
fn add_batch(
    model: &ModelParameters,
    batch: &Batch,
    evaluation: &mut Evaluation,
    (curves, log_loss): (&mut Curves, &mut LogLoss),
) -> Option<u64> {
    let (before, mut rows, mut fault, model_kind) = (evaluation.tuples(), 0, None, evaluation.kind());
    evaluation.add_and_show(model, batch, |decisions, label| {
        rows += 1;
        let beyond = |z: &f32| !z.is_finite() || !model_kind.link().prediction(*z).is_finite();
        if decisions.iter().any(beyond) {
            fault.get_or_insert(before + rows);
        }
        curves.add(model, decisions, label);
        log_loss.add(decisions, label);
    });
    fault
}

/// A name and a value, which is None if it is not defined.
type Metric = (String, Option<f64>);

/// The metrics, those of every kind of model first.
fn metrics(
    model: &Model,
    evaluation: &Evaluation,
    log_loss: &LogLoss,
    areas: Vec<Option<f64>>,
    skipped: u64,
) -> Vec<Metric> {
    let loss = evaluation.loss();
    let mut all: Vec<Metric> = Vec::new();
    let mut say = |metric: &str, value: Option<f64>| all.push((metric.to_owned(), value));
    match evaluation.r2() {
        Some(r2) => say("r2", Some(r2)),
        None => say("accuracy", evaluation.accuracy()),
    }
    say("loss", Some(loss));
    say("tuples", Some(evaluation.tuples() as f64));
    say("skipped", Some(skipped as f64));
    if !model.kind.is_classifier() {
        say("rmse", evaluation.rmse());
        say("mae", evaluation.mae());
        if model.kind == ModelKind::Quantile {
            say("mean_pinball_loss", Some(loss));
            say("fraction_below", evaluation.fraction_below());
        }
        if let Some((deviance, explained)) = evaluation.poisson_deviance() {
            say("mean_poisson_deviance", Some(deviance));
            say("d2", Some(explained));
        }
        return all;
    }
    if model.has_probabilities() {
        say("log_loss", Some(log_loss.of_fitted(evaluation.tuples()).unwrap_or_else(|| evaluation.log_loss())));
    }
    let (confusion, classes) = (evaluation.confusion(), &model.classes);
    // a network for two classes has one that is positive
    let per_class = model.kind.has_class_numbers() && (model.kind.is_linear() || classes.len() > 2);
    let Retrieval { precision, recall, f1 } =
        if per_class { confusion.macro_average() } else { confusion.retrieval(1) };
    let area = areas.iter().copied().sum::<Option<f64>>().map(|sum| sum / areas.len().max(1) as f64);
    say("roc_auc", area.filter(|_| !areas.is_empty()));
    say("precision", Some(precision));
    say("recall", Some(recall));
    say("f1", Some(f1));
    for (i, class) in classes.iter().enumerate().filter(|_| per_class) {
        let Retrieval { precision, recall, f1 } = confusion.retrieval(i);
        let class = in_brackets(class);
        say(&format!("roc_auc[{class}]"), areas.get(i).copied().flatten());
        say(&format!("precision[{class}]"), Some(precision));
        say(&format!("recall[{class}]"), Some(recall));
        say(&format!("f1[{class}]"), Some(f1));
    }
    for (i, actual) in classes.iter().enumerate() {
        for (j, predicted) in classes.iter().enumerate() {
            if let Some(tuples) = confusion.cell(i, j) {
                let (actual, predicted) = (in_brackets(actual), in_brackets(predicted));
                say(&format!("confusion[{actual},{predicted}]"), Some(tuples as f64));
            }
        }
    }
    all
}

/// A class as it stands in the name of a metric: in double quotes, doubled inside, where a comma, a bracket, a quote or
/// a space at an end could be taken for something else, so that two pairs of classes never have one name.
fn in_brackets(class: &str) -> Cow<'_, str> {
    let plain = !class.is_empty() && class.trim() == class && !class.contains(['"', ',', '[', ']']);
    if plain { Cow::Borrowed(class) } else { Cow::Owned(format!("\"{}\"", class.replace('"', "\"\""))) }
}

/// The log loss of probabilities that were fitted to decisions, whose own loss is another.
struct LogLoss<'a> {
    model: &'a Model,
    sum: f64,
    probabilities: Vec<f64>,
}

impl LogLoss<'_> {
    fn new(model: &Model) -> LogLoss<'_> {
        LogLoss { model, sum: 0.0, probabilities: vec![0.0; model.classes.len()] }
    }

    fn add(&mut self, decisions: &[f32], label: f32) {
        if self.model.sigmoids.is_some() {
            self.model.probabilities(decisions, &mut self.probabilities);
            // never infinite, as scikit-learn has it
            self.sum -= self.probabilities[class_of_label(self.model.kind, label)].max(f64::EPSILON).ln();
        }
    }

    /// The mean over so many tuples; None if nothing was fitted.
    fn of_fitted(&self, tuples: u64) -> Option<f64> {
        self.model.sigmoids.is_some().then(|| self.sum / tuples.max(1) as f64)
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

    fn add(&mut self, model: &ModelParameters, decisions: &[f32], label: f32) {
        match self.sorts.as_mut_slice() {
            [] => {}
            [binary] => binary.push(rank_key(decisions[0].into(), label > 0.0)),
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

    /// An area per curve; None where all tuples are on one side.
    fn areas(self) -> Vec<Option<f64>> {
        let area = |sort: NumberSort| {
            let mut roc = RocAuc::default();
            sort.finish(|key| roc.add(key));
            roc.area()
        };
        self.sorts.into_iter().map(area).collect()
    }
}
