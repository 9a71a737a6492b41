//! In which buffer of PostgreSQL's a page is: where it was before, or where it most likely is.
//!
//! To look a page up costs as much as to decode a dozen rows. In the epoch before it was in a certain buffer, and
//! mostly it still is; and a table that came into memory in sequence lies in sequence there.

use crate::compat::{count_hit, files_of};
use pgrx::pg_sys;

pub(super) const NO_BUFFER: pg_sys::Buffer = pg_sys::InvalidBuffer as pg_sys::Buffer;

/// Pages that are searched for after a wrong guess.
const GUESS_AGAIN: u32 = 15;

/// In which buffers the pages of a relation were found.
pub(super) struct KnownBuffers {
    /// in which buffer each page was when it was read last, 0 if it was not;
    /// empty if there are fewer buffers than pages
    buffers: Vec<pg_sys::Buffer>,
    /// pages that are searched for before the next one is guessed to be in the buffer behind its predecessor's
    guess_backoff: u32,
}

/// How many buffers the server has.
pub(super) fn all_buffers() -> u32 {
    // SAFETY: a plain variable, fixed when the server starts.
    unsafe { pg_sys::NBuffers as u32 }
}

impl KnownBuffers {
    /// For a relation of this many pages, if they all have room in the server's buffers.
    pub fn new(pages: u32) -> KnownBuffers {
        let remembered = if pages <= all_buffers() { pages as usize } else { 0 };
        KnownBuffers { buffers: vec![NO_BUFFER; remembered], guess_backoff: 0 }
    }

    /// The pages have no room in the server's buffers: none is remembered.
    pub fn forget(&mut self) {
        self.buffers = Vec::new();
    }

    /// A page was found in this buffer.
    pub fn found(&mut self, page: u32, buffer: pg_sys::Buffer) {
        if let Some(known) = self.buffers.get_mut(page as usize) {
            *known = buffer;
        }
    }

    /// Pins a page: in the buffer where it was before if it is still there, or, if it was not read yet, where it is if
    /// the table came into memory in sequence. Otherwise with the scan's ring of buffers.
    ///
    /// # Safety
    /// The relation is open, the page one of its pages, and the ring NULL or a ring.
    pub unsafe fn read(
        &mut self,
        relation: pg_sys::Relation,
        page: u32,
        ring: pg_sys::BufferAccessStrategy,
    ) -> pg_sys::Buffer {
        let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
        let (known, guessed) = match self.buffers.get(page as usize) {
            Some(0) => (self.behind_predecessor(page), true),
            Some(known) => (*known, false),
            None => (0, false),
        };
        // SAFETY: the caller's promise; the buffer is one that existed. Buffers of temporary tables (below 0) are not
        // asked for: ReadRecentBuffer() looked them up among the shared ones before 15.4.
        unsafe {
            if known > 0 && pg_sys::ReadRecentBuffer(files_of(relation), fork, page, known) {
                count_hit(relation, ring);
                self.buffers[page as usize] = known;
                return known;
            }
            if guessed && known > 0 {
                self.guess_backoff = GUESS_AGAIN;
            }
            let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
            let buffer = pg_sys::ReadBufferExtended(relation, fork, page, mode, ring);
            self.found(page, buffer);
            buffer
        }
    }

    /// The buffer behind that of the page before this one; 0 without one,
    /// or guesses have turned out wrong of late.
    fn behind_predecessor(&mut self, page: u32) -> pg_sys::Buffer {
        if self.guess_backoff > 0 {
            self.guess_backoff -= 1;
            return 0;
        }
        let before = page.checked_sub(1).map_or(0, |before| self.buffers[before as usize]);
        if before > 0 && (before as u32) < all_buffers() { before + 1 } else { 0 }
    }
}
