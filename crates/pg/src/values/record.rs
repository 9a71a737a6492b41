//! Values of composite types, whose columns are found by their names at run time.

use super::typed::TypedDatum;
use super::varlena::with_content;
use crate::catalog::types::{base_type, base_type_of_extension, is_enum};
use crate::compat::attributes;
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::CStr;
use std::marker::PhantomData;

/// A row as a value: of a table, of a subquery, of a composite type.
pub struct Record<'a> {
    header: pg_sys::HeapTupleHeader,
    borrowed: PhantomData<TypedDatum<'a>>,
}

/// One column of a row type.
pub struct RecordColumn {
    /// as the row type has it
    pub name: String,
    /// which attribute of the row it is, from 0
    pub attribute: usize,
    /// the declared type; perhaps a domain
    pub type_oid: pg_sys::Oid,
    /// InvalidOid of a type without
    pub collation: pg_sys::Oid,
}

/// Room for the columns of one row, kept from row to row.
#[derive(Default)]
pub struct RecordRoom {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    types: Vec<pg_sys::Oid>,
}

/// The columns of one row.
#[derive(Clone, Copy)]
pub struct RecordValues<'a> {
    room: &'a RecordRoom,
}

impl<'a> Record<'a> {
    /// The row that a value is. An ERROR if its type is not one of rows.
    pub fn new(value: TypedDatum<'a>) -> Record<'a> {
        check_row_type(value.type_oid());
        // SAFETY: the value is composite, by its type; one that is compressed or expanded is copied into the current
        // memory context, which is that of the call.
        let header = unsafe { pg_sys::pg_detoast_datum(value.datum().cast_mut_ptr()) };
        Record { header: header.cast(), borrowed: PhantomData }
    }

    /// A number for the row's type as it is defined now: it never comes again for another.
    #[inline]
    pub fn type_identifier(&self) -> u64 {
        let (type_oid, modifier) = self.row_type();
        // SAFETY: a lookup in the type cache.
        unsafe { pg_sys::assign_record_type_identifier(type_oid, modifier) }
    }

    /// The columns that the row's type has now.
    pub fn columns(&self) -> Vec<RecordColumn> {
        self.with_descriptor(|descriptor| {
            // SAFETY: a descriptor has natts attributes.
            let attributes = unsafe { attributes(descriptor) };
            let live = attributes.iter().enumerate().filter(|(_, attribute)| !attribute.attisdropped);
            live.map(|(i, attribute)| RecordColumn {
                // SAFETY: a name is a C string.
                name: unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) }.to_string_lossy().into_owned(),
                attribute: i,
                type_oid: attribute.atttypid,
                collation: attribute.attcollation,
            })
            .collect()
        })
    }

    /// Takes the row apart.
    #[inline]
    pub fn read<'r>(&'r self, room: &'r mut RecordRoom) -> RecordValues<'r> {
        self.with_descriptor(|descriptor| {
            // SAFETY: the descriptor is that of the row, which has a value for each attribute or is older than it.
            unsafe {
                let attributes = attributes(descriptor);
                room.values.resize(attributes.len(), pg_sys::Datum::null());
                room.nulls.resize(attributes.len(), true);
                room.types.clear();
                room.types.extend(attributes.iter().map(|attribute| attribute.atttypid));
                let mut tuple = pg_sys::HeapTupleData { t_data: self.header, ..Default::default() };
                pg_sys::heap_deform_tuple(&mut tuple, descriptor, room.values.as_mut_ptr(), room.nulls.as_mut_ptr());
            }
        });
        RecordValues { room }
    }

    fn row_type(&self) -> (pg_sys::Oid, i32) {
        // SAFETY: a composite value begins with a header that has its type.
        unsafe {
            let fields = &(*self.header).t_choice.t_datum;
            (fields.datum_typeid, fields.datum_typmod)
        }
    }

    fn with_descriptor<R>(&self, f: impl FnOnce(pg_sys::TupleDesc) -> R) -> R {
        let (type_oid, modifier) = self.row_type();
        // SAFETY: the reference is given back; an ERROR in between gives it back with the resource owner.
        unsafe {
            let descriptor = pg_sys::lookup_rowtype_tupdesc(type_oid, modifier);
            let result = f(descriptor);
            if (*descriptor).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(descriptor);
            }
            result
        }
    }
}

impl<'a> RecordValues<'a> {
    /// The value of an attribute; None if it is NULL.
    #[inline]
    pub fn get(self, attribute: usize) -> Option<TypedDatum<'a>> {
        let RecordRoom { values, nulls, types } = self.room;
        // SAFETY: heap_deform_tuple() has given a value of the attribute's type, in a row that is borrowed as long.
        (!nulls[attribute]).then(|| unsafe { TypedDatum::new(values[attribute], types[attribute]) })
    }
}

