//! Rows of the table, as they are read.

use super::field::{ARRAY_HEADER, Float, FloatArray};
use super::floats::finite;
use super::lookup::{existing, table_oid};
use super::roles::StoredRole;
use super::scope::{GetActiveSnapshot, GetCurrentCommandId};
use crate::keyed_values::{Fault, KeyedValues, Read};
use crate::shared;
use errors::{ModelError, raise};
use pg::compat::attributes;
use pg::values::array::AnyArray;
use pg::values::jsonb::Jsonb;
use pg::values::tid::page_of;
use pg::values::typed::TypedDatum;
use pgrx::prelude::*;
use serde::de::DeserializeOwned;
use std::ffi::{CStr, CString, c_int};
use std::ops::ControlFlow;

/// What identifies a model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Id(i64),
    Name(String),
}

/// A key that is borrowed, as a call has it for each row.
#[derive(Debug, Clone, Copy)]
pub enum KeyRef<'a> {
    Id(i64),
    Name(&'a str),
}

impl KeyRef<'_> {
    pub fn to_key(self) -> Key {
        match self {
            KeyRef::Id(id) => Key::Id(id),
            KeyRef::Name(name) => Key::Name(name.to_owned()),
        }
    }

    #[inline]
    pub fn is(self, key: &Key) -> bool {
        match (self, key) {
            (KeyRef::Id(id), Key::Id(other)) => id == *other,
            (KeyRef::Name(name), Key::Name(other)) => name == other,
            _ => false,
        }
    }
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

pub struct ModelRow<'a> {
    table: &'a ModelTable,
    tuple: pg_sys::HeapTuple,
}

impl ModelTable {
    pub fn open() -> ModelTable {
        let oid = table_oid();
        // SAFETY: closed in close(). NULL if it was dropped while the lock was waited for;
        // an open relation has its row of pg_class.
        let (relation, is_table) = unsafe {
            let relation = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            let class = relation.as_ref().map(|relation| (*relation.rd_rel).relkind as u8);
            (relation, class == Some(pg_sys::RELKIND_RELATION))
        };
        // an administrator may have put something else in its place
        if !is_table {
            raise(&ModelError::NoModelTable("stored_models".into()));
        }
        ModelTable { relation, latest: None }
    }

    /// Opens the table as it is now, and not as the running statement sees it; None in a parallel operation, where no
    /// snapshot may be taken.
    pub fn open_latest() -> Option<ModelTable> {
        // SAFETY: in a transaction; the snapshot is released in close(), or by the end of the transaction.
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
        self.each(key, &mut |row| result = f.take().map(|f| f(row)));
        result
    }

    /// Shows `f` the rows with this key that are seen. With a name there may be many, by their owners and
    /// versions.
    pub fn each(&self, key: &Key, f: &mut dyn FnMut(&ModelRow)) {
        // SAFETY: an index scan on the index of the key.
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
            self.scan(Some((existing(index), vec![scan_key])), &mut |row| {
                f(row);
                ControlFlow::Continue(())
            });
        }
    }

    /// Shows `f` the rows whose names begin with `prefix`, in the order of their names, until it breaks.
    pub fn each_with_prefix(&self, prefix: &str, f: &mut dyn FnMut(&ModelRow) -> ControlFlow<()>) {
        // SAFETY: an index scan on the index that begins with the name, whose collation is that of bytes.
        unsafe {
            let attribute = pg_sys::get_attnum((*self.relation).rd_id, c"name".as_ptr());
            let key = |strategy: u32, function: u32, value: &str| {
                let mut key = pg_sys::ScanKeyData::default();
                let value = value.into_datum().unwrap_or(pg_sys::Datum::null());
                let (strategy, function) = (strategy as pg_sys::StrategyNumber, pg_sys::Oid::from(function));
                pg_sys::ScanKeyInit(&mut key, attribute, strategy, function, value);
                key
            };
            let mut keys = vec![key(pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_TEXT_GE, prefix)];
            if let Some(end) = behind(prefix) {
                keys.push(key(pg_sys::BTLessStrategyNumber, pg_sys::F_TEXT_LT, &end));
            }
            self.scan(Some((existing(c"models_name_version_key"), keys)), f);
        }
    }

    /// Is no row seen?
    pub fn is_empty(&self) -> bool {
        let mut is_empty = true;
        // SAFETY: a scan without an index.
        unsafe {
            self.scan(None, &mut |_| {
                is_empty = false;
                ControlFlow::Break(())
            });
        }
        is_empty
    }

    /// Shows `f` all rows that are seen.
    pub fn each_row(&self, f: &mut dyn FnMut(&ModelRow)) {
        // SAFETY: a scan without an index.
        unsafe {
            self.scan(None, &mut |row| {
                f(row);
                ControlFlow::Continue(())
            });
        }
    }

    /// Shows `f` the rows that a scan finds, by an index and its keys, or all, until it breaks.
    ///
    /// # Safety
    /// The index is one of the table, and the keys are some of the index.
    unsafe fn scan(
        &self,
        keys: Option<(pg_sys::Oid, Vec<pg_sys::ScanKeyData>)>,
        f: &mut dyn FnMut(&ModelRow) -> ControlFlow<()>,
    ) {
        // SAFETY: the caller's promise; each tuple is valid until the next one.
        unsafe {
            let mut own = with_own_commands();
            let snapshot = self.latest.unwrap_or(&raw mut own);
            let (index, mut keys) = keys.unwrap_or((pg_sys::Oid::INVALID, Vec::new()));
            let count = keys.len() as c_int;
            let scan = pg_sys::systable_beginscan(self.relation, index, count > 0, snapshot, count, keys.as_mut_ptr());
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() || f(&ModelRow { table: self, tuple }).is_break() {
                    break;
                }
            }
            pg_sys::systable_endscan(scan);
        }
    }
}

