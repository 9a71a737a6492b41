//! Table corgipile.stored_models, read and written without the current user needing any privilege on it.
//!
//! Whoever calls checks whether the user may use what was found: this module knows rows, not policies. Rows are seen as by a
//! volatile function: those that the running statement sees, and what this transaction has stored and deleted since, so that a
//! statement may use a model that it trains. What others commit meanwhile is not seen.
#![allow(unsafe_code)]

use super::shared;
use crate::errors::{Error, ModelError, ResourceError};
use crate::pg::call::spi::Settings;
use crate::pg::compat::transaction_of_backend;
use crate::pg::values::jsonb::{self, Unreadable};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_int};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::AssertUnwindSafe;

/// What identifies a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Id(i64),
    Name(String),
}

/// A version of a row: another version of it has another one, and so has a row that a rolled-back transaction wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    transaction: u32,
    command: u32,
    block: u32,
    offset: u16,
}

/// The table, open for reading.
pub struct ModelTable {
    relation: pg_sys::Relation,
    /// registered, of all that was committed until now; None for what the running statement may see
    latest: Option<pg_sys::Snapshot>,
}

/// What is taken already when a model is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// the name and version, by a transaction that this one does not see
    Name,
    /// the number that the sequence gives: it lags behind the table
    Id,
}

/// A row of it.
pub struct ModelRow<'a> {
    table: &'a ModelTable,
    tuple: pg_sys::HeapTuple,
}

/// A column to be written, and its value.
pub struct Field {
    column: &'static str,
    value: DatumWithOid<'static>,
}

impl Field {
    /// A field of any type that has a datum; None is NULL.
    pub fn new<T: IntoDatum>(column: &'static str, value: Option<T>) -> Field {
        // SAFETY: the type is the value's own.
        let value = unsafe {
            match value {
                Some(value) => DatumWithOid::new(value, T::type_oid()),
                None => DatumWithOid::null::<T>(),
            }
        };
        Field { column, value }
    }

    /// A field of a type that Rust knows as an OID: regrole, regtype.
    pub fn object(column: &'static str, type_oid: pg_sys::Oid, value: pg_sys::Oid) -> Field {
        // SAFETY: such types are OIDs.
        Field { column, value: unsafe { DatumWithOid::new(value, type_oid) } }
    }
}

/// A float type of SQL and of Rust.
pub trait Float: Copy {
    /// of an array of them, of one of them
    const OIDS: (pg_sys::Oid, pg_sys::Oid);
}

impl Float for f32 {
    const OIDS: (pg_sys::Oid, pg_sys::Oid) = (pg_sys::FLOAT4ARRAYOID, pg_sys::FLOAT4OID);
}

impl Float for f64 {
    const OIDS: (pg_sys::Oid, pg_sys::Oid) = (pg_sys::FLOAT8ARRAYOID, pg_sys::FLOAT8OID);
}

/// An array of floats that is copied into SQL's form as a whole. Built element by element, it would take four times the
/// memory, and could not be half as long as SQL allows.
pub struct FloatArray<T>(pub Vec<T>);

/// Bytes before the data of an array of one dimension without NULLs (ARR_OVERHEAD_NONULLS).
const ARRAY_HEADER: usize = 24;

impl<T: Float> IntoDatum for FloatArray<T> {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: palloc gives memory for header and data, or raises an ERROR, also if it is more than 1 GB; its
        // alignment is that of any type. The array of length 0 has no dimensions.
        unsafe {
            if self.0.is_empty() {
                return Some(pg_sys::Datum::from(pg_sys::construct_empty_array(T::OIDS.1)));
            }
            let bytes = ARRAY_HEADER + size_of_val(&self.0[..]);
            let array = pg_sys::palloc(bytes).cast::<u8>();
            pgrx::set_varsize_4b(array.cast(), bytes as i32);
            array.add(4).cast::<[u32; 5]>().write([1, 0, T::OIDS.1.to_u32(), self.0.len() as u32, 1]);
            std::ptr::copy_nonoverlapping(self.0.as_ptr(), array.add(ARRAY_HEADER).cast(), self.0.len());
            Some(pg_sys::Datum::from(array))
        }
    }

    fn type_oid() -> pg_sys::Oid {
        T::OIDS.0
    }
}

