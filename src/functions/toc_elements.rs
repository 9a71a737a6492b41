//! Operations on a compressed matrix element by element: with a number, with a matrix, with another compressed one.

use super::toc::{damaged, matrix, with_toc};
use errors::{ArgumentError, Result, TocError};
use pg::call::function::Call;
use pg::values::varlena::{Bytes, Value, with_bytes};
use pgrx::prelude::*;
use toc::Function;

/// The arguments of an operation of two operands, of which at least one is compressed.
#[derive(Clone, Copy)]
enum Operands {
    /// A compressed matrix and a number.
    Number,
    /// A compressed matrix and an array.
    Matrix,
    Both,
}

/// `f` of the elements of the arguments, the first of which is `left`. `toc`: which argument is compressed.
fn combine(call: Call<'_>, toc: usize, operands: Operands, f: impl Fn(f64, f64) -> f64) -> Value<'_> {
    let other = 1 - toc;
    let ordered = |element: f64, other: f64| if toc == 0 { f(element, other) } else { f(other, element) };
    with_toc(call, toc, |bytes| {
        let combined = match operands {
            Operands::Number => {
                let number = call.double(other).ok_or(ArgumentError::NullArgument("number"))?;
                toc::map(bytes, |element| ordered(element, number)).map_err(damaged)?
            }
            Operands::Matrix => {
                let ([rows, columns], _, elements) = matrix(call, other)?;
                let info = toc::info(bytes).map_err(damaged)?;
                if [rows, columns] != [info.rows, info.columns] {
                    return Err(TocError::Shapes([info.rows, info.columns], [rows, columns]).into());
                }
                toc::zip_dense(bytes, &elements, ordered).map_err(damaged)?
            }
            Operands::Both => {
                let second = call.argument(other).ok_or(ArgumentError::NullArgument("toc"))?;
                with_bytes(second, |second| {
                    toc::zip(bytes, second, ordered).map_err(|error| match error {
                        toc::Error::Shapes { rows: [a, b], columns: [c, d] } => TocError::Shapes([a, c], [b, d]).into(),
                        error => damaged(error),
                    })
                })?
            }
        };
        Ok(Bytes::new(call.context(), &combined)?)
    })
    .into_value()
}

/// SQL functions: their names, which argument is compressed, what the other one is, and what they compute.
macro_rules! operations {
    ($($name:ident $toc:literal $operands:ident $f:expr;)*) => {
        $(
            #[pg_extern(sql = false)]
            fn $name(call: Call<'_>) -> Value<'_> {
                combine(call, $toc, Operands::$operands, $f)
            }
        )*
    };
}

operations! {
    corgipile_toc_scale 0 Number |a, b| a * b;
    corgipile_scale_toc 1 Number |a, b| a * b;
    corgipile_toc_add 0 Number |a, b| a + b;
    corgipile_add_toc 1 Number |a, b| a + b;
    corgipile_toc_add_array 0 Matrix |a, b| a + b;
    corgipile_add_array_toc 1 Matrix |a, b| a + b;
    corgipile_toc_add_toc 0 Both |a, b| a + b;
    corgipile_toc_subtract 0 Number |a, b| a - b;
    corgipile_subtract_toc 1 Number |a, b| a - b;
    corgipile_toc_subtract_array 0 Matrix |a, b| a - b;
    corgipile_subtract_array_toc 1 Matrix |a, b| a - b;
    corgipile_toc_subtract_toc 0 Both |a, b| a - b;
    corgipile_toc_divide 0 Number |a, b| a / b;
    corgipile_divide_toc 1 Number |a, b| a / b;
    corgipile_toc_power 0 Number f64::powf;
}

#[pg_extern(sql = false)]
fn corgipile_toc_negate(call: Call<'_>) -> Value<'_> {
    mapped(call, |element| -element)
}

/// A function by its name.
#[pg_extern(sql = false)]
fn corgipile_toc_apply(call: Call<'_>) -> Value<'_> {
    let function = || -> Result<Function> {
        let given: String = call.get(1).ok_or(ArgumentError::NullArgument("function"))?;
        given.parse().map_err(|_| {
            let names = Function::ALL.map(|(_, name)| name).join(", ");
            ArgumentError::Unknown { what: "functions", given, known: names }.into()
        })
    };
    let function = errors::OrRaise::or_raise(function());
    mapped(call, |element| function.of(element))
}

fn mapped(call: Call<'_>, f: impl Fn(f64) -> f64) -> Value<'_> {
    with_toc(call, 0, |bytes| Ok(Bytes::new(call.context(), &toc::map(bytes, f).map_err(damaged)?)?)).into_value()
}
