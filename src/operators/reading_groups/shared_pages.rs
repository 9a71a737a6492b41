//! Decoded pages that the members of a reading group keep for each other, in a segment of dynamic shared memory.
//!
//! Who comes to a page asks the store ([`joader::PageStore`]) for it: takes what another has made of it, or makes it
//! and publishes it. The members may have begun at different times and see different rows. Yet a member takes exactly
//! the rows that its own snapshot sees. Why that is so:
//!
//! **Rules.** A page is *made* only of what its maker has read when the page said, under its lock, that everybody sees
//! all its tuples (`PD_ALL_VISIBLE`). It is *taken* only if after it was found
//!
//! 1. the visibility map calls the page all-visible, and
//! 2. seen after that, one of its *holders*, who have made or taken it, still has its snapshot ([`Held::is_held`]).
//!
//! The rule of making means that what it has read is what everybody sees: each snapshot that there was then, however
//! old, or that came later, but for what was changed after that. So it is left to look at these changes.
//!
//! **Claim.** Let C be what the maker has read, and X any transaction that changes the page after that and does not
//! abort. Then X is not before the xmin of any holder's snapshot, and no holder's snapshot sees X.
//!
//! *For the maker.* X still ran after the maker had taken its snapshot. So it either ran when that was taken, and is
//! not before its xmin, which is the oldest of those that ran; or it got its number later, which is then beyond the
//! snapshot altogether. In neither case the snapshot sees it.
//!
//! *For who takes.* Suppose that its snapshot sees X. Then X has committed before that was taken. X has cleared the
//! page's bit in the map before it committed (`heap_insert`, `heap_multi_insert`, `heap_update` and `heap_delete` do it
//! within the change itself), and the taker has had `ProcArrayLock`, under which X has ended, after X: so the bit that
//! it reads is not one from before X, although it reads it without a lock. (That is the argument by which index-only
//! scans trust the map, in `nodeIndexonlyscan.c`.) By rule 1 the bit was set, so somebody has set it again in between.
//! Only VACUUM does; `COPY ... FREEZE` does only on pages of files that its own transaction has made. And VACUUM does
//! only if each tuple of the page was inserted by a transaction before its `OldestXmin`, and none is deleted: not while
//! X is not before `OldestXmin`, since a tuple that X has inserted is too new, and one that X has deleted is still
//! there as one that died recently (`heap_page_is_all_visible`, `lazy_scan_prune`, and what both ask,
//! `HeapTupleSatisfiesVacuum`). So `OldestXmin` was beyond X, and beyond the xmin h of each holder that there was, of
//! which the claim says that X is not before h.
//!
//! But by rule 2 one of these holders has told in its `PGPROC`, after the bit was seen and so after VACUUM computed
//! `OldestXmin`, an xmin not beyond h. All values of `OldestXmin` that were computed until then are not beyond h
//! (`ComputeXidHorizons`): those from after the holder has taken its snapshot, because it is among the processes that
//! are asked; those from before, because a transaction that ran then and still ran at the snapshot is not before them,
//! and neither is any that came later. It does not matter whether the holder has told the same xmin all the time, since
//! that of a later snapshot bounds the earlier horizons, too. That is a contradiction: no holder's snapshot sees X. So
//! for the taker the rows of the page are those of C: nothing that was there has gone, and nothing has come. And as X
//! had not ended when the taker's snapshot was taken, or began later, X is not before that snapshot's xmin, either: the
//! taker may be a holder for others.
//!
//! **What has to hold for that, and does.** A member's snapshot is registered as long as it is a member, and PostgreSQL
//! keeps a process's xmin at or before those of its registered snapshots (`SnapshotResetXmin`). That of a worker, or
//! one that was imported, counts from when its origin's does (`ProcArrayInstallRestoredXmin`,
//! `ProcArrayInstallImportedXmin`). A transaction that aborts changes nothing that anybody sees: its rows are removed,
//! those that it has tried to delete live. A lock of a row clears no bit of visibility (`heap_lock_tuple` clears that
//! of being frozen only), and changes nothing that is read: the row's system columns are never part of a shared page.
//! An update within the page (HOT) is an update. A member holds a lock on the table until its transaction ends, so that
//! nobody truncates or rewrites it, or changes its columns. Pages are not shared where PostgreSQL itself does not trust
//! the bits (snapshots of a standby), looks for conflicts row by row (`SERIALIZABLE`), or takes rows away that a
//! snapshot sees (`old_snapshot_threshold`, 15 and 16): `PageScan::held` says so.
//!
//! After an ERROR a process gives up its snapshot (`ProcArrayEndTransaction`) before it detaches the segment. So
//! membership proves nothing, and the holder's `PGPROC` is asked. It tells nothing wrong by being read without a lock:
//! xmin is a word; VACUUM has read that the holder has none before it set the bit, with locks taken and released in
//! between, and who has read that bit, and then xmin, with a barrier in between, reads that or something later.
//!
//! The functions that are named here do this from PostgreSQL 15 to 18. (What `lazy_scan_prune` does about visibility in
//! 15 and 16, `heap_page_prune_and_freeze` does from 17 on. Only VACUUM lets it set the map's bit.)
//!
//! **Whoever fails.** The store's lock guards its books alone, for moments in which nothing can raise an ERROR; words
//! are copied without it. A member that ends in whatever way detaches the segment, and takes with it what it has
//! pinned, held and was making. The segment goes with the last of them.

