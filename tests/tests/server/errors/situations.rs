//! Errors that take more than a statement: other sessions, a file that is gone, bytes that are no value.

use corgipile_tests::stored::SPARSE;
use corgipile_tests::{Cluster, Database};

/// The errors, and the tests here and elsewhere that provoke them.
pub const TESTS: &[(&str, &str)] = &[
    ("Error::Encoding", "encodings::a_database_with_another_encoding_is_refused"),
    ("Error::NotUtf8", "encodings::a_text_that_is_not_utf8_is_refused"),
    ("ModelError::LaterModel", "situations::a_model_that_the_transaction_cannot_see_is_told_from_none"),
    ("ModelError::ModelTooLarge", "situations::a_model_that_no_jsonb_holds_is_not_exported"),
    ("ModelError::NoModelTable", "situations::who_waits_for_the_end_of_the_extension_is_told"),
    ("ModelError::TooLargeForOnnx", "export_onnx::a_model_that_no_graph_holds_is_not_exported"),
    ("ModelError::VersionConflict", "situations::a_version_that_the_transaction_cannot_see_is_not_stored_again"),
    ("NodeError::Differ", "nodes::servers_that_are_not_alike_are_told_of"),
    ("Error::NoDblink", "nodes::servers_that_are_not_alike_are_told_of"),
    ("NodeError::NoExtension", "nodes::servers_that_are_not_alike_are_told_of"),
    ("AggregateError::Distributed", "nodes_shards::what_shards_cannot_be_asked_for_is_told"),
    ("Error::NoMapping", "nodes::who_trains_has_the_rights_of_the_mappings_and_no_others"),
    ("Error::NoUsage", "nodes::who_trains_has_the_rights_of_the_mappings_and_no_others"),
    ("Error::NoPassword", "nodes_together::a_mapping_that_needs_no_password_is_told_of"),
    ("NodeError::Nonsense", "nodes::servers_that_are_not_alike_are_told_of"),
    ("NodeError::NonsenseAsked", "nodes::what_trainings_call_on_other_servers_is_of_no_use_alone"),
    ("NodeError::NotGranted", "nodes::who_trains_has_the_rights_of_the_mappings_and_no_others"),
    ("NodeError::OtherEncoding", "nodes::servers_that_are_not_alike_are_told_of"),
    ("NodeError::OtherType", "nodes::servers_that_are_not_alike_are_told_of"),
    ("NodeError::OtherVersion", "nodes::servers_that_are_not_alike_are_told_of"),
    ("NodeError::OutOfTurn", "nodes::what_trainings_call_on_other_servers_is_of_no_use_alone"),
    ("NodeError::Unfit", "nodes::rows_that_cannot_be_trained_on_there_come_here_or_are_an_error"),
    ("Error::OutOfMemory", "resources::memory_that_the_system_refuses_is_an_error_that_says_what_takes_less"),
    ("Error::OtherBuild", "backend::the_tests_inside_the_backend_pass"),
    ("Error::TemporaryFile", "situations::a_temporary_file_that_cannot_be_written_is_an_error"),
    ("Error::DamagedPage", "damaged::a_line_pointer_that_points_out_of_its_page_is_an_error_that_names_the_page"),
    ("Error::Dropped", "situations::a_table_that_is_dropped_meanwhile_is_named"),
    ("Error::DroppedRowType", "situations::a_table_that_is_dropped_meanwhile_is_named"),
    ("Error::File", "situations::a_file_that_cannot_be_read_is_named"),
    ("Error::OtherTemporary", "situations::temporary_tables_of_others_are_not_measured"),
    ("Error::TableReplaced", "situations::a_table_that_was_given_a_rule_when_it_was_made_is_not_filled"),
    ("TocError::MalformedTocBytes", "situations::bytes_that_are_no_compressed_value_are_refused"),
];

/// The errors that no test provokes, and why.
pub const OUT_OF_REACH: &[(&str, &str)] = &[
    (
        "Error::SourceChanged",
        "a race between two look-ups of one name; faults/traffic.rs draws it and allows its SQLSTATE",
    ),
    ("SourceError::TooManyPages", "tables of 32 TB"),
    (
        "TrainingError::WorkerLost",
        "a worker that ends without a word was killed, and PostgreSQL then ends all sessions",
    ),
];

#[test]
fn a_model_that_the_transaction_cannot_see_is_told_from_none() {
    let mut db = Database::with_small_table(100);
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    other.models();
    let id = db.train("'t', max_epochs => 1, name => 'm'")[0].model_id;
    let hint = "Another transaction stored it after this statement began or, with REPEATABLE READ or SERIALIZABLE, \
                after this transaction began. Run it again.";
    for (model, named) in [(id.to_string(), id.to_string()), ("'m'".to_owned(), "\"m\"".to_owned())] {
        let failure =
            other.fails_with(&format!("SAVEPOINT s; SELECT corgipile_predict({model}, ARRAY[1, 2, 3])"), "42704");
        failure.is("42704", &format!("model {named} does not exist"), hint);
        other.run("ROLLBACK TO s");
    }
}

#[test]
fn a_version_that_the_transaction_cannot_see_is_not_stored_again() {
    let mut db = Database::with_small_table(100);
    let mut other = db.session();
    other.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    other.models();
    db.train("'t', max_epochs => 1, name => 'm'");
    let message = "could not store a version of model \"m\": another transaction has just stored one";
    let failure = other.fails_with("SELECT corgipile_train('t', max_epochs => 1, name => 'm')", "40001");
    failure.is("40001", message, "Train again in a new transaction.");
}

