//! The call of a function once per row: arguments as they lie, and what is remembered from row to row.

use crate::errors::Result;
use crate::pg::values::varlena::Bytes;
use pgrx::{FromDatum, pg_sys};
use std::ffi::{CStr, c_int};

/// A call of a C function, with as little done per call as there is to do.
#[derive(Clone, Copy)]
pub struct RowCall(pg_sys::FunctionCallInfo);

impl RowCall {
    /// The call whose information PostgreSQL has passed, valid until it returns.
    #[inline(always)]
    pub fn new(fcinfo: pg_sys::FunctionCallInfo) -> RowCall {
        RowCall(fcinfo)
    }

    /// Argument `i`, None if NULL.
    #[inline(always)]
    pub fn argument(self, i: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the function's declaration says how many arguments there are; the callers keep to it.
        unsafe {
            let argument = (*self.0).args.as_slice((*self.0).nargs as usize)[i];
            (!argument.isnull).then_some(argument.value)
        }
    }

    /// Argument `i` as a value of Rust's own.
    pub fn get<T: FromDatum>(self, i: usize) -> Option<T> {
        // SAFETY: the declaration says that the argument is a T.
        self.argument(i).and_then(|datum| unsafe { T::from_datum(datum, false) })
    }

    /// Argument `i`, a double.
    #[inline(always)]
    pub fn double(self, i: usize) -> Option<f64> {
        self.argument(i).map(|datum| f64::from_bits(datum.value() as u64))
    }

    /// Argument `i`, a value of our own type, to be read. Copied if it was compressed or stored elsewhere.
    pub fn bytes(self, i: usize) -> Option<Bytes> {
        // SAFETY: the declaration says that the argument is a varlena; nobody changes the result.
        self.argument(i).map(|datum| unsafe { Bytes::in_place(datum) })
    }

    /// A copy of argument `i`, a value of our own type, to be changed.
    pub fn copied_bytes(self, i: usize) -> Option<Bytes> {
        // SAFETY: the declaration says that the argument is a varlena.
        self.argument(i).map(|datum| unsafe { Bytes::copy_of(datum) })
    }

    /// Argument 0, the state of an aggregate, to be changed: in place if an aggregate calls, whose own it is then, else
    /// a copy.
    #[inline(always)]
    pub fn state(self) -> Option<Bytes> {
        let datum = self.argument(0)?;
        // SAFETY: the declaration says that the argument is a varlena. The transition value of an aggregate is its own:
        // PostgreSQL allows its transition and combine functions to change it (xaggr, "in place").
        Some(unsafe { if self.in_aggregate() { Bytes::in_place(datum) } else { Bytes::copy_of(datum) } })
    }

    /// AggCheckCallContext, inline.
    #[inline(always)]
    fn in_aggregate(self) -> bool {
        // SAFETY: the context, if there is one, is a node.
        unsafe {
            let context = (*self.0).context;
            !context.is_null()
                && matches!((*context).type_, pg_sys::NodeTag::T_AggState | pg_sys::NodeTag::T_WindowAggState)
        }
    }

    /// The type of argument `i`, where the declaration is polymorphic; a domain is given as such.
    pub fn type_of(self, i: usize) -> pg_sys::Oid {
        // SAFETY: fn_expr, where the types are found, is set by whoever looks the function up for a query.
        unsafe { pg_sys::get_fn_expr_argtype((*self.0).flinfo, i as c_int) }
    }

    /// Shows `f` what an earlier call from the same place of the query has remembered, or what `make` makes now.
    ///
    /// # Errors
    /// Those of `make` and `f`.
    #[inline(always)]
    pub fn remembering<T>(self, make: impl FnOnce() -> Result<T>, f: impl FnOnce(&mut T) -> Result<()>) -> Result<()> {
        // SAFETY: fn_extra belongs to the function, is dropped with its memory context, and always holds a T: a C
        // function asks for one type only. No two calls from the same place run at a time.
        unsafe {
            let flinfo = (*self.0).flinfo;
            if (*flinfo).fn_extra.is_null() {
                let made = make()?;
                (*flinfo).fn_extra =
                    pgrx::PgMemoryContexts::For((*flinfo).fn_mcxt).leak_and_drop_on_delete(made).cast();
            }
            f(&mut *(*flinfo).fn_extra.cast::<T>())
        }
    }

    /// Argument 0 as a C string.
    pub fn text(self) -> Option<&'static CStr> {
        // SAFETY: the declaration says cstring; it lives at least as long as the call, and is only read during it.
        self.argument(0).map(|datum| unsafe { CStr::from_ptr(datum.cast_mut_ptr()) })
    }

    /// What is left of the message that argument 0 is, of a type's receive function.
    pub fn message(self) -> Option<&'static [u8]> {
        let message: *mut pg_sys::StringInfoData = self.argument(0)?.cast_mut_ptr();
        // SAFETY: a receive function gets a StringInfo and takes all that is left of it.
        unsafe {
            let len = (*message).len - (*message).cursor;
            let bytes = pg_sys::pq_getmsgbytes(message, len);
            Some(std::slice::from_raw_parts(bytes.cast(), len as usize))
        }
    }
}
