//! Nanoseconds per tuple of the inner loops, or per entry of sparse ones: elements per second is tuples or entries per
//! second. The group "read" is the floor of what waits for memory: the same rows read in sequence, and nothing else.
#![allow(missing_docs)] // criterion's macros generate undocumented functions

use std::hint::black_box;

use choices::Choice;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use linear::Panel;
use loss::{Activation, Design, Hidden, Hyperparameters, ModelKind, Optimizer, Output, Scaler, Solver};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use sgd::profile::{Profile, RowSample};
use sgd::{Evaluation, Moments, Trainer};
use tuples::Batch;

/// Numbers that look random.
struct Noise(SplitMix64);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(SplitMix64::seed_from_u64(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// Tuples that a hyperplane separates but for some noise.
fn tuples(dim: usize, n: usize) -> Batch {
    let mut noise = Noise::new(1);
    let truth: Vec<f32> = (0..dim).map(|_| noise.float()).collect();
    let mut batch = Batch::new(dim);
    batch.reserve(n).expect("memory");
    for _ in 0..n {
        let features = batch.push(1.0).expect("memory");
        features.iter_mut().for_each(|x| *x = noise.float());
        let z: f32 = truth.iter().zip(features).map(|(w, x)| w * *x).sum();
        let last = batch.len() - 1;
        batch.labels_mut()[last] = if z + noise.float() > 0.0 { 1.0 } else { -1.0 };
    }
    batch
}

fn shuffle(batch: &mut Batch) {
    let mut noise = Noise::new(2);
    let order = batch.order_mut();
    for i in (1..order.len()).rev() {
        order.swap(i, (noise.next() % (i as u64 + 1)) as usize);
    }
}

/// A streaming read of rows of several sizes of memory.
fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    for (dim, n) in [(28, 8_000), (28, 100_000), (28, 1_000_000), (2000, 20_000)] {
        let batch = tuples(dim, n);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new(format!("{}_MB", batch.bytes() >> 20), dim), |bencher| {
            bencher.iter(|| {
                let mut sums = [0u32; 64];
                for floats in batch.rows().as_chunks::<64>().0 {
                    for (sum, x) in sums.iter_mut().zip(floats) {
                        *sum = sum.wrapping_add(x.to_bits());
                    }
                }
                black_box(sums)
            });
        });
    }
    group.finish();
}

fn learn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("learn");
    for (dim, n) in [(12, 100_000), (28, 8_000), (28, 100_000), (28, 1_000_000), (60, 100_000), (2000, 20_000)] {
        let mut batch = tuples(dim, n);
        for order in ["natural", "shuffled"] {
            if order == "shuffled" {
                shuffle(&mut batch);
            }
            for (name, kind, l2) in [
                ("logistic", ModelKind::Logistic, 0.0),
                ("logistic_l2", ModelKind::Logistic, 1e-4),
                ("svm", ModelKind::Svm, 0.0),
            ] {
                group.throughput(Throughput::Elements(n as u64));
                group.bench_function(BenchmarkId::new(format!("{name}_{order}"), format!("{n}x{dim}")), |bencher| {
                    let mut trainer =
                        Trainer::new(Hyperparameters { l2, ..Hyperparameters::new(kind) }, dim, 1, false).unwrap();
                    trainer.begin_epoch();
                    bencher.iter(|| trainer.learn(&batch, 0..batch.len()));
                    assert!(trainer.model().unwrap().is_finite());
                });
            }
        }
    }
    group.finish();
}

