//! Compressed mini-batches: a column of type corgipile.toc with the features, and one with an array of their labels.

use super::rows::FIRST_FEATURE;
use super::{Decoder, MAX_WEIGHTS};
use crate::errors::{DecoderError, Result, RowAt, RowFault};
use crate::pg::catalog::relation::place_of;
use crate::pg::tuples::row::Row;
use crate::pg::values::array::{AnyArray, ArrayFault};
use crate::pg::values::varlena::with_bytes;
use std::rc::Rc;
use tuples::{Batch, Matrix, MiniBatch};

/// The two columns.
pub struct CompressedColumn {
    /// features, once they are known
    dim: Option<usize>,
    name: String,
    label: String,
    labels: AnyArray,
    /// for products that are looked at in passing
    scratch: Vec<f32>,
}

impl CompressedColumn {
    /// Features in column `name`, as many as `dim` if that is known, and labels in arrays.
    pub fn new(name: &str, dim: Option<usize>, label: &str, labels: AnyArray) -> CompressedColumn {
        CompressedColumn { dim, name: name.to_owned(), label: label.to_owned(), labels, scratch: Vec::new() }
    }

    /// Features, once they are known.
    pub fn dim(&self) -> Option<usize> {
        self.dim
    }

    /// Says how many features there are.
    pub fn set_dim(&mut self, dim: Option<usize>) {
        self.dim = dim;
    }

    /// Unpacks the features, of which none may be infinite or NaN.
    fn matrix(&mut self, bytes: &[u8]) -> std::result::Result<Box<dyn Matrix>, RowFault> {
        let damaged = |error: toc::Error| RowFault::Compressed(error.to_string());
        // a few bytes may say that there are a great many columns
        let columns = toc::info(bytes).map_err(damaged)?.columns;
        if columns > MAX_WEIGHTS {
            return Err(RowFault::TooManyColumns { columns, limit: MAX_WEIGHTS });
        }
        let matrix = toc::matrix(bytes).map_err(damaged)?;
        let expected = *self.dim.get_or_insert(matrix.columns());
        if matrix.columns() != expected {
            return Err(RowFault::Length(matrix.columns(), expected));
        }
        // the sum of each row is finite, unless an entry is not or the sum is too large
        let (ones, mut sums) = (vec![1.0; matrix.columns()], vec![0.0; matrix.rows()]);
        matrix.times_vector(&ones, &mut sums, &mut self.scratch);
        if sums.iter().all(|sum| sum.is_finite()) {
            return Ok(matrix);
        }
        let rows = toc::decode(bytes).map_err(damaged)?;
        for row in 0..rows.len() {
            let (columns, values) = rows.row(row);
            if let Some((column, value)) = columns.iter().zip(values).find(|(_, value)| !(**value as f32).is_finite()) {
                let name = format!("{}[{}] of row {} of the mini-batch", self.name, column + 1, row + 1);
                return Err(match value.is_finite() {
                    true => RowFault::OutOfRange(name, *value),
                    false => RowFault::NotFinite(name, *value),
                });
            }
        }
        Ok(matrix)
    }
}

impl Decoder {
    /// Appends the mini-batch of a row, or leaves it out and counts all its tuples as skipped.
    ///
    /// # Errors
    /// What is wrong with the row, or [`ResourceError::OutOfMemory`].
    pub(super) fn append_block(&mut self, batch: &mut Batch, row: Row<'_>, at: RowAt) -> Result<()> {
        let faulty = |fault: RowFault| Box::new(fault).at(place_of(at));
        let Some(label) = row.get(0) else { return self.leave_out_block(RowFault::NullLabel, 1, at) };
        let Some(features) = row.get(FIRST_FEATURE) else {
            return self.leave_out_block(RowFault::NullFeatures, 1, at);
        };
        let super::Features::Compressed(columns) = &mut self.features else { return Ok(()) };
        // the specification says that the column is of type corgipile.toc
        let matrix = with_bytes(features, |bytes| columns.matrix(bytes)).map_err(faulty)?;
        let (rows, labels) = (matrix.rows(), &mut self.labels);
        let read = columns.labels.with_elements(label, |elements| {
            if elements.len() != rows {
                return Err(Box::new(RowFault::LabelCount(elements.len(), rows)));
            }
            // what is left out is not looked at: its classes are not met
            match elements.iter().position(Option::is_none) {
                Some(null) => Err(Box::new(RowFault::NullElement(columns.label.clone(), null + 1))),
                None => elements.iter().flatten().map(|element| labels.read(*element)).collect(),
            }
        });
        let malformed = |fault| match fault {
            ArrayFault::Dimensions(n) => RowFault::ColumnDimensions(columns.label.clone(), n),
            _ => RowFault::LabelCount(0, rows),
        };
        let values: Vec<f32> = match read.unwrap_or_else(|fault| Err(Box::new(malformed(fault)))) {
            Ok(values) => values,
            Err(fault) if fault.is_null() => return self.leave_out_block(*fault, rows as u64, at),
            Err(fault) => return Err(fault.at(place_of(at)).into()),
        };
        let mut mini_batch = MiniBatch::new(matrix, values.into());
        if self.is_weighted() {
            let weights: Box<[f32]> = mini_batch.labels().iter().map(|label| self.labels.weight(*label)).collect();
            self.max_weight = weights.iter().copied().fold(self.max_weight, f32::max);
            mini_batch = mini_batch.with_weights(weights);
        }
        self.shape_mini_batches(batch, mini_batch.matrix().columns());
        batch.push_mini_batch(Rc::new(mini_batch))?;
        self.push_tag_at(at);
        Ok(())
    }

    /// A row with a NULL: an error, or so many tuples left out.
    fn leave_out_block(&mut self, fault: RowFault, tuples: u64, at: RowAt) -> Result<()> {
        match self.nulls {
            super::Nulls::Error => Err(DecoderError::Row { place: place_of(at), fault: Box::new(fault) }.into()),
            super::Nulls::Skip => {
                self.skipped += tuples;
                Ok(())
            }
        }
    }

    /// Makes `batch` one for blocks.
    pub(super) fn shape_mini_batches(&self, batch: &mut Batch, dim: usize) {
        let fits = batch.has_mini_batches() && batch.dim() == dim && batch.tags().is_some() == self.parts.is_some();
        if batch.is_empty() && !fits {
            batch.become_blocks(dim);
            batch.set_tagged(self.parts.is_some());
        }
    }

    /// Gives the last block its tag: which rows are held out is said by where they stand.
    fn push_tag_at(&mut self, at: RowAt) {
        if let Some(parts) = &self.parts {
            self.row_tags.push(parts.of_place(at));
        }
    }
}
