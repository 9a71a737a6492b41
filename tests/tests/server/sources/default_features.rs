//! Which columns are features where the call does not name them all, and what is reported of the others.

use corgipile_tests::{Database, is_like};

/// The features of a training, as it recorded them.
fn features(db: &mut Database, arguments: &str) -> String {
    db.train(&format!("{arguments}, max_epochs => 1, seed => 1"));
    db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1")
}

/// What a training tells of its features, without the hint.
fn told(db: &Database, arguments: &str) -> String {
    let told = db.notices(&[&format!("SELECT FROM corgipile_train({arguments}, max_epochs => 1, seed => 1)")]);
    let line = told.lines().find_map(|line| line.strip_prefix("NOTICE:  features: "));
    line.unwrap_or_default().to_owned()
}

/// A table of 2000 rows with a column of each kind.
fn shops(db: &mut Database) {
    db.run(
        "CREATE TYPE size AS ENUM ('small', 'large');
         CREATE TABLE shops (id int PRIMARY KEY, account bigint, code int UNIQUE, serial int GENERATED ALWAYS AS IDENTITY,
                             name text, city varchar(20), zip text, size size, open boolean, region_id int, area real,
                             founded date, updated timestamptz, details json, pixels real[], label int);
         INSERT INTO shops (id, account, code, name, city, zip, size, open, region_id, area, founded, updated, details,
                            pixels, label)
         SELECT i, 7 * i, i, 'shop ' || i, (ARRAY['Bern', 'Chur', 'Thun'])[1 + i % 3], (8000 + i % 40)::text,
                (ARRAY['small', 'large'])[1 + i % 2]::size, i % 3 = 0, i % 7, uniform(i, 1), '2026-01-01', now(), '{}',
                '{1,2}', i % 2
         FROM generate_series(1, 2000) i",
    );
}

#[test]
fn numbers_booleans_text_and_enums_are_features_and_what_identifies_rows_is_none() {
    let mut db = Database::new();
    shops(&mut db);
    db.run("ANALYZE shops");
    assert_eq!(features(&mut db, "'shops'"), "{city,zip,size,open,region_id,area,pixels}");
    assert_eq!(
        told(&db, "'shops'"),
        "7 columns; left out: id (primary key), account (identifies rows: unique), \
         code (identifies rows: unique index), serial (identifies rows: identity column), name (text, nearly unique), \
         founded (always the same value), updated (always the same value), details (json: name it in features to use its keys); \
         one-hot: city (3 categories), zip (40 categories, contains numbers: use zip::float8 if they are amounts), \
         size; vectors: pixels; as numbers: region_id (cast it to text if it is a code)"
    );
}

#[test]
fn analyze_changes_nothing() {
    let mut db = Database::new();
    shops(&mut db);
    db.run(
        "CREATE TABLE large AS
         SELECT i * 3 AS account, 'visitor ' || i AS visitor, (i % 40)::text AS shop, (1e4 * exp(normal(i, 3)))::bigint AS cents,
                repeat('x', 100 + i % 2) AS filler, (i * 7919 % 100000)::text AS zip, uniform(i, 1) AS area, i % 2 AS label
         FROM generate_series(1, 100000) i",
    );
    let before = ["shops", "large"].map(|table| {
        db.run(&format!("DELETE FROM pg_statistic WHERE starelid = '{table}'::regclass"));
        (features(&mut db, &format!("'{table}'")), told(&db, &format!("'{table}'")))
    });
    assert_eq!(before[0].0, "{city,zip,size,open,region_id,area,pixels}");
    assert_eq!(before[1].0, "{shop,cents,filler,area}");
    // of the large table, blocks are read, and every block has consecutive rows
    let told_of_sample = before[1].1.rsplit_once("; ").unwrap_or_default().1;
    assert!(is_like("by a sample of ... rows", told_of_sample), "{told_of_sample}");
    db.run("ANALYZE");
    let after =
        ["shops", "large"].map(|table| (features(&mut db, &format!("'{table}'")), told(&db, &format!("'{table}'"))));
    assert_eq!(before, after);
}