/// An ERROR if the type is not one of rows. The last one that was looked at is remembered.
fn check_row_type(type_oid: pg_sys::Oid) {
    thread_local! {
        static LAST: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::Oid::INVALID) };
    }
    if type_oid == pg_sys::RECORDOID || LAST.get() == type_oid {
        return;
    }
    // SAFETY: catalog lookups.
    if !unsafe { pg_sys::type_is_rowtype(base_type(type_oid)) } {
        pgrx::error!("type {} is not one of rows", type_oid.to_u32());
    }
    LAST.set(type_oid);
}

/// A type whose values are categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoryType {
    declared: pg_sys::Oid,
    collation: pg_sys::Oid,
    kind: CategoryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CategoryKind {
    /// text, varchar
    Text,
    /// char(n), whose trailing blanks mean nothing
    Char,
    Enum,
    /// type citext, of which upper and lower case are one category: the lower one
    CiText,
    /// a literal without a type
    Unknown,
}

impl CategoryType {
    /// The type with this OID, if its values are categories.
    pub fn new(declared: pg_sys::Oid, collation: pg_sys::Oid) -> Option<CategoryType> {
        let kind = match base_type(declared) {
            pg_sys::TEXTOID | pg_sys::VARCHAROID => CategoryKind::Text,
            pg_sys::BPCHAROID => CategoryKind::Char,
            pg_sys::UNKNOWNOID => CategoryKind::Unknown,
            base if is_enum(base) => CategoryKind::Enum,
            base if is_citext(base) => CategoryKind::CiText,
            _ => return None,
        };
        Some(CategoryType { declared, collation, kind })
    }

    /// Shows `f` the category as text.
    pub fn with_text<R>(self, value: TypedDatum<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
        let datum = value.of_type(self.declared);
        // SAFETY: the value is of this type, which has just been compared: of variable length, a C string, or an enum's
        // OID, which enum_out turns into a C string of its own.
        unsafe {
            match self.kind {
                CategoryKind::Text => with_content(datum, f),
                CategoryKind::CiText => with_content(datum, |bytes| with_lower(bytes, f)),
                CategoryKind::Char => with_content(datum, |bytes| f(without_trailing_blanks(bytes))),
                CategoryKind::Unknown => f(CStr::from_ptr(datum.cast_mut_ptr()).to_bytes()),
                CategoryKind::Enum => {
                    let text = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_ENUM_OUT), datum);
                    let result = f(CStr::from_ptr(text).to_bytes());
                    pg_sys::pfree(text.cast());
                    result
                }
            }
        }
    }

    /// Which of the texts is equal to this one although its bytes are others: there may be one if the column's
    /// collation says so.
    #[cold]
    pub fn find_equal(self, text: &[u8], among: &[String]) -> Option<usize> {
        let CategoryType { collation, kind: CategoryKind::Text | CategoryKind::Char, .. } = self else { return None };
        // SAFETY: catalog lookups, and texteq with two values of type text.
        unsafe {
            if collation == pg_sys::Oid::INVALID || pg_sys::get_collation_isdeterministic(collation) {
                return None;
            }
            let datum = |text: &[u8]| {
                let (start, len) = (text.as_ptr().cast(), text.len() as i32);
                pg_sys::Datum::from(pg_sys::cstring_to_text_with_len(start, len))
            };
            let text = datum(text);
            let equal = |other: &String| {
                let other = datum(other.as_bytes());
                let equal = pg_sys::OidFunctionCall2Coll(pg_sys::Oid::from(pg_sys::F_TEXTEQ), collation, text, other);
                pg_sys::pfree(other.cast_mut_ptr());
                equal.value() != 0
            };
            among.iter().position(equal)
        }
    }
}

/// Is it the type of the extension citext? For a domain, give its base type.
pub fn is_citext(base: pg_sys::Oid) -> bool {
    base_type_of_extension(base, c"citext").is_some_and(|name| name == "citext")
}

/// The text of a category of this type, as models have it.
pub fn category_text(type_oid: pg_sys::Oid, text: String) -> String {
    match is_citext(base_type(type_oid)) {
        true => with_lower(text.as_bytes(), |lower| String::from_utf8_lossy(lower).into_owned()),
        false => text,
    }
}

/// Shows `f` the text in lower case, as citext compares it: by the database's collation.
fn with_lower<R>(text: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: the function takes a text and gives one.
    unsafe {
        let given = pg_sys::cstring_to_text_with_len(text.as_ptr().cast(), text.len() as i32);
        let collation = pg_sys::DEFAULT_COLLATION_OID;
        let folded = pg_sys::DirectFunctionCall1Coll(Some(lower), collation, pg_sys::Datum::from(given));
        let result = with_content(folded, f);
        pg_sys::pfree(folded.cast_mut_ptr());
        pg_sys::pfree(given.cast());
        result
    }
}

unsafe extern "C-unwind" {
    fn lower(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum;
}

fn without_trailing_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}
