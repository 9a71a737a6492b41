//! Whom a training waits for when it stores a model under a name: its owner's own trainings, and no one else's.

use corgipile_tests::Database;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of 32 bits of an owner and a name, which the lock once was on: names of different owners that share it are
/// found in no time.
fn hash(owner: u32, name: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    (owner, name).hash(&mut hasher);
    hasher.finish() as u32
}

/// A name of each owner, with one hash.
fn colliding(one: u32, other: u32) -> (String, String) {
    const NAMES: u32 = 1 << 18;
    let of_one: HashMap<u32, u32> = (0..NAMES).map(|i| (hash(one, &format!("m{i}")), i)).collect();
    let found = (0..NAMES).find_map(|i| Some((of_one.get(&hash(other, &format!("n{i}")))?, i)));
    let (a, b) = found.expect("2^36 pairs have 16 with one hash");
    (format!("m{a}"), format!("n{b}"))
}

#[test]
fn names_that_another_owner_trains_under_keep_nobody_waiting() {
    let mut db = Database::with_small_table(100);
    let roles = ["attacker", "victim"].map(|who| db.role(who));
    for role in &roles {
        db.run(&format!("GRANT SELECT ON t TO {role}"));
    }
    let oid = |db: &mut Database, role: &str| db.value::<u32>(&format!("SELECT '{role}'::regrole::oid"));
    let (a, b) = colliding(oid(&mut db, &roles[0]), oid(&mut db, &roles[1]));
    let [mut attacker, mut victim] = roles.each_ref().map(|role| db.session_as(role));
    victim.run("SET lock_timeout = '5s'");
    let train = |name: &str| format!("SELECT count(*) FROM corgipile_train('t', max_epochs => 1, name => '{name}')");
    for (held, name) in [(&a, &b), (&a, &a)] {
        attacker.run(&format!("BEGIN; {}", train(held)));
        assert_eq!(victim.line(&train(name)), "1");
        attacker.run("ROLLBACK");
    }
    // nor does a lock of the user's choice, of those that statements can take
    let locked = "SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'object' AND pid = pg_backend_pid()
                     AND classid > 16383";
    victim.run(&format!("BEGIN; {}", train(&b)));
    let lock = victim.line(locked);
    victim.run("ROLLBACK");
    let [class, object, part]: [i64; 3] =
        lock.split('|').map(|number| number.parse().expect("a number")).collect::<Vec<_>>().try_into().expect("three");
    assert_eq!(class, i64::from(oid(&mut db, &roles[1])), "the owner");
    let both = class << 32 | object;
    let half = object as u32 as i32;
    attacker.run(&format!(
        "BEGIN; SELECT pg_advisory_xact_lock({class}, {half}), pg_advisory_xact_lock({both}), pg_advisory_xact_lock({part})"
    ));
    assert_eq!(victim.line(&train(&b)), "1");
    attacker.run("ROLLBACK");
    // the owner's own trainings wait for each other, and each gets a version
    let mut second = db.session_as(&roles[1]);
    victim.run(&format!("BEGIN; {}", train(&b)));
    second.run("SET lock_timeout = '100ms'");
    second.fails_with(&train(&b), "55P03");
    victim.run("COMMIT");
    assert_eq!(second.line(&train(&b)), "1");
}
