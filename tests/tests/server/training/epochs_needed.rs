//! Work that the result does not need: rows that are read before the first epoch, and epochs.

use corgipile_tests::{Database, Session, sample};

/// A table `wide` of 16,000 rows in some 5,400 pages, sorted by label: more pages than are all read before the first
/// epoch.
fn wide(db: &mut Session) {
    db.run(
        "CREATE TABLE wide (id int, label text, kind text, number real, x real[], filler text);
         ALTER TABLE wide ALTER filler SET STORAGE plain;
         INSERT INTO wide SELECT i, CASE WHEN i > 8000 THEN 'b' ELSE 'a' END, (ARRAY['red', 'blue'])[1 + i % 2], normal(i, 9),
                ARRAY[normal(i, 1) + (i > 8000)::int, 10 * normal(i, 2), 5 + normal(i, 3)]::real[], repeat('x', 2600)
           FROM generate_series(1, 16000) i;
         ANALYZE wide",
    );
}

/// What a call of corgipile_train() stores.
fn model(db: &mut Session, arguments: &str) -> String {
    let id: i64 = db.value(&format!("SELECT max(model_id) FROM corgipile_train({arguments})"));
    db.line(&format!(
        "SELECT weights, intercepts, feature_mean, feature_scale, classes, model FROM corgipile.models WHERE model_id = {id}"
    ))
}

/// Blocks that a training has read, of how many pages each.
fn blocks_read(db: &mut Session, arguments: &str) -> u64 {
    let plan = db.lines(&format!("EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM corgipile_train({arguments})"));
    let line = plan.iter().find_map(|line| line.trim().strip_prefix("Blocks Read: ").map(str::to_owned));
    line.expect("the plan says it").parse().unwrap()
}

const REST: &str = "label => 'label', features => '{x}', seed => 3, max_epochs => 1";

#[test]
fn a_sample_of_pages_is_read_before_the_first_epoch() {
    let mut db = Database::new();
    wide(&mut db);
    let pages: i64 = db.value("SELECT pg_relation_size('wide') / 8192");
    assert!(pages > 4096, "{pages}");
    let call = |more: &str| format!("'wide', {REST}, block_size => '8kB'{more}");
    let (sampled, all) = (blocks_read(&mut db, &call("")), blocks_read(&mut db, &call(", statistics => 'exact'")));
    assert_eq!((sampled, all), (pages as u64 + 1024, 2 * pages as u64));
    // the same seed draws the same sample, no matter who reads it
    let first = model(&mut db, &call(""));
    assert_eq!(model(&mut db, &call("")), first);
    assert_eq!(model(&mut db, &call(", prefetch => 'on'")), first);
    let exact = model(&mut db, &call(", statistics => 'exact'"));
    assert_ne!(exact, first);
    let accuracy = |db: &mut Session, prepare: &str| -> f64 {
        db.value(&format!(
            "SELECT (SELECT value FROM corgipile_evaluate(max(model_id), 'wide') WHERE metric = 'accuracy')
               FROM corgipile_train('wide', label => 'label', features => '{{x}}', seed => 3, statistics => '{prepare}')"
        ))
    };
    let (sampled, all) = (accuracy(&mut db, "sample"), accuracy(&mut db, "exact"));
    assert!((sampled - all).abs() < 0.002, "{sampled} {all}");
    // what is recorded trains the same model again
    let recorded: String =
        db.value("SELECT hyperparameters->>'statistics' FROM corgipile.models ORDER BY model_id DESC LIMIT 1");
    assert_eq!(recorded, "exact");
    db.fails_with("SELECT * FROM corgipile_train('wide', statistics => 'half')", "22023").says(&["sample", "exact"]);
}

