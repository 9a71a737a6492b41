//! Interrupts: how a statement is cancelled, and how an error reaches a loop.

use super::memory;
use pgrx::pg_sys;

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

/// Runs `f` while interrupts wait, and takes them afterwards.
pub(crate) fn hold_interrupts<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: counts this process's reasons to wait with interrupts, as HOLD_INTERRUPTS() does; an ERROR sets it to 0.
    unsafe { pg_sys::InterruptHoldoffCount += 1 };
    let result = f();
    // SAFETY: takes back what was counted; there was no ERROR, or this would not be reached.
    unsafe { pg_sys::InterruptHoldoffCount -= 1 };
    check_for_interrupts();
    result
}
