//! The extension's shared library, and the tests inside it.

use object::{Object, ObjectSymbol};
use std::env;
use std::path::PathBuf;

/// The library that the server has installed, if the environment tells where it is.
pub fn library() -> Option<PathBuf> {
    env::var_os("CORGIPILE_LIBRARY").map(PathBuf::from)
}

/// Was the library built with feature `pg_test`?
pub fn has_backend_tests() -> bool {
    !backend_tests().is_empty()
}

/// The symbols of the `#[pg_test]` functions in the library; none if it was built without feature `pg_test`.
pub fn backend_tests() -> Vec<String> {
    let Some(path) = library() else { return Vec::new() };
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let file = object::File::parse(&*bytes).unwrap_or_else(|e| panic!("{} is no library: {e}", path.display()));
    let names = file.dynamic_symbols().filter_map(|symbol| symbol.name().ok());
    let functions: Vec<&str> =
        names.filter(|name| name.ends_with("_wrapper") && !name.starts_with("pg_finfo_")).collect();
    assert!(functions.contains(&"corgipile_train_wrapper"), "{} is not corgipile", path.display());
    // pgrx puts t0_, t1_, ... before a name that it shortens
    let is_test = |name: &&str| {
        let long = name.strip_prefix('t').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
        name.starts_with("test_") || long.is_some_and(|rest| rest.starts_with("_test_"))
    };
    let mut tests: Vec<String> = functions.into_iter().filter(is_test).map(str::to_owned).collect();
    tests.sort();
    tests
}
