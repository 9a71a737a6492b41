//! Partitioned and inherited tables: read as if they were one table.

use corgipile_tests::{Database, Session, clustered};

/// Creates `p`, partitioned by id, whose partitions have the same pages as `t`, which is sorted by label: this many in
/// each, and the rest in the last. Between them are empty partitions.
fn same_pages(db: &mut Database, rows: u32, pages: &[u32]) {
    clustered(db, "t", rows);
    db.run("CREATE TABLE p (LIKE t) PARTITION BY RANGE (id)");
    let mut from = "MINVALUE".to_owned();
    let mut page = 0;
    for (i, pages) in pages.iter().enumerate() {
        page += pages;
        let to: i32 = db.value(&format!("SELECT min(id) FROM t WHERE ctid >= '({page},0)'"));
        db.run(&format!("CREATE TABLE p{i} PARTITION OF p FOR VALUES FROM ({from}) TO ({to})"));
        from = to.to_string();
    }
    db.run(&format!(
        "CREATE TABLE rest PARTITION OF p FOR VALUES FROM ({from}) TO ({rows} + 1) PARTITION BY RANGE (id);
         CREATE TABLE rest_all PARTITION OF rest FOR VALUES FROM ({from}) TO ({rows} + 1);
         CREATE TABLE none PARTITION OF p FOR VALUES FROM ({rows} + 1) TO (MAXVALUE);
         INSERT INTO p SELECT * FROM t ORDER BY id"
    ));
    db.run("VACUUM ANALYZE t, p");
    let sum = "SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('p')";
    assert_eq!(db.line(sum), db.line("SELECT pg_relation_size('t')"), "the partitions have the same pages");
}

/// The plan of a training, without costs.
fn plan(db: &mut Session, source: &str) -> String {
    let train = format!("SELECT * FROM corgipile_train($s${source}$s$, max_epochs => 1, seed => 1)");
    db.lines(&format!("EXPLAIN (COSTS OFF) {train}")).join("\n")
}

#[test]
fn a_partitioned_table_trains_as_the_one_table_with_the_same_pages() {
    let mut db = Database::new();
    same_pages(&mut db, 6000, &[1, 7, 20]);
    let rest = "features => '{features_v}', max_epochs => 3, seed => 5";
    let options = |cache: &str| format!("options => '{{\"cache\": \"{cache}\"}}'");
    for more in [
        options("off"),
        options("on"),
        "block_size => '40kB', buffer_size => '30%'".into(),
        "shuffle => 'no_shuffle'".into(),
        "shuffle => 'block_only'".into(),
        "shuffle => 'sliding_window'".into(),
        "shuffle => 'mrs'".into(),
        "prefetch => 'on'".into(),
        "buffer_size => '50%', workers => 2".into(),
        "options => '{\"standardize\": true, \"batch_size\": 16}'".into(),
    ] {
        let expected = db.trained(&format!("'t', {rest}, {more}")).bits();
        assert_eq!(db.trained(&format!("'p', {rest}, {more}")).bits(), expected, "{more}");
    }
    for (one, parts) in [
        ("SELECT label, features_v FROM t WHERE id % 3 <> 0", "SELECT label, features_v FROM p WHERE id % 3 <> 0"),
        (
            "SELECT label = 1 AS label, features_v[1:3] AS features_v FROM t",
            "SELECT label = 1 AS label, features_v[1:3] AS features_v FROM p",
        ),
    ] {
        let expected = db.trained(&format!("$${one}$$, {rest}")).bits();
        assert_eq!(db.trained(&format!("$${parts}$$, {rest}")).bits(), expected, "{parts}");
    }
}

#[test]
fn an_inherited_table_trains_as_the_one_table_with_the_same_pages() {
    let mut db = Database::new();
    same_pages(&mut db, 6000, &[9, 11]);
    db.run(
        "CREATE TABLE parent (LIKE t); CREATE TABLE a () INHERITS (parent); CREATE TABLE b () INHERITS (parent);
         INSERT INTO parent SELECT * FROM p0 ORDER BY id; INSERT INTO a SELECT * FROM p1 ORDER BY id;
         INSERT INTO b SELECT * FROM rest ORDER BY id",
    );
    for columns in ["label, features_v", "features_v, label", "1 - label AS label, features_v"] {
        let rest = "max_epochs => 3, seed => 5, features => '{features_v}'";
        let expected = db.trained(&format!("'SELECT {columns} FROM t', {rest}")).bits();
        assert_eq!(db.trained(&format!("'SELECT {columns} FROM parent', {rest}")).bits(), expected, "{columns}");
        assert!(plan(&mut db, &format!("SELECT {columns} FROM parent")).contains("Tables: 3"), "{columns}");
    }
    let union = "SELECT label, features_v FROM p0 UNION ALL SELECT label, features_v FROM p1
                 UNION ALL SELECT label, features_v FROM rest_all";
    let expected = db.trained("'t', max_epochs => 3, seed => 5, features => '{features_v}'").bits();
    assert_eq!(db.trained(&format!("'{union}', max_epochs => 3, seed => 5")).bits(), expected, "UNION ALL");
}

