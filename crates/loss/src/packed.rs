//! Numbers without their zeros: a training on sparse rows is mostly zeros, of features that no row has.
//!
//! Guarantees: what is unpacked is what was packed, to the last bit, a negative zero included; bytes that nothing was
//! packed into give None, and take no more memory than [`MAX_UNPACKED`].
//!
//! Words of four bytes, as runs: how many words are zero, how many others follow, and these. Both are
//! [numbers](put_number) of as few bytes as will do. Before all there is the number of bytes that it comes to, in eight
//! bytes.

use tuples::pause::{PER_PAUSE, Pauses};

/// More bytes are not unpacked.
pub(crate) const MAX_UNPACKED: usize = 1 << 30;

const WORD: usize = size_of::<u32>();

/// Words other than zeros that wait to be counted.
const MAX_RUN: usize = 1 << 14;

/// Packs words as they come, or only counts the bytes that it takes.
pub struct Packer {
    to: Option<Vec<u8>>,
    /// where the number of unpacked bytes is to be
    start: usize,
    len: usize,
    unpacked: usize,
    zeros: u64,
    others: Vec<u8>,
}

impl Packer {
    /// Packs behind what is there, or to nowhere.
    pub fn new(to: Option<Vec<u8>>) -> Packer {
        let start = to.as_ref().map_or(0, Vec::len);
        let others = Vec::with_capacity(MAX_RUN * WORD);
        let mut packer = Packer { to, start, len: start, unpacked: 0, zeros: 0, others };
        packer.append(&[0; size_of::<u64>()]);
        packer
    }

    fn append(&mut self, some: &[u8]) {
        self.len += some.len();
        self.to.iter_mut().for_each(|to| allocation::append(to, some));
    }

    /// Packs bytes, whole words of them.
    pub(crate) fn put(&mut self, some: &[u8]) {
        let (mut words, rest) = some.as_chunks::<WORD>();
        assert!(rest.is_empty(), "a trainer has whole words");
        self.unpacked += some.len();
        while !words.is_empty() {
            let zeros = zeros_of(words);
            if zeros > 0 && !self.others.is_empty() {
                self.end_run();
            }
            self.zeros += zeros as u64;
            words = &words[zeros..];
            let room = &words[..words.len().min(MAX_RUN - self.others.len() / WORD)];
            let others = room.iter().position(|word| *word == [0; WORD]).unwrap_or(room.len());
            self.others.extend_from_slice(words[..others].as_flattened());
            words = &words[others..];
            if self.others.len() == MAX_RUN * WORD {
                self.end_run();
            }
        }
    }

    fn end_run(&mut self) {
        if self.zeros == 0 && self.others.is_empty() {
            return;
        }
        let mut others = std::mem::take(&mut self.others);
        for number in [self.zeros, (others.len() / WORD) as u64] {
            put_number(number, |byte| self.append(&[byte]));
        }
        self.append(&others);
        others.clear();
        (self.zeros, self.others) = (0, others);
    }

    /// All bytes, the packed ones last.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_run();
        let mut bytes = self.to.unwrap_or_default();
        if let Some(len) = bytes.get_mut(self.start..).and_then(|behind| behind.first_chunk_mut()) {
            *len = (self.unpacked as u64).to_le_bytes();
        }
        bytes
    }

    /// How many bytes there are; None if more than [`MAX_UNPACKED`] were packed.
    pub fn count(mut self) -> Option<usize> {
        self.end_run();
        (self.unpacked <= MAX_UNPACKED).then_some(self.len)
    }
}

/// How many words at the beginning are zero.
fn zeros_of(words: &[[u8; WORD]]) -> usize {
    // in a form that the compiler makes vectors of
    let is_zero = |words: &&[[u8; WORD]]| words.iter().fold(0, |bits, word| bits | u32::from_ne_bytes(*word)) == 0;
    let whole = AT_ONCE * words.chunks_exact(AT_ONCE).take_while(is_zero).count();
    whole + words[whole..].iter().take_while(|word| **word == [0; WORD]).count()
}

/// Words that are looked at together.
const AT_ONCE: usize = 64;

