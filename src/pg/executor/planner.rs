//! Planning: functions in FROM that become nodes, and queries of ours whose table is read by a node.
//!
//! Both live in one set_rel_pathlist_hook. Whatever does not fit exactly is left alone: the function is then called as any
//! other function, and the table read as any other table.

use super::custom_scan::{CustomScan, Methods};
use super::extension_nodes::has_only_paths_of_postgres;
use crate::errors::OrRaise;
use crate::pg::catalog::relation::Relation;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};

/// A set-returning function of ours that is a custom scan when it stands in FROM.
pub struct FunctionNode {
    /// the function's C symbol
    pub symbol: &'static CStr,
    /// the function itself, to tell it from a namesake in another library
    pub address: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
    /// the node that takes its place
    pub methods: fn() -> &'static Methods,
}

thread_local! {
    static PREVIOUS_HOOK: Cell<pg_sys::set_rel_pathlist_hook_type> = const { Cell::new(None) };
    static FUNCTIONS: Cell<&'static [FunctionNode]> = const { Cell::new(&[]) };
    static INNER: Cell<Option<Inner>> = const { Cell::new(None) };
}

/// The query of ours that is being planned. It is known by its pointer: other queries that the planner meets meanwhile,
/// in functions that it inlines or evaluates, are not meant.
#[derive(Clone, Copy)]
struct Inner {
    query: *mut pg_sys::Query,
    scan: &'static Methods,
    private: *mut pg_sys::List,
    /// is there a table that it reads?
    used: bool,
}

/// Puts our hook in, once per backend.
pub fn install(functions: &'static [FunctionNode]) {
    FUNCTIONS.set(functions);
    // SAFETY: _PG_init runs once, on the backend's only thread.
    unsafe {
        PREVIOUS_HOOK.set(pg_sys::set_rel_pathlist_hook);
        pg_sys::set_rel_pathlist_hook = Some(set_rel_pathlist);
    }
}

/// Plans `query`; if all it does is to filter and compute on one table, that table is read by a `scan` node, if one is
/// given, with `private` as its custom_private; if it has partitions or children, each of those is. Says also whether any
/// was: not all of the plan need be made of such nodes.
///
/// # Safety
/// `query` is an analysed and rewritten SELECT that nobody else plans; `text` is where it comes from.
pub(in crate::pg) unsafe fn plan_query(
    query: *mut pg_sys::Query,
    text: *const std::ffi::c_char,
    scan: Option<&'static Methods>,
    private: &str,
) -> (*mut pg_sys::PlannedStmt, bool) {
    struct Restore(Option<Inner>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INNER.set(self.0);
        }
    }
    // SAFETY: as the caller promises. Without CURSOR_OPT_PARALLEL_OK the plan is never parallel.
    unsafe {
        let inner = scan.map(|scan| Inner { query, scan, private: private_list(private), used: false });
        let _restore = Restore(INNER.replace(inner));
        let statement = pg_sys::pg_plan_query(query, text, 0, std::ptr::null_mut());
        (statement, INNER.get().is_some_and(|inner| inner.used))
    }
}

/// A custom_private list: one String node, because it has to survive copyObject().
unsafe fn private_list(text: &str) -> *mut pg_sys::List {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: both nodes live in the current memory context, as the plan does.
    unsafe {
        let string = pg_sys::makeString(pg_sys::pstrdup(text.as_ptr()));
        pg_sys::lappend(std::ptr::null_mut(), string.cast())
    }
}

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
            pg_sys::RTEKind::RTE_FUNCTION => plan_function(root, rel, rti, rte),
            pg_sys::RTEKind::RTE_RELATION => plan_inner_relation(root, rel, rte),
            _ => {}
        }
    }
}

/// Replaces all paths of `rel` by one custom path.
unsafe fn replace_paths(
    rel: *mut pg_sys::RelOptInfo,
    methods: &'static Methods,
    cost: f64,
    private: *mut pg_sys::List,
) {
    // SAFETY: the path is allocated as the node that it says it is; partial paths have to go too.
    unsafe {
        let mut path = PgBox::<pg_sys::CustomPath>::alloc_node(pg_sys::NodeTag::T_CustomPath);
        path.path.pathtype = pg_sys::NodeTag::T_CustomScan;
        path.path.parent = rel;
        path.path.pathtarget = (*rel).reltarget;
        path.path.rows = (*rel).rows;
        path.path.total_cost = cost;
        path.flags = pg_sys::CUSTOMPATH_SUPPORT_PROJECTION;
        path.custom_private = private;
        path.methods = methods.path();
        (*rel).pathlist = std::ptr::null_mut();
        (*rel).partial_pathlist = std::ptr::null_mut();
        pg_sys::add_path(rel, path.into_pg().cast());
    }
}

// ---- the table of an inner query

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
        let pages = f64::from((*rel).pages);
        let cost = pages * pg_sys::seq_page_cost + (*rel).tuples * pg_sys::cpu_tuple_cost;
        replace_paths(rel, inner.scan, cost, inner.private);
        INNER.set(Some(Inner { used: true, ..inner }));
    }
}

