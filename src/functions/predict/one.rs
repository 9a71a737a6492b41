//! One argument behind the model, of any type that is no array: a row, a vector, or the only feature.

use super::answers::{label, probabilities, value};
use super::arrays::{DenseInput, Names, read_sparse_vector, read_text, refuse_categories};
use super::by_value::by_value;
use super::input::{FeatureInput, InputTuple};
use super::row::RowInput;
use super::values::{Values, functions_of_features};
use crate::errors::{OrRaise, PredictError, Result};
use crate::models::{self, Model, Policies};
use pg::call::function::Call;
use pg::catalog::types::{is_row_type, type_name};
use pg::encoding::Text;
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::vector::VectorReader;
use pgrx::pg_sys::Oid;
use pgrx::prelude::*;
use std::cell::Cell;

/// Argument 1 of the call.
pub struct OneInput<'a>(pub Call<'a>);

/// The same of a call with further arguments behind it: a row or a vector.
pub struct RowOrVector<'a>(pub Call<'a>);

/// What it is, by its type.
#[derive(Clone, Copy)]
enum Kind {
    Row,
    Vector,
    SparseVector(SparseVectorReader),
    Value,
}

impl Kind {
    fn of(type_oid: Oid) -> Kind {
        if is_row_type(type_oid) {
            Kind::Row
        } else if VectorReader::new(type_oid).is_some() {
            Kind::Vector
        } else {
            SparseVectorReader::new(type_oid).map_or(Kind::Value, Kind::SparseVector)
        }
    }

    /// As [`Kind::of`]; the last type is remembered.
    fn known(type_oid: Oid) -> Kind {
        thread_local! {
            static LAST: Cell<Option<(Oid, Kind)>> = const { Cell::new(None) };
        }
        match LAST.get() {
            Some((oid, kind)) if oid == type_oid => kind,
            _ => {
                let kind = Kind::of(type_oid);
                LAST.set(Some((type_oid, kind)));
                kind
            }
        }
    }
}

impl FeatureInput for OneInput<'_> {
    fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool> {
        let OneInput(call) = self;
        match (Kind::known(call.type_of(1)), call.argument(1)) {
            (Kind::Value, _) => Values(call).read(model, policies, into),
            (_, None) => Ok(false),
            (Kind::Row, _) => RowInput(call).read(model, policies, into),
            (Kind::Vector, _) => DenseInput(call).read(model, policies, into),
            (Kind::SparseVector(reader), Some(vector)) => {
                refuse_categories(model)?;
                read_sparse_vector(model, reader, vector, into, &Names::Places).map(|()| true)
            }
        }
    }
}

impl FeatureInput for RowOrVector<'_> {
    fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool> {
        let RowOrVector(call) = self;
        match Kind::known(call.type_of(1)) {
            Kind::Value => read_text(model, policies, call, into)?
                .ok_or_else(|| PredictError::Type(type_name(call.type_of(1))).into()),
            _ => OneInput(call).read(model, policies, into),
        }
    }
}

functions_of_features! {
    value[OneInput] => f64: corgipile_predict_one, corgipile_predict_one_by_name, corgipile_predict_one_by_value;
    label[OneInput] => String:
        corgipile_predict_label_one, corgipile_predict_label_one_by_name, corgipile_predict_label_one_by_value;
    probabilities[OneInput] => Vec<f64>:
        corgipile_predict_proba_one, corgipile_predict_proba_one_by_name, corgipile_predict_proba_one_by_value;
}
