//! `corgipile_publish()`: a model on three servers, each with sessions in which Citus would run its parts of a query.

use corgipile_tests::{Database, Nodes, Session};
use std::time::Duration;

/// Every session in which part of another server's query runs.
const SERVING: &str = "SET application_name = 'citus_internal gpid=10000000001'";

/// Stores a model called so, whose predictions are this many times its feature.
fn import(session: &mut Session, name: &str, weight: i32) -> i64 {
    session.value(&format!(
        r#"SELECT corgipile_import('{{"corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8",
             "features": ["x"], "feature_kind": "columns", "weights": [{weight}], "intercepts": [0]}}', '{name}')"#
    ))
}

/// What a session that serves another server predicts for 1, with the model called so.
fn weight(session: &mut Session, name: &str) -> String {
    session.run(SERVING);
    let weight = session.line(&format!("SELECT corgipile_predict('{name}', 1)"));
    session.run("RESET application_name");
    weight
}

/// Asserts that a session that serves another server is refused the model called so.
fn is_refused(session: &mut Session, name: &str) {
    session.run(SERVING);
    let failure = session.fails_with(&format!("SELECT corgipile_predict('{name}', 1)"), "0A000");
    assert!(failure.message.starts_with(&format!("model \"{name}\" was not published")), "{failure:#?}");
    session.run("RESET application_name");
}

/// The models of a server, by their names and versions.
fn models(session: &mut Session) -> Vec<String> {
    session.lines("SELECT name, version, deployed, published FROM corgipile.models ORDER BY name, version")
}

/// Asserts that a session has no connection open, and no server any that is not the test's own.
fn nothing_is_left(nodes: &mut Nodes) {
    assert_eq!(nodes.near.line("SELECT dblink_get_connections() IS NULL"), "t");
    for mut session in nodes.sessions() {
        session.wait_for(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
            "0",
        );
        assert_eq!(session.line("SELECT count(*) FROM pg_prepared_xacts"), "0");
    }
}

#[test]
fn a_name_means_the_published_model_on_all_servers() {
    let Some(mut nodes) = Nodes::new(a_name_means_the_published_model_on_all_servers) else { return };
    let [mut north, mut south] = nodes.sessions();
    import(&mut nodes.near, "m", 2);
    // another model of the name, with versions that the first server has not
    import(&mut south, "m", 10);
    import(&mut south, "m", 11);
    for session in [&mut nodes.near, &mut north, &mut south] {
        is_refused(session, "m");
    }
    const PUBLISH: &str = "SELECT server, outcome, remote_version FROM corgipile_publish('m')";
    assert_eq!(nodes.near.lines(PUBLISH), ["north|stored|1", "south|stored|3"]);
    assert_eq!(nodes.near.lines(PUBLISH), ["north|present|1", "south|present|3"]);
    assert_eq!(weight(&mut north, "m"), "2");
    assert_eq!(weight(&mut south, "m"), "2");
    is_refused(&mut nodes.near, "m");
    let identity = nodes.near.line("SELECT identity FROM corgipile.models");
    for session in [&mut north, &mut south] {
        assert_eq!(session.line("SELECT identity FROM corgipile.models WHERE published"), identity);
        session.run(SERVING);
        let id = session.line("SELECT model_id FROM corgipile.models WHERE published");
        session.fails_with(&format!("SELECT corgipile_predict({id}, 1)"), "0A000").says(&[&id, "by its id"]);
        session.run("RESET application_name");
    }
    // what is trained there later does not change what the name means, nor does a version that was not published
    import(&mut south, "m", 12);
    import(&mut nodes.near, "m", 3);
    assert_eq!(weight(&mut south, "m"), "2");
    assert_eq!(nodes.near.lines(PUBLISH), ["north|stored|2", "south|stored|5"]);
    assert_eq!(weight(&mut north, "m"), "3");
    assert_eq!(weight(&mut south, "m"), "3");
    // and back, on one of them
    let back = "SELECT server, outcome, remote_version FROM corgipile_publish('m', 1, '{south}')";
    assert_eq!(nodes.near.lines(back), ["south|deployed|3"]);
    assert_eq!([weight(&mut north, "m"), weight(&mut south, "m")], ["3", "2"]);
    assert_eq!(models(&mut south), ["m|1|f|f", "m|2|f|f", "m|3|t|t", "m|4|f|f", "m|5|f|t"]);
    // another name of the same model, by its id
    let id = import(&mut nodes.near, "other", 7);
    let by_id = format!("SELECT server, outcome, remote_version FROM corgipile_publish({id}, '{{south,north,south}}')");
    assert_eq!(nodes.near.lines(&by_id), ["north|stored|1", "south|stored|1"]);
    nodes.near.run("SELECT corgipile_rename('other', 'm2')");
    assert_eq!(nodes.near.lines(&by_id), ["north|deployed|1", "south|deployed|1"]);
    assert_eq!([weight(&mut north, "m2"), weight(&mut south, "m2")], ["7", "7"]);
    is_refused(&mut north, "other");
    // what is deployed there by hand and was not published is refused
    south.run("SELECT corgipile_deploy('m', 4)");
    is_refused(&mut south, "m");
    assert_eq!(nodes.near.lines(back), ["south|deployed|3"]);
    assert_eq!(weight(&mut south, "m"), "2");
    // several servers that lead to one database
    let address = nodes.north.address("postgres");
    for name in ["again", "once_more"] {
        nodes.add_server(name, &address);
    }
    let third = "SELECT server, outcome, remote_version FROM corgipile_publish('third')";
    import(&mut nodes.near, "third", 4);
    assert_eq!(nodes.near.lines(third), ["again|stored|1", "north|present|1", "once_more|present|1", "south|stored|1"]);
    north.run("CREATE ROLE somebody LOGIN");
    nodes.near.run("ALTER USER MAPPING FOR CURRENT_USER SERVER once_more OPTIONS (SET user 'somebody')");
    nodes.near.fails_with(third, "55000").is(
        "55000",
        "server \"once_more\": it leads to the same database as server \"north\", as another role",
        "Name one of them in argument servers.",
    );
    drop((north, south));
    nothing_is_left(&mut nodes);
}

