//! An extension of somebody else, compiled from C for the server that the tests use.

use crate::server;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension/hooked.c");

/// The library of `tests/extension/hooked.c`, for `LOAD`; or why it cannot be had here.
///
/// It is compiled once per process, beside the server's socket, where the server may read it.
///
/// # Errors
/// There is no compiler, or there are no headers of the server's version.
pub fn hooked() -> Result<&'static Path, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    LIBRARY.get_or_init(compile).as_deref().map_err(Clone::clone)
}

fn compile() -> Result<PathBuf, String> {
    let pg_config = env::var("PG_CONFIG").unwrap_or_else(|_| "/usr/lib/postgresql/15/bin/pg_config".to_owned());
    let ask = |option: &str| output(Command::new(&pg_config).arg(option));
    let (headers, running) = (ask("--version")?, output(server::program("postgres").arg("--version"))?);
    if major(&headers) != major(&running) {
        return Err(format!("{pg_config} is of {headers}, the server of {running}: set PG_CONFIG"));
    }
    let include = ask("--includedir-server")?;
    if !Path::new(&include).join("postgres.h").exists() {
        return Err(format!("there are no server headers in {include}"));
    }
    output(Command::new("cc").arg("--version"))?;
    let library = server::directory().join(format!("hooked_{}.so", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared", "-I", &include, SOURCE, "-o"]);
    let result = compiler.arg(&library).output().map_err(|e| format!("cc: {e}"))?;
    assert!(result.status.success(), "{SOURCE}: {}", String::from_utf8_lossy(&result.stderr));
    Ok(library)
}

/// What a program prints, or why it cannot be run.
fn output(program: &mut Command) -> Result<String, String> {
    match program.output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => Err(format!("{program:?} has failed: {}", String::from_utf8_lossy(&output.stderr))),
        Err(e) => Err(format!("{program:?}: {e}")),
    }
}

/// The first number of a version.
fn major(version: &str) -> Option<&str> {
    version.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty())
}
