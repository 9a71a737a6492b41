//! Training, from the first look at the source to the stored model.

use super::group_order::GroupOrder;
use super::learners::{Learner, Learners};
use super::loading::{EpochTiming, Loading};
use super::request::Request;
use super::resume::{self, refuse};
use super::validation::{HeldOut, Judgement, Judges};
use super::workers::WorkerGroup;
use crate::errors::{Notice, Result, SourceError, TrainingError};
use crate::models::{self, Categories, ColumnKind, FeatureKind, NewModel};
use crate::operators::loader::LoadRequest;
use crate::operators::{Buffers, CachePlan, Features, MAX_WEIGHTS, OwnedSpec, RowGroups, Shuffling, Source};
use crate::pg;
use crate::pg::catalog::relation::base_type;
use crate::pg::check_for_interrupts;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::{Column, Running};
use crate::pg::process::progress::{self, Progress};
use crate::pg::values::array::AnyArray;
use pgrx::{IntoDatum, JsonB, pg_sys};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sgd::{EpochReport, Hyperparameters, Trainer};
use shuffle::Geometry;
use std::borrow::Cow;
use std::ffi::c_int;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// One epoch, as corgipile_train() returns it and as it is kept with the model.
#[derive(Debug, Clone, Serialize)]
pub struct EpochRow {
    #[serde(skip)]
    pub model_id: i64,
    pub epoch: i32,
    pub loss: f64,
    /// None for a model without classes
    pub accuracy: Option<f64>,
    pub learning_rate: f64,
    pub tuples: i64,
    /// without those of a full shuffle before the epoch
    pub seconds: f64,
    /// None for a model with classes
    pub r2: Option<f64>,
    /// time for a full shuffle before the epoch
    pub shuffle_seconds: f64,
    /// of the rows that are held out, by the model at the end of the epoch; None if none are
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_loss: Option<f64>,
    /// accuracy, or R²
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_score: Option<f64>,
    /// what the grid says of the model, as JSON
    #[serde(skip)]
    pub grid_point: Option<Rc<str>>,
    /// the group that the model is of
    #[serde(skip)]
    pub group_value: Option<Rc<str>>,
}

impl EpochRow {
    /// Columns of the result of corgipile_train().
    pub const COLUMNS: usize = 12;

    /// An epoch that took so long, without the full shuffle before it; the model is still to be stored.
    pub fn new(report: EpochReport, elapsed: Duration, shuffle: Duration) -> EpochRow {
        EpochRow {
            model_id: 0,
            epoch: report.epoch as i32,
            loss: report.loss,
            accuracy: report.accuracy,
            learning_rate: report.learning_rate,
            tuples: report.tuples as i64,
            seconds: elapsed.as_secs_f64(),
            r2: report.r2,
            shuffle_seconds: shuffle.as_secs_f64(),
            validation_loss: None,
            validation_score: None,
            grid_point: None,
            group_value: None,
        }
    }

    /// Loss and score, for a message.
    pub fn figures(&self) -> String {
        let figure = |name: &str, value: Option<f64>| value.map(|value| format!(", {name} {value:.6}"));
        let more = [
            figure("accuracy", self.accuracy),
            figure("R2", self.r2),
            figure("validation loss", self.validation_loss),
            figure("validation score", self.validation_score),
        ];
        format!("loss {:.6}{}", self.loss, more.into_iter().flatten().collect::<String>())
    }

    /// The row as its columns.
    pub fn values(&self) -> [Option<pg_sys::Datum>; EpochRow::COLUMNS] {
        [
            self.model_id.into_datum(),
            self.epoch.into_datum(),
            self.loss.into_datum(),
            self.accuracy.into_datum(),
            self.learning_rate.into_datum(),
            self.tuples.into_datum(),
            self.seconds.into_datum(),
            self.r2.into_datum(),
            self.validation_loss.into_datum(),
            self.validation_score.into_datum(),
            self.grid_point.as_deref().and_then(json_datum),
            self.group_value.as_deref().into_datum(),
        ]
    }
}

