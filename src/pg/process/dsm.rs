//! Dynamic shared memory, by the segment.
//!
//! Segments belong to the resource owner under which they were made or attached, and go away with it after an ERROR;
//! nothing happens when a Rust value is dropped.
//!
//! To have no room for a segment need not be the end of a statement: [`attempt`] catches what PostgreSQL raises, and does at once
//! what otherwise the abort of a (sub)transaction would do. A subtransaction of its own is not to be had, since none can be
//! begun in a parallel operation, and none can outlive what it has made. Who catches such an ERROR without that clean-up
//! releases segments while holding their locks, and waits for himself, with interrupts held off.

use pgrx::PgTryBuilder;
use pgrx::pg_sys;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::panic::CaughtError;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use tuples::{Allocator, Memory};

/// The name of a segment, by which another process attaches it.
pub type Handle = pg_sys::dsm_handle;

/// Numbers that any bytes are.
pub trait Plain: Copy + 'static {}
impl Plain for f32 {}
impl Plain for u32 {}
impl Plain for usize {}

/// Segments that this process has made or attached. Those that nobody uses any more go when another comes, the others
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
    used: Rc<()>,
}

/// A segment's memory. Its bytes are nobody else's as long as this process may touch them: leader and worker agree on that
/// by messages.
#[derive(Debug)]
pub struct Segment {
    handle: Handle,
    start: *mut u8,
    bytes: usize,
    _used: Rc<()>,
}

impl SegmentPool {
    /// A new segment, zeroed; None if there is no room for it.
    pub fn make(&self, bytes: usize) -> Option<Segment> {
        self.tidy();
        let made = || {
            // SAFETY: makes a segment, or raises an ERROR that attempt() catches.
            unsafe { pg_sys::dsm_create(bytes, pg_sys::DSM_CREATE_NULL_IF_MAXSEGMENTS as i32) }
        };
        // SAFETY: the new segment goes from an owner of its own to the caller's; a refused one goes with that owner.
        let segment = unsafe {
            let owner = pg_sys::ResourceOwnerCreate(pg_sys::CurrentResourceOwner, c"corgipile segment".as_ptr());
            let segment = attempt(owner, || {
                let segment = made();
                if !segment.is_null() {
                    pg_sys::dsm_pin_mapping(segment);
                }
                segment
            });
            delete_owner(owner);
            segment
        };
        let segment = match segment {
            Ok(segment) if !segment.is_null() => segment,
            refused => {
                let why = refused.err().unwrap_or_else(|| "too many segments".to_owned());
                self.refused.replace(Some(why));
                return None;
            }
        };
        // SAFETY: the mapping is pinned, that is, nobody's.
        unsafe { pg_sys::dsm_unpin_mapping(segment) };
        Some(self.hold(segment))
    }

    /// Why a segment was refused, if one was.
    pub fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    /// A segment that another process has made; the same memory if it was attached before.
    pub fn attach(&self, handle: Handle) -> Option<Segment> {
        // SAFETY: finds what is attached, else attaches what there is.
        let found = unsafe { pg_sys::dsm_find_mapping(handle) };
        if !found.is_null() {
            let held = self.held.borrow();
            return held.iter().find(|held| held.segment == found).map(Held::segment);
        }
        self.tidy();
        // SAFETY: as above.
        let segment = unsafe { pg_sys::dsm_attach(handle) };
        (!segment.is_null()).then(|| self.hold(segment))
    }

    fn hold(&self, segment: *mut pg_sys::dsm_segment) -> Segment {
        // SAFETY: a mapped segment.
        let start = unsafe { pg_sys::dsm_segment_address(segment) };
        let held = Held { segment, start: start.cast_const().cast(), used: Rc::new(()) };
        let memory = held.segment();
        self.held.borrow_mut().push(held);
        memory
    }

    /// The segment that begins at this address.
    pub fn handle_at<T>(&self, start: *const T) -> Option<Handle> {
        let held = self.held.borrow();
        let held = held.iter().find(|held| std::ptr::addr_eq(held.start, start))?;
        // SAFETY: a mapped segment.
        Some(unsafe { pg_sys::dsm_segment_handle(held.segment) })
    }

