//! NULLs: what stands for them in training, evaluation and prediction, and what is left out. The oracle is SQL: a model
//! must be that of a source in which avg() or a category stands in place of each NULL, bit for bit.

use corgipile_tests::{Database, assert_close};

/// Table `t`: means of `a` and `b` over the rows that have them are exact in `real`, 0.75 and 1.5, also among those
/// where `held` is false.
fn table(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, (uniform(i, 0) + 0.2 * (i % 4) > 0.8)::int AS label, 
                CASE WHEN i % 5 <> 0 THEN 0.5 * (i % 4) END::real AS a, CASE WHEN i % 7 <> 0 THEN i % 4 END AS b,
                uniform(i, 1)::real AS c, CASE WHEN i % 11 <> 0 THEN (ARRAY['red', 'green'])[1 + i % 2] END AS colour,
                i % 3 = 0 AS held
           FROM generate_series(1, 840) i;
         ALTER TABLE t ADD COLUMN x real[];
         UPDATE t SET x = ARRAY[a, b, c]",
    );
    db.run("VACUUM FULL t");
    for rows in ["true", "NOT held"] {
        assert_eq!(db.line(&format!("SELECT avg(a::float8), avg(b::float8) FROM t WHERE {rows}")), "0.75|1.5");
    }
}

/// The same rows with avg() and a category in place of NULLs. The pages are the same, and so is the order of the rows.
const FILLED: &str = "SELECT id, label, coalesce(a, 0.75) AS a, coalesce(b, 1.5) AS b, c, coalesce(colour, ''zzz'') AS colour, \
                      held, ARRAY[coalesce(x[1], 0.75), coalesce(x[2], 1.5), x[3]] AS x FROM t";

/// Trains on both; the models must have the same bits.
fn same_bits(db: &mut Database, features: &str, arguments: &str) -> i64 {
    let train = |source: &str| {
        format!(
            "'{source}', features => '{features}', seed => 3, max_epochs => 3, learning_rate => 0.05,
                 standardize => false, {arguments}"
        )
    };
    let imputed = db.trained(&train("t"));
    let filled = db.trained(&train(FILLED));
    assert_eq!(imputed.bits(), filled.bits(), "{features} {arguments}");
    imputed.id
}

#[test]
fn a_null_is_the_mean_of_its_column_and_a_null_category_is_a_category() {
    let mut db = Database::new();
    table(&mut db);
    for features in ["{a,b,c}", "{x}", "{a,colour,b}", "{colour}"] {
        for model in ["logistic", "svm", "linear", "softmax", "mlp"] {
            same_bits(&mut db, features, &format!("model => '{model}'"));
        }
    }
}

#[test]
fn every_way_of_reading_imputes_the_same() {
    let mut db = Database::new();
    table(&mut db);
    for features in ["{a,b,c}", "{x}", "{a,colour,b}"] {
        for arguments in [
            "prefetch => 'on'",
            "workers => 2, block_size => '8kB', buffer_size => '50%'",
            "shuffle => 'shuffle_once'",
            "shuffle => 'mrs', options => '{\"cache\": \"off\"}'",
            "options => '{\"batch_size\": 16, \"optimizer\": \"adam\", \"class_weight\": \"balanced\"}'",
            "grid => '{\"l2\": [0.1, 0]}'",
            "group_by => 'held'",
            "options => '{\"validation_column\": \"held\", \"keep\": \"best\"}'",
        ] {
            same_bits(&mut db, features, arguments);
        }
    }
}

#[test]
fn means_are_those_of_the_rows_that_are_learned_from() {
    let mut db = Database::new();
    table(&mut db);
    // what is held out is far away
    db.run("UPDATE t SET a = 1e6, x[1] = 1e6 WHERE id % 15 = 0; UPDATE t SET held = id % 15 = 0");
    db.run("VACUUM FULL t");
    let options = "options => '{\"validation_column\": \"held\"}'";
    for features in ["{a,b,c}", "{x}", "{a,colour}"] {
        let id = same_bits(&mut db, features, options);
        let fill = format!("SELECT feature_fill[1]::float8 FROM corgipile.models WHERE model_id = {id}");
        assert_eq!(db.value::<f64>(&fill), 0.75, "{features}");
    }
}

