//! What PostgreSQL's major versions call or do differently.

mod streams;

use pgrx::pg_sys;
use std::ffi::{CStr, c_void};
pub(super) use streams::{READ_STREAMS, ReadStream, Told};

/// May the current user execute a function?
///
/// # Safety
/// In a transaction.
pub(super) unsafe fn may_execute(function: pg_sys::Oid) -> pg_sys::AclResult::Type {
    let execute = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: catalog lookups.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_proc_aclcheck(function, user, execute);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, execute);
    }
}

/// May the current user use a foreign server?
///
/// # Safety
/// In a transaction; there is such a server.
pub(super) unsafe fn may_use_server(server: pg_sys::Oid) -> bool {
    let usage = pg_sys::ACL_USAGE as pg_sys::AclMode;
    // SAFETY: catalog lookups.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        let verdict = pg_sys::pg_foreign_server_aclcheck(server, user, usage);
        #[cfg(not(feature = "pg15"))]
        let verdict = pg_sys::object_aclcheck(pg_sys::ForeignServerRelationId, server, user, usage);
        verdict == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Are some of an Append's plans perhaps left out when it starts, or while it runs?
///
/// # Safety
/// It is one of a finished plan.
pub(super) unsafe fn prunes_at_start(append: *mut pg_sys::Append) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return !(*append).part_prune_info.is_null();
        #[cfg(feature = "pg18")]
        return (*append).part_prune_index >= 0;
    }
}

/// As whom a foreign table is read; InvalidOid for the current user.
///
/// # Safety
/// The scan is that of a relation in a finished plan with this range table.
pub(super) unsafe fn scans_as(scan: &pg_sys::ForeignScan, _range_table: *mut pg_sys::List) -> pg_sys::Oid {
    #[cfg(feature = "pg15")]
    // SAFETY: the caller's promise: a scanned relation has an entry.
    return unsafe {
        let entry = pg_sys::list_nth(_range_table, scan.scan.scanrelid as i32 - 1).cast::<pg_sys::RangeTblEntry>();
        (*entry).checkAsUser
    };
    #[cfg(not(feature = "pg15"))]
    return scan.checkAsUser;
}

/// As whom an analysed query reads a table; InvalidOid for the current user.
///
/// # Safety
/// The entry is one of a table, in the query's range table.
pub(super) unsafe fn read_as(_query: *mut pg_sys::Query, entry: *mut pg_sys::RangeTblEntry) -> pg_sys::Oid {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*entry).checkAsUser;
        #[cfg(not(feature = "pg15"))]
        return (*pg_sys::getRTEPermissionInfo((*_query).rteperminfos, entry)).checkAsUser;
    }
}

/// What a row type says of its columns, in their order, dropped ones among them.
///
/// # Safety
/// The descriptor stays, and as it is, for `'a`.
#[inline]
pub unsafe fn attributes<'a>(descriptor: pg_sys::TupleDesc) -> &'a [pg_sys::FormData_pg_attribute] {
    // SAFETY: a descriptor has natts attributes.
    unsafe { std::slice::from_raw_parts(first_attribute(descriptor), (*descriptor).natts as usize) }
}

/// Where what a row type says of its first column is; of a row type without columns, where it would be.
///
/// # Safety
/// There is such a descriptor.
pub(super) unsafe fn first_attribute(descriptor: pg_sys::TupleDesc) -> *const pg_sys::FormData_pg_attribute {
    // SAFETY: the caller's promise. Since PostgreSQL 18 they are behind an array of the same length, of what is needed
    // most.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return (&raw const (*descriptor).attrs).cast();
        #[cfg(feature = "pg18")]
        return (&raw const (*descriptor).compact_attrs)
            .cast::<pg_sys::CompactAttribute>()
            .add((*descriptor).natts as usize)
            .cast();
    }
}

/// Runs a query that was started, by way of the hooks of ExecutorRun, perhaps not for the last time.
///
/// # Safety
/// As ExecutorRun.
pub(super) unsafe fn run_plan(query: *mut pg_sys::QueryDesc, direction: pg_sys::ScanDirection::Type) {
    // SAFETY: the caller's promise; 0 is no limit.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::ExecutorRun(query, direction, 0, false);
        #[cfg(feature = "pg18")]
        pg_sys::ExecutorRun(query, direction, 0);
    }
}

