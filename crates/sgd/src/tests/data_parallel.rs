//! Trainers that learn together, one in each thread, against one trainer that learns from everything.

use std::sync::{Barrier, Mutex};

use loss::{
    Combine, Design, EpochReport, Exchange, Hidden, Hyperparameters, ModelKind, ModelParameters, Optimizer, Output,
    Schedule, Solver, Steps,
};
use proptest::prelude::*;
use sgd_tests::{Noise, noisy_batch, sparse_of};
use tuples::{Batch, OutOfMemory};

use super::mini_batches::mini_batches_of;
use super::textbook::gentle;
use crate::Trainer;

/// What threads give each other, in parts of a few numbers, so that everything is cut.
pub(super) struct Shared {
    barrier: Barrier,
    slots: Vec<Mutex<Vec<u32>>>,
}

pub(super) struct Thread<'a> {
    pub(super) shared: &'a Shared,
    pub(super) index: usize,
}

const PART: usize = 6;

impl Shared {
    pub(super) fn new(processes: usize) -> Shared {
        Shared { barrier: Barrier::new(processes), slots: (0..processes).map(|_| Mutex::default()).collect() }
    }
}

impl Thread<'_> {
    fn all(&self, words: &[u32]) -> Vec<Vec<u32>> {
        *self.shared.slots[self.index].lock().unwrap() = words.to_vec();
        self.shared.barrier.wait();
        let all = self.shared.slots.iter().map(|slot| slot.lock().unwrap().clone()).collect();
        self.shared.barrier.wait();
        all
    }
}

impl Exchange for Thread<'_> {
    type Error = OutOfMemory;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), OutOfMemory> {
        let all = self.all(bytemuck::cast_slice(numbers));
        for (part, numbers) in numbers.chunks_mut(PART).enumerate() {
            let of = |words: &'_ Vec<u32>| -> Vec<f32> {
                bytemuck::cast_slice(&words[part * PART..][..numbers.len()]).to_vec()
            };
            let parts: Vec<Vec<f32>> = all.iter().map(of).collect();
            combine(numbers, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), OutOfMemory> {
        let all = self.all(words);
        let parts = all.iter().map(|words| words.len().div_ceil(PART)).max().unwrap_or(0);
        for part in 0..parts {
            for (process, words) in all.iter().enumerate() {
                if let Some(words) = words.chunks(PART).nth(part) {
                    take(process, words);
                }
            }
        }
        Ok(())
    }
}

/// The tuples of a batch in its order: what threads can share.
pub(super) struct Tuples {
    sparse: bool,
    dim: usize,
    /// labels, indices of sparse ones, values
    rows: Vec<(f32, Vec<u32>, Vec<f32>)>,
}

impl Tuples {
    pub(super) fn new(batch: &Batch) -> Tuples {
        let row = |i: usize| match batch.is_sparse() {
            true => (batch.label(i), batch.sparse_row(i).0.to_vec(), batch.sparse_row(i).1.to_vec()),
            false => (batch.label(i), Vec::new(), batch.features(i).to_vec()),
        };
        let rows = batch.order().iter().map(|&i| row(i as usize)).collect();
        Tuples { sparse: batch.is_sparse(), dim: batch.dim(), rows }
    }

    /// Every k-th tuple, beginning with number `index`.
    pub(super) fn share(&self, index: usize, processes: usize) -> Batch {
        let mut own = if self.sparse { Batch::sparse() } else { Batch::new(self.dim) };
        for (label, indices, values) in self.rows.iter().skip(index).step_by(processes) {
            if self.sparse {
                let (own_indices, own_values) = own.push_sparse(*label, indices.len()).unwrap();
                own_indices.copy_from_slice(indices);
                own_values.copy_from_slice(values);
            } else {
                own.push(*label).unwrap().copy_from_slice(values);
            }
        }
        own
    }
}

/// What each of several trainers has in the end, each of which takes every k-th tuple of the order, in turns.
pub(super) fn train_synchronized(
    hyper: Hyperparameters,
    batch: &Batch,
    outputs: usize,
    processes: usize,
    epochs: u32,
) -> Vec<(ModelParameters, Vec<EpochReport>)> {
    train_resuming(hyper, batch, outputs, (processes, epochs), false)
}

