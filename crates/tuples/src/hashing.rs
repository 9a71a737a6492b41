//! The hashing trick: values of any number share a fixed number of features, their buckets.
//!
//! Guarantees: the bucket of a value is a function of the column's name, the value's bytes and the number of buckets,
//! on every machine and in every version: XXH3 with 64 bits of the value, seeded by that of the name, modulo the
//! number. It prevents a model from meaning something else wherever it is used next.

use twox_hash::XxHash3_64;

/// A column of which values become buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedColumn {
    /// of the column's name; the hash of a missing value, too
    seed: u64,
}

impl HashedColumn {
    /// The column of this name.
    pub fn new(name: &str) -> HashedColumn {
        HashedColumn { seed: XxHash3_64::oneshot(name.as_bytes()) }
    }

    /// The bucket, from 0, of a value, or of a missing one.
    ///
    /// # Panics
    /// If there are no buckets.
    #[inline]
    pub fn bucket(self, value: Option<&[u8]>, buckets: u32) -> u32 {
        bucket_of(self.hash(value), buckets)
    }

    /// What the bucket of a value, or of a missing one, follows from.
    #[inline]
    pub fn hash(self, value: Option<&[u8]>) -> u64 {
        value.map_or(self.seed, |value| XxHash3_64::oneshot_with_seed(self.seed, value))
    }
}

/// The bucket, from 0, of a hash.
///
/// # Panics
/// If there are no buckets.
#[inline]
pub fn bucket_of(hash: u64, buckets: u32) -> u32 {
    (hash % u64::from(buckets)) as u32
}

/// Gives each of the buckets of a row once, in ascending order, and what its values add up to; none are left.
pub fn add_up_buckets(buckets: &mut Vec<(u32, f32)>, mut each: impl FnMut(u32, f32)) {
    // by values, too: the sum does not depend on who sorts
    buckets.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then(x.total_cmp(y)));
    buckets.chunk_by(|(a, _), (b, _)| a == b).for_each(|same| each(same[0].0, same.iter().map(|(_, x)| x).sum()));
    buckets.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of which xxHash's own tests take hashes (`tests/sanity_test.c`).
    fn test_bytes(len: usize) -> Vec<u8> {
        let byte = |generator: &mut u64| {
            let byte = (*generator >> 56) as u8;
            *generator = generator.wrapping_mul(11_400_714_785_074_694_797);
            Some(byte)
        };
        std::iter::repeat_n((), len).scan(2_654_435_761, |generator, ()| byte(generator)).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_published_vectors() {
        const SEED: u64 = 11_400_714_785_074_694_797;
        let vectors = [
            (0, 0, 0x2D06_8005_38D3_94C2),
            (0, SEED, 0xA8A6_B918_B2F0_364A),
            (1, 0, 0xC44B_DFF4_074E_ECDB),
            (1, SEED, 0x032B_E332_DD76_6EF8),
            (6, 0, 0x27B5_6A84_CD2D_7325),
            (6, SEED, 0x8458_9C11_6AB5_9AB9),
            (12, 0, 0xA713_DAF0_DFBB_77E7),
            (12, SEED, 0xE730_3E1B_2336_DE0E),
            (24, 0, 0xA3FE_70BF_9D35_10EB),
            (24, SEED, 0x850E_80FC_35BD_D690),
            (48, 0, 0x397D_A259_ECBA_1F11),
            (48, SEED, 0xADC2_CBAA_44AC_C616),
            (80, 0, 0xBCDE_FBBB_2C47_C90A),
            (80, SEED, 0xC6DD_0CB6_9953_2E73),
            (195, 0, 0xCD94_217E_E362_EC3A),
            (195, SEED, 0xBA68_003D_370C_B3D9),
        ];
        for (len, seed, hash) in vectors {
            assert_eq!(XxHash3_64::oneshot_with_seed(seed, &test_bytes(len)), hash, "{len} bytes, seed {seed}");
        }
    }

    #[test]
    fn a_bucket_depends_on_column_value_and_number_of_buckets_alone() {
        let (a, b) = (HashedColumn::new("a"), HashedColumn::new("b"));
        let all = |column: HashedColumn, buckets| (0..20_u8).map(|i| column.bucket(Some(&[i]), buckets)).collect();
        let of_a: Vec<u32> = all(a, 1 << 18);
        assert_eq!(of_a, all(HashedColumn::new("a"), 1 << 18));
        assert_ne!(of_a, all(b, 1 << 18));
        assert_ne!(a.bucket(None, 1 << 30), a.bucket(Some(b""), 1 << 30));
        assert!((0..100_u8).all(|i| a.bucket(Some(&[i]), 7) < 7));
    }

    #[test]
    fn values_spread_evenly() {
        let column = HashedColumn::new("user");
        let mut counts = vec![0_u32; 1000];
        (0..100_000).for_each(|i| counts[column.bucket(Some(format!("user {i}").as_bytes()), 1000) as usize] += 1);
        let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - 100.0).powi(2) / 100.0).sum();
        // 999 degrees of freedom: mean 999, deviation 45
        assert!((820.0..1180.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn buckets_of_a_row_are_added_up() {
        let mut buckets = vec![(7, 1.0), (2, 1.0), (7, 1.0), (9, 2.5), (7, 1.0), (2, 0.5)];
        let mut sums = Vec::new();
        add_up_buckets(&mut buckets, |bucket, sum| sums.push((bucket, sum)));
        assert_eq!(sums, [(2, 1.5), (7, 3.0), (9, 2.5)]);
        assert!(buckets.is_empty());
    }
}
