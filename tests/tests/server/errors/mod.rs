//! What is refused: every error with its SQLSTATE, message and hint.

mod aggregate;
mod argument;
mod bad_arguments;
mod bad_rows;
mod bad_sources;
mod coverage;
mod encodings;
mod mistakes;
mod models;
mod notices;
mod predict;
mod rows;
mod situations;
mod source;
mod toc;
mod training;

use corgipile_tests::{Database, Failure, Session, is_like};

/// A way to provoke an error: the error's variant, statements of which the last fails, SQLSTATE, message and hint,
/// where `...` stands for any text. The statements are rolled back.
pub struct Case(pub &'static str, pub &'static str, pub &'static str, pub &'static str, pub &'static str);

/// A database with the small table `t(id, label, a, b, c)`, and what these statements make.
pub fn database(setup: &[&str]) -> Database {
    let mut db = Database::with_small_table(100);
    for statement in setup {
        db.run(statement);
    }
    db
}

/// Provokes each error; of those that are not as expected, all are reported. Names in braces stand for others.
pub fn check(db: &mut Session, cases: &[Case], names: &[(&str, &str)]) {
    let named = |text: &str| names.iter().fold(text.to_owned(), |text, (name, other)| text.replace(name, other));
    let mut wrong = Vec::new();
    for Case(error, sql, code, message, hint) in cases {
        let sql = named(sql);
        match db.attempt(&sql) {
            Ok(lines) => wrong.push(format!("{error}: {sql}\n  gives {} rows", lines.len())),
            Err(failure) => {
                let same = failure.code == *code
                    && is_like(&named(message), &failure.message)
                    && is_like(&named(hint), &failure.hint);
                if !same {
                    wrong.push(format!("{error}: {sql}\n  gives {failure:#?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each way to call training: all give the same error.
pub fn rejects(db: &mut Database, arguments: &str, code: &str) -> Failure {
    let listed = db.rejects(&format!("SELECT corgipile_train({arguments})"), code);
    let failure = db.rejects(&format!("SELECT * FROM corgipile_train({arguments})"), code);
    assert_eq!(listed, failure, "in the select list and in FROM");
    failure
}
