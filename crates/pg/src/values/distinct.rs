//! The distinct values of a column, recognised quickly while rows go by.
//!
//! Two values are the same if the type's own equality operator says so; values with the same bytes are, without asking.
//! -0.0 is 0.0. A few values are compared one by one, many are looked up by their bytes, and by the type's own hash
//! only where the bytes are new: however many there are, a row costs the same. Those of short values that were looked
//! up last are in a small table of their own.

use super::number::NumberType;
use super::typed::TypedDatum;
use super::varlena::{header, with_content};
use crate::catalog::types::base_type;
use crate::encoding;
use crate::errors::OrRaise;
use crate::interrupts::check_for_interrupts;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use pgrx::prelude::*;
use std::collections::HashMap;
use std::ffi::CStr;
use std::hash::{BuildHasher, Hash};
use std::panic::AssertUnwindSafe;
use tuples::{Recent, ShortBytes};

/// Distinct values of one type, numbered in the order in which they were added.
pub struct Distinct {
    /// as the column is declared, and the base type
    declared: pg_sys::Oid,
    type_oid: pg_sys::Oid,
    collation: pg_sys::Oid,
    by_value: bool,
    len: i16,
    number: Option<NumberType>,
    /// may two values with different bytes be equal?
    has_aliases: bool,
    /// type cache entry with equality, comparison and hash; lives as long as the backend
    cache: *mut pg_sys::TypeCacheEntry,
    values: Vec<Value>,
    /// in use as soon as there are more than [`FEW`] values
    index: Index,
    recent: Recent,
}

enum Value {
    /// by-value types: the datum and its normalised bits
    Plain { datum: pg_sys::Datum, key: u64 },
    /// variable-length types: the value with its length word, in words to be aligned for any type, and its bytes
    Varlena { words: Box<[u64]>, len: usize },
}

/// Where to find a value when there are many. No order ever depends on the hash.
#[derive(Default)]
struct Index {
    keys: HashMap<u64, u32, FixedState>,
    /// by their bytes
    bytes: HashTable<u32>,
    /// by the type's own hash, the last value with it, and for each value the one before it with the same hash
    hashes: HashMap<u32, u32, FixedState>,
    before: Vec<Option<u32>>,
}

/// This many values are looked through faster than they are looked up.
const FEW: usize = 4;

impl Value {
    /// The value for functions of its type.
    fn datum(&self) -> pg_sys::Datum {
        match self {
            Value::Plain { datum, .. } => *datum,
            Value::Varlena { words, .. } => pg_sys::Datum::from(words.as_ptr()),
        }
    }

    /// The value's bytes, if it is of variable length.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Value::Plain { .. } => &[],
            Value::Varlena { words, len } => &bytemuck::cast_slice(words)[header::WORD..header::WORD + len],
        }
    }

    /// The normalised bits, if it is passed by value.
    #[inline]
    fn key(&self) -> Option<u64> {
        match self {
            Value::Plain { key, .. } => Some(*key),
            Value::Varlena { .. } => None,
        }
    }

    /// A value of variable length with these bytes.
    fn varlena(bytes: &[u8]) -> Value {
        let total = header::WORD + bytes.len();
        let mut words = allocation::zeros::<u64>(total.div_ceil(size_of::<u64>())).into_boxed_slice();
        let all: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        all[..header::WORD].copy_from_slice(&header::word(total, false).to_ne_bytes());
        all[header::WORD..total].copy_from_slice(bytes);
        Value::Varlena { words, len: bytes.len() }
    }
}

impl Distinct {
    /// No values yet, of this type, which may be a domain. An ERROR if values of the type cannot be compared.
    pub fn new(declared: pg_sys::Oid, collation: pg_sys::Oid) -> Distinct {
        let type_oid = base_type(declared);
        let is_text = [pg_sys::TEXTOID, pg_sys::VARCHAROID].contains(&type_oid);
        let (mut len, mut by_value) = (0, false);
        // SAFETY: lookups in PostgreSQL's caches; an entry of the type cache is never removed.
        let (cache, is_usable, by_bytes) = unsafe {
            pg_sys::get_typlenbyval(type_oid, &mut len, &mut by_value);
            let wanted =
                pg_sys::TYPECACHE_EQ_OPR_FINFO | pg_sys::TYPECACHE_CMP_PROC_FINFO | pg_sys::TYPECACHE_HASH_PROC_FINFO;
            let cache = pg_sys::lookup_type_cache(type_oid, wanted as i32);
            let functions = [(*cache).eq_opr_finfo, (*cache).cmp_proc_finfo, (*cache).hash_proc_finfo];
            let is_usable = functions.iter().all(|function| function.fn_oid != pg_sys::Oid::INVALID);
            let by_bytes = is_text && collation != pg_sys::Oid::INVALID && is_deterministic(collation);
            (cache, is_usable, by_bytes)
        };
        if !is_usable || !(by_value || len == -1) {
            error!("values of type {} cannot be compared", crate::catalog::types::type_name(type_oid));
        }
        Distinct {
            declared,
            type_oid,
            collation,
            by_value,
            len,
            number: NumberType::from_oid(type_oid),
            has_aliases: !by_bytes,
            cache,
            values: Vec::new(),
            index: Index::default(),
            recent: Recent::default(),
        }
    }

