//! What the trainer promises to the bit.

use loss::{EpochReport, Hyperparameters, ModelKind, ModelParameters};
use proptest::prelude::*;
use sgd_tests::{BINARY, batch_of, noisy_batch};
use simd::Level;
use tuples::Batch;

use crate::Trainer;

const DIMS: [usize; 13] = [1, 2, 15, 16, 17, 31, 32, 48, 63, 64, 100, 143, 2000];

fn bits(model: &ModelParameters) -> Vec<u32> {
    model.weights.iter().chain(&model.intercepts).map(|p| p.to_bits()).collect()
}

/// Two epochs over `batch`, the second one cut at `cuts` (in any order, modulo the length).
fn train(hyper: Hyperparameters, level: Level, batch: &Batch, cuts: &[usize]) -> (Vec<u32>, EpochReport) {
    let mut trainer = Trainer::with_level(hyper, batch.dim(), 1, false, level).unwrap();
    trainer.begin_epoch();
    trainer.learn(batch, 0..batch.len()).unwrap();
    trainer.end_epoch().unwrap();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (batch.len() + 1)).collect();
    cuts.sort_unstable();
    trainer.begin_epoch();
    let mut start = 0;
    for cut in cuts.into_iter().chain([batch.len()]) {
        trainer.learn(batch, start..cut).unwrap();
        start = cut;
    }
    let report = trainer.end_epoch().unwrap();
    (bits(&trainer.model().unwrap()), report)
}

fn hyper(kind: ModelKind, l2: f64) -> Hyperparameters {
    Hyperparameters { learning_rate: 0.1, l2, ..Hyperparameters::new(kind) }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for dim in DIMS {
        let batch = noisy_batch(dim, 500, 1);
        let penalties = BINARY.into_iter().flat_map(|kind| [(kind, 0.0), (kind, 0.5)]);
        for (kind, l2, bounded) in penalties.flat_map(|(kind, l2)| [(kind, l2, false), (kind, l2, true)]) {
            let hyper = Hyperparameters { bounded, ..hyper(kind, l2) };
            let mut results = Level::available().into_iter().map(|level| train(hyper, level, &batch, &[]));
            let portable = results.next().unwrap();
            assert!(results.all(|result| result == portable), "{kind} {dim} {bounded}");
        }
    }
}

proptest! {
    #[test]
    fn cutting_the_order_into_ranges_changes_no_bit(
        dim in prop::sample::select(&DIMS[..12]), n in 1usize..60, cuts: Vec<usize>, penalty: bool, svm: bool,
    ) {
        let batch = noisy_batch(dim, n, 2);
        let hyper = hyper(BINARY[usize::from(svm)], if penalty { 1.0 } else { 0.0 });
        let whole = train(hyper, Level::detect(), &batch, &[]);
        prop_assert_eq!(train(hyper, Level::detect(), &batch, &cuts), whole);
    }
}

#[test]
fn cutting_the_tuples_into_batches_changes_no_bit() {
    for (dim, kind) in [(5, ModelKind::Logistic), (28, ModelKind::Svm), (100, ModelKind::Logistic)] {
        let hyper = hyper(kind, 0.5);
        let whole = noisy_batch(dim, 90, 3);
        let tuples: Vec<(f32, &[f32])> =
            whole.order().iter().map(|&i| (whole.label(i as usize), whole.features(i as usize))).collect();
        let mut at_once = Trainer::new(hyper, dim, 1, false).unwrap();
        at_once.begin_epoch();
        at_once.learn(&whole, 0..90).unwrap();
        let mut piecewise = Trainer::new(hyper, dim, 1, false).unwrap();
        piecewise.begin_epoch();
        for tuples in tuples.chunks(7) {
            let batch = batch_of(dim, tuples.iter().copied());
            piecewise.learn(&batch, 0..batch.len()).unwrap();
        }
        assert_eq!(bits(&piecewise.model().unwrap()), bits(&at_once.model().unwrap()));
        assert_eq!(piecewise.end_epoch(), at_once.end_epoch());
    }
}

proptest! {
    #[test]
    fn swapping_the_classes_negates_the_model_to_the_bit(
        dim in prop::sample::select(&DIMS[..12]), n in 1usize..200, seed: u64, penalty: bool, svm: bool,
    ) {
        let hyper = hyper(BINARY[usize::from(svm)], if penalty { 3.0 } else { 0.0 });
        let mut batch = noisy_batch(dim, n, seed);
        // a feature that is always 0 keeps a weight of 0, which has a sign of its own
        (0..n).for_each(|i| batch.features_mut(i)[0] = 0.0);
        let train = |batch: &Batch| {
            let mut trainer = Trainer::new(hyper, dim, 1, false).unwrap();
            trainer.begin_epoch();
            trainer.learn(batch, 0..n).unwrap();
            (trainer.model().unwrap(), trainer.end_epoch().unwrap())
        };
        let (mut model, report) = train(&batch);
        batch.labels_mut().iter_mut().for_each(|label| *label = -*label);
        let (swapped, swapped_report) = train(&batch);
        model.negate();
        prop_assert_eq!(bits(&swapped), bits(&model));
        prop_assert_eq!(swapped_report, report);
    }
}
