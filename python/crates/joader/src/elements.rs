//! Which elements a job wants: sorted ranges that neither overlap nor touch.

use std::ops::Range;

use crate::error::SamplerError;

/// A set of elements, numbered by 32 bits, as ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementSet {
    ranges: Vec<Range<u32>>,
}

impl ElementSet {
    /// The union of these half-open ranges, in whatever order they come. Empty ones do not count.
    pub fn from_ranges(ranges: impl IntoIterator<Item = Range<u32>>) -> Result<Self, SamplerError> {
        let mut sorted = Vec::new();
        for range in ranges {
            if !range.is_empty() {
                allocation::try_reserve(&mut sorted, 1)?;
                sorted.push(range);
            }
        }
        sorted.sort_unstable_by_key(|range| (range.start, range.end));
        // merged in place: what has been merged is never longer than what has been looked at
        let mut merged = 0;
        for place in 0..sorted.len() {
            let range = sorted[place].clone();
            if merged > 0 && range.start <= sorted[merged - 1].end {
                sorted[merged - 1].end = sorted[merged - 1].end.max(range.end);
            } else {
                sorted[merged] = range;
                merged += 1;
            }
        }
        sorted.truncate(merged);
        Ok(Self { ranges: sorted })
    }

    /// The ranges, ascending, with a gap between any two of them.
    pub fn ranges(&self) -> &[Range<u32>] {
        &self.ranges
    }

    /// How many elements these are.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The elements, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// From the first element to the last one.
    pub fn span(&self) -> Range<u32> {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_is_the_union_of_its_ranges(bounds in prop::collection::vec((0_u32..60, 0_u32..60), 0..12)) {
            let ranges = || bounds.iter().map(|&(from, until)| from..until);
            let set = ElementSet::from_ranges(ranges()).unwrap();
            let union: BTreeSet<u32> = ranges().flatten().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), union.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.len(), union.len());
            prop_assert_eq!(set.is_empty(), union.is_empty());
            prop_assert!(set.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn the_largest_numbers_are_elements_too() {
        let set = ElementSet::from_ranges([u32::MAX - 3..u32::MAX, 0..2]).unwrap();
        assert_eq!(set.len(), 5);
        assert_eq!(set.span(), 0..u32::MAX);
    }
}
