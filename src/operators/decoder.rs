//! From rows to training tuples: (label, features, weight) as SGD wants them.
//!
//! Nothing that cannot be learned from gets through: NULLs, NaN, infinities, other lengths, a third class are errors that
//! name the row, or, for NULLs and if asked, are left out and counted. Tuples are standardized and weighted when they
//! are decoded, so that one that stays in its batch is never touched again.

mod categories;
mod class_weight;
mod features;
mod labels;
mod sparse;
mod spec;

use crate::error::{Error, Result, RowAt, RowFault};
pub use crate::models::Unseen;
use crate::pg::array::{ArrayFault, ArrayReader};
use crate::pg::number::{NumberFault, NumberType, narrow};
use crate::pg::row::Row;
use crate::pg::uniform::{Destination, Run, Uniform};
use categories::MixedFault;
pub use class_weight::ClassWeight;
pub use features::Features;
pub use labels::Labels;
use pgrx::pg_sys::Datum;
use serde::{Deserialize, Serialize};
use sgd::{Scaler, Standardizer};
use sparse::SparseError;
pub use spec::{DecoderSpec, FEATURE_TYPES, Known, column, is_category};
use tuples::{Batch, RowsMut};

/// What to do with rows that have a NULL label, feature or weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nulls {
    #[default]
    Error,
    Skip,
}

/// Weights that a model may have: elements of an array.
pub const MAX_WEIGHTS: usize = 134_217_727;

/// Bytes that the weights of a model and their scaling may have, to fit a row of corgipile.models.
const MAX_MODEL_BYTES: usize = 900_000_000;

/// The column of weights.
pub struct Weight {
    pub number: NumberType,
    /// which of the row's columns it is
    pub place: usize,
}

/// The rows of one page.
pub trait PageRows {
    fn len(&self) -> usize;
    /// The wanted columns of row `i`: label, features, weight.
    fn row(&mut self, i: usize) -> Row<'_>;
    /// Where row `i` stands.
    fn at(&self, i: usize) -> RowAt;
    /// Where rows have label and features if these are an array of `len` `real`s, and no columns are in their way.
    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform>;
    /// Copies labels and features of the rows before `end`, from the last to the first, until one is not as `uniform`
    /// says.
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run;
    /// Row `i` is being read, the rows behind it have been: time to fetch a share of the next page.
    fn prefetch_next(&self, i: usize);
}

/// Label and weight of a row that became a tuple, or None if it is to be left out.
type Decoded = std::result::Result<Option<(f32, f32)>, Box<RowFault>>;

/// What is wrong with a row that is to be appended to a batch.
enum AppendError {
    Row(Box<RowFault>),
    Other(Error),
}

impl From<Box<RowFault>> for AppendError {
    fn from(fault: Box<RowFault>) -> AppendError {
        AppendError::Row(fault)
    }
}

impl From<tuples::OutOfMemory> for AppendError {
    fn from(e: tuples::OutOfMemory) -> AppendError {
        AppendError::Other(e.into())
    }
}

/// Turns rows (label, features..., weight) into training tuples.
pub struct Decoder {
    labels: Labels,
    features: Features,
    weight: Option<Weight>,
    nulls: Nulls,
    scaler: Option<Scaler>,
    /// are classes or categories being found?
    preparing: bool,
    skipped: u64,
    /// the largest weight that was met
    heaviest: f32,
    /// labels and weights of a page
    values: Vec<Datum>,
    row_weights: Vec<f32>,
}

impl Decoder {
    fn new(
        labels: Labels,
        features: Features,
        weight: Option<Weight>,
        nulls: Nulls,
        standardizer: Option<Standardizer>,
    ) -> Decoder {
        let needed = |mixed: &Features| matches!(mixed, Features::Mixed(columns) if columns.need_preparation());
        let preparing = labels.need_preparation() || needed(&features);
        Decoder {
            labels,
            features,
            weight,
            nulls,
            scaler: standardizer.map(Scaler::new),
            preparing,
            skipped: 0,
            heaviest: 0.0,
            values: Vec::new(),
            row_weights: Vec::new(),
        }
    }

