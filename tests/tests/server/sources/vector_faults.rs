//! What is refused of vectors that are no SQL arrays: other lengths, other columns next to them, bytes that are not,
//! and types that only have the name of one.

use super::vectors::table;
use corgipile_tests::{Database, Session};

with_both! {
    what_is_wrong_with_a_vector_is_named
    bytes_that_are_no_vector_are_refused
    a_type_of_the_same_name_is_not_read
}

fn what_is_wrong_with_a_vector_is_named(mut db: Database) {
    table(&mut db, 50, 9);
    db.run("INSERT INTO t (label, x, v, h, s, n, b) SELECT 0, x[:8], vec(x[:8]), half(x[:8]), sparse(x[:8]), n[:8], substr(b, 1, 8) FROM t WHERE id = 1");
    for column in ["v", "h", "s", "n", "b"] {
        let failure = db.rejects(
            &format!(
                "SELECT corgipile_train('t', features => '{{{column}}}', standardize => false, learning_rate => 1)"
            ),
            "2202E",
        );
        failure.says(&["8 features instead of 9 in row ("]);
        assert_eq!(
            failure.hint,
            "All feature arrays, vectors or byte strings have the same length, and arrays one dimension."
        );
        let train = format!("SELECT corgipile_train('t', features => '{{target,{column}}}')");
        if column == "s" {
            let beside = db.rejects(&train, "42804");
            beside.says(&["feature column \"s\" has type "]);
            assert_eq!(
                beside.hint,
                "A column of sparse vectors must be the only feature: name no other column, or cast it to vector in a query as source."
            );
        } else {
            db.rejects(&train, "2202E").says(&["8 features instead of 9 in row ("]);
        }
        db.train(&format!("'SELECT * FROM t WHERE id > 1', features => '{{{column}}}', max_epochs => 1, name => 'm'"));
        let short = format!("SELECT corgipile_predict('m', {column}) FROM t WHERE id IS NULL");
        db.fails_with(&short, "2202E").says(&["\"m\"", "has 9 features, 8 given"]);
        let short = "SELECT corgipile_predict('m', t) FROM t WHERE id IS NULL";
        db.fails_with(short, "2202E").says(&["\"m\"", "has 9 features, 8 given"]);
        let evaluated = "SELECT * FROM corgipile_evaluate('m', 't')";
        db.fails_with(evaluated, "2202E").says(&["8 features instead of 9 in row"]);
    }
    for option in [r#""index_base": 0"#, r#""dimensions": 9"#] {
        let train = format!("SELECT corgipile_train('t', features => '{{s}}', options => '{{{option}}}')");
        db.rejects(&train, "22023").says(&["sparse"]);
    }
    let wrong_type = "SELECT corgipile_predict('m', now())";
    db.fails_with(wrong_type, "2202E").says(&["\"m\"", "has 9 features, 1 given"]);
}

fn bytes_that_are_no_vector_are_refused(mut db: Database) {
    db.run("CREATE TABLE bad (label int, v vector, h halfvec, s sparsevec)");
    let (one, zero) = ("0000803f", "00000000");
    let of_vector = [
        "".to_owned(),                           // nothing
        "0300".into(),                           // half a header
        "03000000".into(),                       // three numbers, and none of them
        format!("03000000{one}{one}"),           // two
        format!("03000000{one}{one}{one}{one}"), // four
        format!("03000000{one}{one}{one}00"),
        format!("03000100{one}{one}{one}"), // something where there is to be nothing
        format!("ffff0000{one}{one}{one}"), // -1, or 65,535
    ];
    let of_half =
        ["0300".to_owned(), "03000000003c003c".into(), "03000000003c003c003c3c".into(), "03000100003c003c003c".into()];
    let word = |n: i32| n.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let sparse =
        |dim: i32, len: i32, unused: i32, entries: &str| format!("{}{}{}{entries}", word(dim), word(len), word(unused));
    let of_sparse = [
        String::new(),
        word(3),
        sparse(3, 1, 0, ""),
        sparse(3, 1, 0, &word(0)),
        sparse(3, 1, 1, &format!("{zero}{one}")),
        sparse(3, 1, 0, &format!("{zero}{one}{one}")),
        sparse(3, -1, 0, ""),
        sparse(3, i32::MAX, 0, ""),
        sparse(-3, 1, 0, &format!("{zero}{one}")),
        sparse(3, 1, 0, &format!("{}{one}", word(3))), // beyond the last dimension
        sparse(3, 1, 0, &format!("{}{one}", word(-1))), // and before the first
        sparse(3, 2, 0, &format!("{}{}{one}{one}", word(1), word(1))), // twice
        sparse(3, 2, 0, &format!("{}{}{one}{one}", word(2), word(0))), // descending
        sparse(2, 3, 0, &format!("{}{}{}{one}{one}{one}", word(0), word(1), word(2))),
    ];
    let good = ["v", "h", "s"].map(|column| match column {
        "v" => ("v", "vector", format!("03000000{one}{zero}{one}")),
        "h" => ("h", "halfvec", "03000000003c0000003c".to_owned()),
        _ => ("s", "sparsevec", sparse(3, 1, 0, &format!("{}{one}", word(1)))),
    });
    for ((column, kind, good), bad) in good.iter().zip([&of_vector[..], &of_half, &of_sparse]) {
        let insert = |label: usize, bytes: &str| {
            format!("INSERT INTO bad (label, {column}) VALUES ({label}, '\\x{bytes}'::bytea::{kind});")
        };
        db.run(&format!("TRUNCATE bad; {} {}", insert(0, good), insert(1, good)));
        db.train(&format!("'bad', features => '{{{column}}}', max_epochs => 1, name => 'm'"));
        for bytes in bad {
            // behind good rows, among them, and alone: who learns the dimensions from it, learns nothing
            for before in [2, 1, 0] {
                let rows: String = (0..4).map(|i| insert(i % 2, if i == before { bytes } else { good })).collect();
                db.run(&format!("TRUNCATE bad; {rows}"));
                for source in ["bad", "SELECT * FROM bad ORDER BY ctid"] {
                    let train = format!("SELECT corgipile_train('{source}', features => '{{{column}}}')");
                    let failure = db.rejects(&train, "XX001");
                    failure.says(&["feature vector is damaged or has an unknown layout", "row"]);
                    assert!(failure.hint.contains("pgvector"), "{failure:?}");
                }
            }
            let predict = format!("SELECT corgipile_predict('m', '\\x{bytes}'::bytea::{kind})");
            db.fails_with(&predict, "XX001").says(&["the vector is damaged"]);
            db.fails_with("SELECT corgipile_predict('m', bad) FROM bad", "XX001");
            db.fails_with("SELECT * FROM corgipile_evaluate('m', 'bad')", "XX001");
            let compress = format!("SELECT corgipile_compress('bad', 'compressed', features => '{{{column}}}')");
            db.fails_with(&compress, "XX001");
        }
    }
    not_finite_is_named(&mut db);
}

