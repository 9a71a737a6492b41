//! Argument `warm_start`: a training that begins with the weights of a model.
//!
//! What the arguments do not say is as it was in that training. Everything that follows from the rows, their weights or
//! the options is found again. If all of it is as it was, the training goes on: optimizer, learning rate and epochs
//! continue, and the model is the one that this many more epochs would have trained. If anything differs, it is a new
//! training with these first weights.

use crate::model_choice::AUTO;
use decode::{Decoder, DecoderState, FeatureColumns};
use errors::{Error, Result, TrainingError};
use loss::{Hyperparameters, ModelKind, ModelParameters};
use model::{self, ColumnKind, FeatureKind, Model, StoredTraining};
use options::call::TrainArguments;
use options::chosen::Point;
use options::loss::Loss;
use options::request::{Request, WarmStart};
use options::warm_start::{Before, decides_the_same, inherit, other_than_fixed};
use scan::worker_rows::json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sgd::{Losses, Trainer, Unfit};
use shuffle::Strategy;
use std::rc::Rc;

/// A training that is continued.
pub struct Resume {
    pub model: Rc<Model>,
    /// epochs that were trained before
    pub epochs: u32,
    pub decoder_state: DecoderState,
    pub losses: Losses,
    /// a JSON object per epoch
    pub history: Vec<Box<RawValue>>,
    /// the group whose rows the model has learned from
    pub group: Option<String>,
    /// was the source read together with other sessions?
    shared: bool,
    /// digest of the order in which blocks were read then
    pub order_digest: u64,
    trainer: Vec<u8>,
    /// its source and what it was recorded with
    source: String,
    record: Map<String, Value>,
    /// does it go on, or begin again with the weights of the model?
    goes_on: bool,
}

/// The part of the state that is not the trainer's.
#[derive(Serialize, Deserialize)]
struct StateHeader {
    decoder_state: DecoderState,
    losses: Losses,
    epochs: u32,
}

/// What the digest of the order of blocks is called in the record of a training.
pub const ORDER_DIGEST: &str = "order_digest";

/// The hint about a state that cannot be read.
const DAMAGED: &str = "It is damaged, or was written by another version of corgipile: train the model again.";

/// The state of a training that has ended, to be kept with its model.
pub fn save(trainer: &mut Trainer, decoder_state: DecoderState, losses: Losses) -> Option<Vec<u8>> {
    let header = StateHeader { decoder_state: decoder_state.without_features(), losses, epochs: trainer.epoch() };
    let header = json(&header);
    let room = model::MAX_STATE_BYTES.checked_sub(size_of::<u64>() + header.len())?;
    // a state that is not kept takes no memory
    trainer.saved_len().filter(|len| *len <= room)?;
    let mut state = Vec::new();
    allocation::append(&mut state, &(header.len() as u64).to_le_bytes());
    allocation::append(&mut state, &header);
    Some(trainer.save(state))
}

impl Resume {
    /// Were servers named, or chosen, to train on?
    pub fn was_on_servers(&self) -> bool {
        self.record.contains_key("servers")
    }

