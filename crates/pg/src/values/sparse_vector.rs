//! pgvector's `sparsevec`: indices and values in one value, which says how many dimensions it has.
//!
//! It is read as it lies, and nothing of it is believed, as in [`vector`](super::vector).

use super::number::NumberFault;
use super::sparse::SparseFault;
use super::typed::TypedDatum;
use super::vector::{PGVECTOR, with_bytes_of};
use crate::catalog::types::{base_type, base_type_of_extension};
use pgrx::pg_sys;

/// Reads sparse vectors of one type.
#[derive(Debug, Clone, Copy)]
pub struct SparseVectorReader(pg_sys::Oid);

/// What pgvector, whose text has indices from 1, calls the first dimension.
pub const INDEX_BASE: u32 = 1;

/// A sparse vector: as many indices as values, of four bytes each.
#[derive(Clone, Copy)]
pub struct SparseVector<'a> {
    dimensions: usize,
    indices: &'a [[u8; 4]],
    values: &'a [[u8; 4]],
}

impl SparseVectorReader {
    /// A reader for values of this type, which may be a domain, if it is pgvector's sparsevec.
    pub fn new(type_oid: pg_sys::Oid) -> Option<SparseVectorReader> {
        let name = base_type_of_extension(base_type(type_oid), PGVECTOR)?;
        (name == "sparsevec").then_some(SparseVectorReader(type_oid))
    }

    /// How many dimensions the value says to have.
    #[inline]
    pub fn dimensions(&self, value: TypedDatum<'_>) -> Result<usize, SparseFault> {
        self.with(value, |vector| vector.map(|vector| vector.dimensions))
    }

    /// Shows `f` the vector, or [`SparseFault::Damaged`].
    #[inline(always)]
    pub fn with<R>(&self, value: TypedDatum<'_>, f: impl FnOnce(Result<SparseVector<'_>, SparseFault>) -> R) -> R {
        with_bytes_of(value, self.0, |bytes| f(SparseVector::of(bytes).ok_or(SparseFault::Damaged)))
    }
}

impl<'a> SparseVector<'a> {
    /// The vector that these bytes are: the number of dimensions, that of entries, a word of 0, then indices and
    /// values.
    #[inline(always)]
    fn of(bytes: &'a [u8]) -> Option<SparseVector<'a>> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let ([dimensions, len, unused], entries) = words.split_first_chunk::<3>()?;
        let [dimensions, len, unused] = [dimensions, len, unused].map(|word| i32::from_le_bytes(*word));
        let (dimensions, len) = (usize::try_from(dimensions).ok()?, usize::try_from(len).ok()?);
        let fits = unused == 0 && dimensions > 0 && len <= dimensions && entries.len() == 2 * len;
        let (indices, values) = fits.then(|| entries.split_at(len))?;
        Some(SparseVector { dimensions, indices, values })
    }

    /// How many dimensions it says to have; there is one at least.
    #[inline]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Copies the entries, of which there is room for each. Indices then count from 0, and ascend.
    ///
    /// # Errors
    /// [`SparseFault::Damaged`], [`SparseFault::Value`]; what was copied until then means nothing.
    #[inline(always)]
    pub fn read(&self, indices: &mut [u32], values: &mut [f32]) -> Result<(), SparseFault> {
        assert!(indices.len() == self.len() && values.len() == self.len(), "room for every entry");
        let (mut ascending, mut next) = (true, 0);
        for (to, index) in indices.iter_mut().zip(self.indices) {
            *to = u32::from_le_bytes(*index);
            ascending &= u64::from(*to) >= next;
            next = u64::from(*to) + 1;
        }
        if !ascending || next > self.dimensions as u64 {
            return Err(SparseFault::Damaged);
        }
        let mut finite = true;
        for (to, value) in values.iter_mut().zip(self.values) {
            *to = f32::from_le_bytes(*value);
            finite &= to.is_finite();
        }
        if finite { Ok(()) } else { Err(not_finite(indices, values)) }
    }
}

/// The first value that is not finite, with its index as the user has it.
#[cold]
fn not_finite(indices: &[u32], values: &[f32]) -> SparseFault {
    let at = values.iter().position(|value| !value.is_finite()).unwrap_or_default();
    let index = i64::from(indices[at]) + i64::from(INDEX_BASE);
    SparseFault::Value(index, NumberFault::NotFinite(values[at].into()))
}
