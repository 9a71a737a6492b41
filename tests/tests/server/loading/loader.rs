//! Loading in a worker: the same models, figures and privileges as in process.

use corgipile_tests::plan::node;
use corgipile_tests::{Database, Session, clustered, in_several_buffers};
use serde_json::Value;

/// What a training came to, to the last bit: per epoch tuples, loss, accuracy and R², the model, and what was stored of
/// the rows.
type Outcome = (Vec<(i64, u64, Option<u64>, Option<u64>)>, Vec<u32>, String);

fn outcome(session: &mut Session, arguments: &str) -> Outcome {
    let epochs = session.train(arguments);
    let bits =
        epochs.iter().map(|e| (e.tuples, e.loss.to_bits(), e.accuracy.map(f64::to_bits), e.r2.map(f64::to_bits)));
    let id = epochs[0].model_id;
    let stored = format!(
        "SELECT classes, categories, features, feature_kind, index_base, feature_mean, feature_scale, skipped,
                hyperparameters, label_type
           FROM corgipile.models WHERE model_id = {id}"
    );
    (bits.collect(), session.model(id).bits(), session.line(&stored))
}

/// The two shuffling nodes of a training that has been run.
fn nodes(session: &mut Session, arguments: &str) -> [Value; 2] {
    let plan = session.plan("ANALYZE, BUFFERS", &format!("SELECT * FROM corgipile_train({arguments})"));
    ["CorgiPileTupleShuffle", "CorgiPileBlockShuffle"].map(|name| node(&plan, name).clone())
}

/// Where the buffers of a training were filled, and why.
pub fn loader(session: &mut Session, arguments: &str) -> (String, String) {
    let [node, _] = nodes(session, arguments);
    let text = |property: &str| node[property].as_str().unwrap_or_default().to_owned();
    (text("Prefetch"), text("Prefetch Because"))
}

/// Asserts that a training is the same with a worker as in process, and really has one.
pub fn same_in_a_worker(session: &mut Session, arguments: &str) {
    let arguments = &in_several_buffers(arguments);
    let with = |loader: &str| format!("{arguments}, seed => 5, prefetch => '{loader}'");
    let (expected, got) = (outcome(session, &with("off")), outcome(session, &with("on")));
    assert!(got == expected, "{arguments}: a worker gives {got:?}, not {expected:?}");
    assert_eq!(loader(session, &with("on")), ("on".into(), String::new()), "{arguments}");
}

/// A table with a row for everything that a decoder knows.
fn many_kinds(session: &mut Session) {
    session.run(
        "CREATE TABLE kinds AS
         SELECT i::int AS id, label, CASE label WHEN 1 THEN 'no' ELSE 'yes' END AS word,
                (ARRAY['a', 'b', 'c'])[1 + (label + hashint8extended(i, 77) % 3 + 3) % 3] AS class,
                label + normal(i, 9) AS target, uniform(i, 8)::numeric(8, 4) AS weight,
                ARRAY[label + normal(i, 1), 2 - label + normal(i, 2), normal(i, 3)]::real[] AS reals,
                ARRAY[label + normal(i, 1), 2 - label + normal(i, 2), normal(i, 3)] AS doubles,
                (label + normal(i, 1))::numeric(10, 4) AS amount, (i % 7)::smallint AS day,
                (ARRAY['red', 'green', 'blue', 'größer'])[1 + i % 4] AS colour,
                ARRAY[1 + (i % 5), 7 + (i % 3), 20 + (i % 11)]::int[] AS features_k,
                ARRAY[label + normal(i, 1), normal(i, 2), 1]::real[] AS features_v,
                CASE WHEN i % 13 = 0 OR i BETWEEN 500 AND 900 THEN NULL ELSE ARRAY[normal(i, 1), label]::real[] END
                AS holes
           FROM (SELECT i, (i > 3000)::int AS label FROM generate_series(1, 6000::bigint) i) r;
         ANALYZE kinds;",
    );
}

