//! Models in shared memory: there is one copy, it is true, it is bounded, and it is no one's who may not use the model.

use corgipile_tests::{Cluster, Session};
use std::sync::Barrier;

const PRELOADED: &str = "shared_preload_libraries = 'corgipile'";

/// A table of three features, and a model of it.
fn with_model(cluster: &Cluster) -> (Session, i64) {
    let mut session = cluster.session();
    session.run(
        "CREATE TABLE t AS SELECT i AS id, i % 2 AS label, (i % 2 + i % 7)::real AS a, (i % 5)::real AS b, (i % 3)::real AS c
           FROM generate_series(1, 300) i;
         ALTER TABLE t ADD PRIMARY KEY (id)",
    );
    let id =
        session.train("'t', name => 'm', max_epochs => 2, seed => 1, options => '{\"standardize\": true}'")[0].model_id;
    (session, id)
}

const ASK: &str = "SELECT sum((corgipile_predict_proba('m', ARRAY[a, b, c]))[1]) FROM t";
const STATS: &str = "SELECT model_id, name, version, predictions, hits FROM corgipile.stat_models ORDER BY model_id";

#[test]
fn what_stands_for_nulls_is_shared_too() {
    let cluster = Cluster::new(&[PRELOADED]);
    let (mut one, _) = with_model(&cluster);
    one.run("UPDATE t SET a = NULL WHERE id % 3 = 0");
    one.train("'t', name => 'gaps', features => '{a,b,c}', max_epochs => 2, seed => 1");
    let mean: f32 = one.value("SELECT avg(a::float8)::real FROM t");
    assert_eq!(one.value::<f32>("SELECT feature_fill[1] FROM corgipile.models WHERE name = 'gaps'"), mean);
    let ask = |a: &str| format!("SELECT sum((corgipile_predict_proba('gaps', ARRAY[{a}, b, c]))[1]) FROM t");
    for session in [&mut cluster.session(), &mut one] {
        assert_eq!(session.line(&ask("a")), session.line(&ask(&format!("coalesce(a, {mean})"))));
    }
}

/// A model with this many weights, made as an administrator can. A sparse one: to predict from a dense one takes a
/// tuple as large as the model.
fn big(session: &mut Session, name: &str, weights: usize, sparse: bool) -> i64 {
    let (features, kind, base) = if sparse { ("{k,v}", "sparse", "1") } else { ("{x}", "array", "NULL") };
    session.value(&format!(
        "INSERT INTO corgipile.stored_models (name, owner, model, source, label, label_type, classes, features, feature_kind,
             index_base, hyperparameters, weights, intercepts, skipped, preparation_seconds, history)
         SELECT '{name}', current_user::regrole::oid::text::corgipile.stored_role, 'logistic', 't', 'label', 'int', '{{0,1}}', '{features}', '{kind}', {base}, '{{}}',
                array_agg((i::bigint * 7919 % 1000)::real / 1000), '{{0.5}}', 0, 0, '[]'
           FROM generate_series(1, {weights}) i
         RETURNING model_id"
    ))
}

/// Private memory of a process, in bytes: what it has alone, on the heap and elsewhere.
fn private_bytes(pid: i32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the process is there");
    let of = |field: &str| -> u64 {
        let line = rollup.lines().find(|line| line.starts_with(field)).expect("a field of smaps_rollup");
        line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
    };
    1024 * (of("Private_Clean:") + of("Private_Dirty:"))
}

