//! The real data sets of `../shared/data`, or where `CORGIPILE_DATA` says, decompressed.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::told;

/// The text of a data set; none where it is not there, which is reported.
pub fn text(test: &str, name: &str) -> Option<String> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
    let path = std::env::var_os("CORGIPILE_DATA").map_or(default, PathBuf::from).join(name);
    let Ok(file) = File::open(&path) else {
        told::skipped(test, &format!("there is no {}", path.display()));
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}
