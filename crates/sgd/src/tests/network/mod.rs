//! Trainers of networks, between two epochs and as features come.

mod evaluation;
mod pauses;

use loss::{Activation, Design, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Schedule};
use proptest::prelude::*;
use sgd_tests::networks::{Book, OPTIMIZERS, OUTPUTS, dense, hyper, sparse, tuples};
use tuples::Batch;

use crate::Trainer;

fn train(trainer: &mut Trainer, batch: &Batch, epochs: u32) -> Vec<f64> {
    let epoch = |_| {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        trainer.end_epoch().unwrap().loss
    };
    (0..epochs).map(epoch).collect()
}

proptest! {
    #[test]
    fn what_is_saved_goes_on_as_if_nothing_had_happened(
        batch_size in 1u32..60, is_sparse: bool, which in 0usize..3, l1: bool, l2: bool
    ) {
        let tuples = tuples(130, 9, 3, 2);
        let (l1, l2) = (if l1 { 1e-5 } else { 0.0 }, if l2 { 0.1 } else { 0.0 });
        let optimizer = OPTIMIZERS[which];
        let hyper = Hyperparameters {
            batch_size, optimizer, l1, l2, schedule: Schedule::EXPONENTIAL, learning_rate: 0.05,
            ..hyper(&[5, 4], Activation::Sigmoid, Output::Softmax)
        };
        let batch = if is_sparse { sparse(&tuples) } else { dense(&tuples) };
        let mut whole = Trainer::new(hyper, 9, 3, is_sparse).unwrap();
        let losses = train(&mut whole, &batch, 5);
        let mut first = Trainer::new(hyper, 9, 3, is_sparse).unwrap();
        train(&mut first, &batch, 3);
        let mut second = Trainer::resume(hyper, 3, is_sparse, &first.save(Vec::new())).unwrap();
        prop_assert_eq!(second.model().unwrap(), first.model().unwrap());
        prop_assert_eq!(train(&mut second, &batch, 2), &losses[3..]);
        prop_assert_eq!(second.model().unwrap(), whole.model().unwrap());
    }

    #[test]
    fn forged_bytes_do_no_harm(place in 0usize..1000, byte: u8, cut in 0usize..1000) {
        let tuples = tuples(20, 4, 2, 2);
        let hyper = hyper(&[3], Activation::Sigmoid, Output::Sigmoid);
        let mut trainer = Trainer::new(hyper, 4, 2, true).unwrap();
        train(&mut trainer, &sparse(&tuples), 1);
        let mut saved = trainer.save(Vec::new());
        let place = place % saved.len();
        saved[place] = byte;
        if let Ok(mut forged) = Trainer::resume(hyper, 2, true, &saved) {
            forged.begin_epoch();
            forged.learn(&sparse(&tuples), 0..20).unwrap();
            let _ = forged.end_epoch();
        }
        saved.truncate(cut % saved.len());
        prop_assert!(Trainer::resume(hyper, 2, true, &saved).is_err());
    }
}

#[test]
fn another_network_cannot_go_on() {
    let hyper = hyper(&[3], Activation::Sigmoid, Output::Sigmoid);
    let saved = Trainer::new(hyper, 4, 2, false).unwrap().save(Vec::new());
    let design = hyper.design.unwrap();
    for other in [
        Design { hidden: Hidden::new(&[2, 1]).unwrap(), ..design },
        Design { activation: Activation::Relu, ..design },
        Design { output: Some(Output::Softmax), ..design },
    ] {
        let other = Hyperparameters { design: Some(other), ..hyper };
        assert_eq!(Trainer::resume(other, 2, false, &saved).unwrap_err(), crate::Unfit::OtherWay);
    }
    let linear = Hyperparameters::new(ModelKind::Softmax);
    assert_eq!(Trainer::resume(linear, 2, false, &saved).unwrap_err(), crate::Unfit::OtherWay);
    let reseeded = Hyperparameters { design: Some(Design { seed: 9, ..design }), batch_size: 3, l1: 0.1, ..hyper };
    assert!(Trainer::resume(reseeded, 2, false, &saved).is_ok());
    assert!(Trainer::resume(hyper, 3, false, &saved).is_err());
}

#[test]
fn features_that_come_later_change_nothing_that_was_there() {
    let tuples = tuples(40, 12, 2, 8);
    for optimizer in OPTIMIZERS {
        let hyper = hyper(&[6], Activation::Sigmoid, Output::Sigmoid);
        let hyper = Hyperparameters { optimizer, batch_size: 10, l2: 0.1, learning_rate: 0.1, ..hyper };
        let mut trainer = Trainer::new(hyper, 5, 2, true).unwrap();
        let small: Vec<_> = tuples.iter().map(|(y, x, w)| (*y, x[..5].to_vec(), *w)).collect();
        train(&mut trainer, &sparse(&small), 1);
        let before = trainer.model().unwrap();
        trainer.begin_epoch();
        trainer.learn(&sparse(&tuples), 0..9).unwrap();
        let after = trainer.model().unwrap();
        assert_eq!((trainer.dim(), after.dim, after.weights.len()), (12, 12, 12 * 6 + 6));
        for k in 0..6 {
            assert_eq!(after.weights[k * 12..][..5], before.weights[k * 5..][..5]);
            assert!(after.weights[k * 12..][5..12].iter().all(|w| *w != 0.0));
        }
        assert_eq!((&after.weights[72..], &after.intercepts), (&before.weights[30..], &before.intercepts));
        trainer.learn(&sparse(&tuples), 9..40).unwrap();
        trainer.end_epoch().unwrap();
        let resumed = Trainer::resume(hyper, 2, true, &trainer.save(Vec::new())).unwrap();
        assert_eq!(resumed.model().unwrap(), trainer.model().unwrap());
    }
}
