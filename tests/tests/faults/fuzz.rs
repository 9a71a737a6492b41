//! Every function of the extension with arguments that no one would think of.
//!
//! The functions are those that the catalog has, so that new ones are tried without a word here. A result is right and
//! so is an error with an SQLSTATE of its own; an internal error (`XX000`) is not, nor is a connection that is lost.

use crate::probe::{self, complaints, leftovers, models_are_whole, report, tables};
use corgipile_tests::{Cluster, Session};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How long a call may take: what is valid may well take for ever.
const TIMEOUT: &str = "SET statement_timeout = '400ms'";

/// A function, with names and types of its arguments.
#[derive(Debug, Clone)]
struct Function {
    name: String,
    arguments: Vec<(String, String)>,
    /// how many have no default
    required: usize,
    /// is it an aggregate?
    aggregate: bool,
}

fn functions(session: &mut Session) -> Vec<Function> {
    let rows = session.rows(
        "SELECT p.oid::regproc::text, coalesce(p.proargnames[:p.pronargs], '{}'),
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY a(t, i) ORDER BY i),
                (p.pronargs - p.pronargdefaults)::int, p.prokind = 'a'
           FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid JOIN pg_extension e ON e.oid = d.refobjid
          WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'corgipile'
            AND NOT 'internal'::regtype = ANY(p.proargtypes) ORDER BY 1, p.oid",
        &[],
    );
    rows.iter()
        .map(|row| {
            let (names, types): (Vec<String>, Vec<String>) = (row.get(1), row.get(2));
            let arguments =
                types.into_iter().enumerate().map(|(i, kind)| (names.get(i).cloned().unwrap_or_default(), kind));
            Function {
                name: row.get(0),
                arguments: arguments.collect(),
                required: row.get::<_, i32>(3) as usize,
                aggregate: row.get(4),
            }
        })
        .collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

fn one_of(values: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(values).prop_map(str::to_owned).boxed()
}

const SOURCES: &[&str] = &[
    "'t'",
    "'wide'",
    "'parts'",
    "'few'",
    "'empty'",
    "'odd'",
    "'SELECT label, x FROM t'",
    "'SELECT * FROM few ORDER BY id'",
    "'SELECT 1'",
    "'SELECT 1 AS label, 2 AS x; SELECT 3'",
    "'SELECT'",
    "'VALUES (1, 2)'",
    "'WITH w AS (DELETE FROM few RETURNING *) TABLE w'",
    "'SELECT label, x FROM t FOR UPDATE'",
    "'nowhere'",
    "''",
    "'a.b.c.d'",
    "'\"t'",
    "'pg_class'",
    "'corgipile.models'",
    "'SELECT label, 1/(id-7) AS q FROM few'",
    "'SELECT label, NULL AS z FROM few'",
    "'SELECT label, x, x FROM few'",
    "repeat('(', 5000)",
    "'TABLE few'",
    "'SELECT * FROM corgipile_shuffle(NULL::few)'",
    "'SELECT count(*) AS label, 1 AS x FROM few'",
    "'i_few'",
    "'kept_seq'",
];
const MODELS: &[&str] =
    &["'logistic'", "'svm'", "'softmax'", "'linear'", "'kept'", "'rows'", "'many'", "'LOGISTIC'", "''", "'nope'"];
const COLUMNS: &[&str] = &[
    "'label'",
    "'word'",
    "'class'",
    "'colour'",
    "'amount'",
    "'x'",
    "'k'",
    "'id'",
    "'ctid'",
    "'nope'",
    "''",
    "'tableoid'",
];
const TEXTS: &[&str] = &[
    "'corgipile'",
    "'block_only'",
    "'no_shuffle'",
    "'sliding_window'",
    "'mrs'",
    "'shuffle_once'",
    "'epoch_shuffle'",
    "'auto'",
    "'on'",
    "'off'",
    "'10%'",
    "'0%'",
    "'100%'",
    "'-5%'",
    "'1e999%'",
    "'64kB'",
    "'1B'",
    "'999999999999999999999GB'",
    "'NaN'",
    "'8kB '",
    "'1.5 MB'",
    "repeat('x', 100000)",
    "E'\\n'",
    "'größe'",
    "NULL",
];
const NUMBERS: &[&str] =
    &["0", "1", "-1", "2", "3", "7", "64", "65", "1000", "1000000", "1000001", "2147483647", "-2147483648", "NULL"];
const BIG_NUMBERS: &[&str] =
    &["1", "0", "-1", "2", "999", "9223372036854775807", "(-9223372036854775808)", "4294967296", "100000001", "NULL"];
