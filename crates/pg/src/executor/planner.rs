//! Planning: functions in FROM that become nodes, and queries of ours whose table is read by a node.
//!
//! Both live in one set_rel_pathlist_hook. Whatever does not fit exactly is left alone: the function is then called as
//! any other function, and the table read as any other table.

use super::estimates::cost_of_scan;
use super::extension_nodes::has_only_paths_of_postgres;
use super::function_paths::{self, FunctionNode};
use super::methods::Methods;
use super::paths::{private_list, private_text, replace_paths};
use crate::settings::Settings;
use crate::tuples::heap::HeapRelation;
use pgrx::prelude::*;
use std::cell::Cell;

thread_local! {
    static PREVIOUS_HOOK: Cell<pg_sys::set_rel_pathlist_hook_type> = const { Cell::new(None) };
    static INNER: Cell<Option<Inner>> = const { Cell::new(None) };
}

/// The number of blocks of a table of this many pages that a node reads, if not in sequence, by its private text.
pub(super) type Seeks = fn(&str, u32) -> u32;

/// The query of ours that is being planned. It is known by its pointer: other queries that the planner meets meanwhile,
/// in functions that it inlines or evaluates, are not meant.
#[derive(Clone, Copy)]
struct Inner {
    query: *mut pg_sys::Query,
    scan: &'static Methods,
    private: *mut pg_sys::List,
    seeks: Seeks,
    /// is there a table that it reads?
    used: bool,
}

/// Puts our hook in, once per backend.
pub fn install(functions: &'static [FunctionNode]) {
    function_paths::set_functions(functions);
    // SAFETY: _PG_init runs once, on the backend's only thread.
    unsafe {
        PREVIOUS_HOOK.set(pg_sys::set_rel_pathlist_hook);
        pg_sys::set_rel_pathlist_hook = Some(set_rel_pathlist);
    }
}

/// Plans `query`; if all it does is to filter and compute on one table, that table is read by a `scan` node, if one is
/// given, with `private` as its custom_private; if it has partitions or children, each of those is. Says also whether
/// any was: not all of the plan need be made of such nodes.
///
/// # Safety
/// `query` is an analysed and rewritten SELECT that no one else plans; `text` is where it comes from.
pub(crate) unsafe fn plan_query(
    query: *mut pg_sys::Query,
    text: *const std::ffi::c_char,
    scan: Option<(&'static Methods, Seeks)>,
    private: &str,
) -> (*mut pg_sys::PlannedStmt, bool) {
    struct Restore(Option<Inner>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INNER.set(self.0);
        }
    }
    // SAFETY: the caller's promise. Without CURSOR_OPT_PARALLEL_OK the plan is never parallel.
    unsafe {
        let inner = scan.map(|(scan, seeks)| Inner { query, scan, private: private_list(private), seeks, used: false });
        let _restore = Restore(INNER.replace(inner));
        // Foreign tables would be read by turns, as their servers answer: in another order each time.
        let settings = Settings::set(&[(c"enable_async_append", c"off")]);
        let statement = pg_sys::pg_plan_query(query, text, 0, std::ptr::null_mut());
        settings.restore();
        (statement, INNER.get().is_some_and(|inner| inner.used))
    }
}

#[expect(ffi_unwind_calls, reason = "behind a barrier")]
#[pg_guard]
unsafe extern "C-unwind" fn set_rel_pathlist(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner passes its own, valid structures.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous(root, rel, rti, rte));
        }
        match (*rte).rtekind {
            pg_sys::RTEKind::RTE_FUNCTION => function_paths::plan_function(root, rel, rti, rte),
            pg_sys::RTEKind::RTE_RELATION => plan_inner_relation(root, rel, rte),
            _ => {}
        }
    }
}

/// Has the table of an inner query read by our node.
///
/// # Safety
/// The planner's own structures.
unsafe fn plan_inner_relation(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) {
    let Some(inner) = INNER.get() else { return };
    // SAFETY: the planner's structures are valid.
    unsafe {
        if (*root).parse != inner.query || !reads_one_table(root, rel, rte) {
            return;
        }
        let (mut random, mut sequential) = (0.0, 0.0);
        pg_sys::get_tablespace_page_costs((*rel).reltablespace, &mut random, &mut sequential);
        let (pages, tuples) = ((*rel).pages, (*rel).tuples);
        let filter = &(*rel).baserestrictcost;
        let scan =
            cost_of_scan((pages, tuples), (inner.seeks)(private_text(inner.private), pages), (random, sequential));
        let total = scan + filter.startup + tuples * filter.per_tuple;
        replace_paths(rel, inner.scan, (filter.startup, total), inner.private);
        INNER.set(Some(Inner { used: true, ..inner }));
    }
}

/// Is `rel` a plain heap table, or a member of the only table or UNION ALL in the query, and the rest of that nothing
/// but a filter and a target list?
///
/// # Safety
/// The planner's own structures.
unsafe fn reads_one_table(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) -> bool {
    // SAFETY: the planner's structures are valid; the relation was locked when the query was analysed.
    unsafe {
        let query = &*(*root).parse;
        let plain_query = !query.hasAggs
            && !query.hasWindowFuncs
            && !query.hasTargetSRFs
            && query.groupClause.is_null()
            && query.groupingSets.is_null()
            && query.havingQual.is_null()
            && query.distinctClause.is_null()
            && query.sortClause.is_null()
            && query.limitCount.is_null()
            && query.limitOffset.is_null()
            && query.setOperations.is_null()
            && query.rowMarks.is_null()
            && !(*root).hasPseudoConstantQuals
            // the rows of an epoch must be those of every other
            && !pg_sys::contain_volatile_functions((*root).parse.cast());
        let kind = (*rel).reloptkind;
        let plain_table =
            matches!(kind, pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL)
                && !(*rte).inh
                && (*rte).tablesample.is_null()
                && matches!((*rte).relkind as u8, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW);
        plain_query
            && plain_table
            && pg_sys::bms_num_members((*root).all_baserels) == 1
            && !pg_sys::is_dummy_rel(rel)
            && has_only_paths_of_postgres(rel)
            && is_heap((*rte).relid)
    }
}

/// Has the relation the heap access method?
///
/// # Safety
/// It is locked.
unsafe fn is_heap(relid: pg_sys::Oid) -> bool {
    // SAFETY: the caller's promise; the reference is given back at once.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relid);
        let heap = HeapRelation::new(relation).is_some();
        pg_sys::RelationClose(relation);
        heap
    }
}
