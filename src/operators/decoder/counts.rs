//! What a decoder counts of the rows that it meets, here and in other processes.

use super::imputation::{NullCounts, add_one, add_up};
use super::tuple_decoder::Decoder;
use pg::tuples::row::Row;
use serde::{Deserialize, Serialize};
use sgd::counts;

/// What a decoder counts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RowCounts {
    /// rows left out since the epoch began
    pub(super) skipped: u64,
    /// of these, those of each group, as far as their groups are known
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) skipped_of: Vec<u64>,
    /// rows that have become tuples since then
    pub(super) decoded: u64,
    /// of these, rows with what is unknown to the model
    pub(super) unseen: u64,
    /// numbers that were cut off since then
    pub(super) clipped: u64,
}

impl RowCounts {
    /// Are these so few that they can be added up, as those of any table are?
    fn is_sound(&self) -> bool {
        let RowCounts { skipped, skipped_of, decoded, unseen, clipped } = self;
        // of a row there are several numbers that may be cut off
        let numbers = counts::MAX_ROWS << 8;
        let rows = [skipped, decoded, unseen].into_iter().chain(skipped_of);
        rows.into_iter().all(|count| *count <= counts::MAX_ROWS) && *clipped <= numbers
    }
}

/// What a decoder counts in an epoch.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EpochCounts {
    rows: RowCounts,
    nulls: NullCounts,
}

impl Decoder {
    /// Numbers that were cut off since the epoch began.
    pub fn clipped(&self) -> u64 {
        self.clipped
    }

    /// Forgets how many rows there were, and how many were left out: a new epoch begins.
    pub fn begin_epoch(&mut self) {
        (self.skipped, self.decoded, self.unseen, self.clipped) = (0, 0, 0, 0);
        self.skipped_of.clear();
        if let Some(imputation) = &mut self.imputation {
            imputation.set_counts(NullCounts::default());
        }
    }

    /// What was counted so far, for another process.
    pub fn counts(&self) -> RowCounts {
        let Decoder { skipped, decoded, unseen, clipped, .. } = *self;
        RowCounts { skipped, skipped_of: self.skipped_of.clone(), decoded, unseen, clipped }
    }

    /// Takes over what another process has counted.
    pub fn set_counts(&mut self, counts: RowCounts) {
        (self.skipped, self.decoded, self.unseen) = (counts.skipped, counts.decoded, counts.unseen);
        (self.clipped, self.skipped_of) = (counts.clipped, counts.skipped_of);
    }

    /// Rows left out since the epoch began.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Of these, those of each group; none where rows were not decoded again.
    pub fn skipped_of(&self) -> &[u64] {
        &self.skipped_of
    }

    /// A row was left out: it counts in its group, if it has one.
    #[cold]
    pub(super) fn skip_in_group(&mut self, row: Row<'_>) {
        if let Some(group) = self.row_groups.as_mut().and_then(|row_groups| row_groups.group_of(row)) {
            add_one(&mut self.skipped_of, group);
        }
    }

    /// Rows that have become tuples since the epoch began.
    pub fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Of these, rows with categories or indices that are unknown to the model.
    pub fn unseen(&self) -> u64 {
        self.unseen
    }

    /// What was counted in the epoch, with the NULLs that were imputed in it, for another process.
    pub fn epoch_counts(&self) -> EpochCounts {
        let nulls = self.imputation.as_ref().map(|imputation| imputation.counts().clone());
        EpochCounts { rows: self.counts(), nulls: nulls.unwrap_or_default() }
    }

    /// Adds what another process has counted in rows of its own.
    pub fn count_rows_of_others(&mut self, counts: &EpochCounts) {
        let EpochCounts { rows: counts, nulls: of_others } = counts;
        assert!(counts.is_sound() && of_others.is_sound(), "a process has no more rows than a table");
        if let Some(imputation) = &mut self.imputation {
            let mut nulls = imputation.counts().clone();
            nulls.add(of_others);
            imputation.set_counts(nulls);
        }
        self.skipped += counts.skipped;
        add_up(&mut self.skipped_of, &counts.skipped_of);
        self.decoded += counts.decoded;
        self.unseen += counts.unseen;
        self.clipped += counts.clipped;
    }

    /// Rows are left out that are not decoded again.
    pub fn leave_out(&mut self, rows: u64) {
        self.skipped += rows;
    }
}
