//! What ANALYZE knows of a column: no more than the view pg_stats would show to the current user.

use pgrx::pg_sys;
use std::ffi::c_int;

/// What ANALYZE has found in a column.
pub struct ColumnStatistics {
    /// rows of the table in which it is not NULL
    pub rows: f64,
    /// its distinct values
    pub distinct: f64,
    /// values in ascending order with as many rows between each two, if they are whole numbers
    pub bounds: Vec<f64>,
}

/// What ANALYZE has found in a column of a table; None if it has not been there, or if the user may not see it.
pub fn column_statistics(table: pg_sys::Oid, column: pg_sys::AttrNumber) -> Option<ColumnStatistics> {
    let all_rows = super::relation::estimated_rows(table)?;
    if !may_see(table, column) {
        return None;
    }
    // SAFETY: the tuple is one of pg_statistic, which stays until it is released.
    unsafe {
        let tuple = find(table, column)?;
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_statistic>();
        let distinct = f64::from(form.stadistinct);
        let found = ColumnStatistics {
            rows: all_rows * (1.0 - f64::from(form.stanullfrac)),
            // below 0 it is a share of the rows
            distinct: if distinct < 0.0 { -distinct * all_rows } else { distinct },
            bounds: values(tuple, pg_sys::STATISTIC_KIND_HISTOGRAM, whole_number),
        };
        pg_sys::ReleaseSysCache(tuple);
        // 0 is not known
        (found.distinct > 0.0).then_some(found)
    }
}

/// May the current user read the column in all rows, as pg_stats asks?
fn may_see(table: pg_sys::Oid, column: pg_sys::AttrNumber) -> bool {
    // SAFETY: catalog lookups.
    unsafe {
        let (user, select) = (pg_sys::GetUserId(), pg_sys::ACL_SELECT as pg_sys::AclMode);
        let allowed = pg_sys::AclResult::ACLCHECK_OK;
        let may_read = pg_sys::pg_class_aclcheck(table, user, select) == allowed
            || pg_sys::pg_attribute_aclcheck(table, column, user, select) == allowed;
        let secured = pg_sys::check_enable_rls(table, pg_sys::Oid::INVALID, true);
        may_read && secured != pg_sys::CheckEnableRlsResult::RLS_ENABLED as c_int
    }
}

/// The column's row of pg_statistic, of a table with children that about all of them together.
///
/// # Safety
/// The caller releases it.
unsafe fn find(table: pg_sys::Oid, column: pg_sys::AttrNumber) -> Option<pg_sys::HeapTuple> {
    let cache = pg_sys::SysCacheIdentifier::STATRELATTINH as c_int;
    let of = |inherited: bool| {
        // SAFETY: a catalog lookup; NULL if it does not exist.
        unsafe { pg_sys::SearchSysCache3(cache, table.into(), column.into(), inherited.into()) }
    };
    [true, false].into_iter().map(of).find(|tuple| !tuple.is_null())
}

/// The values of this kind that `read` can read, given the type of all of them.
///
/// # Safety
/// The tuple is one of pg_statistic.
unsafe fn values<T>(
    tuple: pg_sys::HeapTuple,
    kind: u32,
    read: impl Fn(pg_sys::Oid, pg_sys::Datum) -> Option<T>,
) -> Vec<T> {
    let mut slot = pg_sys::AttStatsSlot::default();
    // SAFETY: the caller's promise; the slot has as many values as it says, of the type that it says, and is freed.
    unsafe {
        let values = pg_sys::ATTSTATSSLOT_VALUES as c_int;
        if !pg_sys::get_attstatsslot(&mut slot, tuple, kind as c_int, pg_sys::Oid::INVALID, values) {
            return Vec::new();
        }
        let found = match slot.values.is_null() {
            true => Vec::new(),
            false => std::slice::from_raw_parts(slot.values, slot.nvalues as usize)
                .iter()
                .filter_map(|value| read(slot.valuetype, *value))
                .collect(),
        };
        pg_sys::free_attstatsslot(&mut slot);
        found
    }
}

/// A value of pg_statistic as a number; None if it is not whole by its type.
fn whole_number(type_oid: pg_sys::Oid, value: pg_sys::Datum) -> Option<f64> {
    match type_oid {
        pg_sys::INT2OID => Some(f64::from(value.value() as i16)),
        pg_sys::INT4OID => Some(f64::from(value.value() as i32)),
        pg_sys::INT8OID => Some(value.value() as i64 as f64),
        _ => None,
    }
}
