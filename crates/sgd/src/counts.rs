//! Counts of rows that another process has sent: whether they can be that.

/// The most rows of a process: more than the largest table has tuples, and few enough that the counts of all processes
/// can be added up.
pub const MAX_ROWS: u64 = 1 << 48;

/// Are these together no more than `most`?
pub fn fit(counts: &[u64], most: u64) -> bool {
    counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).is_some_and(|sum| sum <= most)
}
