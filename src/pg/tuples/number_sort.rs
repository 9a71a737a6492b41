//! Numbers in ascending order, however many there are: PostgreSQL's own sort, within work_mem and beyond it in
//! temporary files.

use crate::pg::compat::next_sorted;
use crate::pg::interrupts::check_for_interrupts;
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
    pub fn finish(self, mut next: impl FnMut(i64)) {
        let mut value = pg_sys::Datum::null();
        // SAFETY: numbers are taken after the sort and before its end, and are passed by value.
        unsafe {
            pg_sys::tuplesort_performsort(self.state);
            while next_sorted(self.state, &mut value) {
                check_for_interrupts();
                next(value.value() as i64);
            }
            pg_sys::tuplesort_end(self.state);
        }
    }
}
