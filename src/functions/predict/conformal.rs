//! corgipile_predict_interval() and corgipile_predict_set(): what holds the truth with a stated probability, by the
//! scores of rows that were held out of training.

use super::arrays::{DenseInput, SparseInput};
use super::by_value::by_value;
use super::input::{FeatureInput, decide};
use super::one::RowOrVector;
use super::policies;
use crate::errors::{ArgumentError, OrRaise, PredictError, Result};
use crate::models::{self, Model, Policies};
use pg::call::function::Call;
use pg::encoding::Text;
use pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::Link;
use sgd::conformal::{Calibration, belongs, class_scores, interval as interval_around};
use std::rc::Rc;

/// Declares SQL functions: for each answer one for models by id, one for models by name, and one for models by value.
/// Their features are as many arguments as the input says; behind them are the coverage, `nulls` and `unseen`.
macro_rules! sql_functions {
    ($($answer:path[$input:ident, $arguments:literal] -> $result:ty: $by_id:ident, $by_name:ident, $by_value:ident;)+) => {
        $(
            #[pg_extern(sql = false)]
            fn $by_id(model: Option<i64>, call: Call<'_>) -> Option<$result> {
                let answer = |model: &Model, asked| $answer(model, asked, $input(call), call);
                answer_with_coverage(model, call, $arguments, models::id_to_predict, answer)
            }

            #[pg_extern(sql = false)]
            fn $by_name(model: Option<Text<'_>>, call: Call<'_>) -> Option<$result> {
                let answer = |model: &Model, asked| $answer(model, asked, $input(call), call);
                answer_with_coverage(model, call, $arguments, models::name_to_predict, answer)
            }

            #[pg_extern(sql = false)]
            fn $by_value(call: Call<'_>) -> Option<$result> {
                let find = |model| by_value(model, call);
                let answer = |model: &Model, asked| $answer(model, asked, $input(call), call);
                answer_with_coverage(call.argument(0), call, $arguments, find, answer)
            }
        )+
    };
}

/// What is asked of a model beside its features.
struct Asked {
    coverage: f64,
    policies: Policies,
}

/// The answer of the model that is found, given so many arguments with features. NULL if the model, one of these or the
/// coverage is.
fn answer_with_coverage<M, R>(
    model: Option<M>,
    call: Call<'_>,
    arguments: usize,
    find: impl FnOnce(M) -> Result<Rc<Model>>,
    answer: impl FnOnce(&Model, Asked) -> Result<Option<R>>,
) -> Option<R> {
    let model = model?;
    if (1..=arguments).any(|i| call.is_null(i)) {
        return None;
    }
    let coverage = call.double(arguments + 1)?;
    let answered = find(model).and_then(|model| {
        if !(coverage > 0.0 && coverage < 1.0) {
            return Err(ArgumentError::InvalidArgument {
                argument: "coverage",
                reason: format!("{coverage} is not above 0 and below 1"),
                hint: Some("0.9 asks for what holds the truth in nine of ten cases.".to_owned()),
            }
            .into());
        }
        let policies = policies(&model, call, arguments + 2)?;
        answer(&model, Asked { coverage, policies })
    });
    answered.or_raise()
}

/// The numbers of the interval, from the lowest to the highest.
///
/// # Errors
/// Those of [`decide`]; [`PredictError::NoIntervals`], [`PredictError::NotCalibrated`],
/// [`PredictError::DecisionOutOfRange`]
fn interval(model: &Model, asked: Asked, features: impl FeatureInput, call: Call<'_>) -> Result<Option<Value>> {
    if model.kind.is_classifier() {
        return Err(PredictError::NoIntervals(model.in_error()).into());
    }
    let threshold = calibration(model)?.threshold(asked.coverage);
    let link = model.kind.link();
    let bounds = decide(model, asked.policies, features, |z| {
        let prediction = link.prediction(z[0]);
        prediction.is_finite().then(|| interval_around(prediction, threshold))
    })?;
    // targets of a logarithmic link are at least 0
    let least = if link == Link::Logarithm { 0.0 } else { f64::NEG_INFINITY };
    match bounds {
        Some(None) => Err(PredictError::DecisionOutOfRange { model: model.in_error(), row: None }.into()),
        bounds => Ok(bounds.flatten().map(|(low, high)| call.row(&[low.max(least).into(), high.into()]))),
    }
}

/// The labels of the set, in the ascending order of all labels.
///
/// # Errors
/// Those of [`decide`]; [`PredictError::NoLabels`], [`PredictError::NotCalibrated`]
fn set(model: &Model, asked: Asked, features: impl FeatureInput, _call: Call<'_>) -> Result<Option<Vec<String>>> {
    if !model.kind.is_classifier() {
        return Err(PredictError::NoLabels { model: model.in_error(), kind: model.kind }.into());
    }
    let threshold = calibration(model)?.threshold(asked.coverage);
    let mut scores = vec![0.0; model.classes.len()];
    decide(model, asked.policies, features, |z| {
        class_scores(model.kind, &model.linear(), z, &mut scores);
        let chosen = model.classes.iter().zip(&scores).filter(|(_, score)| belongs(**score, threshold));
        chosen.map(|(class, _)| class.clone()).collect()
    })
}

fn calibration(model: &Model) -> Result<&Calibration> {
    model.calibration.as_ref().ok_or_else(|| PredictError::NotCalibrated(model.in_error()).into())
}

sql_functions! {
    interval[DenseInput, 1] -> Value:
        corgipile_predict_interval, corgipile_predict_interval_by_name, corgipile_predict_interval_by_value;
    interval[SparseInput, 2] -> Value:
        corgipile_predict_interval_sparse, corgipile_predict_interval_sparse_by_name,
        corgipile_predict_interval_sparse_by_value;
    interval[RowOrVector, 1] -> Value:
        corgipile_predict_interval_one, corgipile_predict_interval_one_by_name, corgipile_predict_interval_one_by_value;
    set[DenseInput, 1] -> Vec<String>:
        corgipile_predict_set, corgipile_predict_set_by_name, corgipile_predict_set_by_value;
    set[SparseInput, 2] -> Vec<String>:
        corgipile_predict_set_sparse, corgipile_predict_set_sparse_by_name, corgipile_predict_set_sparse_by_value;
    set[RowOrVector, 1] -> Vec<String>:
        corgipile_predict_set_one, corgipile_predict_set_one_by_name, corgipile_predict_set_one_by_value;
}
