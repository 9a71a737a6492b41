//! Where the chunks of values are: one read of a TOAST table's index for many of them.

use super::guardless::{ScanKeyInit, index_getnext_tid, index_rescan};
use super::value::{Chunk, Value};
use crate::values::tid::page_of;
use pgrx::pg_sys;

/// Index entries of other values that are read past rather than searching the index again.
const MAX_FOREIGN: u32 = 16;

/// Finds the chunks of the values that `sorted` names by their ids in ascending order.
///
/// # Safety
/// The scan is one of their TOAST table's index, with two keys and index tuples; `chunks` has room for all of them. To
/// be called where an ERROR may jump over the frame: nothing here owns anything.
pub(super) unsafe fn find_chunks(
    scan: pg_sys::IndexScanDesc,
    sorted: &[usize],
    values: &mut [Value],
    chunks: &mut Vec<Chunk>,
) {
    // SAFETY: the scan's keys are copied by index_rescan(); an entry of a TOAST table's index is a value's id and a
    // chunk's number, neither NULL, behind its header.
    unsafe {
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        let mut next = 0;
        while next < sorted.len() {
            let id = |i: usize| values[sorted[i]].id;
            search(scan, &mut keys, id(next), id(sorted.len() - 1));
            let mut foreign = 0;
            while foreign <= MAX_FOREIGN {
                let place = index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
                let Some(place) = place.as_ref() else { return };
                let (id, number) = (*scan).xs_itup.add(1).cast::<(u32, i32)>().read_unaligned();
                while next < sorted.len() && values[sorted[next]].id < id {
                    next += 1; // what has not come by now will not come
                }
                let Some(i) = sorted.get(next) else { return };
                let value = &mut values[*i];
                if value.id != id {
                    foreign += 1;
                    if value.id - id > MAX_FOREIGN {
                        break;
                    }
                    continue;
                }
                if value.found == value.chunks || number != value.found as i32 {
                    value.is_strange = true;
                    continue;
                }
                chunks.push(Chunk {
                    place: (page_of(place), place.ip_posid),
                    offset: 0,
                    len: 0,
                    value: *i,
                    number: value.found,
                });
                value.found += 1;
            }
        }
    }
}

/// Lets an index scan begin again, with the entries from one id to another.
///
/// # Safety
/// The scan is one of a TOAST table's index, with two keys. To be called where an ERROR may jump over the frame:
/// nothing here owns anything.
unsafe fn search(scan: pg_sys::IndexScanDesc, keys: &mut [pg_sys::ScanKeyData; 2], first: u32, last: u32) {
    let bounds = [
        (first, pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_OIDGE),
        (last, pg_sys::BTLessEqualStrategyNumber, pg_sys::F_OIDLE),
    ];
    // SAFETY: the index's first column is the id; the keys are copied by index_rescan().
    unsafe {
        for (key, (id, strategy, function)) in keys.iter_mut().zip(bounds) {
            ScanKeyInit(key, 1, strategy as u16, function.into(), id.into());
        }
        index_rescan(scan, keys.as_mut_ptr(), 2, std::ptr::null_mut(), 0);
    }
}
