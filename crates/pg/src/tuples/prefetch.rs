//! Pages on their way: from disk into memory, and from memory into the processor's cache.

use pgrx::pg_sys;
use std::ops::Range;

/// Cache lines of a page.
pub(super) const PAGE_LINES: usize = pg_sys::BLCKSZ as usize / 64;

/// Asking for a cached page costs as much as reading it: while pages turn out to be cached, only one in this many is
/// asked for.
const PROBED: usize = 16;

/// Asks the operating system for pages that will be read soon.
pub(super) struct Prefetcher {
    /// did the last page asked for have to come from disk?
    is_cold: bool,
    wanted: u32,
}

impl Prefetcher {
    pub fn new() -> Prefetcher {
        Prefetcher { is_cold: true, wanted: 0 }
    }

    /// Asks for a page, if it pays.
    ///
    /// # Safety
    /// The relation is open, and the page one of its pages.
    #[inline]
    pub unsafe fn ask_for(&mut self, relation: pg_sys::Relation, page: u32) {
        self.wanted = self.wanted.wrapping_add(1);
        if self.is_cold || self.wanted.is_multiple_of(PROBED as u32) {
            // SAFETY: the caller's promise.
            self.is_cold = unsafe { is_cold(relation, page) };
        }
    }
}

/// Must some of these pages come from disk? A few of them are asked for.
///
/// # Safety
/// The relation is open, and the pages are some of its own.
pub(super) unsafe fn are_cold(relation: pg_sys::Relation, pages: Range<u32>) -> bool {
    // SAFETY: the caller's promise.
    pages.step_by(PROBED).any(|page| unsafe { is_cold(relation, page) })
}

/// Asks for a page. Must it come from disk?
///
/// # Safety
/// The relation is open, and the page one of its pages.
unsafe fn is_cold(relation: pg_sys::Relation, page: u32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::PrefetchBuffer(relation, pg_sys::ForkNumber::MAIN_FORKNUM, page).initiated_io }
}

/// Brings a cache line of a page closer to the processor.
#[inline(always)]
pub(super) fn fetch_line(page: *const u8, line: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of any address does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(page.wrapping_add(line * 64).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (page, line);
}
