//! The features of a model: its columns, and which weight belongs to which value.

use errors::limits::MAX_WEIGHTS;
use loss::LogTransform;
use options::rows::Transform;
use pg::values::bag::BagKind;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use sgd::profile::{FeatureShape, Profile};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureKind {
    /// the elements of one column of arrays or vectors
    Array,
    /// columns, each a number or a category; their weights follow each other in the order of the columns, and behind
    /// them are those of the buckets that all hashed columns share
    Columns(Vec<ColumnKind>),
    /// two array columns: indices, of which `index_base` is the smallest, and values; or one column of sparse vectors
    Sparse { index_base: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// a number or a boolean: one weight
    Number,
    /// a vector of this many numbers: a weight for each
    Vector(usize),
    /// a weight for each category, of which one is 1 and all others are 0
    Categories(Categories),
    /// a weight for each of these buckets, as many as all hashed columns of the model have together
    Hashed(Buckets),
}

impl FeatureKind {
    /// Its name in corgipile.models.
    pub fn name(&self) -> &'static str {
        match self {
            FeatureKind::Array => "array",
            FeatureKind::Columns(_) => "columns",
            FeatureKind::Sparse { .. } => "sparse",
        }
    }

    /// Reads the columns of corgipile.models: feature_kind, the names of the feature columns,
    /// categories and index_base.
    pub fn read(
        kind: &str,
        features: &[String],
        categories: Option<&BTreeMap<String, Coding>>,
        index_base: Option<i32>,
    ) -> Option<Self> {
        match (kind, features.len(), index_base) {
            ("array", 1, None) if categories.is_none() => Some(FeatureKind::Array),
            // a sparse vector that is one value has indices from 1
            ("sparse", 1, Some(1)) | ("sparse", 2, Some(0..=1)) if categories.is_none() => {
                index_base.map(|base| FeatureKind::Sparse { index_base: base as u32 })
            }
            ("columns", 1.., None) => columns(features, categories).map(FeatureKind::Columns),
            _ => None,
        }
    }

    /// The number of features, if it follows from the columns alone.
    pub fn dim(&self) -> Option<usize> {
        match self {
            FeatureKind::Columns(columns) => {
                Some(columns.iter().map(ColumnKind::width).sum::<usize>() + self.buckets())
            }
            FeatureKind::Array | FeatureKind::Sparse { .. } => None,
        }
    }

    /// The smallest index of sparse features, if they are.
    pub fn index_base(&self) -> Option<u32> {
        match self {
            FeatureKind::Sparse { index_base } => Some(*index_base),
            FeatureKind::Array | FeatureKind::Columns(_) => None,
        }
    }

    /// Features behind all others that hashed columns share.
    pub fn buckets(&self) -> usize {
        let FeatureKind::Columns(columns) = self else { return 0 };
        let buckets =
            |column: &ColumnKind| if let ColumnKind::Hashed(hashed) = column { Some(hashed.buckets) } else { None };
        columns.iter().find_map(buckets).unwrap_or_default() as usize
    }

    /// Which of the features are taken by their logarithms, if any are. The error is that there are no such columns.
    pub fn logs(&self, features: &[String], transform: &Transform) -> Result<Option<LogTransform>, ()> {
        let is_chosen = |name: &String| match transform {
            Transform::These(columns) => columns.contains(name),
            _ => true,
        };
        let has_numbers = |column: &ColumnKind| match column {
            ColumnKind::Number => true,
            // only columns of numbers are named
            ColumnKind::Vector(_) => !matches!(transform, Transform::These(_)),
            ColumnKind::Categories(_) | ColumnKind::Hashed(_) => false,
        };
        match (self, transform) {
            (_, Transform::Automatic | Transform::None) => Ok(None),
            (FeatureKind::Columns(columns), _) => {
                let mut first = 0;
                let mut chosen = Vec::new();
                for (name, column) in features.iter().zip(columns) {
                    let places = first..first + column.width() as u32;
                    first = places.end;
                    if has_numbers(column) && is_chosen(name) {
                        chosen.extend(places);
                    }
                }
                let is_known = |columns: &Vec<String>| columns.len() == chosen.len();
                let fits = if let Transform::These(columns) = transform { is_known(columns) } else { true };
                fits.then_some(Some(LogTransform::Features(chosen))).ok_or(())
            }
            (_, Transform::Log) => Ok(Some(LogTransform::All)),
            (_, Transform::These(_)) => Err(()),
        }
    }

    pub fn has_categories(&self) -> bool {
        let has_numbers = |column: &ColumnKind| matches!(column, ColumnKind::Number | ColumnKind::Vector(_));
        match self {
            FeatureKind::Columns(columns) => !columns.iter().all(has_numbers),
            FeatureKind::Array | FeatureKind::Sparse { .. } => false,
        }
    }

    #[inline]
    pub fn has_vectors_or_words(&self) -> bool {
        let is_one = |column: &ColumnKind| {
            matches!(column, ColumnKind::Vector(_) | ColumnKind::Hashed(Buckets { of: Some(_), .. }))
        };
        matches!(self, FeatureKind::Columns(columns) if columns.iter().any(is_one))
    }

    /// The weights of each column of categories, of which a row has one feature that is 1.
    pub fn one_hot_places(&self) -> Vec<Range<usize>> {
        let FeatureKind::Columns(columns) = self else { return Vec::new() };
        let mut first = 0;
        let mut places = Vec::new();
        for column in columns {
            if matches!(column, ColumnKind::Categories(_)) {
                places.push(first..first + column.width());
            }
            first += column.width();
        }
        places
    }

    /// The columns of categories, and of vectors, among `features`.
    pub fn columns_of_categories(&self, features: &[String]) -> Vec<(String, Coding)> {
        let FeatureKind::Columns(columns) = self else { return Vec::new() };
        let of_column = |(name, column): (&String, &ColumnKind)| match column {
            ColumnKind::Number => None,
            ColumnKind::Vector(len) => Some((name.clone(), Coding::Vector(Elements { elements: *len }))),
            ColumnKind::Categories(categories) => Some((name.clone(), Coding::OneHot(categories.names.clone()))),
            ColumnKind::Hashed(buckets) => Some((name.clone(), Coding::Hashed(*buckets))),
        };
        features.iter().zip(columns).filter_map(of_column).collect()
    }

    /// The categories of the columns `features`, as corgipile.models has them; None without any.
    pub fn categories(&self, features: &[String]) -> Option<BTreeMap<String, Coding>> {
        Some(self.columns_of_categories(features).into_iter().collect())
            .filter(|named: &BTreeMap<_, _>| !named.is_empty())
    }

    /// What the features are for a profile, this many; None if none is kept of them.
    pub fn shapes(&self, dim: usize) -> Option<Vec<FeatureShape>> {
        let shapes = |column: &ColumnKind| match column {
            ColumnKind::Number => vec![FeatureShape::Number],
            ColumnKind::Vector(len) => vec![FeatureShape::Number; *len],
            ColumnKind::Categories(categories) => vec![FeatureShape::Categories(categories.names.len())],
            ColumnKind::Hashed(_) => vec![FeatureShape::Hashed],
        };
        let count = |column: &ColumnKind| if let ColumnKind::Vector(len) = column { *len } else { 1 };
        match self {
            FeatureKind::Columns(columns) if columns.iter().map(count).sum::<usize>() <= Profile::MAX_FEATURES => {
                Some(columns.iter().flat_map(shapes).collect())
            }
            FeatureKind::Array if dim <= Profile::MAX_FEATURES => Some(vec![FeatureShape::Number; dim]),
            _ => None,
        }
    }

    /// Bytes of memory, roughly.
    pub fn bytes(&self) -> usize {
        let FeatureKind::Columns(columns) = self else { return 0 };
        columns.iter().map(ColumnKind::bytes).sum()
    }
}

