//! Decompression. Every node but those of the first layer is a stretch of a row that was decoded before, so that
//! no node is ever walked: its entries are copied from there.

use super::Stored;
use crate::{Error, Info, Rows, limits};

impl Stored<'_> {
    pub(crate) fn decode(&self, info: &Info) -> Result<Rows, Error> {
        let values: Vec<f64> = self.values.to_vec();
        let first_values: Vec<f64> = allocation::collect(self.places.iter().map(|place| values[*place as usize]));
        // of each node that is not of the first layer: where its stretch begins, and how long it is
        let mut stretches: Vec<(u32, u32)> = allocation::with_capacity(self.codes.len());
        let mut indices: Vec<u32> = allocation::with_capacity(self.codes.len());
        let mut decoded: Vec<f64> = allocation::with_capacity(self.codes.len());
        let mut starts = allocation::with_capacity(info.rows + 1);
        starts.push(0);
        for row in self.rows() {
            let begin = indices.len();
            let mut open: Option<(u32, u32)> = None;
            for &code in row {
                let at = indices.len();
                let length = match (code as usize).checked_sub(self.columns.len()) {
                    None => {
                        allocation::push(&mut indices, self.columns[code as usize]);
                        allocation::push(&mut decoded, first_values[code as usize]);
                        1
                    }
                    Some(node) => {
                        let unknown = Error::Malformed("a code of a node that does not exist yet");
                        let &(from, length) = stretches.get(node).ok_or(unknown)?;
                        limits::check(info.rows, info.columns, at as u64 + u64::from(length))?;
                        let stretch = from as usize..(from + length) as usize;
                        allocation::reserve(&mut indices, stretch.len());
                        allocation::reserve(&mut decoded, stretch.len());
                        indices.extend_from_within(stretch.clone());
                        decoded.extend_from_within(stretch);
                        length
                    }
                };
                if at > begin && indices[at - 1] >= indices[at] {
                    return Err(Error::Malformed("columns of a row that are not ascending"));
                }
                // a node is known only after the code that follows its sequence
                stretches.extend(open.replace((at as u32, length + 1)));
            }
            starts.push(indices.len());
        }
        Ok(Rows::from_parts(info.columns, starts, indices, decoded).without_zeros())
    }
}
