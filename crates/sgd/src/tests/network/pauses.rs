//! Networks look whether they are still wanted, however wide they are.

use tuples::pause::PER_PAUSE;

use super::*;
use crate::Evaluation;

thread_local! {
    static PAUSES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Asserts that something makes as many pauses as it takes to go through this many numbers.
fn pauses_within<T>(what: &str, numbers: usize, f: impl FnOnce() -> T) -> T {
    tuples::pause::set_host(|| PAUSES.set(PAUSES.get() + 1));
    PAUSES.set(0);
    let result = f();
    // each of the three arrays may end without one
    assert!(PAUSES.get() + 3 >= numbers / PER_PAUSE, "{what}: {} pauses in {numbers} numbers", PAUSES.get());
    result
}

#[test]
fn a_wide_network_makes_pauses_whatever_is_done_with_it() {
    let (width, rows) = (300_000, 4);
    let batch = dense(&tuples(rows, 3, 2, 5));
    for optimizer in OPTIMIZERS {
        let hyper = Hyperparameters {
            optimizer,
            batch_size: rows as u32,
            l1: 1e-6,
            l2: 1e-3,
            ..hyper(&[width], Activation::Sigmoid, Output::Sigmoid)
        };
        let numbers = width as usize * 5 + 1;
        let kept = numbers * (1 + optimizer.moments());
        let new = || Trainer::new(hyper, 3, 2, false).unwrap();
        let mut trainer = pauses_within("drawing weights", numbers + kept, new);
        trainer.begin_epoch();
        // products, what units say, derivatives and sums of each tuple, and the step of all numbers
        let work = 4 * rows * width as usize + numbers;
        pauses_within("learning", work, || trainer.learn(&batch, 0..rows).unwrap());
        pauses_within("ending an epoch", kept, || trainer.end_epoch().unwrap());
        let model = pauses_within("making a model", numbers * 4 / 5, || trainer.model().unwrap());
        // the product of one output with all hidden units is not cut
        let mut evaluation = Evaluation::new(ModelKind::Mlp);
        pauses_within("judging", rows * (numbers - width as usize), || evaluation.add(&model, &batch));
        let saved = pauses_within("saving", kept, || trainer.save(Vec::new()));
        pauses_within("resuming", 2 * kept, || Trainer::resume(hyper, 2, false, &saved).unwrap());
    }
    tuples::pause::set_host(|| ());
}

#[test]
fn a_network_whose_host_no_longer_wants_it_stops_in_the_middle() {
    let batch = dense(&tuples(4, 3, 2, 5));
    let hyper = Hyperparameters { batch_size: 4, ..hyper(&[300_000], Activation::Relu, Output::Sigmoid) };
    let mut trainer = Trainer::new(hyper, 3, 2, false).unwrap();
    trainer.begin_epoch();
    tuples::pause::set_host(|| panic!("no longer wanted"));
    let learned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| trainer.learn(&batch, 0..4).unwrap()));
    tuples::pause::set_host(|| ());
    assert!(learned.is_err());
}
