//! What is written to the table, in the name of its owner.

use super::field::Field;
use super::lookup::table_oid;
use super::roles::{StoredRole, current_user};
use super::row::shared_key;
use crate::shared;
use errors::{ModelError, raise};
use pg::settings::Settings;
use pg::snapshot::write_own;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::spi::{OwnedPreparedStatement, SpiHeapTupleData, SpiResult};
use std::cell::RefCell;
use std::ffi::c_int;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;

/// What is taken already when a model is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// the name and version, by a transaction that this one does not see
    Name,
    /// the number that the sequence gives: it lags behind the table
    Id,
}

/// Inserts a row of the current user's and returns its model_id and version. The model is the next version of its name,
/// and granted to the same roles as the one before or, of a new name, as another model.
pub fn insert(
    name: Option<&str>,
    (is_locked, granted_like): (bool, Option<i64>),
    mut fields: Vec<Field>,
) -> Result<shared::Key, Taken> {
    let user = StoredRole::of(current_user());
    fields.push(Field::new("name", name));
    fields.push(Field::role("owner", &user));
    let mut columns: Vec<&str> = fields.iter().map(|f| f.column).collect();
    let mut values: Vec<String> = (1..=fields.len()).map(|i| format!("${i}")).collect();
    if let Some(owner) = values.last_mut() {
        owner.push_str("::corgipile.stored_role");
    }
    let oid = table_oid();
    if let Some(name) = name {
        let (of_name, of_owner) = (fields.len() - 1, fields.len());
        let before = format!("FROM corgipile.stored_models WHERE name = ${of_name} AND owner = ${of_owner}");
        columns.extend(["version", "granted_to", "predict_granted_to"]);
        values.push(format!("COALESCE((SELECT max(GREATEST(version, last_version)) + 1 {before}), 1)"));
        let other = granted_like.map_or_else(String::new, |id| {
            format!("(SELECT {{}} FROM corgipile.stored_models WHERE model_id = {id}), ")
        });
        let grants = |column| {
            let other = other.replace("{}", column);
            format!("COALESCE((SELECT {column} {before} ORDER BY version DESC LIMIT 1), {other}'{{}}')")
        };
        values.extend(["granted_to", "predict_granted_to"].map(grants));
        if !is_locked {
            lock_name(&user, name);
        }
    }
    let sql = format!(
        "INSERT INTO corgipile.stored_models ({}) VALUES ({}) RETURNING model_id, xmin, ctid",
        columns.join(", "),
        values.join(", ")
    );
    let values: Vec<DatumWithOid> = fields.into_iter().map(|f| f.value).collect();
    let inserted = || if is_locked { insert_prepared(&sql, &values) } else { insert_one(&sql, &values) };
    let insert = || match inserted() {
        Ok((Some(id), Some(transaction), Some(at))) => Ok(shared_key(oid, id, transaction, at)),
        Ok(_) => error!("corgipile.stored_models did not give a model_id"),
        Err(e) => error!("could not write to corgipile.stored_models: {e}"),
    };
    as_owner(|| {
        // Several times as fast as pglz. Not every server is built with it, and one that was may not be any more.
        let compression = Settings::try_set(c"default_toast_compression", c"lz4");
        // Caught to be raised again, in our own words: the transaction ends either way.
        let inserted = PgTryBuilder::new(AssertUnwindSafe(insert))
            .catch_when(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, |error| match taken(&error) {
                Some(taken) => Err(taken),
                None => error.rethrow(),
            })
            .execute();
        compression.restore();
        inserted
    })
}

/// The model_id of a row, the transaction that wrote it, and where it is.
type Inserted = (Option<i64>, Option<pg_sys::TransactionId>, Option<pg_sys::ItemPointerData>);

fn insert_one(sql: &str, values: &[DatumWithOid]) -> SpiResult<Inserted> {
    Spi::get_three_with_args(sql, values)
}

thread_local! {
    /// a statement that inserts models, and its text
    static PREPARED: RefCell<Option<(String, OwnedPreparedStatement)>> = const { RefCell::new(None) };
}

/// The same by a statement that is planned once for many models: planning it takes several times as long as running it.
fn insert_prepared(sql: &str, values: &[DatumWithOid]) -> SpiResult<Inserted> {
    Spi::connect_mut(|client| {
        // out of its place while it is used: an error drops it
        let known = PREPARED.take().filter(|(known, _)| known == sql);
        let (text, statement) = match known {
            Some(known) => known,
            None => {
                let types: Vec<PgOid> = values.iter().map(|value| PgOid::from(value.oid())).collect();
                (sql.to_owned(), client.prepare_mut(sql, &types)?.keep())
            }
        };
        let rows = client.update(&statement, Some(1), values)?;
        let row = if rows.is_empty() { (None, None, None) } else { rows.first().get_three()? };
        PREPARED.set(Some((text, statement)));
        Ok(row)
    })
}

/// All models of a training are stored.
pub fn end_inserts() {
    PREPARED.take();
}