fn schema_oid() -> pg_sys::Oid {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::get_namespace_oid(c"corgipile".as_ptr(), true) }
}

fn relation_oid(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup; there is nothing in schema InvalidOid.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema_oid()) };
    (oid != pg_sys::Oid::INVALID).then_some(oid)
}

fn existing(name: &CStr) -> pg_sys::Oid {
    relation_oid(name)
        .unwrap_or_else(|| Error::from(ModelError::NoModelTable(name.to_string_lossy().into_owned())).raise())
}

/// The table's OID.
fn table_oid() -> pg_sys::Oid {
    existing(c"stored_models")
}

/// Raises [`ModelError::NoModelTable`] if there is no table of models.
pub fn check_exists() {
    table_oid();
}

impl ModelTable {
    /// Opens the table.
    pub fn open() -> ModelTable {
        let oid = table_oid();
        // SAFETY: closed in close(). NULL if it was dropped while the lock was waited for.
        let relation = unsafe { pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE) };
        if relation.is_null() {
            Error::from(ModelError::NoModelTable("stored_models".into())).raise();
        }
        ModelTable { relation, latest: None }
    }

    /// Opens the table as it is now, and not as the running statement sees it; None in a parallel operation, where no
    /// snapshot may be taken.
    pub fn open_latest() -> Option<ModelTable> {
        // SAFETY: in a transaction; the snapshot is let go in close(), or by the end of the transaction.
        let latest =
            unsafe { (!pg_sys::IsInParallelMode()).then(|| pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot())) };
        latest.map(|latest| ModelTable { latest: Some(latest), ..ModelTable::open() })
    }

    /// Closes it; the lock goes too, as for any catalog that is looked into.
    pub fn close(self) {
        // SAFETY: opened in open(), closed once.
        unsafe {
            pg_sys::table_close(self.relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            if let Some(latest) = self.latest {
                pg_sys::UnregisterSnapshot(latest);
            }
        }
    }

    /// Shows `f` the row with this key that is seen, if there is one.
    pub fn find<R>(&self, key: &Key, f: impl FnOnce(&ModelRow) -> R) -> Option<R> {
        let (mut f, mut result) = (Some(f), None);
        self.each(key, |row| result = f.take().map(|f| f(row)));
        result
    }

    /// Shows `f` the rows with this key that are seen. With a name there may be many, by their owners and
    /// versions.
    pub fn each(&self, key: &Key, mut f: impl FnMut(&ModelRow)) {
        // SAFETY: an index scan on the index of the key; each tuple is valid until the next one.
        unsafe {
            let (index, column, function, value) = match key {
                Key::Id(id) => (c"models_pkey", c"model_id", pg_sys::F_INT8EQ, id.into_datum()),
                Key::Name(name) => (c"models_name_version_key", c"name", pg_sys::F_TEXTEQ, name.as_str().into_datum()),
            };
            let mut scan_key = pg_sys::ScanKeyData::default();
            let attribute = pg_sys::get_attnum((*self.relation).rd_id, column.as_ptr());
            let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
            let value = value.unwrap_or(pg_sys::Datum::null());
            pg_sys::ScanKeyInit(&mut scan_key, attribute, equal, pg_sys::Oid::from(function), value);
            let mut own = with_own_commands();
            let snapshot = self.latest.unwrap_or(&raw mut own);
            let scan = pg_sys::systable_beginscan(self.relation, existing(index), true, snapshot, 1, &mut scan_key);
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                f(&ModelRow { table: self, tuple });
            }
            pg_sys::systable_endscan(scan);
        }
    }
}

/// The active snapshot, with what the commands of this transaction have done since it was taken. In a worker these are the
/// commands of the transaction that it works for, none of which can come after it was started.
fn with_own_commands() -> pg_sys::SnapshotData {
    // SAFETY: a function is called with an active snapshot, which outlives the call, and with it the lists that the copy
    // points to. Nobody registers the copy.
    unsafe {
        let active = *GetActiveSnapshot();
        pg_sys::SnapshotData { curcid: GetCurrentCommandId(false), active_count: 0, regd_count: 0, ..active }
    }
}