#[test]
fn a_sample_is_of_random_blocks_and_not_of_the_first_rows() {
    let mut db = Database::new();
    // the first rows look like numbers, and like one category
    db.run(
        "CREATE TABLE orders AS
         SELECT CASE WHEN i <= 3000 THEN (i % 7)::text ELSE 'word ' || i % 9 END AS code,
                CASE WHEN i <= 3000 THEN 'new' ELSE 'visitor ' || i END AS visitor,
                uniform(i, 1) AS area, i % 2 AS label
         FROM generate_series(1, 60000) i",
    );
    assert_eq!(features(&mut db, "'orders'"), "{code,area}");
    let told = told(&db, "'orders'");
    assert!(told.contains("visitor (text, nearly unique)") && !told.contains("numbers"), "{told}");
}

#[test]
fn first_rows_tell_of_joins_and_none_of_what_takes_long_before_its_first_row() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE visits AS SELECT 'visitor ' || i AS visitor, i % 5 AS rooms, i % 2 AS label FROM generate_series(1, 20000) i;
         CREATE VIEW seen AS SELECT * FROM visits",
    );
    // a view or a query on one table is read as the table is
    let unique = "column rooms; left out: visitor (text, nearly unique); by a sample of ... rows";
    for source in ["'seen'", "'SELECT * FROM (SELECT visitor, rooms, label FROM seen WHERE rooms > 0) AS s ORDER BY 1'"]
    {
        let told = told(&db, source);
        assert!(is_like(unique, &told), "{told}");
    }
    let join = "'SELECT seen.* FROM seen JOIN generate_series(0, 9) AS room ON rooms = room'";
    assert_eq!(told(&db, join), "column rooms; left out: visitor (text, nearly unique); by the first 3000 rows");
    let long = "'SELECT * FROM seen WHERE (SELECT count(*) FROM generate_series(1, 3000000)) > 0'"; // of one table, too
    assert_eq!(told(&db, long), "2 columns; one-hot: visitor");
    // there, ANALYZE is asked
    db.run("ANALYZE");
    assert_eq!(told(&db, long), "column rooms; left out: visitor (text, nearly unique)");
}

#[test]
fn names_say_what_identifies_rows() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE cities (id int, uuid text, guid text, rowid bigint, row_id int, index int, city_id int,
                              cities_id int, shop_id int, \"ID\" smallint, idle int, grid real, label int);
         INSERT INTO cities SELECT i, i, i, i, i, i, i, i, i % 3, i, i % 5, uniform(i, 1), i % 2 FROM generate_series(1, 40) i",
    );
    assert_eq!(features(&mut db, "'cities'"), "{shop_id,idle,grid}");
    // what repeats does not identify rows of this table, but an id may identify others
    db.run("UPDATE cities SET city_id = city_id % 5, index = index % 5, id = id % 5; ANALYZE cities");
    assert_eq!(features(&mut db, "'SELECT id, index, city_id, grid, label FROM cities'"), "{index,city_id,grid}");
    // what is measured is no name of a row
    db.run("ALTER TABLE cities ALTER id TYPE real, ALTER index TYPE numeric");
    assert_eq!(features(&mut db, "'SELECT id, index, shop_id, grid, label FROM cities'"), "{id,index,shop_id,grid}");
}

#[test]
fn keys_and_statistics_are_known_through_views_queries_and_joins() {
    let mut db = Database::new();
    shops(&mut db);
    db.run(
        "ANALYZE shops;
         CREATE VIEW renamed AS SELECT id AS number, account AS account_number, area, label FROM shops;
         CREATE VIEW above AS SELECT number, account_number, area + 1 AS area, label FROM renamed WHERE number > 0;
         CREATE VIEW both_parts AS SELECT number, area, label FROM renamed UNION ALL SELECT number, area, label FROM renamed",
    );
    for source in [
        "renamed",
        "above",
        "SELECT * FROM above",
        "WITH a AS (SELECT number, account_number, area, label FROM renamed) SELECT * FROM a",
        "SELECT a.number, b.account_number, b.area, b.label FROM renamed a JOIN above b USING (number)",
    ] {
        assert_eq!(features(&mut db, &format!("'{source}'")), "{area}", "{source}");
    }
    // of a union the catalogs know nothing, and its values come twice; what is computed is known by its values
    assert_eq!(features(&mut db, "'both_parts'"), "{number,area}");
    assert_eq!(features(&mut db, "'SELECT account + 0 AS account, area, label FROM shops'"), "{area}");
}

