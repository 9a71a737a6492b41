//! Statements that are stopped at random moments, by everything that can stop them.

use crate::probe::{self, Draw, complaints, held, leftovers, models_are_whole, report, shared_models_are_free, tables};
use corgipile_tests::{Cluster, Session};
use std::collections::BTreeMap;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Longer than a statement may take to stop on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Cancel,
    Timeout,
    Terminate,
    Kill,
    TerminateWorker,
    KillWorker,
}

impl Fault {
    fn needs_workers(self) -> bool {
        matches!(self, Fault::TerminateWorker | Fault::KillWorker)
    }

    /// Does it make the server end all its processes?
    fn kills(self) -> bool {
        matches!(self, Fault::Kill | Fault::KillWorker)
    }

    /// SQLSTATEs by which a statement may end; `closed` if the client has lost the connection.
    fn codes(self) -> &'static [&'static str] {
        match self {
            Fault::Cancel | Fault::Timeout => &["57014"],
            Fault::Terminate => &["57P01", "closed"],
            Fault::TerminateWorker => &["57P01", "55000", "08006"],
            Fault::Kill | Fault::KillWorker => &["closed", "57P02", "57P01"],
        }
    }
}

/// What is stopped: statements, how many models they store, and do they start workers?
struct Statement {
    sql: &'static str,
    models: i64,
    workers: bool,
}

const fn statement(models: i64, sql: &'static str) -> Statement {
    Statement { sql, models, workers: false }
}

const fn with_workers(models: i64, sql: &'static str) -> Statement {
    Statement { sql, models, workers: true }
}

