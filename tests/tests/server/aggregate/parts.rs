//! `corgipile_sgd_agg_typed()`: an aggregate that a database which is spread over servers can split.
//!
//! `tests/extension/parts.c` splits it as Citus does, here over the parts of one table: it compares the types of the
//! arguments with those that are declared, and calls the functions without an expression.

use corgipile_tests::{Database, parts, skip};

/// Types of dense features.
const DENSE: [&str; 6] = ["smallint[]", "integer[]", "bigint[]", "real[]", "double precision[]", "numeric[]"];

/// Types of indices and of values.
const SPARSE: [(&str, &str); 4] = [
    ("integer[]", "real[]"),
    ("integer[]", "double precision[]"),
    ("bigint[]", "real[]"),
    ("bigint[]", "double precision[]"),
];

/// Rows of three parts; some without features, the first one among them, or without label. The numbers are whole, so
/// that all types have the same.
const ROWS: &str = "
    CREATE TABLE t (id int, part int, label int, x float8[], k int[], v float8[]);
    INSERT INTO t
    SELECT i, i / 100, nullif(i % 2, CASE WHEN i % 50 = 7 THEN 1 END), CASE WHEN i % 60 > 0 THEN x END,
           ARRAY(SELECT j::int FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j),
           CASE WHEN i % 60 > 0 THEN ARRAY(SELECT e FROM unnest(x) WITH ORDINALITY u(e, j) WHERE e <> 0 ORDER BY j) END
      FROM (SELECT i, ARRAY(SELECT round(normal(i, j) + 2 * (i % 2)) FROM generate_series(1, 4) j ORDER BY j) AS x
              FROM generate_series(0, 299::bigint) i) r;
    ANALYZE t";

/// What splits aggregates. None, and the test is skipped, where it cannot be compiled.
fn database<T>(test: T) -> Option<Database> {
    let library = match parts() {
        Ok(library) => library.display().to_string(),
        Err(reason) => {
            skip(test, &reason);
            return None;
        }
    };
    let mut db = Database::new();
    db.run(&format!(
        "CREATE FUNCTION part_step(internal, regprocedure, record) RETURNS internal LANGUAGE c AS '{library}';
         CREATE FUNCTION part_end(internal) RETURNS text LANGUAGE c AS '{library}';
         CREATE AGGREGATE part_of(regprocedure, record) (SFUNC = part_step, STYPE = internal, FINALFUNC = part_end);
         CREATE FUNCTION whole_step(internal, regprocedure, text) RETURNS internal LANGUAGE c AS '{library}';
         CREATE FUNCTION whole_end(internal) RETURNS corgipile.sgd_state LANGUAGE c AS '{library}';
         CREATE AGGREGATE whole_of(regprocedure, text) (SFUNC = whole_step, STYPE = internal, FINALFUNC = whole_end);
         SET max_parallel_workers_per_gather = 0; SET synchronize_seqscans = off"
    ));
    db.run(ROWS);
    Some(db)
}

/// A way to train: the types of the features, the state to begin with, and the arguments behind it.
struct Way {
    types: String,
    state: &'static str,
    features: String,
}

impl Way {
    /// One for each declaration.
    fn all() -> Vec<Way> {
        let dense = DENSE.map(|t| Way {
            types: t.to_owned(),
            state: r#"(SELECT corgipile_sgd_init('logistic', 4, 0.05, '{"nulls": "skip", "optimizer": "adam"}'))"#,
            features: format!("x::{t}"),
        });
        let sparse = SPARSE.map(|(k, v)| Way {
            types: format!("{k},{v}"),
            state: r#"(SELECT corgipile_sgd_init('logistic', 4, 0.05, '{"nulls": "skip"}', sparse => true))"#,
            features: format!("k::{k}, v::{v}"),
        });
        dense.into_iter().chain(sparse).collect()
    }

    /// The aggregate with its types.
    fn signature(&self) -> String {
        format!("corgipile_sgd_agg_typed(corgipile.sgd_state,double precision,{})", self.types)
    }

    /// A call of this aggregate.
    fn call(&self, aggregate: &str) -> String {
        format!("{aggregate}({}, 2 * label - 1, {})", self.state, self.features)
    }

    /// What the rows of a part give, as text.
    fn part(&self, signature: &str) -> String {
        format!("part_of('{signature}', ROW({}, (2 * label - 1)::float8, {}))", self.state, self.features)
    }

    /// What is made of the parts for which a condition holds.
    fn whole(&self, condition: &str) -> String {
        let signature = self.signature();
        format!(
            "SELECT whole_of('{signature}', part) AS state
               FROM (SELECT part, {} FROM t WHERE {condition} GROUP BY part ORDER BY part) p(number, part)",
            self.part(&signature)
        )
    }
}

#[test]
fn a_part_learns_what_the_aggregate_learns_alone() {
    let Some(mut db) = database(a_part_learns_what_the_aggregate_learns_alone) else { return };
    let report = "SELECT r.tuples, r.skipped, r.epoch FROM corgipile_sgd_report";
    for way in Way::all() {
        let alone = db.line(&format!("SELECT {} FROM t WHERE part = 0", way.call("corgipile_sgd_agg")));
        let typed = db.line(&format!("SELECT {} FROM t WHERE part = 0", way.call("corgipile_sgd_agg_typed")));
        assert_eq!(typed, alone, "{}", way.types);
        assert_eq!(db.line(&way.whole("part = 0")), alone, "{}", way.types);
        // 100 rows, of which two have no features and two no label
        assert_eq!(db.line(&format!("{report}('{alone}') r")), "96|4|1", "{}", way.types);
    }
}

