//! The epochs, a query each, with the preparation before and the model after them.

use super::arguments::UdaRequest;
use super::copy::ShuffledCopy;
use super::sql::{Coding, Features, Reading};
use crate::functions::aggregate::{NewState, StateMut};
use decode::Decoder;
use decode::DecoderSpec;
use decode::FeatureColumns;
use decode::default_features::Takes;
use decode::notices::notice_left_out;
use decode::wanted::Wanted;
use errors::{AggregateError, Result, TrainingError};
use loss::ModelParameters;
use model::{self, Fitted, Kept, NewModel, Numbers};
use options::columns::OtherColumns;
use options::request::Request;
use options::rows::{Nulls, Standardize};
use options::shuffling::Shuffling;
use pg::call::spi::{Connection, Sees};
use pg::context::Context;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::settings::Settings;
use pg::snapshot::Snapshot;
use pg::values::varlena::Bytes;
use pgrx::pg_sys;
use scan::Buffers;
use scan::Source;
use scan::preparation;
use scan::progress::{self, Progress};
use std::ffi::CStr;
use std::time::{Duration, Instant};
use train::{EpochRow, check_options, feature_kind};
use tuples::Batch;

/// Result of the pass over the rows before the first epoch.
struct PreparedSource {
    decoder: Decoder,
    /// what the labels mean, ascending; None for numbers
    classes: Option<Vec<String>>,
    time: Duration,
}

/// Trains a model, stores it, and gives a row per epoch.
pub fn train(request: &UdaRequest) -> Result<Vec<EpochRow>> {
    let training = &request.training;
    model::check_can_store("corgipile_train_uda()");
    let mut source = Source::resolve(&training.source)?;
    if source.read("*")?.reads_distributed() {
        return Err(AggregateError::Distributed.into());
    }
    let _shown = Progress::begin(source.relation(), 1, training.max_epochs());
    let features =
        source.features(training.features.as_deref(), &training.label, &OtherColumns::default(), Takes::Numbers)?;
    let prepared = prepare(training, &source, &features)?;
    let mut reading = reading(&source, training, &features, &prepared.decoder)?;
    let connection = Connection::open();
    let settings = Settings::set(settings(request.parallel));
    let (copy, sees) = if request.shuffles() {
        let sees = Sees::AndOwn;
        let copy = ShuffledCopy::make(&connection, &reading, training.shuffling.seed, sees)?;
        reading.from = copy.name.clone();
        (Some(copy), sees)
    } else {
        (None, Sees::Statement)
    };
    let dim = dimensions(&connection, &reading, training, &prepared, sees)?;
    let first = first_state(connection.context(), training, &prepared, dim)?;
    let coding = prepared
        .classes
        .as_ref()
        .map_or(Coding::Number, |classes| Coding::of(classes, training.kind.is_binary(), reading.label));
    let epoch = EpochQuery { sql: reading.epoch(AGGREGATE, &coding), parallel: request.parallel, sees };
    let (mut history, mut last) = epoch.repeat(&connection, first, training.max_epochs())?;
    let shuffle_bytes = copy.as_ref().map(|copy| copy.bytes);
    if let Some(copy) = copy {
        history[0].shuffle_seconds = copy.time.as_secs_f64();
        copy.drop(&connection, sees)?;
    }
    let (linear, skipped) = {
        let mut state = StateMut::of(&mut last)?;
        (state.model()?, state.report().skipped)
    };
    settings.restore();
    connection.close();
    let trained = Trained { linear, skipped, shuffle_bytes };
    let label_type = source.type_of(&training.label)?;
    store(request, label_type, &features, prepared, trained, history)
}

/// Result of the epochs.
struct Trained {
    linear: ModelParameters,
    skipped: u64,
    shuffle_bytes: Option<u64>,
}

