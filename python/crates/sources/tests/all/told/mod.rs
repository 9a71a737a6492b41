//! Tests that skip themselves are reported by name, and counted by `scripts/test`, which says where to.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports that a test was skipped, and why.
pub fn skipped(test: &str, why: &str) {
    eprintln!("skipped {test}: {why}");
    if let Some(path) = std::env::var_os("CORGIPILE_SKIPPED_FILE") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(format!("{test}: {why}\n").as_bytes()).unwrap();
    }
}
