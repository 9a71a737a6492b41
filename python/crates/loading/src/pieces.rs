//! Columns as arrays of numbers: what numpy can hold, and how what was read becomes that.
//!
//! It guarantees that a column has the same type and shape in every batch, whatever the rows in it.

use crate::batch::Typed;
use arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, PrimitiveArray, RecordBatch};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, TimeUnit, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use half::f16;
use source::{SourceError, complete_rows, missing};

/// What a column becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// Numbers, this many in each row.
    Fixed {
        /// Of this type in memory: one of numpy's names, such as `<f4`.
        native: &'static str,
        /// And seen as this one: dates are integers.
        view: String,
        /// Lengths of the lists in each row, the outermost first; none for a single number.
        shape: Vec<usize>,
    },
    /// Text, bytes, and lists of unequal lengths: an object for each row.
    Object,
}

/// Names and kinds of the columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<(String, ColumnKind)>,
}

impl Layout {
    /// The layout of rows with this schema.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] for a column that is neither numbers, nor dates, text, bytes, or lists of them.
    pub fn new(schema: &Schema) -> Result<Layout, SourceError> {
        let column = |field: &Field| match kind(field.data_type()) {
            Some(kind) => Ok((field.name().clone(), kind)),
            None => Err(SourceError::Invalid(format!(
                "column {:?} is of type {}, of which there are no arrays: there are some of numbers, truth values, dates, \
                 times, text, bytes, and lists of these; leave the column out by naming others in columns",
                field.name(),
                field.data_type()
            ))),
        };
        Ok(Layout { columns: schema.fields().iter().map(|field| column(field)).collect::<Result<_, _>>()? })
    }

    /// The columns, in their order.
    pub fn columns(&self) -> &[(String, ColumnKind)] {
        &self.columns
    }
}

/// What a column of this type becomes; None if nothing does.
fn kind(of: &DataType) -> Option<ColumnKind> {
    let mut shape = Vec::new();
    let mut leaf = of;
    while let DataType::FixedSizeList(field, length) = leaf {
        shape.push(usize::try_from(*length).ok()?);
        leaf = field.data_type();
    }
    if let DataType::FixedSizeBinary(length) = leaf {
        shape.push(usize::try_from(*length).ok()?);
    }
    if let Some((native, view)) = number(leaf) {
        return Some(ColumnKind::Fixed { native, view, shape });
    }
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(ColumnKind::Object),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Some(ColumnKind::Object),
        // of numbers, of text, or of lists
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            kind(field.data_type()).map(|_| ColumnKind::Object)
        }
        DataType::Dictionary(_, values) => kind(values),
        _ => None,
    }
}

/// The types, in memory and seen, of numbers of this type.
fn number(of: &DataType) -> Option<(&'static str, String)> {
    let native = match of {
        DataType::Int8 => "<i1",
        DataType::Int16 => "<i2",
        DataType::Int32 => "<i4",
        DataType::Int64 => "<i8",
        DataType::UInt8 | DataType::FixedSizeBinary(_) => "<u1",
        DataType::UInt16 => "<u2",
        DataType::UInt32 => "<u4",
        DataType::UInt64 => "<u8",
        DataType::Float32 => "<f4",
        DataType::Float64 => "<f8",
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => "<f8",
        DataType::Boolean => return Some(("<u1", "?".to_owned())),
        DataType::Float16 => return Some(("<u2", "<f2".to_owned())),
        DataType::Date32 => return Some(("<i8", "<M8[D]".to_owned())),
        DataType::Date64 => return Some(("<i8", "<M8[ms]".to_owned())),
        DataType::Timestamp(unit, _) => return Some(("<i8", format!("<M8[{}]", name(unit)))),
        DataType::Duration(unit) | DataType::Time32(unit) | DataType::Time64(unit) => {
            return Some(("<i8", format!("<m8[{}]", name(unit))));
        }
        DataType::Dictionary(_, values) => return number(values),
        _ => return None,
    };
    Some((native, native.to_owned()))
}

