//! Sources whose missing numbers and truth values become a number of the user's choice.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, Float64Array, ListArray, RecordBatch, RecordBatchOptions, Scalar,
    make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, cast, cast_with_options, is_null};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use source::{Cancel, Source, SourceError, Unit};

use crate::files::Fingerprint;

/// See the module's documentation. Texts and dates, and lists that are missing among lists of unequal lengths, stay so.
pub struct Filled {
    source: Arc<dyn Source>,
    value: f64,
    schema: SchemaRef,
}

impl Filled {
    /// The rows of a source with `value` where a number or a truth value is missing. With NaN, columns of integers and
    /// of truth values become columns of doubles.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] if the value is not of the column's type.
    pub fn new(source: Arc<dyn Source>, value: f64) -> Result<Self, SourceError> {
        let of = source.schema();
        let fields = of.fields().iter().map(|field| {
            let to = filled_type(field.data_type(), value).ok_or_else(|| {
                let (name, of) = (field.name(), field.data_type());
                SourceError::Invalid(format!("fill_value: column {name:?} is of type {of}, which has no {value}"))
            })?;
            Ok(Field::new(field.name(), to, true))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Result<Vec<_>, SourceError>>()?));
        Ok(Self { source, value, schema })
    }
}

impl Source for Filled {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn units(&self) -> &[Unit] {
        self.source.units()
    }

    fn whole_runs(&self) -> Option<&[Unit]> {
        self.source.whole_runs()
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        let batch = self.source.read(rows, cancel)?;
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| filled(column, field.data_type(), self.value));
        let count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = columns
            .collect::<Result<Vec<_>, _>>()
            .and_then(|columns| RecordBatch::try_new_with_options(self.schema.clone(), columns, &count));
        batch.map_err(|error| SourceError::Invalid(format!("fill_value: {error}")))
    }

    fn fingerprint(&self) -> u64 {
        let mut print = Fingerprint::new("filled");
        print.number(self.source.fingerprint());
        print.number(self.value.to_bits());
        print.finish()
    }

    fn place(&self, row: u64) -> String {
        self.source.place(row)
    }

    fn skipped(&self) -> u64 {
        self.source.skipped()
    }

    fn messages(&self) -> Vec<String> {
        self.source.messages()
    }
}

/// The type that a column has once it is filled; None if its type has no such value.
fn filled_type(of: &DataType, value: f64) -> Option<DataType> {
    let item = |item: &FieldRef| {
        filled_type(item.data_type(), value).map(|of| Arc::new(item.as_ref().clone().with_data_type(of)))
    };
    match of {
        DataType::FixedSizeList(of, length) => Some(DataType::FixedSizeList(item(of)?, *length)),
        DataType::List(of) => Some(DataType::List(item(of)?)),
        DataType::Boolean if !value.is_nan() => [0.0, 1.0].contains(&value).then(|| of.clone()),
        of if of.is_integer() && !value.is_nan() => {
            // integers are exact up to here, and what is beyond is barely meant
            let is_exact = value.fract() == 0.0 && value.abs() <= (1_u64 << 53) as f64;
            (is_exact && scalar(of, value).is_ok()).then(|| of.clone())
        }
        DataType::Boolean => Some(DataType::Float64),
        of if of.is_integer() => Some(DataType::Float64),
        of => Some(of.clone()),
    }
}

fn scalar(of: &DataType, value: f64) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&Float64Array::from(vec![value]), of, &options)
}

fn filled(array: &ArrayRef, to: &DataType, value: f64) -> Result<ArrayRef, ArrowError> {
    match to {
        DataType::FixedSizeList(item, length) => {
            let (_, _, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            // the values of a list that is missing are
            let nulls = nulls.map(|nulls| nulls.expand(*length as usize));
            let nulls = NullBuffer::union(nulls.as_ref(), values.logical_nulls().as_ref());
            let values = make_array(values.to_data().into_builder().nulls(nulls).build()?);
            let values = filled(&values, item.data_type(), value)?;
            let lists = FixedSizeListArray::try_new_with_length(item.clone(), *length, values, None, array.len());
            Ok(Arc::new(lists?))
        }
        DataType::List(item) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, filled(&values, item.data_type(), value)?, nulls)?))
        }
        to if to.is_numeric() || *to == DataType::Boolean => {
            let array = cast(array, to)?;
            match array.logical_null_count() {
                0 => Ok(array),
                _ => zip(&is_null(&array)?, &Scalar::new(scalar(to, value)?), &array),
            }
        }
        _ => Ok(array.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BooleanArray, Int32Array};
    use arrow::datatypes::{Float64Type, Int32Type};

    struct Rows(RecordBatch);

    impl Source for Rows {
        fn schema(&self) -> SchemaRef {
            self.0.schema()
        }

        fn units(&self) -> &[Unit] {
            &[]
        }

        fn read(&self, rows: Range<u64>, _: &Cancel) -> Result<RecordBatch, SourceError> {
            Ok(self.0.slice(rows.start as usize, (rows.end - rows.start) as usize))
        }

        fn fingerprint(&self) -> u64 {
            1
        }
    }

    fn rows() -> Arc<dyn Source> {
        let lists = |values: [Option<[Option<i32>; 2]>; 3]| {
            FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(values.map(|list| list.map(Vec::from)), 2)
        };
        let columns: [(&str, ArrayRef); 3] = [
            ("whole", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))),
            ("truth", Arc::new(BooleanArray::from(vec![None, Some(true), None]))),
            ("pairs", Arc::new(lists([Some([Some(1), None]), None, Some([Some(5), Some(6)])]))),
        ];
        Arc::new(Rows(RecordBatch::try_from_iter(columns).unwrap()))
    }

    #[test]
    fn every_missing_number_is_filled_in_in_lists_and_in_parts_too() {
        let filled = Filled::new(rows(), 0.0).unwrap();
        let batch = filled.read(1..3, &Cancel::default()).unwrap();
        assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[0, 3]);
        assert_eq!(batch.column(1).as_boolean(), &BooleanArray::from(vec![true, false]));
        let pairs = batch.column(2).as_fixed_size_list();
        assert_eq!(pairs.values().as_primitive::<Int32Type>().values(), &[0, 0, 5, 6]);
        assert!(batch.columns().iter().all(|column| source::complete_rows(column).is_none()));
        let batch = Filled::new(rows(), f64::NAN).unwrap().read(0..3, &Cancel::default()).unwrap();
        let truth = batch.column(1).as_primitive::<Float64Type>().values();
        assert!(truth[0].is_nan() && truth[1] == 1.0);
        let pairs = batch.column(2).as_fixed_size_list().values().as_primitive::<Float64Type>().values().clone();
        assert!(pairs[0] == 1.0 && pairs[1..4].iter().all(|value| value.is_nan()) && pairs[5] == 6.0);
    }

    #[test]
    fn a_value_that_a_column_cannot_have_is_refused() {
        for value in [0.5, 1e10, -1.0] {
            let error = Filled::new(rows(), value).err().unwrap().to_string();
            assert!(error.starts_with("fill_value: column ") && error.ends_with(&format!("has no {value}")), "{error}");
        }
        assert_ne!(Filled::new(rows(), 0.0).unwrap().fingerprint(), Filled::new(rows(), 1.0).unwrap().fingerprint());
    }
}
