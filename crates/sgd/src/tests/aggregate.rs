//! The aggregate's flat state against the trainer, and against bytes that are not.

use linear::aggregate::{StateError, StateMut, begin, grow, merge, size};
use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer, Schedule};
use proptest::prelude::*;

use super::textbook::{dense, outputs_of, sparse, tuples};
use crate::Trainer;

pub(super) fn new(hyper: Hyperparameters, dim: usize, outputs: usize, sparse: bool) -> Result<Vec<u8>, StateError> {
    let of = (hyper, dim, outputs, sparse);
    let mut state = allocation::try_zeros(size(of)?)?;
    begin(of, &mut state).map(|()| state)
}

fn combinations() -> impl Iterator<Item = (Hyperparameters, bool)> {
    // the threshold of a state stays what it is
    let kinds = ModelKind::LINEAR
        .into_iter()
        .filter(|kind| !kind.follows_residuals())
        .flat_map(|kind| Optimizer::ALL.map(|optimizer| (kind, optimizer)));
    let sizes = kinds.flat_map(|(kind, optimizer)| [1, 4].map(|batch_size| (kind, optimizer, batch_size)));
    sizes.flat_map(|(kind, optimizer, batch_size)| {
        [(0.0, 0.0, false), (0.0, 0.1, true), (0.01, 0.1, false), (0.01, 0.0, true)].map(|(l1, l2, sparse)| {
            (Hyperparameters { optimizer, batch_size, l1, l2, ..Hyperparameters::new(kind) }, sparse)
        })
    })
}

/// Learns all tuples of a batch, row by row.
fn learn(state: &mut [u8], batch: &tuples::Batch) {
    for i in 0..batch.len() {
        let mut state = StateMut::from_bytes(state).unwrap();
        let weight = batch.weights().map_or(1.0, |weights| weights[i]);
        if batch.is_sparse() {
            let (indices, values) = batch.sparse_row(i);
            state.learn_sparse(batch.label(i), indices, values, weight).unwrap();
        } else {
            state.learn_dense(batch.label(i), batch.features(i), weight).unwrap();
        }
    }
}

fn assert_close(a: &ModelParameters, b: &ModelParameters, what: &dyn std::fmt::Debug) {
    assert_eq!((a.dim, a.outputs), (b.dim, b.outputs));
    let pairs = a.weights.iter().chain(&a.intercepts).zip(b.weights.iter().chain(&b.intercepts));
    for (a, b) in pairs {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} {b}: {what:?}");
    }
}

#[test]
fn a_state_learns_what_a_trainer_learns() {
    for (hyper, is_sparse) in combinations() {
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 19, outputs, 50, 31);
        let batch = if is_sparse { sparse(&tuples, true) } else { dense(&tuples, true) };
        let mut trainer = Trainer::new(hyper, 19, outputs, is_sparse).unwrap();
        let mut state = new(hyper, 19, outputs, is_sparse).unwrap();
        for _ in 0..3 {
            trainer.begin_epoch();
            trainer.learn(&batch, 0..50).unwrap();
            learn(&mut state, &batch);
            let (expected, mut state) = (trainer.end_epoch().unwrap(), StateMut::from_bytes(&mut state).unwrap());
            let report = state.finish_epoch().unwrap();
            assert!((report.loss - expected.loss).abs() < 1e-5 * (1.0 + expected.loss), "{hyper:?}");
            assert_eq!((report.epoch, report.tuples), (expected.epoch, expected.tuples));
            assert_eq!((report.learning_rate, report.r2.is_some()), (expected.learning_rate, expected.r2.is_some()));
            assert_close(&state.model().unwrap(), &trainer.model().unwrap(), &hyper);
        }
    }
}