/// The same; if it `resumes`, each trainer is saved and goes on after each epoch.
fn train_resuming(
    hyper: Hyperparameters,
    batch: &Batch,
    outputs: usize,
    (processes, epochs): (usize, u32),
    resumes: bool,
) -> Vec<(ModelParameters, Vec<EpochReport>)> {
    let (shared, all) = (&Shared::new(processes), &Tuples::new(batch));
    let run = |index: usize| {
        let own = all.share(index, processes);
        let mut exchange = Thread { shared, index };
        // of sparse tuples, no one knows in advance how many features there are
        let dim = if all.sparse { 1 } else { all.dim };
        let mut trainer = Trainer::replica(hyper, dim, outputs, all.sparse).unwrap();
        let tuples = all.rows.len();
        let shares: Vec<usize> = (0..processes).map(|i| (tuples - i).div_ceil(processes)).collect();
        let mut reports = Vec::new();
        for _ in 0..epochs {
            trainer.begin_epoch();
            let of_step = hyper.batch_size as usize;
            trainer.begin_buffer_synchronized((tuples, of_step), &own, 0..own.len(), &mut exchange).unwrap();
            let step = match trainer.steps() {
                Steps::ByMiniBatch(size) => size,
                other => {
                    trainer.learn(&own, 0..own.len()).unwrap();
                    if other == Steps::ByTuple {
                        trainer.average_synchronized(&shares, &mut exchange).unwrap();
                    }
                    usize::MAX
                }
            };
            for from in (0..tuples).step_by(step).filter(|_| step < usize::MAX) {
                let until = tuples.min(from + step);
                let own_of = |place: usize| (place + processes - 1 - index) / processes;
                // in two calls, as if there had been something to look after
                let (from_own, until_own) = (own_of(from), own_of(until));
                let middle = (from_own + until_own) / 2;
                trainer.learn(&own, from_own..middle).unwrap();
                trainer.learn(&own, middle..until_own).unwrap();
                trainer.step_synchronized((until - from) as u32, &mut exchange).unwrap();
            }
            trainer.count_synchronized(&mut exchange).unwrap();
            reports.push(trainer.end_epoch().unwrap());
            if resumes {
                let saved = trainer.save(Vec::new());
                trainer = Trainer::resume_replica(hyper, outputs, all.sparse, &saved).unwrap();
            }
        }
        (trainer.model().unwrap(), reports)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processes).map(|index| scope.spawn(move || run(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// What each of several trainers has in the end that take turns with whole mini-batches of this many tuples, of which
/// one of each process makes a step.
fn train_on_whole(
    (hyper, outputs): (Hyperparameters, usize),
    batch: &Batch,
    rows: usize,
    (processes, epochs): (usize, u32),
) -> Vec<(ModelParameters, EpochReport)> {
    let (shared, all) = (&Shared::new(processes), &Tuples::new(batch));
    let run = |index: usize| {
        let mut own = Batch::new(all.dim);
        for (label, _, values) in all.rows.chunks(rows).skip(index).step_by(processes).flatten() {
            own.push(*label).unwrap().copy_from_slice(values);
        }
        let own = mini_batches_of(&own, rows);
        let mut exchange = Thread { shared, index };
        let mut trainer = Trainer::replica(hyper, all.dim, outputs, false).unwrap();
        assert_eq!(trainer.steps(), Steps::ByWholeMiniBatches);
        let mut report = None;
        for _ in 0..epochs {
            trainer.begin_epoch();
            for (round, tuples) in all.rows.chunks(rows * processes).enumerate() {
                trainer.learn(&own, round.min(own.len())..(round + 1).min(own.len())).unwrap();
                trainer.step_synchronized(tuples.len() as u32, &mut exchange).unwrap();
            }
            trainer.count_synchronized(&mut exchange).unwrap();
            report = Some(trainer.end_epoch().unwrap());
        }
        (trainer.model().unwrap(), report.unwrap())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processes).map(|index| scope.spawn(move || run(index))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// One trainer, learning from everything.
fn alone(hyper: Hyperparameters, batch: &Batch, outputs: usize, epochs: u32) -> (ModelParameters, Vec<EpochReport>) {
    let mut trainer = Trainer::new(hyper, batch.dim(), outputs, batch.is_sparse()).unwrap();
    let mut reports = Vec::new();
    for _ in 0..epochs {
        trainer.begin_epoch();
        trainer.begin_buffer(batch.order().len(), batch, 0..batch.order().len()).unwrap();
        trainer.learn(batch, 0..batch.order().len()).unwrap();
        reports.push(trainer.end_epoch().unwrap());
    }
    (trainer.model().unwrap(), reports)
}

fn close(a: &ModelParameters, b: &ModelParameters, tolerance: f32) -> bool {
    let numbers = |model: &ModelParameters| [model.weights.clone(), model.intercepts.clone()].concat();
    a.dim == b.dim && numbers(a).iter().zip(numbers(b)).all(|(x, y)| (x - y).abs() <= tolerance)
}

fn hyper(kind: ModelKind, batch_size: u32) -> Hyperparameters {
    // one with which momentum converges, however much the loss bends
    let learning_rate = gentle(kind, 0.05);
    Hyperparameters { learning_rate, batch_size, ..Hyperparameters::new(kind) }
}

/// Tuples of several classes, or with any numbers as labels.
pub(super) fn labelled(kind: ModelKind, mut batch: Batch, seed: u64) -> Batch {
    let mut noise = Noise::new(seed);
    for i in 0..batch.len() {
        let label = match kind {
            ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
            ModelKind::Softmax | ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest => {
                ((noise.next() + 1.0) * 1.499) as u32 as f32
            }
            ModelKind::Linear | ModelKind::Quantile | ModelKind::EpsilonInsensitive | ModelKind::Huber => {
                3.0 * noise.next()
            }
            ModelKind::Poisson => (3.0 * noise.next()).abs().floor(),
            _ => continue,
        };
        batch.labels_mut()[i] = label;
    }
    batch
}

/// Tuples that lack most features. The first one has the last feature: who learns from them all meets `dim` features.
pub(super) fn sparse_batch(dim: usize, n: usize, seed: u64) -> Batch {
    let mut noise = Noise::new(seed);
    let rows: Vec<(f32, Vec<f32>)> = (0..n)
        .map(|row| {
            let mut feature = |index: usize| match noise.next() {
                x if x.abs() >= 0.6 || (row, index + 1) == (0, dim) => x,
                _ => 0.0,
            };
            let features = (0..dim).map(&mut feature).collect();
            (noise.next().signum(), features)
        })
        .collect();
    let mut batch = sparse_of(rows.iter().map(|(label, features)| (*label, features.as_slice())));
    batch.set_dim(dim);
    batch
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// The papers' multi-process mode is mini-batch SGD on the same batches: nothing but the sequence in which f32 are
    /// added up is another.
    #[test]
    fn mini_batches_are_those_of_one_trainer(
        kind in prop::sample::select(&ModelKind::LINEAR[..]),
        optimizer in prop::sample::select(&[Optimizer::Sgd, Optimizer::Momentum { beta: 0.9 }, Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 }][..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]),
        l2 in prop::sample::select(&[0.0, 0.1][..]),
        sparse: bool, batch_size in 2..70_u32, processes in 2..5_usize, n in 10..200_usize, seed: u64,
        automatic: bool,
    ) {
        let batch = if sparse { sparse_batch(19, n, seed) } else { noisy_batch(19, n, seed) };
        let batch = labelled(kind, batch, seed);
        let outputs = if kind.has_class_numbers() { 3 } else { 1 };
        let bounded = automatic && !matches!(optimizer, Optimizer::Adam { .. });
        let hyper = Hyperparameters { optimizer, l1, l2, bounded, averaging: automatic, ..hyper(kind, batch_size) };
        let (model, reports) = alone(hyper, &batch, outputs, 3);
        let all = train_synchronized(hyper, &batch, outputs, processes, 3);
        for (replica, of_replica) in &all {
            prop_assert_eq!(replica, &all[0].0, "replicas are the same to the bit");
            prop_assert!(close(&model, replica, 2e-4), "{:?}\n{:?}", model, replica);
            for (one, other) in reports.iter().zip(of_replica) {
                prop_assert_eq!(one.tuples, other.tuples);
                prop_assert!((one.loss - other.loss).abs() < 1e-4, "{:?} {:?}", one, other);
                prop_assert!((one.accuracy.unwrap_or(0.0) - other.accuracy.unwrap_or(0.0)).abs() <= 2.0 / n as f64);
                prop_assert!((one.r2.unwrap_or(0.0) - other.r2.unwrap_or(0.0)).abs() < 1e-4);
            }
        }
    }

    /// One compressed mini-batch of each process is one mini-batch of all their tuples.
    #[test]
    fn whole_mini_batches_of_all_are_one(
        kind in prop::sample::select(&ModelKind::ALL[..]),
        optimizer in prop::sample::select(&[Optimizer::Sgd, Optimizer::Momentum { beta: 0.9 }, Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 }][..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]),
        rows in 1..12_usize, processes in 2..5_usize, n in 10..120_usize, seed: u64, averaging: bool,
    ) {
        let classes = if kind.has_class_numbers() { 3 } else { 1 };
        let design = Design { hidden: Hidden::new(&[5]).unwrap(), seed: 3, ..Design::default() };
        let (design, labels) = match kind {
            ModelKind::Mlp => (Some(Design { output: Some(Output::Softmax), ..design }), ModelKind::Softmax),
            ModelKind::MlpRegression => (Some(Design { output: Some(Output::Identity), ..design }), ModelKind::Linear),
            linear => (None, linear),
        };
        let batch = labelled(labels, noisy_batch(7, n, seed), seed);
        let hyper = Hyperparameters {
            optimizer, l1, design, kind, averaging: averaging && design.is_none(), ..hyper(labels, Hyperparameters::WHOLE_MINI_BATCHES)
        };
        let (model, reports) = alone(hyper, &mini_batches_of(&batch, rows * processes), classes, 3);
        let all = train_on_whole((hyper, classes), &batch, rows, (processes, 3));
        for (replica, report) in &all {
            prop_assert_eq!(replica, &all[0].0, "replicas are the same to the bit");
            prop_assert!(close(&model, replica, 2e-4), "{:?}\n{:?}", model, replica);
            prop_assert_eq!(report.tuples, n as u64);
            prop_assert!((report.loss - reports[2].loss).abs() < 1e-4 * (1.0 + report.loss), "{:?} {:?}", report, reports[2]);
        }
    }

    #[test]
    fn newtons_method_of_several_is_that_of_one(
        logistic: bool, l2 in prop::sample::select(&[0.0, 0.1][..]),
        sparse: bool, processes in 2..5_usize, n in 40..200_usize, seed: u64,
    ) {
        let kind = if logistic { ModelKind::Logistic } else { ModelKind::Linear };
        let batch = if sparse { sparse_batch(7, n, seed) } else { noisy_batch(7, n, seed) };
        let batch = labelled(kind, batch, seed);
        let hyper = Hyperparameters { solver: Solver::Newton, l2, ..Hyperparameters::new(kind) };
        let (model, reports) = alone(hyper, &batch, 1, 4);
        let all = train_synchronized(hyper, &batch, 1, processes, 4);
        for (replica, of_replica) in &all {
            prop_assert_eq!(replica, &all[0].0, "replicas are the same to the bit");
            prop_assert!(close(&model, replica, 1e-5 * (1.0 + replica.weights.iter().fold(0.0, |most: f32, w| most.max(w.abs())))));
            for (one, other) in reports.iter().zip(of_replica) {
                prop_assert_eq!((one.tuples, one.accuracy), (other.tuples, other.accuracy));
                prop_assert!((one.loss - other.loss).abs() < 1e-6 * (1.0 + one.loss), "{:?} {:?}", one, other);
            }
        }
    }

    #[test]
    fn replicas_that_were_saved_go_on_bit_for_bit(
        kind in prop::sample::select(&ModelKind::LINEAR[..]),
        optimizer in prop::sample::select(&[Optimizer::Sgd, Optimizer::Momentum { beta: 0.9 }, Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 }][..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]), newton: bool, averaging: bool,
        sparse: bool, batch_size in prop::sample::select(&[1_u32, 2, 16][..]), processes in 2..4_usize, n in 20..100_usize, seed: u64,
    ) {
        let batch = if sparse { sparse_batch(7, n, seed) } else { noisy_batch(7, n, seed) };
        let batch = labelled(kind, batch, seed);
        let outputs = if kind.has_class_numbers() { 3 } else { 1 };
        let sgd = Hyperparameters { optimizer, l1, averaging, ..hyper(kind, batch_size) };
        let solver = Hyperparameters { solver: Solver::Newton, l2: 0.1, ..hyper(kind, 1) };
        let hyper = if newton && matches!(kind, ModelKind::Logistic | ModelKind::Linear) { solver } else { sgd };
        let whole = train_synchronized(hyper, &batch, outputs, processes, 3);
        prop_assert_eq!(train_resuming(hyper, &batch, outputs, (processes, 3), true), whole);
    }

    #[test]
    fn a_tuple_at_a_time_the_models_of_all_processes_are_averaged(
        kind in prop::sample::select(&ModelKind::LINEAR[..]),
        optimizer in prop::sample::select(&[Optimizer::Sgd, Optimizer::Momentum { beta: 0.9 }, Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-3 }][..]),
        l1 in prop::sample::select(&[0.0, 0.01][..]),
        l2 in prop::sample::select(&[0.0, 0.1][..]),
        sparse: bool, processes in 2..5_usize, n in 10..100_usize, seed: u64,
    ) {
        let batch = if sparse { sparse_batch(19, n, seed) } else { noisy_batch(19, n, seed) };
        let batch = labelled(kind, batch, seed);
        let outputs = if kind.has_class_numbers() { 3 } else { 1 };
        let hyper = Hyperparameters { optimizer, l1, l2, ..hyper(kind, 1) };
        // each on its own, then the mean of them
        let mut mean = ModelParameters { dim: 19, outputs, weights: vec![0.0; 19 * outputs], intercepts: vec![0.0; outputs], network: None };
        let mut tuples = 0;
        for index in 0..processes {
            let mut own = Tuples::new(&batch).share(index, processes);
            if sparse {
                own.set_dim(19);
            }
            let (model, reports) = alone(hyper, &own, outputs, 1);
            let share = own.len() as f32 / n as f32;
            mean.weights.iter_mut().zip(&model.weights).for_each(|(mean, w)| *mean += share * w);
            mean.intercepts.iter_mut().zip(&model.intercepts).for_each(|(mean, b)| *mean += share * b);
            tuples += reports[0].tuples;
        }
        let all = train_synchronized(hyper, &batch, outputs, processes, 1);
        for (replica, reports) in &all {
            prop_assert_eq!(replica, &all[0].0, "replicas are the same to the bit");
            prop_assert!(close(&mean, replica, 1e-5), "{:?}\n{:?}", mean, replica);
            prop_assert_eq!(reports[0].tuples, tuples);
        }
        // and they go on from there
        let further = train_synchronized(hyper, &batch, outputs, processes, 3);
        prop_assert!(further.iter().all(|(replica, reports)| *replica == further[0].0 && *reports == further[0].1));
    }
}

/// Features that one process has never met, and the schedule that looks at buffers.
#[test]
fn replicas_agree_on_dimensions_and_averages() {
    let mut batch = Batch::sparse();
    for i in 0..20_u32 {
        let (indices, values) = batch.push_sparse(if i % 3 == 0 { 1.0 } else { -1.0 }, 2).unwrap();
        indices.copy_from_slice(&[i % 2, 2 + i]);
        values.copy_from_slice(&[1.0, 0.5]);
    }
    for batch_size in [1, 4] {
        let schedule = Schedule::Theorem1 { mu: 0.1, a: None };
        let hyper = Hyperparameters { schedule, l2: 0.1, ..hyper(ModelKind::Logistic, batch_size) };
        let all = train_synchronized(hyper, &batch, 1, 2, 4);
        assert_eq!(all[0].0.dim, 22);
        assert_eq!(all[0], all[1]);
        assert!(all[0].0.weights[2..].iter().all(|w| *w != 0.0), "{:?}", all[0].0);
    }
}

/// A tuple at a time, the iterates of the mean are those after each buffer, which are the same in all processes.
#[test]
fn replicas_agree_on_the_mean_of_their_iterates() {
    let batch = noisy_batch(19, 60, 5);
    let averaged = Hyperparameters { averaging: true, bounded: true, ..hyper(ModelKind::Logistic, 1) };
    let iterate = |epochs| {
        let plain = Hyperparameters { averaging: false, ..averaged };
        train_synchronized(plain, &batch, 1, 3, epochs)[0].0.clone()
    };
    let all = train_synchronized(averaged, &batch, 1, 3, 2);
    assert!(all.iter().all(|replica| *replica == all[0]));
    // after 60 and 120 tuples, whose fourth powers are as 1 to 16
    let (first, second) = (iterate(1), iterate(2));
    for (mean, (a, b)) in all[0].0.weights.iter().zip(first.weights.iter().zip(&second.weights)) {
        assert!((mean - (a + 15.0 * b) / 16.0).abs() < 1e-6);
    }
}

#[test]
fn a_model_that_diverges_in_one_process_diverges_in_all() {
    let mut batch = noisy_batch(3, 20, 1);
    // the tuple of one process only
    let first = batch.order()[1] as usize;
    batch.features_mut(first).fill(3e38);
    for batch_size in [1, 8] {
        let hyper = Hyperparameters { learning_rate: 10.0, ..hyper(ModelKind::Linear, batch_size) };
        let (shared, all) = (&Shared::new(2), &Tuples::new(&batch));
        let run = |index: usize| {
            let own = all.share(index, 2);
            let mut exchange = Thread { shared, index };
            let mut trainer = Trainer::replica(hyper, 3, 1, false).unwrap();
            trainer.begin_epoch();
            trainer.learn(&own, 0..4).unwrap();
            match batch_size {
                1 => trainer.average_synchronized(&[4, 4], &mut exchange).unwrap(),
                _ => trainer.step_synchronized(8, &mut exchange).unwrap(),
            }
            trainer.count_synchronized(&mut exchange).unwrap();
            trainer.end_epoch()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|index| scope.spawn(move || run(index))).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap().is_err()));
        });
    }
}
