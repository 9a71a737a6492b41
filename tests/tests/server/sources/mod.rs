//! What can be trained on: relations, queries, and columns of every type.

/// Runs tests with types of the same layouts that are made here, and with pgvector's own where the server has it.
macro_rules! with_both {
    ($($test:ident)+) => {
        mod made_here {
            use corgipile_tests::Database;

            $(#[test] fn $test() { super::$test(Database::with_vectors_made_here()) })+
        }

        mod pgvector {
            use corgipile_tests::Database;

            $(#[test] fn $test() {
                if let Some(db) = Database::with_pgvector($test) {
                    super::$test(db)
                }
            })+
        }
    };
}

mod auditing;
mod categories;
mod columns;
mod date_parts;
mod default_features;
mod extremes;
mod features;
mod hashing;
mod json_keys;
mod labels;
mod mixed_vectors;
mod nulls;
mod other_extensions;
mod other_types;
mod partitions;
mod relations;
mod sparse;
mod transforms;
mod vector_faults;
mod vectors;
mod words;
mod written;
