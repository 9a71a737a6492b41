//! Functions of PostgreSQL's, as in pg_sys, but without a barrier for errors around each call.
//!
//! Whoever calls them does so within one barrier around them all, and owns nothing that an ERROR would leave behind.

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    pub fn toast_open_indexes(
        relation: pg_sys::Relation,
        lock: pg_sys::LOCKMODE,
        indexes: *mut *mut pg_sys::Relation,
        n: *mut i32,
    ) -> i32;
    pub fn toast_close_indexes(indexes: *mut pg_sys::Relation, n: i32, lock: pg_sys::LOCKMODE);
    pub fn init_toast_snapshot(snapshot: pg_sys::Snapshot);
    pub fn index_beginscan(
        relation: pg_sys::Relation,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        keys: i32,
        order_bys: i32,
    ) -> pg_sys::IndexScanDesc;
    pub fn index_rescan(scan: pg_sys::IndexScanDesc, keys: pg_sys::ScanKey, n: i32, order_bys: pg_sys::ScanKey, m: i32);
    pub fn index_getnext_tid(
        scan: pg_sys::IndexScanDesc,
        direction: pg_sys::ScanDirection::Type,
    ) -> pg_sys::ItemPointer;
    pub fn index_endscan(scan: pg_sys::IndexScanDesc);
    pub fn ScanKeyInit(
        key: pg_sys::ScanKey,
        attribute: i16,
        strategy: u16,
        function: pg_sys::Oid,
        value: pg_sys::Datum,
    );
    pub fn ReadBufferExtended(
        relation: pg_sys::Relation,
        fork: pg_sys::ForkNumber::Type,
        block: u32,
        mode: pg_sys::ReadBufferMode::Type,
        ring: pg_sys::BufferAccessStrategy,
    ) -> pg_sys::Buffer;
    pub fn LockBuffer(buffer: pg_sys::Buffer, mode: i32);
    pub fn ReleaseBuffer(buffer: pg_sys::Buffer);
    pub fn HeapTupleSatisfiesVisibility(
        tuple: pg_sys::HeapTuple,
        snapshot: pg_sys::Snapshot,
        buffer: pg_sys::Buffer,
    ) -> bool;
}