/// What a unique violation says is taken; None for an index that is not ours. Messages are translated, names of
/// constraints are not, and pgrx keeps the message only.
fn taken(error: &CaughtError) -> Option<Taken> {
    let CaughtError::PostgresError(report) = error else { return None };
    let names = |constraint| report.message().contains(constraint);
    if names("models_pkey") {
        Some(Taken::Id)
    } else if names("models_name_version_key") {
        Some(Taken::Name)
    } else {
        None
    }
}

/// Runs a statement that changes models, and gives how many rows it changed.
pub fn change(sql: &str, values: Vec<Field>) -> usize {
    let values: Vec<DatumWithOid> = values.into_iter().map(|f| f.value).collect();
    as_owner(|| {
        let changed = Spi::connect_mut(|client| client.update(sql, None, &values).map(|rows| rows.len()));
        changed.unwrap_or_else(|e| error!("could not change corgipile.stored_models: {e}"))
    })
}

/// The number that a query gives in its first row.
pub fn ask(sql: &str, values: Vec<Field>) -> Option<i64> {
    let values: Vec<DatumWithOid> = values.into_iter().map(|f| f.value).collect();
    let ask = || {
        Spi::connect_mut(|client| {
            // not as a read-only query: it is to see what was changed just before
            let rows = client.update(sql, None, &values)?;
            if rows.is_empty() { Ok(None) } else { rows.first().get_one::<i64>() }
        })
    };
    as_owner(|| ask().unwrap_or_else(|e| error!("could not read corgipile.stored_models: {e}")))
}

/// The model, its name and its version, of each row that a statement gives.
pub fn rows(sql: &str, values: Vec<Field>) -> Vec<(i64, Option<String>, i32)> {
    let values: Vec<DatumWithOid> = values.into_iter().map(|f| f.value).collect();
    let ask = || {
        Spi::connect_mut(|client| {
            let rows = client.update(sql, None, &values)?;
            let row = |row: SpiHeapTupleData| Ok((row.get(1)?.unwrap_or(0), row.get(2)?, row.get(3)?.unwrap_or(0)));
            rows.map(row).collect::<SpiResult<Vec<_>>>()
        })
    };
    as_owner(|| ask().unwrap_or_else(|e| error!("could not change corgipile.stored_models: {e}")))
}

/// Keeps others from giving versions to this name until the transaction ends: those who train under one name at a time
/// wait for each other when they store their models, and each gets a version.
///
/// The lock is of the kind that PostgreSQL has for objects of catalogs, which no statement takes by a number of the
/// user's choice, as it does advisory locks. Where those have the catalog's OID, it has the owner's, which is the OID
/// of no catalog. So only names of one owner can share a lock: anybody finds two names with one hash, and could make
/// other owners wait.
///
/// A training of groups locks only what their names begin with, by [`lock_groups`]: a lock for each would fill the
/// table of locks. So a name with a slash also has its beginnings locked, in a mode that others of that beginning may
/// take at the same time.
pub fn lock_name(owner: &StoredRole, name: &str) {
    for (slash, _) in name.match_indices('/').take(MAX_BEGINNINGS) {
        lock(owner, &name[..=slash], pg_sys::RowExclusiveLock);
    }
    lock(owner, name, pg_sys::ExclusiveLock);
}

/// Slashes of a name whose beginnings are locked, the first ones.
const MAX_BEGINNINGS: usize = 8;

/// The same for all names that begin with this one and a slash.
pub fn lock_groups(owner: &StoredRole, name: &str) {
    for (slash, _) in name.match_indices('/').take(MAX_BEGINNINGS) {
        lock(owner, &name[..=slash], pg_sys::RowExclusiveLock);
    }
    lock(owner, &format!("{name}/"), pg_sys::ExclusiveLock);
}

fn lock(owner: &StoredRole, name: &str, mode: u32) {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let hash = hasher.finish();
    // SAFETY: takes a lock, which the transaction's end gives back; of two names with one hash one waits for nothing.
    unsafe {
        let (object, part) = (pg_sys::Oid::from(hash as u32), (hash >> 32) as u16);
        let owner = owner.oid().unwrap_or(pg_sys::Oid::INVALID);
        pg_sys::LockDatabaseObject(owner, object, part, mode as pg_sys::LOCKMODE);
    }
}

/// Runs `f` with the privileges of the table's owner, to whom row security does not apply, and with PostgreSQL's own
/// operators and functions only. An ERROR in `f` ends the (sub)transaction, which puts all back.
fn as_owner<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the saved state is put back; the table's pg_class entry is read while it is held.
    unsafe {
        let relid = table_oid();
        let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
        let tuple = pg_sys::SearchSysCache1(cache, relid.into());
        if tuple.is_null() {
            raise(&ModelError::NoModelTable("stored_models".into()));
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        let (mut user, mut context) = (pg_sys::Oid::INVALID, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let settings = Settings::set(&[(c"search_path", c"pg_catalog, pg_temp")]);
        pg_sys::SetUserIdAndSecContext(owner, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as c_int);
        let result = write_own(f);
        pg_sys::SetUserIdAndSecContext(user, context);
        settings.restore();
        result
    }
}
