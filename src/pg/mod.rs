//! PostgreSQL, wrapped, and the home of nearly all `unsafe` code of the extension.
//!
//! Nothing in here knows about training. A safe function of this module is safe to call with whatever arguments:
//!
//! - A value is never a bare `Datum` outside of here, but a [`values::typed::TypedDatum`], which has its type with it and
//!   borrows from what it lies in. Whoever reads one compares the type before following a pointer.
//! - What the executor gives ([`executor::node::Node`], [`tuples::slot::Slot`], [`snapshot::Snapshot`]) has the lifetime of the
//!   callback or the query, and looks for itself whether what it needs is there.
//! - What rests on a promise of its caller is an `unsafe fn` that says which.
#![allow(unsafe_code)]

pub mod call;
pub mod catalog;
pub mod compat;
pub mod detoasted;
pub mod encoding;
pub mod executor;
pub mod interrupts;
pub mod memory;
pub mod process;
pub mod settings;
pub mod snapshot;
pub mod tuples;
pub mod values;

pub use encoding::require_utf8;
pub use interrupts::check_for_interrupts;
pub use settings::with_scans_from_the_start;

use crate::errors::Notice;
use pgrx::pg_sys;

/// Bytes of a heap page.
pub const PAGE_BYTES: u32 = pg_sys::BLCKSZ;

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

/// Sends the client a message that is no error. A cancel that arrives meanwhile takes effect afterwards: PostgreSQL looks for
/// one while it sends, and pgrx has no barrier there, so that its ERROR would jump over our frames and drop nothing of what
/// they own.
pub fn report_notice(notice: Notice) {
    let (report, level) = notice.into_report();
    interrupts::hold_interrupts(|| report.report(level));
}
