//! Options as arguments, arguments as options, and the names of models: each way says the same.

use corgipile_tests::Database;

/// Every argument but source and options: a value in SQL, and another one in JSON.
const TWO_VALUES: [(&str, &str, &str); 34] = [
    ("model", "'svm'", r#""linear""#),
    ("label", "'label'", r#""a""#),
    ("features", "'{a,b}'", r#"["a", "c"]"#),
    ("learning_rate", "0.1", "0.2"),
    ("max_epochs", "2", "3"),
    ("shuffle", "'no_shuffle'", r#""corgipile""#),
    ("block_size", "'8kB'", r#""64kB""#),
    ("buffer_size", "'10%'", r#""20%""#),
    ("seed", "1", "2"),
    ("name", "'one'", r#""other""#),
    ("prefetch", "'off'", r#""on""#),
    ("workers", "1", "2"),
    ("warm_start", "'none'", r#""neither""#),
    ("group_by", "'a'", r#""b""#),
    ("grid", r#"'{"l2": [0]}'"#, r#"{"l2": [1]}"#),
    ("sample", "0.5", "0.6"),
    ("batch_size", "2", "3"),
    ("l1", "0.1", "0.2"),
    ("l2", "0.1", "0.2"),
    ("optimizer", "'sgd'", r#""adam""#),
    ("schedule", "'constant'", r#""exponential""#),
    ("standardize", "true", "false"),
    ("nulls", "'skip'", r#""error""#),
    ("class_weight", "'balanced'", r#"{"1": 2}"#),
    ("hidden_layer_sizes", "'{4}'", "[5]"),
    ("validation_fraction", "0.1", "0.2"),
    ("patience", "2", "3"),
    ("verbose", "true", "false"),
    ("shared_scan", "true", "false"),
    ("servers", "'auto'", "\"off\""),
    ("solver", "'sgd'", r#""newton""#),
    ("statistics", "'sample'", r#""exact""#),
    ("unseen_group", "'null'", r#""all""#),
    ("positive", "'1'", r#""0""#),
];

/// What is recorded of the last training.
const RECORD: &str = "SELECT model, hyperparameters FROM corgipile.models ORDER BY model_id DESC LIMIT 1";

#[test]
fn what_is_given_twice_with_different_values_is_an_error_for_every_argument() {
    let mut db = Database::with_small_table(100);
    let arguments: Vec<String> = db.column(
        "SELECT name FROM pg_proc, unnest(proargnames[:pronargs]) WITH ORDINALITY AS a(name, i)
          WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype AND name NOT IN ('source', 'options') ORDER BY i",
    );
    assert_eq!(arguments, TWO_VALUES.map(|(name, ..)| name));
    for (name, sql, json) in TWO_VALUES {
        let call = format!("SELECT corgipile_train('t', {name} => {sql}, options => '{{\"{name}\": {json}}}')");
        db.rejects(&call, "22023").says(&[&format!("\"{name}\" is given as an argument and in options")]);
    }
    for name in ["source", "options"] {
        let call = format!("SELECT corgipile_train('t', options => '{{\"{name}\": {{}}}}')");
        db.rejects(&call, "22023").says(&[&format!("unknown option \"{name}\"")]);
    }
    // what is the same may be given twice, 0.1 as 1e-1 too
    db.run(
        r#"SELECT corgipile_train('t', 'svm', max_epochs => 2, l2 => 0.1, learning_rate => 0.5, class_weight => '{"1": 2}',
           options => '{"max_epochs": 2, "l2": 1e-1, "learning_rate": 5e-1, "class_weight": {"1": 2.0}, "model": "svm"}')"#,
    );
}

#[test]
fn an_option_as_an_argument_is_recorded_as_a_key_is() {
    let mut db = Database::with_small_table(100);
    for (model, name, sql, json) in [
        ("svm", "batch_size", "7", "7"),
        ("svm", "l1", "0.01", "0.01"),
        ("svm", "l2", "0.02", "0.02"),
        ("svm", "optimizer", "'adam'", r#""adam""#),
        ("svm", "schedule", "'constant'", r#""constant""#),
        ("svm", "standardize", "true", "true"),
        ("svm", "nulls", "'skip'", r#""skip""#),
        ("svm", "class_weight", "'balanced'", r#""balanced""#),
        ("svm", "class_weight", r#"'{"1": 2, "0": 3}'"#, r#"{"1": 2, "0": 3}"#),
        ("mlp", "hidden_layer_sizes", "'{4,3}'", "[4, 3]"),
        ("svm", "validation_fraction", "0.25", "0.25"),
        ("svm", "patience", "2", "2"),
        ("svm", "verbose", "true", "true"),
        ("svm", "sample", "0.5", "0.5"),
        ("svm", "block_size", "'8kB'", r#""8kB""#),
        ("svm", "learning_rate", "0.125", "0.125"),
        ("svm", "shuffle", "'mrs'", r#""mrs""#),
        ("svm", "group_by", "'a'", r#""a""#),
        ("svm", "features", "'{b,c}'", r#"["b", "c"]"#),
    ] {
        let mut recorded = |given: &str| {
            db.run(&format!("SELECT corgipile_train('t', '{model}', max_epochs => 2, seed => 1, {given})"));
            let weights = "SELECT weights::text FROM corgipile.models ORDER BY model_id DESC LIMIT 1";
            (db.line(RECORD), db.line(weights))
        };
        let by_name = recorded(&format!("{name} => {sql}"));
        assert_eq!(by_name, recorded(&format!("options => '{{\"{name}\": {json}}}'")), "{name}");
        if !["verbose", "features", "group_by", "class_weight"].contains(&name) {
            let stored = format!("\"{name}\": {json}");
            assert!(by_name.0.contains(&stored), "{stored}: {}", by_name.0);
        }
    }
}

#[test]
fn what_is_wrong_with_a_value_is_said_however_it_is_given() {
    let mut db = Database::with_small_table(100);
    for (given, words) in [
        ("batch_size => 0", "option \"batch_size\" must be an integer from 1 to"),
        ("l2 => 'NaN'", "option \"l2\" must be"),
        ("optimizer => 'Adem'", "option \"optimizer\" must be"),
        ("hidden_layer_sizes => '{4}'", "option \"hidden_layer_sizes\" applies only to model mlp"),
        ("class_weight => '{1'", "option \"class_weight\" must be"),
        (r#"options => '{"max_epochs": 0}'"#, "argument \"max_epochs\": 0 is not between 1 and"),
        (r#"options => '{"max_epochs": 1.5}'"#, "option \"max_epochs\" must be an integer of type int"),
        (r#"options => '{"max_epochs": null}'"#, "option \"max_epochs\" must be an integer of type int"),
        (r#"options => '{"seed": 1e30}'"#, "option \"seed\" must be an integer of type bigint"),
        (r#"options => '{"learning_rate": "fast"}'"#, "option \"learning_rate\" must be a number"),
        (r#"options => '{"features": "a"}'"#, "option \"features\" must be an array of strings"),
        (r#"options => '{"features": [1]}'"#, "option \"features\" must be an array of strings"),
        (r#"options => '{"shuffle": true}'"#, "option \"shuffle\" must be a string"),
        (r#"options => '{"shuffle": "riffle"}'"#, "unknown shuffle strategy \"riffle\""),
    ] {
        db.rejects(&format!("SELECT corgipile_train('t', {given})"), "22023").says(&[words]);
    }
}

#[test]
fn every_argument_can_be_a_parameter_and_explain_shows_them() {
    let mut db = Database::with_small_table(100);
    let types: String =
        db.value("SELECT oidvectortypes(proargtypes) FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype");
    let places: Vec<String> = (1..=36).map(|i| format!("${i}")).collect();
    db.run(&format!(
        "PREPARE train({types}) AS SELECT * FROM corgipile_train({}); SET plan_cache_mode = force_generic_plan",
        places.join(", ")
    ));
    let call =
        "EXECUTE train('t', 'svm', NULL, NULL, NULL, 3, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                NULL, 4, 0.01, 0.02, 'adam', 'constant', true, 'skip', 'balanced', NULL, 0.2, 2, false, true, 'off', 'sgd', 'exact', NULL, NULL)";
    let plan = db.lines(&format!("EXPLAIN {call}")).join("\n");
    for line in [
        "Batch Size: 4",
        "L1: 0.01",
        "L2: 0.02",
        "Optimizer: adam",
        "Schedule: constant",
        "Class Weight: balanced",
        "Validation: 0.2 of the rows",
        "patience 2",
        "Shared Scan: on",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    assert!(!db.lines(call).is_empty());
}

#[test]
fn a_warm_start_and_a_grid_take_options_that_were_arguments() {
    let mut db = Database::with_small_table(100);
    let stored = "SELECT hyperparameters->'l2', hyperparameters->'batch_size', hyperparameters->'max_epochs', hyperparameters->'optimizer'
                    FROM corgipile.models ORDER BY model_id DESC LIMIT 1";
    db.run("SELECT corgipile_train('t', 'svm', max_epochs => 2, l2 => 0.25, batch_size => 5, optimizer => 'adam', name => 'm')");
    db.run("SELECT corgipile_train('t', warm_start => 'm', max_epochs => 1)");
    assert_eq!(db.line(stored), "0.25|5|3|\"adam\"");
    db.run("SELECT corgipile_train('t', 'Support_Vector_Machine', warm_start => 'm', max_epochs => 1, l2 => 0.5)");
    assert_eq!(db.line(stored), "0.5|5|1|\"adam\"");
    db.run(r#"SELECT corgipile_train('t', options => '{"warm_start": "m", "max_epochs": 1}')"#);
    assert_eq!(db.line(stored), "0.25|5|3|\"adam\"");
    db.run(r#"SELECT corgipile_train('t', max_epochs => 1, l2 => 0.5, batch_size => 3, grid => '{"l2": [0.125]}')"#);
    assert_eq!(db.line(stored), "0.125|3|1|\"sgd\"");
    db.run(r#"SELECT corgipile_train('t', options => '{"max_epochs": 1, "grid": {"learning_rate": [0.5, 0.25]}}')"#);
    assert_eq!(db.line("SELECT count(*) FROM corgipile.models WHERE hyperparameters ? 'grid_point'"), "3");
}

#[test]
fn the_aggregate_takes_its_own_arguments_as_options() {
    let mut db = Database::with_small_table(100);
    db.run(r#"SELECT corgipile_train_uda('t', options => '{"max_epochs": 2, "model": "SVM", "shuffle": "shuffle_once", "seed": 1}')"#);
    assert_eq!(db.line("SELECT model, hyperparameters->>'shuffle' FROM corgipile.models"), "svm|shuffle_once");
    db.rejects(r#"SELECT corgipile_train_uda('t', options => '{"workers": 2}')"#, "22023").says(&["unknown option"]);
    db.rejects(r#"SELECT corgipile_train_uda('t', seed => 1, options => '{"seed": 2}')"#, "22023").says(&["\"seed\""]);
    db.rejects(r#"SELECT corgipile_sgd_init('svm', 3, options => '{"max_epochs": 2}')"#, "22023")
        .says(&["unknown option"]);
    let state = |given: &str| format!("SELECT corgipile_sgd_init('svm', 3, {given})");
    let by_option = db.line(&state(r#"options => '{"learning_rate": 0.5}'"#));
    assert_eq!(db.line(&state("0.5")), by_option);
}

#[test]
fn a_model_is_called_by_its_name_or_an_alias_in_any_case() {
    let mut db = Database::with_small_table(100);
    for (name, model) in [
        ("Logistic", "logistic"),
        ("logistic_regression", "logistic"),
        ("SVM", "svm"),
        ("Support_Vector_Machine", "svm"),
        ("linear_regression", "linear"),
        ("softmax_regression", "softmax"),
        ("multinomial_logistic_regression", "softmax"),
        ("NEURAL_NETWORK", "mlp"),
        ("multilayer_perceptron", "mlp"),
    ] {
        db.run(&format!("SELECT corgipile_train('t', '{name}', max_epochs => 1)"));
        assert_eq!(db.line("SELECT model FROM corgipile.models ORDER BY model_id DESC LIMIT 1"), model, "{name}");
        let options = |name: &str| format!("SELECT count(*) FROM corgipile_options('{name}')");
        assert_eq!(db.line(&options(name)), db.line(&options(model)), "{name}");
    }
    let range = db.line("SELECT range FROM corgipile_options() WHERE name = 'model'");
    assert!(range.starts_with("logistic, svm,") && range.contains("neural_network"), "{range}");
}
