//! Values of type corgipile.toc, and what cannot be one.

use super::{Case, check, database};

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "TocError::MalformedToc",
        "SELECT 'toc 1x1: 2:1'::corgipile.toc",
        "22P02",
        "malformed value of type corgipile.toc: malformed compressed mini-batch: a column is not there",
        "Create such values with corgipile_compress() or corgipile_toc().",
    ),
    Case(
        "TocError::NotAMatrix",
        "SELECT corgipile_toc('{{1},{NULL}}'::float8[])",
        "2202E",
        "element 2 is NULL in an array for a vector or a matrix",
        "A vector has one dimension, a matrix two, and neither has NULLs.",
    ),
    Case(
        "TocError::NotAMatrix",
        "SELECT corgipile_toc('{{{1}}}'::float8[])",
        "2202E",
        "3 dimensions in an array for a vector or a matrix",
        "A vector has one dimension, a matrix two, and neither has NULLs.",
    ),
    Case(
        "TocError::NotAMatrix",
        "SELECT corgipile_toc(ARRAY[[1, 2]]::float8[]) * '{{{1}}}'::float8[]",
        "2202E",
        "3 dimensions in an array for a vector or a matrix",
        "A vector has one dimension, a matrix two, and neither has NULLs.",
    ),
    Case(
        "TocError::NoElement",
        "SELECT corgipile_toc_element(corgipile_toc(ARRAY[[1, 2]]::float8[]), 2, 1)",
        "2202E",
        "element (2, 1) is not in a matrix of 1 rows and 2 columns",
        "Rows and columns count from 1.",
    ),
    Case(
        "TocError::Product",
        "SELECT corgipile_toc(ARRAY[[1, 2]]::float8[]) * ARRAY[1, 2, 3]::float8[]",
        "2202E",
        "a matrix of 1 rows and 2 columns cannot be multiplied with 3 numbers",
        "A * v takes a number for each column, v * A a number for each row.",
    ),
    Case(
        "TocError::Shapes",
        "SELECT corgipile_toc(ARRAY[[1, 2]]) + ARRAY[[1], [2]]::float8[]",
        "2202E",
        "a matrix of 1 rows and 2 columns and one of 2 rows and 1 columns do not have the same shape",
        "Use two matrices of the same numbers of rows and columns.",
    ),
    Case(
        "TocError::Shapes",
        "SELECT corgipile_toc(ARRAY[[1, 2]]) - corgipile_toc(ARRAY[[1, 2, 3]])",
        "2202E",
        "a matrix of 1 rows and 2 columns and one of 1 rows and 3 columns do not have the same shape",
        "Use two matrices of the same numbers of rows and columns.",
    ),
    Case(
        "TocError::TooManyElements",
        "SELECT corgipile_toc_decompress('csr 1x2000000000: 1:1'::corgipile.toc)",
        "54000",
        "an array of 2000000000 elements is too large",
        "Take fewer rows at a time.",
    ),
    Case(
        "TocError::NotCompressible",
        "SELECT 'toc 1x2147483647:'::corgipile.toc + 1::float8",
        "54000",
        "a mini-batch cannot be compressed: a mini-batch of 1 rows and 2147483647 columns with 2147483647 entries is too large",
        "Lower batch_rows.",
    ),
    Case(
        "TocError::NotCompressible",
        "SELECT corgipile_toc(array_fill(1.5::float8, ARRAY[5000, 4000]), 'den')",
        "54000",
        "a mini-batch cannot be compressed: it has 20000000 numbers, more than 16777216",
        "Lower batch_rows.",
    ),
    Case(
        "TocError::LabelArray",
        "SELECT corgipile_compress('SELECT ARRAY[label] AS label, a FROM t', 'c')",
        "42804",
        "the label has type integer[], which has no array type",
        "Cast the label to a type that has arrays, in a query as source.",
    ),
    Case(
        "TocError::DamagedToc",
        r#"CREATE CAST (bytea AS corgipile.toc) WITHOUT FUNCTION; SELECT corgipile_toc_decompress('\x0102'::bytea::corgipile.toc)"#,
        "XX001",
        "a value of type corgipile.toc is damaged: malformed compressed mini-batch: it is shorter than its header",
        "Create the value again from its rows.",
    ),
    Case(
        "TocError::NotCompressible",
        "SELECT corgipile_compress('SELECT i % 2 AS label, ARRAY[1 + i, 1000000] AS k, ARRAY[1, 2]::real[] AS v FROM generate_series(1, 500) i', 'c', features => '{k,v}', encoding => 'den')",
        "54000",
        "a mini-batch cannot be compressed: it has 250000000 numbers, more than 16777216",
        "Lower batch_rows.",
    ),
];

const SETUP: &[&str] = &["SELECT corgipile_compress('t', 'packed', features => '{a,b}')"];

#[test]
fn errors_of_compressed_values_say_what_is_wrong_with_them() {
    check(&mut database(SETUP), CASES, &[]);
}