#[test]
fn a_sparse_state_grows_without_changing_what_it_knows() {
    for (hyper, _) in combinations().filter(|(_, is_sparse)| *is_sparse) {
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 19, outputs, 30, 33);
        let batch = sparse(&tuples, false);
        let (mut early, mut late) = (new(hyper, 40, outputs, true).unwrap(), new(hyper, 19, outputs, true).unwrap());
        learn(&mut early, &batch);
        learn(&mut late, &batch);
        late = grow(&late, 40).unwrap();
        let mut model = StateMut::from_bytes(&mut late).unwrap();
        assert_eq!(model.dim(), 40);
        assert_eq!(model.model().unwrap(), StateMut::from_bytes(&mut early).unwrap().model().unwrap(), "{hyper:?}");
    }
}

#[test]
fn an_index_beyond_the_room_is_refused_until_there_is_room() {
    let mut state = new(Hyperparameters::new(ModelKind::Svm), 0, 1, true).unwrap();
    let error = StateMut::from_bytes(&mut state).unwrap().learn_sparse(1.0, &[2, 9], &[1.0, 1.0], 1.0);
    assert_eq!(error, Err(StateError::Index { index: 9, dim: 0 }));
    let mut state = grow(&state, 10).unwrap();
    StateMut::from_bytes(&mut state).unwrap().learn_sparse(1.0, &[2, 9], &[1.0, 1.0], 1.0).unwrap();
    assert_eq!(StateMut::from_bytes(&mut state).unwrap().model().unwrap().weights[9], 0.01);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let mut state = new(Hyperparameters::new(ModelKind::Softmax), 2, 3, false).unwrap();
    let mut state = StateMut::from_bytes(&mut state).unwrap();
    let row = [1.0, 2.0];
    assert_eq!(state.learn_dense(0.0, &row[..1], 1.0), Err(StateError::Features { expected: 2, given: 1 }));
    assert_eq!(state.learn_sparse(0.0, &[0], &[1.0], 1.0), Err(StateError::OtherKind));
    for label in [-1.0, 0.5, 3.0, f32::NAN, f32::INFINITY] {
        assert!(matches!(state.learn_dense(label, &row, 1.0), Err(StateError::Label(_))), "{label}");
    }
    assert_eq!(state.tuples(), 0);
    state.learn_dense(2.0, &row, 1.0).unwrap();
    let mut svm = new(Hyperparameters::new(ModelKind::Svm), 2, 1, true).unwrap();
    let mut svm = StateMut::from_bytes(&mut svm).unwrap();
    assert_eq!(svm.learn_sparse(0.0, &[0], &[1.0], 1.0), Err(StateError::Label(0.0)));
    assert_eq!(svm.learn_sparse(1.0, &[0], &[], 1.0), Err(StateError::Values { indices: 1, values: 0 }));
}

#[test]
fn merging_averages_by_tuples_and_adds_totals() {
    for (hyper, is_sparse) in combinations() {
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 9, outputs, 40, 34);
        let batch = |from: usize, to: usize| {
            if is_sparse { sparse(&tuples[from..to], true) } else { dense(&tuples[from..to], true) }
        };
        let start = new(hyper, 9, outputs, is_sparse).unwrap();
        let [mut a, mut b] = [start.clone(), start.clone()];
        learn(&mut a, &batch(0, 10));
        learn(&mut b, &batch(10, 40));
        let mut merged = merge(&a, &b).unwrap();
        // alone, each makes the step of its last mini-batch when its epoch ends
        let [a_report, b_report] =
            [&mut a, &mut b].map(|state| StateMut::from_bytes(state).unwrap().finish_epoch().unwrap());
        let [a_model, b_model] = [&mut a, &mut b].map(|state| StateMut::from_bytes(state).unwrap().model().unwrap());
        let mut merged = StateMut::from_bytes(&mut merged).unwrap();
        let model = merged.model().unwrap();
        let mean = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| 0.25 * a + 0.75 * b).collect();
        let weights = mean(&a_model.weights, &b_model.weights);
        let intercepts = mean(&a_model.intercepts, &b_model.intercepts);
        assert_close(&model, &ModelParameters { dim: 9, outputs, weights, intercepts, network: None }, &hyper);
        let report = merged.finish_epoch().unwrap();
        assert_eq!((report.tuples, report.epoch), (40, 1));
        let accuracy = |report: &loss::EpochReport| report.accuracy.map(|accuracy| accuracy * report.tuples as f64);
        if let (Some(all), Some(a), Some(b)) = (accuracy(&report), accuracy(&a_report), accuracy(&b_report)) {
            assert!((all - a - b).abs() < 1e-9);
        }
    }
}

