//! What texts say as features: numbers behind codes, dates, and whether there is a value at all. The oracle is the same
//! rows with columns that PostgreSQL's casts made of the texts: the models have the same bits.

use corgipile_tests::Database;

/// Table `t` as an importer leaves it, and view `cast` with what its texts say.
fn tables(db: &mut Database) {
    db.run(
        "CREATE TABLE t AS
         SELECT i AS id, CASE WHEN i % 9 = 0 THEN 'NA' ELSE round((20 * uniform(i, 1) + 5 * (i % 2))::numeric, 2)::text END AS len,
                CASE WHEN i % 50 = 0 THEN '?' ELSE '$' || to_char(900 + i % 300 * 7, 'FM9,999') END::varchar AS price,
                replace((i % 50 / 4.0)::text, '.', ',') AS litres, to_char(date '2013-01-01' + i::int, 'MM/DD/YYYY') AS sold,
                (timestamp '2013-01-01' + i * interval '7 hours')::text AS seen,
                CASE WHEN i % 3 = 0 THEN 'note ' || i END AS note, (ARRAY['red', 'green'])[1 + i % 2] AS colour, i % 2 AS label
           FROM generate_series(1, 600::bigint) i ORDER BY i;
         CREATE VIEW \"cast\" AS
         SELECT id, label, NULLIF(len, 'NA')::float8 AS len, replace(replace(NULLIF(price, '?'), '$', ''), ',', '')::float8 AS price,
                replace(litres, ',', '.')::float8 AS litres, to_date(sold, 'MM/DD/YYYY') AS sold, seen::timestamp AS seen,
                (note IS NULL)::int AS note, colour FROM t",
    );
}

const NUMBERS: &str = "len::number,price::number,litres::decimal_comma";
const ALL: &str = "len::number,price::number,litres::decimal_comma,sold::mdy.year,sold::mdy.month,sold::mdy.dow,seen::ymd.year,\
                   seen::ymd.month,seen::ymd.dow,seen::ymd.hour,note IS NULL,colour";
const OF_CASTS: &str =
    "len,price,litres,sold.year,sold.month,sold.dow,seen.year,seen.month,seen.dow,seen.hour,note,colour";

#[test]
fn a_training_on_texts_is_one_on_their_casts_bit_for_bit() {
    let mut db = Database::new();
    tables(&mut db);
    let train = |source: &str, features: &str, more: &str| {
        format!(
            "'SELECT * FROM {source}', features => '{{{features}}}', max_epochs => 3, seed => 11, shuffle => 'no_shuffle', learning_rate => 0.05{more}"
        )
    };
    for more in ["", ", model => 'softmax'", ", model => 'mlp', hidden_layer_sizes => '{3}'", ", nulls => 'skip'"] {
        let expected = db.trained(&train("\"cast\"", "len,price,litres", more)).bits();
        assert_eq!(db.trained(&train("t", NUMBERS, more)).bits(), expected, "{more}");
        let expected = db.trained(&train("\"cast\"", OF_CASTS, more)).bits();
        assert_eq!(db.trained(&train("t", ALL, more)).bits(), expected, "{more}");
        // a column that is a number already is taken as it is
        let numbers = "len::number,price::number,litres::number";
        let numbers = db.trained(&train("\"cast\"", numbers, more)).bits();
        assert_eq!(numbers, db.trained(&train("\"cast\"", "len,price,litres", more)).bits(), "{more}");
    }
}

