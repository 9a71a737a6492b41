//! Training, from the first look at the source to the stored model.

use super::constant::{ClassShares, warn_of_useless};
use super::epoch_row::EpochRow;
use super::fallback::{Fallback, may_sample};
use super::first_epoch::check_first_epoch;
use super::group_order::OnlyGroup;
use super::learners::{HeldOutResult, Learners};
use super::model_choice::source_and_model;
use super::new_trainer::new_trainer;
use super::nodes::{Place, Remote, Traffic};
use super::opening::{check_decoder, fit_to_mini_batches, goes_on_in_groups, label_type, no_loader_because};
use super::penalty::Penalty;
use super::phases::{Phase, Phases, PreparationTimes};
use super::resume::Resume;
use super::sigmoids;
use super::store::{Store, suffix};
use super::validation::{OwnParts, check_held_out, held_out_result};
use super::workers::{self, Launched};
use super::zeros;
use decode::default_features::Takes;
use decode::notices::{notice_clipped, notice_imputed, notice_left_out, notice_open_order};
use decode::wanted::Wanted;
use decode::{DecoderSpec, FeatureColumns, NullCounts, OwnedSpec, RowGroups};
use errors::{Result, TrainingError};
use model::GroupsBefore;
use options::cache::CachePlan;
use options::call::TrainArguments;
use options::nodes::Nodes;
use options::request::Request;
use options::rows::Prepare;
use options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::{Column, Running};
use pg::snapshot::Snapshot;
use pgrx::pg_sys;
use scan::Buffers;
use scan::Source;
use scan::loader::{EpochTiming, LoadRequest, LoaderChoice};
use scan::preparation::{find_groups, prepare};
use scan::progress::{self, Progress};
use scan::scan_control::ScanControl;
use sgd::{Evaluation, Losses};
use std::ffi::c_int;
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// A training. It is opened, run once, and closed.
pub struct Training {
    pub(super) request: Request,
    /// the training that is continued
    pub(super) resume: Option<Resume>,
    pub(super) source: TrainingSource,
    /// what a pass over the rows before the first epoch is to find out; None without such a pass
    pub(super) prepares: Option<Wanted>,
    /// with what the training starts again if a sample of the rows turns out to say too little of them; None if that
    /// pass is not over a sample
    pub(super) fallback: Option<Box<Fallback>>,
    pub(super) buffers: Buffers,
    pub(super) loader: LoaderChoice,
    pub(super) outcome: Option<Vec<EpochRow>>,
    pub(super) phases: Phases,
    pub(super) summary: Summary,
    /// if rows fall into groups, or some are held out
    pub(super) parts: Option<OwnParts>,
    pub(super) seen: SeenRows,
    /// where the rows are trained on
    pub(super) place: Place,
    /// the training of one more model, of all rows, which follows that of the groups
    of_all_rows: Option<Box<Request>>,
    pub(super) penalty: Penalty,
    /// what was asked for, to be trained on rows that are fetched, if servers may turn out to take longer than that
    pub(super) original: Option<Box<Request>>,
    /// what models of groups there were under the name before
    pub(super) groups_before: Option<GroupsBefore>,
}

/// Where the rows come from.
pub struct TrainingSource {
    pub features: Vec<String>,
    pub columns: Vec<Column>,
    label_type: pg_sys::Oid,
    /// the relation that was named, if the source is no query
    pub relation: Option<pg_sys::Oid>,
    /// as [`Source::in_distributed_transaction`]
    in_distributed_transaction: bool,
}

/// What the first pass over the rows has met.
#[derive(Default)]
pub struct SeenRows {
    pub only_group: OnlyGroup,
    /// what models learn from in the first epoch
    pub class_shares: ClassShares,
    /// rows in which NULLs of features were imputed; None if they are not, or before they were counted
    pub imputed: Option<NullCounts>,
    /// rows of each group that were left out; None before they were counted
    pub skipped_of: Option<Vec<u64>>,
    /// was it told what of the rows is left out or cut off? A search has done so when its last training begins, which
    /// may get them from the cache, where nothing is left out or cut off again.
    pub skipped_rows_reported: bool,
}

/// What EXPLAIN ANALYZE shows of a training that is over.
#[derive(Default)]
pub struct Summary {
    /// processes that have trained the model, if several were asked for
    pub processes: Option<u32>,
    /// models that were stored
    pub models: usize,
    /// with the nodes, if the rows were trained on there
    pub traffic: Option<Traffic>,
    /// was it chosen, and reported, in which way several servers train?
    pub is_way_chosen: bool,
}

