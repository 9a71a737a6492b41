//! What happens to models after training: versions, deployment, names, comments, grants, and who may do what.

use corgipile_tests::{Database, Session};

/// Trains a version of a model, and gives its id.
fn version(session: &mut Session, name: &str, seed: i32) -> i64 {
    session.train(&format!("'t', max_epochs => 2, seed => {seed}, learning_rate => 0.01 * {seed}, name => '{name}'"))[0]
        .model_id
}

fn ask(model: &str) -> String {
    format!("SELECT corgipile_predict_proba({model}, ARRAY[1,2,3])")
}

const VERSIONS: &str = "SELECT name, version, deployed FROM corgipile.models ORDER BY model_id";

#[test]
fn a_name_means_the_latest_version_unless_one_is_deployed() {
    let mut db = Database::with_small_table(200);
    let ids = [1, 2, 3].map(|seed| version(&mut db, "m", seed));
    assert_eq!(db.lines(VERSIONS), ["m|1|f", "m|2|f", "m|3|f"]);
    let of_id = ids.map(|id| db.line(&ask(&id.to_string())));
    assert!(of_id[0] != of_id[1] && of_id[1] != of_id[2] && of_id[0] != of_id[2]);
    let by_name = ask("'m'");
    assert_eq!(db.line(&by_name), of_id[2]);

    let mut other = db.session();
    assert_eq!(other.line(&by_name), of_id[2]);
    assert_eq!(db.value::<i64>("SELECT corgipile_deploy('m', 2)"), ids[1]);
    assert_eq!(db.line(&by_name), of_id[1]);
    assert_eq!(other.line(&by_name), of_id[1]);
    assert_eq!(db.value::<i64>("SELECT corgipile_deploy('m', 1)"), ids[0]);
    assert_eq!(db.lines(VERSIONS), ["m|1|t", "m|2|f", "m|3|f"]);
    // A new version leaves what is deployed alone.
    let fourth = version(&mut db, "m", 4);
    assert_eq!(other.line(&by_name), of_id[0]);
    assert_eq!(db.line("SELECT (SELECT value FROM corgipile_evaluate('m', 't') WHERE metric = 'loss') = (SELECT value FROM corgipile_evaluate(1::bigint, 't') WHERE metric = 'loss')"), "t");
    assert_eq!(db.value::<i64>("SELECT corgipile_deploy('m', NULL)"), fourth);
    assert_eq!(other.line(&by_name), db.line(&ask(&fourth.to_string())));

    db.fails_with("SELECT corgipile_deploy('m', 5)", "42704").says(&["version 5", "\"m\""]);
    db.fails_with("SELECT corgipile_deploy('n', 1)", "42704").says(&["n"]);
    db.fails_with("SELECT corgipile_deploy(NULL, 1)", "22004");
    // What is rolled back was not deployed.
    db.run("BEGIN; SELECT corgipile_deploy('m', 2)");
    assert_eq!(db.line(&by_name), of_id[1]);
    db.run("ROLLBACK");
    assert_eq!(db.line(&by_name), other.line(&by_name));
    // Without the latest, or the deployed version, the name means the latest of those that are left.
    db.run("SELECT corgipile_deploy('m', 2); SELECT corgipile_drop('m', 2)");
    assert_eq!(db.line(&by_name), db.line(&ask(&fourth.to_string())));
    assert_eq!(db.value::<i64>("SELECT corgipile_drop('m', 4)"), 1);
    assert_eq!(other.line(&by_name), of_id[2]);
    // A number is not used again as long as there is another version.
    version(&mut db, "m", 5);
    assert_eq!(db.lines(VERSIONS), ["m|1|f", "m|3|f", "m|5|f"]);
    assert_eq!(db.value::<i64>("SELECT corgipile_drop('m')"), 3);
    db.fails_with(&by_name, "42704");
    assert_eq!(db.models(), 0);
}

