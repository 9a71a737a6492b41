//! The rows of a source as a model sees them: its features, as they were prepared in its training, and its label.

use crate::errors::{PredictError, Result, TrainingError};
use crate::models::{Coding, ColumnKind, FeatureKind, Model, Policies};
use crate::operators::{Buffers, DecoderSpec, FeatureColumns, ModelSchema, Source};
use crate::options::shuffling::Shuffling;
use crate::pg::catalog::types::{base_type, is_compressed};
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::Running;
use crate::pg::snapshot::Snapshot;
use sgd::ModelKind;

/// How rows are read for a model.
pub struct ModelRows<'a> {
    /// the column of the rows' weights
    pub weight: Option<&'a str>,
    pub shuffling: Shuffling,
    pub policies: Policies,
}

impl ModelRows<'_> {
    /// Begins to read label and features from `source`, by the names of the columns that the model was trained on.
    /// Targets are as they are, and not scaled.
    ///
    /// # Errors
    /// Whatever can be wrong with the source; [`PredictError::EvaluateTypes`]
    pub fn open(&self, model: &Model, source: &str) -> Result<Buffers> {
        let of_rows = DecoderSpec::new(model.kind, &model.label, &model.features);
        self.read(model, Source::resolve(source)?, (of_rows, &model.classes))
    }

    /// The same of features alone: the source need not have a label's column, and its rows have a label of 0. `what` is
    /// what cannot be had of a compressed source.
    ///
    /// # Errors
    /// As there; [`TrainingError::NotOnCompressed`]
    pub fn open_features(&self, model: &Model, source: &str, what: &'static str) -> Result<Buffers> {
        let columns = model.given_columns().unwrap_or_else(|| model.features.iter().map(String::as_str).collect());
        let mut label = "label".to_owned();
        while columns.contains(&label.as_str()) || model.features.contains(&label) {
            label.push('_');
        }
        let source = Source::resolve(source)?;
        if let [only] = columns[..]
            && is_compressed(base_type(source.type_of(only)?))
        {
            return Err(TrainingError::NotOnCompressed(what).into());
        }
        // of a regression, whatever the model is: no classes are looked for
        let of_rows = DecoderSpec::new(ModelKind::Linear, &label, &model.features);
        self.read(model, source.with_label(&label, &columns)?, (of_rows, &[]))
    }

    fn read(&self, model: &Model, mut source: Source, (of_rows, classes): (DecoderSpec, &[String])) -> Result<Buffers> {
        source.add_parts(&model.features);
        let categories = model.feature_kind.columns_of_categories(&model.features);
        let standardizer = model.to_standardizer();
        let known = ModelSchema {
            classes,
            dim: model.dim(),
            categories: &categories,
            unseen: self.policies.unseen,
            standardizer: standardizer.as_ref(),
            fill: model.fill(),
        };
        let spec = DecoderSpec {
            weight: self.weight,
            nulls: self.policies.nulls,
            index_base: model.feature_kind.index_base().unwrap_or(1),
            transform: Some(&model.transform),
            clip: model.clip,
            known: Some(known),
            ..of_rows
        };
        let decoder = source.decoder(&spec)?;
        check_types(model, decoder.features(), &categories)?;
        let planned = source.plan(&spec, &self.shuffling)?;
        let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
        Ok(Buffers::new(query, decoder))
    }
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
