//! Management of models after training: names, versions, comments, deletion. It is for owners and members of owners.

use super::groups::{GroupModels, Grouping, OF_GROUPS};
use super::lookup::not_found;
use super::names::{Access, Named, as_id, resolve};
use super::store::json;
use crate::table::{self, Field, FloatArray, Key, ModelTable, StoredRole};
use errors::{Error, ModelError, Result};
use options::model_name::check_name;
use sgd::conformal::Calibration;
use sgd::profile::Profile;

#[derive(Debug, Clone, Copy)]
pub enum ModelSelector<'a> {
    Id(i64),
    /// all versions of a name, or the one that it means; perhaps with its owner. Or one, by the digits of its id.
    Name(&'a str),
}

/// Makes a name mean this version, or the latest again. Gives the id of what it means then.
pub fn deploy(name: &str, version: Option<i32>) -> Result<i64> {
    let (owner, name) = match Meant::of_name(name)? {
        Meant::Groups { owner, name } => return deploy_groups(&owner, &name, version),
        Meant::Name { owner, name, .. } => (owner, name),
        Meant::Id { .. } => return Err(gone(ModelSelector::Name(name))),
    };
    let name = name.as_str();
    table::lock_name(&owner, name);
    if let Some(version) = version {
        // Found before anything changes, and once more by the statement below, which sees what others have committed.
        let known = of_name(name, &owner).contains(&version);
        if !known {
            return Err(ModelError::NoVersion { name: name.to_owned(), version }.into());
        }
    }
    // One after the other: at no time are two deployed.
    let key = || vec![Field::new("name", Some(name)), Field::role("owner", &owner)];
    const KEY: &str = "name = $1 AND owner = $2";
    table::change(&format!("UPDATE corgipile.stored_models SET deployed = false WHERE {KEY} AND deployed"), key());
    if let Some(version) = version {
        let mut values = key();
        values.push(Field::new("version", Some(version)));
        let sql = format!("UPDATE corgipile.stored_models SET deployed = true WHERE {KEY} AND version = $3");
        if table::change(&sql, values) == 0 {
            return Err(ModelError::NoVersion { name: name.to_owned(), version }.into());
        }
    }
    let meant = "SELECT model_id FROM corgipile.stored_models WHERE name = $1 AND owner = $2
                  ORDER BY deployed DESC, version DESC LIMIT 1";
    table::ask(meant, key()).ok_or_else(|| ModelError::NoModelName(name.to_owned(), None).into())
}

/// The same for the models of groups under a name: each that has this version. Gives the id of what the name of the
/// first of them means then.
fn deploy_groups(owner: &StoredRole, name: &str, version: Option<i32>) -> Result<i64> {
    table::lock_groups(owner, name);
    let key = || vec![Field::new("name", Some(name)), Field::role("owner", owner)];
    let with_version = || {
        let mut values = key();
        values.push(Field::new("version", version));
        values
    };
    let mut without = 0;
    if let Some(version) = version {
        let count = "SELECT count(*) FROM corgipile.stored_models";
        if table::ask(&format!("{count} WHERE {OF_GROUPS} AND version = $3"), with_version()).unwrap_or(0) == 0 {
            return Err(ModelError::NoVersion { name: name.to_owned(), version }.into());
        }
        let lacks = "SELECT count(*) FROM (SELECT name FROM corgipile.stored_models";
        let lacks = format!("{lacks} WHERE {OF_GROUPS} GROUP BY name HAVING NOT bool_or(version = $3)) AS m");
        without = table::ask(&lacks, with_version()).unwrap_or(0);
    }
    // a group without the version keeps what it means
    let undeployed = "UPDATE corgipile.stored_models AS m SET deployed = false WHERE deployed AND ($3 IS NULL OR EXISTS
                          (SELECT FROM corgipile.stored_models AS o
                            WHERE o.name = m.name AND o.owner = m.owner AND o.version = $3))";
    table::change(&format!("{undeployed} AND {OF_GROUPS}"), with_version());
    if version.is_some() {
        let deployed = "UPDATE corgipile.stored_models SET deployed = true WHERE version = $3";
        table::change(&format!("{deployed} AND {OF_GROUPS}"), with_version());
    }
    if without > 0 {
        pg::notice(
            format!("{without} of the groups have no such version, and mean what they meant before"),
            "corgipile.models lists the versions of each, under its own name.",
        );
    }
    let meant = "SELECT model_id FROM corgipile.stored_models";
    let meant = format!("{meant} WHERE {OF_GROUPS} ORDER BY name, deployed DESC, version DESC LIMIT 1");
    table::ask(&meant, key()).ok_or_else(|| ModelError::NoModelName(name.to_owned(), None).into())
}

