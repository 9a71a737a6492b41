//! SQL arrays of numbers, copied into slices of floats.
//!
//! The usual array (one dimension, no NULLs, not compressed) is read where it lies, whatever its header and its
//! alignment; everything else is detoasted first. The result is the same.

use super::number::{NumberFault, NumberType, narrow};
use super::number_copy::{copy, copy_numerics};
use super::typed::TypedDatum;
use super::varlena::header;
use crate::catalog::types::base_type;
use crate::context::OwnContext;
use crate::detoasted;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// Why an array is no feature vector. Elements count from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayFault {
    /// more or fewer elements than the slice that they were to fill
    Length(usize),
    /// more than one dimension
    Dimensions(usize),
    /// this element is NULL
    Null(usize),
    /// this element is not finite, or out of range
    Number(usize, NumberFault),
    /// bytes that are no value of the type: of a vector that is no array
    Damaged,
}

/// What all values with as many numbers begin with, behind their length word: their first sixteen bytes, once those
/// are masked that differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    pub header: u128,
    pub mask: u128,
    /// bytes before the numbers
    pub len: usize,
}

/// Reads arrays of one type.
#[derive(Debug, Clone, Copy)]
pub struct ArrayReader {
    array: pg_sys::Oid,
    element: NumberType,
    element_oid: u32,
}

/// Offsets in the body: of the elements' type, of the dimensions, and of the data of a one-dimensional array without
/// NULLs.
const ELEMENT: usize = 8;
const DIMENSIONS: usize = 12;
pub(crate) const DATA: usize = 20;

impl ArrayReader {
    /// A reader for arrays of this type, which may be a domain, if its elements are numbers.
    pub fn new(array: pg_sys::Oid) -> Option<ArrayReader> {
        let element_oid = element_type(array)?;
        let element = NumberType::from_oid(base_type(element_oid))?;
        Some(ArrayReader { array, element, element_oid: element_oid.to_u32() })
    }

    /// What an array of `len` elements without NULLs begins with, behind its length word.
    pub(crate) fn prefix(&self, len: usize) -> Prefix {
        let header = self.header(len).iter().rev().fold(0, |header, word| header << 32 | u128::from(*word));
        Prefix { header, mask: u128::MAX, len: DATA }
    }

    #[inline(always)]
    pub(crate) fn header(&self, len: usize) -> [u32; 4] {
        [1, 0, self.element_oid, len as u32]
    }

    /// How many elements the array has.
    #[inline]
    pub fn len(&self, array: TypedDatum<'_>) -> Result<usize, ArrayFault> {
        // SAFETY: the value is an array, by its type: it has ndim and, unless that is 0, a first dimension.
        unsafe {
            with_body(array.of_type(self.array), |body| match body.cast::<i32>().read_unaligned() {
                0 => Ok(0),
                1 => Ok(body.add(DIMENSIONS).cast::<i32>().read_unaligned() as usize),
                n => Err(ArrayFault::Dimensions(n as usize)),
            })
        }
    }

    /// Copies the array's elements to `out`, which is as long as the array should be.
    #[inline(always)]
    pub fn read(&self, array: TypedDatum<'_>, out: &mut [f32]) -> Result<(), ArrayFault> {
        let datum = array.of_type(self.array);
        // SAFETY: the value is an array of the reader's type, which has just been compared.
        unsafe {
            let usual = with_body(datum, |body| self.read_usual(body, out));
            if usual { Ok(()) } else { self.read_unusual(datum, out, None) }
        }
    }

    /// As [`ArrayReader::read`], with a number for each NULL.
    ///
    /// # Errors
    /// Those of [`ArrayReader::read`], but for [`ArrayFault::Null`].
    #[inline]
    pub fn read_with_nulls(&self, array: TypedDatum<'_>, out: &mut [f32], null: f32) -> Result<(), ArrayFault> {
        let datum = array.of_type(self.array);
        // SAFETY: the value is an array of the reader's type, which has just been compared.
        unsafe { self.read_unusual(datum, out, Some(null)) }
    }

    /// The array as a datum, once its type was compared.
    #[inline(always)]
    pub(crate) fn datum(&self, array: TypedDatum<'_>) -> pg_sys::Datum {
        array.of_type(self.array)
    }