impl ColumnKind {
    /// Has it what a column has of which values become features so? None is a column of numbers. How many features it
    /// has does not matter.
    pub fn is_like(&self, coding: Option<&Coding>) -> bool {
        match (self, coding) {
            (ColumnKind::Number, None) | (ColumnKind::Vector(_), Some(Coding::Vector(_))) => true,
            (ColumnKind::Hashed(Buckets { of: Some(own), .. }), coding) => {
                matches!(coding, Some(Coding::Hashed(Buckets { of: Some(of), .. })) if of == own)
            }
            (ColumnKind::Categories(_) | ColumnKind::Hashed(_), Some(coding)) => {
                matches!(coding, Coding::OneHot(_) | Coding::Hashed(Buckets { of: None, .. }))
            }
            _ => false,
        }
    }

    /// The number of weights that are the column's own.
    pub fn width(&self) -> usize {
        match self {
            ColumnKind::Number => 1,
            ColumnKind::Vector(len) => *len,
            ColumnKind::Categories(categories) => categories.names.len(),
            ColumnKind::Hashed(_) => 0,
        }
    }

    fn bytes(&self) -> usize {
        const PER_VALUE: usize = size_of::<String>() + 16 + size_of::<u32>(); // 16: the least that malloc gives
        match self {
            ColumnKind::Number | ColumnKind::Vector(_) | ColumnKind::Hashed(_) => size_of::<ColumnKind>(),
            ColumnKind::Categories(Categories { names, .. }) => {
                size_of::<ColumnKind>() + names.values.iter().map(|v| v.len() + PER_VALUE).sum::<usize>()
            }
        }
    }
}

