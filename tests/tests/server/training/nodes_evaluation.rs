//! Models that are judged where the rows are, on three private servers: every metric is that of one server with all
//! rows, and whatever is in the way is reported, or ends everything everywhere.

use super::nodes::Spread;
use corgipile_tests::Session;
use std::time::Duration;

/// Metrics that are counts, or quotients of counts: equal to the last bit.
const COUNTED: [&str; 9] =
    ["accuracy", "tuples", "skipped", "roc_auc", "precision", "recall", "f1", "confusion", "fraction_below"];

/// What an evaluation says, in its sequence.
fn metrics(near: &mut Session, arguments: &str) -> Vec<(String, Option<f64>)> {
    let rows = near.rows(&format!("SELECT metric, value FROM corgipile_evaluate({arguments})"), &[]);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Asserts that a model is worth the same by a table on three servers and by all of its rows on one.
pub fn assert_same(near: &mut Session, model: &str, there: &str, here: &str, more: &str) {
    let what = format!("{model} on {there}{more}");
    let on_nodes = metrics(near, &format!("'{model}', $${there}$${more}, servers => 'east,north,south'"));
    let on_one = metrics(near, &format!("'{model}', $${here}$${more}"));
    assert_eq!(on_nodes.len(), on_one.len(), "{what}");
    for ((name, there), (other, here)) in on_nodes.into_iter().zip(on_one) {
        assert_eq!(name, other, "{what}");
        let is_counted = COUNTED.contains(&name.split('[').next().unwrap_or_default());
        match (there, here) {
            (Some(there), Some(here)) if !is_counted => {
                assert!((there - here).abs() <= 1e-9 * here.abs().max(1e-3), "{what}: {name} {there} {here}");
            }
            _ => assert_eq!(there, here, "{what}: {name}"),
        }
    }
}

/// Models of every kind, by their names.
const MODELS: [(&str, &str); 14] = [
    ("logistic", "label => 'half', features => '{a,b,cat}'"),
    ("svm", "label => 'half', features => '{v}', model => 'svm'"),
    ("fitted svm", "label => 'half', features => '{a,b}', model => 'svm', options => '{\"probability\": true}'"),
    ("sparse", "label => 'half', features => '{k,kv}', optimizer => 'adam', learning_rate => 0.01"),
    ("nulls", "label => 'half', features => '{a,c,cat}', options => '{\"nulls\": \"impute\"}'"),
    ("linear", "label => 'y', features => '{a,b}', model => 'linear'"),
    ("huber", "label => 'y', features => '{a,b}', model => 'huber'"),
    ("quantile", "label => 'y', features => '{a,b}', model => 'quantile', options => '{\"quantile\": 0.8}'"),
    ("poisson", "label => 'half', features => '{a,b}', model => 'poisson'"),
    ("svm of three", "label => 'class', features => '{a,b}', model => 'svm'"),
    ("softmax", "label => 'class', features => '{a,b,cat}', model => 'softmax'"),
    ("network", "label => 'class', features => '{a,b}', model => 'mlp', hidden_layer_sizes => '{6}'"),
    ("network of two", "label => 'half', features => '{v}', model => 'mlp', hidden_layer_sizes => '{6}'"),
    (
        "network of numbers",
        "label => 'y', features => '{a,b,cat}', model => 'mlp', hidden_layer_sizes => '{6}', options => '{\"objective\": \"regression\"}'",
    ),
];

/// Trains them here.
fn train_all(near: &mut Session) {
    for (name, arguments) in MODELS {
        near.train(&format!("'base', {arguments}, name => '{name}', max_epochs => 3, seed => 1"));
    }
}

#[test]
fn servers_judge_a_model_as_one_server_with_all_rows_does() {
    let Some(mut spread) = Spread::new(servers_judge_a_model_as_one_server_with_all_rows_does) else { return };
    spread.by_hash();
    spread.by_label();
    spread.spread("by_half", "LIST (half)", ["IN (1)", "IN (7)", "IN (0)"]);
    spread.one_empty();
    let near = spread.near();
    train_all(near);
    for table in ["t", "by_label", "by_half", "one_empty"] {
        for (model, _) in MODELS {
            assert_same(near, model, table, "base", "");
        }
    }
    for condition in ["WHERE id % 3 = 0 AND cat <> 'grey'", "WHERE class <> 1", "WHERE half = 1"] {
        for model in ["logistic", "linear", "softmax"] {
            let source = |table: &str| format!("SELECT * FROM {table} {condition}");
            assert_same(near, model, &source("t"), &source("base"), "");
        }
    }
    for more in ["nulls => 'skip'", "nulls => 'impute'"] {
        assert_same(near, "nulls", "t", "base", &format!(", {more}"));
    }
    assert_eq!(near.models(), MODELS.len() as i64);
    for mut session in spread.sessions() {
        assert_eq!(session.models(), 0, "nothing is stored where the rows are");
    }
}

#[test]
fn areas_of_rows_on_servers_are_those_of_all_pairs() {
    let Some(mut spread) = Spread::new(areas_of_rows_on_servers_are_those_of_all_pairs) else { return };
    spread.by_hash();
    let near = spread.near();
    train_all(near);
    // three values of b: most pairs are ties
    for source in ["SELECT * FROM t", "SELECT half, class, a, cat, v, (b > 4)::int::real AS b FROM base"] {
        let is_here = source.ends_with("base");
        let nodes = if is_here { "off" } else { "auto" };
        for (model, column, classes) in
            [("logistic", "half", &[1][..]), ("network of two", "half", &[1]), ("softmax", "class", &[0, 1, 2])]
        {
            let expected: f64 = classes
                .iter()
                .map(|class| {
                    near.value::<f64>(&format!(
                        "WITH s AS MATERIALIZED (SELECT {column} = {class} AS is_it,
                                (corgipile_predict_proba('{model}', r))[1 + {class}] AS p FROM ({source}) r)
                         SELECT avg(CASE WHEN p.p > n.p THEN 1 WHEN p.p = n.p THEN 0.5 ELSE 0 END)::float8
                         FROM s AS p, s AS n WHERE p.is_it AND NOT n.is_it"
                    ))
                })
                .sum::<f64>()
                / classes.len() as f64;
            let all = metrics(near, &format!("'{model}', $${source}$$, servers => '{nodes}'"));
            let area = all.iter().find(|(name, _)| name == "roc_auc").and_then(|(_, value)| *value).expect("an area");
            assert!((area - expected).abs() < 1e-12, "{model}, {source}: {area} {expected}");
        }
    }
}

