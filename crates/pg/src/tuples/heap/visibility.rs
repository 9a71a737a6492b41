//! Which tuples of a page a snapshot sees, where not everybody sees them all.
//!
//! Guarantees: what HeapTupleSatisfiesVisibility() says of each tuple, with the hint bits that it sets. Only where the
//! bits say that the inserter has committed, and that no one has deleted the tuple, which is how a table is filled, the
//! answer depends on the inserter alone, and is the same for all tuples of his: a run of them is asked for once.

use crate::tuples::page::Line;
use crate::tuples::toast::guardless::HeapTupleSatisfiesVisibility;
use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;

/// The bits of a tuple whose inserter has committed, and which no one has deleted or locked.
const SETTLED: u32 = pg_sys::HEAP_XMIN_COMMITTED | pg_sys::HEAP_XMAX_INVALID;

/// The bits that are looked at. All of them: the tuple is frozen, too, and everybody sees it.
const BITS: u32 = SETTLED | pg_sys::HEAP_XMIN_INVALID;

/// A snapshot, and what is known of it.
pub(super) struct Visibility {
    snapshot: pg_sys::Snapshot,
    table: pg_sys::Oid,
    /// an inserter that has committed, and whether the snapshot sees what he has inserted
    inserter: Option<(pg_sys::TransactionId, bool)>,
}

/// A page in a buffer.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub(super) number: u32,
    pub(super) buffer: pg_sys::Buffer,
    pub(super) start: *const u8,
}

impl Visibility {
    /// Of a table under a snapshot of MVCC, as long as that is registered.
    pub(super) fn new(snapshot: pg_sys::Snapshot, table: pg_sys::Oid) -> Visibility {
        Visibility { snapshot, table, inserter: None }
    }

    /// Puts the numbers of the tuples that the snapshot sees to the front of `visible`, and says how many there are.
    ///
    /// # Safety
    /// The page is one of the table's, pinned and locked; these are its line pointers, not more than `visible` has
    /// room for, and all that are in use point into the page. The snapshot is still registered.
    pub(super) unsafe fn of_page(&mut self, page: Page, lines: &[Line], visible: &mut [pg_sys::OffsetNumber]) -> usize {
        let mut tuples = 0;
        // SAFETY: the caller's promise. An ERROR jumps over this frame to the barrier, and nothing here owns anything.
        unsafe {
            pg_guard_ffi_boundary(|| {
                for (number, line) in (1..).zip(lines).take(visible.len()) {
                    if line.is_normal() {
                        visible[tuples] = number;
                        tuples += usize::from(self.sees(page, number, *line));
                    }
                }
            });
        }
        tuples
    }

    /// Does the snapshot see this tuple?
    ///
    /// # Safety
    /// As [`Visibility::of_page`], whose barrier is around.
    #[inline(always)]
    unsafe fn sees(&mut self, page: Page, number: pg_sys::OffsetNumber, line: Line) -> bool {
        // SAFETY: the header lies within the page, where others may set hint bits at the same time.
        let (bits, inserter) = unsafe {
            let header = page.start.add(line.offset()).cast::<pg_sys::HeapTupleHeaderData>();
            let bits = (&raw const (*header).t_infomask).read_volatile();
            (u32::from(bits) & BITS, (*header).t_choice.t_heap.t_xmin)
        };
        match self.inserter {
            Some((known, seen)) if bits == SETTLED && inserter == known => seen,
            _ if bits == BITS => true,
            _ => {
                // SAFETY: the caller's promise.
                let seen = unsafe { self.ask(page, number, line) };
                if bits == SETTLED {
                    self.inserter = Some((inserter, seen));
                }
                seen
            }
        }
    }

    /// What PostgreSQL says.
    ///
    /// # Safety
    /// As [`Visibility::of_page`], whose barrier is around.
    #[expect(ffi_unwind_calls, reason = "the caller's barrier")]
    unsafe fn ask(&self, page: Page, number: pg_sys::OffsetNumber, line: Line) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let mut tuple = pg_sys::HeapTupleData {
                t_len: line.len() as u32,
                t_tableOid: self.table,
                t_data: page.start.add(line.offset()).cast_mut().cast(),
                ..Default::default()
            };
            pgrx::itemptr::item_pointer_set_all(&mut tuple.t_self, page.number, number);
            HeapTupleSatisfiesVisibility(&mut tuple, self.snapshot, page.buffer)
        }
    }
}
