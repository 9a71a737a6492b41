//! The members of reading groups, for the view.

use super::directory::Place;
use super::{directory, lives};
use pg::values::output::OutputValue;
use pgrx::pg_sys;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// Columns of [`rows`].
const COLUMNS: usize = 10;

/// A row for each member; of those of others, NULLs, unless the user may see all statistics.
pub fn rows() -> Vec<[OutputValue; COLUMNS]> {
    let Some(directory) = directory() else { return Vec::new() };
    let row = |place: &Place| {
        let pid = place.pid.load(SeqCst);
        if !lives(pid) {
            return None;
        }
        let group = place.group.load(Relaxed);
        let (database, _) = directory.group(group as usize);
        let row = row(place, [pid, group as i32], database);
        // not if the place has changed hands meanwhile
        (place.pid.load(SeqCst) == pid).then_some(row)
    };
    directory.places.iter().filter_map(row).collect()
}

fn row(place: &Place, [pid, group]: [i32; 2], database: u32) -> [OutputValue; COLUMNS] {
    let oid =
        |number: &AtomicU32| Some(pg_sys::Oid::from(number.load(Relaxed))).filter(|oid| *oid != pg_sys::Oid::INVALID);
    let role = oid(&place.role);
    // SAFETY: catalog lookups; those of a role that is no more find no privileges.
    let visible = unsafe {
        let user = pg_sys::GetUserId();
        pg_sys::has_privs_of_role(user, pg_sys::ROLE_PG_READ_ALL_STATS.into())
            || role.is_some_and(|role| pg_sys::has_privs_of_role(user, role))
    };
    let mut row = [const { OutputValue::Null }; COLUMNS];
    (row[0], row[1]) = (pid.into(), Some(pg_sys::Oid::from(database)).into());
    if visible {
        (row[2], row[3], row[4]) = (role.into(), oid(&place.relation).into(), group.into());
        let counters = place.counters.all().map(|counter| counter.load(Relaxed) as i64);
        row[5..].iter_mut().zip(counters).for_each(|(value, counter)| *value = counter.into());
    }
    row
}