    /// The labels met so far.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The columns that are the features.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Must all rows be gone through before anything can be learned? Then tuples have provisional labels and, if there
    /// are categories, only their numbers, until [`end_preparation`](Decoder::end_preparation).
    pub fn needs_preparation(&self) -> bool {
        self.preparing
    }

    /// All rows have been gone through: `counts` of them are of each class, in the sequence of [`Labels::class`], and
    /// `standardizer` is what the tuples are to be standardized by from now on.
    ///
    /// # Errors
    /// [`Error::OneClass`], [`Error::NoSuchClass`], [`Error::TooManyWeights`]
    pub fn end_preparation(&mut self, counts: &[u64], standardizer: Option<Standardizer>) -> Result<()> {
        self.labels.close(counts)?;
        let mut standardizer = standardizer;
        if let Features::Mixed(columns) = &mut self.features {
            columns.close();
            standardizer = standardizer.map(|numbers| columns.expand(&numbers));
            let dim = columns.dim();
            self.check_size(dim, standardizer.is_some())?;
        }
        if let Features::Sparse(columns) = &mut self.features {
            // a dimension that was not met has no deviation
            let met = standardizer.as_ref().map(|standardizer| standardizer.scale.len());
            columns.set_limit(met.unwrap_or(MAX_WEIGHTS / self.labels.outputs().max(1)));
        }
        self.scaler = standardizer.map(Scaler::new);
        self.preparing = false;
        Ok(())
    }

    /// What tuples are standardized by.
    pub fn standardizer(&self) -> Option<&Standardizer> {
        self.scaler.as_ref().map(Scaler::standardizer)
    }

    /// Checks whether a model of so many features can be stored.
    ///
    /// # Errors
    /// [`Error::TooManyWeights`]
    pub fn check_size(&self, dim: usize, standardized: bool) -> Result<()> {
        let outputs = self.labels.outputs();
        let weights = dim.saturating_mul(outputs);
        let bytes = weights.saturating_mul(4).saturating_add(if standardized { dim.saturating_mul(16) } else { 0 });
        if weights > MAX_WEIGHTS || bytes > MAX_MODEL_BYTES {
            return Err(Error::TooManyWeights { dim, outputs });
        }
        Ok(())
    }

    /// Forgets how many rows were left out: a new epoch begins.
    pub fn begin_epoch(&mut self) {
        self.skipped = 0;
    }

    /// Rows left out since the epoch began.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Have all tuples the weight 0?
    pub fn all_weigh_nothing(&self) -> bool {
        self.is_weighted() && self.heaviest == 0.0
    }

    /// Have tuples weights?
    fn is_weighted(&self) -> bool {
        !self.preparing && (self.weight.is_some() || self.labels.have_weights())
    }

    /// Are rows being decoded into sparse tuples?
    fn is_sparse(&self) -> bool {
        match self.features {
            Features::Sparse(_) => true,
            Features::Mixed(_) => !self.preparing,
            _ => false,
        }
    }

    /// Where a row's features begin.
    fn first_feature(&self) -> usize {
        usize::from(self.labels.are_read())
    }