/// Trainings of all kinds, predictions, and writing of models.
const STATEMENTS: &[Statement] = &[
    statement(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 40)"),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 15, options => '{\"cache\": \"off\"}')",
    ),
    statement(1, "SELECT corgipile_train('t', 'svm', label => 'word', features => '{amount, colour}', max_epochs => 6)"),
    statement(
        1,
        "SET LOCAL corgipile.cache_memory = '64kB';
         SELECT * FROM corgipile_train('t', features => '{k,v}', max_epochs => 6,
                                       options => '{\"cache\": \"on\", \"standardize\": true}')",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('SELECT t.label, u.x FROM t JOIN t u USING (id)', max_epochs => 8,
                                       options => '{\"batch_size\": 32, \"optimizer\": \"adam\"}')",
    ),
    statement(
        2,
        "SELECT corgipile_train('t', features => '{x}', max_epochs => 4, shuffle => 'shuffle_once');
         SELECT corgipile_train('t', features => '{x}', max_epochs => 3, shuffle => 'epoch_shuffle')",
    ),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 4, shuffle => 'mrs');
         SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 4, shuffle => 'sliding_window')",
    ),
    statement(1, "SELECT * FROM corgipile_train('wide', 'softmax', features => '{x}', max_epochs => 8)"),
    statement(1, "SELECT * FROM corgipile_train_uda('t', features => '{x}', max_epochs => 4)"),
    statement(
        1,
        "DROP TABLE IF EXISTS pg_temp.packed;
         SELECT corgipile_compress('t', 'pg_temp.packed', features => '{x}', batch_rows => 20);
         SELECT * FROM corgipile_train('pg_temp.packed', max_epochs => 20);
         SELECT * FROM corgipile_compression_report('t', features => '{x}')",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', 'mlp', features => '{x}', max_epochs => 3,
                                       options => '{\"hidden_layers\": [20, 10]}')",
    ),
    statement(0, "SELECT * FROM corgipile_evaluate('kept', 't'); SELECT * FROM corgipile_cluster_factor('t')"),
    statement(0, "SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t) s, generate_series(1, 5)"),
    statement(0, "SELECT sum(corgipile_predict('kept', x)) FROM t, generate_series(1, 4)"),
    statement(0, "SELECT sum(corgipile_predict('rows', t)) FROM t, generate_series(1, 2)"),
    statement(
        12,
        "DO $$ BEGIN
             FOR i IN 1..12 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'written ' || i);
             END LOOP;
         END $$",
    ),
    statement(
        0,
        "DO $$ BEGIN
             FOR i IN 1..12 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide LIMIT 50', max_epochs => 1, name => 'gone');
                 PERFORM corgipile_predict('gone', x) FROM wide WHERE id = i;
                 DELETE FROM corgipile.models WHERE name = 'gone';
             END LOOP;
         END $$",
    ),
    statement(
        3,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10,
                                       grid => '{\"learning_rate\": [0.1, 0.01, 0.001]}')",
    ),
    statement(3, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10, group_by => 'class')"),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 15, warm_start => 'kept');
         SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 15, buffer_size => '30%',
                                       options => '{\"validation_fraction\": 0.2, \"patience\": 20}')",
    ),
    statement(
        3,
        "DO $$ BEGIN
             FOR i IN 1..3 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'versions');
             END LOOP;
             FOR i IN 1..20 LOOP
                 PERFORM corgipile_deploy('versions', 1 + i % 3);
                 PERFORM corgipile_comment('versions', repeat('x', i * 100));
                 PERFORM corgipile_grant('versions', 'public');
                 PERFORM corgipile_rename('versions', 'other');
                 PERFORM corgipile_predict('other', x) FROM wide WHERE id = i;
                 PERFORM corgipile_rename('other', 'versions');
                 PERFORM corgipile_revoke('versions', 'public');
             END LOOP;
             FOR i IN 1..3 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'gone');
             END LOOP;
             PERFORM corgipile_drop('gone', 2);
             PERFORM corgipile_drop('gone');
         END $$",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 40, sample => 0.3, block_size => '8kB',
                                       options => '{\"cache\": \"off\"}')",
    ),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10, shuffle => 'epoch_shuffle',
                                       options => '{\"validation_fraction\": 0.3}');
         SELECT * FROM corgipile_train('SELECT label, x, id % 4 = 0 AS test FROM t', features => '{x}', max_epochs => 10,
                                       options => '{\"validation_column\": \"test\", \"keep\": \"best\"}')",
    ),
    statement(
        12,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 4, name => 'groups', group_by => 'colour',
                                       grid => '{\"l2\": [0, 0.1]}');
         SELECT * FROM corgipile_train('t', warm_start => 'kept', max_epochs => 4, group_by => 'colour',
                                       grid => '{\"l2\": [0, 0.1]}')",
    ),
    statement(
        10,
        "DO $$ BEGIN
             FOR i IN 1..10 LOOP
                 PERFORM corgipile_import(corgipile_export(CASE i % 2 WHEN 0 THEN 'kept' ELSE 'rows' END), 'copy ' || i);
             END LOOP;
         END $$",
    ),
    statement(
        0,
        "SELECT sum(corgipile_predict(m, x)) FROM t, (SELECT corgipile_export('kept') AS m OFFSET 0) e, generate_series(1, 3)",
    ),
    statement(
        0,
        "DO $$ BEGIN
             FOR i IN 1..30 LOOP
                 UPDATE corgipile.models SET intercepts = ARRAY[i] WHERE name IN ('kept', 'rows');
                 PERFORM sum(corgipile_predict('kept', x)) FROM t WHERE id % 50 = i;
             END LOOP;
             RAISE 'undone' USING ERRCODE = 'P0001';
         EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL;
         END $$",
    ),
    with_workers(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 30, loader => 'worker')"),
    with_workers(
        3,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 8, loader => 'worker',
                                       grid => '{\"learning_rate\": [0.1, 0.01, 0.001]}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('t', features => '{k,v}', max_epochs => 12, loader => 'worker',
                                       options => '{\"cache\": \"off\", \"batch_size\": 16}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('SELECT t.label, u.x FROM t JOIN t u USING (id)', max_epochs => 12,
                                       loader => 'worker', shuffle => 'epoch_shuffle')",
    ),
    with_workers(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 30, workers => 2)"),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('t', 'softmax', label => 'class', features => '{colour, amount}', max_epochs => 3,
                                       workers => 3, options => '{\"batch_size\": 64}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 20, workers => 2, sample => 0.5,
                                       block_size => '8kB', buffer_size => '30%')",
    ),
    with_workers(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 8, loader => 'worker', name => 'half',
                                       options => '{\"validation_fraction\": 0.2, \"optimizer\": \"adam\"}');
         SELECT * FROM corgipile_train('t', warm_start => 'half', max_epochs => 8, loader => 'worker')",
    ),
    statement(
        1,
        "SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t, share => true, block_size => '8kB') s, generate_series(1, 3);
         SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 20, share => true, block_size => '8kB',
                                       buffer_size => '10%', options => '{\"cache\": \"off\"}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 12, share => true, workers => 2,
                                       block_size => '8kB', buffer_size => '30%')",
    ),
    with_workers(
        0,
        "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
         SELECT sum(corgipile_predict('kept', t.x)) FROM t, generate_series(1, 8)",
    ),
];

