//! The models of groups as one: what a name means if the names of the models of groups begin with it.
//!
//! Guarantees: all of them belong to one owner and were trained by one column; each is found as its own name would be,
//! the deployed version before the latest, with its own privileges. One lookup of the whole is one of its models,
//! however many there are.

use super::lookup::model_of;
use super::model::Model;
use super::names::{self, Access};
use crate::keyed_values::KeyedValues;
use crate::table::{self, Field, Key, KeyRef, ModelRow, ModelTable, StoredRole};
use choices::Choice;
use errors::{Error, ModelError, Result};
use options::rows::UnseenGroup;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

/// What the record of a training says of groups.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Grouping {
    /// the column by which each group has a model
    group_by: Option<String>,
    pub group: Option<String>,
    /// the same column, of the model of all rows
    all_groups_of: Option<String>,
    #[serde(default)]
    pub unseen_group: UnseenGroup,
}

/// Where the record of the model of all rows has the column of the groups: it has no group, and a warm start of it is
/// not to train groups.
pub const ALL_GROUPS_OF: &str = "all_groups_of";

impl Grouping {
    /// Of a model of a group, or of all rows next to such models; None of any other.
    pub fn of(self) -> Option<Grouping> {
        let is_of_group = self.group_by.is_some() && self.group.is_some();
        (is_of_group || self.all_groups_of.is_some()).then_some(self)
    }

    pub fn column(&self) -> &str {
        self.group_by.as_deref().or(self.all_groups_of.as_deref()).unwrap_or_default()
    }

    /// Is it the model of all rows?
    pub fn is_of_all(&self) -> bool {
        self.all_groups_of.is_some()
    }

    pub(super) fn of_row(row: &ModelRow) -> Option<Grouping> {
        row.json::<Grouping>("hyperparameters").ok().flatten().and_then(Grouping::of)
    }
}

/// What a name means where models predict.
#[derive(Clone)]
pub enum Found {
    Model(Rc<Model>),
    Groups(Rc<GroupModels>),
}

/// The models of groups under one name.
pub struct GroupModels {
    /// the name as the call has it, perhaps with the owner
    pub text: String,
    pub(super) owner: StoredRole,
    /// the name without its owner
    pub(super) name: String,
    /// the column whose value says which model is asked
    pub column: String,
    pub unseen: UnseenGroup,
    /// the model of all rows, if one was trained
    pub of_all: Option<Rc<Model>>,
    /// the name of one of the models, for hints
    pub example: String,
}