#[test]
fn what_a_sample_does_not_contain_makes_the_training_begin_again_with_all_rows() {
    let mut db = Database::new();
    wide(&mut db);
    // what replaces a column of the table
    let changes = [
        ("label", "CASE WHEN id = 9000 THEN 'c' ELSE label END", "'softmax'", "{x}", "label c"),
        ("label", "CASE WHEN id = 9000 THEN 'c' ELSE label END", "'svm'", "{x}", "label c"),
        ("kind", "CASE WHEN id = 9000 THEN 'green' ELSE kind END", "'svm'", "{kind,number}", "category green"),
        ("kind", "CASE WHEN id <> 9000 THEN kind END", "'logistic'", "{kind,number}", "category NULL"),
        (
            "x",
            "CASE WHEN id = 9000 THEN ARRAY[x[1], -1e7, x[3]] ELSE x END",
            "'logistic'",
            "{x}",
            "a value as extreme as one of feature x[2]",
        ),
        ("number", "CASE WHEN id = 9000 THEN 1e7 ELSE number END", "'logistic'", "{kind,number}", "feature number"),
        ("x", "ARRAY[CASE WHEN id = 9000 THEN 8 ELSE 7 END, x[2], x[3]]", "'logistic'", "{x}", "feature x[1]"),
        ("label", "CASE WHEN id = 9000 THEN 'b' ELSE 'a' END", "'logistic'", "{x}", "a second value"),
    ];
    let strategies = ["no_shuffle", "block_only", "shuffle_once", "epoch_shuffle", "sliding_window", "mrs"];
    for (i, (column, change, kind, features, missing)) in changes.into_iter().enumerate() {
        let columns = ["id", "label", "kind", "number", "x", "filler"].map(|of| if of == column { change } else { of });
        db.run(&format!(
            "DROP TABLE IF EXISTS changed; CREATE TABLE changed (LIKE wide INCLUDING ALL);
             INSERT INTO changed SELECT {} FROM wide ORDER BY id",
            columns.join(", ")
        ));
        let call = |more: &str| {
            format!("'changed', model => {kind}, label => 'label', features => '{features}', seed => 3{more}")
        };
        let notices = db.notices(&[&format!("SELECT FROM corgipile_train({})", call(", max_epochs => 1"))]);
        assert!(notices.contains("begins again with all rows") && notices.contains(missing), "{change}: {notices}");
        assert_eq!(notices.matches("learning rate").count(), 1, "what the sample made choose is not said: {notices}");
        let exact = model(&mut db, &call(", max_epochs => 2, statistics => 'exact'"));
        assert_eq!(model(&mut db, &call(", max_epochs => 2")), exact, "{change}");
        assert_eq!(model(&mut db, &call(", max_epochs => 2, prefetch => 'on'")), exact, "{change} by a worker");
        for more in [r#", validation_fraction => 0.2"#, r#", grid => '{"l2": [0, 0.1]}'"#] {
            let exact = model(&mut db, &call(&format!(", max_epochs => 2, statistics => 'exact'{more}")));
            assert_eq!(model(&mut db, &call(&format!(", max_epochs => 2{more}"))), exact, "{change}{more}");
        }
        for shuffle in strategies.iter().skip(sample(0, i % 3)).step_by(sample(1, 3)) {
            let call =
                |prepare: &str| call(&format!(", max_epochs => 1, shuffle => '{shuffle}', statistics => '{prepare}'"));
            assert_eq!(model(&mut db, &call("sample")), model(&mut db, &call("exact")), "{change} {shuffle}");
        }
    }
}

#[test]
fn numbers_whose_tail_a_sample_lacks_are_measured_in_all_rows() {
    let mut db = Database::new();
    // log-normal, in their order: the last pages have what makes the logarithm of it all
    db.run(
        "CREATE TABLE tail (x real, y real, filler text); ALTER TABLE tail ALTER filler SET STORAGE plain;
         INSERT INTO tail SELECT exp(1.2 * g), 1.5 * g + normal(i, 3) / 4, repeat('x', 600)
           FROM (SELECT i, sqrt(-2 * ln(uniform(i, 1) + 1e-6)) * cos(6.28319 * uniform(i, 2)) AS g FROM generate_series(1, 60000) i) r
          ORDER BY g",
    );
    for seed in 1..=4 {
        let call = |prepare: &str| {
            format!(
                "'tail', model => 'linear', label => 'y', features => '{{x}}', max_epochs => 4, seed => {seed}, statistics => '{prepare}'"
            )
        };
        let r2 = |db: &mut Session, prepare: &str| -> f64 {
            db.value(&format!(
                "SELECT (SELECT value FROM corgipile_evaluate(max(model_id), 'tail') WHERE metric = 'r2') FROM corgipile_train({})",
                call(prepare)
            ))
        };
        let (sampled, exact) = (r2(&mut db, "sample"), r2(&mut db, "exact"));
        assert!((sampled - exact).abs() < 0.005, "{seed}: {sampled} {exact}");
    }
}

