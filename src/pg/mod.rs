//! Thin wrappers over raw PostgreSQL, and the only home of `unsafe` in the extension.
//!
//! Nothing in here knows about training. Handles such as [`custom_scan::Node`] are plain pointers to objects of
//! the executor; they are made only in this module, for the duration of a callback, on the backend's one thread,
//! which is what makes their safe methods sound.
#![allow(unsafe_code)]

pub mod call;
pub mod catalog;
pub mod compat;
pub mod executor;
pub mod memory;
pub mod process;
pub mod tuples;
pub mod values;

use crate::errors::{ArgumentError, Notice, Result};
use pgrx::pg_sys;

/// Bytes of a heap page.
pub const PAGE_BYTES: u32 = pg_sys::BLCKSZ;

/// Names, queries and labels pass through Rust strings, which are UTF-8.
///
/// # Errors
/// [`ArgumentError::Encoding`] if the database has another encoding. (SQL_ASCII is none.)
pub fn require_utf8() -> Result<()> {
    // SAFETY: reads what was set when the session began.
    match unsafe { pg_sys::GetDatabaseEncoding() } as pg_sys::pg_enc::Type {
        pg_sys::pg_enc::PG_UTF8 | pg_sys::pg_enc::PG_SQL_ASCII => Ok(()),
        _ => Err(ArgumentError::Encoding.into()),
    }
}

/// Is the library being loaded because of shared_preload_libraries?
pub fn preloading() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// A seed that nobody can foresee: small enough to be written down.
pub fn random_seed() -> i64 {
    let mut bytes = [0u8; 4];
    // SAFETY: fills the four bytes.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        pgrx::error!("could not draw a random seed");
    }
    i64::from(u32::from_ne_bytes(bytes))
}

/// Lets cancel, statement_timeout and termination take effect, and raises what memory that was refused owes.
#[inline]
pub fn check_for_interrupts() {
    memory::check();
    // SAFETY: reads a flag that signal handlers set; ProcessInterrupts may raise an ERROR, which unwinds.
    unsafe {
        if (&raw const pg_sys::InterruptPending).read_volatile() != 0 {
            pg_sys::ProcessInterrupts();
        }
    }
}

/// Sends the client a message that is no error. A cancel that arrives meanwhile takes effect afterwards: PostgreSQL looks for
/// one while it sends, and pgrx has no barrier there, so that its ERROR would jump over our frames and drop nothing of what
/// they own.
pub fn tell(notice: Notice) {
    let (report, level) = notice.into_report();
    // SAFETY: counts this process's reasons to wait with interrupts, as HOLD_INTERRUPTS() does; an ERROR sets it to 0.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    report.report(level);
    // SAFETY: as above.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
    check_for_interrupts();
}

/// Runs `f`, in which sequential scans that are begun read their tables from the first page on. Otherwise one of a large
/// table would join another that is under way in the middle of it, and what depends on the rows' order would change from
/// run to run.
pub fn with_scans_from_the_start<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: a level of settings of its own, as functions with SET have; an ERROR in f undoes it with the transaction.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            c"synchronize_seqscans".as_ptr(),
            c"off".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        let result = f();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}
