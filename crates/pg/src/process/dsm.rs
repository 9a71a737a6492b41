//! Dynamic shared memory, by the segment.
//!
//! Segments belong to the resource owner under which they were made or attached, and go away with it after an ERROR;
//! nothing happens when a Rust value is dropped.
//!
//! To have no room for a segment need not be the end of a statement: [`attempt`] catches what PostgreSQL raises, and
//! does at once what otherwise the abort of a (sub)transaction would do. A subtransaction of its own is not to be had,
//! since none can be begun in a parallel operation, and none can outlive what it has made. Who catches such an ERROR
//! without that clean-up releases segments while holding their locks, and waits for himself, with interrupts held off.

use crate::memory;
use bytemuck::{AnyBitPattern, NoUninit};
use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::panic::CaughtError;
use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use tuples::{Allocator, Memory};

/// The name of a segment, by which another process attaches it.
pub type Handle = pg_sys::dsm_handle;

/// Segments that this process has made or attached. Those that no one uses any more go when another comes, the others
/// with [`SegmentPool::end`].
#[derive(Debug, Default)]
pub struct SegmentPool {
    held: RefCell<Vec<Held>>,
    refused: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Held {
    segment: *mut pg_sys::dsm_segment,
    start: *const u8,
    mapping: Rc<Mapping>,
}

/// A segment is mapped as long as somebody has this.
#[derive(Debug)]
struct Mapping {
    handle: Handle,
    /// has somebody its memory?
    in_use: Cell<bool>,
}

/// What is called when a segment is detached.
pub type OnDetach = unsafe extern "C-unwind" fn(*mut pg_sys::dsm_segment, pg_sys::Datum);

/// Keeps a segment mapped, without its memory.
#[derive(Debug)]
pub struct Attachment(Rc<Mapping>);

impl Attachment {
    /// The segment's name.
    pub fn handle(&self) -> Handle {
        self.0.handle
    }
}

/// A segment's memory, which no one else in this process has. Its bytes are no other process's either as long as this
/// one may touch them: leader and worker agree on that by messages.
#[derive(Debug)]
pub struct Segment {
    start: *mut u8,
    bytes: usize,
    mapping: Rc<Mapping>,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.mapping.in_use.set(false);
    }
}

impl SegmentPool {
    /// A new segment, zeroed; None if there is no room for it.
    pub fn make(&self, bytes: usize) -> Option<Segment> {
        self.tidy();
        // SAFETY: makes a segment, or raises an ERROR.
        let segment =
            self.gently(|| unsafe { pg_sys::dsm_create(bytes, pg_sys::DSM_CREATE_NULL_IF_MAXSEGMENTS as i32) });
        match segment {
            Ok(segment) if !segment.is_null() => self.hold(segment),
            refused => {
                let why = refused.err().unwrap_or_else(|| "too many segments".to_owned());
                self.refused.replace(Some(why));
                None
            }
        }
    }

    /// A segment that another process has made, and that is not attached here. None if it is gone; if it cannot be
    /// attached, [`refused`](SegmentPool::refused) says why.
    pub fn attach_new(&self, handle: Handle) -> Option<Segment> {
        self.tidy();
        self.refused.take();
        // SAFETY: only looks for it.
        if !unsafe { pg_sys::dsm_find_mapping(handle) }.is_null() {
            return None;
        }
        // SAFETY: it is not attached, and is attached if it is still there, or raises an ERROR.
        match self.gently(|| unsafe { pg_sys::dsm_attach(handle) }) {
            Ok(segment) if !segment.is_null() => self.hold(segment),
            Ok(_) => None,
            Err(why) => {
                self.refused.replace(Some(why));
                None
            }
        }
    }

    /// The segment that `f` gives, for the caller's resource owner, or the message of the ERROR that it raises.
    fn gently(&self, f: impl FnOnce() -> *mut pg_sys::dsm_segment) -> Result<*mut pg_sys::dsm_segment, String> {
        // SAFETY: the segment goes from an owner of its own to the caller's; a refused one goes with that owner.
        // Between the two its mapping is pinned, that is, no one's.
        unsafe {
            let owner = pg_sys::ResourceOwnerCreate(pg_sys::CurrentResourceOwner, c"corgipile segment".as_ptr());
            let segment = attempt(owner, || {
                let segment = f();
                if !segment.is_null() {
                    pg_sys::dsm_pin_mapping(segment);
                }
                segment
            });
            delete_owner(owner);
            if let Ok(segment) = segment
                && !segment.is_null()
            {
                pg_sys::dsm_unpin_mapping(segment);
            }
            segment
        }
    }

    /// Has `f` called when this process detaches the segment, also after an ERROR and before it exits: it is mapped
    /// then for the last time.
    ///
    /// # Safety
    /// `f` raises no ERROR, and does nothing that may not be done while a transaction is aborted.
    pub unsafe fn on_detach(&self, segment: &Segment, f: OnDetach) {
        let held = self.held.borrow();
        let Some(held) = held.iter().find(|held| std::ptr::eq(held.start, segment.start)) else { return };
        // SAFETY: mapped; the caller's promise.
        unsafe { pg_sys::on_dsm_detach(held.segment, Some(f), pg_sys::Datum::null()) };
    }

