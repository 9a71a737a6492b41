//! Plans in which another extension has a custom scan: the rows that it gives are those that are read.
//!
//! `tests/extension/hooked.c` is that extension. Its scan reads tables named `hooked_...`, and gives all of their rows,
//! and not only those that it should, if its ExecutorRun hook has not been called before.

use corgipile_tests::{Cluster, Database, Nodes, Session, hooked, log, skip};

/// Ids from 1 to 2000, of which the scan of a hooked table gives those that 5 does not divide.
const SETUP: &str = "
    CREATE TABLE plain (id int PRIMARY KEY, label int, a real, b real);
    INSERT INTO plain SELECT i, i % 2, normal(i, 1) + i % 2, normal(i, 2) FROM generate_series(1, 2000::bigint) i;
    CREATE TABLE hooked_t (LIKE plain); INSERT INTO hooked_t TABLE plain;
    CREATE TABLE small (id int, label int, a real, b real); INSERT INTO small SELECT * FROM plain WHERE id <= 100;
    CREATE TABLE parted (LIKE plain) PARTITION BY RANGE (id);
    CREATE TABLE p1 PARTITION OF parted FOR VALUES FROM (1) TO (1001);
    CREATE TABLE hooked_p2 PARTITION OF parted FOR VALUES FROM (1001) TO (1501);
    CREATE TABLE hooked_p3 PARTITION OF parted FOR VALUES FROM (1501) TO (2001);
    INSERT INTO parted TABLE plain;
    CREATE VIEW seen AS SELECT * FROM hooked_t WHERE id <= 1000;
    CREATE TABLE ids AS SELECT i AS id FROM generate_series(1, 2000) i WHERE i % 5 > 0;
    CREATE SEQUENCE preparations;
    CREATE FUNCTION hooked_ids() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('preparations');
        RETURN QUERY SELECT id FROM ids;
    END $$;
    ANALYZE";

/// Sources with a scan of the other extension, somewhere in their plans.
const SOURCES: [&str; 14] = [
    "hooked_t",
    "parted",
    "seen",
    "SELECT label, a, b FROM hooked_t WHERE a > 0",
    "SELECT label, a, b FROM hooked_t ORDER BY a LIMIT 1900",
    "SELECT label, a, b FROM hooked_t UNION ALL SELECT label, a, b FROM plain",
    "SELECT label, a, b FROM hooked_t EXCEPT SELECT label, a, b FROM small",
    "SELECT p.label, p.a, h.b FROM plain p JOIN hooked_t h USING (id)",
    "SELECT label, a, b FROM plain WHERE id IN (SELECT id FROM hooked_t)",
    "SELECT label, a, b FROM plain WHERE id NOT IN (SELECT id FROM hooked_t)",
    "SELECT label, a, b FROM plain WHERE id <= (SELECT count(*) FROM hooked_t)",
    "SELECT label, a, b FROM plain p WHERE id % 5 > 0 OR EXISTS (SELECT FROM hooked_t h WHERE h.id = p.id)",
    "WITH w AS MATERIALIZED (SELECT * FROM hooked_t) SELECT label, a, b FROM w x JOIN (TABLE w) y USING (id, label, a, b)",
    "SELECT label, a, b FROM small, LATERAL (SELECT h.id FROM hooked_t h WHERE h.id = small.id OFFSET 0) l",
];

/// A database where the other extension is loaded before ours, and a session of it where it comes afterwards. None, and
/// the test is skipped, where it cannot be compiled.
fn databases<T>(test: T) -> Option<(Database, Session)> {
    match hooked() {
        Err(reason) => {
            skip(test, &reason);
            None
        }
        Ok(library) => {
            let mut db = Database::new();
            let load = format!("LOAD '{}'", library.display());
            db.run(&load);
            db.run(SETUP);
            let mut other = db.session();
            other.run("SELECT count(*) FROM corgipile_shuffle_order('corgipile', 1, 1, 10, 2)");
            other.run(&load);
            Some((db, other))
        }
    }
}

