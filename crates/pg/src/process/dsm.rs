//! Dynamic shared memory, by the segment.
//!
//! Segments belong to the resource owner under which they were made or attached, and go away with it after an ERROR;
//! nothing happens when a Rust value is dropped.
//!
//! To have no room for a segment need not be the end of a statement, so that is asked before ([`no_room`]). Whatever
//! else may refuse one, or take the room meanwhile, is an ERROR of PostgreSQL's, as in its own parallel queries: it has
//! locks and half-made segments, which only the end of a (sub)transaction gives back.

use bytemuck::{AnyBitPattern, NoUninit};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
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
        if let Some(why) = no_room(bytes) {
            self.refused.replace(Some(why));
            return None;
        }
        // SAFETY: makes a segment, or raises an ERROR.
        let segment = unsafe { pg_sys::dsm_create(bytes, pg_sys::DSM_CREATE_NULL_IF_MAXSEGMENTS as i32) };
        if segment.is_null() {
            self.refused.replace(Some("too many segments".to_owned()));
            return None;
        }
        self.hold(segment)
    }

    /// A segment that another process has made, and that is not attached here. None if it is gone.
    pub fn attach_new(&self, handle: Handle) -> Option<Segment> {
        // SAFETY: only looks for it.
        let is_new = unsafe { pg_sys::dsm_find_mapping(handle) }.is_null();
        if is_new { self.attach(handle) } else { None }
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

/// Why there is no room for a segment of this many bytes, if that is known.
pub(super) fn no_room(bytes: usize) -> Option<String> {
    // SAFETY: plain settings; the working directory of a session is the data directory.
    unsafe {
        let place: &CStr = match pg_sys::dynamic_shared_memory_type as u32 {
            // may have room that was set aside when the server started
            _ if pg_sys::min_dynamic_shared_memory > 0 => return None,
            pg_sys::DSM_IMPL_POSIX => c"/dev/shm",
            pg_sys::DSM_IMPL_MMAP => c"pg_dynshmem",
            _ => return None,
        };
        let mut system: libc::statvfs = std::mem::zeroed();
        // of no size at all if it has no limit
        if libc::statvfs(place.as_ptr(), &mut system) != 0 || system.f_blocks == 0 {
            return None;
        }
        let left = system.f_bavail.saturating_mul(system.f_frsize);
        let place = place.to_string_lossy();
        (left < bytes as u64).then(|| format!("{bytes} bytes are needed and {left} are left in {place}"))
    }
}
