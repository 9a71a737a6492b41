//! Which columns the features of examples become, and filling these.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, FixedSizeListArray, Float32Array, Int64Array, ListArray, NullBufferBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use source::SourceError;

use super::Records;
use super::example::{Values, count, features, floats, integers, strings};
use crate::OnError;
use crate::dataset::is_skipped;
use crate::indexed::IndexedFiles;

/// What the values of a feature are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Strings of bytes.
    Bytes,
    /// 32-bit floats.
    Float,
    /// 64-bit integers.
    Integer,
}

/// How many values a feature has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One: the column has a value a row.
    One,
    /// As many in each row.
    Fixed(usize),
    /// Another number in each row.
    Ragged,
}

/// A feature that becomes a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name, which is the column's.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
    /// How many it has.
    pub length: Length,
}

impl Feature {
    pub(super) fn field(&self) -> Field {
        let of = match self.kind {
            Kind::Bytes => DataType::Binary,
            Kind::Float => DataType::Float32,
            Kind::Integer => DataType::Int64,
        };
        let item = || Arc::new(Field::new("item", of.clone(), true));
        let of = match self.length {
            Length::One => of,
            Length::Fixed(length) => DataType::FixedSizeList(item(), length as i32),
            Length::Ragged => DataType::List(item()),
        };
        Field::new(&self.name, of, true)
    }
}