/// What was packed.
pub fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let (len, mut rest) = packed.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok().filter(|len| *len <= MAX_UNPACKED)?;
    let mut bytes = Vec::new();
    allocation::try_reserve_exact(&mut bytes, len).ok()?;
    let mut pauses = Pauses::default();
    while !rest.is_empty() {
        let zeros = take_number(&mut rest)?;
        let others = take_number(&mut rest)?;
        let left = ((len - bytes.len()) / WORD) as u64;
        if zeros > left || others > left - zeros {
            return None;
        }
        let zeros_end = bytes.len() + zeros as usize * WORD;
        while bytes.len() < zeros_end {
            let more = (zeros_end - bytes.len()).min(PER_PAUSE * WORD);
            bytes.resize(bytes.len() + more, 0);
            pauses.after(more / WORD);
        }
        let (run, behind) = rest.split_at_checked(others as usize * WORD)?;
        for part in run.chunks(PER_PAUSE * WORD) {
            bytes.extend_from_slice(part);
            pauses.after(part.len() / WORD);
        }
        rest = behind;
    }
    (bytes.len() == len).then_some(bytes)
}

/// Puts a number: seven bits a byte, the low ones first, and the last byte without the eighth bit.
#[inline]
pub fn put_number(mut number: u64, mut put: impl FnMut(u8)) {
    while number >= 1 << 7 {
        put(number as u8 | 1 << 7);
        number >>= 7;
    }
    put(number as u8);
}

/// Takes such a number from the front; None if the bytes do not hold one.
pub fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        if byte < &(1 << 7) {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// However the words come, and as many bytes as are counted.
    fn packed(words: &[u32]) -> Vec<u8> {
        let pack = |to, at_once| {
            let mut packer = Packer::new(to);
            bytes_of(words).chunks(if at_once { usize::MAX } else { WORD }).for_each(|part| packer.put(part));
            packer
        };
        let packed = pack(Some(Vec::new()), true).finish();
        assert_eq!(packed, pack(Some(Vec::new()), false).finish());
        assert_eq!(pack(None, true).count(), Some(packed.len()));
        packed
    }

    fn bytes_of(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn runs_are_what_the_description_says() {
        let mut words = vec![0; 300];
        words.extend([7, 0x8000_0000, 0]);
        let len = (words.len() * WORD) as u64;
        let expected = [&len.to_le_bytes()[..], &[0xac, 2, 2, 7, 0, 0, 0, 0, 0, 0, 0x80, 1, 0]].concat();
        assert_eq!(packed(&words), expected);
    }

    #[test]
    fn zeros_take_next_to_nothing_and_others_what_they_are() {
        assert!(packed(&[0; 1_000_000]).len() < 16);
        let others = vec![0x3f80_0001; 1_000_000];
        assert!(packed(&others).len() < 4_000_000 + 512);
    }

    #[test]
    fn a_length_that_no_training_has_takes_no_memory() {
        let zeros = |len: u64| [&len.to_le_bytes()[..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]].concat();
        assert!(unpack(&zeros(u64::MAX)).is_none());
        assert!(unpack(&zeros(((1 << 42) - 1) * 4)).is_none(), "as many zeros as it says, but too many");
        let others = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(unpack(&[&16u64.to_le_bytes()[..], &others].concat()).is_none());
    }

    fn words() -> impl Strategy<Value = Vec<u32>> {
        let run = prop_oneof![
            (1usize..400).prop_map(|zeros| vec![0; zeros]),
            proptest::collection::vec(any::<u32>(), 1..50),
            Just(vec![1; MAX_RUN + 1]),
        ];
        proptest::collection::vec(run, 0..12).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn what_is_unpacked_was_packed(words in words()) {
            prop_assert_eq!(unpack(&packed(&words)), Some(bytes_of(&words)));
        }

        #[test]
        fn what_is_cut_or_has_more_is_refused(words in words(), cut in 0usize..10_000, more in any::<u8>()) {
            let mut packed = packed(&words);
            prop_assert_eq!(unpack(&packed[..cut % packed.len()]), None);
            packed.push(more);
            prop_assert_eq!(unpack(&packed), None);
        }
    }
}
