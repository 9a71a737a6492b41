//! The files in which a relation lies, read past PostgreSQL's buffers and, on Linux,
//! not from the operating system's cache.
//!
//! Nothing is done with what is read. What the operating system has cached of the pages that are read is dropped before
//! and stays dropped as far as they are not read again; PostgreSQL's buffers are left alone.

use crate::compat::path_of;
use crate::errors::{Error, Result};
use crate::interrupts::check_for_interrupts;
use pgrx::pg_sys;
use std::ffi::CStr;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The files of a table's main fork.
pub struct RelationFiles {
    /// of the first; the others have a number behind it
    path: String,
    pages: u32,
    /// the one that was used last, and its number
    file: Option<(u32, File)>,
    piece: Vec<u8>,
}

/// Bytes that are read at once: interrupts are taken in between.
const PIECE: usize = 256 << 10;

const PAGE: u64 = pg_sys::BLCKSZ as u64;

impl RelationFiles {
    /// The files of a table, materialized view or TOAST table, which is locked against changes until the transaction
    /// ends. PostgreSQL's own error if the current user may not read the table.
    pub fn open(relation: pg_sys::Oid) -> Result<RelationFiles> {
        // SAFETY: the relation is locked and open while it is looked at; its name and its path are C strings.
        unsafe {
            let opened = pg_sys::try_relation_open(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            let Some(open) = opened.as_ref() else { return Err(Error::NoRelation(relation.to_u32())) };
            let class = &*open.rd_rel;
            let kind = class.relkind as u8;
            let granted =
                pg_sys::pg_class_aclcheck(relation, pg_sys::GetUserId(), pg_sys::ACL_SELECT as pg_sys::AclMode);
            if granted != pg_sys::AclResult::ACLCHECK_OK {
                let object = pg_sys::get_relkind_objtype(class.relkind);
                pg_sys::aclcheck_error(granted, object, class.relname.data.as_ptr());
            }
            let name = || CStr::from_ptr(class.relname.data.as_ptr()).to_string_lossy().into_owned();
            if !matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW | pg_sys::RELKIND_TOASTVALUE) {
                return Err(Error::NoFiles { name: name(), partitioned: kind == pg_sys::RELKIND_PARTITIONED_TABLE });
            }
            let is_temporary = class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP;
            if is_temporary && !open.rd_islocaltemp {
                return Err(Error::OtherTemporary(name()));
            }
            let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
            let files = RelationFiles {
                path: path_of(opened),
                pages: pg_sys::RelationGetNumberOfBlocksInFork(opened, fork),
                file: None,
                piece: allocation::zeros(PIECE),
            };
            pg_sys::relation_close(opened, pg_sys::NoLock as pg_sys::LOCKMODE);
            Ok(files)
        }
    }

    /// Pages of the relation when it was opened.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Makes the operating system forget pages, which it writes out first if it has not done so. Interrupts are taken.
    pub fn forget(&mut self, pages: Range<u32>) -> Result<()> {
        self.each_piece(pages, |file, start, piece| {
            forget(file, start, piece.len());
            Ok(())
        })
    }

    /// Reads pages, and gives the time that this took. Interrupts are taken.
    pub fn read(&mut self, pages: Range<u32>) -> Result<Duration> {
        let mut time = Duration::ZERO;
        self.each_piece(pages, |file, start, piece| {
            let began = Instant::now();
            file.read_exact_at(piece, start)?;
            time += began.elapsed();
            Ok(())
        })?;
        Ok(time)
    }

    /// Shows `f` each piece of the pages: file, offset, and memory as large as the piece.
    fn each_piece(
        &mut self,
        mut pages: Range<u32>,
        mut f: impl FnMut(&File, u64, &mut [u8]) -> std::io::Result<()>,
    ) -> Result<()> {
        while !pages.is_empty() {
            check_for_interrupts();
            let number = pages.start / pg_sys::RELSEG_SIZE;
            let first = pages.start % pg_sys::RELSEG_SIZE;
            let n = (PIECE as u64 / PAGE).min(pages.len() as u64).min((pg_sys::RELSEG_SIZE - first).into());
            let path = if number == 0 { self.path.clone() } else { format!("{}.{number}", self.path) };
            let failed = |e: std::io::Error| Error::File(path.clone(), e.to_string());
            let file = match self.file.take() {
                Some((open, file)) if open == number => file,
                _ => File::open(&path).map_err(failed)?,
            };
            let piece = &mut self.piece[..(n * PAGE) as usize];
            f(&file, u64::from(first) * PAGE, piece).map_err(failed)?;
            self.file = Some((number, file));
            pages.start += n as u32;
        }
        Ok(())
    }
}

/// Drops what the operating system has cached of a file.
#[cfg(target_os = "linux")]
fn forget(file: &File, start: u64, len: usize) {
    use libc::{SYNC_FILE_RANGE_WAIT_AFTER, SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE};
    let (fd, start, len) = (file.as_raw_fd(), start as i64, len as i64);
    let wait_write_wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the file is open. If one of them fails, pages stay in the cache: they are advice.
    unsafe {
        libc::sync_file_range(fd, start, len, wait_write_wait); // changed pages are not dropped before they are written
        libc::posix_fadvise(fd, start, len, libc::POSIX_FADV_DONTNEED);
    }
}

#[cfg(not(target_os = "linux"))]
fn forget(_file: &File, _start: u64, _len: usize) {}
