//! PostgreSQL's own settings, changed for a while.

use pgrx::pg_sys;
use std::ffi::{CStr, c_int};

/// Settings that hold until they are [put back](Settings::restore), or until an ERROR ends the (sub)transaction.
pub struct Settings(c_int);

/// A value that is refused is an ERROR.
const AS_SET_DOES: c_int = 0;

/// Refuses settings that begin with this prefix and a dot and are not defined, such as misspelt ones.
pub fn reserve(prefix: &CStr) {
    // SAFETY: PostgreSQL copies the text.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix.as_ptr()) };
}

impl Settings {
    /// Sets each to its value, as the user might.
    pub fn set(settings: &[(&CStr, &CStr)]) -> Settings {
        Settings::set_or_tell(settings, AS_SET_DOES)
    }

    /// Sets one that a server may not have, or not with this value; then it stays as it is.
    pub fn try_set(name: &CStr, value: &CStr) -> Settings {
        // what is said about a value that is refused is for developers
        Settings::set_or_tell(&[(name, value)], pg_sys::DEBUG5 as c_int)
    }

    /// Sets each to its value, and tells at this level what is refused.
    fn set_or_tell(settings: &[(&CStr, &CStr)], level_of_refusal: c_int) -> Settings {
        // SAFETY: a level of settings of its own, as functions with SET have; an ERROR undoes it with the transaction.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            for (name, value) in settings {
                pg_sys::set_config_option(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_USERSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                    pg_sys::GucAction::GUC_ACTION_SAVE,
                    true,
                    level_of_refusal,
                    false,
                );
            }
            Settings(level)
        }
    }

    /// Puts back what was set.
    pub fn restore(self) {
        // SAFETY: the nest level that was begun in set(). One that is not the innermost ends those within it.
        unsafe { pg_sys::AtEOXact_GUC(true, self.0) };
    }
}

/// Has this setting a value, if only as something that PostgreSQL does not know yet?
pub fn is_set(name: &CStr) -> bool {
    // SAFETY: a C string; NULL if it has no value.
    unsafe { !pg_sys::GetConfigOption(name.as_ptr(), true, false).is_null() }
}

/// Runs `f`, in which sequential scans that are begun read their tables from the first page on. Otherwise one of a
/// large table would join another that is under way in the middle of it, and what depends on the rows' order would
/// change from run to run.
pub fn with_scans_from_the_start<R>(f: impl FnOnce() -> R) -> R {
    let settings = Settings::set(&[(c"synchronize_seqscans", c"off")]);
    let result = f();
    settings.restore();
    result
}

/// Does DateStyle read the day of 05/04/2013 first?
pub fn reads_days_first() -> bool {
    // SAFETY: a plain variable.
    let order = unsafe { pg_sys::DateOrder };
    order == pg_sys::DATEORDER_DMY as c_int
}
