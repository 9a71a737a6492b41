//! Rows that cannot be prepared, in elements whose other rows can.
//!
//! It guarantees that a job whose condition leaves such rows out has the others, and that any other job gets an error.

use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use preparing::{Callables, PrepareError, Prepared, Recipe};
use source::Cancel;
use std::ops::Range;

/// Which of an element's rows cannot be prepared, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damaged {
    /// by their numbers in the element
    rows: Vec<(usize, String)>,
}

impl Damaged {
    /// Why a job cannot have the rows of the element that it wants, all if there are no bits.
    pub(crate) fn why_not(&self, chosen: Option<&BooleanBuffer>) -> Option<&str> {
        let is_wanted = |row: usize| chosen.is_none_or(|bits| row < bits.len() && bits.value(row));
        self.rows.iter().find(|(row, _)| is_wanted(*row)).map(|(_, why)| why.as_str())
    }
}

/// Prepares the rows of an element. What is said of one of them names it by its number in the data set.
pub(crate) fn prepare(
    recipe: &Recipe,
    batch: RecordBatch,
    rows: &Range<u64>,
    callables: Option<&dyn Callables>,
    cancel: &Cancel,
) -> Result<(RecordBatch, Damaged), String> {
    // if some were skipped, no one knows which
    let is_whole = batch.num_rows() as u64 == rows.end - rows.start;
    let named = |error: PrepareError| if is_whole { error.behind(rows.start) } else { error };
    let prepared = recipe.apply(batch, callables, cancel).map_err(|error| named(error).to_string())?;
    let Prepared { batch, damaged } = prepared;
    let of = |error: PrepareError| Some((error.row?, named(error).to_string()));
    Ok((batch, Damaged { rows: damaged.into_iter().filter_map(of).collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_damaged_rows_is_told_why() {
        let damaged = Damaged { rows: vec![(2, "two".into()), (9, "nine".into())] };
        let why = |bits: &[bool]| damaged.why_not(Some(&BooleanBuffer::from(bits.to_vec())));
        assert_eq!(damaged.why_not(None), Some("two"));
        assert_eq!(why(&[true, true, false, true, true, true, true, true, true, false]), None);
        assert_eq!(why(&[false, false, true, false, false, false, false, false, false, false]), Some("two"));
        assert_eq!(why(&[true, true, false, true, true, true, true, true, true, true]), Some("nine"));
        assert_eq!(Damaged::default().why_not(None), None);
    }
}
