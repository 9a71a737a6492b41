//! malloc, and a reserve next to it.

use super::granules::Granules;
use super::state::{error_is_on_its_way, may_use_reserve};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bytes of the reserve: what is small and what errors of one transaction may take, their messages, copies of them and
/// what destructors need. It is address space alone until it is used.
const RESERVE_BYTES: usize = 4 << 20;

/// The part of it that is for errors alone.
const FOR_ERRORS: usize = 1 << 20;

/// The system's allocator. An allocation that it refuses comes from the reserve, if it is small or an error is on its
/// way. If not, it fails if its caller handles that, and ends the session if not: an allocator must not unwind, and
/// Rust's collections would abort the process.
pub struct Allocator;

/// What ends the session, given the size of an allocation that has failed. It is set when a server has loaded the
/// library: a program that has no server's functions, such as that of `cargo pgrx test`, has this allocator, too.
pub static END_SESSION: OnceLock<fn(usize) -> !> = OnceLock::new();

/// Bytes of the reserve that are given out together: no alignment that is asked for is larger.
const GRANULE: usize = 64;

#[repr(align(64))]
struct Region(UnsafeCell<[u8; RESERVE_BYTES]>);

// SAFETY: which part of it is whose is in RESERVE, under a lock.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([0; RESERVE_BYTES]));

/// Which part of the region is used.
struct Reserve(Granules<{ RESERVE_BYTES / GRANULE / 64 }>);

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve(Granules::FREE));

impl Reserve {
    /// A place for `layout`, or null.
    fn take(layout: Layout) -> *mut u8 {
        let room = if error_is_on_its_way() { RESERVE_BYTES } else { RESERVE_BYTES - FOR_ERRORS };
        if layout.align() > GRANULE {
            return null_mut();
        }
        let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
        match reserve.0.take(layout.size().div_ceil(GRANULE), room / GRANULE) {
            Some(start) => REGION.0.get().cast::<u8>().wrapping_add(start * GRANULE),
            None => null_mut(),
        }
    }

    /// Takes back what [`take`](Reserve::take) gave for this layout.
    fn give_back(at: *mut u8, layout: Layout) {
        let start = at.addr() - REGION.0.get().addr();
        let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
        reserve.0.give_back(start / GRANULE, layout.size().div_ceil(GRANULE));
    }

    fn holds(at: *mut u8) -> bool {
        at.addr().wrapping_sub(REGION.0.get().addr()) < RESERVE_BYTES
    }
}

/// A place for what malloc has refused. Null only for callers that handle it.
#[cold]
fn after_malloc(layout: Layout) -> *mut u8 {
    let place = if may_use_reserve(layout.size()) { Reserve::take(layout) } else { null_mut() };
    if place.is_null()
        && !allocation::may_fail()
        && let Some(end_session) = END_SESSION.get()
    {
        end_session(layout.size());
    }
    place
}

// SAFETY: the rest from the system goes back to it; places in the reserve are disjoint, aligned and never moved.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        let given = unsafe { System.alloc(layout) };
        if given.is_null() { after_malloc(layout) } else { given }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout; a place of the reserve may have been used before.
        unsafe {
            let given = System.alloc_zeroed(layout);
            if !given.is_null() {
                return given;
            }
            let place = after_malloc(layout);
            if !place.is_null() {
                place.write_bytes(0, layout.size());
            }
            place
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if Reserve::holds(at) {
            return Reserve::give_back(at, layout);
        }
        // SAFETY: not the reserve's, so the system's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's pointer, layout and size, which is valid for the alignment; two places do not overlap.
        unsafe {
            let new_layout = Layout::from_size_align_unchecked(new_size, layout.align());
            let new = if Reserve::holds(at) {
                self.alloc(new_layout)
            } else {
                let given = System.realloc(at, layout, new_size);
                if !given.is_null() {
                    return given;
                }
                after_malloc(new_layout)
            };
            if !new.is_null() {
                new.copy_from_nonoverlapping(at, layout.size().min(new_size));
                self.dealloc(at, layout);
            }
            new
        }
    }
}
