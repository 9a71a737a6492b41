//! The meaning of a model's name for the current user: whose model, and which version of it.
//!
//! No one takes another's name. A model of the user's own comes first, and a superuser's bare names mean nothing else.
//! Then comes what a role gives: the user belongs to the owner, or the model was granted by name to the user or to a
//! role of the user's. Of several owners none is chosen. A grant to public reaches everybody without being asked for,
//! so that it counts only where no other role has a model of the name, shown to the user or not: a role that loses a
//! grant must not use somebody else's model without notice. With its owner in front, as in `bob.gm`, a name means that
//! owner's models and no others.
//!
//! A text of digits is the id of a model, unless a model of the user's own has that name: drivers send an id as a text,
//! too. Another role's model of that name is meant only if no model that the user may use has that id: a role that
//! calls a model `12` does not take the place of model 12.

use crate::groups;
use crate::table::{self, Key, ModelRow, ModelTable, StoredRole};
use errors::{Error, ModelError, OwnerNeeded, Result, did_you_mean};

/// The right by which the current user may predict with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Owner,
    /// as a member of the owner, or as a superuser
    Member,
    /// granted to the user by name, or to a role that the user belongs to
    Granted,
    /// granted to everybody
    Public,
}

/// An owner and a name of the owner's models.
#[derive(Debug, PartialEq, Eq)]
struct Qualified {
    owner: StoredRole,
    name: String,
}

/// The version that a name means, and the name without its owner.
#[derive(Debug)]
pub struct Named {
    pub owner: StoredRole,
    pub name: String,
    pub id: i64,
    /// May the current user change it?
    pub is_owned: bool,
}

#[derive(Debug, Clone)]
struct NamedVersion {
    owner: StoredRole,
    /// None if the current user may not use it
    access: Option<Access>,
    deployed: bool,
    version: i32,
    id: i64,
}

impl Access {
    pub fn of(row: &ModelRow) -> Option<Access> {
        Access::by(&row.owner(), || [row.roles(c"granted_to"), row.roles(c"predict_granted_to")].concat())
    }

    /// The right to see it, too: what it was trained on and how, its weights, its profile.
    pub fn to_see(row: &ModelRow) -> Option<Access> {
        Access::by(&row.owner(), || row.roles(c"granted_to"))
    }

    /// The right that ownership, or one of these grants, gives.
    pub fn by(owner: &StoredRole, granted: impl FnOnce() -> Vec<StoredRole>) -> Option<Access> {
        if owner.is_current_user() {
            return Some(Access::Owner);
        }
        if owner.has_privileges() {
            return Some(Access::Member);
        }
        let granted = granted();
        if granted.iter().any(|role| !role.is_public() && role.has_privileges()) {
            return Some(Access::Granted);
        }
        granted.iter().any(StoredRole::is_public).then_some(Access::Public)
    }

    /// Does it include the right to change the model?
    pub fn is_owned(self) -> bool {
        matches!(self, Access::Owner | Access::Member)
    }
}

/// The version that a text means to the current user: a name, with that of its owner or without, or an id.
pub fn resolve(table: &ModelTable, text: &str) -> Result<Named> {
    let Some(id) = as_id(table, text) else { return of_name(table, text) };
    let named = table.find(&Key::Id(id), |row| {
        let access = Access::of(row).ok_or(ModelError::ModelPermission(id))?;
        let name = row.get(c"name").ok_or(ModelError::Unnamed(id))?;
        Ok(Named { owner: row.owner(), name, id, is_owned: access.is_owned() })
    });
    named.unwrap_or_else(|| Err(ModelError::NoModelId(id).into()))
}

/// The id that a text means to the current user; None if it is a name.
pub fn as_id(table: &ModelTable, text: &str) -> Option<i64> {
    let id = digits(text)?;
    let versions = versions(table, text);
    let accesses = || versions.iter().filter_map(|version| version.access);
    if accesses().any(|access| access == Access::Owner) {
        return None;
    }
    let is_usable = || table.find(&Key::Id(id), |row| Access::of(row).is_some()).unwrap_or(false);
    (accesses().next().is_none() || is_usable()).then_some(id)
}

