//! Headers of tuples as no one would write them, against HeapTupleSatisfiesVisibility() itself.
//!
//! Pages are forged in memory, with transactions of every fate in their headers: committed, rolled back, in progress,
//! this one and its subtransactions, numbers of row locks. Snapshots are forged, too, so that what has committed may
//! be after them.

use super::visibility::{Page, Visibility};
use crate::tuples::page::Line;
use pgrx::pg_sys::{MultiXactStatus, TransactionId};
use pgrx::prelude::*;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const PAGES: usize = 4000;
const PAGE: usize = pg_sys::BLCKSZ as usize;
const PAGE_HEADER: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
/// Bytes of a forged tuple: a header and one aligned value.
const TUPLE: usize = 32;
/// More tuples than a forged page has.
const MOST_TUPLES: usize = 256;
/// How many pairs of commands the table of combined command ids has.
const COMBINED: u32 = 3;

/// What a forged header is made of.
struct Forge {
    random: SplitMix64,
    transactions: Vec<TransactionId>,
    row_locks: Vec<RowLocks>,
    /// PostgreSQL has assertions: it would not survive a row that is changed by no one, nor one that was both moved, as
    /// before version 9.0, and changed by this transaction
    is_asserting: bool,
}

/// The number of row locks of several transactions.
#[derive(Clone, Copy)]
struct RowLocks {
    number: TransactionId,
    /// one of them has changed the row
    has_change: bool,
}

#[repr(align(8))]
#[derive(Clone)]
struct ForgedPage([u8; PAGE]);

impl Forge {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn transaction(&mut self) -> TransactionId {
        let place = self.below(self.transactions.len());
        self.transactions[place]
    }

