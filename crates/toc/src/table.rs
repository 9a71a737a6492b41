//! Value indexing: the distinct values of a mini-batch, each stored once.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Distinct values, by their bits, in the order in which they came first.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: HashMap<u64, u32>,
    values: Vec<f64>,
}

impl Table {
    /// The place of a value, which is added if it is new.
    #[inline]
    pub(crate) fn place(&mut self, value: f64) -> u32 {
        match self.places.entry(value.to_bits()) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                self.values.push(value);
                *vacant.insert(self.values.len() as u32 - 1)
            }
        }
    }

    /// All values.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }
}