/// Is `rel` a plain heap table, or a member of the only table or UNION ALL in the query, and the rest of that nothing but a
/// filter and a target list?
unsafe fn reads_one_table(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) -> bool {
    // SAFETY: as above; the relation was locked when the query was analysed.
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

unsafe fn is_heap(relid: pg_sys::Oid) -> bool {
    // SAFETY: the relation is locked by the running query; the reference is given back at once.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relid);
        let heap = crate::pg::tuples::heap::HeapRelation::new(relation).is_some();
        pg_sys::RelationClose(relation);
        heap
    }
}

// ---- functions in FROM

unsafe fn plan_function(
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
        let Some((call, methods)) = call_of_ours(rte) else { return };
        // Arguments are evaluated when execution starts, by plain EXPLAIN too.
        if !(*rel).lateral_relids.is_null()
            || depends_on_rows((*call).args.cast(), std::ptr::null_mut())
            || pg_sys::contain_volatile_functions((*call).args.cast())
            || wants_whole_row(rel, rti)
        {
            return;
        }
        // A cached plan with a table's row type in it has to go when the table changes.
        let relation = pg_sys::get_typ_typrelid((*call).funcresulttype);
        let mut cost = pg_sys::cpu_tuple_cost * (*rel).rows * 100.0;
        if relation != pg_sys::Oid::INVALID {
            (*(*root).glob).relationOids = pg_sys::lappend_oid((*(*root).glob).relationOids, relation);
            if let Some((pages, tuples)) = size_of_table(relation) {
                let selectivity = (*rel).rows / (*rel).tuples.max(1.0);
                (*rel).tuples = tuples;
                (*rel).rows = (tuples * selectivity).max(1.0).round();
                cost = f64::from(pages) * pg_sys::seq_page_cost + tuples * 2.0 * pg_sys::cpu_tuple_cost;
            }
        }
        let private = pg_sys::lappend(std::ptr::null_mut(), call.cast());
        replace_paths(rel, methods, cost, private);
    }
}

/// Estimated pages and tuples of a relation with pages of its own.
unsafe fn size_of_table(oid: pg_sys::Oid) -> Option<(u32, f64)> {
    // SAFETY: the relation is locked while it is looked at, as the planner does for those in a query.
    unsafe {
        let kind = pg_sys::get_rel_relkind(oid) as u8;
        if !matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW) {
            return None;
        }
        let relation = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
        if relation.is_null() {
            return None;
        }
        let (mut pages, mut tuples, mut all_visible) = (0, 0.0, 0.0);
        pg_sys::estimate_rel_size(relation, std::ptr::null_mut(), &mut pages, &mut tuples, &mut all_visible);
        pg_sys::relation_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        Some((pages, tuples))
    }
}

/// The call, if all that stands in this FROM item is one call of one of our functions.
unsafe fn call_of_ours(rte: *mut pg_sys::RangeTblEntry) -> Option<(*mut pg_sys::FuncExpr, &'static Methods)> {
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
        ((*columns).natts == (*item).funccolcount).then_some((call, (function.methods)()))
    }
}

/// The columns of a function's result, if it has any.
unsafe fn row_type(call: *mut pg_sys::FuncExpr) -> Option<pg_sys::TupleDesc> {
    // SAFETY: call is a FuncExpr; both results are set by the callee.
    unsafe {
        let (mut oid, mut descriptor) = (pg_sys::Oid::INVALID, std::ptr::null_mut());
        let class = pg_sys::get_expr_result_type(call.cast(), &mut oid, &mut descriptor);
        (class == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE && !descriptor.is_null()).then_some(descriptor)
    }
}

/// Is this pg_proc entry the given function, to be called the ordinary way? With SECURITY DEFINER or SET it is not: then
/// fmgr_info gives another address, and the ordinary call takes care of both.
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

/// Is there anything in the expression that cannot be evaluated once, when execution starts?
#[pg_guard]
unsafe extern "C-unwind" fn depends_on_rows(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: called by expression_tree_walker with the nodes of an expression.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Param => (*node.cast::<pg_sys::Param>()).paramkind != pg_sys::ParamKind::PARAM_EXTERN,
            pg_sys::NodeTag::T_Var
            | pg_sys::NodeTag::T_SubLink
            | pg_sys::NodeTag::T_SubPlan
            | pg_sys::NodeTag::T_AlternativeSubPlan
            | pg_sys::NodeTag::T_PlaceHolderVar => true,
            _ => pg_sys::expression_tree_walker(node, Some(depends_on_rows), context),
        }
    }
}

