//! What a shuffled index costs: nanoseconds per tuple are the reciprocal of the elements per second shown.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shuffle::{Strategy, block_order, shuffle_tuples};
use std::hint::black_box;

fn tuples(c: &mut Criterion) {
    let mut group = c.benchmark_group("shuffle_tuples");
    for n in [1_u32 << 16, 1_000_000] {
        let mut order: Vec<u32> = (0..n).collect();
        let mut buffer = 0;
        group.throughput(Throughput::Elements(n.into()));
        group.bench_function(n.to_string(), |b| {
            b.iter(|| {
                buffer += 1;
                shuffle_tuples(Strategy::CorgiPile, 42, 1, buffer, black_box(&mut order));
            });
        });
    }
    group.finish();
}

fn blocks(c: &mut Criterion) {
    // a table of 10 GB in 10 MB blocks
    let n = 1024;
    let mut group = c.benchmark_group("block_order");
    group.throughput(Throughput::Elements(n.into()));
    group.bench_function(n.to_string(), |b| b.iter(|| block_order(Strategy::CorgiPile, 42, black_box(1), n, 10)));
    group.finish();
}

criterion_group!(benches, tuples, blocks);
criterion_main!(benches);
