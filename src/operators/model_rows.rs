//! The rows of a source as a model sees them: its features, as they were prepared in its training, and its label.

use super::buffers::Buffers;
use super::decoder::{Decoder, DecoderSpec, FeatureColumns, ModelSchema};
use super::nulls::{notice_imputed, notice_left_out, notice_unseen};
use super::source::Source;
use crate::errors::{PredictError, Result};
use crate::models::{Coding, ColumnKind, FeatureKind, Model, Policies};
use crate::options::shuffling::Shuffling;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::{Column, Planned, Running};
use crate::pg::snapshot::Snapshot;
use sgd::ModelParameters;

/// How rows are read for a model.
pub struct ModelRows<'a> {
    /// the column of the rows' weights
    pub weight: Option<&'a str>,
    pub shuffling: Shuffling,
    pub policies: Policies,
}

/// Rows that are about to be read for a model.
pub struct PlannedRows {
    pub source: Source,
    pub decoder: Decoder,
    pub planned: Planned,
}

impl PlannedRows {
    /// Begins to read.
    pub fn start(self) -> Buffers {
        let query = Snapshot::with_active(|snapshot| Running::start(self.planned, snapshot, 0, Flags::NONE));
        Buffers::new(query, self.decoder)
    }
}

impl ModelRows<'_> {
    /// Rows with nothing unusual about them, as they come.
    pub fn plain(policies: Policies) -> Self {
        ModelRows { weight: None, shuffling: Shuffling::none(), policies }
    }

    /// Begins to read label and features from `source`, by the names of the columns that the model was trained on.
    /// Targets are as they are, and not scaled.
    ///
    /// # Errors
    /// Whatever can be wrong with the source; [`PredictError::EvaluateTypes`]
    pub fn open(&self, model: &Model, source: &str) -> Result<Buffers> {
        self.plan(model, source).map(PlannedRows::start)
    }

    /// As [`open`](ModelRows::open), but reads nothing yet.
    ///
    /// # Errors
    /// As there.
    pub fn plan(&self, model: &Model, source: &str) -> Result<PlannedRows> {
        let mut source = Source::resolve(source)?;
        source.add_parts(&model.features);
        let decoder = self.decoder(model, source.columns())?;
        let planned = self.with_spec(model, |spec| source.plan(spec, &self.shuffling))?;
        Ok(PlannedRows { source, decoder, planned })
    }

    /// A decoder of rows with label and features out of these columns.
    ///
    /// # Errors
    /// Whatever can be wrong with the columns; [`PredictError::EvaluateTypes`]
    pub fn decoder(&self, model: &Model, columns: &[Column]) -> Result<Decoder> {
        let decoder = self.with_spec(model, |spec| spec.decoder(columns))?;
        check_types(model, decoder.features(), &model.feature_kind.columns_of_categories(&model.features))?;
        Ok(decoder)
    }

    /// Shows `f` what a decoder has to know.
    pub fn with_spec<R>(&self, model: &Model, f: impl FnOnce(&DecoderSpec) -> R) -> R {
        let categories = model.feature_kind.columns_of_categories(&model.features);
        let standardizer = model.to_standardizer();
        let known = ModelSchema {
            classes: &model.classes,
            dim: model.dim(),
            categories: &categories,
            unseen: self.policies.unseen,
            standardizer: standardizer.as_ref(),
            fill: model.fill(),
        };
        f(&DecoderSpec {
            weight: self.weight,
            nulls: self.policies.nulls,
            index_base: model.feature_kind.index_base().unwrap_or(1),
            transform: Some(&model.transform),
            clip: model.clip,
            known: Some(known),
            ..DecoderSpec::new(model.kind, &model.label, &model.features)
        })
    }
}

/// The model, for the rows as a decoder gives them.
pub fn parameters_for(model: &Model, decoder: &Decoder) -> ModelParameters {
    let mut linear = model.linear().to_model();
    if let Some((mean, scale)) = model.scaling().filter(|_| decoder.has_mini_batches()) {
        // compressed rows are multiplied as they are, not standardized
        linear.take_unstandardized(mean, scale);
    }
    linear
}

/// Tells what was imputed, left out and unknown. Gives how many rows were left out.
pub fn tell_of_rows(decoder: &Decoder) -> u64 {
    notice_imputed(decoder);
    notice_left_out(decoder, decoder.decoded());
    notice_unseen(decoder);
    decoder.skipped()
}

/// Columns of the same names may have other types than those that the model was trained on: numbers in place of text,
/// columns in place of an array.
///
/// # Errors
/// [`PredictError::EvaluateTypes`]
pub fn check_types(model: &Model, found: &FeatureColumns, categories: &[(String, Coding)]) -> Result<()> {
    let fits = match (&model.feature_kind, found) {
        (FeatureKind::Array, FeatureColumns::Array { .. } | FeatureColumns::Compressed(_)) => true,
        (FeatureKind::Sparse { .. }, FeatureColumns::Sparse(_)) => true,
        (FeatureKind::Columns(_), FeatureColumns::Columns { .. }) => categories.is_empty(),
        (FeatureKind::Columns(_), FeatureColumns::Mixed(_)) => found.categories().as_deref() == Some(categories),
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(PredictError::EvaluateTypes { model: model.in_error(), trained_on: trained_on(model) }.into())
    }
}

/// What the model was trained on, in words.
fn trained_on(model: &Model) -> String {
    match &model.feature_kind {
        FeatureKind::Array => format!("an array of numbers in column {}", model.features[0]),
        FeatureKind::Sparse { .. } if model.features.len() == 1 => {
            format!("sparse vectors in column {}", model.features[0])
        }
        FeatureKind::Sparse { .. } => {
            format!("indices in column {} and values in column {}", model.features[0], model.features[1])
        }
        FeatureKind::Columns(kinds) => {
            let kind = |kind: &ColumnKind| match kind {
                ColumnKind::Number => "numbers",
                ColumnKind::Categories(_) | ColumnKind::Hashed(_) => "categories",
            };
            let columns = model.features.iter().zip(kinds).map(|(name, k)| format!("{} in column {name}", kind(k)));
            columns.collect::<Vec<_>>().join(", ")
        }
    }
}
