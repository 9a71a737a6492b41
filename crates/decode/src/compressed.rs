//! Features that are compressed mini-batches: a column of type corgipile.toc, and one with an array of their labels.

use errors::RowFault;
use errors::limits::MAX_WEIGHTS;
use pg::values::array::AnyArray;
use tuples::{Matrix, PackedMatrix};

/// A matrix as it is computed with, and as it is stored.
type Both = (Box<dyn Matrix>, Box<dyn PackedMatrix>);

pub struct CompressedColumn {
    /// features, once they are known
    dim: Option<usize>,
    name: String,
    pub(super) label: String,
    pub(super) labels: AnyArray,
}

impl CompressedColumn {
    /// Features in column `name`, as many as `dim` if that is known, and labels in arrays.
    pub fn new(name: &str, dim: Option<usize>, label: &str, labels: AnyArray) -> CompressedColumn {
        CompressedColumn { dim, name: name.to_owned(), label: label.to_owned(), labels }
    }

    /// Features, once they are known.
    pub fn dim(&self) -> Option<usize> {
        self.dim
    }

    /// Sets the number of features.
    pub fn set_dim(&mut self, dim: Option<usize>) {
        self.dim = dim;
    }

    /// Opens a compressed matrix, and copies it to be kept as it is. No feature may be infinite or NaN.
    pub(super) fn matrix(&mut self, bytes: &[u8]) -> std::result::Result<Both, RowFault> {
        let damaged = |error: toc::Error| RowFault::Compressed(error.to_string());
        // a few bytes may say that there are a great many columns
        let columns = toc::info(bytes).map_err(damaged)?.columns;
        if columns > MAX_WEIGHTS {
            return Err(RowFault::TooManyColumns { columns, limit: MAX_WEIGHTS });
        }
        let (packed, matrix, all_finite) = toc::Packed::check(bytes).map_err(damaged)?;
        let expected = *self.dim.get_or_insert(matrix.columns());
        if matrix.columns() != expected {
            return Err(RowFault::Length(matrix.columns(), expected));
        }
        let both: Both = (matrix, Box::new(packed));
        if all_finite {
            return Ok(both);
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
        Ok(both)
    }
}
