//! The features of a compressed mini-batch: an answer for each of its rows.

use super::answers;
use super::arrays::refuse_categories;
use super::input::{FeatureInput, InputTuple};
use errors::{ArgumentError, PredictError, Result, TocError};
use model::{Model, Policies};
use pg::call::function::Call;
use pg::check_for_interrupts;
use pg::values::new_array::matrix_of_doubles;
use pg::values::varlena::{Value, with_bytes};
use toc::Operations;

struct MiniBatchRow<'a> {
    matrix: &'a dyn Operations<f32>,
    row: usize,
}

/// As [`value`](answers::value), for each row of the mini-batch that is argument 1 of the call.
pub fn values(model: &Model, call: Call<'_>) -> Result<Vec<f64>> {
    each(model, call, |policies, row| answers::value(model, policies, row))
}

/// As [`label`](answers::label), for each row.
pub fn labels(model: &Model, call: Call<'_>) -> Result<Vec<String>> {
    each(model, call, |policies, row| answers::label(model, policies, row, str::to_owned))
}

/// As [`probabilities`](answers::probabilities): a row for each row.
pub fn probabilities<'a>(model: &Model, call: Call<'a>) -> Result<Value<'a>> {
    let rows = each(model, call, |policies, row| answers::probabilities(model, policies, row, <[f64]>::to_vec))?;
    Ok(matrix_of_doubles(call.context(), rows.first().map_or(0, Vec::len), &rows.concat()))
}

fn each<T>(
    model: &Model,
    call: Call<'_>,
    answer: impl Fn(Policies, MiniBatchRow<'_>) -> Result<Option<T>>,
) -> Result<Vec<T>> {
    refuse_categories(model)?;
    // never NULL: the function is STRICT
    let Some(datum) = call.argument(1) else { return Err(ArgumentError::NullArgument("features").into()) };
    with_bytes(datum, |bytes| {
        let damaged = |error: toc::Error| TocError::DamagedToc(error.to_string());
        let columns = toc::info(bytes).map_err(damaged)?.columns;
        if columns != model.dim() {
            return Err(PredictError::Length { model: model.in_error(), given: columns, expected: model.dim() }.into());
        }
        let matrix: Box<dyn Operations<f32>> = toc::open(bytes).map_err(damaged)?;
        let answer = |row| {
            check_for_interrupts();
            answer(Policies::of_model(model), MiniBatchRow { matrix: &*matrix, row }).transpose()
        };
        // a matrix has no NULLs, so that each row has its answer
        (0..matrix.rows()).filter_map(answer).collect()
    })
}

impl FeatureInput for MiniBatchRow<'_> {
    fn read(self, model: &Model, _: Policies, into: &mut InputTuple) -> Result<bool> {
        let mut fault = None;
        let mut check = |column: u32, value: f32| {
            if !value.is_finite() && fault.is_none() {
                fault = Some(PredictError::NotFinite {
                    model: model.in_error(),
                    feature: format!("[{}]", column + 1),
                    value: value.into(),
                });
            }
        };
        if model.feature_kind.index_base().is_some() {
            into.make_sparse(0)?;
            self.matrix.each_entry_of_row(self.row, &mut |column, value| {
                check(column, value);
                into.push(column, value);
            });
        } else {
            let dense = into.make_dense(model.dim())?;
            dense.fill(0.0);
            self.matrix.each_entry_of_row(self.row, &mut |column, value| {
                check(column, value);
                dense[column as usize] = value;
            });
        }
        fault.map_or(Ok(true), |fault: PredictError| Err(fault.into()))
    }
}
