//! Models as expressions in SQL, evaluated by a server that has no corgipile. The oracle is what corgipile_predict()
//! and its likes say of the same rows.

use corgipile_tests::{Cluster, Database, Session, skip};

const NO_PLAIN_SERVER: &str = "the server is one that is installed with corgipile, and there is no other without it";

/// What both servers have.
const TYPES: &str = "CREATE TYPE mood AS ENUM ('good', 'bad');
     CREATE TABLE t (id int, label int, animal text, target float8, mood mood, x real[], wide float8[], flags bool[], bytes bytea, k int[],
                     v real[], colour text, a float8, b real, n numeric, flag bool, code char(4), created timestamptz, day date,
                     huge float8, sparse text);
     CREATE TABLE hostile (label int, \"a\"\"; DROP TABLE t; --\" real, \"select\" real, \"r\" real, \"x\" real, \"e\" real, \"c1\" real,
                           \"é\\ü'\" real, \"$$\" real, \"Mixed Case\" text, \"i\" real, \"v\" real, \"d.z\" real);";

/// Rows of both tables, for the server that has the functions.
const ROWS: &str = r#"
    INSERT INTO t
    SELECT i, y, (ARRAY['ant', 'b"e\e', 'c''at, {}'])[1 + (i % 3)], 3 * normal(i, 9) + y, (ARRAY['good', 'bad']::mood[])[1 + y],
           ARRAY[y + normal(i, 1), normal(i, 2), 7 * normal(i, 3)], ARRAY[y + normal(i, 1), 1e-3 * normal(i, 2), 1e5 * normal(i, 3), 1e-50],
           ARRAY[i % 2 = 0, y = 1, i % 7 = 0], decode(lpad(to_hex(i % 256), 2, '0') || lpad(to_hex(100 + 60 * y), 2, '0'), 'hex'),
           ARRAY[3 + i % 5, 1], ARRAY[normal(i, 4) + y, normal(i, 5)],
           (ARRAY['red', 'gr"ü"n\', 'it''s', '{,NULL}'])[1 + (i / 7) % 4], y - normal(i, 6), CASE WHEN i % 50 > 0 THEN normal(i, 7) END,
           round((1000 * normal(i, 8))::numeric, 3), uniform(i, 11) < 0.3 + 0.3 * y, (ARRAY['ab', 'abcd'])[1 + i % 2],
           timestamptz '2023-11-05 22:30:00 UTC' + i * interval '11 hours 7 minutes', date '1999-12-25' + i % 900,
           exp(12 * normal(i, 12)) * sign(normal(i, 13)),
           format('{%s:%s,3:%s}/5', 1 + i % 2, normal(i, 4)::real + y, normal(i, 5)::real)
      FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 300) i) r;
    INSERT INTO hostile
    SELECT i % 2, i % 2 + normal(i, 1), normal(i, 2), normal(i, 3), normal(i, 4), normal(i, 5), normal(i, 6), normal(i, 7), normal(i, 8),
           (ARRAY['one', E'two\n', '"', '\'])[1 + i % 4], normal(i, 9), normal(i, 10), normal(i, 11) FROM generate_series(1, 200) i;"#;

/// A database with corgipile, and a session of a server without it, which have the same rows.
struct Two {
    here: Database,
    there: Session,
    _plain: Cluster,
}

impl Two {
    fn new() -> Option<Two> {
        let plain = Cluster::without_corgipile(&[])?;
        let (mut here, mut there) = (Database::new(), plain.session());
        here.run(TYPES);
        here.run(ROWS);
        there.run(TYPES);
        let mut two = Two { here, there, _plain: plain };
        two.copy("t");
        two.copy("hostile");
        Some(two)
    }

    fn copy(&mut self, table: &str) {
        let rows = self.here.copy_out(&format!("COPY {table} TO STDOUT"));
        self.there.run(&format!("TRUNCATE {table}"));
        self.there.copy_in(&format!("COPY {table} FROM STDIN"), &rows);
    }

    /// Trains model m with these arguments.
    fn train(&mut self, arguments: &str) {
        self.here.train(&format!("{arguments}, max_epochs => 3, seed => 5, name => 'm'"));
    }

    /// The expression for this answer.
    fn expression(&mut self, table: &str, answer: &str) -> Result<String, String> {
        let export =
            format!("SELECT corgipile_export('m', format => 'sql', prediction => '{answer}', source => '{table}')");
        // lines of the expression are lines of one value
        self.here.attempt(&export).map(|lines| lines.join("\n")).map_err(|failure| failure.code)
    }

    /// Asserts that all answers to the rows of a table, or of another item of FROM, are the same here and there; gives
    /// how many answers there are. The types of columns are those of `table`.
    fn assert_same(&mut self, table: &str, from: &str, what: &str) -> usize {
        let mut count = 0;
        for (answer, function) in [("value", "predict"), ("label", "predict_label"), ("probabilities", "predict_proba")]
        {
            let asked = format!("SELECT corgipile_{function}('m', t)::text FROM {from} AS t");
            let expected = self.here.attempt(&asked);
            let Ok(expression) = self.expression(table, answer) else {
                assert_eq!(expected.expect_err("both refuse").code, "0A000", "{what} {answer}");
                continue;
            };
            // a search path on which nothing is found, and text output that is not exact
            self.there.run("SET search_path = ''; SET extra_float_digits = 1; SET TimeZone = 'Asia/Kolkata'");
            let found = self.there.attempt(&format!("SELECT ({expression})::text FROM {from} AS t"));
            self.there.run("RESET search_path; RESET TimeZone");
            match (expected, found) {
                (Ok(expected), Ok(found)) => {
                    assert_eq!(expected.len(), found.len());
                    let unlike: Vec<_> = expected.iter().zip(&found).filter(|(a, b)| !is_near(a, b)).collect();
                    assert!(unlike.is_empty(), "{what} {answer}: {:?}\n{expression}", &unlike[..unlike.len().min(5)]);
                    count += expected.iter().filter(|answer| *answer != "NULL").count();
                }
                (Err(_), Err(failure)) => assert!(["22P02", "22003"].contains(&failure.code.as_str()), "{failure:#?}"),
                (expected, found) => panic!("{what} {answer}: {expected:?} {found:?}\n{expression}"),
            }
        }
        count
    }
}

/// Are texts the same, or numbers and arrays of numbers, but for the rounding of a sum of reals?
fn is_near(a: &str, b: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<f64>> {
        text.trim_matches(['{', '}']).split(',').map(|number| number.parse().ok()).collect()
    };
    match (numbers(a), numbers(b)) {
        (Some(a), Some(b)) => {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 4e-6 * a.abs().max(b.abs()).max(1.0))
        }
        _ => a == b,
    }
}

/// Trainings of every kind of model and of features, by what is special about them.
const TRAININGS: [&str; 33] = [
    "'t', 'logistic', features => '{x}'",
    "'t', 'svm', features => '{x}', label => 'mood', standardize => true",
    "'t', 'linear', features => '{x}', label => 'target', optimizer => 'adam'",
    "'t', 'softmax', features => '{x}', label => 'animal', standardize => true",
    "'t', 'softmax', features => '{x}', standardize => false",
    "'t', 'logistic', features => '{wide}', standardize => true",
    "'t', 'linear', features => '{wide}', label => 'target', options => '{\"transform\": \"log\"}'",
    "'t', 'logistic', features => '{flags}'",
    "'t', 'logistic', features => '{bytes}', standardize => true",
    "'t', 'logistic', features => '{k,v}', options => '{\"handle_unknown\": \"ignore\"}'",
    "'t', 'softmax', features => '{k,v}', label => 'animal', options => '{\"index_base\": 0, \"dimensions\": 9}'",
    "'t', 'mlp', features => '{k,v}', standardize => true, hidden_layer_sizes => '{3}', options => '{\"transform\": \"log\", \"winsorize\": 1.5}'",
    "'t', 'logistic', features => '{a,b,n}', standardize => true",
    "'t', 'logistic', features => '{a,b,n}', nulls => 'skip'",
    "'t', 'linear', features => '{b,n,huge}', label => 'target', options => '{\"transform\": {\"log\": [\"huge\", \"n\"]}}'",
    "'t', 'mlp', features => '{huge,a,colour}', standardize => true, hidden_layer_sizes => '{3}', options => '{\"transform\": \"none\", \"winsorize\": 0.75}'",
    "'t', 'logistic', features => '{a,colour,b}', label => 'mood', nulls => 'skip', options => '{\"handle_unknown\": \"ignore\"}'",
    "'t', 'linear', features => '{colour,a}', label => 'target', standardize => true",
    "'t', 'softmax', features => '{code,mood,flag,n}', label => 'animal', standardize => true",
    "'t', 'logistic', features => '{created.month,created.hour,created.dow,created.doy,created.epoch,day.year,a}', standardize => true",
    "'t', 'logistic', features => '{day.day,day.dow}', standardize => true",
    "'t', 'mlp', features => '{x}', hidden_layer_sizes => '{4}', options => '{\"activation\": \"sigmoid\"}'",
    "'t', 'mlp', features => '{x}', label => 'animal', hidden_layer_sizes => '{6,5}', options => '{\"activation\": \"tanh\", \"output\": \"softmax\"}'",
    "'t', 'mlp', features => '{x}', label => 'animal', hidden_layer_sizes => '{6,5,3}', options => '{\"output\": \"sigmoid\"}'",
    "'t', 'mlp', features => '{a,colour,b}', hidden_layer_sizes => '{5}', options => '{\"output\": \"softmax\"}'",
    "'t', 'mlp', features => '{k,v}', hidden_layer_sizes => '{3,3}'",
    "'t', 'mlp_regression', features => '{x}', label => 'target', hidden_layer_sizes => '{7}', options => '{\"activation\": \"tanh\"}'",
    "'t', 'mlp_regression', features => '{a,code,b,huge}', label => 'target', hidden_layer_sizes => '{4,4}'",
    "'t', 'svm', features => '{a,colour,n}', label => 'animal'",
    "'SELECT *, floor(exp(a)) AS count FROM t', 'poisson', features => '{a,colour,n}', label => 'count'",
    "'t', 'logistic', features => '{a}', label => 'flag'",
    "'t', 'svm', features => '{id,a}'",
    "'SELECT id % 17 AS label, a, b FROM t', 'softmax', features => '{a,b}'",
];

#[test]
fn every_kind_of_model_predicts_the_same_where_there_is_no_corgipile() {
    let Some(mut two) = Two::new() else {
        return skip(every_kind_of_model_predicts_the_same_where_there_is_no_corgipile, NO_PLAIN_SERVER);
    };
    for arguments in TRAININGS {
        two.train(arguments);
        let count = two.assert_same("t", "public.t", arguments);
        assert!(count >= 294, "{arguments}: {count} answers");
    }
}

#[test]
fn names_of_columns_are_never_anything_else() {
    let Some(mut two) = Two::new() else { return skip(names_of_columns_are_never_anything_else, NO_PLAIN_SERVER) };
    for model in ["logistic", "mlp"] {
        two.train(&format!("'hostile', '{model}', features => '{{*}}'"));
        assert_eq!(two.assert_same("hostile", "public.hostile", model), 600);
    }
    // also of an array, and where the names are those of a function's parameters
    two.here.run("ALTER TABLE t RENAME x TO \"e\"\"; SELECT\"");
    two.there.run("ALTER TABLE t RENAME x TO \"e\"\"; SELECT\"");
    two.train(r#"'t', features => ARRAY['e"; SELECT']"#);
    assert_eq!(two.assert_same("t", "public.t", "an array"), 900);
    let expression = two.expression("t", "value").expect("it has one");
    two.there.run(&format!(
        "CREATE FUNCTION f(\"e\"\"; SELECT\" real[]) RETURNS float8 IMMUTABLE PARALLEL SAFE LANGUAGE sql RETURN {expression};
         CREATE INDEX ON t (f(\"e\"\"; SELECT\"))"
    ));
    let asked = two.here.lines("SELECT corgipile_predict('m', t) FROM t ORDER BY id");
    assert_eq!(two.there.lines("SELECT f(\"e\"\"; SELECT\") FROM t ORDER BY id"), asked);
}

/// Rows of which models may not have met the like.
const STRANGE: &str = "CREATE TABLE strange AS TABLE t;
    UPDATE strange SET b = NULL, colour = NULL, x = NULL WHERE id = 1;
    UPDATE strange SET x[2] = NULL, k = NULL, colour = 'never met' WHERE id = 2;
    UPDATE strange SET v[1] = NULL WHERE id = 3;
    UPDATE strange SET k[1] = NULL WHERE id = 4;
    UPDATE strange SET k[1] = 99 WHERE id = 5;
    CREATE TABLE met AS SELECT * FROM t WHERE id > 20";

#[test]
fn nulls_and_what_was_not_met_are_taken_as_the_model_takes_them() {
    let Some(mut two) = Two::new() else {
        return skip(nulls_and_what_was_not_met_are_taken_as_the_model_takes_them, NO_PLAIN_SERVER);
    };
    two.here.run(STRANGE);
    two.there.run("CREATE TABLE strange (LIKE t)");
    two.copy("strange");
    for features in ["{x}", "{k,v}", "{a,b}", "{a,colour,b}"] {
        // neither is there anything to be met in dense features
        let has_unseen = features.contains("colour") || features.contains("k,");
        for nulls in ["impute", "skip", "error"] {
            for unseen in
                [r#", options => '{"handle_unknown": "ignore"}'"#, r#", options => '{"handle_unknown": "error"}'"#, ""]
            {
                if unseen.is_empty() == has_unseen {
                    continue;
                }
                let options = format!("nulls => '{nulls}'{unseen}");
                // only rows without NULLs can be trained on if a NULL is an error
                let source = if nulls == "error" { "SELECT * FROM met WHERE b IS NOT NULL" } else { "met" };
                two.train(&format!("'{source}', features => '{features}', {options}"));
                // one by one, because an error of one row is one of all
                let mut count = two.assert_same("t", "(SELECT * FROM public.strange WHERE id > 5)", &options);
                for id in 1..=5 {
                    let row = format!("(SELECT * FROM public.strange WHERE id = {id})");
                    count += two.assert_same("t", &row, &format!("{features} {options}, row {id}"));
                }
                assert!(nulls == "error" || count > 600, "{features} {options}: {count} answers");
            }
        }
    }
}

#[test]
fn what_cannot_be_predicted_is_an_error_there_too() {
    let Some(mut two) = Two::new() else {
        return skip(what_cannot_be_predicted_is_an_error_there_too, NO_PLAIN_SERVER);
    };
    let mut fails = |arguments: &str, sources: &[(&str, &str)]| {
        two.train(arguments);
        let expression = two.expression("t", "value").expect("it has one");
        for (source, message) in sources {
            two.here.attempt(&format!("SELECT corgipile_predict('m', s) FROM ({source}) AS s")).expect_err(source);
            let failure = two.there.attempt(&format!("SELECT {expression} FROM ({source}) AS s")).expect_err(source);
            assert!(failure.message.contains(message), "{source}: {failure:#?}");
        }
    };
    fails(
        "'t', features => '{x}'",
        &[
            ("SELECT ARRAY[1, 2] AS x", "3 features, and not [1:2]"),
            ("SELECT '{}'::real[] AS x", "3 features, and not"),
            ("SELECT ARRAY[[1, 2, 3]] AS x", "3 features, and not [1:1][1:3]"),
            ("SELECT ARRAY[1, 'NaN', 3]::float8[] AS x", "feature 2 is NaN"),
            ("SELECT ARRAY[1, 2, '-Infinity']::float8[] AS x", "feature 3 is -Infinity"),
            ("SELECT ARRAY[1, 2, 1e50]::float8[] AS x", "feature 3 is 1e+50, and not in the range of real"),
        ],
    );
    fails(
        "'t', features => '{k,v}', options => '{\"handle_unknown\": \"error\"}'",
        &[
            ("SELECT ARRAY[1, 2] AS k, ARRAY[1] AS v", "2 indices, and 1 values"),
            ("SELECT ARRAY[1, 1] AS k, ARRAY[1, 2] AS v", "an index is given twice"),
            ("SELECT ARRAY[0] AS k, ARRAY[1] AS v", "index 0 is less than 1"),
            ("SELECT ARRAY[99] AS k, ARRAY[1] AS v", "index 99 is beyond 7"),
        ],
    );
    fails(
        "'t', features => '{colour,a}', options => '{\"handle_unknown\": \"error\"}'",
        &[("SELECT 'blue' AS colour, 1 AS a", "the model does not know this category of feature 1: blue")],
    );
}

#[test]
fn a_text_of_a_sparse_vector_is_read_as_one() {
    let Some(mut two) = Two::new() else { return skip(a_text_of_a_sparse_vector_is_read_as_one, NO_PLAIN_SERVER) };
    let document = r#"{"corgipile_model": 1, "model": "linear", "label": "target", "label_type": "float8", "features": ["sparse"],
        "feature_kind": "sparse", "index_base": 1, "weights": [1, 0.25, -2, 4, 8], "intercepts": [0.5]}"#;
    two.here.run(&format!("SELECT corgipile_import('{document}', 'm')"));
    let expression = two.here.lines("SELECT corgipile_export('m', 'sql')").join("\n");
    for (vector, expected) in [("{1:1.5,3:2}/5", "-2"), ("{}/5", "0.5"), ("{5:1e-3}/5", "0.508"), ("{2:-4}/5", "-0.5")]
    {
        let found = two.there.line(&format!(
            "SELECT round(({expression})::numeric, 5) + 0.0 = {expected} FROM (SELECT '{vector}' AS sparse) AS s"
        ));
        assert_eq!(found, "t", "{vector}");
    }
    let failure =
        two.there.fails_with(&format!("SELECT {expression} FROM (SELECT '{{1:1}}/4' AS sparse) AS s"), "22P02");
    assert!(failure.message.contains("5 features, and not those of {1:1}/4"), "{failure:#?}");
}

#[test]
fn vectors_of_pgvector_are_cast() {
    let Some(mut db) = Database::with_pgvector(vectors_of_pgvector_are_cast) else { return };
    db.run(
        "CREATE TABLE s AS SELECT i % 2 AS label, vec(ARRAY[i % 2, i % 3, 0]) AS v, half(ARRAY[i % 2, i % 3, 0]) AS h,
                   sparse(ARRAY[i % 2, i % 3, 0]) AS s FROM generate_series(1, 100) i",
    );
    for column in ["v", "h", "s"] {
        db.train(&format!("'s', features => '{{{column}}}', max_epochs => 2, name => 'm'"));
        let expression = db.lines("SELECT corgipile_export('m', 'sql', source => 's')").join("\n");
        let same = format!("SELECT bool_and(({expression}) = corgipile_predict('m', s)) FROM s");
        assert_eq!(db.line(&same), "t", "{column}");
    }
}

#[test]
fn numbers_are_read_to_the_same_bits() {
    let mut db = Database::new();
    let weights: Vec<String> = (0..2000u32)
        .map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761) & 0xFF7F_FFFF))
        .map(|w| if w.is_finite() { format!("{w:e}") } else { "1".to_owned() })
        .collect();
    let document = format!(
        r#"{{"corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8", "features": ["x"], "feature_kind": "array",
            "weights": [{}], "intercepts": [1.1754942e-38]}}"#,
        weights.join(",")
    );
    db.run(&format!("SELECT corgipile_import('{document}', 'm')"));
    let expression = db.lines("SELECT corgipile_export('m', 'sql')").join("\n");
    let literal = expression.split("('{").nth(1).and_then(|rest| rest.split('}').next()).expect("the weights");
    let same = format!("SELECT weights = '{{{literal}}}'::real[] FROM corgipile.models WHERE name = 'm'");
    assert_eq!(db.line(&same), "t");
}

