//! Trainings where the rows are that are stopped, by everything that can stop one: nothing is left on any server, and
//! no model is a wrong one.

use super::nodes::{COLUMNS, Spread, rows};
use corgipile_tests::{Cluster, Session, sample, skip};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Sessions that trainings have on a server.
const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%corgipile.node_step%' AND pid <> pg_backend_pid()";

#[test]
fn whatever_stops_a_training_leaves_nothing_on_any_server() {
    let Some(mut spread) = Spread::new(whatever_stops_a_training_leaves_nothing_on_any_server) else { return };
    spread.by_hash();
    let endless = "SELECT * FROM corgipile_train('t', label => 'half', features => '{a,b}', servers => 'east,north,south', batch_size => 10,
                     max_epochs => 1000000, learning_rate => 0.001)";
    let [mut east, mut north, mut south] = spread.sessions();
    let backend = "FROM pg_stat_activity WHERE query LIKE '%corgipile.node_step%' AND pid <> pg_backend_pid()";
    for (stop, code) in [
        ("cancel", "57014"),
        ("terminate a node", "57P01"),
        ("cancel a node", "57014"),
        ("terminate", "57P01"),
        ("a function that catches it", "00000"),
    ] {
        let mut session = spread.nodes.near.session();
        let pid = session.pid();
        let token = session.cancel_token();
        let background = match code {
            "00000" => session.in_background(&format!(
                "DO $do$ BEGIN PERFORM * FROM ({endless}) AS e; EXCEPTION WHEN admin_shutdown OR connection_failure THEN PERFORM pg_sleep(2); END $do$"
            )),
            _ => session.in_background(endless),
        };
        for node in [&mut east, &mut north, &mut south] {
            node.wait_for(SESSIONS, "1");
        }
        std::thread::sleep(Duration::from_millis(200));
        match stop {
            "cancel" => token.cancel_query(postgres::NoTls).expect("it can be cancelled"),
            "terminate" => spread.near().run(&format!("SELECT pg_terminate_backend({pid})")),
            // between two requests there is nothing to be cancelled
            "cancel a node" => {
                let deadline = Instant::now() + Duration::from_secs(30);
                while !background.has_ended() && Instant::now() < deadline {
                    north.run(&format!("SELECT pg_cancel_backend(pid) {backend} AND state = 'active'"));
                }
            }
            _ => south.run(&format!("SELECT pg_terminate_backend(pid) {backend}")),
        }
        let (_, result) = background.join();
        let (got, message) =
            result.map_or_else(|failure| (failure.code, failure.message), |_| ("00000".to_owned(), String::new()));
        // a node that is ended between two requests has not the time to say why
        let is_gone = (stop, got.as_str()) == ("terminate a node", "08006")
            // and a session may be closed before its last message is read; a crash would end the others, too
            || (stop, got.as_str()) == ("terminate", "closed");
        assert!(got == code || is_gone, "{stop}: {got} {message}");
        if stop.ends_with("a node") {
            let server = if stop == "cancel a node" { "north" } else { "south" };
            assert!(message.starts_with(&format!("server \"{server}\": ")), "{stop}: {message}");
        }
        for node in [&mut east, &mut north, &mut south] {
            node.wait_for(SESSIONS, "0");
            assert_eq!(
                node.line("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid <> pg_backend_pid()"),
                "0"
            );
            assert_eq!(node.models(), 0, "{stop}");
        }
        assert_eq!(spread.near().models(), 0, "{stop}");
    }
}

/// Moments at which something happens in a test; `MOMENTS=` says how many, and `SEED=` which.
fn moments() -> (u32, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    (number("MOMENTS").unwrap_or(sample(10, 4)) as u32, number("SEED").unwrap_or(1))
}

