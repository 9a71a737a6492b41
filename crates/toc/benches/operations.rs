//! What the paper's Figures 6 and 8 show: times of operations on mini-batches of 250 rows by encoding, of
//! decompressing, and of compressing. Elements per second are rows per second.
//!
//! Products are in f32, as training uses them, with the form that `open` makes kept; M has 20 columns, and 200 in the
//! groups that say so. A set that is not there is left out.
#![allow(missing_docs)] // criterion's macros generate undocumented functions

#[path = "common/data.rs"]
mod data;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use data::{SETS, batches};
use toc::{Encoding, Operations, Rows, decode, decode_dense, encode, encode_smallest, map_values, open};

const ROWS: usize = 250;
/// Mini-batches of each set, enough that they are not all in the nearest cache.
const BATCHES: usize = 16;

/// Names and mini-batches of the four sets that are measured.
fn sets() -> Vec<(&'static str, Vec<Rows>)> {
    let wanted = ["mnist", "kdd99_onehot", "census_income_onehot", "agaricus"];
    let sets = SETS.iter().filter(|set| wanted.contains(&set.name));
    sets.filter_map(|set| match set.rows(ROWS * BATCHES) {
        Some(rows) => Some((set.name, batches(&rows, ROWS, false))),
        None => {
            eprintln!("skipped: {} is not in CORGIPILE_DATA", set.name);
            None
        }
    })
    .collect()
}

/// Numbers between -1 and 1.
fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 2_654_435_761) % 1000) as f32 / 500.0 - 1.0).collect()
}

fn operations(criterion: &mut Criterion) {
    for (name, batches) in sets() {
        let columns = batches[0].columns();
        for encoding in Encoding::ALL {
            let bytes: Vec<Vec<u8>> = batches.iter().map(|rows| encode(rows, encoding).unwrap()).collect();
            let opened: Vec<Box<dyn Operations<f32>>> = bytes.iter().map(|bytes| open(bytes).unwrap()).collect();
            let mut group = |operation: &str, run: &mut dyn FnMut(usize)| {
                let mut group = criterion.benchmark_group(format!("{name}/{operation}"));
                group.throughput(Throughput::Elements((batches.len() * ROWS) as u64));
                group.bench_function(BenchmarkId::from_parameter(encoding), |bencher| {
                    bencher.iter(|| (0..batches.len()).for_each(&mut *run));
                });
                group.finish();
            };
            let scratch = &mut Vec::new();
            group("A.c", &mut |i| _ = black_box(map_values(&bytes[i], |x| x * 3.0).unwrap()));
            let (v, mut out) = (numbers(columns), vec![0.0; ROWS]);
            group("A.v", &mut |i| opened[i].times_vector(black_box(&v), &mut out, scratch));
            let (v, mut out) = (numbers(ROWS), vec![0.0; columns]);
            group("v.A", &mut |i| opened[i].vector_times(black_box(&v), &mut out, scratch));
            for (width, suffix) in [(20, ""), (200, "_200")] {
                let (m, mut out) = (numbers(columns * width), vec![0.0; ROWS * width]);
                let operation = format!("A.M{suffix}");
                group(&operation, &mut |i| opened[i].times_matrix(black_box(&m), width, &mut out, scratch));
                let (m, mut out) = (numbers(ROWS * width), vec![0.0; columns * width]);
                let operation = format!("M.A{suffix}");
                group(&operation, &mut |i| opened[i].transposed_times_matrix(black_box(&m), width, &mut out, scratch));
            }
        }
    }
}

fn coding(criterion: &mut Criterion) {
    for (name, batches) in sets() {
        for encoding in Encoding::ALL {
            let bytes: Vec<Vec<u8>> = batches.iter().map(|rows| encode(rows, encoding).unwrap()).collect();
            let mut group = |operation: &str, run: &mut dyn FnMut(usize)| {
                let mut group = criterion.benchmark_group(format!("{name}/{operation}"));
                group.throughput(Throughput::Elements((batches.len() * ROWS) as u64));
                group.bench_function(BenchmarkId::from_parameter(encoding), |bencher| {
                    bencher.iter(|| (0..batches.len()).for_each(&mut *run));
                });
                group.finish();
            };
            group("encode", &mut |i| _ = black_box(encode(&batches[i], encoding).unwrap()));
            group("decode", &mut |i| _ = black_box(decode(&bytes[i]).unwrap()));
            group("decode_dense", &mut |i| _ = black_box(decode_dense(&bytes[i]).unwrap()));
            group("open", &mut |i| _ = black_box(open::<f32>(&bytes[i]).unwrap()));
        }
        let mut group = criterion.benchmark_group(format!("{name}/encode"));
        group.throughput(Throughput::Elements((batches.len() * ROWS) as u64));
        group.bench_function("auto", |bencher| {
            bencher.iter(|| batches.iter().for_each(|rows| _ = black_box(encode_smallest(rows).unwrap())));
        });
        group.finish();
    }
}

criterion_group!(benches, operations, coding);
criterion_main!(benches);
