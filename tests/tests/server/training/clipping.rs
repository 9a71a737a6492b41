//! Features that are cut off at a number of deviations. The oracle is SQL, which cuts them off by itself, and a model
//! that neither standardizes nor cuts.

use corgipile_tests::{Cluster, Database, Session, assert_close};

/// Numbers with heavy tails: `x` and the columns `a`, `b` and `c`, as pairs `k` and `x`. Among the later rows are some
/// that are farther out than any that is learned from.
fn heavy(db: &mut Session) {
    db.run(
        "CREATE TABLE heavy AS
         SELECT id, ARRAY[a, b, c] AS x, ARRAY[1, 2, 3] AS k, a, b, c, (ARRAY['left', 'right'])[1 + id % 2] AS side,
                id % 5 = 0 AS test, (a > 1)::int AS class, 100 + 20 * ln(1 + a) + 10 * c + normal(id, 3) AS y
           FROM (SELECT i AS id, (CASE WHEN i > 2000 AND i % 50 = 0 THEN 10000 ELSE 1 END * exp(2.5 * normal(i, 0)))::real AS a,
                        exp(2 * normal(i, 1))::real AS b, normal(i, 2)::real AS c
                   FROM generate_series(1, 3000) i) AS r ORDER BY y;
         CREATE TABLE learned AS SELECT * FROM heavy WHERE id <= 2000 ORDER BY y;
         CREATE FUNCTION cut(x real[], m corgipile.models, clip float8) RETURNS real[] LANGUAGE sql AS
           'SELECT array_agg(greatest(-clip, least(clip, ((v::float8 - mean) * (1 / scale))::real))::real ORDER BY place)
              FROM unnest(x, m.feature_mean, m.feature_scale) WITH ORDINALITY AS t (v, mean, scale, place)'",
    );
}

const ARRAYS: &str = "'learned', 'mlp', 'y', '{x}', seed => 1";

fn r2(db: &mut Session, id: i64, source: &str) -> f64 {
    db.value(&format!("SELECT value FROM corgipile_evaluate({id}, '{source}') WHERE metric = 'r2'"))
}

fn clip(db: &mut Session, id: i64) -> String {
    db.line(&format!("SELECT hyperparameters->'winsorize' FROM corgipile.models WHERE model_id = {id}"))
}

#[test]
fn a_network_for_numbers_bears_values_that_are_far_out_and_says_how_many_there_are() {
    let mut db = Database::new();
    heavy(&mut db);
    let told = db.notices(&[&format!("SELECT FROM corgipile_train({ARRAYS})")]);
    let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
    let beyond: i64 = db.value(&format!(
        "SELECT count(*) FROM learned, corgipile.models m, unnest(cut(x, m, 1e30)) v WHERE model_id = {id} AND abs(v) > 5"
    ));
    assert!(beyond > 10, "{beyond}");
    let expected = format!(
        "values more than 5 standard deviations from the mean of their feature are clipped: {beyond} in 2000 rows"
    );
    assert!(told.contains(&expected), "{told}");
    let as_they_are = db.train(&format!("{ARRAYS}, options => '{{\"winsorize\": \"none\"}}'"))[0].model_id;
    let rows = "SELECT x, y FROM heavy WHERE id > 2000";
    let without = r2(&mut db, as_they_are, rows);
    assert!(without < 0.0, "what this is about: {without}");
    let found = r2(&mut db, id, rows);
    assert!(found > 0.9, "{found}");
    assert_eq!([clip(&mut db, id), clip(&mut db, as_they_are)], ["5.0", "\"none\""]);
    // nothing is reported where nothing is cut
    let told = db.notices(&[&format!("SELECT FROM corgipile_train({ARRAYS}, options => '{{\"winsorize\": 1000}}')")]);
    assert!(!told.contains("clipped"), "{told}");
}