/// The expressions that stand behind the columns of a range table's entry for GROUP BY, which PostgreSQL 18 has; None
/// of another entry.
pub(super) fn grouping_expressions(entry: &pg_sys::RangeTblEntry) -> Option<*mut pg_sys::List> {
    #[cfg(feature = "pg18")]
    return (entry.rtekind == pg_sys::RTEKind::RTE_GROUP).then_some(entry.groupexprs);
    #[cfg(not(feature = "pg18"))]
    {
        let _ = entry;
        None
    }
}

/// Does a variable mean the row before or after a change, as RETURNING old.* does from PostgreSQL 18 on?
///
/// # Safety
/// A variable of a query.
pub(super) unsafe fn is_of_returning(_var: *mut pg_sys::Var) -> bool {
    #[cfg(feature = "pg18")]
    // SAFETY: the caller's promise.
    return unsafe { (*_var).varreturningtype != pg_sys::VarReturningType::VAR_RETURNING_DEFAULT };
    #[cfg(not(feature = "pg18"))]
    false
}

/// The names and the variables of the columns of an entry of a range table, number `number`: expandRTE.
///
/// # Safety
/// An entry of a query.
pub(super) unsafe fn columns_of_entry(
    entry: *mut pg_sys::RangeTblEntry,
    number: i32,
) -> (*mut pg_sys::List, *mut pg_sys::List) {
    let (mut names, mut columns) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the caller's promise; both lists are set by the callee.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        pg_sys::expandRTE(entry, number, 0, -1, false, &mut names, &mut columns);
        #[cfg(feature = "pg18")]
        {
            let default = pg_sys::VarReturningType::VAR_RETURNING_DEFAULT;
            pg_sys::expandRTE(entry, number, 0, default, -1, false, &mut names, &mut columns);
        }
    }
    (names, columns)
}

/// Tablespace, database and number of a relation's files.
///
/// # Safety
/// The relation is open.
pub(super) unsafe fn files_of(relation: pg_sys::Relation) -> RelationNode {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
        return (*relation).rd_locator;
    }
}

/// Tablespace and number of a relation's files.
///
/// # Safety
/// The relation is open.
pub(super) unsafe fn numbers_of_files(relation: pg_sys::Relation) -> [u32; 2] {
    // SAFETY: the caller's promise.
    let files = unsafe { files_of(relation) };
    #[cfg(feature = "pg15")]
    return [files.spcNode.to_u32(), files.relNode.to_u32()];
    #[cfg(not(feature = "pg15"))]
    return [files.spcOid.to_u32(), files.relNumber.to_u32()];
}

#[cfg(feature = "pg15")]
pub(super) type RelationNode = pg_sys::RelFileNode;
#[cfg(not(feature = "pg15"))]
pub(super) type RelationNode = pg_sys::RelFileLocator;

/// Counts a page of a table that is not temporary, which a scan has found in a buffer without PostgreSQL's help; the
/// ring is that of the scan, or NULL.
///
/// # Safety
/// The relation is open.
pub(super) unsafe fn count_hit(relation: pg_sys::Relation, ring: pg_sys::BufferAccessStrategy) {
    // SAFETY: the caller's promise; the counters are this process's.
    unsafe {
        // for pg_stat_io
        #[cfg(not(feature = "pg15"))]
        {
            use pg_sys::{IOContext, IOObject, IOOp};
            let context = if ring.is_null() { IOContext::IOCONTEXT_NORMAL } else { IOContext::IOCONTEXT_BULKREAD };
            #[cfg(not(feature = "pg18"))]
            pg_sys::pgstat_count_io_op(IOObject::IOOBJECT_RELATION, context, IOOp::IOOP_HIT);
            #[cfg(feature = "pg18")]
            pg_sys::pgstat_count_io_op(IOObject::IOOBJECT_RELATION, context, IOOp::IOOP_HIT, 1, 0);
        }
        #[cfg(feature = "pg15")]
        let _ = ring;
        if let Some(statistics) = (*relation).pgstat_info.as_mut() {
            #[cfg(feature = "pg15")]
            {
                statistics.t_counts.t_blocks_fetched += 1;
                statistics.t_counts.t_blocks_hit += 1;
            }
            #[cfg(not(feature = "pg15"))]
            {
                statistics.counts.blocks_fetched += 1;
                statistics.counts.blocks_hit += 1;
            }
        }
    }
}

