//! corgipile_evaluate(): metrics of a model on other rows, which are read here or on the servers that have them.

use super::metrics::{Metric, in_brackets, metrics, score};
use super::model_functions::found_and_source;
use errors::{ArgumentError, OrRaise, Result, TrainingError};
use model::{self, Found, Model, Policies};
use options::call;
use options::nodes::Nodes;
use pg::call::function::Call;
use pgrx::prelude::*;
use scan::Source;
use sgd::Evaluation;
use std::rc::Rc;
use train::by_group::ModelsByGroup;
use train::model_evaluation::ModelEvaluation;
use train::model_rows::{ModelRows, parameters_for, tell_of_rows};
use train::{check_positive, evaluate_there};

#[pg_extern(sql = false)]
fn corgipile_evaluate(call: Call<'_>) {
    let metrics = evaluate(call).or_raise();
    call.return_rows(metrics.into_iter().map(|(metric, value)| [metric.into(), value.into()]));
}

/// Evaluates the model with the policies and on the servers that a call has given.
fn evaluate(call: Call<'_>) -> Result<Vec<Metric>> {
    let (given, positive) = ([call.get(2), call.get(3)], call.get(5));
    let nodes = call::nodes(call.get(4))?;
    match found_and_source(call)? {
        (Found::Model(model), source) => {
            let positive = positive_of(&model, positive)?;
            let mut read = Read::of_model(&model, &source, given, &nodes)?;
            Ok(metrics(&model, read.areas.take(), &mut read.all, positive, read.skipped))
        }
        (Found::Groups(models), source) => {
            if nodes != Nodes::Off {
                let (argument, reason) = ("servers", "models of groups are evaluated on this server".to_owned());
                let hint = Some("Leave it out, or evaluate the models of the groups by their own names.".to_owned());
                return Err(ArgumentError::InvalidArgument { argument, reason, hint }.into());
            }
            let by_group = ModelsByGroup::new(models)?;
            let positive = positive_of(by_group.first(), positive)?;
            let (mut read, of_groups) = Read::of_groups(&by_group, &source, given)?;
            let mut rows = metrics(by_group.first(), None, &mut read.all, positive, read.skipped);
            rows.extend(metrics_of_groups(&by_group, &of_groups));
            Ok(rows)
        }
    }
}

/// The class that is positive by a call or by the training.
pub fn positive_of(model: &Model, given: Option<&str>) -> Result<Option<usize>> {
    let Some(given) = given else { return Ok(model.positive) };
    if !model.kind.is_classifier() {
        let reason = format!("{} predicts numbers, which have no labels", model.in_error());
        return Err(ArgumentError::InvalidArgument { argument: "positive", reason, hint: None }.into());
    }
    check_positive(given, &model.classes).map(Some)
}

const MAX_GROUPS_SHOWN: usize = 100;

/// Number of groups, and metrics of each.
fn metrics_of_groups(by_group: &ModelsByGroup, of_groups: &[Evaluation]) -> Vec<Metric> {
    let mut rows = vec![("groups".to_owned(), Some(by_group.members.len() as f64))];
    for (member, evaluation) in by_group.members.iter().zip(of_groups).filter(|(_, of)| of.tuples() > 0) {
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
    rows
}

/// Rows on which a model, or models of groups, were evaluated.
pub struct Read {
    pub all: ModelEvaluation,
    /// rows that were left out
    pub skipped: u64,
    /// under curves, if other servers have found them
    areas: Option<Vec<sgd::Areas>>,
}

impl Read {
    /// Evaluates the model on the rows of `source`.
    pub fn of_model(model: &Rc<Model>, source: &str, given: [Option<&str>; 2], nodes: &Nodes) -> Result<Read> {
        let policies = Policies::of_call(model, given)?;
        let source = Source::resolve(source)?;
        let weight = model::weight_column(model.id).filter(|name| source.columns().iter().any(|c| c.name == *name));
        let reading = ModelRows { weight: weight.as_deref(), ..ModelRows::plain(policies) };
        let mut rows = reading.plan_source(model, source)?;
        let mut all = ModelEvaluation::new(model.clone());
        let (areas, decoder) = match evaluate_there(model, &reading, &mut rows, (nodes, &mut all))? {
            Some(areas) => (Some(areas), rows.decoder),
            None => {
                let mut buffers = rows.start();
                all.read(&parameters_for(model, &buffers.decoder), &mut buffers)?;
                (None, buffers.into_decoder())
            }
        };
        let skipped = tell_of_rows(&decoder);
        check_rows(&all, skipped)?;
        Ok(Read { all, skipped, areas })
    }

    /// Evaluates models of groups on the rows of `source`, each row by the model that predicts it. Also gives what each
    /// of a few models is worth; the model of all rows counts as that of groups that training has not seen.
    pub fn of_groups(
        by_group: &ModelsByGroup,
        source: &str,
        given: [Option<&str>; 2],
    ) -> Result<(Read, Vec<Evaluation>)> {
        by_group.check_alike()?;
        let model = by_group.first();
        let weight = match model::weight_column(model.id) {
            Some(name) => Source::resolve(source)?.columns().iter().any(|c| c.name == name).then_some(name),
            None => None,
        };
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
        check_rows(&all, no_model.rows())?;
        Ok((Read { all, skipped: no_model.rows(), areas: None }, of_groups))
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