#[test]
fn scores_of_many_rows_come_in_pieces() {
    let Some(mut spread) = Spread::new(scores_of_many_rows_come_in_pieces) else { return };
    // of the first, rows take several pieces; the third has fewer than the others, and ties with them
    let rows = |server: u32, count: u32| {
        format!(
            "SELECT (i % 3 = 0)::int AS label, (hashint4(i * 3 + {server}) / 2147483648.0 + (i % 3) / 8.0)::real AS a,
                    (hashint4(i) / 2147483648.0)::real AS b FROM generate_series(1, {count}) i"
        )
    };
    let counts = [130_000, 70_000, 999];
    for (server, mut session) in (0..).zip(spread.sessions()) {
        let create = format!("CREATE TABLE many AS {}", rows(server, counts[server as usize]));
        session.run(&format!("ALTER DATABASE postgres SET work_mem = '64kB'; {create}"));
    }
    let near = spread.near();
    let all = [0, 1, 2].map(|server| rows(server, counts[server as usize])).join(" UNION ALL ");
    near.run(&format!("CREATE TABLE here AS {all}"));
    for server in ["east", "north", "south"] {
        near.run(&format!(
            "CREATE FOREIGN TABLE many_{server} (label int, a real, b real) SERVER {server} OPTIONS (table_name 'many')"
        ));
    }
    near.train("'here', features => '{a,b}', name => 'm', max_epochs => 1, seed => 1");
    let there = "SELECT * FROM many_east UNION ALL SELECT * FROM many_north UNION ALL SELECT * FROM many_south";
    assert_same(near, "m", there, "here", "");
    near.train("'here', features => '{a,b}', name => 'm3', model => 'softmax', max_epochs => 1, seed => 1");
    assert_same(near, "m3", there, "here", "");
}

#[test]
fn what_is_told_of_rows_is_told_of_all_servers_together() {
    let Some(mut spread) = Spread::new(what_is_told_of_rows_is_told_of_all_servers_together) else { return };
    spread.by_hash();
    let near = spread.near();
    train_all(near);
    near.train(
        "'SELECT * FROM base WHERE cat <> ''grey''', label => 'half', features => '{a,c,cat}', name => 'no grey', max_epochs => 1,
         options => '{\"nulls\": \"impute\", \"handle_unknown\": \"ignore\"}'",
    );
    for (model, more) in [("nulls", ""), ("nulls", ", nulls => 'skip'"), ("no grey", ""), ("logistic", "")] {
        let call =
            |table: &str, nodes: &str| format!("SELECT * FROM corgipile_evaluate('{model}', '{table}'{more}{nodes})");
        let there = spread.nodes.near.notices(&[&call("t", ", servers => 'east,north,south'")]);
        let here = spread.nodes.near.notices(&[&call("base", "")]);
        assert_eq!(there, here, "{model}{more}");
        assert_eq!(there.is_empty(), model == "logistic", "{model}{more}: {there}");
    }
    let message = spread
        .near()
        .fails_with(
            "SELECT * FROM corgipile_evaluate('logistic', 'SELECT * FROM t WHERE id < 0', servers => 'auto')",
            "22000",
        )
        .message;
    assert_eq!(message, "there are no rows to evaluate on");
}

