//! Table corgipile.models, read and written without the current user needing any privilege on it.
//!
//! Whoever calls checks whether the user may use what was found: this module knows rows, not policies.

use crate::error::Error;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_int};
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

fn relation_oid(name: &CStr) -> pg_sys::Oid {
    // SAFETY: catalog lookups; there is nothing in schema InvalidOid.
    let oid = unsafe {
        let schema = pg_sys::get_namespace_oid(c"corgipile".as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    if oid == pg_sys::Oid::INVALID {
        Error::NoModelTable(name.to_string_lossy().into_owned()).raise();
    }
    oid
}

impl ModelTable {
    /// Opens the table.
    pub fn open() -> ModelTable {
        // SAFETY: closed in close().
        unsafe {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            ModelTable { relation: pg_sys::table_open(relation_oid(c"models"), lock) }
        }
    }

    /// Closes it; the lock goes too, as for any catalog that is looked into.
    pub fn close(self) {
        // SAFETY: opened in open(), closed once.
        unsafe { pg_sys::table_close(self.relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE) }
    }

    /// Shows `f` the row with this key that the running statement sees, if there is one.
    pub fn find<R>(&self, key: &Key, f: impl FnOnce(&ModelRow) -> R) -> Option<R> {
        // SAFETY: an index scan on the unique index of the key; the tuple is valid until the scan ends.
        unsafe {
            let (index, column, function, value) = match key {
                Key::Id(id) => (c"models_pkey", c"model_id", pg_sys::F_INT8EQ, id.into_datum()),
                Key::Name(name) => (c"models_name_key", c"name", pg_sys::F_TEXTEQ, name.as_str().into_datum()),
            };
            let mut scan_key = pg_sys::ScanKeyData::default();
            let attribute = pg_sys::get_attnum((*self.relation).rd_id, column.as_ptr());
            let equal = pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber;
            let value = value.unwrap_or(pg_sys::Datum::null());
            pg_sys::ScanKeyInit(&mut scan_key, attribute, equal, pg_sys::Oid::from(function), value);
            let snapshot = pg_sys::GetActiveSnapshot();
            let scan = pg_sys::systable_beginscan(self.relation, relation_oid(index), true, snapshot, 1, &mut scan_key);
            let tuple = pg_sys::systable_getnext(scan);
            let result = (!tuple.is_null()).then(|| f(&ModelRow { table: self, tuple }));
            pg_sys::systable_endscan(scan);
            result
        }
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

    /// A column's value, None if NULL; lives as long as the row.
    fn value(&self, column: &CStr) -> Option<pg_sys::Datum> {
        // SAFETY: the tuple is one of the table, which is open.
        unsafe {
            let relation = self.table.relation;
            let attribute = pg_sys::get_attnum((*relation).rd_id, column.as_ptr());
            let mut null = false;
            let value = pg_sys::heap_getattr(self.tuple, c_int::from(attribute), (*relation).rd_att, &mut null);
            (!null).then_some(value)
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

/// A copy, or an error where there is no memory for one: a model may have half a gigabyte.
fn copy<T: Copy>(floats: &[T]) -> Vec<T> {
    let mut copy = Vec::new();
    if copy.try_reserve_exact(floats.len()).is_err() {
        Error::OutOfMemory(size_of_val(floats)).raise();
    }
    copy.extend_from_slice(floats);
    copy
}

/// Inserts a row and returns its model_id, None if the name is taken. Done as the table's owner, whom row security lets
/// pass.
pub fn insert(fields: Vec<Field>) -> Option<i64> {
    let columns: Vec<&str> = fields.iter().map(|f| f.column).collect();
    let places: Vec<String> = (1..=fields.len()).map(|i| format!("${i}")).collect();
    let sql = format!(
        "INSERT INTO corgipile.models ({}) VALUES ({}) RETURNING model_id",
        columns.join(", "),
        places.join(", ")
    );
    let values: Vec<DatumWithOid> = fields.into_iter().map(|f| f.value).collect();
    let insert = || match Spi::get_one_with_args::<i64>(&sql, &values) {
        Ok(Some(id)) => Some(id),
        Ok(None) => error!("corgipile.models did not give a model_id"),
        Err(e) => error!("could not write to corgipile.models: {e}"),
    };
    as_owner(|| {
        // Caught to be raised anew, in our own words: the transaction ends either way.
        PgTryBuilder::new(AssertUnwindSafe(insert))
            .catch_when(PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION, |_| None)
            .execute()
    })
}

/// Runs `f` with the privileges of the table's owner. An ERROR in `f` ends the (sub)transaction, which puts the user back.
fn as_owner<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the saved state is put back; the table's pg_class entry is read while it is held.
    unsafe {
        let relid = relation_oid(c"models");
        let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
        let tuple = pg_sys::SearchSysCache1(cache, relid.into());
        if tuple.is_null() {
            Error::NoModelTable("models".into()).raise();
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        let (mut user, mut context) = (pg_sys::Oid::INVALID, 0);
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetUserIdAndSecContext(owner, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as c_int);
        let result = f();
        pg_sys::SetUserIdAndSecContext(user, context);
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

/// PostgreSQL's own error if the transaction is read-only.
pub fn prevent_if_read_only(command: &str) {
    let command = CString::new(command).unwrap_or_default();
    // SAFETY: a C string.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) }
}

/// What has to stay the same for a model that was found once to be still the one that is seen: transaction, snapshot,
/// command and user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight([u32; 7]);

impl Sight {
    /// As it is now.
    #[inline]
    pub fn now() -> Sight {
        // SAFETY: a function is called with an active snapshot, in a transaction; neither function raises errors.
        unsafe {
            let snapshot = &*GetActiveSnapshot();
            Sight([
                (*pg_sys::MyProc).lxid,
                snapshot.xmin.into_inner(),
                snapshot.xmax.into_inner(),
                snapshot.xcnt,
                snapshot.subxcnt as u32,
                snapshot.curcid,
                GetUserId().to_u32(),
            ])
        }
    }
}

// As in pg_sys, but without its barrier for errors, which costs more than they do: they are called for every row.
unsafe extern "C-unwind" {
    fn GetActiveSnapshot() -> pg_sys::Snapshot;
    fn GetUserId() -> pg_sys::Oid;
}
