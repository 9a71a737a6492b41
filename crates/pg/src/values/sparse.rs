//! Sparse vectors as a pair of SQL arrays, indices and values.
//!
//! The usual pair (one dimension, no NULLs, ascending indices, finite values) is copied from where it lies. Anything
//! else is looked at element by element: indices in another order are sorted, and what is wrong is named.

use super::array::{ArrayFault, ArrayReader, DATA, elements, with_body};
use super::number::{NumberFault, NumberType, narrow};
use super::typed::TypedDatum;
use pgrx::pg_sys::{Datum, Oid};

/// Why a pair of arrays, or a value of its own, is no sparse vector. Elements count from 1; indices are as the user has
/// them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SparseFault {
    /// what is wrong with the array of indices as such
    Indices(ArrayFault),
    /// what is wrong with the array of values as such
    Values(ArrayFault),
    /// this many indices, and this many values
    Lengths(usize, usize),
    /// an index below the base
    Below(i64),
    /// an index beyond the last dimension
    Beyond(i64),
    /// an index that is there twice
    Twice(i64),
    /// the value with this index
    Value(i64, NumberFault),
    /// bytes that are no value of the type: of a value of its own
    Damaged,
    /// another number of dimensions, of such a value
    Dimensions(usize),
}

/// What to do with an index beyond the last dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// it is a fault
    Fault,
    /// it is left out, with its value
    Drop,
}

/// Reads pairs of arrays of two types.
#[derive(Debug, Clone, Copy)]
pub struct SparseReader {
    indices: ArrayReader,
    values: ArrayReader,
    /// what the user calls index 0
    base: i64,
    /// dimensions that there may be
    dim: usize,
    beyond: Beyond,
}

/// Whether a pair was read the quick way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quick {
    /// it was
    Read,
    /// it is not as usual; room was taken for it or not
    Unusual {
        /// was it asked for?
        took_room: bool,
    },
}

impl SparseReader {
    /// A reader for arrays of these types, which may be domains, if the first has integers and the second numbers for
    /// its elements. Indices are from `base` to `base + dim - 1`.
    pub fn new(indices: Oid, values: Oid, base: u32, dim: usize, beyond: Beyond) -> Option<SparseReader> {
        let indices = ArrayReader::new(indices).filter(|array| is_integer(array.element()))?;
        Some(SparseReader { indices, values: ArrayReader::new(values)?, base: i64::from(base), dim, beyond })
    }

    /// Dimensions that there may be.
    #[inline]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Changes how many dimensions there may be.
    pub fn set_dim(&mut self, dim: usize) {
        self.dim = dim;
    }

    /// Are the values no `real`s?
    #[inline]
    pub fn converts(&self) -> bool {
        self.values.element() != NumberType::Float4
    }

    /// What the user calls index 0.
    #[inline]
    pub fn base(&self) -> i64 {
        self.base
    }

    /// How many indices an array has.
    #[inline]
    pub fn count(&self, indices: TypedDatum<'_>) -> usize {
        self.indices.len(indices).unwrap_or_default()
    }