/// The parts of a qualified name.
///
/// # Safety
/// Raises PostgreSQL's ERROR for what is no name.
pub(super) unsafe fn parts_of_name(name: &CStr) -> *mut pg_sys::List {
    // SAFETY: parses a C string.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::stringToQualifiedNameList(name.as_ptr());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::stringToQualifiedNameList(name.as_ptr(), std::ptr::null_mut());
    }
}

/// Reads from a virtual file; how many bytes, or below 0 after an error.
///
/// # Safety
/// The file is open, and there is room for this many bytes.
pub(super) unsafe fn read_file(file: pg_sys::File, to: *mut c_void, bytes: usize, at: i64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::FileRead(file, to.cast(), bytes as _, at, pg_sys::WaitEventIO::WAIT_EVENT_BUFFILE_READ) as i64 }
}

/// Writes to a virtual file; how many bytes, or below 0 after an error.
///
/// # Safety
/// The file is open, and there are this many bytes.
pub(super) unsafe fn write_file(file: pg_sys::File, from: *const c_void, bytes: usize, at: i64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::FileWrite(file, from.cast_mut().cast(), bytes as _, at, pg_sys::WaitEventIO::WAIT_EVENT_BUFFILE_WRITE)
            as i64
    }
}

/// Reads a page of a heap scan in page mode, and finds the tuples that the snapshot sees.
///
/// # Safety
/// The scan is open, the page one of its table.
pub(super) unsafe fn heap_page(scan: pg_sys::HeapScanDesc, page: u32) {
    // SAFETY: the caller's promise. What PostgreSQL 17 has no function for any more is done here: the pin of the page
    // before is released, and this one's taken.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        pg_sys::heapgetpage(scan.cast(), page);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        {
            let none = pg_sys::InvalidBuffer as pg_sys::Buffer;
            let before = std::mem::replace(&mut (*scan).rs_cbuf, none);
            if before != none {
                pg_sys::ReleaseBuffer(before);
            }
            crate::interrupts::check_for_interrupts();
            (*scan).rs_cbuf = pg_sys::ReadBufferExtended(
                (*scan).rs_base.rs_rd,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                page,
                pg_sys::ReadBufferMode::RBM_NORMAL,
                (*scan).rs_strategy,
            );
            (*scan).rs_cblock = page;
            pg_sys::heap_prepare_pagescan(scan.cast());
        }
    }
}

/// A snapshot for values out of line; `room` is where it may be. Without a barrier for errors.
///
/// # Safety
/// There is a snapshot for which what the values belong to is kept.
#[expect(ffi_unwind_calls, reason = "the caller's barrier")]
pub(super) unsafe fn toast_snapshot(room: &mut pg_sys::SnapshotData) -> pg_sys::Snapshot {
    #[cfg(not(feature = "pg18"))]
    {
        unsafe extern "C-unwind" {
            fn init_toast_snapshot(snapshot: pg_sys::Snapshot);
        }
        // SAFETY: the caller's promise.
        unsafe { init_toast_snapshot(room) };
        room
    }
    #[cfg(feature = "pg18")]
    {
        let _ = room;
        unsafe extern "C-unwind" {
            fn get_toast_snapshot() -> pg_sys::Snapshot;
        }
        // SAFETY: the caller's promise; the snapshot is a constant.
        unsafe { get_toast_snapshot() }
    }
}

