//! Custom scans of other extensions in queries of ours, and how they are found: what such a scan
//! keeps in its process is its own, so that its plan is not sent to another one.

use super::methods::is_ours;
use pgrx::prelude::*;

/// Has a finished plan a custom scan of another extension, wherever in it?
///
/// # Safety
/// `statement` is a finished plan.
pub unsafe fn has_extension_nodes(statement: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: the caller's promise; of a subplan that was not used, NULL is left.
    unsafe {
        let subplans = pgrx::PgList::<pg_sys::Plan>::from_pg((*statement).subplans);
        in_tree((*statement).planTree) || subplans.iter_ptr().any(|plan| in_tree(plan))
    }
}

/// Is there one among a plan and what is below it? PostgreSQL walks states of plans, but has nothing that walks plans.
///
/// # Safety
/// `plan` is NULL or a plan.
unsafe fn in_tree(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: plan is NULL or a valid plan, whose type says which lists of children it has.
    unsafe {
        if plan.is_null() {
            return false;
        }
        pg_sys::check_stack_depth();
        let children = match (*plan).type_ {
            pg_sys::NodeTag::T_CustomScan => {
                let scan = plan.cast::<pg_sys::CustomScan>();
                if !is_ours((*scan).methods) {
                    return true;
                }
                (*scan).custom_plans
            }
            pg_sys::NodeTag::T_Append => (*plan.cast::<pg_sys::Append>()).appendplans,
            pg_sys::NodeTag::T_MergeAppend => (*plan.cast::<pg_sys::MergeAppend>()).mergeplans,
            pg_sys::NodeTag::T_SubqueryScan if in_tree((*plan.cast::<pg_sys::SubqueryScan>()).subplan) => return true,
            _ => std::ptr::null_mut(),
        };
        let children = pgrx::PgList::<pg_sys::Plan>::from_pg(children);
        in_tree((*plan).lefttree) || in_tree((*plan).righttree) || children.iter_ptr().any(|child| in_tree(child))
    }
}

/// Does the planner know a relation only by paths of PostgreSQL's own? If it does not, another extension may have
/// replaced them, and only its paths lead to the relation's rows:
/// TimescaleDB keeps those of a compressed chunk in another table.
///
/// # Safety
/// `rel` is a base relation whose paths have been found.
pub unsafe fn has_only_paths_of_postgres(rel: *mut pg_sys::RelOptInfo) -> bool {
    use pg_sys::NodeTag as T;
    // SAFETY: the caller's promise; a list of paths.
    unsafe {
        let paths = pgrx::PgList::<pg_sys::Path>::from_pg((*rel).pathlist);
        let is_scan =
            |tag| matches!(tag, T::T_Path | T::T_IndexPath | T::T_BitmapHeapPath | T::T_TidPath | T::T_TidRangePath);
        !paths.is_empty() && paths.iter_ptr().all(|path| is_scan((*path).type_))
    }
}