#[test]
fn models_are_renamed_commented_and_dropped() {
    let mut db = Database::with_small_table(200);
    let ids = [1, 2].map(|seed| version(&mut db, "m", seed));
    let unnamed = db.train("'t', max_epochs => 1")[0].model_id;
    db.run("SELECT corgipile_deploy('m', 1); SELECT corgipile_rename('m', 'Other name')");
    assert_eq!(db.lines(VERSIONS), ["Other name|1|t", "Other name|2|f", "NULL|1|f"]);
    db.fails_with(&ask("'m'"), "42704");
    assert_eq!(db.line(&ask("'Other name'")), db.line(&ask(&ids[0].to_string())));
    // One model becomes the latest version.
    db.run(&format!("SELECT corgipile_rename({unnamed}, 'Other name')"));
    assert_eq!(db.lines(VERSIONS), ["Other name|1|t", "Other name|2|f", "Other name|3|f"]);
    db.run(&format!("SELECT corgipile_rename({}, 'm')", ids[1]));
    assert_eq!(db.lines(VERSIONS), ["Other name|1|t", "m|1|f", "Other name|3|f"]);
    db.fails_with("SELECT corgipile_rename('m', 'Other name')", "42710").says(&["Other name"]);
    db.fails_with("SELECT corgipile_rename('m', '')", "22023");
    db.fails_with(&format!("SELECT corgipile_rename('m', repeat('x', {}))", 1025), "22023");
    db.fails_with("SELECT corgipile_rename('gone', 'x')", "42704");
    db.run(&format!("SELECT corgipile_rename('m', 'm'); SELECT corgipile_rename({}, 'm')", ids[1]));

    db.run(&format!(
        "SELECT corgipile_comment('Other name', 'the one that works'); SELECT corgipile_comment({unnamed}, 'x')"
    ));
    let comments = "SELECT comment FROM corgipile.models ORDER BY model_id";
    assert_eq!(db.lines(comments), ["the one that works", "NULL", "x"]);
    db.run(&format!("SELECT corgipile_comment({unnamed}, NULL)"));
    assert_eq!(db.lines(comments), ["the one that works", "NULL", "NULL"]);
    assert_eq!(db.value::<i64>(&format!("SELECT corgipile_drop({unnamed})")), 1);
    db.fails_with(&format!("SELECT corgipile_drop({unnamed})"), "42704");
    db.fails_with("SELECT corgipile_drop('Other name', 7)", "42704").says(&["version 7"]);
    db.run("BEGIN; SELECT corgipile_drop('m')");
    db.fails_with(&ask("'m'"), "42704");
    db.run("ROLLBACK");
    assert_ne!(db.line(&ask("'m'")), "NULL");
    db.run("BEGIN READ ONLY");
    db.fails_with("SELECT corgipile_drop('m')", "25006");
    db.run("ROLLBACK");
}

#[test]
fn trainings_under_one_name_at_a_time_get_a_version_each() {
    let mut db = Database::with_small_table(300);
    std::thread::scope(|scope| {
        for seed in 1..=6 {
            let mut session = db.session();
            scope.spawn(move || {
                for _ in 0..3 {
                    version(&mut session, "m", seed);
                }
            });
        }
    });
    let versions: Vec<i32> = db.column("SELECT version FROM corgipile.models ORDER BY version");
    assert_eq!(versions, (1..=18).collect::<Vec<_>>());
    // A transaction that does not see the other's version cannot store: it gets an error, and its session goes on.
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    other.models();
    version(&mut db, "m", 7);
    other.fails_with("SELECT corgipile_train('t', max_epochs => 1, name => 'm')", "40001").says(&["m"]);
    other.run("ROLLBACK");
    version(&mut other, "m", 8);
    assert_eq!(db.models(), 20);
}

