//! Parts of dates and times as features: in training what EXTRACT gives, and in prediction the same.

use corgipile_tests::Database;
use corgipile_tests::Stored;
use corgipile_tests::stored::MIXED;

/// A table of 600 visits with a date and two times, of which the label depends on the hour and the day of the week.
fn visits(db: &mut Database) {
    db.run(
        "SET timezone = 'Asia/Tokyo';
         CREATE TABLE visits (id int PRIMARY KEY, x real, day date, at timestamptz, seen timestamp, label int);
         INSERT INTO visits
         SELECT i, x, at::date, at AT TIME ZONE 'UTC', at, (extract(dow FROM at) IN (0, 6) OR extract(hour FROM at) > 20)::int
         FROM (SELECT i, uniform(i, 1) AS x, '2019-12-31'::timestamp + i * '7 h 13 min'::interval AS at
               FROM generate_series(1, 600) i) v",
    );
}

/// The parts that the two types have, as PostgreSQL computes them with other functions than the training.
const QUERY: &str = "SELECT id, x, to_char(day, ''YYYY'')::float8 AS \"day.year\", to_char(day, ''MM'') AS \"day.month\",
        (to_char(day, ''D'')::int - 1)::text AS \"day.dow\",
        extract(year FROM at AT TIME ZONE ''UTC'')::float8 AS \"at.year\", to_char(at AT TIME ZONE ''UTC'', ''MM'') AS \"at.month\",
        (to_char(at AT TIME ZONE ''UTC'', ''D'')::int - 1)::text AS \"at.dow\", to_char(at AT TIME ZONE ''UTC'', ''HH24'') AS \"at.hour\",
        label FROM visits";

const DEFAULTS: &str = "{x,day.year,day.month,day.dow,at.year,at.month,at.dow,at.hour}";

#[test]
fn a_time_that_folds_go_by_has_parts_that_are_features() {
    let mut db = Database::new();
    visits(&mut db);
    let mut features = |more: &str| {
        let search = "'SELECT x, at, label FROM visits', grid => '{\"l2\": [0.001, 0.01]}', max_epochs => 1";
        db.run(&format!("SELECT corgipile_search({search}, name => 'm', folds_by_time => 'at', {more})"));
        let of_model = db.line("SELECT features FROM corgipile.models WHERE name = 'm'");
        db.run("SELECT corgipile_drop('m')");
        of_model
    };
    assert_eq!(features("options => '{\"date_parts\": [\"hour\", \"dow\"]}'"), "{x,at.hour,at.dow}");
    assert_eq!(features("seed => 1"), "{x}");
    // no other use of a column leaves its parts to the features
    db.run(
        "SELECT corgipile_search('SELECT x, day, label FROM visits WHERE id < 60', max_epochs => 1, name => 'm',
                folds_by => 'day', options => '{\"date_parts\": true}')",
    );
    assert_eq!(db.line("SELECT features FROM corgipile.models WHERE name = 'm'"), "{x}");
}

