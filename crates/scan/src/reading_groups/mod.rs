//! Reading groups: sessions that read the same pages, so that each may draw its blocks with a view to what the others
//! have drawn.
//!
//! A member never waits for another. What they share is a board of atomics (`shuffle::Board`) in a segment of dynamic
//! shared memory, which goes with its last member, and a small directory, by which members find each other. Nothing has
//! to be preloaded. Where there is no room for either, there is no group, and the reader gets the reason.
//!
//! A member leaves when its process detaches the segment. PostgreSQL sees to that after an ERROR, when the transaction
//! or the process ends, and whatever becomes of Rust values; so nothing happens when a [`ReadingGroup`] is dropped. A
//! process that is killed takes the server's shared memory with it.
#![allow(unsafe_code)]

mod board;
mod directory;
mod view;

pub use directory::Counters;
pub use view::rows;

use directory::{Directory, Found, Key, Member, NoPlace, Place};
use foldhash::quality::FixedState;
use pg::interrupts::check_for_interrupts;
use pg::process::dsm::{SegmentPool, Words, words_of};
use pg::process::late_memory;
use pg::process::parallel::NO_SHARED_MEMORY;
use pg::tuples::heap::HeapRelation;
use pgrx::prelude::*;
use shuffle::{Board, Job};
use std::borrow::Cow;
use std::cell::{Cell, UnsafeCell};
use std::ffi::CStr;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Why a reader is no member of a group.
pub type NotShared = Cow<'static, str>;

/// A group that this process is a member of.
pub struct ReadingGroup {
    segments: SegmentPool,
    words: Words,
    place: &'static Place,
    job: Job,
    pages_per_block: u32,
}

pub struct Reads {
    key: Key,
    /// 0: not one relation
    relation: u32,
    pages: u32,
    /// pages of a block, and what else will do
    pages_per_block: u32,
    sizes: RangeInclusive<u32>,
}

/// The name of the directory, and of its lock in `pg_stat_activity`.
const NAME: &CStr = c"corgipile reading groups";

/// How often somebody else may come first.
const ATTEMPTS: usize = 8;

thread_local! {
    static DIRECTORY: Cell<Option<Option<&'static Directory>>> = const { Cell::new(None) };
}

/// The directory, unless there was no memory for it.
fn directory() -> Option<&'static Directory> {
    if let Some(known) = DIRECTORY.get() {
        return known;
    }
    let begin = |directory: *mut Directory| {
        // SAFETY: new, and no one else's yet.
        unsafe {
            let tranche = pg_sys::LWLockNewTrancheId();
            (*directory).tranche.store(tranche, Relaxed);
            pg_sys::LWLockInitialize(UnsafeCell::raw_get(&raw const (*directory).lock), tranche);
        }
    };
    // SAFETY: all in it are atomics, but for the lock, which begin() makes and only PostgreSQL touches.
    let directory = unsafe { late_memory::structure::<Directory>(NAME, begin) };
    if let Some(directory) = directory {
        // SAFETY: the name is there as long as the process.
        unsafe { pg_sys::LWLockRegisterTranche(directory.tranche.load(Relaxed), NAME.as_ptr()) };
    }
    DIRECTORY.set(Some(directory));
    directory
}

impl Directory {
    /// Runs `f`, which raises no ERROR, while no one joins a group.
    fn locked<'a, R>(&'a self, f: impl FnOnce(&'a Directory) -> R) -> R {
        // SAFETY: the lock was made together with the directory. After a panic PostgreSQL releases it.
        unsafe {
            pg_sys::LWLockAcquire(self.lock.get(), pg_sys::LWLockMode::LW_EXCLUSIVE);
            let result = f(self);
            pg_sys::LWLockRelease(self.lock.get());
            result
        }
    }
}

/// Is there a process with this number, that has not ended?
fn lives(pid: i32) -> bool {
    // SAFETY: looks for a running process.
    pid != 0 && (pid == my_pid() || !unsafe { pg_sys::BackendPidGetProc(pid) }.is_null())
}

fn my_pid() -> i32 {
    // SAFETY: set when the process began.
    unsafe { pg_sys::MyProcPid }
}