/// The columns' kinds, of which those of categories are these; None if that does not fit.
fn columns(features: &[String], categories: Option<&BTreeMap<String, Coding>>) -> Option<Vec<ColumnKind>> {
    if !categories.into_iter().flatten().all(|(column, _)| features.contains(column)) {
        return None;
    }
    let kind = |name: &String| match categories.and_then(|categories| categories.get(name)) {
        None => Some(ColumnKind::Number),
        Some(Coding::OneHot(names)) => Categories::new(names.clone()).map(ColumnKind::Categories),
        Some(Coding::Hashed(buckets)) => buckets.checked().map(ColumnKind::Hashed),
        Some(Coding::Vector(vector)) => vector.checked().map(ColumnKind::Vector),
    };
    let columns: Vec<ColumnKind> = features.iter().map(kind).collect::<Option<_>>()?;
    let of_column =
        |column: &ColumnKind| if let ColumnKind::Hashed(hashed) = column { Some(hashed.buckets) } else { None };
    let mut buckets = columns.iter().filter_map(of_column);
    let is_one = buckets.next().is_none_or(|first| buckets.all(|others| others == first));
    is_one.then_some(columns)
}

/// How the values of a column of categories become features. As JSON it is what corgipile.models says of the column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Coding {
    OneHot(CategoryNames),
    Hashed(Buckets),
    /// no categories: a vector of numbers
    Vector(Elements),
}

/// How many features hashed columns share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buckets {
    pub buckets: u32,
    /// what is hashed of a value, if it is not the value as a whole
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<BagKind>,
}

/// How many numbers the vectors of a column have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elements {
    pub elements: usize,
}

/// [`Buckets`] or [`Elements`], as JSON has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EitherCount {
    buckets: Option<u32>,
    of: Option<BagKind>,
    elements: Option<usize>,
}