#[test]
fn a_sample_is_what_the_user_may_read() {
    let mut db = Database::new();
    shops(&mut db);
    let role = db.role("reader");
    db.run(&format!(
        "GRANT USAGE ON SCHEMA public TO {role}; GRANT SELECT (name, area, label) ON shops TO {role};
         CREATE POLICY few ON shops FOR SELECT USING (id <= 40);
         CREATE VIEW names AS SELECT 'shop ' || id % 50 AS name, area, label FROM shops;
         GRANT SELECT ON names TO {role}"
    ));
    let mut reader = db.session_as(&role);
    let features = |session: &mut corgipile_tests::Session, source: &str| {
        session.train(&format!("'{source}', max_epochs => 1"));
        session.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1")
    };
    // privileges on columns suffice
    assert_eq!(features(&mut reader, "SELECT name, area, label FROM shops"), "{area}");
    assert_eq!(features(&mut reader, "names"), "{name,area}");
    // 40 names are too few to be called unique
    db.run("ALTER TABLE shops ENABLE ROW LEVEL SECURITY");
    assert_eq!(features(&mut reader, "SELECT name, area, label FROM shops"), "{name,area}");
}

#[test]
fn partitions_are_sampled_together() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE parts (account int, area real, note text, label int) PARTITION BY RANGE (account);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (1000) TO (5000);
         INSERT INTO parts SELECT i, uniform(i, 1), 'note ' || i, i % 2 FROM generate_series(1, 3000) i",
    );
    assert_eq!(features(&mut db, "'parts'"), "{area}");
    // of more rows, blocks of all partitions are read, and children are read with their parent
    db.run(
        "CREATE TABLE part_3 PARTITION OF parts FOR VALUES FROM (5000) TO (90000);
         INSERT INTO parts SELECT i, uniform(i, 1), 'note ' || i % 5, i % 2 FROM generate_series(5000, 60000) i;
         CREATE TABLE parent (LIKE parts); CREATE TABLE child () INHERITS (parent); INSERT INTO child SELECT * FROM parts",
    );
    let sampled = "2 columns; left out: account (identifies rows: unique); one-hot: note (about ... categories); \
                   by a sample of ... rows";
    for table in ["parts", "parent"] {
        let told = told(&db, &format!("'{table}'"));
        assert!(is_like(sampled, &told), "{told}");
    }
}

#[test]
fn an_array_is_a_feature_next_to_others_and_comes_before_an_id() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE pictures (id int, title text, is_new boolean, pixels real[], label int);
         INSERT INTO pictures SELECT i, 'title ' || i % 3, i % 2 = 0, ARRAY[uniform(i, 1), uniform(i, 2)], i % 2
         FROM generate_series(1, 50) i",
    );
    assert_eq!(features(&mut db, "'pictures'"), "{title,is_new,pixels}");
    assert_eq!(
        told(&db, "'pictures'"),
        "3 columns; left out: id (identifies rows, by its name); one-hot: title (3 categories); vectors: pixels"
    );
    assert_eq!(features(&mut db, "'pictures', features => '{*}'"), "{id,title,is_new,pixels}");
    assert_eq!(features(&mut db, "'pictures', features => '{-pixels}'"), "{title,is_new}");
    db.run("CREATE VIEW plain AS SELECT id, pixels, label FROM pictures");
    assert_eq!(features(&mut db, "'plain'"), "{pixels}");
    assert_eq!(told(&db, "'plain'"), "array pixels; left out: id (identifies rows, by its name)");
    assert_eq!(features(&mut db, "'plain', features => '{*}'"), "{pixels}");
    db.run(
        "ALTER TABLE pictures ADD size real DEFAULT 1, ADD others real[] DEFAULT '{1,2}', ADD list int[] DEFAULT '{}'",
    );
    db.run("UPDATE pictures SET list = ARRAY[1, 2] WHERE id = 7");
    assert_eq!(features(&mut db, "'pictures'"), "{title,is_new,pixels,size,others}");
    let told = told(&db, "'pictures'");
    assert!(told.contains("list (integer[], arrays of different lengths)"), "{told}");
    assert!(told.ends_with("vectors: pixels, others"), "{told}");
}

