//! A query of ours, for a node or a function: analysed and planned as the invoking user's own, so that privileges, row
//! security, views and expressions work as everywhere.

use super::custom_scan::CustomScan;
use super::extension_nodes::has_extension_nodes;
use super::hazard::{CALLS_UNSAFE, EXTENSION_NODE, hazard_of_relations, is_unsafe};
use super::node::is_beginning;
use super::origin::origin;
use super::plan::{is_made_of, is_node, put_on_parts, put_on_top};
use super::planned::PLAN;
pub use super::planned::Planned;
use super::planner::{Seeks, plan_query};
pub use super::running::Running;
use super::seeks::pages_cheap_to_seek;
use super::shards::{MaybeDistributed, reads_distributed};
use super::sorted::{Order, keep_order};
use super::table_sample::{only_table, sample_blocks};
use super::walk::any_node;
use crate::catalog::relation;
use crate::context::OwnContext;
use crate::errors::{Error, Result};
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, c_char};

/// One column of a query's result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Column {
    /// as the result has it
    pub name: String,
    /// the declared type; perhaps a domain
    pub type_oid: pg_sys::Oid,
    /// InvalidOid of a type without
    pub collation: pg_sys::Oid,
    /// is it a primary key's column, handed through as it is?
    pub is_key: bool,
    /// the table and its column that is handed through as it is, in subqueries and views, too
    pub origin: Option<(pg_sys::Oid, pg_sys::AttrNumber)>,
    /// may it be NULL, as far as is known? Not a column of a plain table that says so, handed through as it is
    pub may_be_null: bool,
    /// of a column of vectors, how many numbers each has, if that was looked at
    #[serde(default)]
    pub length: Option<usize>,
}

/// An analysed query.
pub struct Query {
    query: *mut pg_sys::Query,
    text: *const c_char,
    /// where both lie
    memory: OwnContext,
}

/// The one statement of a text written by a user, without what follows it (a semicolon, a comment).
///
/// # Errors
/// [`Error::NotOneSelect`]; PostgreSQL's own if it cannot be parsed.
pub fn only_select(text: &str) -> Result<&str> {
    let Ok(c_text) = CString::new(text) else { return Err(Error::NotOneSelect) };
    // SAFETY: the parser gets a C string and gives a list of RawStmts with positions in it.
    unsafe {
        let statements = pgrx::PgList::<pg_sys::RawStmt>::from_pg(pg_sys::pg_parse_query(c_text.as_ptr()));
        match statements.get_ptr(0) {
            Some(raw) if statements.len() == 1 && (*(*raw).stmt).type_ == pg_sys::NodeTag::T_SelectStmt => {
                let start = (*raw).stmt_location as usize;
                // a length of 0 means the rest of the text
                let len = if (*raw).stmt_len == 0 { text.len() - start } else { (*raw).stmt_len as usize };
                Ok(&text[start..start + len])
            }
            _ => Err(Error::NotOneSelect),
        }
    }
}

impl Query {
    /// Parses and analyses one SELECT. The relations in it are locked until the transaction ends; views are expanded
    /// and row security applied for the current user.
    ///
    /// # Errors
    /// [`Error::NotReadOnly`] if it would modify data or lock rows; PostgreSQL's own.
    pub fn analyze(sql: &str) -> Result<Query> {
        let Ok(sql) = CString::new(sql) else { return Err(Error::NotOneSelect) };
        let memory = OwnContext::new(PLAN);
        // SAFETY: the parser gets a C string, and its list of statements is analysed one by one.
        let (query, text) = memory.context().enter(|| unsafe {
            let text: *const c_char = pg_sys::pstrdup(sql.as_ptr());
            let raw = pg_sys::list_nth(pg_sys::pg_parse_query(text), 0).cast();
            let queries =
                pg_sys::pg_analyze_and_rewrite_fixedparams(raw, text, std::ptr::null(), 0, std::ptr::null_mut());
            let query = pg_sys::list_nth(queries, 0).cast::<pg_sys::Query>();
            if pg_sys::list_length(queries) != 1 || (*query).commandType != pg_sys::CmdType::CMD_SELECT {
                return Err(Error::NotOneSelect);
            }
            if writes(query) {
                return Err(Error::NotReadOnly);
            }
            Ok((query, text))
        })?;
        Ok(Query { query, text, memory })
    }

