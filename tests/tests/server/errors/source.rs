//! What is wrong with the source itself: its text, its relation, its columns.

use super::{Case, check, database};

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "Error::NotOneSelect",
        "SELECT corgipile_train('SELECT 1; SELECT 2')",
        "42601",
        "source must be a table or exactly one SELECT",
        "Give the name of a table or view, or one SELECT, VALUES or WITH query.",
    ),
    Case(
        "Error::NotAName",
        "SELECT corgipile_train('drop t')",
        "42602",
        r#"source "drop t" is neither the name of a table nor a query"#,
        "A query begins with SELECT, WITH, VALUES, TABLE or (; a name with blanks or capitals is quoted: '\"My Table\"'.",
    ),
    Case(
        "Error::UnknownTable",
        "SELECT corgipile_train('public.arays')",
        "42P01",
        r#"relation "public.arays" does not exist"#,
        "Did you mean 'arrays'? A table that is not in the search path needs its schema; a name with blanks or capitals is quoted: \
         '\"My Table\"'.",
    ),
    Case(
        "Error::NotReadOnly",
        "SELECT corgipile_train('SELECT * FROM t FOR UPDATE')",
        "0A000",
        "source must not modify data or lock rows",
        "Change rows in a separate statement before, and leave out FOR UPDATE and similar clauses.",
    ),
    Case(
        "SourceError::UndefinedColumn",
        "SELECT corgipile_train('t', label => 'answer')",
        "42703",
        r#"column "answer" does not exist in the source"#,
        "The source has the columns id, label, a, b, c.",
    ),
    Case(
        "SourceError::AmbiguousColumn",
        "SELECT corgipile_train('SELECT label, a, a FROM t', features => '{a}')",
        "42702",
        r#"column "a" is ambiguous in the source"#,
        "Give the columns of the source query different names.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_train('SELECT now() AS label, a FROM t', 'linear')",
        "42804",
        r#"label column "label" has type timestamp with time zone"#,
        "The model predicts a number: its label must be a column of numbers or booleans. For classes, use model => 'logistic', 'softmax' or 'mlp'.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_train('SELECT label, a, now() AS x FROM t', features => '{a,x}', options => '{\"date_parts\": false}')",
        "42804",
        r#"feature column "x" has type timestamp with time zone"#,
        "Use parts of the date as features: options => '{\"date_parts\": true}', or name them, such as '{created.month,created.dow}'.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_train('SELECT label, a, current_time AS x FROM t', features => '{a,x}')",
        "42804",
        r#"feature column "x" has type time with time zone"#,
        "Select EXTRACT(hour FROM x) in a query as source.",
    ),
    Case(
        "SourceError::ColumnType",
        "CREATE DOMAIN place AS point; SELECT corgipile_train('SELECT label, a, point(a, b)::place AS x FROM t', features => '{a,x}')",
        "42804",
        r#"feature column "x" has type place"#,
        "Select (x)[0] and (x)[1] in a query as source.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_train('SELECT point(1, 2) AS label, a FROM t')",
        "42804",
        r#"label column "label" has type point"#,
        "A label must be an integer, a number, a boolean, text or an enum.",
    ),
    Case(
        "SourceError::ColumnType",
        r#"SELECT corgipile_train('SELECT label, a, ''x''::text AS w FROM t', features => '{a}', options => '{"weight": "w"}')"#,
        "42804",
        r#"weight column "w" has type text"#,
        "A weight must be a number.",
    ),
    Case(
        "SourceError::ColumnType",
        r#"SELECT corgipile_train('SELECT label, a, ''x''::text AS held FROM t', features => '{a}', options => '{"validation_column": "held"}')"#,
        "42804",
        r#"validation column "held" has type text"#,
        "A validation column must be boolean: true for rows to hold out.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_train('SELECT label, a, point(1, 2) AS g FROM t', features => '{a}', group_by => 'g')",
        "42804",
        r#"group column "g" has type point"#,
        "Groups must be integers, numbers, booleans, text or an enum.",
    ),
    Case(
        "Error::NoRelation",
        "SELECT corgipile_io_profile(1::oid::regclass)",
        "42P01",
        "there is no relation with OID 1",
        "It may have been dropped in the meantime.",
    ),
    Case(
        "Error::NoFiles",
        "SELECT corgipile_io_profile('parent')",
        "42809",
        r#""parent" has no pages of its own"#,
        "Measure one of its partitions.",
    ),
    Case(
        "Error::NoFiles",
        "SELECT corgipile_io_profile('v')",
        "42809",
        r#""v" has no pages of its own"#,
        "Use a table, a materialized view or a TOAST table.",
    ),
    Case(
        "SourceError::TooFewPages",
        "SELECT corgipile_io_profile('plain')",
        "55000",
        "the table has 1 pages, too few to measure how fast blocks are read",
        "At least 16 pages are needed.",
    ),
    Case(
        "SourceError::NoFeatures",
        "SELECT corgipile_train('SELECT label FROM t')",
        "42703",
        "the source has no features",
        "Features can be any number of columns of numbers, booleans, text, enums, arrays of numbers or of text, pgvector's vectors, tsvector or bytes; or an array of indices and one of values.",
    ),
    Case(
        "SourceError::NoFeatures",
        "SELECT corgipile_train('SELECT id, label, now() AS since FROM t', options => '{\"date_parts\": false}')",
        "42703",
        "the source has no features",
        "These columns are left out: id (primary key), since (timestamp with time zone: use date_parts for its parts). Features can be any number of columns of numbers, booleans, text, enums, arrays of numbers or of text, pgvector's vectors, tsvector or bytes; or an array of indices and one of values.",
    ),
    Case(
        "SourceError::NoFeatures",
        "SELECT corgipile_train('arrays')",
        "42703",
        "the source has no features",
        "Name one of the array columns x, y in features.",
    ),
    Case(
        "SourceError::NoFeatures",
        "SELECT corgipile_train('SELECT ARRAY[0,1] AS label, ''csr 2x0:;''::corgipile.toc AS x')",
        "42703",
        "the source has no features",
        "The compressed mini-batches have no columns.",
    ),
];

const SETUP: &[&str] = &[
    "CREATE TABLE parent (id int) PARTITION BY RANGE (id)",
    "CREATE TABLE arrays AS SELECT label, ARRAY[a] AS x, ARRAY[b] AS y FROM t",
    "CREATE TABLE plain AS SELECT 1 AS x",
    "CREATE VIEW v AS SELECT 1 AS x",
];

#[test]
fn errors_of_sources_name_their_columns_and_tables() {
    check(&mut database(SETUP), CASES, &[]);
}
