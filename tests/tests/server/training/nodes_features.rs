//! Features of rows that are measured on three private servers: what is kept of them, and how far they are from what
//! was kept, is that of one server with all rows.

use super::nodes::Spread;
use corgipile_tests::Session;

/// Models with numbers, categories, buckets and NULLs, and with an array.
const MODELS: [(&str, &str); 3] = [
    ("columns", "label => 'half', features => '{a,b,c,cat}', options => '{\"nulls\": \"impute\"}'"),
    (
        "buckets",
        "label => 'y', features => '{a,cat}', model => 'linear', options => '{\"hash\": {\"columns\": [\"cat\"], \"buckets\": 16}}'",
    ),
    ("array", "label => 'class', features => '{v}', model => 'softmax'"),
];

/// Names, verdicts and all numbers of a comparison.
fn drift(near: &mut Session, arguments: &str) -> Vec<(String, Option<String>, Vec<Option<f64>>)> {
    let call = format!(
        "SELECT feature, verdict, ARRAY[psi, ks, mean, new_mean, stddev, new_stddev, null_fraction, new_null_fraction, unknown::float8]
         FROM corgipile_drift({arguments})"
    );
    near.rows(&call, &[]).iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// Asserts that a model's features are as far from those of a table on three servers as from those of all its rows on
/// one.
fn assert_same(near: &mut Session, model: &str, there: &str, here: &str) {
    let what = format!("{model}, {there}");
    let on_nodes = drift(near, &format!("'{model}', $${there}$$, 'east,north,south'"));
    let on_one = drift(near, &format!("'{model}', $${here}$$"));
    assert_eq!(on_nodes.len(), on_one.len(), "{what}");
    for (there, here) in on_nodes.iter().zip(&on_one) {
        assert_eq!((&there.0, &there.1), (&here.0, &here.1), "{what}: {there:?} {here:?}");
        for (there, here) in there.2.iter().zip(&here.2) {
            let is_near = |there: f64, here: f64| (there - here).abs() <= 1e-9 * here.abs().max(1e-3);
            assert!(
                there.is_some() == here.is_some() && is_near(there.unwrap_or_default(), here.unwrap_or_default()),
                "{what}: {on_nodes:?}\n{on_one:?}"
            );
        }
    }
}

/// Trains the models here.
fn train_all(near: &mut Session) {
    for (name, arguments) in MODELS {
        near.train(&format!("'base', {arguments}, name => '{name}', max_epochs => 1, seed => 1"));
    }
}

#[test]
fn features_on_servers_are_those_of_all_rows_on_one() {
    let Some(mut spread) = Spread::new(features_on_servers_are_those_of_all_rows_on_one) else { return };
    spread.by_hash();
    spread.by_label();
    spread.one_empty();
    let near = spread.near();
    train_all(near);
    for table in ["t", "by_label", "one_empty"] {
        for (model, _) in MODELS {
            assert_same(near, model, table, "base");
        }
    }
    // rows that are others, also with categories that were not seen, and without a label's column
    for source in [
        "SELECT v, cat, a, b, c FROM {} WHERE a > 0.5 AND id > 100",
        "SELECT id, half, class, y, b AS a, a AS b, c, cat, v FROM {}",
        "SELECT a, b, c, 'pink' AS cat, v FROM {}",
        "SELECT 0.25::float8 AS a, b, c, cat, v FROM {} WHERE cat <> 'red'",
    ] {
        for (model, _) in MODELS {
            if !(source.contains("0.25") || source.contains("AS a")) || model == "array" {
                assert_same(near, model, &source.replace("{}", "t"), &source.replace("{}", "base"));
            }
        }
    }
    let unseen = "SELECT verdict, unknown FROM corgipile_drift('columns', $$SELECT a, b, c, 'pink' AS cat FROM t$$, 'auto') WHERE feature = 'cat'";
    assert_eq!(near.lines(unseen), ["shifted, unknown|1200"]);
    // what is kept: all rows are in a sample of so few, in another sequence
    let kept = |near: &mut Session, model: &str, source: &str, nodes: &str| {
        let call = format!("SELECT tuples, features FROM corgipile_profile('{model}', '{source}', '{nodes}')");
        let profile = format!("SELECT profile FROM corgipile.models WHERE name = '{model}'");
        (near.line(&call), near.value::<serde_json::Value>(&profile))
    };
    for (model, _) in MODELS {
        let there = kept(near, model, "t", "east,north,south");
        let here = kept(near, model, "base", "off");
        assert_eq!(there.0, here.0, "{model}");
        let (there, here) = (there.1["features"].as_array().unwrap(), here.1["features"].as_array().unwrap());
        for (there, here) in there.iter().zip(here) {
            for part in ["edges", "shares", "sampled", "counts", "unknown", "null_fraction"] {
                assert_eq!(there[part], here[part], "{model}: {there} {here}");
            }
            for part in ["mean", "stddev"] {
                let [there, here] = [there, here].map(|feature| feature[part].as_f64().unwrap_or_default());
                assert!((there - here).abs() <= 1e-9 * here.abs().max(1e-3), "{model}: {part} {there} {here}");
            }
        }
        assert_eq!(there.len(), here.len());
    }
    for mut session in spread.sessions() {
        assert_eq!(session.models(), 0, "nothing is stored where the rows are");
    }
}

#[test]
fn features_that_cannot_be_measured_there_are_measured_here_or_are_an_error() {
    let Some(mut spread) = Spread::new(features_that_cannot_be_measured_there_are_measured_here_or_are_an_error) else {
        return;
    };
    spread.by_hash();
    train_all(spread.near());
    let call = |source: &str, nodes: &str| {
        format!("SELECT new_mean FROM corgipile_drift('columns', '{source}', '{nodes}') WHERE feature = 'a'")
    };
    for (source, why) in [
        ("base", "the source is a table of this server"),
        ("SELECT a + 1 AS a, b, c, cat FROM t", "the source computes something"),
        ("SELECT * FROM t LIMIT 9", "some of its rows are on this server, or it does more than read and filter"),
    ] {
        let notices = spread.nodes.near.notices(&[&call(source, "auto")]);
        assert!(
            notices.contains(&format!("the rows are fetched to this server to be measured: {why}\n")),
            "{source}: {notices}"
        );
        let failure = spread.near().fails_with(&call(source, "east,north,south"), "0A000");
        assert_eq!(failure.message, format!("the rows cannot be measured where they are: {why}"));
        let profile = format!("SELECT corgipile_profile('columns', '{source}', 'east,north,south')");
        assert_eq!(spread.near().fails_with(&profile, "0A000").message, failure.message);
    }
    spread.near().fails_with(&call("t", "east,east"), "22023").says(&["servers"]);
    let message = spread.near().fails_with(&call("SELECT * FROM t WHERE id < 0", "auto"), "22000").message;
    assert_eq!(message, "there are no rows to compare");
    // a server whose rows are no features of the model
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE t SET a = 'NaN' WHERE id = (SELECT max(id) FROM t)");
    let failure = spread.near().fails_with(&call("t", "auto"), "22003");
    assert!(failure.message.starts_with("server \"north\": "), "{failure:#?}");
    north.run("UPDATE t SET a = 0 WHERE a = 'NaN'");
    // one that answers for other features
    let (step, there) = ("FUNCTION corgipile.node_step(bytea)", "t");
    north.run(&format!(
        "ALTER {step} RENAME TO real_step;
         CREATE {step} RETURNS bytea LANGUAGE sql AS $$
             SELECT CASE WHEN json LIKE '%\"tallies\":%' THEN pg_catalog.int4send(0) ELSE answer END
             FROM (SELECT answer, pg_catalog.encode(answer, 'escape') AS json FROM (SELECT corgipile.real_step($1) AS answer) a) b $$"
    ));
    let failure = spread.near().fails_with(&call(there, "auto"), "08P01");
    assert_eq!(failure.message, "server \"north\": unexpected reply");
}
