//! The features of one tuple, as a call has them, and a model's decisions for them.

use errors::{Error, PredictError, Result};
use loss::ModelParameters;
use model::{Model, Policies};
use options::rows::Nulls;
use std::cell::RefCell;
use std::ops::Range;
use tuples::add_up_buckets;

/// Features as a call has them.
pub trait FeatureInput {
    /// Reads them for this model. False if they have a NULL because of which there is no answer.
    fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool>;
}

/// What stands for a NULL of feature `i`; None if there is no answer then. `name` is the feature's.
#[cold]
pub fn fill(model: &Model, policies: Policies, i: usize, name: impl FnOnce() -> String) -> Result<Option<f32>> {
    match (policies.nulls, model.fill()) {
        (Nulls::Skip, _) => Ok(None),
        (Nulls::Impute, Some(fill)) => Ok(Some(fill[i])),
        _ => Err(PredictError::Null { model: model.in_error(), feature: name() }.into()),
    }
}

/// A NULL for which nothing can stand: there is no answer.
#[cold]
pub fn no_answer(policies: Policies, error: impl FnOnce() -> Error) -> Result<bool> {
    if policies.nulls == Nulls::Error { Err(error()) } else { Ok(false) }
}

/// The features of one tuple, dense or sparse.
pub struct InputTuple {
    is_sparse: bool,
    pub dense: Vec<f32>,
    pub indices: Vec<u32>,
    pub values: Vec<f32>,
    /// of hashed columns, while a row is read
    pub buckets: Vec<(u32, f32)>,
    /// room for the numbers of a vector, and for the hashes of words
    pub vector: Vec<f32>,
    pub hashes: Vec<u64>,
}

/// Memory that is kept from one call to the next.
struct Scratch {
    tuple: InputTuple,
    decisions: Vec<f32>,
}

/// A session keeps as many bytes of scratch memory as this; what one call needs beyond that is freed.
const KEPT_BYTES: usize = 1 << 20;

/// The class that decisions choose: of two by the sign of the only one, else the first with the largest.
pub fn class(decisions: &[f32]) -> usize {
    match decisions {
        [z] => usize::from(*z > 0.0),
        many => ModelParameters::class_of(many),
    }
}

/// Passes the model's decisions for the features, which are finite, to `f`.
/// None if there is no answer because of a NULL.
pub fn decide<R>(
    model: &Model,
    policies: Policies,
    features: impl FeatureInput,
    f: impl FnOnce(&[f32]) -> R,
) -> Result<Option<R>> {
    thread_local! {
        static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch::new()) };
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let Scratch { tuple, decisions } = scratch;
        if !features.read(model, policies, tuple)? {
            return Ok(None);
        }
        model.count();
        if let (Some(row), false) = (model.row_decision(), tuple.is_sparse || model.logs.is_some()) {
            allocation::resize(&mut tuple.dense, row.row_len(), 0.0);
            let z = row.decide(&tuple.dense);
            return if z.is_finite() { Ok(Some(f(&[z]))) } else { Err(out_of_range(model)) };
        }
        tuple.prepare(model);
        let linear = model.linear();
        allocation::resize(decisions, linear.outputs, 0.0);
        if tuple.is_sparse {
            linear.decisions_sparse(&tuple.indices, &tuple.values, decisions);
        } else {
            linear.decisions(&tuple.dense, decisions);
        }
        // a sum of products beyond real is NaN, or an infinity of either sign
        let result = match decisions.iter().all(|z| z.is_finite()) {
            true => Ok(Some(f(decisions))),
            false => Err(out_of_range(model)),
        };
        if scratch.bytes() > KEPT_BYTES {
            *scratch = Scratch::new();
        }
        result
    })
}

/// A decision is not finite.
#[cold]
fn out_of_range(model: &Model) -> Error {
    PredictError::DecisionOutOfRange { model: model.in_error(), row: None }.into()
}

