//! Where a query's column comes from: the column of a table that it hands through as it is, if it does.

use pgrx::prelude::*;

/// The column of a table that a query's column is, through subqueries, joins and views; None if it is computed.
///
/// # Safety
/// The query is analysed and rewritten, and the target one of its target list.
pub(super) unsafe fn origin(
    query: *mut pg_sys::Query,
    target: *mut pg_sys::TargetEntry,
) -> Option<(pg_sys::Oid, pg_sys::AttrNumber)> {
    // SAFETY: the caller's promise: variables name entries of the range table, and columns of these.
    unsafe {
        // the parser says it of all but views, which it takes for tables
        let said = (*target).resorigtbl;
        if said != pg_sys::Oid::INVALID && pg_sys::get_rel_relkind(said) as u8 != pg_sys::RELKIND_VIEW {
            return Some((said, (*target).resorigcol));
        }
        let (mut query, mut expression) = (query, (*target).expr.cast::<pg_sys::Node>());
        loop {
            if expression.is_null() || (*expression).type_ != pg_sys::NodeTag::T_Var {
                return None;
            }
            let variable = &*expression.cast::<pg_sys::Var>();
            if variable.varlevelsup != 0 || variable.varattno <= 0 {
                return None;
            }
            let entries = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable);
            let entry = entries.get_ptr(variable.varno as usize - 1)?;
            let column = variable.varattno as usize - 1;
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => return Some(((*entry).relid, variable.varattno)),
                pg_sys::RTEKind::RTE_JOIN => {
                    expression = pgrx::PgList::<pg_sys::Node>::from_pg((*entry).joinaliasvars).get_ptr(column)?;
                }
                // rows of a UNION come from several
                pg_sys::RTEKind::RTE_SUBQUERY if (*(*entry).subquery).setOperations.is_null() => {
                    query = (*entry).subquery;
                    let targets = pgrx::PgList::<pg_sys::TargetEntry>::from_pg((*query).targetList);
                    expression = (*targets.get_ptr(column)?).expr.cast();
                }
                _ => return None,
            }
        }
    }
}
