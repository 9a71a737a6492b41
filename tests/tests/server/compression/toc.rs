//! Type corgipile.toc: its products, its bits, and bytes that are no value of it.

use corgipile_tests::{Database, Failure, Session, assert_close};

/// The running example of the TOC paper (its Figure 3).
const PAPER: &str = "ARRAY[[1.1,2,3,1.4],[1.1,2,3,0],[0,1.1,3,1.4],[1.1,2,0,0]]";

const ENCODINGS: [&str; 7] = ["den", "csr", "cvi", "dvi", "toc", "gzip", "snappy"];

#[test]
fn products_of_the_papers_example_are_as_computed_by_hand() {
    let mut db = Database::new();
    for encoding in ENCODINGS {
        db.run(&format!("CREATE TABLE m_{encoding} AS SELECT corgipile_toc({PAPER}, '{encoding}') AS a"));
        let mut vector = |sql: &str| -> Vec<f64> { db.value(&format!("SELECT {sql} FROM m_{encoding}")) };
        let close = |given: Vec<f64>, expected: &[f64]| assert_close(&given, expected, 1e-12);
        close(vector("a * ARRAY[1,2,3,4]::float8[]"), &[19.7, 14.1, 16.8, 5.1]);
        close(vector("ARRAY[1,2,3,4]::float8[] * a"), &[7.7, 17.3, 18.0, 5.6]);
        let flat = |sql: &str| format!("(SELECT array_agg(e ORDER BY i) FROM unnest({sql}) WITH ORDINALITY u(e, i))");
        close(
            vector(&flat("a * ARRAY[[0,1],[2,3],[4,5],[6,7]]::float8[]")),
            &[24.4, 31.9, 16.0, 22.1, 22.6, 28.1, 4.0, 7.1],
        );
        close(
            vector(&flat("ARRAY[[0,1,2,3],[4,5,6,7]]::float8[] * a")),
            &[4.4, 10.2, 9.0, 2.8, 17.6, 38.6, 45.0, 14.0],
        );
        let said = "corgipile_toc_rows(a) || ' ' || corgipile_toc_columns(a) || ' ' || corgipile_toc_encoding(a)
                    || ' ' || corgipile_toc_element(a, 3, 2) || ' ' || corgipile_toc_element(a, 4, 3)";
        assert_eq!(db.line(&format!("SELECT {said} FROM m_{encoding}")), format!("4 4 {encoding} 1.1 0"));
        let same = format!(
            "SELECT corgipile_toc_decompress(a) = {PAPER}::float8[], (corgipile_toc_decompress(a * 2))[1][3],
                    (corgipile_toc_decompress(a + 1))[4][3], (2 * a)::text = (a * 2)::text, (1 + a)::text = (a + 1)::text, a::text::corgipile.toc::text = a::text,
                    corgipile_toc_bytes(a) = octet_length(corgipile.toc_send(a)),
                    corgipile_toc_ratio(a) = 128 / corgipile_toc_bytes(a)::float8
               FROM m_{encoding}"
        );
        assert_eq!(db.line(&same), "t|6|1|t|t|t|t|t");
    }
}

#[test]
fn every_bit_of_a_value_comes_back() {
    let mut db = Database::new();
    let array = "ARRAY[['-0', 'NaN'], ['Infinity', '-Infinity'], [5e-324, 1.7976931348623157e308], [0.1, 0]]::float8[]";
    for encoding in ENCODINGS {
        let sql = format!(
            "SELECT corgipile_toc_decompress(a)::text = {array}::text, corgipile_toc_decompress(a::text::corgipile.toc)::text = {array}::text
               FROM corgipile_toc({array}, '{encoding}') a"
        );
        assert_eq!(db.line(&sql), "t|t", "{encoding}");
        // 0 times a factor that is negative or infinite is not 0
        let negative = format!(
            "SELECT (corgipile_toc_decompress(a * -1))[4][2]::text FROM corgipile_toc({array}, '{encoding}') a"
        );
        assert_eq!(db.line(&negative), "-0", "{encoding}");
        // nor is 0 times such a number in a vector
        let products = "SELECT a * '{0,Infinity}'::float8[], '{NaN,1}'::float8[] * a, a * '{{NaN},{2}}'::float8[]
                          FROM corgipile_toc(ARRAY[[1,0],[0,3]]::float8[], '{}') a";
        let products = products.replace("'{}')", &format!("'{encoding}')"));
        assert_eq!(db.line(&products), "{NaN,Infinity}|{NaN,NaN}|{{NaN},{NaN}}", "{encoding}");
    }
    assert_eq!(db.line("SELECT corgipile_toc('{}'::float8[])::text"), "den 0x1:");
    assert_eq!(db.line("SELECT 'csr 2x3: ; 3:7'::corgipile.toc::text"), "csr 2x3:; 3:7.0");
}