/// A training: opened, run once, closed.
pub struct Training {
    pub(super) request: Request,
    pub(super) features: Vec<String>,
    /// of the source
    pub(super) columns: Vec<Column>,
    label_type: pg_sys::Oid,
    /// that was named, if the source is no query
    relation: Option<pg_sys::Oid>,
    /// is there a pass over the rows before the first epoch?
    prepares: bool,
    pub(super) buffers: Buffers,
    loading: Loading,
    pub(super) outcome: Option<Vec<EpochRow>>,
    pub(super) compute: Duration,
    /// that have trained it, if several were asked for and it was trained
    pub(super) processes: Option<u32>,
    /// models that were stored
    pub(super) models: usize,
    split: Option<GroupOrder>,
    held_out: Option<HeldOut>,
    only_group: OnlyGroup,
}

/// The number of the group that the model of a group goes on with, once a row of it was met.
#[derive(Default)]
struct OnlyGroup {
    number: Option<usize>,
    /// groups that were looked at: a group's number never means another one
    seen: usize,
}

impl OnlyGroup {
    fn look_for(&mut self, name: &str, parts: &RowGroups) {
        while self.number.is_none() && self.seen < parts.count() {
            self.number = parts.is_named(self.seen, name).then_some(self.seen);
            self.seen += 1;
        }
    }
}

/// With fewer blocks in the buffer, one block more of a class changes the class's share in it by over a tenth.
const FEW_BLOCKS: u32 = 10;

