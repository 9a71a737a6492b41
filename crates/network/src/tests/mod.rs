//! Networks against finite differences, a computation by hand, one by the book in f64, and themselves in other forms.

mod small;

use std::rc::Rc;

use choices::Choice;
use loss::engine::Engine;
use loss::totals::Totals;
use loss::{Activation, EpochReport, Hyperparameters, ModelParameters, Optimizer, Output};
use proptest::prelude::*;
use sgd_tests::networks::{Book, OPTIMIZERS, OUTPUTS, assert_close, dense, hyper, sparse, tuples};
use sgd_tests::{Noise, batch_of};
use simd::Level;
use tuples::{Batch, Matrix, MiniBatch};

use super::*;
use crate::rows::Rows;

fn mini_batch(tuples: &[(f32, Vec<f32>, f32)]) -> Rc<MiniBatch> {
    let mut rows = Rows::new(false, tuples[0].1.len(), Level::detect());
    let batch = dense(tuples);
    (0..tuples.len()).for_each(|i| rows.push(&batch, i).unwrap());
    Rc::new(MiniBatch::new(Box::new(rows), batch.labels().into()).with_weights(batch.weights().unwrap().into()))
}

/// Trains for this many epochs. Returns their losses.
fn train(engine: &mut NetworkEngine, batch: &Batch, epochs: u32) -> Vec<f64> {
    let epoch = |epoch| {
        engine.begin_epoch();
        engine.learn(batch, 0..batch.len()).unwrap();
        engine.flush();
        let rate = engine.hyper.learning_rate;
        EpochReport::new(&engine.hyper, epoch, rate, &engine.totals(), engine.norms()).loss
    };
    (1..=epochs).map(epoch).collect()
}

/// An engine for dense tuples, as of a small network or not.
fn engine(hyper: Hyperparameters, dim: usize, classes: usize, small: bool) -> NetworkEngine {
    let mut engine = NetworkEngine::new(hyper, dim, classes, false, Level::detect()).unwrap();
    engine.small = engine.small.take().filter(|_| small);
    engine
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for &(_, activation) in Activation::ALL {
        for (output, classes) in OUTPUTS {
            for (hidden, small) in [(&[4][..], true), (&[5, 3], true), (&[2, 3, 2], false), (&[5, 3], false)] {
                let tuples = tuples(7, 6, classes, 1 + classes as u64);
                let hyper = Hyperparameters { batch_size: 100, ..hyper(hidden, activation, output) };
                let mut engine = engine(hyper, 6, classes, small);
                let expected = Book::new(&engine.model().unwrap()).gradient(&tuples);
                let batch = dense(&tuples);
                engine.learn(&batch, 0..7).unwrap();
                engine.take_rows();
                // the gradient in the model's order
                engine.numbers.clone_from(&engine.gradient);
                let found = engine.model().unwrap();
                for (found, expected) in found.weights.iter().chain(&found.intercepts).zip(expected) {
                    let found = -f64::from(*found) / 7.0;
                    assert!((found - expected).abs() < 1e-6 + 1e-5 * expected.abs(), "{found} {expected} {hyper:?}");
                }
            }
        }
    }
}

#[test]
fn two_steps_are_those_that_were_computed_by_hand() {
    let hyper =
        Hyperparameters { batch_size: 1, learning_rate: 0.5, ..hyper(&[1], Activation::Sigmoid, Output::Sigmoid) };
    let mut engine = NetworkEngine::new(hyper, 1, 2, false, Level::detect()).unwrap();
    engine.numbers = vec![0.5, 1.0, 0.0, -0.25];
    let batch = batch_of(1, [(1.0, &[2.0][..]), (0.0, &[-1.0])]);
    for (i, expected, loss) in [
        (0, [0.575_106_2, 1.139_633, 0.037_553_094, -0.058_998_905], 0.481_270_37),
        (1, [0.653_276_1, 1.030_970_9, -0.040_616_84, -0.353_670_25], 0.889_996_17),
    ] {
        engine.totals = Totals::default();
        engine.learn(&batch, i..i + 1).unwrap();
        for (found, expected) in engine.numbers.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert!((engine.totals.loss - loss).abs() < 1e-6);
    }
}

#[test]
fn training_agrees_with_the_book() {
    for (output, classes) in OUTPUTS {
        for optimizer in OPTIMIZERS {
            for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.002, 0.01)] {
                for (batch_size, small) in [(1, true), (5, true), (5, false)] {
                    let (learning_rate, other) = (0.05, hyper(&[4, 3], Activation::Tanh, output));
                    let hyper = Hyperparameters { optimizer, l1, l2, batch_size, learning_rate, ..other };
                    agrees_with_the_book(hyper, classes, small);
                }
            }
        }
    }
}

/// Asserts that three epochs are those of the book, as of a small network or not.
fn agrees_with_the_book(hyper: Hyperparameters, classes: usize, small: bool) {
    let tuples = tuples(13, 4, classes, 5);
    let mut engine = engine(hyper, 4, classes, small);
    let mut book = Book::new(&engine.model().unwrap());
    for _ in 0..3 {
        let mut expected = 0.0;
        for batch in tuples.chunks(hyper.batch_size as usize) {
            expected += batch.iter().map(|(y, x, w)| f64::from(*w) * book.loss(x, *y)).sum::<f64>();
            book.step(batch, &hyper);
        }
        expected /= tuples.iter().map(|tuple| f64::from(tuple.2)).sum::<f64>();
        let weights = &book.numbers[..book.network.weights(4, book.outputs)];
        expected += weights.iter().map(|w| hyper.l2 / 2.0 * w * w + hyper.l1 * w.abs()).sum::<f64>();
        let loss = train(&mut engine, &dense(&tuples), 1)[0];
        assert!((loss - expected).abs() < 1e-4, "{loss} {expected} {hyper:?}");
    }
    let model = engine.model().unwrap();
    for (found, expected) in model.weights.iter().chain(&model.intercepts).zip(book.numbers) {
        assert!((f64::from(*found) - expected).abs() < 2e-4, "{found} {expected} {hyper:?}");
    }
}

