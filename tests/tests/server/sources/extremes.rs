//! Sources at the ends of what PostgreSQL holds: very wide tables, very long arrays, no rows;
//! and those that are no tables.

use corgipile_tests::Database;

#[test]
fn a_table_of_1600_columns_trains_as_the_array_of_its_features() {
    let mut db = Database::new();
    db.run(
        "DO $$ BEGIN
           EXECUTE format('CREATE TABLE wide (label int, %s)',
             (SELECT string_agg(format('c%s real', i), ', ') FROM generate_series(1, 1599) i));
           EXECUTE format('INSERT INTO wide SELECT i %% 2, %s FROM generate_series(1, 200) i',
             (SELECT string_agg(format('i %% 2 + normal(i, %s)', j), ', ') FROM generate_series(1, 1599) j));
           EXECUTE format('CREATE TABLE arrays AS SELECT label, ARRAY[%s] AS x FROM wide',
             (SELECT string_agg(format('c%s', j), ', ') FROM generate_series(1, 1599) j));
         END $$",
    );
    let rest = "shuffle => 'no_shuffle', max_epochs => 2, learning_rate => 0.001";
    let expected = db.trained(&format!("'arrays', {rest}"));
    assert_eq!(expected.weights.len(), 1599);
    let wide = db.trained(&format!("'wide', {rest}"));
    assert_eq!(wide.bits(), expected.bits());
    assert_eq!(db.evaluate(wide.id, "wide").accuracy, db.evaluate(expected.id, "arrays").accuracy);
    let differing = format!(
        "SELECT count(*) FROM (SELECT corgipile_predict({}, w) FROM wide w EXCEPT ALL
                               SELECT corgipile_predict({}, x) FROM arrays) d",
        wide.id, expected.id
    );
    assert_eq!(db.line(&differing), "0");
}

#[test]
fn arrays_of_65536_elements_are_learned_from_exactly() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE long AS SELECT i AS id, i % 2 AS label,
           (SELECT array_agg(uniform(i * 65536 + j, 1)::real ORDER BY j) FROM generate_series(1, 65536) j) AS x
           FROM generate_series(1, 40) i",
    );
    // the first step from 0 goes along the mean of x * y / 2
    let model = db.trained(
        "'long', features => '{x}', max_epochs => 1, learning_rate => 0.1, standardize => false, shuffle => 'no_shuffle',
         options => '{\"batch_size\": 40}'",
    );
    assert_eq!(model.weights.len(), 65_536);
    for j in [1, 2, 777, 32_768, 65_536] {
        let expected: f64 = db.value(&format!("SELECT 0.1 * avg(x[{j}]::float8 * (2 * label - 1)) / 2 FROM long"));
        let weight = f64::from(model.weights[j - 1]);
        assert!((weight - expected).abs() < 1e-6, "{j}: {weight} {expected}");
    }
    let epochs = db.train("'long', features => '{x}', max_epochs => 2, learning_rate => 0.0001, seed => 1");
    assert!(epochs.iter().all(|epoch| epoch.tuples == 40));
    db.assert_same_rows(
        "SELECT id, md5(x::text) FROM corgipile_shuffle(NULL::long)",
        "SELECT id, md5(x::text) FROM long",
    );
}

#[test]
fn sources_without_rows_are_refused_and_shuffled_to_nothing() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', features => '{a,b,c}', max_epochs => 1")[0].model_id;
    db.run(
        "CREATE TABLE empty (LIKE t); CREATE TABLE dead (LIKE t); INSERT INTO dead SELECT * FROM t; DELETE FROM dead;
         CREATE TABLE childless (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE p0 PARTITION OF parts FOR VALUES FROM (0) TO (9); CREATE TABLE p1 PARTITION OF parts DEFAULT;
         CREATE MATERIALIZED VIEW m AS SELECT * FROM t WHERE false; CREATE VIEW v AS SELECT * FROM t WHERE id < 0",
    );
    for source in ["empty", "dead", "childless", "parts", "m", "v"] {
        for call in [
            format!("corgipile_train('{source}', features => '{{a,b,c}}')"),
            format!("corgipile_train('{source}', features => '{{a,b,c}}', prefetch => 'on')"),
            format!("corgipile_train('{source}', features => '{{a,b,c}}', workers => 2)"),
            format!("corgipile_train('{source}', features => '{{a,b,c}}', sample => 0.5)"),
            format!("corgipile_train('{source}', features => '{{a,b,c}}', options => '{{\"standardize\": true}}')"),
            format!("corgipile_train_uda('{source}', features => '{{a,b,c}}')"),
        ] {
            db.rejects(&format!("SELECT * FROM {call}"), "22000").says(&["no rows"]);
        }
        let evaluate = format!("SELECT * FROM corgipile_evaluate({id}, '{source}')");
        db.fails_with(&evaluate, "22000").says(&["no rows to evaluate"]).hints(&["source"]);
        assert_eq!(db.line(&format!("SELECT count(*) FROM corgipile_shuffle(NULL::{source})")), "0", "{source}");
        db.run(&format!("EXPLAIN SELECT * FROM corgipile_train('{source}', features => '{{a,b,c}}')"));
    }
}

