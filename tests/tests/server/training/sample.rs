//! Argument `sample`: training on a part of the blocks.

use corgipile_tests::{Database, clustered};

/// Tuples of each epoch.
fn tuples(db: &mut Database, arguments: &str) -> Vec<i64> {
    let arguments =
        format!("{arguments}, features => '{{features_v}}', max_epochs => 3, options => '{{\"cache\": \"off\"}}'");
    db.train(&arguments).iter().map(|epoch| epoch.tuples).collect()
}

#[test]
fn a_fraction_of_the_blocks_is_trained_on_in_every_epoch() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    db.run(
        "CREATE TABLE p (LIKE t) PARTITION BY RANGE (id);
         CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (5000);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (5000) TO (99999); INSERT INTO p SELECT * FROM t; ANALYZE p",
    );
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    let per_page = 20_000 / pages + 1;
    for source in ["t", "p", "SELECT label, features_v FROM t ORDER BY id"] {
        for (sample, fraction) in [("0.5", 0.5), ("0.1", 0.1), ("0.03", 0.03)] {
            let more = if source.starts_with("SELECT") { "block_size => '8kB'" } else { "block_size => '16kB'" };
            let tuples = tuples(&mut db, &format!("'{source}', sample => {sample}, seed => 4, {more}"));
            assert!(tuples.iter().all(|n| *n == tuples[0]), "{source}: {tuples:?}");
            let (expected, block) = (20_000.0 * fraction, 2.0 * per_page as f64);
            assert!((tuples[0] as f64 - expected).abs() <= 2.0 * block, "{source}, {sample}: {tuples:?}");
        }
        assert_eq!(tuples(&mut db, &format!("'{source}', sample => 1, seed => 4")), [20_000; 3]);
    }
}

#[test]
fn a_sample_is_fixed_by_the_seed_and_the_same_rows_in_every_epoch() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    // the mean label of what is read, which no order changes: a linear model without features that matter
    let mean = |db: &mut Database, seed: i32, epochs: i32, more: &str| -> (String, i64) {
        let id = db.train(&format!(
            "'SELECT id::float8 AS label, 0 AS x FROM t', model => 'linear', sample => 0.2, seed => {seed},
              max_epochs => {epochs}, learning_rate => 0.000001{more}"
        ))[0]
            .model_id;
        let history = format!("SELECT history->0->>'tuples' FROM corgipile.models WHERE model_id = {id}");
        let epochs = format!("SELECT tuples FROM corgipile.training_history WHERE model_id = {id} GROUP BY tuples");
        assert_eq!(db.lines(&epochs).len(), 1);
        let model = format!("SELECT weights, intercepts FROM corgipile.models WHERE model_id = {id}");
        (db.line(&model), db.line(&history).parse().expect("a number"))
    };
    let first = mean(&mut db, 1, 3, "");
    assert_eq!(mean(&mut db, 1, 3, ""), first, "a seed repeats it");
    assert_ne!(mean(&mut db, 2, 3, "").0, first.0, "another seed, another sample");
    assert_eq!(mean(&mut db, 1, 3, ", prefetch => 'on'"), first, "a worker reads the same");
    // with all rows in the buffer and in one batch, epochs of the same rows differ in rounding at most
    let one_batch = "buffer_size => '100%', shuffle => 'no_shuffle', learning_rate => 1e-30,
                     options => '{\"batch_size\": 100000}'";
    let epochs =
        db.train(&format!("'t', features => '{{features_v}}', sample => 0.3, seed => 3, {one_batch}, max_epochs => 3"));
    assert!(epochs.iter().all(|epoch| epoch.loss == epochs[0].loss && epoch.tuples == epochs[0].tuples), "{epochs:?}");
    let sample: String = db.value(&format!(
        "SELECT hyperparameters->>'sample' FROM corgipile.models WHERE model_id = {}",
        epochs[0].model_id
    ));
    assert_eq!(sample, "0.3");
}

