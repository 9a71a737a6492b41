//! Databases that were made by an older version of the extension.

use corgipile_tests::Database;

/// A database with the objects of 0.1.0, a table and a model, under the library of today.
fn of_0_1_0() -> Database {
    let mut db = Database::empty();
    db.run(
        "CREATE EXTENSION corgipile VERSION '0.1.0';
         CREATE TABLE t AS SELECT i AS id, i % 2 AS label, (i % 2 + i % 7)::real AS a, (i % 5)::real AS b
           FROM generate_series(1, 500) i;
         ALTER TABLE t ADD PRIMARY KEY (id)",
    );
    db
}

const PREDICT: &str = "SELECT id, corgipile_predict('old', ARRAY[a, b]), corgipile_predict_proba('old', ARRAY[a, b]),
                              corgipile_predict_label('old', t)
                         FROM t ORDER BY id";

#[test]
fn the_library_of_today_serves_the_objects_of_0_1_0() {
    let mut db = of_0_1_0();
    let epochs = db.train("'t', max_epochs => 3, seed => 1, name => 'old'");
    assert_eq!(epochs.len(), 3);
    let node = db.lines("SELECT epoch, loss, tuples FROM corgipile_train('t', max_epochs => 3, seed => 1)");
    assert!(db.lines("EXPLAIN (COSTS OFF) SELECT * FROM corgipile_train('t')")[0].contains("CorgiPileSGD"));
    // The same as a function, and by the aggregate.
    let function =
        "SELECT (r).epoch, (r).loss, (r).tuples FROM (SELECT corgipile_train('t', max_epochs => 3, seed => 1) AS r) c";
    assert_eq!(db.lines(function), node);
    assert_eq!(db.lines("SELECT * FROM corgipile_train_uda('t', max_epochs => 2)").len(), 2);
    let columns = "SELECT array_length(proargtypes::oid[], 1), array_length(proallargtypes, 1) FROM pg_proc WHERE proname = 'corgipile_train'";
    assert_eq!(db.line(columns), "14|22");
    assert_eq!(db.lines(PREDICT).len(), 500);
    assert!(db.evaluate(epochs[0].model_id, "t").accuracy > 0.5);
    assert_eq!(db.models(), 4);
    db.fails_with("SELECT corgipile_train('t', warm_start => 'old')", "42883");
}

#[test]
fn models_of_0_1_0_are_there_after_the_update() {
    let mut db = of_0_1_0();
    let model = db.trained("'t', max_epochs => 3, seed => 1, name => 'old', options => '{\"standardize\": true}'");
    let unnamed = db.trained("'t', 'svm', max_epochs => 2, seed => 2").id;
    let before = db.lines(PREDICT);
    let history = db.lines("SELECT epoch, loss FROM corgipile.training_history ORDER BY model_id, epoch");
    db.run("ALTER EXTENSION corgipile UPDATE");
    assert_eq!(db.line("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'"), "0.2.0");
    assert_eq!(db.lines(PREDICT), before);
    assert_eq!(db.model(model.id).bits(), model.bits());
    assert_eq!(db.lines("SELECT epoch, loss FROM corgipile.training_history ORDER BY model_id, epoch"), history);
    db.line(&format!("SELECT corgipile_predict({unnamed}, ARRAY[1, 2])"));
    // the default buffer_size was 10%
    let new = db.trained(
        "'t', max_epochs => 3, buffer_size => '10%', seed => 1, name => 'new', options => '{\"standardize\": true}'",
    );
    assert_eq!(new.bits(), model.bits());
    assert!(new.id > unnamed);
}

#[test]
fn a_session_that_is_there_during_the_update_goes_on() {
    let mut db = of_0_1_0();
    db.train("'t', max_epochs => 3, seed => 1, name => 'old'");
    let mut other = db.session();
    let before = other.lines(PREDICT);
    other.run("PREPARE train AS SELECT count(*) FROM corgipile_train('t', max_epochs => 2); EXECUTE train");
    db.run("ALTER EXTENSION corgipile UPDATE");
    assert_eq!(other.lines(PREDICT), before);
    assert_eq!(other.train("'t', max_epochs => 2").len(), 2);
    // What was prepared is planned anew, or says that its function is gone; the session is unharmed.
    match other.attempt("EXECUTE train") {
        Ok(lines) => assert_eq!(lines, ["2"]),
        Err(failure) => assert!(["42883", "0A000", "XX000"].contains(&failure.code.as_str()), "{failure:#?}"),
    }
    assert_eq!(other.lines(PREDICT), before);
}

#[test]
fn who_may_train_is_the_same_after_the_update() {
    let mut db = of_0_1_0();
    let (trainer, stranger) = (db.role("trainer"), db.role("stranger"));
    let may = format!(
        "SELECT has_function_privilege('{trainer}', oid, 'EXECUTE WITH GRANT OPTION'),
                has_function_privilege('{stranger}', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'corgipile_train'"
    );
    assert_eq!(db.line(&may), "f|t");
    db.run(&format!(
        "REVOKE EXECUTE ON FUNCTION corgipile_train FROM PUBLIC;
         GRANT EXECUTE ON FUNCTION corgipile_train TO {trainer} WITH GRANT OPTION"
    ));
    assert_eq!(db.line(&may), "t|f");
    db.run("ALTER EXTENSION corgipile UPDATE");
    assert_eq!(db.line(&may), "t|f");
}

#[test]
fn an_updated_database_has_the_objects_of_a_new_one() {
    let objects = "SELECT pg_describe_object(classid, objid, 0), pg_get_functiondef(p.oid), p.proacl, obj_description(objid, classid::regclass::name)
                     FROM pg_depend LEFT JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass AND p.prokind = 'f'
                    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' ORDER BY 1";
    let mut updated = of_0_1_0();
    updated.run("ALTER EXTENSION corgipile UPDATE");
    assert_eq!(updated.lines(objects), Database::new().lines(objects));
}
