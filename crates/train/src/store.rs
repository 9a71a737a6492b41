//! How the models of a training are stored.

use super::epoch_row::EpochRow;
use super::features::feature_kind;
use super::learners::{Learner, Learners};
use super::resume::{self, Resume};
use decode::{Decoder, NullCounts, RowGroups};
use errors::{Result, SourceError, TrainingError};
use loss::ModelParameters;
use model::{self, Fitted, GroupsBefore, Kept, NewModel, Numbers};
use options::chosen::Point;
use options::loss::THRESHOLD;
use options::request::Request;
use pgrx::pg_sys;
use scan::Buffers;
use scan::scan_control::ScanReport;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sgd::platt::Sigmoids;
use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

/// What the models of a training have in common.
pub struct Store<'a> {
    pub request: &'a Request,
    pub resume: Option<&'a Resume>,
    pub features: &'a [String],
    pub label_type: pg_sys::Oid,
    pub buffers: &'a Buffers,
    /// rows in which NULLs of features were imputed; None if they do not impute
    pub imputed: Option<&'a NullCounts>,
    /// rows of each group that were left out
    pub skipped_of: &'a [u64],
    pub processes: u32,
    /// time of the pass before the first epoch, without a full shuffle
    pub preparation: Duration,
    /// time of a full shuffle for that pass, which counts as the first epoch's
    pub shuffle: Duration,
    /// what models of groups there were under the name before
    pub groups_before: Option<&'a GroupsBefore>,
}

