//! The distinct values of a column, recognised quickly while rows go by.
//!
//! Two values are the same if the type's own equality operator says so; values with the same bytes are, without asking.
//! -0.0 is 0.0. A few values are compared one by one, many are looked up by their bytes, and by the type's own hash only
//! where the bytes are new: however many there are, a row costs the same.

use super::fold::FoldMap;
use super::number::NumberType;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;

/// Distinct values of one type, numbered in the order in which they were added.
pub struct Distinct {
    type_oid: pg_sys::Oid,
    collation: pg_sys::Oid,
    by_value: bool,
    len: i16,
    number: Option<NumberType>,
    /// may two values with different bytes be equal?
    has_aliases: bool,
    /// type cache entry with equality, comparison and hash; lives as long as the backend
    cache: *mut pg_sys::TypeCacheEntry,
    /// where copies of by-reference values live
    memory: pg_sys::MemoryContext,
    values: Vec<Value>,
    /// in use as soon as there are more than [`FEW`] values
    index: Index,
}

struct Value {
    datum: pg_sys::Datum,
    /// by-value types: the normalised bits
    key: u64,
    /// by-reference types: the content
    bytes: &'static [u8],
}

/// Where to find a value when there are many.
#[derive(Default)]
struct Index {
    keys: FoldMap<u64, u32>,
    bytes: FoldMap<&'static [u8], u32>,
    /// by the type's own hash, the last value with it, and for each value the one before it with the same hash
    hashes: FoldMap<u32, u32>,
    before: Vec<Option<u32>>,
}

/// So many values are looked through faster than they are looked up.
const FEW: usize = 4;

impl Distinct {
    /// No values yet. Copies will live in the current memory context, which must outlive the result.
    pub fn new(type_oid: pg_sys::Oid, collation: pg_sys::Oid) -> Distinct {
        // SAFETY: lookups in PostgreSQL's caches.
        unsafe {
            let base = pg_sys::getBaseType(type_oid);
            let (mut len, mut by_value) = (0, false);
            pg_sys::get_typlenbyval(base, &mut len, &mut by_value);
            let wanted =
                pg_sys::TYPECACHE_EQ_OPR_FINFO | pg_sys::TYPECACHE_CMP_PROC_FINFO | pg_sys::TYPECACHE_HASH_PROC_FINFO;
            let is_text = [pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&base);
            let by_bytes = is_text && collation != pg_sys::Oid::INVALID && is_deterministic(collation);
            Distinct {
                type_oid: base,
                collation,
                by_value,
                len,
                number: NumberType::of(base),
                has_aliases: !by_bytes,
                cache: pg_sys::lookup_type_cache(base, wanted as i32),
                memory: pg_sys::CurrentMemoryContext,
                values: Vec::new(),
                index: Index::default(),
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
            if self.values.len() <= FEW {
                self.values.iter().position(|v| v.key == key)
            } else {
                self.index.keys.get(&key).map(|i| *i as usize)
            }
        } else {
            self.find_by_reference(datum)
        }
    }

    fn find_by_reference(&self, datum: pg_sys::Datum) -> Option<usize> {
        // SAFETY: the datum is a varlena of our type; the packed copy, if one was made, is freed again.
        unsafe {
            let packed = pg_sys::pg_detoast_datum_packed(datum.cast_mut_ptr());
            let bytes = content(packed);
            let same = if self.values.len() <= FEW {
                self.values.iter().position(|v| v.bytes == bytes)
            } else {
                self.index.bytes.get(bytes).map(|i| *i as usize)
            };
            let found = same.or_else(|| self.find_equal(pg_sys::Datum::from(packed)));
            if !std::ptr::addr_eq(packed, datum.cast_mut_ptr::<u8>()) {
                pg_sys::pfree(packed.cast());
            }
            found
        }
    }

    /// A value that is equal to this one although its bytes are others.
    #[cold]
    unsafe fn find_equal(&self, datum: pg_sys::Datum) -> Option<usize> {
        if !self.has_aliases {
            return None;
        }
        // SAFETY: the type has an equality operator and a hash function that go together; the datum is of it.
        let is_equal = |i: usize| unsafe {
            let equal = &raw mut (*self.cache).eq_opr_finfo;
            pg_sys::FunctionCall2Coll(equal, self.collation, datum, self.values[i].datum).value() != 0
        };
        if self.values.len() <= FEW {
            return (0..self.values.len()).find(|i| is_equal(*i));
        }
        let mut next = self.index.hashes.get(&self.hash(datum)).copied();
        while let Some(i) = next {
            if is_equal(i as usize) {
                return Some(i as usize);
            }
            next = self.index.before[i as usize];
        }
        None
    }

    /// The type's own hash: equal values have the same.
    fn hash(&self, datum: pg_sys::Datum) -> u32 {
        // SAFETY: the cache entry has the hash function: every type that is accepted has one.
        unsafe {
            let hash = &raw mut (*self.cache).hash_proc_finfo;
            pg_sys::FunctionCall1Coll(hash, self.collation, datum).value() as u32
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
        match self.values.len() - 1 {
            ..FEW => {}
            FEW => (0..=FEW).for_each(|i| self.enter(i)),
            last => self.enter(last),
        }
        self.values.len() - 1
    }

    /// Enters value `i` into the index.
    fn enter(&mut self, i: usize) {
        let Value { datum, key, bytes } = self.values[i];
        let number = i as u32;
        if self.by_value {
            self.index.keys.insert(key, number);
            return;
        }
        self.index.bytes.insert(bytes, number);
        if self.has_aliases {
            let before = self.index.hashes.insert(self.hash(datum), number);
            self.index.before.push(before);
        }
    }

    /// Adds the value that `text` stands for, unless it is there; gives its number, and whether it was there. None if the
    /// text stands for no value of the type: the caller then raises an error.
    pub fn add_text(&mut self, text: &str) -> Option<(usize, bool)> {
        let text = std::ffi::CString::new(text).ok()?;
        // SAFETY: the type's input function gets a C string, as it expects.
        let input = || unsafe {
            let (mut input, mut parameter) = (pg_sys::Oid::INVALID, pg_sys::Oid::INVALID);
            pg_sys::getTypeInputInfo(self.type_oid, &mut input, &mut parameter);
            Some(pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1))
        };
        // Caught to be raised anew, in our own words: the transaction ends either way.
        let datum = PgTryBuilder::new(AssertUnwindSafe(input))
            .catch_when(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, |_| None)
            .catch_when(PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, |_| None)
            .execute()?;
        Some(match self.find(datum) {
            Some(i) => (i, true),
            None => (self.add(datum), false),
        })
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

    /// The numbers of all values in the type's order.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.values.len() as u32).collect();
        order.sort_by(|i, j| {
            crate::pg::check_for_interrupts();
            self.compare(*i as usize, *j as usize)
        });
        order
    }

    fn compare(&self, i: usize, j: usize) -> std::cmp::Ordering {
        // SAFETY: the cache entry has the comparison function: every type that is accepted is ordered.
        let order = unsafe {
            let compare = &raw mut (*self.cache).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(compare, self.collation, self.values[i].datum, self.values[j].datum)
        };
        (order.value() as i32).cmp(&0)
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
                    "a label or category is not text in UTF-8",
                    "Labels and categories beyond ASCII need a database with the encoding UTF8."
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

/// Are values equal by this collation only if their bytes are?
fn is_deterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup of a collation that a column has.
    unsafe { pg_sys::get_collation_isdeterministic(collation) }
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
