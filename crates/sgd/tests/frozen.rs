//! Results with a seed are part of what users rely on: the bits of trained models, frozen.
//!
//! If one of these tests fails, do not change the expected value: change the code back. Linear models depend on no
//! processor and no library. Networks multiply matrices with a library whose sums depend on the processor,
//! so they are not frozen here.

use loss::{Hyperparameters, ModelKind, Optimizer, Schedule, Task};
use sgd::{Evaluation, Trainer};
use tuples::Batch;

/// Tuples whose labels have something to do with their features.
fn tuples(kind: ModelKind, dim: usize, sparse: bool, weighted: bool) -> Batch {
    let mut batch = if sparse { Batch::sparse() } else { Batch::dense(dim) };
    batch.set_weighted(weighted);
    for i in 0..211usize {
        let value = |j: usize| ((i * 37 + j * 11 + i * j) % 29) as f32 / 16.0 - 0.9;
        let label = match kind {
            ModelKind::Poisson => (i * 31 % 17) as f32 / 8.0,
            _ if kind.task() == Task::Regression => (i * 31 % 17) as f32 / 8.0 - 1.0,
            _ if kind.has_class_numbers() => (i * 7 % 3) as f32,
            _ if value(1) + value(2) > 0.3 => 1.0,
            _ => -1.0,
        };
        if sparse {
            let stored: Vec<usize> = (0..dim).filter(|j| (i + j) % 3 == 0).collect();
            let (indices, values) = batch.push_sparse(label, stored.len()).unwrap();
            for (place, j) in stored.into_iter().enumerate() {
                (indices[place], values[place]) = (j as u32, value(j));
            }
        } else {
            batch.push(label).unwrap().iter_mut().enumerate().for_each(|(j, x)| *x = value(j));
        }
    }
    batch.weights_mut().iter_mut().enumerate().for_each(|(i, weight)| *weight = 0.5 + (i % 4) as f32 / 2.0);
    batch
}

/// FNV-1a of 64 bits.
struct Hash(u64);

impl Hash {
    fn add(&mut self, bits: u64) {
        for byte in bits.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn train(hash: &mut Hash, hyper: Hyperparameters, batch: &Batch) {
    let outputs = if hyper.kind.has_class_numbers() { 3 } else { 1 };
    let dim = if batch.is_sparse() { 0 } else { batch.dim() };
    let mut trainer = Trainer::new(hyper, dim, outputs, batch.is_sparse()).unwrap();
    for _ in 0..3 {
        trainer.begin_epoch();
        for places in [0..100, 100..211] {
            trainer.begin_buffer(places.len(), batch, places.clone()).unwrap();
            trainer.learn(batch, places).unwrap();
        }
        let report = trainer.end_epoch().unwrap();
        hash.add(report.loss.to_bits());
        hash.add(report.accuracy.or(report.r2).unwrap().to_bits());
    }
    let model = trainer.model().unwrap();
    model.weights.iter().chain(&model.intercepts).for_each(|w| hash.add(w.to_bits().into()));
    let mut evaluation = Evaluation::new(hyper.kind);
    evaluation.add(&model, batch);
    hash.add(evaluation.accuracy().or(evaluation.r2()).unwrap().to_bits());
}

/// The hash of models of this kind, trained in every way; with steps that are `bounded` or not.
fn trained(kind: ModelKind, bounded: bool) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for (dim, sparse) in [(5, false), (20, false), (70, false), (33, true)] {
        for weighted in [false, true] {
            let batch = tuples(kind, dim, sparse, weighted);
            let optimizers = [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM];
            for &optimizer in &optimizers[..if bounded { 2 } else { 3 }] {
                for schedule in [Schedule::Constant, Schedule::Theorem1 { mu: 0.02, a: None }] {
                    for (batch_size, l1, l2) in [(1, 0.0, 0.0), (1, 0.0, 0.01), (1, 1e-3, 0.0), (8, 1e-4, 1e-3)] {
                        let learning_rate = 0.004;
                        let defaults = Hyperparameters::new(kind);
                        let regularized = Hyperparameters { batch_size, l1, l2, ..defaults };
                        let hyper = Hyperparameters { learning_rate, schedule, optimizer, bounded, ..regularized };
                        train(&mut hash, hyper, &batch);
                    }
                }
            }
        }
    }
    hash.0
}

/// Of each model, without bounded steps and with them.
const FROZEN: [(ModelKind, [u64; 2]); ModelKind::LINEAR.len()] = [
    (ModelKind::Logistic, [12_425_791_291_784_146_830, 14_398_526_479_352_589_438]),
    (ModelKind::Svm, [2_689_356_114_288_891_589, 1_187_745_480_923_021_181]),
    (ModelKind::Linear, [16_686_920_129_042_191_075, 10_220_050_646_221_940_923]),
    (ModelKind::Softmax, [6_358_554_461_082_786_447, 18_088_113_978_482_671_187]),
    (ModelKind::Poisson, [16_315_733_094_856_196_989, 7_318_166_664_618_153_829]),
    (ModelKind::Quantile, [3_524_026_781_878_625_168, 3_087_461_586_786_535_709]),
    (ModelKind::EpsilonInsensitive, [6_254_769_488_440_866_307, 1_500_026_811_408_835_707]),
    (ModelKind::Huber, [7_306_904_119_769_830_684, 18_237_737_050_021_040_090]),
    (ModelKind::SvmOneVsRest, [1_140_058_368_475_807_786, 16_279_731_564_715_782_225]),
    (ModelKind::SquaredHinge, [14_708_650_359_892_727_448, 7_455_214_897_849_088_194]),
    (ModelKind::SquaredHingeOneVsRest, [5_546_638_771_001_972_259, 10_977_776_431_195_639_576]),
];

#[test]
fn linear_models_have_the_bits_that_they_have_always_had() {
    let found = FROZEN.map(|(kind, _)| (kind, [false, true].map(|bounded| trained(kind, bounded))));
    assert_eq!(found, FROZEN);
}
