//! Numbers of the byte strings that were looked up last.
//!
//! Guarantees: a number that is found is that of the same bytes. It prevents that a look-up in a dictionary, which
//! hashes the bytes, follows a reference and compares the bytes there, is made for each value of a column that has the
//! same few values again and again.

/// Places in a table: together they lie in the first level of a processor's caches, of several columns, too.
const PLACES: usize = 128;

/// Short bytes as a whole: their length, and two words that have all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortBytes {
    words: [u64; 2],
    len: u32,
}

/// The number that short bytes have, or none, in the place that their hash says.
#[derive(Debug)]
pub struct Recent {
    places: Box<[(ShortBytes, u32)]>,
}

impl ShortBytes {
    /// No bytes have this length.
    const NONE: ShortBytes = ShortBytes { words: [0; 2], len: u32::MAX };

    /// The bytes; None of more than 16.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Option<ShortBytes> {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let half = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
        // the two words overlap unless there are twice as many bytes
        let words = match (bytes.first_chunk(), bytes.last_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last), ..) => [word(first), word(last)],
            (_, _, Some(first), Some(last)) => [half(first), half(last)],
            _ => [bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0],
        };
        (bytes.len() <= 16).then_some(ShortBytes { words, len: bytes.len() as u32 })
    }

    #[inline(always)]
    fn place(self) -> usize {
        let [first, last] = self.words;
        let mixed = (first ^ last.rotate_left(29)).wrapping_add(self.len.into()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - PLACES.ilog2())) as usize
    }
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { places: allocation::filled((ShortBytes::NONE, 0), PLACES).into_boxed_slice() }
    }
}

impl Recent {
    /// The number of these bytes, if it is known.
    #[inline(always)]
    pub fn get(&self, bytes: ShortBytes) -> Option<u32> {
        let (known, number) = self.places[bytes.place()];
        (known == bytes).then_some(number)
    }

    /// These bytes have this number. Others may be forgotten.
    #[inline]
    pub fn set(&mut self, bytes: ShortBytes, number: u32) {
        self.places[bytes.place()] = (bytes, number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_known_is_what_was_said_last(
            strings in prop::collection::vec(prop::collection::vec(0u8..3, 0..20), 1..400),
        ) {
            let (mut recent, mut all) = (Recent::default(), HashMap::new());
            for (number, string) in (0u32..).zip(&strings) {
                let Some(bytes) = ShortBytes::new(string) else {
                    prop_assert!(string.len() > 16);
                    continue;
                };
                if let Some(found) = recent.get(bytes) {
                    prop_assert_eq!(Some(&found), all.get(string), "{:?}", string);
                }
                recent.set(bytes, number);
                prop_assert_eq!(recent.get(bytes), Some(number));
                all.insert(string.clone(), number);
            }
        }
    }

    #[test]
    fn strings_with_the_same_beginning_and_end_are_different() {
        let strings =
            ["", "\0", "\0\0", "a", "aa", "aaa", "aaaa", "aaaaa", "aaaaaaaa", "aaaaaaaaa", "aaaaaaaabaaaaaaaa"];
        let keys: Vec<_> = strings.iter().filter_map(|string| ShortBytes::new(string.as_bytes())).collect();
        assert_eq!(keys.len(), strings.len() - 1);
        for (i, key) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|other| other != key));
        }
    }

    #[test]
    fn a_few_values_are_all_known() {
        let mut recent = Recent::default();
        let values = ["red", "green", "blue", "yellow"].map(|name| ShortBytes::new(name.as_bytes()).unwrap());
        values.iter().zip(0..).for_each(|(value, number)| recent.set(*value, number));
        assert_eq!(values.map(|value| recent.get(value)), [0, 1, 2, 3].map(Some));
    }
}
