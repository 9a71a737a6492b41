//! Custom paths: what the planner has in place of those that it found itself.

use super::methods::Methods;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A custom_private list: one String node, because it has to survive copyObject().
///
/// # Safety
/// In a memory context that lives as long as the plan.
pub(super) unsafe fn private_list(text: &str) -> *mut pg_sys::List {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the caller's promise: both nodes live in the current memory context, as the plan does.
    unsafe {
        let string = pg_sys::makeString(pg_sys::pstrdup(text.as_ptr()));
        pg_sys::lappend(std::ptr::null_mut(), string.cast())
    }
}

/// The text of such a list.
///
/// # Safety
/// It is one of [`private_list`], which stays for `'a`.
pub(super) unsafe fn private_text<'a>(list: *mut pg_sys::List) -> &'a str {
    // SAFETY: the caller's promise: a text without zeros, in a String node.
    unsafe { CStr::from_ptr((*pg_sys::list_nth(list, 0).cast::<pg_sys::String>()).sval).to_str().unwrap_or_default() }
}

/// Replaces all paths of `rel` by one custom path.
///
/// # Safety
/// `rel` is the planner's own, and `private` NULL or a list that lives as long as the plan.
pub(super) unsafe fn replace_paths(
    rel: *mut pg_sys::RelOptInfo,
    methods: &'static Methods,
    (startup_cost, total_cost): (f64, f64),
    private: *mut pg_sys::List,
) {
    // SAFETY: the path is allocated as the node that it says it is; partial paths have to go too.
    unsafe {
        let mut path = PgBox::<pg_sys::CustomPath>::alloc_node(pg_sys::NodeTag::T_CustomPath);
        path.path.pathtype = pg_sys::NodeTag::T_CustomScan;
        path.path.parent = rel;
        path.path.pathtarget = (*rel).reltarget;
        path.path.rows = (*rel).rows;
        path.path.startup_cost = startup_cost;
        path.path.total_cost = total_cost;
        path.flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        path.custom_private = private;
        path.methods = methods.path();
        (*rel).pathlist = std::ptr::null_mut();
        (*rel).partial_pathlist = std::ptr::null_mut();
        pg_sys::add_path(rel, path.into_pg().cast());
    }
}
