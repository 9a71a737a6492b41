//! Encoding, and which encoding is the smallest.

use tuples::pause::pausing;

use crate::bytes::{Layout, packed_bytes};
use crate::stored::HEADER;
use crate::tree::logical::Logical;
use crate::values::Summary;
use crate::{Encoding, Error, Rows, csr, cvi, dense, dvi, general, limits, tree};

/// Compresses rows. Values that are all exactly f32 take four bytes, integers as few bits as will do.
///
/// # Errors
/// If there are more entries than the encoding can hold ([`limits`]).
pub fn encode(rows: &Rows, encoding: Encoding) -> Result<Vec<u8>, Error> {
    encode_in(rows, encoding, Layout::Bits)
}

/// The same with integers of as few bits, or as few whole bytes, as will do. Anyone who decodes need not know.
///
/// # Errors
/// As [`encode`].
pub fn encode_in(rows: &Rows, encoding: Encoding, layout: Layout) -> Result<Vec<u8>, Error> {
    limits::check(rows.len(), rows.columns(), rows.nnz() as u64)?;
    match encoding {
        Encoding::Den => dense::encode(rows),
        Encoding::Csr => Ok(csr::encode(rows, layout)),
        Encoding::Cvi => Ok(cvi::encode(rows, layout)),
        Encoding::Dvi => dvi::encode(rows, layout),
        Encoding::Toc => Ok(tree::encode(rows, &Logical::new(rows), layout)),
        Encoding::Gzip | Encoding::Snappy => general::encode(rows, encoding),
    }
}

/// Compresses rows by the one of DEN, CSR, CVI, DVI and TOC that takes the fewest bytes: so never by more than DEN.
///
/// # Errors
/// If there are more rows, columns or entries that are not zero than [`limits`] allow.
pub fn encode_smallest(rows: &Rows) -> Result<Vec<u8>, Error> {
    limits::check(rows.len(), rows.columns(), rows.nnz() as u64)?;
    let logical = Logical::new(rows);
    let distinct = logical.table.values().len();
    let summary = Summary::from_values(logical.table.values().iter().copied());
    let [den, csr, cvi, dvi] = sizes(rows, distinct, &summary);
    let toc = tree::encoded_bytes(rows, &logical, summary.kind(), Layout::Bits);
    let all_held = rows.entries() <= limits::MAX_ENTRIES;
    // of equal ones that which is computed with faster
    let candidates = [
        (Encoding::Den, den, all_held),
        (Encoding::Toc, toc, true),
        (Encoding::Csr, csr, true),
        (Encoding::Cvi, cvi, true),
        (Encoding::Dvi, dvi, all_held),
    ];
    let possible = candidates.into_iter().filter(|(_, _, possible)| *possible);
    let (encoding, ..) = possible.min_by_key(|(_, bytes, _)| *bytes).expect("three are always possible");
    match encoding {
        Encoding::Toc => Ok(tree::encode(rows, &logical, Layout::Bits)),
        other => encode(rows, other),
    }
}

/// Bytes of DEN, CSR, CVI and DVI.
fn sizes(rows: &Rows, distinct: usize, summary: &Summary) -> [usize; 4] {
    let layout = Layout::Bits;
    let entries = rows.entries() as usize;
    let longest = rows.iter().map(|(indices, _)| indices.len()).max().unwrap_or(0);
    let last = rows.indices().iter().copied().max().unwrap_or(0);
    let places = packed_bytes(rows.len(), layout.width(longest as u32)) + packed_bytes(rows.nnz(), layout.width(last));
    let index_width = |distinct: usize| layout.width((distinct as u32).saturating_sub(1));
    let distinct_with_zero = distinct + rows.zeros().min(1);
    let of_all = Summary::from_values(rows.values().iter().copied());
    [
        HEADER + of_all.clone().with_zeros(rows.zeros()).kind().bytes(entries),
        HEADER + of_all.kind().bytes(rows.nnz()) + places,
        HEADER + summary.kind().bytes(distinct) + places + packed_bytes(rows.nnz(), index_width(distinct)),
        HEADER
            + summary.clone().with_zeros(rows.zeros().min(1)).kind().bytes(distinct_with_zero)
            + packed_bytes(entries, index_width(distinct_with_zero)),
    ]
}

/// Bytes in the layout of the paper after each step of its Figure 10: sparse encoding, which is CSR, logical encoding,
/// and physical encoding, with which it is TOC.
pub fn paper_bytes_by_step(rows: &Rows) -> [usize; 3] {
    let logical = Logical::new(rows);
    [paper_bytes(rows, Encoding::Csr), tree::paper_bytes_without_physical(&logical), tree::paper_bytes(&logical)]
}

/// Bytes of the rows in the layout of the paper and of its rivals: values of eight bytes, integers of whole bytes,
/// where the codes of each row begin among them, no checksum; gzip of level 6 and Snappy over all entries.
pub fn paper_bytes(rows: &Rows, encoding: Encoding) -> usize {
    let entries = rows.entries() as usize;
    let index_bytes = |distinct: usize| Layout::Bytes.width(distinct.saturating_sub(1) as u32).max(8) as usize / 8;
    let distinct = || {
        let mut table = crate::table::Table::default();
        pausing(rows.values()).for_each(|value| _ = table.place(*value));
        table.values().len()
    };
    match encoding {
        Encoding::Den => 8 * entries,
        Encoding::Csr => 8 + 4 * rows.len() + 12 * rows.nnz(),
        Encoding::Cvi => {
            let distinct = distinct();
            13 + 4 * rows.len() + (4 + index_bytes(distinct)) * rows.nnz() + 8 * distinct
        }
        Encoding::Dvi => {
            let distinct = distinct() + usize::from(rows.nnz() < entries);
            13 + index_bytes(distinct) * entries + 8 * distinct
        }
        Encoding::Toc => tree::paper_bytes(&Logical::new(rows)),
        Encoding::Gzip | Encoding::Snappy => general::packed_bytes(rows, encoding),
    }
}
