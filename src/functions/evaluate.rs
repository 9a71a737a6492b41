//! corgipile_evaluate(): how good a model is on other rows.

use crate::error::{Error, OrRaise, Result};
use crate::models::{self, Model};
use crate::operators::{Buffers, DecoderSpec, Known, Nulls, Shuffling, Source, Unseen};
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
    let nulls = if model.skips_nulls { Nulls::Skip } else { Nulls::Error };
    let known = Known {
        classes: &model.classes,
        dim: model.dim(),
        categories: &[],
        unseen: Unseen::Error,
        standardizer: model.standardizer.as_ref(),
    };
    let spec =
        DecoderSpec { nulls, known: Some(known), ..DecoderSpec::new(model.kind, Some(&model.label), &model.features) };
    let decoder = source.decoder(&spec)?;
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
    Ok(vec![
        ("accuracy", evaluation.accuracy().unwrap_or_default()),
        ("loss", evaluation.loss()),
        ("tuples", evaluation.tuples() as f64),
        ("skipped", skipped as f64),
    ])
}
