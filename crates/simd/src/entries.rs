//! Entries of a sparse row: places in an array, and a value for each.
//!
//! Guarantees: nothing beyond an array is read or written, whatever the indices are: the largest index of a row is
//! found once, many at a time, and compared with the length of the array; then no index needs a look of its own. Sums
//! have an order that is written here, the same for every instruction set.
#![allow(unsafe_code)]

/// Independent sums: entry i goes to sum i mod 4.
const SUMS: usize = 4;

/// Indices that are compared at once.
const LANES: usize = 16;

/// A row's indices, all of them below a bound, and as many values.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    indices: &'a [u32],
    values: &'a [f32],
    bound: usize,
}

impl<'a> Entries<'a> {
    /// These entries; None if an index is not below `bound`, or there are not as many values as indices.
    #[inline(always)]
    pub fn new(indices: &'a [u32], values: &'a [f32], bound: usize) -> Option<Entries<'a>> {
        let fits = indices.is_empty() || (largest(indices) as usize) < bound;
        (fits && indices.len() == values.len()).then_some(Entries { indices, values, bound })
    }

    /// The dot product with `weights`, and with `SQUARE` that of the values with themselves, else 0.
    ///
    /// # Panics
    /// If there are fewer weights than the bound says.
    #[inline(always)]
    pub fn dot<const SQUARE: bool>(self, weights: &[f32]) -> [f32; 2] {
        assert!(weights.len() >= self.bound, "weights up to the bound");
        // SAFETY: `new` has seen that every index is below the bound, and there are as many weights.
        let weight = |index: u32| unsafe { *weights.get_unchecked(index as usize) };
        let (mut sums, mut squares) = ([0.0; SUMS], [0.0; SUMS]);
        let (indices, indices_rest) = self.indices.as_chunks::<SUMS>();
        let (values, values_rest) = self.values.as_chunks::<SUMS>();
        for (indices, values) in indices.iter().zip(values) {
            for i in 0..SUMS {
                sums[i] += weight(indices[i]) * values[i];
                if SQUARE {
                    squares[i] += values[i] * values[i];
                }
            }
        }
        for (i, (&index, x)) in indices_rest.iter().zip(values_rest).enumerate() {
            sums[i] += weight(index) * x;
            if SQUARE {
                squares[i] += x * x;
            }
        }
        [sums, squares].map(|[a, b, c, d]| (a + b) + (c + d))
    }

    /// Adds `factor` times the values to `weights`, entry by entry.
    ///
    /// # Panics
    /// If there are fewer weights than the bound says.
    #[inline(always)]
    pub fn add_to(self, weights: &mut [f32], factor: f32) {
        assert!(weights.len() >= self.bound, "weights up to the bound");
        for (&index, x) in self.indices.iter().zip(self.values) {
            // SAFETY: `new` has seen that every index is below the bound, and there are as many weights.
            *unsafe { weights.get_unchecked_mut(index as usize) } += factor * x;
        }
    }
}

/// The dot product of values with themselves, to the same bits as [`Entries::dot`].
#[inline(always)]
pub fn square(values: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    let (chunks, rest) = values.as_chunks::<SUMS>();
    for chunk in chunks {
        for i in 0..SUMS {
            sums[i] += chunk[i] * chunk[i];
        }
    }
    sums.iter_mut().zip(rest).for_each(|(sum, x)| *sum += x * x);
    let [a, b, c, d] = sums;
    (a + b) + (c + d)
}

/// The largest of some numbers; 0 of none.
#[inline(always)]
fn largest(indices: &[u32]) -> u32 {
    let (chunks, rest) = indices.as_chunks::<LANES>();
    let mut lanes = [0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = lanes[lane].max(chunk[lane]);
        }
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(0, u32::max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kernel, Level, Simd};

    /// What is done with a row by each instruction set.
    struct Both<'a>(&'a [u32], &'a [f32], &'a [f32], f32);

    impl Kernel for Both<'_> {
        type Output = Option<([f32; 2], [f32; 2], Vec<f32>)>;

        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> Self::Output {
            let Both(indices, values, weights, factor) = self;
            let entries = Entries::new(indices, values, weights.len())?;
            let mut stepped = weights.to_vec();
            entries.add_to(&mut stepped, factor);
            Some((entries.dot::<true>(weights), entries.dot::<false>(weights), stepped))
        }
    }

    /// The same, one entry after the other.
    fn one_by_one(indices: &[u32], values: &[f32], weights: &[f32], factor: f32) -> ([f32; 2], Vec<f32>) {
        let (mut sums, mut squares, mut stepped) = ([0.0; 4], [0.0; 4], weights.to_vec());
        for (i, (&index, &x)) in indices.iter().zip(values).enumerate() {
            sums[i % 4] += weights[index as usize] * x;
            squares[i % 4] += x * x;
            stepped[index as usize] += factor * x;
        }
        ([sums, squares].map(|s| (s[0] + s[1]) + (s[2] + s[3])), stepped)
    }

    proptest! {
        #[test]
        fn rows_are_multiplied_and_added_as_one_entry_after_the_other_by_every_instruction_set(
            weights in prop::collection::vec(-10.0f32..10.0, 1..200),
            entries in prop::collection::vec((any::<prop::sample::Index>(), -1e3f32..1e3), 0..150),
            factor in -2.0f32..2.0,
        ) {
            // in any order, some of them twice
            let indices: Vec<u32> = entries.iter().map(|(place, _)| place.index(weights.len()) as u32).collect();
            let values: Vec<f32> = entries.iter().map(|entry| entry.1).collect();
            let (dots, stepped) = one_by_one(&indices, &values, &weights, factor);
            for level in Level::available() {
                let found = level.run(Both(&indices, &values, &weights, factor)).unwrap();
                prop_assert_eq!(&found, &(dots, [dots[0], 0.0], stepped.clone()), "{:?}", level);
            }
            prop_assert_eq!(square(&values), dots[1]);
            let exact: f64 = values.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
            prop_assert!((f64::from(dots[1]) - exact).abs() <= 5e-6 * exact);
        }

        #[test]
        fn an_index_beyond_is_found_wherever_it_is(len in 1usize..100, place in 0usize..100, beyond in 5u32..) {
            let mut indices = vec![4; len];
            indices[place % len] = beyond;
            let values = vec![1.0; len];
            for level in Level::available() {
                prop_assert!(level.run(Both(&indices, &values, &[0.0; 5], 1.0)).is_none());
            }
            prop_assert!(Entries::new(&indices, &values, beyond as usize + 1).is_some());
        }
    }

    #[test]
    fn a_row_without_entries_needs_no_weights_and_one_with_too_few_values_is_none() {
        assert_eq!(Entries::new(&[], &[], 0).unwrap().dot::<true>(&[]), [0.0, 0.0]);
        assert!(Entries::new(&[0], &[], 1).is_none() && Entries::new(&[], &[1.0], 1).is_none());
    }

    #[test]
    #[should_panic(expected = "weights up to the bound")]
    fn fewer_weights_than_were_said_are_refused() {
        Entries::new(&[0], &[1.0], 9).unwrap().dot::<false>(&[0.0; 8]);
    }

    #[test]
    #[should_panic(expected = "weights up to the bound")]
    fn fewer_weights_than_were_said_are_not_stepped() {
        Entries::new(&[0], &[1.0], 9).unwrap().add_to(&mut [0.0; 8], 1.0);
    }
}