#[test]
fn rows_that_cannot_be_judged_there_come_here_or_are_an_error() {
    let Some(mut spread) = Spread::new(rows_that_cannot_be_judged_there_come_here_or_are_an_error) else { return };
    spread.by_hash();
    train_all(spread.near());
    let call = |source: &str, nodes: &str| {
        format!(
            "SELECT value FROM corgipile_evaluate('logistic', '{source}', servers => '{nodes}') WHERE metric = 'tuples'"
        )
    };
    let is_told = |spread: &mut Spread, source: &str, why: &str, code: &str, rows: &str| {
        let notices = spread.nodes.near.notices(&[&call(source, "auto")]);
        assert!(
            notices.contains(&format!("the rows are fetched to this server to be evaluated on: {why}\n")),
            "{source}: {notices}"
        );
        assert_eq!(spread.near().line(&call(source, "auto")), rows);
        spread.near().fails_with(&call(source, "east,north,south"), code).message
    };
    for (source, why, rows) in [
        ("base", "the source is a table of this server", "1200"),
        (
            "SELECT * FROM t ORDER BY id LIMIT 50",
            "some of its rows are on this server, or it does more than read and filter",
            "50",
        ),
        ("SELECT * FROM t WHERE random() >= 0", "a filter is not one that postgres_fdw sends to the server", "1200"),
    ] {
        let message = is_told(&mut spread, source, why, "0A000", rows);
        assert_eq!(message, format!("the rows cannot be evaluated on where they are: {why}"), "{source}");
    }
    let message = spread.near().fails_with(&call("t", "east,north"), "0A000").message;
    assert!(message.ends_with("some rows are on server \"south\", which is not named"), "{message}");
    for wrong in ["", "east,,north", "east,east"] {
        let failure = spread.near().fails_with(&call("t", wrong), "22023");
        assert!(failure.message.contains("servers"), "{failure:#?}");
    }
    // what the transaction has written is seen
    spread.near().run("BEGIN; DELETE FROM t WHERE id <= 100");
    assert_eq!(spread.near().line(&call("t", "auto")), "1100");
    spread.near().fails_with(&call("t", "east,north,south"), "0A000");
    spread.near().run("ROLLBACK");
    // servers that are not alike
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'corgipile'");
    let here: String = spread.near().value("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'");
    let why = format!("server \"north\": it has version 0.0.1 of extension corgipile, this server {here}");
    assert_eq!(is_told(&mut spread, "t", &why, "55000", "1200"), why);
    north.run("DROP EXTENSION corgipile");
    let why = "server \"north\": extension corgipile is not installed in its database";
    assert_eq!(is_told(&mut spread, "t", why, "55000", "1200"), why);
    north.run("CREATE EXTENSION corgipile; ALTER TABLE t ALTER a TYPE float8");
    let why = "server \"north\": column \"a\" has type double precision there, and real here";
    assert_eq!(is_told(&mut spread, "t", why, "42804", "1200"), why);
    north.run("ALTER TABLE t ALTER a TYPE real");
    assert_eq!(spread.near().line(&call("t", "north,south,east")), "1200");
    // rows that the model cannot judge
    north.run("UPDATE t SET cat = 'pink' WHERE id = (SELECT max(id) FROM t)");
    let strict = call("t", "auto").replace("'t'", "'t', handle_unknown => 'error'");
    let failure = spread.near().fails_with(&strict, "22023");
    assert!(failure.message.starts_with("server \"north\": ") && failure.message.contains("pink"), "{failure:#?}");
    north.run("UPDATE t SET cat = 'red', half = 2 WHERE id = (SELECT max(id) FROM t)");
    let failure = spread.near().fails_with(&call("t", "auto"), "22023");
    assert!(failure.message.starts_with("server \"north\": "), "{failure:#?}");
    north.run("UPDATE t SET half = 1 WHERE half = 2");
    // a server that answers what no server answers, and one that is not there
    let step = "FUNCTION corgipile.node_step(bytea)";
    north.run(&format!(
        "ALTER {step} RENAME TO real_step; CREATE {step} RETURNS bytea LANGUAGE sql AS 'SELECT ''\\x00''::bytea'"
    ));
    let failure = spread.near().fails_with(&call("t", "auto"), "08P01");
    assert_eq!(failure.message, "server \"north\": unexpected reply");
    spread.near().run("ALTER SERVER south OPTIONS (SET port '1')");
    let failure = spread.near().fails_with(&call("t", "east,north,south"), "08001");
    assert!(failure.message.starts_with("server \"south\": "), "{failure:#?}");
    // whom postgres_fdw does not find either
    let notices = spread.nodes.near.notices(&[&call("t", "auto")]);
    assert!(notices.contains("to be evaluated on: server \"south\": could not establish connection: "), "{notices}");
    spread.near().fails_with(&call("t", "auto"), "08001");
}

