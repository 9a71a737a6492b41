//! `corgipile_columns()`: what a training would make of each column.

use corgipile_tests::Database;

/// A table of 2000 rows as files have them: dates, amounts and codes as texts.
fn films(db: &mut Database) {
    db.run(
        "CREATE TABLE films AS
         SELECT i AS film_id, 'film ' || i AS title, (ARRAY['drama', 'comedy'])[1 + i % 2] AS genre,
                (date '2013-01-01' + i % 700)::text AS released,
                to_char(date '2013-01-01' + i % 700, 'DD.MM.YYYY') AS shown,
                to_char(timestamp '2013-01-01' + i * interval '7 hours', 'MM/DD/YYYY HH12:MI AM') AS first_night,
                CASE WHEN i % 9 = 0 THEN 'N/A' ELSE (i % 97 / 10.0)::text END AS rating,
                '$' || to_char(1000 + i % 300 * 7, 'FM9,999') AS budget,
                replace((i % 50 / 4.0)::text, '.', ',') AS minutes,
                (i % 60)::text || '%' AS share,
                CASE WHEN i % 5 = 0 THEN '?' WHEN i % 2 = 0 THEN 'Y' ELSE 'N' END AS in_colour,
                CASE WHEN i % 11 = 0 THEN -999 ELSE i % 40 END AS temperature,
                i % 17 AS studio_id, 5 AS constant, CASE WHEN i % 4 > 0 THEN uniform(i, 1)::real END AS score,
                timestamp '2013-01-01' + i * interval '1 hour' AS added, ARRAY[1, 2]::real[] AS picture,
                i % 3 = 0 AS label
         FROM generate_series(1, 2000) i",
    );
}

/// Columns of the result, as lines.
fn columns(db: &mut Database, of_result: &str, arguments: &str) -> Vec<String> {
    db.lines(&format!("SELECT {of_result} FROM corgipile_columns({arguments})"))
}

#[test]
fn each_column_is_described_with_what_it_is_and_would_better_be() {
    let mut db = Database::new();
    films(&mut db);
    let found = columns(&mut db, "concat_ws(' | ', name, role, reason, expression)", "'films'");
    assert_eq!(
        found,
        [
            "film_id | left out | identifies rows, by its name",
            "title | left out | text, nearly unique",
            "genre | category",
            "released | left out | text with dates: use released::date | released::date",
            "shown | left out | text with dates: use to_date(shown, 'DD.MM.YYYY') | to_date(shown, 'DD.MM.YYYY')",
            "first_night | left out | text with dates: use to_timestamp(first_night, 'MM/DD/YYYY HH12:MI AM')::timestamp | \
             to_timestamp(first_night, 'MM/DD/YYYY HH12:MI AM')::timestamp",
            "rating | number | text as numbers: 'N/A' 222 times taken as NULL",
            "budget | number | text as numbers",
            "minutes | number | text as numbers",
            "share | number | text as numbers",
            "in_colour | category | NULLIF(in_colour, '?')::boolean",
            "temperature | number | probably codes: -999 | NULLIF(temperature, -999)",
            "studio_id | number | cast it to text if it is a code | studio_id::text",
            "constant | number | always the same value",
            "score | number",
            "added | left out | timestamp without time zone that rarely recurs: use date_parts for its parts | \
             extract(month FROM added)::float8",
            "picture | vector",
            "label | label",
        ]
    );
}

