//! Rows of a value and a vector that all have their columns in the same places, copied by the run.
//!
//! What is the same in every such row (how many attributes, the vector's header) is compared as a whole, and what
//! follows from it (where the columns are, that an array has no NULLs) is not looked up again. A row that differs in
//! any way ends the run and is left to [`Layout`](super::row::Layout) and
//! [`VectorReader`](crate::pg::values::vector::VectorReader).

use super::attribute::fetch;
use crate::pg::values::array::Prefix;
use crate::pg::values::typed::TypedDatum;
use pgrx::pg_sys;

/// Where rows of one shape have a value of fixed length and a vector of `real`s of known length.
#[derive(Debug, Clone, Copy)]
pub struct Uniform {
    /// of which rows
    pub(in crate::pg) descriptor: pg_sys::TupleDesc,
    /// attributes that a row must have
    pub(in crate::pg) attributes: usize,
    /// the value: its offset in the row's data, and its bytes
    pub(in crate::pg) value: (usize, i16),
    /// its declared type, which is passed by value
    pub(in crate::pg) value_type: pg_sys::Oid,
    /// the byte where the vector may begin, and what it must be: the header's first, or 0 for padding
    pub(in crate::pg) start: (usize, u8),
    /// offset of the vector behind its length word, the word and the bits of it that belong to the vector
    pub(in crate::pg) body: usize,
    pub(in crate::pg) word: (u32, u32),
    /// the vector's own header, and how many numbers it has
    pub(in crate::pg) prefix: Prefix,
    pub(in crate::pg) len: usize,
}

/// Rows that were copied.
pub struct Run {
    /// the first of them; one before it, if there is one, is different
    pub first: usize,
    /// were all numbers finite?
    pub finite: bool,
}

/// Where values and vectors go: the bits of row `i`'s to `values[i]` and, `stride` floats apart,
/// to `vectors[i * stride..]`.
pub struct Destination<'a> {
    pub values: &'a mut [u64],
    pub vectors: &'a mut [f32],
    pub stride: usize,
}

impl Uniform {
    /// The value that these bits are, which were copied from a row. (Any others would be a value, too.)
    #[inline(always)]
    pub fn value(&self, bits: u64) -> TypedDatum<'static> {
        // SAFETY: the type is passed by value: nothing of it points anywhere.
        unsafe { TypedDatum::new(pg_sys::Datum::from(bits), self.value_type) }
    }

    /// Copies rows before `end`, from the last to the first, until one is different. `tuple` says where row `i` begins.
    ///
    /// # Safety
    /// Up to `end`, `tuple` gives tuples of the row type that this was made for, that stay where they are.
    #[inline(always)]
    pub(in crate::pg) unsafe fn copy(
        &self,
        end: usize,
        tuple: impl Fn(usize) -> *const u8,
        to: Destination<'_>,
    ) -> Run {
        assert!(end <= to.values.len() && end * to.stride <= to.vectors.len() && self.len <= to.stride);
        // SAFETY: the caller's promise, the assertion, and for the first function the processor's.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if self.len >= avx2::CHUNK && is_x86_feature_detected!("avx2") {
                return self.copy_avx2(end, tuple, to);
            }
            self.copy_rows(end, tuple, to, |from, to| copy_elements(from, to, self.len))
        }
    }

    /// As [`Uniform::copy`], compiled for processors with AVX2.
    ///
    /// # Safety
    /// As there, there is room for all rows, and a vector has at least a chunk.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_avx2(&self, end: usize, tuple: impl Fn(usize) -> *const u8, to: Destination<'_>) -> Run {
        // SAFETY: the caller's promise; there is a chunk or more.
        unsafe { self.copy_rows(end, tuple, to, |from, to| avx2::copy_elements(from, to, self.len)) }
    }

    /// As [`Uniform::copy`], with a function that copies a vector's numbers.
    ///
    /// # Safety
    /// As there, and there is room for all rows.
    #[inline(always)]
    unsafe fn copy_rows(
        &self,
        end: usize,
        tuple: impl Fn(usize) -> *const u8,
        to: Destination<'_>,
        copy_elements: impl Fn(*const f32, *mut f32) -> bool,
    ) -> Run {
        let mut finite = true;
        let mut first = end;
        while first > 0 {
            // SAFETY: the row's data is read only once it has turned out to be as long as `self` describes it, and
            // `copy` has made sure that there is room for every row.
            unsafe {
                let Some(data) = self.data(tuple(first - 1)) else { break };
                first -= 1;
                let (at, len) = self.value;
                *to.values.as_mut_ptr().add(first) = fetch(data.add(at), len).value() as u64;
                let elements = data.add(self.body + self.prefix.len);
                finite &= copy_elements(elements.cast(), to.vectors.as_mut_ptr().add(first * to.stride));
            }
        }
        Run { first, finite }
    }

    /// The data of a row, if it is as we know it.
    ///
    /// # Safety
    /// `tuple` is a tuple of the row type that this was made for.
    #[inline(always)]
    unsafe fn data(&self, tuple: *const u8) -> Option<*const u8> {
        let header: pg_sys::HeapTupleHeader = tuple.cast_mut().cast();
        // SAFETY: a row without NULLs and with enough attributes reaches to the vector's first byte; if that is not
        // padding it is the vector, whose header is compared from its beginning. By its length word it has the bytes
        // that are compared.
        unsafe {
            let attributes = (*header).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK;
            let has_null = (*header).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            if has_null || (attributes as usize) < self.attributes {
                return None;
            }
            let data = tuple.add((*header).t_hoff as usize);
            let (at, byte) = self.start;
            let (word, bits) = self.word;
            let body = data.add(self.body);
            let alike = *data.add(at) == byte
                && body.sub(4).cast::<u32>().read_unaligned() & bits == word
                && body.cast::<u128>().read_unaligned() & self.prefix.mask == self.prefix.header;
            alike.then_some(data)
        }
    }
}

/// Copies `len` floats, from any address; says whether they are finite.
///
/// # Safety
/// There are `len` floats at `from`, and room for them at `to`.
#[inline(always)]
unsafe fn copy_elements(from: *const f32, to: *mut f32, len: usize) -> bool {
    let mut finite = true;
    for i in 0..len {
        // SAFETY: i is below `len`.
        unsafe {
            let element = from.add(i).read_unaligned();
            to.add(i).write(element);
            finite &= element.is_finite();
        }
    }
    finite
}

/// The same, eight floats at a time.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    pub const CHUNK: usize = 8;

    /// [`copy_elements`](super::copy_elements) of a chunk or more; a tail is copied together with floats before it.
    ///
    /// # Safety
    /// There are `len` floats at `from`, and room for them at `to`; `len` is at least [`CHUNK`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy_elements(from: *const f32, to: *mut f32, len: usize) -> bool {
        let last = len - CHUNK;
        let mut bits = _mm256_setzero_ps();
        let mut at = 0;
        loop {
            // SAFETY: `at` is at most `last`.
            unsafe {
                let elements = _mm256_loadu_ps(from.add(at));
                _mm256_storeu_ps(to.add(at), elements);
                bits = _mm256_or_ps(bits, _mm256_sub_ps(elements, elements));
            }
            if at == last {
                break;
            }
            at = (at + CHUNK).min(last);
        }
        // A number less itself is 0, or NaN if it is not finite.
        let bits = _mm256_castps_si256(bits);
        _mm256_testz_si256(bits, bits) == 1
    }
}
