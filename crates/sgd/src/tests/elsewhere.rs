//! Trainers that learn from tuples that no one else has, against trainers that ask the others nevertheless.

use loss::{
    Design, EpochReport, Exchange, Hidden, Hyperparameters, ModelKind, ModelParameters, Optimizer, Output, Schedule,
    Steps,
};
use proptest::prelude::*;
use sgd_tests::noisy_batch;
use tuples::{Batch, OutOfMemory};

use super::data_parallel::{Shared, Thread, Tuples, labelled, sparse_batch};
use crate::{Alone, Trainer, Unfit};

/// Goes through an epoch of two buffers, of which this process has these tuples, or none.
fn epoch<E: Exchange<Error = OutOfMemory>>(
    trainer: &mut Trainer,
    own: Option<&Batch>,
    tuples: usize,
    (of_each, exchange): (&[usize], &mut E),
) -> EpochReport {
    trainer.begin_epoch();
    let (none, mut pending) = (Batch::new(0), 0);
    for buffer in [0..tuples / 3, tuples / 3..tuples] {
        let (batch, places) = own.map_or((&none, 0..0), |own| (own, buffer.clone()));
        let curvature = trainer.curvature_of_buffer(batch, places.clone()).unwrap();
        // the most of all is that of the only one who has some
        let all = exchange.gather_all(bytemuck::cast_slice(&[curvature.unwrap_or(0.0)])).unwrap();
        let read = |words: &Vec<u32>| bytemuck::pod_read_unaligned::<f64>(bytemuck::cast_slice(words));
        let most = all.iter().map(read).reduce(f64::max).filter(|_| curvature.is_some());
        let learn = |trainer: &mut Trainer, from: usize, until: usize| {
            own.into_iter().for_each(|own| trainer.learn(own, from..until).unwrap());
        };
        match trainer.steps() {
            Steps::ByTuple => {
                trainer.begin_buffer_of_all((buffer.len(), 1), most);
                learn(trainer, buffer.start, buffer.end);
                let share: Vec<usize> = of_each.iter().map(|has| has * buffer.len()).collect();
                trainer.average_synchronized(&share, exchange).unwrap();
            }
            Steps::ByMiniBatch(size) => {
                trainer.begin_buffer_of_all((buffer.len(), size), most);
                let mut from = buffer.start;
                while from < buffer.end {
                    let until = buffer.end.min(from + size - pending);
                    learn(trainer, from, until);
                    pending += until - from;
                    from = until;
                    if pending == size {
                        trainer.step_synchronized(size as u32, exchange).unwrap();
                        pending = 0;
                    }
                }
            }
            steps => unreachable!("{steps:?}"),
        }
    }
    if pending > 0 {
        trainer.step_synchronized(pending as u32, exchange).unwrap();
    }
    trainer.count_synchronized(exchange).unwrap();
    trainer.end_epoch().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn who_has_all_tuples_needs_nobody(
        kind in prop::sample::select(&ModelKind::ALL[..]),
        optimizer in prop::sample::select(&[Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM][..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]), l2 in prop::sample::select(&[0.0, 0.1][..]),
        sparse: bool, averaging: bool, theorem: bool, batch_size in prop::sample::select(&[1_u32, 2, 7, 64][..]),
        n in 10..120_usize, seed: u64,
    ) {
        let outputs = if kind.has_class_numbers() { 3 } else { 1 };
        let design = Design { hidden: Hidden::new(&[5]).unwrap(), seed: 3, ..Design::default() };
        let (design, labels) = match kind {
            ModelKind::Mlp => (Some(Design { output: Some(Output::Softmax), ..design }), ModelKind::Softmax),
            ModelKind::MlpRegression => (Some(Design { output: Some(Output::Identity), ..design }), ModelKind::Linear),
            linear => (None, linear),
        };
        let batch = if sparse { sparse_batch(9, n, seed) } else { noisy_batch(9, n, seed) };
        let batch = labelled(labels, batch, seed);
        let linear = design.is_none();
        let usual = Hyperparameters::new(kind).schedule;
        let schedule = if theorem && linear { Schedule::Theorem1 { mu: 0.1, a: Some(500.0) } } else { usual };
        let hyper = Hyperparameters {
            optimizer, l1, design, schedule, learning_rate: 0.01, averaging: averaging && linear && !theorem,
            l2: if theorem { 0.1 } else { l2 }, batch_size: if linear { batch_size } else { batch_size.max(2) },
            ..Hyperparameters::new(kind)
        };
        // a loss that bends without bound has no theorem
        prop_assume!(hyper.validate().is_ok());
        let replica = || Trainer::replica(hyper, 9, outputs, sparse).unwrap();
        let (shared, all) = (&Shared::new(3), &Tuples::new(&batch));
        // the second of three has everything, and asks the others
        let run = |index: usize| {
            let own = (index == 1).then(|| all.share(0, 1));
            let mut trainer = replica();
            let mut exchange = Thread { shared, index };
            let reports = (0..3).map(|_| epoch(&mut trainer, own.as_ref(), n, (&[0, 1, 0], &mut exchange)));
            let reports: Vec<EpochReport> = reports.collect();
            (trainer.model().unwrap(), reports)
        };
        let run = &run;
        let expected: Vec<(ModelParameters, Vec<EpochReport>)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|index| scope.spawn(move || run(index))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (mut owner, mut other, own) = (replica(), replica(), all.share(0, 1));
        for number in 0..3 {
            let report = epoch(&mut owner, Some(&own), n, (&[1], &mut Alone::default()));
            other.begin_epoch();
            other.end_elsewhere(report, (outputs, sparse), &owner.save(Vec::new())).unwrap();
            prop_assert_eq!(other.tuples(), n as u64);
            prop_assert_eq!(other.end_epoch(), Ok(expected[0].1[number]));
        }
        prop_assert_eq!(&other.model().unwrap(), &expected[0].0);
        prop_assert_eq!(other.save(Vec::new()), owner.save(Vec::new()));
    }
}

#[test]
fn what_has_diverged_or_ended_another_epoch_is_told_apart() {
    let hyper = Hyperparameters { batch_size: 4, ..Hyperparameters::new(ModelKind::Logistic) };
    let replica = || Trainer::replica(hyper, 9, 1, false).unwrap();
    let (mut owner, own) = (replica(), noisy_batch(9, 20, 1));
    let report = epoch(&mut owner, Some(&own), 20, (&[1], &mut Alone::default()));
    let saved = owner.save(Vec::new());
    let mut other = replica();
    assert_eq!(other.end_elsewhere(report, (1, false), &saved), Err(Unfit::Malformed), "no epoch has begun");
    other.begin_epoch();
    assert_eq!(other.end_elsewhere(report, (1, false), &saved[1..]), Err(Unfit::Malformed));
    let mut wider = Trainer::replica(hyper, 10, 1, false).unwrap();
    wider.begin_epoch();
    assert_eq!(wider.end_elsewhere(report, (1, false), &saved), Err(Unfit::Malformed));
    other.diverge_elsewhere();
    assert!(other.tuples() > 0);
    assert_eq!(other.end_epoch().unwrap_err().epoch, 1);
    // and is forgotten in the next
    other.begin_epoch();
    assert_eq!(other.tuples(), 0);
}
