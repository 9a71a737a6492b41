//! Memory of rows that no one uses any more, kept for the one that needs as much next.
//!
//! Memory that is fresh from the system costs more than what is written to it: pages are cleared, and a virtual machine
//! may have to find them first. A process that trains again and again pays that once. What is kept is
//! [disowned](huge_pages::disown): when the system is short of memory it takes it back.
//!
//! Guarantees: memory that is given has numbers in it, zeros or what rows before have left, and none of it was written
//! to for that: to clear what the system has just cleared would cost as much as to fill it.
#![allow(unsafe_code)]

use crate::huge_pages;
use std::cell::RefCell;

/// Fewer floats are not worth it: the allocator keeps small memory by itself.
const LEAST: usize = (4 << 20) / size_of::<f32>();

/// Floats that are kept at most.
const MOST: usize = (256 << 20) / size_of::<f32>();

thread_local! {
    static SPARE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Floats whose memory is kept when they are dropped: as many as there is memory for.
#[derive(Debug)]
pub(crate) struct Recycled(pub(crate) Vec<f32>);

impl Recycled {
    /// At least this many floats, of any values; None if there is no memory for them.
    pub(crate) fn of_any_values(floats: usize) -> Option<Recycled> {
        let buffer_pool = SPARE.try_with(|buffer_pool| {
            let fits = floats >= LEAST && floats <= buffer_pool.borrow().capacity();
            fits.then(|| buffer_pool.take())
        });
        if let Ok(Some(mut spare)) = buffer_pool {
            // SAFETY: all of it was floats when it was dropped; where the system has taken pages back, they are zeros.
            unsafe { spare.set_len(spare.capacity()) };
            return Some(Recycled(spare));
        }
        let fresh = allocation::try_zeros(floats).ok().filter(|zeros| !zeros.is_empty())?;
        huge_pages::advise(&fresh);
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
        let mut first = Recycled::of_any_values(FLOATS).unwrap();
        assert!(first.0.iter().all(|x| *x == 0.0));
        first.0.fill(f32::NAN);
        let at = first.0.as_ptr();
        drop(first);
        let smaller = Recycled::of_any_values(FLOATS - 1000).unwrap();
        assert_eq!((smaller.0.as_ptr(), smaller.0.len()), (at, FLOATS));
        assert_ne!(Recycled::of_any_values(FLOATS).unwrap().0.as_ptr(), at, "it is in use");
        drop(smaller);
        assert_ne!(Recycled::of_any_values(2 * FLOATS).unwrap().0.as_ptr(), at, "it does not suffice");
    }

    #[test]
    fn neither_little_nor_too_much_is_kept() {
        drop(Recycled::of_any_values(1000).unwrap());
        drop(Recycled::of_any_values(MOST + 1).unwrap());
        assert_eq!(SPARE.with_borrow(Vec::capacity), 0);
    }

    #[test]
    fn impossible_memory_is_refused() {
        assert!(Recycled::of_any_values(usize::MAX).is_none());
        assert!(Recycled::of_any_values(isize::MAX as usize / size_of::<f32>()).is_none());
        assert!(Recycled::of_any_values(0).is_none());
    }
}
