//! A table that a function of ours makes and fills.
//!
//! Where its name leads is decided once, before it is made, and the statement that fills it is planned once, for the
//! table itself: one of the same name that comes first in the search_path, or that was put into its place, gets no row,
//! and its triggers are not called.

use super::names::quote_identifier;
use crate::call::spi::{Connection, Sees};
use crate::compat::{parts_of_name, run_plan};
use crate::errors::{Error, Result};
use crate::snapshot::Snapshot;
use crate::values::typed::TypedDatum;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};

/// Where a table is to be made.
pub struct NewName {
    /// qualified and quoted
    name: String,
}

/// A table that was just made, and how rows come into it.
pub struct NewTable {
    insert: *mut pg_sys::PlannedStmt,
    /// the statement's text
    text: *const c_char,
    /// of the columns
    types: Vec<pg_sys::Oid>,
}

impl NewName {
    /// A name as users write it, of one or two parts; a name of one part is made in the schema in which CREATE TABLE
    /// would make it. None of another one.
    ///
    /// # Errors
    /// [`Error::TableReplaced`]; PostgreSQL's own of what is no name, and of a schema that is not there.
    pub fn read(name: &str) -> Result<Option<NewName>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        // SAFETY: a list of String nodes, as many as the name has parts; catalog lookups.
        unsafe {
            let parts = pgrx::PgList::<pg_sys::String>::from_pg(parts_of_name(&name));
            let Some(last) = parts.iter_ptr().last().filter(|_| parts.len() <= 2) else { return Ok(None) };
            let text = |name: *const c_char| quote_identifier(&CStr::from_ptr(name).to_string_lossy());
            let range = pg_sys::makeRangeVarFromNameList(parts.as_ptr());
            let schema = pg_sys::get_namespace_name(pg_sys::RangeVarGetCreationNamespace(range));
            if schema.is_null() {
                return Err(Error::TableReplaced(text((*last).sval)));
            }
            Ok(Some(NewName { name: format!("{}.{}", text(schema), text((*last).sval)) }))
        }
    }

    /// Makes the table. `columns` are names, quoted, with their types as SQL writes them, and the types.
    ///
    /// # Errors
    /// PostgreSQL's own; [`Error::TableReplaced`]
    pub fn create(&self, connection: &Connection, columns: &[(String, pg_sys::Oid)], sees: Sees) -> Result<NewTable> {
        let (list, types): (Vec<&str>, Vec<_>) = columns.iter().map(|(column, oid)| (column.as_str(), *oid)).unzip();
        connection.run(&format!("CREATE TABLE {} ({})", self.name, list.join(", ")), sees)?;
        self.plan_insert(types)
    }

    /// The statement that fills the table.
    fn plan_insert(&self, types: Vec<pg_sys::Oid>) -> Result<NewTable> {
        let values: Vec<String> = (1..=types.len()).map(|i| format!("${i}")).collect();
        let sql = format!("INSERT INTO {} VALUES ({})", self.name, values.join(", "));
        let sql = CString::new(sql).map_err(|_| Error::TableReplaced(self.name.clone()))?;
        // SAFETY: text and statement live in the current memory context; there are as many types as parameters. An
        // analysed INSERT has a result relation, which is open and locked until the transaction ends.
        unsafe {
            let text: *const c_char = pg_sys::pstrdup(sql.as_ptr());
            let raw = pg_sys::list_nth(pg_sys::pg_parse_query(text), 0).cast();
            let (given, n) = (types.as_ptr(), types.len() as c_int);
            let queries = pg_sys::pg_analyze_and_rewrite_fixedparams(raw, text, given, n, std::ptr::null_mut());
            let queries = pgrx::PgList::<pg_sys::Query>::from_pg(queries);
            // a rule would make it another statement, or several
            let [query] = queries.iter_ptr().collect::<Vec<_>>()[..] else {
                return Err(Error::TableReplaced(self.name.clone()));
            };
            let is_insert = (*query).commandType == pg_sys::CmdType::CMD_INSERT && (*query).resultRelation > 0;
            if !is_insert || !is_of_this_subtransaction(query) {
                return Err(Error::TableReplaced(self.name.clone()));
            }
            Ok(NewTable { insert: pg_sys::pg_plan_query(query, text, 0, std::ptr::null_mut()), text, types })
        }
    }
}

/// Was the table that a query writes to made in the current subtransaction? No one else knows such a table.
///
/// # Safety
/// `query` is an analysed statement with a result relation.
unsafe fn is_of_this_subtransaction(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the number of an entry of the range table, which is a relation's; it is locked.
    unsafe {
        let entry = pg_sys::list_nth((*query).rtable, (*query).resultRelation - 1).cast::<pg_sys::RangeTblEntry>();
        let relation = pg_sys::RelationIdGetRelation((*entry).relid);
        if relation.is_null() {
            return false;
        }
        let is = (*relation).rd_createSubid == pg_sys::GetCurrentSubTransactionId();
        pg_sys::RelationClose(relation);
        is
    }
}

impl NewTable {
    /// Inserts a row: a value for each column. Constraints and triggers hold that something else may have put on the
    /// table when it was made. An ERROR if a value is not of its column's type.
    ///
    /// # Panics
    /// If there are not as many values as columns.
    pub fn insert(&self, values: &[TypedDatum<'_>]) {
        assert_eq!(values.len(), self.types.len());
        // SAFETY: a plan with as many parameters as there are values, which are of their types. The query has the
        // snapshot of the calling statement, which is active; its values live as long as it runs.
        Snapshot::with_active(|snapshot| unsafe {
            let parameters = pg_sys::makeParamList(values.len() as c_int);
            let of = (*parameters).params.as_mut_slice(values.len());
            for ((parameter, value), ptype) in of.iter_mut().zip(values).zip(&self.types) {
                let pflags = pg_sys::PARAM_FLAG_CONST as u16;
                let value = value.of_type(*ptype);
                *parameter = pg_sys::ParamExternData { value, isnull: false, pflags, ptype: *ptype };
            }
            let query = pg_sys::CreateQueryDesc(
                self.insert,
                self.text,
                snapshot.as_ptr(),
                std::ptr::null_mut(),
                pg_sys::None_Receiver,
                parameters,
                std::ptr::null_mut(),
                0,
            );
            pg_sys::PushActiveSnapshot((*query).snapshot);
            pg_sys::ExecutorStart(query, 0);
            run_plan(query, pg_sys::ScanDirection::ForwardScanDirection);
            pg_sys::ExecutorFinish(query);
            pg_sys::ExecutorEnd(query);
            pg_sys::PopActiveSnapshot();
            pg_sys::FreeQueryDesc(query);
            pg_sys::pfree(parameters.cast());
        });
    }

    /// Ends it: later rows in the transaction sees the rows.
    pub fn finish(self) {
        // SAFETY: a function that writes may begin a new command.
        unsafe { pg_sys::CommandCounterIncrement() };
    }
}
