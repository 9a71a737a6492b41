//! Generated tables. Their values are functions of the row's number alone, so that every run sees the same.

use crate::Session;

/// Created in the template database.
///
/// `uniform(i, k)`: the k-th pseudo-random number of row i in [0, 1).
/// `normal(i, k)`: one that is nearly normal, with mean 0 and deviation 1.
pub(crate) const FUNCTIONS: &str = "
    CREATE FUNCTION uniform(i bigint, k int) RETURNS float8 IMMUTABLE PARALLEL SAFE LANGUAGE sql
        AS 'SELECT (hashint8extended(i, k) & 1048575) / 1048576.0::float8';
    CREATE FUNCTION normal(i bigint, k int) RETURNS float8 IMMUTABLE PARALLEL SAFE LANGUAGE sql
        AS 'SELECT sqrt(3::float8)
                   * (uniform(i, 4*k) + uniform(i, 4*k+1) + uniform(i, 4*k+2) + uniform(i, 4*k+3) - 2)';";

/// Creates a table (id, label, features_v real[5]) of `rows` rows, physically sorted by label: first all of class 0,
/// then as many of class 1. It is inserted into, because CREATE TABLE AS leaves empty pages behind the last since
/// PostgreSQL 16. The classes' means differ, as do the features' means from 0, so that order matters.
pub fn clustered(session: &mut Session, table: &str, rows: u32) {
    session.run(&format!(
        "CREATE TABLE {table} (id int, label int, features_v real[]);
         INSERT INTO {table}
         SELECT i, label,
                ARRAY[1 + shift + normal(i, 1), 2 - shift + normal(i, 2), shift + normal(i, 3),
                      normal(i, 4), 1 + normal(i, 5)]::real[] AS features_v
         FROM (SELECT i, (i > {rows} / 2)::int AS label, CASE WHEN i > {rows} / 2 THEN 0.6 ELSE -0.6 END AS shift
               FROM generate_series(1, {rows}::bigint) i) r;
         ANALYZE {table};"
    ));
}

/// Creates a copy of a table whose rows lie in random order: what a full shuffle costs and gives.
pub fn shuffled_copy(session: &mut Session, table: &str, copy: &str) {
    session.run(&format!(
        "CREATE TABLE {copy} AS SELECT * FROM {table} ORDER BY hashint8extended(id, 1234); ANALYZE {copy};"
    ));
}

/// Creates a table (id int primary key, label int, a real, b real, c real) of `rows` rows in mixed order of labels.
pub fn small(session: &mut Session, table: &str, rows: u32) {
    session.run(&format!(
        "CREATE TABLE {table} (id int PRIMARY KEY, label int, a real, b real, c real);
         INSERT INTO {table} SELECT i, y, y + normal(i, 1), 1 - y + normal(i, 2), 3 * normal(i, 3)
         FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, {rows}::bigint) i) r;
         ANALYZE {table};"
    ));
}