    /// Finds the model and gives the arguments what it was trained with, where they say nothing else.
    pub fn new(model: &str, arguments: &mut TrainArguments) -> Result<Resume> {
        let model = model::by_name_or_id(model)?;
        let StoredTraining { state, source, record, history } = model::stored_training(model.id)?;
        let refuse = |reason: &str, hint| refuse(&model, reason, hint);
        let none = "Only models that corgipile_train() has stored can be continued.";
        let state = state.ok_or_else(|| refuse("it was stored without its training state", none))?;
        let (header, trainer) = read(&state).ok_or_else(|| refuse("its training state cannot be read", DAMAGED))?;
        check_record(arguments, &model, &record)?;
        // a model of a group goes on with the rows of its group, unless the arguments say what groups there are to be
        let group = record.get("group").and_then(Value::as_str).filter(|_| arguments.says("group_by").is_none());
        let group = group.map(str::to_owned);
        let (kind, label) = (model.kind.name(), &model.label);
        if model.kind.is_linear() {
            // whatever name of a family it was given, with more classes or a loss
            arguments.set("model", kind.into());
        }
        inherit(arguments, &Before { model: kind, label, features: &model.features, record: &record });
        let mut losses = header.losses;
        if record.contains_key("stopped") {
            losses.forgive();
        }
        let decoder_state =
            header.decoder_state.with_features(model.to_standardizer(), model.fill().map(<[f32]>::to_vec));
        let decoder_state = decoder_state.with_profile(model::kept(&model)?.profile);
        let shared = record.get("shared_scan").and_then(Value::as_bool).unwrap_or_default();
        if shared {
            pg::notice(
                format!("model {} was trained with shared_scan: the order of its rows is not reproducible", model.id),
                "Training the same epochs again gives another model.",
            );
        }
        let digest = record.get(ORDER_DIGEST).and_then(Value::as_str);
        Ok(Resume {
            epochs: header.epochs,
            decoder_state,
            losses,
            history,
            group,
            shared,
            order_digest: digest.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default(),
            trainer: allocation::copy(trainer),
            source,
            record,
            goes_on: true,
            model,
        })
    }

    /// The epoch whose model `keep` `best` has stored: that of the lowest loss, of the rows held out if there are some.
    pub fn best_epoch(&self) -> u32 {
        let loss_of = |row: &RawValue| {
            let row: Value = serde_json::from_str(row.get()).ok()?;
            let loss = ["validation_loss", "loss"].into_iter().find_map(|name| row.get(name)?.as_f64())?;
            Some((row.get("epoch")?.as_u64()?.try_into().ok()?, loss))
        };
        let best = self.history.iter().filter_map(|row| loss_of(row)).min_by(|a: &(u32, f64), b| a.1.total_cmp(&b.1));
        best.map_or(self.epochs, |(epoch, _)| epoch)
    }

    /// Compares what is asked for with what the model was trained with: the training goes on only where that is the
    /// same.
    pub fn compare(&mut self, request: &mut Request) {
        let same = |point: &Point| decides_the_same(&self.record, &request.record(point));
        let other_groups = request.row_groups.group.is_some() && self.group.is_none();
        if other_groups || !request.points.iter().all(same) {
            self.begin_anew(request);
        }
        // where no pass measures the rows, only their source can say that they are others
        if !self.decoder_state.has_met() && request.source != self.source {
            self.begin_anew(request);
        }
    }

    /// Does the training go on?
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Makes it a training that begins with the weights of the model.
    pub fn begin_anew(&mut self, request: &mut Request) {
        (self.goes_on, self.epochs, self.losses, self.order_digest) = (false, 0, Losses::default(), 0);
        self.history.clear();
        request.resume.iter_mut().for_each(|resume| resume.epochs = 0);
    }

    /// Once the decoder knows what tuples are like: the weights of a training that begins again are those that say of
    /// them what the model says.
    pub fn settle(&mut self, decoder: &Decoder) {
        if self.goes_on {
            return;
        }
        let mut model = self.stored();
        if decoder.labels().classes().is_some_and(|classes| classes.swapped) {
            model.negate();
        }
        decoder.target().iter().for_each(|target| target.scale(&mut model));
        model.restandardize(self.model.to_standardizer().as_ref(), decoder.standardizer());
        self.trainer = sgd::initial_state(model);
    }

    /// The part of it that changes the request.
    pub fn warm_start(&self) -> WarmStart {
        WarmStart { model_id: self.model.id, epochs: self.epochs, shared: self.shared }
    }

    pub fn stored(&self) -> ModelParameters {
        self.model.linear().to_model()
    }