/// A hundred models on five folds of the same tuples, in a panel and one after the other: per model and tuple.
fn search(criterion: &mut Criterion) {
    const MODELS: usize = 100;
    const FOLDS: usize = 5;
    let mut group = criterion.benchmark_group("search");
    for (dim, n) in [(28, 20_000), (200, 4_000), (784, 1_000)] {
        let mut batch = tuples(dim, n);
        shuffle(&mut batch);
        let hyper = |i: usize| Hyperparameters {
            learning_rate: 0.2 / dim as f64,
            l2: if i.is_multiple_of(2) { 1e-5 } else { 1e-4 },
            bounded: true,
            averaging: true,
            ..Hyperparameters::new(ModelKind::Logistic)
        };
        group.throughput(Throughput::Elements((MODELS * n) as u64));
        group.bench_function(BenchmarkId::new("panel", dim), |bencher| {
            let learns = |fold: usize| (0..FOLDS).map(|part| part != fold).collect();
            let models = (0..MODELS).map(|i| (hyper(i), learns(i % FOLDS))).collect();
            let mut panel = Panel::new(models, dim).unwrap();
            let parts: Vec<u32> = (0..n as u32).map(|i| i % FOLDS as u32).collect();
            panel.begin_epoch();
            bencher.iter(|| panel.learn(&batch, &parts, 0..n));
            assert!(panel.model(0).is_finite());
        });
        group.bench_function(BenchmarkId::new("alone", dim), |bencher| {
            let trainer = |i| Trainer::new(hyper(i), dim, 1, false).unwrap();
            let mut trainers: Vec<Trainer> = (0..MODELS).map(trainer).collect();
            trainers.iter_mut().for_each(Trainer::begin_epoch);
            bencher.iter(|| {
                for from in (0..n).step_by(256) {
                    trainers.iter_mut().for_each(|t| t.learn(&batch, from..(from + 256).min(n)).unwrap());
                }
            });
        });
    }
    group.finish();
}

/// One dense learner after the other: what the general code and the other losses take.
fn learn_generally(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("general");
    let linear = Hyperparameters { learning_rate: 1e-4, ..Hyperparameters::new(ModelKind::Linear) };
    let logistic = Hyperparameters::new(ModelKind::Logistic);
    for (dim, n) in [(28, 100_000), (2000, 20_000)] {
        let mut batch = tuples(dim, n);
        shuffle(&mut batch);
        for (name, hyper) in [
            ("linear", linear),
            ("batch_128", Hyperparameters { batch_size: 128, ..logistic }),
            ("batch_256", Hyperparameters { batch_size: 256, ..logistic }),
            ("momentum", Hyperparameters { optimizer: Optimizer::MOMENTUM, ..logistic }),
            ("adam", Hyperparameters { optimizer: Optimizer::ADAM, ..logistic }),
            ("adam_batch_128", Hyperparameters { optimizer: Optimizer::ADAM, batch_size: 128, ..logistic }),
            ("l1", Hyperparameters { l1: 1e-4, ..logistic }),
        ] {
            bench_learn(&mut group, BenchmarkId::new(name, dim), hyper, &batch, (dim, 1));
        }
    }
    for (dim, classes, n) in [(28, 3, 100_000), (28, 10, 100_000), (54, 7, 50_000), (28, 40, 50_000), (784, 10, 5_000)]
    {
        let mut batch = tuples(dim, n);
        shuffle(&mut batch);
        let mut noise = Noise::new(3);
        batch.labels_mut().iter_mut().for_each(|label| *label = (noise.next() % classes as u64) as f32);
        let softmax = Hyperparameters { bounded: true, ..Hyperparameters::new(ModelKind::Softmax) };
        let svm = Hyperparameters { bounded: true, ..Hyperparameters::new(ModelKind::SvmOneVsRest) };
        for (name, hyper) in [
            ("softmax", softmax),
            ("softmax_l2", Hyperparameters { l2: 1e-4, ..softmax }),
            ("softmax_momentum", Hyperparameters { optimizer: Optimizer::MOMENTUM, ..softmax }),
            ("softmax_batch_128", Hyperparameters { batch_size: 128, ..softmax }),
            ("svm_one_vs_rest", svm),
        ] {
            let id = BenchmarkId::new(name, format!("{classes}x{dim}"));
            bench_learn(&mut group, id, hyper, &batch, (dim, classes));
        }
    }
    group.finish();
}

/// Tuples with `nnz` entries anywhere in `dim` features.
fn sparse_tuples(dim: usize, nnz: usize, n: usize) -> Batch {
    let mut noise = Noise::new(4);
    let mut batch = Batch::sparse();
    batch.set_dim(dim);
    for _ in 0..n {
        let label = if noise.float() > 0.0 { 1.0 } else { -1.0 };
        let (indices, values) = batch.push_sparse(label, nnz).expect("memory");
        for (i, index) in indices.iter_mut().enumerate() {
            // one in each of nnz stretches, so that they ascend
            let stretch = dim / nnz;
            *index = (i * stretch) as u32 + (noise.next() % stretch as u64) as u32;
        }
        values.iter_mut().for_each(|x| *x = noise.float());
    }
    shuffle(&mut batch);
    batch
}

