//! Values as numbers of 64 bits: their hashes, which are equal for equal values, and their places in time.

use super::date_part::TimeType;
use super::number::NumberType;
use super::typed::TypedDatum;
use crate::catalog::types::base_type;
use pgrx::prelude::*;

/// The hash of values of one type, by the type's own function: equal values have the same.
pub struct ValueHash {
    declared: pg_sys::Oid,
    collation: pg_sys::Oid,
    /// lives as long as the backend
    cache: *mut pg_sys::TypeCacheEntry,
}

impl ValueHash {
    /// For a column of this type; None if the type has no hash.
    pub fn new(declared: pg_sys::Oid, collation: pg_sys::Oid) -> Option<ValueHash> {
        // SAFETY: a lookup in PostgreSQL's cache, of which no entry is ever removed.
        let (cache, is_usable) = unsafe {
            let cache = pg_sys::lookup_type_cache(base_type(declared), pg_sys::TYPECACHE_HASH_PROC_FINFO as i32);
            (cache, (*cache).hash_proc_finfo.fn_oid != pg_sys::Oid::INVALID)
        };
        is_usable.then_some(ValueHash { declared, collation, cache })
    }

    /// The hash of a value of the type. An ERROR if it is of another type.
    #[inline]
    pub fn hash(&self, value: TypedDatum<'_>) -> u64 {
        let datum = value.of_type(self.declared);
        // SAFETY: new() has seen that the type has a hash function, and the value is of it.
        let hash =
            unsafe { pg_sys::FunctionCall1Coll(&raw mut (*self.cache).hash_proc_finfo, self.collation, datum).value() };
        u64::from(hash as u32)
    }
}

/// A type whose values have an order in time: dates, times and numbers.
#[derive(Clone, Copy)]
pub enum Chronology {
    /// a date or time
    Time(TimeType),
    /// a number
    Number(NumberType),
}

impl Chronology {
    /// Of a column of this type, if it has such an order.
    pub fn new(declared: pg_sys::Oid) -> Option<Chronology> {
        let base = base_type(declared);
        let number = || NumberType::from_oid(base).filter(|number| *number != NumberType::Bool);
        TimeType::from_oid(base).map(Chronology::Time).or_else(|| number().map(Chronology::Number))
    }

    /// A number that is the greater the later the value is.
    #[inline]
    pub fn place(self, value: TypedDatum<'_>) -> u64 {
        match self {
            Chronology::Time(time) => match time.microseconds(value) {
                Ok(microseconds) => microseconds.cast_unsigned() ^ (1 << 63),
                Err(infinity) => {
                    if infinity < 0.0 {
                        0
                    } else {
                        u64::MAX
                    }
                }
            },
            Chronology::Number(number) => {
                // the order of the bits, those of negative numbers turned round; -0.0 is 0.0
                let bits = (number.read(value) + 0.0).to_bits();
                if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
            }
        }
    }
}