impl Reads {
    /// These tables, of which one is read, or several, of this many pages each, as parts of one. None if one of them is
    /// a temporary table, which no other session can read.
    pub fn tables(tables: &[HeapRelation<'_>], pages: &[u32]) -> Option<Reads> {
        if tables.iter().any(|table| table.is_temporary()) {
            return None;
        }
        let mut files: Vec<u32> = tables.iter().flat_map(|table| table.files()).collect();
        if pages.len() > 1 {
            files.extend(pages); // where the blocks of each table are depends on them
        }
        // the same in all processes of a server
        let hash = |seed| FixedState::with_seed(seed).hash_one(&files);
        // SAFETY: a variable of the session.
        let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
        let key = Key { files: [hash(1), hash(2)], database };
        let relation = tables.first().map_or(0, |table| table.root().to_u32());
        Some(Reads { key, relation, pages: pages.iter().sum(), pages_per_block: 1, sizes: 1..=1 })
    }

    /// The same, in blocks of this many pages, or of others that will do.
    pub fn in_blocks(self, pages_per_block: u32, sizes: RangeInclusive<u32>) -> Reads {
        Reads { pages_per_block, sizes, ..self }
    }

    fn blocks(&self, pages_per_block: u32) -> u32 {
        self.pages.div_ceil(pages_per_block.max(1))
    }
}

impl ReadingGroup {
    /// Becomes a member of the group that reads this, or founds it.
    pub fn join(reads: &Reads) -> Result<ReadingGroup, NotShared> {
        let directory = directory().ok_or("the server has no shared memory left for reading groups")?;
        for _ in 0..ATTEMPTS {
            check_for_interrupts();
            let segments = SegmentPool::default();
            let found = directory.locked(|directory| {
                let found = directory.find(reads.key, reads.pages_per_block, reads.sizes.clone(), &lives);
                found.map(|found| (found, directory.has(found.group, my_pid())))
            });
            let joined = match found {
                Some((_, true)) => return Err("this session already reads it with others".into()),
                Some((found, false)) => ReadingGroup::attach(directory, segments, found, reads)?,
                None => ReadingGroup::make(directory, segments, reads)?,
            };
            if let Some(joined) = joined {
                joined.board().leave(joined.job); // anyone who had this number before may have died with it
                return Ok(joined);
            }
        }
        Err("too many sessions join and leave at the same time".into())
    }

    /// Becomes a member of a group that was found; None if it has gone meanwhile.
    fn attach(
        directory: &'static Directory,
        segments: SegmentPool,
        found: Found,
        reads: &Reads,
    ) -> Result<Option<ReadingGroup>, NotShared> {
        let Some(segment) = segments.attach_new(found.handle) else { return Ok(None) };
        // SAFETY: leaves the board, if it is one, and the place.
        unsafe { segments.on_detach(&segment, detached) };
        let words = segment.into_words();
        let joined = match board::of(words.all()) {
            Some(_) => directory.locked(|directory| directory.join(found, reads.member(), &lives)),
            None => Err(NoPlace::Changed),
        };
        let Found { pages_per_block, .. } = found;
        ReadingGroup::with_place(joined, segments, words, pages_per_block)
    }

    /// Founds a group; None if somebody else has done so meanwhile.
    fn make(
        directory: &'static Directory,
        segments: SegmentPool,
        reads: &Reads,
    ) -> Result<Option<ReadingGroup>, NotShared> {
        let pages_per_block = reads.pages_per_block;
        let blocks = reads.blocks(pages_per_block);
        let room = board::room_for(blocks);
        let Some(segment) = segments.make(board::bytes(room)) else {
            return Err(format!("{NO_SHARED_MEMORY}: {}", segments.refused().unwrap_or_default()).into());
        };
        // SAFETY: as in attach().
        unsafe { segments.on_detach(&segment, detached) };
        let handle = segment.handle();
        let words = segment.into_words();
        board::begin(words.all(), blocks);
        let joined =
            directory.locked(|directory| directory.found(reads.key, (handle, pages_per_block), reads.member(), &lives));
        ReadingGroup::with_place(joined, segments, words, pages_per_block)
    }

    fn with_place(
        joined: Result<(&'static Place, Job), NoPlace>,
        segments: SegmentPool,
        words: Words,
        pages_per_block: u32,
    ) -> Result<Option<ReadingGroup>, NotShared> {
        let why = match joined {
            Ok((place, job)) => return Ok(Some(ReadingGroup { segments, words, place, job, pages_per_block })),
            Err(why) => why,
        };
        drop(words);
        segments.end();
        match why {
            NoPlace::Changed => Ok(None),
            NoPlace::GroupIsFull => Err("the reading group already has 64 members".into()),
            NoPlace::PlacesAreTaken => Err("all places in reading groups are taken".into()),
            NoPlace::GroupsAreTaken => Err("the maximum number of reading groups is reached".into()),
        }
    }

    /// What the members share.
    pub fn board(&self) -> Board<'_> {
        board::of(self.words.all()).unwrap_or_else(|| panic!("the segment of a reading group has its board"))
    }

    /// This member's number.
    pub fn job(&self) -> Job {
        self.job
    }

    /// Pages of the group's blocks.
    pub fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// How far this member has come, for others to see.
    pub fn counters(&self) -> &Counters {
        &self.place.counters
    }

    pub fn leave(self) {
        let ReadingGroup { segments, words, .. } = self;
        drop(words);
        segments.end(); // which calls detached()
    }
}

impl Reads {
    fn member(&self) -> Member {
        // SAFETY: a plain variable of the session.
        let role = unsafe { pg_sys::GetSessionUserId() }.to_u32();
        Member { pid: my_pid(), role, relation: self.relation }
    }
}

/// Takes this process out of the group whose segment it detaches.
#[pg_guard]
unsafe extern "C-unwind" fn detached(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    let Some(Some(directory)) = DIRECTORY.get() else { return };
    let own = my_pid();
    // SAFETY: it is mapped until this returns, and its members use it as words.
    let (handle, words) = unsafe { (pg_sys::dsm_segment_handle(segment), words_of(segment)) };
    for place in directory.places.iter().filter(|place| place.pid.load(SeqCst) == own) {
        if directory.group(place.group.load(Relaxed) as usize).1 == handle {
            if let Some(board) = board::of(words) {
                board.leave(place.job());
            }
            place.pid.store(0, SeqCst);
        }
    }
}
