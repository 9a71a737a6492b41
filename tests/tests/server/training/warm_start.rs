//! warm_start: to train on where a training has ended is to have trained longer, bit for bit.

use corgipile_tests::{Database, Session};

fn table(db: &mut Session) {
    db.run(
        "CREATE TABLE t AS
         SELECT i::int AS id, (ARRAY['yes', 'no'])[1 + (uniform(i, 0) < 0.4)::int] AS answer,
                (ARRAY['cat', 'ant', 'bee'])[1 + (uniform(i, 6) * 3)::int % 3] AS animal,
                (uniform(i, 0) < 0.4)::int + normal(i, 5) AS target,
                ARRAY[(uniform(i, 0) < 0.4)::int + normal(i, 1), normal(i, 2), 2 * normal(i, 3)]::real[] AS x,
                CASE WHEN i % 7 = 0 THEN '{2}' ELSE '{1,3}' END::int[] AS k,
                CASE WHEN i % 7 = 0 THEN ARRAY[normal(i, 1)] ELSE ARRAY[1 + normal(i, 1), normal(i, 2)] END::real[] AS v,
                normal(i, 7) AS number, (ARRAY['north', 'south', 'east'])[1 + i % 3] AS site, i % 5 = 0 AS test
           FROM generate_series(1, 3000) i;
         ANALYZE t",
    );
}

const SIZES: &str = "seed => 7, block_size => '16kB', buffer_size => '20%', learning_rate => 0.005";

/// Trains five epochs at once, and two and three; gives both models' bits and losses.
fn both(db: &mut Session, arguments: &str, again: &str) {
    let whole = db.train(&format!("'t', {arguments}, max_epochs => 5"));
    let first = db.train(&format!("'t', {arguments}, max_epochs => 2"));
    let second = db.train(&format!("'t', warm_start => '{}', max_epochs => 3{again}", first[0].model_id));
    let losses = |epochs: &[corgipile_tests::Epoch]| {
        epochs.iter().map(|e| (e.epoch, e.loss, e.learning_rate)).collect::<Vec<_>>()
    };
    assert_eq!([losses(&first), losses(&second)].concat(), losses(&whole), "{arguments}");
    assert_eq!(db.model(second[0].model_id).bits(), db.model(whole[0].model_id).bits(), "{arguments}");
    let history: Vec<i32> =
        db.column(&format!("SELECT epoch FROM corgipile.training_history WHERE model_id = {}", second[0].model_id));
    assert_eq!(history, [1, 2, 3, 4, 5]);
}