#[test]
fn who_judges_has_the_rights_of_the_mappings_and_no_others() {
    let Some(mut spread) = Spread::new(who_judges_has_the_rights_of_the_mappings_and_no_others) else { return };
    spread.by_hash();
    train_all(spread.near());
    let role = spread.nodes.near.role("reader");
    spread.near().run(&format!(
        "GRANT SELECT ON t TO {role}; GRANT USAGE ON FOREIGN SERVER east, north, south TO {role};
         SELECT corgipile_grant('logistic', '{role}'), corgipile_grant('nulls', '{role}')"
    ));
    for (server, cluster) in [("east", &spread.east), ("north", &spread.nodes.north), ("south", &spread.nodes.south)] {
        cluster.session().run(
            "CREATE ROLE far LOGIN; GRANT SELECT (half, a, b, cat) ON t TO far;
             GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO far",
        );
        cluster.ask_for_password("far", "secret");
        spread
            .nodes
            .near
            .run(&format!("CREATE USER MAPPING FOR {role} SERVER {server} OPTIONS (user 'far', password 'secret')"));
    }
    let id = |near: &mut Session, model: &str| -> i64 {
        near.value(&format!("SELECT model_id FROM corgipile.models WHERE name = '{model}'"))
    };
    let (logistic, nulls) = (id(spread.near(), "logistic"), id(spread.near(), "nulls"));
    let mut reader = spread.nodes.near.session_as(&role);
    let call = |model: i64| {
        format!(
            "SELECT value FROM corgipile_evaluate({model}, 't', servers => 'east,north,south') WHERE metric = 'tuples'"
        )
    };
    assert_eq!(reader.lines(&call(logistic)), ["1200"]);
    let failure = reader.fails_with(&call(nulls), "42501");
    assert!(failure.message.contains("permission denied for table t"), "{failure:#?}");
    assert!(failure.message.starts_with("server \"east\": "), "{failure:#?}");
}

#[test]
fn what_stops_an_evaluation_stops_it_on_every_server() {
    let Some(mut spread) = Spread::new(what_stops_an_evaluation_stops_it_on_every_server) else { return };
    spread.by_hash();
    train_all(spread.near());
    let [mut east, mut north, mut south] = spread.sessions();
    // one server has not done when the others have
    south.run(
        "ALTER TABLE t RENAME TO rows;
         CREATE VIEW t AS SELECT * FROM rows WHERE id % 100 > 0 OR pg_catalog.pg_sleep(60) IS NOT NULL",
    );
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%corgipile.node_step%' AND pid <> pg_backend_pid()";
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%corgipile.node_step%' AND pid <> pg_backend_pid()";
    for (stop, codes) in [("cancel", &["57014"][..]), ("end a node", &["57P01", "08006"])] {
        let session = spread.nodes.near.session();
        let token = session.cancel_token();
        let background =
            session.in_background("SELECT * FROM corgipile_evaluate('softmax', 't', servers => 'east,north,south')");
        for node in [&mut east, &mut north, &mut south] {
            node.wait_for(sessions, "1");
        }
        std::thread::sleep(Duration::from_millis(200));
        match stop {
            "cancel" => token.cancel_query(postgres::NoTls).expect("it can be cancelled"),
            _ => south.run(end),
        }
        let (_, result) = background.join();
        let failure = result.expect_err("it was stopped");
        assert!(codes.contains(&failure.code.as_str()), "{stop}: {failure:#?}");
        assert!(stop == "cancel" || failure.message.starts_with("server \"south\": "), "{stop}: {failure:#?}");
        for node in [&mut east, &mut north, &mut south] {
            node.wait_for(sessions, "0");
        }
    }
}
