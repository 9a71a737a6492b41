//! Which parts of a small region of memory are used, in granules of equal size.
//!
//! Guarantees: runs that are taken do not overlap, and what was given back can be taken again, in whatever order that
//! happened. It prevents a reserve that is used up because one piece of it was kept.

/// Granules of a region, a bit for each.
pub struct Granules<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Granules<WORDS> {
    /// All of them free.
    pub const FREE: Self = Granules([0; WORDS]);

    /// Takes `len` neighbouring granules below `end`, the first that are free, and says where they begin.
    pub fn take(&mut self, len: usize, end: usize) -> Option<usize> {
        let mut run = 0;
        for i in 0..end.min(64 * WORDS) {
            run = if self.is_used(i) { 0 } else { run + 1 };
            if run == len.max(1) {
                let start = i + 1 - run;
                (start..=i).for_each(|i| self.0[i / 64] |= 1 << (i % 64));
                return Some(start);
            }
        }
        None
    }

    /// Gives back `len` granules, which begin at `start`.
    pub fn give_back(&mut self, start: usize, len: usize) {
        (start..start + len.max(1)).for_each(|i| self.0[i / 64] &= !(1 << (i % 64)));
    }

    fn is_used(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
}
