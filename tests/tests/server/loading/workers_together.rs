//! What one process can do, several can: held out rows and early stopping, grids, networks, Newton's method, and to go
//! on with a model.

use corgipile_tests::{Database, Session, assert_close, clustered, in_several_buffers};

/// Rows of two and three classes, a number to predict, sparse features, and some to be held out.
fn rows(db: &mut Session, count: u32) {
    db.run(&format!(
        "CREATE TABLE t AS
         SELECT i AS id, y AS label, (ARRAY['one', 'two', 'three'])[1 + (2 * uniform(i, 5))::int] AS class,
                3 + y + normal(i, 1) AS a, uniform(i, 8) < 0.25 AS test,
                ARRAY[normal(i, 1) + y, normal(i, 2), 5 + normal(i, 3)]::real[] AS x,
                ARRAY[1 + i % 50, 60 + i % 3]::int[] AS k, ARRAY[normal(i, 1) + y, 1]::real[] AS v
         FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, {count}::bigint) i) r"
    ));
}

/// Loss and score on held out rows.
type Judged = (Option<f64>, Option<f64>);

/// Trains by this many processes: the model's id, and the loss and score on the held out rows after each epoch.
fn judged(db: &mut Session, training: &str, processes: u32) -> (i64, Vec<Judged>) {
    let training = in_several_buffers(training);
    let rows = db.rows(
        &format!(
            "SELECT model_id, validation_loss, validation_score FROM corgipile_train({training}, workers => {processes})
             ORDER BY epoch"
        ),
        &[],
    );
    let id = rows[0].get(0);
    assert_eq!(db.processes_of(id), processes, "{training}");
    (id, rows.iter().map(|row| (row.get(1), row.get(2))).collect())
}

/// If a mini-batch is the whole table, an order is no matter: what several processes learn is what one learns, but for
/// the sequence in which numbers are added up, and so are held out rows, if they are the same ones.
#[test]
fn the_rows_that_are_held_out_are_those_of_a_single_process() {
    let mut db = Database::new();
    rows(&mut db, 3000);
    for (training, of_adam) in [
        ("'logistic', label => 'label', features => '{x}', options => '{\"validation_fraction\": 0.3}'", false),
        (
            "'svm', label => 'class', features => '{x}', options => '{\"validation_fraction\": 0.2, \"averaging\": true}'",
            false,
        ),
        ("'softmax', label => 'class', features => '{x}', options => '{\"validation_column\": \"test\"}'", false),
        (
            "'linear', label => 'a', features => '{x}', options => '{\"validation_fraction\": 0.4, \"validation_by\": \"block\"}'",
            false,
        ),
        ("'huber', label => 'a', features => '{x}', options => '{\"validation_column\": \"test\"}'", false),
        (
            "'logistic', label => 'label', features => '{k,v}', options => '{\"validation_fraction\": 0.3, \"optimizer\": \"momentum\"}'",
            false,
        ),
        (
            "'mlp', label => 'class', features => '{x}', hidden_layer_sizes => '{5}', options => '{\"validation_column\": \"test\"}'",
            true,
        ),
    ] {
        let training = format!("'t', {training}, learning_rate => 0.1, batch_size => 5000, max_epochs => 6, seed => 3");
        let (alone, expected) = judged(&mut db, &training, 1);
        assert!(expected.iter().all(|(loss, score)| loss.is_some() && score.is_some()), "{expected:?}");
        for processes in [2, 3] {
            let (together, found) = judged(&mut db, &training, processes);
            assert_eq!(found.len(), expected.len(), "{training}");
            for ((loss, score), (of_one, score_of_one)) in found.iter().zip(&expected) {
                let tolerance = if of_adam { 1e-3 } else { 1e-5 };
                for (a, b) in [(loss, of_one), (score, score_of_one)] {
                    let (a, b) = (a.unwrap(), b.unwrap());
                    assert!((a - b).abs() < tolerance * (1.0 + b.abs()), "{training}: {found:?} for {expected:?}");
                }
            }
            let [together, alone] = [together, alone].map(|id| db.model(id).parameters());
            assert_close(&together, &alone, if of_adam { 5e-3 } else { 1e-4 });
        }
    }
}

