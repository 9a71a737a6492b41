//! Who may train on what, and who may use a model.

use corgipile_tests::Database;

#[test]
fn training_needs_select_on_the_table_in_from_and_in_the_select_list() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    session.rejects("SELECT * FROM corgipile_train('t')", "42501").says(&["t"]);
    session.rejects("SELECT corgipile_train('t')", "42501").says(&["t"]);
    session.rejects("SELECT * FROM corgipile_train('SELECT label, a FROM t')", "42501");
    session.fails_with("EXPLAIN SELECT * FROM corgipile_train('t')", "42501");
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    session.train("'t', max_epochs => 2");
    db.run(&format!("REVOKE SELECT ON t FROM {user}"));
    session.rejects("SELECT * FROM corgipile_train('t')", "42501");
}

#[test]
fn a_prepared_training_checks_privileges_at_each_execution() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    session.run(
        "SET plan_cache_mode = force_generic_plan;
                 PREPARE train(text) AS SELECT * FROM corgipile_train($1, max_epochs => 1)",
    );
    session.run("EXECUTE train('t'); EXECUTE train('t')");
    db.run(&format!("REVOKE SELECT ON t FROM {user}"));
    session.fails_with("EXECUTE train('t')", "42501");
}

#[test]
fn privileges_on_the_columns_that_are_used_are_enough() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    db.run(&format!("GRANT SELECT (label, a, b) ON t TO {user}"));
    session.train("'t', features => '{a,b}', max_epochs => 2");
    session.train("'SELECT label, b FROM t', max_epochs => 2");
    session.rejects("SELECT * FROM corgipile_train('t', features => '{a,c}')", "42501");
    session.rejects("SELECT * FROM corgipile_train('t', features => '{a}', label => 'id')", "42501");
    let id: i64 = session.value("SELECT min(model_id) FROM corgipile.models");
    assert_eq!(session.evaluate(id, "SELECT label, a, b FROM t").tuples, 100.0);
    session.fails_with(&format!("SELECT * FROM corgipile_evaluate({id}, 'SELECT label, a, c AS b FROM t')"), "42501");
}

#[test]
fn privileges_on_the_columns_that_are_used_are_enough_to_compress_them() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    let mut session = db.session_as(&user);
    db.run(&format!("GRANT SELECT (label, a, b) ON t TO {user}; GRANT CREATE ON SCHEMA public TO {user}"));
    let compress =
        |features: &str| format!("SELECT tuples FROM corgipile_compress('t', 'c', features => '{features}')");
    session.rejects(&compress("{a,c}"), "42501").says(&["t"]);
    assert_eq!(session.value::<i64>(&compress("{a,b}")), 100);
    session.run("SELECT * FROM corgipile_compression_report('t', features => '{a,b}')");
    // where a row is, is shown only to those who may read all of it
    db.run("UPDATE t SET b = 'NaN' WHERE id = 7");
    let compress = compress("{a,b}").replace("'c'", "'d'");
    session.rejects(&compress, "22003").says(&["feature b is NaN in row number"]);
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    session.rejects(&compress, "22003").says(&["feature b is NaN in row ("]);
}

#[test]
fn row_security_applies_to_what_is_trained_on() {
    let mut db = Database::with_small_table(300);
    let user = db.role("user");
    db.run(&format!(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; GRANT SELECT ON t TO {user};
         CREATE POLICY odd ON t USING (id % 2 = 1);
         CREATE TABLE odd AS SELECT * FROM t WHERE id % 2 = 1"
    ));
    db.run(&format!("GRANT SELECT ON odd TO {user}"));
    let mut session = db.session_as(&user);
    for source in ["t", "SELECT label, a, b, c FROM t"] {
        let epochs =
            session.train(&format!("'{source}', features => '{{a,b,c}}', shuffle => 'no_shuffle', max_epochs => 2"));
        assert!(epochs.iter().all(|e| e.tuples == 150), "{source}: {epochs:?}");
        let expected = session.trained("'odd', features => '{a,b,c}', shuffle => 'no_shuffle', max_epochs => 2");
        assert_eq!(session.model(epochs[0].model_id).bits(), expected.bits(), "{source}");
        assert_eq!(session.evaluate(expected.id, source).tuples, 150.0);
    }
    // The table's owner is not subject to it, unless forced.
    assert_eq!(db.train("'t', max_epochs => 1")[0].tuples, 300);
    db.run(
        "CREATE TABLE allowed AS SELECT generate_series(1, 50) AS id; GRANT SELECT ON allowed TO PUBLIC;
            DROP POLICY odd ON t; CREATE POLICY listed ON t USING (EXISTS (SELECT FROM allowed a WHERE a.id = t.id))",
    );
    assert_eq!(session.train("'t', max_epochs => 1")[0].tuples, 50);
    db.run("DROP POLICY listed ON t; CREATE POLICY per_user ON t USING (current_user = 'nobody')");
    session.rejects("SELECT * FROM corgipile_train('t')", "22000").says(&["no rows"]);
    session.run("SET row_security = off");
    session.fails_with("SELECT * FROM corgipile_train('t')", "42501");
}

