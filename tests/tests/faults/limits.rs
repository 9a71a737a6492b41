//! A limit on a process's memory, as `ulimit -v` or a strict kernel sets it: statements of all kinds, and those with
//! which an ordinary user asks for all there is.

use crate::kinds::{KINDS, SETUP, Watch};
use crate::probe::{self, Draw, complaints, leftovers, models_are_whole, report, tables};
use corgipile_tests::{Cluster, Failure, Session, sample, skip};

/// Address space that a backend may take beyond what it has, in MB.
const ROOMS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// The tables of the kinds once more, large, in a schema of their own.
const LARGE: &str = "
    CREATE SCHEMA large;
    CREATE TABLE large.t AS
    SELECT i::int AS id, y AS label, CASE y WHEN 1 THEN 'no' ELSE 'yes' END AS word, (i % 3)::int AS class,
           (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS colour, (y + sin(i))::real AS amount,
           ARRAY[y + sin(i * 7), 2 - y + cos(i * 3), sin(i * i), 1, 2, 3, 4, 5, 6, 7]::real[] AS x,
           ARRAY[1 + i % 50, 60 + i % 1000]::int[] AS k, ARRAY[sin(i) + y, 1]::real[] AS v
      FROM (SELECT i, (i > 150000)::int AS y FROM generate_series(1, 300000::bigint) i) r;
    CREATE TABLE large.wide AS SELECT id, id % 2 AS label, array_fill(1 + (id % 2)::real, ARRAY[700]) AS x FROM large.t LIMIT 20000;
    CREATE TABLE large.parts (LIKE large.t) PARTITION BY RANGE (id);
    CREATE TABLE large.low PARTITION OF large.parts FOR VALUES FROM (0) TO (100000);
    CREATE TABLE large.high PARTITION OF large.parts FOR VALUES FROM (100000) TO (1000000);
    INSERT INTO large.parts SELECT * FROM large.t;
    SET search_path = large, public";

/// Statements beyond the kinds that take much memory of large tables.
const MORE: &[(&str, &str)] = &[
    ("shuffle all", "SELECT count(*) FROM corgipile_shuffle(NULL::t, buffer_size => '100%')"),
    (
        "train all",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, buffer_size => '100%')",
    ),
];

/// What a statement comes to under a limit on the backend, or on the postmaster, whose children have it too.
fn limited(
    cluster: &Cluster,
    db: &mut Session,
    room: u64,
    of_children: bool,
    sql: &str,
) -> Result<Vec<String>, Failure> {
    let pid = if of_children { cluster.pid() as i32 } else { db.pid() };
    assert!(cluster.limit_memory(pid, Some(room)), "the limit can be set");
    let result = db.attempt(sql);
    // the process is gone if its session is
    cluster.limit_memory(pid, None);
    result
}

#[test]
fn statements_of_all_kinds_end_with_an_error_under_a_limit() {
    let cluster = Cluster::new(&["log_min_messages = error", "max_parallel_workers_per_gather = 0", "jit = off"]);
    let mut db = cluster.session();
    let pid = db.pid();
    if !cluster.limit_memory(pid, None) {
        return skip(statements_of_all_kinds_end_with_an_error_under_a_limit, "prlimit is not allowed");
    }
    tables(&mut db);
    db.run(LARGE);
    db.run(SETUP);
    let watch = Watch::over(&cluster);
    let all = probe::moments() > 100;
    let mut draw = Draw::new(probe::seed(), "limits");
    let only = std::env::var("CORGIPILE_KIND").unwrap_or_default();
    let (mut statements, mut errors, mut ended) = (0, 0, Vec::new());
    for (name, sql) in KINDS.iter().chain(MORE).filter(|(name, _)| name.contains(&only)) {
        let workers = name.contains("loader") || name.contains("workers");
        for of_children in [false, true] {
            if of_children && !workers {
                continue;
            }
            let rooms: Vec<u64> = if all { ROOMS.to_vec() } else { vec![*draw.pick(&ROOMS)] };
            for room in rooms {
                watch.step();
                // a session that has done nothing yet has no memory to spare
                let mut db = cluster.session();
                db.run("SET search_path = large, public; SET statement_timeout = '50s'; LOAD 'corgipile'");
                let result = limited(&cluster, &mut db, room << 20, of_children, sql);
                statements += 1;
                if let Err(failure) = result {
                    errors += 1;
                    let message = format!("{name}, {room} MB: {} {}", failure.code, failure.message);
                    let complaints = complaints(&cluster);
                    assert!(complaints.is_empty(), "{message}\n{complaints:#?}");
                    assert!(!cluster.log().contains("reinitializing"), "the server was restarted after {message}");
                    if db.attempt("ROLLBACK; SELECT 1").is_err() {
                        ended.push(message);
                    } else if !failure.code.starts_with("53") {
                        println!("{message}");
                    }
                }
                let mut db = cluster.session();
                db.run(
                    "SET search_path = large, public; DROP TABLE IF EXISTS c2;
                        DELETE FROM corgipile.stored_models WHERE name IS NULL OR name IN ('again', 'other')",
                );
            }
        }
        let left = leftovers(&cluster, &mut db);
        assert!(left.is_empty(), "{left:#?} after {name}");
    }
    models_are_whole(&mut db);
    println!("ended: {ended:#?}");
    report(&format!(
        "Limits of memory: {statements} statements with 1 to 256 MB, {errors} errors, 0 servers lost, 0 hangs, 0 leftovers, \
         {} sessions ended",
        ended.len()
    ));
}

