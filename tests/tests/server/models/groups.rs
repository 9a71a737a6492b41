//! The models of groups under one name: each row is for the model of its group, which its own name means, too.

use corgipile_tests::{Database, Session};

/// Rows of four sites, whose labels depend on x and y in another way each, a number, a class, and codes of the sites.
fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, (ARRAY['north', 'south', 'east', 'it''s'])[1 + i % 4] AS site, i % 4 AS code,
                (i % 4 / 2.0)::numeric(4, 2) AS share, i % 2 = 0 AS flag, normal(i, 1) AS x, normal(i, 2) AS y,
                (i % 4 - 1.5) * normal(i, 1) + normal(i, 2) / 3 + i % 4 AS target,
                (ARRAY['ant', 'bee', 'cat'])[1 + (uniform(i, 3) * 2 + (normal(i, 1) > 0)::int * (i % 4) / 4.0)::int % 3] AS animal
           FROM generate_series(1, 2000) AS i;
         ANALYZE t",
    );
}

/// Trains the models of groups of `column`.
fn train(db: &mut Session, model: &str, label: &str, column: &str, more: &str) {
    db.run(&format!(
        "SELECT FROM corgipile_train('t', '{model}', '{label}', '{{x,y}}', max_epochs => 3, seed => 1, group_by => '{column}',
                                     name => 'g'{more})"
    ));
}

#[test]
fn a_row_is_predicted_by_the_model_of_its_group() {
    let mut db = Database::new();
    table(&mut db);
    for column in ["site", "code", "share", "flag"] {
        train(&mut db, "linear", "target", column, "");
        let wrong: i64 = db.value(&format!(
            "SELECT count(*) FROM t WHERE corgipile_predict('g', t) IS DISTINCT FROM corgipile_predict(concat('g/', {column}), t)"
        ));
        assert_eq!(wrong, 0, "{column}");
        let models: i64 = db.value(
            "SELECT count(DISTINCT corgipile_predict('g', r)) FROM
            (SELECT 1.0 AS x, 1.0 AS y, site, code, share, flag FROM t) AS r",
        );
        assert_eq!(models, if column == "flag" { 2 } else { 4 }, "{column}");
        db.run("SELECT corgipile_drop('g')");
    }
    train(&mut db, "softmax", "animal", "site", "");
    for answer in ["label", "proba"] {
        let wrong: i64 = db.value(&format!(
            "SELECT count(*) FROM t WHERE corgipile_predict_{answer}('g', t) IS DISTINCT FROM corgipile_predict_{answer}('g/' || site, t)"
        ));
        assert_eq!(wrong, 0, "{answer}");
    }
}

#[test]
fn equal_values_of_groups_are_one_group_however_they_are_written() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "linear", "target", "share", "");
    let predict = |share: &str| {
        format!(
            "SELECT corgipile_predict('g', r)::text FROM (SELECT 1.0 AS x, 2.0 AS y, {share}::numeric AS share) AS r"
        )
    };
    assert_eq!(db.line(&predict("0.5")), db.line("SELECT corgipile_predict('g/0.50', ARRAY[1, 2])::text"));
    assert_eq!(db.line(&predict("1.5000")), db.line("SELECT corgipile_predict('g/1.50', ARRAY[1, 2])::text"));
    db.fails_with(&predict("7"), "22023");
}

#[test]
fn a_group_that_training_has_not_seen_is_an_error_null_or_predicted_by_a_model_of_all_rows() {
    let mut db = Database::new();
    table(&mut db);
    let other = "SELECT corgipile_predict('g', r)::text FROM (SELECT 1.0 AS x, 2.0 AS y, 'west' AS site) AS r";
    let none = "SELECT corgipile_predict('g', r)::text FROM (SELECT 1.0 AS x, 2.0 AS y, NULL::text AS site) AS r";
    train(&mut db, "linear", "target", "site", "");
    db.fails_with(other, "22023").says(&["\"west\"", "site"]);
    db.fails_with(none, "22023").says(&["NULL", "site"]);
    train(&mut db, "linear", "target", "site", ", unseen_group => 'null'");
    assert_eq!(db.value::<Option<String>>(other), None);
    assert_eq!(db.value::<Option<String>>(none), None);
    // the groups that a later training does not have follow what it says
    db.run("SELECT FROM corgipile_train('SELECT * FROM t WHERE site = ''south''', 'linear', 'target', '{x,y}', max_epochs => 1,
                                        group_by => 'site', name => 'g')");
    db.fails_with(other, "22023");
    train(&mut db, "linear", "target", "site", ", unseen_group => 'all'");
    let alone = db.value::<String>(
        "SELECT corgipile_predict(max(model_id), ARRAY[1, 2])::text
           FROM corgipile_train('t', 'linear', 'target', '{x,y}', max_epochs => 3, seed => 1)",
    );
    assert_eq!(db.value::<String>(other), alone);
    assert_eq!(db.value::<String>(none), alone);
    let known = "SELECT count(*) FROM t WHERE corgipile_predict('g', t) <> corgipile_predict('g/' || site, t)";
    assert_eq!(db.value::<i64>(known), 0);
    // a model that is dropped does not answer
    db.run("SELECT corgipile_drop(model_id) FROM corgipile.models WHERE name = 'g'");
    db.fails_with(other, "22023");
}

