//! corgipile_predict(), corgipile_predict_label() and corgipile_predict_proba(): for models by id, by name and
//! by value, and for features as an array or another vector, as a pair of sparse arrays, as a row, and one by one.
//! corgipile_predict_interval() and corgipile_predict_set(): the same, but for features one by one.

mod answers;
mod arrays;
mod by_value;
mod conformal;
mod date_parts;
mod input;
mod mini_batches;
mod one;
mod row;
mod values;

use crate::errors::{OrRaise, Result};
use crate::models::{self, Model, Policies};
use answers::{label, probabilities, value};
use arrays::{DenseInput, SparseInput};
pub(super) use by_value::by_value;
use mini_batches::CompressedInput;
use pg::call::function::Call;
use pg::encoding::Text;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use row::RowInput;
use std::rc::Rc;

/// Passes the features of a row, which is argument 1 of the call, to `f`, as [`input::with_features`] does.
///
/// # Errors
/// What is wrong with the features.
pub(super) fn with_features<R>(
    model: &Model,
    call: Call<'_>,
    f: impl FnOnce(&dyn Fn(std::ops::Range<usize>) -> Vec<(usize, f32)>) -> R,
) -> Result<Option<R>> {
    input::with_features(model, Policies::of_model(model), RowInput(call), f)
}

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value.
/// Their features are as many arguments as the input says.
macro_rules! sql_functions {
    ($($answer:path[$input:ident, $arguments:literal] -> $result:ty: $by_id:ident, $by_name:ident, $by_value:ident;)+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: Option<i64>, call: Call<'_>) -> Option<$result> {
                answer(model, call, $arguments, models::id_to_predict, |model, policies| $answer(model, policies, $input(call)))
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: Option<Text<'_>>, call: Call<'_>) -> Option<$result> {
                answer(model, call, $arguments, models::name_to_predict, |model, policies| $answer(model, policies, $input(call)))
            }

            #[pg_extern(sql = false)]
            fn $by_value(call: Call<'_>) -> Option<$result> {
                let find = |model| by_value(model, call);
                answer(call.argument(0), call, $arguments, find, |model, policies| $answer(model, policies, $input(call)))
            }
        )+
    };
}

/// The answer of the model that is found, given so many arguments with features, behind which `nulls` and `unseen` may
/// stand, or `unseen` alone. NULL if the model or one of these arguments is.
#[inline(always)]
fn answer<M, R>(
    model: Option<M>,
    call: Call<'_>,
    arguments: usize,
    find: impl FnOnce(M) -> Result<Rc<Model>>,
    answer: impl FnOnce(&Model, Policies) -> Result<Option<R>>,
) -> Option<R> {
    let model = model?;
    if (1..=arguments).any(|i| call.is_null(i)) {
        return None;
    }
    let asked = |model: &Model| {
        let policies =
            if call.len() > arguments + 1 { policies(model, call, arguments + 1)? } else { Policies::of_model(model) };
        answer(model, policies)
    };
    find(model).and_then(|model| asked(&model)).or_raise()
}

/// What the arguments from `first` on say beside the model: `nulls` and `unseen`, or the latter alone.
#[inline(always)]
fn policies(model: &Model, call: Call<'_>, first: usize) -> Result<Policies> {
    if (first..call.len()).all(|i| call.is_null(i)) {
        return Ok(Policies::of_model(model));
    }
    let unseen = call.len() - 1;
    Policies::of_call(model, [if first < unseen { call.get(first) } else { None }, call.get(unseen)])
}

sql_functions! {
    value[DenseInput, 1] -> f64:
        corgipile_predict, corgipile_predict_by_name, corgipile_predict_by_value;
    label[DenseInput, 1] -> String:
        corgipile_predict_label, corgipile_predict_label_by_name, corgipile_predict_label_by_value;
    probabilities[DenseInput, 1] -> Vec<f64>:
        corgipile_predict_proba, corgipile_predict_proba_by_name, corgipile_predict_proba_by_value;
    value[SparseInput, 2] -> f64:
        corgipile_predict_sparse, corgipile_predict_sparse_by_name, corgipile_predict_sparse_by_value;
    label[SparseInput, 2] -> String:
        corgipile_predict_label_sparse, corgipile_predict_label_sparse_by_name, corgipile_predict_label_sparse_by_value;
    probabilities[SparseInput, 2] -> Vec<f64>:
        corgipile_predict_proba_sparse, corgipile_predict_proba_sparse_by_name, corgipile_predict_proba_sparse_by_value;
    mini_batches::values[CompressedInput, 1] -> Vec<f64>:
        corgipile_predict_toc, corgipile_predict_toc_by_name, corgipile_predict_toc_by_value;
    mini_batches::labels[CompressedInput, 1] -> Vec<String>:
        corgipile_predict_label_toc, corgipile_predict_label_toc_by_name, corgipile_predict_label_toc_by_value;
    mini_batches::probabilities[CompressedInput, 1] -> Value:
        corgipile_predict_proba_toc, corgipile_predict_proba_toc_by_name, corgipile_predict_proba_toc_by_value;
    value[RowInput, 1] -> f64:
        corgipile_predict_row, corgipile_predict_row_by_name, corgipile_predict_row_by_value;
    label[RowInput, 1] -> String:
        corgipile_predict_label_row, corgipile_predict_label_row_by_name, corgipile_predict_label_row_by_value;
    probabilities[RowInput, 1] -> Vec<f64>:
        corgipile_predict_proba_row, corgipile_predict_proba_row_by_name, corgipile_predict_proba_row_by_value;
}
