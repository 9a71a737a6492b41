//! Libraries in C for the server that the tests use: somebody else's extensions,
//! and an allocator that fails when it is asked to.

use crate::server;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const HOOKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension/hooked.c");
const PARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension/parts.c");
const FAILING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/extension/failing.c");

/// The library of `tests/extension/hooked.c`, for `LOAD`; or why it is not available here.
///
/// It is compiled once, next to the server's socket, where the server may read it.
///
/// # Errors
/// There is no compiler, or there are no headers of the server's version.
pub fn hooked() -> Result<PathBuf, String> {
    compile_for_server(HOOKED, "hooked")
}

/// The library of `tests/extension/parts.c`, for `CREATE FUNCTION`; or why it is not available here.
///
/// # Errors
/// As [`hooked`].
pub fn parts() -> Result<PathBuf, String> {
    compile_for_server(PARTS, "parts")
}

/// The library of `tests/extension/failing.c`, for `LD_PRELOAD`; or why it is not available here.
///
/// # Errors
/// There is no compiler, or its C library is not GNU's.
pub(crate) fn failing() -> Result<PathBuf, String> {
    if cfg!(not(target_env = "gnu")) {
        return Err("failing allocations need GNU's C library".to_owned());
    }
    compile(FAILING, "failing", &[])
}

/// Compiles with the headers of the server's version.
fn compile_for_server(source: &str, name: &str) -> Result<PathBuf, String> {
    let pg_config =
        env::var("PG_CONFIG").map_err(|_| "PG_CONFIG is not set (scripts/with-postgres sets it)".to_owned())?;
    let ask = |option: &str| output(Command::new(&pg_config).arg(option));
    let (headers, running) = (ask("--version")?, output(server::program("postgres").arg("--version"))?);
    if major(&headers) != major(&running) {
        return Err(format!("{pg_config} is of {headers}, the server of {running}: set PG_CONFIG"));
    }
    let include = ask("--includedir-server")?;
    if !Path::new(&include).join("postgres.h").exists() {
        return Err(format!("there are no server headers in {include}"));
    }
    compile(source, name, &["-I", &include])
}

fn compile(source: &str, name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let library = server::once(name, || {
        output(Command::new("cc").arg("--version"))?;
        let library = server::directory().join(format!("{name}.so"));
        let mut compiler = Command::new("cc");
        compiler
            .args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared"])
            .args(arguments)
            .args([source, "-o"]);
        let result = compiler.arg(&library).output().map_err(|e| format!("cc: {e}"))?;
        assert!(result.status.success(), "{source}: {}", String::from_utf8_lossy(&result.stderr));
        Ok(library.to_str().expect("a plain path").to_owned())
    });
    library.map(PathBuf::from)
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