/// Nanoseconds per entry, of tuples of 39 entries in a million features.
fn learn_sparse(criterion: &mut Criterion) {
    let (dim, nnz, n) = (1_000_000, 39, 100_000);
    let batch = sparse_tuples(dim, nnz, n);
    let mut group = criterion.benchmark_group("sparse_39_of_1M");
    let logistic = Hyperparameters::new(ModelKind::Logistic);
    for (name, hyper) in [
        ("sgd", logistic),
        ("l2", Hyperparameters { l2: 1e-4, ..logistic }),
        ("l1", Hyperparameters { l1: 1e-4, ..logistic }),
        ("batch_128", Hyperparameters { batch_size: 128, ..logistic }),
        ("momentum", Hyperparameters { optimizer: Optimizer::MOMENTUM, ..logistic }),
        ("momentum_l1_l2", Hyperparameters { optimizer: Optimizer::MOMENTUM, l1: 1e-4, l2: 1e-4, ..logistic }),
        ("adam", Hyperparameters { optimizer: Optimizer::ADAM, ..logistic }),
        ("adam_batch_128", Hyperparameters { optimizer: Optimizer::ADAM, batch_size: 128, ..logistic }),
    ] {
        bench_learn(&mut group, BenchmarkId::new(name, nnz), hyper, &batch, (dim, 1));
    }
    group.finish();
}

fn bench_learn(
    group: &mut BenchmarkGroup<'_, WallTime>,
    id: BenchmarkId,
    hyper: Hyperparameters,
    batch: &Batch,
    (dim, outputs): (usize, usize),
) {
    let elements = if batch.is_sparse() { batch.nnz() } else { batch.len() };
    group.throughput(Throughput::Elements(elements as u64));
    group.bench_function(id, |bencher| {
        let mut trainer = Trainer::new(hyper, dim, outputs, batch.is_sparse()).expect("memory");
        trainer.begin_epoch();
        bencher.iter(|| trainer.learn(batch, 0..batch.len()).expect("memory"));
        assert!(trainer.check().is_ok());
    });
}

fn columns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("columns");
    for (dim, n) in [(28, 1_000_000), (2000, 3_000)] {
        let mut batch = tuples(dim, n);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("moments", dim), |bencher| {
            bencher.iter(|| {
                let mut moments = Moments::new(dim);
                moments.add(&batch).unwrap();
                black_box(moments.finish())
            });
        });
        // with what is done once per training: of few tuples most of it
        if dim <= Profile::MAX_FEATURES {
            group.bench_function(BenchmarkId::new("profile", dim), |bencher| {
                bencher.iter(|| {
                    let mut sample = RowSample::new(dim);
                    sample.add(&batch);
                    black_box(sample.features(sgd::profile::Ends::default()))
                });
            });
        }
        let mut moments = Moments::new(dim);
        moments.add(&batch).unwrap();
        let mut standardizer = moments.finish();
        // the rows are scaled again and again, and should stay where they are
        standardizer.mean.fill(0.0);
        standardizer.scale.fill(-1.0);
        let scaler = Scaler::new(standardizer, None);
        group.bench_function(BenchmarkId::new("scale", dim), |bencher| {
            bencher.iter(|| scaler.apply(&mut batch, 0..n));
        });
    }
    group.finish();
}

