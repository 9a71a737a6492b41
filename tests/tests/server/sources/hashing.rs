//! Hashed columns of text. The oracle of buckets is another implementation of the hash, Python's xxhash: `xxh3_64` of
//! the value, seeded by that of the column's name, modulo the number of buckets.

use corgipile_tests::{Database, assert_close};

const TRAINING: &str = "max_epochs => 3, seed => 11, shuffle => 'no_shuffle', standardize => false";

/// Table `t` with a number and two columns of text, and `sparse` with what these are in seven buckets. In some rows
/// both texts have the same bucket: bob and y, NULL and none else.
fn tables(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, label, normal(i, 2) + label AS a,
                (ARRAY['ann', 'bob', 'cid', 'dan', NULL])[1 + ((3 + label) * uniform(i, 1))::int] AS who,
                (ARRAY['x', 'y', 'z', NULL])[1 + (3 * uniform(i, 3))::int] AS site
         FROM (SELECT i, (uniform(i, 0) < 0.5)::int AS label FROM generate_series(1, 600::bigint) i) r ORDER BY i;
         CREATE TABLE who AS SELECT * FROM (VALUES ('ann', 1), ('bob', 4), ('cid', 6), ('dan', 2), (NULL, 1)) v(value, bucket);
         CREATE TABLE site AS SELECT * FROM (VALUES ('x', 5), ('y', 4), ('z', 0), (NULL, 0)) v(value, bucket);
         CREATE TABLE sparse AS
         SELECT id, label, ARRAY[1] || array_agg(bucket + 2 ORDER BY bucket) AS k,
                ARRAY[a::real] || array_agg(n::real ORDER BY bucket) AS v
           FROM (SELECT t.id, t.label, t.a, b.bucket, count(*) AS n
                   FROM t JOIN LATERAL (SELECT bucket FROM who WHERE value IS NOT DISTINCT FROM t.who
                                         UNION ALL SELECT bucket FROM site WHERE value IS NOT DISTINCT FROM t.site) b ON true
                  GROUP BY 1, 2, 3, 4) s
          GROUP BY id, label, a ORDER BY id",
    );
    assert_eq!(db.line("SELECT count(*), max(v[2]), max(cardinality(k)) FROM sparse"), "600|2|3");
}

const HASH: &str = r#""hash": {"buckets": 7, "columns": ["who", "site"]}"#;