#[test]
fn nothing_is_told_of_numbers_and_a_primary_key() {
    let db = Database::with_small_table(100);
    assert_eq!(told(&db, "'t'"), "");
    assert_eq!(told(&db, "'SELECT id, label, ARRAY[a, b] AS x FROM t'"), "");
    assert_eq!(told(&db, "'t', features => '{a,b}'"), "");
    // of several columns of a key each may mean something
    db.notices(&["CREATE TABLE pairs (a int, b int, x real, label int, PRIMARY KEY (a, b));
                  INSERT INTO pairs SELECT i, i % 7, i % 5, i % 2 FROM generate_series(1, 50) i"]);
    assert_eq!(told(&db, "'pairs'"), "column x; left out: a (primary key), b (primary key)");
}

#[test]
fn numbers_that_are_unique_by_statistics_alone_are_better_than_nothing() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE line (x int, label real); INSERT INTO line SELECT i, 2 * i FROM generate_series(1, 2000) i;
         ANALYZE line",
    );
    assert_eq!(features(&mut db, "'line', 'linear'"), "{x}");
    assert_eq!(told(&db, "'line', 'linear'"), "column x; as numbers: x (unique)");
}

#[test]
fn amounts_that_are_unique_are_features_and_what_was_counted_up_or_drawn_is_not() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE sales AS
         SELECT 1000000 + i + (i > 3000)::int * 1000 AS number, (1e15 * uniform(i, 1))::bigint AS ticket,
                (1e6 * exp(normal(i, 2)))::bigint AS cents, (1e7 + 1e6 * normal(i, 3))::int AS grams,
                round(1e6 * normal(i, 4) ^ 2 + 1e9)::bigint AS since, i % 2 AS label
         FROM generate_series(1, 5000) i;
         ANALYZE sales",
    );
    let distinct = "SELECT attname FROM pg_stats WHERE tablename = 'sales' AND n_distinct < -0.99 ORDER BY 1";
    assert_eq!(db.lines(distinct), ["cents", "grams", "number", "since", "ticket"], "all are unique");
    assert_eq!(features(&mut db, "'sales'"), "{cents,grams,since}");
}

#[test]
fn a_star_takes_all_and_a_minus_leaves_out() {
    let mut db = Database::new();
    shops(&mut db);
    db.run("ANALYZE shops");
    let all = "id,account,code,serial,name,city,zip,size,open,region_id,area,founded.year,founded.month,founded.dow,\
               updated.year,updated.month,updated.dow,updated.hour,pixels";
    let without = |left_out: &[&str]| {
        let kept: Vec<&str> = all.split(',').filter(|name| !left_out.contains(name)).collect();
        format!("{{{}}}", kept.join(","))
    };
    assert_eq!(features(&mut db, "'shops', features => '{*}'"), without(&[]));
    assert_eq!(features(&mut db, "'shops', features => '{*,-id,-name}'"), without(&["id", "name"]));
    assert_eq!(features(&mut db, "'shops', features => '{-id,*}'"), without(&["id"]));
    assert_eq!(features(&mut db, "'shops', features => '{-id,-zip}'"), "{city,size,open,region_id,area,pixels}");
}

