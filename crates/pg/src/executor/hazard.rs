//! Why a query cannot run in a worker process.

use super::walk::any_node;
use crate::process::parallel::Unavailable;
use pgrx::prelude::*;
use std::ffi::c_void;

pub(super) const CALLS_UNSAFE: Unavailable = Unavailable::Borrowed("the source is not parallel safe");
pub(super) const EXTENSION_NODE: Unavailable = Unavailable::Borrowed("custom scan of another extension");

/// Is there anything in a query that a worker process must not do? PostgreSQL's own answer, max_parallel_hazard(), is
/// about parts of plans, where a subquery's result may come from the leader; here the whole query runs in one process.
///
/// # Safety
/// It is an analysed query.
pub(super) unsafe fn is_unsafe(query: *mut pg_sys::Query) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: the caller's promise.
    unsafe {
        any_node(query.cast(), |node| match (*node).type_ {
            // the functions of a domain's constraints are found when it is used
            T_NextValueExpr | T_CoerceToDomain => Some(true),
            _ => pg_sys::check_functions_in_node(node, Some(is_unsafe_function), std::ptr::null_mut()).then_some(true),
        })
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_unsafe_function(function: pg_sys::Oid, _context: *mut c_void) -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::func_parallel(function) as u8 != pg_sys::PROPARALLEL_SAFE }
}

/// What in the range table of a plan worker processes cannot read.
///
/// # Safety
/// It is the range table of a finished plan.
pub(super) unsafe fn hazard_of_relations(range_table: *mut pg_sys::List) -> Option<Unavailable> {
    // SAFETY: the caller's promise: a range table holds RangeTblEntry nodes,
    // those of a finished plan with all its relations.
    unsafe {
        let table = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg(range_table);
        table.iter_ptr().filter(|entry| (**entry).rtekind == pg_sys::RTEKind::RTE_RELATION).find_map(|entry| {
            let entry = &*entry;
            if pg_sys::get_rel_persistence(entry.relid) as u8 == pg_sys::RELPERSISTENCE_TEMP {
                Some(Unavailable::Borrowed("temporary table"))
            } else if entry.relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
                Some(Unavailable::Borrowed("foreign table"))
            } else if !entry.tablesample.is_null()
                && pg_sys::func_parallel((*entry.tablesample).tsmhandler) as u8 != pg_sys::PROPARALLEL_SAFE
            {
                Some(CALLS_UNSAFE)
            } else {
                None
            }
        })
    }
}
