//! Memory of rows that nobody uses any more, kept for whoever needs as much next.
//!
//! Memory that is fresh from the system costs more than what is written to it: pages are cleared, and a virtual machine
//! may have to find them first. A process that trains again and again pays that once. What is kept is
//! [disowned](huge_pages::disown): when the system is short of memory it takes it back.

use crate::huge_pages;
use std::cell::RefCell;

/// Fewer floats are not worth it: the allocator keeps small memory by itself.
const LEAST: usize = (4 << 20) / size_of::<f32>();

/// Floats that are kept at most.
const MOST: usize = (256 << 20) / size_of::<f32>();

thread_local! {
    static SPARE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Floats whose memory is kept when they are dropped.
#[derive(Debug)]
pub(crate) struct Recycled(pub(crate) Vec<f32>);

impl Recycled {
    /// Empty, with memory for at least so many floats; None if there is none to be had.
    pub(crate) fn with_capacity(floats: usize) -> Option<Recycled> {
        let buffer_pool = SPARE.try_with(|buffer_pool| {
            let fits = floats >= LEAST && floats <= buffer_pool.borrow().capacity();
            fits.then(|| buffer_pool.take())
        });
        if let Ok(Some(buffer_pool)) = buffer_pool {
            return Some(Recycled(buffer_pool));
        }
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(floats).ok()?;
        huge_pages::advise(fresh.spare_capacity_mut());
        Some(Recycled(fresh))
    }
}

impl Drop for Recycled {
    fn drop(&mut self) {
        let mut floats = std::mem::take(&mut self.0);
        floats.clear();
        if !(LEAST..=MOST).contains(&floats.capacity()) {
            return;
        }
        // at the end of the thread there is no such place any more
        let _ = SPARE.try_with(|buffer_pool| {
            let mut buffer_pool = buffer_pool.borrow_mut();
            if floats.capacity() > buffer_pool.capacity() && huge_pages::disown(floats.spare_capacity_mut()) {
                *buffer_pool = floats;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOATS: usize = 2 << 20;

    #[test]
    fn memory_is_used_again() {
        let first = Recycled::with_capacity(FLOATS).unwrap();
        let at = first.0.as_ptr();
        drop(first);
        let smaller = Recycled::with_capacity(FLOATS - 1000).unwrap();
        assert_eq!((smaller.0.as_ptr(), smaller.0.len()), (at, 0));
        assert_ne!(Recycled::with_capacity(FLOATS).unwrap().0.as_ptr(), at, "it is in use");
        drop(smaller);
        assert_ne!(Recycled::with_capacity(2 * FLOATS).unwrap().0.as_ptr(), at, "it does not suffice");
    }

    #[test]
    fn neither_little_nor_too_much_is_kept() {
        drop(Recycled::with_capacity(1000).unwrap());
        drop(Recycled::with_capacity(MOST + 1).unwrap());
        assert_eq!(SPARE.with_borrow(Vec::capacity), 0);
    }

    #[test]
    fn impossible_memory_is_refused() {
        assert!(Recycled::with_capacity(usize::MAX / size_of::<f32>()).is_none());
    }
}
