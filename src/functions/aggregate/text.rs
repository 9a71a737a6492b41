//! The text of a state: a prefix with the version, and the bytes in base64 (RFC 4648, without padding). It is exact,
//! and each state has only one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use errors::Result;
use pg::check_for_interrupts;
use pg::context::Context;
use pg::values::varlena::{Bytes, MAX_TEXT, PIECE, TextOutput, Value};

/// The beginning of every text. The digit is the version of the format.
const PREFIX: &str = "sgd1:";

/// The most bytes of which a text can be written.
pub const MAX_BYTES: usize = (MAX_TEXT - PREFIX.len()) / 4 * 3;

/// Bytes and digits of a part: three bytes are four digits.
const PART: [usize; 2] = [PIECE / 4 * 3, PIECE];

/// The text of these bytes.
pub fn write<'m>(context: Context<'m>, bytes: &[u8]) -> Result<Value<'m>> {
    let digits = |bytes: usize| (4 * bytes).div_ceil(3);
    let mut text = TextOutput::with_room(context, PREFIX.len() + digits(bytes.len()))?;
    text.push(PREFIX.as_bytes());
    let mut part: Vec<u8> = allocation::zeros(digits(bytes.len().min(PART[0])));
    for bytes in bytes.chunks(PART[0]) {
        let len = STANDARD_NO_PAD.encode_slice(bytes, &mut part).expect("room for its digits");
        text.push(&part[..len]);
    }
    Ok(text.into_value())
}

/// The bytes of a text, None if it is not what [`write`] writes.
pub fn read<'m>(context: Context<'m>, text: &[u8]) -> Result<Option<Bytes<'m>>> {
    let Some(digits) = text.strip_prefix(PREFIX.as_bytes()) else { return Ok(None) };
    let mut bytes = Bytes::zeros(context, digits.len() / 4 * 3 + (digits.len() % 4).saturating_sub(1))?;
    for (digits, bytes) in digits.chunks(PART[1]).zip(bytes.chunks_mut(PART[0])) {
        check_for_interrupts();
        if STANDARD_NO_PAD.decode_slice(digits, bytes) != Ok(bytes.len()) {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}