#[test]
fn shuffled_rows_of_partitions_are_all_rows_in_the_order_of_one_table() {
    let mut db = Database::new();
    same_pages(&mut db, 4000, &[3, 10]);
    for arguments in ["seed => 3", "seed => 3, epoch => 2", "seed => 3, buffer_size => '20%'"] {
        let ids = |table: &str| format!("SELECT id FROM corgipile_shuffle(NULL::{table}, {arguments})");
        let expected: Vec<i32> = db.column(&ids("t"));
        assert_eq!(db.column::<i32>(&ids("p")), expected, "{arguments}");
    }
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::p)", "SELECT * FROM t");
    // a buffer mixes blocks of all partitions, and with them both labels
    let first: Vec<i32> = db.column("SELECT label FROM corgipile_shuffle(NULL::p, seed => 1) LIMIT 200");
    let ones = first.iter().sum::<i32>();
    assert!((20..180).contains(&ones), "{ones} of 200");
}

#[test]
fn partitions_with_other_columns_are_mapped() {
    let mut db = Database::with_small_table(3000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (1000);
         CREATE TABLE p1 (c real, gone text, b real, label int, also_gone real[], a real, id int NOT NULL);
         INSERT INTO p1 SELECT c, 'x', b, label, ARRAY[a], a, id FROM t WHERE id BETWEEN 1000 AND 1500;
         ALTER TABLE p1 DROP gone, DROP also_gone;
         CREATE TABLE p2 (LIKE t) PARTITION BY LIST (label);
         ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (1000) TO (2000);
         ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (2000) TO (9999);
         CREATE TABLE p20 (label int, id int NOT NULL, c real, b real, a real);
         ALTER TABLE p2 ATTACH PARTITION p20 FOR VALUES IN (0);
         CREATE TABLE p2x PARTITION OF p2 DEFAULT; ALTER TABLE p2x ADD CHECK (id > 0);
         INSERT INTO p SELECT * FROM t WHERE id NOT BETWEEN 1000 AND 1500",
    );
    assert!(plan(&mut db, "p").contains("Tables: 4"));
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::p)", "SELECT * FROM t");
    let epochs = db.train("'p', features => '{a,b,c}', max_epochs => 4, learning_rate => 0.001");
    assert!(epochs.iter().all(|epoch| epoch.tuples == 3000), "{epochs:?}");
    // the sums that an epoch learns from: one Adam step over all rows is the same in any order, but for rounding
    let step = "features => '{a,b,c}', max_epochs => 1, shuffle => 'no_shuffle', learning_rate => 0.1,
                options => '{\"batch_size\": 3000}'";
    let (t, p) = (db.trained(&format!("'t', {step}")), db.trained(&format!("'p', {step}")));
    for (t, p) in t.weights.iter().zip(&p.weights) {
        assert!((t - p).abs() < 1e-5 * t.abs().max(1.0), "{t} {p}");
    }
}

#[test]
fn partitions_that_the_filter_excludes_are_not_read() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE p (day timestamptz, label int, a real) PARTITION BY RANGE (day);
         CREATE TABLE old PARTITION OF p FOR VALUES FROM (MINVALUE) TO ('2001-01-01');
         CREATE TABLE mid PARTITION OF p FOR VALUES FROM ('2001-01-01') TO ('2001-02-01');
         CREATE TABLE new PARTITION OF p FOR VALUES FROM ('2001-02-01') TO (MAXVALUE);
         INSERT INTO p SELECT day, i % 2, i FROM generate_series(1, 600) i,
           unnest(ARRAY['2000-06-01', '2001-01-15', '2001-03-01']::timestamptz[]) AS day",
    );
    let tables = |plan: &str| plan.lines().filter(|line| line.contains("BlockShuffle) on")).count();
    for (filter, expected, rows) in [
        ("true", 3, 1800),
        ("day >= '2001-01-01'", 2, 1200),
        ("day < '2001-01-01' AND a <= 100", 1, 100),
        ("day = '2001-01-15'", 1, 600),
        // known only when execution starts
        ("day > now() - interval '1 day' OR day < now() - interval '25 years 6 months'", 0, 0),
        ("day >= make_timestamptz(2001, 2, 1, 0, 0, 0)", 1, 600),
    ] {
        let source = format!("SELECT label, a FROM p WHERE {filter}");
        let plan = plan(&mut db, &source);
        assert!(!plan.contains("Seq Scan"), "{plan}");
        if rows == 0 {
            continue;
        }
        assert_eq!(tables(&plan), expected, "{filter}\n{plan}");
        assert_eq!(db.train(&format!("$${source}$$, max_epochs => 2"))[1].tuples, rows, "{filter}");
    }
    // what is not read need not be readable
    db.run("UPDATE old SET label = NULL");
    assert_eq!(db.train("$$SELECT label, a FROM p WHERE day >= '2001-01-01'$$, max_epochs => 1")[0].tuples, 1200);
    db.rejects("SELECT * FROM corgipile_train('SELECT label, a FROM p', options => '{\"nulls\": \"error\"}')", "22004")
        .says(&["label is NULL", "of old"]);
    for filter in ["false", "day IS NULL", "day > now() + interval '1 day'"] {
        let train = format!("SELECT * FROM corgipile_train($$SELECT label, a FROM p WHERE {filter}$$)");
        db.rejects(&train, "22000").says(&["no rows"]);
    }
}

