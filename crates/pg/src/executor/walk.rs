//! Goes through the nodes of a query or an expression.

use pgrx::prelude::*;
use std::ffi::{c_int, c_void};

type Decide<'a> = &'a mut dyn FnMut(*mut pg_sys::Node) -> Option<bool>;

/// Is there a node of which `decide` says true? Where it says None, the nodes below decide; the entries of a range
/// table are nodes, too.
///
/// # Safety
/// It is NULL, or an analysed query, or an expression of one.
pub(super) unsafe fn any_node(
    node: *mut pg_sys::Node,
    mut decide: impl FnMut(*mut pg_sys::Node) -> Option<bool>,
) -> bool {
    let mut decide: Decide<'_> = &mut decide;
    // SAFETY: the caller's promise.
    unsafe { walk(node, (&raw mut decide).cast()) }
}

#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, decide: *mut c_void) -> bool {
    // SAFETY: called by any_node(), and by PostgreSQL's walkers with the nodes below.
    unsafe {
        if node.is_null() {
            return false;
        }
        if let Some(decision) = (*decide.cast::<Decide<'_>>())(node) {
            return decision;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Query => {
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as c_int;
                pg_sys::query_tree_walker(node.cast(), Some(walk), decide, flags)
            }
            // what is below an entry has its turn anyway
            pg_sys::NodeTag::T_RangeTblEntry => false,
            _ => pg_sys::expression_tree_walker(node, Some(walk), decide),
        }
    }
}
