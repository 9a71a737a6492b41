//! Counts compared with what is expected.

/// How improbable it is that counts differ that much from what is expected, in standard deviations: the statistic's
/// cube root is nearly normal (Wilson and Hilferty).
pub fn deviation(counts: &[(f64, f64)]) -> f64 {
    let statistic: f64 = counts.iter().map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1).max(1) as f64;
    ((statistic / freedom).cbrt() - (1.0 - 2.0 / (9.0 * freedom))) / (2.0 / (9.0 * freedom)).sqrt()
}