/// PostgreSQL computes such a subquery once, and its result is a parameter of the plan.
#[test]
fn expressions_over_several_tables_may_have_subqueries() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE one (x numeric); INSERT INTO one VALUES (5.25);
         CREATE TABLE parent (id int, label int, a real); CREATE TABLE child () INHERITS (parent);
         CREATE TABLE p (LIKE parent) PARTITION BY LIST (label);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         INSERT INTO parent SELECT i, i % 2, i % 3 FROM generate_series(1, 100) i;
         INSERT INTO child SELECT i, i % 2, i % 3 FROM generate_series(1, 100) i; INSERT INTO p TABLE parent; ANALYZE",
    );
    for (i, from) in ["parent", "p", "(SELECT * FROM p0 UNION ALL SELECT * FROM p1) u"].iter().enumerate() {
        for (j, (columns, filter)) in [
            ("label, a + (SELECT max(x) FROM one) AS a", "true"),
            ("label, a + (SELECT 5.25) AS a", "true"),
            ("label, a", "a < (SELECT max(x) - 4 FROM one)"),
            ("label, CASE WHEN EXISTS (TABLE one) THEN a ELSE 0 END AS a", "id > (SELECT min(x) FROM one)"),
        ]
        .iter()
        .enumerate()
        {
            let source = format!("SELECT {columns} FROM {from} WHERE {filter}");
            let copy = format!("copy_{i}_{j}");
            db.run(&format!("CREATE TABLE {copy} AS {source}"));
            let train =
                |source: &str| format!("$${source}$$, features => '{{a}}', max_epochs => 2, shuffle => 'no_shuffle'");
            let expected = db.trained(&train(&copy)).bits();
            assert_eq!(db.trained(&train(&source)).bits(), expected, "{source}");
            let in_worker = db.trained(&format!("{}, prefetch => 'on'", train(&source)));
            assert_eq!(in_worker.bits(), expected, "{source}");
        }
    }
}

#[test]
fn rows_of_partitions_are_named_with_their_table() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE p (label int, a real, b int) PARTITION BY LIST (label);
         CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
         INSERT INTO p SELECT i % 2, i, 0 FROM generate_series(1, 200) i; UPDATE p SET a = NULL WHERE a = 51",
    );
    for source in ["p", "SELECT label, a FROM p WHERE b = 0", "SELECT label, a + 1 AS a FROM p"] {
        db.rejects(
            &format!("SELECT * FROM corgipile_train('{source}', options => '{{\"nulls\": \"error\"}}')"),
            "22004",
        )
        .says(&["row (0,101) of p1"]);
    }
}

