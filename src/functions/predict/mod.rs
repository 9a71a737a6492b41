//! corgipile_predict(), corgipile_predict_label() and corgipile_predict_proba(): for models by id, by name and
//! by value, and for features as an array, as a pair of sparse arrays, and as a row.

mod arrays;
mod mini_batches;
mod row;

use crate::errors::{OrRaise, PredictError, ResourceError, Result};
use crate::models::{self, Model};
use crate::pg::call::function::Call;
use crate::pg::values::jsonb::Jsonb;
use crate::pg::values::typed::TypedDatum;
use crate::pg::values::varlena::Value;
use arrays::{Dense, Sparse};
use mini_batches::CompressedRow;
use pgrx::prelude::*;
use row::Row;
use sgd::{ModelKind, ModelParameters, probability};
use std::cell::RefCell;

/// Declares SQL functions: for each what it gives for a model, for models by id, by name and by value.
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
                models::given(Jsonb::new(model)).and_then(|model| $answer(&model, $features)).or_raise()
            }
        )+
    };
}

sql_functions! {
    value[Dense(call)] -> f64:
        corgipile_predict, corgipile_predict_by_name, corgipile_predict_by_value
        (call: Call<'_>);
    label[Dense(call)] -> String:
        corgipile_predict_label, corgipile_predict_label_by_name, corgipile_predict_label_by_value
        (call: Call<'_>);
    probabilities[Dense(call)] -> Vec<f64>:
        corgipile_predict_proba, corgipile_predict_proba_by_name, corgipile_predict_proba_by_value
        (call: Call<'_>);
    value[Sparse(indices, values)] -> f64:
        corgipile_predict_sparse, corgipile_predict_sparse_by_name, corgipile_predict_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    label[Sparse(indices, values)] -> String:
        corgipile_predict_label_sparse, corgipile_predict_label_sparse_by_name, corgipile_predict_label_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    probabilities[Sparse(indices, values)] -> Vec<f64>:
        corgipile_predict_proba_sparse, corgipile_predict_proba_sparse_by_name, corgipile_predict_proba_sparse_by_value
        (indices: TypedDatum<'_>, values: TypedDatum<'_>);
    mini_batches::values[CompressedRow(call)] -> Vec<f64>:
        corgipile_predict_toc, corgipile_predict_toc_by_name, corgipile_predict_toc_by_value
        (call: Call<'_>);
    mini_batches::labels[CompressedRow(call)] -> Vec<String>:
        corgipile_predict_label_toc, corgipile_predict_label_toc_by_name, corgipile_predict_label_toc_by_value
        (call: Call<'_>);
    mini_batches::probabilities[CompressedRow(call)] -> Value:
        corgipile_predict_proba_toc, corgipile_predict_proba_toc_by_name, corgipile_predict_proba_toc_by_value
        (call: Call<'_>);
    value[Row(row)] -> f64:
        corgipile_predict_row, corgipile_predict_row_by_name, corgipile_predict_row_by_value
        (row: TypedDatum<'_>);
    label[Row(row)] -> String:
        corgipile_predict_label_row, corgipile_predict_label_row_by_name, corgipile_predict_label_row_by_value
        (row: TypedDatum<'_>);
    probabilities[Row(row)] -> Vec<f64>:
        corgipile_predict_proba_row, corgipile_predict_proba_row_by_name, corgipile_predict_proba_row_by_value
        (row: TypedDatum<'_>);
}

/// Features as a call gives them.
trait Features {
    /// Reads them as the model wants them.
    ///
    /// # Errors
    /// Whatever is wrong with them.
    fn read(self, model: &Model, into: &mut Tuple) -> Result<()>;
}

/// The features of one tuple, dense or sparse.
struct Tuple {
    is_sparse: bool,
    dense: Vec<f32>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

/// What is kept from one call to the next.
struct Scratch {
    tuple: Tuple,
    decisions: Vec<f32>,
}

/// A session keeps as many bytes of scratch memory as this; what one call needs beyond that is freed.
const KEPT_BYTES: usize = 1 << 20;

/// The value of `linear`; of other models the class as a number.
fn value(model: &Model, features: impl Features) -> Result<f64> {
    if model.kind == ModelKind::Linear {
        return decide(model, features, |z| f64::from(z[0]));
    }
    let Some(values) = &model.values else { return Err(PredictError::TextLabels(model.id).into()) };
    decide(model, features, |z| values[class(z)])
}

/// The class as text.
fn label(model: &Model, features: impl Features) -> Result<String> {
    if model.kind == ModelKind::Linear {
        return Err(PredictError::NoLabels(model.id).into());
    }
    decide(model, features, |z| model.classes[class(z)].clone())
}

/// The probability of each class, in their ascending order.
fn probabilities(model: &Model, features: impl Features) -> Result<Vec<f64>> {
    match model.kind {
        ModelKind::Svm => Err(PredictError::NoProbabilities { model_id: model.id, kind: "an SVM" }.into()),
        ModelKind::Linear => {
            Err(PredictError::NoProbabilities { model_id: model.id, kind: "a linear regression" }.into())
        }
        ModelKind::Logistic => decide(model, features, |z| vec![probability(-z[0]), probability(z[0])]),
        ModelKind::Softmax | ModelKind::Mlp => decide(model, features, |z| {
            let mut probabilities = vec![0.0; model.classes.len()];
            model.linear().probabilities(z, &mut probabilities);
            probabilities
        }),
    }
}

/// The class that decisions choose: of two by the sign of the only one, else the first with the largest.
fn class(decisions: &[f32]) -> usize {
    match decisions {
        [z] => usize::from(*z > 0.0),
        many => ModelParameters::class_of(many),
    }
}

/// Shows `f` the model's decisions for the features, which are finite.
fn decide<R>(model: &Model, features: impl Features, f: impl FnOnce(&[f32]) -> R) -> Result<R> {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { tuple, decisions } = scratch;
        features.read(model, tuple)?;
        model.count();
        let linear = model.linear();
        decisions.resize(linear.outputs, 0.0);
        if tuple.is_sparse {
            if let Some(scaling) = model.scaling() {
                standardize(scaling, &tuple.indices, &mut tuple.values);
            }
            linear.decisions_sparse(&tuple.indices, &tuple.values, decisions);
        } else {
            if let Some((mean, scale)) = model.scaling() {
                sgd::standardize_row(mean, scale, &mut tuple.dense);
            }
            linear.decisions(&tuple.dense, decisions);
        }
        // NaN, or an infinity that says nothing of the sign of the sum, where a sum of products is beyond real
        let result = match decisions.iter().all(|z| z.is_finite()) {
            true => Ok(f(decisions)),
            false => Err(PredictError::DecisionOutOfRange { model_id: model.id, row: None }.into()),
        };
        if scratch.bytes() > KEPT_BYTES {
            *scratch = Scratch::new();
        }
        result
    })
}

impl Tuple {
    /// Makes the tuple a dense one of `dim` features, and gives these to be written, all of them: they may have old values.
    fn make_dense(&mut self, dim: usize) -> Result<&mut [f32]> {
        self.is_sparse = false;
        reserve(&mut self.dense, dim)?;
        self.dense.resize(dim, 0.0);
        Ok(&mut self.dense)
    }

    /// Makes the tuple a sparse one of `len` entries, and gives these to be written, by ascending index from 0.
    fn make_sparse(&mut self, len: usize) -> Result<(&mut [u32], &mut [f32])> {
        self.is_sparse = true;
        reserve(&mut self.indices, len)?;
        reserve(&mut self.values, len)?;
        self.indices.resize(len, 0);
        self.values.resize(len, 0.0);
        Ok((&mut self.indices, &mut self.values))
    }

    /// Adds an entry to a sparse tuple, with an index above all others.
    fn push(&mut self, index: u32, value: f32) {
        self.indices.push(index);
        self.values.push(value);
    }
}

impl Scratch {
    const fn new() -> Scratch {
        let tuple = Tuple { is_sparse: false, dense: Vec::new(), indices: Vec::new(), values: Vec::new() };
        Scratch { tuple, decisions: Vec::new() }
    }

    fn bytes(&self) -> usize {
        let Tuple { dense, indices, values, .. } = &self.tuple;
        4 * (dense.capacity() + indices.capacity() + values.capacity() + self.decisions.capacity())
    }
}

/// Scales the entries of a sparse tuple, as in training; what is not there stays 0.
fn standardize((mean, scale): (&[f64], &[f64]), indices: &[u32], values: &mut [f32]) {
    for (index, value) in indices.iter().zip(values) {
        let i = *index as usize;
        *value = ((f64::from(*value) - mean[i]) * scale[i].recip()) as f32;
    }
}

/// Room for `len` elements.
fn reserve<T>(elements: &mut Vec<T>, len: usize) -> Result<()> {
    let missing = len.saturating_sub(elements.len());
    elements.try_reserve_exact(missing).map_err(|_| ResourceError::OutOfMemory(len * size_of::<T>()).into())
}
