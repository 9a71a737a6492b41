//! `corgipile_shuffle()` as a part of larger queries: in COPY, cursors, joins and prepared statements.

use super::rows::ids;
use corgipile_tests::{Database, clustered};

#[test]
fn copy_to_stdout_streams_a_shuffled_table() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let shuffled = db.copy_out("COPY (SELECT id, features_v FROM corgipile_shuffle(NULL::t, seed => 2)) TO STDOUT");
    let plain = db.copy_out("COPY (SELECT id, features_v FROM t) TO STDOUT");
    assert_ne!(shuffled, plain);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&shuffled), sorted(&plain));
}

#[test]
fn cursors_fetch_move_and_survive_their_transaction() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    let order = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    let text = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>();
    db.run("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    assert_eq!(db.lines("FETCH 10 FROM c"), text(&order[..10]));
    db.run("MOVE FORWARD 100 IN c");
    assert_eq!(db.lines("FETCH 300 FROM c"), text(&order[110..410]));
    // What happens after the cursor was opened is not in its snapshot.
    db.run("DELETE FROM t");
    assert_eq!(db.lines("FETCH ALL FROM c"), text(&order[410..]));
    assert_eq!(db.lines("FETCH ALL FROM c").len(), 0);
    db.run("ROLLBACK; BEGIN; DECLARE s SCROLL CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3)");
    assert_eq!(db.lines("FETCH 5 FROM s"), text(&order[..5]));
    assert_eq!(db.lines("FETCH PRIOR FROM s"), text(&order[3..4]));
    assert_eq!(db.lines("FETCH LAST FROM s"), text(&order[999..]));
    assert_eq!(db.lines("FETCH FIRST FROM s"), text(&order[..1]));
    db.run(
        "ROLLBACK; BEGIN; DECLARE h CURSOR WITH HOLD FOR SELECT id FROM corgipile_shuffle(NULL::t, seed => 3);
            FETCH 2 FROM h; COMMIT",
    );
    assert_eq!(db.lines("FETCH ALL FROM h"), text(&order[2..]));
    db.run("CLOSE h; BEGIN; DECLARE unread CURSOR FOR SELECT id FROM corgipile_shuffle(NULL::t); FETCH unread; COMMIT");
}

#[test]
fn limit_offset_where_and_aggregates_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    let order = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 4)");
    let shuffled = |rest: &str| format!("SELECT id FROM corgipile_shuffle(NULL::t, seed => 4) {rest}");
    assert_eq!(ids(&mut db, &shuffled("LIMIT 7 OFFSET 3")), order[3..10]);
    let filtered: Vec<i32> = order.iter().copied().filter(|id| id % 7 == 0).collect();
    assert_eq!(ids(&mut db, &shuffled("WHERE id % 7 = 0")), filtered);
    assert_eq!(ids(&mut db, &shuffled("WHERE false")).len(), 0);
    let in_list = "WHERE id IN (SELECT id FROM t WHERE label = 1)";
    assert_eq!(ids(&mut db, &shuffled(in_list)).len(), 1000);
    assert_eq!(db.line("SELECT count(*), sum(id), max(id) FROM corgipile_shuffle(NULL::t)"), "2000|2001000|2000");
    assert_eq!(
        db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE s.features_v[1] > 1 AND s.label = 1"),
        db.line("SELECT count(*) FROM t s WHERE s.features_v[1] > 1 AND s.label = 1")
    );
    assert_eq!(
        db.lines("SELECT label, count(*) FROM corgipile_shuffle(NULL::t) GROUP BY 1 ORDER BY 1"),
        ["0|1000", "1|1000"]
    );
}

#[test]
fn joins_of_every_kind_and_rescans_give_each_row_as_often_as_a_table_would() {
    let mut db = Database::new();
    clustered(&mut db, "t", 300);
    db.run("CREATE TABLE u AS SELECT i AS id, i % 3 AS label FROM generate_series(1, 100) i; ANALYZE u");
    for join in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
        for other in ["enable_nestloop", "enable_hashjoin", "enable_mergejoin"] {
            db.run(&format!("SET {other} = {}", join == other));
        }
        for material in ["on", "off"] {
            db.run(&format!("SET enable_material = {material}"));
            for condition in ["u.id = s.id", "u.label = s.label", "u.id < s.id AND u.label = s.label"] {
                db.assert_same_rows(
                    &format!("SELECT u.id, s.id FROM u JOIN corgipile_shuffle(NULL::t) s ON {condition}"),
                    &format!("SELECT u.id, s.id FROM u JOIN t s ON {condition}"),
                );
            }
        }
    }
    db.run("RESET ALL");
    db.assert_same_rows(
        "SELECT a.id, b.id FROM corgipile_shuffle(NULL::t) a, corgipile_shuffle(NULL::t, seed => 1) b
         WHERE a.id = b.id",
        "SELECT id, id FROM t",
    );
    db.assert_same_rows(
        "SELECT u.id, (SELECT count(*) FROM corgipile_shuffle(NULL::t) s WHERE s.id <= u.id) FROM u",
        "SELECT u.id, (SELECT count(*) FROM t s WHERE s.id <= u.id) FROM u",
    );
    db.assert_same_rows(
        "SELECT u.id, s.id FROM u, LATERAL (SELECT id FROM corgipile_shuffle(NULL::t, seed => u.id) OFFSET 0) s",
        "SELECT u.id, t.id FROM u, t",
    );
}

