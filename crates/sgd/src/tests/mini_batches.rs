//! Learning from blocks, against learning from mini-batches of the same rows.

use std::rc::Rc;

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer};
use sgd_tests::{Noise, noisy_batch};
use tuples::{Batch, Matrix, MiniBatch};

use crate::{Evaluation, Trainer};

/// A matrix that is kept as it is, multiplied entry by entry.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) columns: usize,
    pub(super) entries: Vec<f32>,
}

impl Matrix for Plain {
    fn rows(&self) -> usize {
        self.entries.len() / self.columns
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn bytes(&self) -> usize {
        self.entries.len() * size_of::<f32>()
    }

    fn times_vector(&self, v: &[f32], out: &mut [f32], _: &mut Vec<f32>) {
        for (row, out) in self.entries.chunks_exact(self.columns).zip(out) {
            *out = row.iter().zip(v).map(|(a, v)| a * v).sum();
        }
    }

    fn vector_times(&self, v: &[f32], out: &mut [f32], _: &mut Vec<f32>) {
        for (row, v) in self.entries.chunks_exact(self.columns).zip(v) {
            row.iter().zip(&mut *out).for_each(|(a, out)| *out += a * v);
        }
    }

    fn times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], _: &mut Vec<f32>) {
        out.fill(0.0);
        for (row, out) in self.entries.chunks_exact(self.columns).zip(out.chunks_exact_mut(width)) {
            for (a, m) in row.iter().zip(m.chunks_exact(width)) {
                out.iter_mut().zip(m).for_each(|(out, m)| *out += a * m);
            }
        }
    }

    fn transposed_times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], _: &mut Vec<f32>) {
        for (row, m) in self.entries.chunks_exact(self.columns).zip(m.chunks_exact(width)) {
            for (a, out) in row.iter().zip(out.chunks_exact_mut(width)) {
                out.iter_mut().zip(m).for_each(|(out, m)| *out += a * m);
            }
        }
    }
}

/// The tuples of a batch in its order as blocks of `rows`.
pub(super) fn mini_batches_of(batch: &Batch, rows: usize) -> Batch {
    let mut mini_batches = Batch::mini_batches(batch.dim());
    for places in batch.order().chunks(rows) {
        let places = || places.iter().map(|place| *place as usize);
        let entries = places().flat_map(|place| batch.features(place).to_vec()).collect();
        let matrix = Box::new(Plain { columns: batch.dim(), entries });
        let mini_batch = MiniBatch::new(matrix, places().map(|place| batch.label(place)).collect());
        let weights = batch.weights().map(|weights| places().map(|place| weights[place]).collect());
        let mini_batch = match weights {
            Some(weights) => mini_batch.with_weights(weights),
            None => mini_batch,
        };
        mini_batches.push_mini_batch(Rc::new(mini_batch)).unwrap();
    }
    mini_batches
}

fn train(hyper: Hyperparameters, outputs: usize, batch: &Batch) -> (ModelParameters, Vec<f64>) {
    let mut trainer = Trainer::new(hyper, batch.dim(), outputs, false).unwrap();
    let losses = (0..3).map(|_| {
        trainer.begin_epoch();
        trainer.begin_buffer(batch.tuples_in_order(), batch, 0..batch.order().len()).unwrap();
        trainer.learn(batch, 0..batch.order().len()).unwrap();
        let report = trainer.end_epoch().unwrap();
        assert_eq!(report.tuples, batch.tuples_in_order() as u64);
        report.loss
    });
    let losses = losses.collect();
    (trainer.model().unwrap(), losses)
}

fn assert_near(one: &[f32], other: &[f32]) {
    let size = one.iter().map(|x| x.abs()).fold(0.0, f32::max);
    for (a, b) in one.iter().zip(other) {
        assert!((a - b).abs() <= 1e-5 * size, "{a} is not {b}");
    }
}

#[test]
fn blocks_teach_what_mini_batches_of_their_rows_teach() {
    let mut noise = Noise::new(9);
    for optimizer in [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM] {
        for kind in ModelKind::LINEAR {
            for (l1, l2, weighted) in [(0.0, 0.0, false), (1e-3, 0.0, true), (0.0, 1e-2, true), (1e-3, 1e-2, false)] {
                let outputs = if kind.has_class_numbers() { 3 } else { 1 };
                let mut batch = noisy_batch(19, 300, 3);
                if kind.has_class_numbers() {
                    batch.labels_mut().iter_mut().enumerate().for_each(|(i, y)| *y = (*y + 1.0).min((i % 3) as f32));
                }
                if weighted {
                    let mut copy = Batch::dense(19);
                    copy.set_weighted(true);
                    (0..batch.len()).for_each(|i| copy.push_copy(&batch, i).unwrap());
                    copy.weights_mut().iter_mut().for_each(|weight| *weight = 1.5 + noise.next());
                    copy.set_order(batch.order()).unwrap();
                    batch = copy;
                }
                let hyper = Hyperparameters { optimizer, l1, l2, batch_size: 64, ..Hyperparameters::new(kind) };
                let (model, losses) = train(hyper, outputs, &batch);
                let of_mini_batches = Hyperparameters { batch_size: Hyperparameters::WHOLE_MINI_BATCHES, ..hyper };
                let mini_batches = mini_batches_of(&batch, 64);
                let (same, same_losses) = train(of_mini_batches, outputs, &mini_batches);
                assert_near(&model.weights, &same.weights);
                assert_near(&model.intercepts, &same.intercepts);
                for (a, b) in losses.iter().zip(same_losses) {
                    assert!((a - b).abs() <= 1e-5 * a.abs(), "{kind} {optimizer:?}: {a} is not {b}");
                }
                let judge = |batch: &Batch| {
                    let mut evaluation = Evaluation::new(kind);
                    evaluation.add(&model, batch);
                    (evaluation.tuples(), evaluation.accuracy(), evaluation.loss())
                };
                let ((tuples, accuracy, loss), (same_tuples, same_accuracy, same_loss)) =
                    (judge(&batch), judge(&mini_batches));
                assert_eq!((tuples, accuracy), (same_tuples, same_accuracy));
                assert!((loss - same_loss).abs() <= 1e-5 * loss);
            }
        }
    }
}

#[test]
fn an_empty_block_makes_no_step() {
    let batch = noisy_batch(4, 10, 1);
    let mut mini_batches = mini_batches_of(&batch, 5);
    let empty = MiniBatch::new(Box::new(Plain { columns: 4, entries: Vec::new() }), Box::new([]));
    let hyper = Hyperparameters {
        l2: 0.1,
        batch_size: Hyperparameters::WHOLE_MINI_BATCHES,
        ..Hyperparameters::new(ModelKind::Logistic)
    };
    let (without, _) = train(hyper, 1, &mini_batches);
    mini_batches.push_mini_batch(Rc::new(empty)).unwrap();
    assert_eq!(train(hyper, 1, &mini_batches).0, without);
}
