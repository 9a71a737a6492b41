//! How a row with a compressed mini-batch is decoded.

use super::columns::FIRST_FEATURE;
use super::features::FeatureColumns;
use super::tuple_decoder::Decoder;
use errors::{DecoderError, Result, RowAt, RowFault};
use options::rows::Nulls;
use pg::catalog::names::place_of;
use pg::tuples::row::Row;
use pg::values::array::ArrayFault;
use pg::values::varlena::with_bytes;
use std::rc::Rc;
use tuples::{Batch, MiniBatch};

impl Decoder {
    /// Appends the mini-batch of a row, or leaves it out and counts all its tuples as skipped.
    pub(super) fn append_mini_batch(&mut self, batch: &mut Batch, row: Row<'_>, at: RowAt) -> Result<()> {
        let faulty = |fault: RowFault| Box::new(fault).at(place_of(at));
        let Some(label) = row.get(0) else { return self.leave_out_mini_batch(RowFault::NullLabel, 1, at) };
        let Some(features) = row.get(FIRST_FEATURE) else {
            return self.leave_out_mini_batch(RowFault::NullFeatures, 1, at);
        };
        let FeatureColumns::Compressed(columns) = &mut self.features else { return Ok(()) };
        // the specification says that the column is of type corgipile.toc
        let (matrix, packed) = with_bytes(features, |bytes| columns.matrix(bytes)).map_err(faulty)?;
        let (rows, labels, is_exact) = (matrix.rows(), &mut self.labels, self.is_exact);
        let mut exact: Vec<f64> = Vec::new();
        let read = columns.labels.with_elements(label, |elements| {
            if elements.len() != rows {
                return Err(Box::new(RowFault::LabelCount(elements.len(), rows)));
            }
            // a row that is left out is not read: its classes are not met
            match elements.iter().position(Option::is_none) {
                Some(null) => Err(Box::new(RowFault::NullElement(columns.label.clone(), null + 1))),
                None => {
                    let elements = || elements.iter().flatten();
                    let exact_of = elements().filter(|_| is_exact).map(|element| labels.exact(*element));
                    allocation::extend(&mut exact, exact_of);
                    elements().map(|element| labels.read(*element)).collect()
                }
            }
        });
        let malformed = |fault| match fault {
            ArrayFault::Dimensions(n) => RowFault::ColumnDimensions(columns.label.clone(), n),
            _ => RowFault::LabelCount(0, rows),
        };
        let mut values: Vec<f32> = match read.unwrap_or_else(|fault| Err(Box::new(malformed(fault)))) {
            Ok(values) => values,
            Err(fault) if fault.is_null() => return self.leave_out_mini_batch(*fault, rows as u64, at),
            Err(fault) => return Err(fault.at(place_of(at)).into()),
        };
        if let Some(target) = self.learned.target.as_ref().filter(|_| !self.preparing) {
            values.iter_mut().for_each(|label| *label = target.apply(*label));
        }
        let mut mini_batch = MiniBatch::new(matrix, values.into()).with_packed(packed);
        if is_exact {
            mini_batch = mini_batch.with_exact_labels(exact.into());
        }
        if let Some(factors) = self.learned.factors.as_ref().filter(|_| !self.preparing) {
            let weights = mini_batch.labels().iter().map(|label| factors.of(0, self.labels.class(*label)) as f32);
            let weights: Box<[f32]> = allocation::collect(weights).into();
            mini_batch = mini_batch.with_weights(weights);
        }
        self.shape_mini_batches(batch, mini_batch.columns());
        batch.push_mini_batch(Rc::new(mini_batch))?;
        self.counts.decoded += rows as u64;
        self.push_tag_at(at);
        Ok(())
    }

    /// Handles a row with a NULL: it is an error, or this many tuples are left out.
    fn leave_out_mini_batch(&mut self, fault: RowFault, tuples: u64, at: RowAt) -> Result<()> {
        match self.nulls {
            Nulls::Error => Err(DecoderError::Row { place: place_of(at), fault: Box::new(fault) }.into()),
            Nulls::Skip | Nulls::Impute => {
                self.counts.skipped += tuples;
                Ok(())
            }
        }
    }

    pub(super) fn shape_mini_batches(&self, batch: &mut Batch, dim: usize) {
        let fits =
            batch.has_mini_batches() && batch.dim() == dim && batch.tags().is_some() == self.row_groups.is_some();
        if batch.is_empty() && !fits {
            batch.become_blocks(dim);
            batch.set_tagged(self.row_groups.is_some());
        }
    }

    /// Keeps the group tag of the last mini-batch, which depends on its place only.
    fn push_tag_at(&mut self, at: RowAt) {
        if let Some(row_groups) = &self.row_groups {
            self.group_tags.push(row_groups.of_place(at));
        }
    }
}
