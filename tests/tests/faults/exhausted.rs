//! What there is not enough of: temporary files, shared memory, workers; and what must not grow: a session's memory.

use crate::probe::{self, complaints, held, leftovers, models_are_whole, report, resident, tables};
use corgipile_tests::{Cluster, Session, sample, skip};
use std::thread;

/// Asserts that nothing is left, in a server of segments that are files.
fn clean(cluster: &Cluster, session: &mut Session, what: &str) {
    let left = leftovers(cluster, session);
    assert!(left.is_empty(), "{left:#?} after {what}");
    let complaints = complaints(cluster);
    assert!(complaints.is_empty(), "{complaints:#?} after {what}");
    models_are_whole(session);
}

#[test]
fn temp_file_limit_stops_a_training_or_its_cache() {
    let cluster = Cluster::new(&["work_mem = '64kB'"]);
    let mut db = cluster.session();
    tables(&mut db);
    db.run("SET temp_file_limit = '128kB'");
    let mut faults = 0;
    for source in ["'SELECT t.label, u.x FROM t JOIN t u USING (id)', 'logistic'", "'t', features => '{x}'"] {
        for how in [
            "shuffle => 'shuffle_once'",
            "shuffle => 'epoch_shuffle'",
            "shuffle => 'epoch_shuffle', prefetch => 'on'",
            "shuffle => 'epoch_shuffle', workers => 2",
        ] {
            let sql = format!("SELECT corgipile_train({source}, max_epochs => 3, {how})");
            // a strategy that several processes cannot use is refused before
            let expected = if how.contains("workers") { "0A000" } else { "53400" };
            db.rejects(&sql, expected);
            faults += 1;
            clean(&cluster, &mut db, &sql);
        }
    }
    db.run("SET corgipile.cache_memory = '64kB'");
    for loader in ["off", "on"] {
        let cache = |cache: &str| {
            format!(
                "SELECT count(*) FROM corgipile_train('t', features => '{{x}}', max_epochs => 3, prefetch => '{loader}',
                                                      seed => 1, options => '{{\"cache\": \"{cache}\"}}')"
            )
        };
        for how in ["on", "auto", "off"] {
            let result = db.attempt(&cache(how));
            match result {
                Ok(lines) => assert_eq!(lines, ["3"]),
                Err(failure) => assert!(how == "on" && failure.code == "53400", "{how}: {failure:#?}"),
            }
            faults += 1;
            clean(&cluster, &mut db, how);
        }
    }
    report(&format!("Temporary files: {faults} statements over temp_file_limit, 0 servers lost, 0 leftovers"));
}

/// Takes this many bytes of `/dev/shm`, as if others had segments, too.
fn fill_shared_memory(db: &mut Session, bytes: u32) {
    db.run(&format!(
        "COPY (SELECT 1) TO PROGRAM 'head -c {bytes} /dev/zero > /dev/shm/others || true; cat > /dev/null'"
    ));
}

/// Waits until a query gives these lines again.
fn wait_for(db: &mut Session, sql: &str, lines: &[String]) {
    probe::wait_for_lines(db, |db| db.lines(sql), lines, sql);
}

#[test]
fn a_full_shared_memory_or_disk_is_an_error_and_leaves_nothing() {
    let size = 6 << 20;
    let Some(cluster) = Cluster::with_small_shared_memory(size, &["work_mem = '64kB'", "max_parallel_workers = 16"])
    else {
        return skip(a_full_shared_memory_or_disk_is_an_error_and_leaves_nothing, "needs root and mount namespaces");
    };
    let mut db = cluster.session();
    tables(&mut db);
    db.run(
        // not by CREATE TABLE AS, which from PostgreSQL 16 on leaves empty pages behind the last row
        "CREATE TABLE big (id int, label int, x real[]);
         INSERT INTO big SELECT i, i % 2, array_fill((i % 7)::real, ARRAY[1000]) FROM generate_series(1, 3000) i;
         CREATE TABLE growing (LIKE big);
         INSERT INTO growing TABLE big;
         DELETE FROM growing WHERE id <= 1500 AND id % 5 > 0;
         COPY (SELECT 1) TO PROGRAM 'mkdir /dev/shm/space; cat > /dev/null'",
    );
    db.run("CREATE TABLESPACE space LOCATION '/dev/shm/space'");
    // PostgreSQL keeps a segment for a session that has had workers
    db.run("SELECT corgipile_train('t', features => '{x}', max_epochs => 1, prefetch => 'on')");
    let files = "SELECT name FROM pg_ls_dir('/dev/shm') name WHERE name ~ 'PostgreSQL' ORDER BY 1";
    let before = db.lines(files);
    let (mut tried, mut refused) = (0, 0);
    // buffers that grow: the first are of pages with few rows
    let growing = "'growing', features => '{x}', max_epochs => 2, seed => 3, shuffle => 'no_shuffle'";
    let same = db.trained(&format!("{growing}, prefetch => 'off', buffer_size => '20%'")).bits();
    let expected = db
        .trained("'big', features => '{x}', max_epochs => 2, seed => 3, buffer_size => '10%', prefetch => 'off'")
        .bits();
    for fill in (0..24).step_by(sample(1, 4)).map(|step| step << 18) {
        fill_shared_memory(&mut db, fill);
        let sql =
            format!("SELECT model_id FROM corgipile_train({growing}, prefetch => 'on', buffer_size => '20%') LIMIT 1");
        tried += 1;
        match db.attempt(&sql) {
            Ok(lines) => assert_eq!(db.model(lines[0].parse().expect("an id")).bits(), same, "{fill} bytes of others"),
            Err(failure) => {
                assert_eq!(failure.code, "53200", "{failure:#?}");
                refused += 1;
            }
        }
        wait_for(&mut db, files, &before);
    }
    for buffer in sample(&["1%", "5%", "10%", "20%", "40%", "100%"][..], &["1%", "20%", "100%"]) {
        for how in ["prefetch => 'on'", "workers => 2", "workers => 2, options => '{\"batch_size\": 64}'"] {
            for fill in sample(&[0, 3 << 20, 5 << 20][..], &[0, 5 << 20]) {
                fill_shared_memory(&mut db, *fill);
                let arguments =
                    format!("'big', features => '{{x}}', max_epochs => 2, seed => 3, buffer_size => '{buffer}', {how}");
                let result = db.attempt(&format!("SELECT count(*) FROM corgipile_train({arguments})"));
                tried += 1;
                if let Err(failure) = result {
                    assert!(["53200", "53100", "53000"].contains(&failure.code.as_str()), "{arguments}: {failure:#?}");
                    refused += 1;
                }
                wait_for(&mut db, files, &before);
            }
        }
    }
    fill_shared_memory(&mut db, 0);
    let again =
        db.trained("'big', features => '{x}', max_epochs => 2, seed => 3, prefetch => 'on', buffer_size => '10%'");
    assert_eq!(again.bits(), expected, "when there is memory again");

    db.run("SET temp_tablespaces = 'space'");
    for how in ["shuffle => 'shuffle_once'", "shuffle => 'epoch_shuffle'", "shuffle => 'corgipile'"] {
        let source = "SELECT a.label, a.x || b.x AS x FROM big a JOIN big b USING (id)";
        db.rejects(
            &format!("SELECT corgipile_train('{source}', features => '{{x}}', max_epochs => 2, {how})"),
            "53100",
        );
        refused += 1;
        tried += 1;
        let left = "SELECT name FROM pg_ls_tmpdir((SELECT oid FROM pg_tablespace WHERE spcname = 'space'))";
        assert_eq!(db.lines(left), Vec::<String>::new(), "{how}");
    }
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    models_are_whole(&mut db);
    report(&format!("Shared memory and disk full: {tried} trainings, {refused} refused, 0 servers lost, 0 leftovers"));
}