    /// Decodes all rows of a page into `batch`, which gets its shape if it is new.
    pub fn decode_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        if self.is_sparse() { self.sparse_page(batch, page) } else { self.dense_page(batch, page) }
    }

    fn sparse_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        self.shape_sparse(batch);
        let first = batch.len();
        self.row_weights.clear();
        for i in 0..page.len() {
            // the next page is fetched as if this one were read from its end
            page.prefetch_next(page.len() - 1 - i);
            match self.append_sparse(batch, page.row(i)) {
                Ok(Some(weight)) => self.row_weights.push(weight),
                Ok(None) => {}
                Err(AppendError::Row(fault)) => return Err(fault.at(page.at(i))),
                Err(AppendError::Other(error)) => return Err(error),
            }
        }
        self.finish(batch, first);
        Ok(())
    }

    fn dense_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        if !(0..page.len()).any(|i| self.shape_dense(batch, page.row(i))) {
            // Nothing to learn the number of features from: every row has a fault, or the page no row.
            return (0..page.len())
                .try_for_each(|i| self.decode(page.row(i), &mut []).map_err(|fault| fault.at(page.at(i))).map(|_| ()));
        }
        let first = batch.len();
        self.row_weights.resize(if self.weight.is_some() { page.len() } else { 0 }, 1.0);
        let mut rows = batch.extend(page.len())?;
        let mut skipped = false;
        let uniform = match &self.features {
            Features::Array { reader, dim: Some(dim), .. } if self.labels.are_read() => page.uniform(*reader, *dim),
            _ => None,
        };
        // Tuples are added to a page from its end: in this order their addresses ascend.
        let mut end = page.len();
        while end > 0 {
            if let Some(uniform) = &uniform {
                end = self.decode_run(page, end, uniform, &mut rows)?;
                if end == 0 {
                    break;
                }
            }
            end -= 1;
            let i = end;
            page.prefetch_next(i);
            let (label, features) = rows.row_mut(i);
            *label = match self.decode(page.row(i), features) {
                Ok(Some((label, weight))) => {
                    self.row_weights.get_mut(i).into_iter().for_each(|place| *place = weight);
                    label
                }
                Ok(None) => {
                    skipped = true;
                    SKIPPED
                }
                Err(fault) => return Err(fault.at(page.at(i))),
            };
        }
        if skipped {
            if self.weight.is_some() {
                let mut labels = batch.labels()[first..].iter();
                self.row_weights.retain(|_| labels.next().is_some_and(|label| !label.is_nan()));
            }
            batch.retain_from(first, |label| !label.is_nan());
        }
        self.finish(batch, first);
        Ok(())
    }

    /// Decodes rows before `end`, from the last to the first, as long as they have the usual shape and no fault; returns
    /// the end of those that are left.
    #[inline]
    fn decode_run(
        &mut self,
        page: &mut impl PageRows,
        end: usize,
        uniform: &Uniform,
        rows: &mut RowsMut<'_>,
    ) -> Result<usize> {
        let (labels, arrays, stride) = rows.parts_mut();
        self.values.resize(self.values.len().max(end), Datum::null());
        let run = page.copy_run(end, uniform, Destination { values: &mut self.values, arrays, stride });
        if !run.finite {
            return Ok(end); // row by row, then, to find the one at fault
        }
        for i in (run.first..end).rev() {
            labels[i] = self.labels.read(self.values[i]).map_err(|fault| fault.at(page.at(i)))?;
        }
        Ok(run.first)
    }

    /// Decodes one row into `batch`.
    pub fn decode_row(&mut self, batch: &mut Batch, row: Row<'_>, at: RowAt) -> Result<()> {
        let first = batch.len();
        self.row_weights.clear();
        let appended = if self.is_sparse() {
            self.shape_sparse(batch);
            self.append_sparse(batch, row)
        } else {
            self.append_dense(batch, row)
        };
        match appended {
            Ok(weight) => self.row_weights.extend(weight),
            Err(AppendError::Row(fault)) => return Err(fault.at(at)),
            Err(AppendError::Other(error)) => return Err(error),
        }
        self.finish(batch, first);
        Ok(())
    }

    /// Appends a dense row; gives its weight, or None if it is left out.
    fn append_dense(&mut self, batch: &mut Batch, row: Row<'_>) -> std::result::Result<Option<f32>, AppendError> {
        if !self.shape_dense(batch, row) {
            self.decode(row, &mut [])?;
            return Ok(None);
        }
        let last = batch.len();
        match self.decode(row, batch.push(0.0)?)? {
            Some((label, weight)) => {
                batch.labels_mut()[last] = label;
                Ok(Some(weight))
            }
            None => {
                batch.truncate(last);
                Ok(None)
            }
        }
    }

    /// Makes `batch` one for our number of features, which is that of the first feature array that comes along. False if
    /// it is still not known.
    #[inline]
    fn shape_dense(&mut self, batch: &mut Batch, row: Row<'_>) -> bool {
        let first = self.first_feature();
        self.features.learn_dim(row, first);
        match self.features.dense_dim() {
            Some(dim) if batch.is_empty() && (batch.is_sparse() || batch.dim() != dim) => {
                *batch = Batch::dense(dim);
                batch.set_weighted(self.is_weighted());
            }
            Some(_) if batch.is_empty() && batch.weights().is_some() != self.is_weighted() => {
                batch.set_weighted(self.is_weighted());
            }
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Makes `batch` one for sparse tuples.
    fn shape_sparse(&self, batch: &mut Batch) {
        if batch.is_empty() && (!batch.is_sparse() || batch.weights().is_some() != self.is_weighted()) {
            *batch = self.features.sparse_batch();
            batch.set_weighted(self.is_weighted());
        }
    }

    /// Decodes one row in place: all but the label and the weight, which are given back.
    #[inline(always)]
    fn decode(&mut self, row: Row<'_>, out: &mut [f32]) -> Decoded {
        let first = self.first_feature();
        if first == 1 && row.get(0).is_none() {
            return self.null(RowFault::NullLabel);
        }
        match &mut self.features {
            Features::Array { reader, .. } => {
                let Some(array) = row.get(first) else { return self.null(RowFault::NullFeatures) };
                if out.is_empty() {
                    // no array so far had a length to go by
                    let fault = reader.len(array).err().unwrap_or(ArrayFault::Length(0));
                    return self.array_fault(fault, 0);
                }
                if let Err(fault) = reader.read(array, out) {
                    return self.array_fault(fault, out.len());
                }
            }
            Features::Columns { types, names } => {
                for (i, (number, place)) in types.iter().zip(out).enumerate() {
                    let Some(value) = row.get(first + i) else {
                        let name = names[i].clone();
                        return self.null(RowFault::NullFeature(name));
                    };
                    *place = match narrow(number.read(value)) {
                        Ok(value) => value,
                        Err(fault) => return Err(number_fault(fault, names[i].clone())),
                    };
                }
            }
            Features::Mixed(columns) => match columns.prepare(row, first, out) {
                Ok(()) => {}
                Err(MixedFault::Null(name)) => return self.null(RowFault::NullFeature(name)),
                Err(MixedFault::Row(fault)) => return Err(fault),
            },
            Features::Sparse(_) => {} // never dense
        }
        self.label_and_weight(row)
    }

    /// Label and weight of a row, which are all that is left to be read.
    #[inline(always)]
    fn label_and_weight(&mut self, row: Row<'_>) -> Decoded {
        let weight = match &self.weight {
            None => 1.0,
            Some(weight) => match row.get(weight.place) {
                Some(value) => weight.read(value)?,
                None => return self.null(RowFault::NullWeight),
            },
        };
        match row.get(0) {
            Some(label) if self.labels.are_read() => Ok(Some((self.labels.read(label)?, weight))),
            _ => Ok(Some((0.0, weight))),
        }
    }

    /// Appends a sparse row; gives its weight, or None if it is left out.
    #[inline(always)]
    fn append_sparse(&mut self, batch: &mut Batch, row: Row<'_>) -> std::result::Result<Option<f32>, AppendError> {
        let first = self.first_feature();
        if first == 1 && row.get(0).is_none() {
            return self.left_out(RowFault::NullLabel);
        }
        let last = batch.len();
        match &mut self.features {
            Features::Sparse(columns) => {
                let (Some(indices), Some(values)) = (row.get(first), row.get(first + 1)) else {
                    return self.left_out(RowFault::NullFeatures);
                };
                match columns.read(indices, values, 0.0, batch) {
                    Ok(()) => {}
                    Err(SparseError::Null(fault)) => return self.left_out(fault),
                    Err(SparseError::Row(fault)) => return Err(Box::new(fault).into()),
                    Err(SparseError::OutOfMemory(e)) => return Err(e.into()),
                }
            }
            Features::Mixed(columns) => match columns.read(row, first) {
                Ok(entries) => sparse::push(batch, 0.0, entries)?,
                Err(MixedFault::Null(name)) => return self.left_out(RowFault::NullFeature(name)),
                Err(MixedFault::Row(fault)) => return Err(fault.into()),
            },
            _ => return Ok(None), // never sparse
        }
        match self.label_and_weight(row)? {
            Some((label, weight)) => {
                batch.labels_mut()[last] = label;
                Ok(Some(weight))
            }
            None => {
                batch.truncate(last);
                Ok(None)
            }
        }
    }

    /// Weighs and standardizes the tuples that were appended from `first` on. The rows' own weights are in `row_weights`,
    /// unless there is no column of them.
    #[inline]
    fn finish(&mut self, batch: &mut Batch, first: usize) {
        if self.preparing || first == batch.len() {
            return;
        }
        if self.is_weighted() {
            self.weigh(batch, first);
        }
        if let Some(scaler) = &self.scaler {
            scaler.apply(batch, first..batch.len());
        }
    }

    fn weigh(&mut self, batch: &mut Batch, first: usize) {
        for i in first..batch.len() {
            let own = if self.weight.is_some() { self.row_weights[i - first] } else { 1.0 };
            let weight = own * self.labels.weight(batch.label(i));
            self.heaviest = self.heaviest.max(weight);
            batch.weights_mut()[i] = weight;
        }
    }

    #[cold]
    fn null(&mut self, fault: RowFault) -> Decoded {
        match self.nulls {
            Nulls::Error => Err(Box::new(fault)),
            Nulls::Skip => {
                self.skipped += 1;
                Ok(None)
            }
        }
    }

    #[cold]
    fn left_out(&mut self, fault: RowFault) -> std::result::Result<Option<f32>, AppendError> {
        Ok(self.null(fault)?.map(|(_, weight)| weight))
    }

    #[cold]
    fn array_fault(&mut self, fault: ArrayFault, expected: usize) -> Decoded {
        Err(match fault {
            ArrayFault::Null(i) => return self.null(RowFault::NullFeature(self.features.name(i - 1))),
            ArrayFault::Number(i, fault) => number_fault(fault, self.features.name(i - 1)),
            ArrayFault::Length(0) => Box::new(RowFault::Empty),
            ArrayFault::Length(found) => Box::new(RowFault::Length(found, expected)),
            ArrayFault::Dimensions(n) => Box::new(RowFault::Dimensions(n)),
        })
    }
}

impl Weight {
    #[inline]
    fn read(&self, value: Datum) -> std::result::Result<f32, Box<RowFault>> {
        let weight = narrow(self.number.read(value)).map_err(|fault| {
            Box::new(match fault {
                NumberFault::NotFinite(value) => RowFault::WeightNotFinite(value),
                NumberFault::OutOfRange(value) => RowFault::WeightOutOfRange(value),
            })
        })?;
        if weight < 0.0 { Err(Box::new(RowFault::NegativeWeight(weight.into()))) } else { Ok(weight) }
    }
}

/// The label of a row that is to be left out.
const SKIPPED: f32 = f32::NAN;

#[cold]
fn number_fault(fault: NumberFault, name: String) -> Box<RowFault> {
    Box::new(match fault {
        NumberFault::NotFinite(value) => RowFault::NotFinite(name, value),
        NumberFault::OutOfRange(value) => RowFault::OutOfRange(name, value),
    })
}
