//! TOC: tuple-oriented compression.
//!
//! Guarantees: products are computed on the decode tree C′, on each distinct sequence of pairs once, however many rows
//! it is in. Only rows that repeat so little that the tree would be more work than their entries are unfolded when they
//! are opened. Bytes that are not a tree are an error before anything is computed.

mod decode;
mod decode_tree;
pub(crate) mod logical;
mod products;
mod read;

pub(crate) use decode::Unfolded;
pub(crate) use decode_tree::Tree;
use logical::Logical;
pub(crate) use read::Stored;

use crate::bytes::{Layout, packed_bytes, put_packed};
use crate::stored::{self, HEADER};
use crate::values::{Kind, Summary};
use crate::{Encoding, Rows};

/// Widths of the integers of each array, in bits.
struct Widths {
    column: u32,
    value: u32,
    length: u32,
    code: u32,
}

impl Widths {
    fn new(logical: &Logical, layout: Layout) -> Widths {
        let max = |numbers: &mut dyn Iterator<Item = u32>| layout.width(numbers.max().unwrap_or(0));
        Widths {
            column: max(&mut logical.first_layer.iter().map(|(column, _)| *column)),
            value: layout.width((logical.table.values().len() as u32).saturating_sub(1)),
            length: max(&mut logical.lengths()),
            code: max(&mut logical.codes.iter().copied()),
        }
    }
}

/// The bytes of TOC.
pub(crate) fn encode(rows: &Rows, logical: &Logical, layout: Layout) -> Vec<u8> {
    let values = logical.table.values();
    let kind = Summary::from_values(values.iter().copied()).kind();
    let widths = Widths::new(logical, layout);
    let mut out = stored::begin(Encoding::Toc, rows.len(), rows.columns(), kind);
    kind.put(&mut out, values);
    out.extend_from_slice(&(logical.first_layer.len() as u32).to_le_bytes());
    put_packed(&mut out, widths.column, logical.first_layer.iter().map(|(column, _)| *column));
    put_packed(&mut out, widths.value, logical.first_layer.iter().map(|(_, value)| *value));
    put_packed(&mut out, widths.length, logical.lengths());
    put_packed(&mut out, widths.code, logical.codes.iter().copied());
    stored::seal(out)
}

/// How many bytes [`encode`] makes.
pub(crate) fn encoded_bytes(rows: &Rows, logical: &Logical, kind: Kind, layout: Layout) -> usize {
    let widths = Widths::new(logical, layout);
    let first_layer = logical.first_layer.len();
    HEADER
        + kind.bytes(logical.table.values().len())
        + 4
        + packed_bytes(first_layer, widths.column)
        + packed_bytes(first_layer, widths.value)
        + packed_bytes(rows.len(), widths.length)
        + packed_bytes(logical.codes.len(), widths.code)
}

/// How many bytes the layout of the paper takes (its section 3.2): values of eight bytes; arrays of integers of as many
/// whole bytes as the greatest of each needs, with their number and that of the bytes before them: columns and values
/// of pairs, codes, and where the codes of each row begin. In front are the numbers of rows and columns.
pub(crate) fn paper_bytes(logical: &Logical) -> usize {
    let array = |n: usize, max: u32| 4 + 1 + n * (Layout::Bytes.width(max).max(8) / 8) as usize;
    let pairs = logical.first_layer.len();
    let column = logical.first_layer.iter().map(|(column, _)| *column).max().unwrap_or(0);
    let values = logical.table.values().len();
    let (starts, rows) = (&logical.starts, logical.starts.len() - 1);
    8 + array(pairs, column)
        + array(pairs, (values as u32).saturating_sub(1))
        + (4 + 8 * values)
        + array(logical.codes.len(), logical.codes.iter().copied().max().unwrap_or(0))
        + array(rows, rows.checked_sub(1).map_or(0, |last| starts[last]))
}

/// The same without the last step, physical encoding: pairs of a column of four bytes and a value of eight, codes and
/// beginnings of rows of four bytes.
pub(crate) fn paper_bytes_without_physical(logical: &Logical) -> usize {
    8 + 12 * logical.first_layer.len() + 4 * (logical.codes.len() + logical.starts.len() - 1)
}

#[cfg(test)]
mod tests;
