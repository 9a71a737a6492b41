//! How a training is opened: what its source can be, and what that means for the request.

use super::fallback::{Fallback, may_sample};
use super::features::check_options;
use super::model_choice::source_and_model;
use super::nodes::Place;
use super::penalty::Penalty;
use super::phases::{Phase, Phases};
use super::resume::{Resume, refuse};
use super::training::{Others, SeenRows, Summary, Training, TrainingSource, shuffling_of};
use super::validation::OwnParts;
use decode::default_features::Takes;
use decode::notices::notice_open_order;
use decode::wanted::Wanted;
use decode::{Decoder, DecoderSpec, FeatureColumns, OwnedSpec};
use errors::{Result, TrainingError};
use loss::{Hyperparameters, Solver};
use options::call::TrainArguments;
use options::chosen::Rate;
use options::nodes::Nodes;
use options::request::{Open, Request};
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::snapshot::Snapshot;
use pg::values::array::AnyArray;
use pgrx::pg_sys;
use scan::loader::{LoadRequest, LoaderChoice};
use scan::{Buffers, Source};
use std::ffi::c_int;

impl Training {
    /// Plans and starts the read of the source. From then on its privileges are checked and its rows are fixed.
    pub fn open(
        mut arguments: TrainArguments,
        snapshot: Snapshot<'_>,
        instrument: c_int,
        flags: Flags,
    ) -> Result<Training> {
        let phases = Phases::begin();
        if !flags.explain_only() {
            // before a sample is read
            model::check_can_store("corgipile_train()");
        }
        let model = arguments.take::<String>("warm_start");
        let resume = model.map(|model| Resume::new(&model, &mut arguments)).transpose()?;
        let source = source_and_model(&mut arguments, flags)?;
        let request = Request::new(arguments, resume.as_ref().map(Resume::warm_start))?;
        Training::open_request((request, source), resume, (snapshot, instrument, flags), phases)
    }

    /// The same for what was asked for in another way.
    pub fn open_request(
        (mut request, mut source): (Request, Source),
        mut resume: Option<Resume>,
        (snapshot, instrument, flags): (Snapshot<'_>, c_int, Flags),
        mut phases: Phases,
    ) -> Result<Training> {
        let of_all_rows = request.of_all_rows().map(Box::new);
        let may_fetch = request.options.servers == Nodes::Auto && resume.is_none() && !flags.explain_only();
        let original = may_fetch.then(|| {
            let mut original = Box::new(request.clone());
            original.options.servers = Nodes::Off;
            original
        });
        let open_penalty = (request.has_open_penalty() && resume.is_none()).then(|| Box::new(request.clone()));
        if request.open == Open::Objective && !flags.explain_only() && source.has_continuous(&request.label)? {
            request.predict_numbers();
            pg::notice(
                format!(
                    "the network predicts numbers: label \"{}\" has many values that are not integers",
                    request.label
                ),
                "If its values are classes, cast the label to text in a query.",
            );
        }
        if let Some(fraction) = request.options.default_validation().filter(|_| !flags.explain_only()) {
            pg::notice(
                format!("{fraction} of the rows are held out to fit probabilities"),
                "Use another validation_fraction, or validation_column, to hold out other rows.",
            );
        }
        let given = request.features.take();
        let takes = Takes::All(Some(&request.options.date_parts));
        let features = source.features(given.as_deref(), &request.label, &request.other_columns(), takes)?;
        request.settle_search(source.is_compressed(&features), source.relation_of_copy(&request.shuffling))?;
        resume.iter_mut().for_each(|resume| resume.compare(&mut request));
        let spec = DecoderSpec::of_request(&request, &features);
        let mut decoder = source.decoder(&spec)?;
        let label_type = label_type(&source, &request.label, &decoder)?;
        // also where a model says what classes and categories there are: what rows weigh follows from them
        let needs_preparation = decoder.needs_preparation();
        check_decoder(&request, resume.as_ref(), &features, &mut decoder)?;
        if !flags.explain_only() {
            request.shuffling.tell_of_cut_blocks();
        }
        let wanted = Wanted::new(&request.options, request.kind, &decoder, request.has_open_rate());
        // where the rows are read before the first epoch anyway
        let is_open = request.open == Open::Classes && wanted.moments;
        let more_classes = (wanted.more_classes || is_open) && resume.is_none();
        if request.open == Open::Classes && !is_open && !flags.explain_only() {
            request.open = Open::Nothing;
        }
        let wanted = Wanted { held_out: request.search.is_some(), more_classes, ..wanted };
        // several processes have to number groups alike
        let numbers_groups = request.row_groups.group.is_some() && request.workers > 1;
        let counts = (request.row_groups.folds.is_some() && !decoder.has_mini_batches()) || numbers_groups;
        // what a model has learned from may be other rows than these
        let compares = resume.as_ref().is_some_and(|resume| resume.decoder_state.has_met());
        let weighs_groups = decoder.has_weights() && request.row_groups.group.is_some();
        let is_known = request.options.recompute_statistics == Some(false)
            && !weighs_groups
            && resume.as_ref().is_some_and(Resume::goes_on);
        let prepares = wanted.anything() || needs_preparation || counts || compares;
        let prepares = (prepares && !is_known).then_some(wanted);
        let passes = prepares.is_some() || (request.workers > 1 && goes_on_in_groups(&request, resume.as_ref()));
        let planned = source.plan(&spec, &shuffling_of(&request, passes))?;
        let place = Place::new(&request, resume.as_ref(), &spec, (&source, &planned))?;
        let comes_here = !matches!(place, Place::There(_));
        if request.shuffling.seed_is_given && planned.order_varies() && comes_here && !flags.explain_only() {
            notice_open_order();
        }
        let owned_spec = OwnedSpec::new(&spec, source.columns());
        let samples =
            prepares.is_some() && comes_here && !counts && may_sample(&request, resume.as_ref(), &decoder, wanted);
        let mut spare = if samples { Some(source.decoder(&spec)?) } else { None };
        if let Some(decoder) = &mut spare {
            check_decoder(&request, resume.as_ref(), &features, decoder)?;
        }
        fit_to_mini_batches(&mut request, &decoder);
        if matches!(decoder.features(), FeatureColumns::Mixed(_) | FeatureColumns::Sparse(_)) {
            request.options.handle_unknown.get_or_insert_default();
        }
        // where rows are trained on where they are, the sessions by which they would be fetched here have nothing to do
        let flags = if comes_here { flags } else { Flags::TO_SHOW };
        let mut buffers = Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder);
        let (last_epoch, waits) = (request.last_epoch().into(), request.shuffling.strategy.sorts());
        let load = LoadRequest::new(owned_spec, last_epoch, request.has_open_epochs(), waits);
        let unfit = no_loader_because(&request, &buffers.decoder);
        let loader = LoaderChoice::new(request.loader, unfit, &mut buffers, load);
        let fallback = spare.map(|decoder| Box::new(Fallback::new(request.clone(), decoder)));
        phases.end(Phase::Opening);
        Ok(Training {
            parts: (!request.row_groups.is_empty() && request.search.is_none())
                .then(|| OwnParts::of_one(&request.shuffling)),
            seen: SeenRows::default(),
            place,
            loader,
            phases,
            resume,
            request,
            source: TrainingSource {
                features,
                columns: source.columns().to_vec(),
                label_type,
                relation: source.relation(),
                in_distributed_transaction: source.in_distributed_transaction,
            },
            prepares,
            others: Others { fallback, of_all_rows, original },
            buffers,
            summary: Summary::default(),
            penalty: match open_penalty {
                Some(request) if comes_here && !flags.explain_only() => Penalty::Open(request),
                _ => Penalty::Settled(None),
            },
            groups_before: None,
        })
    }
}

