//! Rows that came in any order, for the one that shuffles them by other rules than a plan's.

use crate::batch::{Batch, Builder, Pieces, by_columns};
use crate::pieces::{Layout, Piece};
use arrow::array::RecordBatch;
use source::SourceError;

/// Rows of several batches, to be gathered from.
pub struct Pile {
    pieces: Vec<Pieces>,
}

impl Pile {
    /// These batches, numbered from 0. Where their columns are numbers already, nothing is copied.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] if a batch has other columns than the layout.
    pub fn new(layout: &Layout, batches: &[RecordBatch]) -> Result<Pile, SourceError> {
        let pieces =
            batches.iter().map(|batch| Piece::new(layout, batch, &|_| String::new())).collect::<Result<Vec<_>, _>>()?;
        Ok(Pile { pieces: by_columns(pieces) })
    }

    /// A batch of the rows in these places, by the numbers of batch and row. Places must be there.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] if the values cannot be put together.
    pub fn gather(&self, layout: &Layout, places: &[(u32, u32)]) -> Result<Batch, SourceError> {
        let mut builder = Builder::new(layout, places.len());
        builder.gather(&self.pieces, places)?;
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Values};
    use arrow::array::{ArrayRef, Int32Array, StringArray};
    use std::sync::Arc;

    fn batch(numbers: &[i32]) -> RecordBatch {
        let text: StringArray = numbers.iter().map(|number| Some(number.to_string())).collect();
        let numbers: ArrayRef = Arc::new(Int32Array::from(numbers.to_vec()));
        RecordBatch::try_from_iter([("x", numbers), ("text", Arc::new(text) as ArrayRef)]).unwrap()
    }

    #[test]
    fn rows_of_several_piles_are_put_together_in_any_order() {
        let layout = Layout::new(&batch(&[]).schema()).unwrap();
        let first = Pile::new(&layout, &[batch(&[0, 1, 2]), batch(&[3, 4])]).unwrap();
        let second = Pile::new(&layout, &[batch(&[5])]).unwrap();
        let mut made = first.gather(&layout, &[(1, 1), (0, 0), (1, 0)]).unwrap();
        made.append(second.gather(&layout, &[(0, 0)]).unwrap()).unwrap();
        assert_eq!(made.rows, 4);
        assert_eq!(made.columns[0], Column::Fixed(Values::I4(vec![4, 0, 3, 5])));
        let Column::Object(text) = &made.columns[1] else { panic!() };
        assert_eq!(**text, StringArray::from(vec!["4", "0", "3", "5"]));
        assert!(Pile::new(&layout, &[batch(&[0]).project(&[0]).unwrap()]).is_err());
        assert_eq!(first.gather(&layout, &[]).unwrap().rows, 0);
        let narrow = batch(&[0]).project(&[0]).unwrap();
        let other = Layout::new(&narrow.schema()).unwrap();
        let narrow = Pile::new(&other, &[narrow]).unwrap().gather(&other, &[(0, 0)]).unwrap();
        assert!(made.append(narrow).is_err());
    }
}
