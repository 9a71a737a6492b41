//! Numbers of models in the server's shared memory, where all processes read them without a copy: a bounded cache of what
//! the table has, there if the library is in shared_preload_libraries.
//!
//! An entry belongs to one version of one row. Who looks for it has found the row in the table before, so that snapshots and
//! privileges hold; an entry of a version that nobody sees is not found, and goes when its place is needed. A process that
//! reads an entry has pinned it; pins go with the transaction, also after an ERROR. A process that dies without ending its
//! transaction takes the server's shared memory with it: PostgreSQL makes it anew, and this cache is empty then.
//!
//! One lock guards the directory. Pinning takes it shared; what is pinned is neither moved nor freed. Numbers are written
//! before anybody else can find them, and never change.
#![allow(unsafe_code)]

use crate::pg::check_for_interrupts;
use crate::settings;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

const NAME: &CStr = c"corgipile_models";

/// Models that the cache can hold.
const SLOTS: usize = 1024;

/// Arrays start at multiples of it: a cache line.
const ALIGN: usize = 64;

/// How often, a millisecond each, a process waits for another that is reading the same model from the table. Not for ever:
/// that one may wait for a lock of this one's.
const WAITS: usize = 2000;

const FREE: u32 = 0;
/// being filled by a process that has it pinned; found, but not yet read, by others
const LOADING: u32 = 1;
/// filled by a transaction that has not ended, and found by nobody
const PENDING: u32 = 2;
const READY: u32 = 3;
/// to be freed when nobody has it pinned, and found by nobody
const DOOMED: u32 = 4;

/// One version of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    pub database: u32,
    /// the file of the table: VACUUM FULL moves rows, but gives them another
    pub file: u32,
    pub model: i64,
    /// that wrote the row
    pub transaction: u32,
    pub block: u32,
    pub offset: u32,
}

/// A model's arrays.
#[derive(Debug, Clone, Copy)]
pub struct Arrays<'a> {
    pub weights: &'a [f32],
    pub intercepts: &'a [f32],
    /// as long as one output's weights, or empty
    pub mean: &'a [f64],
    pub scale: &'a [f64],
}

#[repr(C)]
struct Slot {
    key: Key,
    state: u32,
    pins: AtomicU32,
    /// another one for each use of the slot
    generation: u64,
    /// where its bytes are in the arena; none while it is loaded
    start: usize,
    bytes: usize,
    /// of the arrays
    lens: [usize; 4],
    /// the time of the last lookup
    used: AtomicU64,
    predictions: AtomicU64,
    hits: AtomicU64,
}

/// The beginning of the shared memory; the arena follows.
#[repr(C)]
struct Directory {
    clock: AtomicU64,
    generation: u64,
    arena_bytes: usize,
    slots: [Slot; SLOTS],
}

static DIRECTORY: AtomicPtr<Directory> = AtomicPtr::new(std::ptr::null_mut());

/// An entry that this process may read while its transaction has it pinned.
#[derive(Debug, Clone)]
pub struct Shared {
    slot: usize,
    generation: u64,
    start: *const u8,
    lens: [usize; 4],
    counts: Rc<Counts>,
}

/// What happens to an entry in a transaction.
#[derive(Debug, Default)]
struct Counts {
    predictions: Cell<u64>,
    hits: Cell<u64>,
}

/// What to do about a model.
pub enum Claim {
    /// it is there
    Found(Shared),
    /// it is not: this process is to read it from the table, while others wait
    Load(Loading),
    /// there is no room, or it takes too long: this process is to read it for itself
    Private,
}

/// A slot that this process is to fill; given up when dropped.
pub struct Loading {
    slot: usize,
    published: bool,
}

/// What the cache knows of one entry.
pub struct Stat {
    pub model: i64,
    pub bytes: i64,
    pub predictions: i64,
    pub hits: i64,
}

/// What this transaction has to let go of at its end.
#[derive(Default)]
struct Held {
    pinned: Vec<Shared>,
    loading: Vec<usize>,
    /// with the level of the subtransaction
    pending: Vec<(usize, i32)>,
    /// models whose rows were changed
    forgotten: Vec<i64>,
}

