//! Rows as one run of bytes, and back.
//!
//! The bytes are a stream of Arrow's format with one batch, whose buffers begin at multiples of 64. It guarantees that
//! rows are read from where the bytes are, without a copy, if the bytes themselves begin at such a multiple; and that
//! damaged bytes are an error, never a panic, and never a reason to look outside of them.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::ipc::MetadataVersion;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::{IpcWriteOptions, StreamEncoder};
use bytes::Bytes;

/// Multiples of this are where buffers begin.
pub const ALIGNMENT: usize = 64;

/// Why rows are not put into a slot, or not taken out of it.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// The rows have a type that the format does not know.
    #[error("the rows cannot be stored: {0}")]
    Unstorable(ArrowError),
    /// The bytes are no rows.
    #[error("the stored rows are damaged: {0}")]
    Damaged(String),
    /// The bytes cannot be written.
    #[error("the rows cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Rows that are ready to be written: how long they will be is known, and nothing has been copied.
#[derive(Debug)]
pub struct Encoded {
    buffers: Vec<Buffer>,
    length: usize,
}

impl Encoded {
    /// The bytes that these rows take, in pieces.
    ///
    /// # Errors
    /// [`SlotError::Unstorable`] for a type that the format does not know.
    pub fn new(batch: &RecordBatch) -> Result<Self, SlotError> {
        let batch = compact(batch).map_err(SlotError::Unstorable)?;
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5);
        let encoded = options.and_then(|options| {
            let mut encoder = StreamEncoder::try_new_with_options(&batch.schema(), options)?;
            let mut buffers = encoder.encode(&batch)?;
            buffers.extend(encoder.finish()?);
            Ok(buffers)
        });
        let buffers = encoded.map_err(SlotError::Unstorable)?;
        let length = buffers.iter().map(Buffer::len).sum();
        Ok(Self { buffers, length })
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty, which does not happen: even no rows have a schema.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Writes the bytes.
    ///
    /// # Errors
    /// What `to` says.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        self.buffers.iter().try_for_each(|buffer| to.write_all(buffer))
    }
}

/// The bytes of a slot with these rows.
///
/// # Errors
/// [`SlotError::Unstorable`] for a type that the format does not know.
pub fn encode(batch: &RecordBatch) -> Result<Vec<u8>, SlotError> {
    let encoded = Encoded::new(batch)?;
    let mut bytes = Vec::with_capacity(encoded.len());
    encoded.write(&mut bytes)?;
    Ok(bytes)
}

/// Writes the bytes of a slot with these rows, and tells how many there were.
///
/// # Errors
/// As [`encode`], and what `to` says.
pub fn encode_into(batch: &RecordBatch, to: &mut impl Write) -> Result<usize, SlotError> {
    let encoded = Encoded::new(batch)?;
    encoded.write(to)?;
    Ok(encoded.len())
}

/// The rows of a slot, whose values stay where the bytes are.
///
/// Bytes that do not begin at a multiple of [`ALIGNMENT`] may be copied.
///
/// # Errors
/// [`SlotError::Damaged`] for bytes that are not those of [`encode`].
pub fn decode(bytes: Bytes) -> Result<RecordBatch, SlotError> {
    let mut buffer = Buffer::from(bytes);
    // Damage may come as an error or as a panic: the library does not check every length.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        let mut decoder = StreamDecoder::new();
        let batch = decoder.decode(&mut buffer)?;
        let batch = batch.ok_or_else(|| ArrowError::IpcError("there are no rows".into()))?;
        if decoder.decode(&mut buffer)?.is_some() {
            return Err(ArrowError::IpcError("there are two batches of rows".into()));
        }
        decoder.finish()?;
        Ok(batch)
    }));
    match decoded {
        Ok(decoded) => decoded.map_err(|error| SlotError::Damaged(error.to_string())),
        Err(_) => Err(SlotError::Damaged("they cannot be decoded".into())),
    }
}

