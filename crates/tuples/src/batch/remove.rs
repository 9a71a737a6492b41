//! How tuples go.

use super::Batch;
use super::rows::{DENSE_ONLY, Rows};

impl Batch {
    /// Removes all tuples behind the first `len`; the order becomes the identity again.
    pub fn truncate(&mut self, len: usize) {
        let len = len.min(self.len);
        self.len = len;
        self.columns.truncate(len);
        match &mut self.rows {
            Rows::Dense(_) => {}
            Rows::Sparse(sparse) => sparse.truncate(len),
            Rows::MiniBatches(mini_batches) => mini_batches.truncate(len),
        }
        self.order.resize(len, len);
    }

    /// Takes the last tuple back, if there is one; the order becomes the identity again. Whatever indices a sparse
    /// tuple had, they do not count for [`dim`](Batch::dim), if it was the last one to be pushed.
    pub fn pop(&mut self) {
        self.truncate(self.len.saturating_sub(1));
    }

    /// Removes the tuples behind the first `first` whose label `keep` refuses; the others close up in their sequence,
    /// and the order becomes the identity again.
    pub fn retain_from(&mut self, first: usize, keep: impl Fn(f32) -> bool) {
        let first = first.min(self.len);
        let kept = (first..self.len).filter(|i| keep(self.columns.labels[*i]));
        let places: Vec<u32> = allocation::collect(kept.map(|i| i as u32));
        if first + places.len() < self.len {
            self.close_up(first, &places);
        }
        self.truncate(first + places.len());
    }

    /// Keeps the tuples at `places`, which ascend; they close up in their sequence, the others are removed, and the
    /// order becomes the identity again.
    ///
    /// # Panics
    /// If the places do not ascend or there is no tuple at one of them.
    pub fn retain(&mut self, places: &[u32]) {
        assert!(places.is_sorted_by(|a, b| a < b), "places ascend");
        assert!(places.last().is_none_or(|&last| (last as usize) < self.len), "no tuple behind the last");
        self.close_up(0, places);
        self.truncate(places.len());
    }

    /// Moves dense tuples or blocks, one after the other, each from one place to another where it replaces what is
    /// there; then removes those behind the first `len`. The order becomes the identity again.
    ///
    /// # Panics
    /// If there is no tuple at one of the places, or the batch is sparse, where a tuple may not fit another's place.
    pub fn fill_holes(&mut self, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        for (from, to) in moves.map(|(from, to)| (from as usize, to as usize)) {
            assert!(from.max(to) < self.len, "no tuple {} in a batch of {}", from.max(to), self.len);
            self.columns.copy(from, to);
            match &mut self.rows {
                Rows::Dense(dense) => dense.copy(from, to),
                Rows::Sparse(_) => panic!("{DENSE_ONLY}"),
                Rows::MiniBatches(mini_batches) => mini_batches.copy(from, to),
            }
        }
        self.truncate(len);
    }

    /// Moves the tuples at ascending places, none of them before `first`, to the places from `first` on.
    fn close_up(&mut self, first: usize, places: &[u32]) {
        let places = || places.iter().map(|&place| place as usize);
        for (to, from) in (first..).zip(places()).filter(|(to, from)| to != from) {
            self.columns.copy(from, to);
            match &mut self.rows {
                Rows::Dense(dense) => dense.copy(from, to),
                Rows::Sparse(_) => {} // all at once
                Rows::MiniBatches(mini_batches) => mini_batches.copy(from, to),
            }
        }
        if let Rows::Sparse(sparse) = &mut self.rows {
            sparse.retain_from(first, places());
        }
    }
}
