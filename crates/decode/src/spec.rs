//! The specification of a decoder: which columns are read, and what they mean.

use super::bag::Bag;
use super::categories::MixedColumns;
use super::columns::{FEATURE_TYPES, FIRST_FEATURE, column, column_type, is_category, no_feature};
use super::compressed::CompressedColumn;
use super::features::FeatureColumns;
use super::hashed::HashRule;
use super::imputation::Imputation;
use super::labels::Labels;
use super::row_groups::RowGroups;
use super::sparse::SparseColumns;
use super::transformed::Transformed;
use super::tuple_decoder::Decoder;
use super::weight::Weight;
use crate::compressed_type::is_compressed;
use errors::limits::MAX_WEIGHTS;
use errors::{Result, SourceError, TrainingError};
use loss::{ModelKind, Standardizer};
use model::{Buckets, Coding};
use options::request::Request;
use options::row_groups::RowGroupSpec;
use options::rows::{ClassWeight, Hashing, Nulls, Transform, Unseen};
use pg::catalog::types::base_type;
use pg::executor::query::Column;
use pg::values::array::{AnyArray, ArrayReader};
use pg::values::bag::BagKind;
use pg::values::date_part::TimeType;
use pg::values::number::NumberType;
use pg::values::sparse::is_index_array;
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::vector::VectorReader;
use pgrx::pg_sys::Oid;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// How rows become tuples. Made by [`DecoderSpec::new`] for rows to learn from;
/// a model adds what it [knows](ModelSchema), which stays in this process.
#[derive(Clone, Serialize, Deserialize)]
pub struct DecoderSpec {
    pub kind: ModelKind,
    /// the label's column
    pub label: String,
    /// columns of features: one of vectors, two of arrays (indices and values), or any number of numbers and categories
    pub features: Vec<String>,
    /// the column of the rows' weights
    pub weight: Option<String>,
    pub class_weight: Option<ClassWeight>,
    pub nulls: Nulls,
    /// what sparse tuples call dimension 0
    pub index_base: u32,
    /// dimensions of sparse tuples, if there may be no others
    pub dimensions: Option<usize>,
    /// which columns of text are hashed, if it was said
    pub hash: Option<Hashing>,
    /// which numbers are taken by their logarithms, if it was said
    pub transform: Option<Transform>,
    /// at how many deviations standardized features are cut off, if they are
    pub clip: Option<f32>,
    /// the groups that rows fall into, and what is held out
    pub row_groups: RowGroupSpec,
    /// what a model knows of labels and features; without a model, it is found in the rows
    #[serde(skip)]
    pub known: Option<Rc<ModelSchema>>,
}

/// What a model knows of labels and features.
pub struct ModelSchema {
    /// ascending; empty for a model without classes
    pub classes: Vec<String>,
    /// features, or dimensions
    pub dim: usize,
    /// of the columns that have some, in the sequence of their dimensions
    pub categories: Vec<(String, Coding)>,
    pub unseen: Unseen,
    pub standardizer: Option<Standardizer>,
    /// by feature, what stands for NULLs
    pub fill: Option<Vec<f32>>,
}

const DATES: &str = "Use parts of the date as features: options => '{\"date_parts\": true}', or name them, such as \
     '{created.month,created.dow}'.";
const LABEL_TYPES: &str = "A label must be an integer, a number, a boolean, text or an enum.";
const LABEL_ARRAYS: &str = "Compressed mini-batches need a label column of arrays.";
const TARGET_TYPES: &str = "The model predicts a number: its label must be a column of numbers or booleans. For classes, use model => \
     'logistic', 'softmax' or 'mlp'.";
const WEIGHT_TYPES: &str = "A weight must be a number.";
const INDEX_TYPES: &str =
    "Of two arrays, the first must contain integers, the indices, and the second numbers, the values.";
const ALONE: &str = "A column of sparse vectors must be the only feature: name no other column, or cast it to vector in a \
                     query as source.";

impl DecoderSpec {
    /// Rows with nothing unusual about them, to learn a model of this kind from.
    pub fn new(kind: ModelKind, label: &str, features: &[String]) -> DecoderSpec {
        DecoderSpec {
            kind,
            label: label.to_owned(),
            features: features.to_vec(),
            weight: None,
            class_weight: None,
            nulls: Nulls::Error,
            index_base: 1,
            dimensions: None,
            hash: None,
            transform: None,
            clip: None,
            row_groups: RowGroupSpec::default(),
            known: None,
        }
    }