    /// The bits that tell of visibility. Half of the time those of most rows of most tables.
    fn bits(&mut self) -> u32 {
        use pg_sys::{HEAP_COMBOCID, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
        use pg_sys::{HEAP_XMAX_EXCL_LOCK, HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY};
        use pg_sys::{HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID};
        if self.one_in(2) {
            return HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;
        }
        let mut bits = 0;
        for (bit, rarity) in [
            (HEAP_XMIN_COMMITTED, 2),
            (HEAP_XMIN_INVALID, 4),
            (HEAP_XMAX_COMMITTED, 4),
            (HEAP_XMAX_INVALID, 2),
            (HEAP_XMAX_IS_MULTI, 4),
            (HEAP_XMAX_LOCK_ONLY, 4),
            (HEAP_XMAX_KEYSHR_LOCK, 4),
            (HEAP_XMAX_EXCL_LOCK, 4),
            (HEAP_COMBOCID, 4),
            (pg_sys::HEAP_MOVED_OFF, 16),
            (pg_sys::HEAP_MOVED_IN, 16),
        ] {
            bits |= if self.one_in(rarity) { bit } else { 0 };
        }
        bits
    }

    /// A page with tuples of a few inserters, as a page has, and line pointers of all kinds.
    fn page(&mut self) -> ForgedPage {
        let mut page = ForgedPage([0; PAGE]);
        let tuples = 1 + self.below(200);
        let inserters = [self.transaction(), self.transaction(), self.transaction()];
        let lower = (PAGE_HEADER + 4 * tuples) as u16;
        let place = std::mem::offset_of!(pg_sys::PageHeaderData, pd_lower);
        page.0[place..place + 2].copy_from_slice(&lower.to_ne_bytes());
        for number in 0..tuples {
            let offset = PAGE - TUPLE * (number + 1);
            let kind = if self.one_in(8) { self.below(4) as u32 } else { pg_sys::LP_NORMAL };
            let line = offset as u32 | kind << 15 | (TUPLE as u32) << 17;
            page.0[PAGE_HEADER + 4 * number..][..4].copy_from_slice(&line.to_ne_bytes());
            let inserter = if self.one_in(8) { self.transaction() } else { inserters[self.below(3)] };
            let header = self.header(inserter);
            // SAFETY: the tuple lies within the page, and is aligned as that is.
            unsafe { page.0.as_mut_ptr().add(offset).cast::<pg_sys::HeapTupleHeaderData>().write(header) };
        }
        page
    }

    fn header(&mut self, inserter: TransactionId) -> pg_sys::HeapTupleHeaderData {
        let mut bits = self.bits();
        if self.is_asserting {
            bits &= !pg_sys::HEAP_MOVED;
        }
        if bits & pg_sys::HEAP_MOVED != 0 {
            // what moved it is no place in the table of combined command ids
            bits &= !pg_sys::HEAP_COMBOCID;
        }
        let deleter = match bits & pg_sys::HEAP_XMAX_IS_MULTI {
            0 if self.one_in(3) => pg_sys::InvalidTransactionId,
            0 => self.transaction(),
            _ => {
                let place = self.below(self.row_locks.len());
                let RowLocks { number, has_change } = self.row_locks[place];
                if self.is_asserting && !has_change {
                    bits |= pg_sys::HEAP_XMAX_LOCK_ONLY;
                }
                number
            }
        };
        let mut header = pg_sys::HeapTupleHeaderData { t_infomask: bits as u16, ..Default::default() };
        header.t_choice.t_heap.t_xmin = inserter;
        header.t_choice.t_heap.t_xmax = deleter;
        header.t_choice.t_heap.t_field3 = match bits & pg_sys::HEAP_MOVED {
            0 if bits & pg_sys::HEAP_COMBOCID != 0 => {
                pg_sys::HeapTupleFields__bindgen_ty_1 { t_cid: self.below(COMBINED as usize) as u32 }
            }
            0 => pg_sys::HeapTupleFields__bindgen_ty_1 { t_cid: self.below(8) as u32 },
            _ => pg_sys::HeapTupleFields__bindgen_ty_1 { t_xvac: self.transaction() },
        };
        header
    }

    /// A snapshot that takes some of the transactions as running, and all after one of them as later.
    fn snapshot(&mut self, real: &pg_sys::SnapshotData, running: &mut Vec<TransactionId>) -> pg_sys::SnapshotData {
        let end = if self.one_in(2) { real.xmax } else { self.transaction().max(real.xmin) };
        running.clear();
        for place in 0..self.transactions.len() {
            let transaction = self.transactions[place];
            if u32::from(transaction) >= 3 && transaction < end && self.one_in(4) {
                running.push(transaction);
            }
        }
        pg_sys::SnapshotData {
            xmin: running.iter().copied().min().unwrap_or(end),
            xmax: end,
            xip: running.as_mut_ptr(),
            xcnt: running.len() as u32,
            subxcnt: 0,
            suboverflowed: false,
            curcid: self.below(8) as u32,
            ..*real
        }
    }
}

/// Transactions of every fate. This one has inserted rows, and deleted them in later commands.
fn transactions(buffer_table: &str) -> Vec<TransactionId> {
    let sql = format!(
        "CREATE TEMPORARY TABLE {buffer_table} (a int);
         INSERT INTO {buffer_table} VALUES (1); INSERT INTO {buffer_table} VALUES (2);
         INSERT INTO {buffer_table} VALUES (3);
         DELETE FROM {buffer_table} WHERE a = 1; DELETE FROM {buffer_table} WHERE a = 2;
         DELETE FROM {buffer_table} WHERE a = 3"
    );
    Spi::run(&sql).expect("rows");
    // SAFETY: subtransactions around nothing that could fail, in a function that a statement called.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        let subtransaction = |end: unsafe fn()| {
            pg_sys::BeginInternalSubTransaction(std::ptr::null());
            let id = pg_sys::GetCurrentTransactionId();
            end();
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
            id
        };
        let committed = subtransaction(pg_sys::ReleaseCurrentSubTransaction);
        let rolled_back = subtransaction(pg_sys::RollbackAndReleaseCurrentSubTransaction);
        let own = pg_sys::GetTopTransactionId();
        let next = pg_sys::ReadNextTransactionId();
        let earlier = (1..20).map(|ago| TransactionId::from(u32::from(own) - ago));
        let later = [next, TransactionId::from(u32::from(next) + 1)];
        let special = [1, 2].map(TransactionId::from);
        [own, own, committed, committed, rolled_back, rolled_back]
            .into_iter()
            .chain(earlier)
            .chain(later)
            .chain(special)
            .collect()
    }
}

/// Row locks of two of the transactions, at most one of which changes the row.
fn row_locks(transactions: &[TransactionId]) -> Vec<RowLocks> {
    let lockers = || transactions.iter().copied().filter(|id| u32::from(*id) >= 3);
    let mut numbers = Vec::new();
    for (first, second) in lockers().zip(lockers().skip(3)).take(12) {
        for status in MultiXactStatus::MultiXactStatusForKeyShare..=MultiXactStatus::MultiXactStatusUpdate {
            // SAFETY: within a transaction.
            let number = unsafe {
                pg_sys::MultiXactIdSetOldestMember();
                pg_sys::MultiXactIdCreate(first, MultiXactStatus::MultiXactStatusForKeyShare, second, status)
            };
            let has_change = status >= MultiXactStatus::MultiXactStatusNoKeyUpdate;
            numbers.push(RowLocks { number, has_change });
        }
    }
    numbers
}

