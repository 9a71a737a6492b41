//! Ranges of numbers: of hyperparameters, and of whatever else a user may choose.
//!
//! It prevents a range that is checked in one way and explained in another.

use std::fmt;

/// The numbers between two ends, each of which may belong to it or not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: End,
    high: Option<End>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    number: f64,
    belongs: bool,
}

impl Range {
    /// Finite numbers of at least `low`.
    pub const fn from(low: f64) -> Range {
        Range { low: End { number: low, belongs: true }, high: None }
    }

    /// Finite numbers greater than `low`.
    pub const fn above(low: f64) -> Range {
        Range { low: End { number: low, belongs: false }, high: None }
    }

    /// Of these, the numbers of at most `high`.
    pub const fn to(self, high: f64) -> Range {
        Range { high: Some(End { number: high, belongs: true }), ..self }
    }

    /// Of these, the numbers less than `high`.
    pub const fn below(self, high: f64) -> Range {
        Range { high: Some(End { number: high, belongs: false }), ..self }
    }

    /// Is the number one of them? NaN and infinities are not.
    pub fn contains(self, number: f64) -> bool {
        let above = number > self.low.number || (self.low.belongs && number == self.low.number);
        let below = self.high.is_none_or(|high| number < high.number || (high.belongs && number == high.number));
        number.is_finite() && above && below
    }

    /// What a number of them is, after "is" or "must be": "at least 0 and less than 1".
    pub fn words(self) -> String {
        let low = self.low.number;
        match (self.low.belongs, self.high) {
            (true, None) => format!("finite and at least {low}"),
            (false, None) => format!("finite and greater than {low}"),
            (false, Some(End { number, belongs: false })) => format!("between {low} and {number}"),
            (false, Some(End { number, .. })) => format!("greater than {low} and at most {number}"),
            (true, Some(End { number, belongs: false })) => format!("at least {low} and less than {number}"),
            (true, Some(End { number, .. })) => format!("from {low} to {number}"),
        }
    }
}

impl fmt::Display for Range {
    /// In short, as in a table: "from 0, below 1".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.low.belongs { "from" } else { "above" }, self.low.number)?;
        match self.high {
            Some(End { number, belongs: true }) => write!(f, ", to {number}"),
            Some(End { number, .. }) => write!(f, ", below {number}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_belong_to_a_range_or_not_as_its_words_say() {
        for (range, inside, outside, words, short) in [
            (Range::from(0.0), [0.0, 1e300], [-1e-300, f64::INFINITY], "finite and at least 0", "from 0"),
            (Range::above(0.0), [1e-300, 5.0], [0.0, f64::NAN], "finite and greater than 0", "above 0"),
            (Range::above(0.0).to(1.0), [0.5, 1.0], [0.0, 1.1], "greater than 0 and at most 1", "above 0, to 1"),
            (Range::above(0.0).below(1.0), [0.1, 0.9], [0.0, 1.0], "between 0 and 1", "above 0, below 1"),
            (Range::from(0.0).below(1.0), [0.0, 0.9], [1.0, -0.1], "at least 0 and less than 1", "from 0, below 1"),
            (Range::from(1.0).to(2.0), [1.0, 2.0], [0.9, 2.1], "from 1 to 2", "from 1, to 2"),
        ] {
            assert!(inside.into_iter().all(|number| range.contains(number)), "{range}");
            assert!(!outside.into_iter().any(|number| range.contains(number)), "{range}");
            assert_eq!((range.words().as_str(), range.to_string().as_str()), (words, short));
        }
    }
}
