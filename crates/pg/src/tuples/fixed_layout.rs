//! Rows of a value and numbers that all have their columns in the same places, copied by the run.
//!
//! The numbers are those of a vector or of columns. What is the same in every such row (how many attributes, the
//! vector's header) is compared as a whole, and what follows from it (where the columns are, that an array has no
//! NULLs) is not looked up again. Numbers that lie back to back are copied together, whether an array or columns hold
//! them. A row that differs in any way ends the run and is left to [`Layout`](super::row::Layout) and
//! [`VectorReader`](crate::values::vector::VectorReader).

use super::attribute::fetch;
use crate::values::array::Prefix;
use crate::values::number::NumberType;
use crate::values::number_copy::copy_each;
use crate::values::typed::TypedDatum;
use crate::values::varlena::header;
use pgrx::pg_sys;
use std::rc::Rc;

/// Where rows of one shape have a value of fixed length and numbers.
#[derive(Debug, Clone)]
pub struct Uniform {
    /// of which rows
    pub(crate) descriptor: pg_sys::TupleDesc,
    /// attributes that a row must have
    pub(crate) attributes: usize,
    /// the value: its offset in the row's data, and its bytes
    pub(crate) value: (usize, i16),
    /// its declared type, which is passed by value
    pub(crate) value_type: pg_sys::Oid,
    pub(crate) numbers: Numbers,
    pub(crate) len: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Numbers {
    /// in a vector, of `real`s or others of fixed length
    Vector(VectorAt, Stretch),
    /// in columns of fixed length
    Columns(Rc<[Stretch]>),
}

/// What a row must have where its vector is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorAt {
    /// the byte where the vector may begin, and what it must be: the header's first, or 0 for padding
    pub(crate) start: (usize, u8),
    /// offset of the vector behind its length word, the word and the bits of it that belong to the vector
    pub(crate) body: usize,
    pub(crate) word: (u32, u32),
    /// the vector's own header
    pub(crate) prefix: Prefix,
}

