//! Training where the rows are, on three private servers: what is learned is what one server with all rows learns from
//! them in the same sequence, and whatever is in the way is reported, or ends everything everywhere.

use corgipile_tests::{Cluster, Database, Nodes, Session, sample};

pub const COLUMNS: &str = "id int, half int, class int, y real, a real, b real, c float8, cat text, v real[], k int[], kv real[], w real, held boolean";

/// This many rows with features of all kinds.
pub fn rows(count: u32) -> String {
    format!(
        "SELECT i, (s + normal(i, 9) > 0)::int, CASE WHEN s < -0.5 THEN 0 WHEN s < 0.5 THEN 1 ELSE 2 END, (10 + 3 * s)::real,
                (s + normal(i, 1))::real, (5 - 2 * s + normal(i, 2))::real, CASE WHEN i % 11 > 0 THEN exp(3 * normal(i, 3)) END,
                (ARRAY['red','green','blue','grey'])[1 + i % 4], ARRAY[s + normal(i, 4), normal(i, 5), 1]::real[],
                ARRAY[1 + i % 7, 8 + i % 5, 13 + (s > 0)::int], ARRAY[s, 1, 0.5]::real[], (1 + i % 3)::real, i % 5 = 0
         FROM (SELECT i, normal(i, 0) AS s FROM generate_series(1, {count}::bigint) i) r"
    )
}

/// Three private servers of which `near` knows `north`, `south` and `east`, and the first of them.
pub struct Spread {
    pub nodes: Nodes,
    pub east: Cluster,
}

impl Spread {
    pub fn new<T>(test: T) -> Option<Self> {
        let mut nodes = Nodes::new(test)?;
        let east = Cluster::new(&[]);
        nodes.add_server("east", &east.address("postgres"));
        nodes.near.run(&format!("CREATE TABLE base ({COLUMNS}); INSERT INTO base {}", rows(1200)));
        Some(Self { nodes, east })
    }

    pub fn near(&mut self) -> &mut Session {
        &mut self.nodes.near
    }

    pub fn sessions(&self) -> [Session; 3] {
        let [north, south] = self.nodes.sessions();
        [self.east.session(), north, south]
    }

    /// Makes a table of this name, spread over the servers by `partition`, each of which has the rows of its bounds,
    /// and `{name}_dealt` here, with its rows in the sequence in which nodes take turns.
    pub fn spread(&mut self, name: &str, partition: &str, bounds: [&str; 3]) {
        for mut session in self.sessions() {
            session.run(&format!("CREATE TABLE {name} ({COLUMNS})"));
        }
        let near = self.near();
        near.run(&format!("CREATE TABLE {name} ({COLUMNS}) PARTITION BY {partition}"));
        for (server, bounds) in ["east", "north", "south"].iter().zip(bounds) {
            near.run(&format!(
                "CREATE FOREIGN TABLE {name}_{server} PARTITION OF {name} FOR VALUES {bounds}
                     SERVER {server} OPTIONS (table_name '{name}', batch_size '500')"
            ));
        }
        near.run(&format!(
            "INSERT INTO {name} SELECT * FROM base ORDER BY id;
             CREATE TABLE {name}_dealt ({COLUMNS});
             INSERT INTO {name}_dealt SELECT id, half, class, y, a, b, c, cat, v, k, kv, w, held
             FROM (SELECT *, (row_number() OVER (PARTITION BY tableoid ORDER BY id) - 0.5::float8)
                                 / count(*) OVER (PARTITION BY tableoid) AS turn, tableoid::regclass::text AS server
                   FROM {name}) s ORDER BY turn, server"
        ));
    }

    /// `t`, of which each server has a third of the rows.
    pub fn by_hash(&mut self) {
        let bounds = [0, 1, 2].map(|i| format!("WITH (MODULUS 3, REMAINDER {i})"));
        self.spread("t", "HASH (id)", [&bounds[0], &bounds[1], &bounds[2]]);
    }

    /// `by_range`, of which the servers have parts of different sizes.
    pub fn by_range(&mut self) {
        let bounds = ["FROM (MINVALUE) TO (100)", "FROM (100) TO (900)", "FROM (900) TO (MAXVALUE)"];
        self.spread("by_range", "RANGE (id)", bounds);
    }

    /// `by_label`, of which each server has the rows of a class.
    pub fn by_label(&mut self) {
        self.spread("by_label", "LIST (class)", ["IN (2)", "IN (0)", "IN (1)"]);
    }

    /// `one_empty`, of which a server has no rows.
    pub fn one_empty(&mut self) {
        self.spread("one_empty", "LIST (class)", ["IN (0, 1)", "IN (7)", "IN (2)"]);
    }
}