#[test]
fn a_partition_that_is_no_heap_sends_all_of_them_to_the_spool() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE near PARTITION OF p FOR VALUES FROM (0) TO (2001);
         CREATE ACCESS METHOD another TYPE TABLE HANDLER heap_tableam_handler;
         CREATE TABLE other PARTITION OF p FOR VALUES FROM (2001) TO (9999) USING another;
         INSERT INTO p SELECT * FROM t",
    );
    // the same methods by another name
    assert!(plan(&mut db, "SELECT label, features_v FROM p").contains("Tables: 2"));
    if db.line("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'") == "0" {
        let this = a_partition_that_is_no_heap_sends_all_of_them_to_the_spool;
        return corgipile_tests::skip(this, "postgres_fdw is not installed");
    }
    let name = db.name().to_owned();
    db.run(&format!(
        "CREATE EXTENSION postgres_fdw; CREATE TABLE far AS TABLE other; DROP TABLE other;
         DO $$ BEGIN EXECUTE format('CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host %L, port %L, dbname %L)',
             split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), '{name}'); END $$;
         CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE other PARTITION OF p FOR VALUES FROM (2001) TO (9999) SERVER here OPTIONS (table_name 'far')"
    ));
    let plan = plan(&mut db, "SELECT label, features_v FROM p");
    assert!(plan.contains("Seq Scan on near") && plan.contains("Foreign Scan"), "{plan}");
    let epochs = db.train("'p', features => '{features_v}', max_epochs => 2");
    assert!(epochs.iter().all(|epoch| epoch.tuples == 3000), "{epochs:?}");
    // pruned, it is in no one's way
    let near = "SELECT label, features_v FROM p WHERE id < 2001";
    assert_eq!(db.train(&format!("'{near}', max_epochs => 1"))[0].tuples, 2000);
}

#[test]
fn partitions_need_no_privileges_of_their_own() {
    let mut db = Database::with_small_table(1000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (500);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (500) TO (9999); INSERT INTO p SELECT * FROM t;
         CREATE TABLE parent (LIKE t); CREATE TABLE child () INHERITS (parent); INSERT INTO child SELECT * FROM t",
    );
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON p, parent TO {user}"));
    let mut session = db.session_as(&user);
    for (parent, part) in [("p", "p0"), ("parent", "child")] {
        let call = |table: &str| {
            [
                format!("corgipile_train('{table}', features => '{{a,b,c}}', max_epochs => 1)"),
                format!("corgipile_shuffle(NULL::{table})"),
                format!("corgipile_cluster_factor('{table}', 'label', '{{a,b,c}}')"),
            ]
        };
        for (allowed, denied) in call(parent).iter().zip(call(part)) {
            assert!(!session.lines(&format!("SELECT * FROM {allowed}")).is_empty(), "{allowed}");
            session.fails_with(&format!("SELECT * FROM {denied}"), "42501").says(&[part]);
        }
    }
    // policies of the parent hold for what is read through it, those of a partition do not
    db.run(&format!(
        "CREATE POLICY few ON p USING (id <= 700); ALTER TABLE p ENABLE ROW LEVEL SECURITY;
         ALTER TABLE p0 ENABLE ROW LEVEL SECURITY; GRANT SELECT ON p0 TO {user}"
    ));
    let train = |table: &str| format!("'{table}', features => '{{a,b,c}}', max_epochs => 1");
    assert_eq!(session.train(&train("p"))[0].tuples, 700);
    assert_eq!(session.lines("SELECT id FROM corgipile_shuffle(NULL::p)").len(), 700);
    session.rejects(&format!("SELECT * FROM corgipile_train({})", train("p0")), "22000").says(&["no rows"]);
    assert!(plan(&mut session, "SELECT label, a FROM p").contains("Tables: 2"));
}

#[test]
fn hundreds_of_partitions_hold_no_more_than_a_page_each_time() {
    let mut db = Database::with_small_table(6000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY LIST (id);
         DO $$ BEGIN FOR i IN 0..299 LOOP
           EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES IN (%s)', i,
             (SELECT string_agg((20 * i + j)::text, ',') FROM generate_series(1, 20) j));
         END LOOP; END $$;
         INSERT INTO p SELECT * FROM t",
    );
    let epochs = db.train("'p', features => '{a,b,c}', max_epochs => 3, learning_rate => 0.001");
    assert!(epochs.iter().all(|epoch| epoch.tuples == 6000), "{epochs:?}");
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::p)", "SELECT * FROM t");
    // a cursor in the middle of the scan leaves all pages but one to VACUUM
    db.run("BEGIN; DECLARE c CURSOR FOR SELECT * FROM corgipile_shuffle(NULL::p, buffer_size => '10%')");
    db.run("FETCH 5000 FROM c; CLOSE c; COMMIT");
}

#[test]
fn partitions_in_other_tablespaces_are_read() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let space = format!("space_{}", db.name());
    db.run("SET allow_in_place_tablespaces = on");
    db.run(&format!("CREATE TABLESPACE {space} LOCATION ''"));
    db.run(&format!(
        "CREATE TABLE p (LIKE t) PARTITION BY LIST (label); CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0);
         CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) TABLESPACE {space}; INSERT INTO p SELECT * FROM t"
    ));
    assert_eq!(db.train("'p', features => '{features_v}', max_epochs => 1")[0].tuples, 2000);
    db.run("DROP TABLE p");
    db.run(&format!("DROP TABLESPACE {space}"));
}
