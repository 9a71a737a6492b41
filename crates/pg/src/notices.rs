//! Messages to the client that are no errors.

use crate::errors::Code;
use crate::interrupts::hold_interrupts;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;
use std::cell::Cell;

/// Tells the client what it should know although nothing is wrong, and what can be done.
pub fn notice(message: impl Into<String>, hint: impl Into<Option<&'static str>>) {
    report(PgLogLevel::NOTICE, message.into(), hint.into());
}

/// Tells the client what is probably wrong, and what can be done.
pub fn warning(message: impl Into<String>, hint: impl Into<Option<&'static str>>) {
    report(PgLogLevel::WARNING, message.into(), hint.into());
}

thread_local! {
    /// Is nothing to be reported?
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls this without a notice or a warning: it is a trial of what is done, and reported, afterwards.
pub fn quietly<T>(f: impl FnOnce() -> T) -> T {
    struct Restored(bool);
    impl Drop for Restored {
        fn drop(&mut self) {
            QUIET.set(self.0);
        }
    }
    // also after an ERROR, which unwinds
    let _restored = Restored(QUIET.replace(true));
    f()
}

/// A cancel that arrives meanwhile takes effect afterwards: PostgreSQL looks for one while it sends, and pgrx has no
/// barrier there, so that its ERROR would jump over our frames and drop nothing of what they own.
fn report(level: PgLogLevel, message: String, hint: Option<&str>) {
    if QUIET.get() {
        return;
    }
    let mut report = ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, message, "corgipile");
    if let Some(hint) = hint {
        report = report.set_hint(hint);
    }
    hold_interrupts(|| report.report(level));
}