#[test]
fn a_model_that_no_jsonb_holds_is_not_exported() {
    let mut db = Database::new();
    let id = SPARSE.store(&mut db, "large");
    db.run("UPDATE corgipile.stored_models SET weights = array_fill(1::real, ARRAY[50400000])");
    db.fails_with(&format!("SELECT corgipile_export({id})"), "54000").is(
        "54000",
        "the model's numbers are 268800000 bytes of JSON, more than type jsonb can hold",
        "The limit is 256 MB; copy the model to another server with pg_dump or COPY.",
    );
}

#[test]
fn who_waits_for_the_end_of_the_extension_is_told() {
    let mut db = Database::with_small_table(100);
    let id = db.train("'t', max_epochs => 1")[0].model_id;
    db.run("BEGIN; DROP EXTENSION corgipile");
    let waiting = db.session().in_background(&format!("SELECT corgipile_predict({id}, ARRAY[1, 2, 3])"));
    db.wait_for_waiters(1);
    db.run("COMMIT");
    let failure = waiting.join().1.expect_err("the table of models is gone");
    let hint = "Extension corgipile was dropped in the meantime, or its table was renamed.";
    failure.is("42P01", "relation corgipile.stored_models does not exist", hint);
}

#[test]
fn a_table_that_is_dropped_meanwhile_is_named() {
    let mut db = Database::with_small_table(100);
    let mut other = db.session();
    other.run(
        "SET plan_cache_mode = force_generic_plan; PREPARE shuffled AS SELECT count(*) FROM corgipile_shuffle(NULL::t);
         EXECUTE shuffled",
    );
    db.run("BEGIN; DROP TABLE t");
    let waiting = other.in_background("EXECUTE shuffled");
    db.wait_for_waiters(1);
    db.run("COMMIT");
    let (mut other, result) = waiting.join();
    let failure = result.expect_err("the table is gone");
    failure.is("42P01", "relation \"t\" does not exist", "It was dropped while the statement waited for it.");
    let hint = "It was dropped: prepare the statement again, or run DISCARD PLANS.";
    let message = "the table that corgipile_shuffle() reads does not exist";
    other.fails_with("EXECUTE shuffled", "42P01").is("42P01", message, hint);
}

#[test]
fn temporary_tables_of_others_are_not_measured() {
    let mut db = Database::new();
    let mut other = db.session();
    other.run("CREATE TEMP TABLE secret AS SELECT i AS id FROM generate_series(1, 10000) i");
    let schema = other.line("SELECT pg_my_temp_schema()::regnamespace");
    let failure = db.fails_with(&format!("SELECT * FROM corgipile_io_profile('{schema}.secret')"), "0A000");
    failure.is(
        "0A000",
        "\"secret\" is a temporary table of another session",
        "Only the session that created it can read it.",
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    // of its own: no other test's checkpoint misses the file, and no DROP DATABASE closes it
    let cluster = Cluster::new(&[]);
    let mut db = cluster.session();
    db.run("CREATE TABLE t AS SELECT i % 2 AS y, i::real AS x FROM generate_series(1, 10000) i");
    // the session has the file open, and looks for it by its name to measure it
    let name = db.line("SELECT pg_relation_filepath('t')");
    let file = cluster.data().join(&name);
    let away = file.with_extension("away");
    assert_eq!(db.line("SELECT count(*) FROM t"), "10000");
    std::fs::rename(&file, &away).expect("it is there");
    let failure = db.attempt("SELECT * FROM corgipile_io_profile('t')").expect_err("the file is away");
    std::fs::rename(&away, &file).expect("it is there");
    failure.is("58030", &format!("could not read file \"{name}\": No such file or directory (os error 2)"), "");
    assert_ne!(db.line("SELECT count(*) FROM corgipile_io_profile('t')"), "0");
}

#[test]
fn a_table_that_was_given_a_rule_when_it_was_made_is_not_filled() {
    let mut db = Database::with_small_table(100);
    db.run(
        "CREATE FUNCTION on_create() RETURNS event_trigger LANGUAGE plpgsql AS $$
         BEGIN CREATE RULE nothing AS ON INSERT TO public.packed DO INSTEAD NOTHING; END $$;
         CREATE EVENT TRIGGER on_create ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION on_create()",
    );
    db.fails_with("SELECT corgipile_compress('t', 'packed')", "40001").is(
        "40001",
        "table public.packed was replaced, or got a rule, while it was created",
        "Call it again. If the error persists, look for an event trigger on CREATE TABLE.",
    );
}

#[test]
fn a_temporary_file_that_cannot_be_written_is_an_error() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t AS SELECT i % 2 AS label, array_fill(i::real, ARRAY[400]) AS x FROM generate_series(1, 3000) i",
    );
    // A server whose process cannot write its log restarts: nothing is left to be written when the limit comes.
    db.run("VACUUM FREEZE t");
    db.run("CHECKPOINT");
    db.run("SET corgipile.cache_memory = 0");
    db.run("COPY (SELECT) TO PROGRAM 'cat > /dev/null; prlimit --pid $PPID --fsize=100000'");
    let train = "SELECT corgipile_train('t', max_epochs => 2, buffer_size => '10%', options => '{\"cache\": \"on\"}')";
    db.rejects(train, "53100").is(
        "53100",
        "could not write to temporary file: No space left on device (os error 28)",
        "Temporary files are stored in the tablespaces of temp_tablespaces: check that they have free space.",
    );
}

#[test]
fn bytes_that_are_no_compressed_value_are_refused() {
    let mut db = Database::new();
    db.run("CREATE TABLE received (value corgipile.toc)");
    let result = db.attempt_copy_in_binary("COPY received FROM STDIN WITH (FORMAT binary)", b"nothing");
    result.expect_err("they are no value").is(
        "22P03",
        "invalid bytes for type corgipile.toc: ...",
        "Create such values with corgipile_compress() or corgipile_toc().",
    );
}
