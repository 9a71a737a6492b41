//! What a test of faults draws, counts and looks for.

use corgipile_tests::{Cluster, Failure, Session, sample};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// How long workers may take to end on a loaded machine, after the one that had started them has ended.
const PATIENCE: Duration = Duration::from_secs(20);

fn from_environment<T: std::str::FromStr>(name: &str) -> Option<T> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number, not {value:?}")))
}

/// Faults of each kind, unless `CORGIPILE_MOMENTS` says otherwise.
pub fn moments() -> u32 {
    from_environment("CORGIPILE_MOMENTS").unwrap_or(sample(24, 8))
}

/// What a run draws everything from: `CORGIPILE_SEED`, or the time.
pub fn seed() -> u64 {
    from_environment("CORGIPILE_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    })
}

/// Random numbers of a test.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// A test's own stream of the seed's.
    pub fn new(seed: u64, test: &str) -> Self {
        let stream = test.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Self(Xoshiro256PlusPlus::seed_from_u64(stream))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Adds a line to the report.
pub fn report(line: &str) {
    println!("{line}");
    if let Some(path) = std::env::var_os("CORGIPILE_REPORT_FILE") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).expect("the report can be written");
    }
}

/// What is there in a server that does nothing and that may not be there: found by asking again and again until it has
/// gone, or patience has.
pub fn leftovers(cluster: &Cluster, session: &mut Session) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        let found = look(cluster, session);
        if found.is_empty() || Instant::now() > deadline {
            return found;
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn look(cluster: &Cluster, session: &mut Session) -> Vec<String> {
    let mut found = session.lines(
        "SELECT 'process', backend_type, state, left(query, 60) FROM pg_stat_activity
          WHERE pid <> pg_backend_pid() AND (backend_type = 'parallel worker' OR state <> 'idle')
         UNION ALL
         SELECT 'lock', locktype, mode, coalesce(relation::regclass::text, '') FROM pg_locks WHERE pid <> pg_backend_pid()
         UNION ALL
         SELECT 'temporary file', name, size::text, '' FROM pg_ls_tmpdir()
         UNION ALL
         SELECT 'progress', pid::text, epoch::text, '' FROM corgipile.stat_progress_train
         UNION ALL
         SELECT 'reading group', pid::text, epoch::text, '' FROM corgipile.stat_shared_scans
         UNION ALL
         SELECT 'pin', relfilenode::text, relblocknumber::text, pinning_backends::text
           FROM pg_buffercache WHERE pinning_backends > 0",
    );
    found.extend(segments(cluster, session));
    found
}

/// Segments of dynamic shared memory beyond those that PostgreSQL keeps: the one that says what others there are, one
/// for each session that has had workers, and what the statistics of all tables and functions take. (An empty one is a
/// file that PostgreSQL has made and left when it had no memory for the zeros to fill it with: dsm_impl_mmap.)
fn segments(cluster: &Cluster, session: &mut Session) -> Option<String> {
    let files = fs::read_dir(cluster.data().join("pg_dynshmem")).into_iter().flatten().flatten();
    let count = files.filter(|file| file.metadata().is_ok_and(|file| file.len() > 0)).count();
    let sessions: i64 = session.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'");
    let kept = 1 + sessions as usize + STATISTICS;
    (count > kept).then(|| format!("{count} segments of shared memory, {kept} of them PostgreSQL's"))
}

/// Segments that the statistics of a server of these tests take at most.
const STATISTICS: usize = 3;

/// What the log has that it may not have, other than processes that the test itself has killed.
pub fn complaints(cluster: &Cluster) -> Vec<String> {
    complaints_in(&cluster.log())
}

/// What this part of a log has that it may not have.
pub fn complaints_in(log: &str) -> Vec<String> {
    let bad = |line: &&str| {
        let killed = line.contains("was terminated by signal") && !line.contains("signal 9");
        let words = ["PANIC:", "TRAP:", "panicked", "leak", "still active", "XX000", "corrupt"];
        killed || words.iter().any(|word| line.contains(word))
    };
    log.lines().filter(bad).map(str::to_owned).collect()
}

/// Waits until these lines are there again.
pub fn wait_for_lines(db: &mut Session, ask: impl Fn(&mut Session) -> Vec<String>, lines: &[String], what: &str) {
    let mut now = ask(db);
    for _ in 0..500 {
        if now == lines {
            break;
        }
        sleep(Duration::from_millis(10));
        now = ask(db);
    }
    assert_eq!(now, lines, "{what}");
}

/// Runs a statement that may fail, but must end: a session that no signal reaches would keep a test waiting for ever.
pub fn attempt_in_time(mut session: Session, sql: &str) -> (Session, Result<Vec<String>, Failure>) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let (ended, ends) = mpsc::channel();
    let statement = sql.to_owned();
    thread::spawn(move || {
        session.run("SET statement_timeout = '30s'");
        let result = session.attempt(&statement);
        // no one listens any more if it took too long
        let _ = ended.send((session, result));
    });
    ends.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("neither an end nor a timeout reaches it: {sql}"))
}

