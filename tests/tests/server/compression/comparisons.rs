//! Comparisons of compressed mini-batches: by their entries, whatever their encoding.

use corgipile_tests::Database;

const ENCODINGS: [&str; 7] = ["den", "csr", "cvi", "dvi", "toc", "gzip", "snappy"];

/// A table with each of some matrices in every encoding, and its entries as an array.
fn matrices() -> Database {
    let mut db = Database::new();
    db.run("CREATE TABLE m (which int, encoding text, a corgipile.toc, plain float8[])");
    let matrices = [
        "'{{0,0},{0,1}}'",
        "'{{0,1},{0,0}}'",
        "'{{1,0},{0,0}}'",
        "'{{-1,0},{0,2}}'",
        "'{{NaN,0},{0,0}}'",
        "'{{Infinity,0},{0,0}}'",
        "'{{0,0},{0,0}}'",
    ];
    for (which, matrix) in matrices.iter().enumerate() {
        for encoding in ENCODINGS {
            db.run(&format!(
                "INSERT INTO m SELECT {which}, '{encoding}', corgipile_toc(p, '{encoding}'), p FROM (SELECT {matrix}::float8[] AS p) x"
            ));
        }
    }
    db
}

#[test]
fn operators_say_of_matrices_what_they_say_of_their_entries() {
    let mut db = matrices();
    for operator in ["=", "<>", "<", "<=", ">", ">="] {
        let wrong = format!(
            "SELECT count(*) FROM m AS x, m AS y WHERE (x.a {operator} y.a) IS DISTINCT FROM (x.plain {operator} y.plain)"
        );
        assert_eq!(db.line(&wrong), "0", "{operator}");
    }
    assert_eq!(db.line("SELECT corgipile_toc(ARRAY[[0.0]]) = corgipile_toc(ARRAY[['-0'::float8]])"), "t");
    assert_eq!(db.line("SELECT corgipile_toc(ARRAY[[1,2]]) = corgipile_toc(ARRAY[[1],[2]])"), "f");
    assert_eq!(db.line("SELECT corgipile_toc(ARRAY[[9,9]]) > corgipile_toc(ARRAY[[1],[2],[3]])"), "t", "more columns");
    assert_eq!(db.line("SELECT (NULL::corgipile.toc = corgipile_toc(ARRAY[[1,2]])) IS NULL"), "t");
}

#[test]
fn distinct_group_by_union_order_by_and_joins_work_by_hash_and_by_sort() {
    let mut db = matrices();
    for (hash, sort) in [("on", "off"), ("off", "on")] {
        db.run(&format!(
            "SET enable_hashagg = {hash}; SET enable_hashjoin = {hash}; SET enable_sort = {sort}; SET enable_mergejoin = {sort};
             SET enable_nestloop = off"
        ));
        for (sql, expected) in [
            ("SELECT count(*) FROM (SELECT DISTINCT a FROM m) x", "7"),
            ("SELECT count(DISTINCT a) FROM m", "7"),
            ("SELECT DISTINCT count(*) FROM m GROUP BY a", "7"),
            ("SELECT count(*) FROM (SELECT a FROM m UNION SELECT a FROM m) x", "7"),
            ("SELECT count(*) FROM (SELECT a FROM m EXCEPT SELECT a FROM m WHERE which > 0) x", "1"),
            ("SELECT count(*) FROM m AS x JOIN m AS y USING (a)", "343"),
            ("SELECT count(*) FROM m AS x JOIN m AS y ON x.a = y.a AND x.which <> y.which", "0"),
        ] {
            assert_eq!(db.line(sql), expected, "hash {hash}: {sql}");
        }
    }
    db.run("RESET ALL");
    let (order, plain) = ("SELECT which FROM m ORDER BY a, encoding", "SELECT which FROM m ORDER BY plain, encoding");
    assert_eq!(db.lines(order), db.lines(plain));
}

#[test]
fn indexes_partitions_and_unique_constraints_can_have_matrices() {
    let mut db = matrices();
    db.run("CREATE INDEX by_order ON m (a); CREATE INDEX by_hash ON m USING hash (a); SET enable_seqscan = off");
    let plan = db.lines("EXPLAIN SELECT * FROM m WHERE a = corgipile_toc(ARRAY[[0,1],[0,0]]::float8[])").join("\n");
    assert!(plan.contains("by_order") || plan.contains("by_hash"), "{plan}");
    for index in ["by_order", "by_hash"] {
        db.run(&format!("BEGIN; DROP INDEX {index}"));
        let found = "SELECT count(*), min(which) FROM m WHERE a = corgipile_toc(ARRAY[[0,1],[0,0]]::float8[])";
        assert_eq!(db.line(found), "7|1", "without {index}");
        db.run("ROLLBACK");
    }
    db.run("CREATE TABLE u (a corgipile.toc UNIQUE); INSERT INTO u SELECT DISTINCT a FROM m");
    db.fails_with("INSERT INTO u SELECT a FROM m LIMIT 1", "23505");
    db.run(
        "CREATE TABLE p (a corgipile.toc) PARTITION BY HASH (a);
         CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
         CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
         INSERT INTO p SELECT a FROM m",
    );
    assert_eq!(db.line("SELECT count(*) FROM (SELECT DISTINCT tableoid, a FROM p) x"), "7", "equal ones are together");
    assert_eq!(
        db.line("SELECT bool_and(corgipile.toc_hash_extended(a, 0)::bit(32) = corgipile.toc_hash(a)::bit(32)) FROM m"),
        "t"
    );
}
