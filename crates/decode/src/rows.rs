//! How rows become tuples: page by page, the usual rows fast, and with a reason for each row that becomes no tuple.

use super::category_column::MixedFault;
use super::columns::FIRST_FEATURE;
use super::features::FeatureColumns;
use super::row_groups::{GroupFault, HELD_OUT};
use super::sparse::{self, SparseError};
use super::tuple_decoder::{Decoder, SKIPPED};
use errors::{Error, Result, RowAt, RowFault};
use options::rows::Nulls;
use pg::catalog::names::place_of;
use pg::check_for_interrupts;
use pg::tuples::fixed_layout::{Destination, Run, Uniform};
use pg::tuples::row::Row;
use pg::values::array::ArrayFault;
use pg::values::number::{NumberType, narrow};
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use tuples::{Batch, RowsMut};

pub trait PageRows {
    fn len(&self) -> usize;
    /// The wanted columns of row `i`: label, features, weight.
    fn row(&mut self, i: usize) -> Row<'_>;
    /// Where row `i` stands.
    fn at(&self, i: usize) -> RowAt;
    /// Where rows have label and features if these are a vector of `len` numbers of fixed length, and no columns are in
    /// their way.
    fn uniform(&self, vectors: VectorReader, len: usize) -> Option<Uniform>;
    /// The same if the features are columns of such numbers.
    fn uniform_columns(&self, numbers: &[NumberType]) -> Option<Uniform>;
    /// Copies labels and features of the rows before `end`, from the last to the first, until one is not as `uniform`
    /// says.
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run;
    /// Row `i` is being read, the rows behind it have been: time to fetch a share of the next page.
    fn prefetch_next(&self, i: usize);
}

/// Label and weight of a row that has become a tuple, or None if it is to be left out.
type LabelAndWeight = std::result::Result<Option<(f32, f32)>, Box<RowFault>>;

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