#[test]
fn standardizing_takes_the_columns_as_they_are_once_they_are_filled() {
    let mut db = Database::new();
    table(&mut db);
    // with a rate that follows from the tuples, too, and with the choices that are made by default
    for options in ["standardize => true, learning_rate => 0.05", "standardize => true", "l2 => 0"] {
        for features in ["{a,b,c}", "{x}", "{a,colour,b}"] {
            let options = format!("features => '{features}', seed => 3, max_epochs => 3, {options}");
            let imputed = db.trained(&format!("'t', {options}"));
            let filled = db.trained(&format!("'{FILLED}', {options}"));
            assert_close(&imputed.parameters(), &filled.parameters(), 1e-5);
        }
    }
    let sql = "SELECT feature_mean[1], feature_scale[1] FROM corgipile.models ORDER BY model_id LIMIT 1";
    let found = db.line(sql);
    let (mean, scale) = found.split_once('|').expect("two columns");
    let expected: f64 = db.value("SELECT stddev_pop(coalesce(a, 0.75)::float8) FROM t");
    assert_eq!(mean, "0.75");
    assert_close(&[scale.parse().expect("a number")], &[expected], 1e-12);
}

#[test]
fn predictions_and_evaluations_fill_as_the_training_did() {
    let mut db = Database::new();
    table(&mut db);
    for (features, input, filled) in [
        ("{a,b,c}", "t", "f"),
        ("{a,b,c}", "ARRAY[t.a, t.b, t.c]", "ARRAY[f.a, f.b, f.c]"),
        ("{a,b,c}", "t.a, t.b, t.c", "f.a, f.b, f.c"),
        ("{a,colour,b}", "t.a, t.colour, t.b", "f.a, f.colour, f.b"),
        ("{x}", "t", "f"),
        ("{x}", "t.x", "f.x"),
        ("{a,colour,b}", "t", "f"),
    ] {
        for options in ["{}", "{\"standardize\": true}"] {
            let id =
                db.trained(&format!("'t', 'logistic', features => '{features}', seed => 1, options => '{options}'")).id;
            let source = FILLED.replace("''", "'").replace("'zzz'", "NULL::text");
            let wrong: i64 = db.value(&format!(
                "SELECT count(*) FROM t JOIN ({source}) f USING (id)
                  WHERE corgipile_predict_proba({id}, {input}) IS DISTINCT FROM corgipile_predict_proba({id}, {filled})
                     OR corgipile_predict({id}, {input}) IS DISTINCT FROM corgipile_predict({id}, {filled})
                     OR corgipile_predict_label({id}, {input}) IS DISTINCT FROM corgipile_predict_label({id}, {filled})"
            ));
            assert_eq!(wrong, 0, "{features} {input}");
            db.assert_same_rows(
                &format!("SELECT * FROM corgipile_evaluate({id}, 't')"),
                &format!("SELECT * FROM corgipile_evaluate({id}, $s${source}$s$)"),
            );
        }
    }
}

#[test]
fn the_call_says_what_to_do_with_nulls_if_it_says_anything() {
    let mut db = Database::new();
    table(&mut db);
    db.trained("'t', features => '{a,b,c}', name => 'm'");
    db.trained("'t', features => '{x}', name => 'x'");
    db.trained("'t', features => '{a,colour}', name => 'mixed'");
    db.trained("'t', features => '{a,b,c}', name => 'skips', options => '{\"nulls\": \"skip\"}'");
    let whole = "SELECT count(*) FROM t WHERE a IS NOT NULL AND b IS NOT NULL";
    let whole: i64 = db.value(whole);
    for input in ["'m', t", "'m', ARRAY[a, b, c]", "'x', t", "'x', x", "'skips', t"] {
        let answers = |function: &str| format!("SELECT count({function}({input}, nulls => 'skip')) FROM t");
        for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            assert_eq!(db.value::<i64>(&answers(function)), whole, "{function} {input}");
        }
        db.rejects(&format!("SELECT corgipile_predict({input}, nulls => 'error') FROM t"), "22004").says(&["NULL"]);
    }
    assert_eq!(
        db.line("SELECT count(corgipile_predict('mixed', t, nulls => 'skip')) FROM t"),
        db.line("SELECT count(colour) FROM t WHERE a IS NOT NULL")
    );
    // a model that skips gives no answer by itself, and knows no means
    assert_eq!(db.value::<i64>("SELECT count(corgipile_predict('skips', t)) FROM t"), whole);
    db.rejects("SELECT corgipile_predict('skips', t, nulls => 'impute') FROM t", "0A000")
        .says(&["nulls"])
        .hints(&["impute"]);
    db.rejects("SELECT corgipile_predict('m', t, nulls => 'skipp') FROM t", "22023")
        .says(&["nulls", "skipp"])
        .hints(&["skip"]);
    let evaluated = |nulls: &str| {
        format!("SELECT value FROM corgipile_evaluate('m', 't', nulls => '{nulls}') WHERE metric = 'tuples'")
    };
    assert_eq!(db.value::<f64>(&evaluated("skip")), whole as f64);
    assert_eq!(db.value::<f64>(&evaluated("impute")), 840.0);
    db.rejects(&evaluated("error"), "22004").says(&["NULL"]);
}

