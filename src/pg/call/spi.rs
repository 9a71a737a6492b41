//! Queries of ours that PostgreSQL runs as a function's own (SPI): as the invoking user, with everything that a query
//! of the user's would meet, and with settings that last no longer than they do.

use crate::errors::{Result, SourceError};
use crate::pg::values::varlena::Bytes;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};
use std::marker::PhantomData;

/// A connection to the server programming interface. What an ERROR leaves behind goes with the transaction.
pub struct Connection(());

/// A prepared statement of a connection.
pub struct Prepared<'a> {
    plan: pg_sys::SPIPlanPtr,
    connection: PhantomData<&'a Connection>,
}

/// A parameter; None is NULL.
pub type Parameter = (pg_sys::Oid, Option<pg_sys::Datum>);

/// The rows that a statement gave, valid until the next one runs.
pub struct Rows<'a> {
    table: *mut pg_sys::SPITupleTable,
    connection: PhantomData<&'a Connection>,
}

/// Which rows a statement sees.
#[derive(Clone, Copy)]
pub enum Sees {
    /// what the calling statement sees
    Snapshot(pg_sys::Snapshot),
    /// and what this session has written since; may write
    AndOwn(pg_sys::Snapshot),
}

impl Connection {
    /// Connects.
    pub fn open() -> Connection {
        // SAFETY: closed in close(), or by the end of the transaction.
        unsafe { pg_sys::SPI_connect() };
        Connection(())
    }

    /// Disconnects: all rows and prepared statements go.
    pub fn close(self) {
        // SAFETY: connected in open(), once.
        unsafe { pg_sys::SPI_finish() };
    }

    /// Prepares a statement with parameters of these types. If `parallel`, it may be run by several processes.
    ///
    /// # Errors
    /// PostgreSQL's own.
    pub fn prepare(&self, sql: &str, types: &[pg_sys::Oid], parallel: bool) -> Result<Prepared<'_>> {
        let Ok(sql) = CString::new(sql) else { return Err(SourceError::NotOneSelect.into()) };
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
        Ok(Prepared { plan, connection: PhantomData })
    }

    /// Prepares and runs a statement.
    ///
    /// # Errors
    /// PostgreSQL's own.
    pub fn run(&self, sql: &str, parameters: &[Parameter], sees: Sees) -> Result<Rows<'_>> {
        let types: Vec<pg_sys::Oid> = parameters.iter().map(|p| p.0).collect();
        let values: Vec<_> = parameters.iter().map(|p| p.1).collect();
        Ok(self.prepare(sql, &types, false)?.run(&values, sees))
    }
}

impl<'a> Prepared<'a> {
    /// Runs the statement with these values for its parameters.
    pub fn run(&self, values: &[Option<pg_sys::Datum>], sees: Sees) -> Rows<'a> {
        let mut datums: Vec<pg_sys::Datum> = values.iter().map(|v| v.unwrap_or(pg_sys::Datum::null())).collect();
        let nulls: Vec<c_char> = values.iter().map(|v| if v.is_some() { b' ' } else { b'n' } as c_char).collect();
        // SAFETY: as many values as parameters; the snapshot is that of the statement that called us, still active.
        unsafe {
            let (snapshot, read_only) = match sees {
                Sees::Snapshot(snapshot) => (snapshot, true),
                Sees::AndOwn(snapshot) => (snapshot, false),
            };
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
            Rows { table: pg_sys::SPI_tuptable, connection: PhantomData }
        }
    }
}

impl Rows<'_> {
    /// How many rows were given.
    pub fn len(&self) -> usize {
        // SAFETY: the table of the last statement; NULL if it gives no rows.
        if self.table.is_null() { 0 } else { unsafe { (*self.table).numvals as usize } }
    }

    /// Column `column`, counted from 0, of row `row`.
    pub fn value(&self, row: usize, column: usize) -> Option<pg_sys::Datum> {
        assert!(row < self.len());
        // SAFETY: there is such a row; SPI_getbinval gives NULL for a column that is not there.
        unsafe {
            let tuple = *(*self.table).vals.add(row);
            let mut null = false;
            let value = pg_sys::SPI_getbinval(tuple, (*self.table).tupdesc, column as c_int + 1, &mut null);
            (!null).then_some(value)
        }
    }

    /// As [`Rows::value`], of a type of ours: a copy in the current memory context.
    pub fn bytes(&self, row: usize, column: usize) -> Option<Bytes> {
        // SAFETY: the statement says that the column is such a varlena.
        self.value(row, column).map(|value| unsafe { Bytes::copy_of(value) })
    }

    /// As [`Rows::value`], as a value of Rust's own.
    pub fn get<T: FromDatum>(&self, row: usize, column: usize) -> Option<T> {
        // SAFETY: the statement says that the column is a T.
        self.value(row, column).and_then(|value| unsafe { T::from_datum(value, false) })
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

/// Settings that hold until they are [put back](Settings::restore), or until an ERROR ends the (sub)transaction.
pub struct Settings(c_int);

impl Settings {
    /// Sets each to its value, as the user might.
    pub fn set(settings: &[(&CStr, &CStr)]) -> Settings {
        // SAFETY: as a function's SET clause does it.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            for (name, value) in settings {
                pg_sys::set_config_option(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_USERSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                    pg_sys::GucAction::GUC_ACTION_SAVE,
                    true,
                    0,
                    false,
                );
            }
            Settings(level)
        }
    }

    /// Puts back what was set.
    pub fn restore(self) {
        // SAFETY: the nest level that was begun in set().
        unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
    }
}