impl ModelRow<'_> {
    /// A column's value, None if NULL. Copied out of the row.
    pub fn get<T: FromDatum>(&self, column: &CStr) -> Option<T> {
        // SAFETY: the install script declares the column as a T.
        self.value(column).and_then(|value| unsafe { T::from_datum(value, false) })
    }

    /// A column's floats: None if it is NULL, Some(None) if it is not an array of one dimension without NULLs.
    pub fn floats<T: Float>(&self, column: &CStr) -> Option<Option<Vec<T>>> {
        let value = self.value(column)?;
        // SAFETY: the install script declares the column as an array of T; pg_detoast_datum_copy gives one that lies in
        // memory as a whole and is ours to free. Its first dimension follows the header, its data that or a bitmap.
        unsafe {
            let array = pg_sys::pg_detoast_datum_copy(value.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let dimension = array.cast::<u8>().add(size_of::<pg_sys::ArrayType>()).cast::<i32>();
            let floats = match (*array).ndim {
                0 => Some(Vec::new()),
                1 if !pg_sys::array_contains_nulls(array) => {
                    let offset = if (*array).dataoffset == 0 { ARRAY_HEADER } else { (*array).dataoffset as usize };
                    let data = array.cast::<u8>().add(offset).cast::<T>();
                    Some(copy(std::slice::from_raw_parts(data, *dimension as usize)))
                }
                _ => None,
            };
            pg_sys::pfree(array.cast());
            Some(floats)
        }
    }

    /// A column's array: None if it is NULL, Some(None) if it is not one of one dimension without NULLs. (Read as a Vec, an
    /// array of arrays would be taken for the elements of all of them.)
    pub fn list<T>(&self, column: &CStr) -> Option<Option<Vec<T>>>
    where
        Vec<Option<T>>: FromDatum,
    {
        let value = self.value(column)?;
        // SAFETY: the install script declares the column as an array of T.
        unsafe {
            let array = pg_sys::pg_detoast_datum(value.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let flat = (*array).ndim <= 1;
            let elements = flat.then(|| Vec::<Option<T>>::from_datum(pg_sys::Datum::from(array), false)).flatten();
            Some(elements.and_then(|elements| elements.into_iter().collect()))
        }
    }

    /// A column's value of type jsonb, None if it is NULL.
    ///
    /// # Errors
    /// Why it cannot be read. (pgrx would panic.)
    pub fn json(&self, column: &CStr) -> std::result::Result<Option<serde_json::Value>, Unreadable> {
        self.value(column).map(jsonb::read).transpose()
    }

    /// A column's value, None if NULL; lives as long as the row.
    fn value(&self, column: &CStr) -> Option<pg_sys::Datum> {
        // SAFETY: the tuple is one of the table, which is open.
        unsafe {
            let relation = self.table.relation;
            let attribute = pg_sys::get_attnum((*relation).rd_id, column.as_ptr());
            if attribute <= 0 {
                return None; // a column that the database has not got yet: its objects are older than the library
            }
            let mut null = false;
            let value = pg_sys::heap_getattr(self.tuple, c_int::from(attribute), (*relation).rd_att, &mut null);
            (!null).then_some(value)
        }
    }

    /// Has the transaction that wrote the row committed? (Else it is this one, or the row would not be seen.)
    pub fn is_committed(&self) -> bool {
        // SAFETY: the header of a heap tuple.
        unsafe {
            let transaction = (*(*self.tuple).t_data).t_choice.t_heap.t_xmin;
            !pg_sys::TransactionIdIsCurrentTransactionId(transaction)
        }
    }

    /// What shared memory knows the row by.
    pub fn shared_key(&self, id: i64) -> shared::Key {
        // SAFETY: the header of a heap tuple of the table, which is open.
        unsafe {
            let transaction = (*(*self.tuple).t_data).t_choice.t_heap.t_xmin;
            shared_key((*self.table.relation).rd_id, id, transaction, (*self.tuple).t_self)
        }
    }

    /// Which version of the row this is.
    pub fn version(&self) -> Version {
        // SAFETY: the header of a heap tuple; the raw transaction id is good enough to tell versions apart.
        unsafe {
            let header = &*(*self.tuple).t_data;
            let at = (*self.tuple).t_self;
            Version {
                transaction: header.t_choice.t_heap.t_xmin.into_inner(),
                command: header.t_choice.t_heap.t_field3.t_cid,
                block: u32::from(at.ip_blkid.bi_hi) << 16 | u32::from(at.ip_blkid.bi_lo),
                offset: at.ip_posid,
            }
        }
    }
}

/// What shared memory knows a row by.
fn shared_key(
    table: pg_sys::Oid,
    id: i64,
    transaction: pg_sys::TransactionId,
    at: pg_sys::ItemPointerData,
) -> shared::Key {
    // SAFETY: the table exists; its reference is given back at once.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(table);
        let file = (*(*relation).rd_rel).relfilenode.to_u32();
        pg_sys::RelationClose(relation);
        shared::Key {
            database: pg_sys::MyDatabaseId.to_u32(),
            file,
            model: id,
            transaction: transaction.into_inner(),
            block: u32::from(at.ip_blkid.bi_hi) << 16 | u32::from(at.ip_blkid.bi_lo),
            offset: at.ip_posid.into(),
        }
    }
}

