//! Plans that do nothing but read foreign tables of postgres_fdw, or a distributed table: what each of their servers is
//! asked.
//!
//! The statements are those that postgres_fdw has written itself. So filters, columns and the names that things have
//! there are its own affair. What it would compute here is refused.

use super::node::Flags;
use super::plan::child;
use super::planned::{PLAN, Planned};
use super::remote_rows::{ForeignRows, NotForeign, is_of_postgres_fdw};
use super::running::Running;
use crate::catalog::names::quote_identifier;
use crate::catalog::types::qualified_type_name;
use crate::compat::{prunes_at_start, scans_as};
use crate::context::OwnContext;
use crate::snapshot::Snapshot;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};

const COMPUTES: &str = "the source computes something";

impl Planned {
    /// The rows of each server, by its name, if the source has no others, and the user may read it. If several servers
    /// lead to the same place, one of `preferred` is taken.
    ///
    /// # Errors
    /// Why it has; that the user may not is raised.
    pub fn foreign_rows(&self, preferred: &[String]) -> Result<Vec<ForeignRows>, NotForeign> {
        self.check_privileges();
        if let Some(rows) = self.maybe_distributed.as_ref().and_then(|query| query.rows(preferred)) {
            return rows;
        }
        // SAFETY: a finished plan: ours, two nodes of which the lower one has the source's plan below it.
        let scans = unsafe { scans_of((*self.statement).planTree, (*self.statement).rtable) }?;
        let mut all: Vec<ForeignRows> = Vec::new();
        for scan in scans {
            match all.iter_mut().find(|rows| rows.server == scan.server) {
                Some(rows) => rows.sql = format!("{} UNION ALL {}", rows.sql, scan.sql),
                None => all.push(scan),
            }
        }
        all.sort_by(|a, b| a.server.cmp(&b.server));
        Ok(all)
    }

    /// An ERROR, as the executor's, unless the user may read what the plan reads. Other extensions hear of it.
    fn check_privileges(&self) {
        let memory = OwnContext::new(PLAN);
        // SAFETY: a finished plan, and its text.
        let (statement, text) = memory
            .context()
            .enter(|| unsafe { (pg_sys::copyObjectImpl(self.statement.cast()).cast(), pg_sys::pstrdup(self.text)) });
        let plan = Planned::new(memory, statement, text, self.is_part);
        Snapshot::with_active(|snapshot| Running::start(plan, snapshot, 0, Flags::TO_SHOW)).finish();
    }

    /// The names of the types of the columns.
    pub fn column_types(&self) -> Vec<String> {
        // SAFETY: a finished plan, whose target list has TargetEntry nodes.
        unsafe {
            let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*(*self.statement).planTree).targetlist);
            let types = targets.iter_ptr().filter(|target| !(**target).resjunk);
            types.map(|target| qualified_type_name(pg_sys::exprType((*target).expr.cast()))).collect()
        }
    }
}

/// The scans of a plan under our two nodes.
///
/// # Safety
/// It is a finished plan with this range table.
unsafe fn scans_of(plan: *mut pg_sys::Plan, range_table: *mut pg_sys::List) -> Result<Vec<ForeignRows>, NotForeign> {
    // SAFETY: the caller's promise; whose child is looked at has one.
    unsafe {
        let source = child(child(plan));
        if source.is_null() {
            return Err("the source is a table of this server".into());
        }
        if (*source).type_ != pg_sys::NodeTag::T_Append {
            return Ok(vec![rows_of_scan(source, source, range_table)?]);
        }
        let append = source.cast::<pg_sys::Append>();
        if prunes_at_start(append) {
            return Err("which of its tables are read is known only at run time".into());
        }
        if !(*source).qual.is_null() || !(*source).initPlan.is_null() {
            return Err("the source has a subquery".into());
        }
        let members = pgrx::PgList::<pg_sys::Plan>::from_pg((*append).appendplans);
        members.iter_ptr().map(|member| rows_of_scan(member, source, range_table)).collect()
    }
}

