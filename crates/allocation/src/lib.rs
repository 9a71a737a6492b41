//! Fallible allocation of whatever may be large.
//!
//! Guarantees: an allocation made here that fails is an error: a value ([`OutOfMemory`]) from the functions that are
//! called `try_`, else the host's, raised by [the function that it has set](set_host). It prevents the end of the
//! process, which is what Rust's collections do when memory runs out.
//!
//! The host's global allocator may treat all other allocations in a way of its own, since those never handle failure:
//! [`may_fail`] tells the two apart.

use bytemuck::Zeroable;
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;

/// An allocation has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: could not allocate {bytes} bytes")]
pub struct OutOfMemory {
    /// The size of the allocation, in bytes.
    pub bytes: usize,
}

thread_local! {
    static HOST: Cell<fn(usize) -> !> = const { Cell::new(abort) };
    /// read by global allocators: it needs no memory, and has no destructor
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Without a host: what Rust's collections do.
fn abort(bytes: usize) -> ! {
    handle_alloc_error(Layout::array::<u8>(bytes).unwrap_or(Layout::new::<u8>()))
}

/// Has `out_of_memory` called from now on, with the number of bytes, where an allocation of this thread fails. It may
/// unwind: what was to grow is as it was.
pub fn set_host(out_of_memory: fn(usize) -> !) {
    HOST.set(out_of_memory);
}

/// Is an allocation in progress whose caller handles failure? For the host's global allocator.
#[inline]
pub fn may_fail() -> bool {
    // what a panic allocates on its way is not the caller's
    MAY_FAIL.get() && !std::thread::panicking()
}

/// Runs `allocate`, which handles the failure of each of its allocations, such as `try_reserve` of a map.
#[inline]
pub fn fallible<R>(allocate: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            MAY_FAIL.set(self.0);
        }
    }
    let _restore = Restore(MAY_FAIL.replace(true));
    allocate()
}

/// The result, or the host's error.
#[inline]
pub fn expect<T>(result: Result<T, OutOfMemory>) -> T {
    result.unwrap_or_else(|error| HOST.get()(error.bytes))
}

/// Makes room for `more` items, and for as many again as there are, as [`Vec::try_reserve`].
#[inline]
pub fn try_reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if more <= items.capacity() - items.len() {
        return Ok(());
    }
    fallible(|| items.try_reserve(more)).map_err(|_| out_of_memory::<T>(items.len(), more))
}

/// Makes room for exactly `more` items, as [`Vec::try_reserve_exact`].
#[inline]
pub fn try_reserve_exact<T>(items: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    if more <= items.capacity() - items.len() {
        return Ok(());
    }
    fallible(|| items.try_reserve_exact(more)).map_err(|_| out_of_memory::<T>(items.len(), more))
}

#[cold]
fn out_of_memory<T>(len: usize, more: usize) -> OutOfMemory {
    OutOfMemory { bytes: len.saturating_add(more).saturating_mul(size_of::<T>()) }
}

/// `len` zeros, which large memory comes as: none are written.
pub fn try_zeros<T: Zeroable>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    fallible(|| bytemuck::try_zeroed_vec(len)).map_err(|()| out_of_memory::<T>(0, len))
}

/// `len` zeros. The host's error if that fails.
pub fn zeros<T: Zeroable>(len: usize) -> Vec<T> {
    expect(try_zeros(len))
}

/// Room for `len` items. The host's error if that fails.
pub fn with_capacity<T>(len: usize) -> Vec<T> {
    let mut items = Vec::new();
    expect(try_reserve_exact(&mut items, len));
    items
}

/// `len` times the same. The host's error if that fails.
pub fn filled<T: Clone>(item: T, len: usize) -> Vec<T> {
    let mut items = with_capacity(len);
    items.resize(len, item);
    items
}

/// A copy. The host's error if that fails.
pub fn copy<T: Copy>(items: &[T]) -> Vec<T> {
    let mut copy = with_capacity(items.len());
    copy.extend_from_slice(items);
    copy
}

/// Has a map, or another collection of `bytes`, make room by its own `try_reserve`. The host's error if that fails.
#[cold]
pub fn grow<E>(bytes: usize, try_reserve: impl FnOnce() -> Result<(), E>) {
    expect(fallible(try_reserve).map_err(|_| OutOfMemory { bytes }));
}

/// As [`Vec::reserve`]. The host's error if that fails.
#[inline]
pub fn reserve<T>(items: &mut Vec<T>, more: usize) {
    expect(try_reserve(items, more));
}

/// As [`Vec::resize`]. The host's error if that fails.
#[inline]
pub fn resize<T: Clone>(items: &mut Vec<T>, len: usize, item: T) {
    reserve(items, len.saturating_sub(items.len()));
    items.resize(len, item);
}

/// As [`Vec::push`]. The host's error if that fails.
#[inline]
pub fn push<T>(items: &mut Vec<T>, item: T) {
    reserve(items, 1);
    items.push(item);
}

/// As [`Vec::extend_from_slice`]. The host's error if that fails.
#[inline]
pub fn append<T: Copy>(items: &mut Vec<T>, more: &[T]) {
    reserve(items, more.len());
    items.extend_from_slice(more);
}

/// As [`Vec::extend`](Extend::extend). The host's error if that fails.
#[inline]
pub fn extend<T>(items: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    let more = more.into_iter();
    let (least, most) = more.size_hint();
    reserve(items, least);
    if most == Some(least) {
        items.extend(more);
    } else {
        more.for_each(|item| push(items, item));
    }
}

