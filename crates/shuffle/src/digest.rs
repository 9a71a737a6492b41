//! A digest of the order in which blocks were read, for orders that are not reproducible.
//!
//! It guarantees that two readings that differ in the order of any epoch have different digests, but for one of 2^64
//! pairs, and that the parts of a reading may be digested in different places.

/// The digest of a reading: the sum, modulo 2^64, of the digests of its epochs.
///
/// That of an epoch is FNV-1a with 64 bits over little-endian numbers: of the epoch, of the process among those that
/// read together (8 bytes each), and of the blocks (4 bytes each), counted from 0 along the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderDigest {
    /// of the epochs before
    sum: u64,
    /// of the one under way; 0: none
    epoch: u64,
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

impl OrderDigest {
    /// Begins an epoch of one of the processes.
    pub fn begin_epoch(&mut self, epoch: u64, process: u32) {
        self.sum = self.value();
        self.epoch = OFFSET;
        self.take(&epoch.to_le_bytes());
        self.take(&u64::from(process).to_le_bytes());
    }

    /// The next block is this one.
    pub fn push(&mut self, block: u32) {
        self.take(&block.to_le_bytes());
    }

    /// Adds what was read elsewhere.
    pub fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(value);
    }

    /// The digest of all that was read.
    pub fn value(&self) -> u64 {
        self.sum.wrapping_add(self.epoch)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.epoch = bytes.iter().fold(self.epoch, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(epochs: &[(u64, u32, &[u32])]) -> u64 {
        let mut digest = OrderDigest::default();
        for (epoch, process, blocks) in epochs {
            digest.begin_epoch(*epoch, *process);
            blocks.iter().for_each(|block| digest.push(*block));
        }
        digest.value()
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // the published value of FNV-1a for "foobar"
        let mut hash = OrderDigest { sum: 0, epoch: OFFSET };
        hash.take(b"foobar");
        assert_eq!(hash.value(), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn parts_that_were_read_apart_add_up_to_the_whole() {
        let (first, second): (&[u32], &[u32]) = (&[2, 0, 1], &[1, 2, 0]);
        let whole = digest(&[(1, 0, first), (2, 0, second)]);
        let mut part = OrderDigest::default();
        part.add(digest(&[(2, 0, second)]));
        part.add(digest(&[(1, 0, first)]));
        assert_eq!(part.value(), whole);
    }

    #[test]
    fn another_order_epoch_or_process_is_another_digest() {
        let orders: [&[(u64, u32, &[u32])]; 5] = [
            &[(1, 0, &[0, 1, 2]), (2, 0, &[2, 1, 0])],
            &[(1, 0, &[2, 1, 0]), (2, 0, &[0, 1, 2])],
            &[(1, 0, &[0, 1, 2]), (2, 1, &[2, 1, 0])],
            &[(1, 0, &[0, 1, 2]), (2, 0, &[2, 1])],
            &[(1, 0, &[1, 0, 2]), (2, 0, &[2, 1, 0])],
        ];
        let digests: Vec<u64> = orders.iter().map(|order| digest(order)).collect();
        for (i, one) in digests.iter().enumerate() {
            assert!(!digests[..i].contains(one), "{i}");
        }
    }

    #[test]
    fn nothing_read_is_zero() {
        assert_eq!(OrderDigest::default().value(), 0);
    }
}
