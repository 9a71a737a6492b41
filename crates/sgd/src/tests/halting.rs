//! Trainers of processes that cannot wait, against threads that do, and moments that are united.

use loss::{
    Design, EpochReport, Exchange, Hidden, Hyperparameters, ModelKind, ModelParameters, Optimizer, Output, Solver,
};
use proptest::prelude::*;
use sgd_tests::{noisy_batch, sparse_of};
use tuples::Batch;

use super::data_parallel::train_synchronized;
use crate::{Halt, Halting, Moments, PresentMoments, Round, Shapes, Trainer, Uniting};

/// What a process is to do together with the others.
#[derive(Clone)]
enum Call {
    Step(u32),
    Average(Vec<usize>),
    Count,
}

impl Call {
    fn make(&self, trainer: &mut Trainer, exchange: &mut impl Exchange<Error = Halt>) -> Result<(), Halt> {
        match self {
            Call::Step(tuples) => trainer.step_synchronized(*tuples, exchange),
            Call::Average(tuples) => trainer.average_synchronized(tuples, exchange),
            Call::Count => trainer.count_synchronized(exchange),
        }
    }
}

/// A process that cannot wait.
struct Halted {
    trainer: Trainer,
    own: Batch,
    rounds: Vec<Round>,
}

impl Halted {
    /// Makes the call as far as it goes: what the process says, or None at its end.
    fn call(&mut self, call: &Call) -> Option<Vec<u32>> {
        let mut halting = Halting::new(&self.rounds);
        match call.make(&mut self.trainer, &mut halting) {
            Ok(()) => {
                self.rounds.clear();
                None
            }
            Err(Halt::Says(words)) => Some(words),
            Err(halt) => panic!("{halt:?}"),
        }
    }
}

/// Every k-th tuple of a batch's order, beginning with number `index`.
fn share(batch: &Batch, index: usize, processes: usize) -> Batch {
    let mut own = if batch.is_sparse() { Batch::sparse() } else { Batch::new(batch.dim()) };
    batch.order().iter().skip(index).step_by(processes).for_each(|i| own.push_copy(batch, *i as usize).unwrap());
    own
}

/// All make a call, of which the first one asks the others.
fn together(all: &mut [Halted], call: &Call) {
    let (first, others) = all.split_first_mut().unwrap();
    let (mut rounds, mut says) = (Vec::new(), None);
    loop {
        let mut uniting = Uniting::new(&rounds, says.take());
        let ended = call.make(&mut first.trainer, &mut uniting);
        if let Some(round) = uniting.into_round() {
            others.iter_mut().for_each(|other| other.rounds.push(round.clone()));
            rounds.push(round);
        }
        match ended {
            Ok(()) => break,
            Err(Halt::Says(own)) => {
                let of_other = |other: &mut Halted| other.call(call).expect("a round");
                says = Some(std::iter::once(own).chain(others.iter_mut().map(of_other)).collect());
            }
            Err(halt) => panic!("{halt:?}"),
        }
    }
    assert!(others.iter_mut().all(|other| other.call(call).is_none()), "nothing is left to be said");
}

/// What all have in the end: the first of them asks the others.
fn train_halting(
    hyper: Hyperparameters,
    batch: &Batch,
    outputs: usize,
    processes: usize,
    epochs: u32,
) -> Vec<(ModelParameters, EpochReport)> {
    let dim = if batch.is_sparse() && hyper.design.is_none() { 1 } else { batch.dim() };
    let process = |index| Halted {
        trainer: Trainer::replica(hyper, dim, outputs, batch.is_sparse()).unwrap(),
        own: share(batch, index, processes),
        rounds: Vec::new(),
    };
    let mut all: Vec<Halted> = (0..processes).map(process).collect();
    let tuples = batch.len();
    let size = if hyper.batch_size == 1 { tuples } else { hyper.batch_size as usize };
    let shares: Vec<usize> = (0..processes).map(|i| (tuples - i).div_ceil(processes)).collect();
    let mut reports = Vec::new();
    for _ in 0..epochs {
        all.iter_mut().for_each(|process| process.trainer.begin_epoch());
        let newton = hyper.solver == Solver::Newton;
        for from in (0..tuples).step_by(if newton { tuples } else { size }) {
            let until = if newton { tuples } else { tuples.min(from + size) };
            for (index, process) in all.iter_mut().enumerate() {
                let own_of = |place: usize| (place + processes - 1 - index) / processes;
                process.trainer.learn(&process.own, own_of(from)..own_of(until)).unwrap();
            }
            match hyper.batch_size {
                _ if newton => {}
                1 => together(&mut all, &Call::Average(shares.clone())),
                _ => together(&mut all, &Call::Step((until - from) as u32)),
            }
        }
        together(&mut all, &Call::Count);
        reports = all.iter_mut().map(|process| process.trainer.end_epoch().unwrap()).collect();
    }
    all.iter().map(|process| process.trainer.model().unwrap()).zip(reports).collect()
}

