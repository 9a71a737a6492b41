//! How large a relation is that TABLESAMPLE can read.

use pgrx::prelude::*;

unsafe extern "C-unwind" {
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// Pages of a table or materialized view, with all its partitions and children; None if TABLESAMPLE cannot read it, or
/// would read a part of it as a whole: a view, a foreign table, or one that is not stored as PostgreSQL's heap.
#[expect(ffi_unwind_calls, reason = "behind a barrier")]
pub fn sampled_pages(relation: pg_sys::Oid) -> Option<u64> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: in a transaction; the relation is locked by the one that resolved its name, and its children by this
    // call, as any query on it locks them. The list has OIDs.
    unsafe {
        let tables = pg_sys::ffi::pg_guard_ffi_boundary(|| find_all_inheritors(relation, lock, std::ptr::null_mut()));
        let pages = (0..pg_sys::list_length(tables)).map(|i| pages(pg_sys::list_nth_oid(tables, i))).sum();
        pg_sys::list_free(tables);
        pages
    }
}

/// Pages of one relation without its children; None if it is no heap.
///
/// # Safety
/// It is locked.
unsafe fn pages(relation: pg_sys::Oid) -> Option<u64> {
    // SAFETY: the caller's promise; the reference is given back. A partitioned table has no file.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relation);
        if relation.is_null() {
            return Some(0);
        }
        let pages = match (*(*relation).rd_rel).relkind as u8 {
            pg_sys::RELKIND_PARTITIONED_TABLE => Some(0),
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW => ((*relation).rd_tableam
                == pg_sys::GetHeapamTableAmRoutine())
            .then(|| u64::from(pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM))),
            _ => None,
        };
        pg_sys::RelationClose(relation);
        pages
    }
}
