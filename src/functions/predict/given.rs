//! What a call gives to a model, by the types of its arguments. They are those of the place in the query from which it
//! comes, and are looked at once for all its rows.

use super::arrays::{Names, read_dense, read_sparse_pair, read_sparse_vector, read_text, refuse_categories};
use super::groups::RowOfGroup;
use super::input::{self, FeatureInput, InputTuple};
use super::row::read_row;
use super::values::{PlanOfCall, read_values};
use errors::{PredictError, Result};
use model::{Model, Policies};
use pg::call::function::Call;
use pg::catalog::types::{is_row_type, type_name};
use pg::values::array::element_type;
use pg::values::record::Record;
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::vector::VectorReader;
use pgrx::pg_sys::{self, Oid};
use std::ops::Range;

/// What `nulls` and `handle_unknown` are by default, in sql/: the model says it, as with NULL. Behind features one by
/// one, a default of NULL could not be told from a feature that is NULL.
const AS_TRAINED: &str = "as trained";

/// A place in a query that asks a model.
pub struct CallSite {
    features: Features,
    /// this many arguments behind the model must not be NULL for there to be an answer
    needed: usize,
    /// the arguments `nulls` and `handle_unknown`
    policies: [Option<usize>; 2],
    /// how many arguments behind the model are no defaults
    given: usize,
    /// how to read these as values, for the model that was asked last, if that has vectors or words among its columns
    plan: Option<PlanOfCall>,
}

/// In what form features are given.
enum Features {
    /// an array or another vector; None of an array without numbers
    Vector(Option<VectorReader>),
    SparseVector(SparseVectorReader),
    /// an array of indices and one of values: features that are not there are 0
    SparsePair,
    /// a row with all feature columns, among others
    Row,
    /// an array as a text
    Text,
    /// this many of them, one by one, and how to read them for the model that was asked last
    Values(usize, Option<PlanOfCall>),
}

impl Features {
    /// By the type of the argument; None of what can be one feature only.
    fn of_type(type_oid: Oid) -> Option<Features> {
        if is_row_type(type_oid) {
            return Some(Features::Row);
        }
        match VectorReader::new(type_oid) {
            None if element_type(type_oid).is_none() => SparseVectorReader::new(type_oid).map(Features::SparseVector),
            reader => Some(Features::Vector(reader)),
        }
    }
}

impl CallSite {
    /// Of an answer to features in any form, behind which `nulls` and `handle_unknown` may stand: two texts.
    #[cold]
    pub fn new(call: Call<'_>) -> Result<CallSite> {
        let is_array = |i| i < call.len() && element_type(call.type_of(i)).is_some();
        let (form, needed) = match Features::of_type(call.type_of(1)) {
            Some(_) if is_array(1) && is_array(2) => (Some(Features::SparsePair), 2),
            form => (form, 1),
        };
        let given = (1..call.len()).take_while(|i| is_given(call, *i)).count();
        let policies = [needed + 1, needed + 2];
        let are_policies =
            call.len() <= needed + 3 && (needed + 1..call.len()).all(|i| call.type_of(i) == pg_sys::TEXTOID);
        if let Some(features) = form.filter(|_| are_policies) {
            let policies = policies.map(|i| is_given(call, i).then_some(i));
            return Ok(CallSite { features, needed, policies, given, plan: None });
        }
        if (given + 1..call.len()).any(|i| is_given(call, i)) {
            return Err(PredictError::Type(type_name(call.type_of(1))).into());
        }
        // which NULLs have an answer is a matter for the model
        Ok(CallSite { features: Features::Values(given, None), needed: 0, policies: [None; 2], given, plan: None })
    }

    /// Of an answer with a coverage, which stands behind the features, before `nulls` and `handle_unknown`. Features
    /// one by one are not: no one could tell the coverage from a feature.
    #[cold]
    pub fn with_coverage(call: Call<'_>) -> Result<CallSite> {
        let features = match call.len() {
            6 => Features::SparsePair,
            _ => Features::of_type(call.type_of(1)).unwrap_or(Features::Text),
        };
        let coverage = call.len() - 3;
        let policies = [Some(coverage + 1), Some(coverage + 2)];
        Ok(CallSite { features, needed: coverage, policies, given: 0, plan: None })
    }

    /// Is an argument NULL without which there is no answer?
    #[inline(always)]
    pub fn lacks(&self, call: Call<'_>) -> bool {
        (1..self.needed + 1).any(|i| call.is_null(i))
    }

    /// What the call does with NULLs and with what the model has not seen.
    #[inline(always)]
    pub fn policies(&self, model: &Model, call: Call<'_>) -> Result<Policies> {
        match self.policies {
            [None, None] => Ok(Policies::of_model(model)),
            _ if self.are_values(model) => Ok(Policies::of_model(model)),
            given => Policies::of_call(model, given.map(|i| call.get::<&str>(i?).filter(|word| *word != AS_TRAINED))),
        }
    }