#[test]
fn predictions_cut_as_training_did_from_arrays_pairs_values_and_shared_memory() {
    let cluster = Cluster::new(&["shared_preload_libraries = 'corgipile'"]);
    let (mut db, mut other) = (cluster.session(), cluster.session());
    heavy(&mut db);
    let id = db.train(&format!("{ARRAYS}, max_epochs => 5"))[0].model_id;
    let (of_rows, cut) =
        ("FROM heavy, corgipile.models m WHERE model_id = {id}".replace("{id}", &id.to_string()), "cut(x, m, 5)");
    let value = format!("corgipile_export({id})");
    let plain = format!("({value} - 'feature_mean' - 'feature_scale') #- '{{hyperparameters,winsorize}}'");
    db.run(&format!("CREATE TABLE kept AS SELECT {value} AS value, {plain} AS plain"));
    let differ: i64 = db.value(&format!(
        "SELECT count(*) FROM kept, (SELECT x, {cut} AS cut {of_rows}) r
          WHERE corgipile_predict({id}, x) IS DISTINCT FROM corgipile_predict(plain, cut)"
    ));
    assert_eq!(differ, 0, "the function is that of what SQL has cut");
    let ask = |call: &str| format!("SELECT {call} FROM heavy, kept ORDER BY id");
    let expected = db.lines(&ask(&format!("corgipile_predict({id}, x)")));
    db.run("SELECT corgipile_import(value, name => 'copy') FROM kept");
    for call in ["value, x", "'copy', x", &format!("{id}, k, x"), &format!("{id}, heavy")] {
        assert_eq!(db.lines(&ask(&format!("corgipile_predict({call})"))), expected, "{call}");
    }
    assert_eq!(other.lines(&ask(&format!("corgipile_predict({id}, x)"))), expected, "from shared memory");
    db.run("SELECT * FROM corgipile_compress('heavy', 'packed', label => 'y', features => '{x}', seed => 1)");
    let packed =
        db.lines(&format!("SELECT p FROM packed, unnest(corgipile_predict({id}, x)) p ORDER BY p::text COLLATE \"C\""));
    let mut sorted = expected;
    sorted.sort();
    assert_eq!(packed, sorted, "from compressed rows");
    let evaluate = format!("SELECT * FROM corgipile_evaluate({id}, 'packed')");
    db.fails_with(&evaluate, "0A000").says(&["option winsorize", "compressed"]);
}

