//! Equality, order and hash of matrices by their entries, whatever their encoding.
//!
//! Guarantees: matrices are equal exactly if they have as many rows and columns and all entries are equal as SQL
//! compares numbers, NaN with itself and 0 with -0; what is equal has the same hash; and the order is total. It
//! prevents the same mini-batch from being distinguished from itself because it was packed in another way.

use std::cmp::Ordering;

use crate::Rows;

/// An entry that is not 0: row, column, value.
type Entry = (usize, u32, f64);

impl Rows {
    /// By the number of columns, then of rows, then entry by entry, row by row; NaN is above all numbers.
    pub fn compare(&self, other: &Rows) -> Ordering {
        let sizes = (self.columns(), self.len()).cmp(&(other.columns(), other.len()));
        sizes.then_with(|| compare_entries(self.entries_by_place(), other.entries_by_place()))
    }

    /// A hash, another one for each seed.
    pub fn hash(&self, seed: u64) -> u64 {
        let sizes = mix(mix(seed, self.columns() as u64), self.len() as u64);
        self.entries_by_place().fold(sizes, |hash, (row, column, value)| {
            let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
            mix(mix(mix(hash, row as u64), u64::from(column)), bits)
        })
    }

    fn entries_by_place(&self) -> impl Iterator<Item = Entry> {
        let rows = self.iter().enumerate();
        let entries = rows.flat_map(|(row, (columns, values))| {
            columns.iter().zip(values).map(move |(column, value)| (row, *column, *value))
        });
        // -0 is 0
        entries.filter(|(.., value)| *value != 0.0)
    }
}

/// Compares at the first place where the entries differ; one that is not there is 0.
fn compare_entries(mut ours: impl Iterator<Item = Entry>, mut theirs: impl Iterator<Item = Entry>) -> Ordering {
    loop {
        let (a, b) = match (ours.next(), theirs.next()) {
            (None, None) => return Ordering::Equal,
            (Some((.., a)), None) => (a, 0.0),
            (None, Some((.., b))) => (0.0, b),
            (Some((row, column, a)), Some((other_row, other_column, b))) => {
                match (row, column).cmp(&(other_row, other_column)) {
                    Ordering::Less => (a, 0.0),
                    Ordering::Equal => (a, b),
                    Ordering::Greater => (0.0, b),
                }
            }
        };
        match compare_numbers(a, b) {
            Ordering::Equal => {}
            different => return different,
        }
    }
}

/// As SQL orders numbers.
fn compare_numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A step of a hash: the finalizer of SplitMix64, of what came before and the next number.
fn mix(hash: u64, next: u64) -> u64 {
    let mut z = (hash ^ next).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(columns: usize, entries: &[f64]) -> Rows {
        let mut rows = Rows::new(columns);
        entries.chunks_exact(columns).for_each(|row| rows.push_dense(row).unwrap());
        rows
    }

    /// What the order is to be: sizes, then all entries, zeros included.
    fn plainly(a: (usize, &[f64]), b: (usize, &[f64])) -> Ordering {
        let sizes = (a.0, a.1.len() / a.0).cmp(&(b.0, b.1.len() / b.0));
        let number = |x: &f64| {
            if *x == 0.0 {
                0.0
            } else if x.is_nan() {
                f64::NAN
            } else {
                *x
            }
        };
        sizes.then_with(|| {
            let pairs = a.1.iter().zip(b.1);
            pairs.map(|(x, y)| number(x).total_cmp(&number(y))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    fn matrices() -> impl Strategy<Value = (usize, Vec<f64>)> {
        let entry = prop::sample::select(vec![
            0.0,
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.5,
            f64::NAN,
            -f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ]);
        (1..4_usize, 0..4_usize)
            .prop_flat_map(move |(columns, rows)| (Just(columns), prop::collection::vec(entry.clone(), columns * rows)))
    }

    proptest! {
        #[test]
        fn matrices_compare_as_their_entries_do_and_equal_ones_have_one_hash(a in matrices(), b in matrices(), seed: u64) {
            let expected = plainly((a.0, &a.1), (b.0, &b.1));
            let (x, y) = (rows(a.0, &a.1), rows(b.0, &b.1));
            prop_assert_eq!(x.compare(&y), expected);
            prop_assert_eq!(y.compare(&x), expected.reverse());
            prop_assert_eq!(x.hash(seed) == y.hash(seed), expected.is_eq());
        }
    }

    #[test]
    fn the_hash_depends_on_the_seed_and_on_the_place_of_an_entry() {
        let a = rows(2, &[1.0, 0.0, 0.0, 1.0]);
        let others = [rows(2, &[0.0, 1.0, 0.0, 1.0]), rows(2, &[1.0, 0.0, 1.0, 0.0]), rows(4, &[1.0, 0.0, 0.0, 1.0])];
        assert!(others.iter().all(|other| other.hash(7) != a.hash(7)));
        assert_ne!(a.hash(7), a.hash(8));
    }
}
