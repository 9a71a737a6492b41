//! What is kept of features, and how far other rows are from that: recomputed in SQL from the rows.

use corgipile_tests::stored::{DENSE, MIXED, SPARSE};
use corgipile_tests::{Database, Session};

/// Numbers of several kinds with and without NULLs, a category, and the same numbers as an array.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, (a + b > 0)::int AS label, CASE WHEN i % 10 > 0 THEN a END AS a, b, i % 7 = 0 AS flag,
                CASE WHEN i % 6 > 0 THEN (ARRAY['x', 'y', 'z'])[1 + i % 3] END AS c, ARRAY[a, b]::real[] AS x
           FROM generate_series(1, 20000) i, LATERAL (SELECT normal(i, 1)::real AS a, normal(i, 2)::real AS b) n",
    );
}

/// Trains a model of this name on all columns but the array.
fn train(db: &mut Session, name: &str, more: &str) {
    db.run(&format!(
        "SELECT corgipile_train('SELECT label, a, b, flag, c FROM t', name => '{name}', max_epochs => 1, seed => 1{more})"
    ));
}

/// Features with a verdict.
fn verdicts(db: &mut Session, model: &str, source: &str) -> Vec<String> {
    db.lines(&format!(
        "SELECT feature, verdict FROM corgipile_drift('{model}', $s${source}$s$) WHERE verdict IS NOT NULL"
    ))
}

#[test]
fn what_a_training_keeps_is_what_the_rows_are_like() {
    let mut db = Database::new();
    table(&mut db);
    for (name, more) in [("m", ""), ("worker", ", options => '{\"prefetch\": \"on\"}'"), ("two", ", workers => 2")] {
        train(&mut db, name, more);
    }
    let kept = |column: &str| {
        format!("SELECT p->'features' FROM (SELECT {column} AS p FROM corgipile.models WHERE name = 'm' LIMIT 1) m")
    };
    assert!(db.line(&kept("profile")).starts_with("[{"));
    let same = "SELECT count(DISTINCT profile) FROM corgipile.models WHERE name IN ('m', 'worker', 'two')";
    assert_eq!(db.line(same), "1", "whichever process has read the rows");
    // means, deviations and missing shares of all rows
    let wrong = "SELECT count(*) FROM corgipile.models m, jsonb_array_elements(profile->'features') WITH ORDINALITY f(v, i),
                        (SELECT ARRAY[avg(a), avg(b), avg(flag::int)]::float8[] AS means,
                                ARRAY[stddev_pop(a), stddev_pop(b), stddev_pop(flag::int)]::float8[] AS deviations,
                                ARRAY[avg((a IS NULL)::int), 0, 0, avg((c IS NULL)::int)]::float8[] AS missing FROM t) e
                  WHERE m.name = 'm' AND (abs((v->>'mean')::float8 - means[i]) > 1e-5
                     OR abs((v->>'stddev')::float8 - deviations[i]) > 1e-5 OR abs((v->>'null_fraction')::float8 - missing[i]) > 1e-9)";
    assert_eq!(db.line(wrong), "0");
    let counts = "SELECT profile->'features'->3->'counts', profile->'rows' FROM corgipile.models WHERE name = 'm'";
    let expected = "SELECT jsonb_agg(count ORDER BY c), 20000 FROM (SELECT c, count(*) FROM t GROUP BY c) s";
    let expected = db.line(expected);
    assert_eq!(db.line(counts), expected, "NULLs are a category, and the last one");
}

#[test]
fn the_least_and_the_greatest_value_are_kept_on_request_only() {
    let mut db = Database::new();
    db.run("CREATE TABLE pay AS SELECT i % 2 AS label, (1000 + i)::real AS salary FROM generate_series(1, 2000) i");
    db.run("UPDATE pay SET salary = 7 WHERE salary = 1500; UPDATE pay SET salary = 9000000 WHERE salary = 2500");
    db.run("SELECT corgipile_train('pay', name => 'm', max_epochs => 1)");
    let ends = "SELECT (profile->'features'->0->'edges'->0)::real, (profile->'features'->0->'edges'->-1)::real, position('9000000' IN profile::text)
                  FROM corgipile.models";
    let hundredths = "SELECT percentile_disc(0.0105) WITHIN GROUP (ORDER BY salary), percentile_disc(0.99) WITHIN GROUP (ORDER BY salary), 0 FROM pay";
    let hundredths = db.line(hundredths);
    assert_eq!(db.line(ends), hundredths);
    db.run("SELECT corgipile_profile('m', 'pay')");
    assert_eq!(db.line(ends), hundredths);
    assert_eq!(db.line("SELECT position('9000000' IN corgipile_export('m')::text)"), "0");
    db.run("SELECT corgipile_profile('m', 'pay', extremes => true)");
    assert!(db.line(ends).starts_with("7|9e+06|"));
    assert_eq!(verdicts(&mut db, "m", "pay"), [""; 0]);
}