#[test]
fn a_part_of_the_table_has_the_epochs_that_suit_its_rows() {
    let mut db = Database::new();
    wide(&mut db);
    for sample in ["0.1", "0.9"] {
        let call = |prepare: &str| {
            format!(
                "'wide', label => 'label', features => '{{x}}', seed => 3, sample => {sample}, statistics => '{prepare}'"
            )
        };
        assert_eq!(model(&mut db, &call("sample")), model(&mut db, &call("exact")), "{sample}");
    }
}

#[test]
fn a_rate_that_diverges_diverges_at_once() {
    let mut db = Database::new();
    wide(&mut db);
    let notices = db.notices(&[
        "SELECT FROM corgipile_train('wide', 'linear', label => 'number', features => '{x}', learning_rate => 1e6, seed => 1, standardize => false)",
    ]);
    assert!(notices.contains("diverged") && !notices.contains("begins again"), "{notices}");
}

#[test]
fn nulls_that_a_sample_does_not_contain_are_its_means_and_are_counted() {
    let mut db = Database::new();
    wide(&mut db);
    db.run("UPDATE wide SET x[3] = NULL WHERE id = 9000; UPDATE wide SET label = NULL WHERE id = 9001");
    db.run("CREATE TABLE changed (LIKE wide INCLUDING ALL); INSERT INTO changed SELECT * FROM wide ORDER BY id");
    let notices = db.notices(&[&format!("SELECT FROM corgipile_train('changed', {REST})")]);
    assert!(
        notices.contains("NULLs are imputed in 1 of 15999 rows") && notices.contains("1 of 16000 rows"),
        "{notices}"
    );
    assert!(!notices.contains("again with all rows"), "{notices}");
}

#[test]
fn a_training_that_goes_on_knows_its_sample_again() {
    let mut db = Database::new();
    wide(&mut db);
    let call = "'wide', label => 'label', features => '{x}', seed => 3";
    let whole = model(&mut db, &format!("{call}, max_epochs => 3"));
    db.run(&format!("SELECT FROM corgipile_train({call}, max_epochs => 2, name => 'begun')"));
    assert_eq!(model(&mut db, "'wide', warm_start => 'begun', max_epochs => 1"), whole);
    // in other rows the same sample finds something else
    db.run("UPDATE wide SET x = ARRAY[x[1] * 2, x[2], x[3]]");
    let own = model(&mut db, "'wide', warm_start => 'begun', max_epochs => 1");
    assert_ne!(own, whole);
}

#[test]
fn a_large_table_has_as_many_epochs_as_make_five_million_steps() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE long (y boolean, x real[]);
         INSERT INTO long SELECT i % 2 = 0, ARRAY[normal(i, 1) + (i % 2), normal(i, 2)]::real[] FROM generate_series(1, 1300000) i ORDER BY i % 2",
    );
    let call = |more: &str| {
        format!("SELECT model_id FROM corgipile_train('long', label => 'y', features => '{{x}}', seed => 1{more})")
    };
    let accuracy = |db: &mut Session, more: &str, epochs: usize| -> f64 {
        assert_eq!(db.lines(&call(more)).len(), epochs, "{more}");
        db.value("SELECT value FROM corgipile_evaluate((SELECT max(model_id) FROM corgipile.models), 'long') WHERE metric = 'accuracy'")
    };
    // the rate falls to a hundredth in this many epochs, and in 20 where that is said
    let auto = accuracy(&mut db, "", 4);
    let twenty = accuracy(&mut db, r#", max_epochs => 20, options => '{"decay": 0.7943}'"#, 20);
    assert!((auto - twenty).abs() < 0.001, "{auto} {twenty}");
    let notices = db.notices(&[&call("")]);
    assert!(notices.contains("4 epochs, learning rate"), "{notices}");
    assert_eq!(accuracy(&mut db, ", prefetch => 'on'", 4), auto);
}

#[test]
fn small_tables_have_as_many_epochs_as_ever() {
    let mut db = Database::with_small_table(2000);
    assert_eq!(db.lines("SELECT epoch FROM corgipile_train('t', seed => 1)").len(), 100);
}