/// Each operation by element against the same operation of PostgreSQL on each element.
#[test]
fn operations_by_element_are_those_of_sql() {
    let mut db = Database::new();
    let array = "ARRAY[[1.1,0,-3,1.4],[0,0,2.5,0],[0.1,-0.25,4,7]]::float8[]";
    db.run(&format!(
        "SET jit = off; CREATE TABLE plain AS SELECT i, j, ({array})[i][j] AS x, (i * 10 - j * 3)::float8 / 4 AS y
                       FROM generate_series(1, 3) i, generate_series(1, 4) j"
    ));
    let m = "(SELECT array_agg(line ORDER BY i) FROM (SELECT i, array_agg(y ORDER BY j) AS line FROM plain GROUP BY i) AS lines)";
    for encoding in ENCODINGS {
        db.run(&format!(
            "DROP TABLE IF EXISTS m; CREATE TABLE m AS SELECT corgipile_toc({array}, '{encoding}') AS a, {m} AS b,
                                                          corgipile_toc({m}, 'csr') AS c"
        ));
        for (operation, expected) in [
            ("a * 2.5::float8", "x * 2.5"),
            ("0.3::float8 * a", "0.3 * x"),
            ("a + 0.1::float8", "x + 0.1"),
            ("0.1::float8 + a", "0.1 + x"),
            ("a - 0.1::float8", "x - 0.1"),
            ("0.1::float8 - a", "0.1 - x"),
            ("a / 3::float8", "x / 3"),
            ("3::float8 / (a + 9::float8)", "3 / (x + 9)"),
            ("a ^ 2::float8", "x ^ 2"),
            ("-a", "-x"),
            ("a + b", "x + y"),
            ("b + a", "y + x"),
            ("a - b", "x - y"),
            ("b - a", "y - x"),
            ("a + c", "x + y"),
            ("a - c", "x - y"),
            ("c - a", "y - x"),
            ("a - a", "x - x"),
            ("corgipile_toc_apply(a, 'abs')", "abs(x)"),
            ("corgipile_toc_apply(a, 'exp')", "exp(x)"),
            ("corgipile_toc_apply(a, 'tanh')", "tanh(x)"),
            ("corgipile_toc_apply(a, 'relu')", "CASE WHEN x > 0 THEN x ELSE 0 END"),
            ("corgipile_toc_apply(a, 'ROUND')", "round(x)"),
            ("corgipile_toc_apply(a ^ 2::float8, 'sqrt')", "sqrt(x ^ 2)"),
        ] {
            // as text, so that -0 and 0 differ
            let sql = format!(
                "SELECT string_agg((corgipile_toc_decompress({operation}))[i][j]::text, ' ' ORDER BY i, j),
                        string_agg(({expected})::text, ' ' ORDER BY i, j) FROM m, plain"
            );
            let row = &db.rows(&sql, &[])[0];
            let (found, expected): (String, String) = (row.get(0), row.get(1));
            assert_eq!(found, expected, "{encoding}: {operation}");
        }
    }
    // as IEEE 754 says, and not an error as in SQL
    assert_eq!(
        db.line("SELECT 1::float8 / corgipile_toc(ARRAY[[0, 2]]) = corgipile_toc('{{Infinity, 0.5}}'::float8[])"),
        "t"
    );
}

#[test]
fn a_malicious_value_is_refused() {
    let mut db = Database::new();
    for text in ["", "toc", "toc 1x1: 2:1", "toc 1x1", "zip 1x1: 1:1", "toc 2x2: 1:1; 2:x", "toc 1x1: 1:1; 1:1", "x"] {
        db.fails_with(&format!("SELECT '{text}'::corgipile.toc"), "22P02");
    }
    db.fails_with("SELECT 'toc 4000000000x4000000000: 1:1'::corgipile.toc", "22P02");
    db.fails_with("SELECT corgipile_toc_decompress('csr 1x2000000000: 1:1'::corgipile.toc)", "54000");
    db.run(
        "CREATE TABLE good AS SELECT corgipile.toc_send(corgipile_toc(ARRAY[[1,0,1,2],[1,0,1,3]], e)) AS bytes
              FROM unnest(ARRAY['den','csr','cvi','dvi','toc','gzip','snappy']) e",
    );
    // through COPY, in binary, as a client might send it: every byte changed, and every length
    for bytes in db.column::<Vec<u8>>("SELECT bytes FROM good") {
        let mut refused = 0;
        for i in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[i] ^= 0x55;
            refused += usize::from(receive(&mut db, &changed).is_err());
            assert!(receive(&mut db, &bytes[..i]).is_err(), "{i} bytes of {}", bytes.len());
        }
        assert_eq!(refused, bytes.len(), "the checksum is of all bytes");
        assert_eq!(receive(&mut db, &bytes).unwrap(), 2);
    }
}

/// Rows of a value that is received in binary.
fn receive(db: &mut Session, value: &[u8]) -> Result<i32, Failure> {
    db.run("CREATE TEMP TABLE IF NOT EXISTS received (v corgipile.toc); TRUNCATE received");
    let result = db.attempt_copy_in_binary("COPY received FROM STDIN WITH (FORMAT binary)", value);
    match result {
        Ok(()) => Ok(db.value("SELECT corgipile_toc_rows(v) FROM received")),
        Err(failure) => {
            failure.is("22P03", "invalid bytes for type corgipile.toc: ...", "Create such values with ...");
            Err(failure)
        }
    }
}