/// Passes the features, as the model multiplies them, to `f`: a function that gives those of a range, without some that
/// are 0. None if there is no answer because of a NULL.
pub fn with_features<R>(
    model: &Model,
    policies: Policies,
    features: impl FeatureInput,
    f: impl FnOnce(&dyn Fn(Range<usize>) -> Vec<(usize, f32)>) -> R,
) -> Result<Option<R>> {
    let mut tuple = Scratch::new().tuple;
    if !features.read(model, policies, &mut tuple)? {
        return Ok(None);
    }
    model.count();
    tuple.prepare(model);
    let of_range = |range: Range<usize>| match tuple.is_sparse {
        false => range.clone().zip(tuple.dense[range].iter().copied()).collect(),
        true => {
            let entries = tuple.indices.iter().map(|j| *j as usize).zip(tuple.values.iter().copied());
            entries.filter(|(j, _)| range.contains(j)).collect()
        }
    };
    Ok(Some(f(&of_range)))
}

impl InputTuple {
    /// Makes the features those that the model multiplies: transformed, standardized and cut off.
    #[inline]
    fn prepare(&mut self, model: &Model) {
        let logs = model.logs.as_ref();
        if self.is_sparse {
            if let Some(logs) = logs {
                logs.apply_sparse(&self.indices, &mut self.values);
            }
            if let Some(scaling) = model.scaling() {
                loss::standardize_entries(scaling, model.clip, &self.indices, &mut self.values);
            }
        } else {
            if let Some(logs) = logs {
                logs.apply_dense(&mut self.dense);
            }
            if let Some(scaling) = model.scaling() {
                loss::standardize_row(scaling, model.clip, &mut self.dense);
            }
        }
    }

    /// Makes the tuple a dense one of `dim` features, and gives these to be written, all of them:
    /// they may have old values.
    pub fn make_dense(&mut self, dim: usize) -> Result<&mut [f32]> {
        self.is_sparse = false;
        reserve(&mut self.dense, dim)?;
        self.dense.resize(dim, 0.0);
        Ok(&mut self.dense)
    }

    /// Makes the tuple a sparse one of `len` entries, and gives these to be written, by ascending index from 0.
    pub fn make_sparse(&mut self, len: usize) -> Result<(&mut [u32], &mut [f32])> {
        self.is_sparse = true;
        reserve(&mut self.indices, len)?;
        reserve(&mut self.values, len)?;
        self.indices.resize(len, 0);
        self.values.resize(len, 0.0);
        Ok((&mut self.indices, &mut self.values))
    }

    /// Adds the entries of the buckets of a row, which begin at index `first`.
    pub fn push_buckets(&mut self, first: u32) {
        let InputTuple { indices, values, buckets, .. } = self;
        add_up_buckets(buckets, |bucket, sum| {
            allocation::push(indices, first + bucket);
            allocation::push(values, sum);
        });
    }

    /// Adds an entry to a sparse tuple, with an index above all others.
    pub fn push(&mut self, index: u32, value: f32) {
        allocation::push(&mut self.indices, index);
        allocation::push(&mut self.values, value);
    }
}

impl Scratch {
    const fn new() -> Scratch {
        let tuple = InputTuple {
            is_sparse: false,
            dense: Vec::new(),
            indices: Vec::new(),
            values: Vec::new(),
            buckets: Vec::new(),
            vector: Vec::new(),
            hashes: Vec::new(),
        };
        Scratch { tuple, decisions: Vec::new() }
    }

    fn bytes(&self) -> usize {
        let InputTuple { dense, indices, values, buckets, vector, hashes, .. } = &self.tuple;
        4 * (dense.capacity() + indices.capacity() + values.capacity() + vector.capacity() + self.decisions.capacity())
            + 8 * (buckets.capacity() + hashes.capacity())
    }
}

fn reserve<T>(elements: &mut Vec<T>, len: usize) -> Result<()> {
    let missing = len.saturating_sub(elements.len());
    Ok(allocation::try_reserve_exact(elements, missing)?)
}