#[test]
fn other_columns_of_the_call_are_no_features() {
    let mut db = Database::new();
    shops(&mut db);
    let dates = "founded.year,founded.month,founded.dow,updated.year,updated.month,updated.dow,updated.hour";
    let rest = format!("{{city,zip,size,region_id,{dates},pixels}}");
    let arguments = "label => 'label', features => '{*,-id,-account,-code,-serial,-name}',
         options => '{\"weight\": \"area\", \"validation_column\": \"open\"}'";
    assert_eq!(features(&mut db, &format!("'shops', {arguments}")), rest);
    assert_eq!(
        features(&mut db, "'shops', group_by => 'size', features => '{*,-name,-account,-code,-serial,-id,-zip}'"),
        format!("{{city,open,region_id,area,{dates},pixels}}")
    );
}

#[test]
fn a_column_that_is_called_like_a_sign_is_meant_by_its_name() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE signs (\"*\" real, \"-x\" real, x real, label int);
         INSERT INTO signs SELECT i % 3, i % 5, i % 7, i % 2 FROM generate_series(1, 50) i",
    );
    assert_eq!(features(&mut db, "'signs', features => '{*}'"), "{*}");
    assert_eq!(features(&mut db, "'signs', features => '{-x}'"), "{-x}");
    assert_eq!(features(&mut db, "'signs'"), "{*,-x,x}");
}

#[test]
fn lists_with_signs_that_make_no_sense_are_refused() {
    let mut db = Database::with_small_table(100);
    let missing = db.rejects("SELECT corgipile_train('t', features => '{*,-aa}')", "42703");
    missing.says(&["\"aa\""]);
    let near = db.rejects("SELECT corgipile_train('t', features => '{-lable}')", "42703");
    near.hints(&["Did you mean \"label\"?"]);
    let mixed = db.rejects("SELECT corgipile_train('t', features => '{*,a}')", "22023");
    assert_eq!(mixed.message, "invalid value for argument \"features\": \"a\" cannot be combined with \"*\"");
    mixed.hints(&["'{*,-id}'", "'{-id}'"]);
    let none = db.rejects("SELECT corgipile_train('t', features => '{-a,-b,-c}')", "42703");
    none.hints(&["id (primary key)"]);
}

#[test]
fn prediction_depends_on_the_names_and_not_on_the_statistics() {
    let mut db = Database::new();
    shops(&mut db);
    db.run("ANALYZE shops");
    let id = db.train("'shops', max_epochs => 1")[0].model_id;
    let before = db.lines(&format!("SELECT corgipile_predict_proba({id}, s) FROM shops s ORDER BY s.id LIMIT 20"));
    db.run("DELETE FROM pg_statistic WHERE starelid = 'shops'::regclass; ALTER TABLE shops DROP CONSTRAINT shops_pkey");
    let after = db.lines(&format!("SELECT corgipile_predict_proba({id}, s) FROM shops s ORDER BY s.id LIMIT 20"));
    assert_eq!(before, after);
    // and a warm start takes the features of the model
    db.train(&format!("'shops', warm_start => '{id}', max_epochs => 1"));
    let lists = db.lines("SELECT DISTINCT features FROM corgipile.models");
    assert_eq!(lists, ["{city,zip,size,open,region_id,area,pixels}"]);
}

#[test]
fn what_takes_only_numbers_leaves_text_out() {
    let mut db = Database::new();
    shops(&mut db);
    db.run("ANALYZE shops");
    db.run("SELECT FROM corgipile_compress('shops', 'packed')");
    let id = db.train("'packed', max_epochs => 1")[0].model_id;
    assert_eq!(db.line(&format!("SELECT array_length(weights, 1) FROM corgipile.models WHERE model_id = {id}")), "3");
    db.run("SELECT FROM corgipile_train_uda('shops', max_epochs => 1)");
    assert_eq!(
        db.line("SELECT features FROM corgipile.models ORDER BY model_id DESC LIMIT 1"),
        "{open,region_id,area}"
    );
    let told = db.notices(&["SELECT FROM corgipile_compress('shops', 'packed_2')"]);
    assert!(is_like("NOTICE:  features: 3 columns; ... city (character varying, not a number), ...", &told), "{told}");
    let factor: f64 = db.value("SELECT corgipile_cluster_factor('shops')");
    assert!(factor.is_finite() && factor > 0.0, "{factor}");
}
