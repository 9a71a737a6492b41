//! Functions of PostgreSQL's, as in pg_sys, but without a barrier for errors around each call.
//!
//! A caller does so within one barrier around them all, and owns nothing that an ERROR would leave behind.

use pgrx::pg_sys;

unsafe extern "C-unwind" {
    pub fn toast_open_indexes(
        relation: pg_sys::Relation,
        lock: pg_sys::LOCKMODE,
        indexes: *mut *mut pg_sys::Relation,
        n: *mut i32,
    ) -> i32;
    pub fn toast_close_indexes(indexes: *mut pg_sys::Relation, n: i32, lock: pg_sys::LOCKMODE);
}

/// Declares functions, and proves that pg_sys has them with the same arguments and results: the linker would not notice
/// that a major version has changed them.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        unsafe extern "C-unwind" {
            $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
        }
        $(const _: unsafe fn($($type),*) $(-> $result)? = pg_sys::$name;)*
    };
}

functions! {
    fn index_rescan(scan: pg_sys::IndexScanDesc, keys: pg_sys::ScanKey, n: i32, order_bys: pg_sys::ScanKey, m: i32);
    fn index_getnext_tid(
        scan: pg_sys::IndexScanDesc,
        direction: pg_sys::ScanDirection::Type,
    ) -> pg_sys::ItemPointer;
    fn index_endscan(scan: pg_sys::IndexScanDesc);
    fn ScanKeyInit(
        key: pg_sys::ScanKey,
        attribute: i16,
        strategy: u16,
        function: pg_sys::Oid,
        value: pg_sys::Datum,
    );
    fn ReadBufferExtended(
        relation: pg_sys::Relation,
        fork: pg_sys::ForkNumber::Type,
        block: u32,
        mode: pg_sys::ReadBufferMode::Type,
        ring: pg_sys::BufferAccessStrategy,
    ) -> pg_sys::Buffer;
    fn LockBuffer(buffer: pg_sys::Buffer, mode: i32);
    fn ReleaseBuffer(buffer: pg_sys::Buffer);
    fn HeapTupleSatisfiesVisibility(
        tuple: pg_sys::HeapTuple,
        snapshot: pg_sys::Snapshot,
        buffer: pg_sys::Buffer,
    ) -> bool;
}