    #[inline(always)]
    pub fn given<'a>(&'a mut self, given_to: &Model, call: Call<'a>) -> GivenFeatures<'a> {
        let values = self.are_values(given_to).then_some((self.given, &mut self.plan));
        GivenFeatures { call, coverage: self.needed, features: &mut self.features, values, of_group: None }
    }

    /// Is what the call gives a row?
    pub fn is_given_row(&self) -> bool {
        matches!(self.features, Features::Row)
    }

    /// What the call gives, a row, as it was read for the model of its group.
    pub fn given_of_group<'a>(&'a mut self, call: Call<'a>, row: RowOfGroup<'a>) -> GivenFeatures<'a> {
        GivenFeatures { call, coverage: self.needed, features: &mut self.features, values: None, of_group: Some(row) }
    }

    /// Are arrays that are given a column each, and texts behind them, too? They are for a model that has vectors or
    /// words among its columns, but not one array of numbers that may be all of these.
    #[inline]
    fn are_values(&self, model: &Model) -> bool {
        let is_one = matches!(&self.features, Features::Vector(reader) if reader.is_some() && self.given == 1);
        let is_array = matches!(self.features, Features::Vector(_) | Features::SparsePair);
        is_array && !is_one && self.given > 0 && model.feature_kind.has_vectors_or_words()
    }
}

/// Is argument `i` there, and no default?
fn is_given(call: Call<'_>, i: usize) -> bool {
    let is_default = || call.type_of(i) == pg_sys::TEXTOID && call.is_constant(i) && call.get(i) == Some(AS_TRAINED);
    i < call.len() && !is_default()
}

/// What a call gives to a model.
pub struct GivenFeatures<'a> {
    pub call: Call<'a>,
    features: &'a mut Features,
    coverage: usize,
    of_group: Option<RowOfGroup<'a>>,
    /// how many arguments are values, and how to read them, if they are taken for these although they are arrays
    values: Option<(usize, &'a mut Option<PlanOfCall>)>,
}

impl GivenFeatures<'_> {
    /// The coverage, of a call with one: it is not NULL.
    pub fn coverage(&self) -> f64 {
        self.call.double(self.coverage).unwrap_or(f64::NAN)
    }
}

impl FeatureInput for GivenFeatures<'_> {
    #[inline(always)]
    fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool> {
        if let Some(row) = self.of_group {
            return row.read(model, policies, into);
        }
        let call = self.call;
        if let Some((given, plan)) = self.values {
            return read_values(model, policies, (call, given), plan, into);
        }
        let Some(first) = call.argument(1) else {
            return match self.features {
                Features::Values(given, plan) => read_values(model, policies, (call, *given), plan, into),
                _ => Ok(false),
            };
        };
        let wrong_type = || PredictError::Type(type_name(call.type_of(1)));
        match self.features {
            Features::Vector(reader) => {
                refuse_categories(model)?;
                read_dense(model, policies, reader.ok_or_else(wrong_type)?, first, into, &Names::Places)
            }
            Features::SparseVector(reader) => {
                refuse_categories(model)?;
                read_sparse_vector(model, *reader, first, into, &Names::Places).map(|()| true)
            }
            Features::SparsePair => match call.argument(2) {
                Some(values) => read_sparse_pair(model, policies, (first, values), into),
                None => Ok(false),
            },
            Features::Row => match Record::of_call(call) {
                Some(record) => read_row(model, policies, &record, into),
                None => Ok(false),
            },
            Features::Text => Ok(read_text(model, policies, call, into)?.ok_or_else(wrong_type)?),
            Features::Values(given, plan) => read_values(model, policies, (call, *given), plan, into),
        }
    }
}

/// Passes the features of a row, which is argument 1 of the call, to `f`, as [`input::with_features`] does.
pub fn with_features<R>(
    model: &Model,
    call: Call<'_>,
    f: impl FnOnce(&dyn Fn(Range<usize>) -> Vec<(usize, f32)>) -> R,
) -> Result<Option<R>> {
    let given = GivenFeatures { call, features: &mut Features::Row, coverage: 0, values: None, of_group: None };
    input::with_features(model, Policies::of_model(model), given, f)
}

#[cfg(any(test, feature = "pg_test"))]
#[pgrx::pg_schema]
#[allow(unsafe_code)]
mod tests {
    use pg::testing::{in_subtransaction, one};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_types_are_not_guessed_where_the_caller_does_not_say_them() {
        let function = one::<pg_sys::Oid>("SELECT 'corgipile_predict(bigint, \"any\", text, text)'::regprocedure::oid");
        let said = in_subtransaction(|| {
            let (one, nothing) = (pg_sys::Datum::from(1), pg_sys::Datum::null());
            // SAFETY: the call ends before a value is read.
            unsafe { pg_sys::OidFunctionCall4Coll(function, pg_sys::Oid::INVALID, one, one, nothing, nothing) };
            String::new()
        });
        assert_eq!(said, "argument 2 may have any type, but the caller does not say which");
    }
}
