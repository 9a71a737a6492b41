//! `corgipile_shuffle()`: every visible row exactly once, in an order that a seed decides.

use corgipile_tests::{Database, Session, Writers, clustered};

pub const ALL: &str = "SELECT id, label, features_v FROM t";

pub const SHUFFLED: &str = "SELECT id, label, features_v FROM corgipile_shuffle(NULL::t, seed => 1)";

/// The ids in the order in which a query gives them.
pub fn ids(session: &mut Session, sql: &str) -> Vec<i32> {
    session.column(sql)
}

/// Spearman's rank correlation of a permutation of 1..=n with 1..=n.
fn rank_correlation(order: &[i32]) -> f64 {
    let n = order.len() as f64;
    let mean = (n + 1.0) / 2.0;
    let covariance: f64 =
        order.iter().zip(1..).map(|(&id, place)| (f64::from(id) - mean) * (f64::from(place) - mean)).sum();
    covariance / (n * (n * n - 1.0) / 12.0)
}

#[test]
fn every_row_comes_exactly_once_in_every_epoch_strategy_and_size() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    for arguments in [
        "",
        ", seed => 1, epoch => 1",
        ", seed => 1, epoch => 2",
        ", seed => 1, epoch => 3",
        ", seed => 1, epoch => 1000000",
        ", shuffle => 'no_shuffle'",
        ", shuffle => 'block_only'",
        ", block_size => '24kB', buffer_size => '17%'",
        ", block_size => '10MB'",
        ", buffer_size => '100%'",
        ", buffer_size => '8kB'",
    ] {
        db.assert_same_rows(&format!("SELECT * FROM corgipile_shuffle(NULL::t{arguments})"), "TABLE t");
    }
}

#[test]
fn dead_updated_aborted_and_own_uncommitted_rows_are_seen_as_by_any_query() {
    let mut db = Database::new();
    clustered(&mut db, "t", 2000);
    db.run(
        "DELETE FROM t WHERE id % 3 = 0;
         UPDATE t SET label = 5, features_v = '{9}' WHERE id % 5 = 0;
         BEGIN; INSERT INTO t SELECT -id, 9, features_v FROM t; DELETE FROM t WHERE id % 2 = 0; ROLLBACK",
    );
    db.assert_same_rows(SHUFFLED, ALL);
    let mut other = db.session();
    other.run("BEGIN; INSERT INTO t VALUES (-7, 0, '{0}'); UPDATE t SET label = 77 WHERE id < 100");
    db.run(
        "BEGIN; INSERT INTO t SELECT 10000 + i, 1, '{1}' FROM generate_series(1, 500) i;
            DELETE FROM t WHERE id BETWEEN 300 AND 500; UPDATE t SET label = -1 WHERE id BETWEEN 600 AND 800;
            SAVEPOINT s; DELETE FROM t WHERE id > 1500; ROLLBACK TO s",
    );
    db.assert_same_rows(SHUFFLED, ALL);
    other.assert_same_rows(SHUFFLED, ALL);
    db.run("COMMIT");
    other.run("ROLLBACK");
    db.assert_same_rows(SHUFFLED, ALL);
    for statement in ["VACUUM t", "DELETE FROM t", "INSERT INTO t VALUES (1, 1, '{1}')", "VACUUM FREEZE t"] {
        db.run(statement);
    }
    db.assert_same_rows(SHUFFLED, ALL);
}

#[test]
fn every_row_comes_exactly_once_while_others_write() {
    let mut db = Database::new();
    clustered(&mut db, "t", 4000);
    let writers = Writers::start(&db, "t");
    for round in 0..10 {
        for epoch in 1..=3 {
            // One statement, one snapshot: both sides have to see the same rows.
            db.assert_same_rows(
                &format!("SELECT * FROM corgipile_shuffle(NULL::t, seed => {round}, epoch => {epoch})"),
                "TABLE t",
            );
        }
    }
    writers.stop();
}

#[test]
fn a_seed_repeats_the_order_and_another_epoch_or_seed_changes_it() {
    let mut db = Database::new();
    clustered(&mut db, "t", 3000);
    let mut order = |arguments: &str| ids(&mut db, &format!("SELECT id FROM corgipile_shuffle(NULL::t, {arguments})"));
    let first = order("seed => 5");
    assert!(first == order("seed => 5"));
    assert!(first == order("seed => 5, epoch => 1"));
    let second = order("seed => 5, epoch => 2");
    assert!(first != second);
    assert!(second == order("seed => 5, epoch => 2"));
    assert!(first != order("seed => 6"));
    assert!(order("epoch => 1") != order("epoch => 1"), "without a seed one is drawn");
    // The tuples within the buffers are permuted again too, not the blocks alone.
    let whole = "block_size => '10MB', seed => 5";
    assert!(order(whole) != order(&format!("{whole}, epoch => 2")));
}

#[test]
fn the_order_mixes_as_far_as_the_strategy_says() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let mut order = |arguments: &str| ids(&mut db, &format!("SELECT id FROM corgipile_shuffle(NULL::t, {arguments})"));
    assert!(order("shuffle => 'no_shuffle'") == (1..=20_000).collect::<Vec<_>>());
    let neighbours = |order: &[i32]| order.windows(2).filter(|w| w[0] + 1 == w[1]).count();
    for seed in 1..=3 {
        let block_only = order(&format!("shuffle => 'block_only', seed => {seed}"));
        let corgipile = order(&format!("seed => {seed}"));
        assert!(rank_correlation(&block_only).abs() < 0.3, "{}", rank_correlation(&block_only));
        assert!(rank_correlation(&corgipile).abs() < 0.3, "{}", rank_correlation(&corgipile));
        assert!(neighbours(&block_only) > 15_000, "the tuples of a block stay as they lie");
        assert!(neighbours(&corgipile) < 200, "the tuples of a buffer are shuffled");
        // Both classes are in every tenth of the epoch, though the table is sorted by class.
        for tenth in corgipile.chunks(2000) {
            let ones = tenth.iter().filter(|id| **id > 10_000).count();
            assert!((500..1500).contains(&ones), "seed {seed}: {ones} of 2000 of class 1");
        }
    }
}

/// Pages that everybody sees are read without asking who sees what; after a change they are like all others again.
#[test]
fn vacuumed_pages_and_changed_ones_give_each_visible_row_once() {
    let mut db = Database::new();
    clustered(&mut db, "t", 30_000);
    // VACUUM runs in no transaction block, and run() sends one statement as it is.
    db.run("VACUUM (FREEZE) t");
    let train = |db: &mut Database, table: &str| {
        let options = "features => '{features_v}', shuffle => 'no_shuffle', max_epochs => 3";
        db.trained(&format!("'{table}', {options}")).bits()
    };
    db.run("CREATE TABLE clean AS TABLE t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    let mut other = db.session();
    other.run("BEGIN; DELETE FROM t WHERE id % 100 = 7; UPDATE t SET label = label WHERE id BETWEEN 100 AND 5000");
    // not committed: nothing has changed for us
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    other.run("COMMIT");
    db.run("DROP TABLE clean; CREATE TABLE clean AS TABLE t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
    for epoch in 1..=3 {
        db.assert_same_rows(
            &format!("SELECT * FROM corgipile_shuffle(NULL::t, seed => 3, epoch => {epoch})"),
            "SELECT * FROM t",
        );
    }
    db.run("VACUUM t");
    assert_eq!(train(&mut db, "t"), train(&mut db, "clean"));
}
