//! The rows of a source as a model sees them: its features, as they were prepared in its training, and its label.

use decode::compressed_type::is_compressed;
use decode::notices::{notice_imputed, notice_left_out, notice_unseen};
use decode::{Decoder, DecoderSpec, FeatureColumns, ModelSchema};
use errors::{PredictError, Result, TrainingError};
use loss::{ModelKind, ModelParameters};
use model::{Buckets, Coding, ColumnKind, FeatureKind, Model, Policies};
use options::row_groups::RowGroupSpec;
use options::shuffling::Shuffling;
use pg::catalog::types::base_type;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Column, Planned, Running};
use pg::snapshot::Snapshot;
use pg::values::bag::BagKind;
use scan::Buffers;
use scan::Source;
use std::rc::Rc;

/// How rows are read for a model.
pub struct ModelRows<'a> {
    /// the column of the rows' weights
    pub weight: Option<&'a str>,
    /// the column of the groups of rows, each of which has a model
    pub group: Option<&'a str>,
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
        ModelRows { weight: None, group: None, shuffling: Shuffling::none(), policies }
    }

    /// Begins to read label and features from `source`, by the names of the columns that the model was trained on.
    /// Targets are as they are, and not scaled.
    pub fn open(&self, model: &Model, source: &str) -> Result<Buffers> {
        self.plan(model, source).map(PlannedRows::start)
    }

    /// As [`open`](ModelRows::open), but reads nothing yet.
    pub fn plan(&self, model: &Model, source: &str) -> Result<PlannedRows> {
        self.plan_source(model, Source::resolve(source)?)
    }

    /// The same of a source that is resolved.
    pub fn plan_source(&self, model: &Model, source: Source) -> Result<PlannedRows> {
        self.plan_rows(model, source, &self.spec(model))
    }

    /// As [`open`](ModelRows::open), of features alone: the source need not have a label's column, and its rows have a
    /// label of 0. `what` is what is not available of a compressed source.
    pub fn open_features(&self, model: &Model, source: &str, what: &'static str) -> Result<Buffers> {
        let source = without_label(model, source, what)?;
        // of a regression, whatever the model is: no classes are looked for
        let spec = self.specify(model, (ModelKind::Linear, &missing_label(model), &[]));
        self.plan_rows(model, source, &spec).map(PlannedRows::start)
    }

    fn plan_rows(&self, model: &Model, mut source: Source, spec: &DecoderSpec) -> Result<PlannedRows> {
        source.add_parts(&model.features);
        let decoder = decode(model, source.columns(), spec)?;
        let planned = source.plan(spec, &self.shuffling)?;
        Ok(PlannedRows { source, decoder, planned })
    }

    /// A decoder of rows with label and features out of these columns.
    pub fn decoder(&self, model: &Model, columns: &[Column]) -> Result<Decoder> {
        decode(model, columns, &self.spec(model))
    }

    /// What a decoder of such rows has to know.
    pub fn spec(&self, model: &Model) -> DecoderSpec {
        self.specify(model, (model.kind, &model.label, &model.classes))
    }

    /// The same of other labels: for models of this kind, in this column, with these classes.
    fn specify(&self, model: &Model, (kind, label, classes): (ModelKind, &str, &[String])) -> DecoderSpec {
        let known = ModelSchema {
            classes: classes.to_vec(),
            dim: model.dim(),
            categories: model.feature_kind.columns_of_categories(&model.features),
            unseen: self.policies.unseen,
            standardizer: model.to_standardizer(),
            fill: model.fill().map(allocation::copy),
        };
        DecoderSpec {
            weight: self.weight.map(str::to_owned),
            row_groups: RowGroupSpec { group: self.group.map(str::to_owned), ..RowGroupSpec::default() },
            nulls: self.policies.nulls,
            index_base: model.feature_kind.index_base().unwrap_or(1),
            transform: Some(model.transform.clone()),
            clip: model.clip,
            known: Some(Rc::new(known)),
            ..DecoderSpec::new(kind, label, &model.features)
        }
    }
}

fn decode(model: &Model, columns: &[Column], spec: &DecoderSpec) -> Result<Decoder> {
    let decoder = spec.decoder(columns)?;
    check_types(model, decoder.features(), &model.feature_kind.columns_of_categories(&model.features))?;
    Ok(decoder)
}

/// Where the model's features come from, with a label of 0 that `source` need not have.
pub fn without_label(model: &Model, source: &str, what: &'static str) -> Result<Source> {
    let columns = feature_columns(model);
    let source = Source::resolve(source)?;
    if let [only] = columns[..]
        && is_compressed(base_type(source.type_of(only)?))
    {
        return Err(TrainingError::NotOnCompressed(what).into());
    }
    source.with_label(&missing_label(model), &columns)
}

/// The columns that the model's features are taken from.
fn feature_columns(model: &Model) -> Vec<&str> {
    model.given_columns().unwrap_or_else(|| model.features.iter().map(String::as_str).collect())
}

/// The name of that label, which no feature and no column of one has.
pub fn missing_label(model: &Model) -> String {
    let columns = feature_columns(model);
    let mut label = "label".to_owned();
    while columns.contains(&label.as_str()) || model.features.contains(&label) {
        label.push('_');
    }
    label
}

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
                ColumnKind::Vector(_) => "vectors",
                ColumnKind::Hashed(Buckets { of: Some(BagKind::Lexemes), .. }) => "a tsvector",
                ColumnKind::Hashed(Buckets { of: Some(BagKind::Elements), .. }) => "arrays of text",
                ColumnKind::Categories(_) | ColumnKind::Hashed(_) => "categories",
            };
            let columns = model.features.iter().zip(kinds).map(|(name, k)| format!("{} in column {name}", kind(k)));
            columns.collect::<Vec<_>>().join(", ")
        }
    }
}
