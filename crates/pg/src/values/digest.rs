//! A digest of texts, for which nobody finds others with the same.

use pgrx::prelude::*;

/// The beginning of the SHA-256 of some texts, one after the other with their lengths.
pub fn digest(texts: &[&str]) -> [u64; 2] {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    // SAFETY: a function of PostgreSQL's that takes a bytea, and gives one.
    let hash: Option<Vec<u8>> =
        unsafe { pgrx::direct_function_call(pg_sys::sha256_bytea, &[bytes.as_slice().into_datum()]) };
    let hash = hash.unwrap_or_default();
    let word =
        |i: usize| hash.get(8 * i..8 * i + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
    [word(0), word(1)]
}
