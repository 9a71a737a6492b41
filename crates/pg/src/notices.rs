//! Messages to the client that are no errors.

use super::interrupts::hold_interrupts;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

/// Sends the client a message that is no error. A cancel that arrives meanwhile takes effect afterwards: PostgreSQL
/// looks for one while it sends, and pgrx has no barrier there, so that its ERROR would jump over our frames and drop
/// nothing of what they own.
pub fn report_notice(notice: impl Into<(ErrorReport, PgLogLevel)>) {
    let (report, level) = notice.into();
    hold_interrupts(|| report.report(level));
}