#[test]
fn the_plain_call_takes_numbers_behind_codes_and_reports_them() {
    let mut db = Database::new();
    tables(&mut db);
    let told = db
        .notices(&["SELECT FROM corgipile_train('SELECT len, price, litres, colour, label FROM t', max_epochs => 1)"]);
    let said = "NOTICE:  features: 4 columns; as numbers, though text: len ('NA' 66 times taken as NULL), price ('?' 12 times taken as \
                NULL), litres; one-hot: colour (2 categories)";
    assert!(told.contains(said), "{told}");
    // in steps of bits, and on a sample, alike
    assert_eq!(
        db.line("SELECT features FROM corgipile.models"),
        "{len::number,price::number,litres::decimal_comma,colour}"
    );
    // numbers that someone made text stay categories, and so do two values and a code
    db.train("'SELECT (i % 40)::text AS shop, CASE WHEN i % 9 = 0 THEN ''NA'' ELSE (i % 2)::text END AS flag, i % 2 AS label FROM generate_series(1, 400) i', max_epochs => 1");
    assert_eq!(db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "{shop,flag}");
    let described = "SELECT string_agg(concat_ws(' ', name, role, reason, expression), '|')
                     FROM corgipile_columns('SELECT len, litres, label FROM t')";
    assert_eq!(
        db.line(described),
        "len number text as numbers: 'NA' 66 times taken as NULL|litres number text as numbers|label label"
    );
}

#[test]
fn predictions_and_all_else_read_the_same_texts() {
    let mut db = Database::new();
    tables(&mut db);
    let id = db.train(&format!("'t', features => '{{{ALL}}}', name => 'm', max_epochs => 5, seed => 1"))[0].model_id;
    let right: f64 = db.value("SELECT avg((corgipile_predict('m', t) = label)::int)::float8 FROM t");
    assert_eq!(db.evaluate(id, "t").accuracy, right);
    let sql: String = db.value("SELECT corgipile_export('m', 'sql')");
    let of_source: String = db.value("SELECT corgipile_export('m', 'sql', source => 't')");
    for call in [
        "corgipile_predict('m', len, price, litres, sold, seen, note, colour)",
        "corgipile_predict(corgipile_export('m'), t)",
        &sql,
        &of_source,
    ] {
        assert!(db.value::<bool>(&format!("SELECT bool_and({call} = corgipile_predict('m', t)) FROM t")), "{call}");
    }
    let explained: Vec<String> =
        db.column("SELECT feature FROM (SELECT t FROM t LIMIT 1) s, corgipile_explain('m', t)");
    assert_eq!(explained[1..].join(","), ALL);
    db.train(&format!("'t', warm_start => '{id}', max_epochs => 1"));
    db.train(&format!("'t', features => '{{{ALL}}}', max_epochs => 1, workers => 2"));
    db.train(&format!("'t', features => '{{{ALL}}}', max_epochs => 1, prefetch => 'on'"));
    let groups = format!(
        "'t', label => 'label', features => '{{{ALL}}}', group_by => 'colour', model => 'linear', name => 'g', max_epochs => 1"
    );
    db.run(&format!("SELECT FROM corgipile_train({groups})").replace(",colour}", "}"));
    assert!(db.value::<bool>("SELECT bool_and(corgipile_predict('g', t) IS NOT NULL) FROM t"));
}

#[test]
fn a_text_that_says_nothing_is_null() {
    let mut db = Database::new();
    tables(&mut db);
    db.train("'SELECT len, litres, label FROM t', name => 'm', max_epochs => 2, seed => 1");
    let proba = |db: &mut Database, len: &str| db.line(&format!("SELECT corgipile_predict_proba('m', {len}, '1,5')"));
    let null = proba(&mut db, "NULL");
    for len in ["'NA'", "'about 5'", "''", "'2013-01-05'", "'1e400'::text", "'n/a'::varchar"] {
        assert_eq!(proba(&mut db, len), null, "{len}");
    }
    let number = proba(&mut db, "12.5");
    assert_ne!(number, null);
    for len in ["'12.5'", "' 12.50 '::text", "'$12.5'", "12.5::real", "'12.5'::char(9)"] {
        assert_eq!(proba(&mut db, len), number, "{len}");
    }
    // by the contract for NULLs, it is an error or has no answer, if that is what NULLs are
    let of_row = |nulls: &str| {
        format!(
            "SELECT corgipile_predict('m', s, nulls => '{nulls}') IS NULL FROM (SELECT 'about 5' AS len, '1,5' AS litres) s"
        )
    };
    db.fails_with(&of_row("error"), "22004").says(&["len::number"]);
    assert!(db.value::<bool>(&of_row("skip")));
    let strict = "'SELECT len, label FROM t', features => '{len::number}', max_epochs => 1";
    db.rejects(&format!("SELECT corgipile_train({strict}, nulls => 'error')"), "22004").says(&["len::number"]);
    let skipped = db.notices(&[&format!("SELECT FROM corgipile_train({strict}, nulls => 'skip')")]);
    assert!(skipped.contains("66 of 600 rows (11.0%) are left out because they have NULLs"), "{skipped}");
    db.fails_with("SELECT corgipile_predict('m', s) FROM (SELECT now() AS len, '1,5' AS litres) s", "42804")
        .hints(&["The model was trained on numbers as text in this column."]);
}