/// What an ordinary user may ask for: each of these takes more than a gigabyte, or would if it were not refused before.
const GREEDY: &[&str] = &[
    // a compressed table of few bytes and many columns
    "SELECT count(*) FROM corgipile_train('many', max_epochs => 1)",
    "SELECT count(*) FROM corgipile_train('many', 'svm', max_epochs => 1, options => '{\"optimizer\": \"adam\"}')",
    "SELECT count(*) FROM corgipile_train('many', 'mlp', max_epochs => 1, options => '{\"hidden_layer_sizes\": [1]}')",
    "SELECT corgipile_toc_decompress(features) FROM many LIMIT 1",
    "SELECT features * array_fill(1::float8, ARRAY[134217726]) FROM many LIMIT 1",
    "SELECT array_fill(1::float8, ARRAY[10]) * features FROM many LIMIT 1",
    // sparse indices
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1)",
    "SELECT count(*) FROM corgipile_train('s', 'svm', features => '{k,v}', max_epochs => 1, options => '{\"optimizer\": \"adam\"}')",
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1, workers => 2)",
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1, prefetch => 'on', options => '{\"optimizer\": \"adam\"}')",
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1, options => '{\"schedule\": \"theorem1\", \"mu\": 0.1}')",
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1, group_by => 'label')",
    "SELECT count(*) FROM corgipile_train('s', features => '{k,v}', max_epochs => 1, grid => '{\"learning_rate\": [0.1, 0.2, 0.3, 0.4]}')",
    "SELECT count(*) FROM corgipile_train('s', 'mlp', features => '{k,v}', max_epochs => 1, options => '{\"hidden_layer_sizes\": [2]}')",
    "SELECT count(*) FROM corgipile_train_uda('s', features => '{k,v}', max_epochs => 1)",
    "SELECT corgipile_cluster_factor('s', features => '{k,v}', model => 'softmax')",
    // long arrays
    "SELECT count(*) FROM corgipile_train('SELECT i % 2 AS label, array_fill(1::real, ARRAY[40000000]) AS x FROM generate_series(1, 4) i', max_epochs => 1)",
    "SELECT count(*) FROM corgipile_train('SELECT i % 2 AS label, array_fill(1::real, ARRAY[40000000]) AS x FROM generate_series(1, 4) i', 'mlp', max_epochs => 1)",
    "SELECT count(*) FROM corgipile_train('SELECT i % 2 AS label, array_fill(1::float8, ARRAY[20000000]) AS x FROM generate_series(1, 4) i', max_epochs => 1, options => '{\"standardize\": true}')",
    "SELECT count(*) FROM corgipile_train('SELECT i % 3 AS label, array_fill(1::real, ARRAY[30000000]) AS x FROM generate_series(1, 6) i', 'softmax', max_epochs => 1)",
    "SELECT corgipile_compress('arrays', 'long', batch_rows => 1000)",
    "SELECT count(*) FROM corgipile_compression_report('arrays', batch_rows => 1000)",
    "SELECT corgipile_predict('tiny', array_fill(1::real, ARRAY[50000000]))",
    "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[4096, 4096]), 'toc')",
    "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[4096, 4096]), 'cvi')",
    "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[4096, 4096]), 'gzip')",
    "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[4096, 4096]))",
    // long texts
    "SELECT corgipile_predict(repeat('x', 100000000), ARRAY[1, 2])",
    "SELECT corgipile_predict_label(repeat('x', 100000000), ARRAY[1, 2])",
    "SELECT corgipile_evaluate(repeat('x', 100000000), 't')",
    "SELECT corgipile_export(repeat('x', 100000000))",
    "SELECT corgipile_train(repeat('x', 100000000))",
    "SELECT corgipile_train('t', repeat('x', 100000000))",
    "SELECT corgipile_train('t', shuffle => repeat('x', 100000000))",
    "SELECT corgipile_train('t', label => repeat('x', 100000000))",
    "SELECT corgipile_train('t', features => ARRAY[repeat('x', 100000000)])",
    "SELECT corgipile_train('t', block_size => repeat('1', 100000000))",
    "SELECT corgipile_train('SELECT label, x, repeat(''x'', 70000000) || id AS long FROM t', features => '{long}', max_epochs => 1)",
    "SELECT corgipile_train('SELECT repeat(''x'', 70000000) || id AS label, x FROM t', 'softmax', features => '{x}', max_epochs => 1)",
    "SELECT corgipile_train('SELECT label, x, repeat(''x'', 70000000) || id AS g FROM t', features => '{x}', max_epochs => 1, group_by => 'g')",
    "SELECT ('sgd1:' || repeat('A', 100000000))::corgipile.sgd_state",
    "SELECT repeat('1', 100000000)::corgipile.toc",
    // networks
    "SELECT corgipile_train('t', 'mlp', features => '{x}', max_epochs => 1, options => '{\"hidden_layer_sizes\": [30000000]}')",
    "SELECT corgipile_train('t', 'mlp', features => '{x}', max_epochs => 1, options => '{\"hidden_layer_sizes\": [11000, 11000]}')",
    "SELECT corgipile_train('t', 'mlp', features => '{x}', max_epochs => 1, options => '{\"hidden_layer_sizes\": [11000, 11000], \"optimizer\": \"adam\"}')",
    // many of something
    "SELECT count(*) FROM corgipile_shuffle_order('corgipile', tuples => 1000000000, tuples_per_block => 1, buffer_tuples => 1000000000, seed => 1)",
    "SELECT corgipile_sgd_init('logistic', 134217727)",
    "SELECT corgipile_sgd_init('softmax', 13000000, classes => 10)",
    "SELECT corgipile_train('SELECT id AS label, x FROM generate_series(1, 3000000) id, (SELECT x FROM t LIMIT 1) t', 'softmax', features => '{x}', max_epochs => 1)",
    "SELECT corgipile_train('SELECT md5(id::text) || repeat(''x'', 300) AS c, id % 2 AS label FROM generate_series(1, 3000000) id', features => '{c}', max_epochs => 1, options => '{\"hash\": \"off\"}')",
    "SELECT corgipile_train('SELECT id % 2 AS label, id AS g, x FROM generate_series(1, 3000000) id, (SELECT x FROM t LIMIT 1) t', features => '{x}', group_by => 'g', max_epochs => 1)",
    // a model of somebody's making
    "SELECT corgipile_import(jsonb_set(corgipile_export('tiny'), '{weights}', to_jsonb(array_fill(1, ARRAY[20000000]))), 'huge')",
    "SELECT corgipile_predict(jsonb_set(corgipile_export('tiny'), '{weights}', to_jsonb(array_fill(1, ARRAY[20000000]))), ARRAY[1, 2, 3])",
];