impl Training {
    /// Plans and starts the read of the source: from here on its privileges are checked and its rows fixed.
    ///
    /// # Errors
    /// Whatever can be wrong with the source; see [`Source`].
    pub fn open(mut request: Request, snapshot: pg_sys::Snapshot, instrument: c_int, flags: Flags) -> Result<Training> {
        let source = Source::resolve(&request.source)?;
        let features = match request.features.take() {
            Some(features) => features,
            None => source.default_features(&request.label, &request.other_columns())?,
        };
        let spec = request.decoder_spec(&features);
        let mut decoder = source.decoder(&spec)?;
        let label_type = match source.type_of(&request.label)? {
            // an array of them for each mini-batch
            labels if decoder.has_mini_batches() => {
                AnyArray::of(base_type(labels)).map_or(labels, |array| array.element())
            }
            label => label,
        };
        if let Some(resume) = &request.resume {
            resume.check_blocks(decoder.has_mini_batches(), request.options.has_batch_size)?;
        }
        request.check_features(decoder.features())?;
        if decoder.has_mini_batches() && request.workers > 1 {
            return Err(TrainingError::NotOnCompressed("the argument workers").into());
        }
        if let Some(resume) = &request.resume {
            resume.check(&features, decoder.features())?;
            if !decoder.adopt_model(&resume.found) {
                let hint = "Continue with labels of the type that the model was trained on.";
                return Err(refuse(&resume.model, "the label's column cannot have its classes", hint));
            }
        }
        let prepares = request.resume.is_none() && (request.options.standardize || decoder.needs_preparation());
        let first_epoch = if prepares { 0 } else { request.first_epoch().into() };
        let cache = Some(CachePlan { mode: request.options.cache.unwrap_or_default(), epochs: request.max_epochs });
        let in_parts = !request.parts.is_empty();
        let planned = source.plan(&spec, &Shuffling { first_epoch, cache, in_parts, ..request.shuffling.clone() })?;
        if decoder.has_mini_batches() {
            // each mini-batch is as it was compressed
            request.points.iter_mut().for_each(|p| p.hyperparameters.batch_size = Hyperparameters::WHOLE_MINI_BATCHES);
        }
        let buffers = Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder);
        let job = LoadRequest::new(
            OwnedSpec::new(&request.decoder_spec(&features), source.columns()),
            request.last_epoch().into(),
            request.shuffling.strategy.sorts(),
        );
        let loading = Loading::new(&request, &buffers, job);
        Ok(Training {
            split: in_parts.then(|| GroupOrder::new(&request.shuffling)),
            held_out: request.parts.hold_out.is_some().then(HeldOut::new),
            only_group: OnlyGroup::default(),
            models: 0,
            request,
            features,
            columns: source.columns().to_vec(),
            label_type,
            relation: source.relation(),
            prepares,
            buffers,
            loading,
            outcome: None,
            compute: Duration::ZERO,
            processes: None,
        })
    }

    /// A row per epoch. The first call trains and stores the model.
    ///
    /// # Errors
    /// Whatever can be wrong with the rows; [`TrainingError::Diverged`]
    pub fn rows(&mut self) -> Result<&[EpochRow]> {
        if self.outcome.is_none() {
            models::check_can_store("corgipile_train()");
            let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
            let _shown = Progress::begin(self.relation, first, last);
            self.outcome = Some(self.train()?);
        }
        Ok(self.outcome.as_deref().unwrap_or_default())
    }

    /// Lets go of the source.
    pub fn close(self) {
        self.buffers.finish();
    }

    fn train(&mut self) -> Result<Vec<EpochRow>> {
        let start = Instant::now();
        let mut batch = Batch::dense(0);
        let standardize = self.request.options.standardize;
        let resume = self.request.resume.as_ref().map(|resume| resume.epochs);
        self.loading.begin(&mut self.buffers, self.prepares, resume, standardize);
        if self.prepares {
            self.buffers.prepare(&mut batch, standardize)?;
        }
        // the copy of a full shuffle may have been made for this pass; it is booked on the first epoch
        let shuffle = if self.prepares { self.buffers.full_shuffle_time() } else { Duration::ZERO };
        let preparation = start.elapsed().saturating_sub(shuffle);
        if self.prepares {
            self.buffers.next_epoch()?;
        }
        let mut learners = Learners::default();
        match self.assemble(&mut batch)? {
            Some((team, trainer)) => learners.add(self.epochs_together(team, trainer, &mut batch)?),
            None => self.epochs(&mut batch, &mut learners)?,
        }
        if learners.is_empty() {
            return Err(TrainingError::NoRows("train on").into());
        }
        self.store_all(learners, preparation, shuffle)
    }

    /// All epochs.
    fn epochs(&mut self, batch: &mut Batch, learners: &mut Learners) -> Result<()> {
        let (first, last) = (self.request.first_epoch(), self.request.last_epoch());
        for epoch in first..=last {
            if epoch > first {
                self.buffers.next_epoch()?;
            }
            let took = self.epoch(epoch, learners, batch)?;
            if epoch == first {
                self.loading.after_first_epoch(&mut self.buffers, &took, epoch, last - epoch);
            }
            self.judge(epoch, learners, batch)?;
            if learners.are_done() && epoch < last {
                return self.buffers.stop_worker(batch);
            }
        }
        // nothing can be stored before
        self.buffers.end_worker(batch)
    }

    /// All epochs, together with other processes, which have ended afterwards.
    fn epochs_together(&mut self, mut team: WorkerGroup, trainer: Trainer, batch: &mut Batch) -> Result<Learner> {
        let standardized = self.request.options.standardize;
        let diverged = |e: sgd::Diverged| TrainingError::Diverged { epoch: e.epoch, standardized }.into();
        let mut learner = Learner::new(0, 0, trainer);
        for epoch in 1..=self.request.max_epochs {
            if epoch > 1 {
                self.buffers.next_epoch()?;
            }
            let start = Instant::now();
            learner.trainer.begin_epoch();
            let check = |trainer: &Trainer| trainer.check().map_err(diverged);
            team.member.epoch(&mut self.buffers, &mut learner.trainer, batch, check)?;
            if epoch == 1 {
                self.check_first_epoch()?;
            }
            let report = learner.trainer.end_epoch().map_err(diverged)?;
            progress::loss(report.loss);
            learner.history.push(EpochRow::new(report, start.elapsed(), Duration::ZERO));
            learner.judge(&self.request, 1, None, &|_, _| None)?;
        }
        self.compute = team.member.compute;
        team.finish(self.buffers.query());
        Ok(learner)
    }

    /// One epoch of SGD, and what it took.
    fn epoch(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<EpochTiming> {
        let (start, compute_before) = (Instant::now(), self.compute);
        let mut tuples = 0;
        learners.begin_epoch();
        if let Some(split) = &mut self.split {
            split.begin_epoch(epoch.into());
        }
        while self.buffers.next_batch(batch)? {
            progress::tuples(batch.tuples_in_order());
            let compute = Instant::now();
            tuples += batch.tuples_in_order() as u64;
            self.learn(epoch, learners, batch)?;
            self.compute += compute.elapsed();
        }
        if learners.is_empty() || tuples == 0 {
            return Err(TrainingError::NoRows("train on").into());
        }
        if epoch == self.request.first_epoch() {
            self.check_first_epoch()?;
        }
        let shuffle = self.buffers.full_shuffle_time();
        let elapsed = start.elapsed().saturating_sub(shuffle);
        learners.end_epoch(&self.request, elapsed, shuffle)?;
        let learn = self.compute - compute_before;
        Ok(EpochTiming { tuples, load: elapsed.saturating_sub(learn), learn })
    }

    /// Learns from a buffer in its order, or in those of its parts.
    fn learn(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let first = self.request.first_epoch();
        let parts = match &mut self.split {
            None => vec![(0, 0..batch.order().len())],
            Some(split) => {
                let held_out = &mut self.held_out;
                split.split(batch, |group, batch, places| match held_out {
                    Some(held_out) if epoch == first => held_out.add(group, batch, places),
                    _ => Ok(()),
                })?
            }
        };
        let (decoder, outputs) = (&self.buffers.decoder, self.buffers.decoder.labels().outputs());
        let resume = self.request.resume.as_ref();
        let group_of_model = resume.and_then(|resume| resume.group.as_ref());
        if let (Some(name), Some(parts)) = (group_of_model, decoder.parts()) {
            self.only_group.look_for(name, parts);
        }
        let only = self.only_group.number;
        for part in parts.into_iter().filter(|(group, _)| group_of_model.is_none() || only == Some(*group)) {
            learners.learn(&self.request, outputs, batch, part, |point| {
                let (hyper, sparse) = (point.hyperparameters, batch.is_sparse());
                let dim = match hyper.design {
                    // its first weights depend on how many features there are
                    Some(_) => batch.dim().max(decoder.observed_dim()),
                    None => batch.dim(),
                };
                decoder.check_size(dim, decoder.standardizer().is_some())?;
                check_network(&hyper, dim, outputs)?;
                let mut trainer = match resume {
                    Some(resume) => resume.trainer(hyper, dim, outputs, sparse)?,
                    None => Trainer::new(hyper, dim, outputs, sparse)?,
                };
                trainer.begin_epoch();
                Ok(trainer)
            })?;
        }
        Ok(())
    }

    /// After an epoch: what those rows say that are held out, and who goes on.
    fn judge(&mut self, epoch: u32, learners: &mut Learners, batch: &mut Batch) -> Result<()> {
        let kind = self.request.kind;
        let judgements = match &mut self.held_out {
            None => Vec::new(),
            Some(held_out) => {
                if epoch == self.request.first_epoch() && !held_out.end_first_epoch() {
                    return Err(TrainingError::NoRows("validate on").into());
                }
                let models = learners.models()?;
                if held_out.must_be_read() {
                    self.read_held_out(epoch, Judges::new(kind, models), batch)?
                } else {
                    let judge = |(group, model)| {
                        check_for_interrupts();
                        held_out.judge(kind, group, &model)
                    };
                    models.into_iter().map(judge).collect()
                }
            }
        };
        let groups = self.buffers.decoder.parts().map(RowGroups::groups);
        let name = |group: usize, point: usize| self.suffix(groups.as_deref(), group, point);
        learners.judge(&self.request, self.request.first_epoch(), judgements.into_iter(), &name)
    }

    /// Goes through the epoch once more, for the sake of what is held out.
    fn read_held_out(&mut self, epoch: u32, mut judges: Judges, batch: &mut Batch) -> Result<Vec<Option<Judgement>>> {
        let Some(split) = &mut self.split else { return Ok(Vec::new()) };
        self.buffers.decoder.begin_epoch();
        self.buffers.set_epoch(epoch.into());
        while self.buffers.next_batch(batch)? {
            check_for_interrupts();
            split.held_out(batch, |group, batch, places| judges.add(group, batch, places))?;
        }
        Ok(judges.judgements().collect())
    }

    /// What tells a model from the others of this call: its group, the number of its point; None if there is only one.
    fn suffix(&self, groups: Option<&[Option<String>]>, group: usize, point: usize) -> Option<String> {
        let group = groups.and_then(|groups| groups.get(group)).cloned().flatten();
        let point = self.request.points[point].says.as_ref().map(|_| (point + 1).to_string());
        match (group, point) {
            (Some(group), Some(point)) => Some(format!("{group}/{point}")),
            (group, point) => group.or(point),
        }
    }

    /// What is known only when all rows have been seen, but should be said before learning on.
    fn check_first_epoch(&self) -> Result<()> {
        self.buffers.decoder.labels().check()?;
        if self.buffers.decoder.all_weigh_nothing() {
            return Err(TrainingError::NoWeight.into());
        }
        self.notice_few_blocks();
        Ok(())
    }

    /// A small table of which the buffer holds a few pages is learned from page by page.
    fn notice_few_blocks(&self) {
        let Geometry { pages, buffer_blocks, blocks, pages_per_block } = self.buffers.geometry();
        if self.buffers.decoder.has_mini_batches() {
            return; // whose mini-batches were mixed when they were made
        }
        let shuffling = &self.request.shuffling;
        if shuffling.strategy.shuffles_tuples() && buffer_blocks < blocks.min(FEW_BLOCKS) {
            // by its pages, or by what arrays take that are TOASTed
            let planned = shuffling.geometry(pages).map_or(buffer_blocks, |planned| planned.buffer_blocks);
            let (are_large, is_cut) = (
                pages_per_block > 1,
                shuffling.is_cut_to_memory(pages) || shuffling.is_a_share() && planned > buffer_blocks,
            );
            pg::tell(Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut });
        }
    }

    /// Stores the models, by group and point, and returns their rows.
    fn store_all(&mut self, learners: Learners, preparation: Duration, shuffle: Duration) -> Result<Vec<EpochRow>> {
        let parts = self.buffers.decoder.parts();
        let (groups, order) = (parts.map(RowGroups::groups), parts.map_or_else(|| vec![0], RowGroups::sorted));
        let mut rank = vec![0; order.len()];
        (0..).zip(&order).for_each(|(i, group)| rank[*group as usize] = i);
        let mut trained: Vec<Learner> = learners.into_trained().collect();
        trained.sort_by_key(|learner| (rank[learner.group], learner.point));
        let mut rows = Vec::new();
        for mut learner in trained {
            if let Some(first) = learner.history.first_mut() {
                first.shuffle_seconds += shuffle.as_secs_f64();
            }
            rows.extend(self.store(learner, groups.as_deref(), preparation)?);
            self.models += 1;
        }
        Ok(rows)
    }

    /// Stores a model and returns its rows with its id.
    fn store(
        &self,
        mut learner: Learner,
        groups: Option<&[Option<String>]>,
        preparation: Duration,
    ) -> Result<Vec<EpochRow>> {
        let decoder = &self.buffers.decoder;
        let earlier = self.request.resume.as_ref().filter(|_| learner.keeps_earlier(&self.request));
        let mut linear = match earlier {
            Some(resume) => resume.stored(),
            None => learner.take_model()?,
        };
        if linear.dim == 0 && decoder.has_mini_batches() {
            return Err(SourceError::NoFeatures { hint: "The compressed mini-batches have no columns.".into() }.into());
        }
        if linear.dim == 0 {
            return Err(TrainingError::NoIndices.into());
        }
        let classes = decoder.labels().classes();
        if earlier.is_none() && classes.as_ref().is_some_and(|classes| classes.swapped) {
            linear.negate();
        }
        let request = &self.request;
        let point = &request.points[learner.point];
        let group = groups.and_then(|groups| groups[learner.group].clone());
        let suffix = self.suffix(groups, learner.group, learner.point);
        let name = match (&request.name, suffix) {
            (Some(name), Some(suffix)) => Some(format!("{name}/{suffix}")),
            (name, _) => name.clone(),
        };
        let mut record = request.to_json(point, self.buffers.geometry(), self.processes.unwrap_or(1));
        if let (Some(column), Some(group)) = (&request.parts.group, &group) {
            record.insert("group_by".into(), column.as_str().into());
            record.insert("group".into(), group.as_str().into());
        }
        let losses = learner.losses;
        let training_state = resume::save(&learner.trainer, decoder.found(), losses);
        let mut history = learner.history;
        let before = request.resume.as_ref().map_or(&[][..], |resume| &resume.history);
        let model_id = models::store(NewModel {
            name: name.as_deref(),
            kind: request.kind,
            source: &request.source,
            label: &request.label,
            label_type: self.label_type,
            classes: classes.map(|classes| classes.names),
            features: &self.features,
            feature_kind: feature_kind(decoder.features(), &self.features),
            hyperparameters: Value::Object(record),
            linear,
            standardizer: decoder.standardizer().cloned(),
            skipped: decoder.skipped(),
            preparation,
            shuffle_bytes: self.buffers.full_shuffle_bytes(),
            history: as_json(before, &history),
            training_state,
        })?;
        let says: Option<Rc<str>> = point.says.clone().map(|says| Value::Object(says).to_string().into());
        let group: Option<Rc<str>> = group.map(Into::into);
        for row in &mut history {
            row.model_id = model_id;
            row.grid_point.clone_from(&says);
            row.group_value.clone_from(&group);
        }
        Ok(history)
    }
}

