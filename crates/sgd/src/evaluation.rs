//! Loss, accuracy, R² and what else there is to say of a finished model.
//!
//! Guarantees: a tuple counts as correct exactly if the model's decisions put it into its class, since both compute the
//! same bits; the losses are computed and summed in f64.

mod sums;

use loss::design::decide_rows;
use loss::kernels::{Decisions, sparse_decision};
use loss::{Hyperparameters, Link, ModelKind, ModelParameters, Output};
use serde::{Deserialize, Serialize};
use simd::Level;
use tuples::pause::{Pauses, pause};
use tuples::{Batch, MiniBatch};

pub use sums::EvaluationSums;

/// Evaluates a model on any number of batches. Weights of tuples count in the loss, and nowhere else.
#[derive(Debug, Clone)]
pub struct Evaluation {
    kind: ModelKind,
    /// of the loss
    number: f64,
    level: Level,
    counted: EvaluationSums,
    /// of a batch, output by output
    decisions: Vec<f32>,
}

/// How many tuples of which class were put into which.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Confusion {
    /// of each class: tuples that are of it, that were put into it, and both
    classes: Vec<[u64; 3]>,
    /// of each actual class, for each predicted one; empty if there are more than [`CELLS`](Confusion::CELLS) allows
    cells: Vec<u64>,
}

/// Precision, recall and F1; 0 where a denominator is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Retrieval {
    /// Of what was put into the class, the fraction that is of it.
    pub precision: f64,
    /// Of what is of the class, the fraction that was put into it.
    pub recall: f64,
    /// The harmonic mean of the two.
    pub f1: f64,
}

impl Confusion {
    /// With more classes there is no matrix.
    pub const CELLS: usize = 100;

    fn add(&mut self, actual: usize, predicted: usize, classes: usize) {
        if self.classes.len() < classes {
            allocation::resize(&mut self.classes, classes, [0; 3]);
            let cells = if classes <= Confusion::CELLS { classes * classes } else { 0 };
            allocation::resize(&mut self.cells, cells, 0);
        }
        self.classes[actual][0] += 1;
        self.classes[predicted][1] += 1;
        self.classes[actual][2] += u64::from(actual == predicted);
        if let Some(cell) = self.cells.get_mut(actual * classes + predicted) {
            *cell += 1;
        }
    }

    /// Adds those of another process. False if there are others of classes: then nothing is added.
    fn unite(&mut self, other: &Confusion) -> bool {
        if self.classes.is_empty() && self.cells.is_empty() {
            self.clone_from(other);
        } else if !other.classes.is_empty() || !other.cells.is_empty() {
            if (self.classes.len(), self.cells.len()) != (other.classes.len(), other.cells.len()) {
                return false;
            }
            let classes = self.classes.as_flattened_mut().iter_mut().zip(other.classes.as_flattened());
            let cells = self.cells.iter_mut().zip(&other.cells);
            classes.chain(cells).for_each(|(own, other)| *own = own.saturating_add(*other));
        }
        true
    }

    /// Tuples of class `actual` that were put into class `predicted`; None if there were no tuples, or there are too
    /// many classes for a matrix.
    pub fn cell(&self, actual: usize, predicted: usize) -> Option<u64> {
        self.cells.get(actual * self.classes.len() + predicted).copied()
    }

    /// Tuples that are of each class.
    pub fn of_classes(&self) -> Vec<u64> {
        self.classes.iter().map(|counts| counts[0]).collect()
    }

    /// How well this class was found.
    pub fn retrieval(&self, class: usize) -> Retrieval {
        let [actual, predicted, both] = self.classes.get(class).copied().unwrap_or_default();
        let share = |of: f64| if of == 0.0 { 0.0 } else { both as f64 / of };
        let (actual, predicted) = (actual as f64, predicted as f64);
        Retrieval { precision: share(predicted), recall: share(actual), f1: share((actual + predicted) / 2.0) }
    }

