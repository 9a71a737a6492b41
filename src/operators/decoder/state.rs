//! What a decoder has found in the rows, for decoders of the same rows in other processes.
//!
//! All of them must tell the learner the same: one that finds the classes by itself would number them by what it meets
//! first.

use super::features::FeatureColumns;
use super::labels::MetClasses;
use super::tuple_decoder::Decoder;
use serde::{Deserialize, Serialize};
use sgd::{Scaler, Standardizer};

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
    classes: Option<MetClasses>,
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
    pub fn state(&self) -> DecoderState {
        DecoderState {
            classes: self.labels.found(),
            dim: match &self.features {
                FeatureColumns::Array { dim, .. } => *dim,
                FeatureColumns::Compressed(column) => column.dim(),
                _ => None,
            },
            categories: self.features.categories().into_iter().flatten().map(|(_, names)| names).collect(),
            observed_dim: self.observed_dim,
            limit: match &self.features {
                FeatureColumns::Sparse(columns) => Some(columns.limit()),
                _ => None,
            },
            standardizer: self.standardizer().cloned(),
            continued: self.continued,
        }
    }

    /// Takes over what was found when a model was trained that is to be trained on: nothing else may come along. False if
    /// the label's column cannot have the model's classes.
    pub fn adopt_model(&mut self, state: &DecoderState) -> bool {
        self.adopt(state);
        self.close_by_model()
    }

    /// Takes over what another decoder of the same rows has found; this one must not have decoded anything.
    pub fn adopt(&mut self, state: &DecoderState) {
        if let Some(classes) = &state.classes {
            self.labels.adopt(classes);
        }
        match &mut self.features {
            FeatureColumns::Array { dim, .. } => *dim = state.dim,
            FeatureColumns::Compressed(column) => column.set_dim(state.dim),
            FeatureColumns::Mixed(columns) => columns.adopt(&state.categories),
            FeatureColumns::Sparse(columns) => state.limit.into_iter().for_each(|limit| columns.set_limit(limit)),
            FeatureColumns::Columns { .. } => {}
        }
        self.observed_dim = state.observed_dim;
        self.scaler = state.standardizer.clone().map(Scaler::new);
        self.preparing = false;
        if state.continued {
            self.close_by_model();
        }
    }

    fn close_by_model(&mut self) -> bool {
        self.continued = true;
        if let FeatureColumns::Mixed(columns) = &mut self.features {
            columns.close_by_model();
        }
        self.labels.close_by_model()
    }
}