#[test]
fn rows_of_three_servers_are_predicted_by_the_published_model() {
    let Some(mut nodes) = Nodes::new(rows_of_three_servers_are_predicted_by_the_published_model) else { return };
    nodes.near.run(
        "CREATE TABLE t (id int, x real, label int) PARTITION BY RANGE (id);
         CREATE TABLE t_near PARTITION OF t FOR VALUES FROM (1) TO (1001);
         CREATE FOREIGN TABLE t_north PARTITION OF t FOR VALUES FROM (1001) TO (2001)
             SERVER north OPTIONS (table_name 't');
         CREATE FOREIGN TABLE t_south PARTITION OF t FOR VALUES FROM (2001) TO (3001)
             SERVER south OPTIONS (table_name 't')",
    );
    let [mut north, mut south] = nodes.sessions();
    for session in [&mut north, &mut south] {
        session.run("CREATE TABLE t (id int, x real, label int)");
    }
    nodes.near.run("INSERT INTO t SELECT i, i % 100, (i % 100 > 50)::int FROM generate_series(1, 3000) i");
    nodes.near.run("SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 5, seed => 1, name => 'm')");
    nodes.near.run("SELECT * FROM corgipile_publish('m')");
    let predictions =
        |where_: &str| format!("SELECT id, corgipile_predict_proba('m', x) FROM t WHERE {where_} ORDER BY id");
    for (session, part) in [(&mut north, "id BETWEEN 1001 AND 2000"), (&mut south, "id BETWEEN 2001 AND 3000")] {
        session.run(SERVING);
        let there = session.lines(&predictions("true"));
        assert_eq!(there.len(), 1000);
        assert_eq!(there, nodes.near.lines(&predictions(part)));
        let evaluated = session.line("SELECT value FROM corgipile_evaluate('m', 't') WHERE metric = 'accuracy'");
        assert!(evaluated.parse::<f64>().expect("a number") > 0.9, "{evaluated}");
        assert_eq!(
            session.line("SELECT corgipile_export('m')"),
            nodes.near.line("SELECT corgipile_export('m')"),
            "bit for bit, with its history"
        );
    }
}