    /// The rows of a training, with these features.
    pub fn of_request(request: &Request, features: &[String]) -> DecoderSpec {
        let options = &request.options;
        DecoderSpec {
            weight: options.weight.clone(),
            class_weight: options.class_weight.clone(),
            nulls: options.nulls(),
            index_base: options.index_base.unwrap_or(1),
            dimensions: options.dimensions,
            hash: options.hash.clone(),
            transform: options.transform.clone(),
            clip: options.clip(request.kind).deviations(),
            row_groups: request.row_groups.clone(),
            ..DecoderSpec::new(request.kind, &request.label, features)
        }
    }

    /// The names of the columns in the sequence in which the decoder expects them.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let features = self.features.iter().map(String::as_str);
        std::iter::once(self.label.as_str())
            .chain(features)
            .chain(self.weight.as_deref())
            .chain(self.row_groups.columns())
    }

    /// A decoder of rows with [`columns`](DecoderSpec::columns) out of `columns`.
    pub fn decoder(&self, columns: &[Column]) -> Result<Decoder> {
        let features = self.features(columns)?;
        let labels = match &features {
            FeatureColumns::Compressed(_) => self.labels_of(&elements_of(column(columns, &self.label)?)?)?,
            _ => self.labels_of(column(columns, &self.label)?)?,
        };
        if let FeatureColumns::Compressed(_) = features {
            self.check_compressed()?;
        }
        let weight = self.weight.as_ref().map(|name| self.weight(column(columns, name)?)).transpose()?;
        let before = self.features.len() + usize::from(weight.is_some());
        let row_groups = Some(&self.row_groups).filter(|spec| !spec.is_empty());
        // an SVM may turn out to be one of many classes
        let many_classes = self.kind.has_class_numbers() || self.kind.one_vs_rest().is_some();
        let for_folds = (many_classes, !matches!(features, FeatureColumns::Compressed(_)));
        let row_groups =
            row_groups.map(|spec| RowGroups::new(spec, columns, before, for_folds).map(Box::new)).transpose()?;
        let standardizer = self.known.as_ref().and_then(|known| known.standardizer.clone());
        let imputation = self.imputation(columns, &features)?;
        let transformed = Transformed::new(self.transform.as_ref(), &features)?;
        let scaling = (standardizer, self.clip);
        let mut decoder = Decoder::new(labels, features, weight, (self.nulls, imputation), scaling, row_groups);
        // what a model is compared with weighs what the rows say
        decoder.preparing |= self.known.is_none() && decoder.has_weights();
        let decoder = decoder.with_transformed(transformed);
        Ok(if self.known.is_some() { decoder.with_exact_targets() } else { decoder })
    }

    /// What stands for NULLs. Sparse features have nothing that does: what they do not say is 0.
    fn imputation(&self, columns: &[Column], features: &FeatureColumns) -> Result<Option<Imputation>> {
        if self.nulls != Nulls::Impute || matches!(features, FeatureColumns::Sparse(_) | FeatureColumns::Compressed(_))
        {
            return Ok(None);
        }
        if let Some(known) = &self.known {
            return Ok(Some(Imputation::known(known.fill.as_ref().map(|fill| features.by_position(fill)))));
        }
        // an array that is not NULL may have elements that are
        let may_have_nulls = |column: &&Column| column.may_be_null || ArrayReader::new(column.type_oid).is_some();
        let columns = self.features.iter().map(|name| column(columns, name)).collect::<Result<Vec<_>>>()?;
        let is_array = matches!(features, FeatureColumns::Array { .. });
        Ok(Some(Imputation::to_be_found(is_array || columns.iter().any(may_have_nulls))))
    }

    /// Looks whether compressed mini-batches will do for this.
    fn check_compressed(&self) -> Result<()> {
        if self.weight.is_some() {
            return Err(TrainingError::NotOnCompressed("the option weight").into());
        }
        if self.clip.is_some() && self.known.as_ref().is_some_and(|known| known.standardizer.is_some()) {
            return Err(TrainingError::NotOnCompressed("a model with clipped features (option winsorize)").into());
        }
        match self.row_groups.columns().next() {
            Some(_) => Err(TrainingError::NotOnCompressed(
                "group_by, like the options validation_column, folds_by and folds_by_time,",
            )
            .into()),
            None => Ok(()),
        }
    }

    fn labels_of(&self, label: &Column) -> Result<Labels> {
        let base = base_type(label.type_oid);
        match (NumberType::from_oid(base), &self.known) {
            (Some(number), _) if !self.kind.is_classifier() => Ok(Labels::targets(&label.name, number, self.kind)),
            _ if !self.kind.is_classifier() => Err(column_type("label", label, TARGET_TYPES)),
            (None, _) if !is_category(base) => Err(column_type("label", label, LABEL_TYPES)),
            (_, Some(known)) => Labels::known(label, self.kind, &known.classes),
            (_, None) => Labels::discover(label, self.kind, self.class_weight.as_ref()),
        }
    }

    fn weight(&self, weight: &Column) -> Result<Weight> {
        let number = NumberType::from_oid(base_type(weight.type_oid)).filter(|number| *number != NumberType::Bool);
        let number = number.ok_or_else(|| column_type("weight", weight, WEIGHT_TYPES))?;
        Ok(Weight { number, place: FIRST_FEATURE + self.features.len() })
    }

    fn features(&self, columns_of_source: &[Column]) -> Result<FeatureColumns> {
        let columns = self.features.iter().map(|name| column(columns_of_source, name)).collect::<Result<Vec<_>>>()?;
        let is_array = |column: &&&Column| ArrayReader::new(column.type_oid).is_some();
        match columns.as_slice() {
            [] => Err(SourceError::NoFeatures { hint: FEATURE_TYPES.into() }.into()),
            [only] if is_compressed(base_type(only.type_oid)) => {
                let label = column(columns_of_source, &self.label)?;
                let labels = AnyArray::new(label.type_oid);
                let labels = labels.ok_or_else(|| column_type("label", label, LABEL_ARRAYS))?;
                let dim = self.known_dim();
                Ok(FeatureColumns::Compressed(Box::new(CompressedColumn::new(&only.name, dim, &label.name, labels))))
            }
            [only] if is_vector(only.type_oid) => {
                let vectors = self.vectors(only);
                vectors.ok_or(SourceError::NoFeatures { hint: FEATURE_TYPES.into() }.into())
            }
            [indices, values] if is_array(&indices) && is_array(&values) && self.are_pair(indices, values) => {
                if !is_index_array(indices.type_oid) {
                    return Err(column_type("index", indices, INDEX_TYPES));
                }
                let dim = self.known_dim().or(self.dimensions);
                let unseen = self.known.as_ref().map(|known| known.unseen);
                let sparse = SparseColumns::new([indices, values], self.index_base, dim, MAX_WEIGHTS, unseen);
                sparse.map(FeatureColumns::Sparse).ok_or_else(|| column_type("index", indices, INDEX_TYPES))
            }
            columns => self.feature_columns(columns),
        }
    }

    /// Are two columns of arrays indices and values, and not two vectors?
    fn are_pair(&self, indices: &Column, values: &Column) -> bool {
        let of_model = self.known.as_ref().map(|known| known.categories.is_empty());
        of_model.unwrap_or(is_index_array(indices.type_oid) || is_index_array(values.type_oid))
    }

    fn known_dim(&self) -> Option<usize> {
        self.known.as_ref().map(|known| known.dim)
    }

    /// The only column, if it is one of vectors.
    fn vectors(&self, column: &Column) -> Option<FeatureColumns> {
        let (dim, name) = (self.known_dim(), column.name.clone());
        let sparse = || SparseVectorReader::new(column.type_oid);
        match VectorReader::new(column.type_oid) {
            Some(reader) => Some(FeatureColumns::Array { reader, dim, name }),
            None => sparse().map(|reader| FeatureColumns::Sparse(SparseColumns::of_vectors(reader, name, dim))),
        }
    }

    fn feature_columns(&self, columns: &[&Column]) -> Result<FeatureColumns> {
        let number = |column: &Column| NumberType::from_oid(base_type(column.type_oid));
        let known = self.known.as_ref().map(|known| (known.categories.as_slice(), known.unseen));
        for column in columns {
            let base = base_type(column.type_oid);
            let coding =
                known.map(|(known, _)| known.iter().find(|(name, _)| *name == column.name).map(|(_, coding)| coding));
            let bag = Bag::of_column(column).map(|bag| bag.kind());
            let is_vector = VectorReader::new(column.type_oid).is_some();
            let hint = match coding {
                None | Some(None) if number(column).is_some() => continue,
                None if is_category(base) || is_vector || bag.is_some() => continue,
                Some(Some(Coding::OneHot(_) | Coding::Hashed(Buckets { of: None, .. }))) if is_category(base) => {
                    continue;
                }
                Some(Some(Coding::Hashed(Buckets { of, .. }))) if of.is_some() && *of == bag => continue,
                Some(Some(Coding::Vector(_))) if is_vector => continue,
                None if TimeType::from_oid(base).is_some() => DATES,
                None if SparseVectorReader::new(column.type_oid).is_some() => ALONE,
                None => return Err(no_feature(column)),
                Some(None) => "The model was trained on numbers in this column.",
                Some(Some(coding)) => trained_on(coding),
            };
            return Err(column_type("feature", column, hint));
        }
        if let Some(types) = columns.iter().map(|c| number(c)).collect() {
            return Ok(FeatureColumns::Columns { types, names: self.features.to_vec() });
        }
        let columns: Vec<_> = columns.iter().map(|column| (*column, number(column))).collect();
        let automatic = Hashing::default();
        let rule = HashRule { kind: self.kind, hashing: self.hash.as_ref().unwrap_or(&automatic) };
        Ok(FeatureColumns::Mixed(Box::new(MixedColumns::new(&columns, known, rule))))
    }
}