/// Calls of everything that reads a source; each gives the number of its rows.
fn readers(source: &str, model: i64) -> Vec<String> {
    let train = |more: &str| {
        format!("SELECT max(tuples) FROM corgipile_train($${source}$$, features => '{{a,b}}', max_epochs => 2{more})")
    };
    vec![
        train(""),
        train(", shuffle => 'epoch_shuffle'"),
        train(", shuffle => 'sliding_window'"),
        train(", options => '{\"standardize\": true}'"),
        format!("SELECT value::int FROM corgipile_evaluate({model}, $${source}$$) WHERE metric = 'tuples'"),
        format!("SELECT tuples FROM corgipile_compress($${source}$$, 'compressed', features => '{{a,b}}')"),
        format!(
            "SELECT max(tuples) FROM corgipile_train_uda($${source}$$, features => '{{a,b}}', max_epochs => 2,
                                                         options => '{{\"standardize\": true}}')"
        ),
    ]
}

/// How often the other extension has made its scans ready.
fn preparations(session: &mut Session) -> i64 {
    session.value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM preparations")
}

#[test]
fn every_function_reads_the_rows_that_another_extensions_scan_gives() {
    let Some((mut db, other)) = databases(every_function_reads_the_rows_that_another_extensions_scan_gives) else {
        return;
    };
    let model = db.train("'plain', features => '{a,b}', max_epochs => 1")[0].model_id;
    assert_eq!(db.line("SELECT count(*) FROM hooked_t"), "1600");
    let mut sessions = [db.session(), other];
    sessions[0].run(&format!("LOAD '{}'", hooked().expect("compiled before").display()));
    for session in &mut sessions {
        for source in SOURCES {
            let from = if source.contains(' ') { format!("({source}) s") } else { source.to_owned() };
            let expected = session.line(&format!("SELECT count(*) FROM {from}"));
            for call in readers(source, model) {
                assert_eq!(session.line(&call), expected, "{call}");
                session.run("DROP TABLE IF EXISTS compressed");
            }
        }
        for (table, same) in [("hooked_t", "id % 5 > 0"), ("parted", "id <= 1000 OR id % 5 > 0")] {
            let same = format!("SELECT * FROM plain WHERE {same} ORDER BY id");
            session.assert_same_rows(&format!("SELECT * FROM corgipile_shuffle(NULL::{table})"), &same);
            let factor = |source: &str| format!("SELECT corgipile_cluster_factor('{source}', 'label', '{{a,b}}')");
            assert_eq!(session.line(&factor(table)), session.line(&factor(&same)), "{table}");
        }
    }
    let complaints: Vec<_> = log(db.name()).into_iter().filter(|line| line.contains("WARNING")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_seed_promises_nothing_where_another_extension_orders_the_rows() {
    let test = a_seed_promises_nothing_where_another_extension_orders_the_rows;
    let Some((db, _)) = databases(test) else { return };
    let load = format!("LOAD '{}'", hooked().expect("compiled before").display());
    let told = |source: &str, seed: &str| {
        db.notices(&[
            &load,
            &format!("SELECT FROM corgipile_train('{source}', features => '{{a,b}}', max_epochs => 1{seed})"),
        ])
    };
    let remark = "NOTICE:  rows are read in the order of another extension's scan: the same seed may give another model\n\
                  HINT:  To fix their order, use a query with ORDER BY over unique columns as source, or copy the rows into a table.\n";
    for source in ["hooked_t", "SELECT p.* FROM plain p JOIN hooked_t h USING (id)"] {
        assert!(told(source, ", seed => 7").contains(remark), "{source}");
        assert!(!told(source, "").contains("another extension"), "{source}: no seed was given");
    }
    assert!(!told("plain", ", seed => 7").contains("another extension"));
}

#[test]
fn the_order_of_a_sorted_source_is_kept_where_another_extension_plans_it() {
    let test = the_order_of_a_sorted_source_is_kept_where_another_extension_plans_it;
    let Some((mut db, _)) = databases(test) else { return };
    db.run("CREATE VIEW ordered AS SELECT * FROM hooked_t ORDER BY a, id");
    let sorted = |db: &mut Database, from: &str| {
        let places = format!("SELECT a, row_number() OVER () AS place FROM ({from}) s");
        db.line(&format!(
            "SELECT count(*) FROM (SELECT a < lag(a) OVER (ORDER BY place) AS falls FROM ({places}) p) f WHERE falls"
        ))
    };
    assert_ne!(
        sorted(&mut db, "SELECT * FROM hooked_t ORDER BY a, id"),
        "0",
        "the extension drops the order of a subquery"
    );
    let load = format!("LOAD '{}'", hooked().expect("compiled before").display());
    let call = |source: &str| {
        format!(
            "corgipile_train($${source}$$, 'logistic', features => '{{a,b}}', max_epochs => 1, seed => 7,
                             shuffle => 'no_shuffle', learning_rate => 0.5)"
        )
    };
    let weights = |db: &mut Database, source: &str| {
        let model: i64 = db.value(&format!("SELECT max(model_id) FROM {}", call(source)));
        db.line(&format!("SELECT weights FROM corgipile.models WHERE model_id = {model}"))
    };
    for (source, same) in [
        ("SELECT label, a, b FROM hooked_t ORDER BY a, id", "SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a, id"),
        ("ordered", "SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a, id"),
        (
            "SELECT label, a, b FROM (SELECT * FROM (SELECT * FROM hooked_t ORDER BY a DESC, id) s WHERE id > 9) o",
            "SELECT * FROM plain WHERE id % 5 > 0 AND id > 9 ORDER BY a DESC, id",
        ),
        (
            "WITH s AS (SELECT * FROM hooked_t ORDER BY a, id), o AS (TABLE s) SELECT label, a, b FROM o",
            "SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a, id",
        ),
        (
            "(SELECT * FROM hooked_t ORDER BY a, id) UNION ALL (SELECT * FROM hooked_t ORDER BY a DESC, id)",
            "(SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a, id)
             UNION ALL (SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a DESC, id)",
        ),
        (
            "SELECT * FROM hooked_t ORDER BY a, id OFFSET 100",
            "SELECT * FROM plain WHERE id % 5 > 0 ORDER BY a, id OFFSET 100",
        ),
    ] {
        db.run("DROP TABLE IF EXISTS in_order");
        db.run(&format!("CREATE TABLE in_order AS {same}"));
        assert_eq!(weights(&mut db, source), weights(&mut db, "in_order"), "{source}");
        // the order is that of the query
        let heard = db.notices(&[&load, &format!("SELECT FROM {}", call(source))]);
        assert!(!heard.contains("in the order of another extension's scan"), "{source}: {heard}");
    }
    assert_ne!(weights(&mut db, "hooked_t"), weights(&mut db, "in_order"));
}

#[test]
fn foreign_tables_are_read_one_after_the_other_whichever_server_answers_first() {
    let test = foreign_tables_are_read_one_after_the_other_whichever_server_answers_first;
    let Some(mut nodes) = Nodes::new(test) else { return };
    for session in &mut nodes.sessions() {
        session.run(
            "CREATE TABLE readings (id int, label int, a real, b real);
             INSERT INTO readings SELECT i, i % 2, normal(i, 1) + i % 2, normal(i, 2) FROM generate_series(1, 1000::bigint) i",
        );
    }
    nodes.near.run(
        "CREATE TABLE readings (id int, label int, a real, b real) PARTITION BY LIST (id);
         CREATE FOREIGN TABLE far_1 PARTITION OF readings DEFAULT SERVER north
           OPTIONS (table_name 'readings', async_capable 'true');
         CREATE FOREIGN TABLE far_2 (id int, label int, a real, b real) SERVER south
           OPTIONS (table_name 'readings', async_capable 'true');
         CREATE VIEW both_parts AS SELECT * FROM readings UNION ALL SELECT * FROM far_2",
    );
    let near = &mut nodes.near;
    let plain = near.lines("EXPLAIN SELECT * FROM both_parts").join("\n");
    assert_eq!(plain.matches("Async Foreign Scan").count(), 2, "PostgreSQL itself reads them by turns: {plain}");
    let train = "corgipile_train('both_parts', features => '{a,b}', max_epochs => 2, seed => 7)";
    let plan = near.lines(&format!("EXPLAIN SELECT * FROM {train}")).join("\n");
    assert_eq!((plan.matches("Async").count(), plan.matches("Foreign Scan").count()), (0, 2), "{plan}");
    let weights = |near: &mut Database| {
        let model: i64 = near.value(&format!("SELECT max(model_id) FROM {train}"));
        near.line(&format!("SELECT weights FROM corgipile.models WHERE model_id = {model}"))
    };
    let first = weights(near);
    assert_eq!(weights(near), first);
    assert_eq!(near.line("SHOW enable_async_append"), "on", "the user's setting is as it was");
}

#[test]
fn no_worker_runs_another_extensions_scan() {
    let Some((mut db, _)) = databases(no_worker_runs_another_extensions_scan) else { return };
    let load = format!("LOAD '{}'", hooked().expect("compiled before").display());
    for source in ["hooked_t", "parted", "SELECT label, a, b FROM plain WHERE id IN (SELECT id FROM hooked_t)"] {
        let from = if source.contains(' ') { format!("({source}) s") } else { source.to_owned() };
        let expected = db.line(&format!("SELECT count(*) FROM {from}"));
        let train = |more: &str| {
            format!(
                "SELECT max(tuples) FROM corgipile_train($${source}$$, features => '{{a,b}}', max_epochs => 9{more})"
            )
        };
        for (more, told) in [
            (", prefetch => 'on'", "buffers are not prefetched: custom scan of another extension"),
            (", workers => 3", "by 1 of 3 requested processes: custom scan of another extension"),
            ("", ""),
        ] {
            assert_eq!(db.line(&train(more)), expected, "{source}{more}");
            let heard = db.notices(&[&load, &train(more)]);
            assert!(heard.contains(told), "{source}{more}: {heard}");
            assert!(!heard.contains("WARNING"), "{source}{more}: {heard}");
            assert!(!told.is_empty() || !heard.contains("prefetched"), "{source}{more}: {heard}");
        }
        let plan = db.lines(&format!("EXPLAIN ANALYZE {}", train("")));
        assert!(plan.iter().any(|line| line.contains("custom scan of another extension")), "{plan:#?}");
        assert!(plan.iter().any(|line| line.contains("(HookedScan)")), "{plan:#?}");
    }
}

#[test]
fn another_extensions_hook_is_called_once_and_when_rows_are_read() {
    let Some((mut db, _)) = databases(another_extensions_hook_is_called_once_and_when_rows_are_read) else { return };
    let calls = [
        "SELECT * FROM corgipile_train('hooked_t', 'logistic', features => '{a,b}', max_epochs => 5)",
        "SELECT * FROM corgipile_train('hooked_t', 'logistic', features => '{a,b}', max_epochs => 5, options => '{\"standardize\": true}')",
        "SELECT * FROM corgipile_shuffle(NULL::hooked_t)",
        "SELECT count(*) FROM plain p, LATERAL (SELECT * FROM corgipile_shuffle(NULL::hooked_t) s WHERE s.id = p.id OFFSET 0) l
          WHERE p.id < 9",
    ];
    for call in calls {
        for explain in ["EXPLAIN", "EXPLAIN (VERBOSE, FORMAT JSON)"] {
            let before = preparations(&mut db);
            db.run(&format!("{explain} {call}"));
            assert_eq!(preparations(&mut db), before, "{explain} {call}");
        }
        for run in ["", "EXPLAIN ANALYZE "] {
            let before = preparations(&mut db);
            db.run(&format!("{run}{call}"));
            assert_eq!(preparations(&mut db), before + 1, "{run}{call}");
        }
        let before = preparations(&mut db);
        db.run(&format!("BEGIN; DECLARE c CURSOR FOR {call}"));
        assert_eq!(preparations(&mut db), before, "nothing was fetched of {call}");
        db.run("FETCH 1 FROM c; FETCH 1 FROM c; COMMIT");
        assert_eq!(preparations(&mut db), before + 1, "{call}");
    }
    let before = preparations(&mut db);
    db.run("SELECT corgipile_train('plain', features => '{a,b}', max_epochs => 2)");
    assert_eq!(preparations(&mut db), before, "there is no such scan");
}

#[test]
fn an_error_in_another_extensions_hook_ends_the_statement_alone() {
    let Some((mut db, _)) = databases(an_error_in_another_extensions_hook_ends_the_statement_alone) else { return };
    let train = "SELECT max(tuples) FROM corgipile_train('hooked_t', features => '{a,b}', max_epochs => 2)";
    db.run("ALTER TABLE ids RENAME TO gone");
    db.rejects(train, "42P01").says(&["\"ids\""]);
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::hooked_t)", "42P01");
    db.run("ALTER TABLE gone RENAME TO ids");
    assert_eq!(db.line(train), "1600");
}

