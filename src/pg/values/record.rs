//! Values of composite types, whose columns are found by their names at run time.

use crate::pg::catalog::relation::base_type;
use pgrx::{AnyElement, pg_sys};
use std::ffi::CStr;

/// A row as a value: of a table, of a subquery, of a composite type.
pub struct Record {
    header: pg_sys::HeapTupleHeader,
}

/// One column of a row type.
pub struct RecordColumn {
    pub name: String,
    /// which attribute of the row it is, from 0
    pub attribute: usize,
    /// the declared type; perhaps a domain
    pub type_oid: pg_sys::Oid,
    pub collation: pg_sys::Oid,
}

/// The columns of one row, None where it is NULL.
#[derive(Default)]
pub struct RecordValues {
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Record {
    /// The row that an argument of type record is.
    pub fn of(argument: AnyElement) -> Record {
        // SAFETY: PostgreSQL passes nothing but composite values, which are varlenas; one that is compressed or expanded
        // is copied into the current memory context.
        let header = unsafe { pg_sys::pg_detoast_datum(argument.datum().cast_mut_ptr()) };
        Record { header: header.cast() }
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
            let attributes = unsafe { (*descriptor).attrs.as_slice((*descriptor).natts as usize) };
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

    /// Takes the row apart. The values live as long as the row.
    #[inline]
    pub fn read(&self, into: &mut RecordValues) {
        self.with_descriptor(|descriptor| {
            // SAFETY: the descriptor is that of the row, which has a value for each attribute or is older than it.
            unsafe {
                let attributes = (*descriptor).natts as usize;
                into.values.resize(attributes, pg_sys::Datum::null());
                into.nulls.resize(attributes, true);
                let mut tuple = pg_sys::HeapTupleData { t_data: self.header, ..Default::default() };
                pg_sys::heap_deform_tuple(&mut tuple, descriptor, into.values.as_mut_ptr(), into.nulls.as_mut_ptr());
            }
        });
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

impl RecordValues {
    /// The value of an attribute.
    #[inline]
    pub fn get(&self, attribute: usize) -> Option<pg_sys::Datum> {
        (!self.nulls[attribute]).then(|| self.values[attribute])
    }
}

/// A type whose values are categories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CategoryType {
    /// text, varchar
    Text {
        collation: pg_sys::Oid,
    },
    /// char(n), whose trailing blanks mean nothing
    Char {
        collation: pg_sys::Oid,
    },
    Enum,
}

impl CategoryType {
    /// The type with this OID, if its values are categories.
    pub fn of(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> Option<CategoryType> {
        match base_type(type_oid) {
            pg_sys::TEXTOID | pg_sys::VARCHAROID => Some(CategoryType::Text { collation }),
            pg_sys::BPCHAROID => Some(CategoryType::Char { collation }),
            base => crate::pg::catalog::relation::is_enum(base).then_some(CategoryType::Enum),
        }
    }

    /// Shows `f` the category as text.
    pub fn with_text<R>(self, value: pg_sys::Datum, f: impl FnOnce(&[u8]) -> R) -> R {
        // SAFETY: the value is of this type: a varlena, or an enum's OID, which enum_out turns into a C string. What had to
        // be copied is freed again.
        unsafe {
            if self == CategoryType::Enum {
                let text = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_ENUM_OUT), value);
                let result = f(CStr::from_ptr(text).to_bytes());
                pg_sys::pfree(text.cast());
                return result;
            }
            let packed = pg_sys::pg_detoast_datum_packed(value.cast_mut_ptr());
            let (data, len) = (pgrx::vardata_any(packed), pgrx::varsize_any_exhdr(packed));
            let bytes = std::slice::from_raw_parts(data.cast::<u8>(), len);
            let result = f(match self {
                CategoryType::Char { .. } => without_trailing_blanks(bytes),
                CategoryType::Text { .. } | CategoryType::Enum => bytes,
            });
            if !std::ptr::addr_eq(packed, value.cast_mut_ptr::<u8>()) {
                pg_sys::pfree(packed.cast());
            }
            result
        }
    }

    /// Which of the texts is equal to this one although its bytes are others: there may be one if the column's collation
    /// says so.
    #[cold]
    pub fn find_equal(self, text: &[u8], among: &[String]) -> Option<usize> {
        let (CategoryType::Text { collation } | CategoryType::Char { collation }) = self else { return None };
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

fn without_trailing_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}
