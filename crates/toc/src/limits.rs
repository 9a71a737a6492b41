//! How large a mini-batch may be, so that a few malicious bytes cannot ask for much memory.

use crate::Error;

/// Most rows of a mini-batch.
pub const MAX_ROWS: usize = 1 << 24;
/// Most columns of a mini-batch.
pub const MAX_COLUMNS: usize = 1 << 31;
/// Most entries that are held one by one: all of DEN, DVI, gzip and Snappy, the non-zeros of the others.
pub const MAX_ENTRIES: u64 = 1 << 26;

/// That a matrix of which `entries` are held one by one is within the limits.
pub(crate) fn check(rows: usize, columns: usize, entries: u64) -> Result<(), Error> {
    if rows > MAX_ROWS || columns > MAX_COLUMNS || entries > MAX_ENTRIES {
        return Err(Error::TooLarge { rows, columns, entries });
    }
    Ok(())
}
