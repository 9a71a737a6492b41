//! The distinct values of a column, recognised quickly while rows go by.
//!
//! Two values are the same if the type's own equality operator says so; values with the same bytes are, without asking.
//! -0.0 is 0.0.

use super::number::NumberType;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Distinct values of one type, numbered in the order in which they were added.
pub struct Distinct {
    type_oid: pg_sys::Oid,
    collation: pg_sys::Oid,
    by_value: bool,
    len: i16,
    number: Option<NumberType>,
    /// type cache entry with equality and comparison; lives as long as the backend
    cache: *mut pg_sys::TypeCacheEntry,
    /// where copies of by-reference values live
    memory: pg_sys::MemoryContext,
    values: Vec<Value>,
}

struct Value {
    datum: pg_sys::Datum,
    /// by-value types: the normalised bits
    key: u64,
    /// by-reference types: the content
    bytes: &'static [u8],
}

impl Distinct {
    /// No values yet. Copies will live in the current memory context, which must outlive the result.
    pub fn new(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> Distinct {
        // SAFETY: lookups in PostgreSQL's caches.
        unsafe {
            let base = pg_sys::getBaseType(type_oid);
            let (mut len, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(base, &mut len, &mut by_value);
            let wanted = pg_sys::TYPECACHE_EQ_OPR_FINFO | pg_sys::TYPECACHE_CMP_PROC_FINFO;
            Distinct {
                type_oid: base,
                collation,
                by_value,
                len,
                number: NumberType::of(base),
                cache: pg_sys::lookup_type_cache(base, wanted as i32),
                memory: pg_sys::CurrentMemoryContext,
                values: Vec::new(),
            }
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Which of the values this is.
    #[inline(always)]
    pub fn find(&self, datum: pg_sys::Datum) -> Option<usize> {
        if self.by_value {
            let key = self.key(datum);
            self.values.iter().position(|v| v.key == key)
        } else {
            self.find_by_reference(datum)
        }
    }

    fn find_by_reference(&self, datum: pg_sys::Datum) -> Option<usize> {
        // SAFETY: the datum is a varlena of our type; the packed copy, if one was made, is freed again.
        unsafe {
            let packed = pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr());
            let bytes = content(packed);
            let found = self.values.iter().position(|v| v.bytes == bytes).or_else(|| {
                let equal = &raw mut (*self.cache).eq_opr_finfo;
                self.values.iter().position(|v| {
                    pg_sys::FunctionCall2Coll(equal, self.collation, pg_sys::Datum::from(packed), v.datum).value() != 0
                })
            });
            if !std::ptr::addr_eq(packed, datum.cast_mut_ptr::<u8>()) {
                pg_sys::pfree(packed.cast());
            }
            found
        }
    }

    /// Adds a value, which must not be there yet, and returns its number.
    pub fn add(&mut self, datum: pg_sys::Datum) -> usize {
        // SAFETY: the memory context was made to outlive self; a by-reference value is a varlena and is copied there.
        unsafe {
            if self.by_value {
                self.values.push(Value { datum, key: self.key(datum), bytes: &[] });
            } else {
                let caller = pg_sys::MemoryContextSwitchTo(self.memory);
                let copy = pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr());
                pg_sys::MemoryContextSwitchTo(caller);
                self.values.push(Value { datum: pg_sys::Datum::from(copy), key: 0, bytes: content(copy) });
            }
        }
        self.values.len() - 1
    }

    /// Adds the value that `text` stands for; the type's own error if it is none.
    pub fn add_text(&mut self, text: &str) -> usize {
        let text = std::ffi::CString::new(text).unwrap_or_default();
        // SAFETY: the type's input function gets a C string, as it expects.
        let datum = unsafe {
            let (mut input, mut parameter) = (pg_sys::Oid::INVALID, pg_sys::Oid::INVALID);
            pg_sys::getTypeInputInfo(self.type_oid, &mut input, &mut parameter);
            pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1)
        };
        self.add(datum)
    }

    /// Bytes that value `i` takes, if it is of variable length.
    pub fn size(&self, i: usize) -> usize {
        self.values[i].bytes.len()
    }

    /// Value `i` as text that [`Distinct::add_text`] reads back as the same value.
    pub fn text(&self, i: usize) -> String {
        let datum = self.values[i].datum;
        match self.number {
            // the output functions of floats obey extra_float_digits, which may be too few
            Some(NumberType::Float4) => (f32::from_bits(datum.value() as u32) + 0.0).to_string(),
            Some(NumberType::Float8) => (f64::from_bits(datum.value() as u64) + 0.0).to_string(),
            _ => self.output(datum),
        }
    }

    /// The value as a number, if the type has numbers.
    pub fn number(&self, datum: pg_sys::Datum) -> Option<f64> {
        self.number.map(|number| number.read(datum))
    }

    /// Whether value `i` comes before value `j` in the type's order.
    pub fn is_less(&self, i: usize, j: usize) -> bool {
        // SAFETY: the cache entry has the comparison function: every type that is accepted as a label is ordered.
        let order = unsafe {
            let compare = &raw mut (*self.cache).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(compare, self.collation, self.values[i].datum, self.values[j].datum)
        };
        (order.value() as i32) < 0
    }

    fn output(&self, datum: pg_sys::Datum) -> String {
        // SAFETY: the type's output function gives a C string, in the server's encoding.
        unsafe {
            let (mut output, mut varlena) = (pg_sys::Oid::INVALID, false);
            pg_sys::getTypeOutputInfo(self.type_oid, &mut output, &mut varlena);
            let text = pg_sys::OidOutputFunctionCall(output, datum);
            let Ok(string) = CStr::from_ptr(text).to_str() else {
                ereport!(
                    ERROR,
                    PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    "a label is not text in UTF-8",
                    "Labels beyond ASCII need a database with the encoding UTF8."
                );
            };
            let string = if self.type_oid == pg_sys::BPCHAROID { string.trim_end_matches(' ') } else { string };
            let string = string.to_owned();
            pg_sys::pfree(text.cast());
            string
        }
    }

    #[inline]
    fn key(&self, datum: pg_sys::Datum) -> u64 {
        match self.number {
            Some(NumberType::Float4) => (f32::from_bits(datum.value() as u32) + 0.0).to_bits() as u64,
            Some(NumberType::Float8) => (f64::from_bits(datum.value() as u64) + 0.0).to_bits(),
            _ => datum.value() as u64 & (u64::MAX >> (64 - 8 * self.len as u32)),
        }
    }
}

/// VARDATA_ANY and VARSIZE_ANY_EXHDR.
unsafe fn content(varlena: *mut pg_sys::varlena) -> &'static [u8] {
    // SAFETY: neither compressed nor external; the caller lets go of the slice before the varlena is freed.
    unsafe {
        std::slice::from_raw_parts(
            pgrx::vardata_any(varlena.cast_const()).cast(),
            pgrx::varsize_any_exhdr(varlena.cast_const()),
        )
    }
}
