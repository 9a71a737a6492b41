//! What `open` takes, and what products take with and without it: nanoseconds per row of mini-batches of 250 rows.
//!
//! The mini-batches are spread evenly over the file. `cargo bench -p toc --bench open [-- SET ... ENCODING ...]` prints
//! a table. Of each figure the least of many runs is taken, so that it can be measured on a machine that others use,
//! too: run two builds in turns to compare them. `step` is what SGD does with a mini-batch: A·v and then v·A. `to stay`
//! is `matrix`, which takes time for products that are faster afterwards. A set that is not in CORGIPILE_DATA is left
//! out.

#[path = "common/data.rs"]
mod data;

use std::hint::black_box;
use std::time::Instant;

use data::{SETS, batches};
use toc::{Encoding, Rows, encode, matrix, open};
use tuples::Matrix;

const ROWS: usize = 250;
const BATCHES: usize = 64;
const RUNS: usize = 40;

/// Nanoseconds per row of what is done with each mini-batch, at least.
fn least(n: usize, mut run: impl FnMut(usize)) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        (0..n).for_each(&mut run);
        least = least.min(start.elapsed().as_nanos() as f64 / (n * ROWS) as f64);
    }
    least
}

fn measure(name: &str, batches: &[Rows], encoding: Encoding) {
    let columns = batches[0].columns();
    let bytes: Vec<Vec<u8>> = batches.iter().map(|rows| encode(rows, encoding).expect("within the limits")).collect();
    let (n, scratch) = (bytes.len(), &mut Vec::new());
    let (v, w) = (vec![0.5f32; columns], vec![0.25f32; ROWS]);
    let (mut of_rows, mut of_columns) = (vec![0.0; ROWS], vec![0.0; columns]);
    let opened: Vec<Box<dyn Matrix>> = bytes.iter().map(|bytes| matrix(bytes).expect("sound")).collect();
    let memory = opened.iter().map(|opened| opened.bytes()).sum::<usize>() / n;
    let stored = bytes.iter().map(Vec::len).sum::<usize>() / n;
    let only_open = least(n, |i| _ = black_box(open::<f32>(&bytes[i]).expect("sound")));
    let to_stay = least(n, |i| _ = black_box(matrix(&bytes[i]).expect("sound")));
    let times = least(n, |i| opened[i].times_vector(black_box(&v), &mut of_rows, scratch));
    let timed = least(n, |i| opened[i].vector_times(black_box(&w), &mut of_columns, scratch));
    let first = least(n, |i| open(&bytes[i]).expect("sound").times_vector(black_box(&v), &mut of_rows, scratch));
    let step = least(n, |i| {
        let opened = open(&bytes[i]).expect("sound");
        opened.times_vector(black_box(&v), &mut of_rows, scratch);
        opened.vector_times(black_box(&w), &mut of_columns, scratch);
    });
    println!(
        "| {name} | {encoding} | {stored} | {memory} | {only_open:.1} | {to_stay:.1} | {times:.1} | {timed:.1} | {first:.1} | {step:.1} |"
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (only, wanted): (Vec<_>, Vec<_>) = wanted.iter().partition(|name| name.parse::<Encoding>().is_ok());
    let only: Vec<Encoding> = only.iter().filter_map(|name| name.parse().ok()).collect();
    println!("| set | encoding | bytes | opened | open | to stay | A·v | v·A | open, A·v | open, step |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for set in SETS.iter().filter(|set| wanted.is_empty() || wanted.iter().any(|name| *name == set.name)) {
        let Some(rows) = set.rows(usize::MAX) else { continue };
        let all = batches(&rows, ROWS, false);
        let batches: Vec<Rows> = all.iter().step_by(all.len().div_ceil(BATCHES)).cloned().collect();
        let plain = [Encoding::Den, Encoding::Csr, Encoding::Cvi, Encoding::Dvi, Encoding::Toc];
        for encoding in plain.into_iter().filter(|encoding| only.is_empty() || only.contains(encoding)) {
            measure(set.name, &batches, encoding);
        }
    }
}