/// Of compressed mini-batches each is a step, and no one looks into it to choose a rate or to bound a step.
pub fn fit_to_mini_batches(request: &mut Request, decoder: &Decoder) {
    for point in request.points.iter_mut().filter(|_| decoder.has_mini_batches()) {
        let hyper = &mut point.hyperparameters;
        (hyper.batch_size, point.has_open_batch_size) = (Hyperparameters::WHOLE_MINI_BATCHES, false);
        if point.rate == Rate::Open {
            (point.rate, point.has_open_epochs, hyper.bounded) = (Rate::Given, false, false);
            hyper.averaging = request.options.averaging == Some(true);
            point.multiply_rate();
        }
    }
}

/// Reports that this many processes, or servers, make a step by as many compressed mini-batches.
pub fn notice_steps(decoder: &Decoder, processes: usize) {
    if decoder.has_mini_batches() && processes > 1 {
        pg::notice(
            format!("each step uses {processes} compressed mini-batches, one of each process or server"),
            "For steps of the same number of rows as with a single process, compress with a smaller batch_rows.",
        );
    }
}

pub fn label_type(source: &Source, label: &str, decoder: &Decoder) -> Result<pg_sys::Oid> {
    Ok(match source.type_of(label)? {
        // an array of them for each mini-batch
        labels if decoder.has_mini_batches() => AnyArray::new(labels).map_or(labels, |array| array.element()),
        label => label,
    })
}

/// Checks whether the features of the source go with the request, and with the model that is continued, whose classes
/// and categories the decoder takes over.
pub fn check_decoder(
    request: &Request,
    resume: Option<&Resume>,
    features: &[String],
    decoder: &mut Decoder,
) -> Result<()> {
    if let Some(resume) = resume {
        // Newton's method has no mini-batches of any size, and none that are compressed
        let is_newton = request.first_point().hyperparameters.solver == Solver::Newton;
        resume.check_mini_batches(decoder.has_mini_batches(), request.options.batch_size.is_some() || is_newton)?;
    }
    if let Some(resume) = resume {
        // before the options, which are those of its features
        resume.check(features, decoder.features())?;
    }
    check_options(&request.options, decoder.features())?;
    if decoder.has_mini_batches() && request.first_point().hyperparameters.solver == Solver::Newton {
        return Err(TrainingError::NotOnCompressed("solver newton").into());
    }
    if let Some(resume) = resume
        && !decoder.adopt_model(&resume.decoder_state)
    {
        let hint = "Continue with labels of the type that the model was trained on.";
        return Err(refuse(&resume.model, "the label column's type does not have its classes", hint));
    }
    if let Some(group) = resume.and_then(|resume| resume.group.clone()) {
        // the first of them, whichever comes first
        decoder.meet_groups(&[group]);
    }
    Ok(())
}

/// Does a model go on in several groups? Several processes number them alike, and so do servers: they look for them
/// first.
pub fn goes_on_in_groups(request: &Request, resume: Option<&Resume>) -> bool {
    request.row_groups.group.is_some() && resume.is_some_and(|resume| resume.group.is_none())
}

/// Why a worker cannot fill the buffers of such a training, if it cannot.
pub fn no_loader_because(request: &Request, decoder: &Decoder) -> Option<&'static str> {
    let obstacles = [
        (request.workers > 1, "each of several processes loads its own"),
        (!request.row_groups.is_empty(), "the rows have groups or a validation set"),
        (decoder.has_mini_batches(), "the rows are compressed"),
        (request.shuffling.strategy.keeps_tuples(), "the strategy keeps tuples in the buffer"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why)
}