#[test]
fn a_function_of_the_user_is_not_called_on_rows_that_row_security_hides() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    db.run(&format!(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; GRANT SELECT ON t TO {user};
                     CREATE POLICY few ON t USING (id <= 50)"
    ));
    let mut session = db.session_as(&user);
    session.run(
        "CREATE FUNCTION pg_temp.leak(int) RETURNS bool COST 0.0001 LANGUAGE plpgsql
                 AS 'BEGIN IF $1 > 50 THEN RAISE EXCEPTION ''leaked %'', $1; END IF; RETURN true; END'",
    );
    let epochs = session.train("'SELECT label, a FROM t WHERE pg_temp.leak(id)', max_epochs => 2");
    assert_eq!(epochs[0].tuples, 50);
}

#[test]
fn a_view_is_read_with_its_owners_privileges() {
    let mut db = Database::with_small_table(100);
    let (owner, user) = (db.role("owner"), db.role("user"));
    db.run(&format!(
        "CREATE VIEW v AS SELECT label, a FROM t; CREATE VIEW invoker WITH (security_invoker) AS SELECT label, a FROM t;
         CREATE VIEW unprivileged AS SELECT label, a FROM t; ALTER VIEW unprivileged OWNER TO {owner};
         GRANT SELECT ON v, invoker, unprivileged TO {user}"
    ));
    let mut session = db.session_as(&user);
    session.rejects("SELECT * FROM corgipile_train('t')", "42501");
    assert_eq!(session.train("'v', max_epochs => 2")[0].tuples, 100);
    session.rejects("SELECT * FROM corgipile_train('invoker')", "42501").says(&["t"]);
    session.rejects("SELECT * FROM corgipile_train('unprivileged')", "42501").says(&["t"]);
}

