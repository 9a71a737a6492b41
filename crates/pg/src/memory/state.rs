//! Whether an error is on its way, and whether memory was refused: what decides who may use the reserve.

use crate::errors::{Error, raise};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Is an error on its way, from where it is raised to the end of its transaction?
static ERROR_ON_ITS_WAY: AtomicBool = AtomicBool::new(false);

/// Does the session end, because an allocation has failed whose caller cannot go on?
static SESSION_ENDS: AtomicBool = AtomicBool::new(false);

/// Bytes that malloc has refused and the reserve has given without an error yet; 0: none.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the reserve gives when no error is on its way. (A node of a B-tree has eleven keys and values.)
const SMALL: usize = 64 << 10;

/// Raises an error if malloc has refused something small since the last one.
#[inline]
pub fn check() {
    let refused = REFUSED.load(Ordering::Relaxed);
    if refused != 0 && !ERROR_ON_ITS_WAY.load(Ordering::Relaxed) {
        begin();
        raise(&Error::OutOfMemory(refused))
    }
}

/// An error is raised: until [`was_over`] it may use the reserve.
pub fn begin() {
    ERROR_ON_ITS_WAY.store(true, Ordering::Relaxed);
}

/// The error is over. Was there one?
pub fn was_over() -> bool {
    REFUSED.store(0, Ordering::Relaxed);
    ERROR_ON_ITS_WAY.swap(false, Ordering::Relaxed)
}

/// The session ends. From now on what runs may use the reserve.
pub fn end_session() {
    SESSION_ENDS.store(true, Ordering::Relaxed);
}

/// Does the session end, because an allocation has failed whose caller cannot go on?
pub fn session_ends() -> bool {
    SESSION_ENDS.load(Ordering::Relaxed)
}

/// Is an error on its way?
pub fn error_is_on_its_way() -> bool {
    ERROR_ON_ITS_WAY.load(Ordering::Relaxed) || session_ends() || std::thread::panicking()
}

/// malloc has refused this: may it come from the reserve?
pub fn may_use_reserve(bytes: usize) -> bool {
    if error_is_on_its_way() {
        return true;
    }
    let is_small = bytes <= SMALL && !allocation::may_fail();
    if is_small {
        REFUSED.store(bytes.max(1), Ordering::Relaxed);
    }
    is_small
}