#[test]
fn counts_are_those_of_the_rows_and_every_expression_runs() {
    let mut db = Database::new();
    films(&mut db);
    let names = columns(&mut db, "name", "'films'");
    for name in names.iter().filter(|name| *name != "picture") {
        let counts = "concat_ws('|', distinct_values, round(null_fraction::numeric, 6), based_on)";
        let found = columns(&mut db, counts, "'films'")[names.iter().position(|other| other == name).unwrap()].clone();
        let counted = db.line(&format!(
            "SELECT concat_ws('|', count(DISTINCT {name}), round(avg(({name} IS NULL)::int), 6), 'all 2000 rows') FROM films"
        ));
        assert_eq!(found, counted, "{name}");
    }
    let expressions = columns(&mut db, "concat_ws('|', name, expression)", "'films'");
    let mut run = 0;
    for (name, expression) in expressions.iter().filter_map(|line| line.split_once('|')) {
        // codes are NULL, and nothing else is
        let codes = db.line(&format!("SELECT count(*) FROM films WHERE {name}::text IN ('N/A', '?', '-999')"));
        assert_eq!(db.line(&format!("SELECT count(*) - count({expression}) FROM films")), codes, "{expression}");
        run += 1;
    }
    assert_eq!(run, 7);
    // a date is read as it was written
    let differ = "SELECT count(*) FROM films WHERE to_date(shown, 'DD.MM.YYYY') <> released::date";
    assert_eq!(db.line(differ), "0");
}

#[test]
fn examples_are_frequent_values_and_the_ends_of_numbers() {
    let mut db = Database::new();
    films(&mut db);
    let of = |db: &mut Database, name: &str| {
        db.line(&format!("SELECT example FROM corgipile_columns('films') WHERE name = '{name}'"))
    };
    assert_eq!(of(&mut db, "temperature"), "-999 to 39");
    assert_eq!(of(&mut db, "constant"), "5");
    assert_eq!(of(&mut db, "in_colour"), "N");
    assert_eq!(of(&mut db, "picture"), "{1,2}");
    assert_eq!(of(&mut db, "label"), "0 to 1");
}

#[test]
fn columns_are_described_as_training_uses_them() {
    let mut db = Database::new();
    films(&mut db);
    db.run("ALTER TABLE films DROP picture");
    for arguments in [
        "",
        ", features => '{*}'",
        ", features => '{-genre,-score}'",
        ", features => '{genre,score}'",
        ", options => '{\"weight\": \"constant\", \"date_parts\": true}'",
        ", features => '{genre,added}', options => '{\"date_parts\": true}'",
        ", features => '{added.month,score}'",
    ] {
        let used = "SELECT string_agg(name, ',') FROM corgipile_columns('films', 'label'{})
                    WHERE role NOT IN ('left out', 'label', 'other argument')";
        let used = db.line(&used.replace("{}", arguments));
        db.run(&format!("SELECT FROM corgipile_train('films'{arguments}, max_epochs => 1)"));
        let trained = "SELECT string_agg(name, ',')
                       FROM (SELECT split_part(split_part(f, '::', 1), '.', 1) AS name, min(i) AS i
                             FROM (SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1) m, unnest(features) WITH ORDINALITY AS u(f, i)
                             GROUP BY 1 ORDER BY array_position(ARRAY(SELECT name FROM corgipile_columns('films')), split_part(split_part(min(f), '::', 1), '.', 1))) s";
        assert_eq!(used, db.line(trained), "{arguments}");
    }
}