/// Statements that fail, with SQLSTATE, message and hint; `...` stands for any text.
const REFUSED: [(&str, &str, &str, &str); 13] = [
    (
        "SELECT corgipile_publish('m', servers => '{}')",
        "22023",
        "invalid value for argument \"servers\": ...",
        "Leave it out...",
    ),
    (
        "SELECT corgipile_publish('m', servers => '{north,NULL}')",
        "22023",
        "invalid value for argument \"servers\": ...",
        "Leave it out...",
    ),
    (
        "SELECT corgipile_publish('m', servers => '{north,nobody}')",
        "42704",
        "there is no server \"nobody\" of postgres_fdw",
        "Servers are: north, south.",
    ),
    // of another wrapper, whose options dblink would take for a connection
    (
        "SELECT corgipile_publish('m', servers => '{files}')",
        "42704",
        "there is no server \"files\" of postgres_fdw",
        "Servers are: north, south.",
    ),
    ("SELECT corgipile_publish('m', 9)", "42704", "version 9 of model \"m\" does not exist", "See corgipile.models..."),
    ("SELECT corgipile_publish('nobody')", "42704", "model \"nobody\" does not exist", "..."),
    ("SELECT corgipile_publish(99)", "42704", "model 99 does not exist", "..."),
    ("SELECT corgipile_publish(NULL::text)", "22004", "argument \"name\" must not be null", "..."),
    ("SELECT corgipile_publish(NULL::bigint)", "22004", "argument \"model_id\" must not be null", "..."),
    (
        "SELECT corgipile_publish(model_id) FROM corgipile.models WHERE name IS NULL",
        "55000",
        "model ... has no name",
        "...corgipile_rename().",
    ),
    (
        "BEGIN READ ONLY; SELECT corgipile_publish('m')",
        "25006",
        "cannot execute corgipile_publish() in a read-only transaction",
        "...primary...",
    ),
    (
        "BEGIN; SELECT corgipile_comment('m', 'new'); SELECT corgipile_publish('m')",
        "55000",
        "model \"m\" was stored or changed by this transaction",
        "Commit first...",
    ),
    (
        "BEGIN; DROP EXTENSION dblink; SELECT corgipile_publish('m')",
        "55000",
        "extension dblink is not installed in this database",
        "Run CREATE EXTENSION dblink...",
    ),
];

#[test]
fn what_cannot_be_published_is_on_no_server() {
    let Some(mut nodes) = Nodes::new(what_cannot_be_published_is_on_no_server) else { return };
    import(&mut nodes.near, "m", 2);
    let document = nodes.near.line("SELECT corgipile_export('m') - 'name'");
    nodes.near.run(&format!(
        "SELECT corgipile_import('{document}');
         CREATE FOREIGN DATA WRAPPER files; CREATE SERVER files FOREIGN DATA WRAPPER files;
         CREATE USER MAPPING FOR CURRENT_USER SERVER files"
    ));
    for (sql, code, message, hint) in REFUSED {
        nodes.near.fails_with(sql, code).is(code, message, hint);
        nodes.near.run("ROLLBACK");
    }
    // what the second server has against it, the first one has not stored
    let [mut north, mut south] = nodes.sessions();
    south.run("CREATE ROLE somebody LOGIN");
    let mut somebody = nodes.south.session_as("somebody");
    import(&mut somebody, "m", 5);
    nodes.near.fails_with("SELECT corgipile_publish('m')", "42710").is(
        "42710",
        "server \"south\": another role has a model named \"m\" here",
        "Rename the model with corgipile_rename() where it was trained, and publish it again.",
    );
    assert_eq!(models(&mut north), [""; 0]);
    somebody.run("SELECT corgipile_drop('m')");
    for database in ["without", "reading", "latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"] {
        south.run(&format!("CREATE DATABASE {database}"));
    }
    nodes.south.session_in("latin").run("CREATE EXTENSION corgipile");
    nodes
        .south
        .session_in("reading")
        .run("CREATE EXTENSION corgipile; ALTER TABLE corgipile.stored_models ADD CHECK (name <> 'm')");
    for (database, code, message) in [
        ("without", "55000", "server \"west\": extension corgipile is not installed in its database"),
        ("reading", "23514", "server \"west\": new row for relation \"stored_models\" ..."),
        ("latin", "0A000", "server \"west\": the database's encoding is not UTF8"),
        ("nowhere", "08001", "server \"west\": could not establish connection"),
    ] {
        let address = nodes.south.address(database);
        nodes.add_server("west", &address);
        let failure = nodes.near.fails_with("SELECT corgipile_publish('m')", code);
        assert!(corgipile_tests::is_like(message, &failure.message), "{failure:#?}");
        assert_eq!(models(&mut north), [""; 0], "{database}");
        nodes.near.run("DROP SERVER west CASCADE");
    }
    // a standby
    let standby = nodes.south.standby();
    nodes.add_server("west", &standby.address("postgres"));
    let failure = nodes.near.fails_with("SELECT corgipile_publish('m')", "0A000");
    failure.says(&["server \"west\": cannot set transaction read-write mode during recovery"]);
    drop(standby);
    nodes.near.run("DROP SERVER west CASCADE");
    assert_eq!([models(&mut north), models(&mut south)], [[""; 0]; 2]);
    drop((north, south, somebody));
    nothing_is_left(&mut nodes);
    let all = "SELECT server, outcome FROM corgipile_publish('m')";
    assert_eq!(nodes.near.lines(all), ["north|stored", "south|stored"]);
}

