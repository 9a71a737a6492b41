//! Relations with the heap access method.

use crate::compat::numbers_of_files;
use crate::tuples::row::Layout;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// An open relation with the heap access method.
#[derive(Clone, Copy)]
pub struct HeapRelation<'a>(pg_sys::Relation, PhantomData<&'a ()>);

impl HeapRelation<'_> {
    /// The relation, unless it is NULL or not a heap.
    ///
    /// # Safety
    /// `relation` is NULL, or open and locked for as long as the result is used.
    pub(crate) unsafe fn new<'a>(relation: pg_sys::Relation) -> Option<HeapRelation<'a>> {
        // SAFETY: the relcache entry of an open relation.
        let heap = unsafe { !relation.is_null() && (*relation).rd_tableam == pg_sys::GetHeapamTableAmRoutine() };
        heap.then_some(HeapRelation(relation, PhantomData))
    }

    /// The relation's entry in the cache, which is open.
    pub(crate) fn entry(self) -> pg_sys::Relation {
        self.0
    }

    /// Pages of the relation at this moment.
    pub fn pages(self) -> u32 {
        // SAFETY: the relation is open.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, pg_sys::ForkNumber::MAIN_FORKNUM) }
    }

    /// Tablespace and number of its files.
    pub fn files(self) -> [u32; 2] {
        // SAFETY: the relation is open.
        unsafe { numbers_of_files(self.0) }
    }

    /// Is it a temporary table?
    pub fn is_temporary(self) -> bool {
        // SAFETY: the relation is open.
        unsafe { (*(*self.0).rd_rel).relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP }
    }

    /// The partitioned table that it is a part of, or one of whose parts; itself if it is no partition.
    pub fn root(self) -> pg_sys::Oid {
        // SAFETY: the relation is open; every partition has a root, which is looked up in catalogs.
        unsafe {
            let own = (*self.0).rd_id;
            if !(*(*self.0).rd_rel).relispartition {
                return own;
            }
            let root = pgrx::direct_function_call(pg_sys::pg_partition_root, &[Some(pg_sys::Datum::from(own))]);
            root.unwrap_or(own)
        }
    }

    /// A layout for the attributes `columns`, counted from 0; None if one is wanted twice.
    pub fn layout(self, columns: &[usize]) -> Option<Layout> {
        // SAFETY: rd_att lives as long as the relation is open, and a layout is read with a scan of the relation only.
        unsafe { Layout::new((*self.0).rd_att, columns) }
    }

    /// Pages that the tablespace may be asked for in advance (effective_io_concurrency).
    pub(super) fn io_concurrency(self) -> u32 {
        // SAFETY: looks into the tablespace's options and the setting.
        unsafe { pg_sys::get_tablespace_io_concurrency((*(*self.0).rd_rel).reltablespace).max(0) as u32 }
    }
}
