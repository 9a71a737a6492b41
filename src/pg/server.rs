//! What the server is doing, and what it draws.

use pgrx::pg_sys;

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