/// A copy, or an error where there is no memory for one: a model may have half a gigabyte.
fn copy<T: Copy>(floats: &[T]) -> Vec<T> {
    let mut copy = Vec::new();
    if copy.try_reserve_exact(floats.len()).is_err() {
        Error::from(ResourceError::OutOfMemory(size_of_val(floats))).raise();
    }
    copy.extend_from_slice(floats);
    copy
}

/// Inserts a row of the current user's and returns its model_id and version. The model is the next version of its name, and
/// granted to the same roles as the one before.
///
/// # Errors
/// What is [`Taken`].
pub fn insert(name: Option<&str>, mut fields: Vec<Field>) -> Result<shared::Key, Taken> {
    let user = current_user();
    fields.push(Field::new("name", name));
    fields.push(Field::object("owner", pg_sys::REGROLEOID, user));
    let mut columns: Vec<&str> = fields.iter().map(|f| f.column).collect();
    let mut values: Vec<String> = (1..=fields.len()).map(|i| format!("${i}")).collect();
    let oid = table_oid();
    if let Some(name) = name {
        let (of_name, of_owner) = (fields.len() - 1, fields.len());
        let before = format!("FROM corgipile.stored_models WHERE name = ${of_name} AND owner = ${of_owner}");
        columns.extend(["version", "granted_to"]);
        values.push(format!("COALESCE((SELECT max(GREATEST(version, last_version)) + 1 {before}), 1)"));
        values.push(format!("COALESCE((SELECT granted_to {before} ORDER BY version DESC LIMIT 1), '{{}}')"));
        lock(oid, user, name);
    }
    let sql = format!(
        "INSERT INTO corgipile.stored_models ({}) VALUES ({}) RETURNING model_id, xmin, ctid",
        columns.join(", "),
        values.join(", ")
    );
    let values: Vec<DatumWithOid> = fields.into_iter().map(|f| f.value).collect();
    let insert = || match Spi::get_three_with_args::<i64, pg_sys::TransactionId, pg_sys::ItemPointerData>(&sql, &values)
    {
        Ok((Some(id), Some(transaction), Some(at))) => Ok(shared_key(oid, id, transaction, at)),
        Ok(_) => error!("corgipile.stored_models did not give a model_id"),
        Err(e) => error!("could not write to corgipile.stored_models: {e}"),
    };
    as_owner(|| {
        // Caught to be raised anew, in our own words: the transaction ends either way.
        PgTryBuilder::new(AssertUnwindSafe(insert))
            .catch_when(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, |error| match taken(&error) {
                Some(taken) => Err(taken),
                None => error.rethrow(),
            })
            .execute()
    })
}

/// What a unique violation says is taken; None for an index that is not ours. Messages are translated, names of constraints
/// are not, and pgrx keeps the message only.
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

/// Keeps others from giving versions to this name until the transaction ends: those who train under one name at a time wait
/// for each other when they store their models, and each gets a version.
pub fn lock_name(owner: pg_sys::Oid, name: &str) {
    lock(table_oid(), owner, name);
}

