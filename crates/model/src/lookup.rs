//! How models are found: by id or by name, through the cache and shared memory.

use super::cache;
use super::groups::{self, Found};
use super::model::Model;
use super::names::{self, Access};
use super::shared::{self, Stat};
use super::table::{self, Key, KeyRef, ModelRow, ModelTable};
use errors::{Error, ModelError, Result};
use pg::serves_another;
use std::rc::Rc;

/// The model that a text means, as [`name_to_predict`] has it, if the current user may see it.
pub fn by_name_or_id(text: &str) -> Result<Rc<Model>> {
    name_to_predict(text).and_then(if_seen)
}

/// The model with this id, for predictions, which a role may be let make without seeing the model.
pub fn id_to_predict(id: i64) -> Result<Rc<Model>> {
    find(KeyRef::Id(id))
}

/// The model that a text means to the current user ([`names`]), for predictions: an id, or the deployed version of a
/// name, else the latest.
///
/// # Errors
/// [`ModelError::OfGroups`] if it means the models of groups.
pub fn name_to_predict(text: &str) -> Result<Rc<Model>> {
    match groups::found_to_predict(text)? {
        Found::Model(model) => Ok(model),
        Found::Groups(groups) => Err(groups.not_one_model()),
    }
}

/// The model, which was found, if the current user may see it.
pub fn if_seen(model: Rc<Model>) -> Result<Rc<Model>> {
    let is_seen = table::find(model.id, |row| Access::to_see(row).is_some()).unwrap_or(false);
    if is_seen { Ok(model) } else { Err(ModelError::PredictOnly(model.id).into()) }
}

/// What `show` makes of the models with which the current user may predict and no more.
pub fn only_to_predict<R>(show: impl Fn(&ModelRow) -> R) -> Vec<R> {
    let table = ModelTable::open();
    let mut models = Vec::new();
    table.each_row(&mut |row| {
        if Access::to_see(row).is_none() && Access::of(row).is_some() {
            models.push(show(row));
        }
    });
    table.close();
    models
}

/// A part of another server's query sees no models of this one but those that were published to it: those that are
/// meant are the other server's. Here the same name may be another model's, and the same id always is.
pub(super) fn find(key: KeyRef<'_>) -> Result<Rc<Model>> {
    cache::find(key, look_up)
}

fn look_up(key: &Key) -> Result<Rc<Model>> {
    // the name, of a model that has to be published
    let published = match (key, serves_another()) {
        (_, false) => None,
        (Key::Name(name), true) => Some(name),
        (Key::Id(id), true) => return Err(ModelError::OfAnotherServer(*id).into()),
    };
    let table = ModelTable::open();
    // On another server the same number is another model's.
    let id = match (key, published) {
        (Key::Name(text), None) => names::as_id(&table, text),
        _ => None,
    };
    let key = &id.map_or_else(|| key.clone(), Key::Id);
    let found = id_of(&table, key).and_then(|id| model_of(&table, id, key));
    let of_groups = match (&found, key) {
        (Err(Error::Model(ModelError::NoModelName(..))), Key::Name(name)) => groups::exist(&table, name),
        _ => false,
    };
    table.close();
    match (found, published) {
        (found, _) if of_groups => found,
        (Err(Error::Model(ModelError::NoModelId(_) | ModelError::NoModelName(..))), Some(name)) => {
            Err(names::digits(name)
                .map_or_else(|| ModelError::NotPublished(name.clone()), ModelError::OfAnotherServer)
                .into())
        }
        (Err(Error::Model(ModelError::ModelPermission(_))), Some(name)) => {
            Err(ModelError::PublishedPermission(name.clone()).into())
        }
        (Err(Error::Model(ModelError::NoModelId(_) | ModelError::NoModelName(..))), None) if is_stored_later(key) => {
            Err(ModelError::LaterModel(not_found(key).to_string()).into())
        }
        (Err(Error::Model(ModelError::NoModelId(_) | ModelError::NoModelName(..))), None) if is_empty() => {
            Err(ModelError::NoModels(not_found(key).to_string()).into())
        }
        (found, _) => found,
    }
}

