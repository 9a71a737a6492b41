//! The rows of a source, each for the model of its group.
//!
//! Guarantees: the source is read once for all models that see rows in the same way, as those of one training do; a row
//! goes to the model that predicts it, and what goes to none is counted and reported. Memory holds the models and one
//! buffer.

use crate::model_rows::{ModelRows, parameters_for, tell_of_rows};
use crate::validation::{PER_EVALUATION, copy, like};
use decode::{Decoder, RowGroups};
use errors::{ModelError, PredictError, Result, TrainingError};
use loss::ModelParameters;
use model::{self, GroupModels, Model, Policies};
use options::rows::UnseenGroup;
use pg::check_for_interrupts;
use scan::Source;
use std::collections::HashMap;
use std::rc::Rc;
use tuples::{Batch, TupleSource};

/// The models of groups, of which the current user may see each.
pub struct ModelsByGroup {
    pub models: Rc<GroupModels>,
    /// by the names of their groups; the model of all rows is the last, if there is one
    pub members: Vec<Member>,
}

/// A model, and the rows that it answers for.
pub struct Member {
    /// None of the model of all rows
    pub group: Option<String>,
    pub model: Rc<Model>,
}

/// Rows that went to no model.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel {
    /// left out because of NULLs
    pub skipped: u64,
    /// of groups that training has not seen, whose prediction is NULL
    pub unseen: u64,
}

impl NoModel {
    /// All of them.
    pub fn rows(self) -> u64 {
        self.skipped + self.unseen
    }
}

impl ModelsByGroup {
    /// Looks all of them up.
    pub fn new(models: Rc<GroupModels>) -> Result<ModelsByGroup> {
        let mut members = Vec::new();
        for (group, _) in models.groups() {
            check_for_interrupts();
            if let Some(model) = models.of_group(&group)? {
                let model = model::if_seen(model)?;
                members.push(Member { group: Some(group), model });
            }
        }
        if let Some(of_all) = &models.of_all {
            members.push(Member { group: None, model: model::if_seen(of_all.clone())? });
        }
        match members.is_empty() {
            true => Err(ModelError::NoModelName(models.text.clone(), None).into()),
            false => Ok(ModelsByGroup { models, members }),
        }
    }

    /// One of them, for what is the same of all.
    pub fn first(&self) -> &Rc<Model> {
        &self.members[0].model
    }

    /// Checks that all predict the same labels by the same loss, so that what they say can be added up.
    pub fn check_alike(&self) -> Result<()> {
        let first = self.first();
        let is_alike = |model: &Model| {
            model.kind == first.kind
                && model.label == first.label
                && model.classes == first.classes
                && model.sigmoids.is_some() == first.sigmoids.is_some()
        };
        match self.members.iter().find(|member| !is_alike(&member.model)) {
            None => Ok(()),
            Some(other) => {
                Err(ModelError::GroupsDiffer { one: first.in_error(), other: other.model.in_error() }.into())
            }
        }
    }

