//! The text of a state: a prefix with the version, and the bytes in base64 (RFC 4648, without padding). It is exact,
//! and each state has only one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The beginning of every text. The digit is the version of the format.
const PREFIX: &str = "sgd1:";

/// The text of these bytes.
pub fn write(bytes: &[u8]) -> String {
    let mut text = PREFIX.to_owned();
    let room = bytes.len().div_ceil(3) * 4;
    allocation::grow(room, || text.try_reserve_exact(room));
    STANDARD_NO_PAD.encode_string(bytes, &mut text);
    text
}

/// The bytes of a text, None if it is not what [`write`] writes.
pub fn read(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_prefix(PREFIX.as_bytes())?;
    let mut bytes = allocation::zeros(base64::decoded_len_estimate(text.len()));
    let len = STANDARD_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}