    /// Why a segment was refused, if one was.
    pub fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// A segment that another process has made; the same memory if it was attached before. None if it is gone, or if
    /// somebody here has its memory.
    pub fn attach(&self, handle: Handle) -> Option<Segment> {
        // SAFETY: finds what is attached, else attaches what there is.
        let found = unsafe { pg_sys::dsm_find_mapping(handle) };
        if !found.is_null() {
            let held = self.held.borrow();
            return held.iter().find(|held| held.segment == found).and_then(Held::take);
        }
        self.tidy();
        // SAFETY: it was not attached before, and is attached if it is still there.
        let segment = unsafe { pg_sys::dsm_attach(handle) };
        if segment.is_null() { None } else { self.hold(segment) }
    }

    fn hold(&self, segment: *mut pg_sys::dsm_segment) -> Option<Segment> {
        // SAFETY: a mapped segment.
        let (start, handle) = unsafe { (pg_sys::dsm_segment_address(segment), pg_sys::dsm_segment_handle(segment)) };
        let mapping = Rc::new(Mapping { handle, in_use: Cell::new(false) });
        let held = Held { segment, start: start.cast_const().cast(), mapping };
        let memory = held.take();
        self.held.borrow_mut().push(held);
        memory
    }

    /// The segment that begins at this address.
    pub fn handle_at<T>(&self, start: *const T) -> Option<Handle> {
        let held = self.held.borrow();
        held.iter().find(|held| std::ptr::addr_eq(held.start, start)).map(|held| held.mapping.handle)
    }

    /// Detaches segments that no one uses.
    fn tidy(&self) {
        self.held.borrow_mut().retain(|held| {
            let used = Rc::strong_count(&held.mapping) > 1;
            if !used {
                // SAFETY: mapped, and no one has its memory or an Attachment any more.
                unsafe { pg_sys::dsm_detach(held.segment) }
            }
            used
        });
    }

    /// Detaches all segments, of which none is used any more.
    pub fn end(&self) {
        self.tidy();
        assert!(self.held.borrow().is_empty(), "a segment is still used");
    }
}

impl Allocator for SegmentPool {
    fn allocate(&self, floats: usize) -> Option<Box<dyn Memory>> {
        let segment = self.make(floats.checked_mul(size_of::<f32>())?)?;
        Some(Box::new(segment))
    }
}

impl Held {
    /// The segment's memory, unless somebody has it.
    fn take(&self) -> Option<Segment> {
        if self.mapping.in_use.replace(true) {
            return None;
        }
        // SAFETY: a mapped segment.
        let bytes = unsafe { pg_sys::dsm_segment_map_length(self.segment) };
        Some(Segment { start: self.start.cast_mut(), bytes, mapping: Rc::clone(&self.mapping) })
    }
}

impl Segment {
    /// Its name.
    pub fn handle(&self) -> Handle {
        self.mapping.handle
    }

    /// What keeps it mapped when its memory was given back.
    pub fn attachment(&self) -> Attachment {
        Attachment(Rc::clone(&self.mapping))
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its memory, to be used by several processes at the same time.
    pub fn into_words(self) -> Words {
        Words(self)
    }

    /// Where `len` numbers from byte `at` on are.
    fn place<T>(&self, at: usize, len: usize) -> *mut T {
        assert!(at.is_multiple_of(align_of::<T>()) && len <= self.bytes.saturating_sub(at) / size_of::<T>());
        // SAFETY: within the segment.
        unsafe { self.start.add(at).cast() }
    }

    /// The `len` numbers from byte `at` on.
    ///
    /// # Panics
    /// If they are not within the segment, or not aligned.
    pub fn get<T: AnyBitPattern>(&self, at: usize, len: usize) -> &[T] {
        // SAFETY: within the segment, which is mapped as long as self is there and aligned to pages; any bytes are such
        // numbers, and no one writes to them: see Segment.
        unsafe { std::slice::from_raw_parts(self.place(at, len), len) }
    }

    /// The `len` numbers from byte `at` on, to be written.
    ///
    /// # Panics
    /// As [`get`](Segment::get).
    pub fn get_mut<T: AnyBitPattern + NoUninit>(&mut self, at: usize, len: usize) -> &mut [T] {
        // SAFETY: within the segment, which is mapped as long as self is there and aligned to pages; any bytes are such
        // numbers, and no one else has them: see Segment.
        unsafe { std::slice::from_raw_parts_mut(self.place(at, len), len) }
    }
}

/// A segment's memory as words that several processes read and write at the same time.
#[derive(Debug)]
pub struct Words(Segment);

impl Words {
    /// All of them.
    pub fn all(&self) -> &[AtomicU64] {
        let len = self.0.bytes / size_of::<AtomicU64>();
        // SAFETY: within the segment, which is mapped as long as self is there and aligned to pages. Any bytes are such
        // words. Anyone who has them has them as these: in this process the segment's memory has become this value, and
        // in others too, which take it for what its first word says.
        unsafe { std::slice::from_raw_parts(self.0.place(0, len), len) }
    }
}

/// The words of a segment that is mapped.
///
/// # Safety
/// It stays mapped as long as they are used, and anyone who has its memory has it as [`Words`].
pub unsafe fn words_of<'a>(segment: *mut pg_sys::dsm_segment) -> &'a [AtomicU64] {
    // SAFETY: the caller's promise; as in Words::all.
    unsafe {
        let len = pg_sys::dsm_segment_map_length(segment) / size_of::<AtomicU64>();
        std::slice::from_raw_parts(pg_sys::dsm_segment_address(segment).cast(), len)
    }
}

impl Memory for Segment {
    #[inline]
    fn floats(&self) -> &[f32] {
        self.get(0, self.bytes / size_of::<f32>())
    }