#[test]
fn a_model_belongs_to_the_role_that_trained_it() {
    let mut db = Database::with_small_table(100);
    let (alice, bob) = (db.role("alice"), db.role("bob"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let mut as_alice = db.session_as(&alice);
    let mut as_bob = db.session_as(&bob);
    let id = as_alice.train("'t', max_epochs => 2, name => 'hers'")[0].model_id;
    assert_eq!(as_alice.line("SELECT owner = current_user FROM corgipile.models"), "t");
    assert_eq!(as_alice.line(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3]) IS NOT NULL")), "t");

    assert_eq!(as_bob.models(), 0);
    for view in ["corgipile.coefficients", "corgipile.training_history"] {
        assert_eq!(as_bob.lines(&format!("SELECT * FROM {view}")).len(), 0, "{view}");
        assert!(!as_alice.lines(&format!("SELECT * FROM {view}")).is_empty(), "{view}");
    }
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        as_bob.fails_with(&format!("SELECT {function}({id}, ARRAY[1,2,3])"), "42501");
        as_bob.fails_with(&format!("SELECT {function}('hers', ARRAY[1,2,3])"), "42501");
    }
    as_bob.fails_with(&format!("SELECT * FROM corgipile_evaluate({id}, 't')"), "42501");
    for relation in ["models", "stored_models"] {
        as_bob.fails_with(
            &format!("DELETE FROM corgipile.{relation} WHERE model_id = {id}"),
            if relation == "models" { "55000" } else { "42501" },
        );
    }
    assert_eq!(as_alice.models(), 1, "nobody deletes somebody else's");
    // The superuser sees everything.
    assert_eq!(db.models(), 1);
    assert_eq!(db.line(&format!("SELECT corgipile_predict('{alice}.hers', ARRAY[1,2,3]) IS NOT NULL")), "t");
}

#[test]
fn a_name_is_its_owners() {
    let mut db = Database::with_small_table(100);
    let (alice, bob) = (db.role("alice"), db.role("bob"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    db.session_as(&alice).train("'t', max_epochs => 1, name => 'fraud'");
    let mut bobs = db.session_as(&bob);
    bobs.fails_with("SELECT corgipile_predict('fraud', ARRAY[1,2,3])", "42501");
    bobs.train("'t', max_epochs => 1, name => 'fraud'");
    assert_eq!(bobs.lines("SELECT name, version FROM corgipile.models"), ["fraud|1"]);
    bobs.line("SELECT corgipile_predict('fraud', ARRAY[1,2,3])");
}

#[test]
fn members_of_the_owners_role_use_its_models() {
    let mut db = Database::with_small_table(100);
    let (team, member, outsider) = (db.role("team"), db.role("member"), db.role("outsider"));
    db.run(&format!("GRANT {team} TO {member}; GRANT SELECT ON t TO {team}"));
    let mut session = db.session_as(&member);
    session.run(&format!("SET ROLE {team}"));
    let id = session.train("'t', max_epochs => 1")[0].model_id;
    session.run("RESET ROLE");
    assert_eq!(session.models(), 1);
    let predict = format!("SELECT corgipile_predict({id}, ARRAY[1,2,3]) IS NOT NULL");
    assert_eq!(session.line(&predict), "t");
    db.session_as(&outsider).fails_with(&predict, "42501");
    // A model that a session has in its cache is not the session's for ever.
    db.run(&format!("REVOKE {team} FROM {member}"));
    session.fails_with(&predict, "42501");
    // since PostgreSQL 16 it is for the grant to say
    let without = if db.major() > 15 { " WITH INHERIT FALSE" } else { "" };
    db.run(&format!("GRANT {team} TO {member}{without}; ALTER ROLE {member} NOINHERIT"));
    session.fails_with(&predict, "42501");
    session.run(&format!("SET ROLE {team}"));
    assert_eq!(session.line(&predict), "t");
    session.run("SELECT corgipile_drop(model_id) FROM corgipile.models");
    assert_eq!(db.models(), 0);
}

#[test]
fn set_role_changes_what_a_session_may_use() {
    let mut db = Database::with_small_table(100);
    let bob = db.role("bob");
    let id = db.train("'t', max_epochs => 1")[0].model_id;
    let predict = format!("SELECT corgipile_predict({id}, ARRAY[1,2,3]) IS NOT NULL");
    for _ in 0..2 {
        assert_eq!(db.line(&predict), "t");
        db.run(&format!("SET ROLE {bob}"));
        db.fails_with(&predict, "42501");
        db.run("RESET ROLE");
    }
    // In a prepared statement, whose plan is cached, too.
    db.run(&format!("PREPARE p AS {predict}; EXECUTE p; SET ROLE {bob}"));
    db.fails_with("EXECUTE p", "42501");
}

#[test]
fn execute_can_be_revoked() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    let id = {
        db.run(&format!("GRANT SELECT ON t TO {user}"));
        db.session_as(&user).train("'t', max_epochs => 1")[0].model_id
    };
    db.run(
        "DO $$ DECLARE f regprocedure; BEGIN
           FOR f IN SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'corgipile\\_%' LOOP
             EXECUTE 'REVOKE EXECUTE ON ROUTINE ' || f || ' FROM PUBLIC';
           END LOOP; END $$",
    );
    let mut session = db.session_as(&user);
    for call in [
        "* FROM corgipile_train('t')",
        "corgipile_train('t')",
        "* FROM corgipile_train('t') WHERE epoch = 1 LIMIT 1",
        "* FROM corgipile_shuffle(NULL::t)",
        "corgipile_shuffle(NULL::t)",
        &format!("corgipile_predict({id}, ARRAY[1,2,3])"),
        &format!("corgipile_predict_label({id}, ARRAY[1,2,3])"),
        &format!("corgipile_predict_proba({id}, ARRAY[1,2,3])"),
        &format!("* FROM corgipile_evaluate({id}, 't')"),
    ] {
        session.rejects(&format!("SELECT {call}"), "42501").says(&["function"]);
    }
}

#[test]
fn only_training_writes_models() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    let mut session = db.session_as(&user);
    let id = session.train("'t', max_epochs => 1, name => 'mine'")[0].model_id;
    for (statement, code) in [
        ("INSERT INTO corgipile.models (name) VALUES ('forged')", "55000"),
        ("UPDATE corgipile.models SET intercepts = '{0}'", "55000"),
        ("DELETE FROM corgipile.models", "55000"),
        ("DELETE FROM corgipile.stored_models", "42501"),
    ] {
        session.fails_with(statement, code);
    }
    session.fails_with(
        "INSERT INTO corgipile.stored_models OVERRIDING SYSTEM VALUE SELECT * FROM corgipile.stored_models",
        "42501",
    );
    session.fails_with("UPDATE corgipile.stored_models SET intercepts = '{0}'", "42501");
    session.fails_with("UPDATE corgipile.stored_models SET owner = 'postgres'", "42501");
    session.fails_with("INSERT INTO corgipile.stored_models (name) VALUES ('forged')", "42501");
    session.fails_with("UPDATE corgipile.stored_models SET intercepts = '{0}'", "42501");
    session.fails_with("TRUNCATE corgipile.stored_models", "42501");
    session.fails_with("DROP VIEW corgipile.models", "42501");
    session.fails_with("DROP TABLE corgipile.stored_models", "42501");
    session.fails_with("ALTER TABLE corgipile.stored_models DISABLE ROW LEVEL SECURITY", "42501");
    session.fails_with("CREATE POLICY mine ON corgipile.stored_models USING (true)", "42501");
    session.fails_with(
        "CREATE TRIGGER x BEFORE INSERT ON corgipile.stored_models EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "42501",
    );
    session.fails_with("CREATE TABLE corgipile.mine (a int)", "42501");
    for view in ["coefficients", "training_history"] {
        session.fails_with(&format!("DELETE FROM corgipile.{view}"), "55000").says(&["cannot delete from view", view]);
    }
    session.run(&format!("SELECT corgipile_drop({id})"));
    assert_eq!(session.models(), 0);
}

#[test]
fn nobody_can_lock_the_models_out_of_use() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    let mut session = db.session_as(&user);
    session.train("'t', max_epochs => 1, name => 'mine'");
    let relations = db.lines(
        "SELECT c.oid::regclass FROM pg_class AS c JOIN pg_depend AS d ON d.objid = c.oid AND d.deptype = 'e'
          WHERE d.classid = 'pg_class'::regclass AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'corgipile'::regnamespace",
    );
    assert!(relations.len() > 5, "{relations:?}");
    for relation in &relations {
        for mode in [
            "ROW SHARE",
            "ROW EXCLUSIVE",
            "SHARE UPDATE EXCLUSIVE",
            "SHARE",
            "SHARE ROW EXCLUSIVE",
            "EXCLUSIVE",
            "ACCESS EXCLUSIVE",
        ] {
            // PostgreSQL since 16 has ROW SHARE as what a reader may take; readers and writers go on next to it.
            if mode != "ROW SHARE" {
                session.fails_with(&format!("BEGIN; LOCK TABLE {relation} IN {mode} MODE NOWAIT"), "42501");
                session.run("ROLLBACK");
            }
        }
        session.attempt(&format!("SELECT * FROM {relation} FOR UPDATE")).expect_err("rows are not locked either");
    }
    // Whatever is granted on an object of the extension to everybody is to read it.
    let granted = db.lines(
        "SELECT c.oid::regclass, a.privilege_type FROM pg_class AS c JOIN pg_depend AS d ON d.objid = c.oid AND d.deptype = 'e',
                aclexplode(c.relacl) AS a WHERE d.classid = 'pg_class'::regclass AND a.grantee = 0 AND a.privilege_type <> 'SELECT'",
    );
    assert_eq!(granted, [] as [&str; 0]);
}

