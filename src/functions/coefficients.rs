//! corgipile_coefficients(): weights with their standard errors on given rows, tests and confidence intervals.

use super::model_functions::model_and_source;
use choices::{Choice, choice};
use decode::notices::{notice_collinear, notice_left_out, notice_unseen};
use errors::{ArgumentError, OrRaise, PredictError, Result, TrainingError, excerpt, some_of};
use loss::{Collinearity, Penalized, Solver};
use model::{self, Model, Policies};
use newton::{Estimates, Inference, Weighting, two_sided_quantile, two_sided_tail};
use pg::call::function::Call;
use pg::check_for_interrupts;
use pg::values::output::OutputValue;
use pgrx::prelude::*;
use serde_json::Value;
use std::ops::Range;
use train::model_rows::ModelRows;
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_coefficients(call: Call<'_>) {
    call.return_rows(coefficients(call).or_raise());
}

/// Name, coefficient, standard error, statistic, p value, and the bounds of the interval.
type Row = [OutputValue; 7];

/// How sure an interval is, unless it is said.
const LEVEL: f64 = 0.95;

/// A model whose weight is this many standard errors from that of the least loss was not trained to the end.
const FAR: f64 = 0.01;

choice! {
    /// What the weights of rows say.
    WeightsAre {
        /// how precise each row is
        Precisions = "precisions",
        /// how often each row was observed
        Frequencies = "frequencies",
    }
}

fn coefficients(call: Call<'_>) -> Result<Vec<Row>> {
    let (model, source) = model_and_source(call)?;
    let level = call.get(2).unwrap_or(LEVEL);
    if !(level > 0.0 && level < 1.0) {
        let reason = format!("{level} is not between 0 and 1");
        return Err(ArgumentError::InvalidArgument { argument: "confidence_level", reason, hint: None }.into());
    }
    let given = call.get(3).map(|name| {
        WeightsAre::named(name).ok_or_else(|| ArgumentError::InvalidArgument {
            argument: "weight_type",
            reason: format!("{} is not one of {}", excerpt(name), WeightsAre::names().join(", ")),
            hint: None,
        })
    });
    let estimates = estimates(&model, &source, given.transpose()?)?;
    let names = model.weight_names();
    let name = |place: usize| names.get(place).map_or("(intercept)", String::as_str).to_owned();
    let (place, distance) = estimates.furthest;
    if distance > FAR {
        pg::notice(
            format!(
                "the model does not minimize the loss on these rows: {} is {distance:.2} standard errors from the minimum",
                name(place)
            ),
            "Train it with solver => 'newton' on these rows to get the standard errors of the optimum.",
        );
    }
    if !estimates.infinite.is_empty() {
        let features: Vec<String> = estimates.infinite.iter().map(|place| name(*place)).collect();
        pg::notice(
            format!("perfect separation: the coefficients of {} diverge on these rows", some_of(&features)),
            "Their standard errors are meaningless. If all labels of a category are the same, leave the \
             category out, or train with an l2, such as 0.001.",
        );
    }
    let Collinearity { features, condition } = &estimates.collinear;
    notice_collinear(&features.iter().map(|place| name(*place)).collect::<Vec<_>>(), *condition);
    Ok(rows(names, &estimates, level))
}

/// Reads all rows.
fn estimates(model: &Model, source: &str, weights: Option<WeightsAre>) -> Result<Estimates> {
    if !model.kind.is_smooth() {
        return Err(refuse(model, format!("it is {}", model.kind.description())));
    }
    if model.dim() > Solver::MAX_FEATURES {
        return Err(refuse(model, format!("it has more than {} features", Solver::MAX_FEATURES)));
    }
    let record = model::stored_training(model.id)?.record;
    if record.get("class_weight").is_some_and(|weights| !weights.is_null()) {
        return Err(refuse(model, "it was trained with class_weight, which changes the weights of rows".into()));
    }
    let number = |key: &str| record.get(key).and_then(Value::as_f64).unwrap_or_default();
    if number("l1") > 0.0 {
        return Err(refuse(model, "it was trained with l1, which has no second derivative".into()));
    }
    let weight = record.get("weight").and_then(Value::as_str);
    let rows = ModelRows { weight, ..ModelRows::plain(Policies::of_model(model)) };
    let mut buffers = rows.open(model, source)?;
    if buffers.decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_coefficients()").into());
    }
    let on_categories = record.get("l2_on").and_then(Value::as_str) == Some(Penalized::Categories.name());
    let exempt = if on_categories { buffers.decoder.numbers() } else { Vec::new() };
    let linear = model.linear().to_model();
    let mut batch = Batch::new(model.dim());
    let mut inference = None;
    while buffers.next_batch(&mut batch)? {
        let inference = match &mut inference {
            Some(inference) => inference,
            none => {
                let penalty = (number("l2"), exempt.clone());
                none.insert(Inference::new(model.kind, &linear, penalty, batch.is_sparse())?)
            }
        };
        inference.add(&batch);
        check_for_interrupts();
    }
    let decoder = buffers.into_decoder();
    notice_left_out(&decoder, decoder.decoded());
    notice_unseen(&decoder);
    let none = || TrainingError::no_rows("compare the model with", decoder.skipped());
    let inference = inference.filter(|inference| inference.tuples() > 0).ok_or_else(none)?;
    if inference.weight() == 0.0 {
        return Err(TrainingError::NoWeight.into());
    }
    if weight.is_some() && weights.is_none() {
        pg::notice(
            "row weights are used as precisions: only their ratios matter",
            "Give weight_type => 'frequencies' if a row of weight 2 is two rows, or weight_type => 'precisions'.",
        );
    }
    let weighting = match weights.unwrap_or_default() {
        WeightsAre::Precisions => Weighting::Precisions,
        WeightsAre::Frequencies => Weighting::Frequencies,
    };
    let columns: Vec<Range<usize>> = model.weights_by_column().into_iter().map(|(_, places)| places).collect();
    Ok(inference.finish(model.to_standardizer().as_ref(), &columns, weighting)?)
}

fn refuse(model: &Model, why: String) -> errors::Error {
    PredictError::NoStandardErrors { model: model.in_error(), why }.into()
}

/// A row for the intercept, and one for each feature.
fn rows(names: Vec<String>, estimates: &Estimates, level: f64) -> Vec<Row> {
    let quantile = two_sided_quantile(level, estimates.freedom);
    let row = |(name, place): (String, usize)| {
        let estimate = estimates.all[place];
        let (value, std_error) = (estimate.value, estimate.std_error.filter(|error| error.is_finite()));
        // 0 / 0 of a perfect fit is not one
        let statistic = std_error.map(|error| value / error).filter(|statistic| !statistic.is_nan());
        let tail = statistic.map(|statistic| two_sided_tail(statistic, estimates.freedom));
        let bound = |sign: f64| std_error.map(|error| value + sign * quantile * error);
        let (lower, upper) = (bound(-1.0).into(), bound(1.0).into());
        [name.into(), value.into(), std_error.into(), statistic.into(), tail.into(), lower, upper]
    };
    let dim = names.len();
    let features = names.into_iter().enumerate().map(|(place, name)| (name, place));
    [("(intercept)".to_owned(), dim)].into_iter().chain(features).map(row).collect()
}
