//! The stored tree, read and believed only after it was checked.

use crate::bytes::{Packed, Reader};
use crate::csr::check_backed;
use crate::values::{Values, check_used};
use crate::{Error, Info, limits};

/// I and D.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    pub(crate) values: Values<'a>,
    /// Columns of the pairs of the first layer.
    pub(crate) columns: Vec<u32>,
    /// Their values: places in `values`.
    pub(crate) places: Vec<u32>,
    /// Codes of each row: where they begin in `codes`, and where the last end.
    pub(crate) starts: Vec<u32>,
    /// The codes, nodes from 0.
    pub(crate) codes: Packed<'a>,
}

impl<'a> Stored<'a> {
    /// What follows the header of TOC. Codes are not checked here, but by [`unfold`](Stored::unfold) and
    /// [`Tree::new`](super::Tree::new).
    pub(crate) fn read(info: &Info, mut reader: Reader<'a>) -> Result<Stored<'a>, Error> {
        let values = Values::read(info, &mut reader)?;
        let first_layer = reader.u32()? as usize;
        let columns = reader.packed(first_layer)?;
        let places = reader.packed(first_layer)?;
        if columns.width() + places.width() == 0 && first_layer > 1 {
            return Err(Error::Malformed("a pair that occurs twice"));
        }
        check_used(&values, first_layer)?;
        let columns = columns.below(info.columns as u64, "a column that does not exist")?;
        let places = places.below(values.len() as u64, "a value that does not exist")?;
        let starts = reader.packed(info.rows)?.starts()?;
        let codes = reader.packed(starts[info.rows] as usize)?;
        check_backed(&codes, info.rows)?;
        reader.end()?;
        Ok(Stored { values, columns, places, starts, codes })
    }

    /// Codes that the rows have together.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }
}

pub(super) const UNKNOWN: Error = Error::Malformed("a code of a node that does not exist yet");
pub(super) const NOT_ASCENDING: Error = Error::Malformed("columns of a row that are not ascending");

/// That the rows have not too many entries together.
pub(super) fn check_entries(info: &Info, entries: u64) -> Result<(), Error> {
    limits::check(info.rows, info.columns, entries)
}
