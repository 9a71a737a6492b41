//! How many pages a table may have for reads out of sequence to be cheap, by PostgreSQL's own settings alone: what is
//! in a cache at the moment, or how long a read took, would make the same call choose differently from run to run.

use super::walk::any_node;
use pgrx::prelude::*;

unsafe extern "C-unwind" {
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// The table, its partitions and children, all of them.
///
/// # Safety
/// In a transaction; the table is locked.
#[expect(ffi_unwind_calls, reason = "behind a barrier")]
pub(super) unsafe fn with_inheritors(table: pg_sys::Oid, lock: pg_sys::LOCKMODE) -> Vec<pg_sys::Oid> {
    // SAFETY: the caller's promise.
    unsafe {
        let tables = pg_sys::ffi::pg_guard_ffi_boundary(|| find_all_inheritors(table, lock, std::ptr::null_mut()));
        let oids = (0..pg_sys::list_length(tables)).map(|i| pg_sys::list_nth_oid(tables, i)).collect();
        pg_sys::list_free(tables);
        oids
    }
}

/// Seeks are cheap if a page out of sequence costs at most this many times what one in sequence costs. The default of
/// random_page_cost is 4; for solid-state disks 1.1 is recommended.
const CHEAP: f64 = 2.0;

/// Any number, if all tables of the query are in tablespaces quick at random reads (random_page_cost, seq_page_cost).
/// Otherwise as many as PostgreSQL expects to find in memory (effective_cache_size).
///
/// # Safety
/// It is an analysed query, in a transaction.
pub(super) unsafe fn pages_cheap_to_seek(query: *mut pg_sys::Query) -> u32 {
    // SAFETY: the caller's promise; a plain variable.
    unsafe {
        let mut tablespaces: Vec<pg_sys::Oid> = Vec::new();
        any_node(query.cast(), |node| {
            let entry = node.cast::<pg_sys::RangeTblEntry>();
            if (*node).type_ == pg_sys::NodeTag::T_RangeTblEntry && (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                // the tables are locked by the analysis
                for table in with_inheritors((*entry).relid, pg_sys::NoLock as pg_sys::LOCKMODE) {
                    let has_pages = pg_sys::get_rel_relkind(table) as u8 != pg_sys::RELKIND_PARTITIONED_TABLE;
                    let tablespace = pg_sys::get_rel_tablespace(table);
                    if has_pages && !tablespaces.contains(&tablespace) {
                        tablespaces.push(tablespace);
                    }
                }
            }
            None
        });
        if tablespaces.is_empty() {
            tablespaces.push(pg_sys::Oid::INVALID); // the database's own
        }
        match tablespaces.into_iter().all(is_quick) {
            true => u32::MAX,
            false => pg_sys::effective_cache_size.max(0) as u32,
        }
    }
}

fn is_quick(tablespace: pg_sys::Oid) -> bool {
    let (mut random, mut sequential) = (0.0, 0.0);
    // SAFETY: looks into the tablespace's options and the settings.
    unsafe { pg_sys::get_tablespace_page_costs(tablespace, &raw mut random, &raw mut sequential) };
    random <= CHEAP * sequential
}
