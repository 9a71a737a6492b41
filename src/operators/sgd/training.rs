//! Training, from the first look at the source to the stored model.

use super::loading::{Loading, Took};
use super::request::Request;
use super::together::learn;
use super::workers::Team;
use crate::error::{Error, Notice, Result};
use crate::models::{self, Categories, ColumnKind, FeatureKind, NewModel};
use crate::operators::remote::Job;
use crate::operators::{Buffers, CachePlan, Features, OwnedSpec, Shuffling, Source};
use crate::pg::custom_scan::Flags;
use crate::pg::query::{Column, Running};
use pgrx::{IntoDatum, pg_sys};
use serde::Serialize;
use sgd::{EpochReport, Trainer};
use shuffle::Geometry;
use std::ffi::c_int;
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
}

impl EpochRow {
    /// Columns of the result of corgipile_train().
    pub const COLUMNS: usize = 8;

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
        }
    }

    /// What the epoch took, if it took `learn` to learn.
    fn took(&self, learn: Duration) -> Took {
        let load = Duration::from_secs_f64(self.seconds).saturating_sub(learn);
        Took { tuples: self.tuples as u64, load, learn }
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
    /// is there a pass over the rows before the first epoch?
    prepares: bool,
    pub(super) buffers: Buffers,
    loading: Loading,
    pub(super) outcome: Option<Vec<EpochRow>>,
    pub(super) compute: Duration,
    /// that have trained it, if several were asked for and it was trained
    pub(super) processes: Option<u32>,
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
        let label_type = source.type_of(&request.label)?;
        let features = match request.features.take() {
            Some(features) => features,
            None => source.default_features(&request.label, request.options.weight.as_deref())?,
        };
        let spec = request.decoder_spec(&features);
        let decoder = source.decoder(&spec)?;
        request.options.check_features(decoder.features())?;
        let prepares = request.options.standardize || decoder.needs_preparation();
        let first_epoch = if prepares { 0 } else { 1 };
        let cache = Some(CachePlan { mode: request.options.cache.unwrap_or_default(), epochs: request.max_epochs });
        let planned = source.plan(&spec, &Shuffling { first_epoch, cache, ..request.shuffling.clone() })?;
        let buffers = Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder);
        let job = Job::new(
            OwnedSpec::new(&request.decoder_spec(&features), source.columns()),
            request.max_epochs.into(),
            request.shuffling.strategy.sorts(),
        );
        let loading = Loading::new(&request, &buffers, job);
        Ok(Training {
            request,
            features,
            columns: source.columns().to_vec(),
            label_type,
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
    /// Whatever can be wrong with the rows; [`Error::Diverged`]; [`Error::ModelExists`]
    pub fn rows(&mut self) -> Result<&[EpochRow]> {
        if self.outcome.is_none() {
            models::check_can_store("corgipile_train()", self.request.name.as_deref())?;
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
        self.loading.begin(&mut self.buffers, self.prepares, standardize);
        if self.prepares {
            self.buffers.prepare(&mut batch, standardize)?;
        }
        // the copy of a full shuffle may have been made for this pass; it is booked on the first epoch
        let shuffle = if self.prepares { self.buffers.full_shuffle_time() } else { Duration::ZERO };
        let preparation = start.elapsed().saturating_sub(shuffle);
        if self.prepares {
            self.buffers.next_epoch()?;
        }
        let mut history: Vec<EpochRow> = Vec::new();
        let trainer = match self.assemble(&mut batch)? {
            Some((team, trainer)) => Some(self.epochs_together(team, trainer, &mut batch, &mut history)?),
            None => self.epochs(&mut batch, &mut history)?,
        };
        if let Some(first) = history.first_mut() {
            first.shuffle_seconds += shuffle.as_secs_f64();
        }
        let Some(trainer) = trainer else { return Err(Error::NoRows("train on")) };
        self.store(&trainer, history, preparation)
    }

    /// All epochs, and what has learned from them.
    fn epochs(&mut self, batch: &mut Batch, history: &mut Vec<EpochRow>) -> Result<Option<Trainer>> {
        let mut trainer = None;
        for epoch in 1..=self.request.max_epochs {
            if epoch > 1 {
                self.buffers.next_epoch()?;
            }
            let learned = self.compute;
            let row = self.epoch(&mut trainer, batch)?;
            if epoch == 1 {
                let took = row.took(self.compute - learned);
                self.loading.after_first_epoch(&mut self.buffers, &took, self.request.max_epochs - 1);
            }
            history.push(row);
        }
        // nothing can be stored before
        self.buffers.end_worker(batch)?;
        Ok(trainer)
    }

    /// All epochs, together with other processes, which have ended afterwards.
    fn epochs_together(
        &mut self,
        mut team: Team,
        mut trainer: Trainer,
        batch: &mut Batch,
        history: &mut Vec<EpochRow>,
    ) -> Result<Trainer> {
        let standardized = self.request.options.standardize;
        let diverged = |e: sgd::Diverged| Error::Diverged { epoch: e.epoch, standardized };
        for epoch in 1..=self.request.max_epochs {
            if epoch > 1 {
                self.buffers.next_epoch()?;
            }
            let start = Instant::now();
            trainer.begin_epoch();
            let check = |trainer: &Trainer| trainer.check().map_err(diverged);
            team.member.epoch(&mut self.buffers, &mut trainer, batch, check)?;
            if epoch == 1 {
                self.check_first_epoch()?;
            }
            let report = trainer.end_epoch().map_err(diverged)?;
            history.push(EpochRow::new(report, start.elapsed(), Duration::ZERO));
        }
        self.compute = team.member.compute;
        team.finish(self.buffers.query());
        Ok(trainer)
    }

    /// One epoch of SGD.
    fn epoch(&mut self, trainer: &mut Option<Trainer>, batch: &mut Batch) -> Result<EpochRow> {
        let start = Instant::now();
        if let Some(trainer) = trainer {
            trainer.begin_epoch();
        }
        while self.buffers.next_batch(batch)? {
            let compute = Instant::now();
            let trainer = match trainer {
                Some(trainer) => trainer,
                None => trainer.insert(self.trainer(batch)?),
            };
            self.learn(trainer, batch)?;
            self.compute += compute.elapsed();
            trainer.check().map_err(|e| self.diverged(e))?;
        }
        let Some(trainer) = trainer else { return Err(Error::NoRows("train on")) };
        if trainer.epoch() == 1 {
            self.check_first_epoch()?;
        }
        let report = trainer.end_epoch().map_err(|e| self.diverged(e))?;
        let shuffle = self.buffers.full_shuffle_time();
        Ok(EpochRow::new(report, start.elapsed().saturating_sub(shuffle), shuffle))
    }

    /// A trainer in its first epoch, for tuples as the first batch has them.
    fn trainer(&self, batch: &Batch) -> Result<Trainer> {
        let decoder = &self.buffers.decoder;
        decoder.check_size(batch.dim(), decoder.standardizer().is_some())?;
        let outputs = decoder.labels().outputs();
        let mut trainer = Trainer::new(self.request.hyperparameters, batch.dim(), outputs, batch.is_sparse())?;
        trainer.begin_epoch();
        Ok(trainer)
    }

    /// Learns from a buffer in its order.
    fn learn(&self, trainer: &mut Trainer, batch: &Batch) -> Result<()> {
        let places = batch.order().len();
        trainer.begin_buffer(places);
        learn(trainer, batch, self.buffers.decoder.labels().outputs(), 0..places)
    }

    /// What is known only when all rows have been seen, but should be said before learning on.
    fn check_first_epoch(&self) -> Result<()> {
        self.buffers.decoder.labels().check()?;
        if self.buffers.decoder.all_weigh_nothing() {
            return Err(Error::NoWeight);
        }
        self.notice_few_blocks();
        Ok(())
    }

    /// A small table of which the buffer holds a few pages is learned from page by page.
    fn notice_few_blocks(&self) {
        let Geometry { buffer_blocks, blocks, .. } = self.buffers.geometry();
        if self.request.shuffling.strategy.shuffles_tuples() && buffer_blocks < blocks.min(FEW_BLOCKS) {
            Notice::FewBlocks { buffer_blocks, blocks }.report();
        }
    }

    fn diverged(&self, error: sgd::Diverged) -> Error {
        Error::Diverged { epoch: error.epoch, standardized: self.request.options.standardize }
    }

    /// Stores the model and returns the rows with its id.
    fn store(&self, trainer: &Trainer, mut history: Vec<EpochRow>, preparation: Duration) -> Result<Vec<EpochRow>> {
        let decoder = &self.buffers.decoder;
        let mut linear = trainer.model()?;
        if linear.dim == 0 {
            return Err(Error::NoIndices);
        }
        let classes = decoder.labels().classes();
        if classes.as_ref().is_some_and(|classes| classes.swapped) {
            linear.negate();
        }
        let request = &self.request;
        let model_id = models::store(NewModel {
            name: request.name.as_deref(),
            kind: request.hyperparameters.kind,
            source: &request.source,
            label: &request.label,
            label_type: self.label_type,
            classes: classes.map(|classes| classes.names),
            features: &self.features,
            feature_kind: feature_kind(decoder.features(), &self.features),
            hyperparameters: request.to_json(self.buffers.geometry(), self.processes.unwrap_or(1)),
            linear,
            standardizer: decoder.standardizer().cloned(),
            skipped: decoder.skipped(),
            preparation,
            shuffle_bytes: self.buffers.full_shuffle_bytes(),
            history: serde_json::to_string(&history).expect("rows of plain values are always JSON"),
        })?;
        for row in &mut history {
            row.model_id = model_id;
        }
        Ok(history)
    }
}

/// What the model is to know of its features.
pub fn feature_kind(features: &Features, columns: &[String]) -> FeatureKind {
    match (features, features.index_base()) {
        (Features::Array { .. }, _) => FeatureKind::Array,
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