#[test]
fn a_null_where_nothing_can_stand_leaves_the_row_out_or_gives_no_answer() {
    let mut db = Database::new();
    table(&mut db);
    db.run(
        "UPDATE t SET label = NULL WHERE id <= 10; UPDATE t SET x = NULL WHERE id BETWEEN 11 AND 15;
         ALTER TABLE t ADD k int[], ADD v real[], ADD w real;
         UPDATE t SET k = CASE WHEN id <> 20 THEN '{1,2}'::int[] END, v = CASE WHEN id = 21 THEN '{1,NULL}' ELSE '{1,2}' END::real[],
                      w = nullif(id, 30)",
    );
    let mut skipped = |arguments: &str| {
        let epochs = db.train(&format!("'t', {arguments}, max_epochs => 1"));
        let skipped: i64 = db.value("SELECT skipped FROM corgipile.models ORDER BY model_id DESC LIMIT 1");
        assert_eq!(epochs[0].tuples + skipped, 840, "{arguments}");
        skipped
    };
    assert_eq!(skipped("features => '{a,b}'"), 10);
    assert_eq!(skipped("features => '{x}'"), 15);
    assert_eq!(skipped("features => '{k,v}'"), 12);
    assert_eq!(skipped("features => '{a}', options => '{\"weight\": \"w\"}'"), 11);
    assert_eq!(skipped("features => '{a,colour}'"), 10);
    db.run("SELECT * FROM corgipile_train('t', features => '{k,v}', name => 'sparse', max_epochs => 1)");
    db.run("SELECT * FROM corgipile_train('t', features => '{x}', name => 'x', max_epochs => 1)");
    assert_eq!(db.lines("SELECT id FROM t WHERE corgipile_predict('sparse', t) IS NULL ORDER BY id"), ["20", "21"]);
    assert_eq!(db.line("SELECT count(*) FROM t WHERE corgipile_predict('x', t) IS NULL"), "5");
    // a NULL for an argument is NULL, as ever
    assert_eq!(
        db.line("SELECT corgipile_predict('x', NULL::real[]), corgipile_predict(NULL::text, ARRAY[1, 2, 3])"),
        "NULL|NULL"
    );
}

#[test]
fn a_column_without_any_value_counts_as_zero() {
    let mut db = Database::new();
    table(&mut db);
    let train =
        |source: &str| format!("'{source}', features => '{{a,z}}', seed => 3, options => '{{\"standardize\": true}}'");
    let empty = db.trained(&train("SELECT label, c AS a, NULL::real AS z FROM t"));
    let zero = db.trained(&train("SELECT label, c AS a, 0 AS z FROM t"));
    assert_eq!(empty.bits(), zero.bits());
    let told = db.notices(&["SELECT FROM corgipile_train('SELECT label, c, NULL::real AS z FROM t')"]);
    assert!(told.contains("z (all of them, 0)"), "{told}");
}

#[test]
fn models_keep_what_stands_for_nulls_wherever_they_go() {
    let mut db = Database::new();
    table(&mut db);
    db.trained("'t', features => '{a,colour,b}', name => 'm'");
    let sql = "SELECT feature_fill, categories->'colour', imputed FROM corgipile.models";
    let imputed: i64 = db.value("SELECT count(*) FROM t WHERE a IS NULL OR b IS NULL OR colour IS NULL");
    assert_eq!(db.line(sql), format!("{{0.75,0,0,0,1.5}}|[\"green\", \"red\", null]|{imputed}"));
    assert_eq!(
        db.lines("SELECT feature FROM corgipile.coefficients"),
        ["(intercept)", "a", "colour=green", "colour=red", "colour IS NULL", "b"]
    );
    db.run("SELECT corgipile_import(corgipile_export('m'), 'copy')");
    db.assert_same_rows(
        "SELECT corgipile_predict_proba('m', t) FROM t",
        "SELECT corgipile_predict_proba('copy', t) FROM t",
    );
    db.assert_same_rows(
        "SELECT corgipile_predict_proba('m', t) FROM t",
        "SELECT corgipile_predict_proba(corgipile_export('m'), t) FROM t",
    );
    assert_eq!(db.line("SELECT corgipile_export('m') - 'name' = corgipile_export('copy') - 'name'"), "t");
}