    /// Checks whether the features of a source are those of the model.
    pub fn check(&self, names: &[String], features: &FeatureColumns) -> Result<()> {
        let model = &self.model;
        let fits = names == model.features
            && match (&model.feature_kind, features) {
                (FeatureKind::Array, FeatureColumns::Array { .. } | FeatureColumns::Compressed(_)) => true,
                (FeatureKind::Sparse { index_base }, FeatureColumns::Sparse(_)) => {
                    features.index_base() == Some(*index_base)
                }
                (FeatureKind::Columns(kinds), FeatureColumns::Columns { .. }) => kinds.iter().all(is_number),
                (FeatureKind::Columns(kinds), FeatureColumns::Mixed(_)) => {
                    let categories = features.categories().unwrap_or_default();
                    let coding = |name: &String| categories.iter().find(|(column, _)| column == name);
                    names.iter().zip(kinds).all(|(name, kind)| kind.is_like(coding(name).map(|(_, coding)| coding)))
                }
                _ => false,
            };
        let hint = "Leave features out, and use a source with the columns that the model was trained on.";
        if fits { Ok(()) } else { Err(refuse(model, "the features are not those that it was trained on", hint)) }
    }

    /// Checks whether a source of compressed mini-batches, or of rows, is such a one as the model was trained on: then
    /// its mini-batches had a size, or none of their own.
    pub fn check_mini_batches(&self, has_mini_batches: bool, has_batch_size: bool) -> Result<()> {
        match (has_mini_batches, has_batch_size) {
            (true, true) => {
                let hint = "Continue on a table that is not compressed, and without the option batch_size.";
                Err(refuse(&self.model, "its training was on rows and not on compressed mini-batches", hint))
            }
            (false, false) => {
                let hint = "Continue on a compressed table.";
                Err(refuse(&self.model, "its training was on compressed mini-batches", hint))
            }
            _ => Ok(()),
        }
    }