/// The same training on nodes and on one server, in the natural order; their parameters.
fn both(near: &mut Session, table: &str, arguments: &str) -> [Vec<f64>; 2] {
    // which one server chooses by its rows
    let no_penalty = if arguments.contains("cat") && !arguments.contains("l2 =>") { ", l2 => 0" } else { "" };
    let in_order =
        format!("{arguments}{no_penalty}, shuffle => 'no_shuffle', buffer_size => '100%', seed => 1, max_epochs => 4");
    let there = near.trained(&format!("'{table}', servers => 'east,north,south', {in_order}"));
    let here = near.trained(&format!("'{table}_dealt', {in_order}"));
    [there.parameters(), here.parameters()]
}

/// Asserts that parameters are equal but for rounding. Weights that l1 holds at 0 are small on nodes, and 0 on one
/// server.
pub fn assert_equal([there, here]: [Vec<f64>; 2], what: &str) {
    assert_eq!(there.len(), here.len(), "{what}");
    let largest = here.iter().fold(0.0_f64, |largest, w| largest.max(w.abs()));
    for (a, b) in there.iter().zip(&here) {
        let bound = if what.contains("l1") && *b == 0.0 { 0.01 } else { 1e-5 };
        assert!((a - b).abs() <= bound * largest, "{what}: {a} {b}\n{there:?}\n{here:?}");
    }
}

/// Every kind of model and of features.
const TRAININGS: [&str; 19] = [
    "label => 'half', features => '{a,b}'",
    "label => 'half', features => '{a,b}', standardize => false, learning_rate => 0.01",
    "label => 'half', features => '{v}', model => 'svm', optimizer => 'momentum'",
    "label => 'half', features => '{a,b,cat}', class_weight => 'balanced'",
    "label => 'half', features => '{a,b}', class_weight => '{\"0\": 2}', l2 => 0.01",
    "label => 'half', features => '{a,c}', l1 => 0.001, options => '{\"weight\": \"w\"}'",
    "label => 'half', features => '{k,kv}', optimizer => 'adam', learning_rate => 0.01",
    "label => 'half', features => '{k,kv}', l1 => 0.001, standardize => true",
    "label => 'y', features => '{a,b,c}', model => 'linear'",
    "label => 'y', features => '{a,b,c}', model => 'huber'",
    "label => 'y', features => '{a,b}', model => 'quantile', options => '{\"quantile\": 0.8}'",
    "label => 'y', features => '{a,b}', model => 'epsilon_insensitive', options => '{\"loss_epsilon\": 0.5}'",
    "label => 'half', features => '{a,b}', model => 'poisson'",
    "label => 'class', features => '{a,b}', model => 'svm'",
    "label => 'class', features => '{a,b,cat}', model => 'softmax'",
    "label => 'class', features => '{v}', model => 'softmax', schedule => 'theorem1', options => '{\"mu\": 0.1, \"a\": 100}'",
    "label => 'class', features => '{a,b,c}', model => 'mlp', hidden_layer_sizes => '{6}', learning_rate => 0.01",
    "label => 'class', features => '{k,kv}', model => 'mlp', hidden_layer_sizes => '{5,4}', learning_rate => 0.01",
    "label => 'y', features => '{a,b,cat}', model => 'mlp', hidden_layer_sizes => '{6}', learning_rate => 0.01, options => '{\"objective\": \"regression\"}'",
];

#[test]
fn nodes_learn_what_one_server_with_all_rows_learns() {
    let Some(mut spread) = Spread::new(nodes_learn_what_one_server_with_all_rows_learns) else { return };
    spread.by_hash();
    spread.by_range();
    spread.by_label();
    spread.one_empty();
    for table in &["t", "one_empty", "by_range", "by_label"][..sample(4, 2)] {
        for training in TRAININGS {
            for batch_size in &[64, 256][..if *table == "t" { sample(2, 1) } else { 1 }] {
                let arguments = format!("{training}, batch_size => {batch_size}");
                assert_equal(both(spread.near(), table, &arguments), &format!("{table}, {arguments}"));
            }
        }
    }
    for mut session in spread.sessions() {
        assert_eq!(session.models(), 0, "the model is stored where it was asked for");
    }
}

#[test]
fn buffers_of_every_order_have_every_row_once() {
    let Some(mut spread) = Spread::new(buffers_of_every_order_have_every_row_once) else { return };
    spread.spread("t", "RANGE (id)", ["FROM (MINVALUE) TO (50)", "FROM (50) TO (700)", "FROM (700) TO (MAXVALUE)"]);
    for strategy in ["corgipile", "block_only", "shuffle_once", "epoch_shuffle", "no_shuffle"] {
        for batch_size in &[1, 1000, 10, 5000][..sample(4, 2)] {
            let arguments = format!(
                "'SELECT half, a, b FROM t WHERE id % 2 = 0', label => 'half', servers => 'auto', shuffle => '{strategy}', seed => 3,
                 batch_size => {batch_size}, max_epochs => 3, block_size => '8kB', buffer_size => '20%'"
            );
            let first = spread.near().train(&arguments);
            assert!(first.iter().all(|epoch| epoch.tuples == 600), "{arguments}: {first:?}");
            let again = spread.near().train(&arguments);
            let bits = |id| spread.nodes.near.model(id).bits();
            let [one, other] = [&first, &again].map(|epochs| epochs[0].model_id).map(bits);
            assert_eq!(one, other, "{arguments}: a seed fixes the model");
        }
    }
}

