//! corgipile_cluster_factor(): how much a table needs to be shuffled.
//!
//! Guarantee: what is measured is what training learns from: features and targets are transformed and standardized,
//! categories coded and NULLs imputed as corgipile_train() does by default, or as the given model does.

use decode::DecoderSpec;
use decode::default_features::Takes;
use decode::wanted::Wanted;
use errors::{ArgumentError, Error, ModelError, OrRaise, Result, TrainingError};
use loss::ModelKind;
use model::{self, Model, Policies};
use options::call::{self, TrainArguments};
use options::columns::OtherColumns;
use options::nodes::Nodes;
use options::request::Request;
use options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::require_utf8;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use scan::Buffers;
use scan::preparation::prepare;
use sgd::ClusterFactor;
use std::rc::Rc;
use train::clusters::{factor_at, measure_clusters};
use train::model_rows::ModelRows;
use train::{Rows, clusters_at_there, clusters_there};
use tuples::{Batch, TupleSource};

/// Returns the factor of the blocks into which training would divide the source; NULL if all gradients are the same.
#[pg_extern(sql = false)]
fn corgipile_cluster_factor(call: Call<'_>) -> Option<f64> {
    let arguments = call.arguments();
    let measured = call::nodes(arguments.get(5)).and_then(|nodes| measured(&arguments, arguments.get(3), 4, &nodes));
    measured.or_raise().factor()
}

/// Goes through the blocks of the source that argument 0 is, of this size. Its label is argument 1, its features are
/// argument 2, and the model is argument `model`.
pub(super) fn measured(
    arguments: &Arguments,
    block_size: Option<String>,
    model: usize,
    nodes: &Nodes,
) -> Result<ClusterFactor> {
    require_utf8()?;
    let source = arguments.source(0)?.ok_or(ArgumentError::NullArgument("source"))?;
    // The buffer is that of corgipile_train() by default: the size of a block may depend on it.
    let call = TrainArguments::of(Some(source.clone()))
        .with("label", arguments.get::<String>(1))
        .with("features", arguments.get::<Vec<Option<String>>>(2))
        .with("block_size", block_size)
        .with("model", arguments.get::<String>(model))
        .with("shuffle", Some("no_shuffle"))
        .with("seed", Some(0));
    let factor = match trained_model(call.text("model"))? {
        Some(model) => at_model(&model, &source, call, nodes),
        None => at_zero(call, nodes),
    };
    let factor = factor.map_err(|error| match error {
        Error::Training(TrainingError::NoRows(_)) => TrainingError::NoRows("measure").into(),
        error => error,
    })?;
    if factor.tuples() == 0 {
        return Err(TrainingError::NoRows("measure").into());
    }
    Ok(factor)
}

/// The trained model that argument `model` is, unless it is a kind of model, or neither.
fn trained_model(given: Option<&str>) -> Result<Option<Rc<Model>>> {
    let Some(given) = given.filter(|given| given.parse::<ModelKind>().is_err()) else { return Ok(None) };
    match model::by_name_or_id(given) {
        Err(Error::Model(ModelError::NoModelName(..) | ModelError::NoModels(_))) => Ok(None),
        found => found.map(Some),
    }
}

fn check_kind(kind: ModelKind) -> Result<()> {
    if kind.is_linear() {
        return Ok(());
    }
    let linear = if kind.is_classifier() {
        "'softmax': how the classes of blocks differ"
    } else {
        "'linear': how the targets of blocks differ"
    };
    Err(ArgumentError::InvalidArgument {
        argument: "model",
        reason: "it is a network, whose gradients depend on its random weights".to_owned(),
        hint: Some(format!("Use {linear} matters to both.")),
    }
    .into())
}

/// How the blocks of training are read.
fn block_by_block(shuffling: &Shuffling, prepares: bool) -> Shuffling {
    Shuffling { first_epoch: u64::from(!prepares), block_by_block: true, ..shuffling.clone() }
}

/// Goes through all blocks, here or where they are, for a model that is not trained yet.
fn at_zero(mut call: TrainArguments, nodes: &Nodes) -> Result<ClusterFactor> {
    let mut source = train::source_and_model(&mut call, Flags::NONE)?;
    check_kind(call::model_kind(call.text("model").map(str::to_owned))?)?;
    let mut request = Request::new(call, None)?;
    let given = request.features.take();
    let features = source.features(given.as_deref(), &request.label, &OtherColumns::default(), Takes::All(None))?;
    let spec = DecoderSpec::of_request(&request, &features);
    let mut decoder = source.decoder(&spec)?;
    if decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_cluster_factor()").into());
    }
    let wanted = Wanted::new(&request.options, request.kind, &decoder, request.has_open_rate());
    let prepares = wanted.anything() || decoder.needs_preparation();
    let shuffling = block_by_block(&request.shuffling, prepares);
    let planned = source.plan(&spec, &shuffling)?;
    let rows = Rows { spec: &spec, source: &source, planned: &planned, shuffling: &shuffling };
    if let Some(factor) = clusters_there(nodes, &rows, &mut decoder, wanted)? {
        decoder.labels().check()?;
        return Ok(factor);
    }
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
    let mut buffers = Buffers::new(query, decoder);
    let mut batch = Batch::dense(0);
    if prepares {
        prepare(&mut buffers, &mut batch, wanted)?;
        buffers.next_epoch()?;
    }
    let many = buffers.decoder.labels().outputs() > 1;
    let kind = request.kind_of_many().filter(|_| many).unwrap_or(request.kind);
    let factor = measure_clusters(&mut buffers, &mut batch, ClusterFactor::new(kind))?;
    buffers.into_decoder().labels().check()?;
    Ok(factor)
}

fn at_model(model: &Model, source: &str, mut call: TrainArguments, nodes: &Nodes) -> Result<ClusterFactor> {
    check_kind(model.kind)?;
    let own = |argument| ArgumentError::InvalidArgument {
        argument,
        reason: "a trained model has its own".to_owned(),
        hint: Some("Leave it out, or give a kind of model, such as 'logistic', instead of a trained model.".to_owned()),
    };
    if call.text("label").is_some_and(|label| label != model.label) {
        return Err(own("label").into());
    }
    let features: Option<Vec<Option<String>>> = call.take("features");
    if features.is_some_and(|features| !features.iter().flatten().eq(&model.features)) {
        return Err(own("features").into());
    }
    let shuffling = Shuffling::parse(call.take("shuffle"), call.take("seed"), call.take("block_size"), None)?;
    let (policies, shuffling) = (Policies::of_model(model), block_by_block(&shuffling, false));
    let of_model = ModelRows { shuffling: shuffling.clone(), ..ModelRows::plain(policies) };
    let rows = of_model.plan(model, source)?;
    if rows.decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_cluster_factor()").into());
    }
    let mut factor = factor_at(model, &rows.decoder);
    let spec = &of_model.spec(model);
    let there = Rows { spec, source: &rows.source, planned: &rows.planned, shuffling: &shuffling };
    if clusters_at_there(nodes, &there, (model, policies), &mut factor)? {
        return Ok(factor);
    }
    let mut buffers = rows.start();
    let factor = measure_clusters(&mut buffers, &mut Batch::dense(0), factor)?;
    buffers.finish();
    Ok(factor)
}