    #[inline]
    fn floats_mut(&mut self) -> &mut [f32] {
        self.get_mut(0, self.bytes / size_of::<f32>())
    }
}

/// Runs `f`, a call of PostgreSQL that makes segments, which then belong to `owner`. If it raises an ERROR, gives the
/// message, whatever the SQLSTATE: PostgreSQL takes that from an errno, which a write that was cut short leaves as it
/// was. What was asked for (a cancel, a timeout, a shutdown) is not caught.
///
/// After an ERROR no lock is held, and `owner` has what there is of segments: the caller releases those that it knows
/// by pointers, and deletes the owner.
///
/// # Safety
/// `owner` is a resource owner, and `f` owns nothing that an ERROR would leave behind.
pub(crate) unsafe fn attempt<R>(owner: pg_sys::ResourceOwner, f: impl FnOnce() -> R) -> Result<R, String> {
    // SAFETY: the caller's promise; owner and memory context are put back on every way out that is not an ERROR.
    unsafe {
        // Every LWLock that is held counts here. There is no such lock, as nothing of ours takes one for longer than a
        // call; a caller of PostgreSQL that we do not know keeps its own, and has the ERROR.
        let holds_locks = pg_sys::InterruptHoldoffCount > 0;
        let (caller, context) = (pg_sys::CurrentResourceOwner, pg_sys::CurrentMemoryContext);
        pg_sys::CurrentResourceOwner = owner;
        let mut f = Some(f);
        let run = AssertUnwindSafe(|| f.take().map_or_else(|| Err(String::new()), |f| Ok(f())));
        let result = PgTryBuilder::new(run)
            .catch_others(|error| match &error {
                CaughtError::PostgresError(report) if !holds_locks && !was_asked_for(report.sql_error_code()) => {
                    Err(report.message().to_owned())
                }
                _ => error.rethrow(),
            })
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = caller;
        if result.is_err() {
            clean_up();
            memory::end();
        }
        result
    }
}

/// Is this SQLSTATE of class 57, operator intervention?
fn was_asked_for(code: PgSqlErrorCode) -> bool {
    // of five characters, six bits each, the class is the first two (ERRCODE_TO_CATEGORY)
    const CLASS: i32 = (1 << 12) - 1;
    code as i32 & CLASS == PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION as i32 & CLASS
}

/// What AbortSubTransaction() does first, in its order, as far as it is not about the subtransaction: releases locks
/// and stops waiting for anything. (Its timeouts and signals are for an ERROR in a signal handler.)
///
/// # Safety
/// An ERROR was caught, and no lock was held before.
unsafe fn clean_up() {
    // SAFETY: the caller's promise: the ERROR has set the reasons to wait with interrupts to 0. No LWLock is anybody
    // else's, as attempt() has seen before.
    unsafe {
        pg_sys::InterruptHoldoffCount += 1;
        pg_sys::LWLockReleaseAll();
        pg_sys::my_wait_event_info.write_volatile(0);
        pg_sys::UnlockBuffers();
        pg_sys::XLogResetInsertion();
        pg_sys::ConditionVariableCancelSleep();
        pg_sys::LockErrorCleanup();
        pg_sys::InterruptHoldoffCount -= 1;
    }
}

/// Releases what an owner has.
///
/// # Safety
/// `owner` is a resource owner.
unsafe fn release(owner: pg_sys::ResourceOwner) {
    use pg_sys::ResourceReleasePhase as Phase;
    // SAFETY: the caller's promise; all three phases, in their order, as for any owner that is given up.
    unsafe {
        let caller = pg_sys::CurrentResourceOwner;
        for phase in
            [Phase::RESOURCE_RELEASE_BEFORE_LOCKS, Phase::RESOURCE_RELEASE_LOCKS, Phase::RESOURCE_RELEASE_AFTER_LOCKS]
        {
            pg_sys::ResourceOwnerRelease(owner, phase, false, false);
        }
        pg_sys::CurrentResourceOwner = caller;
    }
}

/// Deletes an owner, with what it has.
///
/// # Safety
/// `owner` is a resource owner, and is not used any more.
pub(crate) unsafe fn delete_owner(owner: pg_sys::ResourceOwner) {
    // SAFETY: the caller's promise.
    unsafe {
        release(owner);
        pg_sys::ResourceOwnerDelete(owner);
    }
}