#[test]
fn parts_of_a_date_that_is_called_label_are_compared() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE visits AS
         SELECT timestamp '2026-01-01' + i * interval '7 hours' AS label, (i % 24)::real AS spent FROM generate_series(1, 5000) i",
    );
    db.run(
        "SELECT corgipile_train('visits', 'linear', 'spent', '{label.hour}', name => 'm', max_epochs => 1, seed => 1)",
    );
    assert_eq!(verdicts(&mut db, "m", "visits"), [""; 0]);
    let nights = "SELECT label FROM visits WHERE date_part('hour', label) < 4";
    assert!(!verdicts(&mut db, "m", nights).is_empty());
}

#[test]
fn rows_like_those_of_the_training_say_nothing_and_what_has_changed_is_named() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "m", "");
    for same in [
        "t",
        "SELECT * FROM t WHERE id <= 10000",
        "SELECT a, b, flag, c FROM t WHERE id % 11 = 7",
        "SELECT * FROM t LIMIT 5",
    ] {
        assert_eq!(verdicts(&mut db, "m", same), [""; 0], "{same}");
    }
    for (source, expected) in [
        ("SELECT a + 1 AS a, b, flag, c FROM t", "a|shifted"),
        ("SELECT a, b * 3 AS b, flag, c FROM t", "b|shifted"),
        ("SELECT a, CASE WHEN id % 4 > 0 THEN b END AS b, flag, c FROM t", "b|nulls"),
        ("SELECT a, b, id % 2 = 0 AS flag, c FROM t", "flag|shifted"),
        ("SELECT a, b, flag, CASE WHEN id % 80 = 0 THEN 'new' ELSE c END AS c FROM t", "c|unknown"),
        ("SELECT a, b, flag, 'x' AS c FROM t", "c|shifted, nulls"),
        ("SELECT NULL::real AS a, b, flag, c FROM t", "a|nulls"),
    ] {
        assert_eq!(verdicts(&mut db, "m", source), [expected], "{source}");
    }
    let unseen =
        "SELECT unknown FROM corgipile_drift('m', 'SELECT a, b, flag, ''new''::text AS c FROM t') WHERE feature = 'c'";
    assert_eq!(db.line(unseen), "20000");
    let nothing = "SELECT new_mean IS NULL, psi IS NULL, new_null_fraction FROM corgipile_drift('m', 'SELECT NULL::real AS a, b, flag, c FROM t')
                    WHERE feature = 'a'";
    assert_eq!(db.line(nothing), "t|t|1");
}

#[test]
fn nulls_of_a_category_that_had_none_are_missing_and_not_unseen() {
    let mut db = Database::new();
    table(&mut db);
    let full = "SELECT label, a, c, flag FROM t WHERE a IS NOT NULL AND c IS NOT NULL";
    for (name, nulls) in [("impute", ""), ("skip", ", nulls => 'skip'")] {
        db.run(&format!("SELECT corgipile_train('{full}', name => '{name}', max_epochs => 1, seed => 1{nulls})"));
        let drift = |change: &str| {
            format!(
                "SELECT verdict, round(new_null_fraction::numeric, 4), unknown, psi IS NULL
                   FROM corgipile_drift('{name}', $s$SELECT a, flag, {change} AS c FROM ({full}) f$s$) WHERE feature = 'c'"
            )
        };
        assert_eq!(db.line(&drift("c")), "NULL|0.0000|0|f");
        let (quarter, few) = ("(row_number() OVER (ORDER BY a)) % 4 = 0", "(row_number() OVER (ORDER BY a)) % 80 = 0");
        assert_eq!(db.line(&drift(&format!("CASE WHEN NOT {quarter} THEN c END"))), "nulls|0.2500|0|f");
        assert_eq!(db.line(&drift("NULL::text")), "nulls|1.0000|0|t");
        // a text that is not known is unseen, next to them
        let both = format!("CASE WHEN {few} THEN 'new' WHEN NOT {quarter} THEN c END");
        let rows: i64 = db.value(&format!("SELECT count(*) FROM ({full}) f"));
        let (new, missing) = (rows / 80, (rows / 4 - rows / 80) as f64 / rows as f64);
        assert_eq!(db.line(&drift(&both)), format!("nulls, unknown|{missing:.4}|{new}|f"));
    }
}

