//! corgipile_predict(), corgipile_predict_label() and corgipile_predict_proba(), for models by id and by name.

use crate::error::{Error, OrRaise, Result};
use crate::models::{self, Model};
use crate::pg::array::{ArrayFault, ArrayReader};
use crate::pg::number::NumberFault;
use crate::pg::relation::{base_type, type_name};
use pgrx::AnyArray;
use pgrx::prelude::*;
use sgd::{ModelKind, probability};
use std::cell::{Cell, RefCell};

#[pg_extern(sql = false)]
fn corgipile_predict(model: i64, features: AnyArray) -> f64 {
    models::by_id(model).and_then(|model| value(&model, features)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_by_name(model: &str, features: AnyArray) -> f64 {
    models::by_name(model).and_then(|model| value(&model, features)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_label(model: i64, features: AnyArray) -> String {
    models::by_id(model).and_then(|model| label(&model, features)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_label_by_name(model: &str, features: AnyArray) -> String {
    models::by_name(model).and_then(|model| label(&model, features)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_proba(model: i64, features: AnyArray) -> Vec<f64> {
    models::by_id(model).and_then(|model| probabilities(&model, features)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_predict_proba_by_name(model: &str, features: AnyArray) -> Vec<f64> {
    models::by_name(model).and_then(|model| probabilities(&model, features)).or_raise()
}

/// The class as a number.
fn value(model: &Model, features: AnyArray) -> Result<f64> {
    let Some(values) = model.values else { return Err(Error::TextLabels(model.id)) };
    decision(model, features).map(|z| values[class(z)])
}

/// The class as text.
fn label(model: &Model, features: AnyArray) -> Result<String> {
    decision(model, features).map(|z| model.classes[class(z)].clone())
}

/// [P(first class), P(second class)]
fn probabilities(model: &Model, features: AnyArray) -> Result<Vec<f64>> {
    match model.kind {
        ModelKind::Svm | ModelKind::Linear | ModelKind::Softmax => Err(Error::NoProbabilities(model.id)),
        ModelKind::Logistic => decision(model, features).map(|z| vec![probability(-z), probability(z)]),
    }
}

fn class(z: f32) -> usize {
    usize::from(z > 0.0)
}

/// w·x + b
fn decision(model: &Model, features: AnyArray) -> Result<f32> {
    thread_local! {
        static BUFFER: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
    }
    let reader = reader(features.oid())?;
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(model.dim(), 0.0);
        reader.read(features.datum(), buffer).map_err(|fault| explain(model, fault))?;
        Ok(model.decision(buffer))
    })
}

/// A reader for arrays of this type; the last one is remembered.
fn reader(array: pg_sys::Oid) -> Result<ArrayReader> {
    thread_local! {
        static LAST: Cell<Option<(pg_sys::Oid, ArrayReader)>> = const { Cell::new(None) };
    }
    if let Some((oid, reader)) = LAST.get()
        && oid == array
    {
        return Ok(reader);
    }
    let reader = ArrayReader::of(base_type(array)).ok_or_else(|| Error::PredictType(type_name(array)))?;
    LAST.set(Some((array, reader)));
    Ok(reader)
}

fn explain(model: &Model, fault: ArrayFault) -> Error {
    match fault {
        ArrayFault::Length(given) => Error::PredictLength { model_id: model.id, expected: model.dim(), given },
        ArrayFault::Dimensions(n) => Error::PredictDimensions(n),
        ArrayFault::Null(i) => Error::PredictNull(i),
        ArrayFault::Number(index, NumberFault::NotFinite(value)) => Error::PredictNotFinite { index, value },
        ArrayFault::Number(index, NumberFault::OutOfRange(value)) => Error::PredictOutOfRange { index, value },
    }
}
