//! Relations: found by name, locked, and what the catalogs say about them.

use super::names::name_of;
use super::nearest_table::nearest_table;
use crate::PAGE_BYTES;
use crate::compat::attributes;
use crate::errors::{Error, Result};
use pgrx::prelude::*;
use std::ffi::{CStr, CString, c_char, c_int};

/// A relation, locked against changes of its definition until the transaction ends.
pub struct Relation {
    oid: pg_sys::Oid,
    name: String,
}

impl Relation {
    /// Finds and locks the relation with this name, which may be qualified and quoted, as regclass reads it.
    ///
    /// # Errors
    /// [`Error::NotAName`], [`Error::UnknownTable`]; PostgreSQL's own of a name of many parts.
    pub fn lookup(name: &str) -> Result<Relation> {
        let text = name;
        let not_a_name =
            || -> Result<Error> { Ok(Error::NotAName { text: text.to_owned(), nearest: nearest_table(text)? }) };
        let Ok(name) = CString::new(name) else { return Err(not_a_name()?) };
        // SAFETY: parses the name, looks it up and takes the lock that any query on it would take.
        unsafe {
            let Some(names) = split_name(&name) else { return Err(not_a_name()?) };
            let range = pg_sys::makeRangeVarFromNameList(names);
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let if_missing = pg_sys::RVROption::RVR_MISSING_OK;
            let oid = pg_sys::RangeVarGetRelidExtended(range, lock, if_missing, None, std::ptr::null_mut());
            if oid == pg_sys::Oid::INVALID {
                let name = CStr::from_ptr(pg_sys::NameListToString(names)).to_string_lossy().into_owned();
                let nearest = nearest_table(&name)?;
                return Err(Error::UnknownTable { name, nearest });
            }
            Relation::of_oid(oid).ok_or(Error::SourceChanged)
        }
    }

    /// The name, qualified and quoted, of the relation with this OID, as a value of type regclass has it.
    ///
    /// # Errors
    /// [`Error::Dropped`] if it does not exist.
    pub fn name_of_oid(oid: pg_sys::Oid) -> Result<String> {
        // SAFETY: catalog lookups; anyone who takes the name looks it up and locks the relation.
        let relation = unsafe { Relation::of_oid(oid) };
        relation.map(|relation| relation.name).ok_or_else(|| Error::Dropped(oid.to_u32().to_string()))
    }

    /// The table behind a row type, locked; None if the type is not one of a table, view or the like.
    ///
    /// # Errors
    /// [`Error::DroppedRowType`], or [`Error::Dropped`] if anyone who dropped it had to be waited for.
    pub fn of_row_type(row_type: pg_sys::Oid) -> Result<Option<Relation>> {
        // SAFETY: catalog lookups; the lock is the one that any query on the relation would take.
        unsafe {
            let oid = pg_sys::get_typ_typrelid(row_type);
            if oid == pg_sys::Oid::INVALID {
                // a type that is no more is of no kind
                return if pg_sys::get_typtype(row_type) == 0 { Err(Error::DroppedRowType) } else { Ok(None) };
            }
            let name = name_of(oid); // afterwards it may have none
            pg_sys::LockRelationOid(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            if pg_sys::get_rel_relkind(oid) as u8 == pg_sys::RELKIND_COMPOSITE_TYPE {
                return Ok(None);
            }
            Relation::of_oid(oid).map(Some).ok_or(Error::Dropped(name))
        }
    }

    /// The relation with this OID, which is locked; None if it went away before it was.
    unsafe fn of_oid(oid: pg_sys::Oid) -> Option<Relation> {
        // SAFETY: catalog lookups; the names are NULL if there is no such relation.
        unsafe {
            let name = pg_sys::get_rel_name(oid);
            let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid));
            if name.is_null() || schema.is_null() {
                return None;
            }
            let quoted = CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name));
            Some(Relation { oid, name: quoted.to_string_lossy().into_owned() })
        }
    }

    /// The relation's OID.
    pub fn oid(&self) -> pg_sys::Oid {
        self.oid
    }

    /// Its name, qualified and quoted, to be put into a query.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For each attribute of its row type, which of the columns of `SELECT *` it is; None where a column was dropped.
    pub fn live_columns(&self) -> Vec<Option<usize>> {
        // SAFETY: the relation is locked, and its descriptor is read while it is open.
        unsafe {
            let relation = pg_sys::RelationIdGetRelation(self.oid);
            let descriptor = (*relation).rd_att;
            let mut live = 0..;
            let columns = attributes(descriptor)
                .iter()
                .map(|attribute| if attribute.attisdropped { None } else { live.next() })
                .collect();
            pg_sys::RelationClose(relation);
            columns
        }
    }
}

/// The parts of a name, as a list of String nodes; None if it is no name.
///
/// # Safety
/// In a transaction.
unsafe fn split_name(name: &CStr) -> Option<*mut pg_sys::List> {
    // SAFETY: the parts point into a copy of the name, which stays in the current memory context.
    unsafe {
        let mut parts = std::ptr::null_mut();
        let copy = pg_sys::pstrdup(name.as_ptr());
        if !pg_sys::SplitIdentifierString(copy, b'.' as c_char, &mut parts) || parts.is_null() {
            return None;
        }
        let mut names = pgrx::PgList::<pg_sys::String>::new();
        for part in pgrx::PgList::<c_char>::from_pg(parts).iter_ptr() {
            names.push(pg_sys::makeString(part));
        }
        Some(names.into_pg())
    }
}

