//! What decoders of several processes have met in a preparation pass, each in rows of its own, and one decoder that
//! takes it for what it has met itself.

use super::counts::EpochCounts;
use super::features::FeatureColumns;
use super::labels::MetClasses;
use super::mixed_column::FoundColumn;
use super::tuple_decoder::Decoder;
use super::weight::RowSums;
use errors::{NodeError, Result};
use serde::{Deserialize, Serialize};

/// What a decoder has met in a preparation pass that has not ended.
#[derive(Serialize, Deserialize)]
pub struct Met {
    classes: Option<MetClasses>,
    /// of each column that is no number
    columns: Vec<FoundColumn>,
    /// numbers of a vector, or of a row of a compressed mini-batch
    dim: Option<usize>,
    /// dimensions of sparse tuples
    observed_dim: usize,
    counts: EpochCounts,
    /// the groups of rows, by their numbers
    groups: Vec<String>,
}

impl Met {
    /// The groups of rows, by their numbers.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }
}

/// Counts of groups by the numbers that they have here.
fn renumbered(counts: &[u64], numbers: &[usize]) -> Vec<u64> {
    let mut here = vec![0; numbers.iter().max().map_or(0, |greatest| greatest + 1)];
    counts.iter().zip(numbers).for_each(|(count, number)| here[*number] += count);
    here
}

impl Decoder {
    /// What was met so far.
    pub fn met(&self) -> Met {
        Met {
            classes: self.labels.met_classes(),
            columns: match &self.features {
                FeatureColumns::Mixed(columns) => columns.found(),
                _ => Vec::new(),
            },
            dim: match &self.features {
                FeatureColumns::Array { dim, .. } => *dim,
                FeatureColumns::Sparse(columns) => columns.fixed_dim(),
                FeatureColumns::Compressed(column) => column.dim(),
                _ => None,
            },
            observed_dim: self.learned.observed_dim,
            counts: self.epoch_counts(),
            groups: self.group_names(),
        }
    }

    /// Meets what another decoder of the same columns has met, in rows of its own, and adds what these add up to to
    /// `sums`.
    pub fn unite(&mut self, met: &Met, own: &RowSums, sums: &mut RowSums) -> Result<()> {
        let classes = self.labels.unite(met.classes.as_ref())?;
        let differ = |what: &str, a: usize, b: usize| {
            NodeError::Differ(format!("{what} have {a} numbers on one server and {b} on another"))
        };
        match &mut self.features {
            FeatureColumns::Array { dim, name, .. } => match (*dim, met.dim) {
                (Some(a), Some(b)) if a != b => {
                    return Err(differ(&format!("the arrays in column \"{name}\""), a, b).into());
                }
                (known, new) => *dim = known.or(new),
            },
            FeatureColumns::Sparse(columns) => match (columns.fixed_dim(), met.dim) {
                (Some(a), Some(b)) if a != b => return Err(differ("sparse vectors", a, b).into()),
                (known, new) => columns.fix_dim(known.or(new)),
            },
            FeatureColumns::Mixed(columns) => {
                columns.unite(&met.columns).map_err(|fault| NodeError::Differ(fault.to_string()))?;
            }
            FeatureColumns::Columns { .. } => {}
            FeatureColumns::Compressed(column) => match (column.dim(), met.dim) {
                (Some(a), Some(b)) if a != b => return Err(differ("compressed rows", a, b).into()),
                (known, new) => column.set_dim(known.or(new)),
            },
        }
        let groups = self.meet_groups(&met.groups);
        for (group, class, sum) in own.all() {
            let group = groups.get(group).copied().unwrap_or_default();
            sums.add(group, classes.get(class).copied().unwrap_or_default(), sum);
        }
        self.meet_dim(met.observed_dim);
        let mut counts = met.counts.clone();
        counts.rows.skipped_of = renumbered(&counts.rows.skipped_of, &groups);
        counts.nulls.groups = renumbered(&counts.nulls.groups, &groups);
        self.count_rows_of_others(&counts);
        Ok(())
    }
}