    /// Copies the elements if the array has one dimension, the right length, no NULLs, and nothing but finite numbers.
    ///
    /// # Safety
    /// `body` is that of an array of the reader's type.
    #[inline(always)]
    pub(crate) unsafe fn read_usual(&self, body: *const u8, out: &mut [f32]) -> bool {
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
                NumberType::Numeric => copy_numerics(data, out),
                NumberType::Money | NumberType::Interval => false, // one by one
            }
        }
    }

    /// Any array, element by element, to find out what is wrong with it if something is;
    /// `null` is what stands for NULLs.
    ///
    /// # Safety
    /// The datum is an array of the reader's type.
    #[cold]
    unsafe fn read_unusual(&self, datum: pg_sys::Datum, out: &mut [f32], null: Option<f32>) -> Result<(), ArrayFault> {
        // SAFETY: the caller's promise: the elements are numbers of this type.
        let numbers = unsafe { elements(datum, |value| self.element.read_element(value))? };
        if numbers.len() != out.len() {
            return Err(ArrayFault::Length(numbers.len()));
        }
        for (i, (place, number)) in out.iter_mut().zip(numbers).enumerate() {
            *place = match number {
                Some(number) => narrow(number).map_err(|fault| ArrayFault::Number(i + 1, fault))?,
                None => null.ok_or(ArrayFault::Null(i + 1))?,
            };
        }
        Ok(())
    }

    /// Appends the array's elements to `out` as doubles, as [`NumberType::read`] does; nothing if there is a fault.
    pub fn read_doubles(&self, array: TypedDatum<'_>, out: &mut Vec<f64>) -> Result<(), ArrayFault> {
        let datum = array.of_type(self.array);
        // SAFETY: the value is an array of the reader's type, which has just been compared; it has as many elements as
        // its header says, if that has one dimension and no bitmap of NULLs.
        unsafe {
            let quick = with_body(datum, |body| {
                let [dimensions, data, element, len] = body.cast::<[u32; 4]>().read_unaligned();
                if (dimensions, data, element) != (1, 0, self.element_oid) {
                    return false;
                }
                let data = body.add(DATA);
                match self.element {
                    NumberType::Float8 => {
                        let doubles = (0..len as usize).map(|i| data.cast::<f64>().add(i).read_unaligned());
                        allocation::extend(out, doubles);
                    }
                    NumberType::Float4 => {
                        let floats = (0..len as usize).map(|i| data.cast::<f32>().add(i).read_unaligned());
                        allocation::extend(out, floats.map(f64::from));
                    }
                    _ => return false,
                }
                true
            });
            if quick {
                return Ok(());
            }
            let before = out.len();
            for (i, number) in elements(datum, |value| self.element.read_element(value))?.into_iter().enumerate() {
                let Some(number) = number else {
                    out.truncate(before);
                    return Err(ArrayFault::Null(i + 1));
                };
                out.push(number);
            }
            Ok(())
        }
    }

    /// The type of the elements.
    #[inline]
    pub fn element(&self) -> NumberType {
        self.element
    }
}

/// The type of the elements of arrays of this type, which may be a domain; None if it is not one of arrays.
pub fn element_type(array: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a lookup in the system cache; InvalidOid if the type is no array.
    let element = unsafe { pg_sys::get_element_type(base_type(array)) };
    (element != pg_sys::Oid::INVALID).then_some(element)
}

/// The type of an array, which has the type of its elements with it; not the domain that it may be declared with.
///
/// # Safety
/// The datum is an array.
#[cold]
#[inline(never)]
pub(crate) unsafe fn type_of_array(array: pg_sys::Datum) -> pg_sys::Oid {
    // SAFETY: the caller's promise: the type of the elements lies in front of the dimensions.
    let element = unsafe { with_body(array, |body| body.add(ELEMENT).cast::<u32>().read_unaligned()) };
    AnyArray::of_elements(pg_sys::Oid::from(element)).unwrap_or(pg_sys::Oid::INVALID)
}

/// Reads arrays of any type, element by element.
#[derive(Debug, Clone, Copy)]
pub struct AnyArray {
    array: pg_sys::Oid,
    element: pg_sys::Oid,
}