/// Epochs that were trained before, and these, as a JSON array.
fn as_json(before: &[Box<RawValue>], rows: &[EpochRow]) -> String {
    let rows = rows.iter().map(|row| serde_json::to_string(row).expect("a row of plain values is always JSON"));
    let mut json = String::from("[");
    for (i, row) in before.iter().map(|row| Cow::Borrowed(row.get())).chain(rows.map(Cow::Owned)).enumerate() {
        json.push_str(if i > 0 { "," } else { "" });
        json.push_str(&row);
    }
    json.push(']');
    json
}

/// JSON as a jsonb.
fn json_datum(text: &str) -> Option<pg_sys::Datum> {
    JsonB(serde_json::from_str(text).ok()?).into_datum()
}

/// Checks whether a network of so many features can be stored.
///
/// # Errors
/// [`TrainingError::NetworkTooLarge`]
pub(super) fn check_network(hyper: &Hyperparameters, dim: usize, classes: usize) -> Result<()> {
    match hyper.design.map(|design| design.weights(dim, classes)) {
        Some(weights) if weights > MAX_WEIGHTS => Err(TrainingError::NetworkTooLarge { dim, weights }.into()),
        _ => Ok(()),
    }
}

/// What the model is to know of its features.
pub fn feature_kind(features: &Features, columns: &[String]) -> FeatureKind {
    match (features, features.index_base()) {
        (Features::Array { .. } | Features::Compressed(_), _) => FeatureKind::Array,
        (Features::Sparse(_), Some(index_base)) => FeatureKind::Sparse { index_base },
        _ => {
            let categories = features.categories().unwrap_or_default();
            let of_column = |name: &String| categories.iter().find(|(column, _)| column == name);
            let kind = |name| match of_column(name).and_then(|(_, values)| Categories::new(values.clone())) {
                Some(categories) => ColumnKind::Categories(categories),
                None => ColumnKind::Number,
            };
            FeatureKind::Columns(columns.iter().map(kind).collect())
        }
    }
}