#[test]
fn a_worker_gives_the_same_models_of_every_kind() {
    let mut db = Database::new();
    many_kinds(&mut db);
    for arguments in [
        "features => '{reals}'",
        "label => 'word', features => '{reals}'",
        "label => 'word', features => '{reals}', buffer_size => '100%'",
        "'svm', features => '{doubles}', options => '{\"standardize\": true}'",
        "'linear', label => 'target', features => '{amount, day}', options => '{\"weight\": \"weight\"}'",
        "'softmax', label => 'class', features => '{reals}'",
        "'softmax', label => 'class', features => '{colour, amount}', options => '{\"class_weight\": \"balanced\"}'",
        "label => 'word', features => '{colour, day}', options => '{\"class_weight\": {\"no\": 3}}'",
        "features => '{colour, amount}', options => '{\"standardize\": true, \"handle_unknown\": \"ignore\", \"weight\": \"weight\"}'",
        "features => '{features_k, features_v}'",
        "'softmax', label => 'class', features => '{features_k, features_v}', options => '{\"standardize\": true}'",
        "features => '{features_k, features_v}', options => '{\"dimensions\": 40, \"weight\": \"weight\"}'",
        "features => '{holes}', options => '{\"nulls\": \"skip\"}'",
        "features => '{holes}', options => '{\"nulls\": \"skip\", \"weight\": \"weight\", \"standardize\": true}'",
        "features => '{reals}', options => '{\"batch_size\": 16, \"optimizer\": \"adam\", \"l1\": 0.001}'",
        "features => '{reals}', options => '{\"schedule\": \"theorem1\", \"mu\": 0.1}'",
        "features => '{reals}', options => '{\"cache\": \"on\"}'",
        "features => '{colour, day}', options => '{\"cache\": \"on\"}'",
        "features => '{reals}', options => '{\"cache\": \"off\"}', block_size => '32kB', buffer_size => '200kB'",
        "features => '{reals}', max_epochs => 1",
    ] {
        let epochs = if arguments.contains("max_epochs") { "" } else { ", max_epochs => 3" };
        same_in_a_worker(&mut db, &format!("source => 'kinds', model => {}{epochs}", named(arguments)));
    }
}

/// Arguments of which the first may be the model.
fn named(arguments: &str) -> String {
    if arguments.starts_with('\'') { arguments.to_owned() } else { format!("'logistic', {arguments}") }
}

#[test]
fn a_worker_gives_the_same_models_of_every_source_and_strategy() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    db.run(
        "CREATE VIEW v AS SELECT label, features_v, id FROM t WHERE id % 3 > 0;
         CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parts FOR VALUES FROM (1) TO (2000);
         CREATE TABLE high PARTITION OF parts FOR VALUES FROM (2000) TO (99999);
         INSERT INTO parts SELECT * FROM t;
         CREATE TABLE wide (id int, label int, x real[]);
         ALTER TABLE wide ALTER x SET STORAGE EXTERNAL;
         INSERT INTO wide SELECT i, label, (SELECT array_agg(uniform(i, j)::real + label) FROM generate_series(1, 700) j)
           FROM (SELECT i, (i > 300)::int AS label FROM generate_series(1, 600::bigint) i) r",
    );
    for source in [
        "'t'",
        "'v', features => '{features_v}'",
        "'parts'",
        "'SELECT label, features_v, id / 3000.0 AS w FROM t WHERE id < 5000', options => '{\"weight\": \"w\"}'",
        "'SELECT t.label, u.features_v FROM t JOIN t u USING (id) ORDER BY u.id'",
        "'SELECT label, features_v FROM t WHERE id IN (SELECT id FROM parts WHERE id % 2 = 0)'",
        "'wide', features => '{x}'",
        "'wide', features => '{x}', options => '{\"cache\": \"off\", \"standardize\": true}'",
    ] {
        same_in_a_worker(&mut db, &format!("{source}, max_epochs => 3"));
    }
    for strategy in ["no_shuffle", "block_only", "shuffle_once", "epoch_shuffle"] {
        for options in ["", ", options => '{\"standardize\": true}'"] {
            same_in_a_worker(&mut db, &format!("'t', max_epochs => 3, shuffle => '{strategy}'{options}"));
        }
    }
}

