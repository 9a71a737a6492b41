//! corgipile_calibrate(): the scores of rows that were held out of training, by which intervals and sets of labels have
//! a stated coverage.
//!
//! The rows are named by the call and not taken from a training's validation part: rows that have chosen the number of
//! epochs are no longer like new ones. Sorting spills to disk within work_mem; what is kept is bounded.

use super::model_functions::found_and_source;
use errors::{ArgumentError, OrRaise, Result, TrainingError};
use loss::ModelParameters;
use model::{self, Found, Model, Policies};
use pg::call::function::Call;
use pg::tuples::number_sort::NumberSort;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::Evaluation;
use sgd::conformal::{Calibration, class_of_label, class_scores, residual};
use train::by_group::ModelsByGroup;
use train::model_evaluation::{evaluate, evaluate_batch};
use train::model_rows::{ModelRows, parameters_for, tell_of_rows};

/// The coverage that predictions have if none is given; sql/ has it as the default of their argument.
const USUAL_COVERAGE: f64 = 0.9;

#[pg_extern(sql = false)]
fn corgipile_calibrate(call: Call<'_>) -> Value<'_> {
    calibrate(call).or_raise()
}

/// Calibrates the model with the rows of the source or, of models of groups, each with the rows that it predicts.
fn calibrate(call: Call<'_>) -> Result<Value<'_>> {
    let given = [call.get(2), call.get(3)];
    let (rows, skipped, max_coverage) = match found_and_source(call)? {
        (Found::Model(model), source) => calibrate_one(&model, &source, given)?,
        (Found::Groups(models), source) => calibrate_groups(&ModelsByGroup::new(models)?, &source, given)?,
    };
    Ok(call.row(&[(rows as i64).into(), (skipped as i64).into(), max_coverage.into()]))
}

/// Rows, those that were left out, and the greatest coverage whose intervals are finite.
type Calibrated = (u64, u64, f64);

fn calibrate_one(model: &Model, source: &str, given: [Option<&str>; 2]) -> Result<Calibrated> {
    model::check_may_change(model.id)?;
    let policies = Policies::of_call(model, given)?;
    warn_of_own_rows(model, source);
    let (calibration, skipped) = measure(model, source, policies)?;
    if calibration.threshold(USUAL_COVERAGE).is_none() {
        pg::notice(
            format!("{} rows are too few for coverages above {:.3}", calibration.rows(), calibration.max_coverage()),
            "For these coverages, intervals are infinite and sets contain all labels.",
        );
    }
    model::calibrate(model.id, &calibration)?;
    Ok((calibration.rows(), skipped, calibration.max_coverage()))
}

fn warn_of_own_rows(model: &Model, source: &str) {
    if model::source_of(model.id).as_deref() == Some(source) {
        pg::warning(
            format!("{} was trained on this source", model.in_error()),
            "The model fits the rows that it was trained on, or that chose its epochs, better than new rows: intervals \
             and sets contain the true value less often than requested. Use other rows.",
        );
    }
}

/// Rows with which models of groups are calibrated together at most: their scores are sorted in memory.
const MAX_ROWS_OF_GROUPS: usize = 1 << 26;

fn calibrate_groups(by_group: &ModelsByGroup, source: &str, given: [Option<&str>; 2]) -> Result<Calibrated> {
    let members = &by_group.members;
    members.iter().try_for_each(|member| model::check_may_change(member.model.id))?;
    warn_of_own_rows(by_group.first(), source);
    let (mut all, mut rows): (Vec<Vec<i64>>, usize) = (vec![Vec::new(); members.len()], 0);
    let no_model = by_group.read(source, None, given, |member, parameters, batch| {
        let (model, scores) = (&*members[member].model, &mut all[member]);
        rows += batch.len();
        if rows > MAX_ROWS_OF_GROUPS {
            let (argument, reason) = ("source", format!("it has more than {MAX_ROWS_OF_GROUPS} rows"));
            let hint = Some("Calibrate models of groups with a sample of the rows.".to_owned());
            return Err(ArgumentError::InvalidArgument { argument, reason, hint }.into());
        }
        let mut evaluation = Evaluation::new(model.kind).with_loss_number(model.loss_number);
        let mut of_classes = vec![0.0; model.classes.len()];
        evaluate_batch((model, parameters), batch, &mut evaluation, |decisions, label, _| {
            allocation::push(scores, score((model, parameters), decisions, label, &mut of_classes));
        })
    })?;
    if rows == 0 {
        return Err(TrainingError::no_rows("calibrate with", no_model.rows()).into());
    }
    let (mut few, mut none, mut max_coverage) = (0, 0, 1.0_f64);
    for (member, mut scores) in members.iter().zip(all) {
        if scores.is_empty() {
            none += usize::from(member.group.is_some());
            continue;
        }
        scores.sort_unstable();
        let calibration = calibration(scores.len() as u64, |keep| scores.into_iter().for_each(keep));
        few += usize::from(calibration.threshold(USUAL_COVERAGE).is_none());
        max_coverage = max_coverage.min(calibration.max_coverage());
        model::calibrate(member.model.id, &calibration)?;
    }
    for (count, what) in [(none, "no rows, and stay as they were"), (few, "too few rows for a coverage of 0.9")] {
        if count > 0 {
            pg::notice(
                format!("{count} of {} groups have {what}", by_group.models.groups().len()),
                "Each group's model is calibrated with the rows of its group.",
            );
        }
    }
    Ok((rows as u64, no_model.rows(), max_coverage))
}

/// The scores of the model for the rows of `source`, and how many rows were left out.
fn measure(model: &Model, source: &str, policies: Policies) -> Result<(Calibration, u64)> {
    let mut buffers = ModelRows::plain(policies).open(model, source)?;
    let linear = parameters_for(model, &buffers.decoder);
    let mut evaluation = Evaluation::new(model.kind).with_loss_number(model.loss_number);
    let mut sort = NumberSort::new(1);
    let mut of_classes = vec![0.0; model.classes.len()];
    evaluate((model, &linear), &mut buffers, &mut evaluation, |decisions, label, _| {
        sort.push(score((model, &linear), decisions, label, &mut of_classes));
    })?;
    let rows = evaluation.tuples();
    let skipped = tell_of_rows(&buffers.into_decoder());
    if rows == 0 {
        return Err(TrainingError::no_rows("calibrate with", skipped).into());
    }
    Ok((calibration(rows, |keep| sort.finish(keep)), skipped))
}

/// The score of a row, in the order of scores; `of_classes` is room for one of each class.
fn score(
    (model, parameters): (&Model, &ModelParameters),
    decisions: &[f32],
    label: f64,
    of_classes: &mut [f64],
) -> i64 {
    in_order(if model.kind.is_classifier() {
        class_scores(model.kind, &parameters.view(), decisions, of_classes);
        of_classes[class_of_label(model.kind, label)]
    } else {
        residual(model.kind.link().prediction(decisions[0]), label)
    })
}

/// The calibration by the scores of this many rows, which `show` shows in ascending order.
fn calibration(rows: u64, show: impl FnOnce(&mut dyn FnMut(i64))) -> Calibration {
    let mut ranks = Calibration::ranks(rows).peekable();
    let (mut rank, mut kept) = (0, allocation::with_capacity(Calibration::kept(rows)));
    show(&mut |number| {
        rank += 1;
        if ranks.next_if_eq(&rank).is_some() {
            kept.push(from_order(number));
        }
    });
    Calibration::new(rows, kept).expect("as many finite scores as ranks, in ascending order")
}

/// A finite score as a number whose order is that of the scores.
fn in_order(score: f64) -> i64 {
    let bits = (score + 0.0).to_bits() as i64; // -0.0 is 0.0
    // negative floats ascend while their bits descend
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

fn from_order(number: i64) -> f64 {
    f64::from_bits((if number < 0 { number ^ i64::MAX } else { number }) as u64)
}