#[test]
fn who_publishes_has_the_rights_of_the_mappings_and_no_others() {
    let Some(mut nodes) = Nodes::new(who_publishes_has_the_rights_of_the_mappings_and_no_others) else { return };
    let roles = ["alice", "bob"].map(|who| nodes.near.role(who));
    let [alice, bob] = &roles;
    for node in [&nodes.north, &nodes.south] {
        node.session().run("CREATE ROLE alice_there LOGIN; CREATE ROLE bob_there LOGIN");
        node.ask_for_password("alice_there", "secret");
    }
    let mut session = nodes.near.session_as(alice);
    import(&mut session, "m", 2);
    session.fails_with("SELECT corgipile_publish('m')", "42704").says(&["no server of postgres_fdw that you may use"]);
    nodes.near.run(&format!("GRANT USAGE ON FOREIGN SERVER north, south TO {alice}, {bob}"));
    session
        .fails_with("SELECT corgipile_publish('m')", "42704")
        .says(&["that you may use and have a user mapping for"]);
    let failure = session.fails_with("SELECT corgipile_publish('m', servers => '{north}')", "42704");
    failure.says(&["server \"north\": ", "user mapping not found"]);
    for (server, password) in [("north", "secret"), ("south", "wrong")] {
        nodes.near.run(&format!(
            "CREATE USER MAPPING FOR {alice} SERVER {server} OPTIONS (user 'alice_there', password '{password}')"
        ));
    }
    nodes.near.run(&format!("REVOKE USAGE ON FOREIGN SERVER north FROM {alice}"));
    session
        .fails_with("SELECT corgipile_publish('m', servers => '{north}')", "42501")
        .says(&["server \"north\": ", "permission"]);
    nodes.near.run(&format!("GRANT USAGE ON FOREIGN SERVER north TO {alice}"));
    session
        .fails_with("SELECT corgipile_publish('m')", "08001")
        .says(&["server \"south\": could not establish connection"]);
    let [mut north, mut south] = nodes.sessions();
    assert_eq!([models(&mut north), models(&mut south)], [[""; 0]; 2]);
    nodes.near.run(&format!("ALTER USER MAPPING FOR {alice} SERVER south OPTIONS (SET password 'secret')"));
    assert_eq!(session.lines("SELECT server, outcome FROM corgipile_publish('m')"), ["north|stored", "south|stored"]);
    for other in [&mut north, &mut south] {
        assert_eq!(other.line("SELECT owner, granted_to FROM corgipile.models"), "alice_there|{}");
    }
    // grants go to the roles that exist there, and only once
    let [only, nowhere] = &["only", "nowhere"].map(|who| nodes.near.role(who));
    north.run(&format!("CREATE ROLE {bob}; CREATE ROLE {only}"));
    south.run(&format!("CREATE ROLE {bob}"));
    let of_all = |what: &str| {
        let call = |role: &str, more: &str| format!("corgipile_{what}('m', '{role}'{more})");
        let predict = if what == "grant" { ", 'predict'" } else { "" };
        format!("SELECT {}, {}, {}, {}", call(bob, ""), call("public", predict), call(only, ""), call(nowhere, ""))
    };
    session.run(&of_all("grant"));
    let publish = format!("SET ROLE {alice}; SELECT server, outcome FROM corgipile_publish('m')");
    let told = nodes.near.notices(&[&publish]);
    let missing = format!(
        "roles to which the model is granted here do not exist there: {nowhere} on server \"north\"; {only}, {nowhere} on server \"south\""
    );
    assert!(told.contains(&missing), "{told}");
    let grants = "SELECT granted_to, predict_granted_to FROM corgipile.models";
    assert_eq!(north.line(grants), format!("{{{bob},{only}}}|{{public}}"));
    assert_eq!(south.line(grants), format!("{{{bob}}}|{{public}}"));
    let row = "SELECT xmin FROM corgipile.stored_models";
    let before = north.line(row);
    nodes.near.notices(&[&publish]);
    assert_eq!(north.line(row), before, "publishing again changes nothing");
    session.run(&of_all("revoke"));
    let mut alice_there = nodes.north.session_as("postgres");
    alice_there.run("SET ROLE alice_there");
    assert_eq!(weight(&mut alice_there, "m"), "2");
    // no others' models, whatever their names
    let mut bobs = nodes.near.session_as(bob);
    bobs.fails_with(&format!("SELECT corgipile_publish('{alice}.m')"), "42501");
    bobs.fails_with("SELECT corgipile_publish(1)", "42501");
    // without a password for it, no connection of the server's own
    nodes.near.run(&format!("CREATE USER MAPPING FOR {bob} SERVER south OPTIONS (user 'bob_there')"));
    import(&mut bobs, "bobs", 3);
    let failure = bobs.fails_with("SELECT corgipile_publish('bobs')", "2F003");
    failure.says(&["server \"south\": password", "required"]);
    // an identity is an owner's: another's model of the same one takes no one's place
    let identity = nodes.near.line("SELECT identity FROM corgipile.models WHERE name = 'm'");
    let document = bobs.line("SELECT corgipile_export('bobs')");
    let mut bob_there = nodes.south.session_as("bob_there");
    bob_there.run(&format!("SELECT corgipile.receive_model('{identity}', '{document}')"));
    assert_eq!(session.line("SELECT outcome FROM corgipile_publish('m', servers => '{south}')"), "present");
    let taken =
        format!("SELECT corgipile.receive_model(gen_random_uuid(), '{document}'::jsonb || '{{\"name\": \"m\"}}')");
    bob_there.fails_with(&taken, "42710");
    south.run("SET ROLE alice_there");
    assert_eq!(weight(&mut south, "m"), "2");
    is_refused(&mut south, "bobs_");
    drop((north, south, alice_there, bob_there));
    nothing_is_left(&mut nodes);
}