/// The least text above all that begin with `prefix`, which ends in an ASCII character; None if it is empty.
fn behind(prefix: &str) -> Option<String> {
    let last = prefix.chars().next_back().filter(char::is_ascii)?;
    Some(format!("{}{}", &prefix[..prefix.len() - 1], char::from(last as u8 + 1)))
}

/// What `f` makes of the row of this model, if it is seen.
pub fn find<R>(id: i64, f: impl FnOnce(&ModelRow) -> R) -> Option<R> {
    let table = ModelTable::open();
    let found = table.find(&Key::Id(id), f);
    table.close();
    found
}

/// The active snapshot, with what the commands of this transaction have done since it was taken. In a worker these are
/// the commands of the transaction that it works for, none of which can come after it was started.
#[expect(ffi_unwind_calls, reason = "these raise no errors")]
fn with_own_commands() -> pg_sys::SnapshotData {
    // SAFETY: a function is called with an active snapshot, which outlives the call, and with it the lists that the
    // copy points to. No one registers the copy, whose counts say that it is active, as the original is: PostgreSQL
    // with assertions asks for that.
    unsafe { pg_sys::SnapshotData { curcid: GetCurrentCommandId(false), ..*GetActiveSnapshot() } }
}

impl ModelRow<'_> {
    /// A column's value, None if NULL. Copied out of the row.
    /// An ERROR if the column has another type.
    pub fn get<T: FromDatum + IntoDatum>(&self, column: &CStr) -> Option<T> {
        self.value(column).and_then(TypedDatum::to_rust)
    }

    pub fn owner(&self) -> StoredRole {
        StoredRole::from_column(self.get(c"owner").unwrap_or_default())
    }

    pub fn roles(&self, column: &CStr) -> Vec<StoredRole> {
        StoredRole::all_from_column(self.get(column))
    }

    /// As [`ModelRow::value`].
    fn value_of(&self, column: &str) -> Option<TypedDatum<'_>> {
        CString::new(column).ok().and_then(|column| self.value(&column))
    }

    /// A column's value, None if NULL; lives as long as the row.
    fn value(&self, column: &CStr) -> Option<TypedDatum<'_>> {
        // SAFETY: the tuple is one of the table, which is open, and the attribute one of its attributes, with its type.
        unsafe {
            let relation = self.table.relation;
            let attribute = pg_sys::get_attnum((*relation).rd_id, column.as_ptr());
            if attribute <= 0 {
                return None; // a column that the database has not got yet: its objects are older than the library
            }
            let descriptor = (*relation).rd_att;
            let mut null = false;
            let value = pg_sys::heap_getattr(self.tuple, c_int::from(attribute), descriptor, &mut null);
            let columns = attributes(descriptor);
            (!null).then(|| TypedDatum::from_column(value, &columns[attribute as usize - 1]))
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

    pub fn version(&self) -> Version {
        // SAFETY: the header of a heap tuple; the raw transaction id is good enough to tell versions apart.
        unsafe {
            let header = &*(*self.tuple).t_data;
            let at = (*self.tuple).t_self;
            Version {
                transaction: header.t_choice.t_heap.t_xmin.into_inner(),
                command: header.t_choice.t_heap.t_field3.t_cid,
                block: page_of(&at),
                offset: at.ip_posid,
            }
        }
    }
}