    /// No values yet, of the same type.
    pub fn like(&self) -> Distinct {
        Distinct::new(self.declared, self.collation)
    }

    /// May equal values be different as texts?
    pub fn has_spellings(&self) -> bool {
        self.has_aliases && !self.by_value
    }

    /// How many values there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Which of the values this is.
    #[inline(always)]
    pub fn find(&self, value: TypedDatum<'_>) -> Option<usize> {
        if self.by_value {
            let key = self.key(value.bits());
            if self.values.len() <= FEW {
                self.values.iter().position(|v| v.key() == Some(key))
            } else {
                self.index.keys.get(&key).map(|i| *i as usize)
            }
        } else {
            // SAFETY: the value is of the column's type, which is compared first, and that one of variable length.
            unsafe { with_content(value.of_type(self.declared), |bytes| self.find_bytes(bytes)) }
        }
    }

    /// The same of a value that comes again and again.
    #[inline(always)]
    pub fn find_again(&mut self, value: TypedDatum<'_>) -> Option<usize> {
        if self.by_value {
            return self.find(value);
        }
        let datum = value.of_type(self.declared);
        let find = |bytes: &[u8]| {
            let short = ShortBytes::new(bytes);
            if let Some(number) = short.and_then(|short| self.recent.get(short)) {
                return Some(number as usize);
            }
            let found = self.find_bytes(bytes)?;
            short.into_iter().for_each(|short| self.recent.set(short, found as u32));
            Some(found)
        };
        // SAFETY: the value is of the column's type, which is compared first, and that one of variable length.
        unsafe { with_content(datum, find) }
    }

    fn find_bytes(&self, bytes: &[u8]) -> Option<usize> {
        let same = if self.values.len() <= FEW {
            self.values.iter().position(|v| v.bytes() == bytes)
        } else {
            self.index.bytes.find(hash_of(bytes), |i| self.values[*i as usize].bytes() == bytes).map(|i| *i as usize)
        };
        match same {
            None if self.has_aliases => self.find_equal(&Value::varlena(bytes)),
            found => found,
        }
    }

    /// A value that is equal to this one although its bytes are others.
    #[cold]
    fn find_equal(&self, value: &Value) -> Option<usize> {
        // SAFETY: the type has an equality operator, and both values are of it.
        let is_equal = |i: usize| unsafe {
            let equal = &raw mut (*self.cache).eq_opr_finfo;
            pg_sys::FunctionCall2Coll(equal, self.collation, value.datum(), self.values[i].datum()).value() != 0
        };
        if self.values.len() <= FEW {
            return (0..self.values.len()).find(|i| is_equal(*i));
        }
        let mut next = self.index.hashes.get(&self.hash(value)).copied();
        while let Some(i) = next {
            if is_equal(i as usize) {
                return Some(i as usize);
            }
            next = self.index.before[i as usize];
        }
        None
    }

    /// The type's own hash: equal values have the same.
    fn hash(&self, value: &Value) -> u32 {
        // SAFETY: new() has seen that the type has a hash function, and the value is of it.
        unsafe {
            let hash = &raw mut (*self.cache).hash_proc_finfo;
            pg_sys::FunctionCall1Coll(hash, self.collation, value.datum()).value() as u32
        }
    }

    /// Adds a value, which must not be there yet, and returns its number.
    #[inline]
    pub fn add(&mut self, value: TypedDatum<'_>) -> usize {
        let value = if self.by_value {
            Value::Plain { datum: value.datum(), key: self.key(value.bits()) }
        } else {
            // SAFETY: the value is of the column's type, which is compared first, and that one of variable length.
            unsafe { with_content(value.of_type(self.declared), Value::varlena) }
        };
        allocation::push(&mut self.values, value);
        match self.values.len() - 1 {
            ..FEW => {}
            FEW => (0..=FEW).for_each(|i| self.enter(i)),
            last => self.enter(last),
        }
        self.values.len() - 1
    }

    /// Enters value `i` into the index.
    fn enter(&mut self, i: usize) {
        let number = i as u32;
        if let Some(key) = self.values[i].key() {
            make_room(&mut self.index.keys);
            self.index.keys.insert(key, number);
            return;
        }
        let values = &self.values;
        let hash = |i: &u32| hash_of(values[*i as usize].bytes());
        if self.index.bytes.len() == self.index.bytes.capacity() {
            allocation::grow(2 * self.index.bytes.allocation_size(), || self.index.bytes.try_reserve(1, hash));
        }
        self.index.bytes.insert_unique(hash(&number), number, hash);
        if self.has_aliases {
            make_room(&mut self.index.hashes);
            let before = self.index.hashes.insert(self.hash(&self.values[i]), number);
            allocation::push(&mut self.index.before, before);
        }
    }

