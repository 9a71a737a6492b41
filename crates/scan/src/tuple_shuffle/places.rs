//! Places of sparse tuples in a batch.

use tuples::Batch;

/// Where sparse tuples are in the batch that are said to be in other places: none fits the place of another, so that
/// all close up in their sequence. Without entries every tuple is where it is said to be.
#[derive(Default)]
pub struct SparsePlaces(Vec<u32>);

impl SparsePlaces {
    /// Moves what is said of the tuples, and removes all behind the first `len`.
    pub fn keep(&mut self, batch: &mut Batch, moves: impl Iterator<Item = (u32, u32)>, len: usize) {
        moves.for_each(|(from, to)| self.0[to as usize] = self.0[from as usize]);
        self.0.truncate(len);
        // marked, then counted
        let mut moved: Vec<u32> = allocation::zeros(batch.len());
        self.0.iter().for_each(|place| moved[*place as usize] = 1);
        let mut stay = allocation::with_capacity(len);
        for (from, to) in (0..).zip(&mut moved).filter(|(_, stays)| **stays == 1) {
            *to = stay.len() as u32;
            stay.push(from);
        }
        batch.retain(&stay);
        self.0.iter_mut().for_each(|place| *place = moved[*place as usize]);
    }

    /// Makes places that are said those that are.
    pub fn translate(&self, order: &mut [u32]) {
        if !self.0.is_empty() {
            order.iter_mut().for_each(|place| *place = self.0[*place as usize]);
        }
    }

    /// Forgets all tuples.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Is every tuple where it is said to be?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tuples from the last known one up to `len` are where they are said to be.
    pub fn extend_to(&mut self, len: usize) {
        let first = self.0.len() as u32;
        allocation::extend(&mut self.0, first..len as u32);
    }
}
