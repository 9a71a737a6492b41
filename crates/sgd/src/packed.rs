//! Numbers without their zeros: a training on sparse rows is mostly zeros, of features that no row has.
//!
//! Guarantees: what is unpacked is what was packed, to the last bit, a negative zero included; bytes that nothing was
//! packed into give None, and take no more memory than [`MAX_UNPACKED`].
//!
//! Words of four bytes, as runs: how many words are zero, how many others follow, and these. Both are numbers of seven
//! bits per byte, the low ones first, and the last byte without the eighth bit. Before all there is the number of bytes
//! that it comes to, in eight bytes.

use tuples::pause::{PER_PAUSE, Pauses};

/// More bytes are not unpacked.
pub const MAX_UNPACKED: usize = 1 << 30;

const WORD: usize = size_of::<u32>();

/// Words other than zeros that wait to be counted.
const MAX_RUN: usize = 1 << 14;

/// Packs words as they come.
pub(crate) struct Packer {
    to: Packed,
    zeros: u64,
    others: Vec<u8>,
}

/// Where packed bytes go: somewhere, or nowhere, to know how many they would be.
pub(crate) enum Packed {
    Bytes(Vec<u8>),
    Counted(usize),
}

impl Packed {
    fn put(&mut self, some: &[u8]) {
        match self {
            Packed::Bytes(bytes) => allocation::append(bytes, some),
            Packed::Counted(len) => *len += some.len(),
        }
    }

    fn put_number(&mut self, mut number: u64) {
        while number >= 1 << 7 {
            self.put(&[number as u8 | 1 << 7]);
            number >>= 7;
        }
        self.put(&[number as u8]);
    }
}

impl Packer {
    /// Packs so many bytes, behind what is there.
    pub(crate) fn new(mut to: Packed, unpacked: usize) -> Packer {
        to.put(&(unpacked as u64).to_le_bytes());
        Packer { to, zeros: 0, others: Vec::with_capacity(MAX_RUN * WORD) }
    }

    /// Packs bytes, whole words of them.
    ///
    /// # Panics
    /// If the last word is not whole.
    pub(crate) fn put(&mut self, some: &[u8]) {
        let (mut words, rest) = some.as_chunks::<WORD>();
        assert!(rest.is_empty(), "a trainer has whole words");
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

    /// Packs a word.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: [u8; WORD]) {
        if word == [0; WORD] {
            if !self.others.is_empty() {
                self.end_run();
            }
            self.zeros += 1;
        } else {
            self.others.extend_from_slice(&word);
            if self.others.len() == MAX_RUN * WORD {
                self.end_run();
            }
        }
    }

    fn end_run(&mut self) {
        self.to.put_number(self.zeros);
        self.to.put_number((self.others.len() / WORD) as u64);
        self.to.put(&self.others);
        self.zeros = 0;
        self.others.clear();
    }

    /// Where it was packed.
    pub(crate) fn finish(mut self) -> Packed {
        if self.zeros > 0 || !self.others.is_empty() {
            self.end_run();
        }
        self.to
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
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
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

fn take_number(from: &mut &[u8]) -> Option<u64> {
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

    fn packed(words: &[u32]) -> Vec<u8> {
        let packed = packed_in_one_way(words, true);
        assert_eq!(packed, packed_in_one_way(words, false));
        packed
    }

    fn packed_in_one_way(words: &[u32], at_once: bool) -> Vec<u8> {
        let pack = |to| {
            let mut packer = Packer::new(to, words.len() * WORD);
            match at_once {
                true => packer.put(&bytes_of(words)),
                false => words.iter().for_each(|word| packer.word(word.to_le_bytes())),
            }
            packer.finish()
        };
        let (Packed::Bytes(bytes), Packed::Counted(len)) = (pack(Packed::Bytes(Vec::new())), pack(Packed::Counted(0)))
        else {
            unreachable!("it stays what it is")
        };
        assert_eq!(bytes.len(), len);
        bytes
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
