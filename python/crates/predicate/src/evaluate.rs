//! Conditions of rows.
//!
//! A part of an AND is not evaluated for rows of which the parts before it are false, nor one of an OR for rows of
//! which they are true: `x <> 0 AND 10 / x > 1` is no division by zero.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Datum, Float64Array, Int64Array, LargeStringArray,
    UInt64Array, new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::{cmp, comparison};
use arrow::compute::{and_kleene, filter, is_null, not, or_kleene};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;

use crate::PredicateError;
use crate::calculate::{absolute, calculate, negative};
use crate::tree::{Comparison, Literal, Operand, Set, Truth, Value, Values};
use crate::types::{Kind, cast};

/// The columns that a condition is about.
pub(crate) struct Rows {
    pub(crate) columns: Vec<ArrayRef>,
    pub(crate) count: usize,
}

/// A value for each row, or one for all.
#[derive(Debug, Clone)]
pub(crate) struct Evaluated {
    pub(crate) array: ArrayRef,
    pub(crate) constant: bool,
}

impl Datum for Evaluated {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.constant)
    }
}

fn told(error: ArrowError) -> PredicateError {
    PredicateError::Evaluation(error.to_string())
}

impl From<ArrowError> for PredicateError {
    fn from(error: ArrowError) -> Self {
        told(error)
    }
}

impl Rows {
    fn filter(&self, wanted: &BooleanBuffer) -> Result<Self, ArrowError> {
        let wanted = BooleanArray::new(wanted.clone(), None);
        let columns = self.columns.iter().map(|column| filter(column, &wanted)).collect::<Result<_, _>>()?;
        Ok(Self { columns, count: wanted.true_count() })
    }

    /// An answer for each of the rows.
    fn constant(&self, truth: Option<bool>) -> BooleanArray {
        match truth {
            None => BooleanArray::new_null(self.count),
            Some(truth) => BooleanArray::new(
                if truth { BooleanBuffer::new_set(self.count) } else { BooleanBuffer::new_unset(self.count) },
                None,
            ),
        }
    }
}

impl Truth {
    /// What is true, false or unknown of these rows.
    pub(crate) fn of(&self, rows: &Rows) -> Result<BooleanArray, PredicateError> {
        if rows.count == 0 {
            return Ok(rows.constant(None));
        }
        Ok(match self {
            Self::Constant(truth) => rows.constant(*truth),
            Self::Column(column) => Kind::Truth.read(&rows.columns[*column])?.as_boolean().clone(),
            Self::Compare(comparison, left, right, kind) => {
                let answers = compare(*comparison, left.of(rows)?, right.of(rows)?, *kind)?;
                if answers.len() == rows.count { answers } else { rows.constant(answers.iter().next().flatten()) }
            }
            Self::Missing(operand) => match operand.as_ref() {
                Operand::Column(column) => is_null(&rows.columns[*column])?,
                Operand::Truth(truth) => is_null(&truth.of(rows)?)?,
                Operand::Value(value) => {
                    let value = value.of(rows)?;
                    if value.constant { rows.constant(Some(value.array.is_null(0))) } else { is_null(&value.array)? }
                }
            },
            Self::Is(truth, wanted) => {
                let truth = truth.of(rows)?;
                let values = if *wanted { truth.values().clone() } else { !truth.values() };
                let known = truth.nulls().map(|nulls| nulls.inner());
                BooleanArray::new(known.map_or(values.clone(), |known| &values & known), None)
            }
            Self::In(value, set) => set.has(&value.of(rows)?, rows),
            Self::Like { value, pattern, ignore_case } => like(&value.of(rows)?, pattern, *ignore_case, rows)?,
            Self::And(parts) => chain(parts, rows, false)?,
            Self::Or(parts) => chain(parts, rows, true)?,
            Self::Not(truth) => not(&truth.of(rows)?)?,
        })
    }

    /// As `of`, but for the other rows it says that nothing is known.
    fn of_some(&self, rows: &Rows, wanted: &BooleanBuffer) -> Result<BooleanArray, PredicateError> {
        let answers = self.of(&rows.filter(wanted)?)?;
        let mut all = BooleanBuilder::with_capacity(rows.count);
        let mut answers = answers.iter();
        for wanted in wanted {
            all.append_option(if wanted { answers.next().flatten() } else { None });
        }
        Ok(all.finish())
    }
}

/// AND and OR. What one part says to be `decisive` is that, whatever the others say.
fn chain(parts: &[Truth], rows: &Rows, decisive: bool) -> Result<BooleanArray, PredicateError> {
    let mut so_far = rows.constant(Some(!decisive));
    for part in parts {
        let answers = if part.can_fail() {
            let decided = if decisive { so_far.values().clone() } else { !so_far.values() };
            let decided = so_far.nulls().map_or(decided.clone(), |known| &decided & known.inner());
            if decided.count_set_bits() == 0 { part.of(rows)? } else { part.of_some(rows, &!&decided)? }
        } else {
            part.of(rows)?
        };
        so_far = if decisive { or_kleene(&so_far, &answers) } else { and_kleene(&so_far, &answers) }?;
    }
    Ok(so_far)
}

