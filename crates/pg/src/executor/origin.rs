//! Where a query's column comes from: the column of a table that it hands through as it is, if it does.

use crate::compat::grouping_expressions;
use pgrx::prelude::*;
use std::ffi::CStr;

pub(super) type TableColumn = (pg_sys::Oid, pg_sys::AttrNumber);

/// The column of a table that a query's column is, through subqueries, joins and views; None if it is computed.
///
/// # Safety
/// The query is analysed and rewritten, and the target one of its target list.
pub(super) unsafe fn origin(query: *mut pg_sys::Query, target: *mut pg_sys::TargetEntry) -> Option<TableColumn> {
    // SAFETY: the caller's promise.
    unsafe {
        // the parser says it of all but views, which it takes for tables
        let said = (*target).resorigtbl;
        if said != pg_sys::Oid::INVALID && pg_sys::get_rel_relkind(said) as u8 != pg_sys::RELKIND_VIEW {
            return Some((said, (*target).resorigcol));
        }
        // the queries around the expression, the innermost last
        let mut queries = vec![query];
        let mut expression = (*target).expr.cast::<pg_sys::Node>();
        loop {
            match step(&mut queries, expression)? {
                Step::Table(column) => return Some(column),
                Step::Into(next) => expression = next,
            }
        }
    }
}

/// Where an expression leads.
enum Step {
    Table(TableColumn),
    /// this expression, in the innermost of the queries
    Into(*mut pg_sys::Node),
}

/// Follows a variable to what it stands for; None of another expression, and where rows of several queries meet.
///
/// # Safety
/// The expression belongs to the innermost of the queries, each of which is inside the one before.
unsafe fn step(queries: &mut Vec<*mut pg_sys::Query>, expression: *mut pg_sys::Node) -> Option<Step> {
    // SAFETY: the caller's promise: variables name entries of the range table, and columns of these.
    unsafe {
        if expression.is_null() || (*expression).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let variable = &*expression.cast::<pg_sys::Var>();
        if variable.varlevelsup != 0 || variable.varattno <= 0 {
            return None;
        }
        let entries = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((**queries.last()?).rtable);
        let entry = &*entries.get_ptr(variable.varno as usize - 1)?;
        let column = variable.varattno as usize - 1;
        if let Some(expressions) = grouping_expressions(entry) {
            return pgrx::PgList::<pg_sys::Node>::from_pg(expressions).get_ptr(column).map(Step::Into);
        }
        match entry.rtekind {
            pg_sys::RTEKind::RTE_RELATION => return Some(Step::Table((entry.relid, variable.varattno))),
            pg_sys::RTEKind::RTE_JOIN => {
                return pgrx::PgList::<pg_sys::Node>::from_pg(entry.joinaliasvars).get_ptr(column).map(Step::Into);
            }
            pg_sys::RTEKind::RTE_SUBQUERY => queries.push(entry.subquery),
            pg_sys::RTEKind::RTE_CTE => push_cte(queries, entry)?,
            _ => return None,
        }
        let inner = *queries.last()?;
        // rows of a UNION come from several
        if !(*inner).setOperations.is_null() {
            return None;
        }
        let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*inner).targetList);
        targets.get_ptr(column).map(|target| Step::Into((*target).expr.cast()))
    }
}

/// Makes the query of a WITH the innermost; None if it is recursive.
///
/// # Safety
/// As [`step`], of an entry of the innermost query.
unsafe fn push_cte(queries: &mut Vec<*mut pg_sys::Query>, entry: &pg_sys::RangeTblEntry) -> Option<()> {
    // SAFETY: the caller's promise: the WITH is one of the query this many levels out, and analysed.
    unsafe {
        queries.truncate(queries.len().checked_sub(entry.ctelevelsup as usize)?);
        let all = pgrx::PgList::<pg_sys::CommonTableExpr>::from_pg((**queries.last()?).cteList);
        let name = CStr::from_ptr(entry.ctename);
        let found = all.iter_ptr().find(|cte| CStr::from_ptr((**cte).ctename) == name)?;
        if (*found).cterecursive || (*(*found).ctequery).type_ != pg_sys::NodeTag::T_Query {
            return None;
        }
        queries.push((*found).ctequery.cast());
        Some(())
    }
}