/// Does the query want the function's row as one value? Row marks of UPDATE and FOR UPDATE do.
unsafe fn wants_whole_row(rel: *mut pg_sys::RelOptInfo, rti: pg_sys::Index) -> bool {
    // SAFETY: target and restrictions of a relation are expressions.
    unsafe {
        let rti = rti as usize as *mut c_void;
        let restrictions = pgrx::PgList::<pg_sys::RestrictInfo>::from_pg((*rel).baserestrictinfo);
        has_whole_row((*(*rel).reltarget).exprs.cast(), rti)
            || restrictions.iter_ptr().any(|restriction| has_whole_row((*restriction).clause.cast(), rti))
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn has_whole_row(node: *mut pg_sys::Node, rti: *mut c_void) -> bool {
    // SAFETY: called by expression_tree_walker with the nodes of an expression.
    unsafe {
        if node.is_null() {
            return false;
        }
        if (*node).type_ == pg_sys::NodeTag::T_Var {
            let var = node.cast::<pg_sys::Var>();
            return (*var).varattno <= 0 && (*var).varno as usize == rti as usize;
        }
        pg_sys::expression_tree_walker(node, Some(has_whole_row), rti)
    }
}

// ---- plans

/// Makes the plan of a custom path, of either kind.
#[pg_guard]
pub(in crate::pg) unsafe extern "C-unwind" fn plan_custom_path<T: CustomScan>(
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
        scan.methods = T::methods().scan();
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
unsafe fn function_columns(call: *mut pg_sys::FuncExpr, rti: pg_sys::Index) -> *mut pg_sys::List {
    // SAFETY: call_of_ours has seen the row type.
    unsafe {
        let Some(descriptor) = row_type(call) else { error!("corgipile function without a row type") };
        let mut list = std::ptr::null_mut();
        for i in 0..(*descriptor).natts as usize {
            let column = &*(*descriptor).attrs.as_ptr().add(i);
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
pub(in crate::pg) unsafe fn put_on_top<T: CustomScan>(child: *mut pg_sys::Plan, private: &str) -> *mut pg_sys::Plan {
    // SAFETY: as the caller promises.
    unsafe { put_on::<T>(child, None, private) }
}

/// As [`put_on_top`], for a plan that [is made of](is_made_of) nodes `B`. If a Result stands on it, the new node takes its place:
/// it computes what that would compute.
///
/// # Safety
/// As there.
pub(in crate::pg) unsafe fn put_on_parts<B: CustomScan>(plan: *mut pg_sys::Plan, private: &str) -> *mut pg_sys::Plan {
    // SAFETY: as the caller promises. The expressions of a Result see the child's columns as OUTER_VAR, those of a custom
    // scan its scan tuple's as INDEX_VAR, and both have the same numbers.
    unsafe {
        if (*plan).type_ != pg_sys::NodeTag::T_Result {
            return put_on::<B>(plan, None, private);
        }
        sees_scan_tuple((*plan).targetlist.cast(), std::ptr::null_mut());
        let new = put_on::<B>((*plan).lefttree, Some((*plan).targetlist), private);
        // subqueries that the expressions have the results of, as parameters
        (*new).initPlan = (*plan).initPlan;
        (*new).extParam = (*plan).extParam;
        (*new).allParam = (*plan).allParam;
        new
    }
}

/// Makes Vars of a child's columns those of the scan tuple.
#[pg_guard]
unsafe extern "C-unwind" fn sees_scan_tuple(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: called by expression_tree_walker with the nodes of an expression that nobody else has.
    unsafe {
        if node.is_null() {
            return false;
        }
        if (*node).type_ == pg_sys::NodeTag::T_Var {
            let var = node.cast::<pg_sys::Var>();
            if (*var).varno == pg_sys::OUTER_VAR {
                (*var).varno = pg_sys::INDEX_VAR;
            }
            return false;
        }
        pg_sys::expression_tree_walker(node, Some(sees_scan_tuple), context)
    }
}

unsafe fn put_on<T: CustomScan>(
    child: *mut pg_sys::Plan,
    projection: Option<*mut pg_sys::List>,
    private: &str,
) -> *mut pg_sys::Plan {
    // SAFETY: what setrefs.c would have made of a custom scan without a relation: its scan tuple consists of the child's
    // columns (OUTER_VAR), its result of those of the scan tuple (INDEX_VAR).
    unsafe {
        let mut scan = PgBox::<pg_sys::CustomScan>::alloc_node(pg_sys::NodeTag::T_CustomScan);
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
        if let Some(projection) = projection {
            targets = projection;
        }
        let plan = &mut scan.scan.plan;
        plan.startup_cost = (*child).startup_cost;
        plan.total_cost = (*child).total_cost + (*child).plan_rows * pg_sys::cpu_operator_cost;
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

/// Is the plan a node of kind `T`, or an Append of nothing but such nodes, perhaps with a Result that computes something?
///
/// # Safety
/// `plan` is a valid plan.
pub(in crate::pg) unsafe fn is_made_of<T: CustomScan>(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: as the caller promises; an Append has a list of plans.
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

/// Is the plan a node of kind `T`?
///
/// # Safety
/// `plan` is a valid plan.
pub(in crate::pg) unsafe fn is_node<T: CustomScan>(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        (*plan).type_ == pg_sys::NodeTag::T_CustomScan
            && std::ptr::eq((*plan.cast::<pg_sys::CustomScan>()).methods, T::methods().scan())
    }
}
