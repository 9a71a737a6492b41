//! What the catalogs say about types.

use pgrx::pg_sys;
use std::ffi::{CStr, c_int};

/// A type's name as SQL writes it.
pub fn type_name(oid: pg_sys::Oid) -> String {
    // SAFETY: gives a C string for any number, "???" or the like if there is no such type.
    unsafe { CStr::from_ptr(pg_sys::format_type_be(oid)).to_string_lossy().into_owned() }
}

/// A type's name, qualified and quoted, without any modifier: a cast to it keeps values as they are.
pub fn qualified_type_name(oid: pg_sys::Oid) -> String {
    let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
    // SAFETY: gives a C string; "character" would be one of length 1, which the flags prevent.
    unsafe {
        CStr::from_ptr(pg_sys::format_type_extended(oid, -1, flags as pg_sys::bits16)).to_string_lossy().into_owned()
    }
}

/// The type itself, or what a domain is made of.
pub fn base_type(oid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::getBaseType(oid) }
}

/// As [`base_type`], None if the type is no more.
pub fn existing_base_type(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a catalog lookup; NUL if there is no such type.
    let exists = unsafe { pg_sys::get_typtype(oid) } != 0;
    exists.then(|| base_type(oid))
}

/// Is it an enum?
pub fn is_enum(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::type_is_enum(oid) }
}

/// Is it a type of ranges, or of several of them?
pub fn is_range(oid: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups.
    unsafe { pg_sys::type_is_range(oid) || pg_sys::type_is_multirange(oid) }
}

/// Are its values rows? So are those of a domain of rows.
pub fn is_row_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::type_is_rowtype(oid) }
}

/// Bytes of each of its values; None if that differs from value to value.
pub fn type_bytes(oid: pg_sys::Oid) -> Option<usize> {
    // SAFETY: a catalog lookup.
    usize::try_from(unsafe { pg_sys::get_typlen(oid) }).ok()
}

/// Has the type values of variable length, with a header that tells it?
pub fn is_varlena(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    unsafe { pg_sys::get_typlen(oid) == -1 }
}

/// The type with this name in schema corgipile, if there is one.
pub fn own_type(name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: catalog lookups, of names; InvalidOid if there is no such thing.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"corgipile".as_ptr(), true);
        let cache = pg_sys::SysCacheIdentifier::TYPENAMENSP as c_int;
        let column = pg_sys::Anum_pg_type_oid as pg_sys::AttrNumber;
        let (name, schema) = (pg_sys::Datum::from(name.as_ptr()), pg_sys::Datum::from(schema));
        let zero = pg_sys::Datum::from(0usize);
        let oid = pg_sys::GetSysCacheOid(cache, column, name, schema, zero, zero);
        (oid != pg_sys::Oid::INVALID).then_some(oid)
    }
}

/// Is it a type of our own whose values are whatever bytes: a base type of variable length in schema corgipile? Only
/// superusers make base types.
pub fn is_own_type(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup.
    let schema = unsafe { pg_sys::get_namespace_oid(c"corgipile".as_ptr(), true) };
    of_type(oid, |form| is_of_bytes(form) && form.typnamespace == schema).unwrap_or(false)
}

/// Is it a base type of variable length? One of arrays is not one.
fn is_of_bytes(form: &pg_sys::FormData_pg_type) -> bool {
    form.typtype as u8 == pg_sys::TYPTYPE_BASE && form.typlen == -1 && form.typelem == pg_sys::Oid::INVALID
}

/// What `f` makes of a type's entry in the catalog, None if it does not exist.
fn of_type<R>(oid: pg_sys::Oid, f: impl FnOnce(&pg_sys::FormData_pg_type) -> R) -> Option<R> {
    // SAFETY: the tuple is read while it is held.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::TYPEOID as c_int, oid.into());
        if tuple.is_null() {
            return None;
        }
        let result = f(&*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_type>());
        pg_sys::ReleaseSysCache(tuple);
        Some(result)
    }
}

/// The name of a base type of variable length that is one of an extension's own; None of any other type.
///
/// Who may create a type can give it any name, and the owner of an extension can add his types to it. But base types
/// are made by superusers only, so that an enum or a row type with such a name is not one.
pub fn base_type_of_extension(oid: pg_sys::Oid, extension: &CStr) -> Option<String> {
    if oid.to_u32() < pg_sys::FirstNormalObjectId {
        return None;
    }
    let name = of_type(oid, |form| {
        // SAFETY: a name ends in a zero.
        is_of_bytes(form).then(|| unsafe { CStr::from_ptr(form.typname.data.as_ptr()) }.to_string_lossy().into_owned())
    })?;
    // SAFETY: catalog lookups; the extension's name is a palloced C string, or NULL.
    unsafe {
        let owner = pg_sys::getExtensionOfObject(pg_sys::TypeRelationId, oid);
        let owner = pg_sys::get_extension_name(owner);
        name.filter(|_| !owner.is_null() && CStr::from_ptr(owner) == extension)
    }
}