#[test]
fn arguments_change_what_columns_are() {
    let mut db = Database::new();
    films(&mut db);
    let mut role = |name: &str, arguments: &str| {
        db.line(&format!(
            "SELECT concat_ws(': ', role, reason) FROM corgipile_columns('films'{arguments}) WHERE name = '{name}'"
        ))
    };
    assert_eq!(role("genre", ", label => 'genre'"), "label");
    assert_eq!(role("label", ", label => 'genre'"), "number");
    assert_eq!(role("genre", ", features => '{score}'"), "left out: not in features");
    assert_eq!(role("genre", ", features => '{-genre}'"), "left out: features say so");
    assert_eq!(role("picture", ", features => '{picture}'"), "vector");
    assert_eq!(role("score", ", options => '{\"weight\": \"score\"}'"), "other argument");
    assert_eq!(role("genre", ", options => '{\"hash\": {\"columns\": [\"genre\"]}}'"), "hashed");
    assert_eq!(role("added", ", options => '{\"date_parts\": [\"dow\"]}'"), "date parts: dow");
    // ids and an array: the array is all there is
    let of_array = "SELECT string_agg(name || ' ' || role, ', ') FROM corgipile_columns('SELECT film_id, picture, label FROM films')";
    assert_eq!(db.line(of_array), "film_id left out, picture vector, label label");
    // no feature at all is nothing that training would do, and is described all the same
    let nothing =
        "SELECT string_agg(name || ' ' || role, ', ') FROM corgipile_columns('SELECT title, label FROM films')";
    assert_eq!(db.line(nothing), "title left out, label label");
    // the papers' columns
    let papers = "SELECT string_agg(name || ' ' || role, ', ')
                  FROM corgipile_columns('SELECT 1 AS id, ARRAY[1, 2] AS features_k, ARRAY[1.5, 2] AS features_v, 1 AS label')";
    assert_eq!(db.line(papers), "id left out, features_k vector, features_v vector, label label");
}

#[test]
fn a_relation_by_oid_a_view_a_query_and_an_empty_table_are_sources() {
    let mut db = Database::new();
    films(&mut db);
    db.run(
        "CREATE VIEW seen AS SELECT genre, score, label FROM films; CREATE TABLE nothing (a real, b text, label int)",
    );
    let all = "SELECT string_agg(name, ',') || ' ' || min(based_on) FROM corgipile_columns({})";
    let mut of = |source: &str| db.line(&all.replace("{}", source));
    assert_eq!(of("'seen'::regclass"), "genre,score,label all 2000 rows");
    assert_eq!(of("'SELECT genre FROM seen LIMIT 50'"), "genre all 50 rows");
    assert_eq!(of("'nothing'"), "a,b,label all 0 rows");
    assert_eq!(of("'SELECT * FROM films, generate_series(1, 40) AS copies'"), {
        let names = "SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'films'::regclass AND attnum > 0";
        format!("{},copies the first 3000 rows", db.line(names))
    });
}

#[test]
fn values_that_are_stored_out_of_line_are_not_read_as_a_whole() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE pages AS
         SELECT string_agg(md5(i::text || j), '') AS body, array_agg(uniform(j, 1)::real) AS picture, i % 2 AS label
         FROM generate_series(1, 50) i, generate_series(1, 2000) j GROUP BY i",
    );
    let rows = columns(&mut db, "concat_ws('|', name, example, distinct_values)", "'pages'");
    let body = db.line("SELECT min(left(body, 40)) FROM pages");
    assert_eq!(rows[0], format!("body|{body}...|50"));
    assert_eq!(rows[1], "picture", "too large for an example");
}

#[test]
fn what_is_not_there_is_refused() {
    let mut db = Database::new();
    films(&mut db);
    db.fails_with("SELECT corgipile_columns('films', label => 'lable')", "42703").hints(&["Did you mean \"label\"?"]);
    db.fails_with("SELECT corgipile_columns('films', features => '{genre,scores}')", "42703").says(&["scores"]);
    db.fails_with("SELECT corgipile_columns('films', features => '{-genres}')", "42703").says(&["genres"]);
    db.fails_with("SELECT corgipile_columns('films', options => '{\"wieght\": \"score\"}')", "22023").says(&["wieght"]);
    db.fails_with("SELECT corgipile_columns('filmes')", "42P01").says(&["filmes"]);
    db.fails_with("SELECT corgipile_columns(NULL::text)", "22004").says(&["source"]);
    db.fails_with("SELECT corgipile_columns('DELETE FROM films RETURNING *')", "42602");
    let role = db.role("reader");
    db.run(&format!("GRANT USAGE ON SCHEMA public TO {role}"));
    db.session_as(&role).fails_with("SELECT corgipile_columns('films')", "42501").says(&["films"]);
}
