//! What an evaluation has counted, for another process, which adds it to what it has counted itself.
//!
//! Guarantees: counts are those of one evaluation of all tuples, and sums are added in f64, so that they differ from
//! its own by rounding only. Sums travel as their bits: JSON knows no infinities.

use serde::{Deserialize, Serialize};

use super::Evaluation;
use crate::Output;
use crate::counts;
use crate::variance_sum::VarianceSum;

/// What an evaluation has counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvaluationSums {
    output: Option<Output>,
    /// bits of the sums of losses, weights, log losses, absolute errors, squared errors, y ln y, and y
    sums: [u64; 7],
    /// tuples that are correct, tuples in all, and targets below what is predicted
    counts: [u64; 3],
    in_range: bool,
    /// bits of the targets' weight, origin, sum and squares
    targets: [u64; 4],
    classes: Vec<[u64; 3]>,
    cells: Vec<u64>,
}

impl EvaluationSums {
    /// Are no more tuples counted than there are, and no more than there can be?
    fn is_sound(&self) -> bool {
        let [correct, tuples, below] = self.counts;
        tuples <= counts::MAX_ROWS
            && correct.max(below) <= tuples
            && counts::fit(&self.cells, tuples)
            && counts::fit(self.classes.as_flattened(), 3 * tuples)
    }
}

impl Evaluation {
    /// What was counted so far.
    pub fn sums(&self) -> EvaluationSums {
        let sums =
            [self.loss, self.weight, self.log_loss, self.absolute, self.squares, self.target_logs, self.target_sum];
        EvaluationSums {
            output: self.output,
            sums: sums.map(f64::to_bits),
            counts: [self.correct, self.tuples, self.below],
            in_range: self.in_range,
            targets: bytemuck::cast(self.targets),
            classes: self.confusion.classes.clone(),
            cells: self.confusion.cells.clone(),
        }
    }

    /// Adds what another process has counted with the same model. False if it was another model, or if it cannot have
    /// counted that: then nothing is added.
    pub fn add_sums(&mut self, other: &EvaluationSums) -> bool {
        if !other.is_sound() {
            return false;
        }
        let (own, others) = (&mut self.confusion, (&other.classes, &other.cells));
        let is_empty = own.classes.is_empty() && own.cells.is_empty();
        let has_none = others.0.is_empty() && others.1.is_empty();
        if !is_empty && !has_none && (own.classes.len(), own.cells.len()) != (others.0.len(), others.1.len()) {
            return false;
        }
        if is_empty {
            (own.classes, own.cells) = (others.0.clone(), others.1.clone());
        } else if !has_none {
            let classes = own.classes.as_flattened_mut().iter_mut().zip(others.0.as_flattened());
            classes
                .chain(own.cells.iter_mut().zip(others.1))
                .for_each(|(own, other)| *own = own.saturating_add(*other));
        }
        let Evaluation { loss, weight, log_loss, absolute, squares, target_logs, target_sum, .. } = self;
        let own = [loss, weight, log_loss, absolute, squares, target_logs, target_sum];
        own.into_iter().zip(other.sums).for_each(|(own, other)| *own += f64::from_bits(other));
        let own = [&mut self.correct, &mut self.tuples, &mut self.below];
        own.into_iter().zip(other.counts).for_each(|(own, other)| *own = own.saturating_add(other));
        self.in_range &= other.in_range;
        self.targets.merge(&bytemuck::cast::<[u64; 4], VarianceSum>(other.targets));
        self.output = self.output.or(other.output);
        true
    }
}