#[test]
fn whole_rows_ordinality_and_the_select_list_work() {
    let mut db = Database::new();
    clustered(&mut db, "t", 500);
    db.assert_same_rows("SELECT s.* FROM (SELECT (corgipile_shuffle(NULL::t, seed => 1)).*) s", "TABLE t");
    db.assert_same_rows("SELECT (r).* FROM (SELECT corgipile_shuffle(NULL::t, seed => 1) AS r) s", "TABLE t");
    db.assert_same_rows("SELECT (s).id FROM (SELECT s FROM corgipile_shuffle(NULL::t) s) x", "SELECT id FROM t");
    let expected = ids(&mut db, "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1)");
    let numbered = ids(
        &mut db,
        "SELECT id FROM corgipile_shuffle(NULL::t, seed => 1) WITH ORDINALITY s(id, label, x, n) ORDER BY n",
    );
    assert_eq!(numbered, expected);
    let listed = ids(&mut db, "SELECT (corgipile_shuffle(NULL::t, seed => 1)).id");
    assert_eq!(listed, expected);
    let rows_from = db
        .line("SELECT count(*) FROM ROWS FROM (corgipile_shuffle(NULL::t), generate_series(1, 600)) AS s(a, b, c, d)");
    assert_eq!(rows_from, "600");
    db.fails_with("SELECT ctid FROM corgipile_shuffle(NULL::t)", "42703");
    assert_eq!(
        db.line("SELECT count(*) FROM corgipile_shuffle(NULL::t) AS s(x, y, z) WHERE x > 0 AND y IS NOT NULL"),
        "500"
    );
}

#[test]
fn bad_arguments_are_errors() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    for (arguments, code) in [
        ("shuffle => 'riffle'", "22023"),
        ("block_size => '1kB'", "22023"),
        ("block_size => 'big'", "22023"),
        ("buffer_size => '0%'", "22023"),
        ("buffer_size => '-1MB'", "22023"),
        ("epoch => 0", "22023"),
        ("epoch => -1", "22023"),
    ] {
        for call in ["SELECT * FROM", "SELECT"] {
            db.fails_with(&format!("{call} corgipile_shuffle(NULL::t, {arguments})"), code);
        }
    }
    db.fails_with("SELECT * FROM corgipile_shuffle(NULL::t, shuffle => 'riffle')", "22023").says(&["riffle"]).hints(&[
        "no_shuffle",
        "block_only",
        "corgipile",
    ]);
}

#[test]
fn a_prepared_shuffle_follows_changes_of_the_table() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 1000) i;
            PREPARE s(bigint) AS SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t, seed => $1);
            SET plan_cache_mode = force_generic_plan",
    );
    assert_eq!(db.line("EXECUTE s(1)"), "1000|500500");
    db.run("INSERT INTO t SELECT 0 FROM generate_series(1, 5000)");
    assert_eq!(db.line("EXECUTE s(2)"), "6000|500500");
    db.run("TRUNCATE t");
    assert_eq!(db.line("EXECUTE s(2)"), "0|NULL");
    db.run("ALTER TABLE t ADD more text DEFAULT 'x'; INSERT INTO t VALUES (3)");
    assert_eq!(db.line("EXECUTE s(NULL)"), "1|3");
    db.run("DROP TABLE t");
    // PostgreSQL looks for the columns of the function's type before anything of ours is asked
    db.fails_with("EXECUTE s(1)", "XX000").says(&["unsupported return type"]);
}

#[test]
fn a_shuffle_can_be_written_to_a_table_and_trained_on() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.run(
        "CREATE TABLE copy AS SELECT * FROM corgipile_shuffle(NULL::t, seed => 1);
            INSERT INTO copy SELECT * FROM corgipile_shuffle(NULL::t, seed => 1)",
    );
    assert_eq!(db.line("SELECT count(*), count(DISTINCT id) FROM copy"), "4000|2000");
    // Reading and writing one table: the rows that are written are not read.
    db.run("INSERT INTO t SELECT * FROM corgipile_shuffle(NULL::t)");
    assert_eq!(db.line("SELECT count(*) FROM t"), "4000");
    let epochs = db.train("'SELECT label, features_v FROM corgipile_shuffle(NULL::t)', max_epochs => 2");
    assert!(epochs.iter().all(|e| e.tuples == 4000));
}