    /// Copies a pair as it usually is to where `room` says, which is asked for as many entries as there are. Indices
    /// then count from 0.
    #[inline(always)]
    pub fn read_quickly<'a, E>(
        &self,
        indices: TypedDatum<'_>,
        values: TypedDatum<'_>,
        room: impl FnOnce(usize) -> Result<(&'a mut [u32], &'a mut [f32]), E>,
    ) -> Result<Quick, E> {
        let (indices, values) = (self.indices.datum(indices), self.values.datum(values));
        // SAFETY: the values are arrays of the reader's types, which have just been compared. `room` is as long as
        // both, or read_usual() and the assertion find that it is not.
        unsafe {
            with_body(indices, |indices| {
                with_body(values, |values| {
                    let unusual = Ok(Quick::Unusual { took_room: false });
                    let Some(len) = usual_len(indices, &self.indices) else { return unusual };
                    if usual_len(values, &self.values) != Some(len) {
                        return unusual;
                    }
                    let (to_indices, to_values) = room(len)?;
                    if len == 0 {
                        return Ok(Quick::Read);
                    }
                    assert_eq!(to_indices.len(), len, "room for every index");
                    let good = self.copy_indices(indices.add(DATA), to_indices);
                    let good = self.values.read_usual(values, to_values) && good;
                    Ok(if good { Quick::Read } else { Quick::Unusual { took_room: true } })
                })
            })
        }
    }

    /// Copies indices, and says whether they ascend within their bounds.
    ///
    /// # Safety
    /// There are as many elements of the reader's type at `data` as `out` has.
    #[inline(always)]
    unsafe fn copy_indices(&self, data: *const u8, out: &mut [u32]) -> bool {
        // SAFETY: the array has as many elements as `out`, of its type.
        unsafe {
            match self.indices.element() {
                NumberType::Int2 => self.copy(data.cast::<i16>(), out),
                NumberType::Int4 => self.copy(data.cast::<i32>(), out),
                _ => self.copy(data.cast::<i64>(), out),
            }
        }
    }

    /// As [`SparseReader::copy_indices`], of one type.
    ///
    /// # Safety
    /// There are as many elements at `data`, from any address, as `out` has.
    #[inline(always)]
    unsafe fn copy<T: Copy + PartialOrd + Into<i64>>(&self, data: *const T, out: &mut [u32]) -> bool {
        let Some(last) = out.len().checked_sub(1) else { return true };
        // SAFETY: the array has as many elements as `out`; the processor has what the function is compiled for.
        unsafe {
            let (first, last): (i64, i64) = (data.read_unaligned().into(), data.add(last).read_unaligned().into());
            // ascending, all others are between them
            let is_within = first >= self.base && last.wrapping_sub(self.base) < self.dim as i64;
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                return is_within & copy_ascending_avx2(data, out, self.base);
            }
            is_within & copy_ascending(data, out, self.base)
        }
    }

    /// Any pair, element by element: its entries by ascending index from 0.
    ///
    /// # Errors
    /// The first fault of the arrays as such, else of the entries in their sequence.
    #[cold]
    pub fn read_thoroughly(
        &self,
        indices: TypedDatum<'_>,
        values: TypedDatum<'_>,
    ) -> Result<Vec<(u32, f32)>, SparseFault> {
        let (indices, values) = (self.indices.datum(indices), self.values.datum(values));
        // SAFETY: the values are arrays of the reader's types, which have just been compared,
        // and so are their elements.
        let (indices, values) = unsafe {
            let element = self.indices.element();
            let integer = move |datum: Datum| match element {
                NumberType::Int2 => i64::from(datum.value() as i16),
                NumberType::Int4 => i64::from(datum.value() as i32),
                _ => datum.value() as i64,
            };
            let number = self.values.element();
            (
                elements(indices, integer).map_err(SparseFault::Indices)?,
                elements(values, |datum| number.read_element(datum)).map_err(SparseFault::Values)?,
            )
        };
        if indices.len() != values.len() {
            return Err(SparseFault::Lengths(indices.len(), values.len()));
        }
        let mut entries = allocation::with_capacity(indices.len());
        for (i, (index, value)) in indices.into_iter().zip(values).enumerate() {
            let index = index.ok_or(SparseFault::Indices(ArrayFault::Null(i + 1)))?;
            let value = value.ok_or(SparseFault::Values(ArrayFault::Null(i + 1)))?;
            let value = narrow(value).map_err(|fault| SparseFault::Value(index, fault))?;
            match index.checked_sub(self.base) {
                None | Some(..0) => return Err(SparseFault::Below(index)),
                Some(place) if place < self.dim as i64 => entries.push((place as u32, value)),
                Some(_) if self.beyond == Beyond::Drop => {}
                Some(_) => return Err(SparseFault::Beyond(index)),
            }
        }
        entries.sort_by_key(|(place, _)| *place);
        match entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(SparseFault::Twice(i64::from(pair[0].0) + self.base)),
            None => Ok(entries),
        }
    }
}

/// Copies as many indices as `out` has, less `base`, and says whether they ascend. Those that do not fit are cut off.
///
/// # Safety
/// There are as many at `data`, from any address.
#[inline(always)]
unsafe fn copy_ascending<T: Copy + PartialOrd + Into<i64>>(data: *const T, out: &mut [u32], base: i64) -> bool {
    let place_of = |index: T| Into::<i64>::into(index).wrapping_sub(base) as u32;
    let Some((first, rest)) = out.split_first_mut() else { return true };
    let mut descends = 0;
    // SAFETY: `i + 1` is below the length.
    unsafe {
        *first = place_of(data.read_unaligned());
        // many at a time, and none looked at by itself
        for (i, place) in rest.iter_mut().enumerate() {
            let (before, index) = (data.add(i).read_unaligned(), data.add(i + 1).read_unaligned());
            descends |= u32::from(index <= before);
            *place = place_of(index);
        }
    }
    descends == 0
}

/// The same, compiled for processors with AVX2.
///
/// # Safety
/// As for the item above, and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_ascending_avx2<T: Copy + PartialOrd + Into<i64>>(data: *const T, out: &mut [u32], base: i64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { copy_ascending(data, out, base) }
}

/// Can an array of this type, which may be a domain, be one of indices?
pub fn is_index_array(array: Oid) -> bool {
    ArrayReader::new(array).is_some_and(|array| is_integer(array.element()))
}

fn is_integer(element: NumberType) -> bool {
    matches!(element, NumberType::Int2 | NumberType::Int4 | NumberType::Int8)
}

/// How many elements the array has, if it has one dimension (or none, being empty) and no NULLs.
///
/// # Safety
/// `body` is that of an array.
#[inline(always)]
unsafe fn usual_len(body: *const u8, reader: &ArrayReader) -> Option<usize> {
    // SAFETY: an array has a number of dimensions and, unless that is 0, a first dimension.
    unsafe {
        match body.cast::<i32>().read_unaligned() {
            0 => Some(0),
            1 => {
                let header = body.cast::<[u32; 4]>().read_unaligned();
                let len = header[3] as usize;
                (header == reader.header(len)).then_some(len)
            }
            _ => None,
        }
    }
}
