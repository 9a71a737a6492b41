//! How many values were brought from elsewhere or decompressed: what decides whether decoded rows are worth keeping.

use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Values that were fetched from out of line or decompressed, since the process began.
pub fn count_so_far() -> u64 {
    COUNT.get()
}

pub(crate) fn count(values: u64) {
    COUNT.set(COUNT.get() + values);
}