/// What a sample of the records has: each feature is of the kind that it has in most records. A record that is wrong,
/// or has one of these columns (or any) of another kind, says nothing of what there is.
pub(super) fn look(
    found: &IndexedFiles,
    fixed: bool,
    columns: Option<&[String]>,
    on_error: OnError,
    units: usize,
) -> Result<Vec<Feature>, SourceError> {
    let mut seen = Vec::new();
    found.sample(units, &mut |chunk| {
        for record in Records::of(chunk) {
            let looked = record.and_then(|record| {
                let has = see(record.checked(chunk)?).map_err(|what| chunk.damaged(record.at, what))?;
                Ok((has, chunk.damaged(record.at, "")))
            });
            match looked {
                Ok(looked) => seen.push(looked),
                Err(error) if is_skipped(on_error, &error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    let mut records = BTreeMap::<&str, [usize; 3]>::new();
    for (name, (kind, _)) in seen.iter().flat_map(|(has, _)| has) {
        records.entry(name).or_default()[*kind as usize] += 1;
    }
    let kind_of = |name: &str| {
        let records = records[name];
        [Kind::Integer, Kind::Float, Kind::Bytes].into_iter().max_by_key(|&kind| records[kind as usize])
    };
    let is_read = |name: &String| columns.is_none_or(|columns| columns.contains(name));
    let mut chosen = BTreeMap::<&str, (Kind, Length)>::new();
    for (has, place) in &seen {
        let mut read = has.iter().filter(|(name, _)| is_read(name));
        if let Some((name, (kind, _))) = read.find(|(name, (kind, _))| kind_of(name) != Some(*kind)) {
            let what = format!("feature {name:?} is {kind:?}, in most records {:?}", kind_of(name).unwrap_or(*kind));
            match place {
                SourceError::Damaged { path, offset, .. } if on_error == OnError::Raise => {
                    return Err(SourceError::Damaged { path: path.clone(), offset: *offset, what });
                }
                _ => continue,
            }
        }
        for (name, &(kind, length)) in has {
            let of_all = chosen.entry(name).or_insert((kind, length));
            if of_all.1 != length {
                of_all.1 = Length::Ragged;
            }
        }
    }
    if chosen.is_empty() {
        let what = if seen.is_empty() {
            "there is no record; say in features which columns there are"
        } else {
            "no record has a feature"
        };
        return Err(SourceError::Invalid(what.into()));
    }
    let length = |length| if fixed { length } else { Length::Ragged };
    let feature = |(name, (kind, of)): (&str, (Kind, Length))| Feature { name: name.into(), kind, length: length(of) };
    Ok(chosen.into_iter().map(feature).collect())
}

/// The features of a record, but for those that are empty, which are as good as missing.
fn see(record: &[u8]) -> Result<BTreeMap<String, (Kind, Length)>, String> {
    let mut seen = BTreeMap::new();
    features(record, &mut |name, values| {
        let kind = match values {
            Values::None => return Ok(()),
            Values::Bytes(_) => Kind::Bytes,
            Values::Floats(_) => Kind::Float,
            Values::Integers(_) => Kind::Integer,
        };
        let length = match count(values)? {
            0 => return Ok(()),
            1 => Length::One,
            count => Length::Fixed(count),
        };
        seen.insert(name.to_owned(), (kind, length));
        Ok(())
    })?;
    Ok(seen)
}

/// The values of one column so far.
enum Column {
    Bytes(BinaryBuilder, usize),
    Floats(Vec<f32>),
    Integers(Vec<i64>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(_, length) => *length,
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
        }
    }

    /// In place of values that are missing.
    fn fill(&mut self, count: usize) {
        match self {
            Self::Bytes(values, length) => {
                (0..count).for_each(|_| values.append_value([]));
                *length += count;
            }
            Self::Floats(values) => values.resize(values.len() + count, 0.0),
            Self::Integers(values) => values.resize(values.len() + count, 0),
        }
    }

    fn append(&mut self, values: Values<'_>) -> Result<(), String> {
        match (self, values) {
            (_, Values::None) => Ok(()),
            (Self::Bytes(into, length), Values::Bytes(list)) => {
                *length += strings(list, &mut |value| into.append_value(value))?;
                Ok(())
            }
            (Self::Floats(into), Values::Floats(list)) => floats(list, into).map(drop),
            (Self::Integers(into), Values::Integers(list)) => integers(list, &mut |value| into.push(value)).map(drop),
            _ => Err("has values of another kind than in other records".into()),
        }
    }

    fn finish(self, nulls: Option<NullBuffer>) -> ArrayRef {
        match self {
            Self::Bytes(mut values, _) => {
                let (offsets, values, _) = values.finish().into_parts();
                Arc::new(arrow::array::BinaryArray::new(offsets, values, nulls))
            }
            Self::Floats(values) => Arc::new(Float32Array::new(values.into(), nulls)),
            Self::Integers(values) => Arc::new(Int64Array::new(values.into(), nulls)),
        }
    }
}

/// Fills columns with examples.
pub(super) struct Builder<'a> {
    features: &'a [Feature],
    columns: Vec<Column>,
    /// Of each column, where each row's values end.
    ends: Vec<Vec<i32>>,
    nulls: Vec<NullBufferBuilder>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(features: &'a [Feature]) -> Self {
        let column = |feature: &Feature| match feature.kind {
            Kind::Bytes => Column::Bytes(BinaryBuilder::new(), 0),
            Kind::Float => Column::Floats(Vec::new()),
            Kind::Integer => Column::Integers(Vec::new()),
        };
        Self {
            features,
            columns: features.iter().map(column).collect(),
            ends: vec![vec![0]; features.len()],
            nulls: features.iter().map(|_| NullBufferBuilder::new(0)).collect(),
        }
    }

    /// Adds a record as a row. One that does not fit leaves no trace.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), String> {
        let mut found = vec![Values::None; self.features.len()];
        features(record, &mut |name, values| {
            if let Some(at) = self.features.iter().position(|feature| feature.name == name) {
                found[at] = values;
            }
            Ok(())
        })?;
        self.check(&found)?;
        for (at, values) in found.into_iter().enumerate() {
            let before = self.columns[at].len();
            self.columns[at].append(values)?;
            let missing = self.columns[at].len() == before;
            if missing {
                self.columns[at].fill(match self.features[at].length {
                    Length::One => 1,
                    Length::Fixed(length) => length,
                    Length::Ragged => 0,
                });
            }
            self.nulls[at].append(!missing);
            let end = i32::try_from(self.columns[at].len()).map_err(|_| "this many values do not fit one batch")?;
            self.ends[at].push(end);
        }
        Ok(())
    }

    /// Whether all values are of the right kind, and as many as expected: nothing is added before that is known.
    fn check(&self, found: &[Values<'_>]) -> Result<(), String> {
        for (feature, &values) in self.features.iter().zip(found) {
            let name = &feature.name;
            let right = match (feature.kind, values) {
                (_, Values::None) => continue,
                (Kind::Bytes, Values::Bytes(_)) | (Kind::Float, Values::Floats(_)) => true,
                (kind, values) => kind == Kind::Integer && matches!(values, Values::Integers(_)),
            };
            if !right {
                return Err(format!("feature {name:?} has values of another kind than in other records"));
            }
            let count = count(values).map_err(|what| format!("feature {name:?} {what}"))?;
            let expected = match feature.length {
                Length::One => 1,
                Length::Fixed(length) => length,
                Length::Ragged => continue,
            };
            if count != expected && count != 0 {
                return Err(format!(
                    "feature {name:?} has {count} values, where the others have {expected}; say in features what it has, \
                     or read all as lists with lists=\"ragged\""
                ));
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Vec<ArrayRef> {
        let parts = self.columns.into_iter().zip(self.ends).zip(self.nulls);
        let finished = parts.zip(self.features).map(|(((column, ends), mut nulls), feature)| {
            let nulls = nulls.finish();
            let rows = ends.len() - 1;
            match feature.field().data_type() {
                DataType::FixedSizeList(item, length) => {
                    let values = column.finish(None);
                    let list = FixedSizeListArray::try_new_with_length(item.clone(), *length, values, nulls, rows);
                    list.map(|list| Arc::new(list) as ArrayRef)
                }
                DataType::List(item) => {
                    let offsets = OffsetBuffer::new(ends.into());
                    ListArray::try_new(item.clone(), offsets, column.finish(None), nulls)
                        .map(|list| Arc::new(list) as ArrayRef)
                }
                _ => Ok(column.finish(nulls)),
            }
        });
        finished.map(|array| array.expect("as many values as rows were appended")).collect()
    }
}