use super::{ATTEMPTS, NotShared, ReadingGroup, directory, my_pid, no_memory};
use joader::{Digest, Job, JobSet, MAX_JOBS, PageStore, Pin, Request, Ticket};
use pg::interrupts::check_for_interrupts;
use pg::process::dsm::{SegmentPool, Words, words_of};
use pg::snapshot::Held;
use pgrx::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first word of a segment of pages, by which it is known.
const MAGIC: u64 = u64::from_le_bytes(*b"corgisp1");

/// Words of the segment: how many words of 32 bits the pages have, the lock, how far the members are in their blocks,
/// the store's books; then the pages.
const ARENA: usize = 1;
const LOCK: usize = 8;
const COURSES: usize = 16;
const INDEX: usize = COURSES + 2 * MAX_JOBS;

const _: () = assert!(size_of::<pg_sys::LWLock>() <= (COURSES - LOCK) * size_of::<u64>());

/// The pages that the members of a group keep for each other.
pub struct SharedPages {
    segments: SegmentPool,
    words: Words,
    job: Job,
}

impl SharedPages {
    /// Becomes a member of the store of a group, or makes one with so many bytes for pages, as a reader whose snapshot
    /// is `held`.
    ///
    /// # Errors
    /// Why not; then nothing is kept for others.
    pub fn join(group: &ReadingGroup, bytes: u64, held: Held) -> Result<SharedPages, NotShared> {
        let directory = directory().ok_or("the server has no shared memory left for reading groups")?;
        let number = group.place.group.load(Relaxed) as usize;
        for _ in 0..ATTEMPTS {
            check_for_interrupts();
            let segments = SegmentPool::default();
            let known = directory.locked(|directory| directory.pages_of(number));
            let segment = match known {
                0 => segments.make(segment_bytes(bytes)),
                known => segments.attach_new(known),
            };
            let Some(segment) = segment else {
                if let Some(why) = segments.refused() {
                    return Err(no_memory(&why));
                }
                // the last of those who had it has left
                directory.locked(|directory| directory.set_pages(number, known, 0));
                continue;
            };
            // SAFETY: takes this process out of the store, if it is one.
            unsafe { segments.on_detach(&segment, detached) };
            let handle = segment.handle();
            let words = segment.into_words();
            if known == 0 {
                begin(words.all(), bytes);
                if !directory.locked(|directory| directory.set_pages(number, 0, handle)) {
                    drop(words);
                    segments.end(); // another was first
                    continue;
                }
            }
            if words.all().first().is_none_or(|word| word.load(Relaxed) != MAGIC) {
                return Err("the segment of pages is none".into());
            }
            let pages = SharedPages { segments, words, job: group.job() };
            pages.locked(|store| store.join(pages.job, Digest::default(), held.to_words()));
            return Ok(pages);
        }
        Err("other sessions come and go too fast".into())
    }

    /// Leaves the store.
    pub fn leave(self) {
        let SharedPages { segments, words, .. } = self;
        drop(words);
        segments.end(); // which calls detached()
    }