/// Which of the transactions have committed. Some are other sessions', which may do so at any moment.
fn committed(transactions: &[TransactionId]) -> Vec<bool> {
    let transactions = transactions.iter().filter(|id| u32::from(**id) >= 3);
    // SAFETY: their numbers are old enough, or barely later than the latest.
    transactions.map(|id| unsafe { pg_sys::TransactionIdDidCommit(*id) }).collect()
}

/// What PostgreSQL says of the tuples of a page, each by itself; sets hint bits there.
///
/// # Safety
/// The buffer is pinned.
unsafe fn expected(
    page: &mut ForgedPage,
    snapshot: pg_sys::Snapshot,
    buffer: pg_sys::Buffer,
) -> Vec<pg_sys::OffsetNumber> {
    let start = page.0.as_mut_ptr();
    // SAFETY: a page like those in buffers, which no one else has.
    let (lines, sound) = unsafe { Line::all(start) };
    assert!(sound);
    let sees = |line: &Line| {
        let mut tuple = pg_sys::HeapTupleData {
            t_len: TUPLE as u32,
            // SAFETY: the tuple lies within the page.
            t_data: unsafe { start.add(line.offset()) }.cast(),
            ..Default::default()
        };
        // it is asserted that there is a table and a number
        tuple.t_tableOid = pg_sys::Oid::from(1);
        pgrx::itemptr::item_pointer_set_all(&mut tuple.t_self, 0, 1);
        // SAFETY: the tuple's data is a header, and the caller has pinned the buffer.
        unsafe { pg_sys::HeapTupleSatisfiesVisibility(&mut tuple, snapshot, buffer) }
    };
    (1..).zip(lines).filter(|(_, line)| line.is_normal() && sees(line)).map(|(number, _)| number).collect()
}

/// Compares what is visible by [`Visibility`] with what is by PostgreSQL, on forged pages.
///
/// # Panics
/// If it is not the same.
pub fn compare() {
    let transactions = transactions("of_the_buffer");
    let row_locks = row_locks(&transactions);
    let is_asserting = Spi::get_one("SELECT current_setting('debug_assertions')::bool").unwrap().unwrap();
    let mut forge = Forge { random: SplitMix64::seed_from_u64(17), transactions, row_locks, is_asserting };
    let (mut seen, mut unseen) = (0, 0);
    // SAFETY: the table is open and the snapshot registered to the end; hint bits of tables that are not permanent need
    // no log. Whatever fails ends the transaction.
    unsafe {
        let real = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        let table = Spi::get_one::<pg_sys::Oid>("SELECT 'of_the_buffer'::regclass::oid").unwrap().unwrap();
        let relation = pg_sys::relation_open(table, pg_sys::AccessShareLock as i32);
        let buffer = pg_sys::ReadBuffer(relation, 0);
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        let mut running = Vec::new();
        for _ in 0..PAGES / 8 {
            let mut snapshot = forge.snapshot(&*real, &mut running);
            let mut visibility = Visibility::new(&mut snapshot, table);
            let before = committed(&forge.transactions);
            // what is known of an inserter is kept from page to page
            for number in 0..8 {
                let (mut theirs, ours) = {
                    let page = forge.page();
                    (page.clone(), page)
                };
                let (lines, _) = Line::all(ours.0.as_ptr());
                let mut visible = [0; MOST_TUPLES];
                let count = visibility.of_page(Page { number, buffer, start: ours.0.as_ptr() }, lines, &mut visible);
                let expected = expected(&mut theirs, &mut snapshot, buffer);
                if committed(&forge.transactions) != before {
                    // under a forged snapshot, a transaction has another fate now than when we asked
                    break;
                }
                assert_eq!(&visible[..count], &expected, "under {snapshot:?} with {running:?} running");
                assert!(ours.0 == theirs.0, "other hint bits under {snapshot:?} with {running:?} running");
                seen += count;
                unseen += lines.iter().filter(|line| line.is_normal()).count() - count;
            }
        }
        pg_sys::UnlockReleaseBuffer(buffer);
        pg_sys::relation_close(relation, pg_sys::AccessShareLock as i32);
        pg_sys::UnregisterSnapshot(real);
    }
    assert!(seen > 10 * PAGES && unseen > 10 * PAGES, "{seen} tuples seen, {unseen} not");
}
