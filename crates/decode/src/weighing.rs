//! How a decoder weighs tuples: what it adds up in a preparation pass, and what it makes of it later.

use super::row_groups::HELD_OUT;
use super::tuple_decoder::{Decoder, SKIPPED};
use super::weight::{Factors, RowSum, RowSums};
use tuples::Batch;

impl Decoder {
    /// Have rows or classes weights?
    pub fn has_weights(&self) -> bool {
        self.weight.is_some() || self.labels.have_weights()
    }

    pub fn weighs_rows(&self) -> bool {
        self.weight.is_some()
    }

    /// Have tuples weights? In a preparation pass they are those of the rows.
    pub(super) fn is_weighted(&self) -> bool {
        self.weight.is_some() || (!self.preparing && self.labels.have_weights())
    }

    /// What the weights of rows are multiplied by, if that was to be found.
    pub fn factors(&self) -> Option<&Factors> {
        self.learned.factors.as_ref()
    }

    /// Adds the rows of a batch of a preparation pass to `sums`.
    pub fn add_up(&self, batch: &Batch, sums: &mut RowSums) {
        let has_groups = self.row_groups.as_ref().is_some_and(|row_groups| row_groups.has_groups());
        if self.weight.is_none() && !(has_groups && self.has_weights()) {
            let mut rows: Vec<u64> = Vec::new();
            let mut count = |label: &f32| {
                let class = self.labels.class(*label);
                if class >= rows.len() {
                    rows.resize(class + 1, 0);
                }
                rows[class] += 1;
            };
            match batch.has_mini_batches() {
                true => (0..batch.len()).flat_map(|i| batch.mini_batch(i).labels()).for_each(&mut count),
                false => batch.labels().iter().for_each(&mut count),
            }
            return (0..).zip(rows).for_each(|(class, rows)| sums.add(0, class, RowSum::of_rows(rows)));
        }
        for (i, label) in batch.labels().iter().enumerate() {
            let weight = batch.weights().map_or(1.0, |weights| weights[i]);
            sums.add(self.group_of(batch.tags(), i), self.labels.class(*label), RowSum::of_row(weight));
        }
    }

    /// The number of the group that the tuple in place `i` is of, by its tag.
    fn group_of(&self, tags: Option<&[u32]>, i: usize) -> usize {
        match (&self.row_groups, tags) {
            (Some(row_groups), Some(tags)) if row_groups.has_groups() => (tags[i] & !HELD_OUT) as usize,
            _ => 0,
        }
    }

    /// Gives the tuples from `first` on their weights. Nothing is learned from rows that weigh
    /// nothing: it is as if they were not there.
    pub(super) fn weigh(&self, batch: &mut Batch, first: usize) {
        let factors = self.learned.factors.as_ref().filter(|_| !self.preparing);
        let mut has_weightless = false;
        for i in first..batch.len() {
            let own = if self.weight.is_some() { self.row_weights[i - first] } else { 1.0 };
            let Some(factors) = factors else {
                batch.weights_mut()[i] = own;
                continue;
            };
            let (group, class) = (self.group_of(batch.tags(), i), self.labels.class(batch.label(i)));
            let weight = (f64::from(own) * factors.of(group, class)) as f32;
            batch.weights_mut()[i] = weight;
            if weight == 0.0 {
                batch.labels_mut()[i] = SKIPPED;
                has_weightless = true;
            }
        }
        if has_weightless {
            batch.retain_from(first, |label| !label.is_nan());
        }
    }
}