/// The papers' network, of 200 and 50 hidden units, on images of 784 pixels; sparse, a fifth of them is not 0.
fn network(criterion: &mut Criterion) {
    let (dim, classes, n) = (784, 10, 5_000);
    let mut group = criterion.benchmark_group("network_784_200_50_10");
    let mut noise = Noise::new(5);
    let mut label = |batch: &mut Batch| {
        batch.labels_mut().iter_mut().for_each(|label| *label = (noise.next() % classes as u64) as f32);
    };
    let (mut dense, mut sparse) = (tuples(dim, n), sparse_tuples(dim, dim / 5, n));
    label(&mut dense);
    label(&mut sparse);
    let design = Design {
        hidden: Hidden::new(&[200, 50]).expect("two layers"),
        activation: Activation::Sigmoid,
        ..Design::default()
    };
    let mlp = Hyperparameters {
        design: Some(design),
        optimizer: Optimizer::Sgd,
        batch_size: 250,
        ..Hyperparameters::new(ModelKind::Mlp)
    };
    let adam = Hyperparameters { optimizer: Optimizer::ADAM, learning_rate: 0.001, ..mlp };
    for (name, hyper) in [("sgd", mlp), ("adam", adam)] {
        for (form, batch) in [("dense", &dense), ("sparse", &sparse)] {
            let mut trainer = Trainer::new(hyper, dim, classes, batch.is_sparse()).unwrap();
            trainer.begin_epoch();
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new(name, form), |bencher| {
                bencher.iter(|| trainer.learn(batch, 0..n).unwrap());
            });
        }
    }
    group.finish();
}

/// A network of 16 hidden units on 28 features, as it is by default but for its sizes, and with plain SGD.
fn small_network(criterion: &mut Criterion) {
    let (dim, n) = (28, 8_000);
    let mut group = criterion.benchmark_group("network_28_16_2");
    let mut batch = tuples(dim, n);
    batch.labels_mut().iter_mut().for_each(|label| *label = label.max(0.0));
    shuffle(&mut batch);
    let hidden = Hidden::new(&[16]).expect("a layer");
    for (name, optimizer) in [("sgd", Optimizer::Sgd), ("adam", Optimizer::ADAM)] {
        for activation in [Activation::Relu, Activation::Sigmoid] {
            let design = Design { hidden, activation, output: Some(Output::Softmax), ..Design::default() };
            for batch_size in [1, 8, 32, 250] {
                let (design, learning_rate) = (Some(design), 0.001);
                let mlp = Hyperparameters::new(ModelKind::Mlp);
                let hyper = Hyperparameters { design, optimizer, batch_size, learning_rate, ..mlp };
                let id = BenchmarkId::new(format!("{name}_{}", activation.name()), batch_size);
                bench_learn(&mut group, id, hyper, &batch, (dim, 2));
            }
        }
    }
    group.finish();
}

/// A pass of Newton's method: gradient and Hessian.
fn newton(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("newton");
    for (dim, n) in [(28, 8_000), (28, 1_000_000), (200, 50_000), (1000, 2_000)] {
        let mut batch = tuples(dim, n);
        shuffle(&mut batch);
        for kind in [ModelKind::Linear, ModelKind::Logistic] {
            group.throughput(Throughput::Elements(n as u64));
            group.bench_function(BenchmarkId::new(kind.name(), format!("{n}x{dim}")), |bencher| {
                let hyper = Hyperparameters { solver: Solver::Newton, ..Hyperparameters::new(kind) };
                let mut trainer = Trainer::new(hyper, dim, 1, false).unwrap();
                trainer.begin_epoch();
                bencher.iter(|| trainer.learn(&batch, 0..batch.len()));
            });
        }
    }
    group.finish();
}

fn evaluate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluate");
    for (dim, n) in [(28, 200_000), (2000, 3_000)] {
        let batch = tuples(dim, n);
        let mut trainer = Trainer::new(Hyperparameters::new(ModelKind::Logistic), dim, 1, false).unwrap();
        trainer.begin_epoch();
        trainer.learn(&batch, 0..batch.len()).unwrap();
        let model = trainer.model().unwrap();
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("logistic", dim), |bencher| {
            let mut evaluation = Evaluation::new(ModelKind::Logistic);
            bencher.iter(|| evaluation.add(&model, &batch));
        });
    }
    group.finish();
}

criterion_group! {
    name = kernels;
    config = Criterion::default().sample_size(20).measurement_time(std::time::Duration::from_secs(1))
        .warm_up_time(std::time::Duration::from_millis(300));
    targets = read, learn, search, learn_generally, learn_sparse, network, small_network, columns, newton, evaluate
}
criterion_main!(kernels);