#[test]
fn faults_at_random_moments_leave_nothing_and_no_wrong_model() {
    let Some(mut spread) = Spread::new(faults_at_random_moments_leave_nothing_and_no_wrong_model) else { return };
    spread.by_hash();
    let trainings = ["", ", options => '{\"validation_fraction\": 0.2, \"patience\": 3}'", ", grid => '{\"l2\": [0, 0.01]}'", ", group_by => 'class'"]
        .map(|more| {
            format!(
                "SELECT DISTINCT model_id FROM corgipile_train('t', label => 'half', features => '{{a,b,cat}}', servers => 'east,north,south',
                     batch_size => 10, max_epochs => 12, learning_rate => 0.01, seed => 5{more}) ORDER BY 1"
            )
        });
    let started = Instant::now();
    let expected = trainings.each_ref().map(|training| {
        let ids: Vec<i64> = spread.near().column(training);
        bits_of(spread.near(), &ids)
    });
    let takes = started.elapsed() / trainings.len() as u32;
    let [mut east, mut north, mut south] = spread.sessions();
    let of_training = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%corgipile%' AND pid <> pg_backend_pid()";
    let (moments, mut state) = moments();
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut models, mut ends) = (spread.near().models(), BTreeMap::new());
    for moment in 0..moments {
        let which = draw(4) as usize;
        let expected = &expected[which];
        let mut session = spread.nodes.near.session();
        let (pid, token) = (session.pid(), session.cancel_token());
        let background = session.in_background(&trainings[which]);
        std::thread::sleep(takes.mul_f64(draw(1000) as f64 / 900.0));
        let node = [&mut east, &mut north, &mut south].into_iter().nth(draw(3) as usize).expect("one of three");
        let fault = ["cancel", "terminate", "cancel a node", "terminate a node", "stop a node"][draw(5) as usize];
        match fault {
            "cancel" => token.cancel_query(postgres::NoTls).expect("it can be cancelled"),
            "terminate" => drop(spread.near().lines(&format!("SELECT pg_terminate_backend({pid})"))),
            "cancel a node" => {
                (0..50).for_each(|_| drop(node.lines(&format!("SELECT pg_cancel_backend(pid) {of_training}"))))
            }
            "terminate a node" => drop(node.lines(&format!("SELECT pg_terminate_backend(pid) {of_training}"))),
            _ => {
                // it stalls, and the statement is cancelled meanwhile
                let pids: Vec<i32> = node.column(&format!("SELECT pid {of_training}"));
                let signal = |name: &str| {
                    for pid in &pids {
                        let _ = Command::new("kill").args([name, &pid.to_string()]).status();
                    }
                };
                signal("-STOP");
                token.cancel_query(postgres::NoTls).expect("it can be cancelled");
                std::thread::sleep(Duration::from_millis(50));
                signal("-CONT");
            }
        }
        let (_, result) = background.join();
        let code = match &result {
            Ok(lines) => {
                let ids: Vec<i64> = lines.iter().map(|line| line.parse().expect("a number")).collect();
                models += ids.len() as i64;
                assert_eq!(&bits_of(spread.near(), &ids), expected, "{moment}: {fault}");
                "00000"
            }
            Err(failure) => {
                let codes = ["57014", "57P01", "08006", "08000", "08001", "closed"];
                assert!(codes.contains(&failure.code.as_str()), "{moment}, {fault}: {failure:#?}");
                failure.code.as_str()
            }
        };
        *ends.entry(format!("{fault}: {code}")).or_insert(0) += 1;
        for node in [&mut east, &mut north, &mut south] {
            node.wait_for(SESSIONS, "0");
            assert_eq!(
                node.line("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid <> pg_backend_pid()"),
                "0"
            );
            assert_eq!(node.models(), 0, "{moment}: {fault}");
        }
        // who is ended may not hear that he has trained
        let stored = spread.near().models();
        if code == "closed" && stored > models {
            models = stored;
            let newest =
                format!("SELECT model_id FROM corgipile.models ORDER BY model_id DESC LIMIT {}", expected.len());
            let mut ids: Vec<i64> = spread.near().column(&newest);
            ids.reverse();
            assert_eq!(&bits_of(spread.near(), &ids), expected, "{moment}: {fault}");
        }
        assert_eq!(stored, models, "{moment}: {fault}");
        assert_eq!(spread.near().line("SELECT count(*) FROM t"), "1200");
    }
    println!("{moments} moments: {ends:?}");
}

