//! Members of reading groups that are stopped at random moments: the others finish with the right rows, and nothing is
//! left of who was stopped. And groups and directories that are full.

use crate::probe::{self, Draw, complaints, leftovers, models_are_whole, report, tables};
use corgipile_tests::{Cluster, Session, sample};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::SeqCst};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// What members do, again and again, whose results do not depend on who else reads: rows of the whole table, of a
/// filter and of a sample, at different speeds, and trainings with processes of their own.
const SHARED: &[&str] = &[
    "SELECT count(*), sum(id), sum(id::numeric * id)
       FROM corgipile_shuffle(NULL::t, shared_scan => true, block_size => '8kB', buffer_size => '10%', seed => 1)",
    "SELECT count(*), sum(id), sum(x[1])::numeric(20, 1)
       FROM corgipile_shuffle(NULL::parts, shared_scan => true, block_size => '8kB', buffer_size => '5%', seed => 2)
      WHERE id % 3 > 0",
    "SELECT count(*), sum(s.id), sum(length(repeat('x', 1000)))
       FROM corgipile_shuffle(NULL::t, shared_scan => true, block_size => '8kB', buffer_size => '10%', seed => 3, sample => 0.5) s,
            generate_series(1, 2)",
    "SELECT count(*), sum(id), sum(cardinality(x)) FROM corgipile_shuffle(NULL::wide, shared_scan => true, seed => 4)",
    "BEGIN;
     SELECT count(*), min(tuples), max(tuples)
       FROM corgipile_train('t', features => '{x}', max_epochs => 4, shared_scan => true, block_size => '8kB',
                            buffer_size => '10%', options => '{\"cache\": \"off\"}');
     ROLLBACK",
    "BEGIN;
     SELECT count(*), min(tuples), max(tuples)
       FROM corgipile_train('t', features => '{x}', max_epochs => 3, shared_scan => true, block_size => '8kB',
                            buffer_size => '10%', prefetch => 'on');
     ROLLBACK",
    "BEGIN;
     SELECT count(*), min(tuples), max(tuples)
       FROM corgipile_train('wide', features => '{x}', max_epochs => 3, shared_scan => true, workers => 2);
     ROLLBACK",
];

const MEMBERS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Stop {
    Cancel,
    Terminate,
    TerminateWorker,
}

const STOPS: [Stop; 3] = [Stop::Cancel, Stop::Terminate, Stop::TerminateWorker];

/// SQLSTATEs by which who was stopped may end; a lost connection has none.
const CODES: [&str; 6] = ["57014", "57P01", "55000", "08006", "closed", "client"];

/// A session that shares, and how often it was asked to stop.
#[derive(Default)]
struct Member {
    pid: AtomicI32,
    told: AtomicU32,
    finished: AtomicU32,
    stopped: AtomicU32,
}

/// Shares until it is over.
fn share(cluster: &Cluster, member: &Member, expected: &[Vec<String>], mut draw: Draw, over: &AtomicBool) {
    let connect = || {
        let mut session = cluster.session();
        member.pid.store(session.pid(), SeqCst);
        session
    };
    let mut session = connect();
    while !over.load(SeqCst) {
        let chosen = draw.below(SHARED.len() as u64) as usize;
        match session.attempt(SHARED[chosen]) {
            Ok(lines) => {
                assert_eq!(lines, expected[chosen], "{}", SHARED[chosen]);
                member.finished.fetch_add(1, SeqCst);
            }
            Err(failure) => {
                let code = failure.code.clone();
                let stopped = member.stopped.fetch_add(1, SeqCst) + 1;
                assert!(stopped <= member.told.load(SeqCst), "nobody was to be stopped: {failure:#?}");
                assert!(CODES.contains(&code.as_str()), "{failure:#?}");
                // who was cancelled goes on in its session, if that takes statements still
                if session.attempt("ROLLBACK").is_err() {
                    session = connect();
                }
            }
        }
    }
}

