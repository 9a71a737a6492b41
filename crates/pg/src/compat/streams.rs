//! Streams of pages, which are read ahead: those of PostgreSQL 17 and later.

use pgrx::pg_sys;
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use std::ffi::c_void;

/// Are there streams of pages?
pub(crate) const READ_STREAMS: bool = cfg!(not(any(feature = "pg15", feature = "pg16")));

/// What tells a stream which page it is to read next.
pub(crate) trait Told {
    /// That page, or none yet. It may neither ask PostgreSQL for anything nor panic.
    #[cfg_attr(any(feature = "pg15", feature = "pg16"), expect(dead_code, reason = "no stream asks"))]
    fn tell(&self) -> Option<u32>;
}

/// A stream of pages of a relation, which are read ahead, and several at once. Before version 17, there are no
/// streams.
pub(crate) struct ReadStream {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    none: std::convert::Infallible,
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    stream: *mut pg_sys::ReadStream,
}

#[cfg(any(feature = "pg15", feature = "pg16"))]
impl ReadStream {
    pub(crate) unsafe fn begin<T: Told>(
        _: pg_sys::Relation,
        _: pg_sys::BufferAccessStrategy,
        _: pg_sys::MemoryContext,
        _: *const T,
    ) -> ReadStream {
        panic!("there are no streams of pages");
    }

    pub(crate) unsafe fn next(&mut self) -> pg_sys::Buffer {
        match self.none {}
    }

    pub(crate) unsafe fn reset(&mut self) {
        match self.none {}
    }

    pub(crate) unsafe fn end(self) {
        match self.none {}
    }
}

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
impl ReadStream {
    /// Begins one.
    ///
    /// # Safety
    /// Relation, ring, memory and what tells stay until the end.
    pub(crate) unsafe fn begin<T: Told>(
        relation: pg_sys::Relation,
        ring: pg_sys::BufferAccessStrategy,
        memory: pg_sys::MemoryContext,
        told: *const T,
    ) -> ReadStream {
        unsafe extern "C-unwind" fn next<T: Told>(
            _: *mut pg_sys::ReadStream,
            told: *mut c_void,
            _: *mut c_void,
        ) -> pg_sys::BlockNumber {
            // SAFETY: what the stream was begun with.
            unsafe { (*told.cast_const().cast::<T>()).tell() }.unwrap_or(pg_sys::InvalidBlockNumber)
        }
        // the pages are far from each other: there is no use in beginning with few
        let flags = pg_sys::READ_STREAM_FULL;
        // it waits for nothing
        #[cfg(feature = "pg18")]
        let flags = flags | pg_sys::READ_STREAM_USE_BATCHING;
        // SAFETY: the caller's promise.
        unsafe {
            let before = pg_sys::MemoryContextSwitchTo(memory);
            let stream = pg_sys::read_stream_begin_relation(
                flags as i32,
                ring,
                relation,
                pg_sys::ForkNumber::MAIN_FORKNUM,
                Some(next::<T>),
                told.cast_mut().cast(),
                0,
            );
            pg_sys::MemoryContextSwitchTo(before);
            ReadStream { stream }
        }
    }

    /// The next page, pinned; 0 if there are no more pages.
    ///
    /// # Safety
    /// As [`begin`](ReadStream::begin).
    pub(crate) unsafe fn next(&mut self) -> pg_sys::Buffer {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::read_stream_next_buffer(self.stream, std::ptr::null_mut()) }
    }

    /// Unpins what was read ahead: it will be told again what comes next.
    ///
    /// # Safety
    /// As [`begin`](ReadStream::begin).
    pub(crate) unsafe fn reset(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::read_stream_reset(self.stream) };
    }

    /// Ends it.
    ///
    /// # Safety
    /// As [`begin`](ReadStream::begin).
    pub(crate) unsafe fn end(self) {
        // SAFETY: the caller's promise.
        unsafe { pg_sys::read_stream_end(self.stream) };
    }
}