#[test]
fn where_an_epoch_is_dear_a_worker_loads_the_others_and_the_model_is_the_same() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE wide (id int, label int, x real[]);
         ALTER TABLE wide ALTER x SET STORAGE EXTERNAL;
         INSERT INTO wide SELECT i, i % 5, (SELECT array_agg(uniform(i, j)::real) FROM generate_series(1, 700) j)
           FROM generate_series(1, 1000::bigint) i",
    );
    // to load a tuple takes over a microsecond, and to learn from it about as much
    let dear = "'wide', 'softmax', features => '{x}', max_epochs => 150, seed => 1, options => '{\"cache\": \"off\"}'";
    let expected = outcome(&mut db, &format!("{dear}, prefetch => 'off'"));
    assert!(outcome(&mut db, dear) == expected);
    // neighbours on the machine may disturb the epoch that is measured
    let mut plans = (0..10).map(|_| nodes(&mut db, dear));
    let found = plans.find(|[tuples, _]| tuples["Prefetch"] == "from epoch 2");
    drop(plans);
    let [tuples, blocks] = found.expect("a worker pays");
    // the preparation pass, and all epochs
    assert_eq!((tuples["Actual Loops"].as_i64(), tuples["Actual Rows"].as_f64()), (Some(151), Some(1000.0)));
    assert_eq!(blocks["Epochs"], 151);
    // rows that come while the first epoch is learned from are not seen, and make no other blocks
    let few = "'wide', 'softmax', features => '{x}', max_epochs => 2, seed => 1";
    assert_eq!(loader(&mut db, few), ("off".into(), "all tuples are cached".into()));
    let cheap = "'SELECT label, x[1] AS a FROM wide', 'softmax', max_epochs => 2, options => '{\"cache\": \"off\"}'";
    assert_eq!(loader(&mut db, cheap), ("off".into(), "a worker would not be faster".into()));
    let join = "'SELECT w.label, w.x FROM wide w JOIN wide v USING (id)', 'softmax', max_epochs => 2";
    assert_eq!(loader(&mut db, join), ("off".into(), "the rows are in a spool already".into()));
}

