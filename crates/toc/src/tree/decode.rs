//! Decompression. Every node but those of the first layer is a stretch of a row that was decoded before, so that
//! no node is ever walked: its entries are copied from there.

use super::Stored;
use super::read::{NOT_ASCENDING, UNKNOWN, check_entries};
use crate::{Error, Info, Number, Rows};

/// All entries of all rows, as in CSR.
pub(crate) struct Unfolded<T> {
    /// Where each row begins in the others, and where the last ends.
    pub(crate) starts: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl Stored<'_> {
    pub(crate) fn decode(&self, info: &Info) -> Result<Rows, Error> {
        let Unfolded { starts, columns, values } = self.unfold(info, self.len())?;
        Ok(Rows::from_parts(info.columns, starts, columns, values).without_zeros())
    }

    /// The rows, of about this many entries. Checks all that [`Tree::new`](super::Tree::new) checks.
    pub(crate) fn unfold<T: Number>(&self, info: &Info, entries: usize) -> Result<Unfolded<T>, Error> {
        let values: Vec<T> = self.values.to_vec();
        let first_values: Vec<T> = allocation::collect(self.places.iter().map(|place| values[*place as usize]));
        // of each node that is not of the first layer: where its stretch begins, and how long it is
        let mut stretches: Vec<(u32, u32)> = allocation::with_capacity(self.len());
        // as long as there is room, not as there are entries: `end` is where these end
        let mut columns: Vec<u32> = allocation::zeros(entries);
        let mut unfolded: Vec<T> = allocation::filled(T::ZERO, entries);
        let mut end = 0;
        let mut starts = allocation::with_capacity(info.rows + 1);
        starts.push(0);
        for ends in self.starts.windows(2) {
            let begin = end;
            let mut open: Option<(u32, u32)> = None;
            for code in ends[0]..ends[1] {
                let code = self.codes.get(code as usize) as usize;
                let at = end;
                let node = code.checked_sub(self.columns.len());
                let (from, length) = match node {
                    None => (0, 1),
                    Some(node) => *stretches.get(node).ok_or(UNKNOWN)?,
                };
                end += length as usize;
                if end > columns.len() {
                    check_entries(info, end as u64)?;
                    allocation::resize(&mut columns, end + end / 2, 0);
                    allocation::resize(&mut unfolded, end + end / 2, T::ZERO);
                }
                if node.is_none() {
                    (columns[at], unfolded[at]) = (self.columns[code], first_values[code]);
                } else {
                    // one by one: most are too short for a copy of memory to be worth its call
                    for i in 0..length as usize {
                        columns[at + i] = columns[from as usize + i];
                        unfolded[at + i] = unfolded[from as usize + i];
                    }
                }
                if at > begin && columns[at - 1] >= columns[at] {
                    return Err(NOT_ASCENDING);
                }
                // a node is known only after the code that follows its sequence
                stretches.extend(open.replace((at as u32, length + 1)));
            }
            starts.push(end);
        }
        check_entries(info, end as u64)?;
        columns.truncate(end);
        columns.shrink_to_fit();
        unfolded.truncate(end);
        unfolded.shrink_to_fit();
        Ok(Unfolded { starts, columns, values: unfolded })
    }
}
