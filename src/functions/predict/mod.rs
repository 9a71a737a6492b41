//! corgipile_predict(), corgipile_predict_label() and corgipile_predict_proba(): for models by id, by name and
//! by value, and for features as an array, as a pair of sparse arrays, as a row, and one by one.

mod answers;
mod arrays;
mod features;
mod input;
mod mini_batches;
mod row;

use crate::errors::OrRaise;
use crate::models;
use crate::pg::call::function::Call;
use crate::pg::values::jsonb::Jsonb;
use crate::pg::values::typed::TypedDatum;
use crate::pg::values::varlena::Value;
use answers::{label, probabilities, value};
use features::Features;
use mini_batches::CompressedInput;
use pgrx::prelude::*;

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value. The answer is
/// NULL if the model is, or what stands for all its features.
macro_rules! sql_functions {
    ($(
        $answer:path[$features:ident] -> $result:ty: $by_id:ident, $by_name:ident, $by_value:ident;
    )+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: Option<i64>, call: Call<'_>) -> Option<$result> {
                let (model, features) = (model?, Some($features(call)).filter(|features| !features.are_null())?);
                Some(models::by_id(model).and_then(|model| $answer(&model, features)).or_raise())
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: Option<&str>, call: Call<'_>) -> Option<$result> {
                let (model, features) = (model?, Some($features(call)).filter(|features| !features.are_null())?);
                Some(models::by_name(model).and_then(|model| $answer(&model, features)).or_raise())
            }

            #[pg_extern(sql = false)]
            fn $by_value(model: Option<TypedDatum<'_>>, call: Call<'_>) -> Option<$result> {
                let (model, features) = (model?, Some($features(call)).filter(|features| !features.are_null())?);
                Some(models::inline(Jsonb::new(model)).and_then(|model| $answer(&model, features)).or_raise())
            }
        )+
    };
}

sql_functions! {
    value[Features] -> f64: corgipile_predict, corgipile_predict_by_name, corgipile_predict_by_value;
    label[Features] -> String:
        corgipile_predict_label, corgipile_predict_label_by_name, corgipile_predict_label_by_value;
    probabilities[Features] -> Vec<f64>:
        corgipile_predict_proba, corgipile_predict_proba_by_name, corgipile_predict_proba_by_value;
    mini_batches::values[CompressedInput] -> Vec<f64>:
        corgipile_predict_toc, corgipile_predict_toc_by_name, corgipile_predict_toc_by_value;
    mini_batches::labels[CompressedInput] -> Vec<String>:
        corgipile_predict_label_toc, corgipile_predict_label_toc_by_name, corgipile_predict_label_toc_by_value;
    mini_batches::probabilities[CompressedInput] -> Value:
        corgipile_predict_proba_toc, corgipile_predict_proba_toc_by_name, corgipile_predict_proba_toc_by_value;
}