#[test]
fn functions_materialized_views_and_tables_of_postgres_fdw_are_sources() {
    let mut db = Database::with_small_table(300);
    db.run(
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
         CREATE FUNCTION rows(int) RETURNS SETOF t LANGUAGE plpgsql AS
           'BEGIN RETURN QUERY SELECT * FROM t WHERE id <= $1; END'",
    );
    let check = |db: &mut Database, source: &str, rows: i64| {
        let epochs =
            db.train(&format!("$s${source}$s$, features => '{{a,b,c}}', max_epochs => 3, learning_rate => 0.001"));
        assert!(epochs.iter().all(|epoch| epoch.tuples == rows), "{source}: {epochs:?}");
    };
    check(&mut db, "m", 300);
    check(&mut db, "SELECT * FROM rows(120)", 120);
    check(&mut db, "SELECT m.* FROM m, LATERAL rows(m.id) r WHERE r.id = m.id", 300);
    if db.line("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'") == "0" {
        let this = functions_materialized_views_and_tables_of_postgres_fdw_are_sources;
        return corgipile_tests::skip(this, "postgres_fdw is not installed");
    }
    let name = db.name().to_owned();
    db.run(&format!(
        "CREATE EXTENSION postgres_fdw;
         DO $$ BEGIN EXECUTE format('CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host %L, port %L, dbname %L)',
             split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), '{name}'); END $$;
         CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE far (id int, label int, a real, b real, c real) SERVER here OPTIONS (table_name 't')"
    ));
    check(&mut db, "far", 300);
    check(&mut db, "SELECT far.* FROM far JOIN t USING (id) WHERE t.id > 100", 200);
    db.assert_same_rows("SELECT * FROM corgipile_shuffle(NULL::far)", "SELECT * FROM t");
    // who has no user mapping has no rows
    let user = db.role("user");
    db.run(&format!("GRANT SELECT ON far TO {user}"));
    let mut session = db.session_as(&user);
    session.rejects("SELECT * FROM corgipile_train('far', features => '{a,b,c}')", "42704").says(&["user mapping"]);
}

#[test]
fn a_decision_beyond_real_is_an_error_and_never_nan() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i, i % 2 AS label, i % 3 AS third, ARRAY[i % 2, i % 3, 1]::real[] AS x, i % 2 AS a, i % 3 AS b
           FROM generate_series(1, 60) i",
    );
    for (model, label) in [("logistic", "label"), ("svm", "label"), ("softmax", "third"), ("linear", "third")] {
        db.train(&format!(
            "'t', '{model}', label => '{label}', features => '{{x}}', max_epochs => 2, name => '{model}'"
        ));
        // large enough that products overflow, of both signs
        db.run(&format!(
            "UPDATE corgipile.stored_models SET weights = (SELECT array_agg((CASE WHEN i % 2 = 0 THEN 2 ELSE -2 END)::real)
               FROM generate_series(1, cardinality(weights)) i) WHERE name = '{model}'"
        ));
        for features in [
            "ARRAY[3e38, 3e38, 3e38]::real[]",
            "ARRAY[3e38, 0, 0]::real[]",
            "ARRAY[0, 3e38, 0]::real[]",
            "'{1,2}'::int[], ARRAY[3e38, 3e38]",
        ] {
            let mut functions = vec!["predict"];
            functions.extend((model != "linear").then_some("predict_label"));
            functions.extend(["logistic", "softmax"].contains(&model).then_some("predict_proba"));
            for function in functions {
                db.rejects(&format!("SELECT corgipile_{function}('{model}', {features})"), "22003")
                    .says(&["decision of model", "out of range for type real"])
                    .hints(&["too large"]);
                db.rejects(&format!("SELECT corgipile_{function}(corgipile_export('{model}'), {features})"), "22003")
                    .says(&["decision of the given model"]);
            }
        }
        let source = format!(
            "SELECT {label}, CASE i WHEN 7 THEN ARRAY[3e38, 3e38, 0] ELSE x END::real[] AS x FROM t ORDER BY i"
        );
        db.rejects(&format!("SELECT * FROM corgipile_evaluate('{model}', '{source}')"), "22003").says(&[
            "decision of model",
            "for row number 7 of those evaluated",
            "out of range for type real",
        ]);
        // the largest that are in range are answered
        let largest = "ARRAY[1.5e38, 0, 0]::real[]";
        assert_eq!(db.line(&format!("SELECT corgipile_predict('{model}', {largest}) BETWEEN -4e38 AND 4e38")), "t");
        if ["logistic", "softmax"].contains(&model) {
            let sum = format!("SELECT sum(p) FROM unnest(corgipile_predict_proba('{model}', {largest})) p");
            assert_eq!(db.line(&sum), "1");
        }
    }
    // what is held out
    let source =
        "SELECT label, i = 7 AS test, CASE i WHEN 7 THEN ARRAY[3e38, 3e38, -3e38] ELSE x END::real[] AS x FROM t";
    let train = |more: &str| {
        format!(
        "SELECT * FROM corgipile_train('{source}', features => '{{x}}', max_epochs => 2{more}, learning_rate => 0.5,
            options => '{{\"validation_column\": \"test\"}}')"
    )
    };
    db.rejects(&train(""), "22003").says(&["diverged", "the loss"]);
    db.rejects(&train(", grid => '{\"learning_rate\": [0.5, 0.6]}'"), "22003").says(&["diverged"]);
}
