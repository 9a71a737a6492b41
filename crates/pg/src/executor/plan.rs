//! Plans with our nodes in them.

use super::custom_scan::CustomScan;
use super::function_paths::row_type;
use super::methods::Methods;
use super::paths::private_list;
use super::walk::any_node;
use crate::compat::attributes;
use pgrx::prelude::*;
use std::ffi::c_int;

/// Makes the plan of a custom path, of either kind.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn plan_custom_path(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    targets: *mut pg_sys::List,
    clauses: *mut pg_sys::List,
    _children: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
    // SAFETY: the planner passes its own, valid structures; the path is one of replace_paths.
    unsafe {
        let mut scan = PgBox::<pg_sys::CustomScan>::alloc_node(pg_sys::NodeTag::T_CustomScan);
        scan.scan.plan.targetlist = targets;
        scan.scan.plan.qual = pg_sys::extract_actual_clauses(clauses, false);
        scan.flags = (*path).flags;
        scan.methods = Methods::of_path((*path).methods).scan();
        let rte = *(*root).simple_rte_array.add((*rel).relid as usize);
        if (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION {
            scan.scan.scanrelid = (*rel).relid;
            scan.custom_private = (*path).custom_private;
        } else {
            // With the function's number as scanrelid the executor would try to open a relation. The call goes to
            // custom_exprs, where the planner finds its Params and its dependence on the function.
            let call = pg_sys::list_nth((*path).custom_private, 0).cast::<pg_sys::FuncExpr>();
            scan.custom_exprs = (*path).custom_private;
            scan.custom_scan_tlist = function_columns(call, (*rel).relid);
        }
        scan.into_pg().cast()
    }
}

/// A target list of all columns of a function's result.
///
/// # Safety
/// `call` is a FuncExpr.
unsafe fn function_columns(call: *mut pg_sys::FuncExpr, rti: pg_sys::Index) -> *mut pg_sys::List {
    // SAFETY: the caller's promise; the descriptor has natts attributes.
    unsafe {
        let Some(descriptor) = row_type(call) else { error!("corgipile function without a row type") };
        let mut list = std::ptr::null_mut();
        for (i, column) in attributes(descriptor).iter().enumerate() {
            let number = i as pg_sys::AttrNumber + 1;
            let expression: *mut pg_sys::Expr = if column.attisdropped {
                let (int, none) = (pg_sys::INT4OID, pg_sys::Oid::INVALID);
                pg_sys::makeConst(int, -1, none, 4, pg_sys::Datum::null(), true, true).cast()
            } else {
                let (oid, typmod, collation) = (column.atttypid, column.atttypmod, column.attcollation);
                pg_sys::makeVar(rti as c_int, number, oid, typmod, collation, 0).cast()
            };
            list =
                pg_sys::lappend(list, pg_sys::makeTargetEntry(expression, number, std::ptr::null_mut(), false).cast());
        }
        list
    }
}

/// Puts a node of kind `T` on top of a finished plan; it gives the plan's rows, in whatever order and number it likes.
///
/// # Safety
/// `child` is a finished plan (after setrefs.c).
pub(super) unsafe fn put_on_top<T: CustomScan>(child: *mut pg_sys::Plan, private: &str) -> *mut pg_sys::Plan {
    // SAFETY: the caller's promise.
    unsafe { put_on::<T>(child, None, private) }
}

/// As [`put_on_top`], for a plan that [is made of](is_made_of) nodes `B`. If a Result stands on it, the new node takes
/// its place: it computes what that would compute.
///
/// # Safety
/// `plan` is a finished plan (after setrefs.c).
pub(super) unsafe fn put_on_parts<B: CustomScan>(plan: *mut pg_sys::Plan, private: &str) -> *mut pg_sys::Plan {
    // SAFETY: the caller's promise. The expressions of a Result see the child's columns as OUTER_VAR, those of a custom
    // scan its scan tuple's as INDEX_VAR, and both have the same numbers.
    unsafe {
        if (*plan).type_ != pg_sys::NodeTag::T_Result {
            return put_on::<B>(plan, None, private);
        }
        see_scan_tuple((*plan).targetlist);
        let new = put_on::<B>((*plan).lefttree, Some((*plan).targetlist), private);
        // subqueries that the expressions have the results of, as parameters
        (*new).initPlan = (*plan).initPlan;
        (*new).extParam = (*plan).extParam;
        (*new).allParam = (*plan).allParam;
        new
    }
}

/// Makes Vars of a child's columns those of the scan tuple.
///
/// # Safety
/// They are expressions that no one else has.
unsafe fn see_scan_tuple(expressions: *mut pg_sys::List) {
    // SAFETY: the caller's promise.
    unsafe {
        any_node(expressions.cast(), |node| {
            let var = node.cast::<pg_sys::Var>();
            if (*node).type_ == pg_sys::NodeTag::T_Var && (*var).varno == pg_sys::OUTER_VAR {
                (*var).varno = pg_sys::INDEX_VAR;
            }
            None
        })
    };
}