#[test]
fn early_stopping_and_explain_know_of_nodes() {
    let Some(mut spread) = Spread::new(early_stopping_and_explain_know_of_nodes) else { return };
    spread.by_hash();
    let near = spread.near();
    let stopped = near.train(
        "'t', label => 'half', features => '{a,b}', servers => 'auto', batch_size => 50, max_epochs => 50, patience => 1",
    );
    assert!(stopped.len() < 50, "{}", stopped.len());
    let call = "SELECT * FROM corgipile_train('t', label => 'half', features => '{a,b}', batch_size => 50, max_epochs => 2, servers => 'auto')";
    let plan = near.lines(&format!("EXPLAIN {call}")).join("\n");
    assert!(plan.contains("Servers: east, north, south"), "{plan}");
    assert!(!plan.contains("Bytes Sent"), "{plan}");
    let plan = near.lines(&format!("EXPLAIN ANALYZE {call}")).join("\n");
    for shown in
        ["Servers: east, north, south", "Node Requests: ", "Bytes Sent to Servers: ", "Waited for Slowest Node: "]
    {
        assert!(plan.contains(shown), "{shown}: {plan}");
    }
    let plan = near.lines(
        "EXPLAIN SELECT * FROM corgipile_train('base', label => 'half', features => '{a,b}', servers => 'auto')",
    );
    assert!(plan.join("\n").contains("Servers: none: the source is a table of this server"), "{plan:?}");
    let plan = near.lines(&format!("EXPLAIN {}", call.replace(", servers => 'auto'", "")));
    assert!(!plan.join("\n").contains("Nodes"), "{plan:?}");
}

#[test]
fn models_of_single_steps_are_averaged_where_labels_are_mixed_alike() {
    let Some(mut spread) = Spread::new(models_of_single_steps_are_averaged_where_labels_are_mixed_alike) else {
        return;
    };
    spread.by_hash();
    spread.spread("by_label", "LIST (half)", ["IN (0)", "IN (1)", "IN (7)"]);
    let told = |spread: &Spread, table: &str, model: &str, more: &str| {
        let nodes = if table == "t_north" { "north" } else { "east,north,south" };
        let call = format!(
            "SELECT FROM corgipile_train('{table}', '{model}', {}, features => '{{a,b}}', servers => '{nodes}', seed => 1, max_epochs => 1{more})",
            if model == "linear" { "'y'" } else { "'half'" }
        );
        let told = spread.nodes.near.notices(&[&call]);
        let batches = "batch_size is 32: with 1, models of servers with different rows would be averaged";
        let averages =
            "with batch_size 1, each server trains its own model, and the models are averaged after each buffer";
        (told.contains(batches), told.contains(averages))
    };
    let one = ", batch_size => 1";
    assert_eq!(told(&spread, "t", "logistic", ""), (true, false), "nobody has asked for single steps");
    assert_eq!(told(&spread, "t", "logistic", one), (false, true));
    assert_eq!(told(&spread, "by_label", "logistic", one), (true, false));
    assert_eq!(told(&spread, "t", "linear", one), (true, false));
    let grid = ", grid => '[{\"batch_size\": 1}, {\"batch_size\": 8}]'";
    assert_eq!(told(&spread, "t", "logistic", grid), (false, true));
    assert_eq!(told(&spread, "t_north", "logistic", ""), (false, false), "on a single server nothing is averaged");
    let accuracy = |near: &mut Session, table: &str, nodes: &str| {
        let epochs =
            near.train(&format!("'{table}', label => 'half', features => '{{a,b}}', servers => '{nodes}', seed => 1"));
        near.evaluate(epochs[0].model_id, "base").accuracy
    };
    let near = spread.near();
    let alone = accuracy(near, "t", "off");
    for (table, servers) in
        [("t", "east,north,south"), ("by_label", "east,north,south"), ("t", "auto"), ("by_label", "auto")]
    {
        let nodes = accuracy(near, table, servers);
        assert!(nodes > alone - 0.02, "{table}: {nodes}, on one server {alone}");
    }
}

