//! A value of PostgreSQL's together with its type: what makes reading it safe.
//!
//! A bare `Datum` is a number or a pointer, and nothing in it says which. A [`TypedDatum`] is made where the type is
//! known (a tuple descriptor, a call's expression, a query's parameters),
//! and anyone who follows the pointer compares the type first.

use crate::catalog::types::base_type;
use crate::encoding;
use crate::errors::{OrRaise, Result};
use pgrx::pg_sys::{self, Datum, Oid};
use pgrx::{Array, FromDatum, IntoDatum};
use std::any::type_name;
use std::marker::PhantomData;

/// A value that is not NULL, and its declared type, which may be a domain. It is valid for as long as it borrows.
#[derive(Clone, Copy)]
pub struct TypedDatum<'a> {
    datum: Datum,
    type_oid: Oid,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> TypedDatum<'a> {
    /// A value of this type.
    ///
    /// # Safety
    /// The datum is a value of the type, and what it points to stays as it is for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(datum: Datum, type_oid: Oid) -> TypedDatum<'a> {
        TypedDatum { datum, type_oid, borrowed: PhantomData }
    }

    /// A value of a column of a table, whose attribute says the type.
    ///
    /// # Safety
    /// The datum is a value of that column, and what it points to stays as it is for `'a`.
    pub unsafe fn from_column(datum: Datum, attribute: &pg_sys::FormData_pg_attribute) -> TypedDatum<'a> {
        // SAFETY: the caller's promise.
        unsafe { TypedDatum::new(datum, attribute.atttypid) }
    }

    /// The value as a datum, which only unsafe code can use. An ERROR if it has another type,
    /// see [`TypedDatum::of_type`].
    #[inline]
    pub fn datum_of_type(self, expected: Oid) -> Datum {
        self.of_type(expected)
    }

    /// The declared type.
    #[inline(always)]
    pub fn type_oid(self) -> Oid {
        self.type_oid
    }

    /// The value itself: a number, or a pointer that only unsafe code follows.
    #[inline(always)]
    pub(crate) fn datum(self) -> Datum {
        self.datum
    }

    /// The bits of a value of a type that is passed by value; of another type they mean nothing.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.datum.value() as u64
    }

    /// The value of a column of booleans.
    #[inline]
    pub fn is_true(self) -> bool {
        self.bits() as u8 != 0
    }

    /// The value as one of Rust's own. An ERROR if it has another type, or is a text that is not UTF-8.
    pub fn to_rust<T: FromDatum + IntoDatum>(self) -> Option<T> {
        if !is_same_in_memory(self.type_oid, T::type_oid()) {
            pgrx::error!(
                "a value of type {} was found where {} was expected",
                self.type_oid.to_u32(),
                type_name::<T>()
            );
        }
        // SAFETY: the value is of a type that T's own is the same as in memory.
        unsafe {
            match T::type_oid() {
                pg_sys::TEXTOID if !encoding::is_utf8() => self.check_text().or_raise(),
                pg_sys::TEXTARRAYOID if !encoding::is_utf8() => self.check_texts().or_raise(),
                _ => (),
            }
            T::from_datum(self.datum, false)
        }
    }

    /// Is a text UTF-8?
    ///
    /// # Safety
    /// The value is a text, whose bytes lie as a bytea's do.
    #[cold]
    unsafe fn check_text(self) -> Result<()> {
        // SAFETY: the caller's promise.
        let text = unsafe { <&[u8]>::from_datum(self.datum, false) };
        text.map_or(Ok(""), encoding::text).map(drop)
    }

    /// Are all texts of an array UTF-8? pgrx does not ask.
    ///
    /// # Safety
    /// The value is an array of texts, whose bytes lie as a bytea's do.
    #[cold]
    unsafe fn check_texts(self) -> Result<()> {
        // SAFETY: the caller's promise.
        let texts = unsafe { Array::<&[u8]>::from_datum(self.datum, false) };
        texts.iter().flat_map(Array::iter).flatten().try_for_each(|text| encoding::text(text).map(drop))
    }

    /// The value, whose type is `expected`, or has the same base type. An ERROR if it is neither: its bytes would be
    /// taken for something else.
    #[inline(always)]
    pub(crate) fn of_type(self, expected: Oid) -> Datum {
        if self.type_oid != expected {
            self.check_base(expected);
        }
        self.datum
    }

    #[cold]
    #[inline(never)]
    fn check_base(self, expected: Oid) {
        if base_type(self.type_oid) != base_type(expected) {
            pgrx::error!(
                "a value of type {} was found where one of type {} was expected",
                self.type_oid.to_u32(),
                expected.to_u32()
            );
        }
    }
}

/// Can values of one type stand where those of another are declared, as far as memory is concerned?
///
/// They can if both are passed by value with the same length, whatever they mean, if their base types are the same, or
/// if they are arrays of which that is true. Texts of all kinds are the same, too, and types that PostgreSQL takes for
/// texts without a function.
pub fn is_same_in_memory(one: Oid, other: Oid) -> bool {
    if one == other {
        return true;
    }
    let length = |oid| {
        let (mut len, mut by_value) = (0, false);
        // SAFETY: a catalog lookup that fills two numbers.
        unsafe { pg_sys::get_typlenbyval(oid, &mut len, &mut by_value) };
        (len, by_value)
    };
    let (one_length, other_length) = (length(one), length(other));
    if one_length.1 && one_length == other_length {
        return true;
    }
    let (one, other) = (base_type(one), base_type(other));
    // SAFETY: a catalog lookup. Blanks at the end are why a bpchar is made a text by a function.
    let is_text = |oid| oid == pg_sys::BPCHAROID || unsafe { pg_sys::IsBinaryCoercible(oid, pg_sys::TEXTOID) };
    // SAFETY: catalog lookups; InvalidOid of what is no array.
    let element = |oid| unsafe { pg_sys::get_element_type(oid) };
    let elements = (element(one), element(other));
    one == other
        || (is_text(one) && is_text(other))
        || (![elements.0, elements.1].contains(&Oid::INVALID) && is_same_in_memory(elements.0, elements.1))
}
