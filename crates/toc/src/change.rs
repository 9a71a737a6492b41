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
    let kind = Summary::from_values(values.iter().copied()).kind();
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

/// Applies `f` to every entry: only to the stored values if it leaves 0 as it is ([`map_values`]), else to all
/// ([`map_entries`]).
///
/// # Errors
/// As those.
pub fn map(bytes: &[u8], f: impl Fn(f64) -> f64) -> Result<Vec<u8>, Error> {
    if f(0.0).to_bits() == 0 { map_values(bytes, f) } else { map_entries(bytes, f) }
}

/// Combines two compressed matrices of the same shape entry by entry, as A + B and A - B. Only entries that one of them
/// has are combined if `f` makes 0 of two zeros. The result is in its smallest encoding.
///
/// # Errors
/// If the bytes are not what [`encode`] made; [`Error::Shapes`]; and as [`map_entries`] if `f` makes something else of
/// two zeros.
pub fn zip(a: &[u8], b: &[u8], f: impl Fn(f64, f64) -> f64) -> Result<Vec<u8>, Error> {
    let (a, b) = (decode(a)?, decode(b)?);
    if (a.len(), a.columns()) != (b.len(), b.columns()) {
        return Err(Error::Shapes { rows: [a.len(), b.len()], columns: [a.columns(), b.columns()] });
    }
    let mut combined = Rows::new(a.columns());
    if f(0.0, 0.0).to_bits() != 0 && a.columns() > 0 {
        let (a, b) = (crate::dense::all_entries(&a)?, crate::dense::all_entries(&b)?);
        let all: Vec<f64> = allocation::collect(a.iter().zip(&b).map(|(a, b)| f(*a, *b)));
        return encode_dense(combined, &all);
    }
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (a, b) in a.iter().zip(b.iter()) {
        columns.clear();
        values.clear();
        let mut a = a.0.iter().copied().zip(a.1.iter().copied()).peekable();
        let mut b = b.0.iter().copied().zip(b.1.iter().copied()).peekable();
        while let Some(column) = a.peek().map(|a| a.0).into_iter().chain(b.peek().map(|b| b.0)).min() {
            let [a, b] = [a.next_if(|a| a.0 == column), b.next_if(|b| b.0 == column)]
                .map(|entry| entry.map_or(0.0, |(_, value)| value));
            allocation::push(&mut columns, column);
            allocation::push(&mut values, f(a, b));
        }
        combined.push_sparse(&columns, &values)?;
    }
    encode_smallest(&combined)
}

/// Combines a compressed matrix with a plain one of the same shape, row by row without gaps, as A + M. The result is in
/// its smallest encoding.
///
/// # Errors
/// If the bytes are not what [`encode`] made, `m` is not as long as there are entries, or these are more than
/// [`limits`](crate::limits) allow.
pub fn zip_dense(bytes: &[u8], m: &[f64], f: impl Fn(f64, f64) -> f64) -> Result<Vec<u8>, Error> {
    let info = stored::info(bytes)?;
    let mut all = decode_dense(bytes)?;
    if all.len() != m.len() {
        return Err(Error::Length { entries: m.len(), columns: all.len() });
    }
    all.iter_mut().zip(m).for_each(|(entry, m)| *entry = f(*entry, *m));
    if info.columns == 0 {
        return Ok(allocation::copy(bytes));
    }
    encode_dense(Rows::new(info.columns), &all)
}

/// Appends all entries to `rows`, which have columns, and encodes them.
fn encode_dense(mut rows: Rows, all: &[f64]) -> Result<Vec<u8>, Error> {
    for row in all.chunks_exact(rows.columns().max(1)) {
        rows.push_dense(row)?;
    }
    encode_smallest(&rows)
}