/// What the session beside does meanwhile: its results never change.
const BESIDE: &str = "
    BEGIN;
    SELECT (SELECT round(sum(loss)::numeric, 9)
              FROM corgipile_train('t', features => '{x}', max_epochs => 3, seed => 7, name => 'beside')),
           sum(corgipile_predict('kept', x)), sum(corgipile_predict('rows', t)) FROM t WHERE id % 10 = 0;
    ROLLBACK";

/// What another session looks at while the statement runs.
const LOOK: &str =
    "SELECT (SELECT count(*) FROM corgipile.stat_progress_train), (SELECT sum(hits) FROM corgipile.stat_models)";

/// The sessions that a fault must not harm.
struct Beside {
    session: Session,
    pid: i32,
    expected: Vec<String>,
}

impl Beside {
    fn new(cluster: &Cluster) -> Self {
        let mut session = cluster.session();
        let expected = session.lines(BESIDE);
        Self { pid: session.pid(), session, expected }
    }
}

#[derive(Default)]
struct Tally {
    tried: u32,
    hit: u32,
    restarts: u32,
    lost: u32,
    leftovers: u32,
    codes: BTreeMap<String, u32>,
}

/// A statement of its own transaction, whatever `SET LOCAL` there is in it.
fn transaction(sql: &str) -> String {
    format!("BEGIN; {sql}; COMMIT")
}

struct Scene {
    cluster: Cluster,
    watch: Session,
    victim: Session,
    beside: Beside,
    draw: Draw,
    /// of each statement, undisturbed
    durations: Vec<Duration>,
}

impl Scene {
    fn new(test: &str, seed: u64, shared: bool) -> Self {
        let settings: &[&str] =
            &["work_mem = '256kB'", "shared_preload_libraries = 'corgipile'", "corgipile.shared_models_size = '1MB'"];
        let cluster = Cluster::new(if shared { settings } else { &settings[..1] });
        let mut watch = cluster.session();
        tables(&mut watch);
        watch.run(
            "SELECT corgipile_train('t', features => '{x}', max_epochs => 3, seed => 1, name => 'kept');
             SELECT corgipile_train('t', features => '{colour, amount}', max_epochs => 3, seed => 1, name => 'rows')",
        );
        let mut victim = cluster.session();
        let mut durations = Vec::new();
        for statement in STATEMENTS {
            let started = Instant::now();
            victim.run(&transaction(statement.sql));
            durations.push(started.elapsed());
            assert_eq!(watch.models() - 2, statement.models, "{}", statement.sql);
            forget(&mut watch);
        }
        let beside = Beside::new(&cluster);
        Self { cluster, watch, victim, beside, draw: Draw::new(seed, test), durations }
    }

