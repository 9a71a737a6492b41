//! Values of a variable-length type of our own: bytes behind a length word, which an aggregate changes where they lie.

use crate::errors::{AggregateError, Result};
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use std::ops::{Deref, DerefMut};

/// Most bytes that a value may have: PostgreSQL's limit for any value, with its length word.
pub const MAX_BYTES: usize = 0x3FFF_FFFF - pg_sys::VARHDRSZ;

/// A value that may be changed: its bytes lie behind a length word of four bytes, uncompressed.
pub struct Bytes(*mut pg_sys::varlena);

impl Bytes {
    /// A new value with these bytes, in the current memory context.
    ///
    /// # Errors
    /// [`AggregateError::StateTooLarge`]
    pub fn new(bytes: &[u8]) -> Result<Bytes> {
        if bytes.len() > MAX_BYTES {
            return Err(AggregateError::StateTooLarge(bytes.len()).into());
        }
        // SAFETY: palloc gives as many bytes as asked for, or raises an error.
        unsafe {
            let at = pg_sys::palloc(bytes.len() + pg_sys::VARHDRSZ).cast::<pg_sys::varlena>();
            pgrx::set_varsize_4b(at, (bytes.len() + pg_sys::VARHDRSZ) as i32);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>().add(pg_sys::VARHDRSZ), bytes.len());
            Ok(Bytes(at))
        }
    }

    /// A copy of a value, in the current memory context.
    pub(in crate::pg) unsafe fn copy_of(datum: pg_sys::Datum) -> Bytes {
        // SAFETY: the caller says that the datum is a varlena; a detoasted copy has a length word of four bytes.
        unsafe { Bytes(pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr())) }
    }

    /// The value itself if it can be changed where it lies, else a copy. The caller may change it.
    pub(in crate::pg) unsafe fn in_place(datum: pg_sys::Datum) -> Bytes {
        let at = datum.cast_mut_ptr::<u8>();
        // SAFETY: a varlena begins with a header that tells its kind (little-endian, varatt.h).
        unsafe { if *at & 3 == 0 { Bytes(at.cast()) } else { Bytes::copy_of(datum) } }
    }

    /// The value as a parameter of a query, valid as long as self is not freed.
    pub fn datum(&self) -> pg_sys::Datum {
        pg_sys::Datum::from(self.0)
    }

    /// Gives the memory back before its context goes.
    pub fn free(self) {
        // SAFETY: palloced; nobody else has it.
        unsafe { pg_sys::pfree(self.0.cast()) }
    }

    /// The value as PostgreSQL passes it on.
    pub fn into_value(self) -> Value {
        Value(pg_sys::Datum::from(self.0))
    }
}

/// Shows `f` the bytes of a value of one of our types, of a bytea or a text, detoasted if need be.
pub fn with_bytes<R>(datum: pg_sys::Datum, f: impl FnOnce(&[u8]) -> R) -> R {
    let at = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the caller says that the datum is a varlena; packed, its header has one byte or four and says how many follow.
    unsafe {
        let packed = pg_sys::pg_detoast_datum_packed(at);
        let bytes = std::slice::from_raw_parts(pgrx::vardata_any(packed).cast::<u8>(), pgrx::varsize_any_exhdr(packed));
        let result = f(bytes);
        if packed != at {
            pg_sys::pfree(packed.cast());
        }
        result
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the length word says how many bytes follow it.
        unsafe {
            let len = pgrx::varsize_4b(self.0) - pg_sys::VARHDRSZ;
            std::slice::from_raw_parts(self.0.cast::<u8>().add(pg_sys::VARHDRSZ), len)
        }
    }
}

impl DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: as above; whoever made self may change what it points to.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast::<u8>().add(pg_sys::VARHDRSZ), len) }
    }
}

/// What a function returns: a value of a type that only the install script knows.
pub struct Value(pub(in crate::pg) pg_sys::Datum);

impl Value {
    /// A value of the type that the function's declaration in SQL says.
    pub fn of(datum: pg_sys::Datum) -> Value {
        Value(datum)
    }
}

// SAFETY: the datum is what the function's declaration says.
unsafe impl BoxRet for Value {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: as above.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

// SAFETY: nothing is generated from it: the functions are declared by hand in sql/.
unsafe impl SqlTranslatable for Value {
    const TYPE_IDENT: &'static str = pgrx::pgrx_resolved_type!(Value);
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
        Err(ArgumentError::NotValidAsArgument("Value"));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal("corgipile.sgd_state")));
}
