//! The area under the ROC curve, from scores in ascending order.
//!
//! Guarantees: exact, ties and all: it is the fraction of the pairs of a positive and a negative tuple in which the
//! positive one has the higher score, a tie being half a pair.

/// A score and a class in one integer, whose order is that of the scores. Of the score's 53 digits the last is given
/// up, so that an f32 loses nothing.
pub fn rank_key(score: f64, positive: bool) -> i64 {
    let bits = (score + 0.0).to_bits() as i64; // -0.0 is 0.0
    // negative floats ascend while their bits descend
    let ordered = if bits < 0 { bits ^ i64::MAX } else { bits };
    (ordered & !1) | i64::from(positive)
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
    /// The next tuple, by its [`rank_key`]; keys must ascend.
    #[inline]
    pub fn add(&mut self, key: i64) {
        if key & !1 != self.score {
            self.end_ties();
            self.score = key & !1;
        }
        self.tied[(key & 1) as usize] += 1;
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
        keys.into_iter().for_each(|key| roc.add(key));
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

    proptest! {
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
