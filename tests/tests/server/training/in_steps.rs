//! corgipile_train_in_steps(): what is committed after each step survives what ends the call.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS SELECT uniform(i, 0) < 0.4 AS label, (ARRAY['north', 'south'])[1 + i % 2] AS site,
                normal(i, 1) + (uniform(i, 0) < 0.4)::int AS x, nullif(normal(i, 2), 0) AS z, 1 + i % 3 AS w
           FROM generate_series(1, 3000) i",
    );
}

fn models(db: &mut Session) -> Vec<(i64, i32)> {
    let rows = db.rows("SELECT model_id, json_array_length(history) FROM corgipile.models WHERE name = 'm'", &[]);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn steps_train_the_model_of_one_call_bit_for_bit() {
    for (arguments, step) in [
        ("seed => 3, block_size => '16kB', buffer_size => '20%'", 1),
        ("seed => 3, learning_rate => 0.01, optimizer => 'adam', batch_size => 8, l2 => 0.01", 2),
        (r#"seed => 3, model => 'svm', class_weight => 'balanced', options => '{"weight": "w", "keep": "best"}'"#, 3),
        ("seed => 3, validation_fraction => 0.3, shuffle => 'block_only'", 2),
        ("seed => 3, model => 'mlp', hidden_layer_sizes => '{4}', workers => 2, block_size => '16kB'", 2),
        (r#"seed => 3, options => '{"solver": "newton"}'"#, 1),
        ("seed => 3, patience => 1", 1),
        // each step says again what the first has said
        ("seed => 3, optimizer => 'momentum', schedule => 'exponential'", 2),
        // the epochs that were no better are counted from step to step
        (r#"seed => 3, patience => 2, options => '{"tolerance": 0.02}'"#, 1),
    ] {
        let mut db = Database::new();
        table(&mut db);
        let whole = db.train(&format!("'t', {arguments}, max_epochs => 7"));
        db.run(&format!(
            "CALL corgipile_train_in_steps('t', {arguments}, max_epochs => 7, name => 'm', epochs_per_step => {step})"
        ));
        let models = models(&mut db);
        assert_eq!(models.len(), 1, "one version: {models:?}");
        assert_eq!(models[0].1, whole.len() as i32, "{arguments}");
        assert_eq!(db.model(models[0].0).bits(), db.model(whole[0].model_id).bits(), "{arguments}");
        // there is nothing left to do
        db.run(&format!(
            "CALL corgipile_train_in_steps('t', {arguments}, max_epochs => 7, name => 'm', epochs_per_step => {step})"
        ));
        assert_eq!(self::models(&mut db), models);
    }
}

#[test]
fn what_ends_a_call_costs_a_step() {
    let mut db = Database::new();
    table(&mut db);
    let whole = db.train("'t', seed => 3, max_epochs => 6")[0].model_id;
    // the fourth model is refused: three steps are done
    db.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN IF NEW.name = 'm' AND json_array_length(NEW.history) = 4 THEN RAISE 'enough'; END IF; RETURN NEW; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON corgipile.stored_models FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let call = "CALL corgipile_train_in_steps('t', seed => 3, max_epochs => 6, name => 'm')";
    db.fails_with(call, "P0001").says(&["enough"]);
    assert_eq!(models(&mut db).iter().map(|(_, epochs)| *epochs).collect::<Vec<_>>(), [3]);
    db.run("DROP FUNCTION refuse CASCADE");
    // rows that change between the steps do not begin it again
    db.run(call);
    let [(id, 6)] = models(&mut db)[..] else { panic!("{:?}", models(&mut db)) };
    assert_eq!(db.model(id).bits(), db.model(whole).bits());
    db.run("UPDATE t SET x = x + 10");
    db.run("CALL corgipile_train_in_steps('t', seed => 3, max_epochs => 8, name => 'm')");
    assert_eq!(models(&mut db).iter().map(|(_, epochs)| *epochs).collect::<Vec<_>>(), [8]);
}

#[test]
fn patience_ends_it_and_wrong_arguments_are_errors() {
    let mut db = Database::new();
    table(&mut db);
    let call = "CALL corgipile_train_in_steps('t', seed => 3, patience => 2, max_epochs => 50, epochs_per_step => 4, name => 'm')";
    db.run(call);
    let models = models(&mut db);
    assert!(models[0].1 < 50, "{models:?}");
    db.run(call);
    assert_eq!(self::models(&mut db), models);
    db.fails_with("CALL corgipile_train_in_steps('t', max_epochs => 2)", "22004").says(&["argument name"]);
    db.fails_with("CALL corgipile_train_in_steps('t', name => 'n', epochs_per_step => 0)", "22023")
        .says(&["argument epochs_per_step"]);
    db.run("BEGIN");
    db.fails_with("CALL corgipile_train_in_steps('t', name => 'n', max_epochs => 2)", "2D000");
    db.run("ROLLBACK");
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile.models WHERE name = 'n'"), 0);
}

#[test]
fn a_session_that_is_cancelled_or_ended_leaves_the_steps_that_it_has_committed() {
    let mut db = Database::new();
    table(&mut db);
    db.run("INSERT INTO t SELECT t.* FROM t, generate_series(1, 9)");
    let whole = db.train("'t', seed => 3, max_epochs => 60")[0].model_id;
    let call = "CALL corgipile_train_in_steps('t', seed => 3, max_epochs => 60, name => 'm')";
    let trained = "SELECT coalesce(max(json_array_length(history)), 0) >= ";
    for (end, enough) in [("pg_cancel_backend", 2), ("pg_terminate_backend", 5)] {
        let mut session = db.session();
        let pid = session.pid();
        let background = session.in_background(call);
        db.wait_for(&format!("{trained}{enough} FROM corgipile.models WHERE name = 'm'"), "t");
        db.run(&format!("SELECT {end}({pid})"));
        let (_, ended) = background.join();
        assert!(ended.is_err(), "{ended:?}");
        let models = models(&mut db);
        assert!(models.len() == 1 && models[0].1 < 60, "{models:?}");
    }
    db.run(call);
    let [(id, 60)] = models(&mut db)[..] else { panic!("{:?}", models(&mut db)) };
    assert_eq!(db.model(id).bits(), db.model(whole).bits());
}

#[test]
fn versions_that_are_no_steps_stay_and_one_model_is_trained() {
    let mut db = Database::new();
    table(&mut db);
    let train = |epochs: u32| format!("'t', name => 'kept', max_epochs => {epochs}, seed => 1");
    db.train(&train(2));
    db.run(&format!("CALL corgipile_train_in_steps({})", train(4)));
    let versions = "SELECT version, json_array_length(history) FROM corgipile.models WHERE name = 'kept' ORDER BY 1";
    assert_eq!(db.lines(versions).len(), 2, "the plain training, and its last step");
    db.run("SELECT corgipile_comment('kept', 'precious')");
    db.run(&format!("CALL corgipile_train_in_steps({})", train(6)));
    assert_eq!(db.lines(versions).len(), 3);
    for options in [r#"{"group_by": "label"}"#, r#"{"grid": {"l2": [0, 1]}}"#] {
        let call = format!("CALL corgipile_train_in_steps('t', name => 'many', options => '{options}')");
        db.fails_with(&call, "22023").says(&["without group_by and grid"]);
    }
}