/// pgvector refuses such numbers, and a value may have them all the same.
fn not_finite_is_named(db: &mut Session) {
    for (column, kind, bytes, place) in [
        ("v", "vector", "03000000 0000803f 0000807f 0000803f", 2),
        ("h", "halfvec", "03000000 003c 003c 007e", 3),
        ("s", "sparsevec", "03000000 02000000 00000000 00000000 02000000 0000803f 0000c07f", 3),
    ] {
        let value = format!("'\\x{}'::bytea::{kind}", bytes.replace(' ', ""));
        db.run(&format!(
            "TRUNCATE bad; INSERT INTO bad (label, {column}) SELECT i % 2, {value} FROM generate_series(1, 9) i"
        ));
        let train = format!("SELECT corgipile_train('bad', features => '{{{column}}}')");
        db.rejects(&train, "22003").says(&[&format!("feature {column}[{place}] is "), "in row (0,"]);
        let compress = format!("SELECT corgipile_compress('bad', 'compressed', features => '{{{column}}}')");
        db.fails_with(&compress, "22003").says(&[&format!("feature {column}[{place}] is ")]);
    }
}

fn a_type_of_the_same_name_is_not_read(mut db: Database) {
    db.run(
        "CREATE SCHEMA mine;
         CREATE TYPE mine.vector AS ENUM ('one', 'two');
         CREATE TYPE mine.halfvec AS (dim int, x real[]);
         CREATE TYPE mine.sparsevec;
         CREATE FUNCTION mine.sparse_in(cstring) RETURNS mine.sparsevec IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
         CREATE FUNCTION mine.sparse_out(mine.sparsevec) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
         CREATE TYPE mine.sparsevec (INPUT = mine.sparse_in, OUTPUT = mine.sparse_out, LIKE = int);
         CREATE TABLE others (label int, v mine.vector, h mine.halfvec, s mine.sparsevec, b box);
         INSERT INTO others SELECT i % 2, 'one', (2, ARRAY[1, i])::mine.halfvec, '7', box(point(0, 0), point(1, 1)) FROM generate_series(1, 10) i",
    );
    for member_of_the_extension in [false, true] {
        if member_of_the_extension {
            // as the owner of the extension may, who need not be a superuser
            db.run(
                "SET allow_system_table_mods = on;
                 INSERT INTO pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
                 SELECT 'pg_type'::regclass, t.oid, 0, 'pg_extension'::regclass, e.oid, 0, 'e'
                   FROM pg_type t, pg_extension e
                  WHERE t.typnamespace = 'mine'::regnamespace AND t.typname IN ('vector', 'halfvec', 'sparsevec') AND e.extname = 'vector'",
            );
        }
        for column in ["h", "s", "b"] {
            let train = format!("SELECT corgipile_train('others', features => '{{{column}}}')");
            db.rejects(&train, "42804").says(&[&format!("feature column \"{column}\" has type ")]);
        }
        // an enum is one, whatever its name
        db.train("'others', features => '{v}', max_epochs => 1, name => 'by_enum'");
        assert_eq!(db.line("SELECT feature_kind FROM corgipile.models WHERE name = 'by_enum' LIMIT 1"), "columns");
        assert!(db.attempt("SELECT corgipile_predict('by_enum', 'one'::mine.vector)").is_ok());
        db.fails_with("SELECT corgipile_predict('by_enum', '7'::mine.sparsevec)", "42804");
    }
}