/// Trains and stores the model of all rows next to those of groups.
fn train_on_all_rows(request: Request, in_distributed_transaction: bool) -> Result<Vec<EpochRow>> {
    // not as the training of the groups has left the transaction
    let mut source = Source::resolve(&request.source)?;
    source.in_distributed_transaction = in_distributed_transaction;
    let open = |snapshot: Snapshot<'_>| {
        Training::open_request((request, source), None, (snapshot, 0, Flags::NONE), Phases::begin())
    };
    let mut training = Snapshot::with_active(open)?;
    let Request { name, all_groups_of, .. } = &training.request;
    training.groups_before = model::groups_before(name.as_deref().unwrap_or_default(), all_groups_of.as_deref())?;
    let rows = training.train()?;
    training.close();
    Ok(rows)
}

/// How the source is to be read: from epoch 0 on if there is a pass before the first one.
pub(super) fn shuffling_of(request: &Request, prepares: bool) -> Shuffling {
    Shuffling {
        first_epoch: if prepares { 0 } else { request.first_epoch().into() },
        cache: Some(CachePlan { mode: request.options.cache.unwrap_or_default(), epochs: request.max_epochs() }),
        shuffled_above: !request.row_groups.is_empty() && request.search.is_none(),
        ..request.shuffling.clone()
    }
}

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
        if request.has_open_objective && !flags.explain_only() && source.has_continuous(&request.label)? {
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
        let is_open = request.has_open_kind && wanted.moments;
        let more_classes = (wanted.more_classes || is_open) && resume.is_none();
        request.has_open_kind = is_open || (request.has_open_kind && flags.explain_only());
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
        let place = Place::new(&request, &spec, (&source, &planned))?;
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
            fallback,
            buffers,
            outcome: None,
            summary: Summary::default(),
            of_all_rows,
            penalty: match open_penalty {
                Some(request) if comes_here && !flags.explain_only() => Penalty::Open(request),
                _ => Penalty::Settled(None),
            },
            groups_before: None,
            original,
        })
    }

    /// A row per epoch. The first call trains and stores the model.
    pub fn rows(&mut self) -> Result<&[EpochRow]> {
        if self.outcome.is_none() {
            model::check_can_store("corgipile_train()");
            let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
            let name = self.request.name.as_deref().filter(|_| self.request.points.len() == 1);
            if let Some(name) = name {
                self.groups_before = model::groups_before(name, self.request.row_groups.group.as_deref())?;
            }
            let _shown = Progress::begin(self.source.relation, first, last);
            let mut rows = self.train()?;
            if let Some(request) = self.of_all_rows.take() {
                rows.extend(train_on_all_rows(*request, self.source.in_distributed_transaction)?);
            }
            self.outcome = Some(rows);
        }
        Ok(self.outcome.as_deref().unwrap_or_default())
    }

    /// Ends the read of the source.
    pub fn close(self) {
        self.buffers.finish();
    }

    pub(super) fn train(&mut self) -> Result<Vec<EpochRow>> {
        self.phases.resume();
        match self.train_there()? {
            Remote::Trained(learners, preparation) => {
                learners.warn_of_unconverged(self.request.kind);
                learners.warn_of_collinear(&self.buffers.decoder)?;
                return self.store(learners, preparation, Duration::ZERO);
            }
            Remote::Fetching(request) => return self.train_fetched(*request),
            Remote::Local => {}
        }
        self.buffers.start_to_run();
        let mut batch = Batch::dense(0);
        match self.prepare(&mut batch).and_then(|prepared| self.learn_and_store(&mut batch, prepared)) {
            Err(error) => {
                let Some(mut fallback) = self.fallback.take() else { return Err(error) };
                let what = self.missing_for(&mut fallback, &error).ok_or(error)?;
                self.start_again(*fallback, what, &mut batch)?;
                let prepared = self.prepare(&mut batch)?;
                self.learn_and_store(&mut batch, prepared)
            }
            done => done,
        }
    }

    /// Goes through the rows once before the first epoch, which is the next, if that is to find something out.
    pub(super) fn prepare(&mut self, batch: &mut Batch) -> Result<PreparationTimes> {
        self.phases.resume();
        let start = Instant::now();
        if self.fallback.is_some() {
            self.loader.prepare_from(Prepare::Sample, &mut self.buffers);
        }
        if self.resume.is_none() {
            self.loader.begin(&mut self.buffers, self.prepares, None);
        }
        let mut shuffle = Duration::ZERO;
        if let Some(wanted) = self.prepares {
            if self.resume.is_some() {
                self.buffers.decoder.measure_again();
            }
            prepare(&mut self.buffers, batch, wanted)?;
            // what is left out and imputed is counted where all rows are read
            if !self.buffers.decoder.is_of_sample() {
                self.fallback = None;
                self.count_imputed();
            }
            // the copy of a full shuffle may have been made for this pass; its time counts as the first epoch's
            shuffle = self.buffers.report().full_shuffle_time();
        } else if self.request.workers > 1 && goes_on_in_groups(&self.request, self.resume.as_ref()) {
            find_groups(&mut self.buffers, batch, self.request.first_epoch())?;
        }
        let preparation = start.elapsed().saturating_sub(shuffle);
        if self.prepares.is_some() {
            self.choose();
        } else {
            self.choose_features();
        }
        self.begin_with_model();
        match &self.resume {
            Some(_) => {
                self.buffers.control(&ScanControl::epoch(self.request.first_epoch().into()));
                let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
                self.loader.begin(&mut self.buffers, None, Some((first, last)));
            }
            None if self.prepares.is_some() => self.buffers.next_epoch()?,
            None => {}
        }
        self.phases.end(Phase::Preparation);
        Ok(PreparationTimes { time: preparation, shuffle })
    }

    /// If there is a model to begin with: its training goes on where nothing that it was derived from is another now,
    /// and begins again with its weights elsewhere.
    pub(super) fn begin_with_model(&mut self) {
        let Some(resume) = &mut self.resume else { return };
        let decoder = &mut self.buffers.decoder;
        decoder.scale_unseen(resume.model.to_standardizer().as_ref());
        if self.prepares.is_some() && resume.goes_on() && decoder.has_found(&resume.decoder_state) {
            decoder.adopt_measures(&resume.decoder_state);
        } else if self.prepares.is_some() {
            resume.begin_anew(&mut self.request);
        }
        resume.settle(decoder);
        // the next epoch is the first of this training, whichever was read before
        decoder.begin_epoch();
    }

    /// Learns, and gives the loss of each point on the rows that are held out; nothing is stored.
    pub(super) fn losses_held_out(&mut self) -> Result<Vec<f64>> {
        self.buffers.start_to_run();
        let (mut batch, mut learners) = (Batch::dense(0), Learners::default());
        self.prepare(&mut batch)?;
        self.epochs(&mut batch, &mut learners)?;
        let losses = learners.trained().filter_map(|learner| learner.history.last()?.validation_loss);
        Ok(losses.collect())
    }

    /// Learns, epoch by epoch, and stores what was learned. The first epoch is the next.
    pub(super) fn learn_and_store(&mut self, batch: &mut Batch, prepared: PreparationTimes) -> Result<Vec<EpochRow>> {
        let PreparationTimes { time: preparation, shuffle } = prepared;
        let mut learners = match self.launch_workers(batch)? {
            Some(launched) => self.train_with_workers(launched, batch)?,
            None => {
                let mut learners = Learners::default();
                self.epochs(batch, &mut learners)?;
                learners
            }
        };
        if learners.is_empty() {
            return Err(TrainingError::NoRows("train on").into());
        }
        learners.warn_of_unconverged(self.request.kind);
        learners.warn_of_collinear(&self.buffers.decoder)?;
        self.find_zeros(&mut learners, batch)?;
        self.fit_probabilities(&mut learners, batch)?;
        self.phases.end(Phase::Epochs);
        self.store(learners, preparation, shuffle)
    }

    /// Stores the models, which have taken so long to prepare, and a full shuffle before that.
    fn store(&mut self, learners: Learners, preparation: Duration, shuffle: Duration) -> Result<Vec<EpochRow>> {
        warn_of_useless(&self.request, &self.buffers.decoder, &self.seen.class_shares, &learners);
        let store = Store {
            request: &self.request,
            resume: self.resume.as_ref(),
            features: &self.source.features,
            label_type: self.source.label_type,
            buffers: &self.buffers,
            imputed: self.seen.imputed.as_ref(),
            skipped_of: self.seen.skipped_of.as_deref().unwrap_or_default(),
            processes: self.summary.processes.unwrap_or(1),
            preparation,
            shuffle,
            groups_before: self.groups_before.as_ref(),
        };
        let (rows, models) = store.store_all(learners)?;
        self.summary.models = models;
        self.phases.end(Phase::Storing);
        Ok(rows)
    }

    /// Starts workers that train in step with this process, if some were asked for and can be had.
    fn launch_workers(&mut self, batch: &mut Batch) -> Result<Option<Launched>> {
        if self.request.workers == 1 {
            return Ok(None);
        }
        self.request.train_together();
        let spec = OwnedSpec::new(&DecoderSpec::of_request(&self.request, &self.source.features), &self.source.columns);
        let (resume, groups) = (self.resume.as_ref(), self.groups_together());
        let launched = workers::launch((&self.request, resume, groups), spec, &mut self.buffers, batch)?;
        self.summary.processes = Some(launched.as_ref().map_or(1, |(processes, ..)| processes.rank.processes));
        Ok(launched)
    }

    fn epochs(&mut self, batch: &mut Batch, learners: &mut Learners) -> Result<()> {
        let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
        for epoch in first..=last {
            if epoch > first {
                self.buffers.next_epoch()?;
            }
            let timing = self.epoch(epoch, learners, batch)?;
            if epoch == first {
                self.loader.after_first_epoch(&mut self.buffers, &timing, epoch, last - epoch);
            }
            self.evaluate(epoch, learners, batch)?;
            if learners.are_done() && epoch < last {
                return self.buffers.stop_worker(batch);
            }
        }
        // nothing can be stored while there is a worker
        self.buffers.end_worker(batch)
    }

    /// What a loss is to be multiplied by to be that of the targets as they are.
    pub(super) fn loss_unit(&self) -> f64 {
        self.buffers.decoder.target().map_or(1.0, |target| target.loss_unit(self.request.kind))
    }

    /// One epoch of SGD. Returns its times.
    fn epoch(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<EpochTiming> {
        let (start, compute_before) = (Instant::now(), self.phases.compute);
        let mut tuples = 0;
        learners.begin_epoch();
        self.parts.iter_mut().for_each(|parts| parts.begin_epoch(epoch.into()));
        while self.buffers.next_batch(batch)? {
            progress::tuples(batch.tuples_in_order());
            if let (Some(fallback), Some(what)) = (&mut self.fallback, self.buffers.decoder.outside_of_sample()) {
                fallback.missing = Some(what);
                return Err(TrainingError::Diverged { epoch, standardized: true }.into());
            }
            let compute = Instant::now();
            tuples += batch.tuples_in_order() as u64;
            self.learn(epoch, learners, batch)?;
            self.phases.compute += compute.elapsed();
        }
        if learners.is_empty() || tuples == 0 {
            let left_out = if tuples == 0 { self.buffers.decoder.skipped() } else { 0 };
            return Err(TrainingError::no_rows("train on", left_out).into());
        }
        if epoch == self.request.first_epoch() {
            check_first_epoch(&self.request, &self.buffers)?;
            self.count_imputed();
            self.buffers.decoder.end_sample();
            let notices = self.fallback.as_mut().map(|fallback| std::mem::take(&mut fallback.notices));
            notices.into_iter().flatten().for_each(|(message, hint)| pg::notice(message, hint));
            if !self.seen.skipped_rows_reported {
                notice_left_out(&self.buffers.decoder, self.buffers.decoder.decoded());
                notice_clipped(&self.buffers.decoder);
            }
        }
        let shuffle = self.buffers.report().full_shuffle_time();
        let elapsed = start.elapsed().saturating_sub(shuffle);
        learners.end_epoch(&self.request, self.loss_unit(), elapsed, shuffle)?;
        let learn = self.phases.compute - compute_before;
        Ok(EpochTiming { tuples, load: elapsed.saturating_sub(learn), learn })
    }

    /// Keeps what was left out and imputed in the first pass over the rows, and tells what was imputed,
    /// which is the only one that decodes all of them.
    pub(super) fn count_imputed(&mut self) {
        let decoder = &self.buffers.decoder;
        self.seen.skipped_of.get_or_insert_with(|| decoder.skipped_of().to_vec());
        if let (None, Some(imputation)) = (&self.seen.imputed, decoder.imputation()) {
            self.seen.imputed = Some(imputation.counts().clone());
            notice_imputed(decoder);
        }
    }

    /// Learns from a buffer in its order, or group by group.
    fn learn(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let first = self.request.first_epoch();
        let groups = match &mut self.parts {
            None => vec![(0, 0..batch.order().len())],
            Some(parts) => parts.take(batch)?,
        };
        let (decoder, outputs) = (&self.buffers.decoder, self.buffers.decoder.labels().outputs());
        let resume = self.resume.as_ref();
        let group_of_model = resume.and_then(|resume| resume.group.as_ref());
        if let (Some(name), Some(row_groups)) = (group_of_model, decoder.row_groups()) {
            self.seen.only_group.look_for(name, row_groups);
        }
        let only = self.seen.only_group.number;
        for group in groups.into_iter().filter(|(group, _)| group_of_model.is_none() || only == Some(*group)) {
            if epoch == first && self.request.kind.is_classifier() {
                self.seen.class_shares.add(decoder, batch, group.0, group.1.clone());
            }
            learners.learn(&self.request, outputs, batch, group, |point| {
                let mut trainer = new_trainer(decoder, resume, point.hyperparameters, batch)?;
                trainer.begin_epoch();
                Ok((trainer, resume.map_or_else(Losses::default, |resume| resume.losses)))
            })?;
        }
        Ok(())
    }

    /// Finds the weights of the models that are to be stored that the penalty l1 holds at 0, if there is one.
    fn find_zeros(&mut self, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let continues = self.resume.is_some();
        if !zeros::may_be_missing(&self.request, continues, learners) {
            return Ok(());
        }
        let parts = self.parts.get_or_insert_with(|| OwnParts::of_one(&self.request.shuffling));
        let (_, mut rows) = parts.ended((self.request.last_epoch(), &mut self.buffers, batch));
        if self.summary.processes > Some(1) {
            rows.read_all_blocks();
        }
        zeros::find(&self.request, continues, learners, rows)
    }

    /// Is anything held out by which models are evaluated? In a search the folds are.
    fn holds_out(&self) -> bool {
        self.request.row_groups.hold_out.is_some() && self.request.search.is_none()
    }

    /// Fits probabilities to the decisions of the models that are to be stored, if that was asked for.
    fn fit_probabilities(&mut self, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let fits = self.request.options.probability && self.holds_out();
        let Some(parts) = self.parts.as_mut().filter(|_| fits) else { return Ok(()) };
        let (request, buffers, epoch) = (&self.request, &mut self.buffers, self.request.last_epoch());
        if self.summary.processes > Some(1) {
            parts.hold_out_all((epoch, &mut *buffers, &mut *batch))?;
        }
        let (held_out, rows) = parts.ended((epoch, buffers, batch));
        sigmoids::fit(request, self.resume.as_ref(), held_out, learners, rows)
    }

    /// Evaluates the models on the held out rows after an epoch, and decides which of them learn on.
    fn evaluate(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let (request, holds_out) = (&self.request, self.holds_out());
        let evaluations = match &mut self.parts {
            Some(parts) if holds_out => {
                let ended = (epoch, &mut self.buffers, batch);
                let (evaluations, held_out) = parts.evaluate(request.kind, learners.models()?, ended)?;
                check_held_out(request, held_out)?;
                evaluations
            }
            _ => Vec::new(),
        };
        self.take_evaluations(learners, &evaluations)
    }

    /// Takes what the held out rows say of the models that learn, if there are any, and decides which learn on.
    pub(super) fn take_evaluations(&self, learners: &mut Learners, evaluations: &[Evaluation]) -> Result<()> {
        for (learner, evaluation) in learners.learning().zip(evaluations) {
            learner.held_out = evaluation.confusion().of_classes();
        }
        let groups = self.buffers.decoder.row_groups().map(RowGroups::groups);
        let name = |group: usize, point: usize| suffix(&self.request, groups.as_deref(), group, point);
        let unit = self.loss_unit();
        let in_units = |result: HeldOutResult| HeldOutResult { loss: result.loss * unit, ..result };
        let results = evaluations.iter().map(|evaluation| held_out_result(evaluation).map(in_units));
        learners.take_results(&self.request, self.request.first_epoch(), results, &name)
    }
}
