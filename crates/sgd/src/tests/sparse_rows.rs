//! Sparse rows one by one, by the loop that most trainings use, against the steps that can do everything.

use linear::aggregate::StateMut;
use loss::{Hyperparameters, ModelKind};
use proptest::prelude::*;
use simd::Level;
use tuples::Batch;

use super::aggregate::new;
use crate::Trainer;

/// More weights than are used without being asked for ahead.
const DIM: usize = 20_000;

/// Label, weight, and entries by ascending index.
type Tuple = (f32, f32, Vec<(u32, f32)>);

fn tuple() -> impl Strategy<Value = Tuple> {
    // a few features come again and again, and now and then a row is long
    let index = prop_oneof![0..20_u32, 0..DIM as u32];
    let entries = |most: usize| prop::collection::btree_map(index.clone(), -2.0f32..2.0, 0..most);
    let row = prop_oneof![9 => entries(40), 1 => entries(700)];
    (any::<bool>(), 0.0f32..3.0, row)
        .prop_map(|(above, weight, row)| (if above { 1.0 } else { -1.0 }, weight, row.into_iter().collect()))
}

fn batch_of(tuples: &[Tuple], weighted: bool) -> Batch {
    let mut batch = Batch::sparse();
    batch.set_dim(DIM);
    batch.set_weighted(weighted);
    for (label, weight, entries) in tuples {
        let (indices, values) = batch.push_sparse(*label, entries.len()).unwrap();
        for (k, (index, x)) in entries.iter().enumerate() {
            (indices[k], values[k]) = (*index, *x);
        }
        batch.weights_mut().last_mut().into_iter().for_each(|place| *place = *weight);
    }
    batch
}

proptest! {
    #[test]
    fn a_batch_of_sparse_rows_gives_the_bits_of_its_rows_one_by_one_on_every_instruction_set(
        tuples in prop::collection::vec(tuple(), 1..60),
        kind in prop::sample::select(vec![ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear]),
        // the last halves the weights in every step: the scale has to be folded into them
        l2 in prop::sample::select(vec![0.0, 0.01, 5.0]),
        bounded: bool,
        weighted: bool,
        cut in any::<prop::sample::Index>(),
    ) {
        let hyper = Hyperparameters { learning_rate: 0.1, l2, bounded, ..Hyperparameters::new(kind) };
        let batch = batch_of(&tuples, weighted);
        let mut state = new(hyper, DIM, 1, true).unwrap();
        let mut expected = Vec::new();
        for _ in 0..2 {
            for i in 0..batch.len() {
                let ((indices, values), weight) = (batch.sparse_row(i), batch.weights().map_or(1.0, |w| w[i]));
                let mut state = StateMut::from_bytes(&mut state).unwrap();
                state.learn_sparse(batch.label(i), indices, values, weight).unwrap();
            }
            let mut state = StateMut::from_bytes(&mut state).unwrap();
            state.finish_epoch().unwrap();
            let model = state.model().unwrap();
            expected.push(model.weights.iter().chain(&model.intercepts).map(|w| w.to_bits()).collect::<Vec<_>>());
        }
        for level in Level::available() {
            let mut trainer = Trainer::with_level(hyper, DIM, 1, true, level).unwrap();
            for expected in &expected {
                trainer.begin_epoch();
                let cut = cut.index(batch.len());
                trainer.learn(&batch, 0..cut).unwrap();
                trainer.learn(&batch, cut..batch.len()).unwrap();
                trainer.end_epoch().unwrap();
                let model = trainer.model().unwrap();
                let found: Vec<u32> = model.weights.iter().chain(&model.intercepts).map(|w| w.to_bits()).collect();
                prop_assert!(found == *expected, "{:?} {:?}", level, hyper);
            }
        }
    }
}

#[test]
#[should_panic(expected = "indices below the number of features")]
fn an_index_that_no_row_should_have_is_refused() {
    let mut batch = Batch::sparse();
    // the last index is what a batch goes by
    batch.push_sparse(1.0, 2).unwrap().0.copy_from_slice(&[9, 3]);
    batch.push_sparse(1.0, 0).unwrap();
    let mut trainer = Trainer::new(Hyperparameters::new(ModelKind::Svm), 4, 1, true).unwrap();
    trainer.begin_epoch();
    trainer.learn(&batch, 0..2).unwrap();
}