/// Stores the model and gives the rows of its epochs.
fn store(
    request: &UdaRequest,
    label_type: pg_sys::Oid,
    features: &[String],
    prepared: PreparedSource,
    trained: Trained,
    mut history: Vec<EpochRow>,
) -> Result<Vec<EpochRow>> {
    let training = &request.training;
    let Trained { linear, skipped, shuffle_bytes } = trained;
    let decoder = &prepared.decoder;
    let fitted = Fitted {
        name: training.name.clone(),
        label: training.label.clone(),
        label_type,
        classes: prepared.classes,
        hyperparameters: request.record(),
        ..Fitted::new(training.kind, (features, &feature_kind(decoder.features(), features)), linear.network)
    };
    let model_id = model::store(NewModel {
        fitted,
        numbers: Numbers::new(linear, decoder.standardizer().cloned(), None),
        kept: Kept {
            source: training.source.clone(),
            skipped: skipped as i64,
            preparation_seconds: prepared.time.as_secs_f64(),
            shuffle_bytes: shuffle_bytes.map(|bytes| bytes as i64),
            profile: decoder.profile().cloned(),
            ..Kept::default()
        },
        training_state: None,
        published_as: None,
        is_locked: false,
        granted_like: None,
        history: serde_json::to_string(&history).expect("rows of plain values are always JSON"),
    })?;
    for row in &mut history {
        row.model_id = model_id;
    }
    let names: Vec<String> = training.name.iter().cloned().collect();
    let Request { kind, source, label, options, .. } = training;
    let newer = model::Newer { has_unnamed: names.is_empty(), names, kind: *kind, source, label, continued: None };
    model::delete_replaced(newer, options.keep_versions);
    Ok(history)
}

/// The aggregate that learns, qualified. Where the functions are, others may create, too, and an aggregate of the same
/// name with other argument types would be taken; not so in schema corgipile.
const AGGREGATE: &str = "corgipile.sgd_agg";

/// One pass over the rows in natural order, as in corgipile_train(): which classes there are, mean and deviation if
/// they are asked for. Whatever is wrong with a row comes to light here, with the row's place.
fn prepare(request: &Request, source: &Source, features: &[String]) -> Result<PreparedSource> {
    let start = Instant::now();
    let spec = DecoderSpec::of_request(request, features);
    let decoder = source.decoder(&spec)?;
    if decoder.has_mini_batches() {
        return Err(AggregateError::NotByAggregate("a compressed source".into()).into());
    }
    check_options(&request.options, decoder.features())?;
    if decoder.features().categories().is_some() {
        let is_vector = |(_, coding): &(String, model::Coding)| matches!(coding, model::Coding::Vector(_));
        let what = match decoder.features().categories().is_some_and(|columns| columns.iter().all(is_vector)) {
            true => "vectors among other features",
            false => "features of text, enums or words",
        };
        return Err(AggregateError::NotByAggregate(what.into()).into());
    }
    let planned = source.plan(&spec, &Shuffling::none())?;
    let mut buffers =
        Buffers::new(Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE)), decoder);
    let wanted = match request.options.standardize {
        Standardize::None => Wanted::NOTHING,
        standardize => Wanted::of_features(standardize),
    };
    preparation::prepare(&mut buffers, &mut Batch::dense(0), wanted)?;
    notice_left_out(&buffers.decoder, buffers.decoder.decoded());
    let decoder = buffers.into_decoder();
    let classes = decoder.labels().classes().map(|classes| classes.names);
    Ok(PreparedSource { decoder, classes, time: start.elapsed() })
}

fn reading<'a>(source: &'a Source, request: &Request, features: &[String], decoder: &Decoder) -> Result<Reading<'a>> {
    let columns = features.iter().map(|name| source.column(name)).collect::<Result<Vec<_>>>()?;
    let features = match (decoder.features(), columns.as_slice()) {
        (FeatureColumns::Array { .. } | FeatureColumns::Sparse(_), [vectors]) => Features::Vectors(vectors),
        (FeatureColumns::Sparse(_), [indices, values]) => Features::Sparse(indices, values),
        _ => Features::Columns(columns),
    };
    Ok(Reading { from: source.from().to_owned(), label: source.column(&request.label)?, features })
}

