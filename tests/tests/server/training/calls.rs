//! Every way to call `corgipile_train()`: as a table, in a select list, prepared, from PL/pgSQL.

use corgipile_tests::{Database, clustered, epochs_of};

#[test]
fn the_select_list_gives_what_from_gives() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let from = epochs_of(&db.rows("SELECT * FROM corgipile_train('t', max_epochs => 4, seed => 7)", &[]));
    let list =
        epochs_of(&db.rows("SELECT (r).* FROM (SELECT corgipile_train('t', max_epochs => 4, seed => 7) r) s", &[]));
    assert_eq!(db.model(from[0].model_id).bits(), db.model(list[0].model_id).bits());
    let without_id_and_time = |epochs: &[corgipile_tests::Epoch]| {
        epochs.iter().map(|e| (e.epoch, e.loss, e.accuracy, e.learning_rate, e.tuples)).collect::<Vec<_>>()
    };
    assert_eq!(without_id_and_time(&from), without_id_and_time(&list));
}

#[test]
fn plain_select_of_the_function_trains_one_model() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    assert_eq!(db.lines("SELECT corgipile_train('t', max_epochs => 3)").len(), 3);
    assert_eq!(db.models(), 1);
}

#[test]
fn where_and_order_by_apply_to_the_epochs() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let epochs: Vec<i32> =
        db.column("SELECT epoch FROM corgipile_train('t') WHERE epoch % 25 = 0 AND loss > 0 ORDER BY epoch DESC");
    assert_eq!(epochs, [100, 75, 50, 25]);
    assert_eq!(db.lines("SELECT epoch FROM corgipile_train('t') WHERE false").len(), 0);
}

#[test]
fn limit_1_still_trains_and_stores_every_epoch() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let id: i64 = db.value("SELECT model_id FROM corgipile_train('t', max_epochs => 6, seed => 3) LIMIT 1");
    let epochs: i64 = db.value(&format!("SELECT count(*) FROM corgipile.training_history WHERE model_id = {id}"));
    assert_eq!(epochs, 6);
    let whole = db.trained("'t', max_epochs => 6, seed => 3");
    assert_eq!(db.model(id).bits(), whole.bits());
}

#[test]
fn a_join_with_training_trains_once() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    for setting in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
        db.run("RESET ALL; DELETE FROM corgipile.stored_models");
        for other in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin", "enable_material"] {
            db.run(&format!("SET {other} = {}", other == setting));
        }
        let rows = db.lines(
            "SELECT g, epoch FROM generate_series(1, 4) g JOIN corgipile_train('t', max_epochs => 3) ON epoch <= g
             AND epoch = g",
        );
        assert_eq!(rows.len(), 3, "{setting}");
        assert_eq!(db.models(), 1, "{setting}");
    }
}

#[test]
fn training_inside_a_cte_an_insert_and_a_union_works() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let last =
        db.line("WITH e AS (SELECT * FROM corgipile_train('t', max_epochs => 2)) SELECT max(epoch), count(*) FROM e");
    assert_eq!(last, "2|2");
    db.run(
        "CREATE TABLE log AS SELECT * FROM corgipile_train('t', max_epochs => 2);
            INSERT INTO log SELECT * FROM corgipile_train('t', 'svm', max_epochs => 3)",
    );
    assert_eq!(db.line("SELECT count(*), count(DISTINCT model_id) FROM log"), "5|2");
    let union = db.line(
        "SELECT count(*), count(DISTINCT model_id) FROM (SELECT * FROM corgipile_train('t', max_epochs => 2)
         UNION ALL SELECT * FROM corgipile_train('t', 'svm', max_epochs => 2)) u",
    );
    assert_eq!(union, "4|2");
    assert_eq!(db.models(), 5);
}

#[test]
fn a_lateral_call_trains_a_model_per_row() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    let rows = db.lines(
        "SELECT m, max(epoch) FROM (VALUES ('logistic'), ('svm')) v(m), corgipile_train('t', m, max_epochs => 2)
         GROUP BY m ORDER BY m",
    );
    assert_eq!(rows, ["logistic|2", "svm|2"]);
    assert_eq!(db.lines("SELECT model FROM corgipile.models ORDER BY model"), ["logistic", "svm"]);
}

#[test]
fn prepared_statements_take_every_argument_as_a_parameter() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "PREPARE train(text, text, text, text[], float8, int, text, text, text, bigint, jsonb) AS
         SELECT * FROM corgipile_train($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11)",
    );
    let literal =
        db.trained("'t', 'svm', features => '{features_v}', learning_rate => 0.02, max_epochs => 3, seed => 5");
    for mode in ["force_custom_plan", "force_generic_plan", "auto"] {
        db.run(&format!("SET plan_cache_mode = {mode}"));
        // Six times: after five, "auto" may change to a generic plan.
        for _ in 0..6 {
            let epochs = db.lines(
                "EXECUTE train('t', 'svm', 'label', '{features_v}', 0.02, 3, 'corgipile', 'auto', 'auto', 5, NULL)",
            );
            assert_eq!(epochs.len(), 3);
        }
        let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
        assert_eq!(db.model(id).bits(), literal.bits(), "{mode}");
    }
    let changed = db.lines("EXECUTE train('t', 'svm', 'label', NULL, NULL, 4, 'no_shuffle', '64kB', '1MB', 5, '{}')");
    assert_eq!(changed.len(), 4);
}

#[test]
fn protocol_level_parameters_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    for _ in 0..3 {
        let rows = db.rows("SELECT * FROM corgipile_train($1, max_epochs => $2, seed => $3)", &[&"t", &2_i32, &9_i64]);
        assert_eq!(epochs_of(&rows).len(), 2);
    }
}

#[test]
fn plpgsql_functions_and_loops_train() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "CREATE FUNCTION best(source text, epochs int) RETURNS text LANGUAGE plpgsql AS $$
         DECLARE r record; n int := 0; kind text; id bigint;
         BEGIN
           FOREACH kind IN ARRAY ARRAY['logistic', 'svm'] LOOP
             FOR r IN SELECT * FROM corgipile_train(source, kind, max_epochs => epochs) LOOP n := n + r.epoch; END LOOP;
             SELECT t.model_id INTO id FROM corgipile_train(source, kind, max_epochs => epochs) t;
             PERFORM corgipile_train(source, kind, max_epochs => epochs);
             EXECUTE 'SELECT model_id FROM corgipile_train($1, $2) ' INTO id USING source, kind;
           END LOOP;
           RETURN n || ' ' || (SELECT count(*) FROM corgipile.models);
         END $$",
    );
    assert_eq!(db.line("SELECT best('t', 3)"), "12 8");
    assert_eq!(db.line("SELECT best('t', 3)"), "12 16");
}

#[test]
fn a_plpgsql_exception_block_takes_the_model_back() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.run(
        "DO $$ BEGIN
           BEGIN
             PERFORM * FROM corgipile_train('t', max_epochs => 2);
             PERFORM 1 / 0;
           EXCEPTION WHEN division_by_zero THEN NULL;
           END;
           BEGIN
             PERFORM * FROM corgipile_train('t', 'no such model');
           EXCEPTION WHEN invalid_parameter_value THEN NULL;
           END;
           PERFORM * FROM corgipile_train('t', name => 'kept', max_epochs => 2);
         END $$",
    );
    assert_eq!(db.lines("SELECT name FROM corgipile.models"), ["kept"]);
}