pub fn digits(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The version that a name means to the current user, with the name of its owner or without.
pub fn of_name(table: &ModelTable, text: &str) -> Result<Named> {
    let versions = versions(table, text);
    if let Some(own) = latest(&versions, |version| version.access == Some(Access::Owner)) {
        return Ok(own.named(text));
    }
    match qualified(table, text) {
        Some(qualified) => of_owner(table, &qualified, text, &versions),
        None if versions.is_empty() => Err(no_model(table, text)),
        None => of_bare_name(text, &versions),
    }
}

/// The version of an owner's models that a name means. `same` are the models whose name is the whole text.
fn of_owner(table: &ModelTable, meant: &Qualified, text: &str, same: &[NamedVersion]) -> Result<Named> {
    let Qualified { owner, name } = meant;
    let of_name = versions(table, name);
    match latest(&of_name, |version| version.owner == *owner && version.access.is_some()) {
        Some(version) => Ok(version.named(name)),
        None => match of_name.iter().find(|version| version.owner == *owner) {
            Some(forbidden) => Err(ModelError::ModelPermission(forbidden.id).into()),
            // A model of another role whose name looks like this one must not stand in for it.
            None => match literals(text, same, |version| version.access.is_some()) {
                candidates if candidates.is_empty() => Err(no_model(table, text)),
                candidates => Err(owner_needed(text, OwnerNeeded::BeginsWithRole, candidates)),
            },
        },
    }
}

/// The version that a bare name means if the current user has no model of that name.
fn of_bare_name(name: &str, versions: &[NamedVersion]) -> Result<Named> {
    let Some(first) = versions.first() else { return Err(ModelError::NoModelName(name.to_owned(), None).into()) };
    if table::is_superuser() {
        return Err(owner_needed(name, OwnerNeeded::Superuser, literals(name, versions, |_| true)));
    }
    let by_role = |version: &NamedVersion| matches!(version.access, Some(Access::Member | Access::Granted));
    if let Some(version) = latest(versions, by_role) {
        return match literals(name, versions, by_role) {
            candidates if candidates.len() > 1 => {
                Err(ModelError::AmbiguousModel { name: name.to_owned(), candidates }.into())
            }
            _ => Ok(version.named(name)),
        };
    }
    let public = |version: &NamedVersion| version.access == Some(Access::Public);
    match latest(versions, public) {
        None => Err(ModelError::ModelPermission(first.id).into()),
        Some(version) if versions.iter().all(|other| other.owner == version.owner) => Ok(version.named(name)),
        Some(_) => Err(owner_needed(name, OwnerNeeded::Public, literals(name, versions, public))),
    }
}

/// The error about a name that no one's models have, with the nearest name of a model of the current user's.
fn no_model(table: &ModelTable, name: &str) -> Error {
    if groups::exist(table, name) {
        // the name of models of groups, of which there may be many to look through
        return ModelError::NoModelName(name.to_owned(), None).into();
    }
    let mut names: Vec<String> = Vec::new();
    table.each_row(&mut |row| {
        if Access::of(row) == Some(Access::Owner) {
            names.extend(row.get::<String>(c"name"));
        }
    });
    ModelError::NoModelName(name.to_owned(), did_you_mean(name, names.iter().map(String::as_str))).into()
}

fn owner_needed(name: &str, why: OwnerNeeded, candidates: Vec<String>) -> Error {
    ModelError::OwnerNeeded { name: name.to_owned(), why, candidates }.into()
}

fn versions(table: &ModelTable, name: &str) -> Vec<NamedVersion> {
    let mut versions = Vec::new();
    table.each(&Key::Name(name.to_owned()), &mut |row| {
        versions.push(NamedVersion {
            owner: row.owner(),
            access: Access::of(row),
            deployed: row.get(c"deployed").unwrap_or(false),
            version: row.get(c"version").unwrap_or(1),
            id: row.get(c"model_id").unwrap_or_default(),
        });
    });
    versions
}

/// The deployed one of these versions, else the latest.
fn latest(versions: &[NamedVersion], which: impl Fn(&NamedVersion) -> bool) -> Option<NamedVersion> {
    versions.iter().filter(|version| which(version)).max_by_key(|version| (version.deployed, version.version)).cloned()
}

impl NamedVersion {
    fn named(self, name: &str) -> Named {
        let is_owned = self.access.is_some_and(Access::is_owned);
        Named { owner: self.owner, name: name.to_owned(), id: self.id, is_owned }
    }
}

/// How these models are called with their owners, as literals of SQL, one for each owner.
fn literals(name: &str, versions: &[NamedVersion], which: impl Fn(&NamedVersion) -> bool) -> Vec<String> {
    let mut owners: Vec<&StoredRole> = Vec::new();
    for version in versions.iter().filter(|version| which(version)) {
        if !owners.contains(&&version.owner) {
            owners.push(&version.owner);
        }
    }
    // Whatever begins with a quote would be read as an identifier.
    let name = if name.starts_with('"') { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() };
    let literal = |owner: &StoredRole| format!("{}.{name}", owner.in_a_name()).replace('\'', "''");
    owners.into_iter().map(|owner| format!("'{}'", literal(owner))).collect()
}

/// Owner and name, if the text begins with the name of a role and a dot. What is shown in place of a role that is not
/// there stands for it, if it has models of that name.
fn qualified(table: &ModelTable, text: &str) -> Option<Qualified> {
    let (owner, name) = split(text)?;
    if let Some(owner) = table::role_named(&owner) {
        return Some(Qualified { owner: StoredRole::of(owner), name });
    }
    let owner = StoredRole::of_shown_missing(&owner)?;
    let is_owner = versions(table, &name).iter().any(|version| version.owner == owner);
    is_owner.then_some(Qualified { owner, name })
}

/// Owner and name, if the text begins with the name of a role and a dot.
pub fn with_owner(text: &str) -> Option<(StoredRole, String)> {
    let (owner, name) = split(text)?;
    let missing = || StoredRole::of_shown_missing(&owner);
    let owner = table::role_named(&owner).map(StoredRole::of).or_else(missing)?;
    Some((owner, name))
}

/// The two parts of `owner.name`. The owner is an identifier as in SQL: folded to lower case if it is not in double
/// quotes. The name is taken as it is, if it is not in double quotes as a whole.
fn split(text: &str) -> Option<(String, String)> {
    let (owner, rest) = quoted(text).or_else(|| unquoted(text))?;
    let name = rest.strip_prefix('.')?;
    let name = match quoted(name) {
        Some((name, "")) => name,
        _ => name.to_owned(),
    };
    (!owner.is_empty() && !name.is_empty()).then_some((owner, name))
}

/// An identifier in double quotes, which are doubled inside, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut identifier = String::new();
    loop {
        let (part, behind) = rest.split_once('"')?;
        identifier.push_str(part);
        match behind.strip_prefix('"') {
            Some(behind) => {
                identifier.push('"');
                rest = behind;
            }
            None => return Some((identifier, behind)),
        }
    }
}

/// An identifier without quotes or a number, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
    let (word, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
    let begins_as_number = word.starts_with(|c: char| c.is_ascii_digit());
    let is_number = word.bytes().all(|b| b.is_ascii_digit());
    let fits = begins_as_number == is_number && !word.starts_with('$');
    fits.then(|| (word.to_ascii_lowercase(), rest))
}
