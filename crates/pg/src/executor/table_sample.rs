//! A query that reads one table, made to read some of the table's blocks, as TABLESAMPLE SYSTEM does.

use pgrx::prelude::*;

/// The handler of the method SYSTEM, which PostgreSQL's headers call F_TSM_SYSTEM_HANDLER or F_SYSTEM.
const SYSTEM: u32 = 3314;

/// The table that the query reads if it does nothing but filter and compute on one, in views and subqueries, too; None
/// if its rows depend on several rows of the table, or on another table.
///
/// # Safety
/// It is an analysed and rewritten query.
pub(super) unsafe fn only_table(mut query: *mut pg_sys::Query) -> Option<*mut pg_sys::RangeTblEntry> {
    // SAFETY: the caller's promise: FROM has nodes, and references name entries of the range table.
    unsafe {
        loop {
            let this = &*query;
            let lists = [this.groupClause, this.groupingSets, this.distinctClause, this.cteList];
            let nodes = [this.setOperations, this.havingQual, this.limitCount, this.limitOffset];
            let is_plain = lists.iter().all(|list| list.is_null())
                && nodes.iter().all(|node| node.is_null())
                && !(this.hasAggs || this.hasWindowFuncs || this.hasTargetSRFs);
            let from = pgrx::PgList::<pg_sys::Node>::from_pg((*this.jointree).fromlist);
            let only = from.get_ptr(0).filter(|_| is_plain && from.len() == 1)?;
            if (*only).type_ != pg_sys::NodeTag::T_RangeTblRef {
                return None;
            }
            let place = (*only.cast::<pg_sys::RangeTblRef>()).rtindex as usize - 1;
            let entry = pgrx::PgList::<pg_sys::RangeTblEntry>::from_pg(this.rtable).get_ptr(place)?;
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => return (*entry).tablesample.is_null().then_some(entry),
                pg_sys::RTEKind::RTE_SUBQUERY => query = (*entry).subquery,
                _ => return None,
            }
        }
    }
}

/// Makes the query read this percentage of the table's blocks, drawn by the seed.
///
/// # Safety
/// The entry is a table's of a query that is not planned yet, in the current memory context.
pub(super) unsafe fn sample_blocks(entry: *mut pg_sys::RangeTblEntry, percent: f32, seed: f64) {
    let no_collation = pg_sys::Oid::INVALID;
    // SAFETY: the caller's promise; both constants are of types that are passed by value, as the handler wants them.
    unsafe {
        let constant = |type_oid: pg_sys::Oid, bytes: i32, value: Option<pg_sys::Datum>| {
            let value = value.unwrap_or(pg_sys::Datum::null());
            pg_sys::makeConst(type_oid, -1, no_collation, bytes, value, false, true)
        };
        let mut arguments = pgrx::PgList::<pg_sys::Const>::new();
        arguments.push(constant(pg_sys::FLOAT4OID, size_of::<f32>() as i32, percent.into_datum()));
        let mut clause = pgrx::PgBox::<pg_sys::TableSampleClause>::alloc_node(pg_sys::NodeTag::T_TableSampleClause);
        clause.tsmhandler = pg_sys::Oid::from(SYSTEM);
        clause.args = arguments.into_pg();
        clause.repeatable = constant(pg_sys::FLOAT8OID, size_of::<f64>() as i32, seed.into_datum()).cast();
        (*entry).tablesample = clause.into_pg();
    }
}