#[test]
fn a_training_goes_on_with_the_means_that_it_began_with() {
    let mut db = Database::new();
    table(&mut db);
    for features in ["{a,b,c}", "{x}", "{a,colour}"] {
        let train = |more: &str| {
            format!("'t', features => '{features}', seed => 2, learning_rate => 0.05, standardize => false, {more}")
        };
        let whole = db.trained(&train("max_epochs => 4"));
        db.trained(&train("max_epochs => 2, name => 'half'"));
        let both = db.trained("'t', warm_start => 'half', max_epochs => 2");
        assert_eq!(both.bits(), whole.bits(), "{features}");
        let kept =
            "SELECT count(DISTINCT feature_fill), count(DISTINCT imputed) FROM corgipile.models WHERE model_id >= ";
        assert_eq!(db.line(&format!("{kept}{}", whole.id)), "1|1", "{features}");
    }
}

#[test]
fn a_pass_for_means_is_made_only_where_a_null_can_be() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (label int, a real NOT NULL, b int NOT NULL, c real);
         INSERT INTO t SELECT i % 2, i % 7, i % 3, i % 5 FROM generate_series(1, 100) i; CREATE VIEW v AS SELECT * FROM t",
    );
    let mut knows_means = |source: &str, arguments: &str| {
        db.trained(&format!("'{source}', max_epochs => 1, learning_rate => 0.1, {arguments}"));
        db.line("SELECT feature_fill IS NOT NULL, imputed FROM corgipile.models ORDER BY model_id DESC LIMIT 1")
    };
    assert_eq!(knows_means("t", "features => '{a,b}', standardize => false"), "f|0");
    assert_eq!(knows_means("t", "features => '{a,b}', standardize => true"), "t|0");
    assert_eq!(knows_means("t", "features => '{a,c}', standardize => false"), "t|0");
    assert_eq!(knows_means("v", "features => '{a,b}', standardize => false"), "t|0");
    assert_eq!(
        knows_means("SELECT u.label, t.a FROM t AS u LEFT JOIN t ON false", "features => '{a}', standardize => false"),
        "t|100"
    );
    for word in ["skip", "error"] {
        let options = format!("features => '{{a,c}}', standardize => false, options => '{{\"nulls\": \"{word}\"}}'");
        assert_eq!(knows_means("t", &options), "f|NULL");
    }
    // children need not say what their parent says; from PostgreSQL 18 on, it has to allow that
    if db.major() >= 18 {
        db.run("ALTER TABLE t ALTER CONSTRAINT t_a_not_null NO INHERIT");
    }
    db.run("CREATE TABLE child () INHERITS (t); ALTER TABLE child ALTER a DROP NOT NULL; INSERT INTO child VALUES (1, NULL, 1, 1)");
    db.trained("'t', features => '{a,b}', max_epochs => 1");
    assert_eq!(db.line("SELECT imputed FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "1");
}

#[test]
fn what_is_imputed_or_left_out_is_told() {
    let mut db = Database::new();
    table(&mut db);
    let nulls = |db: &mut Database, which: &str| db.line(&format!("SELECT count(*) FROM t WHERE {which}"));
    let (any, colour) = (nulls(&mut db, "a IS NULL OR colour IS NULL"), nulls(&mut db, "colour IS NULL"));
    let train =
        |more: &str| format!("SELECT FROM corgipile_train('t', features => '{{a,colour}}', name => 'm', {more})");
    let told = db.notices(&[&train("max_epochs => 2")]);
    assert!(told.contains(&format!("NULLs are imputed in {any} of 840 rows")), "{told}");
    assert!(told.contains(&format!("a (168, the mean 0.75), colour ({colour}, a category of their own)")), "{told}");
    assert_eq!(told.matches("imputed").count(), 1, "{told}");
    let told = db.notices(&["SELECT FROM corgipile_evaluate('m', 't')"]);
    assert!(told.contains(&format!("NULLs are imputed in {any} of 840 rows")), "{told}");
    for more in ["", ", prefetch => 'on'", ", workers => 2, block_size => '8kB', buffer_size => '50%'"] {
        let told = db.notices(&[&train(&format!("options => '{{\"nulls\": \"skip\"}}'{more}"))]);
        let percent = any.parse::<f64>().expect("a number") / 8.4;
        assert!(
            told.contains(&format!("{any} of 840 rows ({percent:.1}%) are left out because they have NULLs")),
            "{more}: {told}"
        );
    }
}

#[test]
fn what_training_has_not_met_counts_as_none_of_what_it_has() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE known AS SELECT * FROM t WHERE colour IS NOT NULL");
    let id = db.trained("'known', 'linear', features => '{c,colour}', seed => 1, standardize => false").id;
    assert_eq!(
        db.line("SELECT hyperparameters->>'handle_unknown', hyperparameters->>'nulls' FROM corgipile.models"),
        "ignore|impute"
    );
    // by hand: the intercept, the weight of c, and nothing of a colour
    let by_hand =
        format!("(SELECT intercepts[1]::float8 + weights[1]::float8 * c FROM corgipile.models WHERE model_id = {id})");
    for row in ["'blue'::text", "NULL::text"] {
        let source = format!("SELECT label, c, {row} AS colour FROM t");
        let worst: f64 =
            db.value(&format!("SELECT max(abs(corgipile_predict({id}, r) - {by_hand})) FROM ({source}) r"));
        assert!(worst < 1e-6, "{row}: {worst}");
        let rmse: f64 =
            db.value(&format!("SELECT value FROM corgipile_evaluate({id}, $s${source}$s$) WHERE metric = 'rmse'"));
        let expected: f64 = db.value(&format!("SELECT sqrt(avg(({by_hand} - label) ^ 2)) FROM ({source}) r"));
        assert_close(&[rmse], &[expected], 1e-6);
        let code = if row.starts_with('N') { "22004" } else { "22023" };
        db.rejects(&format!("SELECT corgipile_predict({id}, r, handle_unknown => 'error') FROM ({source}) r"), code);
        db.rejects(
            &format!("SELECT * FROM corgipile_evaluate({id}, $s${source}$s$, handle_unknown => 'error')"),
            "22023",
        )
        .says(&["colour"])
        .hints(&["handle_unknown"]);
    }
    let told = db.notices(&[&format!(
        "SELECT FROM corgipile_evaluate({id}, $s$SELECT label, c, CASE WHEN id <= 5 THEN 'blue' ELSE 'red' END AS colour FROM t$s$)"
    )]);
    assert!(
        told.contains("5 of 840 rows (0.6%) have categories or indices that the model was not trained on"),
        "{told}"
    );
    // a model with this setting refuses by itself
    db.trained(
        "'known', 'linear', features => '{c,colour}', name => 'strict', options => '{\"handle_unknown\": \"error\"}'",
    );
    let blue = "(SELECT 0.5 AS c, 'blue' AS colour) r";
    db.rejects(&format!("SELECT corgipile_predict('strict', r) FROM {blue}"), "22023")
        .says(&["blue"])
        .hints(&["handle_unknown"]);
    db.run(&format!("SELECT corgipile_predict('strict', r, handle_unknown => 'ignore') FROM {blue}"));
}