#[test]
fn a_model_is_published_when_it_is_committed_and_used_by_all() {
    let cluster = Cluster::new(&[PRELOADED]);
    let (mut one, id) = with_model(&cluster);
    assert_eq!(one.lines(STATS), [format!("{id}|m|1|0|0")], "published at commit");
    let expected = one.line(ASK);
    let mut two = cluster.session();
    assert_eq!(two.line(ASK), expected);
    assert_eq!(one.line(STATS), format!("{id}|m|1|600|2"));
    // In parallel workers, too.
    two.run("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0");
    two.run("ALTER TABLE t SET (parallel_workers = 2)");
    let plan = two.lines(&format!("EXPLAIN (COSTS OFF) {ASK}"));
    assert!(plan.iter().any(|line| line.contains("Gather")), "{plan:#?}");
    two.line(ASK);
    assert!(one.line(STATS).starts_with(&format!("{id}|m|1|900|")), "{}", one.line(STATS));
    // Within the transaction that trains, and after its end, however it ends.
    one.run("BEGIN");
    let own = one.train("'t', name => 'm', max_epochs => 2, seed => 2")[0].model_id;
    assert_ne!(one.line(ASK), expected);
    assert_eq!(two.line("SELECT count(*) FROM corgipile.stat_models"), "1");
    one.run("ROLLBACK");
    assert_eq!(one.line(ASK), expected);
    assert_eq!(two.line("SELECT count(*) FROM corgipile.stat_models()"), "1");
    one.run("BEGIN; SAVEPOINT s");
    one.train("'t', name => 'm', max_epochs => 2, seed => 2");
    one.run("ROLLBACK TO s");
    let kept = one.train("'t', name => 'm', max_epochs => 2, seed => 3")[0].model_id;
    one.run("SAVEPOINT s; RELEASE s; COMMIT");
    assert!(kept > own);
    assert_eq!(two.column::<i64>("SELECT model_id FROM corgipile.stat_models() ORDER BY 1"), [id, kept]);
    assert_eq!(two.line(ASK), one.line(ASK));
}

#[test]
fn what_was_updated_or_deleted_is_gone_from_shared_memory() {
    let cluster = Cluster::new(&[PRELOADED]);
    let (mut one, id) = with_model(&cluster);
    let (mut two, mut reader) = (cluster.session(), cluster.session());
    let before = two.line(ASK);
    // A transaction that has the model in use keeps it as its snapshot has it.
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(reader.line(ASK), before);
    one.run("UPDATE corgipile.stored_models SET intercepts = ARRAY[intercepts[1] + 1]");
    let after = two.line(ASK);
    assert_ne!(after, before);
    assert_eq!(reader.line(ASK), before);
    reader.run("COMMIT");
    assert_eq!(reader.line(ASK), after);
    // An update that is rolled back is no one's.
    one.run("BEGIN; UPDATE corgipile.stored_models SET intercepts = ARRAY[intercepts[1] + 1]");
    assert_ne!(one.line(ASK), after);
    assert_eq!(two.line(ASK), after);
    one.run("ROLLBACK");
    assert_eq!(one.line(ASK), after);
    // Rows that have moved are found where they are.
    one.run("VACUUM FULL corgipile.stored_models");
    assert_eq!(one.line(ASK), after);
    assert_eq!(two.line(ASK), after);
    one.run(&format!("SELECT corgipile_drop({id})"));
    assert_eq!(two.line("SELECT count(*) FROM corgipile.stat_models()"), "0");
    two.fails_with(ASK, "42704");
    // Also in another database nothing of it is seen.
    one.run("CREATE DATABASE other");
    let mut other = cluster.session_in("other");
    other.run("CREATE EXTENSION corgipile");
    assert_eq!(other.line("SELECT count(*) FROM corgipile.stat_models()"), "0");
}

#[test]
fn what_is_in_shared_memory_is_used_with_privileges_only() {
    let cluster = Cluster::new(&[PRELOADED]);
    let (mut one, id) = with_model(&cluster);
    one.run("CREATE ROLE friend LOGIN; CREATE ROLE stranger LOGIN; GRANT SELECT ON t TO PUBLIC; SELECT corgipile_grant('m', 'friend')");
    let expected = one.line(ASK);
    let (mut friend, mut stranger) = (cluster.session_as("friend"), cluster.session_as("stranger"));
    assert_eq!(friend.line(ASK), expected);
    assert_eq!(friend.line("SELECT count(*) FROM corgipile.stat_models"), "1");
    stranger.fails_with(ASK, "42501");
    stranger.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[1,2,3])"), "42501");
    assert_eq!(stranger.line("SELECT count(*) FROM corgipile.stat_models"), "0");
    assert_eq!(stranger.line("SELECT count(*) FROM corgipile.stat_models()"), "0");
    one.run("SELECT corgipile_revoke('m', 'friend')");
    friend.fails_with(ASK, "42501");
}

