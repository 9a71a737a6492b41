//! What a session keeps of the models that it has used.

use corgipile_tests::{Database, Session};
use std::fs;

/// Bytes of a session's own memory.
fn resident(session: &mut Session) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", session.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Features of a model whose weights take more than a session keeps.
const FEATURES: u64 = 24 << 20;

/// Two such models, `large` and `other`, and a small one.
fn models(db: &mut Database) {
    db.run("CREATE TABLE wide AS SELECT i % 2 AS label, ARRAY[i, 1000 + i] AS k, ARRAY[1, i % 2]::real[] AS v FROM generate_series(1, 50) i");
    for (name, dimensions) in [("large", FEATURES), ("other", FEATURES), ("small", 2000)] {
        db.run(&format!(
            "SELECT corgipile_train('wide', label => 'label', features => '{{k,v}}', max_epochs => 1, learning_rate => 0.1,
                                    name => '{name}', options => '{{\"dimensions\": {dimensions}}}')"
        ));
    }
}

#[test]
fn models_larger_than_a_session_keeps_stay_until_the_transaction_ends() {
    let mut db = Database::new();
    models(&mut db);
    let mut session = db.session();
    let predict = |name: &str| format!("SELECT count(corgipile_predict('{name}', k, v)) FROM wide");
    session.run(&predict("small"));
    let before = resident(&mut session);
    // a statement reads each of them once, and so does a transaction
    session.run(&format!("BEGIN; {}; {}", predict("large"), predict("other")));
    let within = resident(&mut session);
    assert!(within > before + 8 * FEATURES * 9 / 10, "{before} {within}");
    session.run("COMMIT");
    let after = resident(&mut session);
    assert!(after < before + (64 << 20), "{before} {within} {after}");
    // also of a model that is given as a value, and after an error
    session.run("BEGIN");
    session.fails_with(&format!("{}; SELECT 1 / 0", predict("large")), "22012");
    session.run("ROLLBACK");
    let after = resident(&mut session);
    assert!(after < before + (64 << 20), "{before} {after}");
}

#[test]
fn discard_all_gives_the_memory_back() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, ARRAY(SELECT random() FROM generate_series(1, 100))::real[] AS x
           FROM generate_series(1, 600) i",
    );
    db.run("SELECT count(*) FROM corgipile_train('t', max_epochs => 1, learning_rate => 0.1, name => 'm')");
    let dimensions = 12 << 20;
    db.run(&format!(
        "CREATE TABLE wide AS SELECT i % 2 AS label, ARRAY[i, 1000 + i] AS k, ARRAY[1, i % 2]::real[] AS v FROM generate_series(1, 50) i;
         SELECT corgipile_train('wide', label => 'label', features => '{{k,v}}', max_epochs => 1, learning_rate => 0.1, name => 'wide',
                                options => '{{\"dimensions\": {dimensions}}}')"
    ));
    let mut session = db.session();
    session.run("SELECT corgipile_predict('m', x) FROM t LIMIT 1");
    let before = resident(&mut session);
    session.run("SELECT corgipile_predict('wide', k, v) FROM wide");
    let kept = resident(&mut session);
    assert!(kept > before + (40 << 20), "a model within the limit stays: {before} {kept}");
    session.run("DISCARD ALL");
    let after = resident(&mut session);
    assert!(after < before + (8 << 20), "{before} {kept} {after}");
    // whatever else is discarded has nothing to do with it, and models are found again
    session.run("DISCARD PLANS; SELECT corgipile_predict('wide', k, v) FROM wide");
    // errors of statements that pass by have their places still
    session.fails_with("CREATE TABLE nothing (a int, a int)", "42701");
}
