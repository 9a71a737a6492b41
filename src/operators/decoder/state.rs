//! The knowledge that a decoder has gained from the rows, for decoders of the same rows in other processes.
//!
//! All decoders must give the learner the same labels. A decoder that finds the classes by itself numbers them in the
//! order in which it meets them.

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

/// The knowledge that a decoder has gained from the rows.
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
    /// is it that of a model whose training is continued?
    #[serde(default)]
    continued: bool,
}

impl Decoder {
    /// The knowledge gained so far. If a preparation pass is needed, it must be over.
    pub fn state(&self) -> DecoderState {
        DecoderState {
            classes: self.labels.met_classes(),
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

    /// Takes over the knowledge of a model whose training is continued: no other classes and categories may come. False
    /// if the label's column cannot have the model's classes.
    pub fn adopt_model(&mut self, state: &DecoderState) -> bool {
        self.adopt(state);
        self.close_by_model()
    }

    /// Takes over the knowledge of another decoder of the same rows. This one must not have decoded anything.
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