#[test]
fn every_way_to_train_cuts_alike() {
    let mut db = Database::new();
    heavy(&mut db);
    for (features, call, options) in [
        ("{x}", "x", "{}"),
        ("{a,b,c}", "a, b, c", r#"{"transform": "none"}"#),
        ("{side,a,b,c}", "learned", r#"{"transform": "none", "winsorize": 3}"#),
        ("{k,x}", "k, x", r#"{"standardize": true, "winsorize": 3}"#),
    ] {
        let train = |epochs: u32, more: &str| {
            format!(
                "'learned', 'mlp', 'y', '{features}', seed => 1, max_epochs => {epochs}, batch_size => 8, options => '{options}'{more}"
            )
        };
        let whole = db.trained(&train(4, ""));
        assert_eq!(db.trained(&train(4, ", prefetch => 'on'")).bits(), whole.bits(), "{features}");
        let first = db.trained(&train(3, ""));
        let continued = db.trained(&format!("'learned', warm_start => '{}', max_epochs => 1", first.id));
        assert_eq!(continued.bits(), whole.bits(), "{features}");
        assert_eq!(clip(&mut db, continued.id), clip(&mut db, whole.id));
        for (given, words) in [("4", ["clipped", "other values"]), ("\"none\"", ["clipped", "other values"])] {
            let otherwise = format!(
                "SELECT FROM corgipile_train('learned', warm_start => '{}', options => '{{\"winsorize\": {given}}}')",
                first.id
            );
            db.fails_with(&otherwise, "22023").says(&words).hints(&["Leave option winsorize out"]);
        }
        let point = db.train(&train(4, ", grid => '{\"l2\": [0, 0.001]}'"))[0].model_id;
        assert_eq!(db.model(point).bits(), whole.bits(), "{features}");
        let again = format!(
            "'learned', 'mlp', 'y', '{features}', seed => 1, options => (SELECT hyperparameters - '{{pages_per_block,buffer_blocks,seed,model,label}}'::text[]
                                                     FROM corgipile.models WHERE model_id = {})",
            whole.id
        );
        assert_eq!(db.trained(&again).bits(), whole.bits(), "{features}");
        // evaluation, and the rows that are held out
        let errors = |id: i64, rows: &str| {
            format!(
                "SELECT unnest(ARRAY[1 - sum(e * e) / sum((y - m) ^ 2), sqrt(avg(e * e))])
                   FROM (SELECT y, corgipile_predict({id}, {call}) - y AS e, avg(y) OVER () AS m FROM learned WHERE {rows}) AS r"
            )
        };
        let by_hand: Vec<f64> = db.column(&errors(whole.id, "true"));
        let found: Vec<f64> = db.column(&format!(
            "SELECT value FROM corgipile_evaluate({}, 'learned') WHERE metric IN ('r2', 'rmse') ORDER BY metric",
            whole.id
        ));
        assert_close(&found, &by_hand, 1e-5);
        let held_out = db.rows(
            &format!(
                "SELECT model_id, group_value, validation_score FROM corgipile_train('learned', 'mlp', 'y', '{features}', seed => 1,
                   options => '{options}'::jsonb || '{{\"validation_column\": \"test\"}}', group_by => 'class') WHERE epoch = 20"
            ),
            &[],
        );
        assert_eq!(held_out.len(), 2);
        for row in held_out {
            let (id, group, score): (i64, String, f64) = (row.get(0), row.get(1), row.get(2));
            let by_hand: Vec<f64> = db.column(&errors(id, &format!("test AND class = {group}")));
            assert_close(&[score], &by_hand[..1], 1e-4);
        }
    }
}

#[test]
fn classes_are_not_cut_unless_it_is_said_and_what_cannot_be_cut_is_refused() {
    let mut db = Database::new();
    heavy(&mut db);
    let train = |more: &str| format!("'learned', 'mlp', 'class', '{{x}}', seed => 1, max_epochs => 2{more}");
    let by_default = db.trained(&train(""));
    for word in ["none", "auto"] {
        let same = db.trained(&train(&format!(", options => '{{\"winsorize\": \"{word}\"}}'")));
        assert_eq!(same.bits(), by_default.bits(), "{word}");
    }
    let cut = db.trained(&train(", options => '{\"winsorize\": 2}'"));
    assert_ne!(cut.bits(), by_default.bits());
    assert_eq!([clip(&mut db, by_default.id), clip(&mut db, cut.id)], ["NULL", "2.0"]);
    let given = |model: &str, features: &str, options: &str| {
        format!("SELECT FROM corgipile_train('learned', '{model}', 'y', '{features}', options => '{options}')")
    };
    for (model, features, options, words) in [
        ("linear", "{x}", r#"{"winsorize": 5}"#, &["winsorize", "model mlp"][..]),
        ("mlp", "{x}", r#"{"winsorize": 0}"#, &["winsorize", "above 0"]),
        ("mlp", "{x}", r#"{"winsorize": -1}"#, &["winsorize", "above 0"]),
        ("mlp", "{x}", r#"{"winsorize": 1e60}"#, &["winsorize", "above 0"]),
        ("mlp", "{x}", r#"{"winsorize": "some"}"#, &["winsorize", "none"]),
        ("mlp", "{x}", r#"{"winsorize": 5, "standardize": false}"#, &["winsorize", "standardized"]),
        ("mlp", "{k,x}", r#"{"winsorize": 5}"#, &["winsorize", "standardized"]),
    ] {
        db.rejects(&given(model, features, options), "22023").says(words);
    }
    db.run("SELECT * FROM corgipile_compress('learned', 'packed', label => 'y', features => '{x}', seed => 1)");
    let packed = |options: &str| format!("SELECT FROM corgipile_train('packed', 'mlp', 'y', options => '{options}')");
    db.rejects(&packed(r#"{"objective": "regression", "winsorize": 5}"#), "0A000").says(&["option winsorize"]);
    db.run(&packed(r#"{"objective": "regression", "max_epochs": 1, "learning_rate": 1e-6}"#));
    let id: i64 = db.value("SELECT max(model_id) FROM corgipile.models");
    assert_eq!(clip(&mut db, id), "NULL", "nothing is standardized");
    let forged = format!(
        "SELECT corgipile_import(jsonb_set(corgipile_export({}), '{{hyperparameters,winsorize}}', '-1'))",
        cut.id
    );
    db.fails_with(&forged, "22023").says(&["winsorize", "above 0"]);
    // a decay that was said stays, and so does one of a grid
    let decays = |db: &mut Session, more: &str| -> Vec<f64> {
        let epochs = db.train(&format!("{ARRAYS}, max_epochs => 3{more}"));
        epochs[..3].iter().map(|epoch| epoch.learning_rate / epochs[0].learning_rate).collect()
    };
    for (more, decay) in [
        ("", 0.9),
        (", options => '{\"decay\": 0.95}'", 0.95),
        (", grid => '[{\"decay\": 0.5}, {}]'", 0.5),
        (", grid => '[{}, {\"decay\": 0.5}]'", 0.9),
        (", schedule => 'constant'", 1.0),
    ] {
        assert_close(&decays(&mut db, more), &[1.0, decay, decay * decay], 1e-6);
    }
}