    /// Makes all sessions anew, after a restart.
    fn reconnect(&mut self) {
        self.cluster.wait_until_up();
        self.watch = self.cluster.session();
        self.victim = self.cluster.session();
        let expected = std::mem::take(&mut self.beside.expected);
        self.beside = Beside::new(&self.cluster);
        assert_eq!(self.beside.expected, expected, "after a restart");
    }

    /// Stops a statement at a random moment.
    fn moment(&mut self, fault: Fault, tally: &mut Tally) {
        let choices: Vec<usize> =
            (0..STATEMENTS.len()).filter(|i| STATEMENTS[*i].workers || !fault.needs_workers()).collect();
        let chosen = *self.draw.pick(&choices);
        let statement = &STATEMENTS[chosen];
        let delay = Duration::from_micros(self.draw.below(self.durations[chosen].as_micros() as u64));
        let what = format!("{fault:?} after {delay:?} of {:?}: {}", self.durations[chosen], statement.sql);
        let pid = self.victim.pid();
        if fault == Fault::Timeout {
            self.victim.run(&format!("SET statement_timeout = {}", delay.as_millis().max(1)));
        }

        let (victim, beside, watch, cluster) = (&mut self.victim, &mut self.beside, &mut self.watch, &self.cluster);
        let started = Instant::now();
        let (code, meanwhile, killed) = thread::scope(|scope| {
            let victim = scope.spawn(|| {
                let result = victim.attempt(&transaction(statement.sql));
                let code = result.map_or_else(|failure| failure.code, |_| "00000".to_owned());
                // a connection that is reset is lost as well as one that is closed
                if code == "client" { "closed".to_owned() } else { code }
            });
            let meanwhile = scope.spawn(|| beside.session.attempt(BESIDE));
            sleep(delay);
            let mut killed = false;
            match fault {
                Fault::Timeout => {}
                Fault::Cancel => drop(watch.attempt(&format!("SELECT pg_cancel_backend({pid})"))),
                Fault::Terminate => drop(watch.attempt(&format!("SELECT pg_terminate_backend({pid})"))),
                Fault::Kill => killed = cluster.signal("KILL", pid),
                Fault::TerminateWorker | Fault::KillWorker => {
                    // there may be none yet
                    while !victim.is_finished() {
                        let find = format!(
                            "SELECT pid FROM pg_stat_activity WHERE leader_pid = {pid} AND pid <> {pid} ORDER BY random() LIMIT 1"
                        );
                        let Some(worker) = watch.column::<i32>(&find).first().copied() else { continue };
                        let sent = cluster.signal(if fault == Fault::KillWorker { "KILL" } else { "TERM" }, worker);
                        killed = sent && fault.kills();
                        break;
                    }
                }
            }
            let deadline = Instant::now() + PATIENCE;
            while !victim.is_finished() {
                assert!(Instant::now() < deadline, "does not stop: {what}");
                if let Err(failure) = watch.attempt(LOOK) {
                    assert!(fault.kills(), "who looks has failed: {failure:#?}\n{what}");
                }
                sleep(Duration::from_millis(1));
            }
            (
                victim.join().expect("the victim's thread does not panic"),
                meanwhile.join().expect("the neighbour's thread does not panic"),
                killed,
            )
        });
        tally.tried += 1;
        let hit = code != "00000";
        tally.hit += u32::from(hit);
        if !hit && fault != Fault::TerminateWorker {
            // it has become faster since it was measured
            self.durations[chosen] = self.durations[chosen].min(started.elapsed());
        }
        assert!(!hit || fault.codes().contains(&code.as_str()), "{code}: {what}");
        *tally.codes.entry(code.clone()).or_default() += 1;

        if !self.cluster.is_running() {
            tally.lost += 1;
            panic!("the server is lost: {what}\n{}", self.cluster.log());
        }
        let restarted = killed && self.restarted();
        if restarted {
            tally.restarts += 1;
            self.reconnect();
        } else {
            let lines = meanwhile.unwrap_or_else(|failure| panic!("a session beside has failed: {failure:#?}\n{what}"));
            assert_eq!(lines, self.beside.expected, "{what}");
            assert_eq!(self.beside.session.pid(), self.beside.pid, "{what}");
            match fault {
                // who was told to end just after the statement does so now
                Fault::Terminate | Fault::Kill => self.victim = self.cluster.session(),
                // a cancel that comes after the statement hits the next one
                _ => while self.victim.attempt("ROLLBACK; SET statement_timeout = '120s'; SELECT 1").is_err() {},
            }
        }
        let left = leftovers(&self.cluster, &mut self.watch);
        tally.leftovers += left.len() as u32;
        assert!(left.is_empty(), "{left:#?} after {what}");
        let stored = self.watch.models() - 2;
        // a client that was cut off does not know
        let known = fault != Fault::Terminate && !fault.kills();
        let expected = if hit { 0 } else { statement.models };
        assert!(stored == expected || !known && stored == statement.models, "{stored} models are stored: {what}");
        models_are_whole(&mut self.watch);
        forget(&mut self.watch);
    }

