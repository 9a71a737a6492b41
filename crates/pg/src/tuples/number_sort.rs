//! Numbers in ascending order, however many there are: PostgreSQL's own sort, within work_mem and beyond it in
//! temporary files.

use crate::compat::next_sorted;
use crate::interrupts::check_for_interrupts;
use pgrx::pg_sys;

/// Numbers on their way through a sort.
pub struct NumberSort {
    state: *mut pg_sys::Tuplesortstate,
}

impl NumberSort {
    /// An empty sort that shares `work_mem` with others, `sorts` in all. Belongs to the current memory context.
    pub fn new(sorts: usize) -> NumberSort {
        const LEAST_KILOBYTES: i32 = 64; // what work_mem itself must be
        // SAFETY: the sort is by the type's own operator; all arguments are plain values.
        let state = unsafe {
            pg_sys::tuplesort_begin_datum(
                pg_sys::INT8OID,
                pg_sys::Oid::from(pg_sys::Int8LessOperator),
                pg_sys::Oid::INVALID,
                false,
                (pg_sys::work_mem / sorts.max(1) as i32).max(LEAST_KILOBYTES),
                std::ptr::null_mut(),
                pg_sys::TUPLESORT_NONE as i32,
            )
        };
        NumberSort { state }
    }

    /// Takes a number.
    #[inline]
    pub fn push(&mut self, number: i64) {
        // SAFETY: the sort was begun with this type, which is passed by value.
        unsafe { pg_sys::tuplesort_putdatum(self.state, pg_sys::Datum::from(number), false) };
    }

    /// Sorts the numbers and gives them one by one.
    pub fn finish(self, next: impl FnMut(i64)) {
        self.sort().for_each(next);
    }

    /// Sorts the numbers.
    pub fn sort(self) -> SortedNumbers {
        // SAFETY: begun in new(), and not sorted yet.
        unsafe { pg_sys::tuplesort_performsort(self.state) };
        SortedNumbers { state: self.state }
    }
}

/// Numbers that are sorted, one by one. What the sort has taken goes after the last one, or with its memory context.
pub struct SortedNumbers {
    /// null after the last one
    state: *mut pg_sys::Tuplesortstate,
}

impl Iterator for SortedNumbers {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.state.is_null() {
            return None;
        }
        check_for_interrupts();
        let mut value = pg_sys::Datum::null();
        // SAFETY: the sort was performed and has not ended; numbers are passed by value.
        unsafe {
            if next_sorted(self.state, &mut value) {
                return Some(value.value() as i64);
            }
            pg_sys::tuplesort_end(self.state);
        }
        self.state = std::ptr::null_mut();
        None
    }
}