/// Numbers of one type, back to back: their offset in the row's data, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) at: usize,
    pub(crate) number: NumberType,
    pub(crate) count: usize,
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
    /// a value of each row
    pub values: &'a mut [u64],
    /// a vector of each row
    pub vectors: &'a mut [f32],
    /// from one vector to the next, in floats
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
    pub(crate) unsafe fn copy(&self, end: usize, tuple: impl Fn(usize) -> *const u8, to: Destination<'_>) -> Run {
        assert!(end <= to.values.len() && end * to.stride <= to.vectors.len() && self.len <= to.stride);
        // SAFETY: the caller's promise, the assertion, and for the first function the processor's.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                return self.copy_avx2(end, tuple, to);
            }
            self.copy_rows(end, tuple, to)
        }
    }

    /// As [`Uniform::copy`], compiled for processors with AVX2.
    ///
    /// # Safety
    /// As for the item above, and there is room for all rows.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_avx2(&self, end: usize, tuple: impl Fn(usize) -> *const u8, to: Destination<'_>) -> Run {
        // SAFETY: the caller's promise.
        unsafe { self.copy_rows(end, tuple, to) }
    }

    /// As [`Uniform::copy`], for whatever the caller is compiled for.
    ///
    /// # Safety
    /// As for the item above, and there is room for all rows.
    #[inline(always)]
    unsafe fn copy_rows(&self, end: usize, tuple: impl Fn(usize) -> *const u8, to: Destination<'_>) -> Run {
        // SAFETY: the caller's promise; the vector, if there is one, is looked at in each row before its numbers are
        // read, and columns are there if the row has no NULLs and enough attributes.
        unsafe {
            match &self.numbers {
                Numbers::Vector(vector, stretch) => {
                    let is_alike = |data| vector.is_at(data);
                    self.copy_stretches(end, tuple, to, std::slice::from_ref(stretch), is_alike)
                }
                Numbers::Columns(stretches) => self.copy_stretches(end, tuple, to, stretches, |_| true),
            }
        }
    }

    /// As [`Uniform::copy_rows`], of the rows whose data `is_alike`.
    ///
    /// # Safety
    /// As for the item above, and a row that is alike, without NULLs and with enough attributes, has the stretches.
    #[inline(always)]
    unsafe fn copy_stretches(
        &self,
        end: usize,
        tuple: impl Fn(usize) -> *const u8,
        to: Destination<'_>,
        stretches: &[Stretch],
        is_alike: impl Fn(*const u8) -> bool,
    ) -> Run {
        let mut finite = true;
        let mut first = end;
        while first > 0 {
            // SAFETY: the row's data is read only once it has turned out to be as long as `self` describes it, and
            // `copy` has made sure that there is room for every row; the stretches together have `len` numbers.
            unsafe {
                let Some(data) = self.data(tuple(first - 1)).filter(|data| is_alike(*data)) else { break };
                first -= 1;
                let (at, len) = self.value;
                *to.values.as_mut_ptr().add(first) = fetch(data.add(at), len).value() as u64;
                let mut place = to.vectors.as_mut_ptr().add(first * to.stride);
                for stretch in stretches {
                    finite &= stretch.copy(data, place);
                    place = place.add(stretch.count);
                }
            }
        }
        Run { first, finite }
    }

    /// The data of a row, if it has no NULLs and all attributes.
    ///
    /// # Safety
    /// `tuple` is a tuple of the row type that this was made for.
    #[inline(always)]
    unsafe fn data(&self, tuple: *const u8) -> Option<*const u8> {
        let row: pg_sys::HeapTupleHeader = tuple.cast_mut().cast();
        // SAFETY: the caller's promise.
        unsafe {
            let attributes = (*row).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK;
            let has_null = (*row).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            let is_whole = !has_null && (attributes as usize) >= self.attributes;
            is_whole.then(|| tuple.add((*row).t_hoff as usize))
        }
    }
}

impl VectorAt {
    /// Has a row the vector, as we know it?
    ///
    /// # Safety
    /// `data` is that of a row without NULLs and with all attributes.
    #[inline(always)]
    unsafe fn is_at(&self, data: *const u8) -> bool {
        // SAFETY: the row reaches to the vector's first byte; if that is not padding it is the vector, whose header is
        // compared from its beginning. By its length word it has the bytes that are compared.
        unsafe {
            let (at, byte) = self.start;
            let (word, bits) = self.word;
            let body = data.add(self.body);
            *data.add(at) == byte
                && body.sub(header::WORD).cast::<u32>().read_unaligned() & bits == word
                && body.cast::<u128>().read_unaligned() & self.prefix.mask == self.prefix.header
        }
    }
}

impl Stretch {
    /// Copies the numbers of a row's data, and says whether all are finite as `real`s.
    ///
    /// # Safety
    /// The data has them, and there is room for them at `to`.
    #[inline(always)]
    unsafe fn copy(&self, data: *const u8, to: *mut f32) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let from = data.add(self.at);
            let out = || std::slice::from_raw_parts_mut(to, self.count);
            match self.number {
                NumberType::Float4 => copy_each(from, out(), |number: f32| number),
                NumberType::Float8 => copy_each(from, out(), |number: f64| number as f32),
                NumberType::Int2 => copy_each(from, out(), |number: i16| f32::from(number)),
                NumberType::Int4 => copy_each(from, out(), |number: i32| number as f32),
                // through f64, as one by one: rounding twice may differ from rounding once
                NumberType::Int8 => copy_each(from, out(), |number: i64| number as f64 as f32),
                NumberType::Bool => copy_each(from, out(), |number: u8| f32::from(number != 0)),
                NumberType::Numeric | NumberType::Money | NumberType::Interval => false, // of no fixed length, or no number
            }
        }
    }
}
