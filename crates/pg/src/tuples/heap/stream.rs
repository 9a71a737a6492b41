//! Pages that are read before they are wanted, several at once: by PostgreSQL's read streams, which there are since 17.
//!
//! A stream gets the pages that will be loaded, and gives them in that order. It is for pages that are not in
//! PostgreSQL's buffers: those that are there are found sooner without it (see [`KnownBuffers`]). A scan may go another
//! way than it has said; then what was said is forgotten.
//!
//! [`KnownBuffers`]: super::buffers::KnownBuffers

use super::buffers::NO_BUFFER;
use crate::compat::{ReadStream, Told};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// Pages of a relation that are read ahead.
#[derive(Default)]
pub(super) struct PageStream {
    /// the stream has it, too
    wanted: Rc<RefCell<Wanted>>,
    stream: Option<ReadStream>,
}

impl PageStream {
    /// Says which pages will be loaded next, behind those that were said before.
    pub fn expect(&mut self, pages: Range<u32>) {
        self.wanted.borrow_mut().push(pages);
    }

    /// Takes a page, pinned, if it is the next one that was expected.
    ///
    /// # Safety
    /// The relation is open until [`end`](PageStream::end), and has such pages. The ring is NULL or a ring, always the
    /// same. `memory` lasts until then.
    pub unsafe fn take(
        &mut self,
        page: u32,
        relation: pg_sys::Relation,
        ring: pg_sys::BufferAccessStrategy,
        memory: pg_sys::MemoryContext,
    ) -> Option<pg_sys::Buffer> {
        if self.wanted.borrow().first()? != page {
            if self.wanted.borrow().contains(page) {
                // SAFETY: the caller's promise.
                unsafe { self.unpin() };
                self.wanted.borrow_mut().clear();
            }
            return None;
        }
        // SAFETY: the caller's promise; what the stream was created with stays at its place as long as this has it.
        unsafe {
            let told = Rc::as_ptr(&self.wanted);
            let stream = self.stream.get_or_insert_with(|| ReadStream::begin(relation, ring, memory, told));
            let mut buffer = stream.next();
            if buffer == NO_BUFFER {
                // it had come to the end of what was expected by then
                stream.reset();
                self.wanted.borrow_mut().tell_again();
                buffer = stream.next();
            }
            if buffer == NO_BUFFER {
                self.wanted.borrow_mut().clear();
                return None;
            }
            assert_eq!(pg_sys::BufferGetBlockNumber(buffer), page, "the page that a stream gives");
            self.wanted.borrow_mut().taken();
            Some(buffer)
        }
    }

    /// Unpins what was read ahead. It stays expected.
    ///
    /// # Safety
    /// As [`take`](PageStream::take).
    pub unsafe fn unpin(&mut self) {
        if let Some(stream) = &mut self.stream {
            // SAFETY: the caller's promise.
            unsafe { stream.reset() };
            self.wanted.borrow_mut().tell_again();
        }
    }

    /// Ends it.
    ///
    /// # Safety
    /// As [`take`](PageStream::take).
    pub unsafe fn end(&mut self) {
        if let Some(stream) = self.stream.take() {
            // SAFETY: the caller's promise.
            unsafe { stream.end() };
        }
    }
}

/// Pages that will be loaded, in their order: those that the stream got, and behind them the others.
#[derive(Default)]
struct Wanted {
    told: VecDeque<Range<u32>>,
    untold: VecDeque<Range<u32>>,
}

impl Wanted {
    fn push(&mut self, pages: Range<u32>) {
        if !pages.is_empty() {
            self.untold.push_back(pages);
        }
    }

    fn first(&self) -> Option<u32> {
        self.told.front().or(self.untold.front()).map(|pages| pages.start)
    }

    fn contains(&self, page: u32) -> bool {
        self.told.iter().chain(&self.untold).any(|pages| pages.contains(&page))
    }

    /// The first page was taken.
    fn taken(&mut self) {
        pop(&mut self.told);
    }

    fn tell_again(&mut self) {
        while let Some(pages) = self.told.pop_back() {
            self.untold.push_front(pages);
        }
    }

    fn clear(&mut self) {
        self.told.clear();
        self.untold.clear();
    }
}

impl Told for RefCell<Wanted> {
    fn tell(&self) -> Option<u32> {
        let mut wanted = self.try_borrow_mut().ok()?;
        let page = pop(&mut wanted.untold)?;
        match wanted.told.back_mut() {
            Some(pages) if pages.end == page => pages.end += 1,
            _ => wanted.told.push_back(page..page + 1),
        }
        Some(page)
    }
}

/// Takes the first page away.
fn pop(ranges: &mut VecDeque<Range<u32>>) -> Option<u32> {
    let first = ranges.front_mut()?;
    let page = first.start;
    first.start += 1;
    if first.start >= first.end {
        ranges.pop_front();
    }
    Some(page)
}
