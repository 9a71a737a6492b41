//! Queries of ours that PostgreSQL runs as a function's own (SPI): as the invoking user, with everything that a query
//! of the user's would meet.

use crate::context::Context;
use crate::errors::{Error, Result};
use crate::values::typed::TypedDatum;
use crate::values::varlena::Bytes;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};

/// A connection to the server programming interface. What an ERROR leaves behind goes with the transaction.
pub struct Connection(Context<'static>);

/// A prepared statement of a connection.
pub struct Prepared<'a> {
    plan: pg_sys::SPIPlanPtr,
    /// of the parameters
    types: Vec<pg_sys::Oid>,
    context: Context<'a>,
}

/// The rows that a statement gave, valid until the next one runs.
pub struct Rows<'a> {
    table: *mut pg_sys::SPITupleTable,
    context: Context<'a>,
}

/// Which rows a statement sees.
#[derive(Clone, Copy)]
pub enum Sees {
    /// what the calling statement sees
    Statement,
    /// and what this session has written since; may write
    AndOwn,
}

impl Connection {
    /// Connects.
    pub fn open() -> Connection {
        // SAFETY: closed in close(), or by the end of the transaction. It makes its context the current one, which is
        // only given out for as long as the connection is borrowed.
        unsafe {
            pg_sys::SPI_connect();
            Connection(Context::current())
        }
    }

    /// The memory context of the connection.
    pub fn context(&self) -> Context<'_> {
        self.0
    }

    /// Disconnects: all rows and prepared statements go.
    pub fn close(self) {
        // SAFETY: connected in open(), once.
        unsafe { pg_sys::SPI_finish() };
    }

    /// Prepares a statement with parameters of these types. If `parallel`, it may be run by several processes.
    pub fn prepare(&self, sql: &str, types: &[pg_sys::Oid], parallel: bool) -> Result<Prepared<'_>> {
        let Ok(sql) = CString::new(sql) else { return Err(Error::NotOneSelect) };
        // planned once, without the parameters' values: a model would be copied into the plan
        let options = pg_sys::CURSOR_OPT_GENERIC_PLAN | if parallel { pg_sys::CURSOR_OPT_PARALLEL_OK } else { 0 };
        let mut types = types.to_vec();
        // SAFETY: connected; the types are as many as said. The plan lives until the connection is closed.
        let plan = unsafe {
            pg_sys::SPI_prepare_cursor(sql.as_ptr(), types.len() as c_int, types.as_mut_ptr(), options as c_int)
        };
        if plan.is_null() {
            error!("could not prepare \"{}\"", sql.to_string_lossy());
        }
        Ok(Prepared { plan, types, context: self.context() })
    }

    /// Prepares and runs a statement without parameters.
    pub fn run(&self, sql: &str, sees: Sees) -> Result<Rows<'_>> {
        Ok(self.prepare(sql, &[], false)?.run(&[], sees))
    }
}

impl<'a> Prepared<'a> {
    /// Runs the statement with these values for its parameters; None is NULL. An ERROR if they are not of the
    /// parameters' types.
    ///
    /// # Panics
    /// If there are not as many as parameters.
    pub fn run(&self, values: &[Option<TypedDatum<'_>>], sees: Sees) -> Rows<'a> {
        assert_eq!(values.len(), self.types.len());
        let datum = |(value, type_oid): (&Option<TypedDatum>, &pg_sys::Oid)| {
            value.map_or(pg_sys::Datum::null(), |value| value.of_type(*type_oid))
        };
        let mut datums: Vec<pg_sys::Datum> = values.iter().zip(&self.types).map(datum).collect();
        let nulls: Vec<c_char> = values.iter().map(|v| if v.is_some() { b' ' } else { b'n' } as c_char).collect();
        // SAFETY: there are as many values as parameters, of their types; the snapshot is that of the statement that
        // called us, still active.
        unsafe {
            let (snapshot, read_only) = (pg_sys::GetActiveSnapshot(), matches!(sees, Sees::Statement));
            let result = pg_sys::SPI_execute_snapshot(
                self.plan,
                datums.as_mut_ptr(),
                nulls.as_ptr(),
                snapshot,
                std::ptr::null_mut(),
                read_only,
                true,
                0,
            );
            if result < 0 {
                error!(
                    "could not run a statement: {}",
                    CStr::from_ptr(pg_sys::SPI_result_code_string(result)).to_string_lossy()
                );
            }
            Rows { table: pg_sys::SPI_tuptable, context: self.context }
        }
    }
}

impl<'a> Rows<'a> {
    /// How many rows were given.
    pub fn len(&self) -> usize {
        // SAFETY: the table of the last statement; NULL if it gives no rows.
        if self.table.is_null() { 0 } else { unsafe { (*self.table).numvals as usize } }
    }

    /// Column `column`, counted from 0, of row `row`; None if it is NULL, or not there.
    pub fn value(&self, row: usize, column: usize) -> Option<TypedDatum<'_>> {
        assert!(row < self.len());
        let number = column as c_int + 1;
        // SAFETY: there is such a row; SPI_getbinval gives NULL for a column that is not there,
        // and the others have types.
        unsafe {
            let (tuple, descriptor) = (*(*self.table).vals.add(row), (*self.table).tupdesc);
            let mut null = false;
            let value = pg_sys::SPI_getbinval(tuple, descriptor, number, &mut null);
            (!null).then(|| TypedDatum::new(value, pg_sys::SPI_gettypeid(descriptor, number)))
        }
    }

    /// As [`Rows::value`], of a type of ours: a copy. An ERROR of a type without bytes.
    pub fn bytes(&self, row: usize, column: usize) -> Option<Bytes<'a>> {
        self.value(row, column).map(|value| Bytes::from_typed(self.context, value))
    }

    /// As [`Rows::value`], as a value of Rust's own. An ERROR if it has another type.
    pub fn get<T: FromDatum + IntoDatum>(&self, row: usize, column: usize) -> Option<T> {
        self.value(row, column).and_then(TypedDatum::to_rust)
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // Nothing may call PostgreSQL while an ERROR unwinds; the rows go with the transaction then.
        if !std::thread::panicking() && !self.table.is_null() {
            // SAFETY: given by SPI, freed once.
            unsafe { pg_sys::SPI_freetuptable(self.table) };
        }
    }
}
