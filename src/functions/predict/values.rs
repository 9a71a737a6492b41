//! Features one by one, as the arguments of the call behind the model, in the order in which the model has them.
//!
//! The functions are not STRICT: a feature that is NULL is a matter for the model, only no model gives NULL.

use super::answers::{label, probabilities, value};
use super::input::{FeatureInput, InputTuple};
use super::row::Plan;
use crate::errors::{OrRaise, PredictError, Result};
use crate::models::{self, FeatureKind, Model, Policies};
use crate::pg::call::function::Call;
use crate::pg::values::jsonb::Jsonb;
use crate::pg::values::record::RecordColumn;
use crate::pg::values::typed::TypedDatum;
use pgrx::prelude::*;

/// All arguments of the call behind the first.
struct Values<'a>(Call<'a>);

/// What a call remembers: how to read its features for the model that was asked last, by the model's serial number.
struct PlanOfCall {
    serial: u64,
    plan: Plan,
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
                known.plan.read(model, policies, |i| call.argument(i), into)
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
        if given != expected {
            return Err(PredictError::Length { model: model.in_error(), expected, given }.into());
        }
        let column = |i| RecordColumn {
            name: model.feature_name(i),
            attribute: i + 1,
            type_oid: call.type_of(i + 1),
            collation: call.collation(),
        };
        let columns: Vec<RecordColumn> = (0..given).map(column).collect();
        Ok(PlanOfCall { serial: model.serial, plan: Plan::of_values(model, policies, &columns)? })
    }
}

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value.
macro_rules! sql_functions {
    ($($answer:path => $result:ty: $by_id:ident, $by_name:ident, $by_value:ident;)+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: Option<i64>, call: Call<'_>) -> Option<$result> {
                models::by_id(model?).and_then(|model| $answer(&model, Policies::of_model(&model), Values(call))).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: Option<&str>, call: Call<'_>) -> Option<$result> {
                models::by_name(model?).and_then(|model| $answer(&model, Policies::of_model(&model), Values(call))).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_value(model: Option<TypedDatum<'_>>, call: Call<'_>) -> Option<$result> {
                models::inline(Jsonb::new(model?)).and_then(|model| $answer(&model, Policies::of_model(&model), Values(call))).or_raise()
            }
        )+
    };
}

sql_functions! {
    value => f64: corgipile_predict_values, corgipile_predict_values_by_name, corgipile_predict_values_by_value;
    label => String:
        corgipile_predict_label_values, corgipile_predict_label_values_by_name, corgipile_predict_label_values_by_value;
    probabilities => Vec<f64>:
        corgipile_predict_proba_values, corgipile_predict_proba_values_by_name, corgipile_predict_proba_values_by_value;
}
