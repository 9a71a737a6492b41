//! The columns of the features.

use super::categories::MixedColumns;
use super::columns::FIRST_FEATURE;
use super::compressed::CompressedColumn;
use super::sparse::SparseColumns;
use model::Coding;
use pg::tuples::row::Row;
use pg::values::number::NumberType;
use pg::values::vector::VectorReader;
use std::borrow::Cow;

/// Numbers that take long to be made into `real`s.
const CONVERTED: [NumberType; 3] = [NumberType::Numeric, NumberType::Money, NumberType::Interval];

pub enum FeatureColumns {
    /// one column with arrays or other vectors of numbers, all of the same length, which is `dim` once it is known
    Array {
        reader: VectorReader,
        dim: Option<usize>,
        name: String,
    },
    /// one column of numbers per feature
    Columns {
        types: Vec<NumberType>,
        names: Vec<String>,
    },
    /// columns of numbers, vectors, categories and bags of words
    Mixed(Box<MixedColumns>),
    /// a column of indices and a column of values, or one of sparse vectors
    Sparse(SparseColumns),
    Compressed(Box<CompressedColumn>),
}

impl FeatureColumns {
    /// How the values of the columns that are no numbers become features; None if there is no such column.
    pub fn categories(&self) -> Option<Vec<(String, Coding)>> {
        match self {
            FeatureColumns::Mixed(columns) => Some(columns.categories()),
            _ => None,
        }
    }

    /// What the numbers of a row are called, if features are columns.
    pub fn number_names(&self) -> Option<Vec<Cow<'_, str>>> {
        match self {
            FeatureColumns::Columns { names, .. } => Some(names.iter().map(|name| Cow::from(name.as_str())).collect()),
            FeatureColumns::Mixed(columns) => Some(columns.number_names().collect()),
            _ => None,
        }
    }

    /// The columns of numbers, and which of a row's numbers each is, if features are columns.
    pub fn number_columns(&self) -> Option<Vec<(&str, u32)>> {
        match self {
            FeatureColumns::Columns { names, .. } => Some(names.iter().map(String::as_str).zip(0..).collect()),
            FeatureColumns::Mixed(columns) => Some(columns.number_columns().collect()),
            _ => None,
        }
    }

    pub fn are_columns(&self) -> bool {
        matches!(self, FeatureColumns::Columns { .. } | FeatureColumns::Mixed(_))
    }

    /// Of numbers by feature of the model, those that are imputed, in their sequence.
    pub fn by_position(&self, features: &[f32]) -> Vec<f32> {
        match self {
            FeatureColumns::Mixed(columns) => columns.by_position(features),
            _ => features.to_vec(),
        }
    }

    /// What sparse tuples call dimension 0; None unless they are sparse.
    pub fn index_base(&self) -> Option<u32> {
        match self {
            FeatureColumns::Sparse(columns) => Some(columns.base() as u32),
            _ => None,
        }
    }

    /// Values in a dense row, once known: in a preparation pass, columns of categories leave rows of numbers.
    pub fn dense_dim(&self) -> Option<usize> {
        match self {
            FeatureColumns::Array { dim, .. } => *dim,
            FeatureColumns::Columns { types, .. } => Some(types.len()),
            FeatureColumns::Mixed(columns) => columns.has_lengths().then(|| columns.numbers()),
            FeatureColumns::Sparse(_) | FeatureColumns::Compressed(_) => None,
        }
    }

    /// Are they of types that take long to be made into `real`s?
    pub fn convert(&self) -> bool {
        match self {
            FeatureColumns::Array { reader, .. } => reader.converts(),
            FeatureColumns::Columns { types, .. } => types.iter().any(|number| CONVERTED.contains(number)),
            FeatureColumns::Mixed(_) | FeatureColumns::Compressed(_) => true,
            FeatureColumns::Sparse(columns) => columns.convert(),
        }
    }

    /// May number `i` of a dense row lose digits when it becomes a `real`, if it has magnitude `mean`? Integers of up
    /// to 24 bits do not.
    pub fn may_be_rounded(&self, i: usize, mean: f64) -> bool {
        let kind = match self {
            FeatureColumns::Array { reader, .. } => reader.element(),
            FeatureColumns::Columns { types, .. } => Some(types[i]),
            FeatureColumns::Mixed(columns) => columns.number_types().nth(i).flatten(),
            FeatureColumns::Sparse(_) | FeatureColumns::Compressed(_) => None,
        };
        match kind {
            Some(NumberType::Float8 | NumberType::Numeric | NumberType::Money | NumberType::Interval) => true,
            Some(NumberType::Int4 | NumberType::Int8) => mean.abs() >= f64::from(1 << f32::MANTISSA_DIGITS),
            _ => false,
        }
    }

    /// Takes the number of features from a row, if it is not known yet: the length of the first feature vector, or of
    /// the first in each column. True once it is known.
    #[inline]
    pub fn learn_dim(&mut self, row: Row<'_>) -> bool {
        match self {
            FeatureColumns::Array { reader, dim: dim @ None, .. } => {
                *dim = row.get(FIRST_FEATURE).and_then(|array| reader.len(array).ok()).filter(|len| *len > 0);
            }
            FeatureColumns::Mixed(columns) if !columns.has_lengths() => columns.learn_lengths(row, FIRST_FEATURE),
            FeatureColumns::Sparse(columns) => return columns.learn_dim(row),
            _ => {}
        }
        self.dense_dim().is_some()
    }

    /// Does a sparse vector have to say how many features there are, and none has yet?
    #[inline]
    pub fn lack_dim(&self) -> bool {
        matches!(self, FeatureColumns::Sparse(columns) if columns.lack_dim())
    }

    /// Are they an array of indices and one of values?
    pub fn is_pair(&self) -> bool {
        matches!(self, FeatureColumns::Sparse(columns) if columns.is_pair())
    }

    /// Dimensions of sparse rows, as far as they are known before the first row.
    pub fn sparse_dim(&self) -> usize {
        match self {
            FeatureColumns::Mixed(columns) => columns.dim(),
            FeatureColumns::Sparse(columns) => columns.fixed_dim().unwrap_or_default(),
            _ => 0,
        }
    }

    /// The feature of weight `i`, as the user knows it, unless it is a category.
    pub fn number_at(&self, i: usize) -> Option<String> {
        match self {
            FeatureColumns::Mixed(columns) => columns.number_at(i).map(Cow::into_owned),
            FeatureColumns::Sparse(columns) => Some((i as i64 + columns.base()).to_string()),
            _ => Some(self.name(i)),
        }
    }

    /// Feature `i` of a dense row, from 0, as the user knows it.
    pub fn name(&self, i: usize) -> String {
        match self {
            FeatureColumns::Columns { names, .. } => names[i].clone(),
            FeatureColumns::Array { name, .. } => format!("{name}[{}]", i + 1),
            _ => format!("[{}]", i + 1),
        }
    }
}
