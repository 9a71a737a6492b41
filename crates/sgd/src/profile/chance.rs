//! Is what two samples have in each bin more different than chance makes it?

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// What chance exceeds once in a thousand times is beyond it.
const LEVEL: f64 = 1e-3;

/// What is expected in a bin of either sample, at least: of less, chi-square is no limit (Cochran 1954).
const LEAST_EXPECTED: f64 = 5.0;

/// Four standard errors, squared.
const FOUR_ERRORS: f64 = 16.0;

/// Which bins are put together where too little is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bins {
    /// neighbours, as the bins of a number
    InOrder,
    /// those that both samples together have the least of, as categories
    Unordered,
}

/// Rows of two samples in a bin.
type Counts = [f64; 2];

/// Are two samples of different distributions? Chance says so of one distribution about once in a thousand times.
///
/// There are two tests, each of half the level. For the first, bins are put together until 5 rows of either sample are
/// expected in each of them, which looks at both samples together only, as a permutation of their rows leaves it. That
/// hides rows where almost none were before: the second is of each bin against all others, by Bonferroni's level.
pub fn differ(bins: &[Counts], how: Bins) -> bool {
    let (merged, rows) = (merge(bins, how), sizes(bins));
    let alone = |counts: &Counts| statistic(&[*counts, [rows[0] - counts[0], rows[1] - counts[1]]]);
    let furthest = bins.iter().map(alone).fold(0.0, f64::max);
    tail(statistic(&merged), merged.len().saturating_sub(1)) < LEVEL / 2.0
        || tail(furthest, 1) * (bins.len().max(1) as f64) < LEVEL / 2.0
}

/// How likely chi-square of this many degrees of freedom is beyond this.
fn tail(statistic: f64, freedom: usize) -> f64 {
    // the constructor refuses 0
    ChiSquared::new(freedom as f64).map_or(1.0, |limit| limit.sf(statistic))
}

/// Are the shares of `yes` among the rows of two samples four standard errors apart?
pub fn shares_differ(yes: Counts, rows: Counts) -> bool {
    statistic(&[yes, [rows[0] - yes[0], rows[1] - yes[1]]]) > FOUR_ERRORS
}

/// The lesser of Pearson's statistic and the likelihood ratio's, which have the same limit. With few rows in a bin
/// Pearson's is too great where one has more than expected, and the other where it has fewer.
fn statistic(bins: &[Counts]) -> f64 {
    let rows = sizes(bins);
    let all = rows[0] + rows[1];
    let (mut pearson, mut ratio) = (0.0, 0.0);
    for counts in bins {
        for (count, rows) in counts.iter().zip(rows) {
            let expected = (counts[0] + counts[1]) * (rows / all);
            if expected > 0.0 {
                pearson += (count - expected).powi(2) / expected;
            }
            if *count > 0.0 {
                ratio += 2.0 * count * (count / expected).ln();
            }
        }
    }
    f64::min(pearson, ratio)
}

fn sizes(bins: &[Counts]) -> Counts {
    bins.iter().fold([0.0; 2], |all, counts| [all[0] + counts[0], all[1] + counts[1]])
}

/// The bins, put together until enough is expected in each.
fn merge(bins: &[Counts], how: Bins) -> Vec<Counts> {
    let rows = sizes(bins);
    let lesser_share = rows[0].min(rows[1]) / (rows[0] + rows[1]).max(1.0);
    let mut bins = bins.to_vec();
    if how == Bins::Unordered {
        bins.sort_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
    }
    let is_enough = |counts: &Counts| (counts[0] + counts[1]) * lesser_share >= LEAST_EXPECTED;
    let mut merged: Vec<Counts> = Vec::new();
    for counts in bins {
        match merged.last_mut() {
            Some(last) if !is_enough(last) => *last = sizes(&[*last, counts]),
            _ => merged.push(counts),
        }
    }
    if merged.len() > 1 && !merged.last().is_some_and(is_enough) {
        let rest = merged.pop().unwrap_or_default();
        merged.last_mut().iter_mut().for_each(|last| **last = sizes(&[**last, rest]));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statistic_is_the_lesser_of_two() {
        // scipy.stats.chi2_contingency([[20, 30, 50], [30, 10, 20]]): 15.8476, and with
        // lambda_="log-likelihood" 15.6545;
        // of [[100, 0], [45, 5]], with correction=False: 10.3448 and 11.3351
        let close = |bins: &[Counts], expected: f64| assert!((statistic(bins) - expected).abs() < 1e-8);
        close(&[[20., 30.], [30., 10.], [50., 20.]], 15.654_515_538);
        close(&[[100., 45.], [0., 5.]], 10.344_827_586);
    }

    #[test]
    fn bins_are_put_together_until_five_rows_are_expected() {
        let of = |counts: &[f64]| counts.iter().map(|count| [1000.0 * count, *count]).collect::<Vec<_>>();
        assert_eq!(merge(&of(&[0., 10., 4., 2., 9., 1.]), Bins::InOrder), of(&[10., 6., 10.]));
        assert_eq!(merge(&of(&[0., 10., 4., 2., 9., 1.]), Bins::Unordered), of(&[7., 9., 10.]));
        assert_eq!(merge(&of(&[3., 1.]), Bins::InOrder), of(&[4.]));
    }

    #[test]
    fn rows_where_hardly_any_were_before_are_seen() {
        for rows in [3., 12., 1000.] {
            assert!(differ(&[[4096., 0.], [0., rows]], Bins::InOrder), "{rows} rows of a constant are another");
        }
        assert!(!differ(&[[4096., 9.], [0., 1.], [0., 0.]], Bins::InOrder));
        assert!(differ(&[[20_000., 900.], [0., 100.], [0., 0.]], Bins::Unordered));
        assert!(!differ(&[], Bins::InOrder) && !differ(&[[0., 0.], [0., 0.]], Bins::Unordered));
    }

    #[test]
    fn a_share_of_few_rows_is_seldom_another() {
        assert!(!shares_differ([100., 1.], [20_000., 10.]), "one in ten where one in 200 was expected");
        assert!(!shares_differ([0., 1.], [20_000., 10.]));
        assert!(shares_differ([0., 5.], [20_000., 10.]) && shares_differ([0., 2.], [20_000., 2.]));
        assert!(shares_differ([2000., 2500.], [20_000., 20_000.]));
        assert!(!shares_differ([2000., 2050.], [20_000., 20_000.]));
    }
}
