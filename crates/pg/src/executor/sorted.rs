//! Sources that are sorted in a subquery, where another extension plans them.
//!
//! Every query of ours has the source as a subquery. PostgreSQL keeps the order of a subquery whose rows are only
//! filtered and computed on. SQL does not demand it, and Citus sends such a subquery to each shard by itself, so that
//! the rows come in any order. It does not where the subquery has an OFFSET: then it sorts the rows of all shards.

use pgrx::pg_sys;
use std::ffi::CStr;

/// What was found out about the order of a query's rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Order {
    /// was a subquery changed, so that the query has to be planned again?
    pub changed: bool,
    /// do all rows come in an order that the query names?
    pub is_fixed: bool,
}

/// Gives each sorted subquery an OFFSET of 0 whose rows are those of the query, filtered and computed on, or one part
/// of its UNION ALL.
///
/// # Safety
/// It is an analysed query that no one else has.
pub(super) unsafe fn keep_order(query: *mut pg_sys::Query) -> Order {
    // SAFETY: the caller's promise.
    unsafe { keep(query, &mut Vec::new(), true) }
}

/// The same of a query inside of `outer` ones.
///
/// # Safety
/// As above, of all of them.
unsafe fn keep(query: *mut pg_sys::Query, outer: &mut Vec<*mut pg_sys::Query>, is_whole: bool) -> Order {
    // SAFETY: what an analysed query consists of.
    unsafe {
        pg_sys::check_stack_depth();
        let q = &mut *query;
        if !q.sortClause.is_null() {
            let changed = !is_whole && q.limitOffset.is_null();
            if changed {
                let zero = pg_sys::Datum::from(0i64);
                q.limitOffset =
                    pg_sys::makeConst(pg_sys::INT8OID, -1, pg_sys::Oid::INVALID, 8, zero, false, true).cast();
            }
            return Order { changed, is_fixed: true };
        }
        let lists = [q.groupClause, q.groupingSets, q.distinctClause];
        if q.hasAggs || q.hasWindowFuncs || lists.iter().any(|list| !list.is_null()) {
            return Order::default();
        }
        outer.push(query);
        let order = if q.setOperations.is_null() {
            let from = (*q.jointree).fromlist;
            if pg_sys::list_length(from) == 1 {
                keep_item(pg_sys::list_nth(from, 0).cast(), outer)
            } else {
                Order::default()
            }
        } else {
            keep_parts(q.setOperations, outer)
        };
        outer.pop();
        order
    }
}

/// The same of what a set operation, or one of its parts, is made of.
///
/// # Safety
/// It is one of the last of these queries.
unsafe fn keep_parts(node: *mut pg_sys::Node, outer: &mut Vec<*mut pg_sys::Query>) -> Order {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::check_stack_depth();
        if (*node).type_ != pg_sys::NodeTag::T_SetOperationStmt {
            return keep_item(node, outer);
        }
        let operation = &*node.cast::<pg_sys::SetOperationStmt>();
        if operation.op != pg_sys::SetOperation::SETOP_UNION || !operation.all {
            return Order::default();
        }
        let (left, right) = (keep_parts(operation.larg, outer), keep_parts(operation.rarg, outer));
        Order { changed: left.changed || right.changed, is_fixed: left.is_fixed && right.is_fixed }
    }
}

/// The same of an item of FROM, if it is a subquery or a common table expression.
///
/// # Safety
/// It is one of the last of these queries.
unsafe fn keep_item(item: *mut pg_sys::Node, outer: &mut Vec<*mut pg_sys::Query>) -> Order {
    // SAFETY: the caller's promise; an item refers to an entry of the query's range table, and a common table
    // expression is one of the query that many levels above.
    unsafe {
        let Some(&query) = outer.last() else { return Order::default() };
        if (*item).type_ != pg_sys::NodeTag::T_RangeTblRef {
            return Order::default();
        }
        let number = (*item.cast::<pg_sys::RangeTblRef>()).rtindex;
        let entry = &*pg_sys::list_nth((*query).rtable, number - 1).cast::<pg_sys::RangeTblEntry>();
        match entry.rtekind {
            pg_sys::RTEKind::RTE_SUBQUERY => keep(entry.subquery, outer, false),
            pg_sys::RTEKind::RTE_CTE if !entry.self_reference => {
                let Some(level) = outer.len().checked_sub(1 + entry.ctelevelsup as usize) else {
                    return Order::default();
                };
                let all = pgrx::PgList::<pg_sys::CommonTableExpr>::from_pg((*outer[level]).cteList);
                let name = CStr::from_ptr(entry.ctename);
                let found = all.iter_ptr().find(|cte| CStr::from_ptr((**cte).ctename) == name);
                let Some(cte) = found.filter(|cte| !(**cte).cterecursive) else { return Order::default() };
                let mut above = outer[..=level].to_vec();
                keep((*cte).ctequery.cast(), &mut above, false)
            }
            _ => Order::default(),
        }
    }
}