#[test]
fn rows_that_cannot_be_trained_on_there_come_here_or_are_an_error() {
    let Some(mut spread) = Spread::new(rows_that_cannot_be_trained_on_there_come_here_or_are_an_error) else { return };
    spread.by_hash();
    spread
        .near()
        .run("CREATE VIEW mixed AS SELECT half, a, b FROM t UNION ALL SELECT half, a, b FROM base WHERE id < 10");
    let quick = "model => 'logistic', features => '{a,b}', label => 'half', max_epochs => 1, learning_rate => 0.01, batch_size => 100";
    let cases = [
        ("'base'", "", "the source is a table of this server"),
        ("'mixed'", "", "some of its rows are on this server, or it does more than read and filter"),
        (
            "'SELECT * FROM t ORDER BY id LIMIT 50'",
            "",
            "some of its rows are on this server, or it does more than read and filter",
        ),
        ("'SELECT half, a, b + random() AS b FROM t'", "", "the source computes something"),
        ("'SELECT * FROM t WHERE random() >= 0'", "", "a filter is not one that postgres_fdw sends to the server"),
        ("'t'", ", workers => 2", "other servers cannot train with several workers"),
    ];
    for (source, more, why) in cases {
        let call =
            |nodes: &str| format!("SELECT tuples FROM corgipile_train({source}, {quick}{more}, servers => '{nodes}')");
        let notices = spread.nodes.near.notices(&[&call("auto")]);
        assert!(
            notices.contains(&format!("the rows are fetched to this server to be trained on: {why}")),
            "{source}{more}: {notices}"
        );
        let failure = spread.near().rejects(&call("east,north,south"), "0A000");
        assert_eq!(failure.message, format!("the rows cannot be trained on where they are: {why}"), "{source}{more}");
    }
    let named = |spread: &mut Spread, nodes: &str| {
        spread.near().rejects(&format!("SELECT corgipile_train('t', {quick}, servers => '{nodes}')"), "0A000").message
    };
    assert!(named(&mut spread, "east,north").ends_with("some rows are on server \"south\", which is not named"));
    spread.near().run("CREATE SERVER west FOREIGN DATA WRAPPER postgres_fdw");
    // a server that has no rows, or none any more, is left out
    let call = format!("SELECT tuples FROM corgipile_train('t', {quick}, servers => 'east,north,south,west')");
    assert_eq!(spread.near().lines(&call), ["1200"]);
    let notices = spread.nodes.near.notices(&[&call]);
    assert!(notices.contains("server \"west\" has no rows of the source\n"), "{notices}");
    for wrong in ["", "east,,north", "east,east"] {
        spread.near().rejects(&format!("SELECT corgipile_train('t', {quick}, servers => '{wrong}')"), "22023");
    }
    // what the transaction has written is seen
    let sums = |near: &mut Session, write: &str| {
        near.run(&format!("BEGIN; {write}"));
        let trained = near.train(&format!("'t', {quick}, servers => 'auto'"))[0].tuples;
        let refused = near.attempt(&format!("SELECT corgipile_train('t', {quick}, servers => 'east,north,south')"));
        near.run("ROLLBACK");
        (trained, refused.unwrap_err().message)
    };
    for (write, tuples) in [("DELETE FROM t WHERE id <= 100", 1100), ("CREATE TABLE other (i int)", 1200)] {
        let (trained, refused) = sums(spread.near(), write);
        assert_eq!(trained, tuples, "{write}");
        assert!(
            refused.ends_with("the transaction has written data, which sessions on other servers would not see"),
            "{refused}"
        );
    }
}

#[test]
fn what_a_training_stores_is_nothing_that_the_transaction_has_written() {
    let Some(mut spread) = Spread::new(what_a_training_stores_is_nothing_that_the_transaction_has_written) else {
        return;
    };
    spread.by_hash();
    let near = spread.near();
    let call = |nodes: &str| {
        format!(
            "corgipile_train('t', features => '{{a,b}}', label => 'half', model => 'logistic', max_epochs => 1,
                             name => 'm', learning_rate => 0.01, batch_size => 100, servers => '{nodes}')"
        )
    };
    let named = format!("SELECT tuples FROM {}", call("east,north,south"));
    let evaluate =
        "SELECT value FROM corgipile_evaluate('m', 't', servers => 'east,north,south') WHERE metric = 'tuples'";
    // the model is stored, replaced, renamed and deleted
    near.run("BEGIN");
    assert_eq!([near.line(&named), near.line(&named), near.line(evaluate)], ["1200"; 3]);
    near.run("SAVEPOINT s");
    assert_eq!(near.line(&named), "1200");
    near.run("ROLLBACK TO s");
    near.run("SELECT corgipile_deploy('m', 1); SELECT corgipile_comment('m', 'first')");
    assert_eq!(near.line(&named), "1200");
    near.run("SELECT corgipile_drop('m', 1)");
    assert_eq!(near.line(evaluate), "1200");
    // what others write after it is not
    near.run("DELETE FROM t WHERE id <= 100");
    near.fails_with(&named, "0A000");
    near.run("ROLLBACK");
    near.run("BEGIN");
    assert_eq!(near.line(&named), "1200");
    near.run("DELETE FROM t WHERE id <= 100");
    assert_eq!(near.line(&format!("SELECT tuples FROM {}", call("auto"))), "1100");
    assert_eq!(near.line(&format!("SELECT tuples FROM {}", call("auto"))), "1100", "still after another training");
    near.run("ROLLBACK");
    // a statement writes when the training in it is over
    for write in [
        format!("INSERT INTO t (id, half, a, b) SELECT 5000 + epoch, 1, 1, 1 FROM {}", call("auto")),
        format!(
            "DO $$ BEGIN PERFORM * FROM {}; INSERT INTO t (id, half, a, b) VALUES (5001, 1, 1, 1); END $$",
            call("east,north,south")
        ),
        format!(
            "WITH w AS (INSERT INTO t (id, half, a, b) SELECT 5000 + epoch, 1, 1, 1 FROM {} RETURNING id) TABLE w",
            call("east,north,south")
        ),
    ] {
        near.run(&format!("BEGIN; {write}"));
        assert_eq!(near.line(&format!("SELECT tuples FROM {}", call("auto"))), "1201", "{write}");
        near.fails_with(&named, "0A000");
        near.run("ROLLBACK");
    }
    // and the next transaction has written nothing
    assert_eq!(near.line(&named), "1200");
}