    /// Adds the value that `text` stands for, unless it is there; gives its number, and whether it was there. None if
    /// the text stands for no value of the type: the caller then raises an error.
    pub fn add_text(&mut self, text: &str) -> Option<(usize, bool)> {
        let text = std::ffi::CString::new(text).ok()?;
        // SAFETY: the type's input function gets a C string, as it expects.
        let input = || unsafe {
            let (mut input, mut parameter) = (pg_sys::Oid::INVALID, pg_sys::Oid::INVALID);
            pg_sys::getTypeInputInfo(self.type_oid, &mut input, &mut parameter);
            Some(pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, -1))
        };
        // Caught to be raised again, in our own words: the transaction ends either way.
        let datum = PgTryBuilder::new(AssertUnwindSafe(input))
            .catch_when(PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION, |_| None)
            .catch_when(PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, |_| None)
            .execute()?;
        // SAFETY: the input function has just made a value of the type.
        let value = unsafe { TypedDatum::new(datum, self.type_oid) };
        Some(match self.find(value) {
            Some(i) => (i, true),
            None => (self.add(value), false),
        })
    }

    /// Bytes that value `i` takes, if it is of variable length.
    pub fn size(&self, i: usize) -> usize {
        self.values[i].bytes().len()
    }

    /// Value `i` as text that [`Distinct::add_text`] reads back as the same value.
    pub fn text(&self, i: usize) -> String {
        let datum = self.values[i].datum();
        match self.number {
            // the output functions of floats obey extra_float_digits, which may be too few
            Some(NumberType::Float4) => (f32::from_bits(datum.value() as u32) + 0.0).to_string(),
            Some(NumberType::Float8) => (f64::from_bits(datum.value() as u64) + 0.0).to_string(),
            _ => self.output(&self.values[i]),
        }
    }

    /// The value as a number, if the type has numbers.
    pub fn number(&self, value: TypedDatum<'_>) -> Option<f64> {
        self.number.map(|number| number.read(value))
    }

    /// Has the type numbers?
    pub fn are_numbers(&self) -> bool {
        self.number.is_some()
    }

    /// The numbers of all values in the type's order.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<u32> = allocation::collect(0..self.values.len() as u32);
        order.sort_by(|i, j| {
            check_for_interrupts();
            self.compare(*i as usize, *j as usize)
        });
        order
    }

    fn compare(&self, i: usize, j: usize) -> std::cmp::Ordering {
        // SAFETY: new() has seen that the type has a comparison function, and both values are of it.
        let order = unsafe {
            let compare = &raw mut (*self.cache).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(compare, self.collation, self.values[i].datum(), self.values[j].datum())
        };
        (order.value() as i32).cmp(&0)
    }

    fn output(&self, value: &Value) -> String {
        // SAFETY: the type's output function gives a C string, in the server's encoding, for any value of the type.
        unsafe {
            let (mut output, mut varlena) = (pg_sys::Oid::INVALID, false);
            pg_sys::getTypeOutputInfo(self.type_oid, &mut output, &mut varlena);
            let text = pg_sys::OidOutputFunctionCall(output, value.datum());
            let string = encoding::text(CStr::from_ptr(text).to_bytes()).or_raise();
            let string = if self.type_oid == pg_sys::BPCHAROID { string.trim_end_matches(' ') } else { string };
            let string = string.to_owned();
            pg_sys::pfree(text.cast());
            string
        }
    }

    #[inline]
    fn key(&self, bits: u64) -> u64 {
        match self.number {
            Some(NumberType::Float4) => u64::from((f32::from_bits(bits as u32) + 0.0).to_bits()),
            Some(NumberType::Float8) => (f64::from_bits(bits) + 0.0).to_bits(),
            _ => bits & (u64::MAX >> (64 - 8 * self.len as u32)),
        }
    }
}

fn make_room<K: Eq + Hash>(map: &mut HashMap<K, u32, FixedState>) {
    if map.len() == map.capacity() {
        allocation::grow(2 * map.capacity() * size_of::<(K, u32)>(), || map.try_reserve(1));
    }
}

/// The hash by which values are looked up by their bytes.
fn hash_of(bytes: &[u8]) -> u64 {
    FixedState::default().hash_one(bytes)
}

/// Are values equal by this collation only if their bytes are?
fn is_deterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup, which raises an ERROR if there is no such collation.
    unsafe { pg_sys::get_collation_isdeterministic(collation) }
}