#[test]
fn parts_are_averaged_by_their_rows() {
    let Some(mut db) = database(parts_are_averaged_by_their_rows) else { return };
    for way in Way::all() {
        let weights = |state: &str| format!("SELECT unnest(corgipile_sgd_weights(s))::float8 FROM ({state}) e(s)");
        let mut sum = [0.0; 4];
        let mut rows = 0.0;
        for part in 0..3 {
            let state = format!("SELECT {} FROM t WHERE part = {part}", way.call("corgipile_sgd_agg"));
            let learned: i64 = db.value(&format!("SELECT r.tuples FROM ({state}) e(s), corgipile_sgd_report(s) AS r"));
            let of_part: Vec<f64> = db.column(&weights(&state));
            assert_eq!(of_part.len(), 4);
            for (sum, weight) in sum.iter_mut().zip(of_part) {
                *sum += weight * learned as f64;
            }
            rows += learned as f64;
        }
        let whole: Vec<f64> = db.column(&weights(&way.whole("true")));
        for (weight, sum) in whole.iter().zip(sum) {
            assert!((weight - sum / rows).abs() < 1e-5, "{}: {whole:?} is not {sum:?} / {rows}", way.types);
        }
        let report = format!("SELECT r.tuples FROM ({}) e(s), corgipile_sgd_report(s) AS r", way.whole("true"));
        assert_eq!(db.value::<i64>(&report) as f64, rows, "{}", way.types);
        // one that has no rows changes nothing
        let empty = format!("SELECT {} FROM t WHERE false", way.part(&way.signature()));
        assert_eq!(db.line(&empty), "NULL");
        assert_eq!(db.line(&way.whole("false")), "NULL");
    }
}

#[test]
fn an_aggregate_of_any_array_cannot_be_split() {
    let Some(mut db) = database(an_aggregate_of_any_array_cannot_be_split) else { return };
    let any = "corgipile_sgd_agg(corgipile.sgd_state,double precision,anyarray)";
    let way = &Way::all()[3];
    db.fails_with(&format!("SELECT {} FROM t", way.part(any)), "42804").says(&["declared with other types"]);
}

#[test]
fn each_type_of_features_has_its_declaration() {
    let mut db = Database::new();
    db.run(ROWS);
    for way in Way::all() {
        db.run(&format!("CREATE VIEW probe AS SELECT {} FROM t", way.call("corgipile_sgd_agg_typed")));
        let aggregate = db.line(
            "SELECT p.oid::regprocedure FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_proc p ON p.oid = d.refobjid
              WHERE ev_class = 'probe'::regclass AND refclassid = 'pg_proc'::regclass AND proname = 'corgipile_sgd_agg_typed'",
        );
        assert_eq!(aggregate, way.signature());
        db.run("DROP VIEW probe");
    }
}

#[test]
fn a_type_that_is_cast_to_arrays_fits_one_aggregate_alone() {
    let mut db = Database::with_vectors_made_here();
    // as pgvector has it
    db.run(
        "CREATE FUNCTION floats(vector) RETURNS real[] IMMUTABLE LANGUAGE plpgsql
             AS 'BEGIN RAISE EXCEPTION ''the vector was cast'' USING ERRCODE = ''ZZ001''; END';
         CREATE CAST (vector AS real[]) WITH FUNCTION floats(vector) AS IMPLICIT",
    );
    let learn = |aggregate: &str, features: &str| {
        format!("SELECT {aggregate}(corgipile_sgd_init('logistic', 2), 1, {features}) FROM generate_series(1, 3)")
    };
    let expected = db.line(&learn("corgipile_sgd_agg", "ARRAY[1, 2]"));
    assert_eq!(db.line(&learn("corgipile_sgd_agg", "vec('{1,2}')")), expected);
    db.fails_with(&learn("corgipile_sgd_agg_typed", "vec('{1,2}')"), "ZZ001");
}

#[test]
fn arrays_of_a_column_of_any_array_say_their_type_row_by_row() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE s AS SELECT i AS a, i::real / 2 AS b, i::float8 / 4 AS c, i::bigint AS d FROM generate_series(1, 100) i;
         ALTER TABLE s ALTER a SET STATISTICS 3, ALTER b SET STATISTICS 3, ALTER c SET STATISTICS 3, ALTER d SET STATISTICS 3;
         ANALYZE s",
    );
    let learn = |features: &str| {
        format!(
            "SELECT corgipile_sgd_agg(corgipile_sgd_init('svm', 4), 1, {features} ORDER BY attname) FROM pg_stats
              WHERE tablename = 's' AND cardinality(histogram_bounds) = 4"
        )
    };
    let state = db.line(&learn("histogram_bounds"));
    assert_eq!(state, db.line(&learn("histogram_bounds::text::real[]")));
    assert_eq!(db.line(&format!("SELECT r.tuples FROM corgipile_sgd_report('{state}') r")), "4");
}