/// The rows without what only other rows refer to: views of a few texts would bring the texts of a whole file along.
fn compact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let is_view = |array: &ArrayRef| matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView);
    if !batch.columns().iter().any(is_view) {
        return Ok(batch.clone());
    }
    let compacted = |array: &ArrayRef| -> ArrayRef {
        match array.data_type() {
            DataType::Utf8View => Arc::new(array.as_string_view().gc()),
            DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
            _ => array.clone(),
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), batch.columns().iter().map(compacted).collect(), &options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayData, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
        FixedSizeListArray, Float16Array, Float32Array, Float64Array, Int8Array, Int64Array, LargeStringArray,
        ListArray, NullArray, StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, UInt8Array,
        UInt64Array,
    };
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{Field, Int32Type, Schema};
    use half::f16;
    use proptest::prelude::*;

    /// Bytes that begin at a multiple of 64, as those of shared memory do.
    fn aligned(bytes: &[u8]) -> Bytes {
        let mut buffer = arrow::buffer::MutableBuffer::with_capacity(bytes.len());
        buffer.extend_from_slice(bytes);
        Bytes::from_owner(Buffer::from(buffer))
    }

    /// Pixels of pictures of 2 by 3.
    fn pictures(rows: usize) -> ArrayRef {
        let mut array: ArrayRef = Arc::new((0..rows * 18).map(|pixel| pixel as u8).collect::<UInt8Array>());
        for length in [3, 3, 2] {
            let field = Arc::new(Field::new_list_field(array.data_type().clone(), false));
            array = Arc::new(FixedSizeListArray::new(field, length, array, None));
        }
        array
    }

    /// A column of each kind, with missing values.
    fn rows() -> RecordBatch {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(7)]),
            Some(vec![None]),
        ]);
        let words: DictionaryArray<Int32Type> =
            [Some("a"), None, Some("b"), Some("a"), Some("c")].into_iter().collect();
        let field = Arc::new(Field::new_list_field(DataType::Float32, true));
        let pairs = Arc::new((0..10).map(|x| (x != 3).then_some(x as f32)).collect::<Float32Array>());
        let nulls = NullBuffer::from(vec![true, true, false, true, true]);
        let long = "a text that is too long for a view of it";
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i1", Arc::new(Int8Array::from(vec![Some(1), None, Some(-3), Some(4), Some(5)]))),
            ("i8", numbers.clone()),
            ("u8", Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1, 2, 3]))),
            ("f2", Arc::new(Float16Array::from(vec![f16::ONE, f16::NAN, f16::MAX, f16::MIN, f16::ZERO]))),
            ("f8", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-0.0), Some(1e300), Some(2.0)]))),
            ("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true)]))),
            ("text", Arc::new(StringArray::from(vec![Some("x"), None, Some(""), Some("ä"), Some(long)]))),
            ("large", Arc::new(LargeStringArray::from(vec!["x", "y", "", "ä", long]))),
            ("view", Arc::new(StringViewArray::from(vec![Some("x"), None, Some(long), Some("z"), Some(long)]))),
            ("bytes", Arc::new(BinaryArray::from_iter([Some(&b"\0\xff"[..]), None, Some(b""), Some(b"a"), None]))),
            ("seen", Arc::new(BinaryViewArray::from_iter([Some(long.as_bytes()), None, Some(b""), None, None]))),
            ("days", Arc::new(Date32Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)]))),
            ("moments", Arc::new(TimestampMicrosecondArray::from(vec![1, 2, 3, 4, 5]).with_timezone("UTC"))),
            ("money", Arc::new(Decimal128Array::from(vec![Some(1), None, Some(3), Some(4), Some(5)]))),
            ("lists", Arc::new(lists)),
            ("pairs", Arc::new(FixedSizeListArray::new(field, 2, pairs, Some(nulls)))),
            ("words", Arc::new(words)),
            ("pictures", pictures(5)),
            ("nothing", Arc::new(NullArray::new(5))),
            ("fields", Arc::new(StructArray::from(vec![(Arc::new(Field::new("x", DataType::Int64, true)), numbers)]))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    /// Calls `see` with each buffer of an array and of the arrays in it.
    fn buffers(data: &ArrayData, see: &mut impl FnMut(&Buffer)) {
        data.buffers().iter().for_each(&mut *see);
        data.nulls().into_iter().for_each(|nulls| see(nulls.buffer()));
        data.child_data().iter().for_each(|child| buffers(child, see));
    }

    #[test]
    fn rows_come_out_as_they_went_in() {
        let rows = rows();
        for (from, length) in [(0, 5), (1, 3), (4, 1), (2, 0)] {
            let some = rows.slice(from, length);
            assert_eq!(decode(aligned(&encode(&some).unwrap())).unwrap(), some, "{length} rows from row {from}");
        }
    }

    #[test]
    fn rows_without_columns_keep_their_number() {
        let options = RecordBatchOptions::new().with_row_count(Some(7));
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
        assert_eq!(decode(aligned(&encode(&rows).unwrap())).unwrap().num_rows(), 7);
    }

    #[test]
    fn values_stay_where_the_bytes_are() {
        // Dictionaries are in messages of their own, which come with their own bytes in the same run.
        let bytes = aligned(&encode(&rows()).unwrap());
        let inside = bytes.as_ptr_range();
        let decoded = decode(bytes.clone()).unwrap();
        let mut seen = 0;
        for (field, column) in decoded.schema().fields().iter().zip(decoded.columns()) {
            buffers(&column.to_data(), &mut |buffer| {
                let outside = !buffer.is_empty() && !inside.contains(&buffer.as_ptr());
                assert!(!outside, "a buffer of column {:?} was copied", field.name());
                seen += usize::from(!buffer.is_empty());
            });
        }
        assert!(seen > 30, "only {seen} buffers were looked at");
    }

    #[test]
    fn buffers_begin_at_multiples_of_64() {
        let bytes = aligned(&encode(&rows()).unwrap());
        let start = bytes.as_ptr() as usize;
        assert_eq!(start % ALIGNMENT, 0);
        for column in decode(bytes).unwrap().columns() {
            buffers(&column.to_data(), &mut |buffer| {
                assert!(buffer.is_empty() || (buffer.as_ptr() as usize - start).is_multiple_of(ALIGNMENT));
            });
        }
    }

    #[test]
    fn bytes_that_begin_anywhere_are_read_too() {
        let rows = rows();
        let mut bytes = vec![0; 3];
        bytes.extend(encode(&rows).unwrap());
        assert_eq!(decode(Bytes::from(bytes).slice(3..)).unwrap(), rows);
    }

    #[test]
    fn the_length_is_known_before_anything_is_written() {
        let rows = rows();
        let encoded = Encoded::new(&rows).unwrap();
        let mut bytes = Vec::new();
        assert_eq!(encode_into(&rows, &mut bytes).unwrap(), encoded.len());
        assert_eq!(bytes.len(), encoded.len());
        // and a place that is too small is an error
        let mut small = vec![0; encoded.len() - 1];
        assert!(matches!(encode_into(&rows, &mut &mut small[..]), Err(SlotError::Io(_))));
    }

    #[test]
    fn a_part_of_many_rows_does_not_bring_the_others_along() {
        let long = "x".repeat(1000);
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..1000).map(|i| format!("{i}{long}"))));
        let plain: ArrayRef = Arc::new(StringArray::from_iter_values((0..1000).map(|i| format!("{i}{long}"))));
        let rows = RecordBatch::try_from_iter([("view", texts), ("plain", plain), ("pixels", pictures(1000))]).unwrap();
        let few = encode(&rows.slice(500, 2)).unwrap();
        assert!(few.len() < 8 << 10, "two rows take {} bytes", few.len());
    }

    #[test]
    fn bytes_that_are_cut_off_or_go_on_are_damaged() {
        let bytes = encode(&rows()).unwrap();
        for length in [0, 1, 4, 8, 100, bytes.len() / 2, bytes.len() - 9] {
            let error = decode(aligned(&bytes[..length])).unwrap_err();
            assert!(matches!(error, SlotError::Damaged(_)), "{length}: {error}");
        }
        let twice = [&bytes[..], &bytes[..]].concat();
        assert!(matches!(decode(aligned(&twice)), Err(SlotError::Damaged(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever the bytes are, there are rows that can be looked at, or an error.
        #[test]
        fn damage_is_an_error_or_other_values(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            column in 0..20_usize,
            // most of the bytes are values; what is worth damaging is in front of them
            in_headers in any::<bool>(),
        ) {
            let rows = rows().project(&[column]).unwrap();
            let mut bytes = encode(&rows).unwrap();
            let end = if in_headers { bytes.len().min(700) } else { bytes.len() };
            for (place, value) in damage {
                bytes[place.index(end)] = value;
            }
            if let Ok(decoded) = decode(aligned(&bytes)) {
                for column in decoded.columns() {
                    prop_assert_eq!(column.len(), decoded.num_rows());
                    column.to_data().validate_full().unwrap();
                }
            }
        }
    }
}