    fn locked<R>(&self, f: impl FnOnce(&mut PageStore<'_>) -> R) -> R {
        // SAFETY: the segment is one of pages, and mapped as long as self is there.
        unsafe { locked(self.words.all(), f) }
    }

    /// From now on this process decodes what this is the digest of.
    pub fn set_digest(&self, digest: Digest) {
        self.locked(|store| store.set_digest(self.job, digest));
    }

    /// Tells the others which pages are left of the block under way, and of the next: between the first and the last.
    pub fn set_course(&self, pages: [Range<u32>; 2]) {
        for (word, pages) in course(self.words.all(), self.job).iter().zip(pages) {
            word.store(u64::from(pages.start) << 32 | u64::from(pages.end), Relaxed);
        }
    }

    /// Those who have this page before them in blocks that they have drawn.
    fn on_course(&self, page: u32) -> JobSet {
        let comes = |job: &Job| {
            course(self.words.all(), *job).iter().any(|word| {
                let word = word.load(Relaxed);
                ((word >> 32) as u32..word as u32).contains(&page)
            })
        };
        JobSet::ALL.iter().filter(comes).collect()
    }

    /// Comes to one of these pages, whichever suits best: see [`PageStore::choose`]. `drawing` are the members that
    /// have not yet drawn the block.
    pub fn choose(&self, pages: &[u32], drawing: JobSet) -> (usize, Request) {
        let wanted = |page| JobSet::from_bits(drawing.bits() | self.on_course(page).bits());
        self.locked(|store| store.choose(self.job, pages, wanted))
    }

    /// Shows `take` the words of a page, if this process still finds, by `is_as_it_was`, that everybody sees all its
    /// tuples, and one of those who vouch for them does so. None if not.
    pub fn take<R>(&self, pin: Pin, is_as_it_was: impl FnOnce() -> bool, take: impl FnOnce(&[u32]) -> R) -> Option<R> {
        let is_as_it_was = is_as_it_was();
        let may_take = self.locked(|store| match is_as_it_was {
            true => store.confirm(&pin, |witness| Held::from_words(witness).is_held()),
            false => {
                store.reject(&pin);
                false
            }
        });
        // SAFETY: the page is pinned: its words were written before it was published, and are not written again before
        // it is unpinned. They are within the segment, as the store was made for so many.
        let taken = may_take.then(|| take(unsafe { &*self.arena(&pin.words) }));
        self.locked(|store| store.unpin(pin));
        taken
    }

    /// Publishes a page of so many words, which `write` writes. False if there is no room.
    pub fn publish(
        &self,
        ticket: Ticket,
        page: u32,
        drawing: JobSet,
        words: usize,
        write: impl FnOnce(&mut [u32]),
    ) -> bool {
        let Some(place) = self.locked(|store| store.allocate(&ticket, words as u64)) else {
            self.abandon(ticket);
            return false;
        };
        // SAFETY: as in take(); until it is published it is this process's alone.
        write(unsafe { &mut *self.arena(&place) });
        let needing = JobSet::from_bits(drawing.bits() | self.on_course(page).bits());
        self.locked(|store| store.publish(ticket, needing));
        true
    }

    /// Does not make a page after all.
    pub fn abandon(&self, ticket: Ticket) {
        self.locked(|store| store.abandon(ticket));
    }

    /// The words of a page.
    fn arena(&self, place: &Range<u64>) -> *mut [u32] {
        let all = self.words.all();
        let arena = all[ARENA].load(Relaxed);
        assert!(place.start <= place.end && place.end <= arena, "words of the arena");
        let start = INDEX + PageStore::index_words(arena);
        // SAFETY: within the segment, which has so many words.
        let start = unsafe { all[start..].as_ptr().cast::<u32>().add(place.start as usize) };
        std::ptr::slice_from_raw_parts_mut(start.cast_mut(), (place.end - place.start) as usize)
    }
}

/// Words of 32 bits for pages of so many bytes.
fn arena_words(bytes: u64) -> u64 {
    bytes / size_of::<u32>() as u64
}

fn segment_bytes(bytes: u64) -> usize {
    let arena = arena_words(bytes);
    (INDEX + PageStore::index_words(arena)) * size_of::<u64>() + arena as usize * size_of::<u32>()
}

/// Where it is told how far a member is in its blocks.
fn course(words: &[AtomicU64], job: Job) -> &[AtomicU64] {
    &words[COURSES + 2 * job.number()..][..2]
}

/// Makes zeros an empty store.
fn begin(words: &[AtomicU64], bytes: u64) {
    let arena = arena_words(bytes);
    words[ARENA].store(arena, Relaxed);
    // SAFETY: nobody else knows the segment yet; the lock has its place, and so have the books.
    unsafe {
        let tranche = super::DIRECTORY.get().flatten().map_or(0, |directory| directory.tranche.load(Relaxed));
        pg_sys::LWLockInitialize(words[LOCK..].as_ptr().cast_mut().cast(), tranche);
        PageStore::create(index(words), arena);
    }
    words[0].store(MAGIC, Relaxed);
}

/// The store's books.
///
/// # Safety
/// Nobody else has them, since the lock is held or nobody knows of them; and the words have how many they are.
#[expect(clippy::mut_from_ref, reason = "the words are atomics, which others change, too")]
unsafe fn index(words: &[AtomicU64]) -> &mut [u64] {
    let index = &words[INDEX..][..PageStore::index_words(words[ARENA].load(Relaxed))];
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(index.as_ptr().cast_mut().cast(), index.len()) }
}

/// Runs `f`, which raises no ERROR, on the books.
///
/// # Safety
/// It is a segment of pages that was begun.
unsafe fn locked<R>(words: &[AtomicU64], f: impl FnOnce(&mut PageStore<'_>) -> R) -> R {
    // SAFETY: the caller's promise: the lock was made then. Who has it has the books. After a panic PostgreSQL releases
    // it.
    unsafe {
        let lock = words[LOCK..].as_ptr().cast_mut().cast();
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let result = f(&mut PageStore::open(index(words)));
        pg_sys::LWLockRelease(lock);
        result
    }
}

/// Takes this process out of the store whose segment it detaches.
#[pg_guard]
unsafe extern "C-unwind" fn detached(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    // SAFETY: it is mapped until this returns, and its members use it as words.
    let words = unsafe { words_of(segment) };
    if words.first().is_none_or(|word| word.load(Relaxed) != MAGIC) {
        return;
    }
    let own = my_pid();
    // SAFETY: a segment of pages that was begun.
    unsafe {
        locked(words, |store| {
            store.leave_by(|witness| Held::from_words(witness).pid() == own);
            // who has a number of nobody's is nowhere
            let members = store.members();
            for job in JobSet::ALL.iter().filter(|job| !members.contains(*job)) {
                course(words, job).iter().for_each(|word| word.store(0, Relaxed));
            }
        });
    }
}