#[test]
fn whether_a_text_that_is_left_out_is_null_is_a_feature() {
    let mut db = Database::new();
    tables(&mut db);
    let told =
        db.notices(&["SELECT FROM corgipile_train('SELECT note, colour, label FROM t', name => 'm', max_epochs => 1)"]);
    let said =
        "left out: note (text, nearly unique); of these, whether they are NULL is a feature: note; one-hot: colour";
    assert!(told.contains(said), "{told}");
    assert_eq!(db.line("SELECT features FROM corgipile.models"), r#"{"note IS NULL",colour}"#);
    let same = "SELECT corgipile_predict_proba('m', 'x', 'red') = corgipile_predict_proba('m', 'y', 'red')
                       AND corgipile_predict_proba('m', NULL, 'red') <> corgipile_predict_proba('m', 'x', 'red')";
    assert!(db.value::<bool>(same));
    // not where it rarely is, or rarely is not
    db.run("CREATE TABLE rare AS SELECT CASE WHEN i % 100 > 0 THEN 'note ' || i END AS note, i % 7 AS x, i % 2 AS label FROM generate_series(1, 3000) i");
    db.train("'rare', max_epochs => 1");
    assert_eq!(db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "{x}");
}

#[test]
fn columns_without_a_value_or_with_a_constant_are_left_out() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT NULL::text AS nothing, 'Anvers' AS region, CASE WHEN i % 3 = 0 THEN 'yes' END AS once, i % 7 AS x,
                2021 AS version, i % 2 AS label FROM generate_series(1, 300) i",
    );
    let told = db.notices(&["SELECT FROM corgipile_train('t', max_epochs => 1)"]);
    let said = "3 columns; left out: nothing (no value), region (always the same value); one-hot: once (1 category)";
    assert!(told.contains(said), "{told}");
    // a constant is better than nothing
    db.train("'SELECT region, label FROM t', max_epochs => 1");
}

#[test]
fn negatives_in_brackets_halves_of_a_day_and_months_are_read() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS
         SELECT i % 2 AS label, CASE WHEN i % 3 = 0 THEN '(' || to_char(1000 + i, 'FM9,999') || ')' ELSE '$' || i END AS balance,
                to_char(timestamp '2013-01-01' + i % 40 * interval '7 hours', 'FMMM/FMDD/YY HH12:MI AM') AS seen,
                to_char(date '1999-01-01' + i % 40 * 31, 'YYYY-MM') AS month
           FROM generate_series(1, 600) i;
         CREATE VIEW \"cast\" AS
         SELECT label, CASE WHEN balance LIKE '(%' THEN -1 ELSE 1 END * translate(balance, '$(),', '')::float8 AS balance,
                to_timestamp(seen, 'MM/DD/YY HH12:MI AM')::timestamp AS seen, to_date(month, 'YYYY-MM') AS month FROM t",
    );
    const OPTIONS: &str =
        "max_epochs => 3, seed => 11, shuffle => 'no_shuffle', learning_rate => 0.05, batch_size => 1";
    let plain = db.trained(&format!("'SELECT * FROM t', {OPTIONS}"));
    let features = format!("SELECT features FROM corgipile.models WHERE model_id = {}", plain.id);
    assert_eq!(
        db.line(&features),
        "{balance::number,seen::mdy.year,seen::mdy.month,seen::mdy.dow,seen::mdy.hour,month::ymd.year,month::ymd.month}"
    );
    let casts = "{balance,seen.year,seen.month,seen.dow,seen.hour,month.year,month.month}";
    let casts = db.trained(&format!("'SELECT * FROM \"cast\"', features => '{casts}', {OPTIONS}"));
    assert_eq!(plain.bits(), casts.bits());
    let sql: String = db.value(&format!("SELECT corgipile_export('{}', 'sql', source => 't')", plain.id));
    let same = format!("SELECT bool_and(corgipile_predict('{}', t) = ({sql})) FROM t", plain.id);
    assert!(db.value::<bool>(&same));
}