fn name(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// A run of rows, ready to be gathered from.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) columns: Vec<PieceColumn>,
    pub(crate) rows: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum PieceColumn {
    Fixed(Typed<Slices>),
    Object(ArrayRef),
}

/// The numbers of a column in memory, by type.
pub(crate) struct Slices;

impl crate::batch::Family for Slices {
    type Of<T: Number> = ScalarBuffer<T>;
}

/// The types of numbers in memory.
pub(crate) trait Number: arrow::datatypes::ArrowNativeType {}
impl<T: arrow::datatypes::ArrowNativeType> Number for T {}

impl Piece {
    /// What was read, as the layout has it. `place` says what a row of the batch is called.
    pub(crate) fn new(
        layout: &Layout,
        batch: &RecordBatch,
        place: &dyn Fn(usize) -> String,
    ) -> Result<Piece, SourceError> {
        if batch.num_columns() != layout.columns.len() {
            return Err(SourceError::Invalid(format!(
                "{} columns were read where there should be {}",
                batch.num_columns(),
                layout.columns.len()
            )));
        }
        let column = |((name, expected), array): (&(String, ColumnKind), &ArrayRef)| {
            // a cast would make something of anything
            if kind(array.data_type()).as_ref() != Some(expected) {
                let what = format!(
                    "column {name:?} is of type {} in some rows, and of another one in others",
                    array.data_type()
                );
                return Err(SourceError::Invalid(what));
            }
            if let Some(row) = complete_rows(array).and_then(|rows| (0..rows.len()).find(|&row| rows.is_null(row))) {
                return Err(SourceError::Invalid(format!("{}{}", place(row), missing(name))));
            }
            match expected {
                ColumnKind::Fixed { native, view, .. } => numbers(array, native, view).map(PieceColumn::Fixed),
                ColumnKind::Object => plain(array).map(PieceColumn::Object),
            }
            .map_err(|what| SourceError::Invalid(format!("column {name:?}: {what}")))
        };
        let columns = layout.columns.iter().zip(batch.columns()).map(column).collect::<Result<_, _>>()?;
        Ok(Piece { columns, rows: batch.num_rows() })
    }
}

impl crate::Values {
    /// Whether an array is one of numbers.
    pub fn are_numbers(array: &ArrayRef) -> bool {
        number(array.data_type()).is_some()
    }

    /// The numbers of an array, and what they are to be seen as if that is another type.
    ///
    /// # Errors
    /// Why it could not be made.
    pub fn of(array: &ArrayRef) -> Result<(crate::Values, Option<String>), String> {
        let (native, view) =
            number(array.data_type()).ok_or_else(|| format!("{} is not a number", array.data_type()))?;
        let values = crate::Values::from_slices(numbers(array, native, &view)?);
        Ok((values, (view != native).then_some(view)))
    }
}

/// Text and bytes without a dictionary.
fn plain(array: &ArrayRef) -> Result<ArrayRef, String> {
    match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values).map_err(|error| error.to_string()),
        _ => Ok(array.clone()),
    }
}

/// The numbers of a column without its lists.
fn numbers(array: &ArrayRef, native: &str, view: &str) -> Result<Typed<Slices>, String> {
    let (leaf, nulls) = flatten(array);
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    match native {
        "<f4" => Ok(Typed::F4(filled(primitive::<Float32Type>(&leaf, DataType::Float32)?, nulls, f32::NAN))),
        "<f8" => Ok(Typed::F8(filled(primitive::<Float64Type>(&leaf, DataType::Float64)?, nulls, f64::NAN))),
        "<u2" if view == "<f2" => {
            let halves = filled(primitive::<Float16Type>(&leaf, DataType::Float16)?, nulls, f16::NAN);
            Ok(Typed::U2(ScalarBuffer::from(halves.into_inner())))
        }
        // not a time
        "<i8" if view != native => {
            let days = matches!(leaf.data_type(), DataType::Date32 | DataType::Time32(_));
            let leaf = if days { cast(&leaf, &DataType::Int32).map_err(|error| error.to_string())? } else { leaf };
            Ok(Typed::I8(filled(primitive::<Int64Type>(&leaf, DataType::Int64)?, nulls, i64::MIN)))
        }
        _ if nulls.is_some() => Err("a value is missing, and arrays of whole numbers have no place for that: \
                                     make it a floating point number, or fill it in"
            .to_owned()),
        _ => whole(&leaf, native),
    }
}

fn whole(leaf: &ArrayRef, native: &str) -> Result<Typed<Slices>, String> {
    Ok(match native {
        "<i1" => Typed::I1(primitive::<Int8Type>(leaf, DataType::Int8)?),
        "<i2" => Typed::I2(primitive::<Int16Type>(leaf, DataType::Int16)?),
        "<i4" => Typed::I4(primitive::<Int32Type>(leaf, DataType::Int32)?),
        "<i8" => Typed::I8(primitive::<Int64Type>(leaf, DataType::Int64)?),
        "<u2" => Typed::U2(primitive::<UInt16Type>(leaf, DataType::UInt16)?),
        "<u4" => Typed::U4(primitive::<UInt32Type>(leaf, DataType::UInt32)?),
        "<u8" => Typed::U8(primitive::<UInt64Type>(leaf, DataType::UInt64)?),
        _ => Typed::U1(match leaf.data_type() {
            DataType::Boolean => leaf.as_boolean().values().iter().map(u8::from).collect(),
            DataType::FixedSizeBinary(width) => {
                let array = leaf.as_fixed_size_binary();
                ScalarBuffer::new(array.values().clone(), 0, array.len() * *width as usize)
            }
            _ => primitive::<UInt8Type>(leaf, DataType::UInt8)?,
        }),
    })
}