#[test]
fn whatever_is_received_is_checked() {
    let mut db = Database::new();
    import(&mut db, "m", 2);
    let document = db.line("SELECT corgipile_export('m')");
    let receive = |document: &str| format!("SELECT * FROM corgipile.receive_model(gen_random_uuid(), {document})");
    for (document, code) in [
        ("NULL".to_owned(), "22004"),
        ("'[]'".to_owned(), "22023"),
        ("'{}'".to_owned(), "22023"),
        (format!("'{document}'::jsonb - 'name'"), "22023"),
        (format!("'{document}'::jsonb || '{{\"name\": \"\"}}'"), "22023"),
        (format!("'{document}'::jsonb || jsonb_build_object('name', repeat('x', 1025))"), "22023"),
        (format!("'{document}'::jsonb || '{{\"weights\": \"AAAA\"}}'"), "22023"),
        (format!("'{document}'::jsonb || '{{\"weights\": [1, 2]}}'"), "22023"),
        (format!("'{document}'::jsonb || '{{\"label_type\": \"nothing\"}}'"), "22023"),
    ] {
        db.rejects(&receive(&document), code);
    }
    db.rejects(&format!("SELECT corgipile.receive_model(NULL, '{document}')"), "22004");
    db.run("BEGIN READ ONLY");
    db.fails_with(&receive(&format!("'{document}'")), "25006");
    db.run("ROLLBACK");
    // as the name's next version, though a newer one may not have come from here
    let received =
        db.line(&format!("SELECT outcome, version FROM corgipile.receive_model(gen_random_uuid(), '{document}')"));
    assert_eq!(received, "stored|2");
    let mut later = db.session();
    later.run("BEGIN");
    later.run(&receive(&format!("'{document}'")));
    // who brings another model of the name waits, and is the next
    let waiting = db.session().in_background(&receive(&format!("'{document}'")));
    db.wait_for_waiters(1);
    later.run("COMMIT");
    let (_, result) = waiting.join();
    assert!(result.expect("it is stored")[0].ends_with("|4"));
    assert_eq!(models(&mut db), ["m|1|f|f", "m|2|f|t", "m|3|f|t", "m|4|t|t"]);
}

