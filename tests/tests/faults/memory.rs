//! No memory: each call of malloc, mmap and posix_fallocate fails in turn, alone or with all that follow.

use crate::kinds::{KINDS, SETUP, Watch};
use crate::probe::{self, Draw, complaints, complaints_in, leftovers, models_are_whole, report, tables};
use corgipile_tests::{Cluster, FailingMemory, Fails, Failure, Session, Whose, has_backend_tests, skip};

/// What came of the failures of one kind of statement.
#[derive(Default)]
struct Outcome {
    sites: usize,
    failed: u64,
    succeeded: u32,
    errors: u32,
    not_reached: u32,
    /// sessions that PostgreSQL or we have ended, with a word
    ended: Vec<String>,
    /// errors that are not of class 53, insufficient resources
    other: Vec<String>,
}

/// What reports that a session ends from other failures, which say as much of memory.
const ENDS: &str = "the session ends";

struct Sweep<'a> {
    cluster: &'a mut Cluster,
    memory: &'a mut FailingMemory,
    db: Session,
    watch: Watch,
    /// Bytes of the server's log that have been looked at. Each failure dumps the memory contexts, and a log of
    /// hundreds of megabytes is not read again each time.
    read: u64,
}

impl Sweep<'_> {
    /// Fails memory at these sites of a statement, in both ways.
    fn fail(&mut self, name: &str, sql: &str, of_workers: bool, draw: &mut Draw, most: usize) -> Outcome {
        let _ = self.db.attempt(sql).unwrap_or_else(|failure| panic!("{name}: {failure:#?}"));
        let mut outcome = Outcome::default();
        let mut sites = self.sites(sql, of_workers);
        outcome.sites = sites.len();
        while sites.len() > most {
            sites.swap_remove(draw.below(sites.len() as u64) as usize);
        }
        for (i, site) in sites.into_iter().enumerate() {
            for fails in [Fails::One, Fails::All] {
                self.one(name, sql, of_workers, site, fails, &mut outcome);
            }
            if i % 16 == 0 {
                self.look(name);
            }
        }
        self.look(name);
        outcome
    }

    fn whose(&mut self, of_workers: bool) -> Whose {
        if of_workers { Whose::Workers } else { Whose::Backend(self.db.pid()) }
    }

    fn sites(&mut self, sql: &str, of_workers: bool) -> Vec<u64> {
        let whose = self.whose(of_workers);
        self.memory.record(whose);
        self.db.run(sql);
        self.memory.stop();
        self.memory.sites()
    }

    fn one(&mut self, name: &str, sql: &str, of_workers: bool, site: u64, fails: Fails, outcome: &mut Outcome) {
        self.watch.step();
        let whose = self.whose(of_workers);
        self.memory.fail(whose, site, fails);
        let result = self.db.attempt(sql);
        let failed = self.memory.stop();
        outcome.failed += failed;
        match result {
            _ if failed == 0 => outcome.not_reached += 1,
            Ok(_) => outcome.succeeded += 1,
            Err(failure) => {
                outcome.errors += 1;
                let Failure { code, message, detail, .. } = &failure;
                let message = format!("{name}, {fails:?} {site:x}: {code} {message} {detail}");
                self.read_log(&message);
                if let Err(after) = self.db.attempt("ROLLBACK; RESET ALL") {
                    outcome.ended.push(format!("{message}, then {} {}", after.code, after.message));
                    self.db = self.cluster.session();
                    prepare(&mut self.db);
                    // what a session does for the first time is not what is asked
                    self.db.run(sql);
                } else if !failure.code.starts_with("53") {
                    outcome.other.push(message);
                }
            }
        }
    }

    /// Asserts that the server has logged nothing bad since this was asked last.
    fn read_log(&mut self, what: &str) {
        let (news, read) = self.cluster.log_after(self.read);
        self.read = read;
        let complaints = complaints_in(&news);
        assert!(complaints.is_empty(), "{what}\n{complaints:#?}\n{}", tail(self.cluster));
        // a process that ends with another code than 0 or 1 makes PostgreSQL end all
        assert!(!news.contains("reinitializing"), "the server was restarted after {what}\n{}", tail(self.cluster));
    }

    /// Nothing is left, and the server is as it was.
    fn look(&mut self, name: &str) {
        assert!(self.cluster.is_running(), "{name}: the server has ended\n{}", tail(self.cluster));
        self.read_log(name);
        self.db.run(
            "DROP TABLE IF EXISTS c2; DELETE FROM corgipile.stored_models WHERE name IS NULL OR name IN ('again', 'other')",
        );
        let left = leftovers(self.cluster, &mut self.db);
        assert!(left.is_empty(), "{left:#?} after {name}");
        models_are_whole(&mut self.db);
    }
}

