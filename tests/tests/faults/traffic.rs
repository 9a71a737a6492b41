//! Trainings of tables that other sessions write to, vacuum, rewrite, rename, truncate and drop at the same time.

use crate::probe::{self, Draw, complaints, leftovers, models_are_whole, report, tables};
use corgipile_tests::Cluster;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// What others do to the table; each line is a transaction or more, after which the table is there again.
const OTHERS: &[&[&str]] = &[
    &["INSERT INTO s SELECT * FROM t WHERE id % 10 = 0"],
    &["UPDATE s SET label = label WHERE id % 7 = 0"],
    &["DELETE FROM s WHERE id % 11 = 0"],
    &["VACUUM s"],
    &["VACUUM (FREEZE) s"],
    &["VACUUM FULL s"],
    &["ANALYZE s"],
    &["TRUNCATE s; INSERT INTO s SELECT * FROM t"],
    &["TRUNCATE s", "INSERT INTO s SELECT * FROM t"],
    &["ALTER TABLE s ADD COLUMN extra real DEFAULT 1", "ALTER TABLE s DROP COLUMN extra"],
    &["ALTER TABLE s ALTER amount TYPE float8", "ALTER TABLE s ALTER amount TYPE real"],
    &["ALTER TABLE s RENAME TO s2; ALTER TABLE s2 RENAME TO s"],
    &["ALTER TABLE s RENAME TO s2", "ALTER TABLE s2 RENAME TO s"],
    &["ALTER TABLE s RENAME x TO y", "ALTER TABLE s RENAME y TO x"],
    &["DROP TABLE s; CREATE TABLE s AS TABLE t"],
    &["DROP TABLE s", "CREATE TABLE s AS TABLE t"],
    &["CREATE INDEX s_id ON s (id)", "CLUSTER s USING s_id", "DROP INDEX IF EXISTS s_id"],
    &["ALTER TABLE s SET UNLOGGED", "ALTER TABLE s SET LOGGED"],
    &["ALTER TABLE parts DETACH PARTITION low", "ALTER TABLE parts ATTACH PARTITION low FOR VALUES FROM (0) TO (3000)"],
    &["TRUNCATE low", "INSERT INTO low SELECT * FROM t WHERE id < 3000"],
];

/// What is trained meanwhile. Each epoch must see the same rows.
const TRAININGS: &[&str] = &[
    "corgipile_train('s', features => '{x}', max_epochs => 5)",
    "corgipile_train('s', features => '{x}', max_epochs => 5, options => '{\"cache\": \"off\"}')",
    "corgipile_train('s', features => '{x}', max_epochs => 5, prefetch => 'on')",
    "corgipile_train('s', features => '{x}', max_epochs => 5, workers => 2)",
    "corgipile_train('SELECT label, x, amount FROM s WHERE id % 3 > 0', features => '{x}', max_epochs => 3)",
    "corgipile_train('SELECT s.label, s.x FROM s JOIN parts USING (id)', max_epochs => 3)",
    "corgipile_train('parts', features => '{amount, colour}', max_epochs => 3)",
    "corgipile_train('s', features => '{x}', max_epochs => 2, shuffle => 'shuffle_once')",
    "corgipile_train('s', features => '{x}', max_epochs => 2, grid => '{\"learning_rate\": [0.1, 0.01]}')",
    "corgipile_train('s', features => '{x}', max_epochs => 2, options => '{\"validation_fraction\": 0.1}')",
    "corgipile_train('parts', features => '{x}', max_epochs => 3, workers => 2)",
    "corgipile_train('s', features => '{x}', max_epochs => 4, grid => '{\"learning_rate\": [0.1, 0.01]}', prefetch => 'on')",
    "corgipile_train('s', features => '{x}', max_epochs => 5, sample => 0.5, block_size => '8kB')",
    "corgipile_train('parts', features => '{x}', max_epochs => 4, options => '{\"validation_fraction\": 0.3}')",
    "corgipile_train('s', features => '{x}', max_epochs => 3, shuffle => 'epoch_shuffle')",
    "corgipile_train_uda('s', features => '{x}', max_epochs => 2)",
];