    /// Shows `take` all rows, a few at a time, with the place of the model that each is for. `given` are the arguments
    /// nulls and handle_unknown of the call.
    pub fn read(
        &self,
        source: &str,
        weight: Option<&str>,
        given: [Option<&str>; 2],
        mut take: impl FnMut(usize, &ModelParameters, &Batch) -> Result<()>,
    ) -> Result<NoModel> {
        let mut no_model = NoModel::default();
        for (number, alike) in self.alike().iter().enumerate() {
            let model = &self.members[alike[0]].model;
            let policies = Policies::of_call(model, given)?;
            let reading = ModelRows { weight, group: Some(&self.models.column), ..ModelRows::plain(policies) };
            let mut buffers = reading.plan_source(model, Source::resolve(source)?)?.start();
            if buffers.decoder.has_mini_batches() {
                return Err(TrainingError::NotOnCompressed("this function with models of groups").into());
            }
            let mut answering = Answering::new(self, &mut buffers.decoder);
            let (mut batch, mut parameters) = (Batch::dense(0), HashMap::new());
            let (mut by_group, mut scratch): (Vec<Vec<u32>>, Option<Batch>) = (Vec::new(), None);
            while buffers.next_batch(&mut batch)? {
                check_for_interrupts();
                let mut met = Vec::new();
                for place in batch.order() {
                    let group = batch.tags().and_then(|tags| tags.get(*place as usize)).copied().unwrap_or_default();
                    let group = group as usize;
                    if by_group.len() <= group {
                        by_group.resize(group + 1, Vec::new());
                    }
                    if by_group[group].is_empty() {
                        met.push(group);
                    }
                    by_group[group].push(*place);
                }
                for group in met {
                    let places = std::mem::take(&mut by_group[group]);
                    let Some(member) = answering.of(group, &buffers.decoder)? else {
                        no_model.unseen += if number == 0 { places.len() as u64 } else { 0 };
                        continue;
                    };
                    if alike.binary_search(&member).is_err() {
                        continue;
                    }
                    let model = &self.members[member].model;
                    let parameters =
                        parameters.entry(member).or_insert_with(|| parameters_for(model, &buffers.decoder));
                    let scratch = scratch.get_or_insert_with(|| like(&batch));
                    for places in places.chunks(PER_EVALUATION) {
                        scratch.clear();
                        copy(&batch, places, scratch)?;
                        take(member, parameters, scratch)?;
                    }
                }
            }
            let decoder = buffers.into_decoder();
            no_model.skipped = no_model.skipped.max(tell_of_rows(&decoder));
        }
        if no_model.unseen > 0 {
            pg::notice(
                format!("{} rows are of groups that training has not seen, and have no prediction", no_model.unseen),
                "They are left out. Train with unseen_group => 'all' to predict them by a model of all rows.",
            );
        }
        Ok(no_model)
    }

    /// The models, those together that see rows in the same way.
    fn alike(&self) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = Vec::new();
        for (i, member) in self.members.iter().enumerate() {
            match all.iter_mut().find(|alike| sees_alike(&self.members[alike[0]].model, &member.model)) {
                Some(alike) => alike.push(i),
                None => all.push(vec![i]),
            }
        }
        all
    }
}

/// Which model answers for which group, by the numbers that a decoder gives to groups.
struct Answering<'a> {
    by_group: &'a ModelsByGroup,
    /// None of a group without a model
    members: Vec<Option<usize>>,
}

impl<'a> Answering<'a> {
    /// The decoder learns the names of all groups first: equal values may be written in several ways.
    fn new(by_group: &'a ModelsByGroup, decoder: &mut Decoder) -> Answering<'a> {
        let mut members = Vec::new();
        for (i, member) in by_group.members.iter().enumerate() {
            let Some(group) = &member.group else { continue };
            if let [number] = decoder.meet_groups(std::slice::from_ref(group))[..] {
                members.resize(members.len().max(number + 1), None);
                members[number].get_or_insert(i);
            }
        }
        Answering { by_group, members }
    }

    /// The model of a group; None if its rows have no prediction.
    fn of(&mut self, group: usize, decoder: &Decoder) -> Result<Option<usize>> {
        if let Some(member) = self.members.get(group).copied().flatten() {
            return Ok(Some(member));
        }
        let ModelsByGroup { models, members } = self.by_group;
        match models.unseen {
            UnseenGroup::All => Ok(members.iter().position(|member| member.group.is_none())),
            UnseenGroup::Null => Ok(None),
            UnseenGroup::Error => {
                let groups = decoder.row_groups().map(RowGroups::groups).unwrap_or_default();
                let group = groups.get(group).cloned().flatten().unwrap_or_default();
                Err(PredictError::UnseenGroup {
                    name: models.text.clone(),
                    column: models.column.clone(),
                    group: Some(group),
                }
                .into())
            }
        }
    }
}

/// Do two models make the same tuples of rows?
fn sees_alike(one: &Model, other: &Model) -> bool {
    one.kind == other.kind
        && one.label == other.label
        && one.classes == other.classes
        && one.dim() == other.dim()
        && one.features == other.features
        && one.feature_kind == other.feature_kind
        && one.transform == other.transform
        && one.clip == other.clip
        && (one.nulls, one.unseen) == (other.nulls, other.unseen)
        && one.scaling() == other.scaling()
        && one.fill() == other.fill()
}