/// The model with this id, which `key` means, if the current user may predict with it: out of the session's cache if it
/// is there in this version.
pub(super) fn model_of(table: &ModelTable, id: i64, key: &Key) -> Result<Rc<Model>> {
    let model = table.find(&Key::Id(id), |row| {
        if Access::of(row).is_none() {
            return Err(ModelError::ModelPermission(id).into());
        }
        match key {
            Key::Name(name) if serves_another() && row.get(c"published") != Some(true) => {
                Err(ModelError::NotPublished(name.clone()).into())
            }
            _ => cache::version(id, row.version(), || load(id, row)),
        }
    });
    model.unwrap_or_else(|| Err(not_found(key)))
}

/// Are there no models at all, of anybody, seen by this statement or not?
fn is_empty() -> bool {
    let Some(table) = ModelTable::open_latest() else { return false };
    let is_empty = table.is_empty();
    table.close();
    is_empty
}

/// Has another transaction stored, and committed, a model for this key that the running statement does not see but the
/// current user may use?
fn is_stored_later(key: &Key) -> bool {
    let Some(table) = ModelTable::open_latest() else { return false };
    let id = id_of(&table, key);
    let found = id.is_ok_and(|id| table.find(&Key::Id(id), |row| Access::of(row).is_some()).unwrap_or(false));
    table.close();
    found
}

/// The id that a key means to the current user.
fn id_of(table: &ModelTable, key: &Key) -> Result<i64> {
    match key {
        Key::Id(id) => Ok(*id),
        Key::Name(name) => names::of_name(table, name).map(|named| named.id),
    }
}

/// The model in a row, its numbers in shared memory if there is any and others may see the row.
fn load(id: i64, row: &ModelRow) -> Result<Model> {
    if !shared::enabled() || !row.is_committed() {
        return Model::read(id, row, None);
    }
    match shared::claim(&row.shared_key(id)) {
        shared::Claim::Found(shared) => Model::read(id, row, Some(shared)),
        shared::Claim::Private => Model::read(id, row, None),
        shared::Claim::Load(loading) => {
            let model = Model::read(id, row, None)?;
            let shared = loading.publish(model.arrays());
            Ok(match shared {
                Some(shared) => model.moved_to(shared),
                None => model,
            })
        }
    }
}

/// The error about a key that means no model.
pub fn not_found(key: &Key) -> Error {
    match key {
        Key::Id(id) => ModelError::NoModelId(*id).into(),
        Key::Name(name) => ModelError::NoModelName(name.clone(), None).into(),
    }
}

/// The statistics in shared memory about models of this database that the current user may see.
pub fn stats() -> Vec<Stat> {
    let stats = shared::stats();
    if stats.is_empty() {
        return stats;
    }
    let table = ModelTable::open();
    let is_seen = |stat: &Stat| table.find(&Key::Id(stat.model), |row| Access::to_see(row).is_some()).unwrap_or(false);
    let stats = stats.into_iter().filter(is_seen).collect();
    table.close();
    stats
}

/// A row of the table was changed or deleted.
pub fn forget(id: i64) {
    shared::forget(id);
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use pg::testing::{in_subtransaction, one, run};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_a_name_means_what_the_transaction_has_stored_last() {
        run(
            "CREATE TABLE looked_up AS SELECT (i > 50)::int AS label, ARRAY[i / 100.0] AS x FROM generate_series(1, 100) i",
        );
        let train = |seed| {
            run(&format!(
                "SELECT * FROM corgipile_train('looked_up', max_epochs => 1, seed => {seed}, name => 'looked_up')"
            ));
        };
        let predict = || one::<f64>("SELECT (corgipile_predict_proba('looked_up', ARRAY[0.3]))[1]").to_bits();
        train(1);
        let first = predict();
        let second = in_subtransaction(|| {
            train(2);
            predict().to_string()
        });
        assert_ne!(second, first.to_string(), "the version of a subtransaction");
        assert_eq!(predict(), first, "which was rolled back");
        train(2);
        assert_eq!(predict().to_string(), second, "and which is the same as one that stays");
    }
}