/// The values of nested lists of fixed lengths, and which of them are missing.
fn flatten(array: &ArrayRef) -> (ArrayRef, Option<NullBuffer>) {
    let DataType::FixedSizeList(_, length) = array.data_type() else { return (array.clone(), array.logical_nulls()) };
    let list: &FixedSizeListArray = array.as_fixed_size_list();
    let (leaf, nulls) = flatten(list.values());
    let each = leaf.len() / list.len().max(1);
    debug_assert!(*length > 0 || each == 0);
    let of_lists = list.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.expand(each));
    (leaf, NullBuffer::union(of_lists.as_ref(), nulls.as_ref()))
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef, as_type: DataType) -> Result<ScalarBuffer<T::Native>, String> {
    let array = if *array.data_type() == as_type {
        array.clone()
    } else {
        cast(array, &as_type).map_err(|error| error.to_string())?
    };
    let array: &PrimitiveArray<T> =
        array.as_primitive_opt().ok_or_else(|| format!("{} instead of {as_type} was read", array.data_type()))?;
    Ok(array.values().clone())
}

/// The numbers with a placeholder where one is missing.
fn filled<T: Number>(values: ScalarBuffer<T>, nulls: Option<NullBuffer>, missing: T) -> ScalarBuffer<T> {
    match nulls {
        None => values,
        Some(nulls) => {
            values.iter().enumerate().map(|(i, value)| if nulls.is_null(i) { missing } else { *value }).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BooleanArray, Date32Array, DictionaryArray, Float32Array, Int32Array, StringArray, StructArray,
        TimestampMicrosecondArray,
    };
    use std::sync::Arc;

    fn column(array: ArrayRef) -> Result<(ColumnKind, PieceColumn), String> {
        let batch = RecordBatch::try_from_iter([("x", array)]).unwrap();
        let layout = Layout::new(&batch.schema()).map_err(|error| error.to_string())?;
        let piece = Piece::new(&layout, &batch, &|row| format!("row {row}: ")).map_err(|error| error.to_string())?;
        Ok((layout.columns[0].1.clone(), piece.columns[0].clone()))
    }

    #[test]
    fn nested_lists_of_fixed_lengths_are_one_run_of_numbers() {
        let inner = Arc::new(Field::new("item", DataType::Float32, true));
        let numbers = Arc::new(Float32Array::from_iter_values((0..12).map(|x| x as f32)));
        let pairs = Arc::new(FixedSizeListArray::new(inner, 2, numbers, None));
        let field = Arc::new(Field::new("item", pairs.data_type().clone(), true));
        let nulls = NullBuffer::from(vec![true, false]);
        let lists: ArrayRef = Arc::new(FixedSizeListArray::new(field, 3, pairs, Some(nulls)));
        let (kind, piece) = column(lists.clone()).unwrap();
        let PieceColumn::Fixed(Typed::F4(values)) = piece else { panic!("{piece:?}") };
        assert_eq!(kind, ColumnKind::Fixed { native: "<f4", view: "<f4".to_owned(), shape: vec![3, 2] });
        assert_eq!(values[..6], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(values[6..].iter().all(|value| value.is_nan()) && values.len() == 12);
        // a part of it
        let PieceColumn::Fixed(Typed::F4(values)) = column(lists.slice(0, 1)).unwrap().1 else { panic!() };
        assert_eq!(values.len(), 6);
    }

    #[test]
    fn what_is_missing_is_no_number_no_time_or_an_error() {
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![Some(5), None]));
        let PieceColumn::Fixed(Typed::I8(values)) = column(times).unwrap().1 else { panic!() };
        assert_eq!(values[..], [5, i64::MIN]);
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(5), None]));
        let PieceColumn::Fixed(Typed::I8(values)) = column(days).unwrap().1 else { panic!() };
        assert_eq!(values[..], [5, i64::MIN]);
        let whole: ArrayRef = Arc::new(Int32Array::from(vec![Some(5), None]));
        let error = column(whole).unwrap_err();
        assert!(error.starts_with("row 1: column \"x\": a value is missing"), "{error}");
    }

    #[test]
    fn truth_is_a_byte_and_dictionaries_are_looked_up() {
        let truth: ArrayRef = Arc::new(BooleanArray::from(vec![true, false, true]).slice(1, 2));
        let (kind, piece) = column(truth).unwrap();
        let PieceColumn::Fixed(Typed::U1(values)) = piece else { panic!() };
        assert!(matches!(kind, ColumnKind::Fixed { view, .. } if view == "?"));
        assert_eq!(values[..], [0, 1]);
        let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let PieceColumn::Object(words) = column(Arc::new(words)).unwrap().1 else { panic!() };
        assert_eq!(words.as_ref(), &StringArray::from(vec!["a", "b", "a"]));
    }

    #[test]
    fn a_column_of_which_there_are_no_arrays_is_named() {
        let none: ArrayRef = Arc::new(StructArray::new_empty_fields(2, None));
        let error = column(none).unwrap_err();
        assert!(error.contains("column \"x\" is of type Struct"), "{error}");
    }
}