impl Decoder {
    /// Decodes all rows of a page into `batch`, which gets its shape if it is new.
    pub fn decode_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        match () {
            _ if self.is_sparse() => self.sparse_page(batch, page),
            _ if self.has_mini_batches() => self.page_of_mini_batches(batch, page),
            _ => self.dense_page(batch, page),
        }
    }

    fn page_of_mini_batches(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        let first = batch.len();
        self.group_tags.clear();
        for i in 0..page.len() {
            let at = page.at(i);
            self.append_mini_batch(batch, page.row(i), at)?;
            check_for_interrupts();
        }
        self.finish(batch, first);
        Ok(())
    }

    fn sparse_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        if self.features.lack_dim() {
            (0..page.len()).any(|i| self.features.learn_dim(page.row(i)));
        }
        self.shape_sparse(batch);
        let first = batch.len();
        self.begin_columns();
        for i in 0..page.len() {
            // the next page is fetched as if this one were read from its end
            page.prefetch_next(page.len() - 1 - i);
            match self.append_sparse(batch, page.row(i)) {
                Ok(Some(weight)) => {
                    self.push_columns(weight, || page.at(i));
                }
                Ok(None) => self.skip_in_group(page.row(i)),
                Err(AppendError::Row(fault)) => return Err(fault.at(place_of(page.at(i))).into()),
                Err(AppendError::Other(error)) => return Err(error),
            }
        }
        self.finish(batch, first);
        Ok(())
    }

    fn dense_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        if self.features.dense_dim().is_none() {
            (0..page.len()).any(|i| self.features.learn_dim(page.row(i)));
        }
        if page.len() == 0 || !self.shape_dense(batch) {
            // The number of features is still unknown: every row has a fault, or the page has no row.
            return (0..page.len()).try_for_each(|i| {
                self.decode(page.row(i), &mut []).map_err(|fault| fault.at(place_of(page.at(i))).into()).map(|_| ())
            });
        }
        let first = batch.len();
        let weights = if self.weight.is_some() { page.len() } else { 0 };
        allocation::resize(&mut self.row_weights, weights, 1.0);
        self.group_tags.clear();
        let tags = if self.row_groups.is_some() { page.len() } else { 0 };
        allocation::resize(&mut self.group_tags, tags, 0);
        self.exact_labels.clear();
        allocation::resize(&mut self.exact_labels, if self.is_exact { page.len() } else { 0 }, 0.0);
        let mut rows = batch.extend(page.len())?;
        let skipped = self.dense_rows(page, &mut rows)?;
        if let Some(row_groups) = &self.row_groups {
            self.group_tags.iter_mut().enumerate().for_each(|(i, tag)| *tag |= row_groups.of_place(page.at(i)));
        }
        if skipped {
            self.remove_skipped(batch, first);
        }
        self.finish(batch, first);
        Ok(())
    }

    /// Decodes the rows of a page from the last to the first: PostgreSQL adds tuples to a page from its end, so that
    /// their addresses ascend in this order. True if some are to be left out, whose labels say so.
    #[inline]
    fn dense_rows(&mut self, page: &mut impl PageRows, rows: &mut RowsMut<'_>) -> Result<bool> {
        let uniform = match &self.features {
            FeatureColumns::Array { reader, dim: Some(dim), .. } => page.uniform(*reader, *dim),
            FeatureColumns::Columns { types, .. } => page.uniform_columns(types),
            _ => None,
        };
        let mut skipped = false;
        let mut end = page.len();
        while end > 0 {
            if let Some(uniform) = &uniform {
                end = self.decode_run(page, end, uniform, rows)?;
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
                    self.group_tags.get_mut(i).into_iter().for_each(|place| *place = self.group_tag);
                    self.exact_labels.get_mut(i).into_iter().for_each(|place| *place = self.exact_label);
                    label
                }
                Ok(None) => {
                    self.skip_in_group(page.row(i));
                    skipped = true;
                    SKIPPED
                }
                Err(fault) => return Err(fault.at(place_of(page.at(i))).into()),
            };
        }
        Ok(skipped)
    }

    /// Removes the rows from `first` on that are to be left out, whose labels say so.
    fn remove_skipped(&mut self, batch: &mut Batch, first: usize) {
        let labels = &batch.labels()[first..];
        let is_kept = || {
            let mut labels = labels.iter();
            move || labels.next().is_some_and(|label| !label.is_nan())
        };
        let (mut of_tags, mut of_weights, mut of_exact) = (is_kept(), is_kept(), is_kept());
        // each is as long as the page, or empty
        self.group_tags.retain(|_| of_tags());
        self.row_weights.retain(|_| of_weights());
        self.exact_labels.retain(|_| of_exact());
        batch.retain_from(first, |label| !label.is_nan());
    }

    /// Decodes rows before `end`, from the last to the first, as long as they have the usual shape and no fault;
    /// returns the end of those that are left.
    #[inline]
    fn decode_run(
        &mut self,
        page: &mut impl PageRows,
        end: usize,
        uniform: &Uniform,
        rows: &mut RowsMut<'_>,
    ) -> Result<usize> {
        let (labels, vectors, stride) = rows.parts_mut();
        self.values.resize(self.values.len().max(end), 0);
        let run = page.copy_run(end, uniform, Destination { values: &mut self.values, vectors, stride });
        if !run.finite {
            return Ok(end); // row by row, then, to find the one at fault
        }
        for i in (run.first..end).rev() {
            let label = uniform.value(self.values[i]);
            labels[i] = self.labels.read(label).map_err(|fault| fault.at(place_of(page.at(i))))?;
            if let Some(exact) = self.exact_labels.get_mut(i) {
                *exact = self.labels.exact(label);
            }
        }
        Ok(run.first)
    }

    pub fn decode_row(&mut self, batch: &mut Batch, row: Row<'_>, at: RowAt) -> Result<()> {
        let first = batch.len();
        if !self.finishes_later {
            self.begin_columns();
        }
        if self.has_mini_batches() {
            self.append_mini_batch(batch, row, at)?;
            self.finish(batch, first);
            return Ok(());
        }
        let appended = if self.is_sparse() {
            self.features.learn_dim(row);
            self.shape_sparse(batch);
            self.append_sparse(batch, row)
        } else {
            self.append_dense(batch, row)
        };
        match appended {
            Ok(None) => self.skip_in_group(row),
            Ok(Some(weight)) => {
                self.push_columns(weight, || at);
            }
            Err(AppendError::Row(fault)) => return Err(fault.at(place_of(at)).into()),
            Err(AppendError::Other(error)) => return Err(error),
        }
        self.finish(batch, first);
        Ok(())
    }

    /// Appends a dense row; gives its weight, or None if it is left out.
    fn append_dense(&mut self, batch: &mut Batch, row: Row<'_>) -> std::result::Result<Option<f32>, AppendError> {
        self.features.learn_dim(row);
        if !self.shape_dense(batch) {
            self.decode(row, &mut [])?;
            return Ok(None);
        }
        let last = batch.len();
        let decoded = self.decode(row, batch.push(0.0)?)?;
        Ok(settle(batch, last, decoded))
    }

    /// Makes `batch` one for our number of features. False if it is still not known.
    #[inline]
    fn shape_dense(&self, batch: &mut Batch) -> bool {
        match self.features.dense_dim() {
            Some(dim) if batch.is_empty() && (batch.is_sparse() || batch.dim() != dim) => {
                batch.become_dense(dim);
                self.shape_others(batch);
            }
            Some(_) if batch.is_empty() && !self.fits_others(batch) => self.shape_others(batch),
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Makes `batch` one for the tuples that rows become, as far as that is known.
    pub fn shape(&self, batch: &mut Batch) {
        match &self.features {
            _ if self.is_sparse() => self.shape_sparse(batch),
            FeatureColumns::Compressed(column) => {
                column.dim().into_iter().for_each(|dim| self.shape_mini_batches(batch, dim))
            }
            _ => {
                self.shape_dense(batch);
            }
        }
    }

    fn shape_sparse(&self, batch: &mut Batch) {
        if batch.is_empty() && (!batch.is_sparse() || !self.fits_others(batch)) {
            batch.become_sparse(self.features.sparse_dim());
            self.shape_others(batch);
        } else if let FeatureColumns::Sparse(columns) = &self.features {
            batch.set_dim(columns.fixed_dim().unwrap_or_default());
        }
    }

    /// Has `batch` weights and group tags exactly if tuples have some?
    fn fits_others(&self, batch: &Batch) -> bool {
        batch.weights().is_some() == self.is_weighted()
            && batch.tags().is_some() == self.row_groups.is_some()
            && batch.exact_labels().is_some() == self.is_exact
    }

    fn shape_others(&self, batch: &mut Batch) {
        batch.set_weighted(self.is_weighted());
        batch.set_tagged(self.row_groups.is_some());
        batch.set_exact(self.is_exact);
    }

    /// Forgets what was kept of the rows of a page.
    pub(super) fn begin_columns(&mut self) {
        self.row_weights.clear();
        self.group_tags.clear();
        self.exact_labels.clear();
    }

    /// Keeps weight, group tag and exact label of the row that was just appended until the end of the page.
    #[inline(always)]
    fn push_columns(&mut self, weight: f32, at: impl FnOnce() -> RowAt) {
        self.row_weights.push(weight);
        if self.is_exact {
            self.exact_labels.push(self.exact_label);
        }
        if let Some(row_groups) = &self.row_groups {
            self.group_tags.push(self.group_tag | row_groups.of_place(at()));
        }
    }

    /// Decodes the features of a row in place, and returns its label and weight.
    #[inline(always)]
    fn decode(&mut self, row: Row<'_>, out: &mut [f32]) -> LabelAndWeight {
        let Some(label) = row.get(0) else { return self.null(RowFault::NullLabel) };
        match &mut self.features {
            FeatureColumns::Array { reader, .. } => {
                let Some(array) = row.get(FIRST_FEATURE) else { return self.null(RowFault::NullFeatures) };
                if out.is_empty() {
                    // no array so far had a length to go by
                    let fault = reader.len(array).err().unwrap_or(ArrayFault::Length(0));
                    return self.array_fault(fault, 0);
                }
                if let Err(fault) = reader.read(array, out) {
                    let read = match (&mut self.imputation, fault) {
                        (Some(imputation), ArrayFault::Null(_)) => imputation.read_array(*reader, array, out),
                        (_, fault) => Err(fault),
                    };
                    if let Err(fault) = read {
                        return self.array_fault(fault, out.len());
                    }
                }
            }
            FeatureColumns::Columns { types, names } => {
                for (i, (number, place)) in types.iter().zip(out).enumerate() {
                    let Some(value) = row.get(FIRST_FEATURE + i) else {
                        match self.imputation.as_mut().and_then(|imputation| imputation.value(i)) {
                            Some(value) => *place = value,
                            None => {
                                let name = names[i].clone();
                                return self.null(RowFault::NullFeature(name));
                            }
                        }
                        continue;
                    };
                    *place = match narrow(number.read(value)) {
                        Ok(value) => value,
                        Err(fault) => return Err(Box::new(RowFault::of_number(fault, names[i].clone()))),
                    };
                }
            }
            FeatureColumns::Mixed(columns) => {
                let read = match columns.has_lengths() {
                    true => columns.prepare(row, FIRST_FEATURE, out, self.imputation.as_mut()),
                    false => Err(columns.no_length(row, FIRST_FEATURE)),
                };
                match read {
                    Ok(()) => {}
                    Err(MixedFault::Null(name)) => return self.null(RowFault::NullFeature(name)),
                    Err(MixedFault::NoLength) => return self.null(RowFault::NullFeatures),
                    Err(MixedFault::Row(fault)) => return Err(fault),
                }
            }
            FeatureColumns::Sparse(_) | FeatureColumns::Compressed(_) => {} // never dense
        }
        let decoded = self.label_and_weight(label, row)?;
        self.end_imputation(decoded.is_some());
        Ok(decoded)
    }

    /// Counts what was imputed in the row under way.
    #[inline(always)]
    fn end_imputation(&mut self, is_tuple: bool) {
        if let Some(imputation) = &mut self.imputation
            && imputation.has_nulls()
        {
            let has_groups = self.row_groups.as_ref().is_some_and(|row_groups| row_groups.has_groups());
            imputation.end_row(is_tuple, has_groups.then_some((self.group_tag & !HELD_OUT) as usize));
        }
    }

    /// Label and weight of a row, which are all that is left to be read.
    #[inline(always)]
    fn label_and_weight(&mut self, label: TypedDatum<'_>, row: Row<'_>) -> LabelAndWeight {
        let weight = match &self.weight {
            None => 1.0,
            Some(weight) => match row.get(weight.place) {
                Some(value) => weight.read(value)?,
                None => return self.null(RowFault::NullWeight),
            },
        };
        if let Some(row_groups) = &mut self.row_groups {
            self.group_tag = match row_groups.of_row(row) {
                Ok(tag) => tag,
                Err(GroupFault::Null(fault)) => return self.null(fault),
                Err(GroupFault::Row(fault)) => return Err(fault),
            };
        }
        if self.is_exact {
            self.exact_label = self.labels.exact(label);
        }
        Ok(Some((self.labels.read(label)?, weight)))
    }

    /// Appends a sparse row; gives its weight, or None if it is left out.
    #[inline(always)]
    fn append_sparse(&mut self, batch: &mut Batch, row: Row<'_>) -> std::result::Result<Option<f32>, AppendError> {
        let Some(label) = row.get(0) else { return self.left_out(RowFault::NullLabel) };
        let last = batch.len();
        let has_unseen = match &mut self.features {
            FeatureColumns::Sparse(columns) => match columns.read(row, 0.0, batch) {
                Ok(has_dropped) => has_dropped,
                Err(SparseError::Null(fault)) => return self.left_out(fault),
                Err(SparseError::Row(fault)) => return Err(Box::new(fault).into()),
                Err(SparseError::OutOfMemory(e)) => return Err(e.into()),
            },
            FeatureColumns::Mixed(columns) => match columns.read(row, FIRST_FEATURE, self.imputation.as_mut()) {
                Ok(entries) => {
                    sparse::push(batch, 0.0, entries)?;
                    columns.has_unseen()
                }
                Err(MixedFault::Null(name)) => return self.left_out(RowFault::NullFeature(name)),
                Err(MixedFault::NoLength) => return self.left_out(RowFault::NullFeatures),
                Err(MixedFault::Row(fault)) => return Err(fault.into()),
            },
            _ => return Ok(None), // never sparse
        };
        let decoded = self.label_and_weight(label, row)?;
        self.end_imputation(decoded.is_some());
        self.counts.unseen += u64::from(has_unseen && decoded.is_some());
        Ok(settle(batch, last, decoded))
    }

    #[cold]
    fn null(&mut self, fault: RowFault) -> LabelAndWeight {
        match self.nulls {
            Nulls::Error => Err(Box::new(fault)),
            // a mean that is not known is no reason to lose the row in silence
            Nulls::Impute if matches!(fault, RowFault::NullFeature(_)) => Err(Box::new(fault)),
            Nulls::Skip | Nulls::Impute => {
                self.counts.skipped += 1;
                Ok(None)
            }
        }
    }

    #[cold]
    fn left_out(&mut self, fault: RowFault) -> std::result::Result<Option<f32>, AppendError> {
        Ok(self.null(fault)?.map(|(_, weight)| weight))
    }

    #[cold]
    fn array_fault(&mut self, fault: ArrayFault, expected: usize) -> LabelAndWeight {
        match RowFault::of_vector(fault, expected, |i| self.features.name(i - 1)) {
            fault @ RowFault::NullFeature(_) => self.null(fault),
            fault => Err(Box::new(fault)),
        }
    }
}

/// Gives the last tuple, in place `last`, its label and returns its weight; takes it back if it is to be left out.
#[inline(always)]
fn settle(batch: &mut Batch, last: usize, label_and_weight: Option<(f32, f32)>) -> Option<f32> {
    match label_and_weight {
        Some((label, weight)) => {
            batch.labels_mut()[last] = label;
            Some(weight)
        }
        None => {
            batch.truncate(last);
            None
        }
    }
}
