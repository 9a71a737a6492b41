//! The type of compressed mini-batches.

use pg::catalog::types::own_type;
use pgrx::pg_sys;

/// Is it the type of compressed mini-batches, corgipile.toc?
pub fn is_compressed(oid: pg_sys::Oid) -> bool {
    compressed_type().is_some_and(|compressed| compressed == oid)
}

/// The type of compressed mini-batches, corgipile.toc; None if the extension was dropped.
pub fn compressed_type() -> Option<pg_sys::Oid> {
    own_type(c"toc")
}
