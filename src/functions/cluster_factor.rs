//! corgipile_cluster_factor(): how much a table needs to be shuffled.

use crate::errors::{ArgumentError, OrRaise, Result, TrainingError};
use crate::operators::preparation::prepare;
use crate::operators::wanted::Wanted;
use crate::operators::{Buffers, DecoderSpec, Source, Takes};
use crate::options::call;
use crate::options::request::check_features;
use crate::options::shuffling::Shuffling;
use crate::pg::call::arguments::Arguments;
use crate::pg::call::function::Call;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::Running;
use crate::pg::snapshot::Snapshot;
use crate::pg::{check_for_interrupts, require_utf8};
use pgrx::prelude::*;
use sgd::{ClusterFactor, ModelKind};
use tuples::{Batch, TupleSource};

/// Returns the factor of the blocks into which training would divide the source; NULL if all gradients are the same.
#[pg_extern(sql = false)]
fn corgipile_cluster_factor(call: Call<'_>) -> Option<f64> {
    cluster_factor(&call.arguments()).or_raise()
}

fn cluster_factor(arguments: &Arguments) -> Result<Option<f64>> {
    require_utf8()?;
    let source = arguments.source(0)?.ok_or(ArgumentError::NullArgument("source"))?;
    let label = call::label(arguments.get(1));
    let features: Option<Vec<Option<String>>> = arguments.get(2);
    let kind = call::model_kind(arguments.get(4))?;
    if !kind.is_linear() {
        let linear = if kind.is_classifier() {
            "'softmax': how blocks differ in their classes"
        } else {
            "'linear': how blocks differ in their targets"
        };
        return Err(ArgumentError::InvalidArgument {
            argument: "model",
            reason: "the gradients of a network depend on its random weights".to_owned(),
            hint: Some(format!("Use {linear} matters to both.")),
        }
        .into());
    }
    // The buffer is that of corgipile_train() by default: the size of a block may depend on it.
    let shuffling = Shuffling::parse(Some("no_shuffle".into()), Some(0), arguments.get(3), None)?;
    let source = Source::resolve(&source)?;
    let features = features.map(|features| check_features(features, &label)).transpose()?;
    let features = source.features(features.as_deref(), &label, &[], Takes::All)?;
    let spec = DecoderSpec::new(kind, &label, &features);
    let decoder = source.decoder(&spec)?;
    if decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_cluster_factor()").into());
    }
    let prepares = decoder.needs_preparation();
    let shuffling = Shuffling { first_epoch: u64::from(!prepares), block_by_block: true, ..shuffling };
    let planned = source.plan(&spec, &shuffling)?;
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
    let mut buffers = Buffers::new(query, decoder);
    let mut batch = Batch::dense(0);
    if prepares {
        prepare(&mut buffers, &mut batch, Wanted::NOTHING)?;
        buffers.next_epoch()?;
    }
    let factor = measure(&mut buffers, &mut batch, kind)?;
    buffers.finish();
    Ok(factor)
}

/// Reads all rows, block by block.
fn measure(buffers: &mut Buffers, batch: &mut Batch, kind: ModelKind) -> Result<Option<f64>> {
    let mut factor = ClusterFactor::new(kind);
    let mut block = 0;
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        // a block may be larger than the memory, and there may be blocks without tuples
        let next = buffers.report().block;
        if next != block {
            factor.end_block()?;
            block = next;
        }
        factor.add(batch)?;
    }
    factor.end_block()?;
    if factor.tuples() == 0 {
        return Err(TrainingError::NoRows("measure").into());
    }
    buffers.decoder.labels().check()?;
    Ok(factor.factor())
}
