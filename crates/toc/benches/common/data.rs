//! Real data sets in file order, for what is measured.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use toc::Rows;

/// A data set: its name here, its file, and how many features it has.
pub struct Set {
    /// Its name in tables.
    pub name: &'static str,
    file: &'static str,
    /// How many features it has.
    pub columns: usize,
}

/// Those of the tables.
pub const SETS: [Set; 8] = [
    Set { name: "agaricus", file: "agaricus_train.libsvm.gz", columns: 126 },
    Set { name: "kdd99_onehot", file: "kdd99_onehot_train.libsvm.gz", columns: 118 },
    Set { name: "census_income_onehot", file: "census_income_onehot_train.libsvm.gz", columns: 507 },
    Set { name: "mnist", file: "mnist_train.csv.gz", columns: 784 },
    Set { name: "a9a", file: "a9a_train.libsvm.gz", columns: 123 },
    Set { name: "higgs", file: "higgs_train.csv.gz", columns: 28 },
    Set { name: "rcv1_small", file: "rcv1_small_train.libsvm.gz", columns: 47236 },
    Set { name: "covtype", file: "covtype_random_train.csv.gz", columns: 54 },
];

impl Set {
    /// At most this many rows of the set, in file order. None if the data is not there.
    pub fn rows(&self, most: usize) -> Option<Rows> {
        let folder = std::env::var("CORGIPILE_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
        // cargo runs benches in the directory of the crate, and people in that of the workspace
        let places = [PathBuf::from(&folder), PathBuf::from("../..").join(&folder)];
        let file = places.iter().find_map(|place| File::open(place.join(self.file)).ok())?;
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        let dense = self.file.ends_with(".csv.gz");
        let mut rows = Rows::new(self.columns);
        for line in lines.skip(usize::from(dense)).take(most) {
            let line = line.expect("the file can be read");
            if dense {
                let row: Vec<f64> = line.split(',').skip(1).map(|x| x.parse().expect("a number")).collect();
                rows.push_dense(&row).expect("as many features as stated");
            } else {
                let pairs =
                    line.split_ascii_whitespace().skip(1).map(|pair| pair.split_once(':').expect("index:value"));
                let (indices, values): (Vec<u32>, Vec<f64>) = pairs
                    .map(|(index, value)| {
                        (index.parse::<u32>().expect("an index") - 1, value.parse::<f64>().expect("a number"))
                    })
                    .unzip();
                rows.push_sparse(&indices, &values).expect("indices from 1 that ascend");
            }
        }
        Some(rows)
    }
}

/// Mini-batches of `batch_rows` rows, in the order of the rows or in random order. What is left over at the end is left
/// out, as it would distort ratios.
pub fn batches(rows: &Rows, batch_rows: usize, shuffled: bool) -> Vec<Rows> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut random = SplitMix64::seed_from_u64(1);
    for i in (1..if shuffled { order.len() } else { 0 }).rev() {
        order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
    let batch = |places: &[usize]| {
        let mut batch = Rows::new(rows.columns());
        for place in places {
            let (indices, values) = rows.row(*place);
            batch.push_sparse(indices, values).expect("it is a row already");
        }
        batch
    };
    order.chunks_exact(batch_rows).map(batch).collect()
}
