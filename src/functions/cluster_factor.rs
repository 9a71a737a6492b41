//! corgipile_cluster_factor(): how much a table needs to be shuffled.

use crate::errors::{ArgumentError, Error, OrRaise, Result, TrainingError};
use crate::operators::clusters::measure_clusters;
use crate::operators::preparation::prepare;
use crate::operators::sgd::{Rows, clusters_there};
use crate::operators::wanted::Wanted;
use crate::operators::{Buffers, Decoder, DecoderSpec, Source, Takes};
use crate::options::call;
use crate::options::columns::check_features;
use crate::options::nodes::Nodes;
use crate::options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::require_utf8;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use sgd::ClusterFactor;
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
    let mut source = Source::resolve(&source)?;
    let features = features.map(|features| check_features(features, &label)).transpose()?;
    let features = source.features(features.as_deref(), &label, &[], Takes::All(None))?;
    let spec = DecoderSpec::new(kind, &label, &features);
    let decoder = source.decoder(&spec)?;
    if decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_cluster_factor()").into());
    }
    let shuffling = Shuffling { first_epoch: 0, block_by_block: true, ..shuffling };
    let nodes = call::nodes(arguments.get(5))?;
    let measured = measure(&source, (&spec, &shuffling), decoder, &nodes).map_err(|error| match error {
        Error::Training(TrainingError::NoRows(_)) => TrainingError::NoRows("measure").into(),
        error => error,
    });
    let (factor, decoder) = measured?;
    if factor.tuples() == 0 {
        return Err(TrainingError::NoRows("measure").into());
    }
    decoder.labels().check()?;
    Ok(factor.factor())
}

/// Goes through all blocks, here or where they are. Also gives the decoder, with what it knows of the rows.
fn measure(
    source: &Source,
    (spec, shuffling): (&DecoderSpec, &Shuffling),
    mut decoder: Decoder,
    nodes: &Nodes,
) -> Result<(ClusterFactor, Decoder)> {
    let prepares = decoder.needs_preparation();
    let planned = source.plan(spec, &Shuffling { first_epoch: u64::from(!prepares), ..shuffling.clone() })?;
    let rows = Rows { spec, columns: source.columns(), planned: &planned, shuffling };
    if let Some(factor) = clusters_there(nodes, &rows, &mut decoder)? {
        return Ok((factor, decoder));
    }
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
    let mut buffers = Buffers::new(query, decoder);
    let mut batch = Batch::dense(0);
    if prepares {
        prepare(&mut buffers, &mut batch, Wanted::NOTHING)?;
        buffers.next_epoch()?;
    }
    let factor = measure_clusters(&mut buffers, &mut batch, spec.kind)?;
    Ok((factor, buffers.into_decoder()))
}
