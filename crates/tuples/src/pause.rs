//! Pauses of long computations, in which their host may look whether they are still wanted.
//!
//! Guarantees: between two pauses lie some milliseconds' work, however large what is computed with, where its size
//! follows from an argument or the data. The host may end a computation by unwinding out of a pause: what was computed
//! with is then half finished, and to be thrown away.
//! It prevents statements that neither a cancel nor a timeout reaches for seconds.

use std::cell::Cell;

/// Numbers that are gone through between two pauses, if each takes a few nanoseconds at most.
pub const PER_PAUSE: usize = 1 << 16;

thread_local! {
    static HOST: Cell<fn()> = const { Cell::new(|| ()) };
}

/// Has this thread's pauses spent in `host` from now on.
pub fn set_host(host: fn()) {
    HOST.set(host);
}

/// Makes a pause.
#[inline]
pub fn pause() {
    HOST.get()();
}

/// Makes a pause whenever so much was done.
#[derive(Debug, Default)]
pub struct Pauses(usize);

impl Pauses {
    /// This many numbers more were gone through.
    #[inline(always)]
    pub fn after(&mut self, numbers: usize) {
        self.0 += numbers;
        if self.0 >= PER_PAUSE {
            self.0 = 0;
            pause();
        }
    }
}

/// The same items, with pauses.
pub fn pausing<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let mut pauses = Pauses::default();
    items.into_iter().inspect(move |_| pauses.after(1))
}

/// Parts of a slice, with a pause before each.
pub fn parts<T>(all: &[T]) -> impl Iterator<Item = &[T]> {
    all.chunks(PER_PAUSE).inspect(|_| pause())
}

/// Parts of a slice that is changed, with a pause before each.
pub fn parts_mut<T>(all: &mut [T]) -> impl Iterator<Item = &mut [T]> {
    all.chunks_mut(PER_PAUSE).inspect(|_| pause())
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static MADE: Cell<usize> = const { Cell::new(0) };
    }

    /// How many pauses something makes.
    fn made(f: impl FnOnce()) -> usize {
        set_host(|| MADE.set(MADE.get() + 1));
        MADE.set(0);
        f();
        MADE.get()
    }

    #[test]
    fn there_is_a_pause_for_every_so_many_numbers() {
        let numbers = vec![1u8; 10 * PER_PAUSE + 1];
        assert_eq!(made(|| assert_eq!(pausing(&numbers).count(), numbers.len())), 10);
        assert_eq!(made(|| assert_eq!(parts(&numbers).map(<[u8]>::len).sum::<usize>(), numbers.len())), 11);
        assert_eq!(made(|| parts_mut(&mut numbers.clone()).for_each(|part| part.fill(0))), 11);
        let mut pauses = Pauses::default();
        assert_eq!(made(|| (0..1000).for_each(|_| pauses.after(PER_PAUSE / 4))), 250);
    }

    #[test]
    fn the_host_ends_a_computation_by_unwinding() {
        set_host(|| panic!("no longer wanted"));
        let numbers = vec![1u8; 2 * PER_PAUSE];
        let sum = std::panic::catch_unwind(|| pausing(&numbers).map(|x| u32::from(*x)).sum::<u32>());
        assert!(sum.is_err());
    }
}
