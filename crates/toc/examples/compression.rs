//! Compression ratios by encoding, data set, order of the rows and rows of a mini-batch, of full mini-batches only.
//!
//! `cargo run --release -p toc --example compression -- FOLDER [MOST]` writes FOLDER/compression.md and .csv; of each
//! set at most MOST mini-batches, evenly spaced. A set that is not in
//! CORGIPILE_DATA is left out, and named.

#[path = "../benches/common/data.rs"]
mod data;

use std::fmt::Write as _;

use data::{SETS, batches};
use toc::{Encoding, Rows, encode, encode_smallest, paper_bytes, paper_bytes_by_step};

const BATCH_ROWS: [usize; 5] = [50, 100, 150, 200, 250];

/// Of all mini-batches of a set: bytes of all entries at eight each, of each encoding in the layout of the paper and as
/// stored, of the smallest as stored; and how often each was the smallest.
#[derive(Default)]
struct Sums {
    plain: u64,
    steps: [u64; 3],
    paper: [u64; Encoding::ALL.len()],
    stored: [u64; Encoding::ALL.len()],
    smallest: u64,
    chosen: [usize; Encoding::ALL.len()],
}

impl Sums {
    fn add(&mut self, rows: &Rows) {
        self.plain += rows.entries() * 8;
        for (i, encoding) in Encoding::ALL.into_iter().enumerate() {
            self.paper[i] += paper_bytes(rows, encoding) as u64;
            self.stored[i] += encode(rows, encoding).expect("it is within the limits").len() as u64;
        }
        self.steps.iter_mut().zip(paper_bytes_by_step(rows)).for_each(|(sum, bytes)| *sum += bytes as u64);
        let smallest = encode_smallest(rows).expect("it is within the limits");
        self.smallest += smallest.len() as u64;
        let chosen = toc::info(&smallest).expect("it was just encoded").encoding;
        self.chosen[Encoding::ALL.iter().position(|encoding| *encoding == chosen).expect("all are in ALL")] += 1;
    }

    fn ratio(&self, bytes: u64) -> f64 {
        self.plain as f64 / bytes as f64
    }
}

/// What the pages of results say, without heading.
struct Tables {
    paper: String,
    steps: String,
    stored: String,
    csv: String,
}

impl Tables {
    fn new() -> Tables {
        let header = || {
            let mut header = String::from("| set | order | rows |");
            Encoding::ALL.iter().for_each(|encoding| write!(header, " {} |", encoding.name()).expect("memory"));
            header
        };
        let line = |columns: usize| format!("\n|---|---|---:|{}\n", "---:|".repeat(columns));
        Tables {
            paper: header() + &line(Encoding::ALL.len()),
            stored: header() + " auto | chosen |" + &line(Encoding::ALL.len() + 1).replace(":|\n", ":|---|\n"),
            steps: String::from("| set | order | rows | sparse | + logical | + physical |") + &line(3),
            csv: "set,order,batch_rows,batches,encoding,paper_ratio,stored_ratio,batches_where_smallest\n".into(),
        }
    }

    /// Adds a row: `n` mini-batches of this many rows.
    fn add(&mut self, name: &str, order: &str, batch_rows: usize, n: usize, sums: &Sums) {
        let Tables { paper, steps, stored, csv } = self;
        let mut chosen = Vec::new();
        for table in [&mut *paper, steps, stored] {
            write!(table, "| {name} | {order} | {batch_rows} |").expect("memory");
        }
        sums.steps.iter().for_each(|bytes| write!(steps, " {:.3} |", sums.ratio(*bytes)).expect("memory"));
        steps.push('\n');
        for (i, encoding) in Encoding::ALL.into_iter().enumerate() {
            let ratios = [sums.paper[i], sums.stored[i]].map(|bytes| sums.ratio(bytes));
            write!(paper, " {:.3} |", ratios[0]).expect("memory");
            write!(stored, " {:.3} |", ratios[1]).expect("memory");
            let count = sums.chosen[i];
            writeln!(csv, "{name},{order},{batch_rows},{n},{encoding},{:.4},{:.4},{count}", ratios[0], ratios[1])
                .expect("memory");
            if count > 0 {
                chosen.push(format!("{encoding} {:.0} %", 100.0 * count as f64 / n as f64));
            }
        }
        let auto = sums.ratio(sums.smallest);
        writeln!(csv, "{name},{order},{batch_rows},{n},auto,,{auto:.4},").expect("memory");
        paper.push('\n');
        writeln!(stored, " {auto:.3} | {} |", chosen.join(", ")).expect("memory");
        eprintln!("{name} {order} {batch_rows}: auto {auto:.3}");
    }
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    let most = std::env::args().nth(2).map_or(usize::MAX, |most| most.parse().expect("a number of mini-batches"));
    let mut tables = Tables::new();
    let mut skipped = Vec::new();
    for set in &SETS {
        let Some(rows) = set.rows(usize::MAX) else {
            skipped.push(set.name);
            continue;
        };
        for (order, shuffled) in [("file", false), ("shuffled", true)] {
            for batch_rows in BATCH_ROWS {
                let batches = batches(&rows, batch_rows, shuffled);
                let step = batches.len().div_ceil(most.max(1)).max(1);
                let batches: Vec<&Rows> = batches.iter().step_by(step).collect();
                let mut sums = Sums::default();
                batches.iter().for_each(|rows| sums.add(rows));
                tables.add(set.name, order, batch_rows, batches.len(), &sums);
            }
        }
    }
    let sample = match most {
        usize::MAX => String::new(),
        most => format!(" Of each set at most {most} mini-batches were taken, evenly\nspaced."),
    };
    let Tables { paper, steps, stored, csv } = tables;
    let text = format!(
        "# Compression ratios\n\n\
         Written by `make bench PARTS=compression`. Ratios are the bytes of all entries at eight each over the bytes of all\n\
         mini-batches, which are full ones: of rows in file order, and of rows shuffled by a seed. gzip is level 6 of\n\
         miniz_oxide, whose bytes differ from zlib's by some percent.{sample} compression.csv has the same numbers.\n\n\
         ## In the layout of the paper\n\n\
         Values of eight bytes, integers of whole bytes, no checksum.\n\n{paper}\n\
         ## By step of tuple-oriented compression\n\n\
         As in the paper's Figure 10, in its layout: sparse encoding; with logical encoding, pairs and codes of whole numbers of four\n\
         bytes and values of eight; with physical encoding, which is all of it.\n\n{steps}\n\
         ## As stored\n\n\
         Integers of as few bits as will do; values as f32 or decimals where that is exact; a header with a checksum of 16 bytes\n\
         ([format](../internals/toc-format.md)). auto is the smallest but gzip and snappy, chosen for each mini-batch: the last column says\n\
         how often which.\n\n{stored}"
    );
    let skipped = match &skipped[..] {
        [] => String::new(),
        skipped => format!("\nSkipped, as the data was not there: {}.\n", skipped.join(", ")),
    };
    std::fs::write(format!("{folder}/compression.md"), text + &skipped).expect("the folder can be written to");
    std::fs::write(format!("{folder}/compression.csv"), csv).expect("the folder can be written to");
}
