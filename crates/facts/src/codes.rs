//! Codes among numbers: -999 for "not measured", 9999 for "refused".
//!
//! A code is a value at the edge of its column, frequent, far from all other values, and looks like a code. All four
//! are asked for, because a notice about an ordinary amount would be wrong.

/// A value of a column of numbers that is probably a code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Code {
    /// the value
    pub value: f64,
    /// rows of the sample that have it
    pub count: u64,
}

/// Codes at one edge, such as 97, 98 and 99.
const AT_AN_EDGE: usize = 3;
/// Values that are no codes: fewer say too little about how far is far.
const OTHERS: usize = 10;
/// Rows that a code needs, and their share of all.
const ROWS: u64 = 5;
const SHARE: f64 = 0.002;

/// The codes among these values, which are in ascending order and all different, with their counts.
pub(crate) fn find(values: &[(f64, u64)]) -> Vec<Code> {
    let rows: u64 = values.iter().map(|(_, count)| count).sum();
    let enough = ROWS.max((SHARE * rows as f64).ceil() as u64);
    let is_frequent = |(_, count): &&(f64, u64)| *count >= enough;
    let low = values.iter().take(AT_AN_EDGE).take_while(is_frequent).count();
    let high = values.iter().rev().take(AT_AN_EDGE).take_while(is_frequent).count();
    // as many as possible: 98 is far from the ages of children once 99 is a code, too
    let pairs = (0..=low).flat_map(|low| (0..=high).map(move |high| (low, high)));
    let fitting = pairs.filter(|(low, high)| low + high > 0 && are_codes(values, *low, *high));
    let Some((low, high)) = fitting.max_by_key(|(low, high)| low + high) else { return Vec::new() };
    let code = |(value, count): &(f64, u64)| Code { value: *value, count: *count };
    values[..low].iter().chain(&values[values.len() - high..]).map(code).collect()
}

/// Are the first `low` values and the last `high` ones codes?
fn are_codes(values: &[(f64, u64)], low: usize, high: usize) -> bool {
    if values.len() < low + high + OTHERS {
        return false;
    }
    let (below, rest) = values.split_at(low);
    let (rest, above) = rest.split_at(rest.len() - high);
    let (first, last) = (rest[0].0, rest[rest.len() - 1].0);
    let range = last - first;
    let is_far = |edge: &[(f64, u64)], gap: f64| edge.is_empty() || gap > range.max(edge[edge.len() - 1].0 - edge[0].0);
    is_far(below, first - below.last().map_or(first, |value| value.0))
        && is_far(above, above.first().map_or(last, |value| value.0) - last)
        && below.iter().chain(above).all(|(value, _)| looks_like_code(*value, first))
}

/// Is it a number that people take for a code: a row of nines, eights or sevens, the least or greatest integer of a
/// type, or a negative number or 0 in a column whose other values are above?
fn looks_like_code(value: f64, least: f64) -> bool {
    if value.fract() != 0.0 {
        return false;
    }
    let digits = format!("{:.0}", value.abs());
    // 97 is "refused" where 98 and 99 are "not known" and "missing"
    let is_row = ['9', '8', '7'].iter().any(|digit| digits.chars().all(|c| c == *digit))
        || ["97", "98", "997", "998", "9997", "9998"].contains(&digits.as_str());
    let is_limit = [i16::MAX.into(), i16::MIN.into(), i32::MAX.into(), i32::MIN.into()].contains(&value);
    is_row || is_limit || (value <= 0.0 && least >= 0.0 && value < least)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 rows of the values 0 to 99, and these codes.
    fn with(codes: &[(f64, u64)]) -> Vec<f64> {
        let mut values: Vec<(f64, u64)> = (0..100).map(|i| (f64::from(i), 10)).chain(codes.iter().copied()).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        find(&values).iter().map(|code| code.value).collect()
    }

    #[test]
    fn frequent_values_far_from_all_others_are_codes() {
        assert_eq!(with(&[(-999.0, 20)]), [-999.0]);
        assert_eq!(with(&[(9999.0, 20)]), [9999.0]);
        assert_eq!(with(&[(-999.0, 20), (9999.0, 5)]), [-999.0, 9999.0]);
        assert_eq!(with(&[(9998.0, 20), (9999.0, 20)]), [9998.0, 9999.0]);
        assert_eq!(with(&[(f64::from(i32::MIN), 900)]), [f64::from(i32::MIN)]);
    }

    #[test]
    fn ordinary_values_are_no_codes() {
        assert!(with(&[]).is_empty());
        assert!(with(&[(9999.0, 4)]).is_empty(), "rare");
        assert!(with(&[(1234.0, 50)]).is_empty(), "no code by its digits");
        assert!(with(&[(-99.0, 50)]).is_empty(), "no farther than the others reach");
        assert!(with(&[(999.5, 50)]).is_empty(), "a measurement");
        let few: Vec<(f64, u64)> = (0..9).map(f64::from).chain([98.0]).map(|value| (value, 50)).collect();
        assert!(find(&few).is_empty(), "too few others");
        let powers: Vec<(f64, u64)> = (0..15).map(|i| (10f64.powi(i), 100)).collect();
        assert!(find(&powers).is_empty(), "powers of ten");
        assert!(find(&[]).is_empty());
    }

    #[test]
    fn zero_is_a_code_where_all_else_is_far_above() {
        let years: Vec<(f64, u64)> =
            [(0.0, 30)].into_iter().chain((1980..2020).map(|year| (f64::from(year), 10))).collect();
        assert_eq!(find(&years), [Code { value: 0.0, count: 30 }]);
        let counts: Vec<(f64, u64)> = (0..40).map(|count| (f64::from(count), 10)).collect();
        assert!(find(&counts).is_empty());
    }
}