#[test]
fn stability_index_and_distance_are_those_of_the_kept_bins() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "m", "");
    let source = "SELECT a * 1.2 + 0.1 AS a, b, flag, c FROM t WHERE id > 3000";
    // Bins by searchsorted(edges[1:], value, left) + 1, and 0 below the first edge.
    let wrong = format!(
        "WITH f AS (SELECT (i - 1)::int AS i, v FROM corgipile.models, jsonb_array_elements(profile->'features') WITH ORDINALITY f(v, i)
                     WHERE name = 'm' AND i < 4),
              edges AS (SELECT i, n::int AS n, e::float8 AS e FROM f, jsonb_array_elements_text(v->'edges') WITH ORDINALITY AS e(e, n)),
              old AS (SELECT i, n::int - 1 AS bin, s::float8 AS share FROM f, jsonb_array_elements_text(v->'shares') WITH ORDINALITY s(s, n)),
              values AS (SELECT u.i - 1 AS i, u.x FROM ({source}) s, unnest(ARRAY[a::real, b, flag::int]::float8[]) WITH ORDINALITY u(x, i)
                          WHERE u.x IS NOT NULL),
              bins AS (SELECT v.i, CASE WHEN v.x < (SELECT e FROM edges e WHERE e.i = v.i AND n = 1) THEN 0
                                        ELSE 1 + (SELECT count(*) FROM edges e WHERE e.i = v.i AND n > 1 AND e.e < v.x) END AS bin
                         FROM values v),
              new AS (SELECT i, bin, count(*)::float8 / sum(count(*)) OVER (PARTITION BY i)::float8 AS share FROM bins GROUP BY i, bin),
              both_ AS (SELECT old.i, old.bin, old.share AS o, coalesce(new.share, 0) AS n FROM old LEFT JOIN new USING (i, bin)),
              cumulated AS (SELECT i, o, n, abs(sum(n - o) OVER (PARTITION BY i ORDER BY bin)) AS d FROM both_),
              expected AS (SELECT i, sum((greatest(n, 1e-4) - greatest(o, 1e-4)) * ln(greatest(n, 1e-4) / greatest(o, 1e-4))) AS psi, max(d) AS ks
                             FROM cumulated GROUP BY i)
         SELECT count(*), max(abs(d.psi - e.psi)) < 1e-9, max(abs(d.ks - e.ks)) < 1e-9
           FROM (SELECT row_number() OVER () - 1 AS i, * FROM corgipile_drift('m', $s${source}$s$)) d JOIN expected e USING (i)"
    );
    assert_eq!(db.line(&wrong), "3|t|t");
}

#[test]
fn the_profile_goes_with_the_model_and_is_that_of_the_rows_of_a_warm_start() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "m", "");
    db.run(
        "SELECT corgipile_import(corgipile_export('m'), 'copy');
         SELECT corgipile_train('SELECT label, a, b, flag, c FROM t WHERE id < 100', name => 'on', warm_start => 'm', max_epochs => 1)",
    );
    assert_eq!(db.line("SELECT count(DISTINCT profile), count(profile) FROM corgipile.models"), "2|3");
    // held-out rows have no part in it, nor have other points of a grid
    train(&mut db, "grid", ", options => '{\"validation_fraction\": 0.2}', grid => '[{\"l2\": 0.01}, {\"l2\": 0.1}]'");
    let rows = "SELECT count(DISTINCT profile), count(profile), bool_and((profile->>'rows')::int < 20000)
                  FROM corgipile.models WHERE name LIKE 'grid%'";
    assert_eq!(db.line(rows), "1|2|t");
}

#[test]
fn a_model_that_keeps_nothing_is_given_a_profile() {
    let mut db = Database::new();
    table(&mut db);
    // as a superuser has written it, and of a group
    DENSE.store(&mut db, "dense");
    MIXED.store(&mut db, "mixed");
    db.run("SELECT corgipile_train('SELECT label, x, id % 2 AS g FROM t', features => '{x}', group_by => 'g', name => 'of', max_epochs => 1)");
    for (model, source) in
        [("of/0", "SELECT x FROM t WHERE id % 2 = 0"), ("mixed", "SELECT a, b, coalesce(c, 'low') AS level FROM t")]
    {
        let drift = format!("SELECT * FROM corgipile_drift('{model}', $s${source}$s$)");
        db.fails_with(&drift, "55000").hints(&["corgipile_profile", model]);
        db.run(&format!("SELECT corgipile_profile('{model}', $s${source}$s$)"));
        assert_eq!(verdicts(&mut db, model, source), [""; 0], "{model}: unseen categories, too, are as they were");
    }
    assert_eq!(verdicts(&mut db, "of/0", "SELECT ARRAY[x[1], x[2] + 1] AS x FROM t"), ["x[2]|shifted"]);
    SPARSE.store(&mut db, "sparse");
    db.fails_with("SELECT * FROM corgipile_drift('sparse', 'SELECT ARRAY[1] AS k, ARRAY[1] AS v')", "0A000")
        .says(&["sparse"]);
    db.fails_with("SELECT * FROM corgipile_drift('of/0', 'SELECT x FROM t WHERE false')", "22000").says(&["no rows"]);
    db.fails_with("SELECT * FROM corgipile_drift('of/0', 'SELECT ARRAY[1, 2, 3] AS x')", "2202E");
    db.fails_with("SELECT * FROM corgipile_drift('of/0', 'SELECT 1 AS y')", "42703").says(&["x"]);
    db.fails_with("SELECT * FROM corgipile_drift('of/0', 'SELECT ''a''::text AS x')", "42804");
}

