//! How clustered a table is: the factor h_D of the CorgiPile paper, at one model: the one that is zero, or a given one.
//!
//! With the gradients `g_i` of `m` tuples in `N` blocks of `n_l`, their mean and those of the blocks,
//!
//! ```text
//!     h_D = b * [sum over blocks of n_l / m * |mean_l - mean|^2] / [1 / m * sum over tuples of |g_i - mean|^2]
//!     b = m / N
//! ```
//!
//! (Xu et al., SIGMOD 2022, section 4.2, where all blocks have `b` tuples, and h_D is the least number that is not
//! exceeded at any model: the value at one model is a lower bound of it). It is about 1 if the tuples of a block are as
//! different as any, and `b` if those of a block are all alike.
//!
//! Gradients are those of the loss, with respect to weights and intercepts: the derivative by each decision, times the
//! tuple with a 1 behind it. At zero weights and intercepts the derivatives are `-y` up to a constant factor for
//! logistic, svm and linear, `1 / K - [y = k]` for class k of K. So it is enough there to add up tuples times labels,
//! or the tuples of each class, and K may be found on the way. At a given model, tuples are multiplied by the
//! derivatives, output by output. Sums are in f64.

use loss::models::{Objective, ObjectiveVisitor};
use loss::totals::Totals;
use loss::{ModelKind, ModelParameters};
use serde::{Deserialize, Serialize};
use simd::Portable;
use tuples::{Batch, OutOfMemory};

/// Adds up the gradients of a table, block by block.
#[derive(Debug)]
pub struct ClusterFactor {
    /// are sums by class, and not by output?
    by_class: bool,
    kind: ModelKind,
    /// what gradients are taken at, and the number of its loss; None for zero
    model: Option<(ModelParameters, f32)>,
    /// of the tuple under way
    decisions: Vec<f32>,
    /// sums of the block under way, and of the blocks that are complete
    block: Sums,
    table: Sums,
    /// the block's tuples
    in_block: u64,
    /// features that are not zero in `block`, perhaps more than once; all of them if tuples are dense
    touched: Vec<u32>,
    /// over the complete blocks, their tuples apart: |sum|^2 / n of each class, and of all classes together
    of_classes: f64,
    of_all: f64,
    /// |x|^2 of all tuples, with the 1, times y^2 where y is a factor
    squares: f64,
    blocks: u64,
    seen: u64,
}

/// What some of a table's blocks add up to, for another process. Sums travel as their bits.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClusterSums {
    table: Vec<Vec<u64>>,
    /// over the blocks, by class and of all classes, and of the squares of all tuples
    sums: [u64; 3],
    blocks: u64,
    tuples: u64,
}

/// Per class or output, the sum of the tuples, each times a factor: of their 1s, then of their features.
type Sums = Vec<Vec<f64>>;

impl ClusterFactor {
    /// At zero weights, of a table of which nothing has been seen.
    pub fn new(kind: ModelKind) -> ClusterFactor {
        ClusterFactor {
            by_class: kind.has_class_numbers(),
            kind,
            model: None,
            decisions: Vec::new(),
            block: Sums::new(),
            table: Sums::new(),
            in_block: 0,
            touched: Vec::new(),
            of_classes: 0.0,
            of_all: 0.0,
            squares: 0.0,
            blocks: 0,
            seen: 0,
        }
    }

    /// At a linear model, with this number of the loss.
    pub fn at(kind: ModelKind, model: ModelParameters, loss_number: f64) -> ClusterFactor {
        let decisions = vec![0.0; model.outputs];
        ClusterFactor {
            by_class: false,
            model: Some((model, loss_number as f32)),
            decisions,
            ..ClusterFactor::new(kind)
        }
    }

    /// Adds tuples of the block under way.
    pub fn add(&mut self, batch: &Batch) -> Result<(), OutOfMemory> {
        for i in 0..batch.len() {
            let label = batch.label(i);
            if self.model.is_some() {
                self.find_derivatives(batch, i);
                for output in 0..self.decisions.len() {
                    self.add_tuple(batch, i, output, f64::from(self.decisions[output]))?;
                }
            } else if self.by_class {
                self.add_tuple(batch, i, label as usize, 1.0)?;
            } else {
                self.add_tuple(batch, i, 0, self.kind.pull_at_zero(label.into()))?;
            }
            if batch.is_sparse() {
                let (indices, _) = batch.sparse_row(i);
                allocation::try_reserve(&mut self.touched, indices.len())?;
                self.touched.extend_from_slice(indices);
            }
        }
        self.in_block += batch.len() as u64;
        if !batch.is_sparse() && self.touched.len() < batch.dim() {
            self.touched.clear();
            allocation::try_reserve(&mut self.touched, batch.dim())?;
            self.touched.extend(0..batch.dim() as u32);
        }
        Ok(())
    }

    /// Makes the decisions for tuple `i` minus the derivatives of its loss by each.
    fn find_derivatives(&mut self, batch: &Batch, i: usize) {
        struct Derivatives<'a>(&'a mut [f32], f32);
        impl ObjectiveVisitor for Derivatives<'_> {
            type Output = ();

