//! corgipile_explain(): what each column of a row adds to a linear model's decision, compared with its average.
//!
//! Contributions are w (x - mean), as Shapley values of a linear model with independent features are; they and the base
//! value add up to the decision. What the features' means are is known to a model of standardized features, or is found
//! on rows that the call names.

use super::model_functions::model;
use super::predict::{found_to_predict, model_of_row, with_features};
use decode::notices::notice_left_out;
use errors::{ArgumentError, OrRaise, PredictError, Result, TrainingError};
use model::table::LookupScope;
use model::{self, Found, Model, Policies};
use pg::call::function::Call;
use pg::check_for_interrupts;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use train::model_rows::ModelRows;
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_explain(call: Call<'_>) {
    let rows = model_for_row(call).and_then(|model| model.map_or(Ok(Vec::new()), |model| explain(&model, call)));
    let rows = rows.or_raise();
    call.return_rows(
        rows.into_iter().map(|(feature, class, contribution)| [feature.into(), class.into(), contribution.into()]),
    );
}

/// The model that the call names or, of models of groups, that of the row's group; None if it has no prediction.
fn model_for_row(call: Call<'_>) -> Result<Option<Rc<Model>>> {
    if call.is_null(0) || call.is_null(1) {
        return model(call).map(Some);
    }
    match found_to_predict(call)? {
        Found::Groups(models) => model_of_row(&models, call)?.map(model::if_seen).transpose(),
        Found::Model(_) => model(call).map(Some),
    }
}

type Row = (String, Option<String>, f64);

/// What the base value is called: a column cannot be, but in double quotes.
const BASE: &str = "(base)";

/// A row for the base value, and one for each column; of several classes, all that for each of them.
fn explain(model: &Model, call: Call<'_>) -> Result<Vec<Row>> {
    if !model.kind.is_linear() {
        return Err(PredictError::NoContributions { model: model.in_error(), kind: model.kind.description() }.into());
    }
    let source: Option<String> = call.get(2);
    let means = source.map(|source| means(model, &source)).transpose()?;
    let mean = |j: usize| means.as_ref().map_or(0.0, |means| means[j]);
    let columns = model.weights_by_column();
    let linear = model.linear();
    if call.is_null(1) {
        return Err(ArgumentError::NullArgument("features").into());
    }
    let explained = with_features(model, call, |features| {
        let mut rows = allocation::with_capacity(linear.outputs * (columns.len() + 1));
        for output in 0..linear.outputs {
            let class = (linear.outputs > 1).then(|| model.classes[output].clone());
            let weights = &linear.weights[output * linear.dim..][..linear.dim];
            let product = |j: usize, x: f64| f64::from(weights[j]) * x;
            let at_means: f64 = (0..linear.dim).map(|j| product(j, mean(j))).sum();
            rows.push((BASE.to_owned(), class.clone(), f64::from(linear.intercepts[output]) + at_means));
            for (name, places) in &columns {
                let sum = |(j, x): (usize, f32)| product(j, f64::from(x));
                let own: f64 = features(places.clone()).into_iter().map(sum).sum();
                let average: f64 = places.clone().map(|j| product(j, mean(j))).sum();
                rows.push((name.clone(), class.clone(), own - average));
            }
        }
        rows
    })?;
    // a row with a NULL that the model skips has no decision
    Ok(explained.unwrap_or_default())
}

type Known = (LookupScope, u64, String, Rc<Vec<f64>>);

thread_local! {
    static LAST: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// Forgets what is remembered: its statement has ended.
pub fn forget_means() {
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| last.take()));
}

/// The means of the features over all rows of a source, as the model sees them. Those found last are remembered for the
/// other rows of a statement.
fn means(model: &Model, source: &str) -> Result<Rc<Vec<f64>>> {
    let scope = LookupScope::now();
    let is_it = |known: &&Known| known.0 == scope && known.1 == model.serial && known.2 == source;
    if let Some(means) = LAST.with_borrow(|last| last.as_ref().filter(is_it).map(|known| known.3.clone())) {
        return Ok(means);
    }
    let found = Rc::new(read_means(model, source)?);
    LAST.set(Some((scope, model.serial, source.to_owned(), found.clone())));
    Ok(found)
}

fn read_means(model: &Model, source: &str) -> Result<Vec<f64>> {
    // labels play no part in means, and new rows often have none yet
    let reading = ModelRows::plain(Policies::of_model(model));
    let mut buffers = reading.open_features(model, source, "corgipile_explain()")?;
    let mut batch = Batch::dense(0);
    let (mut sums, mut rows) = (allocation::zeros::<f64>(model.dim()), 0_u64);
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        rows += batch.len() as u64;
        for i in 0..batch.len() {
            if batch.is_sparse() {
                let (indices, values) = batch.sparse_row(i);
                indices.iter().zip(values).for_each(|(j, x)| {
                    if let Some(sum) = sums.get_mut(*j as usize) {
                        *sum += f64::from(*x);
                    }
                });
            } else {
                sums.iter_mut().zip(batch.features(i)).for_each(|(sum, x)| *sum += f64::from(*x));
            }
        }
    }
    let decoder = buffers.into_decoder();
    notice_left_out(&decoder, decoder.decoded());
    if rows == 0 {
        return Err(TrainingError::no_rows("take means of", decoder.skipped()).into());
    }
    Ok(sums.into_iter().map(|sum| sum / rows as f64).collect())
}