/// How a training may end: as any other statement on such a table might.
const ENDS: &[(&str, &str)] = &[
    ("00000", "trained"),
    ("57014", "cancelled"),
    ("42P01", "the table is not there"),
    ("42703", "a column is not there"),
    ("22000", "no rows, or all of one label"),
    ("40001", "the name stands for another table now"),
    ("40P01", "deadlock"),
    ("55P03", "lock timeout"),
];

#[test]
fn trainings_wait_or_fail_cleanly_while_others_change_the_table() {
    let seed = probe::seed();
    println!("traffic: seed {seed}");
    let mut draw = Draw::new(seed, "traffic");
    let cluster = Cluster::new(&["corgipile.keep_versions = 0"]);
    let mut watch = cluster.session();
    tables(&mut watch);
    watch.run("CREATE TABLE s AS TABLE t");
    let (mut other, done) = (cluster.session(), AtomicBool::new(false));
    other.run("SET lock_timeout = '5s'");
    let mut trainers: Vec<_> = (0..2).map(|_| cluster.session()).collect();
    let pids: Vec<i32> = trainers.iter_mut().map(|session| session.pid()).collect();
    let changes = probe::moments() * 4;

    let (mut ends, mut stored) = (BTreeMap::<String, u32>::new(), 0);
    thread::scope(|scope| {
        let threads: Vec<_> = trainers
            .iter_mut()
            .enumerate()
            .map(|(i, session)| {
                let (mut draw, done) = (Draw::new(seed, if i == 0 { "first" } else { "second" }), &done);
                scope.spawn(move || {
                    let (mut ends, mut stored) = (BTreeMap::<String, u32>::new(), 0);
                    while !done.load(Ordering::Relaxed) {
                        let training = draw.pick(TRAININGS);
                        let code = match session.attempt(&format!(
                            "SELECT count(DISTINCT tuples), count(DISTINCT model_id) FROM {training}"
                        )) {
                            Ok(lines) => {
                                let (seen, models) = lines[0].split_once('|').expect("two columns");
                                assert_eq!(seen, "1", "{training}: all epochs see the same rows");
                                stored += models.parse::<i64>().expect("a count");
                                "00000".to_owned()
                            }
                            Err(failure) => {
                                let known = ENDS.iter().any(|(code, _)| *code == failure.code);
                                assert!(known, "{training}: {failure:#?}");
                                failure.code
                            }
                        };
                        *ends.entry(code).or_default() += 1;
                    }
                    (ends, stored)
                })
            })
            .collect();
        // a thread of theirs that has failed is seen below
        for _ in 0..changes {
            for sql in *draw.pick(OTHERS) {
                loop {
                    match other.attempt(sql) {
                        Ok(_) => break,
                        Err(failure) if ["55P03", "40P01"].contains(&failure.code.as_str()) => {}
                        Err(failure) => panic!("{sql}: {failure:#?}"),
                    }
                }
                sleep(Duration::from_micros(draw.below(15_000)));
            }
            if draw.below(4) == 0 {
                watch.run(&format!("SELECT pg_cancel_backend({})", draw.pick(&pids)));
            }
        }
        done.store(true, Ordering::Relaxed);
        for thread in threads {
            let (counts, models) = thread.join().expect("a training has ended as it may not");
            stored += models;
            for (code, count) in counts {
                *ends.entry(code).or_default() += count;
            }
        }
    });
    models_are_whole(&mut watch);
    let left = leftovers(&cluster, &mut watch);
    assert!(left.is_empty(), "{left:#?}");
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert_eq!(watch.models(), stored, "the models are those of trainings that have ended well");
    let told: Vec<String> =
        ENDS.iter().filter_map(|(code, what)| ends.get(*code).map(|count| format!("{count} {what}"))).collect();
    report(&format!(
        "Traffic: {changes} changes of the source beside {} trainings ({}), 0 servers lost, 0 leftovers, seed {seed}",
        ends.values().sum::<u32>(),
        told.join(", ")
    ));
}