#[test]
fn statistics_and_logs_of_statements_have_inner_queries_of_functions_as_nested_ones() {
    let test = statistics_and_logs_of_statements_have_inner_queries_of_functions_as_nested_ones;
    let library = match hooked() {
        Ok(library) => library,
        Err(reason) => return skip(test, &reason),
    };
    if !Database::new().offers_extension("pg_stat_statements") {
        return skip(test, "the server has no extension pg_stat_statements");
    }
    let cluster = Cluster::new(&[
        "shared_preload_libraries = 'pg_stat_statements, auto_explain'",
        "pg_stat_statements.track_planning = on",
        "auto_explain.log_min_duration = 0",
    ]);
    let mut db = cluster.session();
    db.run(&format!("CREATE EXTENSION pg_stat_statements; LOAD '{}'", library.display()));
    db.run(SETUP);
    let inner = |text: &str| ["FROM public.plain", "FROM public.hooked_t"].iter().any(|from| text.contains(from));
    for shows_nested in [false, true] {
        if shows_nested {
            db.run("SET pg_stat_statements.track = 'all'; SET auto_explain.log_nested_statements = on");
        }
        let (nodes, functions) = (
            "SELECT * FROM corgipile_train('{}', features => '{a,b}', max_epochs => 2);
             SELECT count(*) FROM corgipile_shuffle(NULL::{});
             EXPLAIN ANALYZE SELECT * FROM corgipile_train('{}', features => '{a,b}', max_epochs => 2)",
            "SELECT corgipile_cluster_factor('{}', 'label', '{a,b}', model => 'logistic');
             SELECT * FROM corgipile_evaluate(1, '{}'::text)",
        );
        for (calls, shows) in [(nodes, false), (functions, shows_nested)] {
            db.run("SELECT pg_stat_statements_reset()");
            let before = cluster.log_after(0).1;
            for table in ["plain", "hooked_t"] {
                db.run(&calls.replace("{}", table));
            }
            let known = db.lines("SELECT toplevel, calls, plans, rows, query FROM pg_stat_statements");
            assert!(
                known
                    .iter()
                    .any(|entry| entry.contains("SELECT corgipile_") || entry.contains("SELECT * FROM corgipile_")),
                "{known:#?}"
            );
            let of_inner: Vec<&String> = known.iter().filter(|entry| inner(entry)).collect();
            assert_eq!(!of_inner.is_empty(), shows, "{known:#?}");
            if shows {
                // an evaluation has read all rows of its table, and the factor all of them twice
                let expected = [
                    "f|2|2|6000|SELECT label, a, b FROM public.plain",
                    "f|2|2|4800|SELECT label, a, b FROM public.hooked_t",
                ];
                let mut of_inner = of_inner.clone();
                of_inner.sort_by_key(|entry| entry.contains("hooked"));
                assert_eq!(of_inner, expected);
            }
            let log = cluster.log_after(before).0;
            let told = log.lines().any(|line| line.contains("Query Text") && inner(line));
            assert_eq!(told, shows, "{log}");
        }
    }
}
