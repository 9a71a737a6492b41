//! Tails and quantiles of the normal distribution and of Student's.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

/// Degrees of freedom from which Student's distribution is computed from the normal one: its error is below 1e-12 then,
/// and the continued fraction of the exact one takes long.
const MANY: f64 = 1e5;

/// The probability that a number is at least so far from 0, on either side: of Student's distribution with this many
/// degrees of freedom, or of the normal one without any. NaN of NaN.
pub fn two_sided_tail(statistic: f64, freedom: Option<f64>) -> f64 {
    let t = statistic.abs();
    if t.is_nan() {
        return t;
    }
    let freedom = freedom.filter(|freedom| *freedom != f64::INFINITY);
    match freedom {
        Some(freedom) if freedom < MANY => student(freedom).map_or(f64::NAN, |student| 2.0 * student.sf(t)),
        Some(freedom) => 2.0 * Normal::standard().sf(normal_of(t, freedom)),
        None => 2.0 * Normal::standard().sf(t),
    }
}

/// How far from 0 a number is at most with this probability. NaN if it is not one.
pub fn two_sided_quantile(level: f64, freedom: Option<f64>) -> f64 {
    if !(0.0..=1.0).contains(&level) {
        return f64::NAN;
    }
    let freedom = freedom.filter(|freedom| *freedom != f64::INFINITY);
    let beyond = (1.0 - level) / 2.0;
    let normal = -Normal::standard().inverse_cdf(beyond);
    let Some(freedom) = freedom else { return normal };
    let Some(student) = student(freedom) else { return f64::NAN };
    let first = if freedom < MANY { -student.inverse_cdf(beyond) } else { normal };
    // Newton's method makes it as exact as the tail is
    (0..3).fold(first, |t, _| {
        let next = t + (two_sided_tail(t, Some(freedom)) / 2.0 - beyond) / student.pdf(t);
        if next.is_finite() { next } else { t }
    })
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

/// What is as improbable in the normal distribution as t is in Student's with many degrees of freedom (Hill, Algorithm
/// 395, 1970).
fn normal_of(t: f64, freedom: f64) -> f64 {
    let t = t.min(1e150); // its square is finite, and beyond is nothing
    let a = freedom - 0.5;
    let b = 48.0 * a * a;
    let z = a * (t * t / freedom).ln_1p();
    let correction = ((-0.4 * z - 3.3) * z - 24.0) * z - 85.5;
    ((correction / (0.8 * z * z + 100.0 + b) + z + 3.0) / b + 1.0) * z.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_answer_for_every_argument() {
        for freedom in
            [None, Some(f64::NAN), Some(-1.0), Some(0.0), Some(1.0), Some(17.0), Some(1e9), Some(f64::INFINITY)]
        {
            let known = freedom.is_none_or(|freedom| freedom > 0.0);
            assert!(two_sided_tail(f64::NAN, freedom).is_nan());
            for statistic in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e200] {
                let tail = two_sided_tail(statistic, freedom);
                assert!(if known { tail.abs() < 1e-100 } else { tail.is_nan() }, "{statistic} {freedom:?}: {tail}");
            }
            for level in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
                assert!(two_sided_quantile(level, freedom).is_nan(), "{level} {freedom:?}");
            }
            for (level, expected) in [(0.0, 0.0), (1.0, f64::INFINITY)] {
                let quantile = two_sided_quantile(level, freedom);
                assert!(
                    if known { quantile == expected } else { quantile.is_nan() },
                    "{level} {freedom:?}: {quantile}"
                );
            }
        }
    }

    /// scipy 1.17.1: 2 * t.sf(x, df), 2 * norm.sf(x), t.ppf((1 + level) / 2, df).
    #[test]
    fn tails_and_quantiles_are_scipys() {
        let tails = [
            (0.0, Some(1.0), 1.0),
            (0.0, Some(3.0), 1.0),
            (0.0, Some(17.0), 1.0),
            (0.0, Some(450.0), 1.0),
            (0.0, Some(99999.0), 1.0),
            (0.0, Some(100000.0), 1.0),
            (0.0, Some(1000000.0), 1.0),
            (0.0, Some(1000000000.0), 1.0),
            (0.0, None, 1.0),
            (0.5, Some(1.0), 0.7048327646991335),
            (0.5, Some(3.0), 0.651447964848151),
            (0.5, Some(17.0), 0.6234852065657114),
            (0.5, Some(450.0), 0.6173194830660472),
            (0.5, Some(99999.0), 0.61707617766542),
            (0.5, Some(100000.0), 0.6170761776544179),
            (0.5, Some(1000000.0), 0.6170751874723714),
            (0.5, Some(1000000000.0), 0.6170750775619943),
            (0.5, None, 0.6170750774519738),
            (1.96, Some(1.0), 0.3003428917760331),
            (1.96, Some(3.0), 0.14485220856485365),
            (1.96, Some(17.0), 0.06659815502831898),
            (1.96, Some(450.0), 0.05061250808512835),
            (1.96, Some(99999.0), 0.049998563222030994),
            (1.96, Some(100000.0), 0.04999856319430168),
            (1.96, Some(1000000.0), 0.04999606758526985),
            (1.96, Some(1000000000.0), 0.049995790573729625),
            (1.96, None, 0.04999579029644087),
            (5.0, Some(1.0), 0.1256659163780024),
            (5.0, Some(3.0), 0.015392438073302294),
            (5.0, Some(17.0), 0.00010957825046294128),
            (5.0, Some(450.0), 8.2295692801654e-07),
            (5.0, Some(99999.0), 5.742701775410706e-07),
            (5.0, Some(100000.0), 5.742701678641679e-07),
            (5.0, Some(1000000.0), 5.733997870890745e-07),
            (5.0, Some(1000000000.0), 5.733032403951619e-07),
            (5.0, None, 5.733031437583866e-07),
            (12.0, Some(1.0), 0.052929352119179755),
            (12.0, Some(3.0), 0.0012450158007893362),
            (12.0, Some(17.0), 1.006231552642191e-09),
            (12.0, Some(450.0), 5.632709528512776e-29),
            (12.0, Some(99999.0), 3.744507776240271e-33),
            (12.0, Some(100000.0), 3.744505811956419e-33),
            (12.0, Some(1000000.0), 3.571685124765094e-33),
            (12.0, Some(1000000000.0), 3.5529828977412e-33),
            (12.0, None, 3.552964224155306e-33),
            (30.0, Some(1.0), 0.02121280481107085),
            (30.0, Some(3.0), 8.135280427163958e-05),
            (30.0, Some(17.0), 3.652932681912589e-16),
            (30.0, Some(450.0), 2.0435099087900413e-109),
            (30.0, Some(99999.0), 7.378684844434431e-197),
            (30.0, Some(100000.0), 7.37853687222276e-197),
            (30.0, Some(1000000.0), 1.2020094233664118e-197),
            (30.0, Some(1000000000.0), 9.81541968796805e-198),
            (30.0, None, 9.813427854295816e-198),
        ];
        for (statistic, freedom, expected) in tails {
            let found = two_sided_tail(-statistic, freedom);
            assert!((found / expected - 1.0_f64).abs() < 1e-9, "{statistic} {freedom:?}: {found} {expected}");
        }
        let quantiles = [
            (0.5, Some(1.0), 1.0000000000000002),
            (0.5, Some(3.0), 0.7648923284043444),
            (0.5, Some(17.0), 0.6891950751539387),
            (0.5, Some(450.0), 0.6750353314057423),
            (0.5, Some(99999.0), 0.6744922035778262),
            (0.5, Some(1000000.0), 0.6744899955310875),
            (0.5, None, 0.6744897501960817),
            (0.9, Some(1.0), 6.313751514675037),
            (0.9, Some(3.0), 2.3533634348018233),
            (0.9, Some(17.0), 1.7396067260750725),
            (0.9, Some(450.0), 1.6482468047587977),
            (0.9, Some(99999.0), 1.6448688649373502),
            (0.9, Some(1000000.0), 1.6448551507220404),
            (0.9, None, 1.6448536269514722),
            (0.95, Some(1.0), 12.706204736174694),
            (0.95, Some(3.0), 3.1824463052837078),
            (0.95, Some(17.0), 2.1098155778333156),
            (0.95, Some(450.0), 1.9652496647364672),
            (0.95, Some(99999.0), 1.9599877077718442),
            (0.95, Some(1000000.0), 1.959966356814107),
            (0.95, None, 1.959963984540054),
            (0.999, Some(1.0), 636.6192487687897),
            (0.999, Some(3.0), 12.923978636687961),
            (0.999, Some(17.0), 3.965126272119082),
            (0.999, Some(450.0), 3.3122779925511856),
            (0.999, Some(99999.0), 3.290624032384949),
            (0.999, Some(1000000.0), 3.2905364612487222),
            (0.999, None, 3.2905267314919255),
        ];
        for (level, freedom, expected) in quantiles {
            let found = two_sided_quantile(level, freedom);
            assert!((found / expected - 1.0_f64).abs() < 1e-9, "{level} {freedom:?}: {found} {expected}");
        }
    }
}