#[test]
fn indices_beyond_the_largest_count_as_zero() {
    let mut db = Database::new();
    table(&mut db);
    db.run("CREATE TABLE s AS SELECT label, ARRAY[1, 2] AS k, ARRAY[a, c] AS v FROM t WHERE a IS NOT NULL");
    let id = db.trained("'s', features => '{k,v}'").id;
    db.assert_same_rows(
        &format!("SELECT * FROM corgipile_evaluate({id}, 'SELECT label, k || 9 AS k, v || 7::real AS v FROM s')"),
        &format!("SELECT * FROM corgipile_evaluate({id}, 's')"),
    );
    let told = db.notices(&[&format!(
        "SELECT FROM corgipile_evaluate({id}, 'SELECT label, k || 9 AS k, v || 7::real AS v FROM s')"
    )]);
    let rows = db.line("SELECT count(*) FROM s");
    assert!(told.contains(&format!("{rows} of {rows} rows (100.0%) have categories or indices")), "{told}");
    assert_eq!(
        db.line(&format!("SELECT corgipile_predict_proba({id}, '{{1,9}}'::int[], '{{1,7}}'::real[]) = corgipile_predict_proba({id}, '{{1}}'::int[], '{{1}}'::real[])")),
        "t"
    );
    db.rejects(
        &format!("SELECT corgipile_predict({id}, '{{9}}'::int[], '{{7}}'::real[], handle_unknown => 'error')"),
        "2202E",
    )
    .hints(&["handle_unknown"]);
}