impl AnyArray {
    /// A reader for arrays of this type, which may be a domain, if it is one of arrays.
    pub fn new(array: pg_sys::Oid) -> Option<AnyArray> {
        Some(AnyArray { array, element: element_type(array)? })
    }

    /// The type of arrays of such elements, if there is one.
    pub fn of_elements(element: pg_sys::Oid) -> Option<pg_sys::Oid> {
        // SAFETY: a lookup in the system cache; InvalidOid if there are no such arrays.
        let array = unsafe { pg_sys::get_array_type(element) };
        (array != pg_sys::Oid::INVALID).then_some(array)
    }

    /// The type of the elements.
    #[inline]
    pub fn element(&self) -> pg_sys::Oid {
        self.element
    }

    /// How many dimensions an array has.
    #[inline]
    pub fn dimensions(&self, array: TypedDatum<'_>) -> usize {
        // SAFETY: the value is an array, by its type, and begins with how many dimensions it has.
        unsafe { with_body(array.of_type(self.array), |body| body.cast::<u32>().read_unaligned() as usize) }
    }

    /// Shows `f` the elements; None for NULL.
    pub fn with_elements<R>(
        &self,
        array: TypedDatum<'_>,
        f: impl for<'e> FnOnce(&[Option<TypedDatum<'e>>]) -> R,
    ) -> Result<R, ArrayFault> {
        // SAFETY: the value is an array, by its type, and its elements are of the type that such arrays have.
        unsafe {
            with_elements(array.of_type(self.array), |elements| {
                let typed = |element: &Option<_>| element.map(|datum| TypedDatum::new(datum, self.element));
                f(&elements.iter().map(typed).collect::<Vec<_>>())
            })
        }
    }
}

/// An array of values of one type that is built element by element.
pub struct ArrayBuilder {
    memory: OwnContext,
    state: *mut pg_sys::ArrayBuildState,
    element: pg_sys::Oid,
    array: pg_sys::Oid,
}

/// An array that was built, until another is begun.
pub struct BuiltArray<'a> {
    datum: pg_sys::Datum,
    array: pg_sys::Oid,
    builder: PhantomData<&'a mut ArrayBuilder>,
}

impl ArrayBuilder {
    /// An empty array of such elements; None if there are no arrays of them.
    pub fn new(element: pg_sys::Oid) -> Option<ArrayBuilder> {
        let array = AnyArray::of_elements(element)?;
        Some(ArrayBuilder { memory: OwnContext::new(c"corgipile array"), state: std::ptr::null_mut(), element, array })
    }

    /// Appends a copy of a value.
    pub fn push(&mut self, value: TypedDatum<'_>) {
        let datum = value.of_type(self.element);
        if self.state.is_null() {
            self.memory.reset();
        }
        // SAFETY: the value is of the element's type; the state lies in our own memory.
        self.state = self.memory.context().enter(|| unsafe {
            pg_sys::accumArrayResult(self.state, datum, false, self.element, pg_sys::CurrentMemoryContext)
        });
    }

    /// The array; self is empty afterwards.
    pub fn take(&mut self) -> BuiltArray<'_> {
        let state = std::mem::replace(&mut self.state, std::ptr::null_mut());
        // SAFETY: a state that push() has made, whose memory goes with it; or none, for an array without elements.
        let datum = self.memory.context().enter(|| unsafe {
            if state.is_null() {
                pg_sys::Datum::from(pg_sys::construct_empty_array(self.element))
            } else {
                pg_sys::makeArrayResult(state, pg_sys::CurrentMemoryContext)
            }
        });
        BuiltArray { datum, array: self.array, builder: PhantomData }
    }
}

impl BuiltArray<'_> {
    /// The array as a value.
    pub fn typed(&self) -> TypedDatum<'_> {
        // SAFETY: take() has made an array of this type, which stays until the builder makes another.
        unsafe { TypedDatum::new(self.datum, self.array) }
    }
}