/// All bits of these models.
fn bits_of(session: &mut Session, ids: &[i64]) -> Vec<Vec<u32>> {
    ids.iter().map(|id| session.model(*id).bits()).collect()
}

#[test]
fn a_network_that_is_gone_ends_a_training_on_both_sides_of_it() {
    let Some(mut spread) = Spread::new(a_network_that_is_gone_ends_a_training_on_both_sides_of_it) else { return };
    let Some((west, network)) = Cluster::in_own_network(&[]) else {
        return skip(
            a_network_that_is_gone_ends_a_training_on_both_sides_of_it,
            "no network namespaces can be made here",
        );
    };
    let address = format!("host '{}', port '5432', dbname 'postgres'", network.address());
    // west is reached in two ways, of which one looks whether the network is there
    spread.nodes.add_server("patient", &address);
    let watchful = "keepalives_idle '1', keepalives_interval '1', keepalives_count '2', tcp_user_timeout '2000'";
    spread.nodes.add_server("watchful", &format!("{address}, {watchful}"));
    let mut node = west.session();
    node.run(&format!("CREATE TABLE t ({COLUMNS}); INSERT INTO t {}", rows(600)));
    let [mut east, ..] = spread.sessions();
    east.run(&format!("CREATE TABLE t ({COLUMNS}); INSERT INTO t {}", rows(600)));
    for server in ["patient", "watchful"] {
        spread.near().run(&format!(
            "CREATE TABLE {server} ({COLUMNS}) PARTITION BY LIST (half);
             CREATE FOREIGN TABLE {server}_there PARTITION OF {server} FOR VALUES IN (0) SERVER {server} OPTIONS (table_name 't');
             CREATE FOREIGN TABLE {server}_east PARTITION OF {server} FOR VALUES IN (1) SERVER east OPTIONS (table_name 't')"
        ));
    }
    let training = |server: &str, epochs: u32| {
        format!(
            "SELECT max(model_id) FROM corgipile_train('{server}', 'logistic', label => 'half', features => '{{a,b}}', servers => 'east,{server}',
                 batch_size => 10, max_epochs => {epochs}, learning_rate => 0.001, seed => 1)"
        )
    };
    let before: i64 = spread.near().value(&training("watchful", 3));
    for (server, code) in [("watchful", "08006"), ("patient", "57014")] {
        let session = spread.nodes.near.session();
        let token = session.cancel_token();
        let background = session.in_background(&training(server, 1_000_000));
        node.wait_for(SESSIONS, "1");
        std::thread::sleep(Duration::from_millis(300));
        network.cut();
        if server == "patient" {
            std::thread::sleep(Duration::from_millis(300));
            assert!(!background.has_ended(), "nothing tells it that the network is gone");
            token.cancel_query(postgres::NoTls).expect("it can be cancelled");
        }
        let (_, result) = background.join();
        let failure = result.expect_err("the network is gone");
        assert_eq!(failure.code, code, "{server}: {failure:#?}");
        if server == "watchful" {
            assert!(failure.message.starts_with("server \"watchful\": "), "{}", failure.message);
        }
        // sessions end on the side that is still connected, and on the other one, which gets no word of it
        east.wait_for(SESSIONS, "0");
        node.wait_for(SESSIONS, "0");
        assert_eq!(
            node.line("SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND pid <> pg_backend_pid()"),
            "0"
        );
        network.mend();
    }
    assert_eq!(spread.near().models(), 1);
    let after: i64 = spread.near().value(&training("watchful", 3));
    let [before, after] = [before, after].map(|id| spread.near().model(id).bits());
    assert_eq!(before, after);
}