#[test]
fn the_format_is_named_and_its_arguments_are_checked() {
    let mut db = Database::with_small_table(100);
    db.train("'t', max_epochs => 1, name => 'm'");
    db.run("ALTER TABLE t ADD d date DEFAULT '2024-02-29'; ALTER TABLE t ADD word text");
    db.run("UPDATE t SET word = 'w' || id % 3");
    assert_eq!(db.line("SELECT corgipile_export('m', 'json')::jsonb = corgipile_export('m')"), "t");
    assert_eq!(db.line("SELECT corgipile_export(1, 'sql') = corgipile_export('m', 'sql', 'value', 't')"), "t");
    assert_eq!(
        db.line("SELECT corgipile_export(NULL::text, 'sql'), corgipile_export(NULL::bigint, NULL)"),
        "NULL|NULL"
    );
    db.rejects("SELECT corgipile_export('m', NULL)", "22004").says(&["format"]);
    db.rejects("SELECT corgipile_export('m', 'xml')", "22023").says(&["format", "xml", "sql"]);
    db.rejects("SELECT corgipile_export('m', 'sql', 'labels')", "22023").says(&["prediction"]).hints(&["label"]);
    db.rejects("SELECT corgipile_export('m', 'json', 'label')", "22023").says(&["prediction", "only to format sql"]);
    db.rejects("SELECT corgipile_export('m', 'json', source => 't')", "22023").says(&["source"]);
    db.rejects("SELECT corgipile_export('m', 'sql', source => 'nowhere')", "42P01").says(&["nowhere"]);
    db.rejects("SELECT corgipile_export('m', 'sql', source => 'SELECT a FROM t')", "42703").says(&["column"]);
    db.train("'t', features => '{d.month,a}', max_epochs => 1, name => 'dated'");
    db.rejects("SELECT corgipile_export('dated', 'sql')", "22023").says(&["source", "d.month"]).hints(&["\"d\""]);
    db.line("SELECT corgipile_export('dated', 'sql', source => 't') IS NOT NULL");
    db.train("'t', 'linear', label => 'b', features => '{a}', max_epochs => 1, name => 'number'");
    db.rejects("SELECT corgipile_export('number', 'sql', 'label')", "22023").says(&["regression"]).hints(&["value"]);
    db.rejects("SELECT corgipile_export('number', 'sql', 'probabilities')", "22023").says(&["no probabilities"]);
    db.train("'t', 'softmax', label => 'word', features => '{a}', max_epochs => 1, name => 'word'");
    db.rejects("SELECT corgipile_export('word', 'sql')", "22023")
        .says(&["text labels"])
        .hints(&["prediction => 'label'"]);
}

