//! Features as a call gives them: as an array, as an array of indices and one of values, as a row, or one by one, in the order in
//! which the model has them. The types of the arguments decide.

use super::arrays::{DenseReader, SparseInput, refuse_categories};
use super::input::{FeatureInput, InputTuple};
use super::row::{Plan, RowInput};
use crate::errors::{ArgumentError, PredictError, Result};
use crate::models::{FeatureKind, Model};
use crate::pg::call::function::Call;
use crate::pg::catalog::types::{is_array, is_row_type};
use crate::pg::values::record::RecordColumn;
use crate::pg::values::typed::TypedDatum;

/// All arguments of the call behind the first, which is the model.
pub struct Features<'a>(pub Call<'a>);

/// What a call remembers.
enum Shape {
    Array(DenseReader),
    Sparse,
    Row,
    /// one by one, with the plan for the model that was asked last
    Values(Option<(u64, Plan)>),
}

impl Features<'_> {
    /// Is what stands for all features NULL? Then the answer is, too. A single one that is NULL is a matter for the model.
    pub fn are_null(&self) -> bool {
        let call = self.0;
        (1..call.count()).any(|i| call.argument(i).is_none()) && !are_values(call)
    }
}

/// Are features given one by one?
fn are_values(call: Call<'_>) -> bool {
    match call.count() {
        2 => !is_array(call.type_of(1)) && !is_row_type(call.type_of(1)),
        3 => !is_array(call.type_of(1)) || !is_array(call.type_of(2)),
        _ => true,
    }
}

impl Shape {
    fn new(call: Call<'_>, model: &Model) -> Result<Shape> {
        if are_values(call) {
            return Ok(Shape::Values(None));
        }
        if call.count() > 2 {
            return Ok(Shape::Sparse);
        }
        if is_row_type(call.type_of(1)) {
            return Ok(Shape::Row);
        }
        refuse_categories(model)?;
        DenseReader::new(call.type_of(1)).map(Shape::Array)
    }
}

impl FeatureInput for Features<'_> {
    fn read(self, model: &Model, into: &mut InputTuple) -> Result<()> {
        let call = self.0;
        call.remembering(
            || Shape::new(call, model),
            |shape| match shape {
                Shape::Array(reader) => reader.read(model, given(call, 1)?, into),
                Shape::Sparse => SparseInput(given(call, 1)?, given(call, 2)?).read(model, into),
                Shape::Row => RowInput(given(call, 1)?).read(model, into),
                Shape::Values(plan) => {
                    if plan.as_ref().is_none_or(|(serial, _)| *serial != model.serial) {
                        *plan = Some((model.serial, plan_of_values(model, call)?));
                    }
                    let Some((_, plan)) = plan else { return Ok(()) };
                    plan.read(model, |i| call.argument(i), into)
                }
            },
        )
    }
}

/// Argument `i`, of which it is known that it is not NULL.
fn given(call: Call<'_>, i: usize) -> Result<TypedDatum<'_>> {
    call.argument(i).ok_or_else(|| ArgumentError::NullArgument("features").into())
}

/// How to read features that are given one by one.
fn plan_of_values(model: &Model, call: Call<'_>) -> Result<Plan> {
    let given = call.count() - 1;
    let expected = match &model.feature_kind {
        FeatureKind::Columns(columns) => columns.len(),
        FeatureKind::Array => model.dim(),
        FeatureKind::Sparse { .. } => return Err(PredictError::NeedsIndices { model: model.in_error(), given }.into()),
    };
    if given != expected {
        return Err(PredictError::Length { model: model.in_error(), expected, given }.into());
    }
    let column = |i| RecordColumn {
        name: model.feature_name(i),
        attribute: i + 1,
        type_oid: call.type_of(i + 1),
        collation: call.collation(),
    };
    Plan::of_values(model, &(0..given).map(column).collect::<Vec<_>>())
}