#[test]
fn sixty_four_trainings_at_once_share_eight_workers() {
    let cluster = Cluster::new(&["max_worker_processes = 8", "max_parallel_workers = 8"]);
    let mut db = cluster.session();
    tables(&mut db);
    let training = |i: usize| {
        let how = ["prefetch => 'off'", "prefetch => 'on'", "prefetch => 'on'", "prefetch => 'auto'"][i % 4];
        format!("'t', features => '{{x}}', max_epochs => 5, seed => 11, {how}, name => 'm{i}'")
    };
    let sessions: Vec<Session> = (0..64).map(|_| cluster.session()).collect();
    let threads: Vec<_> = sessions
        .into_iter()
        .enumerate()
        .map(|(i, mut session)| thread::spawn(move || session.trained(&training(i)).bits()))
        .collect();
    let mut models: Vec<Vec<u32>> = threads.into_iter().map(|thread| thread.join().expect("it trains")).collect();
    models.dedup();
    assert_eq!(models.len(), 1, "the same seed, the same model");
    assert_eq!(db.models(), 64);
    // as many processes as there are, each with workers that it may not get
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let mut session = cluster.session();
            thread::spawn(move || session.train("'t', features => '{x}', max_epochs => 3, workers => 4"))
        })
        .collect();
    for thread in threads {
        assert!(thread.join().expect("it trains").iter().all(|epoch| epoch.tuples == 8000));
    }
    clean(&cluster, &mut db, "80 trainings");
    report("Concurrency: 80 trainings, 64 and 16 at once, with 8 workers for all, 0 servers lost, 0 leftovers");
}

#[test]
fn thousands_of_epochs_leave_a_session_as_it_was() {
    let cluster = Cluster::new(&[]);
    let mut db = cluster.session();
    tables(&mut db);
    db.run("CREATE TABLE few AS SELECT * FROM t WHERE id % 40 = 0");
    let pid = db.pid();
    let (epochs, mut figures) = (sample(10_000, 2_000), Vec::new());
    for how in ["prefetch => 'off'", "prefetch => 'on'", "options => '{\"cache\": \"off\"}'", "workers => 2"] {
        // the history of this many epochs takes memory while it is stored: what is flat is a session of such trainings
        let mut train = |epochs: u32| {
            db.run(&format!("SELECT corgipile_train('few', features => '{{x}}', max_epochs => {epochs}, {how})"));
            db.run("DELETE FROM corgipile.stored_models");
            (held(pid), resident(pid))
        };
        train(epochs);
        let before = train(epochs);
        let after = train(epochs);
        let (files, maps) = (after.0.0.abs_diff(before.0.0), after.0.1.abs_diff(before.0.1));
        assert!(files <= 2 && maps <= 8, "{how}: {before:?} then {after:?}");
        let growth = after.1.saturating_sub(before.1);
        assert!(growth < 4 << 20, "{how}: the process has grown by {growth} bytes");
        figures.push(format!("{growth} bytes, {files} files, {maps} maps"));
    }
    clean(&cluster, &mut db, "many epochs");
    report(&format!(
        "{epochs} epochs in process, with a worker, without cache, by two processes: {}",
        figures.join("; ")
    ));
}