/// Gives one model, or all versions of a name, another name. One model becomes the latest version of the name.
pub fn rename(which: ModelSelector, new_name: &str) -> Result<()> {
    check_name(new_name)?;
    let meant = Meant::of(which)?;
    let owner = meant.owner();
    table::lock_name(owner, new_name);
    let renamed = match &meant {
        Meant::Id { id, .. } => name_one(*id, new_name),
        Meant::Name { name, .. } | Meant::Groups { name, .. } if name == new_name => 1,
        Meant::Groups { name, .. } => {
            [name, new_name].into_iter().for_each(|name| table::lock_groups(owner, name));
            let taken = "SELECT model_id FROM corgipile.stored_models
                          WHERE owner = $2 AND (name = $1 OR name >= $1 || '/' AND name < $1 || '0') LIMIT 1";
            if table::ask(taken, vec![Field::new("name", Some(new_name)), Field::role("owner", owner)]).is_some() {
                return Err(ModelError::ModelExists(new_name.to_owned()).into());
            }
            table::change(
                &format!(
                    "UPDATE corgipile.stored_models SET name = $3 || substr(name, length($1) + 1) WHERE {OF_GROUPS}"
                ),
                vec![
                    Field::new("name", Some(name.as_str())),
                    Field::role("owner", owner),
                    Field::new("name", Some(new_name)),
                ],
            )
        }
        Meant::Name { name, .. } => {
            table::lock_name(owner, name);
            let taken = "SELECT model_id FROM corgipile.stored_models WHERE name = $1 AND owner = $2 LIMIT 1";
            if table::ask(taken, vec![Field::new("name", Some(new_name)), Field::role("owner", owner)]).is_some() {
                return Err(ModelError::ModelExists(new_name.to_owned()).into());
            }
            table::change(
                "UPDATE corgipile.stored_models SET name = $3 WHERE name = $1 AND owner = $2",
                vec![
                    Field::new("name", Some(name.as_str())),
                    Field::role("owner", owner),
                    Field::new("name", Some(new_name)),
                ],
            )
        }
    };
    let same = matches!(meant, Meant::Id { .. });
    if renamed == 0 && !same { Err(gone(which)) } else { Ok(()) }
}

/// Gives one model this name, as the latest version of it; who calls holds the lock of the name. Gives how many models
/// had another name before.
pub(super) fn name_one(id: i64, new_name: &str) -> usize {
    table::change(
        "UPDATE corgipile.stored_models AS m SET name = $1, deployed = false, version = COALESCE(
                (SELECT max(GREATEST(o.version, o.last_version)) + 1 FROM corgipile.stored_models AS o
                  WHERE o.name = $1 AND o.owner = m.owner), 1), last_version = NULL
          WHERE model_id = $2 AND name IS DISTINCT FROM $1",
        vec![Field::new("name", Some(new_name)), Field::new("model_id", Some(id))],
    )
}

/// Deletes one model, a version of a name, or all of them. Gives how many there were.
pub fn drop(which: ModelSelector, version: Option<i32>) -> Result<i64> {
    let dropped = match Meant::of(which)? {
        Meant::Id { id, .. } => table::change(
            "DELETE FROM corgipile.stored_models WHERE model_id = $1 AND version = COALESCE($2, version)",
            vec![Field::new("model_id", Some(id)), Field::new("version", version)],
        ),
        Meant::Name { owner, name, .. } => table::change(
            "DELETE FROM corgipile.stored_models WHERE name = $1 AND owner = $2 AND version = COALESCE($3, version)",
            vec![Field::new("name", Some(name)), Field::role("owner", &owner), Field::new("version", version)],
        ),
        Meant::Groups { owner, name } => table::change(
            &format!("DELETE FROM corgipile.stored_models WHERE {OF_GROUPS} AND version = COALESCE($3, version)"),
            vec![Field::new("name", Some(name)), Field::role("owner", &owner), Field::new("version", version)],
        ),
    };
    match (dropped, which, version) {
        (0, ModelSelector::Name(name), Some(version)) => {
            Err(ModelError::NoVersion { name: name.to_owned(), version }.into())
        }
        (0, which, _) => Err(gone(which)),
        (dropped, ..) => Ok(dropped as i64),
    }
}

/// Sets the comment on one model, or on the version that a name means. None removes it.
pub fn comment(which: ModelSelector, text: Option<&str>) -> Result<()> {
    let id = match (Meant::of(which)?, which) {
        (Meant::Id { id, .. } | Meant::Name { id, .. }, _) => id,
        (Meant::Groups { .. }, ModelSelector::Name(text)) => {
            return Err(GroupModels::find(text)?.map_or_else(|| gone(which), |groups| groups.not_one_model()));
        }
        (Meant::Groups { .. }, ModelSelector::Id(_)) => return Err(gone(which)),
    };
    let sql = "UPDATE corgipile.stored_models SET comment = $2 WHERE model_id = $1";
    match table::change(sql, vec![Field::new("model_id", Some(id)), Field::new("comment", text)]) {
        0 => Err(gone(which)),
        _ => Ok(()),
    }
}