#[test]
fn two_epochs_and_three_are_five_for_every_model_optimizer_and_schedule() {
    let mut db = Database::new();
    table(&mut db);
    let models = [("logistic", "answer"), ("svm", "answer"), ("linear", "target"), ("softmax", "animal")];
    let optimizers = [r#""optimizer": "sgd""#, r#""optimizer": "momentum""#, r#""optimizer": "adam""#];
    let schedules = [
        r#""schedule": "constant""#,
        r#""decay": 0.5"#,
        r#""schedule": "inverse_scaling", "power": 0.3"#,
        r#""schedule": "theorem1", "mu": 0.01"#,
    ];
    for (i, (model, label)) in models.into_iter().enumerate() {
        for (j, optimizer) in optimizers.into_iter().enumerate() {
            for (k, schedule) in schedules.into_iter().enumerate() {
                let n = i + j + k;
                let features = if n % 2 == 0 { "{x}" } else { "{k,v}" };
                let batch = if (i + k) % 3 == 0 { 8 } else { 1 };
                let more = ["", r#", "l2": 0.001"#, r#", "l1": 0.0001"#, r#", "standardize": true"#][n % 4];
                let options = format!(r#"{{{optimizer}, {schedule}, "batch_size": {batch}{more}}}"#);
                both(
                    &mut db,
                    &format!(
                        "model => '{model}', label => '{label}', features => '{features}', {SIZES}, options => '{options}'"
                    ),
                    "",
                );
            }
        }
    }
}

#[test]
fn what_was_learned_about_the_rows_is_known_already() {
    let mut db = Database::new();
    table(&mut db);
    for arguments in [
        r#"label => 'answer', features => '{number,site}', options => '{"standardize": true, "class_weight": "balanced"}'"#,
        r#"label => 'answer', features => '{x}', options => '{"class_weight": {"yes": 2}}'"#,
        r#"model => 'softmax', label => 'animal', features => '{k,v}', options => '{"standardize": true, "dimensions": 9}'"#,
        r#"label => 'answer', features => '{x}', options => '{"validation_column": "test", "tolerance": 0}'"#,
        r#"label => 'answer', features => '{x}', options => '{"validation_fraction": 0.3}', shuffle => 'epoch_shuffle'"#,
        "label => 'answer', features => '{x}', shuffle => 'mrs'",
        "label => 'answer', features => '{x}', shuffle => 'sliding_window'",
        "label => 'answer', features => '{x}', shuffle => 'shuffle_once'",
    ] {
        both(&mut db, &format!("{arguments}, {SIZES}"), "");
    }
    for loader in ["worker", "in_process"] {
        both(&mut db, &format!("label => 'answer', features => '{{x}}', {SIZES}"), &format!(", loader => '{loader}'"));
    }
}

#[test]
fn a_training_that_goes_on_may_differ_in_what_is_no_state() {
    let mut db = Database::new();
    table(&mut db);
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'answer', features => '{{x}}', name => 'm', {SIZES}, max_epochs => 2)"));
    let rows = db.train("'SELECT * FROM t WHERE id > 1000', warm_start => 'm', max_epochs => 1, learning_rate => 0.5, options => '{\"l2\": 0.1}'");
    assert_eq!((rows[0].epoch, rows[0].tuples), (3, 2000));
    assert!((rows[0].learning_rate - 0.5 * 0.95f64.powi(2)).abs() < 1e-12);
    let rows = db.lines(
        "SELECT DISTINCT group_value, grid_point FROM corgipile_train('t', warm_start => 'm', max_epochs => 1, group_by => 'site',
             grid => '{\"l2\": [0, 0.1]}')",
    );
    assert_eq!(rows.len(), 6);
    let plan = db.lines("EXPLAIN SELECT * FROM corgipile_train('t', warm_start => 'm')");
    assert!(plan.iter().any(|line| line.contains("Continues: model 1 after epoch 2")), "{plan:#?}");
}

#[test]
fn what_does_not_fit_the_model_is_an_error() {
    let mut db = Database::new();
    table(&mut db);
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'answer', features => '{{x}}', name => 'm', {SIZES}, max_epochs => 2)"));
    let mut fails = |arguments: &str, code: &str, words: &[&str]| {
        db.fails_with(&format!("SELECT * FROM corgipile_train({arguments})"), code).says(words);
    };
    fails("'t', warm_start => 'nobody'", "42704", &["nobody"]);
    fails("'t', warm_start => '77'", "42704", &["77"]);
    fails("'t', warm_start => 'm', model => 'svm'", "22023", &["logistic model"]);
    fails("'t', warm_start => 'm', features => '{k,v}'", "22023", &["features"]);
    fails("'SELECT answer, k AS x FROM t', warm_start => 'm'", "2202E", &["features instead of 3"]);
    fails("'SELECT answer, id AS x FROM t', warm_start => 'm'", "22023", &["features"]);
    fails(
        "$$SELECT CASE id WHEN 7 THEN 'perhaps' ELSE answer END AS answer, x FROM t$$, warm_start => 'm'",
        "22023",
        &["perhaps"],
    );
    fails("'SELECT id AS answer, x FROM t', warm_start => 'm'", "22023", &["classes"]);
    fails(r#"'t', warm_start => 'm', options => '{"optimizer": "adam"}'"#, "22023", &["optimizer"]);
    fails(r#"'t', warm_start => 'm', options => '{"batch_size": 16}'"#, "22023", &["batch_size"]);
    db.run(
        "SELECT FROM corgipile_train_uda('t', label => 'answer', features => '{x}', name => 'uda', max_epochs => 1)",
    );
    db.fails_with("SELECT * FROM corgipile_train('t', warm_start => 'uda')", "22023")
        .says(&["without its training state"]);
}

#[test]
fn the_column_of_weights_is_that_of_the_first_training() {
    let mut db = Database::new();
    table(&mut db);
    db.run("ALTER TABLE t ADD w real; UPDATE t SET w = 1 + id % 3");
    db.run("VACUUM FULL t");
    both(&mut db, &format!(r#"label => 'answer', features => '{{x}}', {SIZES}, options => '{{"weight": "w"}}'"#), "");
}

/// Values and numbers of the models that a call stores, by group.
fn groups(db: &mut Session, arguments: &str) -> Vec<(String, i64)> {
    let sql =
        format!("SELECT DISTINCT group_value COLLATE \"C\", model_id FROM corgipile_train({arguments}) ORDER BY 1");
    db.rows(&sql, &[]).iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn a_model_of_a_group_goes_on_with_the_rows_of_its_group() {
    let mut db = Database::new();
    table(&mut db);
    for more in ["", r#", options => '{"validation_fraction": 0.2}'"#] {
        let arguments = format!("'t', label => 'answer', features => '{{x}}', {SIZES}, group_by => 'site'{more}");
        let whole = groups(&mut db, &format!("{arguments}, max_epochs => 5"));
        let first = groups(&mut db, &format!("{arguments}, max_epochs => 2"));
        assert_eq!(first.len(), 3);
        for ((site, id), (_, whole)) in first.iter().zip(&whole) {
            let second = groups(&mut db, &format!("'t', warm_start => '{id}', max_epochs => 3"));
            assert_eq!(second.len(), 1, "{second:?}");
            assert_eq!(second[0].0, *site);
            assert_eq!(db.model(second[0].1).bits(), db.model(*whole).bits(), "{site}{more}");
            let third = groups(&mut db, &format!("'t', warm_start => '{}', max_epochs => 1", second[0].1));
            assert_eq!(third[0].0, *site, "it is still the model of its group");
        }
        let id = first[0].1;
        let each = groups(&mut db, &format!("'t', warm_start => '{id}', group_by => 'site', max_epochs => 1"));
        assert_eq!(each.len(), 3);
        let fails = |source: &str| format!("SELECT * FROM corgipile_train('{source}', warm_start => '{id}')");
        db.fails_with(&fails("SELECT answer, x FROM t"), "42703").says(&["site"]);
        db.fails_with(&fails("SELECT answer, x, site FROM t WHERE id % 3 = 0"), "22000").says(&["no rows"]);
    }
}

#[test]
fn features_stay_standardized_or_not() {
    let mut db = Database::new();
    table(&mut db);
    for standardize in [true, false] {
        let options = |standardize: bool| format!(r#"options => '{{"standardize": {standardize}}}'"#);
        let first =
            format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 1, {}", options(standardize));
        let id = db.train(&first)[0].model_id;
        let again = |options: String| format!("'t', warm_start => '{id}', max_epochs => 1, {options}");
        db.train(&again(options(standardize)));
        let sql = format!("SELECT * FROM corgipile_train({})", again(options(!standardize)));
        db.fails_with(&sql, "22023").says(&["standardized features"]);
    }
}

#[test]
fn the_best_epoch_may_be_one_of_the_first_training() {
    let mut db = Database::new();
    table(&mut db);
    // of one of them, the class that sorts first comes first: the stored weights are those of the classes as sorted
    for (label, source) in [("answer", "t"), ("is_no", "SELECT answer = ''no'' AS is_no, x FROM t")] {
        let first = format!(
            r#"'{source}', label => '{label}', features => '{{x}}', seed => 7, max_epochs => 4, learning_rate => 0.01, options => '{{"keep": "best"}}'"#
        );
        let first = db.train(&first)[0].model_id;
        // no epoch at such a rate is better
        let worse = db.train(&format!("'{source}', warm_start => '{first}', max_epochs => 2, learning_rate => 20"));
        let lowest: f64 =
            db.value(&format!("SELECT min(loss) FROM corgipile.training_history WHERE model_id = {first}"));
        assert!(worse.iter().all(|epoch| epoch.loss > lowest), "{lowest} {worse:?}");
        assert_eq!(db.model(worse[0].model_id).bits(), db.model(first).bits(), "{label}");
        // and the training goes on where the last epoch was
        let third = db.train(&format!("'{source}', warm_start => '{}', max_epochs => 1", worse[0].model_id));
        assert_eq!(third[0].epoch, 7);
    }
    let arguments = format!(
        r#"label => 'answer', features => '{{x}}', {SIZES}, options => '{{"keep": "best", "validation_fraction": 0.3}}'"#
    );
    both(&mut db, &arguments, "");
    let id = db.train("'t', label => 'answer', features => '{x}', max_epochs => 1")[0].model_id;
    let sql = format!(r#"SELECT * FROM corgipile_train('t', warm_start => '{id}', options => '{{"keep": "best"}}')"#);
    db.fails_with(&sql, "0A000").says(&["best epoch"]);
}

#[test]
fn a_category_that_the_model_does_not_have_and_a_damaged_state_say_what_to_do() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', label => 'answer', features => '{number,site}', max_epochs => 1, name => 'm'");
    let elsewhere = "SELECT answer, number, CASE id WHEN 9 THEN ''west'' ELSE site END AS site FROM t";
    for loader in ["in_process", "worker"] {
        db.rejects(&format!("SELECT corgipile_train('{elsewhere}', warm_start => 'm', loader => '{loader}')"), "22023")
            .says(&["category west of column \"site\"", "was not trained on"])
            .hints(&["keeps its categories", "query as source"]);
        let odd = "SELECT CASE id WHEN 9 THEN ''maybe'' ELSE answer END AS answer, number, site FROM t";
        db.rejects(&format!("SELECT corgipile_train('{odd}', warm_start => 'm', loader => '{loader}')"), "22023")
            .says(&["label maybe"])
            .hints(&["no, yes"]);
    }
    for damage in [
        "'\\x00'",
        "substr(training_state, 1, length(training_state) - 1)",
        "set_byte(training_state, 0, 255)",
        "set_byte(training_state, 9, 255)",
        "training_state || '\\x00'",
    ] {
        db.run(&format!("BEGIN; UPDATE corgipile.stored_models SET training_state = {damage}"));
        let failure = db.attempt("SELECT corgipile_train('t', warm_start => 'm')").expect_err(damage);
        assert_eq!(failure.code, "22023", "{damage}");
        failure.says(&["training state cannot be read"]).hints(&["damaged", "train the model anew"]);
        db.run("ROLLBACK");
    }
}

#[test]
fn all_epochs_together_are_a_million_at_most() {
    let mut db = Database::new();
    table(&mut db);
    db.train("'t', label => 'answer', features => '{x}', max_epochs => 10, name => 'm'");
    // what 999,990 epochs would leave: the header is JSON behind its length
    db.run(
        "UPDATE corgipile.stored_models SET training_state = s.state FROM (
            SELECT set_byte(set_byte(substr(training_state, 1, 8), 0, (n + 4) & 255), 1, (n + 4) >> 8)
                   || replace(convert_from(substr(training_state, 9, n), 'UTF8'), '\"epochs\":10', '\"epochs\":999990')::bytea
                   || substr(training_state, 9 + n) AS state
              FROM (SELECT training_state, get_byte(training_state, 0) + 256 * get_byte(training_state, 1) AS n
                      FROM corgipile.stored_models) m) s",
    );
    for more in ["max_epochs => 11", "max_epochs => 5, grid => '{\"max_epochs\": [3, 11]}'"] {
        db.rejects(&format!("SELECT corgipile_train('t', warm_start => 'm', {more})"), "22023")
            .says(&["\"max_epochs\"", "11 epochs after 999990 are more than 1000000"]);
    }
    assert_eq!(db.train("'t', warm_start => 'm', max_epochs => 1").len(), 1);
}

#[test]
fn a_model_that_was_granted_is_trained_on_as_ones_own() {
    let mut db = Database::new();
    table(&mut db);
    let (owner, friend, stranger) = (db.role("owner"), db.role("friend"), db.role("stranger"));
    db.run(&format!("GRANT SELECT ON t TO {owner}, {friend}, {stranger}"));
    let (mut o, mut f, mut s) = (db.session_as(&owner), db.session_as(&friend), db.session_as(&stranger));
    let first = o.train(&format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 2, name => 'm'"));
    o.run(&format!("SELECT corgipile_grant('m', '{friend}')"));
    let before = o.line("SELECT md5(m::text) FROM corgipile.stored_models m");
    let theirs = f.train("'t', warm_start => 'm', max_epochs => 3, name => 'm'");
    let whole = o.train(&format!("'t', label => 'answer', features => '{{x}}', {SIZES}, max_epochs => 5"));
    assert_eq!(f.model(theirs[0].model_id).bits(), o.model(whole[0].model_id).bits());
    // a model of the friend's own; the owner's is as it was, and its state is not shown
    let own =
        format!("SELECT owner, version, granted_to FROM corgipile.models WHERE model_id = {}", theirs[0].model_id);
    assert_eq!(f.line(&own), format!("{friend}|1|{{}}"));
    let now = format!("SELECT md5(m::text) FROM corgipile.stored_models m WHERE model_id = {}", first[0].model_id);
    assert_eq!(o.line(&now), before);
    o.fails_with(&format!("SELECT corgipile_predict({}, ARRAY[1,2,3])", theirs[0].model_id), "42501");
    s.fails_with("SELECT corgipile_train('t', warm_start => 'm')", "42501");
    // whoever may use the model still needs the rows
    db.run(&format!("REVOKE SELECT ON t FROM {friend}"));
    f.fails_with(&format!("SELECT corgipile_train('t', warm_start => '{}')", theirs[0].model_id), "42501").says(&["t"]);
}

/// Both ways in which the function is run: as a node of the plan, and as a function.
fn both_ways(arguments: &str) -> [String; 2] {
    [
        format!("SELECT max(model_id) FROM corgipile_train({arguments})"),
        format!("SELECT max((r).model_id) FROM (SELECT corgipile_train({arguments}) AS r) AS rows"),
    ]
}

#[test]
fn an_argument_that_is_given_is_honoured_also_if_it_is_the_default() {
    let mut db = Database::new();
    table(&mut db);
    db.run("ALTER TABLE t ADD label text; UPDATE t SET label = answer");
    db.run("VACUUM FULL t");
    let first = r#"'t', label => 'answer', features => '{x}', name => 'm', max_epochs => 2, seed => 7, learning_rate => 0.5,
                   shuffle => 'no_shuffle', block_size => '16kB', buffer_size => '50%', sample => 0.5,
                   options => '{"decay": 0.5, "batch_size": 8, "l2": 0.01, "tolerance": 0, "patience": 3,
                                "validation_fraction": 0.2, "validation_by": "block", "keep": "best", "class_weight": "balanced"}'"#;
    db.train(first);
    let record = "SELECT COALESCE(hyperparameters->>'%', 'default'), label FROM corgipile.models WHERE model_id = ";
    let mut says = |given: &str, key: &str, expected: &str| {
        for sql in both_ways(&format!("'t', warm_start => 'm', max_epochs => 1{given}")) {
            let id: i64 = db.value(&sql);
            let (value, label) = {
                let line = db.line(&format!("{}{id}", record.replace('%', key)));
                let (value, label) = line.split_once('|').unwrap();
                (value.to_owned(), label.to_owned())
            };
            assert_eq!(if key == "label" { label } else { value }, expected, "{sql}");
        }
    };
    for (argument, default) in [
        ("model", "'logistic'"),
        ("label", "'label'"),
        ("shuffle", "'corgipile'"),
        ("block_size", "'auto'"),
        ("buffer_size", "'10%'"),
        ("seed", "0"),
        ("learning_rate", "0.01"),
        ("sample", "1"),
        ("workers", "1"),
    ] {
        let key = argument;
        let expected = match argument {
            "model" => "default",
            "sample" => "1.0",
            _ => default.trim_matches('\''),
        };
        says(&format!(", {argument} => {default}"), key, expected);
    }
    // nothing given, or NULL
    for (argument, value) in [
        ("label", "answer"),
        ("shuffle", "no_shuffle"),
        ("block_size", "16kB"),
        ("buffer_size", "50%"),
        ("sample", "0.5"),
        ("seed", "7"),
        ("learning_rate", "0.5"),
    ] {
        says("", argument, value);
        says(&format!(", {argument} => NULL"), argument, value);
    }
    for (options, key, expected) in [
        (r#"{"decay": 0.95}"#, "decay", "0.95"),
        (r#"{"schedule": "exponential"}"#, "decay", "0.95"),
        (r#"{"l2": 0}"#, "l2", "0"),
        (r#"{"tolerance": 0.001}"#, "tolerance", "0.001"),
        (r#"{"patience": 5}"#, "patience", "5"),
        (r#"{"keep": "last"}"#, "keep", "default"),
        (r#"{"validation_fraction": 0.2, "validation_by": "row"}"#, "validation_by", "row"),
    ] {
        let expected = if expected == "0" { "0.0" } else { expected };
        says(&format!(", options => '{options}'"), key, expected);
        says(&format!(", grid => '[{{\"learning_rate\": 0.01}}]', options => '{options}'"), "learning_rate", "0.01");
    }
    // twenty epochs are the default, whatever the first training had
    assert_eq!(
        db.value::<i64>(
            "SELECT count(*) FROM corgipile_train('t', warm_start => 'm', options => '{\"patience\": 99}')"
        ),
        20
    );
    assert_eq!(db.value::<i64>("SELECT count(*) FROM corgipile_train('t', warm_start => 'm', max_epochs => 20, options => '{\"patience\": 99}')"), 20);
}

#[test]
fn a_default_that_does_not_fit_the_model_is_refused_by_name() {
    let mut db = Database::new();
    table(&mut db);
    let mut fails = |first: &str, again: &str, words: &[&str]| {
        let id = db.train(&format!("'t', {first}, max_epochs => 1, seed => 1"))[0].model_id;
        for sql in both_ways(&format!("'t', warm_start => '{id}', max_epochs => 1, {again}")) {
            db.fails_with(&sql, "22023").says(words);
        }
    };
    let x = "label => 'answer', features => '{x}'";
    fails(&format!("{x}, model => 'svm'"), "model => 'logistic'", &["svm model"]);
    let mut option = |first: &str, again: &str, words: &[&str]| {
        fails(&format!("{x}, options => '{first}'"), &format!("options => '{again}'"), words);
    };
    option(r#"{"optimizer": "adam"}"#, r#"{"optimizer": "sgd"}"#, &["optimizer"]);
    option(r#"{"optimizer": "adam"}"#, r#"{"beta1": 0.9}"#, &["beta1"]);
    option(r#"{"batch_size": 8}"#, r#"{"batch_size": 1}"#, &["batch_size"]);
    option(r#"{"l1": 0.1}"#, r#"{"l1": 0}"#, &["l1"]);
    option(r#"{"schedule": "theorem1", "mu": 1}"#, r#"{"schedule": "exponential"}"#, &["schedule"]);
    option(r#"{"standardize": true}"#, r#"{"standardize": false}"#, &["standardized"]);
    option(
        r#"{"validation_fraction": 0.2, "validation_by": "block"}"#,
        r#"{"validation_by": "row"}"#,
        &["validation_by"],
    );
    let sparse = r#"label => 'answer', features => '{k,v}', options => '{"index_base": 0}'"#;
    fails(sparse, r#"options => '{"index_base": 1}'"#, &["index_base"]);
    let network = r#"model => 'mlp', label => 'answer', features => '{x}', options => '{"activation": "relu", "hidden_layers": [3], "output": "softmax"}'"#;
    fails(network, r#"options => '{"activation": "sigmoid"}'"#, &["activation"]);
    fails(network, r#"options => '{"output": "sigmoid"}'"#, &["output"]);
    fails(network, r#"options => '{"hidden_layers": [16, 16]}'"#, &["hidden"]);
}

#[test]
fn the_defaults_that_the_function_does_not_declare_are_in_its_comment() {
    let mut db = Database::new();
    table(&mut db);
    let comment = db.line("SELECT obj_description(oid, 'pg_proc') FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype");
    let declared = "SELECT pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'corgipile_train' AND proargtypes[0] = 'text'::regtype";
    assert_eq!(
        db.line(declared).matches("DEFAULT NULL").count(),
        32,
        "all but source, whose values could not be told apart"
    );
    // what a training with the arguments of the comment is, one without them is, too
    let arguments = "model => 'logistic', label => 'label', shuffle => 'corgipile', block_size => 'auto', \
                     buffer_size => 'auto', loader => 'auto', workers => 1";
    for argument in arguments.split(", ").map(|argument| argument.trim().replace(" => ", " ").replace('\'', "")) {
        assert!(comment.contains(&argument), "{argument} in {comment}");
    }
    db.run("ALTER TABLE t RENAME answer TO label");
    let [one, other] = ["", arguments].map(|arguments| {
        let comma = if arguments.is_empty() { "" } else { ", " };
        let epochs = db.train(&format!("'t', features => '{{x}}', seed => 3{comma}{arguments}"));
        assert_eq!(epochs.len(), 100);
        let id = epochs[0].model_id;
        (db.model(id).bits(), db.line(&format!("SELECT hyperparameters FROM corgipile.models WHERE model_id = {id}")))
    });
    assert_eq!(one, other);
}