#[test]
fn an_evaluation_is_of_all_rows_each_by_the_model_of_its_group() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "linear", "target", "site", "");
    // one group again, with other scales
    db.run("SELECT FROM corgipile_train('SELECT * FROM t WHERE site = ''south'' AND x > 0', 'linear', 'target', '{x,y}', max_epochs => 2,
                                        seed => 2, group_by => 'site', name => 'g')");
    let metrics = |db: &mut Database| -> Vec<(String, f64)> {
        let rows = db.rows("SELECT metric, value FROM corgipile_evaluate('g', 't')", &[]);
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    let value = |metrics: &[(String, f64)], name: &str| {
        metrics.iter().find(|(metric, _)| metric == name).unwrap_or_else(|| panic!("{name}")).1
    };
    let found = metrics(&mut db);
    let expected = db.rows(
        "SELECT 1 - sum((target - p) ^ 2) / (var_pop(target) * count(*)), sqrt(avg((target - p) ^ 2)), avg(abs(target - p))
           FROM (SELECT target, corgipile_predict('g/' || site, t) AS p FROM t) AS t",
        &[],
    );
    for (i, name) in ["r2", "rmse", "mae"].into_iter().enumerate() {
        let (found, expected): (f64, f64) = (value(&found, name), expected[0].get(i));
        assert!((found - expected).abs() < 1e-9, "{name}: {found}, {expected}");
    }
    assert_eq!((value(&found, "tuples"), value(&found, "groups")), (2000.0, 4.0));
    for site in ["north", "south"] {
        let of_group: f64 = db.value(&format!(
            "SELECT value FROM corgipile_evaluate('g/{site}', 'SELECT * FROM t WHERE site = ''{site}''') WHERE metric = 'r2'"
        ));
        assert_eq!(value(&found, &format!("r2[site={site}]")), of_group, "{site}");
    }
    db.fails_with("SELECT corgipile_evaluate('g', 'SELECT x, y, target, ''west'' AS site FROM t')", "22023");
    db.fails_with("SELECT corgipile_evaluate('g', 't', servers => 'auto')", "22023");
    db.run("SELECT corgipile_drop('g')");
    train(&mut db, "softmax", "animal", "site", ", unseen_group => 'null'");
    let source = "SELECT x, y, animal, CASE WHEN id % 10 = 0 THEN 'west' ELSE site END AS site FROM t";
    let right: f64 = db.value(&format!(
        "SELECT avg((corgipile_predict_label('g/' || site, t) = animal)::int)::float8 FROM ({source}) AS t WHERE site <> 'west'"
    ));
    let rows = db.rows("SELECT metric, value FROM corgipile_evaluate('g', $1::text)", &[&source]);
    let found: Vec<(String, f64)> =
        rows.iter().map(|row| (row.get(0), row.get::<_, Option<f64>>(1).unwrap_or(0.0))).collect();
    assert!((value(&found, "accuracy") - right).abs() < 1e-12);
    assert_eq!((value(&found, "tuples"), value(&found, "skipped")), (1800.0, 200.0));
}

#[test]
fn what_is_done_with_the_name_is_done_with_all_models() {
    let mut db = Database::new();
    table(&mut db);
    let bob = db.role("bob");
    db.run("GRANT SELECT ON t TO PUBLIC");
    db.run("SELECT FROM corgipile_train('SELECT * FROM t WHERE site <> ''east''', 'linear', 'target', '{x,y}', max_epochs => 3,
                                        seed => 1, group_by => 'site', name => 'g')");
    let predict = "SELECT sum(corgipile_predict('g', t))::text FROM t WHERE site <> 'east'";
    let first = db.line(predict);
    let mut session = db.session_as(&bob);
    session.fails_with(predict, "42501");
    db.run(&format!("SELECT corgipile_grant('g', '{bob}', 'predict')"));
    let qualified = predict.replace("'g'", "'postgres.g'");
    assert_eq!(session.line(predict), first);
    assert_eq!(session.line(&qualified), first);
    session.fails_with("SELECT corgipile_evaluate('g', 't')", "42501");
    session.fails_with("SELECT corgipile_drop('g')", "42501");
    // a group that comes later is granted to the same roles, as is the model of all rows
    train(&mut db, "linear", "target", "site", ", unseen_group => 'all'");
    assert_ne!(db.line(predict), first, "the scales are of other rows");
    session.run("SELECT corgipile_predict('g', t) FROM t");
    session.run("SELECT corgipile_predict('g', r) FROM (SELECT 1 AS x, 2 AS y, 'west' AS site) AS r");
    // a version of all groups that have it
    db.run("SELECT corgipile_deploy('g', 1)");
    assert_eq!(db.line(predict), first);
    db.run("SELECT corgipile_deploy('g', NULL)");
    assert_ne!(db.line(predict), first);
    db.fails_with("SELECT corgipile_deploy('g', 3)", "42704");
    db.run(&format!("SELECT corgipile_revoke('g', '{bob}')"));
    session.fails_with(predict, "42501");
    db.run("SELECT corgipile_rename('g', 'places')");
    db.fails_with(predict, "42704");
    assert_ne!(db.line(&predict.replace("'g'", "'places'")), first);
    assert_eq!(
        db.value::<i64>("SELECT corgipile_drop('places', 1)"),
        5,
        "three groups, east's only one, and the model of all rows"
    );
    assert_eq!(db.value::<i64>("SELECT corgipile_drop('places')"), 3);
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile.models"), 0);
}