#[test]
fn a_hashed_column_is_sparse_features_of_its_buckets() {
    let mut db = Database::new();
    tables(&mut db);
    for (model, options) in [
        ("logistic", ""),
        ("svm", r#", "l2": 0.01"#),
        ("linear", r#", "batch_size": 8"#),
        ("softmax", r#", "optimizer": "adam""#),
        ("mlp", r#", "hidden_layer_sizes": [3], "batch_size": 4"#),
    ] {
        let arguments = format!("'{model}', {TRAINING}, learning_rate => 0.05");
        let hashed = db.trained(&format!(
            "'t', features => '{{who,a,site}}', model => {arguments}, options => '{{{HASH}{options}}}'"
        ));
        let sparse = db.trained(&format!(
            "'sparse', features => '{{k,v}}', model => {arguments}, options => '{{\"dimensions\": 8{options}}}'"
        ));
        assert_eq!(hashed.bits(), sparse.bits(), "{model}");
    }
    let stored = "SELECT categories, feature_kind, hyperparameters->'hash' FROM corgipile.models WHERE model_id = 1";
    assert_eq!(
        db.line(stored),
        r#"{"who": {"buckets": 7}, "site": {"buckets": 7}}|columns|{"buckets": 7, "columns": ["who", "site"]}"#
    );
    let names: Vec<String> = db.column("SELECT feature FROM corgipile.coefficients WHERE model_id = 1");
    let expected = ["(intercept)", "a", "hash[0]", "hash[1]", "hash[2]", "hash[3]", "hash[4]", "hash[5]", "hash[6]"];
    assert_eq!(names, expected);
    let weights: Vec<f32> = db.column("SELECT standardized_coefficient FROM corgipile.coefficients WHERE model_id = 1");
    assert_eq!(weights[1..], db.model(1).weights);
}

#[test]
fn every_way_of_reading_hashes_the_same() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |features: &str, more: &str| {
        format!("'t', features => '{features}', seed => 11, max_epochs => 3, options => '{{{HASH}}}', {more}")
    };
    let expected = db.trained(&train("{who,a,site}", "prefetch => 'off'")).bits();
    assert_eq!(db.trained(&train("{who,a,site}", "prefetch => 'on'")).bits(), expected);
    // the buckets come behind all other features, wherever their columns are
    assert_eq!(db.trained(&train("{a,who,site}", "prefetch => 'off'")).bits(), expected);
    for kind in ["varchar(10)", "char(5)", "char(9)", "person"] {
        if kind == "person" {
            db.run("CREATE TYPE person AS ENUM ('dan', 'cid', 'bob', 'ann')");
        }
        let source = format!("SELECT label, a, who::{kind} AS who, site FROM t");
        let trained =
            db.trained(&train("{who,a,site}", "prefetch => 'off'").replacen("'t'", &format!("'{source}'"), 1));
        assert_close(&trained.parameters(), &db.model(1).parameters(), 1e-5);
    }
    let workers = db.train(&train("{who,a,site}", "workers => 2"));
    assert!(workers[2].tuples == 600 && workers[2].loss < workers[0].loss, "{workers:?}");
}

#[test]
fn predictions_evaluations_exports_and_warm_starts_hash_the_same() {
    let mut db = Database::new();
    tables(&mut db);
    let options = format!("features => '{{who,a,site}}', seed => 11, options => '{{{HASH}}}'");
    let id = db.train(&format!("'t', name => 'm', max_epochs => 5, {options}"))[0].model_id;
    // the same decisions as by hand: of the weights, the standardized number, and the buckets
    let by_hand = "SELECT count(*) FROM t, corgipile.models m,
        LATERAL (SELECT m.intercepts[1] + m.weights[1] * (a - m.feature_mean[1]) / m.feature_scale[1]
                        + (SELECT sum(m.weights[2 + bucket]) FROM who WHERE value IS NOT DISTINCT FROM t.who)
                        + (SELECT sum(m.weights[2 + bucket]) FROM site WHERE value IS NOT DISTINCT FROM t.site)) z(z)
        WHERE m.name = 'm' AND abs(1 / (1 + exp(-z)) - (corgipile_predict_proba('m', t))[2]) < 1e-5";
    assert_eq!(db.value::<i64>(by_hand), 600);
    assert_eq!(db.line("SELECT cardinality(feature_mean), cardinality(feature_scale), cardinality(feature_fill), cardinality(weights) FROM corgipile.models WHERE name = 'm'"), "1|1|1|8");
    let right: f64 = db.value("SELECT avg((corgipile_predict('m', t) = label)::int)::float8 FROM t");
    assert_eq!(db.evaluate(id, "t").accuracy, right);
    for call in [
        "corgipile_predict_proba('m', who, a, site)",
        "corgipile_predict_proba(corgipile_export('m'), t)",
        "corgipile_predict_proba(corgipile_import(corgipile_export('m'), 'copy'), t)",
    ] {
        let same: bool =
            db.value(&format!("SELECT bool_and({call} = corgipile_predict_proba('m', t)) FROM t WHERE id < 20"));
        assert!(same, "{call}");
    }
    let two = db.train(&format!("'t', max_epochs => 2, learning_rate => 0.01, {options}"))[0].model_id;
    let three = db.train(&format!("'t', max_epochs => 3, warm_start => '{two}'"))[0].model_id;
    let five = db.trained(&format!("'t', max_epochs => 5, learning_rate => 0.01, {options}"));
    assert_eq!(db.model(three).bits(), five.bits());
    db.rejects(
        &format!("SELECT * FROM corgipile_train('t', warm_start => '{two}', options => '{{\"hash\": 8}}')"),
        "22023",
    )
    .hints(&["option hash"]);
    // what training has not met has a bucket, too: it is no unseen category
    let of_row = |row: &str, policy: &str| {
        format!("SELECT corgipile_predict_proba('m', r, {policy}) IS NULL FROM (SELECT {row}) AS r(who, a, site)")
    };
    assert!(!db.value::<bool>(&of_row("NULL::text, 0.5, 'never met'", "handle_unknown => 'error'")));
    assert!(db.value::<bool>(&of_row("NULL::text, 0.5, 'x'", "nulls => 'skip'")));
    db.fails_with(&of_row("NULL::text, 0.5, 'x'", "nulls => 'error'"), "22004").says(&["who"]);
}

#[test]
fn a_column_of_many_categories_is_hashed_and_the_record_trains_the_same_model() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS
         SELECT i % 2 AS label, 'user ' || i AS who, CASE WHEN i % 2 = 0 THEN 'even ' ELSE 'odd ' END || i % 5 AS kind,
                repeat('x', 9000) || i % 3 AS body, CASE WHEN i % 11 > 0 THEN i % 10 END AS n
         FROM generate_series(1, 12000) i",
    );
    let train = "'t', features => '{kind,who,body,n}', seed => 1, max_epochs => 2, prefetch";
    let told = db.notices(&[&format!("SELECT * FROM corgipile_train({train} => 'off')")]);
    assert!(told.contains("columns of more than 10000 categories are hashed into 262144 buckets: who, body"), "{told}");
    let stored = "SELECT cardinality(weights), cardinality(feature_mean), categories->'kind'->>0, categories->'who', hyperparameters->'hash'
                    FROM corgipile.models WHERE model_id = 1";
    let hash = r#"{"buckets": 262144, "columns": ["who", "body"]}"#;
    // ten kinds and the number
    assert_eq!(db.line(stored), format!(r#"262155|11|even 0|{{"buckets": 262144}}|{hash}"#));
    // the mean is that of the rows that have the number, whatever was forgotten meanwhile
    let mean = "SELECT abs(feature_fill[11] - (SELECT avg(n) FROM t)) < 1e-6 FROM corgipile.models WHERE model_id = 1";
    assert!(db.value::<bool>(mean));
    let first = db.model(1).bits();
    assert_eq!(db.trained(&format!("{train} => 'on'")).bits(), first);
    let record = "options => (SELECT hyperparameters - '{preparation,pages_per_block,buffer_blocks,workers,prefetch}'::text[] FROM corgipile.models WHERE model_id = 1)";
    assert_eq!(db.trained(&format!("'t', features => '{{kind,who,body,n}}', {record}")).bits(), first);
    let right = db.evaluate(1, "t").accuracy;
    assert!(right > 0.99, "{right}");
    // a bucket of user 1 and of user 20000, by Python's xxhash
    let weights = db.model(1).weights;
    assert!(weights[11 + 39_288] > 0.0 && weights[11 + 234_991] == 0.0);
    let of_network =
        db.train("'t', 'mlp', features => '{kind,who}', seed => 1, max_epochs => 1, hidden_layer_sizes => '{2}'");
    assert_eq!(
        db.line(&format!("SELECT categories->'who' FROM corgipile.models WHERE model_id = {}", of_network[0].model_id)),
        r#"{"buckets": 4096}"#
    );
}

#[test]
fn without_hashing_each_category_has_a_weight_and_a_number_of_buckets_is_kept() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, 'user ' || i AS who, 'w' || i % 10 AS week FROM generate_series(1, 100000) i");
    let train = |hash: &str| {
        format!("'t', features => '{{who,week}}', max_epochs => 2, seed => 1, options => '{{\"hash\": {hash}}}'")
    };
    for off in ["0", "\"off\""] {
        let epochs = db.train(&train(off));
        assert_eq!(epochs[1].tuples, 100_000);
        assert_eq!(
            db.line(&format!(
                "SELECT cardinality(weights), categories->'who'->>0, categories->'week'->>9, hyperparameters->>'hash'
                   FROM corgipile.models WHERE model_id = {}",
                epochs[0].model_id
            )),
            "100010|user 1|w9|off"
        );
    }
    let id = db.train(&train("5000"))[0].model_id;
    let stored = format!(
        "SELECT cardinality(weights), categories->'week'->>9, hyperparameters->'hash' FROM corgipile.models WHERE model_id = {id}"
    );
    assert_eq!(db.line(&stored), r#"5010|w9|{"buckets": 5000, "columns": ["who"]}"#);
    let auto = db.train(&train("\"auto\""))[0].model_id;
    let stored = format!("SELECT cardinality(weights) FROM corgipile.models WHERE model_id = {auto}");
    assert_eq!(db.value::<i32>(&stored), 262_154);
}

#[test]
fn hashing_that_cannot_be_is_refused() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |source: &str, features: &str, hash: &str| {
        format!(
            "SELECT * FROM corgipile_train('{source}', features => '{features}', options => '{{\"hash\": {hash}}}')"
        )
    };
    for hash in [
        "-1",
        "1.5",
        "134217728",
        "\"yes\"",
        "true",
        "{}",
        "{\"columns\": []}",
        "{\"columns\": [\"who\"], \"bins\": 3}",
    ] {
        db.rejects(&train("t", "{who,a}", hash), "22023").says(&["hash", "must be", "buckets"]);
    }
    db.rejects(&train("t", "{who,a}", r#"{"columns": ["a"]}"#), "22023").says(&[
        "hash",
        "\"a\"",
        "not a feature of text",
    ]);
    db.rejects(&train("t", "{who,a}", r#"{"columns": ["site"]}"#), "22023").says(&["\"site\""]);
    db.rejects(&train("t", "{a}", "8"), "22023").says(&["hash", "applies only to features of text"]);
    let long = "SELECT label, repeat(''x'', 8192) AS who FROM t";
    db.rejects(&train(long, "{who}", "0"), "54000").says(&["8192 bytes"]).hints(&["option hash"]);
    let export = |categories: &str| {
        format!("SELECT corgipile_import(jsonb_set(corgipile_export('m'), '{{categories}}', '{categories}'))")
    };
    db.train(&format!("'t', features => '{{who,site,a}}', name => 'm', options => '{{{HASH}}}'"));
    for categories in [
        r#"{"who": {"buckets": 7}, "site": {"buckets": 8}}"#,
        r#"{"who": {"buckets": 0}, "site": {"buckets": 0}}"#,
        r#"{"who": {"buckets": 7, "seed": 1}}"#,
        r#"{"who": {}}"#,
        r#"{"who": 7}"#,
        r#"{"who": {"buckets": 9}, "site": {"buckets": 9}}"#,
    ] {
        db.fails_with(&export(categories), "22023");
    }
}

#[test]
fn columns_that_are_not_null_are_hashed_as_others_are() {
    let mut db = Database::new();
    tables(&mut db);
    db.run(
        "CREATE TABLE full_rows AS SELECT * FROM t WHERE who IS NOT NULL AND site IS NOT NULL;
         CREATE TABLE not_null AS SELECT * FROM full_rows;
         ALTER TABLE not_null ALTER label SET NOT NULL, ALTER a SET NOT NULL, ALTER who SET NOT NULL, ALTER site SET NOT NULL",
    );
    for (model, features, more) in [
        ("logistic", "who,a,site", ""),
        ("logistic", "who,site", ""),
        ("logistic", "who,a,site", ", standardize => false"),
        ("logistic", "who,a,site", ", standardize => false, learning_rate => 0.1"),
        ("logistic", "who,a,site", ", workers => 2, shuffle => 'corgipile'"),
        ("logistic", "who,a,site", ", shuffle => 'epoch_shuffle'"),
        ("svm", "who,a,site", ""),
        ("softmax", "who,a,site", ""),
        ("linear", "who,a,site", ", optimizer => 'adam'"),
        ("poisson", "who,a,site", ""),
        ("mlp", "who,a,site", ""),
    ] {
        let train = |table: &str| {
            format!(
                "'{table}', '{model}', label => 'label', features => '{{{features}}}', max_epochs => 2, seed => 1,
                 options => '{{{HASH}}}'{more}"
            )
        };
        assert_eq!(
            db.trained(&train("not_null")).bits(),
            db.trained(&train("full_rows")).bits(),
            "{model} {features}{more}"
        );
    }
    let search = |table: &str| {
        format!(
            "SELECT rank, grid_point, fold_scores FROM corgipile_search('{table}', features => '{{who,a,site}}', max_epochs => 1,
             trials => 3, seed => 1, options => '{{{HASH}}}')"
        )
    };
    assert_eq!(db.lines(&search("not_null")), db.lines(&search("full_rows")));
}