#[test]
fn dates_hashed_columns_and_networks_are_compared_too() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, timestamp '2024-01-01' + i * interval '1 hour' AS at, 'user ' || i AS who, i::real AS n
           FROM generate_series(1, 9000) i;
         SELECT corgipile_train('t', 'mlp', features => '{at.month,at.hour,who,n}', name => 'm', max_epochs => 1,
                                options => '{\"hash\": {\"columns\": [\"who\"]}}')",
    );
    assert_eq!(verdicts(&mut db, "m", "SELECT at, who, n FROM t"), [""; 0]);
    let later = "SELECT at, CASE WHEN n > 900 THEN who END AS who, n FROM t WHERE extract(month FROM at) > 6";
    assert_eq!(verdicts(&mut db, "m", later), ["at.month|shifted", "n|shifted"]);
    let gone = "SELECT at, CASE WHEN n > 900 THEN who END AS who, n FROM t";
    assert_eq!(verdicts(&mut db, "m", gone), ["who|nulls"]);
}

#[test]
fn a_document_whose_profile_cannot_be_is_refused() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "m", "");
    for change in [
        "'{profile}', '7'",
        "'{profile,features}', '[]'",
        "'{profile,rows}', '-1'",
        "'{profile,features,0,shares}', '[0.5, 0.5]'",
        "'{profile,features,0,shares,0}', '1.5'",
        "'{profile,features,0,edges,3}', '-1e30'",
        "'{profile,features,0,mean}', '1e999'",
        "'{profile,features,0,stddev}', '-1'",
        "'{profile,features,0,null_fraction}', '2'",
        "'{profile,features,3,counts}', '[1]'",
        "'{profile,features,3,mean}', '1'",
        "'{profile,features,0,other}', '1'",
    ] {
        let sql = format!("SELECT corgipile_import(jsonb_set(m, {change}), 'bad') FROM corgipile_export('m') AS m");
        db.fails_with(&sql, "22023").says(&["profile"]);
    }
    db.run("UPDATE corgipile.stored_models SET profile = '[]'");
    db.fails_with("SELECT * FROM corgipile_drift('m', 't'::text)", "XX001").says(&["profile"]);
    assert_eq!(db.lines("SELECT corgipile_predict('m', t) FROM t LIMIT 1").len(), 1, "predictions do not read it");
}

#[test]
fn rows_that_a_training_leaves_out_are_not_taken_for_a_change() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE s AS SELECT i % 2 AS label, CASE WHEN i % 3 > 0 THEN uniform(i, 1) END AS a, NULL::real AS b
         FROM generate_series(1, 3000) i",
    );
    let verdicts = |db: &mut Database, model: &str| -> Vec<(Option<String>, Option<f64>, Option<f64>)> {
        let sql = format!("SELECT verdict, null_fraction, mean FROM corgipile_drift('{model}', 's') ORDER BY feature");
        db.rows(&sql, &[]).iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
    };
    db.train("'s', features => '{a}', nulls => 'skip', name => 'skips', max_epochs => 1");
    let [(verdict, missing, Some(mean))] = &verdicts(&mut db, "skips")[..] else { panic!("a row with a mean") };
    assert!(verdict.is_none() && missing.is_none() && (mean - 0.5).abs() < 0.05, "{verdict:?} {missing:?} {mean}");
    db.run("SELECT FROM corgipile_profile('skips', 's')");
    let [(verdict, Some(missing), _)] = &verdicts(&mut db, "skips")[..] else { panic!("a share of NULLs") };
    assert!(verdict.is_none() && (missing - 1.0 / 3.0).abs() < 0.01, "{verdict:?} {missing}");
    // of a column that is always NULL there is no mean
    db.train("'s', features => '{a,b}', name => 'empty', max_epochs => 1");
    assert_eq!(verdicts(&mut db, "empty")[1], (None, Some(1.0), None));
}