/// For the time of the training: rows in the table's order, one process, unless several may learn.
fn settings(parallel: bool) -> &'static [(&'static CStr, &'static CStr)] {
    const ORDERED: (&CStr, &CStr) = (c"synchronize_seqscans", c"off");
    if parallel { &[ORDERED] } else { &[ORDERED, (c"max_parallel_workers_per_gather", c"0")] }
}

/// The number of features.
fn dimensions(
    connection: &Connection,
    reading: &Reading,
    request: &Request,
    prepared: &PreparedSource,
    sees: Sees,
) -> Result<usize> {
    let decoder = &prepared.decoder;
    let of_vectors = Some(decoder.features().sparse_dim()).filter(|dim| *dim > 0);
    let known = decoder.features().dense_dim().or(request.options.dimensions).or(of_vectors);
    if let Some(dim) = known.or(decoder.standardizer().map(|standardizer| standardizer.scale.len())) {
        return Ok(dim);
    }
    let largest: Option<i64> = connection.run(&reading.largest_index(), sees)?.get(0, 0);
    let base = i64::from(request.options.index_base.unwrap_or(1));
    // without any entry there is still an intercept to be learned
    Ok(largest.map_or(1, |largest| (largest - base + 1).max(1) as usize))
}

fn first_state<'m>(
    context: Context<'m>,
    request: &Request,
    prepared: &PreparedSource,
    dim: usize,
) -> Result<Bytes<'m>> {
    let decoder = &prepared.decoder;
    decoder.check_size(dim, decoder.standardizer().is_some())?;
    let kind = request.kind;
    let state = NewState {
        hyperparameters: request.first_point().hyperparameters,
        dim,
        outputs: if kind.has_class_numbers() { decoder.labels().outputs() } else { 1 },
        sparse: matches!(decoder.features(), FeatureColumns::Sparse(_)),
        index_base: request.options.index_base.unwrap_or(1),
        skip_nulls: request.options.nulls == Some(Nulls::Skip),
        standardizer: decoder.standardizer(),
    };
    state.bytes(context)
}

fn state_type(connection: &Connection, sees: Sees) -> Result<pg_sys::Oid> {
    let sql = "SELECT 'corgipile.sgd_state'::pg_catalog.regtype::pg_catalog.oid";
    Ok(connection.run(sql, sees)?.get(0, 0).unwrap_or(pg_sys::Oid::INVALID))
}

/// The query of an epoch, from state to state.
struct EpochQuery {
    sql: String,
    parallel: bool,
    sees: Sees,
}

impl EpochQuery {
    /// Runs the query once per epoch. Gives the rows of all epochs, and the last state.
    fn repeat<'a>(
        &self,
        connection: &'a Connection,
        first: Bytes<'a>,
        epochs: u32,
    ) -> Result<(Vec<EpochRow>, Bytes<'a>)> {
        let state_type = state_type(connection, self.sees)?;
        let query = connection.prepare(&self.sql, &[state_type], self.parallel)?;
        let mut state = first;
        let mut history = Vec::new();
        for epoch in 1..=epochs {
            // the blocks of this query are not counted as the training's
            progress::begin_epoch(epoch.into(), 0);
            let start = Instant::now();
            let rows = query.run(&[Some(state.typed(state_type))], self.sees);
            let next = rows.bytes(0, 0).ok_or(TrainingError::NoRows("train on"))?;
            drop(rows);
            std::mem::replace(&mut state, next).free();
            let report = StateMut::of(&mut state)?.report();
            if report.epoch.tuples == 0 {
                return Err(TrainingError::NoRows("train on").into());
            }
            progress::tuples(report.epoch.tuples as usize);
            progress::loss(report.epoch.loss);
            history.push(EpochRow::new(report.epoch, 1.0, start.elapsed(), Duration::ZERO));
        }
        Ok((history, state))
    }
}