#[test]
fn members_that_are_stopped_at_any_moment_disturb_no_other() {
    let (seed, moments) = (probe::seed(), probe::moments().max(sample(50, 12)));
    println!("members: seed {seed}");
    let cluster = Cluster::new(&["max_worker_processes = 16", "max_parallel_workers = 16"]);
    let mut watch = cluster.session();
    tables(&mut watch);
    let expected: Vec<Vec<String>> = SHARED.iter().map(|statement| watch.lines(statement)).collect();
    let (members, over): ([Member; MEMBERS], AtomicBool) = Default::default();
    let mut draw = Draw::new(seed, "members");
    let mut tried = 0;
    thread::scope(|scope| {
        let sharing: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(i, member)| {
                let (cluster, expected, over) = (&cluster, &expected, &over);
                let draw = Draw::new(seed, &format!("member {i}"));
                scope.spawn(move || share(cluster, member, expected, draw, over))
            })
            .collect();
        for stop in STOPS {
            for _ in 0..moments {
                sleep(Duration::from_micros(draw.below(60_000)));
                let member = draw.pick(&members);
                let pid = member.pid.load(SeqCst);
                member.told.fetch_add(1, SeqCst);
                watch.run(&match stop {
                    Stop::Cancel => format!("SELECT pg_cancel_backend({pid})"),
                    Stop::Terminate => format!("SELECT pg_terminate_backend({pid})"),
                    Stop::TerminateWorker => format!(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid = {pid} AND pid <> {pid}"
                    ),
                });
                tried += 1;
                if sharing.iter().any(|sharing| sharing.is_finished()) {
                    break; // it has panicked, which is reported below
                }
            }
        }
        over.store(true, SeqCst);
        for sharing in sharing {
            sharing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let sum = |count: fn(&Member) -> &AtomicU32| members.iter().map(|member| count(member).load(SeqCst)).sum::<u32>();
    let (finished, stopped) = (sum(|member| &member.finished), sum(|member| &member.stopped));
    assert!(finished > 0 && stopped > 0, "{finished} statements have finished, {stopped} were stopped");
    let left = leftovers(&cluster, &mut watch);
    assert!(left.is_empty(), "{left:#?}");
    models_are_whole(&mut watch);
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    report(&format!(
        "Members of reading groups: {tried} moments tried, {stopped} faults injected, {finished} statements of others \
         finished with their own rows, 0 leftovers, seed {seed}"
    ));
}

/// A cursor over a table that shares it, with a row read. Gives what was said.
fn open(session: &mut Session, cursor: usize, table: &str) {
    session.run(&format!(
        "DECLARE c{cursor} CURSOR FOR SELECT * FROM corgipile_shuffle(NULL::{table}, shared_scan => true, block_size => '8kB');
         FETCH c{cursor}"
    ));
}

/// Why a reader of a table shares nothing.
fn refusal(session: &mut Session, table: &str) -> Option<String> {
    let lines = session.lines(&format!(
        "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
         SELECT * FROM corgipile_shuffle(NULL::{table}, shared_scan => true, block_size => '8kB')"
    ));
    let share = lines.iter().find_map(|line| line.trim().strip_prefix("Shared Scan: off ").map(str::to_owned));
    assert!(lines.iter().any(|line| line.replace(".00 ", " ").contains("rows=100 ")), "all rows are read: {lines:#?}");
    share
}

/// Waits until no one is a member.
fn wait_for_the_end(watch: &mut Session) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while watch.line("SELECT count(*) FROM corgipile.stat_shared_scans") != "0" {
        assert!(Instant::now() < deadline, "members stay");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn where_there_is_no_room_for_another_member_or_group_the_reader_reads_alone() {
    let cluster = Cluster::new(&["max_connections = 100"]);
    let mut watch = cluster.session();
    for table in 0..17 {
        watch.run(&format!("CREATE TABLE t{table} AS SELECT i FROM generate_series(1, 100) i"));
    }
    assert_eq!(refusal(&mut watch, "t0"), None);

    // the group
    let mut members: Vec<Session> = (0..64).map(|_| cluster.session()).collect();
    for member in &mut members {
        member.run("BEGIN");
        open(member, 0, "t0");
    }
    assert_eq!(watch.line("SELECT count(*), count(DISTINCT scan_group) FROM corgipile.stat_shared_scans"), "64|1");
    assert_eq!(refusal(&mut watch, "t0").as_deref(), Some("(the reading group already has 64 members)"));
    members[17].run("ROLLBACK");
    assert_eq!(refusal(&mut watch, "t0"), None);
    drop(members);
    wait_for_the_end(&mut watch);

    // the groups, and then all places in them
    let mut members: Vec<Session> = (0..8).map(|_| cluster.session()).collect();
    for (i, member) in members.iter_mut().enumerate() {
        member.run("BEGIN");
        for table in 0..16 {
            open(member, table, &format!("t{table}"));
        }
        if i == 0 {
            let why = refusal(&mut watch, "t16");
            assert_eq!(why.as_deref(), Some("(the maximum number of reading groups is reached)"));
            assert_eq!(refusal(&mut watch, "t0"), None);
        }
    }
    assert_eq!(watch.line("SELECT count(*), count(DISTINCT scan_group) FROM corgipile.stat_shared_scans"), "128|16");
    assert_eq!(refusal(&mut watch, "t0").as_deref(), Some("(all places in reading groups are taken)"));
    drop(members);
    wait_for_the_end(&mut watch);
    assert_eq!(refusal(&mut watch, "t16"), None);
}
