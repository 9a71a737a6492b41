//! Real data sets, and generated ones in the same files' formats.

use crate::Session;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::any::type_name;
use std::env;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The directory of the real data sets (`$CORGIPILE_DATA`), if there is one.
pub fn data_directory() -> Option<PathBuf> {
    env::var_os("CORGIPILE_DATA").map(PathBuf::from).filter(|directory| directory.is_dir())
}

/// The directory of the flights that the documents' examples read: `$CORGIPILE_FLIGHTS`, or else where
/// `scripts/flights` puts them. `None` if they are not there.
pub fn flights_directory() -> Option<PathBuf> {
    let fetched = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/flights");
    let directory = env::var_os("CORGIPILE_FLIGHTS").map_or_else(fetched, PathBuf::from);
    directory.canonicalize().ok().filter(|directory| directory.join("flights.csv").is_file())
}

/// Says that a test, given as its function, does not apply here: on standard error, and as a line of
/// `$CORGIPILE_SKIPPED_FILE`, so that nothing is left out in silence.
pub fn skip<T>(_test: T, reason: &str) {
    let name = type_name::<T>();
    eprintln!("skipped {name}: {reason}");
    if let Some(path) = env::var_os("CORGIPILE_SKIPPED_FILE") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the list can be written");
        file.write_all(format!("{name}: {reason}\n").as_bytes()).expect("the list can be written");
    }
}

/// A file of a data set, unpacked: `NAME.csv.gz` (label first) or `NAME.libsvm.gz` (indices from 1).
pub struct DataSet {
    /// (label as written, dense features)
    rows: Vec<(String, Vec<String>)>,
}

impl DataSet {
    /// Reads comma-separated values with a header line and the label in the first column.
    pub fn csv(directory: &Path, name: &str) -> Self {
        let text = unpack(&directory.join(format!("{name}.csv.gz")));
        let rows = text.lines().skip(1).map(|line| {
            let (label, features) = line.split_once(',').expect("a row has a label and features");
            (label.to_owned(), features.split(',').map(str::to_owned).collect())
        });
        Self { rows: rows.collect() }
    }

    /// Reads LIBSVM's sparse format as dense rows of `features` features.
    pub fn libsvm(directory: &Path, name: &str, features: usize) -> Self {
        let text = unpack(&directory.join(format!("{name}.libsvm.gz")));
        let rows = text.lines().map(|line| {
            let mut words = line.split_whitespace();
            let label = words.next().expect("a row has a label").to_owned();
            let mut dense = vec!["0".to_owned(); features];
            for word in words {
                let (index, value) = word.split_once(':').expect("a feature is index:value");
                dense[index.parse::<usize>().expect("an index is a number") - 1] = value.to_owned();
            }
            (label, dense)
        });
        Self { rows: rows.collect() }
    }

    /// Moves the rows so that equal labels lie together: what hurts SGD without a shuffle most.
    pub fn sorted_by_label(mut self) -> Self {
        self.rows.sort_by(|a, b| a.0.cmp(&b.0));
        self
    }

    /// Creates a table (id, label int, features_v real[]) with these rows in this order.
    pub fn load(&self, session: &mut Session, table: &str) {
        session.run(&format!("CREATE TABLE {table} (id int, label int, features_v real[])"));
        let mut text = String::new();
        for (id, (label, features)) in self.rows.iter().enumerate() {
            writeln!(text, "{id}\t{label}\t{{{}}}", features.join(",")).expect("a string takes everything");
        }
        session.copy_in(&format!("COPY {table} FROM STDIN"), &text);
        session.run(&format!("ANALYZE {table}"));
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn unpack(path: &Path) -> String {
    let file = File::open(path).unwrap_or_else(|e| panic!("cannot open {}: {e}", path.display()));
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap_or_else(|e| panic!("cannot unpack {}: {e}", path.display()));
    text
}

/// Writes small sets in the formats and with the properties of the real ones, so that their tests' code runs anywhere:
/// `skin_*` (three features of 0..255, label-sorted, classes 1 and 2) and `a9a_*` (123 binary features, classes -1, 1).
pub fn generated_directory(name: &str) -> PathBuf {
    let directory = env::temp_dir().join(format!("corgipile-{}-{name}", std::process::id()));
    create_dir_all(&directory).expect("a directory for the generated sets");
    for (part, rows) in [("train", 40_000), ("test", 4_000)] {
        pack(&directory.join(format!("skin_{part}.csv.gz")), &skin_like(part.len() as u64, rows));
        pack(&directory.join(format!("a9a_{part}.libsvm.gz")), &a9a_like(part.len() as u64, rows / 10));
    }
    directory
}

fn pack(path: &Path, text: &str) {
    let file = File::create(path).expect("a generated set can be written");
    let mut encoder = GzEncoder::new(file, Compression::fast());
    encoder
        .write_all(text.as_bytes())
        .and_then(|()| encoder.finish().map(drop))
        .expect("a generated set can be packed");
}

/// A pseudo-random number in [0, 1).
fn uniform(stream: &mut SplitMix64) -> f64 {
    (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn skin_like(seed: u64, rows: usize) -> String {
    let mut stream = SplitMix64::seed_from_u64(seed);
    let mut text = "label,b,g,r\n".to_owned();
    for row in 0..rows {
        let skin = row < rows / 5;
        let mut channel =
            |mean: f64| (mean + 90.0 * (uniform(&mut stream) + uniform(&mut stream) - 1.0)).clamp(0.0, 255.0) as u8;
        let (b, g, r) = if skin {
            (channel(100.0), channel(130.0), channel(200.0))
        } else {
            (channel(135.0), channel(130.0), channel(115.0))
        };
        writeln!(text, "{},{b},{g},{r}", if skin { 1 } else { 2 }).expect("a string takes everything");
    }
    text
}

fn a9a_like(seed: u64, rows: usize) -> String {
    let mut stream = SplitMix64::seed_from_u64(seed);
    let mut text = String::new();
    for _ in 0..rows {
        let rich = uniform(&mut stream) < 0.25;
        write!(text, "{}", if rich { "+1" } else { "-1" }).expect("a string takes everything");
        for index in 1..=123 {
            let lean = if index % 3 == 0 && rich { 0.12 } else { 0.0 };
            if uniform(&mut stream) < 0.11 + lean {
                write!(text, " {index}:1").expect("a string takes everything");
            }
        }
        text.push('\n');
    }
    text
}