/// Settings of a session in which statements come without what only the first one does.
fn prepare(db: &mut Session) {
    db.run("SET statement_timeout = '20s'; LOAD 'corgipile'");
}

/// What the server has logged of this session, which has ended. The client loses the server's last message if the end
/// of the connection comes with it.
fn last_words(cluster: &Cluster, db: &mut Session, pid: i32) -> String {
    let pid = format!("[{pid}]");
    db.fails_with("SELECT 1", "closed");
    let log = cluster.log();
    log.lines().filter(|line| line.contains(&pid)).collect::<Vec<_>>().join("\n")
}

fn tail(cluster: &Cluster) -> String {
    let log = cluster.log();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

#[test]
fn every_call_for_memory_may_fail() {
    let (mut cluster, mut memory) = match Cluster::with_failing_memory(&["log_min_messages = error", "jit = off"]) {
        Ok(made) => made,
        Err(why) => return skip(every_call_for_memory_may_fail, &why),
    };
    let mut db = cluster.session();
    tables(&mut db);
    db.run(SETUP);
    prepare(&mut db);
    let all = probe::moments() > 100;
    let most = if all { usize::MAX } else { probe::moments() as usize / 6 };
    let mut draw = Draw::new(probe::seed(), "memory");
    let watch = Watch::over(&cluster);
    let mut sweep = Sweep { cluster: &mut cluster, memory: &mut memory, db, watch, read: 0 };
    let only = std::env::var("CORGIPILE_KIND").unwrap_or_default();
    let (mut failures, mut ended) = (0, Vec::new());
    for (name, sql) in KINDS.iter().filter(|(name, _)| name.contains(&only)) {
        for of_workers in [false, true] {
            if of_workers && !(name.contains("loader") || name.contains("workers")) {
                continue;
            }
            let outcome = sweep.fail(name, sql, of_workers, &mut draw, most);
            let workers = if of_workers { ", in workers" } else { "" };
            report(&format!(
                "{name}{workers}: {} call sites; {} calls failed; {} errors, {} results, {} not reached, {} sessions ended",
                outcome.sites,
                outcome.failed,
                outcome.errors,
                outcome.succeeded,
                outcome.not_reached,
                outcome.ended.len()
            ));
            println!("  other errors: {:#?}\n  ended: {:#?}", outcome.other, outcome.ended);
            failures += outcome.failed;
            if !name.starts_with("core") {
                ended.extend(outcome.ended);
            }
        }
    }
    report(&format!(
        "Memory: {failures} calls failed, 0 servers lost, 0 hangs, 0 leftovers, {} sessions ended",
        ended.len()
    ));
}

/// A cluster of which memory can be refused, with this function of the backend tests; or why it could not be made.
fn with_function(declaration: &str) -> Result<(Cluster, FailingMemory), String> {
    if !has_backend_tests() {
        return Err("the library has no backend tests".to_owned());
    }
    let (cluster, memory) = Cluster::with_failing_memory(&[])?;
    let (name, _) = declaration.split_once('(').expect("a function has arguments");
    let sql = format!("CREATE FUNCTION {declaration} LANGUAGE c STRICT AS '$libdir/corgipile', '{name}_wrapper'");
    cluster.session().run(&sql);
    Ok((cluster, memory))
}

/// Asserts that the server has noticed nothing of what sessions have come to.
fn nothing_else_has_happened(cluster: &Cluster, other: &mut Session) {
    assert_eq!(other.line("SELECT 1"), "1", "other sessions do not notice");
    let bad: Vec<String> = complaints(cluster).into_iter().filter(|line| !line.contains("XX000")).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(!cluster.log().contains("reinitializing"), "{}", tail(cluster));
}

/// What an error needs on its way may be more than there is: then the session ends, and not the server.
#[test]
fn an_error_that_takes_more_than_the_reserve_ends_the_session() {
    let (cluster, mut memory) = match with_function("greedy_error() RETURNS void") {
        Ok(made) => made,
        Err(why) => return skip(an_error_that_takes_more_than_the_reserve_ends_the_session, &why),
    };
    let mut other = cluster.session();
    let greedy = "SELECT greedy_error()";
    let mut db = cluster.session();
    db.rejects(greedy, "XX000").says(&["an error"]);
    memory.record(Whose::Backend(db.pid()));
    db.rejects(greedy, "XX000");
    memory.stop();
    let mut ended = 0;
    for site in memory.sites() {
        let mut db = cluster.session();
        db.rejects(greedy, "XX000");
        let pid = db.pid();
        memory.fail(Whose::Backend(pid), site, Fails::All);
        let failure = db.attempt(greedy).expect_err("it fails");
        memory.stop();
        if failure.code == "closed" || failure.detail.contains(ENDS) {
            assert!(last_words(&cluster, &mut db, pid).contains(ENDS));
            ended += 1;
        }
    }
    assert!(ended > 0);
    nothing_else_has_happened(&cluster, &mut other);
}

/// What Rust's collections cannot have, and is not small, ends the session, whatever it is in the middle of.
#[test]
fn an_allocation_that_cannot_fail_ends_the_session() {
    let (cluster, mut memory) = match with_function("infallible_allocation(bytes int) RETURNS void") {
        Ok(made) => made,
        Err(why) => return skip(an_allocation_that_cannot_fail_ends_the_session, &why),
    };
    let mut other = cluster.session();
    let mut db = cluster.session();
    db.run("SELECT infallible_allocation(1000000); CREATE TABLE t (x int)");
    db.run("BEGIN; INSERT INTO t VALUES (1)");
    memory.fail_large(Whose::Backend(db.pid()), 50_000);
    db.fails_with("SELECT infallible_allocation(60000)", "53200").says(&["60000 bytes"]);
    memory.stop(); // PostgreSQL needs some, too
    db.run("ROLLBACK; BEGIN; INSERT INTO t VALUES (1)");
    let pid = db.pid();
    memory.fail_large(Whose::Backend(pid), 50_000);
    let failure = db.attempt("SELECT infallible_allocation(70000)").expect_err("it fails");
    memory.stop();
    assert!(["53200", "closed"].contains(&failure.code.as_str()), "{failure:#?}");
    let words = last_words(&cluster, &mut db, pid);
    assert!(words.contains("FATAL:  out of memory") && words.contains("of 70000 bytes; the session ends"), "{words}");
    assert_eq!(other.line("SELECT count(*) FROM t"), "0", "its transaction is rolled back");
    nothing_else_has_happened(&cluster, &mut other);
}

/// What is large can be refused: that is an error of the statement, whose session goes on.
#[test]
fn what_is_large_can_be_refused() {
    let (cluster, mut memory) = match Cluster::with_failing_memory(&["jit = off", "work_mem = '64MB'"]) {
        Ok(made) => made,
        Err(why) => return skip(what_is_large_can_be_refused, &why),
    };
    let mut db = cluster.session();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, array_fill((i % 7)::real, ARRAY[200]) AS x FROM generate_series(1, 5000) i;
         CREATE TABLE few AS SELECT i % 2 AS label, array_fill((i % 7)::real, ARRAY[400000]) AS x FROM generate_series(1, 3) i;
         SELECT count(*) FROM corgipile_train('few', max_epochs => 1, name => 'large');
         CREATE TABLE exported AS SELECT corgipile_export('large') AS model",
    );
    for statement in [
        "SELECT count(*) FROM corgipile_train('t', max_epochs => 1, buffer_size => '100%', prefetch => 'off')",
        "SELECT count(*) FROM corgipile_train('few', 'svm', max_epochs => 1, options => '{\"standardize\": true}')",
        "SELECT corgipile_predict('large', x) FROM few",
        "SELECT corgipile_import(model, name => 'again') FROM exported",
        "SELECT corgipile_toc_decompress(corgipile_toc(array_fill(0.5::float8, ARRAY[1000, 300]), 'den'))",
    ] {
        db.run("DISCARD ALL");
        memory.fail_large(Whose::Backend(db.pid()), 1 << 20);
        let failure = db.rejects(statement, "53200");
        assert!(memory.stop() > 0);
        assert!(!failure.detail.contains(ENDS), "{failure:#?}");
        db.run(statement);
        db.run("DELETE FROM corgipile.stored_models WHERE name = 'again'");
    }
    assert!(complaints(&cluster).is_empty());
}