            fn visit<O: Objective>(self, objective: O) {
                objective.loss_and_gradient(Portable, &mut Totals::default(), self.0, self.1, 1.0);
            }
        }
        let Some((model, number)) = &self.model else { return };
        if batch.is_sparse() {
            let (indices, values) = batch.sparse_row(i);
            model.decisions_sparse(indices, values, &mut self.decisions);
        } else {
            model.decisions(batch.features(i), &mut self.decisions);
        }
        self.kind.with_objective(*number, Derivatives(&mut self.decisions, batch.label(i)));
    }

    /// Adds tuple `i`, times a factor, to the sums of a class or an output.
    fn add_tuple(&mut self, batch: &Batch, i: usize, place: usize, factor: f64) -> Result<(), OutOfMemory> {
        let sums = sums_of(&mut self.block, place, batch.dim())?;
        let mut square = 1.0;
        batch.entries(i).for_each(|(j, value)| {
            sums[j + 1] += factor * f64::from(value);
            square += f64::from(value) * f64::from(value);
        });
        sums[0] += factor;
        self.squares += factor * factor * square;
        Ok(())
    }

    /// Ends the block. One without tuples is not one.
    pub fn end_block(&mut self) -> Result<(), OutOfMemory> {
        if self.in_block == 0 {
            return Ok(());
        }
        let dim = self.block.iter().map(Vec::len).max().unwrap_or(1) - 1;
        for class in 0..self.block.len() {
            sums_of(&mut self.table, class, dim)?;
        }
        let (mut of_classes, mut of_all) = (0.0, 0.0);
        for place in std::iter::once(0).chain(self.touched.iter().map(|j| *j as usize + 1)) {
            let mut all = 0.0;
            for (block, table) in self.block.iter_mut().zip(&mut self.table) {
                // taken out, so that a feature that was touched twice counts once
                let sum = block.get_mut(place).map_or(0.0, std::mem::take);
                if sum != 0.0 {
                    table[place] += sum;
                    of_classes += sum * sum;
                    all += sum;
                }
            }
            of_all += all * all;
        }
        self.of_classes += of_classes / self.in_block as f64;
        self.of_all += of_all / self.in_block as f64;
        self.seen += self.in_block;
        self.blocks += 1;
        self.in_block = 0;
        self.touched.clear();
        Ok(())
    }

    /// What the complete blocks add up to.
    pub fn sums(&self) -> ClusterSums {
        ClusterSums {
            table: self.table.iter().map(|sums| sums.iter().map(|sum| sum.to_bits()).collect()).collect(),
            sums: [self.of_classes, self.of_all, self.squares].map(f64::to_bits),
            blocks: self.blocks,
            tuples: self.seen,
        }
    }

    /// Adds blocks that another process has gone through, with the same classes. This one is between two blocks.
    pub fn add_sums(&mut self, other: &ClusterSums) -> Result<(), OutOfMemory> {
        for (class, others) in other.table.iter().enumerate() {
            let own = sums_of(&mut self.table, class, others.len().saturating_sub(1))?;
            own.iter_mut().zip(others).for_each(|(own, other)| *own += f64::from_bits(*other));
        }
        let [of_classes, of_all, squares] = other.sums.map(f64::from_bits);
        self.of_classes += of_classes;
        self.of_all += of_all;
        self.squares += squares;
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.seen = self.seen.saturating_add(other.tuples);
        Ok(())
    }

    /// The tuples of the complete blocks.
    pub fn tuples(&self) -> u64 {
        self.seen
    }

    /// Tuples of a block, in the mean of the complete ones that have any.
    pub fn tuples_per_block(&self) -> f64 {
        self.seen as f64 / self.blocks.max(1) as f64
    }

    /// h_D of the complete blocks; None if all gradients are the same, or there is no gradient.
    pub fn factor(&self) -> Option<f64> {
        // |1/K - [y = k]|^2, summed over the classes k, of one tuple, and of sums of tuples by class; with a hinge for
        // each class it is |1/2 - [y = k]|^2
        let share = match (self.by_class, self.table.len() as f64) {
            (false, _) => 0.0,
            (true, classes) if matches!(self.kind, ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest) => {
                1.0 - classes / 4.0
            }
            (true, classes) => 1.0 / classes,
        };
        let total = self.seen as f64;
        let places = self.table.iter().map(Vec::len).max().unwrap_or(0);
        let (mut of_classes, mut of_all) = (0.0, 0.0);
        for place in 0..places {
            let sums = || self.table.iter().filter_map(|sums| sums.get(place));
            of_classes += sums().map(|sum| sum * sum).sum::<f64>();
            of_all += sums().sum::<f64>().powi(2);
        }
        let mean = (of_classes - share * of_all) / total;
        let of_blocks = self.of_classes - share * self.of_all - mean;
        let squares = self.squares * (1.0 - share);
        let of_tuples = squares - mean;
        // what is left of a difference of equal sums
        let rounding = squares * f64::EPSILON * total.sqrt().max(16.0);
        (of_tuples > rounding).then(|| total / self.blocks as f64 * (of_blocks.max(0.0) / of_tuples))
    }
}

/// The sums of a class, with room for `dim` features.
fn sums_of(sums: &mut Sums, class: usize, dim: usize) -> Result<&mut Vec<f64>, OutOfMemory> {
    if class >= sums.len() {
        allocation::try_reserve(sums, class + 1 - sums.len())?;
        sums.resize_with(class + 1, Vec::new);
    }
    let of_class = &mut sums[class];
    if of_class.len() < dim + 1 {
        allocation::try_reserve(of_class, dim + 1 - of_class.len())?;
        of_class.resize(dim + 1, 0.0);
    }
    Ok(of_class)
}
