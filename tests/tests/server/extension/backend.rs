//! The tests that run inside a backend (`#[pg_test]`, feature `pg_test`), called as SQL functions.

use corgipile_tests::{Database, backend_tests, skip};

#[test]
fn the_tests_inside_the_backend_pass() {
    let tests = backend_tests();
    if tests.is_empty() {
        return skip(the_tests_inside_the_backend_pass, "the library ($CORGIPILE_LIBRARY) has no pg_test functions");
    }
    let mut failures = Vec::new();
    for symbol in &tests {
        let mut db = Database::new();
        let name = symbol.trim_end_matches("_wrapper");
        db.run(&format!("CREATE FUNCTION {name}() RETURNS void LANGUAGE c AS '$libdir/corgipile', '{symbol}'"));
        if let Err(failure) = db.attempt(&format!("SELECT {name}()")) {
            failures.push(format!("{name}: {failure:#?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), tests.len(), failures.join("\n"));
}