const FLOATS: &[&str] =
    &["0", "0.01", "1", "-1", "1e-300", "1e300", "5e-324", "'NaN'", "'Infinity'", "'-Infinity'", "0.5", "1e38", "NULL"];
const ARRAYS: &[&str] = &[
    "'{1,2,3}'::real[]",
    "'{1,2,3}'::float8[]",
    "'{}'::real[]",
    "'{NULL,1,2}'::real[]",
    "'{NaN,1,2}'::real[]",
    "'{Infinity,1,2}'::float8[]",
    "'{{1,2},{3,4}}'::real[]",
    "'[5:7]={1,2,3}'::int[]",
    "'{1,2,3}'::numeric[]",
    "'{1e400,2,3}'::numeric[]",
    "'{1,2,3}'::bigint[]",
    "'{a,b,c}'::text[]",
    "ARRAY[true,false,true]",
    "NULL::real[]",
    "ARRAY[NULL,NULL,NULL]::int[]",
    "'{9223372036854775807,1,2}'::bigint[]",
    "array_fill(1::real, ARRAY[100000])",
    "'{1,1,1}'::smallint[]",
    "'{-1,0,5}'::int[]",
    "'{1,51,60}'::int[]",
    "ARRAY['2020-01-01'::date]",
    "ARRAY[ROW(1,2)]",
    "'{1,2}'::real[]",
    "(SELECT x FROM t LIMIT 1)",
];
const TEXT_ARRAYS: &[&str] = &[
    "'{x}'",
    "'{amount}'",
    "'{amount,colour}'",
    "'{k,v}'",
    "'{v,k}'",
    "'{label}'",
    "'{}'",
    "'{NULL}'",
    "'{x,x}'",
    "'{{a},{b}}'",
    "'{nope}'",
    "'{x,amount}'",
    "NULL",
    "array_fill('amount'::text, ARRAY[2000])",
    "'{id,class,word}'",
];
const ROWS: &[&str] = &[
    "(SELECT t FROM t LIMIT 1)",
    "(SELECT few FROM few LIMIT 1)",
    "ROW(1, 2)",
    "ROW()",
    "NULL::record",
    "NULL::t",
    "(SELECT r FROM (SELECT 1 AS amount, 'red' AS colour) r)",
    "(SELECT r FROM (SELECT NULL::real AS amount, 'mauve' AS colour) r)",
    "(SELECT r FROM (SELECT 'NaN'::real AS amount, 'red' AS colour) r)",
    "(SELECT r FROM (SELECT 'a' AS amount, 3 AS colour) r)",
    "(SELECT w FROM wide w LIMIT 1)",
];
const ELEMENTS: &[&str] = &[
    "NULL::t",
    "NULL::parts",
    "NULL::empty",
    "NULL::few",
    "NULL::int",
    "1",
    "NULL::pg_class",
    "'x'::text",
    "ROW(1)",
    "NULL::corgipile.models",
    "NULL::odd",
    "NULL::corgipile.training_history",
];
const STATES: &[&str] = &[
    "corgipile_sgd_init('logistic', 3)",
    "corgipile_sgd_init('softmax', 3, classes => 3)",
    "corgipile_sgd_init('linear', 60, sparse => true)",
    "corgipile_sgd_init('svm', 2, 0.1, '{\"optimizer\": \"adam\"}')",
    "NULL",
    "(SELECT corgipile_sgd_agg(corgipile_sgd_init('logistic', 3), label, x) FROM few)",
];
const KEYS: &[&str] = &[
    "standardize",
    "nulls",
    "l1",
    "l2",
    "batch_size",
    "optimizer",
    "momentum",
    "beta1",
    "beta2",
    "epsilon",
    "schedule",
    "decay",
    "power",
    "mu",
    "a",
    "weight",
    "class_weight",
    "index_base",
    "dimensions",
    "cache",
    "handle_unknown",
    "parallel",
    "tolerance",
    "patience",
    "validation_fraction",
    "validation_by",
    "validation_column",
    "verbose",
    "learning_rate",
    "l1_ratio",
    "",
    "größe",
];
const VALUES: &[&str] = &[
    "true",
    "false",
    "null",
    "0",
    "1",
    "-1",
    "0.5",
    "2",
    "32",
    "1e308",
    "1e-320",
    "-0.0",
    "1e400",
    "99999999999999999999999",
    "\"adam\"",
    "\"momentum\"",
    "\"sgd\"",
    "\"skip\"",
    "\"error\"",
    "\"zero\"",
    "\"on\"",
    "\"off\"",
    "\"auto\"",
    "\"balanced\"",
    "\"theorem1\"",
    "\"constant\"",
    "\"inverse_scaling\"",
    "\"amount\"",
    "\"label\"",
    "\"row\"",
    "\"block\"",
    "\"\"",
    "{}",
    "[]",
    "[1, 2]",
    "[0.1, 0.01]",
    "{\"0\": 2, \"1\": 1}",
    "{\"0\": -1}",
    "{\"no\": 1e400}",
    "[[[[]]]]",
    "\"\\u0001\"",
];

