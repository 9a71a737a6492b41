//! Compression ratios by encoding, data set and rows of a mini-batch: docs/results/compression.md and .csv.
//!
//! `cargo run --release -p toc --example compression -- FOLDER` writes both into FOLDER.

#[path = "../benches/common/data.rs"]
mod data;

use std::fmt::Write;

use data::SETS;
use toc::{Encoding, Rows, encode, encode_smallest, paper_bytes};

const BATCH_ROWS: [usize; 5] = [50, 100, 150, 200, 250];
/// Mini-batches of a set that are enough for a ratio.
const MOST: usize = 200;

fn main() {
    for set in &SETS[..] {
        for rows in [50, 250] {
            let Some(b) = set.batches(rows, if set.columns == 126 || set.columns == 28 { 100000 } else { 40 }) else {
                continue;
            };
            let plain: f64 = b.iter().map(|b| b.entries() as f64 * 8.0).sum();
            print!("{} {rows}: ", set.name);
            for e in Encoding::ALL {
                let p: usize = b.iter().map(|b| paper_bytes(b, e)).sum();
                let s: usize = b.iter().map(|b| encode(b, e).unwrap().len()).sum();
                print!("{e} {:.3} {:.3}; ", plain / p as f64, plain / s as f64);
            }
            println!(
                "smallest {:.3}",
                plain / b.iter().map(|b| encode_smallest(b).unwrap().len()).sum::<usize>() as f64
            );
        }
    }
}
