//! What an ordinary user creates next to PostgreSQL's own objects, under their names, and who then runs it: no one.
//!
//! Mallory may create in schema public and owns schema mal. She makes functions, operators, types, casts and views that
//! are called like PostgreSQL's own, some with argument types that fit better, and each counts when it is used. A
//! sequence counts, because no rollback takes its numbers back.

use super::planting::{CALLS, INDIRECT, PUBLISHING, TRAININGS, Trojans};
use corgipile_tests::skip;

/// As [`TRAININGS`], of arguments that few need.
const MORE_TRAININGS: &[&str] = &[
    "SELECT public.corgipile_train('public.numbers', label => 'label', features => '{a,b}', max_epochs => 2)",
    "SELECT * FROM public.corgipile_train('SELECT label, a, b, part FROM public.numbers', features => '{a,b}', max_epochs => 2,
                                          group_by => 'part', name => 'parts')",
    "SELECT * FROM public.corgipile_train('public.numbers', features => '{a,b}', max_epochs => 2, name => 'grid',
                                          grid => '{\"learning_rate\": [0.1, 0.2]}', options => '{\"validation_fraction\": 0.2}')",
    "SELECT * FROM public.corgipile_train('public.numbers', 'mlp', features => '{a,b}', max_epochs => 2, name => 'network',
                                          options => '{\"hidden_layer_sizes\": [3]}')",
    "SELECT * FROM public.corgipile_train('public.numbers', warm_start => 'plain', max_epochs => 2, name => 'plain')",
    "SELECT * FROM public.corgipile_train('public.numbers', features => '{a,b}', max_epochs => 2, shuffle => 'shuffle_once')",
    "SELECT * FROM public.corgipile_train('public.numbers', features => '{a,b}', max_epochs => 2, prefetch => 'on')",
    "SELECT * FROM public.corgipile_train('public.numbers', features => '{a,b}', max_epochs => 2, workers => 2)",
    "SELECT * FROM public.corgipile_train('public.words', label => 'answer', features => '{a,kind}', max_epochs => 2, sample => 0.5,
                                          options => '{\"class_weight\": {\"no\": 2, \"yes\": 1}}')",
    "SELECT * FROM public.corgipile_train_uda('public.words', label => 'answer', features => '{a}', shuffle => 'shuffle_once',
                                              max_epochs => 2, options => '{\"standardize\": true}')",
    "SELECT * FROM public.corgipile_train_uda('public.numbers', 'linear', label => 'a', features => '{b,label}', max_epochs => 2)",
];

/// Mallory's things work: who does not look out uses them.
fn control(trojans: &mut Trojans) {
    trojans.keeps_off("SELECT 1");
    trojans.falls_for("SELECT 'a'::pg_catalog.text || 1::pg_catalog.int4", 1);
    trojans.falls_for("SELECT 'a'::pg_catalog.text || 1::pg_catalog.int4 FROM pg_catalog.generate_series(1, 202)", 202);
}

#[test]
fn installing_uses_nothing_that_others_made() {
    let mut trojans = Trojans::new();
    trojans.plant("public").assert_many();
    control(&mut trojans);
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    trojans.read_views();
    trojans.keeps_off("DROP EXTENSION corgipile");
    // Mallory owns the schema.
    trojans.plant("mal");
    trojans.keeps_off("SET search_path = mal, pg_catalog; CREATE EXTENSION corgipile; RESET search_path");
    trojans.read_views();
}

