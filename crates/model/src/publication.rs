//! Models that one server publishes to others: what is sent, and what a server does with what it gets.
//!
//! A model keeps its identity wherever it is published, so that publishing it again changes nothing. On the server that
//! gets it, it belongs to the role that brings it, who can give no one else's name or identity away: both count per
//! owner, and a name that another role has is refused, lest a name that is right on one server be another's on the
//! next.

use super::document::Document;
use super::groups::{GroupModels, Grouping};
use super::import::store_document;
use super::keyed_values::Fault;
use super::lookup::{id_to_predict, if_seen, not_found};
use super::management::name_one;
use super::names::{Access, as_id, resolve};
use super::store::check_can_store;
use crate::table::{self, Field, Key, ModelTable, StoredRole};
use choices::choice;
use errors::{Error, ModelError, Result};
use options::model_name::check_name;
use pg::values::jsonb::Jsonb;
use pgrx::{Uuid, pg_sys};

choice! {
    /// What a server did with a model that was published to it.
    Outcome {
        /// it has not had it
        Stored = "stored",
        /// it has had it, but its name meant another one, or it was not published
        Deployed = "deployed",
        /// there was nothing to do
        Present = "present",
    }
}

/// A model as it is known on the server that has got it.
pub struct Received {
    pub outcome: Outcome,
    pub id: i64,
    pub version: i32,
}

/// The model that a name means, or the version of it that is asked for.
pub fn version_id(name: &str, version: Option<i32>) -> Result<i64> {
    let table = ModelTable::open();
    let by_name = || {
        let named = resolve(&table, name)?;
        if table.find(&Key::Id(named.id), Grouping::of_row).flatten().is_some_and(|of| of.is_of_all()) {
            return Err(ModelError::NoModelName(name.to_owned(), None).into());
        }
        let Some(version) = version else { return Ok(named.id) };
        let mut id = None;
        table.each(&Key::Name(named.name), &mut |row| {
            let is_it = row.owner() == named.owner && row.get(c"version") == Some(version);
            if is_it && Access::to_see(row).is_some() {
                id = row.get(c"model_id");
            }
        });
        id.ok_or_else(|| ModelError::NoVersion { name: name.to_owned(), version }.into())
    };
    // an id is one version already, of a model that need not have a name
    let found = as_id(&table, name).filter(|_| version.is_none()).map_or_else(by_name, Ok);
    table.close();
    match found {
        // the models of groups are published one by one
        Err(error @ Error::Model(ModelError::NoModelName(..))) => {
            Err(GroupModels::find(name)?.map_or(error, |models| models.not_one_model()))
        }
        found => found,
    }
}

/// The identity of a model that the user may use and that other servers can have: one with a name, as it is committed.
pub fn identity(id: i64) -> Result<Uuid> {
    // for the privileges
    if_seen(id_to_predict(id)?)?;
    let found = table::find(id, |row| {
        let Some(name) = row.get::<String>(c"name") else { return Err(ModelError::Unnamed(id).into()) };
        if !row.is_committed() {
            return Err(ModelError::NotCommitted(name).into());
        }
        row.get(c"identity").ok_or_else(|| ModelError::CorruptModel(id, "it has no identity".to_owned()).into())
    });
    found.unwrap_or_else(|| Err(not_found(&Key::Id(id))))
}

/// Has the current user own this model under its name, and the name mean it.
pub fn receive(identity: Uuid, value: Jsonb) -> Result<Received> {
    let document = value.with_text(Document::read)?;
    let Some(name) = document.fitted.name.clone() else {
        return Err(Fault::missing("name").with_hint("Models that corgipile_publish() sends have one.").into());
    };
    check_name(&name)?;
    check_can_store("corgipile.receive_model()");
    let owner = StoredRole::of(table::current_user());
    // the name anyone who has it, before that of this owner
    table::lock_name(&StoredRole::of(pg_sys::Oid::INVALID), &name);
    table::lock_name(&owner, &name);
    let key = || vec![Field::new("name", Some(name.clone())), Field::role("owner", &owner)];
    let of_others = "SELECT model_id FROM corgipile.stored_models WHERE name = $1 AND owner <> $2 LIMIT 1";
    if table::ask(of_others, key()).is_some() {
        return Err(ModelError::NameTaken(name).into());
    }
    let known = "SELECT model_id FROM corgipile.stored_models WHERE identity = $1 AND owner = $2";
    let by_identity = vec![Field::new("identity", Some(identity)), Field::role("owner", &owner)];
    let undeploy = || {
        let sql = "UPDATE corgipile.stored_models SET deployed = false WHERE name = $1 AND owner = $2 AND deployed";
        table::change(sql, key());
    };
    let (outcome, id) = match table::ask(known, by_identity) {
        None => {
            undeploy();
            (Outcome::Stored, store_document(document, Some(&name), Some(identity))?)
        }
        Some(id) => {
            let renamed = name_one(id, &name) > 0;
            let is_meant = "SELECT model_id FROM corgipile.stored_models
                             WHERE name = $1 AND owner = $2 AND model_id = $3 AND deployed AND published";
            let mut values = key();
            values.push(Field::new("model_id", Some(id)));
            if !renamed && table::ask(is_meant, values).is_some() {
                (Outcome::Present, id)
            } else {
                undeploy();
                let sql = "UPDATE corgipile.stored_models SET deployed = true, published = true WHERE model_id = $1";
                table::change(sql, vec![Field::new("model_id", Some(id))]);
                (Outcome::Deployed, id)
            }
        }
    };
    let version = "SELECT version::bigint FROM corgipile.stored_models WHERE model_id = $1";
    let version = table::ask(version, vec![Field::new("model_id", Some(id))]).unwrap_or_default();
    Ok(Received { outcome, id, version: version as i32 })
}
