//! Models as values: exported, imported elsewhere, with every bit.

use corgipile_tests::{Database, Session, program};
use std::process::Command;

/// A table `t(id, label, animal, target, x, k, v, colour, a, b)` that every kind of model can be trained on.
pub fn table(db: &mut Session) {
    db.run(
        "CREATE TYPE mood AS ENUM ('good', 'bad');
         CREATE TABLE t AS
         SELECT i AS id, y AS label, (ARRAY['ant', 'bee', 'cat'])[1 + (i % 3)] AS animal, 3 * normal(i, 9) + y AS target,
                (ARRAY['good', 'bad']::mood[])[1 + y] AS mood, ARRAY[y + normal(i, 1), normal(i, 2), 7 * normal(i, 3)]::real[] AS x,
                ARRAY[0, 1 + i % 5] AS k, ARRAY[normal(i, 4) + y, normal(i, 5)]::real[] AS v,
                (ARRAY['red', 'gr\"ü\"n\\', 'blue'])[1 + (i / 7) % 3] AS colour, y - normal(i, 6) AS a,
                CASE WHEN i % 50 > 0 THEN normal(i, 7) END AS b
         FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 300::bigint) i) r",
    );
}

/// A training of every kind of model: its arguments, and how a call gives it features.
const TRAININGS: [(&str, &str); 9] = [
    ("'logistic', features => '{x}'", "t.x"),
    ("'svm', features => '{x}', label => 'mood', options => '{\"standardize\": true}'", "t.x"),
    ("'linear', features => '{x}', label => 'target', options => '{\"optimizer\": \"adam\"}'", "t.x"),
    ("'softmax', features => '{x}', label => 'animal', options => '{\"standardize\": true}'", "t.x"),
    ("'logistic', features => '{k,v}', options => '{\"index_base\": 0, \"handle_unknown\": \"ignore\"}'", "t.k, t.v"),
    (
        "'softmax', features => '{k,v}', label => 'animal', options => '{\"index_base\": 0, \"dimensions\": 9}'",
        "t.k, t.v",
    ),
    (
        "'logistic', features => '{a,colour,b}', label => 'mood', options => '{\"nulls\": \"skip\", \"handle_unknown\": \"ignore\"}'",
        "t",
    ),
    ("'linear', features => '{colour,a}', label => 'target', options => '{\"standardize\": true}'", "t"),
    ("'softmax', features => '{id,a}', options => '{\"standardize\": true, \"validation_fraction\": 0.2}'", "t"),
];

/// Trains them all as versions of m; gives the ids.
pub fn train(db: &mut Session) -> Vec<i64> {
    let train = |(arguments, _): (&str, &str)| {
        db.train(&format!("'t', {arguments}, max_epochs => 3, seed => 5, learning_rate => 0.01, name => 'm'"))[0]
            .model_id
    };
    TRAININGS.map(train).to_vec()
}

/// What each function says of every row, or its error, for a model as an SQL expression: floats print as they are,
/// bit for bit.
fn predictions(db: &mut Session, model: &str, features: &str) -> Vec<Result<Vec<String>, String>> {
    let ask = |function: &str| {
        let sql = format!("SELECT {function}({model}, {features}) FROM t WHERE b IS NOT NULL ORDER BY id");
        db.attempt(&sql).map_err(|failure| failure.code)
    };
    ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"].map(ask).to_vec()
}

pub fn quoted(json: &str) -> String {
    format!("'{}'::jsonb", json.replace('\'', "''"))
}

const DESCRIPTION: &str =
    "SELECT name, model, source, label, label_type, classes, features, feature_kind, categories, index_base,
        hyperparameters, weights, intercepts, feature_mean, feature_scale, skipped, preparation_seconds, shuffle_bytes
   FROM corgipile.models WHERE model_id = ";

const HISTORY: &str = "SELECT epoch, loss, accuracy, learning_rate, tuples, seconds, r2, shuffle_seconds, validation_loss, validation_score
   FROM corgipile.all_training_history WHERE model_id = ";

#[test]
fn every_kind_of_model_comes_back_bit_for_bit_in_another_database() {
    let (mut here, mut there) = (Database::new(), Database::new());
    table(&mut here);
    table(&mut there);
    // so that ids differ
    there.train("'t', features => '{x}', max_epochs => 1");
    let ids = train(&mut here);
    for (id, (arguments, features)) in ids.iter().zip(TRAININGS) {
        let model = here.line(&format!("SELECT corgipile_export({id})"));
        let value = quoted(&model);
        let imported: i64 = there.value(&format!("SELECT corgipile_import({value})"));
        assert!(imported > *id);
        for what in [DESCRIPTION, HISTORY] {
            assert_eq!(there.lines(&format!("{what} {imported}")), here.lines(&format!("{what} {id}")), "{arguments}");
        }
        assert_eq!(there.line(&format!("SELECT corgipile_export({imported})")), model, "{arguments}");
        let expected = predictions(&mut here, &id.to_string(), features);
        assert!(expected.iter().any(|answer| answer.as_ref().is_ok_and(|rows| rows.len() == 294)), "{expected:?}");
        assert_eq!(predictions(&mut there, &imported.to_string(), features), expected, "{arguments}");
        assert_eq!(predictions(&mut there, "'m'", features), expected, "{arguments}");
        assert_eq!(predictions(&mut there, &value, features), expected, "{arguments}");
    }
    let evaluate = "SELECT * FROM corgipile_evaluate('m', 't')";
    assert_eq!(there.lines(evaluate), here.lines(evaluate));
    assert_eq!(
        there.lines("SELECT version FROM corgipile.models WHERE name = 'm' ORDER BY model_id").last().unwrap(),
        "9"
    );
    assert_eq!(here.line("SELECT corgipile_export('m') = corgipile_export(9)"), "t");
    assert_eq!(there.line("SELECT count(*) > 0 FROM corgipile.coefficients WHERE version = 9"), "t");
    // What training goes on from is not part of it.
    there
        .fails_with("SELECT * FROM corgipile_train('t', warm_start => 'm')", "22023")
        .says(&["without its training state"]);
}

