//! The type corgipile.toc, a compressed mini-batch, and the operations on it.

use super::compress::encode;
use errors::{ArgumentError, Error, OrRaise, Result, TocError};
use pg::call::function::Call;
use pg::values::array::{ArrayFault, read_matrix};
use pg::values::new_array::{matrix_of_doubles, vector_of_doubles};
use pg::values::varlena::{Bytes, Value, with_bytes};
use pgrx::prelude::*;
use std::cmp::Ordering;
use std::ffi::CString;
use toc::{Encoding, Operations, Rows};

// ----------------------------------------------------------------------------------------------------------- the type

#[pg_extern(sql = false)]
fn corgipile_toc_in(call: Call<'_>) -> Value<'_> {
    let text = call.text().unwrap_or_default();
    let read = || {
        let text = text.to_str().map_err(|_| TocError::MalformedToc("it is not UTF-8".to_owned()))?;
        let bytes = toc::text::read(text).map_err(malformed)?;
        Ok(Bytes::new(call.context(), &bytes)?.into_value())
    };
    read().or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_toc_out(call: Call<'_>) -> CString {
    CString::new(with_toc(call, 0, |bytes| toc::text::write(bytes).map_err(damaged))).unwrap_or_default()
}

#[pg_extern(sql = false)]
fn corgipile_toc_recv(call: Call<'_>) -> Value<'_> {
    let bytes = call.message().unwrap_or_default();
    // all of it is checked once, so that what is stored is sound
    let checked = toc::decode(bytes).map_err(|error| TocError::MalformedTocBytes(error.to_string()).into());
    checked.and_then(|_| Ok(Bytes::new(call.context(), bytes)?)).or_raise().into_value()
}

#[pg_extern(sql = false)]
fn corgipile_toc_send(call: Call<'_>) -> Value<'_> {
    with_toc(call, 0, |bytes| Ok(Bytes::new(call.context(), bytes)?)).into_value() // a bytea is just that: the bytes
}

/// Compresses a matrix.
#[pg_extern(sql = false)]
fn corgipile_toc(call: Call<'_>) -> Value<'_> {
    let make = || {
        let encoding: String = call.get(1).ok_or(ArgumentError::NullArgument("encoding"))?;
        let ([_, columns], _, values) = matrix(call, 0)?;
        let mut rows = Rows::new(columns);
        for row in values.chunks_exact(columns.max(1)) {
            rows.push_dense(row).map_err(|error| TocError::NotCompressible(error.to_string()))?;
        }
        let bytes = encode(&rows, super::compress::encoding(&encoding)?)?;
        Ok(Bytes::new(call.context(), &bytes)?.into_value())
    };
    make().or_raise()
}

// ------------------------------------------------------------------------------------------------- what is said of one

#[pg_extern(sql = false)]
fn corgipile_toc_rows(call: Call<'_>) -> i32 {
    with_toc(call, 0, |bytes| Ok(toc::info(bytes).map_err(damaged)?.rows as i32))
}

#[pg_extern(sql = false)]
fn corgipile_toc_columns(call: Call<'_>) -> i64 {
    with_toc(call, 0, |bytes| Ok(toc::info(bytes).map_err(damaged)?.columns as i64))
}

#[pg_extern(sql = false)]
fn corgipile_toc_encoding(call: Call<'_>) -> String {
    with_toc(call, 0, |bytes| Ok(toc::info(bytes).map_err(damaged)?.encoding.to_string()))
}

#[pg_extern(sql = false)]
fn corgipile_toc_bytes(call: Call<'_>) -> i64 {
    with_toc(call, 0, |bytes| Ok(bytes.len() as i64))
}

/// Rows times columns times 8 bytes, over the bytes that it takes.
#[pg_extern(sql = false)]
fn corgipile_toc_ratio(call: Call<'_>) -> f64 {
    with_toc(call, 0, |bytes| {
        let info = toc::info(bytes).map_err(damaged)?;
        Ok(info.rows as f64 * info.columns as f64 * 8.0 / bytes.len() as f64)
    })
}

/// The matrix as it was.
#[pg_extern(sql = false)]
fn corgipile_toc_decompress(call: Call<'_>) -> Value<'_> {
    with_toc(call, 0, |bytes| {
        let rows = toc::decode(bytes).map_err(damaged)?;
        let mut values = zeros(rows.len(), rows.columns())?;
        for (i, to) in values.chunks_exact_mut(rows.columns().max(1)).enumerate() {
            let (indices, entries) = rows.row(i);
            indices.iter().zip(entries).for_each(|(index, value)| to[*index as usize] = *value);
        }
        Ok(matrix_of_doubles(call.context(), rows.columns(), &values))
    })
}

/// An element, by row and column, both from 1.
#[pg_extern(sql = false)]
fn corgipile_toc_element(call: Call<'_>) -> f64 {
    with_toc(call, 0, |bytes| {
        let row = call.get(1).ok_or(ArgumentError::NullArgument("row_number"))?;
        let column = call.get(2).ok_or(ArgumentError::NullArgument("column_number"))?;
        let matrix = open(bytes)?;
        let (rows, columns) = (matrix.rows(), matrix.columns());
        let inside = |i: i32, n: usize| usize::try_from(i).is_ok_and(|i| (1..=n).contains(&i));
        if !inside(row, rows) || !inside(column, columns) {
            return Err(TocError::NoElement { row, column, rows, columns }.into());
        }
        Ok(matrix.get(row as usize - 1, column as usize - 1))
    })
}

// ------------------------------------------------------------------------------------------------------------ products

/// A v, or A M.
#[pg_extern(sql = false)]
fn corgipile_toc_times(call: Call<'_>) -> Value<'_> {
    with_toc(call, 0, |bytes| {
        let ([rows, width], is_matrix, m) = matrix(call, 1)?;
        let a = open_for(bytes, &m)?;
        if rows != a.columns() {
            return Err(product(&*a, [rows, width], is_matrix));
        }
        let mut out = zeros(a.rows(), width)?;
        if is_matrix {
            a.times_matrix(&m, width, &mut out, &mut Vec::new());
            Ok(matrix_of_doubles(call.context(), width, &out))
        } else {
            a.times_vector(&m, &mut out, &mut Vec::new());
            Ok(vector_of_doubles(call.context(), &out)?)
        }
    })
}

/// v A, or M A.
#[pg_extern(sql = false)]
fn corgipile_times_toc(call: Call<'_>) -> Value<'_> {
    with_toc(call, 1, |bytes| {
        let ([rows, columns], is_matrix, m) = matrix(call, 0)?;
        let a = open_for(bytes, &m)?;
        let inner = if is_matrix { columns } else { rows };
        if inner != a.rows() {
            return Err(product(&*a, [rows, columns], is_matrix));
        }
        if !is_matrix {
            let mut out = zeros(a.columns(), 1)?;
            a.vector_times(&m, &mut out, &mut Vec::new());
            return Ok(vector_of_doubles(call.context(), &out)?);
        }
        // of the transposes of both
        let turned = transpose(&m, [rows, columns])?;
        let mut out = zeros(a.columns(), rows)?;
        a.transposed_times_matrix(&turned, rows, &mut out, &mut Vec::new());
        Ok(matrix_of_doubles(call.context(), a.columns(), &transpose(&out, [a.columns(), rows])?))
    })
}

/// Elements of the largest array that there may be: 1 GB of doubles.
const MAX_ELEMENTS: usize = 134_217_727;

// --------------------------------------------------------------------------------------------------------- comparisons

#[pg_extern(sql = false)]
fn corgipile_toc_eq(call: Call<'_>) -> bool {
    compare(call).is_eq()
}

#[pg_extern(sql = false)]
fn corgipile_toc_ne(call: Call<'_>) -> bool {
    compare(call).is_ne()
}

#[pg_extern(sql = false)]
fn corgipile_toc_lt(call: Call<'_>) -> bool {
    compare(call).is_lt()
}

#[pg_extern(sql = false)]
fn corgipile_toc_le(call: Call<'_>) -> bool {
    compare(call).is_le()
}

#[pg_extern(sql = false)]
fn corgipile_toc_gt(call: Call<'_>) -> bool {
    compare(call).is_gt()
}

#[pg_extern(sql = false)]
fn corgipile_toc_ge(call: Call<'_>) -> bool {
    compare(call).is_ge()
}

#[pg_extern(sql = false)]
fn corgipile_toc_cmp(call: Call<'_>) -> i32 {
    compare(call) as i32
}

#[pg_extern(sql = false)]
fn corgipile_toc_hash(call: Call<'_>) -> i32 {
    hash(call, 0) as i32
}

/// The lower half of it is [`corgipile_toc_hash`], if the seed is 0: PostgreSQL wants that.
#[pg_extern(sql = false)]
fn corgipile_toc_hash_extended(call: Call<'_>) -> i64 {
    hash(call, call.get::<i64>(1).unwrap_or_default() as u64) as i64
}

/// Compares two matrices by their entries.
fn compare(call: Call<'_>) -> Ordering {
    with_toc(call, 0, |a| {
        let other = call.argument(1).ok_or(ArgumentError::NullArgument("toc"))?;
        with_bytes(other, |b| {
            if a == b {
                return Ok(Ordering::Equal);
            }
            Ok(toc::decode(a).map_err(damaged)?.compare(&toc::decode(b).map_err(damaged)?))
        })
    })
}

fn hash(call: Call<'_>, seed: u64) -> u64 {
    with_toc(call, 0, |bytes| Ok(toc::decode(bytes).map_err(damaged)?.hash(seed)))
}

/// Passes the bytes of argument `i`, a compressed mini-batch, to `f`. The function is STRICT.
pub(super) fn with_toc<T>(call: Call<'_>, i: usize, f: impl FnOnce(&[u8]) -> Result<T>) -> T {
    let argument = call.argument(i).ok_or(ArgumentError::NullArgument("toc").into());
    argument.and_then(|datum| with_bytes(datum, f)).or_raise()
}

fn open(bytes: &[u8]) -> Result<Box<dyn Operations<f64>>> {
    toc::open(bytes).map_err(damaged)
}

/// Opens a matrix to be multiplied by these numbers. 0 times NaN or infinity is NaN: then the zeros must be stored, as
/// only some encodings do.
fn open_for(bytes: &[u8], numbers: &[f64]) -> Result<Box<dyn Operations<f64>>> {
    if numbers.iter().all(|number| number.is_finite()) {
        return open(bytes);
    }
    let rows = toc::decode(bytes).map_err(damaged)?;
    open(&toc::encode(&rows, Encoding::Den).map_err(damaged)?)
}

/// Argument `i`, an array of doubles: its rows and columns, whether it has two dimensions, and its elements.
pub(super) fn matrix(call: Call<'_>, i: usize) -> Result<([usize; 2], bool, Vec<f64>)> {
    let array = call.argument(i).ok_or(ArgumentError::NullArgument("array"))?;
    read_matrix(array).map_err(|fault| match fault {
        ArrayFault::Null(i) => TocError::NotAMatrix(format!("element {i} is NULL")).into(),
        ArrayFault::Dimensions(n) => TocError::NotAMatrix(format!("{n} dimensions")).into(),
        ArrayFault::Length(n) | ArrayFault::Number(n, _) => TocError::NotAMatrix(format!("{n} elements")).into(),
        ArrayFault::Damaged => TocError::NotAMatrix("other bytes".into()).into(),
    })
}

fn zeros(rows: usize, columns: usize) -> Result<Vec<f64>> {
    let len = rows.saturating_mul(columns);
    if len > MAX_ELEMENTS {
        return Err(TocError::TooManyElements(len).into());
    }
    Ok(allocation::zeros(len))
}

fn transpose(m: &[f64], [rows, columns]: [usize; 2]) -> Result<Vec<f64>> {
    let mut turned = zeros(rows, columns)?;
    for (i, row) in m.chunks_exact(columns.max(1)).enumerate() {
        row.iter().enumerate().for_each(|(j, value)| turned[j * rows + i] = *value);
    }
    Ok(turned)
}

fn product(a: &dyn Operations<f64>, [rows, columns]: [usize; 2], is_matrix: bool) -> Error {
    let with = if is_matrix { format!("{rows} times {columns}") } else { rows.to_string() };
    TocError::Product { rows: a.rows(), columns: a.columns(), with }.into()
}

fn malformed(error: toc::Error) -> Error {
    TocError::MalformedToc(error.to_string()).into()
}

/// The error about a stored value that is damaged: it was sound when it was stored.
pub(super) fn damaged(error: toc::Error) -> Error {
    match error {
        toc::Error::TooLarge { .. } => TocError::NotCompressible(error.to_string()).into(),
        _ => TocError::DamagedToc(error.to_string()).into(),
    }
}

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
mod tests {
    use super::*;
    use pg::testing::{in_subtransaction, value};

    #[pg_test]
    fn test_matrices_are_arrays_of_two_dimensions_or_columns() {
        let read = |text| read_matrix(value(text, "float8[]"));
        assert_eq!(read("{{1,2,3},{4,5,6}}"), Ok(([2, 3], true, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
        assert_eq!(read("[0:1]={1,-Infinity}"), Ok(([2, 1], false, vec![1.0, f64::NEG_INFINITY])));
        assert_eq!(read("{}"), Ok(([0, 1], false, vec![])));
        assert_eq!(read("{{{1}}}"), Err(ArrayFault::Dimensions(3)));
        assert_eq!(read("{1,NULL}"), Err(ArrayFault::Null(2)));
        let other = in_subtransaction(|| format!("{:?}", read_matrix(value("{1}", "int[]"))));
        assert_eq!(other, "a value of type 1007 was found where one of type 1022 was expected");
    }
}