/// As [`Iterator::collect`]. The host's error if that fails.
#[inline]
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let items = items.into_iter();
    let mut all = with_capacity(items.size_hint().0);
    extend(&mut all, items);
    all
}

/// Bytes that are written one after the other. The host's error if there is no memory for them.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl std::io::Write for Bytes {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        append(&mut self.0, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use std::alloc::{GlobalAlloc, System};
    use std::io::Write;
    use std::panic::catch_unwind;

    /// An allocator that, as a host's, gives nothing larger than a megabyte, and remembers who has asked.
    struct Small;

    const MOST: usize = if cfg!(miri) { 1 << 14 } else { 1 << 20 };

    thread_local! {
        static REFUSED_TO_FALLIBLE: Cell<usize> = const { Cell::new(0) };
        static REFUSED_TO_OTHERS: Cell<usize> = const { Cell::new(0) };
    }

    impl Small {
        fn refuses(bytes: usize) -> bool {
            let refused = if may_fail() { &REFUSED_TO_FALLIBLE } else { &REFUSED_TO_OTHERS };
            let refuses = bytes > MOST;
            refused.set(refused.get() + usize::from(refuses));
            refuses
        }
    }

    // SAFETY: the system's allocator, or nothing.
    unsafe impl GlobalAlloc for Small {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: the caller's layout.
            if Small::refuses(layout.size()) { std::ptr::null_mut() } else { unsafe { System.alloc(layout) } }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(at, layout) }
        }
    }

    #[global_allocator]
    static SMALL: Small = Small;

    /// What this raises, as the host of these tests does: the number of bytes.
    fn refused<R>(f: impl FnOnce() -> R + std::panic::UnwindSafe) -> usize {
        set_host(|bytes| std::panic::resume_unwind(Box::new(bytes)));
        let before = REFUSED_TO_FALLIBLE.get();
        let error = catch_unwind(f).err().expect("it is refused");
        assert_eq!(REFUSED_TO_FALLIBLE.get(), before + 1, "the allocator has seen that it may refuse");
        assert!(!may_fail(), "and that it may not any more");
        *error.downcast().expect("a number of bytes")
    }

    #[test]
    fn what_is_refused_is_an_error_of_the_host() {
        assert_eq!(refused(|| with_capacity::<u64>(MOST)), 8 * MOST);
        assert_eq!(refused(|| zeros::<f64>(MOST)), 8 * MOST);
        assert_eq!(refused(|| filled(1_u16, MOST)), 2 * MOST);
        assert_eq!(refused(|| collect((0..MOST as u32).map(|i| i + 1))), 4 * MOST);
        assert_eq!(refused(|| copy(&[0_u8; MOST + 1])), MOST + 1);
        assert_eq!(refused(|| resize(&mut vec![1_u8], 2 * MOST, 7)), 2 * MOST);
        assert_eq!(refused(|| append(&mut vec![1_u8], &[0_u8; MOST])), MOST + 1);
        assert_eq!(refused(|| Bytes(vec![1]).write_all(&[0; MOST])), MOST + 1);
        assert_eq!(REFUSED_TO_OTHERS.get(), 0);
    }

    #[test]
    fn maps_grow_by_their_own_function() {
        let mut map = std::collections::HashMap::<u64, u64>::new();
        grow(0, || map.try_reserve(10));
        assert!(map.capacity() >= 10);
        assert_eq!(refused(move || grow(7, || map.try_reserve(MOST))), 7);
    }

    #[test]
    fn what_grows_item_by_item_is_refused_when_it_is_large() {
        let bytes = refused(|| collect((0..u32::MAX).filter(|i| i % 2 == 0)));
        assert!((MOST..=2 * MOST).contains(&bytes), "{bytes}");
    }

    #[test]
    fn values_say_what_is_refused_where_somebody_handles_it() {
        let mut items = vec![1_u32];
        assert_eq!(try_reserve(&mut items, MOST), Err(OutOfMemory { bytes: 4 * MOST + 4 }));
        assert_eq!(try_reserve_exact(&mut items, usize::MAX), Err(OutOfMemory { bytes: usize::MAX }));
        assert_eq!(try_zeros::<u32>(MOST), Err(OutOfMemory { bytes: 4 * MOST }));
        assert_eq!(try_zeros::<u64>(usize::MAX), Err(OutOfMemory { bytes: usize::MAX }), "no allocator is asked");
        assert_eq!(items, [1]);
        assert!(fallible(|| std::collections::HashSet::<u64>::new().try_reserve(MOST)).is_err());
    }

    #[test]
    fn what_there_is_room_for_is_as_without() {
        let mut items = collect([1, 2, 3]);
        push(&mut items, 4);
        append(&mut items, &[5, 6]);
        extend(&mut items, (0..10).filter(|i| *i >= 7));
        resize(&mut items, 10, 0);
        assert_eq!(items, [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        assert_eq!(copy(&items), items);
        assert_eq!((zeros::<u8>(3), filled(7, 2), zeros::<u8>(0)), (vec![0; 3], vec![7; 2], vec![]));
    }

    #[test]
    fn an_error_on_the_way_leaves_nothing_behind() {
        // no panic of its own: what that prints takes more than this allocator gives
        assert!(catch_unwind(|| fallible(|| std::panic::resume_unwind(Box::new("a hash function")))).is_err());
        assert!(!may_fail());
    }
}
