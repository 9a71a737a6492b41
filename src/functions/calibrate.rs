//! corgipile_calibrate(): the scores of rows that were held out of training, by which intervals and sets of labels have
//! a stated coverage.
//!
//! The rows are named by the call and not taken from a training's validation part: rows that have chosen the number of
//! epochs are no longer like new ones. Sorting spills to disk within work_mem; what is kept is bounded.

use super::model_functions::model_and_source;
use errors::{OrRaise, Result, TrainingError};
use model::{self, Model, Policies};
use pg::call::function::Call;
use pg::tuples::number_sort::NumberSort;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::Evaluation;
use sgd::conformal::{Calibration, class_of_label, class_scores, residual};
use train::model_evaluation::evaluate;
use train::model_rows::{ModelRows, parameters_for, tell_of_rows};

/// The coverage that predictions have if none is given; sql/ has it as the default of their argument.
const USUAL_COVERAGE: f64 = 0.9;

#[pg_extern(sql = false)]
fn corgipile_calibrate(call: Call<'_>) -> Value<'_> {
    calibrate(call).or_raise()
}

/// Calibrates the model with the rows of the source.
fn calibrate(call: Call<'_>) -> Result<Value<'_>> {
    let (model, source) = model_and_source(call)?;
    model::check_may_change(model.id)?;
    let policies = Policies::of_call(&model, [call.get(2), call.get(3)])?;
    if model::source_of(model.id).as_ref() == Some(&source) {
        pg::warning(
            format!("{} was trained on this source", model.in_error()),
            "The model fits the rows that it was trained on, or that chose its epochs, better than new rows: intervals \
             and sets contain the true value less often than requested. Use other rows.",
        );
    }
    let (calibration, skipped) = measure(&model, &source, policies)?;
    if calibration.threshold(USUAL_COVERAGE).is_none() {
        pg::notice(
            format!("{} rows are too few for coverages above {:.3}", calibration.rows(), calibration.max_coverage()),
            "For these coverages, intervals are infinite and sets contain all labels.",
        );
    }
    model::calibrate(model.id, &calibration)?;
    Ok(call.row(&[(calibration.rows() as i64).into(), (skipped as i64).into(), calibration.max_coverage().into()]))
}

/// The scores of the model for the rows of `source`, and how many rows were left out.
fn measure(model: &Model, source: &str, policies: Policies) -> Result<(Calibration, u64)> {
    let mut buffers = ModelRows::plain(policies).open(model, source)?;
    let linear = parameters_for(model, &buffers.decoder);
    let mut evaluation = Evaluation::new(model.kind).with_loss_number(model.loss_number);
    let mut sort = NumberSort::new(1);
    let mut scores = vec![0.0; model.classes.len()];
    evaluate((model, &linear), &mut buffers, &mut evaluation, |decisions, label, _| {
        sort.push(in_order(if model.kind.is_classifier() {
            class_scores(model.kind, &linear.view(), decisions, &mut scores);
            scores[class_of_label(model.kind, label)]
        } else {
            residual(model.kind.link().prediction(decisions[0]), label)
        }));
    })?;
    let rows = evaluation.tuples();
    let skipped = tell_of_rows(&buffers.into_decoder());
    if rows == 0 {
        return Err(TrainingError::no_rows("calibrate with", skipped).into());
    }
    let mut ranks = Calibration::ranks(rows).peekable();
    let (mut rank, mut kept) = (0, allocation::with_capacity(Calibration::kept(rows)));
    sort.finish(|number| {
        rank += 1;
        if ranks.next_if_eq(&rank).is_some() {
            kept.push(from_order(number));
        }
    });
    Ok((Calibration::new(rows, kept).expect("as many finite scores as ranks, in ascending order"), skipped))
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
