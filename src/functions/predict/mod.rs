//! corgipile_predict(), corgipile_predict_label(), corgipile_predict_proba(), corgipile_predict_interval() and
//! corgipile_predict_set(): a C function for each answer. Which model is asked, and in what form it is given features,
//! the types of the arguments say.

mod answers;
mod arrays;
mod conformal;
mod given;
mod groups;
mod input;
mod mini_batches;
mod parts;
mod row;
mod values;

use super::model_functions::model_to_predict;
use answers::{label, probabilities, value};
use errors::{ArgumentError, OrRaise, Result};
pub(super) use given::with_features;
use given::{CallSite, GivenFeatures};
pub(super) use groups::{forget as forget_groups, model_of_row};
use model::table::LookupScope;
use model::{self, Found, Model, Policies};
use pg::call::function::Call;
use pg::values::new_array::vector_of_doubles;
use pg::values::varlena::{Bytes, Value};
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn corgipile_predict(call: Call<'_>) -> Option<f64> {
    answer(call, CallSite::new, |model, policies, given| value(model, policies, given))
}

#[pg_extern(sql = false)]
fn corgipile_predict_label(call: Call<'_>) -> Option<Value<'_>> {
    answer(call, CallSite::new, |model, policies, given| {
        let text = label(model, policies, given, |text| Bytes::new(call.context(), text.as_bytes()))?;
        Ok(text.transpose()?.map(Bytes::into_value))
    })
}

#[pg_extern(sql = false)]
fn corgipile_predict_proba(call: Call<'_>) -> Option<Value<'_>> {
    answer(call, CallSite::new, |model, policies, given| {
        probabilities(model, policies, given, |all| vector_of_doubles(call.context(), all))?
            .transpose()
            .map_err(Into::into)
    })
}

#[pg_extern(sql = false)]
fn corgipile_predict_interval(call: Call<'_>) -> Option<Value<'_>> {
    answer(call, CallSite::with_coverage, conformal::interval).map(|ends| call.row(&ends.map(Into::into)))
}

#[pg_extern(sql = false)]
fn corgipile_predict_set(call: Call<'_>) -> Option<Vec<String>> {
    answer(call, CallSite::with_coverage, conformal::set)
}

#[pg_extern(sql = false)]
fn corgipile_predict_batch(call: Call<'_>) -> Vec<f64> {
    model_to_predict(call).and_then(|model| mini_batches::values(&model, call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_label_batch(call: Call<'_>) -> Vec<String> {
    model_to_predict(call).and_then(|model| mini_batches::labels(&model, call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_proba_batch(call: Call<'_>) -> Value<'_> {
    model_to_predict(call).and_then(|model| mini_batches::probabilities(&model, call)).or_raise()
}

/// What the call names: a model, or models of groups. What is a constant of the query is looked up once, as long as it
/// means the same.
#[inline(always)]
pub(super) fn found_to_predict(call: Call<'_>) -> Result<Found> {
    if call.type_of(0) == pg_sys::JSONBOID {
        return model_to_predict(call).map(Found::Model);
    }
    call.made_of_constant(0, LookupScope::now(), || look_up(call))
}

#[inline(never)]
fn look_up(call: Call<'_>) -> Result<Found> {
    if call.type_of(0) == pg_sys::INT8OID {
        return model_to_predict(call).map(Found::Model);
    }
    let name = call.get::<&str>(0).ok_or(ArgumentError::NullArgument("name"))?;
    groups::known(name).map_or_else(|| model::found_to_predict(name), |models| Ok(Found::Groups(models)))
}

/// The answer of the model that the call names to what it gives. NULL if the model is, or an argument without which
/// there is no answer.
#[inline(always)]
fn answer<R>(
    call: Call<'_>,
    call_site: fn(Call<'_>) -> Result<CallSite>,
    answer: impl FnOnce(&Model, Policies, GivenFeatures<'_>) -> Result<Option<R>>,
) -> Option<R> {
    if call.is_null(0) {
        return None;
    }
    let answer = |site: &mut CallSite| {
        if site.lacks(call) {
            return Ok(None);
        }
        let model = match found_to_predict(call)? {
            Found::Model(model) => model,
            Found::Groups(models) => return groups::answer(&models, site, call, answer),
        };
        let policies = site.policies(&model, call)?;
        answer(&model, policies, site.given(&model, call))
    };
    call.remembering(|| call_site(call), answer).or_raise()
}
