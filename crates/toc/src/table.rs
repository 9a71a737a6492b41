//! Value indexing: the distinct values of a mini-batch, each stored once.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Makes room for one more entry.
#[inline]
pub(crate) fn make_room<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.len() == map.capacity() {
        allocation::grow(2 * map.allocation_size(), || map.try_reserve(1));
    }
}

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
        make_room(&mut self.places);
        match self.places.entry(value.to_bits()) {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                allocation::push(&mut self.values, value);
                *vacant.insert(self.values.len() as u32 - 1)
            }
        }
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }
}