#[test]
fn all_processes_stop_where_the_held_out_rows_say_and_the_best_model_is_kept() {
    let mut db = Database::new();
    rows(&mut db, 4000);
    for (options, rate) in [("\"batch_size\": 1", "1"), ("\"batch_size\": 16", "3")] {
        let training = format!(
            "'t', label => 'label', features => '{{x}}', learning_rate => {rate}, max_epochs => 200, seed => 1,
             options => '{{{options}, \"validation_column\": \"test\", \"patience\": 3, \"keep\": \"best\"}}'"
        );
        let (id, epochs) = judged(&mut db, &training, 3);
        let losses: Vec<f64> = epochs.iter().map(|(loss, _)| loss.unwrap()).collect();
        assert!(losses.len() < 200 && losses.len() > 3, "{losses:?}");
        let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
        let stored: f64 = db.value(&format!(
            "SELECT value FROM corgipile_evaluate({id}, 'SELECT label, x FROM t WHERE test') WHERE metric = 'loss'"
        ));
        assert!((stored - best).abs() < 1e-6 * best, "{stored} is the loss of the best of {losses:?}");
        let [(again, _), (first, _)] = [judged(&mut db, &training, 3), (id, Vec::new())];
        assert_eq!(db.model(again).bits(), db.model(first).bits(), "a seed fixes the model");
    }
    // by the loss in training, where nothing is held out
    let stopped = db.train("'t', label => 'label', features => '{x}', max_epochs => 500, patience => 2, workers => 2, buffer_size => '50%'");
    assert!(stopped.len() < 500, "{}", stopped.len());
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn nothing_to_learn_from_or_to_judge_by_is_an_error() {
    let mut db = Database::new();
    rows(&mut db, 3000);
    for (test, what) in [("false", "no rows to validate on"), ("true", "no rows to train on")] {
        for more in ["", ", standardize => false, learning_rate => 0.1"] {
            db.rejects(
                &format!(
                    "SELECT FROM corgipile_train('SELECT label, x, {test} AS test FROM t', features => '{{x}}', workers => 2,
                         buffer_size => '50%', options => '{{\"validation_column\": \"test\"}}'{more})"
                ),
                "22000",
            )
            .says(&[what]);
        }
    }
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn a_training_of_several_processes_goes_on_bit_for_bit() {
    let mut db = Database::new();
    rows(&mut db, 4000);
    for training in [
        "label => 'label', features => '{x}'",
        "label => 'label', features => '{x}', batch_size => 16, options => '{\"optimizer\": \"adam\", \"l1\": 0.001}'",
        "'softmax', label => 'class', features => '{x}', batch_size => 7, options => '{\"averaging\": true}'",
        "'linear', label => 'a', features => '{k,v}', batch_size => 8, optimizer => 'momentum'",
        "label => 'label', features => '{x}', batch_size => 16, validation_fraction => 0.2",
        "label => 'label', features => '{x}', solver => 'newton'",
        "'mlp', label => 'class', features => '{x}', hidden_layer_sizes => '{4}', batch_size => 8",
    ] {
        let rate = if training.contains("newton") { "" } else { ", learning_rate => 0.05" };
        let sizes = format!("seed => 4, buffer_size => '20%', block_size => '8kB', workers => 3{rate}");
        let whole = db.trained(&format!("'t', {training}, {sizes}, max_epochs => 3")).bits();
        let first = db.train(&format!("'t', {training}, {sizes}, max_epochs => 1"))[0].model_id;
        let then = db.train(&format!("'t', warm_start => '{first}', workers => 3, max_epochs => 2"));
        assert_eq!(then.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [2, 3], "{training}");
        assert_eq!(db.model(then[0].model_id).bits(), whole, "{training}");
        // by others than before
        for processes in [1, 2] {
            let then = db.train(&format!("'t', warm_start => '{first}', workers => {processes}, max_epochs => 1"));
            assert_eq!((then[0].epoch, then.len()), (2, 1), "{training}");
        }
    }
}

#[test]
fn a_model_of_a_grid_is_that_of_its_own_call() {
    let mut db = Database::new();
    clustered(&mut db, "t", 6000);
    let training = "'t', max_epochs => 3, seed => 5, buffer_size => '20%', learning_rate => 0.02, workers => 3";
    let points = [
        r#"{"batch_size": 1}"#,
        r#"{"batch_size": 1, "optimizer": "momentum"}"#,
        r#"{"batch_size": 16, "l2": 0.1}"#,
        r#"{"batch_size": 16, "optimizer": "adam"}"#,
        r#"{"batch_size": 50, "l1": 0.001}"#,
        r#"{"batch_size": 16, "max_epochs": 1}"#,
    ];
    let grid = format!("[{}]", points.join(", "));
    let ids: Vec<i64> =
        db.column(&format!("SELECT model_id FROM corgipile_train({training}, grid => '{grid}') GROUP BY 1 ORDER BY 1"));
    assert_eq!(ids.len(), points.len());
    for (id, point) in ids.into_iter().zip(points) {
        let alone = match point.contains("max_epochs") {
            true => training.replace("max_epochs => 3", "max_epochs => 1, batch_size => 16"),
            false => format!("{training}, options => '{point}'"),
        };
        assert_eq!(db.model(id).bits(), db.trained(&alone).bits(), "{point}");
    }
    // one of them diverges, and the others are trained
    let told = db.notices(&[&format!(
        "SELECT count(DISTINCT model_id) FROM corgipile_train({}, model => 'linear', standardize => false, validation_fraction => 0.2,
             grid => '{{\"learning_rate\": [1e30, 0.001], \"batch_size\": [1, 8]}}')",
        training.replace("learning_rate => 0.02, ", "")
    )]);
    assert_eq!(told.matches("diverged").count(), 2, "{told}");
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn newtons_method_and_networks_are_those_of_a_single_process() {
    let mut db = Database::new();
    rows(&mut db, 3000);
    for (training, tolerance) in [
        ("label => 'label', features => '{x}', solver => 'newton'", 1e-5),
        ("'linear', label => 'a', features => '{x}', solver => 'newton', l2 => 0.1", 1e-5),
        ("label => 'label', features => '{k,v}', solver => 'newton', l2 => 0.01", 1e-5),
        (
            "'mlp', label => 'class', features => '{x}', hidden_layer_sizes => '{6,4}', batch_size => 5000, learning_rate => 0.01",
            5e-3,
        ),
        (
            "'mlp', label => 'label', features => '{k,v}', hidden_layer_sizes => '{5}', batch_size => 5000, learning_rate => 0.01",
            5e-3,
        ),
        (
            "'mlp', label => 'a', features => '{x}', hidden_layer_sizes => '{5}', batch_size => 5000, learning_rate => 0.01, options => '{\"objective\": \"regression\"}'",
            5e-3,
        ),
    ] {
        let training = format!("'t', {training}, max_epochs => 20, seed => 2");
        let (alone, of_one) = judged(&mut db, &training, 1);
        for processes in [2, 4] {
            let (together, epochs) = judged(&mut db, &training, processes);
            assert_eq!(epochs.len(), of_one.len(), "{training}: as many passes");
            let [together, alone] = [together, alone].map(|id| db.model(id).parameters());
            assert_close(&together, &alone, tolerance);
        }
    }
    // so few rows that a single process would take one at a time
    db.run("CREATE TABLE few AS SELECT * FROM t LIMIT 300");
    let few = "'few', 'mlp', label => 'class', features => '{x}', hidden_layer_sizes => '{3}', max_epochs => 2, block_size => '8kB', workers => 2";
    assert!(db.train(few).iter().all(|epoch| epoch.tuples == 300));
    db.rejects("SELECT corgipile_train('t', 'mlp', 'class', '{x}', batch_size => 1, workers => 2)", "0A000")
        .says(&["hidden layers and batch_size 1"]);
}

#[test]
fn a_model_of_a_group_is_that_of_its_rows_alone() {
    let mut db = Database::new();
    rows(&mut db, 4000);
    db.run("ALTER TABLE t ADD site text; UPDATE t SET site = (ARRAY['c', 'a', 'b', 'late'])[CASE WHEN id > 3900 THEN 4 ELSE 1 + (id / 7) % 3 END]");
    db.run("VACUUM FULL t");
    let sizes = "seed => 3, learning_rate => 0.05, standardize => false, block_size => '8kB', buffer_size => '20%', workers => 3";
    for training in [
        "label => 'label', features => '{x}'",
        "label => 'label', features => '{x}', batch_size => 16",
        "label => 'class', features => '{x}', model => 'softmax', batch_size => 7, options => '{\"validation_column\": \"test\"}'",
        "label => 'a', features => '{k,v}', model => 'linear', batch_size => 8, l1 => 0.001, optimizer => 'adam'",
    ] {
        let training = format!("{training}, max_epochs => 3, {sizes}");
        let together = db.rows(
            &format!(
                "SELECT group_value, min(model_id), max(validation_loss) FROM corgipile_train('t', {training}, group_by => 'site')
                 GROUP BY 1 ORDER BY 1"
            ),
            &[],
        );
        assert_eq!(together.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["a", "b", "c", "late"]);
        for row in together {
            let (site, id, loss): (String, i64, Option<f64>) = (row.get(0), row.get(1), row.get(2));
            let alone = db.rows(
                &format!(
                    "SELECT min(model_id), max(validation_loss) FROM corgipile_train('SELECT * FROM t WHERE site = ''{site}''', {training})"
                ),
                &[],
            );
            assert_eq!(db.model(id).bits(), db.model(alone[0].get(0)).bits(), "{site}: {training}");
            let of_one: Option<f64> = alone[0].get(1);
            assert_eq!(loss.is_some(), of_one.is_some());
            assert!(loss.zip(of_one).is_none_or(|(a, b)| (a - b).abs() < 1e-9), "{site}: {loss:?} {of_one:?}");
        }
    }
    // grids of groups, of which one has nothing to learn from, and one goes on
    let together = format!(
        "SELECT DISTINCT group_value, grid_point FROM corgipile_train('SELECT *, site = ''b'' AS held FROM t', label => 'label', features => '{{x}}',
             max_epochs => 2, {sizes}, group_by => 'site', grid => '{{\"batch_size\": [1, 8]}}', name => 'site',
             options => '{{\"validation_column\": \"held\", \"keep\": \"last\"}}')"
    );
    assert_eq!(
        db.fails_with(&together.replace("site = ''b''", "false"), "22000").message,
        "there are no rows to validate on"
    );
    assert_eq!(db.lines(&together).len(), 6);
    let whole = db.trained(&format!(
        "'SELECT * FROM t WHERE site = ''c''', label => 'label', features => '{{x}}', max_epochs => 4, {sizes}"
    ));
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'label', features => '{{x}}', max_epochs => 2, {sizes}, group_by => 'site', name => 'of')"));
    let rows = db.rows("SELECT model_id, epoch, group_value FROM corgipile_train('t', warm_start => 'of/c', max_epochs => 2, workers => 3) ORDER BY epoch", &[]);
    assert_eq!(
        rows.iter().map(|row| (row.get(1), row.get(2))).collect::<Vec<(i32, String)>>(),
        [(3, "c".into()), (4, "c".into())]
    );
    assert_eq!(db.model(rows[0].get(0)).bits(), whole.bits());
}

