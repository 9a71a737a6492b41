//! What the trainer promises to the bit.

use proptest::prelude::*;
use tuples::Batch;

use super::noisy_batch;
use crate::kernels::Level;
use crate::{EpochReport, Hyperparameters, LinearModel, ModelKind, Trainer};

const DIMS: [usize; 13] = [1, 2, 15, 16, 17, 31, 32, 48, 63, 64, 100, 143, 2000];

fn bits(model: &LinearModel) -> Vec<u32> {
    model.weights.iter().chain([&model.intercept]).map(|p| p.to_bits()).collect()
}

/// Two epochs over `batch`, the second one cut at `cuts` (in any order, modulo the length).
fn train(hyper: Hyperparameters, level: Level, batch: &Batch, cuts: &[usize]) -> (Vec<u32>, EpochReport) {
    let mut trainer = Trainer::with_level(hyper, batch.dim(), level);
    trainer.begin_epoch();
    trainer.learn(batch, 0..batch.len());
    trainer.end_epoch().unwrap();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (batch.len() + 1)).collect();
    cuts.sort_unstable();
    trainer.begin_epoch();
    let mut start = 0;
    for cut in cuts.into_iter().chain([batch.len()]) {
        trainer.learn(batch, start..cut);
        start = cut;
    }
    let report = trainer.end_epoch().unwrap();
    (bits(&trainer.model()), report)
}

fn hyper(kind: ModelKind, l2: f64) -> Hyperparameters {
    Hyperparameters { learning_rate: 0.1, l2, ..Hyperparameters::new(kind) }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for dim in DIMS {
        let batch = noisy_batch(dim, 500, 1);
        for (kind, l2) in ModelKind::ALL.into_iter().flat_map(|kind| [(kind, 0.0), (kind, 0.5)]) {
            let mut results = Level::available().into_iter().map(|level| train(hyper(kind, l2), level, &batch, &[]));
            let portable = results.next().unwrap();
            assert!(results.all(|result| result == portable), "{kind} {dim}");
        }
    }
}

proptest! {
    #[test]
    fn cutting_the_order_into_ranges_changes_no_bit(
        dim in prop::sample::select(&DIMS[..12]), n in 1usize..60, cuts: Vec<usize>, penalty: bool, svm: bool,
    ) {
        let batch = noisy_batch(dim, n, 2);
        let hyper = hyper(ModelKind::ALL[usize::from(svm)], if penalty { 1.0 } else { 0.0 });
        let whole = train(hyper, Level::detect(), &batch, &[]);
        prop_assert_eq!(train(hyper, Level::detect(), &batch, &cuts), whole);
    }
}