#[test]
fn nobody_sees_or_uses_anothers_model_without_a_grant() {
    let mut db = Database::with_small_table(200);
    let (owner, friend, stranger) = (db.role("owner"), db.role("friend"), db.role("stranger"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let mut o = db.session_as(&owner);
    let (mut f, mut s) = (db.session_as(&friend), db.session_as(&stranger));
    let id = version(&mut o, "m", 1);
    let second = version(&mut o, "n", 2);
    let uses = |id: i64| {
        [
            ask(&id.to_string()),
            format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"),
            format!("SELECT corgipile_predict_label({id}, t) FROM t"),
            format!("SELECT corgipile_predict({id}, ARRAY[1,2], ARRAY[1,2])"),
            format!("SELECT * FROM corgipile_evaluate({id}, 't')"),
        ]
    };
    for other in [&mut f, &mut s] {
        assert_eq!(other.models(), 0);
        assert_eq!(other.line("SELECT count(*) FROM corgipile.coefficients"), "0");
        assert_eq!(other.line("SELECT count(*) FROM corgipile.training_history"), "0");
        for call in uses(id).iter().chain(&[ask("'m'"), "SELECT * FROM corgipile_evaluate('m', 't')".into()]) {
            other.fails_with(call, "42501");
        }
    }
    o.run(&format!("SELECT corgipile_grant('m', '{friend}'); SELECT corgipile_grant('m', '{friend}')"));
    assert_eq!(o.line("SELECT granted_to FROM corgipile.models WHERE name = 'm'"), format!("{{{friend}}}"));
    assert_eq!(f.lines("SELECT name FROM corgipile.models"), ["m"]);
    assert_eq!(f.line("SELECT count(*) FROM corgipile.coefficients"), "4");
    for call in &uses(id) {
        f.lines(call);
        s.fails_with(call, "42501");
    }
    assert_eq!(f.line(&ask("'m'")), o.line(&ask("'m'")));
    f.fails_with(&ask("'n'"), "42501");
    // To use is not to own.
    for call in [
        "SELECT corgipile_drop('m')".to_owned(),
        format!("SELECT corgipile_drop({id})"),
        "SELECT corgipile_rename('m', 'x')".to_owned(),
        format!("SELECT corgipile_rename({id}, 'x')"),
        "SELECT corgipile_comment('m', 'x')".to_owned(),
        format!("SELECT corgipile_comment({id}, 'x')"),
        "SELECT corgipile_deploy('m', 1)".to_owned(),
        format!("SELECT corgipile_grant('m', '{stranger}')"),
        format!("SELECT corgipile_grant({id}, 'public')"),
        format!("SELECT corgipile_revoke('m', '{friend}')"),
    ] {
        f.fails_with(&call, "42501").says(&["owner"]);
        s.fails_with(&call, "42501");
    }
    f.fails_with("DELETE FROM corgipile.stored_models", "42501");
    f.fails_with("UPDATE corgipile.stored_models SET owner = 'postgres'", "42501");
    f.fails_with("UPDATE corgipile.stored_models SET granted_to = '{public}'", "42501");
    f.fails_with("INSERT INTO corgipile.stored_models (name) VALUES ('x')", "42501");
    // The versions to come are granted, too; a name of one's own comes first.
    let third = version(&mut o, "m", 3);
    assert_eq!(f.line(&ask("'m'")), o.line(&ask(&third.to_string())));
    let own = version(&mut f, "m", 4);
    assert_eq!(f.line("SELECT version FROM corgipile.models WHERE owner = current_user"), "1");
    assert_eq!(f.line(&ask("'m'")), f.line(&ask(&own.to_string())));
    assert_eq!(f.value::<i64>("SELECT corgipile_drop('m')"), 1);
    // Revoked in the middle of a session that has it in its cache.
    f.line(&ask("'m'"));
    o.run(&format!("SELECT corgipile_revoke('m', '{friend}')"));
    f.fails_with(&ask("'m'"), "42501");
    f.fails_with(&ask(&third.to_string()), "42501");
    assert_eq!(f.models(), 0);
    // One model alone, to everybody.
    o.run(&format!("SELECT corgipile_grant({second}, 'public')"));
    assert_eq!(s.line(&ask("'n'")), o.line(&ask("'n'")));
    assert_eq!(s.models(), 1);
    o.run(&format!("SELECT corgipile_revoke({second}, 'public')"));
    s.fails_with(&ask("'n'"), "42501");
    o.fails_with("SELECT corgipile_grant('n', 'nobody at all')", "42704").says(&["nobody at all"]);
}

#[test]
fn members_of_the_owner_and_of_a_granted_role_are_as_these_are() {
    let mut db = Database::with_small_table(200);
    let (team, member, guests, guest) = (db.role("team"), db.role("member"), db.role("guests"), db.role("guest"));
    db.run(&format!("GRANT SELECT ON t TO PUBLIC; GRANT {team} TO {member}; GRANT {guests} TO {guest}"));
    let mut t = db.session_as(&team);
    let (mut m, mut g) = (db.session_as(&member), db.session_as(&guest));
    version(&mut t, "m", 1);
    m.run(&format!("SELECT corgipile_grant('m', '{guests}'); SELECT corgipile_comment('m', 'of the team')"));
    assert_eq!(g.line(&ask("'m'")), t.line(&ask("'m'")));
    assert_eq!(g.line("SELECT comment FROM corgipile.models"), "of the team");
    db.run(&format!("REVOKE {guests} FROM {guest}"));
    g.fails_with(&ask("'m'"), "42501");
    // Two owners of one name: whose it is, is not guessed; neither are a superuser's own models anybody else's.
    let other = db.role("other");
    db.run(&format!("GRANT {other} TO {member}"));
    version(&mut db.session_as(&other), "m", 2);
    m.fails_with(&ask("'m'"), "42P08").says(&["several"]);
    db.fails_with(&ask("'m'"), "42P08");
    version(&mut db, "m", 3);
    assert_eq!(db.value::<i64>("SELECT corgipile_drop('m')"), 1);
    assert_eq!(db.models(), 2);
}

#[test]
fn models_of_a_dropped_role_stay_with_superusers_and_their_grants() {
    let mut db = Database::with_small_table(200);
    let (owner, friend, later) = (db.role("owner"), db.role("friend"), db.role("later"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let mut o = db.session_as(&owner);
    let id = version(&mut o, "m", 1);
    o.run(&format!("SELECT corgipile_grant('m', '{friend}'); SELECT corgipile_grant('m', '{later}')"));
    drop(o);
    let mut f = db.session_as(&friend);
    let before = f.line(&ask("'m'"));
    db.run(&format!("DROP ROLE {owner}; DROP ROLE {later}"));
    // The owner is a number now; grants hold.
    assert_eq!(f.line(&ask("'m'")), before);
    assert_eq!(
        db.line(&format!(
            "SELECT owner::text ~ '^[0-9]+$', cardinality(granted_to) FROM corgipile.models WHERE model_id = {id}"
        )),
        "t|2"
    );
    // A role that is made later under the old name is another.
    db.run(&format!("CREATE ROLE {owner} LOGIN"));
    let mut again = db.session_as(&owner);
    assert_eq!(again.models(), 0);
    again.fails_with(&ask("'m'"), "42501");
    // An administrator gives it a new owner, who is called as the old one was.
    let number = db.line(&format!("SELECT owner FROM corgipile.models WHERE model_id = {id}"));
    again.fails_with(&format!("SELECT corgipile_reassign_owned('{number}', '{owner}')"), "42501").says(&["owner"]);
    assert_eq!(db.value::<i64>(&format!("SELECT corgipile_reassign_owned('{number}', '{owner}')")), 1);
    assert_eq!(again.line(&ask("'m'")), before);
    again.run("SELECT corgipile_drop('m')");
}

#[test]
fn what_a_role_owns_is_dropped_or_given_away_as_a_whole() {
    let mut db = Database::with_small_table(200);
    let (owner, heir, friend) = (db.role("owner"), db.role("heir"), db.role("friend"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let (mut o, mut h, mut f) = (db.session_as(&owner), db.session_as(&heir), db.session_as(&friend));
    for (name, seed) in [("m", 1), ("m", 2), ("n", 3)] {
        version(&mut o, name, seed);
    }
    o.run(&format!("SELECT corgipile_deploy('m', 1); SELECT corgipile_grant('m', '{friend}')"));
    o.run(&format!("SELECT corgipile_grant('n', '{friend}', 'predict')"));
    let before = o.line(&ask("'m'"));
    // neither a stranger nor one of the two roles alone
    for session in [&mut f, &mut h, &mut o] {
        session.fails_with(&format!("SELECT corgipile_reassign_owned('{owner}', '{heir}')"), "42501");
    }
    for session in [&mut f, &mut h] {
        session.fails_with(&format!("SELECT corgipile_drop_owned('{owner}')"), "42501");
    }
    // versions of one name that two roles have do not become each other's
    version(&mut h, "n", 4);
    db.fails_with(&format!("SELECT corgipile_reassign_owned('{owner}', '{heir}')"), "42710").says(&["\"n\""]);
    h.run("SELECT corgipile_rename('n', 'of its own')");
    assert_eq!(db.value::<i64>(&format!("SELECT corgipile_reassign_owned('{owner}', '{heir}')")), 3);
    assert_eq!(o.models(), 0);
    assert_eq!(h.line(&ask("'m'")), before, "versions, deployment and grants are what they were");
    assert_eq!(f.line(&ask("'m'")), before);
    assert_eq!(f.lines(&ask("'n'")).len(), 1);
    db.fails_with("SELECT corgipile_reassign_owned('nobody at all', 'postgres')", "42704");
    db.fails_with("SELECT corgipile_drop_owned('nobody at all')", "42704");
    db.fails_with("SELECT corgipile_drop_owned(NULL)", "22004");
    // to no one, and to no number that somebody may get
    for to in ["77777", "?heir", "public", "-"] {
        db.fails_with(&format!("SELECT corgipile_reassign_owned('{heir}', '{to}')"), "42704");
    }
    for from in ["?nobody", "77777"] {
        db.fails_with(&format!("SELECT corgipile_reassign_owned('{from}', '{heir}')"), "42704");
        db.fails_with(&format!("SELECT corgipile_drop_owned('{from}')"), "42704");
    }
    // A training that has stored a version of the name already, and not committed, is waited for.
    let mut training = db.session_as(&friend);
    training.run("BEGIN; SELECT corgipile_train('t', name => 'm', max_epochs => 1, seed => 5)");
    let reassigning = db.session().in_background(&format!("SELECT corgipile_reassign_owned('{heir}', '{friend}')"));
    db.wait_for_waiters(1);
    training.run("COMMIT");
    assert_eq!(reassigning.join().1.expect_err("he has an m now").code, "42710");
    training.run("SELECT corgipile_drop('m')");
    // What was granted to a role goes with it, and what it owns.
    assert_eq!(f.value::<i64>(&format!("SELECT corgipile_drop_owned('{friend}')")), 0);
    f.fails_with(&ask("'m'"), "42501");
    f.fails_with(&ask("'n'"), "42501");
    assert_eq!(h.value::<i64>(&format!("SELECT corgipile_drop_owned('{heir}')")), 4);
    assert_eq!(db.models(), 0);
}

#[test]
fn who_may_only_predict_sees_nothing_of_what_was_learned() {
    let mut db = Database::with_small_table(200);
    let (owner, friend) = (db.role("owner"), db.role("friend"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    let (mut o, mut f) = (db.session_as(&owner), db.session_as(&friend));
    let id = version(&mut o, "m", 1);
    o.run(&format!("SELECT corgipile_grant('m', '{friend}', 'predict')"));
    assert_eq!(f.line(&ask("'m'")), o.line(&ask("'m'")));
    assert_eq!(f.line(&ask(&id.to_string())), o.line(&ask("'m'")));
    f.run("SELECT corgipile_predict_interval('m', ARRAY[a, b, c], 0.5) FROM t LIMIT 0");
    // what one has to know to call it, and nothing else
    assert_eq!(
        f.line("SELECT name, version, owner, model, label, features, feature_kind FROM corgipile.models"),
        o.line("SELECT name, version, owner, model, label, features, feature_kind FROM corgipile.models")
    );
    let shown = f.line(
        "SELECT string_agg(key, ',' ORDER BY key) FROM corgipile.models AS m, jsonb_each(to_jsonb(m)) WHERE value <> 'null'",
    );
    assert_eq!(
        shown,
        "classes,created_at,deployed,feature_kind,features,label,label_type,model,model_id,name,owner,version"
    );
    for view in ["stored_models", "current_models", "all_coefficients", "all_training_history", "stat_models"] {
        assert_eq!(f.lines(&format!("SELECT * FROM corgipile.{view}")).len(), 0, "{view}");
    }
    // Every function that takes a model and is no prediction refuses, by id and by name.
    let refused = [
        "corgipile_export({m})",
        "corgipile_export({m}, 'sql')",
        "corgipile_export_onnx({m})",
        "corgipile_explain({m}, (SELECT t FROM t LIMIT 1))",
        "corgipile_evaluate({m}, 't')",
        "corgipile_drift({m}, 't')",
        "corgipile_profile({m}, 't')",
        "corgipile_calibrate({m}, 't')",
        "corgipile_importance({m}, 't')",
        "corgipile_coefficients({m}, 't')",
        "corgipile_drop({m})",
        "corgipile_grant({m}, 'public')",
    ];
    for call in refused {
        for model in [id.to_string(), "'m'".to_owned()] {
            f.fails_with(&format!("SELECT {}", call.replace("{m}", &model)), "42501");
        }
    }
    for model in [id.to_string(), "m".to_owned()] {
        f.fails_with(&format!("SELECT * FROM corgipile_train('t', warm_start => '{model}')"), "42501")
            .says(&["granted for predictions only"])
            .hints(&["corgipile_grant"]);
    }
    // A prediction before, in the same statement, opens nothing.
    f.fails_with("SELECT corgipile_predict('m', ARRAY[1,2,3]), corgipile_export('m')", "42501");
    // More may be granted, and all of it taken back; versions to come are granted alike.
    let second = version(&mut o, "m", 2);
    assert_eq!(f.line(&ask("'m'")), o.line(&ask(&second.to_string())));
    o.run(&format!("SELECT corgipile_grant('m', '{friend}')"));
    f.run("SELECT corgipile_export('m')");
    assert_eq!(f.line("SELECT count(*) FROM corgipile.models"), "2");
    o.run(&format!("SELECT corgipile_revoke('m', '{friend}')"));
    f.fails_with(&ask("'m'"), "42501");
    assert_eq!(f.models(), 0);
    o.run("SELECT corgipile_grant('m', 'public', 'predict')");
    assert_eq!(f.line(&ask("'m'")), o.line(&ask("'m'")));
    assert_eq!(o.line("SELECT predict_granted_to FROM corgipile.models WHERE version = 1"), "{public}");
    o.fails_with("SELECT corgipile_grant('m', 'public', 'select')", "22023").says(&["privilege"]);
    o.fails_with("SELECT corgipile_grant('m', 'public', NULL)", "22004").says(&["privilege"]);
}

#[test]
fn operators_and_tables_of_the_user_do_not_get_in_between() {
    let mut db = Database::with_small_table(100);
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON t TO PUBLIC; CREATE SCHEMA evil AUTHORIZATION {user}"));
    let mut session = db.session_as(&user);
    session.run(
        "CREATE FUNCTION evil.steal(text, text) RETURNS bool LANGUAGE plpgsql
           AS 'BEGIN RAISE EXCEPTION ''ran as %'', current_user; END';
         CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.steal);
         CREATE FUNCTION evil.max(int) RETURNS int LANGUAGE plpgsql
           AS 'BEGIN RAISE EXCEPTION ''ran as %'', current_user; END';
         SET search_path = evil, pg_catalog, public",
    );
    version(&mut session, "m", 1);
    version(&mut session, "m", 2);
    session.run(
        "SELECT public.corgipile_deploy('m', 1); SELECT public.corgipile_rename('m', 'n');
         SELECT public.corgipile_grant('n', 'public'); SELECT public.corgipile_comment('n', 'x');
         SELECT public.corgipile_revoke('n', 'public'); SELECT public.corgipile_drop('n', 2); SELECT public.corgipile_drop('n')",
    );
    assert_eq!(session.line("SHOW search_path"), "evil, pg_catalog, public");
}

#[test]
fn numbers_of_versions_are_not_given_twice() {
    let mut db = Database::with_small_table(50);
    let train = |db: &mut Database, name: &str| -> (i64, i32) {
        let id = version(db, name, 1);
        (id, db.value(&format!("SELECT version FROM corgipile.models WHERE model_id = {id}")))
    };
    for n in 1..=3 {
        assert_eq!(train(&mut db, "m").1, n);
    }
    // dropped one after the other, in any way, and all at once
    db.run("SELECT corgipile_drop('m', 3)");
    db.run("DELETE FROM corgipile.stored_models WHERE name = 'm' AND version = 2");
    assert_eq!(train(&mut db, "m").1, 4);
    let (fifth, n) = train(&mut db, "m");
    assert_eq!(n, 5);
    db.run("DELETE FROM corgipile.stored_models WHERE name = 'm' AND version IN (4, 5)");
    assert_eq!(train(&mut db, "m"), (fifth + 1, 6));
    // a model that is renamed takes its number from the name, too, and gets another one there
    db.run(&format!("SELECT corgipile_rename({}, 'n')", fifth + 1));
    assert_eq!(train(&mut db, "m").1, 7);
    assert_eq!(train(&mut db, "n").1, 2);
    // all versions under another name are what they were
    db.run("SELECT corgipile_drop('m', 7); SELECT corgipile_rename('m', 'o')");
    assert_eq!(train(&mut db, "o").1, 8);
    // what is rolled back was not dropped; a name without versions is forgotten
    db.run("BEGIN; SELECT corgipile_drop('o', 8); ROLLBACK");
    assert_eq!(
        db.line("SELECT last_version IS DISTINCT FROM 8 FROM corgipile.stored_models WHERE name = 'o' AND version = 1"),
        "t"
    );
    assert_eq!(train(&mut db, "o").1, 9);
    db.run("SELECT corgipile_drop('o')");
    assert_eq!(train(&mut db, "o").1, 1);
    // models without names have no versions to be remembered
    db.run("SELECT corgipile_train('t', max_epochs => 1); DELETE FROM corgipile.stored_models WHERE name IS NULL");
}

#[test]
fn who_drops_the_deployed_version_is_told_what_the_name_means_now() {
    let mut db = Database::with_small_table(50);
    for seed in 1..=4 {
        version(&mut db, "m", seed);
    }
    let told = "version 2 of model \"m\" was deployed: the name now means the latest, version 4";
    let ways = [
        "SELECT corgipile_drop('m', 2)".to_owned(),
        "DELETE FROM corgipile.stored_models WHERE version = 2".to_owned(),
        format!("SELECT corgipile_rename({}, 'n')", db.line("SELECT model_id FROM corgipile.models WHERE version = 2")),
    ];
    for way in ways {
        db.run("SELECT corgipile_deploy('m', 2)");
        let heard = db.notices(&[&format!("BEGIN; {way}; ROLLBACK")]);
        assert!(heard.contains("NOTICE") && heard.contains(told), "{way}: {heard}");
    }
    for way in [
        "SELECT corgipile_drop('m', 3)",
        "SELECT corgipile_drop('m')",
        "SELECT corgipile_deploy('m', NULL)",
        "SELECT corgipile_deploy('m', 1)",
    ] {
        assert_eq!(db.notices(&[&format!("BEGIN; {way}; ROLLBACK")]), "", "{way}");
    }
}

#[test]
fn grants_to_dropped_roles_are_revoked_by_what_is_shown() {
    let mut db = Database::with_small_table(50);
    let (gone, friend) = (db.role("gone"), db.role("friend"));
    let id = version(&mut db, "m", 1);
    db.run(&format!(
        "SELECT corgipile_grant('m', '{gone}'), corgipile_grant('m', '{friend}'), corgipile_grant('m', 'public')"
    ));
    db.run(&format!("DROP ROLE {gone}"));
    let shown = "SELECT granted_to::text FROM corgipile.models";
    let number = db.line("SELECT r::text FROM corgipile.models, unnest(granted_to) r WHERE r::text ~ '^[0-9]+$'");
    db.fails_with(&format!("SELECT corgipile_grant('m', '{number}')"), "42704");
    db.fails_with("SELECT corgipile_revoke('m', '0')", "42704");
    db.fails_with("SELECT corgipile_revoke('m', '-1')", "42704");
    db.run(&format!("SELECT corgipile_revoke('m', '{number}')"));
    assert_eq!(db.line(shown), format!("{{{friend},public}}"));
    db.run(&format!("SELECT corgipile_revoke({id}, '-')"));
    assert_eq!(db.line(shown), format!("{{{friend}}}"));
    db.run(&format!("SELECT corgipile_revoke({id}, '{friend}')"));
    assert_eq!(db.line(shown), "{}");
}

#[test]
fn grants_that_were_written_as_an_array_of_arrays_are_revoked_and_added_to() {
    let mut db = Database::with_small_table(50);
    let (friend, other) = (db.role("friend"), db.role("other"));
    let id = version(&mut db, "m", 1);
    db.run(&format!("UPDATE corgipile.stored_models SET granted_to = '{{{{{friend},-}},{{-,{friend}}}}}'"));
    db.run(&format!("SELECT corgipile_grant('m', '{other}')"));
    let shown = "SELECT granted_to::text FROM corgipile.models";
    assert_eq!(db.line(shown), format!("{{{friend},public,public,{friend},{other}}}"));
    db.run(&format!("UPDATE corgipile.stored_models SET granted_to = '{{{{{friend},-}},{{-,{friend}}}}}'"));
    db.run(&format!("SELECT corgipile_revoke({id}, 'public')"));
    assert_eq!(db.line(shown), format!("{{{friend},{friend}}}"));
}

#[test]
fn a_null_is_an_error_and_changes_nothing() {
    let mut db = Database::with_small_table(50);
    db.train("'t', name => 'm', max_epochs => 1");
    for (call, argument) in [
        ("corgipile_rename('m', NULL)", "new_name"),
        ("corgipile_rename(NULL::bigint, 'n')", "model_id"),
        ("corgipile_grant('m', NULL)", "role"),
        ("corgipile_grant(NULL::text, 'public')", "name"),
        ("corgipile_revoke(1, NULL)", "role"),
        ("corgipile_deploy(NULL, 1)", "name"),
    ] {
        db.fails_with(&format!("SELECT {call}"), "22004").says(&[argument]);
    }
    assert_eq!(db.line("SELECT name FROM corgipile.models"), "m");
}

#[test]
fn a_sequence_that_lags_behind_is_told_from_a_version_that_another_has_stored() {
    let mut db = Database::with_small_table(50);
    let user = db.role("user");
    db.run("GRANT SELECT ON t TO PUBLIC");
    let mut u = db.session_as(&user);
    for name in ["m", "n"] {
        version(&mut u, name, 1);
    }
    let exported = u.line("SELECT corgipile_export('m')").replace('\'', "''");
    // as after a logical replication, which copies rows and leaves sequences alone
    let behind = "SELECT setval('corgipile.models_model_id_seq', 1, false)";
    let train = "SELECT FROM corgipile_train('t', max_epochs => 1, name => 'm')";
    for call in [
        train.to_owned(),
        "SELECT FROM corgipile_train('t', max_epochs => 1)".into(),
        "SELECT FROM corgipile_train_uda('t', max_epochs => 1)".into(),
        format!("SELECT corgipile_import('{exported}')"),
    ] {
        db.run(behind);
        let failure = u.rejects(&call, "55000");
        failure.says(&["model_id", "corgipile.models_model_id_seq"]).hints(&["setval", "owner"]);
        // The same again does not help; what the hint says does, if the right role does it.
        let mend = failure.hint.split_once(": ").expect("a statement").1.to_owned();
        assert!(mend.starts_with("SELECT setval(") && mend.ends_with(");"), "{mend}");
        u.rejects(&call, "55000");
        u.fails_with(&mend, "42501");
        db.run(&mend);
        u.run(&call);
    }
    // an index of an administrator's own says what it says
    db.run(
        "DELETE FROM corgipile.stored_models; CREATE UNIQUE INDEX one_per_source ON corgipile.stored_models (source)",
    );
    u.run(train);
    u.rejects(train, "23505").says(&["one_per_source"]);
}