#[test]
fn a_security_definer_function_trains_as_its_owner() {
    let mut db = Database::with_small_table(100);
    let (owner, caller) = (db.role("owner"), db.role("caller"));
    db.run(&format!(
        "GRANT SELECT ON t TO {owner}; GRANT CREATE ON SCHEMA public TO {owner}; SET ROLE {owner};
         CREATE FUNCTION train_for_me(OUT id bigint) SECURITY DEFINER LANGUAGE sql
           AS 'SELECT max(model_id) FROM corgipile_train(''t'', max_epochs => 2)';
         CREATE FUNCTION ask(id bigint) RETURNS float8 SECURITY DEFINER LANGUAGE sql
           AS 'SELECT corgipile_predict(id, ARRAY[1,2,3])'; RESET ROLE"
    ));
    let mut session = db.session_as(&caller);
    session.rejects("SELECT * FROM corgipile_train('t')", "42501");
    let id: i64 = session.value("SELECT train_for_me()");
    assert_eq!(db.line("SELECT owner FROM corgipile.models"), owner);
    session.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"), "42501");
    // The role changes within one session, and with it what the cache may give.
    assert_eq!(session.line(&format!("SELECT ask({id}) IS NOT NULL")), "t");
    session.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"), "42501");
}

#[test]
fn what_a_user_puts_into_the_search_path_is_not_used() {
    let mut db = Database::with_small_table(100);
    db.run(
        "CREATE SCHEMA evil;
         CREATE FUNCTION evil.boom() RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''hijacked''; END';
         CREATE FUNCTION evil.eq(bigint, bigint) RETURNS bool LANGUAGE sql AS 'SELECT evil.boom() IS NULL';
         CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.eq);
         CREATE FUNCTION evil.eqt(text, text) RETURNS bool LANGUAGE sql AS 'SELECT evil.boom() IS NULL';
         CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.eqt);
         CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT evil.boom()::timestamptz';
         CREATE FUNCTION evil.pg_has_role(regrole, text) RETURNS bool LANGUAGE sql AS 'SELECT evil.boom() IS NULL';
         CREATE FUNCTION evil.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE sql AS 'SELECT NULL FROM evil.boom()';
         CREATE TABLE evil.models (LIKE corgipile.models); CREATE TABLE evil.pg_class (oid int);
         CREATE TEMP TABLE models (model_id int); CREATE TEMP TABLE pg_attribute (a int);
         SET search_path = evil, pg_temp, public, pg_catalog",
    );
    let id = db.train("'public.t', max_epochs => 2, name => 'safe'")[0].model_id;
    assert_eq!(db.lines("SELECT * FROM evil.models").len(), 0);
    assert_eq!(db.lines("SELECT corgipile_predict('safe', ARRAY[1,2,3]) IS NOT NULL"), ["t"]);
    assert_eq!(db.lines(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3]) IS NOT NULL")), ["t"]);
    assert_eq!(db.evaluate(id, "public.t").tuples, 100.0);
    assert!(!db.lines("SELECT feature FROM corgipile.coefficients").is_empty());
}