impl<'de> Deserialize<'de> for Coding {
    /// As derived, but without a copy of the whole, which may be anything.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Coding;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array of strings, {\"buckets\": number} or {\"elements\": number}")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Coding, A::Error> {
                CategoryNames::deserialize(SeqAccessDeserializer::new(elements)).map(Coding::OneHot)
            }

            fn visit_map<A: MapAccess<'de>>(self, keys: A) -> Result<Coding, A::Error> {
                match EitherCount::deserialize(MapAccessDeserializer::new(keys))? {
                    EitherCount { buckets: Some(buckets), of, elements: None } => {
                        Ok(Coding::Hashed(Buckets { buckets, of }))
                    }
                    EitherCount { buckets: None, of: None, elements: Some(elements) } => {
                        Ok(Coding::Vector(Elements { elements }))
                    }
                    _ => Err(A::Error::custom("neither buckets alone nor elements alone")),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// An array of texts, not longer than any that training makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Texts<T>(pub Vec<T>);

/// Elements that an array of texts may have: a column has no more categories.
const MAX_TEXTS: usize = 1_000_000;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Texts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Texts<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "an array of at most {MAX_TEXTS} strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Texts<T>, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = elements.next_element()? {
                    if texts.len() == MAX_TEXTS {
                        return Err(A::Error::invalid_length(texts.len() + 1, &self));
                    }
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

impl Buckets {
    /// The same, if there may be this many.
    fn checked(self) -> Option<Buckets> {
        (1..=MAX_WEIGHTS).contains(&(self.buckets as usize)).then_some(self)
    }
}

impl Elements {
    /// How many, if there may be this many.
    fn checked(self) -> Option<usize> {
        (1..=MAX_WEIGHTS).contains(&self.elements).then_some(self.elements)
    }
}

/// The categories of a column: values as text, in the order of their weights, and behind them perhaps that of NULLs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Texts<Option<String>>", into = "Vec<Option<String>>")]
pub struct CategoryNames {
    pub values: Vec<String>,
    pub has_null: bool,
}

impl CategoryNames {
    pub fn len(&self) -> usize {
        self.values.len() + usize::from(self.has_null)
    }
}

impl TryFrom<Texts<Option<String>>> for CategoryNames {
    type Error = &'static str;

    fn try_from(Texts(mut names): Texts<Option<String>>) -> Result<CategoryNames, &'static str> {
        let has_null = names.pop_if(|last| last.is_none()).is_some();
        let values: Option<Vec<String>> = names.into_iter().collect();
        Ok(CategoryNames { values: values.ok_or("the category of NULLs is the last one")?, has_null })
    }
}

impl From<CategoryNames> for Vec<Option<String>> {
    fn from(names: CategoryNames) -> Vec<Option<String>> {
        let null = names.has_null.then_some(None);
        names.values.into_iter().map(Some).chain(null).collect()
    }
}

/// The categories of a column, to be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Categories {
    names: CategoryNames,
    /// places among the values, in the order of the values' bytes
    sorted: Vec<u32>,
}

impl Categories {
    /// None without any, or one of them twice.
    pub fn new(names: CategoryNames) -> Option<Categories> {
        let values = &names.values;
        let distinct: HashSet<&String> = values.iter().collect();
        if names.len() == 0 || distinct.len() < values.len() {
            return None;
        }
        let mut sorted: Vec<u32> = allocation::collect(0..u32::try_from(values.len()).ok()?);
        sorted.sort_unstable_by(|a, b| values[*a as usize].cmp(&values[*b as usize]));
        Some(Categories { names, sorted })
    }

    /// The categories but that of NULLs, in the order of their weights.
    pub fn values(&self) -> &[String] {
        &self.names.values
    }

    /// The place of the category of NULLs, if there is one.
    pub fn null(&self) -> Option<usize> {
        self.names.has_null.then_some(self.names.values.len())
    }

    /// The category with exactly these bytes.
    pub fn find(&self, value: &[u8]) -> Option<usize> {
        let at = self.sorted.binary_search_by(|i| self.names.values[*i as usize].as_bytes().cmp(value)).ok()?;
        Some(self.sorted[at] as usize)
    }
}