/// Is the column one of those of its table's primary key?
pub fn is_primary_key(relation: pg_sys::Oid, column: pg_sys::AttrNumber) -> bool {
    // SAFETY: the bitmap is ours to free; views and foreign tables have no indexes.
    unsafe {
        let relation = if relation == pg_sys::Oid::INVALID {
            std::ptr::null_mut()
        } else {
            pg_sys::RelationIdGetRelation(relation)
        };
        if relation.is_null() {
            return false;
        }
        let kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_PRIMARY_KEY;
        let key = pg_sys::RelationGetIndexAttrBitmap(relation, kind);
        let is_member = pg_sys::bms_is_member(i32::from(column) - pg_sys::FirstLowInvalidHeapAttributeNumber, key);
        pg_sys::bms_free(key);
        pg_sys::RelationClose(relation);
        is_member
    }
}

/// Is the column one of a plain table that says NOT NULL, so that it has none? Children of a table need not say so, and
/// foreign tables need not obey.
pub fn is_never_null(relation: pg_sys::Oid, column: pg_sys::AttrNumber) -> bool {
    // SAFETY: the reference is given back; a table has as many attributes as its descriptor says.
    unsafe {
        let relation = if relation == pg_sys::Oid::INVALID || column <= 0 {
            std::ptr::null_mut()
        } else {
            pg_sys::RelationIdGetRelation(relation)
        };
        if relation.is_null() {
            return false;
        }
        let (class, descriptor) = (&*(*relation).rd_rel, (*relation).rd_att);
        let is_plain = class.relkind as u8 == pg_sys::RELKIND_RELATION && !class.relhassubclass;
        let is_never_null = is_plain && attributes(descriptor)[column as usize - 1].attnotnull;
        pg_sys::RelationClose(relation);
        is_never_null
    }
}

/// Why no two rows of a table have the same value in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uniqueness {
    /// it is an identity column
    Identity,
    /// a unique index has it, and no other column
    Index,
}

/// Do the catalogs say that no two rows have the same value in the column?
pub fn uniqueness(relation: pg_sys::Oid, column: pg_sys::AttrNumber) -> Option<Uniqueness> {
    if column <= 0 {
        return None;
    }
    // SAFETY: the references are given back; a table has as many attributes as its descriptor says, and the list has
    // OIDs of indexes.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relation);
        if relation.is_null() {
            return None;
        }
        let descriptor = (*relation).rd_att;
        let column_of_table = attributes(descriptor).get(column as usize - 1);
        let is_identity = column_of_table.is_some_and(|attribute| attribute.attidentity != 0);
        let indexes = pgrx::PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(relation));
        let is_indexed = indexes.iter_oid().any(|index| is_unique_index_on(index, column));
        pg_sys::RelationClose(relation);
        match (is_identity, is_indexed) {
            (true, _) => Some(Uniqueness::Identity),
            (false, true) => Some(Uniqueness::Index),
            (false, false) => None,
        }
    }
}

/// Is it a unique index of all rows on this column alone?
///
/// # Safety
/// The index is one of a relation that is open.
unsafe fn is_unique_index_on(index: pg_sys::Oid, column: pg_sys::AttrNumber) -> bool {
    // SAFETY: the tuple stays until it is released; an index has one key column at least.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::INDEXRELID as c_int, index.into());
        if tuple.is_null() {
            return false;
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
        let is_partial = !pg_sys::heap_attisnull(tuple, pg_sys::Anum_pg_index_indpred as c_int, std::ptr::null_mut());
        let has_column = form.indnkeyatts == 1 && *form.indkey.values.as_ptr() == column;
        let is_unique = form.indisunique && form.indisvalid && has_column && !is_partial;
        pg_sys::ReleaseSysCache(tuple);
        is_unique
    }
}

/// Do the rows of this relation have a place in a table, ctid?
pub fn has_places(relation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE, pg_sys::RELKIND_MATVIEW].contains(&kind)
}

/// May the current user read system columns of a table? A privilege on columns does not do.
pub fn may_read_places(table: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    let verdict =
        unsafe { pg_sys::pg_class_aclcheck(table, pg_sys::GetUserId(), pg_sys::ACL_SELECT as pg_sys::AclMode) };
    verdict == pg_sys::AclResult::ACLCHECK_OK
}

/// Bytes of a relation's own pages; None if it has none of its own.
pub fn bytes(relation: pg_sys::Oid) -> Option<u64> {
    if !has_places(relation) {
        return None;
    }
    // SAFETY: the relation is locked by the one that resolved its name; closed at once. A partitioned table has no
    // file.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relation);
        if relation.is_null() {
            return None;
        }
        let has_file = (*(*relation).rd_rel).relkind as u8 != pg_sys::RELKIND_PARTITIONED_TABLE;
        let pages = |fork| pg_sys::RelationGetNumberOfBlocksInFork(relation, fork);
        let bytes = has_file.then(|| u64::from(pages(pg_sys::ForkNumber::MAIN_FORKNUM)) * u64::from(PAGE_BYTES));
        pg_sys::RelationClose(relation);
        bytes
    }
}

/// How many rows PostgreSQL thinks that a relation has; None if it has not counted them.
pub fn estimated_rows(relation: pg_sys::Oid) -> Option<f64> {
    // SAFETY: the relation is locked by the one that resolved its name; closed at once.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(relation);
        if relation.is_null() {
            return None;
        }
        let rows = f64::from((*(*relation).rd_rel).reltuples);
        pg_sys::RelationClose(relation);
        (rows >= 0.0).then_some(rows)
    }
}
