//! Functions in FROM that become nodes.
//!
//! Whatever does not fit exactly is left alone: the function is then called as any other function.

use super::estimates::{Expected, Size};
use super::methods::Methods;
use super::paths::replace_paths;
use super::walk::any_node;
use crate::call::arguments::Arguments;
use crate::catalog::relation::Relation;
use crate::errors::OrRaise;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, c_int};

/// A set-returning function of ours that is a custom scan when it stands in FROM.
pub struct FunctionNode {
    /// the function's C symbol
    pub symbol: &'static CStr,
    /// the function itself, to tell it from a namesake in another library
    pub address: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    /// the node that takes its place
    pub methods: fn() -> &'static Methods,
    /// what it is expected to do, by the constants among its arguments: the others are as NULL
    pub expected: fn(Arguments<'_>) -> Expected,
}

thread_local! {
    static FUNCTIONS: Cell<&'static [FunctionNode]> = const { Cell::new(&[]) };
}

/// Makes these the functions that become nodes.
pub(super) fn set_functions(functions: &'static [FunctionNode]) {
    FUNCTIONS.set(functions);
}

/// Puts our path in place of a call of one of our functions, if the call is all that is there.
///
/// # Safety
/// The planner's own structures.
pub(super) unsafe fn plan_function(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rti: pg_sys::Index,
    rte: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner's structures are valid.
    unsafe {
        // OTHER_MEMBER_REL: an arm of a flattened UNION ALL
        let kind = (*rel).reloptkind;
        if !matches!(kind, pg_sys::RelOptKind::RELOPT_BASEREL | pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL)
            || pg_sys::is_dummy_rel(rel)
        {
            return;
        }
        let Some((call, function)) = call_of_ours(rte) else { return };
        // Arguments are evaluated when execution starts, by plain EXPLAIN too.
        if !(*rel).lateral_relids.is_null()
            || depends_on_rows((*call).args)
            || pg_sys::contain_volatile_functions((*call).args.cast())
            || wants_whole_row(rel, rti)
        {
            return;
        }
        // A cached plan with a table's row type in it has to go when the table changes.
        let relation = pg_sys::get_typ_typrelid((*call).funcresulttype);
        let expected = (function.expected)(Arguments::constants(call));
        let size = match relation == pg_sys::Oid::INVALID {
            true => expected.size(),
            false => {
                (*(*root).glob).relationOids = pg_sys::lappend_oid((*(*root).glob).relationOids, relation);
                Size::of(relation)
            }
        };
        if let Some(rows) = expected.rows(size.as_ref()) {
            let selectivity = (*rel).rows / (*rel).tuples.max(1.0);
            (*rel).tuples = rows;
            (*rel).rows = (rows * selectivity).max(1.0).round();
        }
        let costs = size.map_or_else(|| declared_costs(root, call), |size| expected.costs(&size));
        let private = pg_sys::lappend(std::ptr::null_mut(), call.cast());
        replace_paths(rel, (function.methods)(), costs, private);
    }
}

/// The costs of a function as it is declared.
///
/// # Safety
/// The planner's own structures.
unsafe fn declared_costs(root: *mut pg_sys::PlannerInfo, call: *mut pg_sys::FuncExpr) -> (f64, f64) {
    let mut cost = pg_sys::QualCost::default();
    // SAFETY: the caller's promise.
    unsafe { pg_sys::add_function_cost(root, (*call).funcid, call.cast(), &mut cost) };
    (cost.startup, cost.startup + cost.per_tuple)
}

/// The call, if all that stands in this FROM item is one call of one of our functions.
///
/// # Safety
/// `rte` is a function's entry in a range table.
unsafe fn call_of_ours(rte: *mut pg_sys::RangeTblEntry) -> Option<(*mut pg_sys::FuncExpr, &'static FunctionNode)> {
    // SAFETY: a function RTE has at least one RangeTblFunction.
    unsafe {
        if (*rte).funcordinality || pg_sys::list_length((*rte).functions) != 1 {
            return None;
        }
        let item = pg_sys::list_nth((*rte).functions, 0).cast::<pg_sys::RangeTblFunction>();
        if (*(*item).funcexpr).type_ != pg_sys::NodeTag::T_FuncExpr || !(*item).funccolnames.is_null() {
            return None;
        }
        let call = (*item).funcexpr.cast::<pg_sys::FuncExpr>();
        let function = FUNCTIONS.get().iter().find(|f| is_function((*call).funcid, f))?;
        // Locked before its columns are looked at. PostgreSQL has not done so, because for it the table is but a type.
        Relation::of_row_type((*call).funcresulttype).or_raise();
        let columns = row_type(call)?;
        ((*columns).natts == (*item).funccolcount).then_some((call, function))
    }
}

/// The columns of a function's result, if it has any.
///
/// # Safety
/// `call` is a FuncExpr.
pub(super) unsafe fn row_type(call: *mut pg_sys::FuncExpr) -> Option<pg_sys::TupleDesc> {
    // SAFETY: call is a FuncExpr; both results are set by the callee.
    unsafe {
        let (mut oid, mut descriptor) = (pg_sys::Oid::INVALID, std::ptr::null_mut());
        let class = pg_sys::get_expr_result_type(call.cast(), &mut oid, &mut descriptor);
        (class == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE && !descriptor.is_null()).then_some(descriptor)
    }
}

/// Is this pg_proc entry the given function, to be called the ordinary way? With SECURITY DEFINER or SET it is not:
/// then fmgr_info gives another address, and the ordinary call takes care of both.
///
/// # Safety
/// In a transaction.
unsafe fn is_function(oid: pg_sys::Oid, function: &FunctionNode) -> bool {
    const C_LANGUAGE: u32 = 13;
    // SAFETY: the syscache tuple is read while it is held.
    unsafe {
        if oid.to_u32() < pg_sys::FirstNormalObjectId {
            return false;
        }
        let cache = pg_sys::SysCacheIdentifier::PROCOID as c_int;
        let tuple = pg_sys::SearchSysCache1(cache, oid.into());
        if tuple.is_null() {
            return false;
        }
        // The cheap test comes first: fmgr_info would load the libraries of others.
        let mut null = false;
        let source = pg_sys::SysCacheGetAttr(cache, tuple, pg_sys::Anum_pg_proc_prosrc as i16, &mut null);
        let named = !null && CStr::from_ptr(pg_sys::text_to_cstring(source.cast_mut_ptr())) == function.symbol;
        let language = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_proc>()).prolang.to_u32();
        pg_sys::ReleaseSysCache(tuple);
        if language != C_LANGUAGE || !named {
            return false;
        }
        let mut info = pg_sys::FmgrInfo::default();
        pg_sys::fmgr_info_cxt(oid, &mut info, pg_sys::CurrentMemoryContext);
        info.fn_addr.is_some_and(|address| std::ptr::fn_addr_eq(address, function.address))
    }
}