#[test]
fn a_name_is_that_of_one_model_or_of_groups_of_one_column() {
    let mut db = Database::new();
    table(&mut db);
    let one = "SELECT FROM corgipile_train('t', 'linear', 'target', '{x,y}', max_epochs => 1, name => 'g')";
    train(&mut db, "linear", "target", "site", "");
    db.fails_with(one, "42710").says(&["\"g\"", "site"]);
    let of_code = one.replace("name =>", "group_by => 'code', name =>");
    db.fails_with(&of_code, "42710");
    db.run("SELECT corgipile_drop('g')");
    db.run(one);
    db.fails_with(&of_code, "42710");
    // one that was renamed is no group's any more
    db.run("SELECT corgipile_drop('g')");
    train(&mut db, "linear", "target", "site", "");
    db.run("SELECT corgipile_rename('g/east', 'g/west')");
    for site in ["east", "west"] {
        db.fails_with(
            &format!("SELECT corgipile_predict('g', r) FROM (SELECT 1 AS x, 2 AS y, '{site}' AS site) AS r"),
            "22023",
        );
    }
    db.fails_with("SELECT corgipile.version_id('g', NULL)", "0A000");
    for one_model in [
        "coefficients('g', 't')",
        "importance('g', 't')",
        "drift('g', 't')",
        "profile('g', 't')",
        "export('g')",
        "export_onnx('g')",
        "predict('g', ARRAY[1, 2], 'error', 'error')",
    ] {
        let failure = db.fails_with(
            &format!("SELECT corgipile_{one_model}"),
            if one_model.starts_with("predict") { "42703" } else { "0A000" },
        );
        failure.hints(&["'g/"]);
    }
}

#[test]
fn intervals_are_calibrated_group_by_group() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "linear", "target", "site", "");
    let fresh = "SELECT id, site, x, y, target + sin(id) AS target FROM t";
    let calibrated = db.rows("SELECT tuples, max_coverage FROM corgipile_calibrate('g', $1::text)", &[&fresh]);
    let interval = "SELECT corgipile_predict_interval('g', t, 0.8)::text FROM t WHERE id = 6";
    let of_all = db.line(interval);
    let own = format!("SELECT * FROM ({fresh}) AS f WHERE site = 'east'");
    let alone = db.rows("SELECT tuples, max_coverage FROM corgipile_calibrate('g/east', $1::text)", &[&own]);
    assert_eq!(db.line(interval), of_all);
    assert_eq!((calibrated[0].get::<_, i64>(0), alone[0].get::<_, i64>(0)), (2000, 500));
    assert_eq!(calibrated[0].get::<_, f64>(1), alone[0].get::<_, f64>(1));
}

#[test]
fn an_expression_of_sql_has_a_branch_for_each_group() {
    let mut db = Database::new();
    table(&mut db);
    for (column, more, unseen) in [
        ("site", "", Err("22P02")),
        ("code", ", unseen_group => 'null'", Ok(true)),
        ("site", ", unseen_group => 'all'", Ok(false)),
    ] {
        train(&mut db, "linear", "target", column, more);
        let sql: String = db.value("SELECT corgipile_export('g', 'sql')");
        let wrong: i64 =
            db.value(&format!("SELECT count(*) FROM t WHERE abs({sql} - corgipile_predict('g', t)) > 1e-5"));
        assert_eq!(wrong, 0, "{column}{more}");
        let other = format!("SELECT ({sql})::text IS NULL FROM (SELECT 1.0 AS x, 2.0 AS y, '17' AS {column}) AS r");
        match unseen {
            Ok(is_null) => assert_eq!(db.value::<bool>(&other), is_null, "{column}{more}"),
            Err(code) => drop(db.fails_with(&other, code)),
        }
        db.run("SELECT corgipile_drop('g')");
    }
}

#[test]
fn an_explanation_is_of_the_model_of_the_rows_group() {
    let mut db = Database::new();
    table(&mut db);
    train(&mut db, "linear", "target", "site", "");
    let explain = |model: &str| format!("SELECT e::text FROM t, corgipile_explain('{model}', t) AS e WHERE id = 4");
    assert_eq!(db.lines(&explain("g")), db.lines(&explain("g/north")));
    assert_ne!(db.lines(&explain("g")), db.lines(&explain("g/south")));
}