/// A node of kind `T` on top of a plan, with the child's columns, or with this projection of them.
///
/// # Safety
/// `child` is a finished plan (after setrefs.c), and `projection` a target list of its columns.
unsafe fn put_on<T: CustomScan>(
    child: *mut pg_sys::Plan,
    projection: Option<*mut pg_sys::List>,
    private: &str,
) -> *mut pg_sys::Plan {
    // SAFETY: the caller's promise. This is what setrefs.c would have made of a custom scan without a relation: its
    // scan tuple consists of the child's columns (OUTER_VAR), its result of those of the scan tuple (INDEX_VAR).
    unsafe {
        let mut scan = PgBox::<pg_sys::CustomScan>::alloc_node(pg_sys::NodeTag::T_CustomScan);
        let (scan_list, targets) = columns_of(child);
        let targets = projection.unwrap_or(targets);
        let plan = &mut scan.scan.plan;
        plan.startup_cost = (*child).startup_cost;
        plan.total_cost = (*child).total_cost + (*child).plan_rows * pg_sys::cpu_tuple_cost;
        plan.plan_rows = (*child).plan_rows;
        plan.plan_width = (*child).plan_width;
        plan.targetlist = targets;
        plan.lefttree = child;
        plan.extParam = pg_sys::bms_copy((*child).extParam);
        plan.allParam = pg_sys::bms_copy((*child).allParam);
        plan.plan_node_id = (*child).plan_node_id + 1_000_000; // not used by any other node of the plan
        scan.custom_scan_tlist = scan_list;
        scan.custom_private = private_list(private);
        scan.methods = T::methods().scan();
        scan.into_pg().cast()
    }
}

/// Is the plan a node of kind `T`, or an Append of nothing but such nodes,
/// perhaps with a Result that computes something?
///
/// # Safety
/// `plan` is a valid plan.
pub(super) unsafe fn is_made_of<T: CustomScan>(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: the caller's promise; an Append has a list of plans.
    unsafe {
        let result = plan.cast::<pg_sys::Result>();
        let append = match (*plan).type_ {
            pg_sys::NodeTag::T_Append => plan,
            pg_sys::NodeTag::T_Result if (*result).resconstantqual.is_null() && (*plan).qual.is_null() => {
                (*plan).lefttree
            }
            _ => return is_node::<T>(plan),
        };
        if append.is_null() || (*append).type_ != pg_sys::NodeTag::T_Append {
            return false;
        }
        let append = append.cast::<pg_sys::Append>();
        pgrx::PgList::<pg_sys::Plan>::from_pg((*append).appendplans).iter_ptr().all(|child| is_node::<T>(child))
    }
}

/// The plan below another; NULL without one.
///
/// # Safety
/// `plan` is a valid plan, or NULL.
pub(super) unsafe fn child(plan: *mut pg_sys::Plan) -> *mut pg_sys::Plan {
    // SAFETY: the caller's promise.
    if plan.is_null() { plan } else { unsafe { (*plan).lefttree } }
}

/// Is the plan a node of kind `T`?
///
/// # Safety
/// `plan` is a valid plan.
pub(super) unsafe fn is_node<T: CustomScan>(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        (*plan).type_ == pg_sys::NodeTag::T_CustomScan
            && std::ptr::eq((*plan.cast::<pg_sys::CustomScan>()).methods, T::methods().scan())
    }
}

/// Target lists with a plan's columns: as a child's, and as those of a scan tuple.
///
/// # Safety
/// `child` is a finished plan (after setrefs.c).
unsafe fn columns_of(child: *mut pg_sys::Plan) -> (*mut pg_sys::List, *mut pg_sys::List) {
    // SAFETY: the caller's promise: a target list has TargetEntry nodes.
    unsafe {
        let mut scan_list = std::ptr::null_mut();
        let mut targets = std::ptr::null_mut();
        let columns = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*child).targetlist);
        for (i, column) in columns.iter_ptr().enumerate() {
            let number = i as pg_sys::AttrNumber + 1;
            let node = (*column).expr.cast();
            let (oid, typmod) = (pg_sys::exprType(node), pg_sys::exprTypmod(node));
            let collation = pg_sys::exprCollation(node);
            let entry = |varno| {
                let var = pg_sys::makeVar(varno, number, oid, typmod, collation, 0);
                pg_sys::makeTargetEntry(var.cast(), number, (*column).resname, (*column).resjunk).cast()
            };
            scan_list = pg_sys::lappend(scan_list, entry(pg_sys::OUTER_VAR));
            targets = pg_sys::lappend(targets, entry(pg_sys::INDEX_VAR));
        }
        (scan_list, targets)
    }
}