#[test]
fn a_training_on_parts_is_one_on_what_extract_gives_bit_for_bit() {
    let mut db = Database::new();
    visits(&mut db);
    let training = "shuffle => 'no_shuffle', max_epochs => 3, seed => 1";
    let parts = db.trained(&format!(
        "'SELECT id, x, day, at, label FROM visits', options => '{{\"date_parts\": true}}', {training}"
    ));
    assert_eq!(db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {}", parts.id)), DEFAULTS);
    let extracted = db.trained(&format!("'{QUERY}', {training}"));
    assert_eq!(parts.bits(), extracted.bits());
    // whatever leads to the same features
    for features in ["'{x,day,at}', options => '{\"date_parts\": true}'".to_owned(), format!("'{DEFAULTS}'")] {
        assert_eq!(
            db.trained(&format!("'visits', features => {features}, {training}")).bits(),
            parts.bits(),
            "{features}"
        );
    }
    // and wherever the rows are read
    for more in ["prefetch => 'on'", "options => '{\"cache\": \"off\"}'"] {
        let trained = db.trained(&format!("'visits', features => '{DEFAULTS}', {training}, {more}"));
        assert_eq!(trained.bits(), parts.bits(), "{more}");
    }
    db.run("SET timezone = 'America/New_York'");
    assert_eq!(
        db.trained(&format!("'visits', features => '{DEFAULTS}', {training}")).bits(),
        parts.bits(),
        "session's zone"
    );
}

#[test]
fn lists_of_parts_are_taken_of_every_date_and_recorded() {
    let mut db = Database::new();
    visits(&mut db);
    let mut features = |arguments: &str| {
        db.train(&format!("'visits', max_epochs => 1, {arguments}"));
        db.line("SELECT features, hyperparameters->'date_parts' FROM corgipile.models ORDER BY model_id DESC LIMIT 1")
    };
    assert_eq!(
        features(r#"options => '{"date_parts": ["hour", "doy"]}'"#),
        "{x,day.doy,at.hour,at.doy,seen.hour,seen.doy}|[\"hour\", \"doy\"]"
    );
    assert_eq!(
        features(r#"features => '{*,-id,-seen,-at}', options => '{"date_parts": ["epoch", "day"]}'"#),
        "{x,day.epoch,day.day}|[\"epoch\", \"day\"]"
    );
    assert_eq!(features(r#"options => '{"date_parts": false}'"#), "{x}|false");
    assert_eq!(features("features => '{x,day.dow}'"), "{x,day.dow}|NULL");
    assert_eq!(
        features(r#"features => '{day.dow,day}', options => '{"date_parts": ["dow", "month"]}'"#),
        "{day.dow,day.month}|[\"dow\", \"month\"]"
    );
}

#[test]
fn rows_values_and_evaluations_have_the_parts_of_the_same_dates() {
    let mut db = Database::new();
    visits(&mut db);
    let id = db.train(
        "'SELECT x, day, at, label FROM visits', options => '{\"date_parts\": true}', name => 'visits', seed => 1",
    )[0]
    .model_id;
    let query = QUERY.replace("''", "'");
    let differing = format!(
        "SELECT count(*), count(*) FILTER (WHERE corgipile_predict_proba('visits', v) <> p OR corgipile_predict_proba('visits', x, day, at) <> p)
         FROM (SELECT v, v.x, v.day, v.at,
                      corgipile_predict_proba('visits', q.x, q.\"day.year\", q.\"day.month\", q.\"day.dow\", q.\"at.year\", q.\"at.month\",
                                              q.\"at.dow\", q.\"at.hour\") AS p
               FROM visits v JOIN ({query}) q USING (id)) AS both_ways"
    );
    assert_eq!(db.line(&differing), "600|0");
    let by_row: f64 = db.value("SELECT avg((corgipile_predict('visits', v) = label)::int)::float8 FROM visits v");
    let evaluation = db.evaluate(id, "visits");
    assert_eq!((evaluation.tuples, evaluation.accuracy), (600.0, by_row));
    assert!(by_row > 0.9, "{by_row}: hour and day of the week tell the label");
    db.run("SET timezone = 'America/New_York'");
    assert_eq!(db.line(&differing), "600|0");
    // a model that goes on has the same features
    db.train(&format!("'visits', warm_start => '{id}', max_epochs => 1"));
    assert_eq!(db.line("SELECT DISTINCT features FROM corgipile.models"), DEFAULTS);
}

/// A linear model of one part of column d whose prediction is the part.
fn model_of(db: &mut Database, part: &str) -> i64 {
    let texts: Vec<String> = match part {
        "month" => (1..=12).map(|i| format!("{i:02}")).collect(),
        "dow" => (0..7).map(|i| i.to_string()).collect(),
        "hour" => (0..24).map(|i| format!("{i:02}")).collect(),
        _ => Vec::new(),
    };
    let weights: Vec<&str> = texts.iter().map(String::as_str).collect();
    let categories = format!("'{{\"d.{part}\": [\"{}\"]}}'", texts.join("\", \""));
    let stored = Stored {
        features: &format!("'{{d.{part}}}'"),
        categories: if texts.is_empty() { "NULL" } else { &categories },
        weights: &if texts.is_empty() { "'{1}'".to_owned() } else { format!("'{{{}}}'", weights.join(",")) },
        intercepts: "'{0}'",
        ..MIXED
    };
    stored.store(db, &format!("part {part}"))
}

#[test]
fn prediction_computes_every_part_as_postgresql_does() {
    let mut db = Database::new();
    db.run(
        "SET timezone = 'Europe/Zurich';
         CREATE TABLE days AS SELECT d::date AS d FROM (
             SELECT '4713-01-01 BC'::date + i * 97 FROM generate_series(0, 25000) i UNION ALL
             SELECT '1996-02-25'::date + i FROM generate_series(0, 3000) i UNION ALL
             SELECT unnest(ARRAY['0001-12-31 BC', '0001-01-01', '1900-02-28', '2000-02-29', '294276-12-31', '4713-01-01 BC']::date[])
         ) AS v(d);
         CREATE TABLE times AS SELECT d FROM (
             SELECT '4713-01-02 BC'::timestamp + i * '113 days 5:07:11.25'::interval FROM generate_series(0, 25000) i UNION ALL
             SELECT '1969-12-31 22:00'::timestamp + i * '59 min 59.999999 s'::interval FROM generate_series(0, 3000) i UNION ALL
             SELECT unnest(ARRAY['294276-12-31 23:59:59.999999', '1970-01-01', '1999-12-31 23:59:59.999999', '2000-01-01']::timestamp[])
         ) AS v(d);
         CREATE TABLE zoned AS SELECT d AT TIME ZONE 'UTC' AS d FROM times",
    );
    for part in ["year", "month", "day", "dow", "hour", "doy", "epoch"] {
        let id = model_of(&mut db, part);
        for (table, utc) in [("days", "d::timestamp"), ("times", "d"), ("zoned", "d AT TIME ZONE 'UTC'")] {
            if (table, part) == ("days", "hour") {
                continue;
            }
            // features are real
            let wrong = db.lines(&format!(
                "SELECT d, corgipile_predict({id}, t), date_part('{part}', {utc}) FROM {table} t
                 WHERE corgipile_predict({id}, t) IS DISTINCT FROM date_part('{part}', {utc})::real::float8 LIMIT 5"
            ));
            assert!(wrong.is_empty(), "{part} of {table}: {wrong:#?}");
        }
    }
}

#[test]
fn an_infinity_is_an_error_that_names_the_row_or_a_category_of_its_own() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, '2026-01-01'::date + i AS d, i AS x FROM generate_series(1, 50) i;
         UPDATE t SET d = 'infinity' WHERE x = 7;",
    );
    let at = db.line("SELECT ctid FROM t WHERE d = 'infinity'");
    for part in ["year", "day", "doy", "epoch"] {
        let failure = db.rejects(&format!("SELECT corgipile_train('t', features => '{{d.{part}}}')"), "22003");
        failure.says(&[&format!("feature d.{part} is Infinity"), &format!("in row {at}")]);
    }
    let id = db.train("'t', features => '{d.month}', max_epochs => 1")[0].model_id;
    assert_eq!(
        db.line(&format!("SELECT categories FROM corgipile.models WHERE model_id = {id}")),
        r#"{"d.month": ["01", "02", "infinity"]}"#
    );
    let same = format!(
        "SELECT corgipile_predict_proba({id}, t) = corgipile_predict_proba({id}, 'infinity'::text) FROM t WHERE d = 'infinity'"
    );
    assert_eq!(db.line(&same), "t");
    let year = model_of(&mut db, "year");
    let mut fails = |value: &str| {
        db.fails_with(&format!("SELECT corgipile_predict({year}, q) FROM (SELECT {value} AS d) q"), "22003")
    };
    fails("'infinity'::date").says(&["d.year", "is Infinity"]);
    fails("'-infinity'::timestamp").says(&["d.year", "is -Infinity"]);
}

#[test]
fn a_date_that_is_null_is_as_null_as_its_parts() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, CASE WHEN i % 5 > 0 THEN '2026-01-01'::date + i END AS d, i % 7 AS x
         FROM generate_series(1, 60) i",
    );
    let parts = "SELECT label, x, date_part(''year'', d) AS \"d.year\", to_char(d, ''MM'') AS \"d.month\" FROM t";
    let arguments = "features => '{x,d.year,d.month}', shuffle => 'no_shuffle', seed => 1, max_epochs => 3";
    for nulls in ["impute", "skip"] {
        let of_dates = db.trained(&format!("'t', {arguments}, nulls => '{nulls}'"));
        let of_parts = db.trained(&format!("'{parts}', {arguments}, nulls => '{nulls}'"));
        assert_eq!(of_dates.bits(), of_parts.bits(), "{nulls}");
        let id = of_dates.id;
        let of_null = format!("SELECT corgipile_predict_proba({id}, t) FROM t WHERE d IS NULL AND x = 1 LIMIT 1");
        let of_nulls = format!("SELECT corgipile_predict_proba({id}, 1, NULL::float8, NULL::text)");
        assert_eq!(db.line(&of_null), db.line(&of_nulls), "{nulls}");
        assert_eq!(db.line(&of_null) == "NULL", nulls == "skip");
    }
    db.rejects(&format!("SELECT corgipile_train('t', {arguments}, nulls => 'error')"), "22004")
        .says(&["d.year is NULL"]);
}

#[test]
fn columns_that_are_called_like_parts_come_first_and_wrong_types_are_told() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, '2026-01-01'::date + i AS d, (i % 7)::real AS \"d.dow\", 'a'::text AS s
         FROM generate_series(1, 50) i",
    );
    let own = db.trained("'t', features => '{d.dow}', max_epochs => 1");
    assert_eq!(own.weights.len(), 1, "a number, and not the days of the week");
    assert_eq!(
        db.line(&format!(
            "SELECT corgipile_predict_proba({0}, t) = corgipile_predict_proba({0}, t.\"d.dow\") FROM t LIMIT 1",
            own.id
        )),
        "t"
    );
    // d is a date that is there, s is not one, and e is not there
    db.train("'t', features => '{d.month}', max_epochs => 1, name => 'months'");
    for (features, code) in
        [("{s.month}", "42703"), ("{e.month}", "42703"), ("{d.weekday}", "42703"), ("{d.hour}", "42703")]
    {
        db.rejects(&format!("SELECT corgipile_train('t', features => '{features}')"), code);
    }
    let missing = db.fails_with("SELECT corgipile_predict('months', q) FROM (SELECT 1 AS x) q", "42703");
    missing.says(&["no column \"d\""]).hints(&["in order: d."]);
    let wrong = db.fails_with("SELECT corgipile_predict('months', q) FROM (SELECT 1 AS d) q", "42804");
    wrong.hints(&["date or timestamp"]);
    db.fails_with("SELECT corgipile_predict('months', '2026-01-01'::date, 2)", "2202E")
        .says(&["has 1 features, 2 given"]);
}

#[test]
fn parts_are_read_from_views_queries_partitions_and_domains_and_not_by_the_aggregate() {
    let mut db = Database::new();
    visits(&mut db);
    db.run(
        "CREATE DOMAIN moment AS timestamptz;
         CREATE TABLE parts (label int, at moment, x real) PARTITION BY RANGE (x);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (0.5);
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (0.5) TO (2);
         INSERT INTO parts SELECT label, at, x FROM visits;
         CREATE VIEW seen AS SELECT label, at, x FROM visits",
    );
    for source in ["parts", "seen", "SELECT label, at, x FROM parts WHERE x > 0.1"] {
        let id = db.train(&format!("'{source}', options => '{{\"date_parts\": true}}', seed => 1, max_epochs => 2"))[0]
            .model_id;
        let features = db.line(&format!("SELECT features FROM corgipile.models WHERE model_id = {id}"));
        assert_eq!(features.matches("at.").count(), 4, "{features}");
        let rows: i64 = db
            .value(&format!("SELECT count(*) FROM ({source}) s").replace("(parts)", "parts").replace("(seen)", "seen"));
        assert_eq!(db.evaluate(id, source).tuples, rows as f64);
    }
    db.run("SELECT FROM corgipile_train('parts', options => '{\"date_parts\": true}', group_by => 'label', label => 'x', model => 'linear', max_epochs => 1)");
    db.fails_with("SELECT corgipile_train_uda('visits', options => '{\"date_parts\": true}')", "0A000")
        .says(&["date_parts"]);
}
