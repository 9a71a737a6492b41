//! Numbers that are chosen, as a reader takes them in.

/// A number of three digits.
pub fn rounded(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}

/// What the learning rate of a point is multiplied by, if it is drawn around the one that a call without it has.
pub const AUTO_TIMES: &str = "auto_times";
