//! corgipile_evaluate(): metrics of a model on other rows, which are read here or on the servers that have them.

use super::model_functions::found_and_source;
use errors::{ArgumentError, OrRaise, Result, TrainingError};
use loss::ModelKind;
use model::{self, Found, Model, Policies};
use options::call;
use options::nodes::Nodes;
use pg::call::function::Call;
use pgrx::prelude::*;
use scan::Source;
use sgd::{Evaluation, Retrieval};
use std::borrow::Cow;
use std::rc::Rc;
use train::by_group::ModelsByGroup;
use train::evaluate_there;
use train::model_evaluation::{ModelEvaluation, Scores};
use train::model_rows::{ModelRows, parameters_for, tell_of_rows};

#[pg_extern(sql = false)]
fn corgipile_evaluate(call: Call<'_>) {
    let metrics = evaluate(call).or_raise();
    call.return_rows(metrics.into_iter().map(|(metric, value)| [metric.into(), value.into()]));
}

/// Evaluates the model with the policies and on the servers that a call has given.
fn evaluate(call: Call<'_>) -> Result<Vec<Metric>> {
    let given = [call.get(2), call.get(3)];
    let nodes = call::nodes(call.get(4))?;
    match found_and_source(call)? {
        (Found::Model(model), source) => read(&model, &source, Policies::of_call(&model, given)?, &nodes),
        (Found::Groups(models), source) => {
            if !matches!(nodes, Nodes::Off) {
                let (argument, reason) = ("servers", "models of groups are evaluated on this server".to_owned());
                let hint = Some("Leave it out, or evaluate the models of the groups by their own names.".to_owned());
                return Err(ArgumentError::InvalidArgument { argument, reason, hint }.into());
            }
            read_by_group(ModelsByGroup::new(models)?, &source, given)
        }
    }
}

/// Groups whose own metrics are shown.
const MAX_GROUPS_SHOWN: usize = 100;

/// Evaluates models of groups on the rows of `source`, each row by the model that predicts it.
fn read_by_group(by_group: ModelsByGroup, source: &str, given: [Option<&str>; 2]) -> Result<Vec<Metric>> {
    by_group.check_alike()?;
    let model = by_group.first();
    let weight = model::weight_column(model.id);
    let weight = match weight {
        Some(name) => Source::resolve(source)?.columns().iter().any(|c| c.name == name).then_some(name),
        None => None,
    };
    // a model of all rows counts as one group, of those that training has not seen
    let shown = if by_group.members.len() <= MAX_GROUPS_SHOWN { by_group.members.len() } else { 0 };
    let mut all = ModelEvaluation::new(model.clone());
    let mut of_groups: Vec<Evaluation> = (0..shown).map(|_| Evaluation::new(model.kind)).collect();
    let no_model = by_group.read(source, weight.as_deref(), given, |member, parameters, batch| {
        let model = &*by_group.members[member].model;
        if let Some(evaluation) = of_groups.get_mut(member) {
            evaluation.set_loss_number(model.loss_number);
            evaluation.add(parameters, batch);
        }
        all.add((model, parameters), batch)
    })?;
    let areas = all.scores().map(Scores::area).collect();
    check_rows(&all, no_model.rows())?;
    let mut rows = metrics(model, all.evaluation(), all.log_loss(), areas, no_model.rows());
    rows.push(("groups".to_owned(), Some(by_group.members.len() as f64)));
    for (member, evaluation) in by_group.members.iter().zip(&of_groups).filter(|(_, of)| of.tuples() > 0) {
        let group = match &member.group {
            Some(group) => format!("{}={group}", by_group.models.column),
            None => format!("other {}", by_group.models.column),
        };
        let group = in_brackets(&group);
        let (score, value) = score(evaluation);
        rows.push((format!("{score}[{group}]"), value));
        rows.push((format!("loss[{group}]"), Some(evaluation.loss())));
        rows.push((format!("tuples[{group}]"), Some(evaluation.tuples() as f64)));
    }
    Ok(rows)
}

/// The score by which models of the kind are compared.
fn score(evaluation: &Evaluation) -> (&'static str, Option<f64>) {
    match evaluation.r2() {
        Some(r2) => ("r2", Some(r2)),
        None => ("accuracy", evaluation.accuracy()),
    }
}

/// Checks whether there were rows, and weights above 0; this many were left out.
fn check_rows(evaluated: &ModelEvaluation, skipped: u64) -> Result<()> {
    if evaluated.evaluation().tuples() == 0 {
        return Err(TrainingError::no_rows("evaluate on", skipped).into());
    }
    if evaluated.evaluation().weight() == 0.0 {
        return Err(TrainingError::NoWeight.into());
    }
    Ok(())
}

/// Evaluates the model on the rows of `source`.
fn read(model: &Rc<Model>, source: &str, policies: Policies, nodes: &Nodes) -> Result<Vec<Metric>> {
    let source = Source::resolve(source)?;
    let weight = model::weight_column(model.id).filter(|name| source.columns().iter().any(|c| c.name == *name));
    let reading = ModelRows { weight: weight.as_deref(), ..ModelRows::plain(policies) };
    let mut rows = reading.plan_source(model, source)?;
    let mut evaluated = ModelEvaluation::new(model.clone());
    let (areas, decoder) = match evaluate_there(model, &reading, &mut rows, (nodes, &mut evaluated))? {
        Some(areas) => (areas, rows.decoder),
        None => {
            let mut buffers = rows.start();
            evaluated.read(&parameters_for(model, &buffers.decoder), &mut buffers)?;
            (evaluated.scores().map(Scores::area).collect(), buffers.into_decoder())
        }
    };
    let skipped = tell_of_rows(&decoder);
    check_rows(&evaluated, skipped)?;
    Ok(metrics(model, evaluated.evaluation(), evaluated.log_loss(), areas, skipped))
}

/// A name and a value, which is None if it is not defined.
type Metric = (String, Option<f64>);

/// The metrics, those of every kind of model first.
fn metrics(
    model: &Model,
    evaluation: &Evaluation,
    log_loss: f64,
    areas: Vec<Option<f64>>,
    skipped: u64,
) -> Vec<Metric> {
    let loss = evaluation.loss();
    let mut all: Vec<Metric> = Vec::new();
    let mut say = |metric: &str, value: Option<f64>| all.push((metric.to_owned(), value));
    let (name, value) = score(evaluation);
    say(name, value);
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
        say("log_loss", Some(log_loss));
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
