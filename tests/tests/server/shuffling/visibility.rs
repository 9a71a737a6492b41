//! What a snapshot sees of rows to which anything has happened: page by page the tuples that a sequential scan gives,
//! which asks HeapTupleSatisfiesVisibility() for each of them.

use corgipile_tests::{Database, Session, sample};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Every version of a row has a number of its own.
const TABLE: &str = "
    CREATE TABLE t (v bigint NOT NULL, id int NOT NULL, k int NOT NULL, label int NOT NULL, pad text NOT NULL)
        WITH (autovacuum_enabled = off, fillfactor = 80);
    CREATE INDEX ON t (k);
    CREATE SEQUENCE versions;
    INSERT INTO t SELECT nextval('versions'), i, i, 0, repeat('x', 150) FROM generate_series(1, 400) i";

const OURS: &str = "(SELECT array_agg(v) FROM corgipile_shuffle(NULL::t, shuffle => 'no_shuffle'))::text";
const THEIRS: &str = "(SELECT array_agg(v) FROM t)::text";

struct History {
    random: SplitMix64,
    /// what was done, to be shown if a check fails
    done: Vec<String>,
}

impl History {
    fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    fn run(&mut self, who: usize, session: &mut Session, sql: &str) {
        self.done.push(format!("{who}: {sql}"));
        session.run(sql);
    }

    /// Asserts that both scans of a statement give the same tuples in the same order, anyone who comes first and sets
    /// hint bits.
    fn check(&mut self, who: usize, session: &mut Session) {
        let ours_first = self.below(2) == 0;
        let sql = if ours_first { format!("SELECT {OURS}, {THEIRS}") } else { format!("SELECT {THEIRS}, {OURS}") };
        let both = session.line(&sql);
        let (left, right) = both.split_once('|').expect("two columns");
        assert_eq!(left, right, "{sql} by {who} after {:#?}", self.done);
    }

    /// Some rows that no one else has locked, and which are locked now.
    fn locked_rows(&mut self, strength: &str) -> String {
        let (from, count) = (self.below(450), self.below(60));
        format!("SELECT v FROM t WHERE id BETWEEN {from} AND {} FOR {strength} SKIP LOCKED", from + count)
    }

    /// Something that changes rows or locks them.
    fn change(&mut self) -> String {
        let strength = self.one_of(&["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
        let rows = self.locked_rows("UPDATE");
        match self.below(6) {
            0 => {
                let (first, count) = (self.below(450), 1 + self.below(40));
                format!(
                    "INSERT INTO t SELECT nextval('versions'), i, i, 1, repeat('y', 150)
                       FROM generate_series({first}, {}) i",
                    first + count
                )
            }
            1 => format!("UPDATE t SET v = nextval('versions'), label = label + 1 WHERE v IN ({rows})"),
            2 => format!("UPDATE t SET v = nextval('versions'), k = k + 1 WHERE v IN ({rows})"),
            3 => format!("DELETE FROM t WHERE v IN ({rows})"),
            _ => self.locked_rows(strength),
        }
    }

    /// A cursor of each scan, opened before rows change that its snapshot still sees.
    fn check_cursors(&mut self, who: usize, session: &mut Session) {
        let (first, second) = (self.change(), self.change());
        self.run(
            who,
            session,
            &format!(
                "SAVEPOINT c; {first};
                 DECLARE ours CURSOR FOR SELECT v FROM corgipile_shuffle(NULL::t, shuffle => 'no_shuffle');
                 DECLARE theirs CURSOR FOR SELECT v FROM t; {second}"
            ),
        );
        let (ours, theirs) = (session.lines("FETCH ALL ours"), session.lines("FETCH ALL theirs"));
        assert_eq!(ours, theirs, "by {who} after {:#?}", self.done);
        let end = self.one_of(&["ROLLBACK TO c", "RELEASE c"]);
        self.run(who, session, &format!("CLOSE ours; CLOSE theirs; {end}"));
    }

    /// What a session does next that writes; `depth` is how many savepoints its transaction has, if it is in one.
    fn write(&mut self, who: usize, session: &mut Session, depth: &mut Option<u64>) {
        let sql = match (*depth, self.below(8)) {
            (None, 0..4) => {
                *depth = Some(0);
                "BEGIN".to_owned()
            }
            (Some(_), 0) => {
                *depth = None;
                self.one_of(&["COMMIT", "COMMIT", "ROLLBACK"]).to_owned()
            }
            (Some(savepoints), 1) => {
                *depth = Some(savepoints + 1);
                format!("SAVEPOINT s{}", savepoints + 1)
            }
            (Some(savepoints @ 1..), 2) => {
                *depth = Some(savepoints - 1);
                format!("{} s{savepoints}", self.one_of(&["ROLLBACK TO", "RELEASE"]))
            }
            (Some(_), 3) => return self.check_cursors(who, session),
            _ => self.change(),
        };
        self.run(who, session, &sql);
    }
}

/// A history of three sessions that write and two whose snapshots stay.
fn live_through(seed: u64) {
    let mut db = Database::new();
    db.run(TABLE);
    let mut history = History { random: SplitMix64::seed_from_u64(seed), done: Vec::new() };
    let mut writers: Vec<(Session, Option<u64>)> = (0..3).map(|_| (db.session(), None)).collect();
    let mut readers: Vec<(Session, bool)> = (0..2).map(|_| (db.session(), false)).collect();
    for _ in 0..120 {
        match history.below(10) {
            0 => {
                let options = history.one_of(&["TRUNCATE false", "TRUNCATE false, FREEZE"]);
                history.run(9, &mut db, &format!("VACUUM ({options}) t"));
            }
            1 => {
                let who = history.below(2) as usize;
                let (session, reads) = &mut readers[who];
                let sql = if *reads { "COMMIT" } else { "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1" };
                *reads = !*reads;
                history.run(5 + who, session, sql);
            }
            _ => {
                let who = history.below(3) as usize;
                let (session, depth) = &mut writers[who];
                history.write(who, session, depth);
            }
        }
        match history.below(6) as usize {
            who @ 0..3 => history.check(who, &mut writers[who].0),
            who @ 3..5 => history.check(2 + who, &mut readers[who - 3].0),
            _ => history.check(9, &mut db),
        }
    }
}

#[test]
fn random_histories_are_seen_as_a_sequential_scan_sees_them() {
    for seed in 0..sample(12, 4) {
        live_through(seed);
    }
}