#[test]
fn a_table_without_types_has_numbers() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (20 + i % 60)::text AS age, (150 + i % 45)::text AS height, lpad((i % 90)::text, 5, '0') AS zip,
                (ARRAY['f', 'm'])[1 + i % 2] AS sex, (i % 60 * 2.5)::text AS pay FROM generate_series(1, 400) i",
    );
    let told = db.notices(&["SELECT FROM corgipile_train('t', label => 'sex', max_epochs => 1)"]);
    assert!(told.contains("as numbers, though text: age, height, pay; one-hot: zip (90 categories)"), "{told}");
    // the label alone may have been cast, as the error says
    let of_label = "SELECT FROM corgipile_train('t', label => 'pay')";
    db.rejects(of_label, "22023").says(&["label column \"pay\" is text that contains numbers"]).hints(&["pay::float8"]);
    let cast = "SELECT FROM corgipile_train('SELECT age, height, zip, sex, pay::float8 FROM t', label => 'pay', max_epochs => 1)";
    let told = db.notices(&[cast]);
    assert!(told.contains("model linear") && told.contains("as numbers, though text: age, height;"), "{told}");
    // where a column has a type, those that are text were made so
    db.train("'SELECT age, height, zip, pay::float8, sex FROM t', label => 'sex', max_epochs => 1");
    assert_eq!(db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), "{age,height,zip,pay}");
}

#[test]
fn what_is_probably_one_category_and_what_has_a_unit_is_reported() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT (ARRAY['Red', 'red ', 'blue'])[1 + i % 3] AS colour, i % 50 || ' kg' AS weight,
                CASE WHEN i % 10 = 0 THEN '8888.0' ELSE (i % 70 / 2.0)::text END AS rain, (i % 24) || ':30' AS at,
                (ARRAY['Yes', 'no', 'yes'])[1 + i % 3] AS label FROM generate_series(1, 600) i",
    );
    let told = db.notices(&["SELECT FROM corgipile_train('t', max_epochs => 1)"]);
    for said in [
        "classes 'Yes' and 'yes' of label \"label\" differ in case or blanks: lower(trim(label)) has 2 classes",
        "colour (3 categories, 'Red' and 'red ' differ in case or blanks: use lower(trim(colour)) for 2)",
        "weight (50 categories, contains numbers: use replace(weight, ' kg', '')::float8 if they are amounts)",
        "at (text with times: use extract(epoch FROM at::time)::float8)",
        "probably codes: rain (8888: use NULLIF(rain::float8, 8888))",
    ] {
        assert!(told.contains(said), "{said}\n{told}");
    }
    let expressions = "SELECT string_agg(expression, '|') FROM corgipile_columns('t')";
    assert_eq!(
        db.line(expressions),
        "lower(trim(colour))|replace(weight, ' kg', '')::float8|NULLIF(rain::float8, 8888)|extract(epoch FROM at::time)::float8|lower(trim(label))"
    );
    // each of them runs
    db.run("SELECT lower(trim(colour)), replace(weight, ' kg', '')::float8, NULLIF(rain::float8, 8888), extract(epoch FROM at::time)::float8 FROM t");
}