#[test]
fn a_sample_of_everything_is_everything_and_explain_shows_it() {
    let mut db = Database::new();
    clustered(&mut db, "t", 5000);
    let train = "'t', features => '{features_v}', max_epochs => 3, seed => 5";
    let expected = db.trained(train).bits();
    assert_eq!(db.trained(&format!("{train}, sample => 1")).bits(), expected);
    assert_eq!(db.trained(&format!("{train}, sample => NULL")).bits(), expected);
    let two = db.trained(&format!("{train}, sample => 0.5, workers => 2, buffer_size => '50%'"));
    assert_eq!(db.trained(&format!("{train}, sample => 0.5, workers => 2, buffer_size => '50%'")).bits(), two.bits());
    let half = db.trained(&format!("{train}, sample => 0.5, name => 'half'"));
    let went_on = db.trained("'t', warm_start => 'half', max_epochs => 3");
    let at_once = db.trained("'t', features => '{features_v}', max_epochs => 6, seed => 5, sample => 0.5");
    assert_ne!(half.bits(), expected);
    assert_eq!(went_on.bits(), at_once.bits());
    let explain =
        format!("EXPLAIN (COSTS OFF) SELECT * FROM corgipile_train({train}, sample => 0.25, block_size => '8kB')");
    let plan = db.lines(&explain).join("\n");
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    assert!(plan.contains("Sample: 0.25") && plan.contains(&format!("Blocks: {}", (pages + 3) / 4)), "{plan}");
}

#[test]
fn a_sample_that_is_none_is_refused() {
    let mut db = Database::new();
    clustered(&mut db, "t", 100);
    for sample in ["0", "-0.1", "1.01", "'NaN'", "'Infinity'"] {
        db.rejects(&format!("SELECT * FROM corgipile_train('t', sample => {sample})"), "22023")
            .says(&["sample", "at most 1"]);
    }
    for shuffle in ["shuffle_once", "epoch_shuffle"] {
        let train = format!("SELECT * FROM corgipile_train('t', sample => 0.5, shuffle => '{shuffle}')");
        db.rejects(&train, "22023").says(&["sample", "copies the whole source"]);
    }
}

#[test]
fn a_sample_of_the_blocks_comes_out_of_corgipile_shuffle() {
    let mut db = Database::new();
    clustered(&mut db, "t", 20_000);
    let pages: i64 = db.value("SELECT pg_relation_size('t') / 8192");
    let ids = |db: &mut Database, call: &str| -> Vec<i32> { db.column(&format!("SELECT id FROM {call}")) };
    let call = "corgipile_shuffle(NULL::t, seed => 4, block_size => '16kB', sample => 0.1)";
    let first = ids(&mut db, call);
    let per_block = 2 * (20_000 / pages + 1);
    assert!((first.len() as i64 - 2000).abs() <= 2 * per_block, "{}", first.len());
    assert_eq!(ids(&mut db, call), first);
    let sorted = |mut ids: Vec<i32>| {
        ids.sort_unstable();
        ids
    };
    // the same blocks in every epoch, in another order, and those that are trained on
    let second = ids(&mut db, "corgipile_shuffle(NULL::t, seed => 4, block_size => '16kB', sample => 0.1, epoch => 2)");
    assert!(second != first && sorted(second) == sorted(first.clone()));
    let trained =
        db.train("'t', features => '{features_v}', max_epochs => 1, seed => 4, block_size => '16kB', sample => 0.1");
    assert_eq!(trained[0].tuples, first.len() as i64);
    // as a function, too
    let function = db.column::<i32>(
        "SELECT (r).id FROM (SELECT corgipile_shuffle(NULL::t, seed => 4, block_size => '16kB', sample => 0.1) AS r) c",
    );
    assert_eq!(function, first);
    assert_eq!(ids(&mut db, "corgipile_shuffle(NULL::t, sample => 1)").len(), 20_000);
    assert_eq!(ids(&mut db, "corgipile_shuffle(NULL::t, sample => NULL)").len(), 20_000);
    for wrong in ["0", "-0.1", "1.5", "'NaN'"] {
        db.rejects(&format!("SELECT id FROM corgipile_shuffle(NULL::t, sample => {wrong})"), "22023")
            .says(&["\"sample\""]);
    }
    db.rejects("SELECT id FROM corgipile_shuffle(NULL::t, shuffle => 'shuffle_once', sample => 0.5)", "22023")
        .says(&["copies"]);
}
