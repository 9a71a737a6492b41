//! A full shuffle: rows sorted by a random key, with PostgreSQL's own sort.
//!
//! The sort obeys work_mem as any Sort node does, goes to temporary files beyond it, and is interruptible. Two columns
//! are added behind the rows' own: the row's number in the source, which stays with it, and the key to sort by. Anyone
//! who reads the rows by the columns of the source does not see them.

use super::slot::Slot;
use super::spool::{RowType, Spool};
use crate::compat::attributes;
use crate::interrupts::check_for_interrupts;
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;

/// Rows with a number and a key behind their own columns.
pub struct NumberedRows {
    descriptor: pg_sys::TupleDesc,
    /// columns of the source
    columns: usize,
    /// where a row is put together, and where a tuple of it is read
    formed: *mut pg_sys::TupleTableSlot,
    read: *mut pg_sys::TupleTableSlot,
    /// for values that were brought from elsewhere
    memory: pg_sys::MemoryContext,
}

/// What a sort has used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SortSpace {
    /// as EXPLAIN calls the method of a Sort
    pub method: String,
    /// "Memory" or "Disk"
    pub kind: String,
    /// of memory or disk
    pub kilobytes: i64,
}

impl NumberedRows {
    /// For rows of this type. Belongs to the current memory context.
    pub fn new(source: RowType<'_>) -> NumberedRows {
        let source = source.descriptor();
        // SAFETY: the descriptor has room for the source's columns and two more, all of which are set.
        unsafe {
            let columns = (*source).natts as usize;
            let descriptor = pg_sys::CreateTemplateTupleDesc(columns as i32 + 2);
            for column in 1..=columns as pg_sys::AttrNumber {
                pg_sys::TupleDescCopyEntry(descriptor, column, source, column);
            }
            for (i, name) in [c"number", c"key"].into_iter().enumerate() {
                let column = (columns + 1 + i) as pg_sys::AttrNumber;
                pg_sys::TupleDescInitEntry(descriptor, column, name.as_ptr(), pg_sys::INT8OID, -1, 0);
            }
            NumberedRows {
                descriptor,
                columns,
                formed: pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual),
                read: pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsMinimalTuple),
                memory: pg_sys::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"CorgiPileBlockShuffle row".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ),
            }
        }
    }

    /// An empty spool for such rows. It knows them by their number.
    pub fn spool(&self) -> Spool {
        // SAFETY: the descriptor is ours.
        Spool::numbered(unsafe { RowType::new(self.descriptor) }, self.columns)
    }

    /// A row of the source with its number and key. What is stored out of line is fetched: the copy is to be read
    /// without the table. It stays in its slot until the next is made, and is to be used before the row is gone.
    pub fn with_number(&mut self, row: Slot<'_>, number: u64, key: i64) -> Slot<'_> {
        // SAFETY: both slots have the source's columns first.
        unsafe {
            if ((*(*row.0).tts_tupleDescriptor).natts as usize) < self.columns {
                error!("the sort received a row of another type");
            }
            pg_sys::slot_getallattrs(row.0);
            pg_sys::ExecClearTuple(self.formed);
            pg_sys::MemoryContextReset(self.memory);
            let caller = pg_sys::MemoryContextSwitchTo(self.memory);
            for i in 0..self.columns {
                let null = *(*row.0).tts_isnull.add(i);
                let mut value = *(*row.0).tts_values.add(i);
                let form = &attributes(self.descriptor)[i];
                if !null && form.attlen == -1 && pgrx::varatt_is_1b_e(value.cast_mut_ptr()) {
                    value = pg_sys::detoast_external_attr(value.cast_mut_ptr()).into();
                }
                *(*self.formed).tts_values.add(i) = value;
                *(*self.formed).tts_isnull.add(i) = null;
            }
            pg_sys::MemoryContextSwitchTo(caller);
            for (i, value) in [number.cast_signed(), key].into_iter().enumerate() {
                *(*self.formed).tts_values.add(self.columns + i) = value.into();
                *(*self.formed).tts_isnull.add(self.columns + i) = false;
            }
            pg_sys::ExecStoreVirtualTuple(self.formed);
            Slot::new(self.formed)
        }
    }

    /// Row `i` of the loaded page of a spool of such rows, with another key, which `key` makes of its number.
    pub fn with_new_key(&mut self, spool: &mut Spool, i: usize, key: impl FnOnce(u64) -> i64) -> Slot<'_> {
        // SAFETY: the slot is ours, and its row has all columns; the number is never NULL. The row stays in it while
        // the other is made.
        unsafe {
            let row = Slot::new(self.read);
            spool.store(i, row);
            pg_sys::slot_getallattrs(self.read);
            let number = (*(*self.read).tts_values.add(self.columns)).value() as u64;
            self.with_number(row, number, key(number))
        }
    }

    /// Forgets the rows of a spool that is about to go.
    pub fn clear(&mut self) {
        for slot in [self.formed, self.read] {
            // SAFETY: the slot is ours.
            unsafe { Slot::new(slot) }.clear();
        }
    }

    /// An empty sort of such rows by their keys.
    pub fn sort(&self) -> Sorter {
        let mut collation = pg_sys::Oid::INVALID;
        // SAFETY: the sort copies what it is given about its only key, the last column.
        let state = unsafe {
            pg_sys::tuplesort_begin_heap(
                self.descriptor,
                1,
                &mut (self.columns as pg_sys::AttrNumber + 2),
                &mut pg_sys::Oid::from(pg_sys::Int8LessOperator),
                &mut collation,
                &mut false,
                pg_sys::work_mem,
                std::ptr::null_mut(),
                pg_sys::TUPLESORT_NONE as i32,
            )
        };
        Sorter { state, columns: self.columns as i32 + 2 }
    }

    /// Gives back the slots.
    pub fn end(self) {
        // SAFETY: made in new, dropped once; they hold nothing of anybody else.
        unsafe {
            pg_sys::ExecDropSingleTupleTableSlot(self.formed);
            pg_sys::ExecDropSingleTupleTableSlot(self.read);
            pg_sys::MemoryContextDelete(self.memory);
        }
    }
}