/// Is there anything in the expressions that cannot be evaluated once, when execution starts?
///
/// # Safety
/// They are the planner's.
unsafe fn depends_on_rows(expressions: *mut pg_sys::List) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: the caller's promise.
    unsafe {
        any_node(expressions.cast(), |node| match (*node).type_ {
            T_Param => Some((*node.cast::<pg_sys::Param>()).paramkind != pg_sys::ParamKind::PARAM_EXTERN),
            T_Var | T_SubLink | T_SubPlan | T_AlternativeSubPlan | T_PlaceHolderVar => Some(true),
            _ => None,
        })
    }
}

/// Does the query want the function's row as one value? Row marks of UPDATE and FOR UPDATE do.
///
/// # Safety
/// `rel` is the planner's own.
unsafe fn wants_whole_row(rel: *mut pg_sys::RelOptInfo, rti: pg_sys::Index) -> bool {
    // SAFETY: target and restrictions of a relation are expressions.
    unsafe {
        let has_whole_row = |node| {
            any_node(node, |node| {
                let var = node.cast::<pg_sys::Var>();
                let is_var = (*node).type_ == pg_sys::NodeTag::T_Var;
                is_var.then(|| (*var).varattno <= 0 && (*var).varno as pg_sys::Index == rti)
            })
        };
        let restrictions = pgrx::PgList::<pg_sys::RestrictInfo>::from_pg((*rel).baserestrictinfo);
        has_whole_row((*(*rel).reltarget).exprs.cast())
            || restrictions.iter_ptr().any(|restriction| has_whole_row((*restriction).clause.cast()))
    }
}
