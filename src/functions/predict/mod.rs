//! corgipile_predict(), corgipile_predict_label() and corgipile_predict_proba(): for models by id, by name and
//! by value, and for features as an array, as a pair of sparse arrays, as a row, and one by one.

mod answers;
mod arrays;
mod input;
mod mini_batches;
mod row;
mod values;

use crate::errors::OrRaise;
use crate::models;
use crate::pg::call::function::Call;
use crate::pg::values::jsonb::Jsonb;
use crate::pg::values::typed::TypedDatum;
use crate::pg::values::varlena::Value;
use answers::{label, probabilities, value};
use arrays::{DenseInput, SparseInput};
use mini_batches::CompressedInput;
use pgrx::prelude::*;
use row::RowInput;

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value.
macro_rules! sql_functions {
    ($(
        $answer:path[$features:expr] -> $result:ty:
        $by_id:ident, $by_name:ident, $by_value:ident($($argument:ident: $kind:ty),+);
    )+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: i64, $($argument: $kind),+) -> $result {
                models::by_id(model).and_then(|model| $answer(&model, $features)).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: &str, $($argument: $kind),+) -> $result {
                models::by_name(model).and_then(|model| $answer(&model, $features)).or_raise()
            }

            #[pg_extern(sql = false)]
            fn $by_value(model: TypedDatum<'_>, $($argument: $kind),+) -> $result {
                models::inline(Jsonb::new(model)).and_then(|model| $answer(&model, $features)).or_raise()
            }
        )+
    };
}

sql_functions! {
    value[DenseInput(call)] -> f64:
        corgipile_predict, corgipile_predict_by_name, corgipile_predict_by_value
        (call: Call<'_>);
    label[DenseInput(call)] -> String:
        corgipile_predict_label, corgipile_predict_label_by_name, corgipile_predict_label_by_value
        (call: Call<'_>);
    probabilities[DenseInput(call)] -> Vec<f64>:
        corgipile_predict_proba, corgipile_predict_proba_by_name, corgipile_predict_proba_by_value
        (call: Call<'_>);
    value[SparseInput(indices, values)] -> f64:
        corgipile_predict_sparse, corgipile_predict_sparse_by_name, corgipile_predict_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    label[SparseInput(indices, values)] -> String:
        corgipile_predict_label_sparse, corgipile_predict_label_sparse_by_name, corgipile_predict_label_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    probabilities[SparseInput(indices, values)] -> Vec<f64>:
        corgipile_predict_proba_sparse, corgipile_predict_proba_sparse_by_name, corgipile_predict_proba_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    mini_batches::values[CompressedInput(call)] -> Vec<f64>:
        corgipile_predict_toc, corgipile_predict_toc_by_name, corgipile_predict_toc_by_value
        (call: Call<'_>);
    mini_batches::labels[CompressedInput(call)] -> Vec<String>:
        corgipile_predict_label_toc, corgipile_predict_label_toc_by_name, corgipile_predict_label_toc_by_value
        (call: Call<'_>);
    mini_batches::probabilities[CompressedInput(call)] -> Value:
        corgipile_predict_proba_toc, corgipile_predict_proba_toc_by_name, corgipile_predict_proba_toc_by_value
        (call: Call<'_>);
    value[RowInput(row)] -> f64:
        corgipile_predict_row, corgipile_predict_row_by_name, corgipile_predict_row_by_value
        (row: TypedDatum<'_>);
    label[RowInput(row)] -> String:
        corgipile_predict_label_row, corgipile_predict_label_row_by_name, corgipile_predict_label_row_by_value
        (row: TypedDatum<'_>);
    probabilities[RowInput(row)] -> Vec<f64>:
        corgipile_predict_proba_row, corgipile_predict_proba_row_by_name, corgipile_predict_proba_row_by_value
        (row: TypedDatum<'_>);
}
