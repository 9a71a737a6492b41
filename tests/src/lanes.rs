//! How much a run draws.

use std::env;

/// Does this run do all that there is (`CORGIPILE_FULL=1`, as `make test-all` sets it), and not a sample of it?
pub fn is_full() -> bool {
    env::var_os("CORGIPILE_FULL").is_some_and(|full| full == "1")
}

/// How much of the same a test does: `full` in a run that does all, else `quick`, which shows what the test claims,
/// too.
pub fn sample<T>(full: T, quick: T) -> T {
    if is_full() { full } else { quick }
}