impl Store<'_> {
    /// Stores the models, by group and point, and returns their rows and how many models there are.
    pub fn store_all(&self, learners: Learners) -> Result<(Vec<EpochRow>, usize)> {
        let row_groups = self.decoder().row_groups();
        let order = row_groups.map_or_else(|| vec![0], RowGroups::sorted);
        let groups = row_groups.map(RowGroups::groups);
        let mut rank = vec![0; order.len()];
        (0..).zip(&order).for_each(|(i, group)| rank[*group as usize] = i);
        let mut trained: Vec<Learner> = learners.into_trained().collect();
        trained.sort_by_key(|learner| (rank[learner.group], learner.point));
        let report = self.buffers.report();
        let models = trained.len();
        let (mut rows, mut names) = (Vec::new(), Vec::new());
        let of_groups = self.request.row_groups.group.is_some();
        if let (Some(name), true) = (&self.request.name, of_groups) {
            model::lock_groups(name);
        }
        for mut learner in trained {
            if let Some(first) = learner.history.first_mut() {
                first.shuffle_seconds += self.shuffle.as_secs_f64();
            }
            let name = self.name(&learner, groups.as_deref());
            rows.extend(self.store(learner, name.as_deref(), groups.as_deref(), &report)?);
            names.extend(name);
        }
        model::end_inserts();
        self.delete_replaced(names);
        if let (Some(name), true) = (&self.request.name, of_groups) {
            model::settle_unseen_group(name, self.groups_before, self.request.options.unseen_group);
        }
        Ok((rows, models))
    }

    /// Deletes older models, now that there are newer ones of these names, or without one.
    fn delete_replaced(&self, names: Vec<String>) {
        let Request { kind, source, label, options, .. } = self.request;
        let (has_unnamed, continued) = (names.is_empty(), self.resume.map(|resume| resume.model.id));
        let newer = model::Newer { names, has_unnamed, kind: *kind, source, label, continued };
        model::delete_replaced(newer, options.keep_versions);
    }

    /// The name of a model: that of the call, and what tells the model from others of the call.
    fn name(&self, learner: &Learner, groups: Option<&[Option<String>]>) -> Option<String> {
        match (&self.request.name, suffix(self.request, groups, learner.group, learner.point)) {
            (Some(name), Some(suffix)) => Some(format!("{name}/{suffix}")),
            (name, _) => name.clone(),
        }
    }

    fn decoder(&self) -> &Decoder {
        &self.buffers.decoder
    }

    /// Stores a model and returns its rows with its id.
    fn store(
        &self,
        mut learner: Learner,
        name: Option<&str>,
        groups: Option<&[Option<String>]>,
        report: &ScanReport,
    ) -> Result<Vec<EpochRow>> {
        let (request, decoder) = (self.request, self.decoder());
        let loss_number = learner.final_loss_number();
        let linear = self.parameters(&mut learner)?;
        let point = &request.points[learner.point];
        let group = groups.and_then(|groups| groups[learner.group].clone());
        let of_group = group.as_ref().map(|_| {
            let count = |counts: &[u64]| counts.get(learner.group).copied().unwrap_or_default();
            (count(self.skipped_of), count(self.imputed.map(|counts| &counts.groups[..]).unwrap_or_default()))
        });
        let has_stopped = learner.has_stopped;
        let mut sigmoids = learner.sigmoids.take();
        if decoder.labels().classes().is_some_and(|classes| classes.swapped) {
            sigmoids.iter_mut().for_each(Sigmoids::negate);
        }
        let training_state = resume::save(&mut learner.trainer, decoder.state(), learner.losses);
        let mut history = learner.history;
        let before = self.resume.map_or(&[][..], |resume| &resume.history);
        let kind = feature_kind(decoder.features(), self.features);
        let fitted = Fitted {
            name: name.map(str::to_owned),
            label: request.label.clone(),
            label_type: self.label_type,
            classes: decoder.labels().classes().map(|classes| classes.names),
            hyperparameters: self.record(point, group.as_deref(), report, (loss_number, has_stopped)),
            ..Fitted::new(request.kind, (self.features, &kind), linear.network)
        };
        let imputed = self.imputed.map(|counts| of_group.map_or(counts.rows, |group| group.1));
        let model_id = model::store(NewModel {
            fitted: fitted.with_sigmoids(sigmoids.as_ref()),
            numbers: Numbers::new(linear, decoder.standardizer().cloned(), decoder.fill()),
            kept: Kept {
                source: request.source.clone(),
                skipped: of_group.map_or(decoder.skipped(), |group| group.0) as i64,
                imputed: imputed.map(|rows| rows as i64),
                preparation_seconds: self.preparation.as_secs_f64(),
                shuffle_bytes: report.full_shuffle_bytes().map(|bytes| bytes as i64),
                // what was met in the pass is of all groups
                profile: decoder.profile().filter(|_| group.is_none()).cloned(),
            },
            history: as_json(before, &history),
            training_state,
            published_as: None,
            is_locked: request.row_groups.group.is_some(),
            granted_like: self.groups_before.map(|groups| groups.example),
        })?;
        let overrides: Option<Rc<str>> = point.says.clone().map(|says| Value::Object(says).to_string().into());
        let group: Option<Rc<str>> = group.map(Into::into);
        for row in &mut history {
            row.model_id = model_id;
            row.grid_point.clone_from(&overrides);
            row.group_value.clone_from(&group);
        }
        Ok(history)
    }

    /// The model to be stored: that of the last epoch, or of the best.
    fn parameters(&self, learner: &mut Learner) -> Result<ModelParameters> {
        let decoder = self.decoder();
        let earlier = self.resume.filter(|_| learner.keeps_earlier(self.request));
        let mut parameters = match earlier {
            Some(resume) => resume.stored(),
            None => learner.take_model()?,
        };
        if parameters.dim == 0 && decoder.has_mini_batches() {
            return Err(SourceError::NoFeatures { hint: "The compressed mini-batches have no columns.".into() }.into());
        }
        if parameters.dim == 0 {
            return Err(TrainingError::NoIndices.into());
        }
        if let (None, Some(seen)) = (earlier, learner.trainer.seen())
            && self.request.points[learner.point].hyperparameters.l2 == 0.0
        {
            // of many optima the one that says least of a category that no one has seen
            parameters.center(&feature_kind(decoder.features(), self.features).one_hot_places(), &seen);
        }
        if let (None, Some(target)) = (earlier, decoder.target()) {
            target.unscale(&mut parameters);
        }
        if earlier.is_none() && decoder.labels().classes().is_some_and(|classes| classes.swapped) {
            parameters.negate();
        }
        Ok(parameters)
    }

    /// The record of the training: what it takes to train the model of this point again.
    fn record(
        &self,
        point: &Point,
        group: Option<&str>,
        report: &ScanReport,
        (loss_number, has_stopped): (f64, bool),
    ) -> Map<String, Value> {
        let mut record = self.request.to_json(point, report.geometry(), self.processes);
        if self.request.kind.follows_residuals() {
            let scale = self.decoder().target().map_or(1.0, |target| target.scale);
            record.insert(THRESHOLD.into(), (loss_number * scale).into());
        }
        if let (Some(column), Some(group)) = (&self.request.row_groups.group, group) {
            record.insert("group_by".into(), column.as_str().into());
            record.insert("group".into(), group.into());
        }
        if let Some(column) = &self.request.row_groups.all_of {
            record.insert(model::ALL_GROUPS_OF.into(), column.as_str().into());
        }
        if self.request.shares() {
            let before = self.resume.map_or(0, |resume| resume.order_digest);
            let digest = before.wrapping_add(report.blocks.order.value());
            record.insert(resume::ORDER_DIGEST.into(), format!("{digest:016x}").into());
        }
        if has_stopped {
            record.insert("stopped".into(), true.into());
        }
        if let Some(says) = &point.says {
            record.insert("grid_point".into(), Value::Object(says.clone()));
        }
        record
    }
}

/// The part of a model's name that tells it from the others of the call: its group and the number of its point. None if
/// there is only one model.
pub fn suffix(request: &Request, groups: Option<&[Option<String>]>, group: usize, point: usize) -> Option<String> {
    let group = groups.and_then(|groups| groups.get(group)).cloned().flatten();
    let point = request.points[point].says.as_ref().map(|_| (point + 1).to_string());
    match (group, point) {
        (Some(group), Some(point)) => Some(format!("{group}/{point}")),
        (group, point) => group.or(point),
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