#[test]
fn shared_memory_is_bounded_and_what_is_least_used_goes() {
    let cluster = Cluster::new(&[PRELOADED, "corgipile.shared_models_size = '1MB'"]);
    let mut session = cluster.session();
    // 100,000 weights are 400,000 bytes: two fit.
    for name in ["a", "b", "c"] {
        big(&mut session, name, 100_000, false);
    }
    let ask = |session: &mut Session, name: &str| {
        session.line(&format!(
            "SELECT corgipile_predict_proba('{name}', array_agg(1::real)) FROM generate_series(1, 100000)"
        ))
    };
    let there = "SELECT name FROM corgipile.stat_models ORDER BY name";
    ask(&mut session, "a");
    ask(&mut session, "b");
    assert_eq!(session.lines(there), ["a", "b"]);
    ask(&mut session, "a");
    let c = ask(&mut session, "c");
    assert_eq!(session.lines(there), ["a", "c"]);
    ask(&mut session, "b");
    assert_eq!(session.lines(there), ["b", "c"]);
    // What is in use does not go: another is read by its process alone, with the same result.
    session.run("BEGIN");
    ask(&mut session, "b");
    ask(&mut session, "c");
    let mut other = cluster.session();
    let a = ask(&mut other, "a");
    assert_eq!(other.lines(there), ["b", "c"]);
    session.run("COMMIT");
    assert_eq!(ask(&mut cluster.session(), "a"), a);
    assert_eq!(ask(&mut session, "c"), c);
    // One that never fits, too.
    big(&mut session, "huge", 300_000, false);
    let huge = "SELECT corgipile_predict('huge', array_agg(1::real)) FROM generate_series(1, 300000)";
    session.line(huge);
    assert_eq!(session.line("SELECT count(*) FROM corgipile.stat_models WHERE name = 'huge'"), "0");
    let bytes: i64 = session.value("SELECT sum(bytes)::bigint FROM corgipile.stat_models()");
    assert!(bytes <= 1 << 20, "{bytes}");
}

#[test]
fn a_killed_session_leaves_nothing_and_the_cache_is_built_anew() {
    let mut cluster = Cluster::new(&[PRELOADED]);
    let (mut one, id) = with_model(&cluster);
    let expected = one.line(ASK);
    let mut doomed = cluster.session();
    doomed.run("BEGIN");
    doomed.line(ASK);
    let pid = doomed.pid();
    cluster.signal("KILL", pid);
    drop((one, doomed));
    std::thread::sleep(std::time::Duration::from_millis(200));
    cluster.wait_until_up();
    let mut one = cluster.session();
    assert_eq!(one.line("SELECT count(*) FROM corgipile.stat_models()"), "0");
    assert_eq!(one.line(ASK), expected);
    assert_eq!(one.column::<i64>("SELECT model_id FROM corgipile.stat_models()"), [id]);
    // Terminated and cancelled sessions let go of their pins: the model can go.
    let mut other = cluster.session();
    other.run("BEGIN");
    other.line(ASK);
    let pid = other.pid();
    one.run(&format!("SELECT pg_terminate_backend({pid}, 10000)"));
    one.run("SELECT corgipile_drop('m')");
    assert_eq!(one.line("SELECT count(*) FROM corgipile.stat_models()"), "0");
}

