//! What numbers are that a model is to predict: classes, or quantities.

use super::numbers::Numbers;

/// What the values of a label are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelMeaning {
    /// two classes, as far as is known
    TwoClasses,
    /// this many classes, as far as is known
    Classes(u64),
    /// quantities
    Quantities,
    /// numbers that could be either
    Unclear,
}

/// Numbers with more values than this are quantities.
const FEW: f64 = 10.0;

impl LabelMeaning {
    /// Of a sample of numbers. Two are classes; more are if they are whole, few, and count from 0 or 1, as numbered
    /// classes do.
    pub fn of_numbers(numbers: &Numbers) -> LabelMeaning {
        let distinct = numbers.counts.distinct;
        match numbers.is_whole {
            _ if distinct <= 2 => LabelMeaning::TwoClasses,
            true if are_numbered(numbers.min, numbers.max, distinct) => LabelMeaning::Classes(distinct),
            true if distinct as f64 > FEW => LabelMeaning::Quantities,
            false => LabelMeaning::Quantities,
            true => LabelMeaning::Unclear,
        }
    }
}

/// Do this many values, whose ends these are, count from 0 or 1 upwards? A few numbers in between may be missing.
fn are_numbered(min: f64, max: f64, distinct: u64) -> bool {
    let places = max - min + 1.0;
    (min == 0.0 || min == 1.0) && places <= FEW && distinct as f64 >= 0.75 * places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_classes_or_quantities() {
        let of = |values: &[f64]| LabelMeaning::of_numbers(&Numbers::of(values.to_vec()));
        assert_eq!(of(&[]), LabelMeaning::TwoClasses);
        assert_eq!(of(&[0.0, 0.0]), LabelMeaning::TwoClasses);
        assert_eq!(of(&[-1.0, 1.0, 1.0]), LabelMeaning::TwoClasses);
        assert_eq!(of(&[0.25, 0.75, 0.25]), LabelMeaning::TwoClasses);
        assert_eq!(of(&[3.0, 7.0]), LabelMeaning::TwoClasses);
        assert_eq!(of(&[0.0, 1.0, 2.0, 1.0]), LabelMeaning::Classes(3));
        assert_eq!(of(&[1.0, 2.0, 4.0]), LabelMeaning::Classes(3));
        assert_eq!(of(&(0..10).map(f64::from).collect::<Vec<_>>()), LabelMeaning::Classes(10));
        assert_eq!(of(&(0..17).map(f64::from).collect::<Vec<_>>()), LabelMeaning::Quantities);
        assert_eq!(of(&[0.5, 1.5, 2.0]), LabelMeaning::Quantities);
        for unclear in [&[3.0, 4.0, 5.0][..], &[0.0, 5.0, 10.0], &[-1.0, 0.0, 1.0]] {
            assert_eq!(of(unclear), LabelMeaning::Unclear, "{unclear:?}");
        }
    }
}