/// Address space that the greedy session may take.
const ROOM: u64 = 300 << 20;

#[test]
fn an_ordinary_user_cannot_take_all_memory() {
    let cluster = Cluster::new(&["log_min_messages = error"]);
    let mut db = cluster.session();
    if !cluster.limit_memory(db.pid(), None) {
        return skip(an_ordinary_user_cannot_take_all_memory, "prlimit is not allowed");
    }
    tables(&mut db);
    db.run(
        "CREATE ROLE anna LOGIN; GRANT CREATE ON SCHEMA public TO anna; GRANT SELECT ON ALL TABLES IN SCHEMA public TO anna;
         CREATE TABLE s AS SELECT i % 2 AS label, ARRAY[1, 134217726 - i % 2] AS k, ARRAY[1, 2 * (i % 2)]::real[] AS v
                             FROM generate_series(1, 20) i;
         CREATE VIEW arrays AS SELECT i % 2 AS label, array_fill(i::real, ARRAY[2000000]) AS x FROM generate_series(1, 200) i;
         SELECT corgipile_compress('s', 'many', features => '{k,v}', dimensions => 134217726, batch_rows => 10);
         GRANT SELECT ON s, arrays, many TO anna",
    );
    cluster.session_as("anna").run("SELECT corgipile_train('t', features => '{x}', max_epochs => 1, name => 'tiny')");
    let watch = Watch::over(&cluster);
    let mut succeeded = Vec::new();
    let mut other = cluster.session();
    let step = sample(1, 3);
    let first = Draw::new(probe::seed(), "greed").below(step as u64) as usize;
    let (mut tried, mut ended) = (0, 0);
    for (i, sql) in GREEDY.iter().enumerate().skip(first).step_by(step) {
        tried += 1;
        watch.step();
        let mut anna = cluster.session_as("anna");
        anna.run("SELECT corgipile_predict('tiny', x) FROM t LIMIT 1");
        let result = limited(&cluster, &mut anna, ROOM, false, sql);
        let complaints = complaints(&cluster);
        assert!(complaints.is_empty(), "{sql}\n{result:#?}\n{complaints:#?}");
        match result {
            Ok(lines) => succeeded.push(format!("{i}: {sql}: {lines:?}")),
            Err(failure) => {
                println!("{i}: {} {}", failure.code, failure.message);
                assert!(failure.message.len() < 3000, "{sql}: a message of {} bytes", failure.message.len());
                // at worst this one session ends
                if anna.attempt("SELECT 1").is_err() {
                    assert!(failure.code == "53200" || failure.code == "closed", "{sql}: {failure:#?}");
                    ended += 1;
                }
            }
        }
        assert_eq!(other.line("SELECT count(*) > 0 FROM t"), "t");
    }
    assert!(succeeded.is_empty(), "{succeeded:#?}");
    let left = leftovers(&cluster, &mut db);
    assert!(left.is_empty(), "{left:#?}");
    report(&format!("Greed: {tried} statements of an ordinary user, an error each, {ended} sessions ended"));
}