/// Begins a scan of an index, without a barrier for errors.
///
/// # Safety
/// The relations are open, and the snapshot is one for them.
#[expect(ffi_unwind_calls, reason = "the caller's barrier")]
pub(super) unsafe fn begin_index_scan(
    relation: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    keys: i32,
) -> pg_sys::IndexScanDesc {
    #[cfg(not(feature = "pg18"))]
    {
        type Begin = unsafe fn(pg_sys::Relation, pg_sys::Relation, pg_sys::Snapshot, i32, i32) -> pg_sys::IndexScanDesc;
        const _: Begin = pg_sys::index_beginscan;
        unsafe extern "C-unwind" {
            fn index_beginscan(
                relation: pg_sys::Relation,
                index: pg_sys::Relation,
                snapshot: pg_sys::Snapshot,
                keys: i32,
                order_bys: i32,
            ) -> pg_sys::IndexScanDesc;
        }
        // SAFETY: the caller's promise.
        unsafe { index_beginscan(relation, index, snapshot, keys, 0) }
    }
    #[cfg(feature = "pg18")]
    {
        type Counts = *mut pg_sys::IndexScanInstrumentation;
        type Begin =
            unsafe fn(pg_sys::Relation, pg_sys::Relation, pg_sys::Snapshot, Counts, i32, i32) -> pg_sys::IndexScanDesc;
        const _: Begin = pg_sys::index_beginscan;
        unsafe extern "C-unwind" {
            fn index_beginscan(
                relation: pg_sys::Relation,
                index: pg_sys::Relation,
                snapshot: pg_sys::Snapshot,
                counts: Counts,
                keys: i32,
                order_bys: i32,
            ) -> pg_sys::IndexScanDesc;
        }
        // SAFETY: the caller's promise; no one counts.
        unsafe { index_beginscan(relation, index, snapshot, std::ptr::null_mut(), keys, 0) }
    }
}

/// Are rows that a snapshot sees vacuumed away after some time (`old_snapshot_threshold`)?
pub(super) fn snapshots_expire() -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    // SAFETY: reads a setting.
    return unsafe { pg_sys::old_snapshot_threshold >= 0 };
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    false
}

/// The path of a relation's main fork, below the data directory.
///
/// # Safety
/// The relation is open.
pub(super) unsafe fn path_of(relation: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let (files, fork) = (files_of(relation), pg_sys::ForkNumber::MAIN_FORKNUM);
        let backend = (*relation).rd_backend;
        #[cfg(feature = "pg15")]
        let path = pg_sys::GetRelationPath(files.dbNode, files.spcNode, files.relNode, backend, fork);
        #[cfg(not(feature = "pg15"))]
        let path = pg_sys::GetRelationPath(files.dbOid, files.spcOid, files.relNumber, backend, fork);
        #[cfg(feature = "pg18")]
        let path = path.str_.as_ptr();
        CStr::from_ptr(path).to_string_lossy().into_owned()
    }
}

/// The number of this backend's transaction among its transactions, subtransactions left out.
///
/// # Safety
/// In a backend.
#[inline]
pub unsafe fn transaction_of_backend() -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}

/// Takes the next value of a sort of values that are passed by value; false at the end.
///
/// # Safety
/// The sort was begun by tuplesort_begin_datum(), and performed.
pub(super) unsafe fn next_sorted(sort: *mut pg_sys::Tuplesortstate, value: &mut pg_sys::Datum) -> bool {
    let mut null = false;
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::tuplesort_getdatum(sort, true, value, &mut null, std::ptr::null_mut());
        #[cfg(not(feature = "pg15"))]
        return pg_sys::tuplesort_getdatum(sort, true, false, value, &mut null, std::ptr::null_mut());
    }
}

/// The lock under which libraries that come late make structures in shared memory (AddinShmemInitLock).
///
/// # Safety
/// In a process that is attached to shared memory.
pub(super) unsafe fn addin_shmem_init_lock() -> *mut pg_sys::LWLock {
    // its place among the main locks (lwlocknames.txt, lwlocklist.h), the same from 15 to 18
    const PLACE: usize = 21;
    // SAFETY: the caller's promise: the main locks are there.
    unsafe { &raw mut (*pg_sys::MainLWLockArray.add(PLACE)).lock }
}