#[test]
fn a_hostile_search_path_changes_nothing_that_functions_and_views_call() {
    let mut trojans = Trojans::new();
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    trojans.db.run(
        "CREATE TABLE public.large AS
         SELECT i % 2 AS label, i AS x, repeat('x', 1000) AS filler FROM generate_series(1, 10000) i; CHECKPOINT",
    );
    trojans.plant("mal").assert_many();
    let functions = "SELECT DISTINCT p.proname FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_depend d ON d.objid = p.oid
                       JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND e.extname = 'corgipile'
                      WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'";
    let functions = trojans.db.lines(functions);
    let texts = [TRAININGS, MORE_TRAININGS, CALLS].concat();
    let called = |name: &String| texts.iter().any(|sql| sql.contains(&format!(".{name}(")));
    let left: Vec<_> = functions.iter().filter(|name| !INDIRECT.contains(&name.as_str()) && !called(name)).collect();
    assert!(functions.len() > 40 && left.is_empty(), "never called: {left:?}");
    trojans.db.run("SET search_path = mal, public, pg_catalog");
    for (sql, calls) in [
        ("SELECT 2 - 1", 1),
        ("SELECT now()", 1),
        ("SELECT 'a'::text", 1),
        ("SELECT FROM pg_database", 3),
        ("SELECT max(i) FROM pg_catalog.generate_series(1, 5) AS i", 5),
    ] {
        let _ = trojans.db.attempt(sql);
        let (seen, what) = trojans.calls();
        assert!(seen >= calls.min(3), "{sql}: {seen}, {what:?}");
    }
    let all = [TRAININGS, MORE_TRAININGS, CALLS].concat();
    let faults: Vec<String> = all.iter().filter_map(|sql| trojans.try_to_keep_off(sql).err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    println!("{} statements, {} functions", all.len(), functions.len());
}

#[test]
fn publishing_calls_nothing_that_others_made_here_or_there() {
    let mut trojans = Trojans::new();
    for extension in ["dblink", "postgres_fdw"] {
        if !trojans.db.offers_extension(extension) {
            let reason = format!("the server has no extension {extension}");
            return skip(publishing_calls_nothing_that_others_made_here_or_there, &reason);
        }
        trojans.keeps_off(&format!("CREATE EXTENSION {extension}"));
    }
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    let (socket, name): (String, _) =
        (trojans.db.value("SELECT current_setting('unix_socket_directories')"), trojans.db.name().to_owned());
    trojans.db.run(&format!(
        "CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{socket}', port '5432', dbname '{name}');
         CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user 'postgres')"
    ));
    trojans.plant("mal").assert_many();
    // that of the sessions that dblink opens, too
    trojans.db.run(&format!("ALTER DATABASE {name} SET search_path = mal, public, pg_catalog"));
    trojans.db.run("SET search_path = mal, public, pg_catalog");
    trojans.falls_for("SELECT 'a'::pg_catalog.text || 1::pg_catalog.int4", 1);
    for sql in PUBLISHING {
        trojans.keeps_off(sql);
    }
    assert_eq!(trojans.db.line("SELECT pg_catalog.count(*) FROM corgipile.models WHERE published"), "2");
}

#[test]
fn an_exported_expression_uses_nothing_that_others_made() {
    let mut trojans = Trojans::new();
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    let network = MORE_TRAININGS.iter().find(|sql| sql.contains("'network'")).expect("there is one");
    trojans.keeps_off(network);
    let expressions = [
        ("plain", "value", "numbers"),
        ("plain", "probabilities", "numbers"),
        ("array", "label", "arrays"),
        ("sparse", "probabilities", "sparse"),
        ("words", "label", "words"),
        ("colours", "probabilities", "words"),
        ("network", "probabilities", "numbers"),
    ]
    .map(|(model, answer, table)| {
        let export = format!("SELECT public.corgipile_export('{model}', 'sql', '{answer}', 'public.{table}')");
        format!("SELECT pg_catalog.count({}) FROM public.{table}", trojans.db.lines(&export).join("\n"))
    });
    // a schema of the default search path, in which others may create
    trojans.plant("public").assert_many();
    control(&mut trojans);
    for expression in expressions {
        trojans.keeps_off(&expression);
    }
}