#[test]
fn sparse_tuples_and_matrices_give_the_same_model_as_dense_ones() {
    for optimizer in OPTIMIZERS {
        for (l1, l2) in [(0.0, 0.0), (0.0, 0.05), (0.01, 0.0)] {
            let tuples = tuples(300, 20, 3, 9);
            let learning_rate = 0.01;
            let hyper = hyper(&[8, 5], Activation::Sigmoid, Output::Softmax);
            let hyper = Hyperparameters { optimizer, l1, l2, batch_size: 60, learning_rate, ..hyper };
            let new = |sparse| NetworkEngine::new(hyper, 20, 3, sparse, Level::detect()).unwrap();
            let (mut of_dense, mut of_sparse, mut of_mini_batches) = (new(false), new(true), new(true));
            train(&mut of_dense, &dense(&tuples), 3);
            train(&mut of_sparse, &sparse(&tuples), 3);
            let mut mini_batches = Batch::mini_batches(20);
            for tuples in tuples.chunks(60) {
                mini_batches.push_mini_batch(mini_batch(tuples)).unwrap();
            }
            train(&mut of_mini_batches, &mini_batches, 3);
            let model = of_dense.model().unwrap();
            assert_close(&of_sparse.model().unwrap(), &model, 1e-5);
            assert_close(&of_mini_batches.model().unwrap(), &model, 1e-5);
        }
    }
}

#[test]
fn products_with_sparse_rows_are_those_with_dense_ones() {
    let tuples = tuples(9, 11, 2, 4);
    let filled = |batch: Batch| {
        let mut rows = Rows::new(batch.is_sparse(), 11, Level::detect());
        (0..9).for_each(|i| rows.push(&batch, i).unwrap());
        rows
    };
    let (of_dense, of_sparse) = (filled(dense(&tuples)), filled(sparse(&tuples)));
    assert_eq!((of_sparse.rows(), of_sparse.columns()), (9, 11));
    assert!(of_dense.bytes() >= 9 * 11 * 4);
    let mut noise = Noise::new(1);
    for width in [1, 3] {
        let m: Vec<f32> = (0..11 * width).map(|_| noise.next()).collect();
        let product = |rows: &Rows| {
            let (mut forth, mut back) = (vec![7.0; 9 * width], vec![1.0; 11 * width]);
            match width {
                1 => rows.times_vector(&m, &mut forth, &mut Vec::new()),
                _ => rows.times_matrix(&m, width, &mut forth, &mut Vec::new()),
            }
            match width {
                1 => rows.vector_times(&forth, &mut back, &mut Vec::new()),
                _ => rows.transposed_times_matrix(&forth, width, &mut back, &mut Vec::new()),
            }
            [forth, back].concat()
        };
        for (a, b) in product(&of_dense).into_iter().zip(product(&of_sparse)) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

proptest! {
    #[test]
    fn how_the_sequence_is_cut_changes_no_bit(
        batch_size in 1u32..700, cuts in prop::collection::vec(0usize..700, 0..6), is_sparse: bool, adam: bool,
        small: bool
    ) {
        let tuples = tuples(700, 9, 2, 2);
        let optimizer = if adam { Optimizer::ADAM } else { Optimizer::Sgd };
        let hyper = Hyperparameters { batch_size, optimizer, ..hyper(&[5], Activation::Relu, Output::Sigmoid) };
        let batch = if is_sparse { sparse(&tuples) } else { dense(&tuples) };
        let new = || match is_sparse {
            true => NetworkEngine::new(hyper, 9, 2, true, Level::detect()).unwrap(),
            false => engine(hyper, 9, 2, small),
        };
        let (mut whole, mut cut) = (new(), new());
        train(&mut whole, &batch, 2);
        let mut ends = [cuts, vec![0, 700]].concat();
        ends.sort_unstable();
        for _ in 0..2 {
            cut.begin_epoch();
            for pair in ends.windows(2) {
                // of its own memory
                let part = if is_sparse { sparse } else { dense };
                if pair[0] < pair[1] {
                    cut.learn(&part(&tuples[pair[0]..pair[1]]), 0..pair[1] - pair[0]).unwrap();
                }
            }
            cut.flush();
        }
        prop_assert_eq!(whole.model().unwrap(), cut.model().unwrap());
    }
}

#[test]
fn instruction_sets_differ_in_no_bit_beside_the_products() {
    // sparse features, and layers so small that products have a single sum
    let tuples = tuples(50, 9, 2, 2);
    let hyper = hyper(&[1], Activation::Tanh, Output::Sigmoid);
    let model = |level| {
        let mut engine = NetworkEngine::new(hyper, 9, 2, true, level).unwrap();
        engine.learn(&sparse(&tuples), 0..50).unwrap();
        engine.flush();
        engine.model().unwrap()
    };
    for level in Level::available() {
        assert_eq!(model(level), model(Level::PORTABLE));
    }
}