    /// The trainer as it was, to continue with these hyperparameters.
    pub fn trainer(&self, hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Trainer> {
        self.fit(Trainer::resume(hyper, outputs, sparse, &self.trainer), (dim, outputs, sparse))
    }

    /// The same as the replica of one of several processes.
    pub fn replica(&self, hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Trainer> {
        self.fit(Trainer::resume_replica(hyper, outputs, sparse, &self.trainer), (dim, outputs, sparse))
    }

    pub fn trainer_state(&self) -> &[u8] {
        &self.trainer
    }

    /// The trainer, if it is one for tuples of this many features.
    fn fit(
        &self,
        trainer: std::result::Result<Trainer, Unfit>,
        (dim, outputs, sparse): (usize, usize, bool),
    ) -> Result<Trainer> {
        let model = &self.model;
        let hint = "Continue with the hidden_layer_sizes and output that it was trained with; leave them out to do so.";
        let trainer = trainer.map_err(|unfit| {
            refuse(model, &unfit.to_string(), if unfit == Unfit::Malformed { DAMAGED } else { hint })
        })?;
        // a trainer of a network for two classes says two, though its model has one output
        let expected = if model.kind.has_class_numbers() { model.classes.len() } else { 1 };
        let fits =
            outputs == expected && if sparse { trainer.dim() <= dim.max(model.dim()) } else { trainer.dim() == dim };
        let hint = "Give a source with as many features as the model was trained on.";
        if fits { Ok(trainer) } else { Err(refuse(model, "its training state is that of other features", hint)) }
    }
}

fn is_number(kind: &ColumnKind) -> bool {
    matches!(kind, ColumnKind::Number)
}

pub fn refuse(model: &Model, reason: &str, hint: &'static str) -> Error {
    TrainingError::WarmStart { model_id: model.id, reason: reason.to_owned(), hint }.into()
}

fn read(state: &[u8]) -> Option<(StateHeader, &[u8])> {
    let (len, rest) = state.split_first_chunk()?;
    let (header, trainer) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    Some((serde_json::from_slice(header).ok()?, trainer))
}

/// Checks what the training was, and what is asked of it, as far as its state does not tell.
fn check_record(arguments: &mut TrainArguments, model: &Model, record: &Map<String, Value>) -> Result<()> {
    let is_other = |given: &str| match given.parse::<ModelKind>() {
        // what a network predicts may have been decided by the labels, and a loss by an option
        Ok(given) => {
            let is_network = given == ModelKind::Mlp && !model.kind.is_linear();
            let of_loss = Loss::of(model.kind).and_then(|loss| loss.of_model(given));
            let is_of_loss = of_loss.is_some_and(|kind| kind == model.kind || kind.one_vs_rest() == Some(model.kind));
            given != model.kind && !is_network && !is_of_loss
        }
        Err(_) => true,
    };
    if arguments.text("model") == Some(AUTO) {
        arguments.take::<String>("model");
    }
    if arguments.text("model").is_some_and(is_other) {
        let hint = "Leave argument model out, or give the model's own kind.";
        return Err(refuse(model, &format!("it is a {} model", model.kind.name()), hint));
    }
    let was = |name: &str| match (name, &model.feature_kind) {
        ("index_base", FeatureKind::Sparse { index_base }) => Some(Value::from(*index_base)),
        ("index_base", _) => None,
        _ => record.get(name).cloned(),
    };
    if let Some((reason, hint)) = other_than_fixed(arguments, was) {
        return Err(refuse(model, &reason, hint));
    }
    let best = Some("best");
    if arguments.text("keep") == best && record.get("keep").and_then(Value::as_str) != best {
        let reason = "the weights of its best epoch were not kept";
        let hint = "Leave option keep out, or use it in the first training, too.";
        return Err(TrainingError::NotContinued { model_id: model.id, reason, hint }.into());
    }
    check_held_out(arguments, model, record)
}

/// Rows are held out to evaluate the model on what it has never learned from: the same must be held out as before. If
/// they are held out by block, blocks are as large as then, also where the table has grown.
fn check_held_out(arguments: &mut TrainArguments, model: &Model, record: &Map<String, Value>) -> Result<()> {
    const FRACTION: &str = "validation_fraction";
    const COLUMN: &str = "validation_column";
    let says = |key: &str| arguments.says(key);
    let held_out = says(FRACTION).is_some() || says(COLUMN).is_some();
    let (was_fraction, was_column) = (record.get(FRACTION), record.get(COLUMN));
    let fits_probabilities =
        says("probability").or_else(|| record.get("probability")).and_then(Value::as_bool) == Some(true);
    if !held_out && was_fraction.is_none() && was_column.is_none() && !fits_probabilities {
        return Ok(());
    }
    let differs = |key: &str| says(key).is_some_and(|given| record.get(key) != Some(given));
    let by_block = record.get("validation_by").and_then(Value::as_str) == Some("block");
    let sorts = |strategy: &str| strategy.parse::<Strategy>().is_ok_and(Strategy::sorts);
    let was_sorted = record.get("shuffle").and_then(Value::as_str).is_some_and(sorts);
    let is_other = match (was_fraction, was_column) {
        // whether rows that a column marks are new to the model is for the user to know
        (None, None) if says(COLUMN).is_some() && !fits_probabilities => {
            pg::notice(
                format!(
                    "no rows were held out when model {} was trained: it may have been trained on the rows held out now",
                    model.id
                ),
                "Their loss and score are meaningful only if the rows are new to the model; else train without warm_start.",
            );
            false
        }
        (None, None) => true,
        (Some(fraction), _) => {
            says(COLUMN).is_some()
                || says(FRACTION).is_some_and(|given| {
                    given != fraction || (arguments.text("validation_by") == Some("block")) != by_block
                })
                || differs("seed")
                || arguments.text("shuffle").is_some_and(|given| sorts(given) != was_sorted)
                || (by_block && differs("block_size"))
        }
        (None, Some(column)) => says(FRACTION).is_some() || says(COLUMN).is_some_and(|given| given != column),
    };
    if is_other {
        let hint = "To hold out the same rows as before, leave out seed, shuffle, block_size and the options of \
                    validation; or train without warm_start, with a validation_column if more trainings follow.";
        return Err(refuse(model, "it may have been trained on rows that are to be held out", hint));
    }
    if let Some(pages) = record.get("pages_per_block").and_then(Value::as_u64).filter(|_| by_block) {
        arguments.pages_per_block = u32::try_from(pages).ok();
    }
    if was_fraction.is_some() && arguments.says("recompute_statistics") != Some(&Value::Bool(false)) {
        pg::notice(
            format!(
                "rows are held out by their position in the table: model {} may have been trained on rows that have moved since",
                model.id
            ),
            "If the table was changed, mark the rows in a boolean column and name it in validation_column.",
        );
    }
    Ok(())
}
