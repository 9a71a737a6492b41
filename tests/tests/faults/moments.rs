//! Statements that are stopped at random moments, by everything that can stop them.

use crate::probe::{self, Draw, complaints, held, leftovers, models_are_whole, report, shared_models_are_free, tables};
use crate::statements::STATEMENTS;
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

/// What the session next to does meanwhile: its results never change.
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

    /// Makes all sessions again, after a restart.
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
                // who was asked to end just after the statement does so now
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
    watch.run("DELETE FROM corgipile.stored_models WHERE name IS NULL OR name NOT IN ('kept', 'rows')");
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
