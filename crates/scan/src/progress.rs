//! How far trainings have come, for other sessions to see: a small table in shared memory.
//!
//! It needs no preload: the server keeps 100 kB of shared memory for libraries that come late, of which this takes 8
//! kB. Without them, or when more trainings run than the table has places, a training is not shown,
//! and nothing else changes.
//!
//! A place belongs to one process; its numbers are plain atomics. It is freed when the training's state is dropped,
//! which an ERROR does, too, and when the process exits; if that is killed, the server makes its shared memory again.
#![allow(unsafe_code)]

use pg::process::late_memory;
use pg::values::output::OutputValue;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Trainings that are shown at the same time.
const PLACES: usize = 64;

/// What is known of one training.
#[repr(C, align(64))]
struct Place {
    /// of the process that it belongs to; 0: free
    pid: AtomicI32,
    database: AtomicU32,
    role: AtomicU32,
    /// 0: a query
    relation: AtomicU32,
    epoch: AtomicU32,
    epochs: AtomicU32,
    first_epoch: AtomicU32,
    /// of the epoch, read and in all; 0 in all: not known
    blocks: [AtomicU32; 2],
    /// bits of the last epoch's; NaN before there is one
    loss: AtomicU64,
    /// in all epochs, with those of the buffer that is being learned from
    tuples: AtomicU64,
    epochs_ended: AtomicU32,
    learned: Learned,
    /// microseconds since 2000: when the training began, and when its first epoch did (0: not yet)
    begun: AtomicU64,
    learning_since: AtomicU64,
}

/// What was learned from, when a buffer or an epoch was done last.
#[repr(C)]
struct Learned {
    /// bits of how many epochs were read, the last in part, when the buffer was full that is being learned from
    read: AtomicU64,
    /// bits of how many were learned from
    epochs: AtomicU64,
    tuples: AtomicU64,
    /// microseconds since 2000
    at: AtomicU64,
}

impl Place {
    /// How many new epochs were read, the last in part.
    fn position(&self) -> f64 {
        let number = |number: &AtomicU32| f64::from(number.load(Relaxed));
        let [blocks, all_blocks] = self.blocks.each_ref().map(number);
        match all_blocks {
            0.0 => number(&self.epochs_ended),
            all => (number(&self.epoch) - number(&self.first_epoch)).max(0.0) + blocks / all,
        }
    }

    /// All tuples so far have been learned from: those of this many epochs.
    fn settle(&self, epochs: f64) {
        self.learned.epochs.store(epochs.to_bits(), Relaxed);
        self.learned.tuples.store(self.tuples.load(Relaxed), Relaxed);
        self.learned.at.store(now() as u64, Relaxed);
    }
}

thread_local! {
    static TABLE: Cell<Option<Option<&'static [Place; PLACES]>>> = const { Cell::new(None) };
    /// the place of the training whose blocks this process reads
    static CURRENT: Cell<Option<&'static Place>> = const { Cell::new(None) };
}

/// The table, unless there was no memory for it.
fn table() -> Option<&'static [Place; PLACES]> {
    if let Some(known) = TABLE.get() {
        return known;
    }
    // SAFETY: zeros are free places, whose numbers are atomics; the callback only changes those of this process.
    let table = unsafe {
        let table = late_memory::structure::<[Place; PLACES]>(c"corgipile progress", |_| {});
        if table.is_some() {
            pg_sys::before_shmem_exit(Some(leave), pg_sys::Datum::null());
        }
        table
    };
    TABLE.set(Some(table));
    table
}

/// Frees this process's places, when it exits.
#[pg_guard]
unsafe extern "C-unwind" fn leave(_code: c_int, _argument: pg_sys::Datum) {
    let Some(Some(table)) = TABLE.get() else { return };
    let own = my_pid();
    for place in table {
        let _ = place.pid.compare_exchange(own, 0, SeqCst, Relaxed);
    }
}

fn my_pid() -> i32 {
    // SAFETY: set when the process began.
    unsafe { pg_sys::MyProcPid }
}

fn now() -> i64 {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

/// A training of this process, shown until it is dropped.
pub struct Progress {
    place: Option<&'static Place>,
    /// the training in whose source this one is
    outer: Option<&'static Place>,
}

impl Progress {
    /// Shows a training that begins now, on this relation or on a query, with the first of its epochs and the last.
    pub fn begin(relation: Option<pg_sys::Oid>, first: u32, last: u32) -> Progress {
        let outer = CURRENT.get();
        let own = my_pid();
        let free = |place: &&Place| {
            let pid = place.pid.load(Relaxed);
            // SAFETY: looks for a running process.
            let is_free = pid == 0 || (pid != own && unsafe { pg_sys::BackendPidGetProc(pid) }.is_null());
            is_free && place.pid.compare_exchange(pid, own, SeqCst, Relaxed).is_ok()
        };
        let place = table().and_then(|table| table.iter().find(free));
        if let Some(place) = place {
            // SAFETY: plain variables of the session.
            let (database, role) = unsafe { (pg_sys::MyDatabaseId, pg_sys::GetSessionUserId()) };
            place.database.store(database.to_u32(), Relaxed);
            place.role.store(role.to_u32(), Relaxed);
            place.relation.store(relation.map_or(0, |relation| relation.to_u32()), Relaxed);
            place.epochs.store(last, Relaxed);
            place.first_epoch.store(first, Relaxed);
            let small = [&place.epoch, &place.blocks[0], &place.blocks[1], &place.epochs_ended];
            small.iter().for_each(|number| number.store(0, Relaxed));
            [&place.tuples, &place.learned.read, &place.learning_since]
                .iter()
                .for_each(|number| number.store(0, Relaxed));
            place.loss.store(f64::NAN.to_bits(), Relaxed);
            place.settle(0.0);
            place.begun.store(now() as u64, Relaxed);
        }
        CURRENT.set(place);
        Progress { place, outer }
    }
}

/// The number under which another process that reads for the training that runs finds it.
pub fn number() -> Option<u32> {
    let place = CURRENT.get()?;
    table()?.iter().position(|other| std::ptr::eq(other, place)).map(|number| number as u32)
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let _ = place.pid.compare_exchange(my_pid(), 0, SeqCst, Relaxed);
        }
        CURRENT.set(self.outer);
    }
}