    /// The plain mean over all classes that a tuple is of, or was put into.
    pub fn macro_average(&self) -> Retrieval {
        let met = (0..self.classes.len()).filter(|class| self.classes[*class][..2] != [0, 0]);
        let (mut sum, mut classes) = (Retrieval::default(), 0.0);
        for class in met {
            let Retrieval { precision, recall, f1 } = self.retrieval(class);
            sum.precision += precision;
            sum.recall += recall;
            sum.f1 += f1;
            classes += 1.0;
        }
        let mean = |sum: f64| if classes == 0.0 { 0.0 } else { sum / classes };
        Retrieval { precision: mean(sum.precision), recall: mean(sum.recall), f1: mean(sum.f1) }
    }
}

impl Evaluation {
    /// No tuples yet, by the loss of `kind`.
    pub fn new(kind: ModelKind) -> Evaluation {
        Evaluation::with_level(kind, Level::detect())
    }

    pub(crate) fn with_level(kind: ModelKind, level: Level) -> Evaluation {
        let (number, counted) = (Hyperparameters::new(kind).loss_number, EvaluationSums::default());
        Evaluation { kind, number, level, counted, decisions: Vec::new() }
    }

    /// The same with this number of the loss, in the units of the targets.
    pub fn with_loss_number(self, number: f64) -> Evaluation {
        Evaluation { number, ..self }
    }

    /// From now on the loss has this number.
    pub fn set_loss_number(&mut self, number: f64) {
        self.number = number;
    }

    /// Evaluates `model` on all tuples of `batch`, whose labels are as in training.
    ///
    /// # Panics
    /// If the batch is dense and does not have the same number of features as the model. A sparse one may have more, of
    /// weight 0.
    pub fn add(&mut self, model: &ModelParameters, batch: &Batch) {
        self.add_and_show(model, batch, |_, _| {});
    }

    /// As [`add`](Evaluation::add), and shows the decisions for each tuple, one per output, and its label as exactly
    /// as it is known.
    ///
    /// # Panics
    /// As [`add`](Evaluation::add).
    pub fn add_and_show(&mut self, model: &ModelParameters, batch: &Batch, mut show: impl FnMut(&[f32], f64)) {
        if batch.has_mini_batches() {
            return (0..batch.len()).for_each(|i| self.add_mini_batch(model, batch.mini_batch(i), &mut show));
        }
        self.decisions.clear();
        if model.network.is_some() {
            return self.add_network(model, batch, show);
        }
        for k in 0..model.outputs {
            pause();
            let (weights, intercept, decisions) = (model.weights_of(k), model.intercepts[k], &mut self.decisions);
            if batch.is_sparse() {
                allocation::extend(
                    decisions,
                    (0..batch.len()).map(|i| {
                        let (indices, values) = batch.sparse_row(i);
                        sparse_decision(weights, intercept, indices, values)
                    }),
                );
            } else {
                assert_eq!(batch.dim(), model.dim, "as many features as weights");
                self.level.run(Decisions { weights, intercept, batch, decisions });
            }
        }
        let (mut row, mut pauses) = (vec![0.0; model.outputs], Pauses::default());
        for i in 0..batch.len() {
            let y = batch.exact_label(i);
            pauses.after(model.outputs);
            for (k, z) in row.iter_mut().enumerate() {
                *z = self.decisions[k * batch.len() + i];
            }
            self.count(&row, y, batch.weights().map(|weights| weights[i]));
            show(&row, y);
        }
        self.counted.sums.tuples += batch.len() as u64;
    }

