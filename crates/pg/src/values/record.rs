//! Values of composite types, whose columns are found by their names at run time.

use super::number::NumberType;
use super::typed::TypedDatum;
use super::varlena::{header, with_content};
use crate::call::function::Call;
use crate::call::spread_row::{ROW, SpreadRow};
use crate::catalog::types::{base_type, base_type_of_extension, is_enum};
use crate::compat::attributes;
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;

/// A row as a value: of a table, of a subquery, of a composite type.
pub struct Record<'a>(Form<'a>);

enum Form<'a> {
    Composite(pg_sys::HeapTupleHeader, Rc<RowType>, PhantomData<TypedDatum<'a>>),
    /// the columns are arguments of a call
    Spread(&'a SpreadRow, Call<'a>),
}

/// One column of a row type.
#[derive(Clone, PartialEq)]
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
    row_type: Option<Rc<RowType>>,
}

/// The columns of one row, or the arguments of a call.
#[derive(Clone, Copy)]
pub enum RecordValues<'a> {
    /// of a row that was taken apart
    Row(&'a RecordRoom),
    /// attribute 0 is this argument
    Arguments(Call<'a>, usize),
}

impl<'a> Record<'a> {
    /// The row that argument 1 of a call is; None if it is NULL. An ERROR if its type is not one of rows.
    #[inline]
    pub fn of_call(call: Call<'a>) -> Option<Record<'a>> {
        match call.spread_row() {
            Some(row) => Some(Record(Form::Spread(row, call))),
            None => call.argument(ROW).map(Record::new),
        }
    }

    /// The row that a value is. An ERROR if its type is not one of rows.
    pub fn new(value: TypedDatum<'a>) -> Record<'a> {
        check_row_type(value.type_oid());
        // SAFETY: the value is composite, by its type; one that is compressed or expanded is copied into the current
        // memory context, which is that of the call. A composite value begins with a header that has its type.
        unsafe {
            let mut at: *mut pg_sys::varlena = value.datum().cast_mut_ptr();
            if !header::is_plain(*at.cast::<u8>()) {
                at = pg_sys::pg_detoast_datum(at);
            }
            let row: pg_sys::HeapTupleHeader = at.cast();
            let fields = &(*row).t_choice.t_datum;
            Record(Form::Composite(row, RowType::of(fields.datum_typeid, fields.datum_typmod), PhantomData))
        }
    }

    /// A number for the row's type as it is defined now: it never comes again for another.
    #[inline]
    pub fn type_identifier(&self) -> u64 {
        match &self.0 {
            Form::Composite(_, row_type, _) => row_type.identifier,
            Form::Spread(row, _) => row.identifier,
        }
    }

    /// The columns that the row's type has now.
    pub fn columns(&self) -> Vec<RecordColumn> {
        let row_type = match &self.0 {
            Form::Composite(_, row_type, _) => row_type,
            Form::Spread(row, _) => return row.columns.clone(),
        };
        row_type.with_descriptor(|descriptor| {
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
        match &self.0 {
            Form::Spread(row, call) => RecordValues::Arguments(*call, row.first),
            Form::Composite(row, row_type, _) => {
                // Anyone may have changed the type since, while a plan was made: the descriptor is that of now.
                let row_type = RowType::of(row_type.type_oid, row_type.modifier);
                let len = row_type.types.len();
                room.values.resize(len, pg_sys::Datum::null());
                room.nulls.resize(len, true);
                row_type.with_descriptor(|descriptor| {
                    let mut tuple = pg_sys::HeapTupleData { t_data: *row, ..Default::default() };
                    let (values, nulls) = (room.values.as_mut_ptr(), room.nulls.as_mut_ptr());
                    // SAFETY: the descriptor is that of the row, which has a value for each attribute or is older than
                    // it; there is room for all of them.
                    unsafe { pg_sys::heap_deform_tuple(&mut tuple, descriptor, values, nulls) };
                });
                room.row_type = Some(row_type);
                RecordValues::Row(room)
            }
        }
    }
}

/// What is known of a row type as long as it stays as it is.
struct RowType {
    type_oid: pg_sys::Oid,
    modifier: i32,
    /// of a type with a name: its entry in PostgreSQL's cache of types, which stays for the session
    entry: Option<NonNull<pg_sys::TypeCacheEntry>>,
    identifier: u64,
    types: Vec<pg_sys::Oid>,
}

impl RowType {
    /// The type with this OID and modifier, as it is now. The last one is remembered.
    #[inline]
    fn of(type_oid: pg_sys::Oid, modifier: i32) -> Rc<RowType> {
        thread_local! {
            static LAST: RefCell<Option<Rc<RowType>>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| match last {
            Some(known) if known.is_now(type_oid, modifier) => known.clone(),
            _ => last.insert(Rc::new(RowType::look_up(type_oid, modifier))).clone(),
        })
    }

    /// Is it this type, as it is now? A record without a name stays what it is.
    #[inline]
    fn is_now(&self, type_oid: pg_sys::Oid, modifier: i32) -> bool {
        // SAFETY: entries of the cache stay; what is not as it was has another number, or for now none.
        let is_unchanged =
            |entry: NonNull<pg_sys::TypeCacheEntry>| unsafe { (*entry.as_ptr()).tupDesc_identifier == self.identifier };
        (self.type_oid, self.modifier) == (type_oid, modifier) && self.entry.is_none_or(is_unchanged)
    }

    #[cold]
    fn look_up(type_oid: pg_sys::Oid, modifier: i32) -> RowType {
        // SAFETY: lookups in the cache of types, which raise an error where there is no such row type.
        unsafe {
            let identifier = pg_sys::assign_record_type_identifier(type_oid, modifier);
            let entry = || pg_sys::lookup_type_cache(type_oid, pg_sys::TYPECACHE_TUPDESC as c_int);
            let entry = if type_oid == pg_sys::RECORDOID { None } else { NonNull::new(entry()) };
            let mut row_type = RowType { type_oid, modifier, entry, identifier, types: Vec::new() };
            row_type.types = row_type.with_descriptor(|descriptor| {
                attributes(descriptor).iter().map(|attribute| attribute.atttypid).collect()
            });
            row_type
        }
    }

    fn with_descriptor<R>(&self, f: impl FnOnce(pg_sys::TupleDesc) -> R) -> R {
        // SAFETY: the reference is given back; an ERROR in between gives it back with the resource owner.
        unsafe {
            let descriptor = pg_sys::lookup_rowtype_tupdesc(self.type_oid, self.modifier);
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
        match self {
            RecordValues::Arguments(call, first) => call.argument(first + attribute),
            RecordValues::Row(RecordRoom { values, nulls, row_type }) => {
                let types = &row_type.as_ref()?.types;
                // SAFETY: heap_deform_tuple() has given a value of the attribute's type, in a row that is borrowed as
                // long.
                (!nulls[attribute]).then(|| unsafe { TypedDatum::new(values[attribute], types[attribute]) })
            }
        }
    }

    /// Copies numbers to `out`, one of each column. False if one of them is NULL, or is not finite as a `real`: then
    /// [`RecordValues::get`] and [`NumberType::read`] say which.
    #[inline]
    pub fn copy_numbers(self, columns: &NumberColumns, out: &mut [f32]) -> bool {
        match self {
            RecordValues::Arguments(call, first) => {
                let slots = &call.slots()[first..];
                columns.copy(out, |attribute| (slots[attribute].value, slots[attribute].isnull))
            }
            RecordValues::Row(room) => columns.copy(out, |attribute| (room.values[attribute], room.nulls[attribute])),
        }
    }
}

/// Columns of numbers: which attributes they are, and their types.
pub struct NumberColumns {
    columns: Vec<(usize, NumberType)>,
    /// the type of all of them, if they have the same
    all: Option<NumberType>,
    /// are all of them passed by value?
    are_bits: bool,
}

impl NumberColumns {
    /// These columns.
    pub fn new(columns: Vec<(usize, NumberType)>) -> NumberColumns {
        let first = columns.first().map(|(_, number)| *number);
        let all = first.filter(|first| columns.iter().all(|(_, number)| number == first));
        let are_bits = columns.iter().all(|(_, number)| number.width().is_some());
        NumberColumns { columns, all, are_bits }
    }

    /// The columns one by one.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (usize, NumberType)> + '_ {
        self.columns.iter().copied()
    }

    #[inline(always)]
    fn copy(&self, out: &mut [f32], value: impl Fn(usize) -> (pg_sys::Datum, bool)) -> bool {
        match self.all {
            _ if !self.are_bits => false,
            Some(NumberType::Float4) => self.copy_by(out, value, |_, bits| f32::from_bits(bits as u32)),
            Some(NumberType::Float8) => self.copy_by(out, value, |_, bits| f64::from_bits(bits) as f32),
            _ => self.copy_by(out, value, |number, bits| number.read_bits(bits) as f32),
        }
    }

    #[inline(always)]
    fn copy_by(
        &self,
        out: &mut [f32],
        value: impl Fn(usize) -> (pg_sys::Datum, bool),
        read: impl Fn(NumberType, u64) -> f32,
    ) -> bool {
        let mut is_whole = true;
        for ((attribute, number), place) in self.columns.iter().zip(out) {
            let (datum, is_null) = value(*attribute);
            *place = read(*number, datum.value() as u64);
            is_whole &= !is_null & place.is_finite();
        }
        is_whole
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
