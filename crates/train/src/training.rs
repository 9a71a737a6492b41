//! Training, from the first look at the source to the stored model.

use super::constant::{ClassShares, warn_of_useless};
use super::epoch_row::EpochRow;
use super::fallback::Fallback;
use super::first_epoch::check_first_epoch;
use super::group_order::OnlyGroup;
use super::learners::{HeldOutResult, Learners};
use super::new_trainer::new_trainer;
use super::nodes::{Place, Remote, Traffic};
use super::opening::goes_on_in_groups;
use super::penalty::Penalty;
use super::phases::{Phase, Phases, PreparationTimes};
use super::resume::Resume;
use super::sigmoids;
use super::store::{Store, suffix};
use super::validation::{OwnParts, check_held_out, held_out_result};
use super::workers::{self, Launched};
use super::zeros;
use decode::notices::{notice_clipped, notice_imputed, notice_left_out};
use decode::wanted::Wanted;
use decode::{DecoderSpec, NullCounts, OwnedSpec, RowGroups};
use errors::{Result, TrainingError};
use model::GroupsBefore;
use options::cache::CachePlan;
use options::request::Request;
use options::rows::Prepare;
use options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Column;
use pg::snapshot::Snapshot;
use pgrx::pg_sys;
use scan::Buffers;
use scan::Source;
use scan::loader::{EpochTiming, LoaderChoice};
use scan::preparation::{find_groups, prepare};
use scan::progress::{self, Progress};
use scan::scan_control::ScanControl;
use sgd::{Evaluation, Losses};
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
    pub(super) others: Others,
    pub(super) buffers: Buffers,
    pub(super) loader: LoaderChoice,
    pub(super) phases: Phases,
    pub(super) summary: Summary,
    /// if rows fall into groups, or some are held out
    pub(super) parts: Option<OwnParts>,
    pub(super) seen: SeenRows,
    /// where the rows are trained on
    pub(super) place: Place,
    pub(super) penalty: Penalty,
    /// what models of groups there were under the name before
    pub(super) groups_before: Option<GroupsBefore>,
}

/// Trainings that may take the place of this one, or follow it.
pub struct Others {
    /// with what the training starts again if a sample of the rows turns out to say too little of them; None if the
    /// first pass is not over a sample
    pub fallback: Option<Box<Fallback>>,
    /// one more model, of all rows, after those of the groups
    pub of_all_rows: Option<Box<Request>>,
    /// what was asked for, to be trained on rows that are fetched, if servers may turn out to take longer than that
    pub original: Option<Box<Request>>,
}

/// Where the rows come from.
pub struct TrainingSource {
    pub features: Vec<String>,
    pub columns: Vec<Column>,
    pub label_type: pg_sys::Oid,
    /// the relation that was named, if the source is no query
    pub relation: Option<pg_sys::Oid>,
    /// as [`Source::in_distributed_transaction`]
    pub in_distributed_transaction: bool,
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

/// What a training that is over returns, and EXPLAIN ANALYZE shows of it.
#[derive(Default)]
pub struct Summary {
    pub rows: Option<Vec<EpochRow>>,
    /// processes that have trained the model, if several were asked for
    pub processes: Option<u32>,
    pub models: usize,
    /// with the nodes, if the rows were trained on there
    pub traffic: Option<Traffic>,
    /// was it chosen, and reported, in which way several servers train?
    pub is_way_chosen: bool,
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
    /// A row per epoch. The first call trains and stores the model.
    pub fn rows(&mut self) -> Result<&[EpochRow]> {
        if self.summary.rows.is_none() {
            model::check_can_store("corgipile_train()");
            let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
            let name = self.request.name.as_deref().filter(|_| self.request.points.len() == 1);
            if let Some(name) = name {
                self.groups_before = model::groups_before(name, self.request.row_groups.group.as_deref())?;
            }
            let _shown = Progress::begin(self.source.relation, first, last);
            let mut rows = self.train()?;
            if let Some(request) = self.others.of_all_rows.take() {
                let Request { name, row_groups, .. } = &*request;
                let name = name.as_deref().unwrap_or_default();
                let groups_before = model::groups_before(name, row_groups.all_of.as_deref())?;
                rows.extend(self.train_other(*request, groups_before)?.0);
            }
            self.summary.rows = Some(rows);
        }
        Ok(self.summary.rows.as_deref().unwrap_or_default())
    }

    /// Trains and stores what another request asks for, of the same source, instead of this training or after it. Also
    /// returns the number of models.
    pub(crate) fn train_other(
        &self,
        request: Request,
        groups_before: Option<GroupsBefore>,
    ) -> Result<(Vec<EpochRow>, usize)> {
        let mut source = Source::resolve(&request.source)?;
        // not as this training may have left the transaction
        source.in_distributed_transaction = self.source.in_distributed_transaction;
        let open = |snapshot: Snapshot<'_>| {
            Training::open_request((request, source), None, (snapshot, 0, Flags::NONE), Phases::begin())
        };
        // all of it was reported when this training was opened
        let mut training = pg::quietly(|| Snapshot::with_active(open))?;
        training.groups_before = groups_before;
        let rows = training.train()?;
        let models = training.summary.models;
        training.close();
        Ok((rows, models))
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
            Remote::Fetching(request) => {
                let groups_before = self.groups_before.take();
                let (rows, models) = self.train_other(*request, groups_before)?;
                self.summary.models = models;
                return Ok(rows);
            }
            Remote::Local => {}
        }
        self.buffers.start_to_run();
        let mut batch = Batch::dense(0);
        match self.prepare(&mut batch).and_then(|prepared| self.learn_and_store(&mut batch, prepared)) {
            Err(error) => {
                let Some(mut fallback) = self.others.fallback.take() else { return Err(error) };
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
        if self.others.fallback.is_some() {
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
                self.others.fallback = None;
                self.count_imputed();
            }
            // the copy of a full shuffle may have been made for this pass; its time counts as the first epoch's
            shuffle = self.buffers.report().full_shuffle_time();
        } else if self.request.workers > 1 && goes_on_in_groups(&self.request, self.resume.as_ref()) {
            find_groups(&mut self.buffers, batch, self.request.first_epoch())?;
        }
        let preparation = start.elapsed().saturating_sub(shuffle);
        self.choose_and_begin();
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

    /// Makes the choices that are open. If there is a model to begin with, its training goes on where nothing that it
    /// was derived from is another now, and begins again with its weights elsewhere.
    pub(super) fn choose_and_begin(&mut self) {
        if self.prepares.is_some() {
            self.choose();
        } else {
            self.choose_features();
        }
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
            if let (Some(fallback), Some(what)) = (&mut self.others.fallback, self.buffers.decoder.outside_of_sample())
            {
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
            let notices = self.others.fallback.as_mut().map(|fallback| std::mem::take(&mut fallback.notices));
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