    fn add_mini_batch(&mut self, model: &ModelParameters, mini_batch: &MiniBatch, show: &mut impl FnMut(&[f32], f64)) {
        if let Some(network) = &model.network {
            self.counted.output = Some(network.output);
            let decisions = decide_rows(network, &model.view(), &*mini_batch.matrix());
            for (i, row) in decisions.chunks_exact(model.outputs).enumerate() {
                let y = mini_batch.exact_label(i);
                self.count(row, y, mini_batch.weights().map(|weights| weights[i]));
                show(row, y);
            }
            self.counted.sums.tuples += mini_batch.len() as u64;
            return;
        }
        let (matrix, mut scratch) = (mini_batch.matrix(), Vec::new());
        self.decisions.clear();
        allocation::resize(&mut self.decisions, model.outputs * mini_batch.len(), 0.0);
        for (k, decisions) in self.decisions.chunks_exact_mut(mini_batch.len().max(1)).enumerate() {
            pause();
            matrix.times_vector(model.weights_of(k), decisions, &mut scratch);
        }
        let mut row = vec![0.0; model.outputs];
        for i in 0..mini_batch.len() {
            let y = mini_batch.exact_label(i);
            for (k, z) in row.iter_mut().enumerate() {
                *z = self.decisions[k * mini_batch.len() + i] + model.intercepts[k];
            }
            self.count(&row, y, mini_batch.weights().map(|weights| weights[i]));
            show(&row, y);
        }
        self.counted.sums.tuples += mini_batch.len() as u64;
    }

    /// The same for a network, a tuple at a time.
    fn add_network(&mut self, model: &ModelParameters, batch: &Batch, mut show: impl FnMut(&[f32], f64)) {
        let (mut decisions, mut pauses) = (std::mem::take(&mut self.decisions), Pauses::default());
        decisions.resize(model.outputs, 0.0);
        self.counted.output = model.network.map(|network| network.output);
        for i in 0..batch.len() {
            let y = batch.exact_label(i);
            if batch.is_sparse() {
                let (indices, values) = batch.sparse_row(i);
                model.decisions_sparse(indices, values, &mut decisions);
            } else {
                model.decisions(batch.features(i), &mut decisions);
            }
            pauses.after(model.weights.len());
            self.count(&decisions, y, batch.weights().map(|weights| weights[i]));
            show(&decisions, y);
        }
        self.decisions = decisions;
        self.counted.sums.tuples += batch.len() as u64;
    }

    /// Counts one tuple of the given decisions, label and weight.
    fn count(&mut self, decisions: &[f32], y: f64, weight: Option<f32>) {
        let weight = weight.map_or(1.0, f64::from);
        let EvaluationSums { output, has_infinite, sums, confusion } = &mut self.counted;
        sums.weight += weight;
        *has_infinite |= !decisions.iter().all(|z| z.is_finite());
        let loss = match output {
            Some(output) if output.has_classes() => {
                let (loss, log_loss) = output.losses(decisions, y as usize);
                sums.log_loss += weight * log_loss;
                loss
            }
            _ => self.kind.exact_loss(decisions, y, self.number),
        };
        // what weighs nothing adds nothing, however wrong it is
        sums.loss += if weight > 0.0 { weight * loss } else { 0.0 };
        if !self.kind.is_classifier() {
            let (prediction, target) = (self.kind.link().prediction(decisions[0]), y);
            *has_infinite |= !prediction.is_finite();
            sums.targets.add(target);
            sums.absolute += (prediction - target).abs();
            sums.below += u64::from(target <= prediction);
            sums.squares += (prediction - target).powi(2);
            sums.target_logs += if target > 0.0 { weight * target * target.ln() } else { 0.0 };
            sums.target_sum += weight * target;
            return;
        }
        let (actual, predicted, classes) = match decisions {
            [z] => (usize::from(y > 0.0), usize::from(*z > 0.0), 2),
            many => (y as usize, ModelParameters::class_of(many), many.len()),
        };
        sums.correct += u64::from(actual == predicted);
        confusion.add(actual, predicted, classes);
    }

    /// What was counted so far, for another process.
    pub fn sums(&self) -> EvaluationSums {
        self.counted.clone()
    }

    /// Adds what another process has counted with the same model. False if it was another model, or if it cannot have
    /// counted that: then nothing is added.
    pub fn add_sums(&mut self, other: &EvaluationSums) -> bool {
        self.counted.add(other)
    }

