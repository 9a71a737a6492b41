//! The area under the ROC curve, from scores in ascending order.
//!
//! Guarantees: exact, ties and all: it is the fraction of the pairs of a positive and a negative tuple in which the
//! positive one has the higher score, a tie being half a pair.

use loss::packed::{put_number, take_number};

/// A score and a class in one integer, whose order is that of the scores. Of the score's 53 digits the last is given
/// up, so that an f32 loses nothing.
pub fn rank_key(score: f64, positive: bool) -> i64 {
    let bits = (score + 0.0).to_bits() as i64; // -0.0 is 0.0
    // negative floats ascend while their bits descend
    let ordered = if bits < 0 { bits ^ i64::MAX } else { bits };
    (ordered & !1) | i64::from(positive)
}

/// The same of an f32, in a smaller number: keys of neighbouring scores are near each other.
pub fn rank_key_of_f32(score: f32, positive: bool) -> i64 {
    let bits = (score + 0.0).to_bits() as i32; // -0.0 is 0.0
    let ordered = if bits < 0 { bits ^ i32::MAX } else { bits };
    (i64::from(ordered) << 1) | i64::from(positive)
}

/// The score of a [`rank_key`], but for its last digit.
pub fn score_of_key(key: i64) -> f64 {
    let ordered = key & !1;
    f64::from_bits((if ordered < 0 { ordered ^ i64::MAX & !1 } else { ordered }) as u64)
}

/// The score of a [`rank_key_of_f32`].
pub fn score_of_key_of_f32(key: i64) -> f32 {
    let ordered = (key >> 1) as i32;
    f32::from_bits((if ordered < 0 { ordered ^ i32::MAX } else { ordered }) as u32)
}

/// Tuples of one score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tied {
    /// the [`rank_key`] of a negative one
    pub score: i64,
    /// negative and positive ones
    pub tuples: [u64; 2],
}

/// Scores on their way to another process, in ascending order: by how much each is above the one before, and how many
/// tuples have it.
#[derive(Debug, Default)]
pub struct TiedWriter {
    bytes: Vec<u8>,
    before: Option<i64>,
}

impl TiedWriter {
    /// The next score.
    pub fn push(&mut self, tied: Tied) {
        // one above the score before: keys of scores have no last bit
        let step = (tied.score.wrapping_sub(self.before.unwrap_or(i64::MIN)) as u64) >> 1;
        for number in [step, tied.tuples[0], tied.tuples[1]] {
            put_number(number, |byte| self.bytes.push(byte));
        }
        self.before = Some(tied.score);
    }

    /// The bytes of all scores.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The scores that these bytes of a [`TiedWriter`] are; None if they are not.
pub fn read_tied(mut bytes: &[u8]) -> Option<Vec<Tied>> {
    let mut all: Vec<Tied> = Vec::new();
    while !bytes.is_empty() {
        let [step, negative, positive] = [(); 3].map(|()| take_number(&mut bytes));
        let before = all.last().map(|tied| tied.score);
        let score = before.unwrap_or(i64::MIN).checked_add_unsigned(step?.checked_mul(2)?)?;
        if before == Some(score) {
            return None;
        }
        all.push(Tied { score, tuples: [negative?, positive?] });
    }
    Some(all)
}

/// Counts pairs while tuples go by.
#[derive(Debug, Clone, Copy, Default)]
pub struct RocAuc {
    /// of the score under way
    score: i64,
    tied: [u64; 2],
    /// negative and positive tuples of lower scores
    below: [u64; 2],
    /// twice the pairs in which the positive tuple is the higher one, a tie counting once
    pairs: u128,
}

impl RocAuc {
    /// The next tuples of one score; scores must ascend, and may be the one before.
    pub fn add_tied(&mut self, tied: Tied) {
        if tied.score != self.score {
            self.end_ties();
            self.score = tied.score;
        }
        self.tied.iter_mut().zip(tied.tuples).for_each(|(own, more)| *own = own.saturating_add(more));
    }

    fn end_ties(&mut self) {
        let [negative, positive] = self.tied;
        self.pairs += u128::from(positive) * (2 * u128::from(self.below[0]) + u128::from(negative));
        self.below = [self.below[0] + negative, self.below[1] + positive];
        self.tied = [0; 2];
    }