#[test]
fn a_worker_sees_what_the_transaction_has_not_committed() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    db.run("BEGIN; CREATE TABLE own AS SELECT * FROM t; UPDATE own SET features_v[1] = 7 WHERE id % 5 = 0");
    same_in_a_worker(&mut db, "'own', max_epochs => 2");
    db.run("SAVEPOINT s; INSERT INTO own SELECT id + 10000, label, features_v FROM t; DELETE FROM own WHERE id < 100");
    same_in_a_worker(&mut db, "'own', max_epochs => 2");
    assert_eq!(db.train("'own', max_epochs => 1, prefetch => 'on'")[0].tuples, 5901);
    db.run("ROLLBACK TO s");
    assert_eq!(db.train("'own', max_epochs => 1, prefetch => 'on'")[0].tuples, 3000);
    // what is done to the table afterwards does not wait for the worker
    db.run("TRUNCATE own; INSERT INTO own SELECT * FROM t WHERE id % 10 = 1; ALTER TABLE own ADD extra int");
    same_in_a_worker(&mut db, "'own', features => '{features_v}', max_epochs => 2");
    db.run("COMMIT");

    db.run("BEGIN ISOLATION LEVEL SERIALIZABLE; INSERT INTO own SELECT * FROM t WHERE id % 10 = 2");
    same_in_a_worker(&mut db, "'own', features => '{features_v}', max_epochs => 2");
    db.run("COMMIT");
    // models can be stored between trainings, in functions and in exception blocks
    db.run(
        "DO $$ BEGIN
             PERFORM * FROM corgipile_train('t', max_epochs => 2, prefetch => 'on', name => 'first');
             BEGIN
                 PERFORM corgipile_train('t', max_epochs => 2, prefetch => 'on', name => 'second');
                 PERFORM 1 / 0;
             EXCEPTION WHEN division_by_zero THEN
                 PERFORM corgipile_train('t', max_epochs => 2, prefetch => 'on', name => 'third');
             END;
         END $$",
    );
    let names = db.lines("SELECT name FROM corgipile.models WHERE name IS NOT NULL ORDER BY 1");
    assert_eq!(names, ["first", "third"]);
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn without_a_worker_the_leader_loads_and_says_why() {
    let mut db = Database::with_small_table(3000);
    db.run(
        "CREATE FUNCTION harmless(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
         CREATE VIEW hidden AS SELECT * FROM t WHERE harmless(id)",
    );
    let features = "features => '{a,b,c}', max_epochs => 2, learning_rate => 0.001, buffer_size => '50%', seed => 1";
    for (before, source, why) in [
        ("CREATE TEMPORARY TABLE mine AS SELECT * FROM t", "'mine'", "temporary table"),
        ("", "'SELECT * FROM t WHERE id IN (SELECT id FROM mine)'", "temporary table"),
        ("", "'hidden'", "the source is not parallel safe"),
        ("", "'SELECT *, random() AS r FROM t'", "the source is not parallel safe"),
        ("", "'t', shuffle => 'mrs'", "the strategy keeps tuples in the buffer"),
        ("", "'t', shuffle => 'sliding_window'", "the strategy keeps tuples in the buffer"),
        ("", "'t', workers => 2", "each of several processes loads its own"),
        ("SET max_parallel_workers = 0", "'t'", "max_parallel_workers is 0"),
    ] {
        if !before.is_empty() {
            db.run(before);
        }
        let arguments = format!("{source}, {features}");
        let why = ("off".to_owned(), why.to_owned());
        assert_eq!(loader(&mut db, &format!("{arguments}, prefetch => 'on'")), why);
        assert_eq!(loader(&mut db, &arguments), why);
        assert_eq!(loader(&mut db, &format!("{arguments}, prefetch => 'off'")), ("off".into(), String::new()));
        if !source.contains("random") {
            let asked = outcome(&mut db, &format!("{arguments}, prefetch => 'on'"));
            assert!(asked == outcome(&mut db, &format!("{arguments}, prefetch => 'off'")), "{source}");
        }
        let train =
            |loader: &str| format!("{before}; SELECT FROM corgipile_train({arguments}, prefetch => '{loader}')");
        if !source.contains("mine") {
            let told = db.notices(&[&train("on")]);
            assert!(told.contains(&format!("buffers are not prefetched: {}", why.1)), "{told}");
            assert!(!db.notices(&[&train("auto")]).contains("prefetched"));
        }
    }
    db.run("RESET max_parallel_workers");
    assert_eq!(loader(&mut db, &format!("'t', {features}, prefetch => 'on'")).0, "on");
    db.rejects("SELECT corgipile_train('t', prefetch => 'thread')", "22023").says(&[
        "option \"prefetch\" must be",
        "auto",
        "on",
        "off",
    ]);
}