fn sparse_batch(dim: usize, n: usize, seed: u64) -> Batch {
    let dense = noisy_batch(dim, n, seed);
    let rows: Vec<(f32, Vec<f32>)> = (0..n)
        .map(|i| {
            let cut = |(j, x): (usize, &f32)| if x.abs() >= 0.6 || (i, j + 1) == (0, dim) { *x } else { 0.0 };
            (dense.label(i), dense.features(i).iter().enumerate().map(cut).collect())
        })
        .collect();
    let mut batch = sparse_of(rows.iter().map(|(label, features)| (*label, features.as_slice())));
    batch.set_dim(dim);
    batch
}

const OPTIMIZERS: [Optimizer; 3] =
    [Optimizer::Sgd, Optimizer::Momentum { beta: 0.9 }, Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 }];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn who_cannot_wait_has_the_same_model_to_the_bit(
        optimizer in prop::sample::select(&OPTIMIZERS[..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]),
        l2 in prop::sample::select(&[0.0, 0.1][..]),
        sparse: bool, newton: bool, batch_size in prop::sample::select(&[1_u32, 2, 7, 64][..]), processes in 2..5_usize,
        n in 10..120_usize, seed: u64,
    ) {
        let batch = if sparse { sparse_batch(19, n, seed) } else { noisy_batch(19, n, seed) };
        let hyper = Hyperparameters {
            optimizer, l1, l2, learning_rate: 0.05, batch_size, ..Hyperparameters::new(ModelKind::Logistic)
        };
        let of_newton = Hyperparameters { solver: Solver::Newton, l2: 0.1, ..Hyperparameters::new(ModelKind::Logistic) };
        let hyper = if newton { of_newton } else { hyper };
        let halting = train_halting(hyper, &batch, 1, processes, 3);
        let waiting = train_synchronized(hyper, &batch, 1, processes, 3);
        for ((model, report), (expected, reports)) in halting.iter().zip(&waiting) {
            prop_assert_eq!(model, expected);
            prop_assert_eq!(Some(report), reports.last());
        }
    }

    #[test]
    fn networks_that_learn_together_are_one_network(
        optimizer in prop::sample::select(&OPTIMIZERS[..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]),
        sparse: bool, batch_size in 2..70_u32, processes in 2..5_usize, n in 10..200_usize, seed: u64,
    ) {
        let mut batch = if sparse { sparse_batch(19, n, seed) } else { noisy_batch(19, n, seed) };
        batch.labels_mut().iter_mut().for_each(|label| *label = f32::from(u8::from(*label > 0.0)));
        let hidden = Hidden::new(&[8, 5]).unwrap();
        let design = Some(Design { hidden, output: Some(Output::Softmax), seed: 3, ..Design::default() });
        let hyper = Hyperparameters {
            optimizer, l1, learning_rate: 0.01, batch_size, design, ..Hyperparameters::new(ModelKind::Mlp)
        };
        let mut alone = Trainer::new(hyper, 19, 2, sparse).unwrap();
        for _ in 0..3 {
            alone.begin_epoch();
            alone.learn(&batch, 0..n).unwrap();
            alone.end_epoch().unwrap();
        }
        let expected = alone.model().unwrap();
        let all = train_halting(hyper, &batch, 2, processes, 3);
        for (model, _) in &all {
            prop_assert_eq!(model, &all[0].0, "all are the same to the bit");
            for (a, b) in model.weights.iter().chain(&model.intercepts).zip(expected.weights.iter().chain(&expected.intercepts)) {
                prop_assert!((a - b).abs() <= 2e-4, "{a} {b}");
            }
        }
    }

    #[test]
    fn moments_that_were_sent_and_united_are_those_of_all_rows(n in 1..300_usize, cut in 0..300_usize, seed: u64) {
        let (batch, cut) = (noisy_batch(5, n, seed), cut.min(n));
        let part = |places: std::ops::Range<usize>| {
            let mut part = Batch::dense(5);
            places.for_each(|i| part.push_copy(&batch, i).unwrap());
            part
        };
        let measure = |mut batch: Batch| {
            let mut measured = (Moments::new(5), PresentMoments::new(5), Shapes::new(5));
            measured.0.add(&batch).unwrap();
            measured.2.add(&batch);
            measured.1.add(&mut batch, false).unwrap();
            measured
        };
        let sent = |of: &(Moments, PresentMoments, Shapes)| serde_json::from_str(&serde_json::to_string(of).unwrap());
        let (all, first, second) = (measure(part(0..n)), measure(part(0..cut)), measure(part(cut..n)));
        let mut united: (Moments, PresentMoments, Shapes) = sent(&first).unwrap();
        let second: (Moments, PresentMoments, Shapes) = sent(&second).unwrap();
        prop_assert!(united.0.unite(&second.0) && united.1.unite(&second.1) && united.2.unite(&second.2));
        prop_assert_eq!(united.0.count(), n as u64);
        let numbers = |of: &(Moments, PresentMoments, Shapes)| {
            let scaling = of.0.finish();
            let means: Vec<f64> = of.1.means().into_iter().chain((0..5).map(|j| of.2.mean(j))).map(f64::from).collect();
            [scaling.mean, scaling.scale, means].concat()
        };
        for (a, b) in numbers(&united).into_iter().zip(numbers(&all)) {
            prop_assert!((a - b).abs() <= 1e-6 * (1.0 + b.abs()), "{a} {b}");
        }
        let wider = (Moments::new(6), PresentMoments::new(6), Shapes::new(6));
        prop_assert!(!(united.0.unite(&wider.0) || united.1.unite(&wider.1) || united.2.unite(&wider.2)));
    }
}