    /// The area; None unless there are tuples of both classes.
    pub fn area(mut self) -> Option<f64> {
        self.end_ties();
        let [negative, positive] = self.below.map(u128::from);
        let all = 2 * negative * positive;
        (all > 0).then(|| self.pairs as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area(tuples: &[(f64, bool)]) -> Option<f64> {
        let mut keys: Vec<i64> = tuples.iter().map(|(score, positive)| rank_key(*score, *positive)).collect();
        keys.sort_unstable();
        let mut roc = RocAuc::default();
        for key in keys {
            roc.add_tied(Tied { score: key & !1, tuples: [u64::from(key & 1 == 0), u64::from(key & 1 == 1)] });
        }
        roc.area()
    }

    #[test]
    fn a_curve_with_ties_is_that_of_the_textbook() {
        // the example of scikit-learn's documentation, and one whose only pairs are ties
        assert_eq!(area(&[(0.1, false), (0.4, false), (0.35, true), (0.8, true)]), Some(0.75));
        assert_eq!(area(&[(0.0, false), (-0.0, true)]), Some(0.5));
        assert_eq!(area(&[(1.0, true), (2.0, true)]), None);
        assert_eq!(area(&[]), None);
    }

    #[test]
    fn scores_take_few_bytes() {
        let mut noise = sgd_tests::Noise::new(1);
        let scores: Vec<f32> = (0..100_000).map(|_| (0..6).map(|_| noise.next()).sum()).collect();
        let bytes_per_score = |keys: Vec<i64>| {
            let mut keys = keys;
            keys.sort_unstable();
            keys.dedup();
            let mut writer = TiedWriter::default();
            keys.iter().for_each(|score| writer.push(Tied { score: *score, tuples: [1, 0] }));
            writer.bytes().len() as f64 / keys.len() as f64
        };
        let of_f32 = bytes_per_score(scores.iter().map(|score| rank_key_of_f32(*score, false)).collect());
        assert!(of_f32 < 6.0, "{of_f32}");
        let of_f64 = bytes_per_score(scores.iter().map(|score| rank_key(f64::from(*score).tanh(), false)).collect());
        assert!(of_f64 < 10.0, "{of_f64}");
    }

    #[test]
    fn bytes_that_no_writer_has_written_are_no_scores() {
        assert_eq!(read_tied(&[]), Some(Vec::new()));
        for wrong in [&[1][..], &[1, 1], &[1, 1, 0x80], &[1, 1, 1, 0, 1, 1], &[0xff; 40], &[1, 1, 1, 7]] {
            assert_eq!(read_tied(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn scores_arrive_as_they_were_sent(
            keys in proptest::collection::btree_map(any::<i64>().prop_map(|key| key & !1), any::<[u64; 2]>(), 0..50),
        ) {
            let all: Vec<Tied> = keys.into_iter().map(|(score, tuples)| Tied { score, tuples }).collect();
            let mut writer = TiedWriter::default();
            all.iter().for_each(|tied| writer.push(*tied));
            prop_assert_eq!(read_tied(writer.bytes()), Some(all));
        }

        #[test]
        fn keys_of_f32_are_in_the_order_of_scores(a in any::<f32>(), b in any::<f32>(), p in any::<bool>(), q in any::<bool>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            let order = rank_key(a.into(), p).cmp(&rank_key(b.into(), q));
            prop_assert_eq!(rank_key_of_f32(a, p).cmp(&rank_key_of_f32(b, q)), order);
        }

        #[test]
        fn a_score_comes_back_from_its_key(score in any::<f64>(), single in any::<f32>(), positive in any::<bool>()) {
            prop_assume!(!score.is_nan() && !single.is_nan());
            prop_assert_eq!(score_of_key_of_f32(rank_key_of_f32(single, positive)), single);
            let back = score_of_key(rank_key(score, positive));
            prop_assert!(back == score || (back / score - 1.0).abs() < 1e-15 || back.abs() < 1e-300, "{} {}", score, back);
        }

        #[test]
        fn the_area_is_the_fraction_of_ordered_pairs(
            tuples in proptest::collection::vec((-4i8..4, any::<bool>()), 0..60), scale in 1e-30f32..1e30,
        ) {
            let tuples: Vec<(f64, bool)> = tuples.iter().map(|(s, p)| (f64::from(f32::from(*s) * scale), *p)).collect();
            let (mut pairs, mut won) = (0.0, 0.0);
            for (score, _) in tuples.iter().filter(|(_, positive)| *positive) {
                for (other, _) in tuples.iter().filter(|(_, positive)| !*positive) {
                    pairs += 1.0;
                    won += if score > other { 1.0 } else if score == other { 0.5 } else { 0.0 };
                }
            }
            match area(&tuples) {
                Some(area) => prop_assert!((area - won / pairs).abs() < 1e-12),
                None => prop_assert_eq!(pairs, 0.0),
            }
        }
    }
}
