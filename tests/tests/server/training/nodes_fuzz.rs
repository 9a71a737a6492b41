//! Messages between servers that no server writes: a number, a list or a word of a request or of an answer is replaced
//! at random. The outcome is an error that says so, or a training; never an internal error, nor an end of a
//! session.

use super::nodes::Spread;
use corgipile_tests::sample;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// In place of the function that servers ask, on one of them: it changes a share of the requests, or of the answers.
const CHANGING: &str = r"
    CREATE FUNCTION changed(message bytea) RETURNS bytea LANGUAGE plpgsql AS $f$
    DECLARE
        len  int := get_byte(message, 0) + 256 * get_byte(message, 1) + 65536 * get_byte(message, 2);
        json text := convert_from(substr(message, 5, len), 'UTF8');
        rest bytea := substr(message, 5 + len);
        patterns text[] := ARRAY['-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?', '\[[^][{}]*\]', '(true|false|null)', '\x22[A-Za-z_0-9 ]+\x22(?!:)'];
        numbers text[] := ARRAY['0', '1', '2', '-1', '3', '0.5', '1e308', '-1e-308', '255', '65536', '4294967295', '4294967296',
                                '9223372036854775807', '9223372036854775808', '18446744073709551615', 'null'];
        others text[] := ARRAY['[]', '[0]', '[1,1]', '[18446744073709551615]', 'null', 'true', 'false', '0', '{}', '\x22x\x22'];
        pattern text; places int; place int; kind int := floor(random() * 10);
    BEGIN
        IF random() >= current_setting('fuzz.share')::float8 THEN
            RETURN message;
        ELSIF kind = 0 AND length(rest) > 0 THEN
            rest := CASE WHEN random() < 0.5 THEN substr(rest, 1, 4 * (length(rest) / 8))
                         ELSE set_byte(set_byte(rest, length(rest) - 1, 127), length(rest) - 2, 192) END;
        ELSE
            pattern := patterns[CASE WHEN kind < 7 THEN 1 ELSE kind - 5 END];
            places := regexp_count(json, pattern);
            IF places > 0 THEN
                place := 1 + floor(random() * places);
                json := regexp_replace(json, pattern, CASE WHEN kind < 7 THEN numbers[1 + floor(random() * array_length(numbers, 1))]
                                                           ELSE others[1 + floor(random() * array_length(others, 1))] END, place, 1);
            END IF;
        END IF;
        len := octet_length(json);
        RETURN set_byte(set_byte(set_byte('\x00000000'::bytea, 0, len & 255), 1, (len >> 8) & 255), 2, len >> 16)
               || convert_to(json, 'UTF8') || rest;
    END $f$;
    ALTER FUNCTION corgipile.node_step(bytea) RENAME TO real_step;
    CREATE FUNCTION corgipile.node_step(request bytea) RETURNS bytea LANGUAGE plpgsql AS $f$
    BEGIN
        IF current_setting('fuzz.seeded', true) IS DISTINCT FROM 'yes' THEN
            PERFORM setseed(current_setting('fuzz.seed')::float8), set_config('fuzz.seeded', 'yes', false);
        END IF;
        RETURN CASE current_setting('fuzz.side') WHEN 'request' THEN corgipile.real_step(public.changed(request))
                                                 ELSE public.changed(corgipile.real_step(request)) END;
    END $f$;
    ALTER FUNCTION changed(bytea) SET search_path = pg_catalog;
    ALTER DATABASE postgres SET statement_timeout = '5s';";

/// Statements whose messages are changed: each kind of request is in some of them.
const STATEMENTS: &[&str] = &[
    "corgipile_train('t', label => 'half', features => '{a,b,cat}', batch_size => 100, @)",
    "corgipile_train('t', label => 'half', features => '{a,c}', nulls => 'impute', batch_size => 1, learning_rate => 0.01, @)",
    "corgipile_train('t', label => 'class', features => '{v}', model => 'softmax', optimizer => 'adam', batch_size => 200, @)",
    "corgipile_train('t', label => 'half', features => '{k,kv}', l1 => 0.001, batch_size => 300, @)",
    "corgipile_train('t', label => 'y', features => '{a,b}', model => 'huber', solver => 'sgd', batch_size => 400, @)",
    "corgipile_train('t', label => 'half', features => '{a,b}', solver => 'newton', @)",
    "corgipile_train('t', label => 'class', features => '{a,b}', model => 'mlp', hidden_layer_sizes => '{4}', batch_size => 200, @)",
    "corgipile_train('t', label => 'half', features => '{a,b}', group_by => 'class', batch_size => 50, @)",
    "corgipile_train('t', label => 'half', features => '{a,b}', model => 'svm', batch_size => 100, options => '{\"probability\": true, \"validation_fraction\": 0.2}', @)",
    "corgipile_train('t', label => 'half', features => '{a,b}', class_weight => 'balanced', grid => '{\"l2\": [0, 0.01]}', batch_size => 200, @)",
    "corgipile_train('t', warm_start => 'begun', @)",
    "corgipile_evaluate('begun', 't', #)",
    "corgipile_profile('begun', 't', #)",
    "corgipile_drift('begun', 't', #)",
    "corgipile_cluster_factor('t', label => 'half', features => '{a,b}', #)",
];

#[test]
fn messages_that_no_server_writes_are_errors_that_say_so() {
    let Some(mut spread) = Spread::new(messages_that_no_server_writes_are_errors_that_say_so) else { return };
    spread.by_hash();
    let nodes = "servers => 'east,north,south'";
    spread.near().run(&format!(
        "SELECT corgipile_train('t', label => 'half', features => '{{a,b,cat}}', batch_size => 100, max_epochs => 1, seed => 1,
                                name => 'begun', {nodes})"
    ));
    let [_, mut north, _] = spread.sessions();
    north.run(CHANGING);
    let mut codes: BTreeMap<String, u32> = BTreeMap::new();
    let trials = sample(6_000, 120);
    for trial in 0..trials {
        let (statement, rest) = (STATEMENTS[trial % STATEMENTS.len()], trial / STATEMENTS.len());
        let side = ["request", "answer"][rest % 2];
        // few messages are changed where there are many, so that late ones are, too
        let share = ["0.5", "0.2", "0.05"][rest / 2 % 3];
        north.run(&format!(
            "ALTER DATABASE postgres SET fuzz.seed = '{}'; ALTER DATABASE postgres SET fuzz.side = '{side}';
             ALTER DATABASE postgres SET fuzz.share = '{share}'",
            f64::from(trial as u32) / f64::from(1 << 20)
        ));
        let statement = statement.replace('@', &format!("max_epochs => 2, seed => 1, {nodes}")).replace('#', nodes);
        let began = Instant::now();
        let code = match spread.near().attempt(&format!("BEGIN; SELECT count(*) FROM {statement} AS f; ROLLBACK")) {
            Ok(_) => "00000".to_owned(),
            Err(failure) => {
                let lost = ["XX000", "08006", "57P01", "57P02", "closed"].contains(&failure.code.as_str());
                assert!(!lost, "trial {trial}, {side} {share}: {statement}\n{failure:#?}");
                spread.near().run("ROLLBACK");
                failure.code
            }
        };
        // a request may take its time up to the timeout of its server, and nothing goes on for ever
        assert!(began.elapsed() < Duration::from_secs(60), "trial {trial}, {side} {share}: {statement}");
        *codes.entry(code).or_default() += 1;
    }
    println!("{codes:?}");
    let told = codes.get("08P01").copied().unwrap_or_default();
    assert!(told as usize > trials / 4, "most of what makes no sense is said to: {codes:?}");
}
