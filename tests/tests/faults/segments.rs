//! No room for segments of dynamic shared memory when a session starts its first worker: PostgreSQL raises an ERROR
//! with locks taken and segments half made, which is caught to go on without a worker.

use crate::probe::{attempt_in_time, complaints, models_are_whole, report, tables, wait_for_lines};
use corgipile_tests::{Cluster, Failure, Session, sample, skip};
use std::fs;

/// Statements that start a worker.
const HOWS: [&str; 2] = ["prefetch => 'on'", "workers => 2"];

fn training(how: &str) -> String {
    format!("SELECT count(*) FROM corgipile_train('t', features => '{{x}}', max_epochs => 3, seed => 1, {how})")
}

/// Fills a file system of segments until this many bytes are left.
fn leave(db: &mut Session, place: &str, bytes: u64) {
    db.run(&format!(
        "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; rm -f {place}/others; free=$(stat -f -c %a*%S {place});
         head -c $(($free - {bytes})) /dev/zero > {place}/others'"
    ));
}

/// Segments that there are; only the server sees them.
fn segments(db: &mut Session, place: &str) -> Vec<String> {
    db.lines(&format!("SELECT name FROM pg_ls_dir('{place}') name WHERE name <> 'others' ORDER BY 1"))
}

/// Asserts that a session which has run a statement without room can go on: it answers, and once there is room
/// (`more`), can be cancelled, and trains with a worker.
fn goes_on(mut session: Session, what: &str, more: impl FnOnce()) {
    assert_eq!(session.line("SELECT 1"), "1", "{what}");
    more();
    session.run("SET statement_timeout = '50ms'");
    let endless = "SELECT corgipile_train('t', features => '{x}', max_epochs => 1000000, prefetch => 'off')";
    let failure = session.attempt(endless).expect_err("it has a million epochs");
    assert_eq!(failure.code, "57014", "{what}: {failure:#?}");
    for how in HOWS {
        let (next, result) = attempt_in_time(session, &training(how));
        assert_eq!(result, Ok(vec!["3".to_owned()]), "{how} with room again, after {what}");
        session = next;
    }
}

/// A training's end: a result, or that there was not enough of something.
fn refused(result: &Result<Vec<String>, Failure>, what: &str) -> bool {
    match result {
        Ok(lines) => assert_eq!(*lines, ["3"], "{what}"),
        Err(failure) => assert!(failure.code.starts_with("53"), "{what}: {failure:#?}"),
    }
    result.is_err()
}

/// The first workers of sessions in a server with 0.2 to 2 MB left for segments in `place`.
fn first_workers(cluster: &Cluster, place: &str) {
    let mut db = cluster.session();
    tables(&mut db);
    let before = segments(&mut db, place);
    let (mut tried, mut errors) = (0, 0);
    for kilobytes in (200..=2000).step_by(sample(100, 300)) {
        for how in HOWS {
            let what = format!("{how}, {kilobytes} kB for segments");
            leave(&mut db, place, kilobytes << 10);
            let (session, result) = attempt_in_time(cluster.session(), &training(how));
            tried += 1;
            errors += u32::from(refused(&result, &what));
            goes_on(session, &what, || leave(&mut db, place, 32 << 20));
            wait_for_lines(&mut db, |db| segments(db, place), &before, &what);
        }
    }
    let complaints = complaints(cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(!cluster.log().contains("terminating any other active server processes"));
    models_are_whole(&mut db);
    report(&format!("First workers without room in {place}: {tried} sessions, {errors} errors, 0 hangs, 0 leftovers"));
}

#[test]
fn first_workers_without_shared_memory_leave_a_session_that_works() {
    let Some(cluster) = Cluster::with_small_shared_memory(64 << 20, &[]) else {
        return skip(first_workers_without_shared_memory_leave_a_session_that_works, "needs root and mount namespaces");
    };
    first_workers(&cluster, "/dev/shm");
}

#[test]
fn first_workers_on_a_full_disk_leave_a_session_that_works() {
    let Some(cluster) = Cluster::with_small_disk_for_segments(64 << 20, &[]) else {
        return skip(first_workers_on_a_full_disk_leave_a_session_that_works, "needs root and mount namespaces");
    };
    first_workers(&cluster, "pg_dynshmem");
}

#[test]
fn first_workers_without_address_space_leave_a_session_that_works() {
    let cluster = Cluster::new(&[]);
    let mut db = cluster.session();
    tables(&mut db);
    let before = segments(&mut db, "pg_dynshmem");
    let (mut tried, mut errors) = (0, 0);
    for kilobytes in (900..=1500).step_by(sample(100, 200)) {
        for how in HOWS {
            let what = format!("{how}, {kilobytes} kB of address space");
            let mut session = cluster.session();
            session.run(&training("prefetch => 'off'")); // what it takes by itself
            let pid = session.pid();
            limit(&mut db, pid, Some(address_space(pid) + (kilobytes << 10)));
            let (session, result) = attempt_in_time(session, &training(how));
            tried += 1;
            errors += u32::from(refused(&result, &what));
            goes_on(session, &what, || limit(&mut db, pid, None));
            wait_for_lines(&mut db, |db| segments(db, "pg_dynshmem"), &before, &what);
        }
    }
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    report(&format!("First workers without address space: {tried} sessions, {errors} errors, 0 hangs, 0 leftovers"));
}

/// Bytes of a process's address space.
fn address_space(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("it has a size");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).expect("a number") << 10
}

/// Limits a process's address space, by a program of another session's, whose user may do so.
fn limit(db: &mut Session, pid: i32, bytes: Option<u64>) {
    let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    db.run(&format!("COPY (SELECT) TO PROGRAM 'cat > /dev/null; prlimit --pid {pid} --as={limit}:'"));
}
