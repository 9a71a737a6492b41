//! corgipile_evaluate(): how good a model is on other rows.

use crate::error::{Error, OrRaise, Result};
use crate::models::{self, ColumnKind, FeatureKind, Model};
use crate::operators::{Buffers, DecoderSpec, Features, Known, Nulls, Shuffling, Source};
use crate::pg::check_for_interrupts;
use crate::pg::custom_scan::Flags;
use crate::pg::query::Running;
use pgrx::prelude::*;
use sgd::Evaluation;
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_evaluate(
    model: i64,
    source: &str,
) -> TableIterator<'static, (name!(metric, &'static str), name!(value, f64))> {
    TableIterator::new(models::by_id(model).and_then(|model| evaluate(&model, source)).or_raise())
}

#[pg_extern(sql = false)]
fn corgipile_evaluate_by_name(
    model: &str,
    source: &str,
) -> TableIterator<'static, (name!(metric, &'static str), name!(value, f64))> {
    TableIterator::new(models::by_name(model).and_then(|model| evaluate(&model, source)).or_raise())
}

/// Reads label and features from `source`, by the names of the columns that the model was trained on.
fn evaluate(model: &Model, source: &str) -> Result<Vec<(&'static str, f64)>> {
    let source = Source::resolve(source)?;
    let categories = model.feature_kind.columns_of_categories(&model.features);
    let known = Known {
        classes: &model.classes,
        dim: model.dim(),
        categories: &categories,
        unseen: model.unseen,
        standardizer: model.standardizer.as_ref(),
    };
    let spec = DecoderSpec {
        nulls: if model.skips_nulls { Nulls::Skip } else { Nulls::Error },
        index_base: model.feature_kind.index_base().unwrap_or(1),
        known: Some(known),
        ..DecoderSpec::new(model.kind, &model.label, &model.features)
    };
    let decoder = source.decoder(&spec)?;
    check_types(model, decoder.features(), &categories)?;
    let planned = source.plan(&spec, &Shuffling::none())?;
    let query = Running::start(planned, Running::active_snapshot(), 0, Flags::NONE);
    let mut buffers = Buffers::new(query, decoder);
    let mut evaluation = Evaluation::new(model.kind);
    let mut batch = Batch::new(model.dim());
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        evaluation.add(&model.linear, &batch);
    }
    let skipped = buffers.decoder.skipped();
    buffers.finish();
    if evaluation.tuples() == 0 {
        return Err(Error::NoRows("evaluate on"));
    }
    let quality = match evaluation.r2() {
        Some(r2) => ("r2", r2),
        None => ("accuracy", evaluation.accuracy().unwrap_or_default()),
    };
    Ok(vec![quality, ("loss", evaluation.loss()), ("tuples", evaluation.tuples() as f64), ("skipped", skipped as f64)])
}

/// Columns of the same names may have other types than those that the model was trained on: numbers in place of text,
/// columns in place of an array.
///
/// # Errors
/// [`Error::EvaluateTypes`]
fn check_types(model: &Model, found: &Features, categories: &[(String, Vec<String>)]) -> Result<()> {
    let fits = match (&model.feature_kind, found) {
        (FeatureKind::Array, Features::Array { .. }) | (FeatureKind::Sparse { .. }, Features::Sparse(_)) => true,
        (FeatureKind::Columns(_), Features::Columns { .. }) => categories.is_empty(),
        (FeatureKind::Columns(_), Features::Mixed(_)) => found.categories().as_deref() == Some(categories),
        _ => false,
    };
    if fits { Ok(()) } else { Err(Error::EvaluateTypes { model_id: model.id, trained_on: trained_on(model) }) }
}

/// What the model was trained on, in words.
fn trained_on(model: &Model) -> String {
    match &model.feature_kind {
        FeatureKind::Array => format!("an array of numbers in column {}", model.features[0]),
        FeatureKind::Sparse { .. } => {
            format!("indices in column {} and values in column {}", model.features[0], model.features[1])
        }
        FeatureKind::Columns(kinds) => {
            let kind = |kind: &ColumnKind| match kind {
                ColumnKind::Number => "numbers",
                ColumnKind::Categories(_) => "categories",
            };
            let columns = model.features.iter().zip(kinds).map(|(name, k)| format!("{} in column {name}", kind(k)));
            columns.collect::<Vec<_>>().join(", ")
        }
    }
}