thread_local! {
    static HELD: RefCell<Held> = RefCell::default();
    static PREVIOUS: (Cell<pg_sys::shmem_request_hook_type>, Cell<pg_sys::shmem_startup_hook_type>) =
        const { (Cell::new(None), Cell::new(None)) };
}

/// Asks for the shared memory, if the library is being preloaded. Called once, by _PG_init.
pub fn install() {
    // SAFETY: _PG_init runs on the only thread; hooks are chained.
    unsafe {
        pg_sys::RegisterXactCallback(Some(transaction_ends), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(subtransaction_ends), std::ptr::null_mut());
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        PREVIOUS.with(|(request, startup)| {
            request.set(pg_sys::shmem_request_hook);
            startup.set(pg_sys::shmem_startup_hook);
        });
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

fn total_bytes() -> usize {
    size_of::<Directory>() + ALIGN + settings::shared_models_size()
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called in the postmaster, when shared memory may be asked for.
    unsafe {
        if let Some(previous) = PREVIOUS.with(|(request, _)| request.get()) {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        if settings::shared_models_size() > 0 {
            pg_sys::RequestAddinShmemSpace(total_bytes());
            pg_sys::RequestNamedLWLockTranche(NAME.as_ptr(), 1);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    // SAFETY: called in the postmaster when it has made its shared memory, also after a crash: it is zeroed then, and all
    // zeros are an empty directory. Processes inherit the pointer.
    unsafe {
        if let Some(previous) = PREVIOUS.with(|(_, startup)| startup.get()) {
            pg_sys::ffi::pg_guard_ffi_boundary(|| previous());
        }
        if settings::shared_models_size() == 0 {
            return;
        }
        let mut found = false;
        let directory = pg_sys::ShmemInitStruct(NAME.as_ptr(), total_bytes(), &mut found).cast::<Directory>();
        if !found {
            directory.cast::<u8>().write_bytes(0, size_of::<Directory>());
            (*directory).arena_bytes = settings::shared_models_size() / ALIGN * ALIGN;
        }
        DIRECTORY.store(directory, Relaxed);
    }
}

/// Is there such a cache?
pub fn enabled() -> bool {
    !DIRECTORY.load(Relaxed).is_null()
}

/// Runs `f` with the directory, which nobody changes meanwhile but for its atomics. `f` raises no ERROR.
fn shared<R>(f: impl FnOnce(&Directory) -> R) -> R {
    // SAFETY: the lock guards the directory; it is there if DIRECTORY is.
    unsafe {
        let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_SHARED);
        let result = f(&*DIRECTORY.load(Relaxed));
        pg_sys::LWLockRelease(lock);
        result
    }
}

/// Runs `f` with the directory, which nobody else sees meanwhile. `f` raises no ERROR.
fn exclusive<R>(f: impl FnOnce(&mut Directory) -> R) -> R {
    // SAFETY: as above.
    unsafe {
        let lock = &raw mut (*pg_sys::GetNamedLWLockTranche(NAME.as_ptr())).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let result = f(&mut *DIRECTORY.load(Relaxed));
        pg_sys::LWLockRelease(lock);
        result
    }
}

/// Where the arena begins.
fn arena() -> *mut u8 {
    // SAFETY: within what was asked for.
    unsafe {
        let end = DIRECTORY.load(Relaxed).add(1).cast::<u8>();
        end.add(end.align_offset(ALIGN))
    }
}

impl Directory {
    fn find(&self, key: &Key) -> Option<usize> {
        let is = |slot: &Slot| matches!(slot.state, READY | LOADING) && slot.key == *key;
        self.slots.iter().position(is)
    }

    /// A slot for this key, pinned by the caller; its least used neighbour goes if there is none.
    fn take(&mut self, key: &Key, state: u32) -> Option<usize> {
        let i = match self.slots.iter().position(|slot| slot.state == FREE) {
            Some(i) => i,
            None => self.least_used()?,
        };
        self.generation += 1;
        let now = self.clock.fetch_add(1, Relaxed);
        self.slots[i] = Slot {
            key: *key,
            state,
            pins: AtomicU32::new(1),
            generation: self.generation,
            start: 0,
            bytes: 0,
            lens: [0; 4],
            used: AtomicU64::new(now),
            predictions: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        };
        Some(i)
    }

    /// The slot that can go first.
    fn least_used(&self) -> Option<usize> {
        let can_go = |(_, slot): &(usize, &Slot)| matches!(slot.state, READY | DOOMED) && slot.pins.load(Relaxed) == 0;
        let age = |(_, slot): &(usize, &Slot)| (slot.state != DOOMED, slot.used.load(Relaxed));
        self.slots.iter().enumerate().filter(can_go).min_by_key(age).map(|(i, _)| i)
    }

    fn free(&mut self, i: usize) {
        self.slots[i].state = FREE;
        self.slots[i].bytes = 0;
    }

    /// Room in the arena for so many bytes; the least used entries go if there is none.
    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        if bytes > self.arena_bytes {
            return None;
        }
        loop {
            let used = self.slots.iter().filter(|slot| slot.state != FREE && slot.bytes > 0);
            let mut used: Vec<(usize, usize)> = used.map(|slot| (slot.start, slot.start + slot.bytes)).collect();
            used.sort_unstable();
            used.push((self.arena_bytes, self.arena_bytes));
            let mut end = 0;
            for (start, next) in used {
                if start - end >= bytes {
                    return Some(end);
                }
                end = next;
            }
            let oldest = self.least_used()?;
            self.free(oldest);
        }
    }
}

impl Shared {
    fn of(slot: usize, entry: &Slot) -> Shared {
        // SAFETY: the bytes are in the arena.
        let start = unsafe { arena().add(entry.start) };
        Shared { slot, generation: entry.generation, start, lens: entry.lens, counts: Rc::default() }
    }

    /// Pins the entry until the transaction ends, if it is still there. Until then its arrays may be read.
    pub fn pin(&self) -> bool {
        let pinned = HELD.with_borrow(|held| held.pinned.iter().any(|pin| pin.is(self)));
        let pinned = pinned
            || shared(|directory| {
                let slot = &directory.slots[self.slot];
                let there = slot.state == READY && slot.generation == self.generation;
                if there {
                    slot.pin(directory);
                }
                there
            });
        if pinned {
            self.counts.hits.set(self.counts.hits.get() + 1);
            self.hold();
        }
        pinned
    }

    /// Remembers the pin.
    fn hold(&self) {
        HELD.with_borrow_mut(|held| {
            if !held.pinned.iter().any(|pin| pin.is(self)) {
                held.pinned.push(self.clone());
            }
        });
    }

    fn is(&self, other: &Shared) -> bool {
        (self.slot, self.generation) == (other.slot, other.generation)
    }

    /// The arrays. They may be read by who has found or pinned the entry in this transaction.
    #[inline]
    pub fn arrays(&self) -> Arrays<'_> {
        let offsets = offsets(&self.lens);
        // SAFETY: pinned by this transaction, as the caller promises: models::cache hands out no model of another one's.
        // Written before it was found, aligned to cache lines, and never changed.
        unsafe {
            let floats = |i: usize| std::slice::from_raw_parts(self.start.add(offsets[i]).cast::<f32>(), self.lens[i]);
            let doubles = |i: usize| std::slice::from_raw_parts(self.start.add(offsets[i]).cast::<f64>(), self.lens[i]);
            Arrays { weights: floats(0), intercepts: floats(1), mean: doubles(2), scale: doubles(3) }
        }
    }

    /// Counts a prediction.
    #[inline]
    pub fn count(&self) {
        self.counts.predictions.set(self.counts.predictions.get() + 1);
    }
}

impl Slot {
    fn pin(&self, directory: &Directory) {
        self.pins.fetch_add(1, Relaxed);
        self.used.store(directory.clock.fetch_add(1, Relaxed), Relaxed);
    }
}

/// Where arrays of these lengths begin: floats, floats, doubles, doubles.
fn offsets(lens: &[usize; 4]) -> [usize; 5] {
    let mut offsets = [0; 5];
    for (i, len) in lens.iter().enumerate() {
        let bytes = len * if i < 2 { 4 } else { 8 };
        offsets[i + 1] = offsets[i] + bytes.next_multiple_of(ALIGN);
    }
    offsets
}

/// Looks for a model; waits while another process reads it from the table.
pub fn claim(key: &Key) -> Claim {
    for _ in 0..WAITS {
        let found = shared(|directory| {
            directory.find(key).map(|i| {
                let slot = &directory.slots[i];
                (slot.state == READY).then(|| {
                    slot.pin(directory);
                    Shared::of(i, slot)
                })
            })
        });
        match found {
            Some(Some(found)) => {
                let again = HELD.with_borrow(|held| held.pinned.iter().any(|pin| pin.is(&found)));
                if again {
                    unpin(&[(found.slot, 0, 0)]);
                }
                found.hold();
                // the one that is remembered, with its counts
                let held = HELD.with_borrow(|held| held.pinned.iter().find(|pin| pin.is(&found)).cloned());
                let found = held.unwrap_or(found);
                found.counts.hits.set(found.counts.hits.get() + 1);
                return Claim::Found(found);
            }
            Some(None) => {
                check_for_interrupts();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            None => {
                let taken = exclusive(|directory| match directory.find(key) {
                    Some(_) => None,
                    None => Some(directory.take(key, LOADING)),
                });
                match taken {
                    None => {}
                    Some(None) => return Claim::Private,
                    Some(Some(slot)) => {
                        HELD.with_borrow_mut(|held| held.loading.push(slot));
                        return Claim::Load(Loading { slot, published: false });
                    }
                }
            }
        }
    }
    Claim::Private
}

impl Loading {
    /// Shows others the model, which keeps this process' pin. None if there is no room.
    pub fn publish(mut self, arrays: Arrays) -> Option<Shared> {
        fill(self.slot, arrays)?;
        let found = exclusive(|directory| {
            let slot = &mut directory.slots[self.slot];
            slot.state = READY;
            Shared::of(self.slot, slot)
        });
        self.published = true;
        HELD.with_borrow_mut(|held| held.loading.retain(|slot| *slot != self.slot));
        found.hold();
        Some(found)
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        // While an ERROR unwinds nothing may be called: the end of the (sub)transaction frees the slot.
        if !self.published && !std::thread::panicking() {
            HELD.with_borrow_mut(|held| held.loading.retain(|slot| *slot != self.slot));
            exclusive(|directory| directory.free(self.slot));
        }
    }
}

/// Copies the arrays into a slot that only this process uses. None if there is no room.
fn fill(slot: usize, arrays: Arrays) -> Option<()> {
    let lens = [arrays.weights.len(), arrays.intercepts.len(), arrays.mean.len(), arrays.scale.len()];
    let offsets = offsets(&lens);
    let start = exclusive(|directory| {
        let start = directory.allocate(offsets[4])?;
        let slot = &mut directory.slots[slot];
        (slot.start, slot.bytes, slot.lens) = (start, offsets[4], lens);
        Some(start)
    })?;
    // SAFETY: these bytes of the arena are this slot's, which nobody else reads yet.
    unsafe {
        let at = |i: usize| arena().add(start + offsets[i]);
        std::ptr::copy_nonoverlapping(arrays.weights.as_ptr().cast(), at(0), 4 * lens[0]);
        std::ptr::copy_nonoverlapping(arrays.intercepts.as_ptr().cast(), at(1), 4 * lens[1]);
        std::ptr::copy_nonoverlapping(arrays.mean.as_ptr().cast(), at(2), 8 * lens[2]);
        std::ptr::copy_nonoverlapping(arrays.scale.as_ptr().cast(), at(3), 8 * lens[3]);
    }
    Some(())
}

/// Puts in a model that this transaction has just stored; others find it when it has committed. Does nothing if there is no
/// room.
pub fn announce(key: &Key, arrays: Arrays) {
    let Some(slot) = exclusive(|directory| directory.take(key, PENDING)) else { return };
    // SAFETY: reads a variable.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    HELD.with_borrow_mut(|held| held.pending.push((slot, level)));
    if fill(slot, arrays).is_none() {
        HELD.with_borrow_mut(|held| held.pending.retain(|(pending, _)| *pending != slot));
        exclusive(|directory| directory.free(slot));
    }
}

/// A model's row was changed or deleted: when this transaction has committed, its entries go.
pub fn forget(model: i64) {
    if !enabled() {
        return;
    }
    HELD.with_borrow_mut(|held| {
        if held.forgotten.last() != Some(&model) {
            held.forgotten.push(model);
        }
        let of_it = |(slot, _): &(usize, i32)| shared(|directory| directory.slots[*slot].key.model == model);
        let (old, rest): (Vec<_>, Vec<_>) = held.pending.iter().copied().partition(of_it);
        held.pending = rest;
        exclusive(|directory| old.iter().for_each(|(slot, _)| directory.free(*slot)));
    });
}

/// The entries of this database.
pub fn stats() -> Vec<Stat> {
    if !enabled() {
        return Vec::new();
    }
    // SAFETY: reads a variable.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    shared(|directory| {
        let mine = directory.slots.iter().filter(|slot| slot.state == READY && slot.key.database == database);
        mine.map(|slot| Stat {
            model: slot.key.model,
            bytes: slot.bytes as i64,
            predictions: slot.predictions.load(Relaxed) as i64,
            hits: slot.hits.load(Relaxed) as i64,
        })
        .collect()
    })
}

/// Gives pins back, each with its predictions and hits.
fn unpin(pins: &[(usize, u64, u64)]) {
    let doomed = shared(|directory| {
        let mut doomed = false;
        for (slot, predictions, hits) in pins {
            let slot = &directory.slots[*slot];
            slot.predictions.fetch_add(*predictions, Relaxed);
            slot.hits.fetch_add(*hits, Relaxed);
            doomed |= slot.pins.fetch_sub(1, Relaxed) == 1 && slot.state == DOOMED;
        }
        doomed
    });
    if doomed {
        exclusive(|directory| {
            for i in 0..SLOTS {
                if directory.slots[i].state == DOOMED && directory.slots[i].pins.load(Relaxed) == 0 {
                    directory.free(i);
                }
            }
        });
    }
}

/// Lets go of everything. Raises no ERROR: a transaction that has committed cannot fail.
fn end(committed: bool) {
    let held = HELD.take();
    if !held.pinned.is_empty() {
        let take = |pin: &Shared| (pin.slot, pin.counts.predictions.take(), pin.counts.hits.take());
        unpin(&held.pinned.iter().map(take).collect::<Vec<_>>());
    }
    if held.loading.is_empty() && held.pending.is_empty() && (held.forgotten.is_empty() || !committed) {
        return;
    }
    // SAFETY: reads a variable.
    let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
    exclusive(|directory| {
        held.loading.iter().for_each(|slot| directory.free(*slot));
        if committed {
            for i in 0..SLOTS {
                let slot = &mut directory.slots[i];
                if slot.state == READY && slot.key.database == database && held.forgotten.contains(&slot.key.model) {
                    if slot.pins.load(Relaxed) == 0 {
                        directory.free(i);
                    } else {
                        slot.state = DOOMED;
                    }
                }
            }
        }
        for (slot, _) in &held.pending {
            if committed {
                directory.slots[*slot].state = READY;
                directory.slots[*slot].pins.store(0, Relaxed);
            } else {
                directory.free(*slot);
            }
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn transaction_ends(event: pg_sys::XactEvent::Type, _data: *mut c_void) {
    use pg_sys::XactEvent::*;
    if !enabled() {
        return;
    }
    match event {
        XACT_EVENT_COMMIT | XACT_EVENT_PARALLEL_COMMIT => end(true),
        // what is prepared may still be rolled back: it is read from the table when it has committed
        XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT | XACT_EVENT_PREPARE => end(false),
        _ => {}
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn subtransaction_ends(
    event: pg_sys::SubXactEvent::Type,
    _own: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _data: *mut c_void,
) {
    if !enabled() {
        return;
    }
    // SAFETY: reads a variable: the subtransaction that ends is still the current one.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    HELD.with_borrow_mut(|held| match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            let (gone, rest): (Vec<_>, Vec<_>) = held.pending.iter().copied().partition(|(_, of)| *of >= level);
            held.pending = rest;
            let loading = std::mem::take(&mut held.loading);
            if !gone.is_empty() || !loading.is_empty() {
                exclusive(|directory| {
                    gone.iter().for_each(|(slot, _)| directory.free(*slot));
                    loading.iter().for_each(|slot| directory.free(*slot));
                });
            }
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => {
            held.pending.iter_mut().filter(|(_, of)| *of >= level).for_each(|(_, of)| *of = level - 1);
        }
        _ => {}
    });
}
