//! Tests that only a backend can run.
