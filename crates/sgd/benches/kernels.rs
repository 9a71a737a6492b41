//! Nanoseconds per tuple of the inner loops: elements per second is tuples per second.
#![allow(missing_docs)] // criterion's macros generate undocumented functions

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sgd::{Evaluation, Hyperparameters, ModelKind, Moments, Trainer};
use tuples::Batch;

/// Numbers that look random, uniform over u64 (SplitMix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From -1 to 1.
    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// Tuples that a hyperplane separates but for some noise.
fn tuples(dim: usize, n: usize) -> Batch {
    let mut noise = Noise(1);
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
    let mut noise = Noise(2);
    let order = batch.order_mut();
    for i in (1..order.len()).rev() {
        order.swap(i, (noise.next() % (i as u64 + 1)) as usize);
    }
}

fn learn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("learn");
    for (dim, n) in [(12, 200_000), (28, 200_000), (60, 100_000), (2000, 3_000)] {
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
                group.bench_function(BenchmarkId::new(format!("{name}_{order}"), dim), |bencher| {
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

fn columns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("columns");
    for (dim, n) in [(28, 200_000), (2000, 3_000)] {
        let mut batch = tuples(dim, n);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("moments", dim), |bencher| {
            bencher.iter(|| {
                let mut moments = Moments::new(dim);
                moments.add(&batch);
                black_box(moments.finish())
            });
        });
        let mut moments = Moments::new(dim);
        moments.add(&batch);
        let mut standardizer = moments.finish();
        // the rows are scaled again and again, and should stay where they are
        standardizer.mean.fill(0.0);
        standardizer.scale.fill(-1.0);
        group.bench_function(BenchmarkId::new("apply_batch", dim), |bencher| {
            bencher.iter(|| standardizer.apply_batch(&mut batch));
        });
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
    targets = learn, columns, evaluate
}
criterion_main!(kernels);