#[test]
fn explain_shows_the_loader_and_the_figures_of_the_worker() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    let arguments = "'t', max_epochs => 4, seed => 3, options => '{\"cache\": \"off\"}'";
    for prefetch in ["on", "auto", "off"] {
        let plan = db.lines(&format!("EXPLAIN SELECT * FROM corgipile_train({arguments}, prefetch => '{prefetch}')"));
        assert!(plan.iter().any(|line| line.trim() == format!("Prefetch: {prefetch}")), "{plan:#?}");
    }
    let mrs = db.lines("EXPLAIN SELECT * FROM corgipile_train('t', shuffle => 'mrs')");
    let expected = "Prefetch: off (the strategy keeps tuples in the buffer)";
    assert!(mrs.iter().any(|line| line.trim() == expected), "{mrs:#?}");
    assert!(db.parallel_workers().is_empty(), "EXPLAIN starts none");

    for more in ["", ", shuffle => 'shuffle_once'", ", shuffle => 'epoch_shuffle'"] {
        let mut of = |loader| nodes(&mut db, &format!("{arguments}{more}, prefetch => '{loader}'"));
        let (here, there) = (of("off"), of("on"));
        let properties = [
            ["Actual Rows", "Actual Loops", "Buffers Filled", "Buffer Blocks", "Buffer Tuples", "Buffer Bytes"],
            ["Actual Rows", "Actual Loops", "Blocks Read", "Epochs", "Blocks", "Pages per Block"],
        ];
        for (node, properties) in properties.iter().enumerate() {
            for property in properties {
                assert_eq!(there[node][property], here[node][property], "{property}{more}");
            }
        }
        assert_eq!(there[1]["Full Shuffle Space"], here[1]["Full Shuffle Space"]);
        assert_eq!(there[1]["Sort Method"], here[1]["Sort Method"]);
        for (node, time) in [(0, "Shuffle Time"), (1, "Scan Time"), (1, "Decode Time"), (1, "Actual Total Time")] {
            assert!(there[node][time].as_f64().is_some_and(|time| time > 0.0), "{time} in {:#}", there[node]);
        }
        // temporary files are read by other calls than pages
        if more.is_empty() {
            let hits = |node: &Value| node["Shared Hit Blocks"].as_i64().expect("a number");
            assert!(hits(&there[1]) >= hits(&here[1]), "{} and {}", hits(&there[1]), hits(&here[1]));
        }
    }
    // the same in a plan whose source has plans of its own
    let join = "'SELECT t.label, t.features_v FROM t JOIN t u USING (id)', max_epochs => 2, prefetch => 'on'";
    let plan = db.lines(&format!("EXPLAIN ANALYZE SELECT * FROM corgipile_train({join})"));
    assert!(!plan.iter().any(|line| line.contains("never executed")), "{plan:#?}");
}

#[test]
fn privileges_and_row_security_hold_in_a_worker() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let role = db.role("reader");
    db.run(&format!(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY;
         CREATE POLICY odd ON t TO {role} USING (id % 2 = 1 AND current_user = '{role}');
         CREATE VIEW theirs AS SELECT label, features_v FROM t;"
    ));
    let mut reader = db.session_as(&role);
    let train = |source: &str| format!("SELECT * FROM corgipile_train('{source}', max_epochs => 1, prefetch => 'on')");
    reader.fails_with(&train("t"), "42501");
    db.run(&format!("GRANT SELECT (label, features_v) ON t TO {role}; GRANT SELECT ON theirs TO {role}"));
    assert_eq!(reader.train("'t', features => '{features_v}', max_epochs => 1, prefetch => 'on'")[0].tuples, 2000);
    same_in_a_worker(&mut reader, "'t', features => '{features_v}', max_epochs => 2");
    reader.fails_with("SELECT * FROM corgipile_train('t', features => '{id}', prefetch => 'on')", "42501");
    // the view's owner is a superuser
    assert_eq!(reader.train("'theirs', max_epochs => 1, prefetch => 'on'")[0].tuples, 4000);
    // a function's definer
    db.run(&format!(
        "CREATE FUNCTION train_all() RETURNS bigint SECURITY DEFINER LANGUAGE sql SET search_path FROM CURRENT AS
             'SELECT max(tuples) FROM corgipile_train(''t'', max_epochs => 1, prefetch => ''on'')';
         GRANT EXECUTE ON FUNCTION train_all() TO {role}"
    ));
    assert_eq!(reader.line("SELECT train_all()"), "4000");
    // a role that was set, not logged in as
    db.run(&format!("SET ROLE {role}"));
    assert_eq!(db.train("'t', features => '{features_v}', max_epochs => 1, prefetch => 'on'")[0].tuples, 2000);
    db.run("RESET ROLE");
}