#[test]
fn what_cannot_have_come_of_a_round_is_told() {
    let hyper = Hyperparameters { batch_size: 4, ..Hyperparameters::new(ModelKind::Logistic) };
    let mut trainer = Trainer::replica(hyper, 3, 1, false).unwrap();
    trainer.begin_epoch();
    for round in [Round::Reduced(vec![0; 2]), Round::Gathered(vec![vec![0; 5]])] {
        let rounds = [round];
        assert!(matches!(trainer.step_synchronized(4, &mut Halting::new(&rounds)), Err(Halt::Nonsense)));
    }
}

#[test]
fn sparse_moments_unite_whoever_has_met_a_feature() {
    let of = |rows: &[[f32; 3]]| {
        let rows: Vec<(f32, &[f32])> = rows.iter().map(|row| (1.0, &row[..])).collect();
        let mut moments = Moments::new(0);
        moments.add(&sparse_of(rows)).unwrap();
        moments
    };
    let rows = [[1.0, 0.0, 0.0], [2.0, 5.0, 0.0], [0.0, 0.0, 7.0]];
    let (mut united, all) = (of(&rows[..2]), of(&rows));
    assert!(united.unite(&of(&rows[2..])));
    let (united, all) = (united.finish(), all.finish());
    for (a, b) in united.mean.iter().chain(&united.scale).zip(all.mean.iter().chain(&all.scale)) {
        assert!((a - b).abs() < 1e-12, "{united:?} {all:?}");
    }
}