#[test]
fn an_aggregate_of_somebody_else_does_not_take_the_place_of_ours() {
    let mut trojans = Trojans::new();
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    // what fits better than anyarray
    trojans.as_mallory().run(
        "CREATE FUNCTION mal.step(corgipile.sgd_state, corgipile.sgd_state, float8, float8[]) RETURNS corgipile.sgd_state
           LANGUAGE plpgsql AS 'BEGIN PERFORM mal.spy(''step''); RETURN $2; END';
         CREATE AGGREGATE public.corgipile_sgd_agg(corgipile.sgd_state, float8, float8[])
           (SFUNC = mal.step, STYPE = corgipile.sgd_state);
         CREATE FUNCTION mal.step(corgipile.sgd_state, corgipile.sgd_state, float8, int[], real[]) RETURNS corgipile.sgd_state
           LANGUAGE plpgsql AS 'BEGIN PERFORM mal.spy(''step''); RETURN $2; END';
         CREATE AGGREGATE public.corgipile_sgd_agg(corgipile.sgd_state, float8, int[], real[])
           (SFUNC = mal.step, STYPE = corgipile.sgd_state)",
    );
    trojans.falls_for(
        "SELECT public.corgipile_sgd_agg(public.corgipile_sgd_init('svm', 12, sparse => true), 1, features_k, features_v)
           FROM public.sparse",
        300,
    );
    for sql in TRAININGS {
        trojans.keeps_off(sql);
    }
}

#[test]
fn compress_writes_into_the_table_that_it_made() {
    let mut trojans = Trojans::new();
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    // Of the same name in a schema that is searched first, but is not where CREATE TABLE makes it.
    let mut session = trojans.db.session();
    session.run("CREATE TEMPORARY TABLE rc (label int[], x corgipile.toc)");
    session.run("SELECT corgipile_compress('arrays', 'rc', features => '{x}', batch_rows => 20)");
    assert_eq!(session.line("SELECT (SELECT count(*) FROM public.rc), (SELECT count(*) FROM pg_temp.rc)"), "15|0");
    session.run("SELECT corgipile_compress('arrays', 'pg_temp.rc2', features => '{x}', batch_rows => 20)");
    session.run("SELECT corgipile_compress('arrays', '\"A \"\"b\"', features => '{x}', batch_rows => 20)");
    assert_eq!(
        session.line("SELECT (SELECT count(*) FROM pg_temp.rc2), (SELECT count(*) FROM public.\"A \"\"b\")"),
        "15|15"
    );
    session.run("SET search_path = pg_temp, public");
    session.run("SELECT corgipile_compress('arrays', 'rc3', features => '{x}')");
    assert_eq!(session.line("SELECT count(*) FROM pg_temp.rc3"), "2");
    session.run("SET search_path = nowhere");
    session.fails_with("SELECT public.corgipile_compress('public.arrays', 'rc4')", "3F000");
    session.fails_with("SELECT public.corgipile_compress('public.arrays', 'nowhere.rc4')", "3F000");
    session.run("RESET search_path");
}

#[test]
fn compress_knows_what_an_event_trigger_did_to_the_table() {
    let mut trojans = Trojans::new();
    trojans.keeps_off("CREATE EXTENSION corgipile");
    trojans.train();
    let on_create = |sql: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION on_create() RETURNS event_trigger LANGUAGE plpgsql AS $$
             BEGIN IF to_regclass('public.rc') IS NOT NULL THEN {sql} END IF; END $$;"
        )
    };
    let compress = "SELECT batches FROM corgipile_compress('arrays', 'rc', features => '{x}', batch_rows => 20)";
    trojans.db.run(&on_create("CREATE UNIQUE INDEX by_label ON public.rc (array_length(label, 1));"));
    trojans.db.run(
        "CREATE EVENT TRIGGER on_create ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION on_create()",
    );
    trojans.db.fails_with(compress, "23505");
    trojans.db.run(&on_create("CREATE RULE nothing AS ON INSERT TO public.rc DO INSTEAD NOTHING;"));
    trojans.db.fails_with(compress, "40001").says(&["public.rc"]).hints(&["event trigger"]);
    trojans.db.run("CREATE TABLE old (label int[], x corgipile.toc)");
    trojans.db.run(&on_create("ALTER TABLE public.rc RENAME TO new; ALTER TABLE public.old RENAME TO rc;"));
    trojans.db.fails_with(compress, "40001").says(&["public.rc"]);
    trojans.db.run("DROP EVENT TRIGGER on_create");
    assert_eq!(trojans.db.line(compress), "15");
}
