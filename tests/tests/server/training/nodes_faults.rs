//! Trainings where the rows are that are stopped, by everything that can stop one: nothing is left on any server, and
//! no model is a wrong one.

use super::nodes::Spread;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Sessions that trainings have on a server.
const SESSIONS: &str =
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%corgipile.node_step%' AND pid <> pg_backend_pid()";

#[test]
fn whatever_stops_a_training_leaves_nothing_on_any_server() {
    const TEST: fn() = whatever_stops_a_training_leaves_nothing_on_any_server;
    let Some(mut spread) = Spread::new(TEST) else { return };
    spread.by_hash();
    let endless = "SELECT * FROM corgipile_train('t', label => 'half', features => '{a,b}', nodes => 'east,north,south', batch_size => 10,
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
        let is_gone = stop == "terminate a node" && got == "08006";
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
    (number("MOMENTS").unwrap_or(10) as u32, number("SEED").unwrap_or(1))
}

#[test]
fn faults_at_random_moments_leave_nothing_and_no_wrong_model() {
    const TEST: fn() = faults_at_random_moments_leave_nothing_and_no_wrong_model;
    let Some(mut spread) = Spread::new(TEST) else { return };
    spread.by_hash();
    let training = "'t', label => 'half', features => '{a,b,cat}', nodes => 'east,north,south', batch_size => 10, max_epochs => 12,
                    learning_rate => 0.01, seed => 5";
    let started = Instant::now();
    let expected = spread.near().trained(training).bits();
    let takes = started.elapsed();
    let [mut east, mut north, mut south] = spread.sessions();
    let of_training = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND query LIKE '%corgipile%' AND pid <> pg_backend_pid()";
    let (moments, mut state) = moments();
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut models, mut ends) = (1, BTreeMap::new());
    for moment in 0..moments {
        let mut session = spread.nodes.near.session();
        let (pid, token) = (session.pid(), session.cancel_token());
        let background = session.in_background(&format!("SELECT max(model_id) FROM corgipile_train({training})"));
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
                models += 1;
                let id = lines[0].parse().expect("a number");
                assert_eq!(spread.near().model(id).bits(), expected, "{moment}: {fault}");
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
            let id: i64 = spread.near().value("SELECT max(model_id) FROM corgipile.models");
            assert_eq!(spread.near().model(id).bits(), expected, "{moment}: {fault}");
        }
        assert_eq!(stored, models, "{moment}: {fault}");
        assert_eq!(spread.near().line("SELECT count(*) FROM t"), "1200");
    }
    println!("{moments} moments: {ends:?}");
}
