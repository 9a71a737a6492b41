//! What a decoder has found in the rows, for decoders of the same rows in other processes.
//!
//! All of them must tell the learner the same: one that finds the classes by itself would number them by what it meets
//! first.

use super::features::Features;
use super::labels::FoundClasses;
use super::{ClassWeight, Decoder, DecoderSpec, Nulls};
use crate::errors::Result;
use crate::pg::executor::query::Column;
use serde::{Deserialize, Serialize};
use sgd::{ModelKind, Scaler, Standardizer};

/// A [`DecoderSpec`] without what a model knows, and the columns of the source.
#[derive(Serialize, Deserialize)]
pub struct OwnedSpec {
    kind: ModelKind,
    label: String,
    features: Vec<String>,
    weight: Option<String>,
    class_weight: Option<ClassWeight>,
    nulls: Nulls,
    index_base: u32,
    dimensions: Option<usize>,
    columns: Vec<Column>,
}

impl OwnedSpec {
    /// The specification of a decoder of rows with these columns.
    pub fn new(spec: &DecoderSpec, columns: &[Column]) -> OwnedSpec {
        OwnedSpec {
            kind: spec.kind,
            label: spec.label.to_owned(),
            features: spec.features.to_vec(),
            weight: spec.weight.map(str::to_owned),
            class_weight: spec.class_weight.cloned(),
            nulls: spec.nulls,
            index_base: spec.index_base,
            dimensions: spec.dimensions,
            columns: columns.to_vec(),
        }
    }

    /// The decoder.
    ///
    /// # Errors
    /// As [`DecoderSpec::decoder`].
    pub fn decoder(&self) -> Result<Decoder> {
        let spec = DecoderSpec {
            weight: self.weight.as_deref(),
            class_weight: self.class_weight.as_ref(),
            nulls: self.nulls,
            index_base: self.index_base,
            dimensions: self.dimensions,
            ..DecoderSpec::new(self.kind, &self.label, &self.features)
        };
        spec.decoder(&self.columns)
    }
}

impl DecoderState {
    /// Without means and deviations.
    pub fn without_standardizer(self) -> DecoderState {
        DecoderState { standardizer: None, continued: false, ..self }
    }

    /// With these means and deviations.
    pub fn with_standardizer(self, standardizer: Option<Standardizer>) -> DecoderState {
        DecoderState { standardizer, ..self }
    }
}

/// What was found in the rows.
#[derive(Serialize, Deserialize)]
pub struct DecoderState {
    classes: Option<FoundClasses>,
    /// elements of an array
    dim: Option<usize>,
    /// of columns of categories, in their sequence
    categories: Vec<Vec<String>>,
    /// dimensions of sparse tuples that a preparation pass has met
    #[serde(default)]
    observed_dim: usize,
    /// dimensions that sparse tuples may have
    limit: Option<usize>,
    standardizer: Option<Standardizer>,
    /// was it found when a model was trained that is trained on?
    #[serde(default)]
    continued: bool,
}

impl Decoder {
    /// What was found so far. Whatever needs a preparation pass must have had it.
    pub fn found(&self) -> DecoderState {
        DecoderState {
            classes: self.labels.found(),
            dim: match &self.features {
                Features::Array { dim, .. } => *dim,
                Features::Compressed(column) => column.dim(),
                _ => None,
            },
            categories: self.features.categories().into_iter().flatten().map(|(_, names)| names).collect(),
            observed_dim: self.observed_dim,
            limit: match &self.features {
                Features::Sparse(columns) => Some(columns.limit()),
                _ => None,
            },
            standardizer: self.standardizer().cloned(),
            continued: self.continued,
        }
    }

    /// Takes over what was found when a model was trained that is to be trained on: nothing else may come along. False if
    /// the label's column cannot have the model's classes.
    pub fn adopt_model(&mut self, found: &DecoderState) -> bool {
        self.adopt(found);
        self.close_by_model()
    }

    /// Takes over what another decoder of the same rows has found; this one must not have decoded anything.
    pub fn adopt(&mut self, found: &DecoderState) {
        if let Some(classes) = &found.classes {
            self.labels.adopt(classes);
        }
        match &mut self.features {
            Features::Array { dim, .. } => *dim = found.dim,
            Features::Compressed(column) => column.set_dim(found.dim),
            Features::Mixed(columns) => columns.adopt(&found.categories),
            Features::Sparse(columns) => found.limit.into_iter().for_each(|limit| columns.set_limit(limit)),
            Features::Columns { .. } => {}
        }
        self.observed_dim = found.observed_dim;
        self.scaler = found.standardizer.clone().map(Scaler::new);
        self.preparing = false;
        if found.continued {
            self.close_by_model();
        }
    }

    fn close_by_model(&mut self) -> bool {
        self.continued = true;
        if let Features::Mixed(columns) = &mut self.features {
            columns.close_by_model();
        }
        self.labels.close_by_model()
    }
}
