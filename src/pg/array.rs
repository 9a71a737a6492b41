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

/// An array in plain sight.
struct Plain {
    /// the ArrayType behind its length word: ndim, dataoffset, elemtype, dimensions, lower bounds, data
    body: *const u8,
    /// the detoasted copy, if there had to be one
    copy: *mut pg_sys::varlena,
}

impl Drop for Plain {
    fn drop(&mut self) {
        if !self.copy.is_null() && !std::thread::panicking() {
            // SAFETY: palloc'ed by detoasting.
            unsafe { pg_sys::pfree(self.copy.cast()) }
        }
    }
}

/// Offset of the dimensions, and of the data of a one-dimensional array without NULLs, in the body.
const DIMENSIONS: usize = 12;
const DATA: usize = 20;

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

    /// How many elements the array has.
    pub fn len(&self, datum: pg_sys::Datum) -> Result<usize, ArrayFault> {
        // SAFETY: the datum is an array.
        unsafe { plain(datum).length() }
    }

    /// Copies the array's elements to `out`, which is as long as the array should be.
    #[inline]
    pub fn read(&self, datum: pg_sys::Datum, out: &mut [f32]) -> Result<(), ArrayFault> {
        // SAFETY: the datum is an array of the reader's type.
        unsafe {
            let array = plain(datum);
            let body = array.body;
            let header = body.cast::<[u32; 4]>().read_unaligned();
            if header != [1, 0, self.element_oid, out.len() as u32] || self.element == NumberType::Numeric {
                return self.read_unusual(datum, out);
            }
            let data = body.add(DATA);
            match self.element {
                NumberType::Float4 => {
                    std::ptr::copy_nonoverlapping(data, out.as_mut_ptr().cast(), size_of_val(out));
                }
                NumberType::Float8 => copy(data, out, |v: f64| v),
                NumberType::Int2 => copy(data, out, |v: i16| v as f64),
                NumberType::Int4 => copy(data, out, |v: i32| v as f64),
                NumberType::Int8 => copy(data, out, |v: i64| v as f64),
                NumberType::Bool | NumberType::Numeric => copy(data, out, |v: u8| f64::from(v != 0)),
            }
        }
        if all_finite(out) {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.read_unusual(datum, out) }
    }

    /// Any array, element by element, to find out what is wrong with it if something is.
    #[cold]
    unsafe fn read_unusual(&self, datum: pg_sys::Datum, out: &mut [f32]) -> Result<(), ArrayFault> {
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
            if n as usize != out.len() {
                return Err(ArrayFault::Length(n as usize));
            }
            for (i, place) in out.iter_mut().enumerate() {
                if *nulls.add(i) {
                    return Err(ArrayFault::Null(i + 1));
                }
                let value = self.element.read(*values.add(i));
                *place = narrow(value).map_err(|fault| ArrayFault::Number(i + 1, fault))?;
            }
            if !values.is_null() {
                pg_sys::pfree(values.cast());
                pg_sys::pfree(nulls.cast());
            }
            pg_sys::pfree(array.cast());
            Ok(())
        }
    }
}

/// The array behind its length word, detoasted if need be.
#[inline]
unsafe fn plain(datum: pg_sys::Datum) -> Plain {
    let at: *mut u8 = datum.cast_mut_ptr();
    // SAFETY: a varlena begins with a header that tells its kind (little-endian, varatt.h).
    unsafe {
        match *at {
            b if b & 3 == 0 => Plain { body: at.add(4), copy: std::ptr::null_mut() },
            b if b & 1 == 1 && b != 1 => Plain { body: at.add(1), copy: std::ptr::null_mut() },
            _ => {
                let copy = pg_sys::pg_detoast_datum_copy(at.cast());
                Plain { body: copy.cast::<u8>().add(4), copy }
            }
        }
    }
}

impl Plain {
    unsafe fn length(&self) -> Result<usize, ArrayFault> {
        // SAFETY: an ArrayType's body has ndim and, unless that is 0, a first dimension.
        unsafe {
            match self.body.cast::<i32>().read_unaligned() {
                0 => Ok(0),
                1 => Ok(self.body.add(DIMENSIONS).cast::<i32>().read_unaligned() as usize),
                n => Err(ArrayFault::Dimensions(n as usize)),
            }
        }
    }
}

#[inline(always)]
unsafe fn copy<T: Copy>(data: *const u8, out: &mut [f32], value: impl Fn(T) -> f64) {
    for (i, place) in out.iter_mut().enumerate() {
        // SAFETY: the array has as many elements as `out`.
        *place = value(unsafe { data.cast::<T>().add(i).read_unaligned() }) as f32;
    }
}

/// No NaN, no infinity. The greatest exponent decides, which vectorises better than a test per element.
#[inline]
fn all_finite(values: &[f32]) -> bool {
    let greatest = values.iter().map(|v| (v.to_bits() & 0x7fff_ffff) as i32).fold(0, i32::max);
    greatest < f32::INFINITY.to_bits() as i32
}