#[test]
fn sixteen_sessions_use_one_copy_of_a_10_mb_model() {
    const SESSIONS: usize = 16;
    const WEIGHTS: usize = 2_621_440; // 10 MiB
    let cluster = Cluster::new(&[PRELOADED]);
    let mut session = cluster.session();
    let id = big(&mut session, "m", WEIGHTS, true);
    session.run(&format!(
        "CREATE TABLE x AS SELECT array_agg(j) AS k, array_agg(1::real) AS v FROM generate_series(1, 1000) i,
            LATERAL (SELECT 1 + (i::bigint * 7919 + 13) % {WEIGHTS} AS j) j GROUP BY i % 100"
    ));
    let ask = "SELECT sum((corgipile_predict_proba('m', k, v))[1]) FROM x";
    let expected = session.line(ask);
    drop(session);
    let measure = |cluster: &Cluster| -> (Vec<u64>, Vec<String>) {
        let barrier = Barrier::new(SESSIONS);
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..SESSIONS)
                .map(|_| {
                    let (mut session, barrier) = (cluster.session(), &barrier);
                    scope.spawn(move || {
                        // what every session has once it has run such a statement, but for the model
                        session.run("LOAD 'corgipile'; SELECT sum(v[1]), count(k) FROM x");
                        session
                            .attempt("SELECT corgipile_predict('none', k, v) FROM x")
                            .expect_err("there is no such model");
                        let pid = session.pid();
                        barrier.wait();
                        let before = private_bytes(pid);
                        session.run("BEGIN");
                        let line = session.line(ask);
                        barrier.wait(); // all have the model in use
                        let after = private_bytes(pid);
                        session.run("COMMIT");
                        (after.saturating_sub(before), line)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a session")).collect::<Vec<_>>()
        });
        results.into_iter().unzip()
    };
    let (shared, lines) = measure(&cluster);
    assert!(lines.iter().all(|line| *line == expected), "{lines:?}");
    let (bytes, hits): (i64, i64) = {
        let rows = cluster.session().rows("SELECT bytes, hits FROM corgipile.stat_models WHERE model_id = $1", &[&id]);
        assert_eq!(rows.len(), 1);
        (rows[0].get(0), rows[0].get(1))
    };
    // The same without shared memory, to see that the measurement would notice.
    let plain = Cluster::new(&[]);
    let mut session = plain.session();
    big(&mut session, "m", WEIGHTS, true);
    session.run(&format!(
        "CREATE TABLE x AS SELECT array_agg(j) AS k, array_agg(1::real) AS v FROM generate_series(1, 1000) i,
            LATERAL (SELECT 1 + (i::bigint * 7919 + 13) % {WEIGHTS} AS j) j GROUP BY i % 100"
    ));
    let (private, _) = measure(&plain);
    let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let most = |of: &[u64]| mb(of.iter().copied().max().unwrap_or_default());
    let sum = |of: &[u64]| mb(of.iter().sum());
    println!(
        "{SESSIONS} sessions predict from a model of {:.1} MB: {:.1} MB shared, {hits} lookups; private memory grew by {:.1} MB \
         at most, {:.1} MB together; without shared memory by {:.1} MB at most, {:.1} MB together",
        mb(4 * WEIGHTS as u64),
        mb(bytes as u64),
        most(&shared),
        sum(&shared),
        most(&private),
        sum(&private)
    );
    assert!(hits >= SESSIONS as i64);
    // anyone who had to build the copy keeps memory of that
    assert!(shared.iter().filter(|grown| mb(**grown) > 5.0).count() <= 1, "{shared:?}");
    assert!(private.iter().all(|grown| mb(*grown) > 9.0), "{private:?}");
}

#[test]
fn a_model_that_is_used_by_the_statement_that_trains_it_is_shared_when_that_has_committed() {
    let cluster = Cluster::new(&[PRELOADED]);
    let (mut session, id) = with_model(&cluster);
    let predict = |model: &str| format!("SELECT sum((corgipile_predict_proba({model}, ARRAY[a, b, c]))[1]) FROM t");
    let expected = session.line(&predict(&id.to_string()));
    let train =
        "(SELECT model_id FROM corgipile_train('t', max_epochs => 2, seed => 1, options => '{\"standardize\": true}')
                   LIMIT 1)";
    let shared = "SELECT model_id, hits > 0 FROM corgipile.stat_models ORDER BY model_id";
    let before = session.lines(shared);
    session.run("BEGIN");
    assert_eq!(session.line(&predict(train)), expected);
    assert_eq!(session.lines(shared), before, "nothing is shared that others must not see");
    session.run("ROLLBACK");
    assert_eq!(session.lines(shared), before, "nor what was rolled back");
    assert_eq!(session.line(&predict(train)), expected);
    let id: i64 = session.value("SELECT max(model_id) FROM corgipile.models");
    assert_eq!(session.lines(shared).last(), Some(&format!("{id}|f")), "published at commit, not used before");
    assert_eq!(cluster.session().line(&predict(&id.to_string())), expected);
    assert_eq!(session.lines(shared).last(), Some(&format!("{id}|t")));
}
