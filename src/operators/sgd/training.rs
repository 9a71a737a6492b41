//! Training, from the first look at the source to the stored model.

use super::request::Request;
use crate::error::{Error, Notice, Result};
use crate::models::{self, ColumnKind, FeatureKind, NewModel};
use crate::operators::{Buffers, Source};
use crate::pg::check_for_interrupts;
use crate::pg::custom_scan::Flags;
use crate::pg::query::Running;
use pgrx::{IntoDatum, pg_sys};
use serde::Serialize;
use sgd::{EpochReport, Moments, Standardizer, Trainer};
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
    pub accuracy: Option<f64>,
    pub learning_rate: f64,
    pub tuples: i64,
    pub seconds: f64,
}

impl EpochRow {
    /// Columns of the result of corgipile_train().
    pub const COLUMNS: usize = 7;

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
        ]
    }
}

/// A training: opened, run once, closed.
pub struct Training {
    pub(super) request: Request,
    pub(super) features: Vec<String>,
    pub(super) label_type: pg_sys::Oid,
    pub(super) buffers: Buffers,
    pub(super) outcome: Option<Vec<EpochRow>>,
    pub(super) compute: Duration,
}

/// Floats that SGD may go through between two looks at pending interrupts: a fraction of a millisecond's work.
const FLOATS_PER_CHUNK: usize = 1 << 18;

/// With fewer blocks in the buffer, one block more of a class changes the class's share in it by over a tenth.
const FEW_BLOCKS: u32 = 10;

impl Training {
    /// Plans and starts the read of the source: from here on its privileges are checked and its rows fixed.
    ///
    /// # Errors
    /// Whatever can be wrong with the source; see [`Source`].
    pub fn open(mut request: Request, snapshot: pg_sys::Snapshot, instrument: c_int, flags: Flags) -> Result<Training> {
        let source = Source::resolve(&request.source)?;
        let label_type = source.label_type(&request.label)?;
        let features = match request.features.take() {
            Some(features) => features,
            None => source.default_features(&request.label)?,
        };
        let labels = source.labels(&request.label, None)?;
        let decoder = source.decoder(labels, &features, request.options.nulls, None)?;
        if request.options.standardize {
            request.shuffling.first_epoch = 0; // a pass in natural order, for mean and deviation
        }
        let planned = source.plan(&request.label, &features, &request.shuffling)?;
        let buffers = Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder);
        Ok(Training { request, features, label_type, buffers, outcome: None, compute: Duration::ZERO })
    }

    /// A row per epoch. The first call trains and stores the model.
    ///
    /// # Errors
    /// Whatever can be wrong with the rows; [`Error::Diverged`]; [`Error::ModelExists`]
    pub fn rows(&mut self) -> Result<&[EpochRow]> {
        if self.outcome.is_none() {
            models::check_can_store(self.request.name.as_deref())?;
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
        let mut batch = Batch::new(0);
        let standardizer = if self.request.options.standardize { Some(self.standardizer(&mut batch)?) } else { None };
        let preparation = start.elapsed();
        let mut trainer = None;
        let mut history = Vec::new();
        for epoch in 1..=self.request.max_epochs {
            if epoch > 1 || standardizer.is_some() {
                self.buffers.next_epoch()?;
            }
            history.push(self.epoch(&mut trainer, &mut batch, standardizer.as_ref())?);
        }
        let Some(trainer) = trainer else { return Err(Error::NoRows("train on")) };
        self.store(&trainer, standardizer, history, preparation)
    }

    /// One pass for mean and deviation of each feature.
    fn standardizer(&mut self, batch: &mut Batch) -> Result<Standardizer> {
        let mut moments: Option<Moments> = None;
        while self.buffers.next_batch(batch)? {
            check_for_interrupts();
            moments.get_or_insert_with(|| Moments::new(batch.dim())).add(batch);
        }
        moments.map(|moments| moments.finish()).ok_or(Error::NoRows("train on"))
    }

    /// One epoch of SGD.
    fn epoch(
        &mut self,
        trainer: &mut Option<Trainer>,
        batch: &mut Batch,
        standardizer: Option<&Standardizer>,
    ) -> Result<EpochRow> {
        let start = Instant::now();
        if let Some(trainer) = trainer {
            trainer.begin_epoch();
        }
        while self.buffers.next_batch(batch)? {
            let compute = Instant::now();
            let trainer = match trainer {
                Some(trainer) => trainer,
                None => {
                    let new = Trainer::new(self.request.hyperparameters, batch.dim(), 1, false)?;
                    let trainer = trainer.insert(new);
                    trainer.begin_epoch();
                    trainer
                }
            };
            if let Some(standardizer) = standardizer {
                standardizer.apply_batch(batch);
            }
            let chunk = (FLOATS_PER_CHUNK / batch.stride()).max(1);
            for from in (0..batch.len()).step_by(chunk) {
                trainer.learn(batch, from..(from + chunk).min(batch.len()))?;
                check_for_interrupts();
            }
            self.compute += compute.elapsed();
            trainer.check().map_err(|e| self.diverged(e))?;
        }
        let Some(trainer) = trainer else { return Err(Error::NoRows("train on")) };
        let report = trainer.end_epoch().map_err(|e| self.diverged(e))?;
        if report.epoch == 1 {
            self.buffers.decoder.labels().classes()?; // one class only: say so before learning on
            self.notice_few_blocks();
        }
        Ok(row(report, start.elapsed()))
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
    fn store(
        &self,
        trainer: &Trainer,
        standardizer: Option<Standardizer>,
        mut history: Vec<EpochRow>,
        preparation: Duration,
    ) -> Result<Vec<EpochRow>> {
        let (classes, swapped) = self.buffers.decoder.labels().classes()?;
        let mut linear = trainer.model()?;
        if swapped {
            linear.negate();
        }
        let request = &self.request;
        let model_id = models::store(NewModel {
            name: request.name.as_deref(),
            kind: request.hyperparameters.kind,
            source: &request.source,
            label: &request.label,
            label_type: self.label_type,
            classes: Some(classes.to_vec()),
            features: &self.features,
            feature_kind: if self.buffers.decoder.decodes_arrays() {
                FeatureKind::Array
            } else {
                FeatureKind::Columns(vec![ColumnKind::Number; self.features.len()])
            },
            hyperparameters: request.to_json(self.buffers.geometry()),
            linear,
            standardizer,
            skipped: self.buffers.decoder.skipped(),
            preparation,
            shuffle_bytes: None,
            history: serde_json::to_string(&history).expect("rows of plain values are always JSON"),
        })?;
        for row in &mut history {
            row.model_id = model_id;
        }
        Ok(history)
    }
}

fn row(report: EpochReport, elapsed: Duration) -> EpochRow {
    EpochRow {
        model_id: 0,
        epoch: report.epoch as i32,
        loss: report.loss,
        accuracy: report.accuracy,
        learning_rate: report.learning_rate,
        tuples: report.tuples as i64,
        seconds: elapsed.as_secs_f64(),
    }
}