#[test]
fn identities_are_kept_and_every_version_has_its_own() {
    let mut db = Database::new();
    for weight in [1, 2, 3] {
        import(&mut db, "m", weight);
    }
    assert_eq!(db.line("SELECT count(DISTINCT identity), bool_or(published) FROM corgipile.models"), "3|f");
    let before = db.lines("SELECT model_id, identity FROM corgipile.models ORDER BY 1");
    db.run("SELECT corgipile_deploy('m', 2), corgipile_comment('m', 'good'), corgipile_grant('m', 'public')");
    db.run("SELECT corgipile_rename(1, 'n')");
    assert_eq!(db.lines("SELECT model_id, identity FROM corgipile.models ORDER BY 1"), before);
    let role = db.role("alice");
    db.session_as(&role).fails_with("UPDATE corgipile.stored_models SET published = true", "42501");
}

#[test]
fn what_is_stopped_leaves_nothing_on_any_server() {
    let Some(mut nodes) = Nodes::new(what_is_stopped_leaves_nothing_on_any_server) else { return };
    import(&mut nodes.near, "m", 2);
    let [mut north, mut south] = nodes.sessions();
    // the second server has it wait for a transaction that stores a version of the name
    let mut holding = nodes.south.session();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    const PUBLISH: &str = "SELECT server, outcome FROM corgipile_publish('m')";
    let stops: [(&str, &str); 4] = [
        ("pg_cancel_backend", "57014"),
        ("pg_terminate_backend", "57P01"),
        ("there pg_cancel_backend", "57014"),
        ("there pg_terminate_backend", "57P01"),
    ];
    for (stop, code) in stops {
        holding.run("BEGIN");
        import(&mut holding, "m", 10);
        let mut session = nodes.near.session();
        let pid = session.pid();
        let publishing = session.in_background(PUBLISH);
        south.wait_for(waiting, "1");
        match stop.strip_prefix("there ") {
            None => nodes.near.run(&format!("SELECT {stop}({pid})")),
            Some(stop) => {
                south.run(&format!("SELECT {stop}(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"));
            }
        }
        let (session, stopped) = publishing.stopped_within(Duration::from_secs(60));
        // whose session ends may or may not hear of it before the connection does
        assert!(stopped == code || (stop == "pg_terminate_backend" && stopped == "closed"), "{stop}: {stopped}");
        assert_eq!(models(&mut north), [""; 0], "{stop}");
        if stop != "pg_terminate_backend" {
            let mut session = session;
            assert_eq!(session.line("SELECT dblink_get_connections() IS NULL"), "t");
        }
        holding.run("ROLLBACK");
        south.wait_for(waiting, "0");
        assert_eq!(models(&mut south), [""; 0], "{stop}");
    }
    // the error of a wait that is too long says where
    holding.run("BEGIN");
    import(&mut holding, "m", 10);
    let failure = nodes.near.fails_with(PUBLISH, "55P03");
    failure.says(&["server \"south\": canceling statement due to lock timeout"]);
    holding.run("ROLLBACK");
    assert_eq!([models(&mut north), models(&mut south)], [[""; 0]; 2]);
    // one that refuses at its commit, by a trigger that is deferred to it, where the other has committed by then
    south.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END';
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON corgipile.stored_models DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let failure = nodes.near.fails_with(PUBLISH, "P0001");
    assert_eq!(
        (failure.message.as_str(), failure.detail.as_str(), failure.hint.as_str()),
        (
            "server \"south\": no",
            "The model is on these servers: north; and may be on these: south.",
            "Publish it again: where it is, nothing changes."
        )
    );
    assert_eq!([weight(&mut north, "m"), models(&mut south).len().to_string()], ["2", "0"]);
    south.run("DROP TRIGGER refuse ON corgipile.stored_models");
    assert_eq!(nodes.near.lines(PUBLISH), ["north|present", "south|stored"]);
    drop((holding, north, south));
    nothing_is_left(&mut nodes);
}
