//! Arrays of floats in documents: base64, which keeps every bit, or numbers of JSON.

use super::field::{Float, FloatArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pg::check_for_interrupts;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Formatter};
use tuples::pause::pausing;

impl<T> FloatArray<T> {
    pub fn base64_len(&self) -> usize {
        size_of_val(&self.0[..]).div_ceil(3) * 4
    }
}

impl<T: Float> Serialize for FloatArray<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64(&self.0))
    }
}

/// Numbers, little-endian, as base64.
struct Base64<'a, T>(&'a [T]);

impl<T: Float> Display for Base64<'_, T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        const CHUNK: usize = 3072; // a multiple of 3: the base64 of each chunk but the last ends without padding
        let (mut bytes, mut text) = (Vec::with_capacity(CHUNK * size_of::<T>()), String::new());
        for chunk in self.0.chunks(CHUNK) {
            check_for_interrupts();
            bytes.clear();
            text.clear();
            chunk.iter().for_each(|number| number.extend(&mut bytes));
            STANDARD.encode_string(&bytes, &mut text);
            f.write_str(&text)?;
        }
        Ok(())
    }
}

/// The numbers that a JSON text has, as base64 or as an array; or what is wrong with it.
pub fn read_floats<T: Float>(json: &str) -> Result<FloatArray<T>, String> {
    let numbers: Vec<T> = if json.starts_with('"') {
        let text: Option<&str> = serde_json::from_str(json).ok();
        let bytes = text.and_then(decode).ok_or("is neither base64 nor an array of numbers")?;
        let (size, len) = (size_of::<T>(), bytes.len());
        if !len.is_multiple_of(size) {
            return Err(format!("has {len} bytes, which are not numbers of {size} each"));
        }
        allocation::collect(pausing(bytes.chunks_exact(size)).map(T::from_bytes))
    } else {
        let numbers: Option<Vec<f64>> = serde_json::from_str(json).ok();
        let reason = || format!("is neither an array of numbers of type {} nor base64", T::NAME);
        allocation::collect(numbers.ok_or_else(reason)?.into_iter().map(T::from_number))
    };
    finite(numbers)
}

/// These numbers, if they are all finite; else what is wrong with them.
pub fn finite<T: Float>(numbers: Vec<T>) -> Result<FloatArray<T>, String> {
    let wrong = pausing(&numbers).position(|number| !number.is_finite());
    match wrong {
        Some(place) => Err(format!("has a number that is not finite in type {} at position {}", T::NAME, place + 1)),
        None => Ok(FloatArray(numbers)),
    }
}

/// The bytes of a text in base64; None if it is not one.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = allocation::zeros(base64::decoded_len_estimate(text.len()));
    let len = STANDARD.decode_slice(text, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}
