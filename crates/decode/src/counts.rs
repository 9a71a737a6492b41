//! What a decoder counts of the rows that it meets, here and in other processes.

use super::imputation::{NullCounts, add_one, add_up};
use super::learned::RowCounts;
use super::tuple_decoder::Decoder;
use pg::tuples::row::Row;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EpochCounts {
    pub(super) rows: RowCounts,
    pub(super) nulls: NullCounts,
}

impl Decoder {
    /// Numbers that were cut off since the epoch began.
    pub fn clipped(&self) -> u64 {
        self.counts.clipped
    }

    /// Forgets how many rows there were, and how many were left out: a new epoch begins.
    pub fn begin_epoch(&mut self) {
        self.counts = RowCounts::default();
        if let Some(imputation) = &mut self.imputation {
            imputation.set_counts(NullCounts::default());
        }
    }

    /// What was counted so far, for another process.
    pub fn counts(&self) -> RowCounts {
        self.counts.clone()
    }

    /// Takes over what another process has counted.
    pub fn set_counts(&mut self, counts: RowCounts) {
        self.counts = counts;
    }

    /// Rows left out since the epoch began.
    pub fn skipped(&self) -> u64 {
        self.counts.skipped
    }

    /// Of these, those of each group; none where rows were not decoded again.
    pub fn skipped_of(&self) -> &[u64] {
        &self.counts.skipped_of
    }

    /// A row was left out: it counts in its group, if it has one.
    #[cold]
    pub(super) fn skip_in_group(&mut self, row: Row<'_>) {
        if let Some(group) = self.row_groups.as_mut().and_then(|row_groups| row_groups.group_of(row)) {
            add_one(&mut self.counts.skipped_of, group);
        }
    }

    /// Rows that have become tuples since the epoch began.
    pub fn decoded(&self) -> u64 {
        self.counts.decoded
    }

    /// Of these, rows with categories or indices that are unknown to the model.
    pub fn unseen(&self) -> u64 {
        self.counts.unseen
    }

    /// What was counted in the epoch, with the NULLs that were imputed in it, for another process.
    pub fn epoch_counts(&self) -> EpochCounts {
        let nulls = self.imputation.as_ref().map(|imputation| imputation.counts().clone());
        EpochCounts { rows: self.counts(), nulls: nulls.unwrap_or_default() }
    }

    /// Adds what another process has counted in rows of its own.
    pub fn count_rows_of_others(&mut self, counts: &EpochCounts) {
        let EpochCounts { rows, nulls: of_others } = counts;
        assert!(rows.is_sound() && of_others.is_sound(), "a process has no more rows than a table");
        if let Some(imputation) = &mut self.imputation {
            let mut nulls = imputation.counts().clone();
            nulls.add(of_others);
            imputation.set_counts(nulls);
        }
        let own = &mut self.counts;
        own.skipped += rows.skipped;
        add_up(&mut own.skipped_of, &rows.skipped_of);
        own.decoded += rows.decoded;
        own.unseen += rows.unseen;
        own.clipped += rows.clipped;
    }

    /// Rows are left out that are not decoded again.
    pub fn leave_out(&mut self, rows: u64) {
        self.counts.skipped += rows;
    }
}