#[test]
fn servers_that_are_not_alike_are_told_of() {
    let Some(mut spread) = Spread::new(servers_that_are_not_alike_are_told_of) else { return };
    spread.by_hash();
    let quick = "model => 'logistic', features => '{a,b}', label => 'half', max_epochs => 1, learning_rate => 0.01, batch_size => 100";
    let call = |nodes: &str| format!("SELECT tuples FROM corgipile_train('t', {quick}, servers => '{nodes}')");
    let check = |spread: &mut Spread, code: &str, message: &str| {
        let failure = spread.near().rejects(&call("east,north,south"), code);
        assert_eq!(failure.message, message);
        let notices = spread.nodes.near.notices(&[&call("auto")]);
        assert!(
            notices.contains(&format!("the rows are fetched to this server to be trained on: {message}")),
            "{notices}"
        );
    };
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = 'corgipile'");
    let here: String = spread.near().value("SELECT extversion FROM pg_extension WHERE extname = 'corgipile'");
    let message = format!("server \"north\": it has version 0.0.1 of extension corgipile, this server {here}");
    check(&mut spread, "55000", &message);
    north.run("DROP EXTENSION corgipile");
    check(&mut spread, "55000", "server \"north\": extension corgipile is not installed in its database");
    north.run("CREATE EXTENSION corgipile; ALTER TABLE t ALTER a TYPE float8");
    check(&mut spread, "42804", "server \"north\": column \"a\" has type double precision there, and real here");
    north.run("ALTER TABLE t ALTER a TYPE real");
    for names in ["north,south,east", "{east, north,south}"] {
        assert_eq!(spread.near().lines(&call(names)), ["1200"]);
    }
    let failure = spread.near().rejects(&call("east,north,nosuch"), "0A000");
    assert!(failure.message.ends_with("server \"nosuch\" does not exist"), "{failure:#?}");
    north.run("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    let setup = format!("CREATE EXTENSION corgipile; CREATE TABLE t ({COLUMNS})");
    spread.nodes.north.session_in("latin").run(&setup);
    spread.near().run("ALTER SERVER north OPTIONS (SET dbname 'latin')");
    check(&mut spread, "0A000", "server \"north\": its database has the encoding LATIN1, not UTF8");
    spread.near().run("ALTER SERVER north OPTIONS (SET dbname 'postgres')");
    spread.near().run("DROP EXTENSION dblink");
    check(&mut spread, "55000", "extension dblink is not installed in this database");
    spread.near().run("CREATE EXTENSION dblink");
    // something else is there by the name of the function
    let step = "FUNCTION corgipile.node_step(bytea)";
    north.run(&format!(
        "ALTER {step} RENAME TO real_step; CREATE {step} RETURNS bytea LANGUAGE sql AS 'SELECT ''\\x00''::bytea'"
    ));
    let failure = spread.near().rejects(&call("auto"), "08P01");
    assert_eq!(failure.message, "server \"north\": unexpected reply");
    north.run(&format!("DROP {step}; ALTER FUNCTION corgipile.real_step(bytea) RENAME TO node_step"));
    // rows that do not go together
    north.run("UPDATE t SET v = v || 1::real");
    let arrays = "SELECT corgipile_train('t', label => 'half', features => '{v}', servers => 'auto')";
    let failure = spread.near().rejects(arrays, "22000");
    let message = "the rows of the servers do not match: the arrays in column \"v\" have 3 numbers on one server and 4 on another";
    assert_eq!(failure.message, message);
    north.run("UPDATE t SET half = 2");
    let failure = spread.near().rejects(&call("auto"), "22000");
    let message = "the rows of the servers do not match: label column \"half\" has more than 2 different values";
    assert_eq!(failure.message, message);
}

#[test]
fn names_on_a_server_mean_what_postgresql_has_written() {
    let Some(mut spread) = Spread::new(names_on_a_server_mean_what_postgresql_has_written) else { return };
    spread.by_hash();
    for mut session in spread.sessions() {
        session.run(
            "CREATE SCHEMA trap;
             CREATE FUNCTION trap.trapped(real, real) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''trapped''; END';
             CREATE OPERATOR trap.> (LEFTARG = real, RIGHTARG = real, FUNCTION = trap.trapped);
             CREATE FUNCTION trap.corgipile_support(internal) RETURNS internal LANGUAGE internal AS 'array_subscript_handler';
             CREATE TABLE trap.t (LIKE public.t);
             ALTER DATABASE postgres SET search_path = trap, pg_catalog, public;
             ALTER DATABASE postgres SET bytea_output = 'escape';
             ALTER DATABASE postgres SET standard_conforming_strings = off",
        );
    }
    let near = spread.near();
    near.run("SET bytea_output = 'escape'");
    let tuples: i64 = near.value("SELECT count(*) FROM t WHERE a > 0.5::real AND cat <> 'r\\ed''s'");
    let call = "'SELECT * FROM t WHERE a > 0.5::real AND cat <> ''r\\ed''''s''', label => 'half', features => '{a,b}', max_epochs => 1,
                learning_rate => 0.01, batch_size => 100";
    assert_eq!(near.train(&format!("{call}, servers => 'east,north,south'"))[0].tuples, tuples);
}

#[test]
fn who_trains_has_the_rights_of_the_mappings_and_no_others() {
    let Some(mut spread) = Spread::new(who_trains_has_the_rights_of_the_mappings_and_no_others) else { return };
    spread.by_hash();
    let role = spread.nodes.near.role("reader");
    spread
        .near()
        .run(&format!("GRANT SELECT ON t TO {role}; GRANT USAGE ON FOREIGN SERVER east, north, south TO {role}"));
    let quick = "model => 'logistic', features => '{a,b}', label => 'half', max_epochs => 1, learning_rate => 0.01, batch_size => 100";
    let call = format!("SELECT tuples FROM corgipile_train('t', {quick}, servers => 'east,north,south')");
    let auto = call.replace("east,north,south", "auto");
    let come_here = |spread: &Spread, why: &str| {
        let notices = spread.nodes.near.notices(&[&format!("SET ROLE {role}; {auto}")]);
        assert!(notices.contains(&format!("fetched to this server to be trained on: {why}")), "{notices}");
    };
    // without a mapping there is no way, as PostgreSQL itself says
    let failure = spread.nodes.near.session_as(&role).fails_with(&call, "42704");
    assert_eq!(failure.message, "server \"east\": you have no user mapping for it");
    failure.hints(&["CREATE USER MAPPING FOR CURRENT_USER SERVER east OPTIONS"]);
    come_here(&spread, "server \"east\": you have no user mapping for it");
    let grant = "GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO far";
    for (server, cluster) in [("east", &spread.east), ("north", &spread.nodes.north), ("south", &spread.nodes.south)] {
        cluster.session().run("CREATE ROLE far LOGIN; GRANT SELECT (half, a, b) ON t TO far");
        cluster.ask_for_password("far", "secret");
        spread
            .nodes
            .near
            .run(&format!("CREATE USER MAPPING FOR {role} SERVER {server} OPTIONS (user 'far', password 'secret')"));
    }
    let mut reader = spread.nodes.near.session_as(&role);
    let failure = reader.fails_with(&call, "42501");
    assert_eq!(
        failure.message,
        "server \"east\": role far lacks the privilege to take part in a training of another server"
    );
    failure.hints(&[grant]);
    // by postgres_fdw the rows can be fetched
    come_here(&spread, "server \"east\": role far lacks the privilege");
    assert_eq!(reader.lines(&auto), ["1200"]);
    for mut session in spread.sessions() {
        session.run(grant);
    }
    assert_eq!(reader.lines(&call), ["1200"]);
    spread.near().run(&format!("REVOKE USAGE ON FOREIGN SERVER north FROM {role}"));
    let failure = reader.fails_with(&call, "42501");
    assert_eq!(failure.message, format!("server \"north\": role {role} lacks the privilege USAGE on it"));
    failure.hints(&[&format!("GRANT USAGE ON FOREIGN SERVER north TO {role}")]);
    come_here(&spread, "server \"north\": role");
    assert_eq!(reader.lines(&auto), ["1200"]);
    spread.near().run(&format!("GRANT USAGE ON FOREIGN SERVER north TO {role}"));
    let other = call.replace("{a,b}", "{a,b,c}");
    let failure = reader.fails_with(&other, "42501");
    assert!(failure.message.contains("permission denied for table t"), "{failure:#?}");
    // nor does a view lend its owner's mapping
    spread.near().run(&format!(
        "REVOKE SELECT ON t FROM {role}; CREATE VIEW lent AS SELECT * FROM t; GRANT SELECT ON lent TO {role}"
    ));
    let lent = call.replace("'t'", "'lent'");
    let failure = reader.fails_with(&lent, "0A000");
    assert!(failure.message.ends_with("a view reads the foreign table as its owner"), "{failure:#?}");
}

#[test]
fn rows_that_cannot_be_learned_from_are_an_error_of_their_server() {
    let Some(mut spread) = Spread::new(rows_that_cannot_be_learned_from_are_an_error_of_their_server) else { return };
    spread.by_hash();
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE t SET a = 'NaN' WHERE id = (SELECT max(id) FROM t)");
    let failure = spread
        .near()
        .rejects("SELECT corgipile_train('t', label => 'half', features => '{a,b}', servers => 'auto')", "22003");
    assert!(failure.message.starts_with("server \"north\": "), "{failure:#?}");
    spread.near().rejects(
        "SELECT corgipile_train('SELECT * FROM t WHERE id < 0', label => 'half', features => '{a,b}', servers => 'auto')",
        "22000",
    );
    let failure = spread.near().rejects(
        "SELECT corgipile_train('SELECT * FROM t WHERE half = 1', label => 'half', features => '{b}', servers => 'auto')",
        "22000",
    );
    assert_eq!(failure.message, "label column \"half\" has only one value: 1");
}

#[test]
fn what_trainings_call_on_other_servers_is_of_no_use_alone() {
    let mut db = Database::with_small_table(10);
    let message = "this function was not called by a training on another server";
    for sql in [
        r"SELECT corgipile.node_step('\x')",
        "SELECT corgipile.node_training('{}')",
        "SELECT * FROM ROWS FROM (corgipile.node_training('{}')) WITH ORDINALITY",
    ] {
        assert_eq!(db.fails_with(sql, "55000").message, message, "{sql}");
    }
    let nonsense = "unexpected request from a training on another server";
    for task in ["", "{}", r#"{"sql": "SELECT 1"}"#, "NULL"] {
        let sql = format!("SELECT * FROM corgipile.node_training('{task}')");
        assert_eq!(db.fails_with(&sql, "08P01").message, nonsense, "{sql}");
    }
    let open = opened("logistic", SHUFFLING);
    db.run(&open);
    assert_eq!(db.fails_with("FETCH corgipile_node", "55000").message, message);
    db.run("ROLLBACK");
    for wrong in [
        "00".to_owned(),
        "ffffffff".to_owned(),
        request("{}"),
        request(r#"{"orders":["BeginEpoch"],"rounds":[]}"#),
        request(r#"{"orders":["Evaluate"],"rounds":[]}"#),
        request(r#"{"orders":["Scores"],"rounds":[]}"#),
        request(
            r#"{"orders":[{"EvaluateModel":{"document":9,"policies":{"nulls":"error","unseen":"error"}}}],"rounds":[]}"#,
        ),
        request(r#"{"orders":[{"Learn":1}],"rounds":[]}"#),
        request(r#"{"orders":[{"Turn":[0]}],"rounds":[]}"#),
        request(r#"{"orders":[{"Make":{"Step":1}}],"rounds":[]}"#),
        request(r#"{"orders":[{"Make":{"Average":[1]}}],"rounds":[]}"#),
        request(r#"{"orders":[],"rounds":[{"Gathered":[4]}]}"#),
    ] {
        db.run(&open);
        let failure = db.fails_with(&format!(r"SELECT corgipile.node_step('\x{wrong}')"), "08P01");
        assert_eq!(failure.message, nonsense, "{wrong}");
        db.run("ROLLBACK");
    }
    // a caller reads only what the role may read, and changes nothing
    let call = |sql: &str| format!("SELECT n FROM corgipile.node_training('{}')", task(sql, "logistic", SHUFFLING));
    db.fails_with(&call("WITH d AS (DELETE FROM t RETURNING label, a) SELECT label, a FROM d"), "0A000");
    let role = db.role("nobody");
    let read = call("SELECT label, a FROM t");
    let failure = db.session_as(&role).fails_with(&read, "42501");
    assert_eq!(
        failure.message,
        format!("role {role} lacks the privilege to take part in a training of another server")
    );
    let grant = format!("GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO {role}");
    failure.hints(&[&grant]);
    db.session_as(&role).fails_with(r"SELECT corgipile.node_step('\x')", "42501");
    db.run(&grant);
    assert_eq!(db.session_as(&role).fails_with(&read, "42501").message, "permission denied for table t");
    assert_eq!(db.session_as(&role).fails_with(r"SELECT corgipile.node_step('\x')", "55000").message, message);
}

const SHUFFLING: &str = r#"{"strategy":"corgipile","seed":1,"block_size":"auto","buffer_size":"10%","first_epoch":0}"#;

/// What a node gets of rows of a label and one feature.
fn task(sql: &str, kind: &str, shuffling: &str) -> String {
    let spec = format!(
        r#"{{"spec":{{"kind":"{kind}","label":"label","features":["a"],"nulls":"error","index_base":1,
             "row_groups":{{"group":null,"hold_out":null,"folds":null}}}},"columns":[]}}"#
    );
    format!(r#"{{"sql":"{sql}","spec":{spec},"shuffling":{shuffling}}}"#)
}

/// Opens the cursor of a node that is to train such a model.
fn opened(kind: &str, shuffling: &str) -> String {
    let task = task("SELECT label, a FROM t", kind, shuffling);
    format!("BEGIN; DECLARE corgipile_node NO SCROLL CURSOR FOR SELECT n FROM corgipile.node_training('{task}')")
}

/// A request with this text, and no numbers behind it, in hexadecimal.
fn request(json: &str) -> String {
    let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
    bytes.extend(json.as_bytes());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Numbers of a message are bounded each by itself, and so are loops over them: else a message of a few bytes is a
/// backend that nothing but a kill -9 ends, or that takes gigabytes.
#[test]
fn a_small_message_makes_neither_an_endless_loop_nor_gigabytes() {
    let mut db = Database::with_small_table(100);
    db.run("SET statement_timeout = '20s'");
    let pid = db.pid();
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() << 10
    };
    let decoder = r#"{"classes":{"values":["0","1"],"codes":[0,1],"prepared":true},"categories":[]}"#;
    let point = |hidden: u32| {
        format!(
            r#"{{"kind":"mlp","learning_rate":0.01,"schedule":{{"name":"constant"}},"optimizer":{{"name":"sgd"}},"batch_size":32,
                 "l1":0.0,"l2":0.0,"design":{{"hidden":[{hidden}],"activation":"relu","output":null,"seed":1}}}}"#
        )
    };
    let start = |points: &[String], groups: &str, more: &str| {
        request(&format!(
            r#"{{"orders":[{{"Start":{{"decoder":{decoder},"kind":"mlp","points":[{}],"groups":{groups},"dim":1,"outputs":2,"sparse":false,
                 "whose":[],"saved":null}}}}{more}],"rounds":[]}}"#,
            points.join(",")
        ))
    };
    let nonsense = "unexpected request from a training on another server";
    for (groups, points, code) in [
        // no points times this many groups are no models
        ("9223372036854775808", vec![], "08P01"),
        ("18446744073709551615", vec![point(4)], "08P01"),
        ("100001", vec![], "08P01"),
        ("100000", vec![point(4); 2], "54000"),
        ("1", vec![point(100_000_000)], "54000"),
        ("1", vec![point(30_000_000); 8], "54000"),
        ("100", vec![point(1_000_000)], "54000"),
    ] {
        db.run(&opened("mlp", SHUFFLING));
        let before = peak();
        let failure = db.fails_with(&format!(r"SELECT corgipile.node_step('\x{}')", start(&points, groups, "")), code);
        assert!(code != "08P01" || failure.message == nonsense, "{failure:#?}");
        let taken = peak().saturating_sub(before);
        assert!(taken < 64 << 20, "{groups} groups, {} points: {taken} bytes", points.len());
        db.run("ROLLBACK");
    }
    // what is within the bounds is begun, and can be ended
    db.run(&opened("mlp", SHUFFLING));
    db.run(&format!(r"SELECT corgipile.node_step('\x{}')", start(&[point(4)], "10", "")));
    db.fails_with(
        &format!(
            r"SELECT corgipile.node_step('\x{}')",
            request(r#"{"orders":[{"Turn":[0]},{"Make":{"Average":[18446744073709551615,2]}}],"rounds":[]}"#)
        ),
        "08P01",
    );
    db.run("ROLLBACK");
    // one training for each opening: models of several would add up
    db.run(&opened("mlp", SHUFFLING));
    db.run(&format!(r"SELECT corgipile.node_step('\x{}')", start(&[point(4)], "1", "")));
    db.fails_with(&format!(r"SELECT corgipile.node_step('\x{}')", start(&[point(4)], "1", "")), "08P01");
    db.run("ROLLBACK");
    // a fraction that no option can be: the search for a block's run would not end
    for fraction in ["0.0", "-1.0", "1e300"] {
        let task = task("SELECT label, a FROM t", "logistic", SHUFFLING);
        let task = task
            .replace(r#""hold_out":null"#, &format!(r#""hold_out":{{"Blocks":{{"fraction":{fraction},"seed":1}}}}"#));
        db.fails_with(&format!("SELECT * FROM corgipile.node_training('{task}')"), "08P01");
    }
    for wrong in [r#""sample":1e300"#, r#""sample":-1.0"#] {
        let shuffling = SHUFFLING.replace(r#""first_epoch":0"#, &format!(r#""first_epoch":0,{wrong}"#));
        let task = task("SELECT label, a FROM t", "logistic", &shuffling);
        db.fails_with(&format!("SELECT * FROM corgipile.node_training('{task}')"), "08P01");
    }
    // and whatever was begun is over
    assert_eq!(db.line("SELECT count(*) FROM t"), "100");
}