#[test]
fn every_group_goes_on_from_one_model_as_its_rows_alone_would() {
    let mut db = Database::new();
    rows(&mut db, 4000);
    db.run("ALTER TABLE t ADD site text; UPDATE t SET site = (ARRAY['c', 'a', 'b', 'late'])[CASE WHEN id > 3900 THEN 4 ELSE 1 + (id / 7) % 3 END]");
    db.run("VACUUM FULL t");
    let sizes = "seed => 3, learning_rate => 0.05, block_size => '8kB', buffer_size => '20%', workers => 3, standardize => false";
    for training in [
        "label => 'label', features => '{x}'",
        "label => 'class', features => '{x}', model => 'softmax', batch_size => 7, options => '{\"validation_column\": \"test\"}'",
        "label => 'a', features => '{k,v}', model => 'linear', batch_size => 8, l1 => 0.001, optimizer => 'adam'",
        "label => 'label', features => '{x}', batch_size => 16, options => '{\"averaging\": true, \"keep\": \"best\"}'",
    ] {
        let first = db.train(&format!("'t', {training}, {sizes}, max_epochs => 2"))[0].model_id;
        let together = db.rows(
            &format!(
                "SELECT group_value, min(model_id), array_agg(epoch ORDER BY epoch), max(validation_loss)
                 FROM corgipile_train('t', warm_start => '{first}', group_by => 'site', workers => 3, max_epochs => 2) GROUP BY 1 ORDER BY 1"
            ),
            &[],
        );
        assert_eq!(together.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>(), ["a", "b", "c", "late"]);
        for row in together {
            let (site, id, epochs, loss): (String, i64, Vec<i32>, Option<f64>) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            assert_eq!(epochs, [1, 2], "other rows, another training: {site}: {training}");
            let alone = db.rows(
                &format!(
                    "SELECT min(model_id), max(validation_loss) FROM corgipile_train('SELECT * FROM t WHERE site = ''{site}''',
                         warm_start => '{first}', workers => 3, max_epochs => 2)"
                ),
                &[],
            );
            assert_eq!(db.model(id).bits(), db.model(alone[0].get(0)).bits(), "{site}: {training}");
            let of_one: Option<f64> = alone[0].get(1);
            assert!(loss.is_some() == of_one.is_some() && loss.zip(of_one).is_none_or(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
    // from the model of a group, too, and by fewer processes than were asked for
    db.run(&format!("SELECT FROM corgipile_train('t', label => 'label', features => '{{x}}', max_epochs => 2, {sizes}, group_by => 'site', name => 'of')"));
    let goes_on = "SELECT group_value, epoch FROM corgipile_train('t', warm_start => 'of/c', group_by => 'site', workers => 3, max_epochs => 1) ORDER BY 1";
    let expected = ["a|1", "b|1", "c|1", "late|1"];
    assert_eq!(db.lines(goes_on), expected);
    db.run("SET max_parallel_workers = 0");
    assert_eq!(db.lines(goes_on), expected);
    assert!(db.parallel_workers().is_empty());
}

#[test]
fn held_out_rows_that_are_too_many_to_be_kept_are_read_once_more_by_each_process() {
    let mut db = Database::new();
    // 137 MB for each of two processes, and small on disk
    db.run(
        "CREATE TABLE wide AS
         SELECT y AS label, ARRAY[normal(i, 1) + y]::real[] || array_fill(0.5::real, ARRAY[1599]) AS x
         FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 45000::bigint) i) r",
    );
    let training = "'wide', label => 'label', features => '{x}', standardize => false, learning_rate => 0.0001, batch_size => 5000,
                    max_epochs => 2, seed => 3, options => '{\"validation_fraction\": 0.95}'";
    let (_, alone) = judged(&mut db, training, 1);
    let (_, together) = judged(&mut db, training, 2);
    assert_eq!(together.len(), 2);
    for ((loss, score), (of_one, score_of_one)) in together.iter().zip(&alone) {
        assert!((loss.unwrap() - of_one.unwrap()).abs() < 1e-5, "{together:?} for {alone:?}");
        assert!((score.unwrap() - score_of_one.unwrap()).abs() < 1e-4, "{together:?} for {alone:?}");
    }
}

#[test]
fn what_all_processes_have_learned_from_decides_whether_a_model_is_useless() {
    let mut db = Database::new();
    db.run(
        "CREATE TABLE t (id int, label int, a real, held_out bool, site text);
         INSERT INTO t SELECT i, CASE WHEN i % 20 = 0 THEN 2 ELSE (uniform(i, 1) < 0.5)::int END, normal(i, 2), i % 20 = 0,
                              (ARRAY['one', 'other'])[1 + i / 2 % 2]
           FROM generate_series(1, 20000) i",
    );
    for more in ["", ", workers => 2", ", group_by => 'site'", ", group_by => 'site', workers => 2"] {
        let told = db.notices(&[&format!(
            "SELECT FROM corgipile_train('t', 'softmax', features => '{{a}}', max_epochs => 1{more}, options => '{{\"validation_column\": \"held_out\"}}')"
        )]);
        let groups = if more.contains("site") { "2 (group one)" } else { "2" };
        assert!(told.contains(&format!("label column \"label\" is {groups} in no training row")), "{more}: {told}");
    }
    let told = db.notices(&[
        "SELECT FROM corgipile_train('SELECT * FROM t WHERE label < 2', features => '{a}', max_epochs => 3, workers => 2, learning_rate => 1000, options => '{\"averaging\": false}')",
    ]);
    assert!(told.contains("worse than a constant baseline"), "{told}");
}
