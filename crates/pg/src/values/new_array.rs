//! Arrays of numbers as results.

use super::varlena::{Bytes, Value};
use crate::context::Context;
use pgrx::pg_sys;

/// A two-dimensional array of doubles, row by row.
pub fn matrix_of_doubles<'m>(context: Context<'m>, columns: usize, values: &[f64]) -> Value<'m> {
    array_of_doubles(context, &mut [(values.len() / columns.max(1)) as i32, columns as i32], values)
}

/// An array of doubles.
pub fn vector_of_doubles<'m>(context: Context<'m>, values: &[f64]) -> crate::errors::Result<Value<'m>> {
    vector_of(context, pg_sys::FLOAT8OID, values)
}

/// An array of reals.
pub fn vector_of_reals<'m>(context: Context<'m>, values: &[f32]) -> crate::errors::Result<Value<'m>> {
    vector_of(context, pg_sys::FLOAT4OID, values)
}

/// An array of numbers of this type. Built element by element by PostgreSQL, it would take several times the memory and
/// the time, and could not be half as long as SQL allows.
fn vector_of<'m, T: bytemuck::NoUninit>(
    context: Context<'m>,
    element: pg_sys::Oid,
    values: &[T],
) -> crate::errors::Result<Value<'m>> {
    if values.is_empty() {
        // SAFETY: an array without dimensions.
        return Ok(context.value(|| unsafe { pg_sys::construct_empty_array(element) }.into()));
    }
    // what follows the length word: dimensions, no NULLs, the type of the elements, their number, the first one's index
    let header = [1, 0, element.to_u32(), values.len() as u32, 1];
    Ok(Bytes::of_parts(context, &[bytemuck::cast_slice(&header), bytemuck::cast_slice(values)])?.into_value())
}

fn array_of_doubles<'m>(context: Context<'m>, sizes: &mut [i32], values: &[f64]) -> Value<'m> {
    assert_eq!(sizes.iter().product::<i32>() as usize, values.len(), "rows of one length");
    // SAFETY: the array is made of as many elements as its dimensions say; one without elements has no dimensions.
    context.value(|| unsafe {
        if values.is_empty() {
            return pg_sys::construct_empty_array(pg_sys::FLOAT8OID).into();
        }
        let mut datums: Vec<pg_sys::Datum> =
            allocation::collect(values.iter().map(|v| pg_sys::Datum::from(v.to_bits())));
        let mut bounds = vec![1; sizes.len()];
        pg_sys::construct_md_array(
            datums.as_mut_ptr(),
            std::ptr::null_mut(),
            sizes.len() as i32,
            sizes.as_mut_ptr(),
            bounds.as_mut_ptr(),
            pg_sys::FLOAT8OID,
            size_of::<f64>() as i32,
            true,
            pg_sys::TYPALIGN_DOUBLE as std::ffi::c_char,
        )
        .into()
    })
}