fn json() -> BoxedStrategy<String> {
    let pair = (prop::sample::select(KEYS), prop::sample::select(VALUES));
    let object = prop::collection::vec(pair, 0..4).prop_map(|pairs| {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        format!("'{{{}}}'", pairs.join(", "))
    });
    let other = prop::sample::select(VALUES).prop_map(|value| format!("'{value}'"));
    let nested = Just("(repeat('[', 3000) || repeat(']', 3000))".to_owned());
    prop_oneof![12 => object, 2 => other, 1 => nested, 1 => Just("NULL".to_owned())].boxed()
}

/// Values for an argument, as SQL; more often than not such as make sense.
fn values(name: &str, kind: &str) -> BoxedStrategy<String> {
    let any_text = || any::<String>().prop_map(|text| quoted(&text)).boxed();
    let wild = prop_oneof![one_of(TEXTS), one_of(SOURCES), one_of(MODELS), any_text()].boxed();
    let likely = match (name, kind) {
        ("source", "text") => one_of(SOURCES),
        ("model" | "name" | "warm_start", "text") => one_of(MODELS),
        ("label" | "group_by", "text") => one_of(COLUMNS),
        (_, "text" | "name" | "character varying") => one_of(TEXTS),
        (_, "integer" | "smallint") => {
            prop_oneof![3 => one_of(NUMBERS), 1 => any::<i32>().prop_map(|n| format!("({n})"))].boxed()
        }
        (_, "bigint") => {
            prop_oneof![3 => one_of(BIG_NUMBERS), 1 => any::<i64>().prop_map(|n| format!("'{n}'::bigint"))].boxed()
        }
        (_, "double precision" | "real" | "numeric") => {
            prop_oneof![3 => one_of(FLOATS), 1 => any::<f64>().prop_map(|n| format!("'{n:?}'::float8"))].boxed()
        }
        (_, "boolean") => one_of(&["true", "false", "NULL"]),
        (_, "jsonb" | "json") => json(),
        (_, "text[]") => one_of(TEXT_ARRAYS),
        (_, "anyarray" | "anycompatiblearray") => one_of(ARRAYS),
        (_, "record") => one_of(ROWS),
        ("features", "\"any\"") | (_, "anynonarray" | "anycompatible") => prop_oneof![
            2 => one_of(ROWS),
            2 => one_of(ARRAYS),
            2 => values(name, "bytea"),
            1 => one_of(FLOATS),
            1 => one_of(ELEMENTS)
        ]
        .boxed(),
        ("indices" | "feature_values", "\"any\"") => one_of(ARRAYS),
        (_, "\"any\"") => {
            prop_oneof![4 => one_of(FLOATS), 2 => one_of(TEXTS), 1 => one_of(ELEMENTS), 1 => one_of(ARRAYS)].boxed()
        }
        (_, "anyelement") => one_of(ELEMENTS),
        (_, "regclass") => one_of(&[
            "'t'",
            "'wide'",
            "'parts'",
            "'i_few'",
            "'kept_seq'",
            "0",
            "4294967295",
            "'pg_class'",
            "NULL",
            "'corgipile.models'",
        ]),
        (_, "regrole" | "oid" | "regtype") => one_of(&["0", "10", "4294967295", "NULL"]),
        (_, "bytea") => prop::collection::vec(any::<u8>(), 0..64)
            .prop_map(|bytes| format!("'\\x{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
            .boxed(),
        (_, "corgipile.sgd_state") => {
            let forged = prop::collection::vec(any::<u8>(), 0..64);
            prop_oneof![6 => one_of(STATES), 1 => forged.prop_map(|bytes| format!("'{}'", bytes.iter().map(|b| char::from(b'0' + b % 75)).filter(|c| *c != '\'' && *c != '\\').collect::<String>()))].boxed()
        }
        _ => return prop_oneof![Just("NULL".to_owned()), any_text()].boxed(),
    };
    if kind == "text" {
        prop_oneof![5 => likely, 1 => wild].boxed()
    } else {
        prop_oneof![20 => likely, 1 => Just("NULL".to_owned())].boxed()
    }
}

/// A call of one of the functions, as a statement.
fn call(functions: Vec<Function>) -> BoxedStrategy<String> {
    prop::sample::select(functions)
        .prop_flat_map(|function| {
            let arguments: Vec<BoxedStrategy<(bool, String)>> = function
                .arguments
                .iter()
                .enumerate()
                .map(|(i, (name, kind))| {
                    // most of what has a default is left out, lest every call fail for one of its arguments
                    let given =
                        if i < function.required { Just(true).boxed() } else { prop::bool::weighted(0.25).boxed() };
                    (given, values(name, kind)).boxed()
                })
                .collect();
            (Just(function), arguments, 0..4_u8)
        })
        .prop_map(|(function, values, shape)| {
            let arguments: Vec<String> = values
                .iter()
                .zip(&function.arguments)
                .enumerate()
                .filter(|(_, ((given, _), _))| *given)
                .map(|(i, ((_, value), (name, kind)))| {
                    // values of other types than the argument's are refused by the parser, which is not what is tried
                    let polymorphic = kind.starts_with("any") || kind == "\"any\"" || kind == "record";
                    let value = if polymorphic { value.clone() } else { format!("{value}::{kind}") };
                    if i < function.required || name.is_empty() { value } else { format!("\"{name}\" => {value}") }
                })
                .collect();
            let call = format!("{}({})", function.name, arguments.join(", "));
            match shape {
                _ if function.aggregate => format!("SELECT {call} FROM few"),
                0 => format!("SELECT {call}"),
                1 => format!("SELECT * FROM {call} LIMIT 3"),
                2 => format!("EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM {call}"),
                _ => format!("SELECT count(*) FROM {call} f"),
            }
        })
        .boxed()
}

#[test]
fn no_argument_makes_an_internal_error_or_loses_the_connection() {
    let seed = probe::seed();
    let cases = probe::moments() * 40;
    println!("fuzz: seed {seed}, {cases} calls");
    let cluster = Cluster::new(&["work_mem = '256kB'"]);
    let mut watch = cluster.session();
    tables(&mut watch);
    watch.run(
        "CREATE TABLE few AS SELECT * FROM t WHERE id % 40 = 0;
         CREATE INDEX i_few ON few (id);
         CREATE TABLE empty (LIKE t);
         CREATE SEQUENCE kept_seq;
         CREATE TABLE odd (label int, a real, b float8[], c text, d numeric);
         INSERT INTO odd VALUES (0, 'NaN', '{1,NULL}', 'x', 'NaN'), (1, 'Infinity', '{}', NULL, 1e300), (NULL, NULL, NULL, '', -1),
                                (2, 1e38, '{{1,2},{3,4}}', 'x', 0);
         SELECT corgipile_train('t', features => '{x}', max_epochs => 1, name => 'kept');
         SELECT corgipile_train('t', features => '{colour, amount}', max_epochs => 1, name => 'rows');
         SELECT corgipile_train('t', 'softmax', label => 'class', features => '{k, v}', max_epochs => 1, name => 'many')",
    );
    let functions = functions(&mut watch);
    let names = functions.len();
    let session = RefCell::new(cluster.session());
    session.borrow_mut().run(TIMEOUT);
    let codes = RefCell::new(BTreeMap::<String, u32>::new());
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(&call(functions), |sql| {
        let mut session = session.borrow_mut();
        session.run("BEGIN");
        let result = session.attempt(&sql);
        // the models that others are tried on stay as they are
        let undone = ["_drop(", "_rename(", "_deploy(", "_revoke("].iter().any(|name| sql.contains(name));
        // a connection that is lost is reported below
        drop(session.attempt(if undone { "ROLLBACK" } else { "COMMIT" }));
        let code = match result {
            Ok(_) => "00000".to_owned(),
            Err(failure) => {
                prop_assert!(!failure.code.starts_with("XX"), "{:#?}", failure);
                prop_assert!(!["closed", "client"].contains(&failure.code.as_str()), "{:#?}", failure);
                failure.code
            }
        };
        *codes.borrow_mut().entry(code).or_default() += 1;
        Ok(())
    });
    if let Err(TestError::Fail(reason, sql)) = result {
        panic!("seed {seed}: {reason}\n{sql}");
    }
    drop(session);
    models_are_whole(&mut watch);
    let left = leftovers(&cluster, &mut watch);
    assert!(left.is_empty(), "{left:#?}");
    let complaints = complaints(&cluster);
    assert!(complaints.is_empty(), "{complaints:#?}");
    let codes = codes.into_inner();
    let (good, all) = (codes.get("00000").copied().unwrap_or(0), codes.values().sum::<u32>());
    report(&format!(
        "Arguments: {all} calls of {names} functions, {good} with a result, the others with {} SQLSTATEs, 0 internal errors, 0 servers lost, 0 leftovers, seed {seed}",
        codes.len().saturating_sub(1)
    ));
}