    /// Has the server ended all its processes? A worker that was killed when it was ending anyway is no reason.
    fn restarted(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.watch.attempt("SELECT 1").is_ok() {
            if Instant::now() > deadline {
                return false;
            }
            sleep(Duration::from_millis(2));
        }
        true
    }
}

/// Deletes what the statements have stored.
fn forget(watch: &mut Session) {
    watch.run("DELETE FROM corgipile.models WHERE name IS NULL OR name NOT IN ('kept', 'rows')");
}

/// Stops statements by one kind of fault after the other, and reports.
fn stop(test: &str, faults: &[Fault], shared: bool) {
    let seed = probe::seed();
    // two tests share a few, to be done soon
    let count = if probe::moments() > 50 { probe::moments() } else { probe::moments().div_ceil(2) };
    println!("{test}: seed {seed}");
    let mut scene = Scene::new(test, seed, shared);
    let place = if shared { " with models in shared memory" } else { "" };
    for fault in faults {
        let mut tally = Tally::default();
        let (pid, before) = (scene.victim.pid(), held(scene.victim.pid()));
        for _ in 0..count {
            scene.moment(*fault, &mut tally);
        }
        if scene.victim.pid() == pid {
            let after = held(pid);
            // PostgreSQL keeps a few files open, and memory that it has freed mapped
            assert!(after.0 <= before.0 + 20 && after.1 <= before.1 + 40, "files, maps: {before:?} then {after:?}");
        }
        if shared {
            shared_models_are_free(&mut scene.watch, "kept");
            forget(&mut scene.watch);
        }
        let codes: Vec<String> = tally.codes.iter().map(|(code, n)| format!("{code} {n}")).collect();
        report(&format!(
            "{fault:?}{place}: {} moments tried, {} faults injected ({}), {} servers lost, {} leftovers, {} expected restarts, seed {seed}",
            tally.tried,
            tally.hit,
            codes.join(", "),
            tally.lost,
            tally.leftovers,
            tally.restarts,
        ));
    }
    let complaints = complaints(&scene.cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

const STOPS: &[Fault] = &[Fault::Cancel, Fault::Timeout, Fault::Terminate, Fault::TerminateWorker];
const KILLS: &[Fault] = &[Fault::Kill, Fault::KillWorker];

#[test]
fn who_is_stopped_leaves_nothing() {
    stop("stop", STOPS, false);
}

#[test]
fn who_is_stopped_leaves_nothing_in_the_shared_memory_of_models() {
    stop("stop shared", STOPS, true);
}

#[test]
fn after_kill_9_of_a_backend_or_worker_the_server_goes_on() {
    stop("kill", KILLS, false);
}

#[test]
fn after_kill_9_the_shared_memory_of_models_is_made_anew() {
    stop("kill shared", KILLS, true);
}
