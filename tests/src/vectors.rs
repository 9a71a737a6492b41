//! pgvector's types: its own where the server has them, and everywhere types of the same layouts, made byte by byte.
//!
//! The latter belong to an extension called `vector` that is in the catalogs only. Their text is that of bytea.

use crate::{Database, skip};

/// `vec(real[])`, `half(real[])` and `sparse(real[])` make values of the types, of numbers that a half has exactly.
const OF_PGVECTOR: &str = "
    CREATE FUNCTION vec(real[]) RETURNS vector IMMUTABLE LANGUAGE sql AS 'SELECT $1::vector';
    CREATE FUNCTION half(real[]) RETURNS halfvec IMMUTABLE LANGUAGE sql AS 'SELECT $1::halfvec';
    CREATE FUNCTION sparse(real[]) RETURNS sparsevec IMMUTABLE LANGUAGE sql AS 'SELECT $1::sparsevec';";

/// The same, by the layouts that pgvector documents with its source.
const MADE_HERE: &str = "
    CREATE FUNCTION little(big bytea) RETURNS bytea IMMUTABLE LANGUAGE sql
        AS $$ SELECT string_agg(substr($1, i, 1), ''::bytea ORDER BY i DESC) FROM generate_series(1, length($1)) i $$;
    CREATE FUNCTION bits_of_half(x real) RETURNS bytea IMMUTABLE LANGUAGE plpgsql AS $$
        DECLARE
            mantissa float8 := abs(x);
            exponent int := 15;
        BEGIN
            IF x = 0 THEN RETURN '\\x0000'; END IF;
            WHILE mantissa >= 2 LOOP mantissa := mantissa / 2; exponent := exponent + 1; END LOOP;
            WHILE mantissa < 1 LOOP mantissa := mantissa * 2; exponent := exponent - 1; END LOOP;
            RETURN little(substr(int4send(((x < 0)::int << 15) | (exponent << 10) | ((mantissa - 1) * 1024)::int), 3));
        END $$;
    CREATE FUNCTION vec(x real[]) RETURNS vector IMMUTABLE LANGUAGE sql
        AS $$ SELECT (little(int2send(cardinality(x)::int2)) || '\\x0000' || string_agg(little(float4send(v)), ''::bytea ORDER BY i))::vector
                FROM unnest(x) WITH ORDINALITY u(v, i) $$;
    CREATE FUNCTION half(x real[]) RETURNS halfvec IMMUTABLE LANGUAGE sql
        AS $$ SELECT (little(int2send(cardinality(x)::int2)) || '\\x0000' || string_agg(bits_of_half(v), ''::bytea ORDER BY i))::halfvec
                FROM unnest(x) WITH ORDINALITY u(v, i) $$;
    CREATE FUNCTION sparse(x real[]) RETURNS sparsevec IMMUTABLE LANGUAGE sql
        AS $$ SELECT (little(int4send(cardinality(x))) || little(int4send(count(*)::int)) || '\\x00000000'
                      || coalesce(string_agg(little(int4send(i::int - 1)), ''::bytea ORDER BY i), '')
                      || coalesce(string_agg(little(float4send(v)), ''::bytea ORDER BY i), ''))::sparsevec
                FROM unnest(x) WITH ORDINALITY u(v, i) WHERE v <> 0 $$;";

/// Statements that make the types of an extension `vector` that is in the catalogs only, and `vec`, `half`, `sparse`.
/// Bytes can be cast to the types.
pub fn made_here() -> String {
    let types = ["vector", "halfvec", "sparsevec"].map(|name| {
        format!(
            "CREATE TYPE {name};
             CREATE FUNCTION {name}_in(cstring) RETURNS {name} IMMUTABLE STRICT LANGUAGE internal AS 'byteain';
             CREATE FUNCTION {name}_out({name}) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'byteaout';
             CREATE TYPE {name} (INPUT = {name}_in, OUTPUT = {name}_out, STORAGE = external);
             CREATE CAST (bytea AS {name}) WITHOUT FUNCTION;
             INSERT INTO pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
             SELECT 'pg_type'::regclass, '{name}'::regtype, 0, 'pg_extension'::regclass, oid, 0, 'e'
               FROM pg_extension WHERE extname = 'vector';"
        )
    });
    format!(
        "SET client_min_messages = error;
         SET allow_system_table_mods = on;
         INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
         VALUES (4000000001, 'vector', 10, 'public'::regnamespace, true, '0.8.0');
         {}
         RESET allow_system_table_mods;
         {MADE_HERE}
         RESET client_min_messages;",
        types.concat()
    )
}

impl Database {
    /// A database with the types made here.
    pub fn with_vectors_made_here() -> Database {
        let mut db = Database::new();
        db.run(&made_here());
        db
    }

    /// A database with pgvector; None, and the test is skipped, where the server has it not. Bytes can be cast to its
    /// types.
    pub fn with_pgvector<T>(test: T) -> Option<Database> {
        let mut db = Database::new();
        if !db.offers_extension("vector") {
            skip(test, "the server has no extension vector (pgvector)");
            return None;
        }
        db.run("CREATE EXTENSION vector");
        for name in ["vector", "halfvec", "sparsevec"] {
            db.run(&format!("CREATE CAST (bytea AS {name}) WITHOUT FUNCTION"));
        }
        db.run(OF_PGVECTOR);
        Some(db)
    }

    /// Can an extension of this name be created?
    pub fn offers_extension(&mut self, name: &str) -> bool {
        self.value(&format!("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = '{name}')"))
    }
}
