//! Arithmetic as PostgreSQL does it: what is out of range, and a zero that is divided by, are errors.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute::kernels::arity::{try_binary, try_unary};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;

use crate::PredicateError;
use crate::evaluate::Evaluated;
use crate::tree::Operation;
use crate::types::{Kind, out_of_range};

/// Computes with numbers of one kind.
pub(crate) fn calculate(
    operation: Operation,
    left: &Evaluated,
    right: &Evaluated,
    kind: Kind,
) -> Result<Evaluated, PredicateError> {
    match kind {
        Kind::Natural => pairwise::<UInt64Type>(left, right, |a, b| natural(operation, a, b)),
        Kind::Real => pairwise::<Float64Type>(left, right, |a, b| real(operation, a, b)),
        _ => pairwise::<Int64Type>(left, right, |a, b| whole(operation, a, b)),
    }
}

/// Turns the sign.
pub(crate) fn negative(of: &Evaluated, kind: Kind) -> Result<Evaluated, PredicateError> {
    match kind {
        Kind::Real => single::<Float64Type>(of, |value| Ok(-value)),
        _ => single::<Int64Type>(of, |value| value.checked_neg().ok_or_else(range)),
    }
}

/// Leaves the sign out.
pub(crate) fn absolute(of: &Evaluated, kind: Kind) -> Result<Evaluated, PredicateError> {
    match kind {
        Kind::Real => single::<Float64Type>(of, |value| Ok(value.abs())),
        Kind::Natural => Ok(of.clone()),
        _ => single::<Int64Type>(of, |value| value.checked_abs().ok_or_else(range)),
    }
}

fn whole(operation: Operation, a: i64, b: i64) -> Result<i64, ArrowError> {
    match operation {
        Operation::Add => a.checked_add(b),
        Operation::Subtract => a.checked_sub(b),
        Operation::Multiply => a.checked_mul(b),
        Operation::Divide | Operation::Remainder if b == 0 => return Err(ArrowError::DivideByZero),
        Operation::Divide => a.checked_div(b),
        // The least number has no positive one, but no remainder either.
        Operation::Remainder => Some(a.wrapping_rem(b)),
    }
    .ok_or_else(range)
}

fn natural(operation: Operation, a: u64, b: u64) -> Result<u64, ArrowError> {
    match operation {
        Operation::Add => a.checked_add(b),
        Operation::Subtract => a.checked_sub(b),
        Operation::Multiply => a.checked_mul(b),
        Operation::Divide | Operation::Remainder if b == 0 => return Err(ArrowError::DivideByZero),
        Operation::Divide => a.checked_div(b),
        Operation::Remainder => a.checked_rem(b),
    }
    .ok_or_else(range)
}

fn real(operation: Operation, a: f64, b: f64) -> Result<f64, ArrowError> {
    let result = match operation {
        Operation::Add => a + b,
        Operation::Subtract => a - b,
        Operation::Multiply => a * b,
        Operation::Divide | Operation::Remainder if b == 0.0 && !a.is_nan() => return Err(ArrowError::DivideByZero),
        Operation::Divide => a / b,
        Operation::Remainder => a % b,
    };
    if result.is_infinite() && a.is_finite() && b.is_finite() { Err(range()) } else { Ok(result) }
}

fn range() -> ArrowError {
    ArrowError::ArithmeticOverflow(String::new())
}

fn told(error: ArrowError) -> PredicateError {
    match error {
        ArrowError::DivideByZero => PredicateError::Evaluation("division by zero".into()),
        ArrowError::ArithmeticOverflow(_) => out_of_range("a number"),
        error => PredicateError::Evaluation(error.to_string()),
    }
}

fn single<T: ArrowPrimitiveType>(
    of: &Evaluated,
    operation: impl Fn(T::Native) -> Result<T::Native, ArrowError>,
) -> Result<Evaluated, PredicateError> {
    let result: PrimitiveArray<T> = try_unary(of.array.as_primitive::<T>(), operation).map_err(told)?;
    Ok(Evaluated { array: Arc::new(result), constant: of.constant })
}

fn pairwise<T: ArrowPrimitiveType>(
    left: &Evaluated,
    right: &Evaluated,
    operation: impl Fn(T::Native, T::Native) -> Result<T::Native, ArrowError>,
) -> Result<Evaluated, PredicateError> {
    let (a, b) = (left.array.as_primitive::<T>(), right.array.as_primitive::<T>());
    let missing = |rows: usize| PrimitiveArray::<T>::new_null(rows);
    let value = |array: &PrimitiveArray<T>| array.iter().next().flatten();
    let result: Result<PrimitiveArray<T>, ArrowError> = match (left.constant, right.constant) {
        (true, false) => match value(a) {
            Some(a) => try_unary(b, |b| operation(a, b)),
            None => Ok(missing(right.array.len())),
        },
        (false, true) => match value(b) {
            Some(b) => try_unary(a, |a| operation(a, b)),
            None => Ok(missing(left.array.len())),
        },
        _ => try_binary(a, b, operation),
    };
    let array: ArrayRef = Arc::new(result.map_err(told)?);
    Ok(Evaluated { array, constant: left.constant && right.constant })
}