/// A double precision array of one or two dimensions: how many rows and columns, and the elements.
/// One dimension is a column.
pub fn read_matrix(value: TypedDatum<'_>) -> Result<([usize; 2], bool, Vec<f64>), ArrayFault> {
    let datum = value.of_type(pg_sys::FLOAT8ARRAYOID);
    // SAFETY: the value is a float8[], by its type; its dimensions lie behind its header, its elements, without NULLs,
    // behind these.
    unsafe {
        let array = pg_sys::pg_detoast_datum(datum.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
        let dimensions = (*array).ndim as usize;
        if dimensions > 2 {
            return Err(ArrayFault::Dimensions(dimensions));
        }
        let sizes = std::slice::from_raw_parts(array.add(1).cast::<i32>(), dimensions);
        let [rows, columns] = match sizes {
            [] => [0, 1],
            [rows] => [*rows as usize, 1],
            [rows, columns, ..] => [*rows as usize, *columns as usize],
        };
        let mut values = allocation::with_capacity(rows * columns);
        let (mut datums, mut nulls, mut n) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            pg_sys::FLOAT8OID,
            size_of::<f64>() as i32,
            true,
            pg_sys::TYPALIGN_DOUBLE as std::ffi::c_char,
            &mut datums,
            &mut nulls,
            &mut n,
        );
        for i in 0..n as usize {
            if *nulls.add(i) {
                return Err(ArrayFault::Null(i + 1));
            }
            values.push(f64::from_bits((*datums.add(i)).value() as u64));
        }
        Ok(([rows, columns], dimensions == 2, values))
    }
}

/// The elements of any array of at most one dimension, as `read` reads them; None for NULL.
///
/// # Safety
/// The datum is an array.
pub(crate) unsafe fn elements<T>(
    datum: pg_sys::Datum,
    mut read: impl FnMut(pg_sys::Datum) -> T,
) -> Result<Vec<Option<T>>, ArrayFault> {
    // SAFETY: the caller's promise.
    unsafe {
        with_elements(datum, |elements| allocation::collect(elements.iter().map(|element| element.map(&mut read))))
    }
}

/// Shows `f` the elements of any array of at most one dimension, as long as it runs; None for NULL.
///
/// # Safety
/// The datum is an array.
unsafe fn with_elements<R>(
    datum: pg_sys::Datum,
    f: impl FnOnce(&[Option<pg_sys::Datum>]) -> R,
) -> Result<R, ArrayFault> {
    // SAFETY: the caller's promise; the copy is freed by no one else.
    unsafe {
        let array = pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr());
        let result = f(&datums(array.cast())?);
        pg_sys::pfree(array.cast());
        Ok(result)
    }
}

/// The elements of an array in memory; None for NULL.
///
/// # Safety
/// It is an array, which stays as long as the elements are used.
unsafe fn datums(array: *mut pg_sys::ArrayType) -> Result<Vec<Option<pg_sys::Datum>>, ArrayFault> {
    // SAFETY: the caller's promise; deconstruct_array gives as many elements as it has.
    unsafe {
        if (*array).ndim > 1 {
            return Err(ArrayFault::Dimensions((*array).ndim as usize));
        }
        let element = (*array).elemtype;
        let (mut len, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(element, &mut len, &mut by_value, &mut align);
        let (mut values, mut nulls, mut n) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(array, element, len.into(), by_value, align, &mut values, &mut nulls, &mut n);
        let element = |i| (!*nulls.add(i)).then_some(*values.add(i));
        let elements = allocation::collect((0..n as usize).map(element));
        if !values.is_null() {
            pg_sys::pfree(values.cast());
            pg_sys::pfree(nulls.cast());
        }
        Ok(elements)
    }
}

/// Shows `f` the array behind its length word, detoasted if need be.
///
/// # Safety
/// The datum is a value of variable length.
#[inline(always)]
pub(crate) unsafe fn with_body<R>(datum: pg_sys::Datum, f: impl FnOnce(*const u8) -> R) -> R {
    let at: *mut u8 = datum.cast_mut_ptr();
    // SAFETY: the caller's promise; a detoasted copy has a length word and is freed by no one else.
    unsafe {
        if let Some(body) = header::body_at(at) {
            return f(body);
        }
        detoasted::count(1);
        let copy = pg_sys::pg_detoast_datum_copy(at.cast());
        let result = f(copy.cast::<u8>().add(header::WORD));
        pg_sys::pfree(copy.cast());
        result
    }
}
