//! Features one by one, as the arguments of the call behind the model, in the order in which the model has them.
//!
//! The functions are not STRICT: a feature that is NULL is a matter for the model, only no model gives NULL.

use super::answers::{label, probabilities, value};
use super::by_value::by_value;
use super::date_parts::AddedParts;
use super::input::{FeatureInput, InputTuple};
use super::row::Plan;
use crate::errors::{OrRaise, PredictError, Result};
use crate::models::{self, ColumnKind, FeatureKind, Model, Policies};
use pg::call::function::Call;
use pg::catalog::types::base_type;
use pg::encoding::Text;
use pg::values::date_part::TimeType;
use pg::values::number::number_of_literal;
use pg::values::record::RecordColumn;
use pgrx::prelude::*;

/// All arguments of the call behind the first.
pub struct Values<'a>(pub Call<'a>);

/// What a call remembers: how to read its features for the model that was asked last, by the model's serial number.
struct PlanOfCall {
    serial: u64,
    parts: AddedParts,
    plan: Plan,
    /// which arguments are literals without a type where the model has numbers
    literals: Vec<usize>,
}

impl FeatureInput for Values<'_> {
    fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool> {
        let call = self.0;
        call.remembering(
            || PlanOfCall::new(model, policies, call),
            |known| {
                if known.serial != model.serial {
                    *known = PlanOfCall::new(model, policies, call)?;
                }
                let PlanOfCall { parts, plan, literals, .. } = known;
                let argument = |i| {
                    let value = call.argument(i)?;
                    Some(if literals.contains(&i) { number_of_literal(value) } else { value })
                };
                plan.read(model, policies, |i| parts.value(i, argument), into)
            },
        )
    }
}

impl PlanOfCall {
    fn new(model: &Model, policies: Policies, call: Call<'_>) -> Result<PlanOfCall> {
        let given = call.len() - 1;
        let expected = match &model.feature_kind {
            FeatureKind::Columns(columns) => columns.len(),
            FeatureKind::Array => model.dim(),
            FeatureKind::Sparse { .. } => {
                return Err(PredictError::NeedsIndices { model: model.in_error(), given }.into());
            }
        };
        let is_text = |type_oid| [pg_sys::UNKNOWNOID, pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&type_oid);
        if given == 1 && expected > 1 && is_text(call.type_of(1)) {
            return Err(PredictError::Text(model.in_error()).into());
        }
        let names = names_of_values(model, call, expected)?;
        let column = |(i, name): (usize, String)| RecordColumn {
            name,
            attribute: i + 1,
            type_oid: call.type_of(i + 1),
            collation: call.collation(),
        };
        let mut columns: Vec<RecordColumn> = names.into_iter().enumerate().map(column).collect();
        let literals = take_literals_as_numbers(model, &mut columns);
        let parts = AddedParts::new(model, &mut columns);
        let plan = Plan::of_values(model, policies, &columns)?;
        Ok(PlanOfCall { serial: model.serial, parts, plan, literals })
    }
}

/// Takes NULL and quoted text without a type as numbers where the model has a number, as an operator on numbers does;
/// says which arguments these are.
fn take_literals_as_numbers(model: &Model, columns: &mut [RecordColumn]) -> Vec<usize> {
    let is_number = |name: &String| match &model.feature_kind {
        FeatureKind::Array => true,
        FeatureKind::Columns(kinds) => model
            .features
            .iter()
            .zip(kinds)
            .any(|(feature, kind)| feature == name && matches!(kind, ColumnKind::Number)),
        FeatureKind::Sparse { .. } => false,
    };
    let mut literals = Vec::new();
    for column in columns.iter_mut().filter(|column| column.type_oid == pg_sys::UNKNOWNOID && is_number(&column.name)) {
        column.type_oid = pg_sys::FLOAT8OID;
        literals.push(column.attribute);
    }
    literals
}

/// What the values of the call are called: the model's features, or, of dates with parts among these, the dates.
fn names_of_values(model: &Model, call: Call<'_>, expected: usize) -> Result<Vec<String>> {
    let given = call.len() - 1;
    let has_date = (0..given).any(|i| TimeType::from_oid(base_type(call.type_of(i + 1))).is_some());
    match model.given_columns() {
        // with as many dates as parts, the types tell them apart
        Some(columns) if given == columns.len() && (given != expected || has_date) => {
            Ok(columns.into_iter().map(str::to_owned).collect())
        }
        Some(columns) if given != expected => {
            Err(PredictError::Length { model: model.in_error(), expected: columns.len(), given }.into())
        }
        None if given != expected => Err(PredictError::Length { model: model.in_error(), expected, given }.into()),
        _ => Ok((0..given).map(|i| model.feature_name(i)).collect()),
    }
}

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value.
/// They know no arguments but features, and do with these as the model does.
macro_rules! functions_of_features {
    ($($answer:path[$input:ident] => $result:ty: $by_id:ident, $by_name:ident, $by_value:ident;)+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: Option<i64>, call: Call<'_>) -> Option<$result> {
                models::by_id(model?).and_then(|model| $answer(&model, Policies::of_model(&model), $input(call))).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: Option<Text<'_>>, call: Call<'_>) -> Option<$result> {
                models::by_name(model?).and_then(|model| $answer(&model, Policies::of_model(&model), $input(call))).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_value(call: Call<'_>) -> Option<$result> {
                let found = by_value(call.argument(0)?, call);
                found.and_then(|model| $answer(&model, Policies::of_model(&model), $input(call))).or_raise()
            }
        )+
    };
}

pub(super) use functions_of_features;

functions_of_features! {
    value[Values] => f64: corgipile_predict_values, corgipile_predict_values_by_name, corgipile_predict_values_by_value;
    label[Values] => String:
        corgipile_predict_label_values, corgipile_predict_label_values_by_name, corgipile_predict_label_values_by_value;
    probabilities[Values] => Vec<f64>:
        corgipile_predict_proba_values, corgipile_predict_proba_values_by_name, corgipile_predict_proba_values_by_value;
}
