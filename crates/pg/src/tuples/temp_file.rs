//! A temporary file of 32-bit words, appended to and read anywhere.
//!
//! It belongs to the resource owner of the running query, with which it goes away even after an error, and counts
//! against temp_file_limit. PostgreSQL's virtual file is used directly, not through a BufFile: what is read here is
//! read by the block, and would be copied through a buffer of one page, with a system call for each.

use crate::compat::{read_file, write_file};
use crate::errors::{Error, Result};
use crate::interrupts::check_for_interrupts;
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use std::panic::AssertUnwindSafe;

/// An open file.
pub struct TempFile {
    file: pg_sys::File,
    /// how many there are
    words: u64,
}

/// Words of one read or write: 1 MB, between which interrupts are taken.
const PIECE: usize = 1 << 18;

const WORD: u64 = size_of::<u32>() as u64;

impl TempFile {
    /// A new file.
    pub fn create() -> TempFile {
        // SAFETY: the file belongs to the current resource owner; the first call reads the setting temp_tablespaces.
        unsafe {
            pg_sys::PrepareTempTablespaces();
            TempFile { file: pg_sys::OpenTemporaryFile(false), words: 0 }
        }
    }

    /// Words in the file.
    pub fn len(&self) -> u64 {
        self.words
    }

    /// Appends all these words.
    ///
    /// # Errors
    /// [`Error::TemporaryFile`]; PostgreSQL's own if temp_file_limit is exceeded.
    pub fn append(&mut self, words: &[u32]) -> Result<()> {
        let mut end = self.words;
        for piece in words.chunks(PIECE) {
            check_for_interrupts();
            let (bytes, at) = (size_of_val(piece), (end * WORD) as i64);
            // SAFETY: the file is open, and is given the bytes of the words.
            let written = unsafe {
                let from = piece.as_ptr().cast_mut().cast();
                write_file(self.file, from, bytes, at)
            };
            if written != bytes as i64 {
                return Err(Error::TemporaryFile { verb: "write to", reason: std::io::Error::last_os_error() });
            }
            end += piece.len() as u64;
            // SAFETY: counters of this process.
            unsafe { pg_sys::pgBufferUsage.temp_blks_written += pages(bytes) };
        }
        self.words = end;
        Ok(())
    }

    /// Appends all these words, or none if that would exceed temp_file_limit: then it is false.
    pub fn append_within_limit(&mut self, words: &[u32]) -> Result<bool> {
        // The limit is looked at before anything is written, and nothing else in the write could raise this error:
        // there is nothing that a subtransaction would have to undo.
        pgrx::PgTryBuilder::new(AssertUnwindSafe(|| self.append(words).map(|()| true)))
            .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |_| {
                crate::memory::end();
                Ok(false)
            })
            .execute()
    }

    /// Reads words that were appended, from number `first` on.
    pub fn read(&self, first: u64, words: &mut [u32]) -> Result<()> {
        let mut first = first;
        for piece in words.chunks_mut(PIECE) {
            check_for_interrupts();
            let (bytes, at) = (size_of_val(piece), (first * WORD) as i64);
            // SAFETY: the file is open; any bytes make words.
            let read = unsafe {
                let to = piece.as_mut_ptr().cast();
                read_file(self.file, to, bytes, at)
            };
            if read != bytes as i64 {
                let cut = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                let reason = if read < 0 { std::io::Error::last_os_error() } else { cut };
                return Err(Error::TemporaryFile { verb: "read from", reason });
            }
            first += piece.len() as u64;
            // SAFETY: counters of this process.
            unsafe { pg_sys::pgBufferUsage.temp_blks_read += pages(bytes) };
        }
        Ok(())
    }

    /// Deletes the file.
    pub fn end(self) {
        // SAFETY: opened in create, closed once.
        unsafe { pg_sys::FileClose(self.file) }
    }
}

/// The bytes that this process's temporary files may have; None if there is no limit.
pub fn temp_file_limit() -> Option<u64> {
    // SAFETY: reads a setting; it is -1 without a limit.
    u64::try_from(unsafe { pg_sys::temp_file_limit }).ok().map(|kilobytes| kilobytes * 1024)
}

/// The pages that EXPLAIN (BUFFERS) counts for this many bytes.
fn pages(bytes: usize) -> i64 {
    (bytes / pg_sys::BLCKSZ as usize).max(1) as i64
}