#[test]
fn a_name_is_the_models_own_or_the_given_and_gets_its_next_version() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', features => '{x}', max_epochs => 1, name => 'm'");
    let export = "corgipile_export('m')";
    let second: i64 = db.value(&format!("SELECT corgipile_import({export})"));
    db.run(&format!("SELECT corgipile_import({export}, 'other'), corgipile_import({export} - 'name')"));
    let named = "SELECT name, version FROM corgipile.models ORDER BY model_id";
    assert_eq!(db.lines(named), ["m|1", "m|2", "other|1", "NULL|1"]);
    assert_eq!(db.line(&format!("SELECT corgipile_export('m') = corgipile_export({second})")), "t");
    for name in ["''", "repeat('x', 1025)"] {
        db.rejects(&format!("SELECT corgipile_import({export}, {name})"), "22023").says(&["name"]);
        db.rejects(&format!("SELECT corgipile_import({export} || jsonb_build_object('name', {name}))"), "22023")
            .says(&["name"]);
    }
    db.rejects(&format!("SELECT corgipile_import({export} || '{{\"name\": 5}}')"), "22023").says(&["\"name\""]);
    db.rejects("SELECT corgipile_import(NULL)", "22004").says(&["model"]);
    assert_eq!(db.line("SELECT corgipile_export(NULL::text), corgipile_predict(NULL::jsonb, ARRAY[1])"), "NULL|NULL");
    db.fails_with("SELECT corgipile_export('n')", "42704");
    db.fails_with("SELECT corgipile_export(77)", "42704");
    // What is rolled back was not imported; a transaction that only reads exports, and predicts with the value.
    db.run(&format!("BEGIN; SELECT corgipile_import({export}); ROLLBACK"));
    assert_eq!(db.models(), 4);
    db.run("SET default_transaction_read_only = on");
    db.line(&format!("SELECT corgipile_predict({export}, x) FROM t LIMIT 1"));
    db.fails_with(&format!("SELECT corgipile_import({export})"), "25006");
}

#[test]
fn whoever_may_use_a_model_may_export_it_and_owns_what_was_imported() {
    let mut db = Database::new();
    table(&mut db);
    let (owner, friend, stranger) = (db.role("owner"), db.role("friend"), db.role("stranger"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let id = db.session_as(&owner).train("'t', features => '{x}', max_epochs => 1, name => 'm'")[0].model_id;
    db.session_as(&owner).run(&format!("SELECT corgipile_grant('m', '{friend}')"));
    let (mut friend, mut stranger_session) = (db.session_as(&friend), db.session_as(&stranger));
    for model in ["'m'".to_owned(), id.to_string()] {
        stranger_session.fails_with(&format!("SELECT corgipile_export({model})"), "42501").says(&["permission denied"]);
    }
    let model = friend.line("SELECT corgipile_export('m')");
    assert_eq!(db.line(&format!("SELECT corgipile_export({id})")), model);
    // A value is its holder's: no one asks where it came from, and it needs no model.
    let predict = format!("SELECT corgipile_predict({}, x) FROM t WHERE id = 1", quoted(&model));
    assert_eq!(stranger_session.line(&predict), friend.line("SELECT corgipile_predict('m', x) FROM t WHERE id = 1"));
    stranger_session.run(&format!("SELECT corgipile_import({})", quoted(&model)));
    let owners = "SELECT name, version, owner, granted_to FROM corgipile.models ORDER BY model_id";
    assert_eq!(stranger_session.lines(owners), [format!("m|1|{stranger}|{{}}")]);
    assert_eq!(friend.models(), 1);
    db.run("REVOKE EXECUTE ON FUNCTION corgipile_import FROM PUBLIC");
    stranger_session.rejects(&format!("SELECT corgipile_import({})", quoted(&model)), "42501");
}

#[test]
fn pg_dump_keeps_values_and_what_predicts_with_them() {
    let (mut db, mut restored) = (Database::new(), Database::empty());
    table(&mut db);
    db.train("'t', features => '{x}', max_epochs => 2, name => 'm'");
    let model = db.line("SELECT corgipile_export('m')");
    db.run(&format!(
        "CREATE TABLE kept AS SELECT corgipile_export('m') AS model;
         CREATE VIEW predicted AS SELECT id, corgipile_predict({}, x) AS label FROM t",
        quoted(&model)
    ));
    let dump = std::env::temp_dir().join(format!("{}-export.sql", db.name()));
    let run = |command: &mut Command| {
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(program("pg_dump").arg("-f").arg(&dump).arg(db.name()));
    run(program("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", "-f"])
        .arg(&dump)
        .args(["-d", restored.name()]));
    std::fs::remove_file(&dump).expect("the dump is there");
    assert_eq!(restored.line("SELECT model, model = corgipile_export('m') FROM kept"), format!("{model}|t"));
    let labels = "SELECT * FROM predicted ORDER BY id";
    assert_eq!(restored.lines(labels), db.lines(labels));
}
