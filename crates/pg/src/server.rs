//! What the server is doing, and what it draws.

use pgrx::pg_sys;
use std::ffi::CStr;

/// What the names of the sessions begin with in which Citus runs parts of queries on its nodes.
const CITUS: &[u8] = b"citus_internal";

/// Is the library being loaded because of shared_preload_libraries?
pub fn preloading() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// A seed that no one can foresee: small enough to be written down.
pub fn random_seed() -> i64 {
    let mut bytes = [0u8; 4];
    // SAFETY: fills the four bytes.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        pgrx::error!("could not draw a random seed");
    }
    i64::from(u32::from_ne_bytes(bytes))
}

/// Does this session run parts of queries for another server? Citus says so in `application_name` as it connects, and
/// knows its own sessions by it; a statement may set another name later.
pub fn serves_another() -> bool {
    // SAFETY: a setting that every server has, and what it was as the session began, as C strings of PostgreSQL's own.
    let names = unsafe {
        let setting = c"application_name".as_ptr();
        [pg_sys::GetConfigOption(setting, true, false), pg_sys::GetConfigOptionResetString(setting)]
    };
    // SAFETY: as above, if they are there.
    names.iter().any(|name| !name.is_null() && unsafe { CStr::from_ptr(*name) }.to_bytes().starts_with(CITUS))
}

/// Is this a process in the background, and no session of a client's?
pub fn is_background_worker() -> bool {
    // SAFETY: reads a variable.
    unsafe { pg_sys::MyBackendType == pg_sys::BackendType::B_BG_WORKER }
}