    /// Lets go of segments that nobody uses.
    fn tidy(&self) {
        self.held.borrow_mut().retain(|held| {
            let used = Rc::strong_count(&held.used) > 1;
            if !used {
                // SAFETY: mapped, and no Segment of it is left.
                unsafe { pg_sys::dsm_detach(held.segment) }
            }
            used
        });
    }

    /// Lets go of all segments, of which none is used any more.
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
    fn segment(&self) -> Segment {
        // SAFETY: a mapped segment.
        unsafe {
            Segment {
                handle: pg_sys::dsm_segment_handle(self.segment),
                start: self.start.cast_mut(),
                bytes: pg_sys::dsm_segment_map_length(self.segment),
                _used: Rc::clone(&self.used),
            }
        }
    }
}

impl Segment {
    /// Its name.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The `len` numbers from byte `at` on.
    ///
    /// # Panics
    /// If they are not within the segment, or not aligned.
    pub fn get<T: Plain>(&self, at: usize, len: usize) -> &[T] {
        assert!(at.is_multiple_of(align_of::<T>()) && len <= self.bytes.saturating_sub(at) / size_of::<T>());
        // SAFETY: within the segment, which is mapped as long as self is used and aligned to pages; see Segment on who
        // else writes to it.
        unsafe { std::slice::from_raw_parts(self.start.add(at).cast_const().cast(), len) }
    }

    /// The `len` numbers from byte `at` on, to be written.
    ///
    /// # Panics
    /// As [`get`](Segment::get).
    pub fn get_mut<T: Plain>(&mut self, at: usize, len: usize) -> &mut [T] {
        assert!(at.is_multiple_of(align_of::<T>()) && len <= self.bytes.saturating_sub(at) / size_of::<T>());
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at).cast(), len) }
    }
}

impl Memory for Segment {
    #[inline]
    fn floats(&self) -> &[f32] {
        // SAFETY: as in get.
        unsafe { std::slice::from_raw_parts(self.start.cast_const().cast(), self.bytes / size_of::<f32>()) }
    }

    #[inline]
    fn floats_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in get.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<f32>()) }
    }
}

/// Runs `f`, a call of PostgreSQL that makes segments, which then belong to `owner`. If it raises an ERROR, gives the message,
/// whatever the SQLSTATE: PostgreSQL takes that from an errno, which a write that was cut short leaves as it was. What was asked
/// for (a cancel, a timeout, a shutdown) is not caught.
///
/// After an ERROR no lock is held, and `owner` has what there is of segments: the caller lets go of those that it knows by
/// pointers, and deletes the owner.
pub(in crate::pg) fn attempt<R>(owner: pg_sys::ResourceOwner, f: impl FnOnce() -> R) -> Result<R, String> {
    // SAFETY: owner and memory context are put back on every way out that is not an ERROR.
    unsafe {
        // Every LWLock that is held counts here. There is none, as nothing of ours takes one for longer than a call; a
        // caller of PostgreSQL that we do not know keeps its own, and has the ERROR.
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
            crate::pg::memory::end();
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

/// What AbortSubTransaction() does first, in its order, as far as it is not about the subtransaction: lets go of locks and stops
/// waiting for anything. (Its timeouts and signals are for an ERROR in a signal handler.)
unsafe fn clean_up() {
    // SAFETY: an ERROR was caught, which has set the reasons to wait with interrupts to 0. No LWLock is anybody else's, as
    // attempt() has seen before.
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

/// Lets go of what an owner has.
unsafe fn release(owner: pg_sys::ResourceOwner) {
    use pg_sys::ResourceReleasePhase as Phase;
    // SAFETY: all three phases, in their order, as for any owner that is given up.
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
pub(in crate::pg) unsafe fn delete_owner(owner: pg_sys::ResourceOwner) {
    // SAFETY: the caller's owner, deleted once.
    unsafe {
        release(owner);
        pg_sys::ResourceOwnerDelete(owner);
    }
}