/// What a process holds of the operating system: open files, and mappings of memory.
pub fn held(pid: i32) -> (usize, usize) {
    // PostgreSQL keeps each relation's file open, once
    let is_other =
        |file: &fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| !to.to_string_lossy().contains("/base/"));
    let files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |all| all.flatten().filter(is_other).count());
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_or(0, |maps| maps.lines().count());
    (files, maps)
}

/// Resident memory of a process that is its own, in bytes.
pub fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Tables that the tests train on.
pub fn tables(session: &mut Session) {
    session.run(
        "CREATE EXTENSION IF NOT EXISTS pg_buffercache;
         CREATE TABLE t AS
         SELECT i::int AS id, y AS label, CASE y WHEN 1 THEN 'no' ELSE 'yes' END AS word, (i % 3)::int AS class,
                (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS colour, (y + normal(i, 7))::real AS amount,
                ARRAY[y + normal(i, 1), 2 - y + normal(i, 2), normal(i, 3)]::real[] AS x,
                ARRAY[1 + i % 50, 60 + i % 3]::int[] AS k, ARRAY[normal(i, 1) + y, 1]::real[] AS v
           FROM (SELECT i, (i > 4000)::int AS y FROM generate_series(1, 8000::bigint) i) r;
         CREATE TABLE wide AS
         SELECT i::int AS id, (i % 2)::int AS label,
                (SELECT array_agg((uniform(i, j) + i % 2)::real) FROM generate_series(1, 700) j) AS x
           FROM generate_series(1, 200::bigint) i;
         CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (3000);
         CREATE TABLE high PARTITION OF parts FOR VALUES FROM (3000) TO (100000);
         INSERT INTO parts SELECT * FROM t",
    );
    session.run("VACUUM ANALYZE");
}

/// Asserts that every model is whole: as many weights as features, all of them finite, a history of all its epochs.
pub fn models_are_whole(session: &mut Session) {
    let broken = session.lines(
        "SELECT m.model_id, m.model, cardinality(m.weights), json_array_length(m.history)
           FROM corgipile.models m
          WHERE m.model <> 'mlp' AND cardinality(m.weights) % cardinality(m.intercepts) <> 0
             OR EXISTS (SELECT FROM unnest(m.weights || m.intercepts) w WHERE w <> w OR abs(w) = 'Infinity')
             OR (SELECT count(*) FROM corgipile.all_training_history h WHERE h.model_id = m.model_id)
                <> json_array_length(m.history)
             OR m.feature_kind = 'columns' AND m.categories IS NULL
                AND cardinality(m.weights) <> cardinality(m.features) * cardinality(m.intercepts)",
    );
    assert!(broken.is_empty(), "models that are not whole: {broken:#?}");
}

/// Asserts that all of 1MB of shared memory for models can be used, which it cannot while somebody has an entry pinned
/// or is filling one, and that this model comes back into it. Leaves a model `full`.
pub fn shared_models_are_free(session: &mut Session, model: &str) {
    let full = SHARED_MODELS / 4 - 16; // the intercept takes a cache line
    session.run(&format!(
        "INSERT INTO corgipile.stored_models (name, owner, model, source, label, label_type, classes, features, feature_kind,
             index_base, hyperparameters, weights, intercepts, skipped, preparation_seconds, history)
         SELECT 'full', current_user::regrole::oid::text::corgipile.stored_role, 'logistic', 't', 'label', 'int', '{{0,1}}', '{{k,v}}', 'sparse', 1, '{{}}',
                array_fill(1::real, ARRAY[{full}]), '{{0}}', 0, 0, '[]'"
    ));
    let there = "SELECT name, bytes > 1000000 FROM corgipile.stat_models ORDER BY name";
    session.run("SELECT corgipile_predict('full', ARRAY[1], ARRAY[1::real])");
    assert_eq!(session.lines(there), ["full|t"], "there is room for a model that takes all of the shared memory");
    session.run(&format!("SELECT corgipile_predict('{model}', x) FROM t LIMIT 1"));
    assert_eq!(session.lines(there), [format!("{model}|f")], "a model that was used often is used from there again");
}

/// Bytes of `corgipile.shared_models_size` in the tests.
const SHARED_MODELS: usize = 1 << 20;
