//! Mistakes that new users make, and the error of each: message and hint have to lead to the statement that was
//! meant. What PostgreSQL itself refuses, before corgipile is asked, is here too, so that it is known. Mistakes that
//! are the case of an error in its domain are there alone.

mod columns;
mod options;
mod predictions;

use super::check;
use columns::{FEATURES, LABELS, SOURCES};
use corgipile_tests::{Database, is_like};
use options::OPTIONS;
use predictions::MODELS_IN_USE;

const SETUP: &str = r#"
    CREATE TABLE passengers (id int PRIMARY KEY, survived boolean, age real, fare float8, sex text, "Class" int,
                             born date, answer text, nothing real, rate real);
    INSERT INTO passengers SELECT i, i % 3 = 0, 20 + i % 40, (i * 37 % 101) / 10.0,
           CASE WHEN i % 2 = 0 THEN 'male' ELSE 'female' END, 1 + i % 3, '1990-01-01'::date + i,
           CASE WHEN i % 3 = 0 THEN 'yes' ELSE 'no' END, NULL, i / 7.0 FROM generate_series(1, 300) i;
    CREATE TABLE "Titanic Data" ("Survived" int, "Age" real, "Fare" real);
    INSERT INTO "Titanic Data" SELECT i % 2, i % 40, i % 7 FROM generate_series(1, 100) i;
    CREATE TABLE vectors (label int, x real[]); INSERT INTO vectors SELECT i % 2, ARRAY[i, i % 3] FROM generate_series(1, 50) i;
    CREATE VIEW private_view AS SELECT * FROM passengers;
    SELECT FROM corgipile_train('passengers', label => 'survived', features => '{age,fare}', name => 'survival', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('passengers', label => 'survived', features => '{age,sex}', name => 'by sex', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('vectors', name => 'dropped', max_epochs => 2, seed => 1);
    SELECT corgipile_drop('dropped');"#;

/// Hints that several mistakes have in common.
const COLUMNS: &str = "The source has the columns id, survived, age, fare, sex, Class, born, answer, nothing, rate.";
const MODELS: &str = "See corgipile.models for the models that you may use.";
const FUNCTION: &str =
    "No function matches the given name and argument types. You might need to add explicit type casts.";
const QUOTES: &str = "a name with blanks or capitals is quoted: '\"My Table\"'.";

#[test]
fn mistakes_of_new_users_are_answered_with_what_to_do() {
    let mut db = Database::new();
    db.run(SETUP);
    let newcomer = db.role("newcomer");
    let names = [
        ("{newcomer}", newcomer.as_str()),
        ("{COLUMNS}", COLUMNS),
        ("{MODELS}", MODELS),
        ("{FUNCTION}", FUNCTION),
        ("{QUOTES}", QUOTES),
    ];
    for cases in [SOURCES, LABELS, FEATURES, OPTIONS, MODELS_IN_USE] {
        check(&mut db, cases, &names);
    }
}

#[test]
fn what_only_looks_like_a_mistake_is_none() {
    let mut db = Database::new();
    db.run(SETUP);
    for call in [
        "'SELECT * FROM passengers;', label => 'survived', features => '{age}'",
        "'  select * from passengers -- all of them', label => 'survived', features => '{age}'",
        "'public.passengers', label => 'survived', features => '{age}'",
        "'\"Titanic Data\"', label => 'Survived'",
        "'public.\"Titanic Data\"', label => 'Survived', features => '{Age}'",
        "'Passengers', label => 'survived', features => '{age,Class}'",
        "'passengers', model => 'Logistic', label => 'survived', features => '{age,sex}'",
        "'passengers', 'LOGISTIC_REGRESSION', label => 'survived', features => '{age}'",
        "'passengers', label => 'answer', features => '{nothing,age}'",
    ] {
        db.train(&format!("{call}, max_epochs => 1, seed => 1"));
    }
    let told = db.notices(&[
        "SELECT FROM corgipile_train('passengers', label => 'survived', features => '{nothing,age}', max_epochs => 1, seed => 1)",
    ]);
    assert!(
        is_like("NOTICE:  NULLs are imputed in 300 of 300 rows (100.0%): nothing (all of them, 0)\n...", &told),
        "{told}"
    );
    assert_eq!(db.line("SELECT corgipile_predict('survival', passengers.*) IN (0, 1) FROM passengers LIMIT 1"), "t");
}