/// What a model was trained on in a column.
fn trained_on(coding: &Coding) -> &'static str {
    match coding {
        Coding::OneHot(_) | Coding::Hashed(Buckets { of: None, .. }) => {
            "The model was trained on categories in this column."
        }
        Coding::Hashed(Buckets { of: Some(BagKind::Lexemes), .. }) => {
            "The model was trained on a tsvector in this column."
        }
        Coding::Hashed(Buckets { of: Some(BagKind::Elements), .. }) => {
            "The model was trained on arrays of text in this column."
        }
        Coding::Vector(_) => "The model was trained on vectors in this column.",
    }
}

/// Is it the type of a column of which each value has all features of a row?
pub fn is_vector(type_oid: Oid) -> bool {
    VectorReader::new(type_oid).is_some() || SparseVectorReader::new(type_oid).is_some()
}

/// The column as if it had what the arrays in it have.
fn elements_of(column: &Column) -> Result<Column> {
    let elements = AnyArray::new(column.type_oid);
    let type_oid = elements.ok_or_else(|| column_type("label", column, LABEL_ARRAYS))?.element();
    Ok(Column { type_oid, ..column.clone() })
}

/// A [`DecoderSpec`] and the columns of the source, for another process.
#[derive(Serialize, Deserialize)]
pub struct OwnedSpec {
    pub spec: DecoderSpec,
    pub columns: Vec<Column>,
}

impl OwnedSpec {
    /// The specification of a decoder of rows with these columns, without what a model knows.
    pub fn new(spec: &DecoderSpec, columns: &[Column]) -> OwnedSpec {
        OwnedSpec { spec: DecoderSpec { known: None, ..spec.clone() }, columns: columns.to_vec() }
    }

    /// Has another server written what the options can be?
    pub fn is_sound(&self) -> bool {
        let DecoderSpec { row_groups, dimensions, hash, .. } = &self.spec;
        let buckets = hash.as_ref().and_then(|hash| hash.buckets);
        row_groups.is_sound()
            && dimensions.is_none_or(|dimensions| dimensions <= MAX_WEIGHTS)
            && buckets.is_none_or(|buckets| (1..=MAX_WEIGHTS).contains(&(buckets as usize)))
    }

    pub fn decoder(&self) -> Result<Decoder> {
        self.spec.decoder(&self.columns)
    }
}