fn compare(
    comparison: Comparison,
    mut left: Evaluated,
    mut right: Evaluated,
    kind: Kind,
) -> Result<BooleanArray, PredicateError> {
    match kind {
        Kind::Real => (left, right) = (ordered(left), ordered(right)),
        Kind::Text => same_text(&mut left, &mut right)?,
        _ => {}
    }
    let answers = match comparison {
        Comparison::Equal => cmp::eq(&left, &right),
        Comparison::Unequal => cmp::neq(&left, &right),
        Comparison::Less => cmp::lt(&left, &right),
        Comparison::LessOrEqual => cmp::lt_eq(&left, &right),
        Comparison::Greater => cmp::gt(&left, &right),
        Comparison::GreaterOrEqual => cmp::gt_eq(&left, &right),
    };
    answers.map_err(told)
}

/// Numbers whose order is PostgreSQL's: both zeros are equal, and what is not a number is equal to itself and greater
/// than all numbers. Arrow tells the zeros apart, and sorts by the sign of what is not a number.
fn ordered(values: Evaluated) -> Evaluated {
    let plain = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
    let array: Float64Array = values.array.as_primitive::<Float64Type>().unary(plain);
    Evaluated { array: Arc::new(array), constant: values.constant }
}

/// Arrow compares texts of one type. A constant is made like the column, since that is one text.
fn same_text(left: &mut Evaluated, right: &mut Evaluated) -> Result<(), PredicateError> {
    let (of_left, of_right) = (left.array.data_type().clone(), right.array.data_type().clone());
    let to = match (left.constant, right.constant) {
        _ if of_left == of_right => return Ok(()),
        (_, true) => of_left,
        (true, false) => of_right,
        (false, false) => DataType::LargeUtf8,
    };
    left.array = cast(&left.array, &to)?;
    right.array = cast(&right.array, &to)?;
    Ok(())
}

fn like(value: &Evaluated, pattern: &str, ignore_case: bool, rows: &Rows) -> Result<BooleanArray, PredicateError> {
    let mut pattern = Evaluated { array: Arc::new(LargeStringArray::from(vec![pattern])), constant: true };
    // The pattern has to be the only constant.
    let mut text = Evaluated { array: value.array.clone(), constant: false };
    same_text(&mut text, &mut pattern)?;
    let matched = if ignore_case { comparison::ilike(&text, &pattern) } else { comparison::like(&text, &pattern) };
    let matched = matched.map_err(told)?;
    Ok(if value.constant { rows.constant(matched.iter().next().flatten()) } else { matched })
}

impl Set {
    fn has(&self, value: &Evaluated, rows: &Rows) -> BooleanArray {
        let otherwise = if self.with_null { None } else { Some(false) };
        let answer = |found: bool| if found { Some(true) } else { otherwise };
        let array = &value.array;
        let answers: BooleanArray = match (&self.values, array.data_type()) {
            (Values::Whole(set), _) => {
                let values = array.as_primitive::<Int64Type>().iter();
                values.map(|value| value.and_then(|value| answer(set.contains(&value)))).collect()
            }
            (Values::Texts(set), DataType::Utf8) => {
                let values = array.as_string::<i32>().iter();
                values.map(|value| value.and_then(|value| answer(set.contains(value)))).collect()
            }
            (Values::Texts(set), DataType::Utf8View) => {
                let values = array.as_string_view().iter();
                values.map(|value| value.and_then(|value| answer(set.contains(value)))).collect()
            }
            (Values::Texts(set), _) => {
                let values = array.as_string::<i64>().iter();
                values.map(|value| value.and_then(|value| answer(set.contains(value)))).collect()
            }
        };
        if value.constant { rows.constant(answers.iter().next().flatten()) } else { answers }
    }
}

impl Value {
    fn of(&self, rows: &Rows) -> Result<Evaluated, PredicateError> {
        match self {
            Self::Column(column, kind) => Ok(Evaluated { array: kind.read(&rows.columns[*column])?, constant: false }),
            Self::Literal(literal) => Ok(Evaluated { array: literal.array(), constant: true }),
            Self::Convert(value, from, to) => {
                let Evaluated { array, constant } = value.of(rows)?;
                Ok(Evaluated { array: from.convert(&array, *to)?, constant })
            }
            Self::Calculate(operation, left, right, kind) => {
                calculate(*operation, &left.of(rows)?, &right.of(rows)?, *kind)
            }
            Self::Negative(value, kind) => negative(&value.of(rows)?, *kind),
            Self::Absolute(value, kind) => absolute(&value.of(rows)?, *kind),
            Self::Truth(truth) => Ok(Evaluated { array: Arc::new(truth.of(rows)?), constant: false }),
        }
    }
}

impl Literal {
    fn array(&self) -> ArrayRef {
        match self {
            Self::Whole(value) => Arc::new(Int64Array::from(vec![*value])),
            Self::Natural(value) => Arc::new(UInt64Array::from(vec![*value])),
            Self::Real(value) => Arc::new(Float64Array::from(vec![*value])),
            Self::Text(value) => Arc::new(LargeStringArray::from(vec![value.as_str()])),
            Self::Missing(kind) => new_null_array(&kind.data_type(), 1),
        }
    }
}
