//! Columns to be written.

use super::roles::StoredRole;
use pg::values::typed::is_same_in_memory;
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;

/// A column to be written, and its value.
pub struct Field {
    pub(super) column: &'static str,
    pub(super) value: DatumWithOid<'static>,
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

    /// A role, as a text: what is compared with the column, and cast where it is written to it.
    pub fn role(column: &'static str, role: &StoredRole) -> Field {
        Field::new(column, Some(role.as_stored().to_owned()))
    }

    /// A field of a type that Rust knows as an OID: regtype.
    pub fn object(column: &'static str, type_oid: pg_sys::Oid, value: pg_sys::Oid) -> Field {
        assert!(is_same_in_memory(type_oid, pg_sys::OIDOID), "a type whose values are OIDs");
        // SAFETY: such types are OIDs.
        Field { column, value: unsafe { DatumWithOid::new(value, type_oid) } }
    }
}

/// A float type of SQL and of Rust.
pub trait Float: Copy {
    /// of an array of them, of one of them
    const OIDS: (pg_sys::Oid, pg_sys::Oid);
    /// in SQL
    const NAME: &'static str;

    /// From as many bytes as it has, little-endian.
    fn from_bytes(bytes: &[u8]) -> Self;

    fn extend(self, bytes: &mut Vec<u8>);

    /// The nearest number; an infinite one if it is too large.
    fn from_number(number: f64) -> Self;

    fn is_finite(self) -> bool;
}

macro_rules! float {
    ($float:ty, $name:literal, $array:ident, $one:ident) => {
        impl Float for $float {
            const OIDS: (pg_sys::Oid, pg_sys::Oid) = (pg_sys::$array, pg_sys::$one);
            const NAME: &'static str = $name;

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("chunks of the size of a number"))
            }

            fn extend(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn from_number(number: f64) -> Self {
                number as Self
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    };
}

float!(f32, "real", FLOAT4ARRAYOID, FLOAT4OID);
float!(f64, "double precision", FLOAT8ARRAYOID, FLOAT8OID);

/// An array of floats that is copied into SQL's form as a whole. Built element by element, it would take four times the
/// memory, and could not be half as long as SQL allows.
#[derive(Debug, Clone)]
pub struct FloatArray<T>(pub Vec<T>);

/// Bytes before the data of an array of one dimension without NULLs (ARR_OVERHEAD_NONULLS).
pub(super) const ARRAY_HEADER: usize = 24;

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
