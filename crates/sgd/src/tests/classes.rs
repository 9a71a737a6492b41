//! Dense tuples of several classes, learned from one by one: however many classes there are, the bits are the same for
//! every instruction set and wherever the sequence is cut, and the model is that of sparse tuples, which are learned
//! from class by class.

use loss::{Hyperparameters, ModelKind, ModelParameters};
use simd::Level;
use tuples::Batch;

use super::textbook::{dense, sparse, tuples};
use crate::Trainer;

const KINDS: [ModelKind; 3] = [ModelKind::Softmax, ModelKind::SvmOneVsRest, ModelKind::SquaredHingeOneVsRest];

const DIM: usize = 21;
const ROWS: usize = 150;

fn bits(model: &ModelParameters) -> Vec<u32> {
    model.weights.iter().chain(&model.intercepts).map(|p| p.to_bits()).collect()
}

/// Each kind with each number of classes and each penalty, of steps that are bounded or not.
fn combinations() -> impl Iterator<Item = (Hyperparameters, usize)> {
    let of_kind = |kind| {
        [2, 5, 15, 16, 17, 40, 128, 129].into_iter().flat_map(move |classes| {
            // a penalty that takes l1 every few steps, and one that makes the scale fall below a half
            [(0.0, 0.0, true), (0.0, 0.6, true), (0.0005, 0.0, false), (0.03, 0.1, true)].map(|(l1, l2, bounded)| {
                let hyper = Hyperparameters::new(kind);
                (Hyperparameters { learning_rate: 0.02, l1, l2, bounded, ..hyper }, classes)
            })
        })
    };
    KINDS.into_iter().flat_map(of_kind)
}

/// Two epochs, cut into ranges; with `look`, the model is asked for at each cut.
fn train(
    (hyper, classes): (Hyperparameters, usize),
    level: Level,
    batch: &Batch,
    cuts: &[usize],
    look: bool,
) -> (ModelParameters, [f64; 2]) {
    let mut trainer = Trainer::with_level(hyper, DIM, classes, batch.is_sparse(), level).unwrap();
    let epoch = |_| {
        trainer.begin_epoch();
        let mut start = 0;
        for &cut in cuts.iter().chain([&ROWS]) {
            trainer.learn(batch, start..cut).unwrap();
            start = cut;
            if look {
                assert!(trainer.model().unwrap().is_finite() && trainer.check().is_ok());
            }
        }
        trainer.end_epoch().unwrap().loss
    };
    let losses = [0, 1].map(epoch);
    (trainer.model().unwrap(), losses)
}

#[test]
fn instruction_sets_cuts_and_looks_change_no_bit() {
    for case in combinations() {
        let tuples = tuples(case.0.kind, DIM, case.1, ROWS, 31);
        let batch = dense(&tuples, true);
        let (expected, losses) = train(case, Level::PORTABLE, &batch, &[], false);
        for level in Level::available() {
            for (cuts, look) in [(&[][..], false), (&[0, 1, 2, 70, 70, 149], true)] {
                let (model, found) = train(case, level, &batch, cuts, look);
                assert!((bits(&model), found) == (bits(&expected), losses), "{case:?} {level:?}");
            }
        }
    }
}

#[test]
fn dense_and_sparse_tuples_give_the_same_model() {
    for case in combinations() {
        let tuples = tuples(case.0.kind, DIM, case.1, ROWS, 32);
        let (expected, sparse_losses) = train(case, Level::detect(), &sparse(&tuples, true), &[], false);
        let (model, losses) = train(case, Level::detect(), &dense(&tuples, true), &[], false);
        for (a, b) in losses.iter().zip(sparse_losses) {
            assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{case:?}: {a} {b}");
        }
        let parameters = |model: &ModelParameters| [&*model.weights, &model.intercepts].concat();
        for (a, b) in parameters(&model).into_iter().zip(parameters(&expected)) {
            // gathered cuts come at other steps: a thousandth of a learning rate
            assert!((a - b).abs() < 3e-5 + 1e-4 * b.abs(), "{case:?}: {a} {b}");
        }
    }
}

#[test]
fn the_model_in_the_middle_has_the_step_of_the_last_tuple() {
    for kind in KINDS {
        let tuples = tuples(kind, DIM, 5, ROWS, 33);
        let batch = dense(&tuples, false);
        let hyper = Hyperparameters { learning_rate: 0.02, l2: 0.1, ..Hyperparameters::new(kind) };
        let mut trainer = Trainer::new(hyper, DIM, 5, false).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..70).unwrap();
        let within = trainer.model().unwrap();
        trainer.end_epoch().unwrap();
        assert_eq!(bits(&within), bits(&trainer.model().unwrap()));
    }
}

#[test]
fn a_trainer_that_was_saved_learns_on() {
    for kind in KINDS {
        let tuples = tuples(kind, DIM, 20, ROWS, 34);
        let batch = dense(&tuples, false);
        let hyper = Hyperparameters { learning_rate: 0.02, l2: 0.1, bounded: true, ..Hyperparameters::new(kind) };
        let mut trainer = Trainer::new(hyper, DIM, 20, false).unwrap();
        let epoch = |trainer: &mut Trainer| {
            trainer.begin_epoch();
            trainer.learn(&batch, 0..ROWS).unwrap();
            trainer.end_epoch().unwrap();
            bits(&trainer.model().unwrap())
        };
        epoch(&mut trainer);
        let saved = trainer.save(Vec::new());
        let mut resumed = Trainer::resume(hyper, 20, false, &saved).unwrap();
        assert_eq!(epoch(&mut trainer), epoch(&mut resumed));
    }
}