#[test]
fn owner_renamed_or_dropped_models_stay_usable_or_are_the_superusers() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON t TO {user}"));
    let mut session = db.session_as(&user);
    let id = session.train("'t', max_epochs => 1")[0].model_id;
    let predict = format!("SELECT corgipile_predict({id}, ARRAY[1,2,3]) IS NOT NULL");
    db.run(&format!("ALTER ROLE {user} RENAME TO renamed_{user}"));
    assert_eq!(session.line(&predict), "t");
    db.run(&format!("ALTER ROLE renamed_{user} RENAME TO {user}"));
    assert_eq!(db.line(&predict), "t");
}

#[test]
fn only_superusers_create_update_and_move_the_extension() {
    let mut db = Database::empty();
    let (owner, name) = (db.role("owner"), db.name().to_owned());
    // the owner of a database, who may do there all that needs no superuser
    db.run(&format!("ALTER DATABASE {name} OWNER TO {owner}; GRANT ALL ON SCHEMA public TO {owner}"));
    let mut session = db.session_as(&owner);
    session.fails_with("CREATE EXTENSION corgipile", "42501").is(
        "42501",
        "permission denied to create extension \"corgipile\"",
        "Must be superuser to create this extension.",
    );
    // one that is trusted shows that it is the extension which is not
    let trusted = "SELECT count(*) FROM pg_available_extension_versions WHERE name = 'plpgsql' AND trusted";
    assert_eq!(session.line(trusted), "1");
    db.run("DROP EXTENSION plpgsql");
    session.run("CREATE EXTENSION plpgsql");
    db.run("CREATE EXTENSION corgipile");
    let control =
        "SELECT DISTINCT superuser, trusted, relocatable FROM pg_available_extension_versions WHERE name = 'corgipile'";
    assert_eq!(db.line(control), "t|f|f");
    session.fails_with("ALTER EXTENSION corgipile UPDATE", "42501");
    session.fails_with("DROP EXTENSION corgipile", "42501");
    session.fails_with("ALTER EXTENSION corgipile DROP FUNCTION corgipile_support(internal)", "42501");
    session.fails_with("LOAD 'corgipile'", "42501").says(&["library"]);
    session.fails_with(
        "CREATE FUNCTION f(internal) RETURNS internal LANGUAGE c AS '$libdir/corgipile', 'corgipile_support_wrapper'",
        "42501",
    );
    // once it is there, anyone who may read a table trains on it, and needs no more
    session.run("CREATE TABLE t AS SELECT i % 2 AS label, (i % 2 + i % 3)::real AS a, (i % 5)::real AS b FROM generate_series(1, 100) i");
    session.train("'t', max_epochs => 1, name => 'm'");
    assert_eq!(session.line("SELECT count(corgipile_predict('m', t)) FROM t"), "100");
    // objects are in two schemas, so that no single one can take their place
    db.run("CREATE SCHEMA elsewhere");
    db.fails_with("ALTER EXTENSION corgipile SET SCHEMA elsewhere", "0A000");
}

