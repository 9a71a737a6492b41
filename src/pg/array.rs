//! SQL arrays of numbers, copied into slices of floats.
//!
//! The usual array (one dimension, no NULLs, not compressed) is read where it lies, whatever its header and its
//! alignment; everything else is detoasted first. The result is the same.

use super::number::{NumberFault, NumberType, narrow};
use pgrx::pg_sys;

/// Why an array is no feature vector. Elements count from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayFault {
    /// more or fewer elements than the slice that they were to fill
    Length(usize),
    /// more than one dimension
    Dimensions(usize),
    Null(usize),
    Number(usize, NumberFault),
}

/// Reads arrays of one type.
#[derive(Debug, Clone, Copy)]
pub struct ArrayReader {
    element: NumberType,
    element_oid: u32,
}

/// Offset of the dimensions, and of the data of a one-dimensional array without NULLs, in the body.
const DIMENSIONS: usize = 12;
pub(super) const DATA: usize = 20;

impl ArrayReader {
    /// A reader for arrays of this type (for a domain, give its base type), if its elements are numbers.
    pub fn of(array: pg_sys::Oid) -> Option<ArrayReader> {
        // SAFETY: a lookup in the system cache; InvalidOid if the type is no array.
        let element_oid = unsafe { pg_sys::get_element_type(array) };
        // SAFETY: as above.
        let base =
            unsafe { if element_oid == pg_sys::Oid::INVALID { element_oid } else { pg_sys::getBaseType(element_oid) } };
        NumberType::of(base).map(|element| ArrayReader { element, element_oid: element_oid.to_u32() })
    }

    /// What an array of `len` elements without NULLs begins with, behind its length word, if they are `real`s.
    pub(super) fn header_of_reals(&self, len: usize) -> Option<[u32; 4]> {
        (self.element == NumberType::Float4).then_some(self.header(len))
    }

    #[inline(always)]
    pub(super) fn header(&self, len: usize) -> [u32; 4] {
        [1, 0, self.element_oid, len as u32]
    }

    /// How many elements the array has.
    pub fn len(&self, datum: pg_sys::Datum) -> Result<usize, ArrayFault> {
        // SAFETY: the datum is an array, which has ndim and, unless that is 0, a first dimension.
        unsafe {
            with_body(datum, |body| match body.cast::<i32>().read_unaligned() {
                0 => Ok(0),
                1 => Ok(body.add(DIMENSIONS).cast::<i32>().read_unaligned() as usize),
                n => Err(ArrayFault::Dimensions(n as usize)),
            })
        }
    }

    /// Copies the array's elements to `out`, which is as long as the array should be.
    #[inline(always)]
    pub fn read(&self, datum: pg_sys::Datum, out: &mut [f32]) -> Result<(), ArrayFault> {
        // SAFETY: the datum is an array of the reader's type.
        unsafe {
            let usual = with_body(datum, |body| self.read_usual(body, out));
            if usual { Ok(()) } else { self.read_unusual(datum, out) }
        }
    }

    /// Copies the elements if the array has one dimension, the right length, no NULLs, and nothing but finite numbers.
    #[inline(always)]
    pub(super) unsafe fn read_usual(&self, body: *const u8, out: &mut [f32]) -> bool {
        // SAFETY: the header, once compared, says that there are as many elements as `out` wants.
        unsafe {
            let header = body.cast::<[u32; 4]>().read_unaligned();
            if header != self.header(out.len()) {
                return false;
            }
            let data = body.add(DATA);
            match self.element {
                NumberType::Float4 => copy(data, out, |v: f32| v),
                NumberType::Float8 => copy(data, out, |v: f64| v as f32),
                NumberType::Int2 => copy(data, out, |v: i16| f32::from(v)),
                NumberType::Int4 => copy(data, out, |v: i32| v as f32),
                // through f64, as from a bigint column: rounding twice may differ from rounding once
                NumberType::Int8 => copy(data, out, |v: i64| v as f64 as f32),
                NumberType::Bool => copy(data, out, |v: u8| f32::from(v != 0)),
                NumberType::Numeric => false,
            }
        }
    }

