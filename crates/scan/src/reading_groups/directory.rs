//! The directory of reading groups: which there are, and who is a member of which.
//!
//! Joining takes a lock, leaving does not. A group is there as long as one of its members is; its entry is used again
//! when none is. Under the lock nothing can raise an ERROR.

use pgrx::pg_sys;
use shuffle::{Job, JobSet};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Groups that there can be at the same time.
pub const GROUPS: usize = 16;

/// Members that all groups together can have.
pub const PLACES: usize = 128;

/// The shared structure. Zeros are an empty one, but for the lock.
#[repr(C, align(64))]
pub struct Directory {
    pub(super) lock: UnsafeCell<pg_sys::LWLock>,
    pub(super) tranche: AtomicI32,
    groups: [Group; GROUPS],
    pub(super) places: [Place; PLACES],
}

#[repr(C, align(64))]
struct Group {
    /// what is read: of the files
    key: [AtomicU64; 2],
    database: AtomicU32,
    pages_per_block: AtomicU32,
    /// the segment that its members share
    handle: AtomicU32,
}

/// A member.
#[repr(C, align(64))]
pub struct Place {
    /// the process; 0: free
    pub(super) pid: AtomicI32,
    pub(super) group: AtomicU32,
    job: AtomicU32,
    pub(super) role: AtomicU32,
    /// 0: not one relation
    pub(super) relation: AtomicU32,
    pub counters: Counters,
}

/// How far a member has come, for others to see.
#[repr(C)]
pub struct Counters {
    /// the epoch under way, 0 of a preparation pass; its blocks, and those not yet drawn
    pub epoch: AtomicU64,
    pub blocks: AtomicU64,
    pub remaining: AtomicU64,
    /// since it became a member: blocks that it has drawn by itself, and those that another had drawn before
    pub drawn: AtomicU64,
    pub followed: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub files: [u64; 2],
    pub database: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub group: usize,
    pub handle: u32,
    pub pages_per_block: u32,
}

/// Why a process does not become a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPlace {
    /// the group is another one by now, or there is one by now
    Changed,
    GroupIsFull,
    PlacesAreTaken,
    GroupsAreTaken,
}

/// A process that is to be a member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub pid: i32,
    pub role: u32,
    /// 0: not one relation
    pub relation: u32,
}

/// Does a process live?
type Lives<'a> = &'a dyn Fn(i32) -> bool;

impl Directory {
    /// The places of a group's members.
    fn members<'a>(&'a self, group: usize, lives: Lives<'a>) -> impl Iterator<Item = &'a Place> {
        self.places.iter().filter(move |place| place.is_in(group) && lives(place.pid.load(SeqCst)))
    }

    /// A group that reads this in blocks of one of these sizes; the one whose blocks are nearest to `wanted`.
    pub fn find(&self, key: Key, wanted: u32, sizes: std::ops::RangeInclusive<u32>, lives: Lives) -> Option<Found> {
        let fits = |(group, entry): (usize, &Group)| {
            let found = Found {
                group,
                handle: entry.handle.load(Relaxed),
                pages_per_block: entry.pages_per_block.load(Relaxed),
            };
            let is_it = entry.key() == key && sizes.contains(&found.pages_per_block);
            (is_it && self.members(group, lives).next().is_some()).then_some(found)
        };
        let found = self.groups.iter().enumerate().filter_map(fits);
        found.min_by_key(|found| found.pages_per_block.abs_diff(wanted))
    }

    /// Has this process a place in the group?
    pub fn has(&self, group: usize, pid: i32) -> bool {
        self.places.iter().any(|place| place.is_in(group) && place.pid.load(SeqCst) == pid)
    }

    /// Makes a process a member of the group that was found, whose segment it has attached: so if the entry still has
    /// that segment, the group is there, even if all others have left it meanwhile.
    pub fn join(&self, found: Found, member: Member, lives: Lives) -> Result<(&Place, Job), NoPlace> {
        if self.groups[found.group].handle.load(Relaxed) != found.handle {
            return Err(NoPlace::Changed);
        }
        let used: JobSet = self.members(found.group, lives).map(Place::job).collect();
        let job = (0..shuffle::MAX_JOBS).filter_map(Job::new).find(|job| !used.contains(*job));
        let job = job.ok_or(NoPlace::GroupIsFull)?;
        let place = self.places.iter().find(|place| !lives(place.pid.load(SeqCst))).ok_or(NoPlace::PlacesAreTaken)?;
        place.begin(found.group, job, member);
        Ok((place, job))
    }

    /// Makes a group of this process alone, with a segment that it has made.
    pub fn found(
        &self,
        key: Key,
        (handle, pages_per_block): (u32, u32),
        member: Member,
        lives: Lives,
    ) -> Result<(&Place, Job), NoPlace> {
        if self.find(key, pages_per_block, pages_per_block..=pages_per_block, lives).is_some() {
            return Err(NoPlace::Changed);
        }
        let is_free = |group: &usize| self.members(*group, lives).next().is_none();
        let group = (0..GROUPS).find(is_free).ok_or(NoPlace::GroupsAreTaken)?;
        let entry = &self.groups[group];
        entry.key.iter().zip(key.files).for_each(|(part, value)| part.store(value, Relaxed));
        entry.database.store(key.database, Relaxed);
        entry.pages_per_block.store(pages_per_block, Relaxed);
        entry.handle.store(handle, Relaxed);
        self.join(Found { group, handle, pages_per_block }, member, lives)
    }

    /// The database of a group, and the segment of its members.
    pub fn group(&self, group: usize) -> (u32, u32) {
        self.groups.get(group).map_or((0, 0), |entry| (entry.database.load(Relaxed), entry.handle.load(Relaxed)))
    }
}

impl Group {
    fn key(&self) -> Key {
        Key { files: [0, 1].map(|i| self.key[i].load(Relaxed)), database: self.database.load(Relaxed) }
    }
}

impl Place {
    fn is_in(&self, group: usize) -> bool {
        self.pid.load(SeqCst) != 0 && self.group.load(Relaxed) as usize == group
    }

    /// The member's number in its group.
    pub fn job(&self) -> Job {
        Job::new(self.job.load(Relaxed) as usize).unwrap_or_else(|| panic!("numbers of members are below 64"))
    }

    fn begin(&self, group: usize, job: Job, Member { pid, role, relation }: Member) {
        self.pid.store(0, SeqCst);
        self.group.store(group as u32, Relaxed);
        self.job.store(job.number() as u32, Relaxed);
        self.role.store(role, Relaxed);
        self.relation.store(relation, Relaxed);
        self.counters.all().iter().for_each(|counter| counter.store(0, Relaxed));
        self.pid.store(pid, SeqCst);
    }
}

impl Counters {
    /// Each of them, in the order of the view's columns.
    pub fn all(&self) -> [&AtomicU64; 5] {
        let Counters { epoch, blocks, remaining, drawn, followed } = self;
        [epoch, blocks, remaining, drawn, followed]
    }
}
