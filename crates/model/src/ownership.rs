//! Who may use a model, and whose it is: grants, and what becomes of the models of a role that is to be dropped.

use super::groups::OF_GROUPS;
use super::management::{Meant, ModelSelector, gone};
use crate::table::{self, Field, StoredRole};
use choices::choice;
use errors::{ModelError, Result};

choice! {
    /// What a role is let do with a model.
    Privilege {
        /// see it and use it
        All = "all",
        /// predict with it, without seeing what it was made of
        Predict = "predict",
    }
}

/// Lets a role use one model, or all versions of a name, also those to come.
pub fn grant(which: ModelSelector, role: &str, privilege: Privilege) -> Result<()> {
    let grants = |column: &str| {
        format!(
            "{column} = CASE WHEN $1 = ANY ({column}::text[]) THEN {column}
                             ELSE ARRAY(SELECT unnest({column})) || $1::corgipile.stored_role END"
        )
    };
    let grants = match privilege {
        Privilege::All => grants("granted_to"),
        Privilege::Predict => grants("predict_granted_to"),
    };
    set_grants(which, &table::role(role), &grants)
}

/// Takes back all that [`grant`] has given, also from a role that is not there: it is called as it is shown.
pub fn revoke(which: ModelSelector, role: &str) -> Result<()> {
    // if the table was edited by hand, it may be an array of arrays, from which array_remove() removes nothing
    set_grants(which, &table::role_as_shown(role), &without_role())
}

/// The assignments that leave role $1 out of all grants.
fn without_role() -> String {
    let without = |column| {
        format!(
            "{column} = ARRAY(SELECT g.role FROM unnest({column}) AS g(role) WHERE g.role::text IS DISTINCT FROM $1)"
        )
    };
    ["granted_to", "predict_granted_to"].map(without).join(", ")
}

fn set_grants(which: ModelSelector, role: &StoredRole, grants: &str) -> Result<()> {
    let role = Field::role("granted_to", role);
    let changed = match Meant::of(which)? {
        Meant::Id { id, .. } => table::change(
            &format!("UPDATE corgipile.stored_models SET {grants} WHERE model_id = $2"),
            vec![role, Field::new("model_id", Some(id))],
        ),
        Meant::Name { owner, name, .. } => {
            // or else a version that is being stored would not be granted
            table::lock_name(&owner, &name);
            table::change(
                &format!("UPDATE corgipile.stored_models SET {grants} WHERE name = $2 AND owner = $3"),
                vec![role, Field::new("name", Some(name)), Field::role("owner", &owner)],
            )
        }
        Meant::Groups { owner, name } => {
            table::lock_groups(&owner, &name);
            let of_groups = OF_GROUPS.replace("$1", "$3");
            table::change(
                &format!("UPDATE corgipile.stored_models SET {grants} WHERE {of_groups}"),
                vec![role, Field::role("owner", &owner), Field::new("name", Some(name))],
            )
        }
    };
    if changed == 0 { Err(gone(which)) } else { Ok(()) }
}

/// Deletes all models of a role, and takes back all that was granted to it, as DROP OWNED does. Gives how many models
/// there were.
pub fn drop_owned(name: &str) -> Result<i64> {
    let role = own_role(name)?;
    let field = || vec![Field::role("role", &role)];
    let grants = format!(
        "UPDATE corgipile.stored_models SET {} WHERE $1 = ANY (granted_to::text[] || predict_granted_to::text[])",
        without_role()
    );
    let revoked = table::change(&grants, field());
    let dropped = table::change("DELETE FROM corgipile.stored_models WHERE owner = $1", field());
    if dropped + revoked == 0 {
        check_exists(name, &role);
    }
    Ok(dropped as i64)
}

/// Gives all models of a role to another one, with their names and versions, as REASSIGN OWNED does. Gives how many
/// there were.
pub fn reassign_owned(from: &str, to: &str) -> Result<i64> {
    let (name, from, to) = (from, own_role(from)?, table::existing_role(to));
    if !to.has_privileges() {
        return Err(ModelError::NotOwner.into());
    }
    if from == to {
        return Ok(0);
    }
    let both = || vec![Field::role("from", &from), Field::role("to", &to)];
    let names = "SELECT DISTINCT 0::bigint, name, 0 FROM corgipile.stored_models WHERE owner = $1 AND name IS NOT NULL
                  ORDER BY name";
    // lest a training store a version of one of these names meanwhile
    for (_, name, _) in table::rows(names, vec![Field::role("from", &from)]) {
        let name = name.unwrap_or_default();
        table::lock_name(&from, &name);
        table::lock_name(&to, &name);
    }
    let owned = |owner| format!("(SELECT name, identity FROM corgipile.stored_models WHERE owner = {owner})");
    let (ours, theirs) = (owned("$1"), owned("$2"));
    let meet = format!(
        "SELECT 0::bigint, name, 0 FROM {ours} AS m JOIN {theirs} AS o USING (name)
          UNION ALL SELECT 0, m.name, 0 FROM {ours} AS m JOIN {theirs} AS o USING (identity) LIMIT 1"
    );
    if let Some((_, name, _)) = table::rows(&meet, both()).pop() {
        return Err(ModelError::ModelExists(name.unwrap_or_default()).into());
    }
    let given = "UPDATE corgipile.stored_models SET owner = $2::corgipile.stored_role WHERE owner = $1";
    let given = table::change(given, both());
    if given == 0 {
        check_exists(name, &from);
    }
    Ok(given as i64)
}

/// The role that is shown like this, if what is its own is the current user's to give away.
fn own_role(role: &str) -> Result<StoredRole> {
    table::check_may_write("changes of models");
    let role = table::role_as_shown(role);
    if role.has_privileges() { Ok(role) } else { Err(ModelError::NotOwner.into()) }
}

/// PostgreSQL's own error if there is no role of this name: nothing was found of what is shown like that.
fn check_exists(name: &str, role: &StoredRole) {
    if !role.exists() {
        table::existing_role(name);
    }
}