/// What a text means to the current user, for predictions.
pub fn found_to_predict(text: &str) -> Result<Found> {
    match super::lookup::find(KeyRef::Name(text)) {
        Ok(model) if model.grouping.as_ref().is_some_and(Grouping::is_of_all) => {
            Ok(Found::Groups(Rc::new(GroupModels::with_all(text, model)?)))
        }
        Ok(model) => Ok(Found::Model(model)),
        Err(error) if is_not_found(&error) => match GroupModels::find(text)? {
            Some(groups) => Ok(Found::Groups(Rc::new(groups))),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Model(ModelError::NoModelName(..) | ModelError::NoModels(_) | ModelError::NotPublished(_)))
}

impl GroupModels {
    /// Those whose names begin with this text.
    pub fn find(text: &str) -> Result<Option<GroupModels>> {
        let table = ModelTable::open();
        let first = first_of(&table, text);
        let found = first.and_then(|first| match first {
            None => Ok(None),
            Some(First { owner, name, group }) => {
                let example = format!("{text}/{group}");
                // whose models they are, the rules of names say
                let named = names::of_name(&table, &example)?;
                let grouping = table.find(&Key::Id(named.id), Grouping::of_row).flatten();
                let other = || ModelError::NoModelName(text.to_owned(), None);
                let grouping = grouping.filter(|_| owner.is_none_or(|owner| owner == named.owner)).ok_or_else(other)?;
                Ok(Some(GroupModels {
                    text: text.to_owned(),
                    owner: named.owner,
                    name,
                    column: grouping.column().to_owned(),
                    // a model of all rows that was dropped does not answer any more
                    unseen: match grouping.unseen_group {
                        UnseenGroup::Null => UnseenGroup::Null,
                        UnseenGroup::Error | UnseenGroup::All => UnseenGroup::Error,
                    },
                    of_all: None,
                    example,
                }))
            }
        });
        table.close();
        found
    }

    /// Those next to this model of all rows, which has the name of all of them.
    fn with_all(text: &str, model: Rc<Model>) -> Result<GroupModels> {
        let row = table::find(model.id, |row| (row.owner(), row.get::<String>(c"name")));
        let (owner, name) = row.ok_or(ModelError::NoModelId(model.id))?;
        let name = name.unwrap_or_default();
        let mut first = None;
        let table = ModelTable::open();
        each_of(&table, &name, &owner, |_, grouping| {
            first = grouping.group;
            ControlFlow::Break(())
        });
        table.close();
        Ok(GroupModels {
            text: text.to_owned(),
            owner,
            column: model.grouping.as_ref().map_or("", Grouping::column).to_owned(),
            unseen: UnseenGroup::All,
            of_all: Some(model),
            example: format!("{text}/{}", first.as_deref().unwrap_or("...")),
            name,
        })
    }

    /// The model of a group; None if it does not exist.
    pub fn of_group(&self, group: &str) -> Result<Option<Rc<Model>>> {
        let table = ModelTable::open();
        let key = Key::Name(format!("{}/{group}", self.name));
        let (mut latest, mut is_own, mut forbidden) = (None, false, None);
        table.each(&key, &mut |row| {
            let access = Access::of(row);
            is_own |= access == Some(Access::Owner);
            if row.owner() != self.owner {
                return;
            }
            let id: i64 = row.get(c"model_id").unwrap_or_default();
            if access.is_none() {
                forbidden = Some(id);
                return;
            }
            let order = (row.get(c"deployed").unwrap_or(false), row.get(c"version").unwrap_or(1));
            if latest.as_ref().is_none_or(|(before, _)| *before < order) {
                latest = Some((order, id));
            }
        });
        let found = match (latest, forbidden) {
            // whose model is meant would change from group to group
            _ if is_own && !self.owner.is_current_user() => Err(self.is_ambiguous(group)),
            (None, None) => Ok(None),
            (None, Some(id)) => Err(ModelError::ModelPermission(id).into()),
            (Some((_, id)), _) => model_of(&table, id, &key).map(Some),
        };
        table.close();
        // one that was renamed is not the model of its new name's group
        let is_of_group = |model: &Rc<Model>| {
            model.grouping.as_ref().is_some_and(|g| g.column() == self.column && g.group.as_deref() == Some(group))
        };
        Ok(found?.filter(is_of_group))
    }

    fn is_ambiguous(&self, group: &str) -> Error {
        let literal = |owner: String| format!("'{}'", format!("{owner}.{}", self.name).replace('\'', "''"));
        let current = StoredRole::of(table::current_user());
        let candidates = [current, self.owner.clone()].map(|owner| literal(owner.in_a_name()));
        ModelError::AmbiguousModel { name: format!("{}/{group}", self.text), candidates: candidates.to_vec() }.into()
    }

    /// The groups that have models, and the id of what the name of each means, in the order of the names.
    pub fn groups(&self) -> Vec<(String, i64)> {
        let mut groups: BTreeMap<String, ((bool, i32), i64)> = BTreeMap::new();
        let table = ModelTable::open();
        each_of(&table, &self.name, &self.owner, |row, grouping| {
            let order = (row.get(c"deployed").unwrap_or(false), row.get(c"version").unwrap_or(1));
            let id = row.get(c"model_id").unwrap_or_default();
            if let Some(group) = grouping.group.filter(|_| Access::of(row).is_some()) {
                let known = groups.entry(group).or_insert((order, id));
                if known.0 < order {
                    *known = (order, id);
                }
            }
            ControlFlow::Continue(())
        });
        table.close();
        groups.into_iter().map(|(group, (_, id))| (group, id)).collect()
    }

    /// The error of a function that takes one model.
    pub fn not_one_model(&self) -> Error {
        ModelError::OfGroups {
            name: self.text.clone(),
            column: self.column.clone(),
            example: self.example.clone(),
            of_all: self.of_all.as_ref().map(|model| model.id),
        }
        .into()
    }
}

/// The first of some models of groups.
struct First {
    /// if the text says it
    owner: Option<StoredRole>,
    /// of all of them, without their owner
    name: String,
    group: String,
}

/// The first model of a group that the current user may use whose name begins with this text.
fn first_of(table: &ModelTable, text: &str) -> Result<Option<First>> {
    let qualified = || names::with_owner(text).map(|(owner, name)| (Some(owner), name));
    let meanings = std::iter::once_with(|| Some((None, text.to_owned()))).chain(std::iter::once_with(qualified));
    let mut forbidden = None;
    for (owner, name) in meanings.flatten() {
        let (prefix, mut first) = (format!("{name}/"), None);
        table.each_with_prefix(&prefix, &mut |row| {
            let is_other = owner.as_ref().is_some_and(|owner| row.owner() != *owner);
            let grouping = grouping_of(row, &prefix).filter(|_| !is_other);
            let Some(group) = grouping.and_then(|grouping| grouping.group) else { return ControlFlow::Continue(()) };
            match Access::of(row) {
                None => forbidden = forbidden.or(row.get::<i64>(c"model_id")),
                Some(_) => first = Some(group),
            }
            if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Some(group) = first {
            return Ok(Some(First { owner, name, group }));
        }
    }
    forbidden.map_or(Ok(None), |id| Err(ModelError::ModelPermission(id).into()))
}

/// Are there models of groups whose names begin with this text?
pub(super) fn exist(table: &ModelTable, text: &str) -> bool {
    !matches!(first_of(table, text), Ok(None))
}

/// What the record says of the model in a row whose name is this prefix and its group.
fn grouping_of(row: &ModelRow, prefix: &str) -> Option<Grouping> {
    let grouping = Grouping::of_row(row)?;
    let has_name = row.get::<String>(c"name")?.strip_prefix(prefix) == Some(grouping.group.as_deref()?);
    has_name.then_some(grouping)
}

/// Shows `f` the models of groups under an owner's name, all versions of them, until it breaks.
fn each_of(
    table: &ModelTable,
    name: &str,
    owner: &StoredRole,
    mut f: impl FnMut(&ModelRow, Grouping) -> ControlFlow<()>,
) {
    let prefix = format!("{name}/");
    table.each_with_prefix(&prefix, &mut |row| {
        let grouping = if row.owner() == *owner { grouping_of(row, &prefix) } else { None };
        grouping.map_or(ControlFlow::Continue(()), |grouping| f(row, grouping))
    });
}

/// What models of groups there were under a name of the current user's before a training.
pub struct GroupsBefore {
    /// one of them
    pub example: i64,
    unseen: UnseenGroup,
}

/// What models of groups the current user has under this name, to which a training of groups by `column`, or of one
/// model, is to add.
///
/// # Errors
/// If the name would mean one model and models of groups, or groups of two columns.
pub fn groups_before(name: &str, column: Option<&str>) -> Result<Option<GroupsBefore>> {
    let table = ModelTable::open();
    let user = StoredRole::of(table::current_user());
    let (mut before, mut other) = (None, None);
    each_of(&table, name, &user, |row, grouping| {
        let example = row.get(c"model_id").unwrap_or_default();
        other = (Some(grouping.column()) != column).then(|| grouping.column().to_owned());
        before = Some(GroupsBefore { example, unseen: grouping.unseen_group });
        ControlFlow::Break(())
    });
    let mut is_one_model = false;
    table.each(&Key::Name(name.to_owned()), &mut |row| {
        let is_of_all = || Grouping::of_row(row).is_some_and(|of| of.is_of_all() && Some(of.column()) == column);
        is_one_model |= column.is_some() && row.owner() == user && !is_of_all();
    });
    table.close();
    let name = name.to_owned();
    match (is_one_model, other) {
        (true, _) => Err(ModelError::NameOfOneModel(name).into()),
        (false, Some(column)) => Err(ModelError::NameOfGroups { name, column }.into()),
        (false, None) => Ok(before),
    }
}

/// Keeps others from storing models of groups under this name of the current user's until the transaction ends.
pub fn lock_groups(name: &str) {
    table::lock_groups(&StoredRole::of(table::current_user()), name);
}

/// After a training of groups: all models under the name say the same of groups that training has not seen, as the last
/// training does. Reports a model of all rows that is older.
pub fn settle_unseen_group(name: &str, before: Option<&GroupsBefore>, unseen: UnseenGroup) {
    let user = StoredRole::of(table::current_user());
    let key = || vec![Field::new("name", Some(name.to_owned())), Field::role("owner", &user)];
    if before.is_some_and(|before| before.unseen != unseen) {
        let word = unseen.name();
        table::change(
            &format!(
                "UPDATE corgipile.stored_models
                    SET hyperparameters = hyperparameters || pg_catalog.jsonb_build_object('unseen_group', '{word}')
                  WHERE {OF_GROUPS} AND hyperparameters ? 'group'
                    AND hyperparameters ->> 'unseen_group' IS DISTINCT FROM '{word}'"
            ),
            key(),
        );
    }
    if unseen != UnseenGroup::All {
        let of_all = format!(
            "SELECT model_id FROM corgipile.stored_models WHERE {OF_GROUPS} AND name = $1
              ORDER BY deployed DESC, version DESC LIMIT 1"
        );
        if let Some(id) = table::ask(&of_all, key()) {
            pg::notice(
                format!("rows of other groups are still predicted by model {id}, of all rows of an earlier training"),
                "Drop it by its id with corgipile_drop(), or train with unseen_group => 'all'.",
            );
        }
    }
}

/// The condition for the models of groups under name $1 of owner $2, and the model of all rows next to them. The first
/// two comparisons are the index's.
pub(super) const OF_GROUPS: &str = "owner = $2 AND name >= $1 AND name < $1 || '0'
    AND (name = $1 AND hyperparameters ? 'all_groups_of'
         OR name = $1 || '/' || (hyperparameters ->> 'group') AND hyperparameters ? 'group_by')";
