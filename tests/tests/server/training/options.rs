//! The keys of `options`: each is understood, stored, shown, and refused where it has nothing to say.

use corgipile_tests::{Database, Failure};

fn train(model: &str, options: &str) -> String {
    format!("SELECT * FROM corgipile_train('t', '{model}', max_epochs => 2, seed => 1, options => '{options}')")
}

fn rejects(db: &mut Database, model: &str, options: &str) -> Failure {
    db.rejects(&train(model, options), "22023")
}

#[test]
fn an_unknown_key_is_refused_and_all_keys_are_listed() {
    let mut db = Database::with_small_table(100);
    let known = [
        "a",
        "batch_size",
        "beta1",
        "beta2",
        "class_weight",
        "decay",
        "dimensions",
        "epsilon",
        "hash",
        "index_base",
        "l1",
        "l2",
        "momentum",
        "mu",
        "nulls",
        "optimizer",
        "power",
        "schedule",
        "standardize",
        "transform",
        "handle_unknown",
        "weight",
    ];
    rejects(&mut db, "logistic", r#"{"batchsize": 2}"#).says(&["batchsize"]).hints(&known);
}

#[test]
fn values_out_of_range_and_of_wrong_types_name_their_key() {
    let mut db = Database::with_small_table(100);
    for (key, values) in [
        ("standardize", &["1", "\"true\"", "null"][..]),
        ("nulls", &["\"ignore\"", "true"]),
        ("handle_unknown", &["\"skip\"", "0"]),
        ("hash", &["true", "\"on\""]),
        ("transform", &["true", "\"ln\""]),
        ("l1", &["-1", "\"a\"", "null"]),
        ("l2", &["-1", "100", "[]"]),
        ("batch_size", &["0", "-1", "1.5", "1000001", "\"a\"", "1e30"]),
        ("schedule", &["\"linear\"", "1"]),
        ("optimizer", &["\"Adam\"", "{}"]),
        ("decay", &["0", "1.1", "-1", "\"a\""]),
        ("weight", &["1", "null"]),
        ("index_base", &["2", "-1", "true", "0.5"]),
        ("dimensions", &["0", "134217728", "1.5", "\"10\""]),
    ] {
        for value in values {
            rejects(&mut db, "logistic", &format!("{{\"{key}\": {value}}}")).says(&[&format!("\"{key}\"")]);
        }
    }
    for (choice, key, values) in [
        (r#""optimizer": "momentum""#, "momentum", &["1", "-0.1", "\"a\""][..]),
        (r#""optimizer": "adam""#, "beta1", &["1", "-0.1"]),
        (r#""optimizer": "adam""#, "beta2", &["1", "-0.1"]),
        (r#""optimizer": "adam""#, "epsilon", &["0", "-1"]),
        (r#""schedule": "inverse_scaling""#, "power", &["0", "-1"]),
        (r#""schedule": "theorem1""#, "mu", &["0", "-1"]),
        (r#""schedule": "theorem1", "mu": 1"#, "a", &["-1", "\"b\""]),
    ] {
        for value in values {
            rejects(&mut db, "svm", &format!("{{{choice}, \"{key}\": {value}}}")).says(&[&format!("\"{key}\"")]);
        }
    }
}

#[test]
fn keys_that_have_nothing_to_say_to_the_other_choices_are_refused() {
    let mut db = Database::with_small_table(100);
    for (options, words) in [
        (r#"{"beta1": 0.9}"#, ["\"beta1\"", "adam"]),
        (r#"{"beta2": 0.9, "optimizer": "momentum"}"#, ["\"beta2\"", "adam"]),
        (r#"{"epsilon": 0.1, "optimizer": "sgd"}"#, ["\"epsilon\"", "adam"]),
        (r#"{"momentum": 0.9}"#, ["\"momentum\"", "momentum"]),
        (r#"{"momentum": 0.9, "optimizer": "adam"}"#, ["\"momentum\"", "optimizer \"momentum\""]),
        (r#"{"power": 0.5}"#, ["\"power\"", "inverse_scaling"]),
        (r#"{"power": 0.5, "schedule": "constant"}"#, ["\"power\"", "inverse_scaling"]),
        (r#"{"decay": 0.5, "schedule": "constant"}"#, ["\"decay\"", "exponential"]),
        (r#"{"decay": 0.5, "schedule": "theorem1", "mu": 1}"#, ["\"decay\"", "exponential"]),
        (r#"{"mu": 0.5}"#, ["\"mu\"", "theorem1"]),
        (r#"{"a": 5, "schedule": "inverse_scaling"}"#, ["\"a\"", "theorem1"]),
        (r#"{"schedule": "theorem1"}"#, ["\"mu\"", "l2"]),
        (r#"{"index_base": 0}"#, ["\"index_base\"", "sparse"]),
        (r#"{"dimensions": 10}"#, ["\"dimensions\"", "sparse"]),
        (r#"{"handle_unknown": "ignore"}"#, ["\"handle_unknown\"", "categories"]),
        (r#"{"hash": 8}"#, ["\"hash\"", "text"]),
    ] {
        rejects(&mut db, "logistic", options).says(&words);
    }
    rejects(&mut db, "linear", r#"{"class_weight": "balanced"}"#).says(&["\"class_weight\"", "linear"]);
    let both = "SELECT * FROM corgipile_train('t', learning_rate => 0.1, options => '{\"schedule\": \"theorem1\", \"mu\": 1, \"a\": 5}')";
    db.rejects(both, "22023").says(&["\"a\"", "learning_rate"]);
}

#[test]
fn what_was_chosen_is_stored() {
    let mut db = Database::with_small_table(100);
    let stored = |db: &mut Database, model: &str, options: &str, keys: &str| {
        db.run(&train(model, options));
        db.line(&format!(
            "SELECT {keys} FROM (SELECT hyperparameters AS h FROM corgipile.models ORDER BY model_id DESC LIMIT 1) m"
        ))
    };
    let defaults = "h->>'learning_rate', h->>'schedule', h->>'decay', h->>'optimizer', h->>'batch_size', h->>'l1', h->>'l2', h ? 'momentum'";
    assert_eq!(stored(&mut db, "logistic", "{}", defaults), "0.25|exponential|0.955|sgd|1|0.0|0.0|f");
    let adam = "h->>'learning_rate', h->>'optimizer', h->>'beta1', h->>'beta2', h->>'epsilon'";
    assert_eq!(stored(&mut db, "logistic", r#"{"optimizer": "adam"}"#, adam), "0.001|adam|0.9|0.999|0.00000001");
    let momentum = "h->>'optimizer', h->>'momentum', h->>'batch_size'";
    let options = r#"{"optimizer": "momentum", "batch_size": 16}"#;
    assert_eq!(stored(&mut db, "svm", options, momentum), "momentum|0.9|16");
    let inverse = "h->>'schedule', h->>'power', h ? 'decay'";
    assert_eq!(stored(&mut db, "svm", r#"{"schedule": "inverse_scaling"}"#, inverse), "inverse_scaling|0.5|f");
    let theorem = "h->>'schedule', h->>'mu', h->>'a', h ? 'learning_rate'";
    assert_eq!(stored(&mut db, "svm", r#"{"schedule": "theorem1", "l2": 0.1}"#, theorem), "theorem1|0.1|NULL|t");
    assert_eq!(stored(&mut db, "svm", r#"{"schedule": "theorem1", "mu": 2, "a": 50}"#, theorem), "theorem1|2.0|50.0|f");
}

#[test]
fn schedules_set_the_rate_of_each_epoch() {
    let mut db = Database::with_small_table(100);
    let rates = |db: &mut Database, options: &str| -> Vec<f64> {
        let sql = format!(
            "'t', learning_rate => 0.5, max_epochs => 4, seed => 1, buffer_size => '100%', options => '{options}'"
        );
        db.train(&sql).iter().map(|epoch| epoch.learning_rate).collect()
    };
    let close = |given: Vec<f64>, expected: [f64; 4]| {
        assert!(given.iter().zip(expected).all(|(g, e)| (g - e).abs() < 1e-9), "{given:?} {expected:?}");
    };
    close(rates(&mut db, r#"{"schedule": "constant"}"#), [0.5; 4]);
    close(rates(&mut db, r#"{"schedule": "exponential", "decay": 0.5}"#), [0.5, 0.25, 0.125, 0.0625]);
    close(rates(&mut db, r#"{"schedule": "inverse_scaling", "power": 1}"#), [0.5, 0.25, 0.5 / 3.0, 0.125]);
    // one buffer of 100 tuples per epoch: 6 / (100 mu (s + a)) is 0.5 for s = 1 if mu = 0.01 and a = 11
    close(rates(&mut db, r#"{"schedule": "theorem1", "mu": 0.01}"#), [0.5, 6.0 / 13.0, 6.0 / 14.0, 6.0 / 15.0]);
}

#[test]
fn explain_shows_what_differs_from_the_defaults() {
    let mut db = Database::with_small_table(100);
    let explain = |db: &mut Database, model: &str, options: &str| {
        db.lines(&format!("EXPLAIN {}", train(model, options))).join("\n")
    };
    let plain = explain(&mut db, "logistic", "{}");
    for absent in ["Optimizer", "Schedule", "Batch Size", "L1", "L2", "Weight"] {
        assert!(!plain.contains(absent), "{absent}: {plain}");
    }
    let options = r#"{"optimizer": "adam", "schedule": "constant", "batch_size": 32, "l1": 0.01, "l2": 0.001, "weight": "a",
        "class_weight": "balanced"}"#;
    let full = explain(&mut db, "svm", options);
    for line in [
        "Features: b, c",
        "Weight: a",
        "Class Weight: balanced",
        "Learning Rate: 0.001",
        "Schedule: constant",
        "Optimizer: adam, beta1 0.9, beta2 0.999, epsilon 1e-8",
        "Batch Size: 32",
        "L1: 0.01",
        "L2: 0.001",
    ] {
        assert!(full.contains(line), "{line}: {full}");
    }
    db.run("CREATE TABLE s AS SELECT label, ARRAY[1,2] AS features_k, ARRAY[a,b] AS features_v, 'x' || label AS word FROM t");
    let sparse = db.lines("EXPLAIN SELECT * FROM corgipile_train('s')").join("\n");
    assert!(sparse.contains("Features: features_k, features_v (sparse)"), "{sparse}");
    let words = db.lines("EXPLAIN SELECT * FROM corgipile_train('s', features => '{word}')").join("\n");
    assert!(words.contains("Features: word (categories)"), "{words}");
}

#[test]
fn rates_too_small_for_type_real_are_refused_and_those_of_a_huge_a_are_none() {
    let mut db = Database::new();
    db.run("CREATE TABLE t AS SELECT i % 2 AS label, i % 7 AS x FROM generate_series(1, 100) i");
    db.rejects("SELECT * FROM corgipile_train('t', learning_rate => 1e-46)", "22023").says(&["learning_rate", "real"]);
    let options = "{\"schedule\": \"theorem1\", \"mu\": 0.1, \"a\": 1e300}";
    let loss: f64 = db.value(&format!(
        "SELECT loss FROM corgipile_train('t', max_epochs => 2, options => '{options}') WHERE epoch = 2"
    ));
    // rates of next to nothing: the model is still that of all zeros
    assert!((loss - std::f64::consts::LN_2).abs() < 1e-6, "{loss}");
}

#[test]
fn what_json_has_and_a_value_cannot_be_names_the_option() {
    let mut db = Database::with_small_table(20);
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    for (function, argument) in [("corgipile_train", ""), ("corgipile_train_uda", "")] {
        for option in ["validation_fraction", "l2", "patience", "class_weight"] {
            db.rejects(
                &format!("SELECT {function}('t', options => '{{\"l1\": 0, \"{option}\": 1e400}}'{argument})"),
                "22023",
            )
            .says(&[&format!("option \"{option}\""), "out of range for type double precision"]);
            db.rejects(&format!("SELECT {function}('t', options => '{{\"{option}\": {deep}}}')"), "22023")
                .says(&[&format!("option \"{option}\""), "nested too deeply"]);
        }
        db.rejects(&format!("SELECT {function}('t', options => '[1e400]')"), "22023")
            .says(&["\"options\"", "out of range"]);
    }
    db.rejects("SELECT corgipile_train('t', options => '{\"class_weight\": {\"1\": 1e400}}')", "22023")
        .says(&["option \"class_weight\""]);
    db.rejects("SELECT corgipile_train('t', grid => '{\"l2\": [0, 1e400]}')", "22023")
        .says(&["argument \"grid\"", "\"l2\" has a number that is out of range"]);
    db.rejects("SELECT corgipile_sgd_init('logistic', 3, options => '{\"l2\": 1e400}')", "22023")
        .says(&["option \"l2\""]);
}

#[test]
fn null_means_the_default_for_every_function_that_trains_or_shuffles() {
    let mut db = Database::new();
    corgipile_tests::small(&mut db, "t", 500);
    for (call, given) in [
        (
            "corgipile_shuffle(NULL::t, seed => 1",
            "block_size => 'auto', buffer_size => 'auto', shuffle => 'corgipile', epoch => 1, sample => 1",
        ),
        ("corgipile_cluster_factor('t'", "label => 'label', block_size => 'auto', model => 'logistic'"),
        (
            "corgipile_train_uda('t', seed => 1",
            "model => 'logistic', label => 'label', max_epochs => 20, shuffle => 'no_shuffle'",
        ),
        ("corgipile_sgd_init('svm', 3", "learning_rate => 0.01, options => '{}', sparse => false"),
        (
            "corgipile_train('t', seed => 1",
            "model => 'logistic', label => 'label', max_epochs => 100, shuffle => 'corgipile', block_size => 'auto', \
             buffer_size => 'auto', prefetch => 'auto', workers => 1",
        ),
    ] {
        let name = call.split_once('(').expect("a call").0;
        let columns = if name.contains("train") { "epoch, loss, tuples" } else { "r" };
        let mut ask = |arguments: &str| db.lines(&format!("SELECT {columns} FROM {call}{arguments}) AS r"));
        let nulls = given.split(", ").map(|argument| argument.split_once(" => ").expect("an argument").0);
        let nulls: String = nulls.map(|argument| format!(", {argument} => NULL")).collect();
        let nothing = ask("");
        assert_eq!(ask(&nulls), nothing, "{call}{nulls}");
        assert_eq!(ask(&format!(", {given}")), nothing, "{call}, {given}");
        let arguments: String =
            db.value(&format!("SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = '{name}' AND proargtypes[0] <> 'regclass'::regtype"));
        assert_eq!(arguments.matches("DEFAULT").count(), arguments.matches("DEFAULT NULL").count(), "{arguments}");
        let comment: String =
            db.value(&format!("SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname = '{name}' AND proargtypes[0] <> 'regclass'::regtype"));
        assert!(comment.contains("NULL means the default"), "{comment}");
    }
}

#[test]
fn a_misspelt_word_is_told_what_was_probably_meant() {
    let mut db = Database::with_small_table(100);
    let mut hints = |sql: &str, meant: &str| {
        db.rejects(sql, "22023").hints(&[&format!("Did you mean \"{meant}\"?")]);
    };
    for (options, meant) in [
        (r#"{"batchsize": 2}"#, "batch_size"),
        (r#"{"standardise": true}"#, "standardize"),
        (r#"{"optimizer": "Adam"}"#, "adam"),
        (r#"{"schedule": "exponental"}"#, "exponential"),
        (r#"{"nulls": "skipp"}"#, "skip"),
        (r#"{"handle_unknown": "ignored"}"#, "ignore"),
        // names of scikit-learn's and others, and earlier ones
        (r#"{"epochs": 2}"#, "max_epochs"),
        (r#"{"alpha": 0.1}"#, "l2"),
        (r#"{"C": 1}"#, "l2"),
        (r#"{"learning_rate_init": 0.1}"#, "learning_rate"),
        (r#"{"eta0": 0.1}"#, "learning_rate"),
        (r#"{"n_iter_no_change": 2}"#, "patience"),
        (r#"{"tol": 0.1}"#, "tolerance"),
        (r#"{"sample_weight": "w"}"#, "weight"),
        (r#"{"random_state": 1}"#, "seed"),
        (r#"{"hidden_layers": [2]}"#, "hidden_layer_sizes"),
        (r#"{"unseen": "zero"}"#, "handle_unknown"),
        (r#"{"clip": 5}"#, "winsorize"),
        (r#"{"loader": "worker"}"#, "prefetch"),
        (r#"{"nodes": "auto"}"#, "servers"),
        (r#"{"share": true}"#, "shared_scan"),
        (r#"{"notice": true}"#, "verbose"),
        (r#"{"prepare": "exact"}"#, "statistics"),
        (r#"{"cache": "autoo"}"#, "auto"),
        (r#"{"keep": "bst"}"#, "best"),
        (r#"{"class_weight": "balance"}"#, "balanced"),
        (r#"{"validation_fraction": 0.1, "validation_by": "blocks"}"#, "block"),
    ] {
        hints(&train("logistic", options), meant);
    }
    hints(&train("mlp", r#"{"activation": "rely"}"#), "relu");
    hints(&train("mlp", r#"{"output": "softmx"}"#), "softmax");
    hints(&train("logistics", "{}"), "logistic");
    hints(&train("neural_netwrok", "{}"), "neural_network");
    hints(&train("mlp", r#"{"max_epoch": 2}"#), "max_epochs");
    for (arguments, meant) in [
        ("shuffle => 'corgpile'", "corgipile"),
        ("prefetch => 'offf'", "off"),
        (r#"grid => '{"learning_rat": [1]}'"#, "learning_rate"),
    ] {
        hints(&format!("SELECT corgipile_train('t', {arguments})"), meant);
    }
    hints("SELECT * FROM corgipile_shuffle(NULL::t, shuffle => 'no-shuffle')", "no_shuffle");
    hints("SELECT corgipile_shuffle_order('mrss', 10, 2, 4, 1)", "mrs");
    hints("SELECT corgipile_cluster_factor('t', model => 'svn')", "svm");
    hints("SELECT corgipile_compress('t', 'c', nulls => 'eror')", "error");
    hints("SELECT corgipile_compress('t', 'c', encoding => 'gzp')", "gzip");
    hints("SELECT corgipile_options('liner')", "linear");
    // what is near to nothing is not guessed at, and what is known but not to be varied is not misspelt
    for sql in [
        train("forest", "{}"),
        train("logistic", r#"{"zz": 1}"#),
        train("logistic", r#"{"schedule": "linear"}"#),
        "SELECT corgipile_train('t', grid => '{\"weight\": [\"a\"]}')".to_owned(),
    ] {
        let failure = db.rejects(&sql, "22023");
        assert!(!failure.hint.contains("Did you mean"), "{failure:#?}");
    }
    rejects(&mut db, "logistic", r#"{"lr": 1}"#)
        .hints(&["Did you mean \"learning_rate\"?", "Known options are: a, activation,"]);
}

#[test]
fn what_corgipile_options_shows_holds() {
    let mut db = Database::with_small_table(100);
    let names =
        |db: &mut Database, call: &str| db.column::<String>(&format!("SELECT name FROM corgipile_options({call})"));
    let all = names(&mut db, "");
    let arguments: Vec<String> =
        db.column("SELECT unnest(proargnames[:pronargs]) FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype");
    assert!(arguments.iter().all(|argument| all.contains(argument)), "{arguments:?} {all:?}");
    assert_eq!(all.len(), arguments.len() + 34, "arguments and options");
    assert_eq!(names(&mut db, "NULL"), all);
    for (model, absent, present) in [
        ("logistic", &["hidden_layer_sizes", "activation", "output"][..], &["class_weight", "mu"][..]),
        ("linear", &["class_weight", "output"], &["a", "l1"]),
        ("mlp", &["mu", "a"], &["hidden_layer_sizes", "class_weight"]),
    ] {
        let names = names(&mut db, &format!("'{model}'"));
        let has = |name: &&str| names.iter().any(|known| known == name);
        assert!(!absent.iter().any(has) && present.iter().all(has), "{model}: {names:?}");
    }
    let default = "SELECT default_value FROM corgipile_options('mlp') WHERE name = 'batch_size'";
    assert_eq!(db.line(default), "max_epochs * rows / 2000, from 1 to 32");
    // the type of an argument is that of the declaration
    let types = "SELECT o.name FROM corgipile_options() o, pg_proc p, unnest(p.proargnames[:p.pronargs], p.proargtypes) AS a(name, type)
                  WHERE p.proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype AND a.name = o.name AND a.type <> o.type::regtype";
    assert_eq!(db.lines(types), Vec::<String>::new());
    // a default that is given is the same as none
    let defaults = "SELECT name, default_value, type FROM corgipile_options('logistic')
                     WHERE applies_to = 'all models' AND default_value IS NOT NULL AND default_value !~ '[, ]'
                       AND name NOT IN ('index_base', 'handle_unknown', 'hash', 'seed', 'max_epochs', 'model')";
    let record = "SELECT hyperparameters FROM corgipile.models ORDER BY model_id DESC LIMIT 1";
    db.run(&train("logistic", "{}"));
    let (expected, defaults) = (db.line(record), db.lines(defaults));
    assert!(defaults.len() >= 15, "{defaults:?}");
    for row in defaults {
        let cells: Vec<&str> = row.split('|').collect();
        let value = if ["JSON string", "text"].contains(&cells[2]) || cells[1] == "auto" {
            format!("\"{}\"", cells[1])
        } else {
            cells[1].to_owned()
        };
        db.run(&train("logistic", &format!("{{\"{}\": {value}}}", cells[0])));
        assert_eq!(db.line(record), expected, "{row}");
    }
}

#[test]
fn each_point_of_a_grid_is_stored_with_its_own_rule_of_stopping() {
    let mut db = Database::with_small_table(100);
    db.run(r#"SELECT corgipile_train('t', seed => 1, max_epochs => 2, grid => '{"patience": [2, 7], "tolerance": [0.5]}')"#);
    let stored =
        "SELECT hyperparameters->>'patience', hyperparameters->>'tolerance' FROM corgipile.models ORDER BY model_id";
    assert_eq!(db.lines(stored), ["2|0.5", "7|0.5"]);
}
