//! Puts functions of ours before those by which errors pass through pgrx and Rust (crates/pg/src/memory/errors.rs), and
//! numbers the build (crates/pg/src/process/library.rs).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The functions of ours are for this library alone, whatever else the server has loaded.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    for function in ["CopyErrorData", "errstart", "__cxa_thread_atexit_impl"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo:rustc-env=CORGIPILE_BUILD={:016x}", build());
}

/// A number of this build: of the sources, the compiler, and what it is given. Where it is the same, structures in
/// memory are laid out alike, wherever it was built.
fn build() -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut sources = vec![PathBuf::from("Cargo.lock"), PathBuf::from("src")];
    let crates = fs::read_dir("crates").expect("the workspace has crates");
    sources.extend(crates.map(|entry| entry.expect("a crate").path().join("src")));
    let mut files = BTreeMap::new();
    for source in sources {
        println!("cargo:rerun-if-changed={}", source.display());
        read(&source, &mut files);
    }
    files.hash(&mut hasher);
    let compiler = env::var("RUSTC").expect("cargo names it");
    let version = std::process::Command::new(compiler).arg("-vV").output().expect("the compiler runs");
    version.stdout.hash(&mut hasher);
    let told = |name: &str| {
        let known = ["CARGO_PKG_VERSION", "OPT_LEVEL", "PROFILE", "TARGET"]; // not flags, which name directories
        known.contains(&name) || name.starts_with("CARGO_FEATURE_")
    };
    env::vars().filter(|(name, _)| told(name)).collect::<BTreeMap<_, _>>().hash(&mut hasher);
    hasher.finish()
}

/// The contents of a file, or of all files below a directory.
fn read(path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("it can be listed") {
            read(&entry.expect("it can be listed").path(), files);
        }
    } else {
        files.insert(path.to_owned(), fs::read(path).expect("it can be read"));
    }
}