/// Keeps with one model the scores of rows that were held out of its training, in place of others that were kept.
pub fn calibrate(id: i64, calibration: &Calibration) -> Result<()> {
    check_may_change(id)?;
    let sql = "UPDATE corgipile.stored_models SET calibration_rows = $2, calibration_scores = $3 WHERE model_id = $1";
    let scores = FloatArray(allocation::copy(calibration.scores()));
    let values = vec![
        Field::new("model_id", Some(id)),
        Field::new("calibration_rows", Some(calibration.rows() as i64)),
        Field::new("calibration_scores", Some(scores)),
    ];
    if table::change(sql, values) == 0 { Err(gone(ModelSelector::Id(id))) } else { Ok(()) }
}

/// Keeps this profile with one model, in place of another.
pub fn keep_profile(id: i64, profile: &Profile) -> Result<()> {
    check_may_change(id)?;
    let sql = "UPDATE corgipile.stored_models SET profile = $2 WHERE model_id = $1";
    match table::change(sql, vec![Field::new("model_id", Some(id)), Field::new("profile", Some(json(profile)))]) {
        0 => Err(gone(ModelSelector::Id(id))),
        _ => Ok(()),
    }
}

/// Checks whether the current user may change this model, before work is done for that.
pub fn check_may_change(id: i64) -> Result<()> {
    owner_of(id).map(|_| ())
}

/// What the model was trained on, as the call said it.
pub fn source_of(id: i64) -> Option<String> {
    table::find(id, |row| row.get(c"source")).flatten()
}

pub(super) fn gone(which: ModelSelector) -> Error {
    match which {
        ModelSelector::Id(id) => ModelError::NoModelId(id).into(),
        ModelSelector::Name(name) => ModelError::NoModelName(name.to_owned(), None).into(),
    }
}

/// Models that the current user may change.
pub(super) enum Meant {
    Id {
        owner: StoredRole,
        id: i64,
    },
    /// all versions of an owner's name, and which of them it means
    Name {
        owner: StoredRole,
        name: String,
        id: i64,
    },
    /// the models of groups under an owner's name, all versions of them, and the model of all rows next to them
    Groups {
        owner: StoredRole,
        name: String,
    },
}

impl Meant {
    /// Finds the models that are selected.
    pub(super) fn of(which: ModelSelector) -> Result<Meant> {
        let (id, name) = match which {
            ModelSelector::Id(id) => (Some(id), ""),
            ModelSelector::Name(name) => {
                let table = ModelTable::open();
                let id = as_id(&table, name);
                table.close();
                (id, name)
            }
        };
        match id {
            Some(id) => owner_of(id).map(|owner| Meant::Id { owner, id }),
            None => Meant::of_name(name),
        }
    }

    /// The same of a name, which is not an id.
    fn of_name(text: &str) -> Result<Meant> {
        let not_found = match owned(text) {
            Ok(Named { owner, name, id, .. }) => {
                let is_of_all = table::find(id, Grouping::of_row).flatten().is_some_and(|of| of.is_of_all());
                return Ok(if is_of_all { Meant::Groups { owner, name } } else { Meant::Name { owner, name, id } });
            }
            Err(error @ Error::Model(ModelError::NoModelName(..))) => error,
            Err(error) => return Err(error),
        };
        let groups = GroupModels::find(text)?.ok_or(not_found)?;
        let is_owned = Access::by(&groups.owner, Vec::new).is_some_and(Access::is_owned);
        if is_owned {
            Ok(Meant::Groups { owner: groups.owner, name: groups.name })
        } else {
            Err(ModelError::NotOwner.into())
        }
    }

    fn owner(&self) -> &StoredRole {
        let (Meant::Id { owner, .. } | Meant::Name { owner, .. } | Meant::Groups { owner, .. }) = self;
        owner
    }
}

/// Who owns the model with this id.
fn owner_of(id: i64) -> Result<StoredRole> {
    table::check_may_write("changes of models");
    let found = table::find(id, |row| match Access::of(row) {
        Some(claim) if claim.is_owned() => Ok(row.owner()),
        _ => Err(ModelError::NotOwner.into()),
    });
    found.unwrap_or_else(|| Err(not_found(&Key::Id(id))))
}

/// The version that a name means, if the current user may change it. A name means the same as where models are used.
fn owned(name: &str) -> Result<Named> {
    table::check_may_write("changes of models");
    let table = ModelTable::open();
    let found = resolve(&table, name);
    table.close();
    match found {
        Ok(named) if named.is_owned => Ok(named),
        Ok(_) | Err(Error::Model(ModelError::ModelPermission(_))) => Err(ModelError::NotOwner.into()),
        Err(error) => Err(error),
    }
}

/// The versions of an owner's name that the running statement sees.
fn of_name(name: &str, owner: &StoredRole) -> Vec<i32> {
    let mut versions = Vec::new();
    let table = ModelTable::open();
    table.each(&Key::Name(name.to_owned()), &mut |row| {
        if row.owner() == *owner {
            versions.extend(row.get::<i32>(c"version"));
        }
    });
    table.close();
    versions
}
