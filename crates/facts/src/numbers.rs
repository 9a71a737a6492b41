//! What a sample says about a column of numbers.

use super::codes::{Code, find};
use super::distinct::Distinct;

/// A sample of a column of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// of the finite values
    pub counts: Distinct,
    /// NaN and infinities
    pub not_finite: u64,
    /// the least value; 0 without values
    pub min: f64,
    /// the greatest value; 0 without values
    pub max: f64,
    /// are all values integers?
    pub is_whole: bool,
    /// values that are probably codes for something else
    pub codes: Vec<Code>,
    /// how far the distribution is from that of numbers at even distances, at most
    pub unevenness: f64,
    /// the share of values in the outer tenths of the range, both together
    pub outer: f64,
}

/// How far the distribution of unique numbers may be from that of numbers at even distances: numbers that were counted
/// up are even, but for gaps, and random ones, too; amounts are not.
const EVEN: f64 = 0.15;
/// The same if the sample is of blocks, whose rows may belong together: chance moves about 60 blocks that far.
const EVEN_BLOCKS: f64 = 0.25;
/// What such a sample has at least in the outer tenths. Of even numbers it has a fifth, of normal ones a hundredth.
const OUTER_BLOCKS: f64 = 0.06;

impl Numbers {
    /// Of these values, without NULLs.
    pub fn of(mut values: Vec<f64>) -> Numbers {
        let all = values.len();
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let not_finite = (all - values.len()) as u64;
        let runs: Vec<(f64, u64)> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        Numbers { not_finite, ..Numbers::of_sorted(&values, &runs) }
    }

    /// Of these integers, not all of which can be distinguished as doubles.
    pub fn of_integers(mut integers: Vec<i64>) -> Numbers {
        integers.sort_unstable();
        let values: Vec<f64> = integers.iter().map(|value| *value as f64).collect();
        let runs = integers.chunk_by(|a, b| a == b).map(|run| (run[0] as f64, run.len() as u64));
        Numbers::of_sorted(&values, &runs.collect::<Vec<_>>())
    }

    fn of_sorted(values: &[f64], runs: &[(f64, u64)]) -> Numbers {
        Numbers {
            counts: Distinct::of_runs(runs.iter().map(|(_, count)| *count)),
            not_finite: 0,
            min: values.first().copied().unwrap_or_default(),
            max: values.last().copied().unwrap_or_default(),
            is_whole: values.iter().all(|value| value.fract() == 0.0),
            codes: find(runs),
            unevenness: unevenness(values),
            outer: outer(values),
        }
    }

    /// Are values at about even distances, as numbers are that were counted up or drawn? `in_blocks`: the sample is one
    /// of blocks.
    pub fn are_even(&self, in_blocks: bool) -> bool {
        match in_blocks {
            true => self.unevenness <= EVEN_BLOCKS && self.outer >= OUTER_BLOCKS,
            false => self.unevenness <= EVEN,
        }
    }
}

/// Kolmogorov and Smirnov's distance between the sorted values and the uniform distribution of the same range.
fn unevenness(sorted: &[f64]) -> f64 {
    let [first, .., last] = sorted else { return 0.0 };
    if first == last {
        return 1.0;
    }
    let steps = (sorted.len() - 1) as f64;
    let away = |(i, value): (usize, &f64)| ((value - first) / (last - first) - i as f64 / steps).abs();
    sorted.iter().enumerate().map(away).fold(0.0, f64::max)
}

fn outer(sorted: &[f64]) -> f64 {
    let [first, .., last] = sorted else { return 0.0 };
    let tenth = (last - first) / 10.0;
    let is_outer = |value: &&f64| **value < first + tenth || **value > last - tenth;
    sorted.iter().filter(is_outer).count() as f64 / sorted.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_and_bounded() {
        let numbers = Numbers::of(vec![3.0, 1.0, f64::NAN, 1.0, -2.0, f64::INFINITY]);
        assert_eq!(numbers.counts, Distinct { values: 4, distinct: 3, singles: 2, ..Distinct::default() });
        assert_eq!((numbers.not_finite, numbers.min, numbers.max, numbers.is_whole), (2, -2.0, 3.0, true));
        assert!(!Numbers::of(vec![1.0, 1.5]).is_whole);
        let none = Numbers::of(Vec::new());
        assert_eq!((none.counts, none.min, none.max), (Distinct::default(), 0.0, 0.0));
    }

    #[test]
    fn integers_beyond_doubles_are_told_apart() {
        let numbers = Numbers::of_integers(vec![(1 << 60) + 1, 1 << 60, (1 << 60) + 1]);
        assert_eq!(numbers.counts, Distinct { values: 3, distinct: 2, singles: 1, ..Distinct::default() });
    }

    #[test]
    fn what_was_counted_up_is_even_and_amounts_are_not() {
        let counted = Numbers::of((0..3000).map(f64::from).collect());
        assert!(counted.are_even(false) && counted.are_even(true));
        let squares = Numbers::of((0..3000).map(|i| f64::from(i * i)).collect());
        assert!(!squares.are_even(false));
        // normal quantiles by the logistic distribution, which has the same shape
        let bell = |i: i32| (1e6 * (f64::from(i) / f64::from(3001 - i)).ln()).round();
        let bell = Numbers::of((1..=3000).map(bell).collect());
        assert!(!bell.are_even(false) && !bell.are_even(true), "{bell:?}");
        assert!(!Numbers::of(vec![5.0; 10]).are_even(false));
    }

    /// 60 blocks of 50 consecutive numbers each, at places of a multiplicative generator.
    #[test]
    fn a_sample_of_blocks_may_be_less_even() {
        let mut place = 12345u64;
        let mut block = || {
            place = place * 48271 % 2_147_483_647;
            place % 20_000
        };
        let values = (0..60).map(|_| block()).flat_map(|block| (0..50).map(move |i| (block * 50 + i) as f64));
        assert!(Numbers::of(values.collect()).are_even(true));
    }
}