    /// The mean of -ln p of the tuples' classes: the loss, unless a network has an output of its own for each of more
    /// than two classes.
    pub fn log_loss(&self) -> f64 {
        let own = self.counted.output == Some(Output::Sigmoid) && self.counted.confusion.classes.len() > 2;
        if own { self.mean_loss(self.counted.sums.log_loss) } else { self.loss() }
    }

    /// Σ w·loss / Σ w, without a penalty; 0 if there were no tuples; infinite or NaN if a decision is beyond f32.
    pub fn loss(&self) -> f64 {
        self.mean_loss(self.counted.sums.loss)
    }

    fn mean_loss(&self, sum: f64) -> f64 {
        if self.counted.sums.weight > 0.0 { sum / self.counted.sums.weight } else { 0.0 }
    }

    /// The fraction of tuples in their class, 0 of none: positive if the decision is above 0, negative otherwise; with
    /// softmax the class of the greatest decision. None of a regression.
    pub fn accuracy(&self) -> Option<f64> {
        self.kind.is_classifier().then(|| self.mean(self.counted.sums.correct as f64))
    }

    /// 1 - Σ (y - z)² / Σ (y - mean y)², of a regression only. If all targets are the same it is 1 if they were met,
    /// else 0.
    pub fn r2(&self) -> Option<f64> {
        (!self.kind.is_classifier()).then(|| self.counted.sums.targets.r2(self.counted.sums.squares))
    }

    /// Whether the model has diverged: a decision or the mean loss is beyond what can be.
    pub fn has_diverged(&self) -> bool {
        self.counted.has_infinite || !self.kind.is_loss(self.loss(), self.counted.sums.targets.moments().0)
    }

    /// Whether R² says something: targets of a regression differ.
    pub fn has_r2(&self) -> bool {
        !self.kind.is_classifier() && self.counted.sums.targets.moments().1 > 0.0
    }

    /// The root of the mean squared error, of a regression only.
    pub fn rmse(&self) -> Option<f64> {
        (!self.kind.is_classifier()).then(|| self.mean(self.counted.sums.squares).sqrt())
    }

    /// The mean absolute error, of a regression only.
    pub fn mae(&self) -> Option<f64> {
        (!self.kind.is_classifier()).then(|| self.mean(self.counted.sums.absolute))
    }

    /// The mean of Poisson's deviance, and the fraction of it that is less than a constant's, that of the mean: 1 if
    /// all of it is, also without any. Of a logarithmic link only.
    pub fn poisson_deviance(&self) -> Option<(f64, f64)> {
        let has_counts = !self.kind.is_classifier() && self.kind.link() == Link::Logarithm;
        let mean = self.mean_loss(self.counted.sums.target_sum);
        let of_mean =
            self.counted.sums.target_logs - if mean > 0.0 { self.counted.sums.target_sum * mean.ln() } else { 0.0 };
        let explained = if of_mean > 0.0 {
            1.0 - self.counted.sums.loss / of_mean
        } else {
            f64::from(u8::from(self.counted.sums.loss == 0.0))
        };
        has_counts.then(|| (2.0 * self.loss(), explained))
    }

    /// By the loss of which kind of model.
    pub fn kind(&self) -> ModelKind {
        self.kind
    }

    /// The fraction of the targets that are at most what is predicted, of a regression only.
    pub fn fraction_below(&self) -> Option<f64> {
        (!self.kind.is_classifier()).then(|| self.mean(self.counted.sums.below as f64))
    }

    /// Which tuples were put into which class: nothing of a regression. Of two classes, class 1 is the positive one.
    pub fn confusion(&self) -> &Confusion {
        &self.counted.confusion
    }

    /// What the tuples weigh that were evaluated.
    pub fn weight(&self) -> f64 {
        self.counted.sums.weight
    }

    /// How many tuples were evaluated.
    pub fn tuples(&self) -> u64 {
        self.counted.sums.tuples
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.counted.sums.tuples == 0 { 0.0 } else { sum / self.counted.sums.tuples as f64 }
    }
}
