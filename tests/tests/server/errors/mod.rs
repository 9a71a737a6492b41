//! Bad input: every error with its SQLSTATE, message and hint, and nothing stored.

mod bad_arguments;
mod bad_rows;
mod bad_sources;

use corgipile_tests::Database;

/// Each way to call training: all give the same error.
pub fn rejects(db: &mut Database, arguments: &str, code: &str) -> corgipile_tests::Failure {
    let listed = db.rejects(&format!("SELECT corgipile_train({arguments})"), code);
    let failure = db.rejects(&format!("SELECT * FROM corgipile_train({arguments})"), code);
    assert_eq!(listed, failure, "in the select list and in FROM");
    failure
}