#[test]
fn outputs_next_to_nothing_are_no_error() {
    let mut db = Database::new();
    for (activation, output, last) in [
        ("sigmoid", "sigmoid", "0.1"),
        ("sigmoid", "softmax", "1e-30"),
        ("relu", "sigmoid", "1e-30"),
        ("tanh", "sigmoid", "1e-30"),
    ] {
        let (outputs, intercepts) = if output == "softmax" { (3, "0.5,0.1,0") } else { (1, "0.5") };
        let (classes, weights) = (
            if outputs == 1 { r#""0", "1""# } else { r#""0", "1", "2""# },
            vec![format!("{last},{last},-{last}"); outputs].join(","),
        );
        let deep = format!("1,1,1, 1,1,1, 1e-40,1,1e-40, {weights}");
        let name = format!("{activation}_{output}");
        let document = format!(
            r#"{{"corgipile_model": 1, "model": "mlp", "label": "y", "label_type": "integer", "classes": [{classes}], "features": ["x"],
                "feature_kind": "array", "hidden_layer_sizes": [3, 3], "activation": "{activation}", "output": "{output}",
                "weights": [1,1e-38,-1, {deep}], "intercepts": [0,0,0, 0,0,-800, {intercepts}]}}"#
        );
        let id: i64 = db.value(&format!("SELECT corgipile_import('{document}', '{name}')"));
        db.run("CREATE TABLE IF NOT EXISTS tiny AS SELECT ARRAY[x]::float8[] AS x FROM
                unnest('{-1e30,-1000,-745.2,-745,-740,-710,-300,-104,-50,-1e-30,-1e-45,-1e-300,0,1e-300,1e-45,1e-30,1,50,104,740,746,1e5,1e30}'::float8[]) x");
        for answer in ["value", "label", "probabilities"] {
            let function = match answer {
                "value" => "corgipile_predict",
                "label" => "corgipile_predict_label",
                _ => "corgipile_predict_proba",
            };
            let expression: String = db.value(&format!("SELECT corgipile_export({id}, 'sql', '{answer}')"));
            let there = db.lines(&format!("SELECT {expression} FROM tiny"));
            let here = db.lines(&format!("SELECT {function}({id}, x) FROM tiny"));
            for (there, here) in there.iter().zip(&here) {
                assert!(is_near(there, here), "{name} {answer}: {there} for {here}");
            }
        }
    }
}