    /// Any array, element by element, to find out what is wrong with it if something is.
    #[cold]
    unsafe fn read_unusual(&self, datum: pg_sys::Datum, out: &mut [f32]) -> Result<(), ArrayFault> {
        // SAFETY: the datum is an array of the reader's type.
        let numbers = unsafe { elements(datum, |value| self.element.read(value))? };
        if numbers.len() != out.len() {
            return Err(ArrayFault::Length(numbers.len()));
        }
        for (i, (place, number)) in out.iter_mut().zip(numbers).enumerate() {
            let number = number.ok_or(ArrayFault::Null(i + 1))?;
            *place = narrow(number).map_err(|fault| ArrayFault::Number(i + 1, fault))?;
        }
        Ok(())
    }

    /// The type of the elements.
    pub fn element(&self) -> NumberType {
        self.element
    }
}

/// The elements of any array of at most one dimension, as `read` reads them; None for NULL.
pub(super) unsafe fn elements<T>(
    datum: pg_sys::Datum,
    read: impl Fn(pg_sys::Datum) -> T,
) -> Result<Vec<Option<T>>, ArrayFault> {
    // SAFETY: the datum is an array; deconstruct_array gives as many elements as it has.
    unsafe {
        let array = pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        if (*array).ndim > 1 {
            return Err(ArrayFault::Dimensions((*array).ndim as usize));
        }
        let (mut len, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign((*array).elemtype, &mut len, &mut by_value, &mut align);
        let (mut values, mut nulls, mut n) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            (*array).elemtype,
            len as i32,
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut n,
        );
        let element = |i| if *nulls.add(i) { None } else { Some(read(*values.add(i))) };
        let elements = (0..n as usize).map(element).collect();
        if !values.is_null() {
            pg_sys::pfree(values.cast());
            pg_sys::pfree(nulls.cast());
        }
        pg_sys::pfree(array.cast());
        Ok(elements)
    }
}

/// Shows `f` the array behind its length word, detoasted if need be.
#[inline(always)]
pub(super) unsafe fn with_body<R>(datum: pg_sys::Datum, f: impl FnOnce(*const u8) -> R) -> R {
    let at: *mut u8 = datum.cast_mut_ptr();
    // SAFETY: a varlena begins with a header that tells its kind (little-endian, varatt.h).
    unsafe {
        match *at {
            b if b & 3 == 0 => f(at.add(4)),
            b if b & 1 == 1 && b != 1 => f(at.add(1)),
            _ => {
                super::toast::count(1);
                let copy = pg_sys::pg_detoast_datum_copy(at.cast());
                let result = f(copy.cast::<u8>().add(4));
                pg_sys::pfree(copy.cast());
                result
            }
        }
    }
}

/// Copies and converts as many elements as `out` has. False if one of the results is not finite.
#[inline(always)]
unsafe fn copy<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    // SAFETY: the array has as many elements as `out`; the processor has what the first function is compiled for.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return copy_avx2(data, out, convert);
        }
        copy_each(data, out, convert)
    }
}

/// The same, compiled for processors with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_avx2<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { copy_each(data, out, convert) }
}

#[inline(always)]
#[expect(clippy::eq_op, reason = "not zero if the number is not finite")]
unsafe fn copy_each<T: Copy>(data: *const u8, out: &mut [f32], convert: impl Fn(T) -> f32) -> bool {
    // A number less itself is 0, or NaN if it is not finite: sign and mantissa of a NaN do not matter here.
    let mut bits = 0;
    for (i, place) in out.iter_mut().enumerate() {
        // SAFETY: the array has as many elements as `out`.
        *place = convert(unsafe { data.cast::<T>().add(i).read_unaligned() });
        bits |= (*place - *place).to_bits();
    }
    bits == 0
}