    /// The columns of the result.
    pub fn columns(&self) -> Vec<Column> {
        // SAFETY: the target list of an analysed query holds TargetEntry nodes with names.
        unsafe {
            let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*self.query).targetList);
            let tables = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((*self.query).rtable);
            // behind an outer join, any column may be NULL
            let only_table = tables
                .get_ptr(0)
                .filter(|table| tables.len() == 1 && (**table).rtekind == pg_sys::RTEKind::RTE_RELATION);
            let is_never_null = |target: *mut pg_sys::TargetEntry| {
                only_table.is_some_and(|table| (*table).relid == (*target).resorigtbl)
                    && relation::is_never_null((*target).resorigtbl, (*target).resorigcol)
            };
            targets
                .iter_ptr()
                .filter(|target| !(**target).resjunk)
                .map(|target| {
                    let origin = origin(self.query, target);
                    Column {
                        name: CStr::from_ptr((*target).resname).to_string_lossy().into_owned(),
                        type_oid: pg_sys::exprType((*target).expr.cast()),
                        collation: pg_sys::exprCollation((*target).expr.cast()),
                        is_key: origin.is_some_and(|(table, column)| relation::is_primary_key(table, column)),
                        origin,
                        may_be_null: !is_never_null(target),
                        length: None,
                    }
                })
                .collect()
        }
    }

    /// Does the query's first FROM item, as it was written, mean this relation?
    pub fn reads(&self, relation: pg_sys::Oid) -> bool {
        // SAFETY: a range table holds RangeTblEntry nodes; a view's keeps no relid once expanded on PostgreSQL 15, but
        // its OLD and NEW entries, which come first, are not there in a query's own range table.
        unsafe {
            let table = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((*self.query).rtable);
            table
                .get_ptr(0)
                .is_some_and(|first| (*first).relid == relation || (*first).rtekind == pg_sys::RTEKind::RTE_SUBQUERY)
        }
    }

    /// How many pages the tables may have for reads out of sequence to be cheap. It depends on settings and tablespaces
    /// alone.
    pub fn pages_cheap_to_seek(&self) -> u32 {
        // SAFETY: the query was made by analyze.
        unsafe { pages_cheap_to_seek(self.query) }
    }

    /// The table that the query reads if it does nothing but filter and compute on one, in views and subqueries, too.
    pub fn only_table(&self) -> Option<pg_sys::Oid> {
        // SAFETY: the query was made by analyze.
        unsafe { only_table(self.query).map(|entry| (*entry).relid) }
    }

    /// Does the query read a distributed table, and do nothing but filter and compute on it?
    pub fn reads_distributed(&self) -> bool {
        // SAFETY: the query was made by analyze.
        unsafe { reads_distributed(self.query) }
    }

    /// Makes the query read this percentage of the blocks of its only table, if it has one, drawn by the seed.
    pub fn sample_blocks(&mut self, percent: f32, seed: f64) {
        // SAFETY: the query was made by analyze, and is planned by a call that takes it.
        self.memory.context().enter(|| unsafe {
            if let Some(entry) = only_table(self.query) {
                sample_blocks(entry, percent, seed);
            }
        });
    }

    /// Plans the query as it is, without nodes of ours.
    pub fn plan_plainly(self) -> Planned {
        let Query { query, text, memory } = self;
        // SAFETY: the query was made by analyze and is planned only here.
        let (statement, is_part) = memory.context().enter(|| unsafe {
            let is_part = is_beginning();
            if is_part {
                (*query).queryId = 0;
            }
            (plan_query(query, text, None, "").0, is_part)
        });
        Planned::new(memory, statement, text, is_part)
    }

    /// Plans the query so that the rows come from a node `B` under a node `T`. `B` reads the table itself if that is
    /// wanted and the query only filters and computes on one; of a table with partitions or children, each gets a `B`
    /// of its own, below an Append, on which the first one stands. Else it gets the whole plan as its child.
    pub fn plan<T: CustomScan, B: CustomScan>(self, private: &str, reads_table: bool) -> Planned {
        let Query { query, text, memory } = self;
        // SAFETY: the query was made by analyze and is planned only here.
        let facts = memory.context().enter(|| unsafe {
            // before planning, which scribbles on it
            let calls_unsafe = is_unsafe(query);
            let maybe_distributed = MaybeDistributed::new(query);
            let is_part = is_beginning();
            if is_part {
                // no statement of its own to statistics, see Running::start
                (*query).queryId = 0;
            }
            let copy: *mut pg_sys::Query = pg_sys::copyObjectImpl(query.cast()).cast();
            let again = || pg_sys::copyObjectImpl(copy.cast()).cast::<pg_sys::Query>();
            let scan = reads_table.then(|| (B::methods(), B::seeks as Seeks));
            let (mut statement, used) = plan_query(query, text, scan, private);
            let mut made = used && is_made_of::<B>((*statement).planTree);
            if used && !made {
                // a B that is read row by row, next to a foreign table for instance,
                // is slower than PostgreSQL's own nodes
                (statement, _) = plan_query(again(), text, None, private);
            }
            let has_extension_nodes = has_extension_nodes(statement);
            let mut order = Order::default();
            if has_extension_nodes {
                order = keep_order(copy);
                if order.changed {
                    (statement, _) = plan_query(copy, text, None, private);
                    made = false;
                }
            }
            let mut plan = (*statement).planTree;
            if !is_node::<B>(plan) {
                let put = if made { put_on_parts::<B> } else { put_on_top::<B> };
                plan = put(plan, private);
            }
            (*statement).planTree = put_on_top::<T>(plan, private);
            let hazard = if has_extension_nodes {
                Some(EXTENSION_NODE)
            } else if calls_unsafe {
                Some(CALLS_UNSAFE)
            } else {
                hazard_of_relations((*statement).rtable)
            };
            (statement, hazard, has_extension_nodes && !order.is_fixed, is_part, maybe_distributed)
        });
        let (statement, hazard, order_varies, is_part, maybe_distributed) = facts;
        Planned { memory, statement, text, hazard, order_varies, is_part, maybe_distributed }
    }
}

/// Does the query, or one inside it, modify data or lock rows?
///
/// # Safety
/// It is an analysed query.
unsafe fn writes(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        any_node(query.cast(), |node| {
            let query = node.cast::<pg_sys::Query>();
            let is_query = (*node).type_ == pg_sys::NodeTag::T_Query;
            (is_query && ((*query).hasModifyingCTE || !(*query).rowMarks.is_null())).then_some(true)
        })
    }
}
