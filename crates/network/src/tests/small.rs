//! Small networks against the same ones by products of matrices, and against themselves on other processors.

use super::*;
use choices::Choice;

/// Layers of one chunk of units and of several, full ones and not, and rows of panels that no block divides.
const SHAPES: [(usize, &[u32]); 5] = [(9, &[16]), (4, &[5, 3]), (28, &[40, 17]), (1, &[1]), (35, &[3, 18, 2])];

/// Trains for two epochs, in calls of `call` tuples.
fn learned(mut engine: NetworkEngine, batch: &Batch, call: usize) -> (ModelParameters, f64, u64) {
    for _ in 0..2 {
        engine.begin_epoch();
        for start in (0..batch.len()).step_by(call) {
            engine.learn(batch, start..batch.len().min(start + call)).unwrap();
        }
        engine.flush();
    }
    (engine.model().unwrap(), engine.totals().loss, engine.totals().correct)
}

/// Networks of all kinds, with their numbers of features and classes.
fn cases() -> Vec<(Hyperparameters, usize, usize)> {
    let mut noise = Noise::new(6);
    let mut one_of = |n: usize| ((noise.next() + 1.0) / 2.0 * n as f32) as usize % n;
    let mut case = |(output, classes)| {
        let (dim, hidden) = SHAPES[one_of(5)];
        let (l1, l2) = [(0.0, 0.0), (0.0, 0.05), (0.002, 0.01)][one_of(3)];
        let (optimizer, batch_size) = (OPTIMIZERS[one_of(3)], [1, 1, 3, 4, 6, 64][one_of(6)]);
        let other = hyper(hidden, Activation::ALL[one_of(3)].1, output);
        (Hyperparameters { optimizer, l1, l2, batch_size, learning_rate: 0.02, ..other }, dim, classes)
    };
    OUTPUTS.into_iter().cycle().take(150).map(&mut case).collect()
}

#[test]
fn a_small_network_is_the_same_by_products_of_matrices() {
    for (hyper, dim, classes) in cases() {
        let batch = dense(&tuples(50, dim, classes, 4));
        let engine = || NetworkEngine::new(hyper, dim, classes, false, Level::detect()).unwrap();
        assert!(engine().small.is_some());
        let (small, loss, _) = learned(engine(), &batch, 50);
        let (large, expected, _) = learned(NetworkEngine { small: None, ..engine() }, &batch, 50);
        assert_close(&small, &large, 2e-5);
        assert!((loss - expected).abs() < 1e-4 * (1.0 + expected), "{loss} {expected} {hyper:?}");
    }
}

#[test]
fn every_processor_and_every_cut_gives_the_bits_of_a_small_network() {
    for (hyper, dim, classes) in cases() {
        let batch = dense(&tuples(50, dim, classes, 4));
        let engine = |level| NetworkEngine::new(hyper, dim, classes, false, level).unwrap();
        let expected = learned(engine(Level::PORTABLE), &batch, 50);
        for level in Level::available() {
            for call in [1, 7, 50] {
                assert_eq!(learned(engine(level), &batch, call), expected, "{level:?} {call} {hyper:?}");
            }
        }
    }
}

#[test]
fn a_network_that_grows_out_of_a_matrix_is_small_with_its_new_features() {
    let (narrow, wide) = (tuples(20, 3, 2, 4), tuples(20, 7, 2, 5));
    let hyper = Hyperparameters { batch_size: 5, ..hyper(&[6], Activation::Tanh, Output::Sigmoid) };
    let model = |small: bool| {
        let mut engine = NetworkEngine::new(hyper, 3, 2, false, Level::detect()).unwrap();
        if !small {
            engine.small = None;
        }
        engine.learn(&dense(&narrow), 0..20).unwrap();
        let matrix = mini_batch(&wide);
        engine.learn_matrix(&*matrix.matrix(), matrix.labels(), matrix.weights()).unwrap();
        engine.learn(&dense(&wide), 0..20).unwrap();
        engine.flush();
        engine.model().unwrap()
    };
    assert_eq!(model(true).dim, 7);
    assert_close(&model(true), &model(false), 1e-5);
}
