//! Operations that make a compressed mini-batch of another.

use crate::stored::{self, HEADER};
use crate::values::{Summary, Values};
use crate::{Encoding, Error, Rows, decode, decode_dense, encode, encode_smallest};

/// Applies `f` to every value but 0: A.*c, A.^2 and other operations that leave 0 as it is (Algorithm 3). What
/// is repeated is computed once, and nothing but the stored values is touched; only gzip and Snappy are unpacked.
///
/// # Errors
/// If the bytes are not what [`encode`] made.
pub fn map_values(bytes: &[u8], f: impl Fn(f64) -> f64) -> Result<Vec<u8>, Error> {
    let (info, mut reader) = stored::open(bytes)?;
    let f = |value: f64| if value.to_bits() == 0 { value } else { f(value) };
    if matches!(info.encoding, Encoding::Gzip | Encoding::Snappy) {
        let mut mapped = Rows::new(info.columns);
        for (indices, values) in decode(bytes)?.iter() {
            mapped.push_sparse(indices, &allocation::collect(values.iter().map(|value| f(*value))))?;
        }
        return encode(&mapped, info.encoding);
    }
    let mut values: Vec<f64> = Values::read(&info, &mut reader)?.to_vec();
    values.iter_mut().for_each(|value| *value = f(*value));
    let kind = Summary::from_values(values.iter().copied()).kind(values.len());
    let mut out = stored::begin(info.encoding, info.rows, info.columns, kind);
    allocation::reserve(&mut out, bytes.len() - HEADER);
    kind.put(&mut out, &values);
    out.extend_from_slice(reader.0);
    Ok(stored::seal(out))
}

/// Applies `f` to every entry, zeros included: A.+c and other operations that make something else of 0. As in the paper
/// that takes unfolding; the result is in its smallest encoding.
///
/// # Errors
/// If the bytes are not what [`encode`] made, or there are more entries than [`limits`](crate::limits) allow.
pub fn map_entries(bytes: &[u8], f: impl Fn(f64) -> f64) -> Result<Vec<u8>, Error> {
    let info = stored::info(bytes)?;
    let mut all = decode_dense(bytes)?;
    all.iter_mut().for_each(|entry| *entry = f(*entry));
    let mut mapped = Rows::new(info.columns);
    for i in 0..info.rows {
        mapped.push_dense(&all[i * info.columns..(i + 1) * info.columns])?;
    }
    encode_smallest(&mapped)
}