fn lock(table: pg_sys::Oid, owner: pg_sys::Oid, name: &str) {
    let mut hasher = DefaultHasher::new();
    (owner.to_u32(), name).hash(&mut hasher);
    // SAFETY: a lock of the kind that PostgreSQL uses for objects of catalogs, on an object of this table; of two names with
    // one hash one waits for nothing.
    unsafe {
        let object = pg_sys::Oid::from(hasher.finish() as u32);
        pg_sys::LockDatabaseObject(table, object, 0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
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
            Error::from(ModelError::NoModelTable("stored_models".into())).raise();
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        let (mut user, mut context) = (pg_sys::Oid::INVALID, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        let settings = Settings::set(&[(c"search_path", c"pg_catalog, pg_temp")]);
        pg_sys::SetUserIdAndSecContext(owner, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as c_int);
        let result = f();
        pg_sys::SetUserIdAndSecContext(user, context);
        settings.restore();
        result
    }
}

/// The user whose privileges count at this moment.
pub fn current_user() -> pg_sys::Oid {
    // SAFETY: reads a variable.
    unsafe { pg_sys::GetUserId() }
}

/// Whether the current user is `role`, a member of it, or a superuser.
pub fn has_privileges_of(role: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups.
    unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), role) }
}

/// Is the current user a superuser?
pub fn is_superuser() -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::superuser() }
}

/// The role with this name, if there is one.
pub fn role_named(name: &str) -> Option<pg_sys::Oid> {
    let name = CString::new(name).ok()?;
    // SAFETY: a C string.
    let role = unsafe { pg_sys::get_role_oid(name.as_ptr(), true) };
    (role != pg_sys::Oid::INVALID).then_some(role)
}

/// What a role is called; None if it was dropped.
pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: a catalog lookup; gives a copy, or NULL.
    unsafe {
        let name = pg_sys::GetUserNameFromId(role, true);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    }
}

/// The role with this name; `public` is no role, but InvalidOid.
///
/// # Errors
/// PostgreSQL's own if there is none.
pub fn role(name: &str) -> pg_sys::Oid {
    if name == "public" {
        return pg_sys::Oid::INVALID;
    }
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::get_role_oid(name.as_ptr(), false) }
}

/// The role with this name, `public`, or what type regrole shows in their place: the number of a role that was dropped, and `-`.
///
/// # Errors
/// PostgreSQL's own if there is none.
pub fn role_as_shown(name: &str) -> pg_sys::Oid {
    if name == "-" {
        return pg_sys::Oid::INVALID;
    }
    let c_name = CString::new(name).unwrap_or_default();
    // SAFETY: a C string.
    let known = unsafe { pg_sys::get_role_oid(c_name.as_ptr(), true) };
    match name.parse::<u32>() {
        Ok(number) if known == pg_sys::Oid::INVALID && number > 0 => number.into(),
        _ => role(name),
    }
}

/// PostgreSQL's own error if the transaction is read-only.
pub fn prevent_if_read_only(command: &str) {
    let command = CString::new(command).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) }
}

/// What has to stay the same for a model that was found once to be still the one that is seen: transaction, snapshot,
/// command, subtransaction and user. The command alone would not do: a subtransaction that is rolled back takes what it has
/// stored with it, but no command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupScope([u32; 8]);

impl LookupScope {
    /// As it is now.
    #[inline]
    pub fn now() -> LookupScope {
        // SAFETY: a function is called with an active snapshot, in a transaction; none of these functions raises errors.
        unsafe {
            let snapshot = &*GetActiveSnapshot();
            LookupScope([
                transaction_of_backend(),
                snapshot.xmin.into_inner(),
                snapshot.xmax.into_inner(),
                snapshot.xcnt,
                snapshot.subxcnt as u32,
                GetCurrentCommandId(false),
                GetCurrentSubTransactionId(),
                GetUserId().to_u32(),
            ])
        }
    }
}

// As in pg_sys, but without its barrier for errors, which costs more than they do: they are called for every row.
unsafe extern "C-unwind" {
    fn GetActiveSnapshot() -> pg_sys::Snapshot;
    fn GetCurrentCommandId(used: bool) -> pg_sys::CommandId;
    fn GetCurrentSubTransactionId() -> pg_sys::SubTransactionId;
    fn GetUserId() -> pg_sys::Oid;
}