/// The rows of one scan, as columns of the names that `named` has.
///
/// # Safety
/// Both are plans of the same columns, with this range table.
unsafe fn rows_of_scan(
    plan: *mut pg_sys::Plan,
    named: *mut pg_sys::Plan,
    range_table: *mut pg_sys::List,
) -> Result<ForeignRows, NotForeign> {
    // SAFETY: the caller's promise; what fdw_private holds is known of postgres_fdw: the statement, and the columns
    // that it gives, by their numbers.
    unsafe {
        match (*plan).type_ {
            pg_sys::NodeTag::T_ForeignScan => {}
            pg_sys::NodeTag::T_Result => return Err("the source has no rows, or computes something".into()),
            _ => return Err("some of its rows are on this server, or it does more than read and filter".into()),
        }
        let scan = &*plan.cast::<pg_sys::ForeignScan>();
        if scan.scan.scanrelid == 0 {
            return Err("it does more than read and filter".into());
        }
        if !is_of_postgres_fdw(scan.fs_server) {
            return Err("a foreign table is not one of postgres_fdw".into());
        }
        if !(*plan).qual.is_null() || !(*plan).initPlan.is_null() {
            return Err("a filter is not one that postgres_fdw sends to the server".into());
        }
        if !scan.fdw_exprs.is_null() {
            return Err("a filter has values that are known only at run time".into());
        }
        let as_user = scans_as(scan, range_table);
        if as_user != pg_sys::Oid::INVALID && as_user != pg_sys::GetUserId() {
            return Err("a view reads the foreign table as its owner".into());
        }
        if pg_sys::list_length(scan.fdw_private) < 2 {
            return Err("this version of postgres_fdw is not known".into());
        }
        let remote = pg_sys::list_nth(scan.fdw_private, 0).cast::<pg_sys::Node>();
        let retrieved = pg_sys::list_nth(scan.fdw_private, 1).cast::<pg_sys::List>();
        let is_list = !retrieved.is_null() && (*retrieved).type_ == pg_sys::NodeTag::T_IntList;
        if (*remote).type_ != pg_sys::NodeTag::T_String || !is_list {
            return Err("this version of postgres_fdw is not known".into());
        }
        let remote = CStr::from_ptr((*remote.cast::<pg_sys::String>()).sval).to_string_lossy();
        let count = pg_sys::list_length(retrieved);
        let numbers: Vec<c_int> = (0..count).map(|i| pg_sys::list_nth_int(retrieved, i)).collect();
        let names = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*named).targetlist);
        let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*plan).targetlist);
        let mut columns = Vec::new();
        for (target, name) in targets.iter_ptr().zip(names.iter_ptr()) {
            let value = match (*(*target).expr).type_ {
                pg_sys::NodeTag::T_Var => {
                    let number = c_int::from((*(*target).expr.cast::<pg_sys::Var>()).varattno);
                    let place = numbers.iter().position(|other| *other == number);
                    format!("c{}", place.ok_or("the source has whole rows, or columns of the system")? + 1)
                }
                pg_sys::NodeTag::T_Const => constant((*target).expr.cast())?,
                _ => return Err(COMPUTES.into()),
            };
            let name = CStr::from_ptr((*name).resname).to_string_lossy();
            columns.push(format!("{value} AS {}", quote_identifier(&name)));
        }
        if count == 0 {
            return Err("it has nothing but constants".into());
        }
        let given: Vec<String> = (1..=count).map(|i| format!("c{i}")).collect();
        let sql = format!("SELECT {} FROM ({remote}) AS r({})", columns.join(", "), given.join(", "));
        let server = (*pg_sys::GetForeignServer(scan.fs_server)).servername;
        Ok(ForeignRows { server: CStr::from_ptr(server).to_string_lossy().into_owned(), sql })
    }
}

/// A constant as SQL writes it, if it is of a type whose text depends on no setting and is read alike everywhere.
///
/// # Safety
/// It is one.
unsafe fn constant(constant: *mut pg_sys::Const) -> Result<String, NotForeign> {
    // SAFETY: the caller's promise; a float is passed by value.
    unsafe {
        match (*constant).consttype {
            pg_sys::FLOAT8OID if !(*constant).constisnull => {
                let value = f64::from_bits((*constant).constvalue.value() as u64);
                Ok(format!("'{value:?}'::pg_catalog.float8"))
            }
            pg_sys::INT4OID | pg_sys::INT8OID | pg_sys::NUMERICOID | pg_sys::BOOLOID | pg_sys::TEXTOID => {
                let text = pg_sys::deparse_expression(constant.cast(), std::ptr::null_mut(), false, false);
                Ok(CStr::from_ptr(text).to_string_lossy().into_owned())
            }
            _ => Err(COMPUTES.into()),
        }
    }
}