#[test]
fn merging_with_a_state_that_has_seen_nothing_gives_the_other_model() {
    for (hyper, is_sparse) in combinations() {
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 9, outputs, 11, 35);
        let empty = new(hyper, 9, outputs, is_sparse).unwrap();
        let mut full = empty.clone();
        learn(&mut full, &if is_sparse { sparse(&tuples, true) } else { dense(&tuples, true) });
        let mut merged = [merge(&empty, &full).unwrap(), merge(&full, &empty).unwrap()];
        let reports = merged.each_mut().map(|state| StateMut::from_bytes(state).unwrap().finish_epoch().unwrap());
        assert_eq!(reports[0], reports[1]);
        let models = merged.each_mut().map(|state| StateMut::from_bytes(state).unwrap().model().unwrap());
        assert_eq!(models[0], models[1], "{hyper:?}");
    }
}

#[test]
fn states_of_different_trainings_are_not_merged() {
    let hyper = Hyperparameters::new(ModelKind::Svm);
    let a = new(hyper, 3, 1, false).unwrap();
    for b in [
        new(Hyperparameters { l2: 0.1, ..hyper }, 3, 1, false).unwrap(),
        new(hyper, 4, 1, false).unwrap(),
        new(hyper, 3, 1, true).unwrap(),
    ] {
        assert_eq!(merge(&a, &b), Err(StateError::Different));
    }
}

#[test]
fn theorem_1_is_refused() {
    let schedule = Schedule::Theorem1 { mu: 1.0, a: None };
    let hyper = Hyperparameters { schedule, ..Hyperparameters::new(ModelKind::Svm) };
    assert_eq!(new(hyper, 3, 1, false), Err(StateError::NoBuffers));
}

#[test]
fn sizes_that_no_memory_holds_are_an_error() {
    let hyper = Hyperparameters::new(ModelKind::Softmax);
    for (dim, outputs) in [(usize::MAX, 3), (1 << 60, 1 << 20), (usize::MAX / 64, 2)] {
        assert!(matches!(new(hyper, dim, outputs, false), Err(StateError::OutOfMemory(_))), "{dim} {outputs}");
    }
    assert!(matches!(new(hyper, 3, 0, false), Err(StateError::Corrupt(_))));
}

proptest! {
    #[test]
    fn damaged_states_give_errors_or_wrong_numbers_but_nothing_worse(
        which in 0usize..48,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (hyper, is_sparse) = combinations().nth(which).unwrap();
        let outputs = outputs_of(hyper.kind);
        let tuples = tuples(hyper.kind, 6, outputs, 9, 36);
        let batch = if is_sparse { sparse(&tuples, true) } else { dense(&tuples, true) };
        let mut state = new(hyper, 6, outputs, is_sparse).unwrap();
        learn(&mut state, &batch);
        for (place, byte) in damage {
            let place = place.index(state.len());
            state[place] = byte;
        }
        let other = state.clone();
        if let Ok(mut state) = StateMut::from_bytes(&mut state) {
            for i in 0..batch.len() {
                let _ = if is_sparse {
                    let (indices, values) = batch.sparse_row(i);
                    state.learn_sparse(batch.label(i), indices, values, 1.0)
                } else {
                    state.learn_dense(batch.label(i), batch.features(i), 1.0)
                };
            }
            let _ = state.model();
            let _ = state.finish_epoch();
        }
        let _ = merge(&state, &other);
        let _ = grow(&other, 50);
    }
}
