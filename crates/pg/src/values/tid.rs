//! Values of type tid: where a row of a table stands.

use super::typed::TypedDatum;
use crate::tuples::place::RowAt;
use pgrx::pg_sys;

/// The number of the page that a tid points to (BlockIdGetBlockNumber).
#[inline]
pub fn page_of(tid: &pg_sys::ItemPointerData) -> u32 {
    u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo)
}

/// The place of a row, of its columns tableoid and ctid.
#[inline]
pub fn row_at(table: TypedDatum<'_>, ctid: TypedDatum<'_>) -> RowAt {
    let ctid = ctid.of_type(pg_sys::TIDOID).cast_mut_ptr::<pg_sys::ItemPointerData>();
    // SAFETY: the value is a tid, by its type: a pointer to an ItemPointerData.
    let ctid = unsafe { *ctid };
    RowAt::CtidOf(table.bits() as u32, page_of(&ctid), ctid.ip_posid)
}