/// From now on this process reads for the training with this number.
pub fn read_for(number: Option<u32>) {
    CURRENT.set(number.and_then(|number| table()?.get(number as usize)));
}

/// The last epoch is this one, as it turns out.
pub fn epochs(last: u32) {
    if let Some(place) = CURRENT.get() {
        place.epochs.store(last, Relaxed);
    }
}

/// An epoch, from 1, of this many blocks begins; 0 is a preparation pass.
pub fn begin_epoch(epoch: u64, blocks: usize) {
    let Some(place) = CURRENT.get() else { return };
    place.blocks[0].store(0, Relaxed);
    place.blocks[1].store(blocks as u32, Relaxed);
    place.epoch.store(epoch as u32, Relaxed);
    if epoch > 0 {
        let _ = place.learning_since.compare_exchange(0, now() as u64, Relaxed, Relaxed);
    }
}

/// This many blocks of the epoch were begun.
#[inline]
pub fn blocks(begun: usize) {
    if let Some(place) = CURRENT.get() {
        place.blocks[0].store(begun as u32, Relaxed);
    }
}

/// Tuples are about to be learned from; those before have been.
pub fn tuples(tuples: usize) {
    let Some(place) = CURRENT.get() else { return };
    place.settle(f64::from_bits(place.learned.read.swap(place.position().to_bits(), Relaxed)));
    place.tuples.fetch_add(tuples as u64, Relaxed);
}

/// An epoch has ended with this loss.
pub fn loss(loss: f64) {
    let Some(place) = CURRENT.get() else { return };
    place.loss.store(loss.to_bits(), Relaxed);
    place.settle(f64::from(place.epochs_ended.fetch_add(1, Relaxed) + 1));
}

/// Columns of [`rows`].
const COLUMNS: usize = 13;

/// A row for each training that runs now; of those of others, NULLs, unless the user may see all statistics.
pub fn rows() -> Vec<[OutputValue; COLUMNS]> {
    table().into_iter().flatten().filter_map(row).collect()
}

fn row(place: &Place) -> Option<[OutputValue; COLUMNS]> {
    let pid = place.pid.load(SeqCst);
    // SAFETY: looks for a running process.
    if pid == 0 || unsafe { pg_sys::BackendPidGetProc(pid) }.is_null() {
        return None;
    }
    let oid =
        |number: &AtomicU32| Some(pg_sys::Oid::from(number.load(Relaxed))).filter(|oid| *oid != pg_sys::Oid::INVALID);
    let (database, role) = (oid(&place.database), oid(&place.role));
    // SAFETY: catalog lookups; those of a role that is no more find no privileges.
    let visible = unsafe {
        let user = pg_sys::GetUserId();
        pg_sys::has_privs_of_role(user, pg_sys::ROLE_PG_READ_ALL_STATS.into())
            || role.is_some_and(|role| pg_sys::has_privs_of_role(user, role))
    };
    let mut row = [const { OutputValue::Null }; COLUMNS];
    (row[0], row[1]) = (pid.into(), database.into());
    if visible {
        let number = |number: &AtomicU32| i64::from(number.load(Relaxed));
        let time = |time: &AtomicU64| time.load(Relaxed) as i64;
        let [begun, since, changed] = [&place.begun, &place.learning_since, &place.learned.at].map(time);
        let first = number(&place.first_epoch);
        let (epoch, epochs) = (number(&place.epoch), number(&place.epochs));
        let [blocks, all_blocks] = place.blocks.each_ref().map(number);
        let (tuples, learned) = (place.tuples.load(Relaxed) as i64, place.learned.tuples.load(Relaxed) as f64);
        let seconds = (changed - since) as f64 / 1e6;
        let learning = since > 0 && seconds > 0.0 && learned > 0.0;
        // of all epochs
        let done = f64::from_bits(place.learned.epochs.load(Relaxed)) / (epochs + 1 - first).max(1) as f64;
        let end = since.saturating_add(((changed - since) as f64 / done) as i64).max(now());
        let loss = f64::from_bits(place.loss.load(Relaxed));
        row[2] = role.into();
        row[3] = oid(&place.relation).into();
        row[4] = (epoch as i32).into();
        row[5] = (epochs as i32).into();
        row[6] = Some(blocks).filter(|_| all_blocks > 0).into();
        row[7] = Some(all_blocks).filter(|all| *all > 0).into();
        row[8] = Some(loss).filter(|loss| !loss.is_nan()).into();
        row[9] = tuples.into();
        row[10] = Some(learned / seconds).filter(|_| learning).into();
        // the same bits as an i64
        row[11] = begun.into();
        row[12] = Some(end).filter(|_| learning && done > 0.0).into();
    }
    // not if the place has changed hands meanwhile
    (place.pid.load(SeqCst) == pid).then_some(row)
}
