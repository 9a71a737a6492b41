//! Cursors of the session, read by functions.

use pgrx::prelude::*;
use std::ffi::CStr;

/// Reads the next row of an open cursor, and looks at none of its columns. False if there is no such cursor, or no row
/// left. What reads it knows what it has done.
pub fn advance(name: &CStr) -> bool {
    // SAFETY: connected to SPI while the portal is found and read. It runs in its own memory, under its own snapshot.
    unsafe {
        pg_sys::SPI_connect();
        let portal = pg_sys::SPI_cursor_find(name.as_ptr());
        let found = !portal.is_null() && {
            pg_sys::SPI_cursor_fetch(portal, true, 1);
            let rows = pg_sys::SPI_processed;
            if !pg_sys::SPI_tuptable.is_null() {
                pg_sys::SPI_freetuptable(pg_sys::SPI_tuptable);
            }
            rows == 1
        };
        pg_sys::SPI_finish();
        found
    }
}