#[test]
fn what_explains_a_model_needs_the_model_and_reads_rows_by_the_rights_of_who_asks() {
    let mut db = Database::with_small_table(400);
    let (owner, friend, stranger) = (db.role("owner"), db.role("friend"), db.role("stranger"));
    db.run(&format!(
        "GRANT SELECT ON t TO {owner}, {stranger};
         ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY all_rows ON t TO {owner}, {stranger} USING (true);
         CREATE POLICY some_rows ON t TO {friend} USING (id <= 200);"
    ));
    db.session_as(&owner).run(&format!(
        "SELECT FROM corgipile_train('t', features => '{{a,b}}', solver => 'newton', name => 'm');
         SELECT corgipile_grant('m', '{friend}')"
    ));
    let id: i64 = db.value("SELECT model_id FROM corgipile.models");
    let calls = |model: &str| {
        [
            format!("SELECT std_error FROM corgipile_coefficients({model}, 't') ORDER BY feature"),
            format!("SELECT importance FROM corgipile_importance({model}, 't', seed => 1) ORDER BY feature"),
            format!("SELECT contribution FROM t, corgipile_explain({model}, t, 't') WHERE t.id = 7 ORDER BY feature"),
        ]
    };
    // a model of somebody else, however it is named
    for call in calls(&id.to_string()).iter().chain(&calls("'m'")) {
        db.session_as(&stranger).fails_with(call, "42501").says(&["permission denied for model"]);
    }
    // a model that was granted, and rows that were not
    for call in calls("'m'") {
        db.session_as(&friend).fails_with(&call, "42501").says(&["permission denied for table t"]);
    }
    db.run(&format!("GRANT SELECT ON t TO {friend}"));
    for call in calls("'m'") {
        let (of_all, of_some) = (db.session_as(&owner).lines(&call), db.session_as(&friend).lines(&call));
        let of_those = db.session_as(&owner).lines(&call.replace("'t'", "'SELECT * FROM t WHERE id <= 200'"));
        assert_eq!(of_some, of_those, "as of the rows that the policy shows: {call}");
        assert_ne!(of_some, of_all, "{call}");
    }
    // columns that the model does not need are not asked for
    db.run(&format!("REVOKE SELECT ON t FROM {friend}; GRANT SELECT (id, label, a, b) ON t TO {friend}"));
    for call in &calls("'m'")[..2] {
        assert!(!db.session_as(&friend).lines(call).is_empty(), "{call}");
    }
    db.run(&format!("REVOKE SELECT (b) ON t FROM {friend}"));
    for call in &calls("'m'")[..2] {
        db.session_as(&friend).fails_with(call, "42501").says(&["permission denied for table t"]);
    }
}
