//! Real data sets in file order, for what is measured.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
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
pub const SETS: [Set; 7] = [
    Set { name: "agaricus", file: "agaricus_train.libsvm.gz", columns: 126 },
    Set { name: "kdd99_onehot", file: "kdd99_onehot_train.libsvm.gz", columns: 118 },
    Set { name: "census_income_onehot", file: "census_income_onehot_train.libsvm.gz", columns: 507 },
    Set { name: "mnist", file: "mnist_train.csv.gz", columns: 784 },
    Set { name: "a9a", file: "a9a_train.libsvm.gz", columns: 123 },
    Set { name: "higgs", file: "higgs_train.csv.gz", columns: 28 },
    Set { name: "covtype", file: "covtype_random_train.csv.gz", columns: 54 },
];

impl Set {
    /// Mini-batches of `batch_rows` rows, at most `most` of them; what is left over at the end is left out, as it would
    /// distort ratios. None if the data is not there.
    pub fn batches(&self, batch_rows: usize, most: usize) -> Option<Vec<Rows>> {
        let folder = std::env::var("CORGIPILE_DATA").unwrap_or_else(|_| "../shared/data".to_owned());
        // cargo runs benches in the directory of the crate, and people in that of the workspace
        let places = [PathBuf::from(&folder), PathBuf::from("../..").join(&folder)];
        let file = places.iter().find_map(|place| File::open(place.join(self.file)).ok())?;
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        let dense = self.file.ends_with(".csv.gz");
        let mut batches = Vec::new();
        let mut batch = Rows::new(self.columns);
        for line in lines.skip(usize::from(dense)) {
            let line = line.expect("the file can be read");
            if dense {
                let row: Vec<f64> = line.split(',').skip(1).map(|x| x.parse().expect("a number")).collect();
                batch.push_dense(&row).expect("as many features as stated");
            } else {
                let pairs =
                    line.split_ascii_whitespace().skip(1).map(|pair| pair.split_once(':').expect("index:value"));
                let (indices, values): (Vec<u32>, Vec<f64>) = pairs
                    .map(|(index, value)| {
                        (index.parse::<u32>().expect("an index") - 1, value.parse::<f64>().expect("a number"))
                    })
                    .unzip();
                batch.push_sparse(&indices, &values).expect("indices from 1 that ascend");
            }
            if batch.len() == batch_rows {
                batches.push(std::mem::replace(&mut batch, Rows::new(self.columns)));
                if batches.len() == most {
                    break;
                }
            }
        }
        Some(batches)
    }
}