/// The columns of the row, but for those that are NULL. An ERROR if a column has another type.
impl KeyedValues for ModelRow<'_> {
    fn get<T: FromDatum + IntoDatum + DeserializeOwned>(&self, key: &'static str) -> Read<T> {
        Ok(self.value_of(key).and_then(TypedDatum::to_rust))
    }

    /// (Read as a Vec, an array of arrays would be taken for the elements of all of them.)
    fn list<T: DeserializeOwned>(&self, key: &'static str) -> Read<Vec<T>>
    where
        Vec<Option<T>>: FromDatum + IntoDatum,
    {
        let Some(value) = self.value_of(key) else { return Ok(None) };
        let is_flat = AnyArray::new(value.type_oid()).is_some_and(|array| array.dimensions(value) <= 1);
        let elements = is_flat.then(|| value.to_rust::<Vec<Option<T>>>()).flatten();
        elements.and_then(|elements| elements.into_iter().collect()).map(Some).ok_or_else(|| no_list(key))
    }

    fn floats<T: Float>(&self, key: &'static str) -> Read<FloatArray<T>> {
        let Some(value) = self.value_of(key) else { return Ok(None) };
        let value = value.datum_of_type(T::OIDS.0);
        // SAFETY: the value is an array of T, by its type; pg_detoast_datum_copy gives one that is in memory as a
        // whole and is ours to free. Its first dimension follows the header, its data that or a bitmap.
        let floats = unsafe {
            let array = pg_sys::pg_detoast_datum_copy(value.cast_mut_ptr()).cast::<pg_sys::ArrayType>();
            let dimension = array.cast::<u8>().add(size_of::<pg_sys::ArrayType>()).cast::<i32>();
            let floats = match (*array).ndim {
                0 => Some(Vec::new()),
                1 if !pg_sys::array_contains_nulls(array) => {
                    let offset = if (*array).dataoffset == 0 { ARRAY_HEADER } else { (*array).dataoffset as usize };
                    let data = array.cast::<u8>().add(offset).cast::<T>();
                    Some(allocation::copy(std::slice::from_raw_parts(data, *dimension as usize)))
                }
                _ => None,
            };
            pg_sys::pfree(array.cast());
            floats
        };
        finite(floats.ok_or_else(|| no_list(key))?).map(Some).map_err(|reason| Fault::new(key, reason))
    }

    fn json<T: DeserializeOwned>(&self, key: &'static str) -> Read<T> {
        let Some(value) = self.value_of(key) else { return Ok(None) };
        let value = Jsonb::new(value).read().map_err(|unreadable| Fault::unreadable(key, unreadable))?;
        serde_json::from_value(value).map(Some).map_err(|error| Fault::of_json(key, &error))
    }

    fn type_oid(&self, key: &'static str) -> Read<pg_sys::Oid> {
        KeyedValues::get(self, key)
    }
}

fn no_list(column: &str) -> Fault {
    Fault::new(column, "is not an array of one dimension without NULLs")
}

/// What shared memory knows a row by.
pub(super) fn shared_key(
    table: pg_sys::Oid,
    id: i64,
    transaction: pg_sys::TransactionId,
    at: pg_sys::ItemPointerData,
) -> shared::Key {
    // SAFETY: the entry of a relation that is there; its reference is given back at once.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(table);
        if relation.is_null() {
            raise(&ModelError::NoModelTable("stored_models".into()));
        }
        let file = (*(*relation).rd_rel).relfilenode.to_u32();
        pg_sys::RelationClose(relation);
        shared::Key {
            database: pg_sys::MyDatabaseId.to_u32(),
            file,
            model: id,
            transaction: transaction.into_inner(),
            block: page_of(&at),
            offset: at.ip_posid.into(),
        }
    }
}