/// Rows on their way through a sort.
pub struct Sorter {
    state: *mut pg_sys::Tuplesortstate,
    columns: i32,
}

impl Sorter {
    /// Takes a copy of a row.
    pub fn push(&mut self, row: Slot<'_>) {
        // SAFETY: the row has as many columns as the descriptor that the sort was begun with, and is copied.
        unsafe {
            if (*(*row.0).tts_tupleDescriptor).natts != self.columns {
                error!("the sort received a row of another type");
            }
            pg_sys::tuplesort_puttupleslot(self.state, row.0);
        }
    }

    /// Sorts the rows and appends them to a spool.
    pub fn finish(self, rows: &mut NumberedRows, spool: &mut Spool) -> SortSpace {
        // SAFETY: each row is good until the next is asked for; the sort is ended once, its statistics read before.
        unsafe {
            pg_sys::tuplesort_performsort(self.state);
            while pg_sys::tuplesort_gettupleslot(self.state, true, false, rows.read, std::ptr::null_mut()) {
                check_for_interrupts();
                spool.push(Slot::new(rows.read));
            }
            spool.finish();
            let mut used = pg_sys::TuplesortInstrumentation::default();
            pg_sys::tuplesort_get_stats(self.state, &mut used);
            Slot::new(rows.read).clear();
            pg_sys::tuplesort_end(self.state);
            let name = |text| CStr::from_ptr(text).to_string_lossy().into_owned();
            SortSpace {
                method: name(pg_sys::tuplesort_method_name(used.sortMethod)),
                kind: name(pg_sys::tuplesort_space_type_name(used.spaceType)),
                kilobytes: used.spaceUsed,
            }
        }
    }
}
