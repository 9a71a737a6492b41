//! Training on compressed mini-batches by several processes: a mini-batch of each makes a step together with those of
//! the others.

use corgipile_tests::{Database, Model, Session, assert_close};

/// Rows of two and three classes and of a number, `per_batch` to a mini-batch, and `packed`, whose pages have a
/// mini-batch each.
fn rows(db: &mut Session, count: u32, per_batch: u32) {
    db.run(&format!(
        "CREATE TABLE plain AS
         SELECT i AS id, (i - 1) / {per_batch} AS batch, (s > 0)::int AS half, 1 + (s > -0.5)::int + (s > 0.5)::int AS class,
                s + normal(i, 6) / 4 AS target, (i % 4)::float8 AS amount, ARRAY[s + normal(i, 1), normal(i, 2), 1 - s, i % 3, normal(i, 4)]::float8[] AS x
         FROM (SELECT i, normal(i, 0) AS s FROM generate_series(1, {count}::bigint) i) r;
         CREATE TABLE packed (half int[], class int[], target float8[], amount float8[], x corgipile.toc) WITH (fillfactor = 10);
         ALTER TABLE packed ALTER x SET STORAGE plain;"
    ));
    db.run(&format!("INSERT INTO packed {} FROM plain GROUP BY batch ORDER BY batch", PACK));
    let pages: i64 = db.value("SELECT count(DISTINCT (ctid::text::point)[0]) FROM packed");
    assert_eq!(pages, i64::from(count.div_ceil(per_batch)), "a mini-batch on each page");
}

const PACK: &str = "SELECT array_agg(half ORDER BY id), array_agg(class ORDER BY id), array_agg(target ORDER BY id),
                           array_agg(amount ORDER BY id), corgipile_toc(array_agg(x ORDER BY id))";

/// Trains by this many processes, of which each reads a page at a time.
fn trained_by(db: &mut Session, processes: u32, arguments: &str) -> Model {
    let model = db.trained(&format!(
        "{arguments}, features => '{{x}}', block_size => '8kB', buffer_size => '100%', workers => {processes}"
    ));
    assert_eq!(db.processes_of(model.id), processes, "{arguments}");
    model
}

/// A row: its label and features.
type Row = (f64, Vec<f64>);

/// What plain SGD learns from these mini-batches, one after the other, at a rate of 0.1.
fn simulate(derivative: fn(f64, f64) -> f64, l2: f64, steps: &[Vec<&Row>]) -> Vec<f64> {
    let (mut w, mut b) = (vec![0.0; 5], 0.0);
    for step in steps {
        let (mut gradient, mut of_intercept) = (vec![0.0; 5], 0.0);
        for (y, x) in step {
            let decision: f64 = b + x.iter().zip(&w).map(|(x, w)| x * w).sum::<f64>();
            let derivative = derivative(decision, *y) / step.len() as f64;
            gradient.iter_mut().zip(x).for_each(|(g, x)| *g += derivative * x);
            of_intercept += derivative;
        }
        w.iter_mut().zip(gradient).for_each(|(w, g)| *w = (1.0 - 0.1 * l2) * *w - 0.1 * g);
        b -= 0.1 * of_intercept;
    }
    w.into_iter().chain([b]).collect()
}

/// All ways to draw `size` of these, and what is left.
fn choices(of: &[usize], size: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let subsets = (0..1_u32 << of.len()).filter(|subset| subset.count_ones() as usize == size);
    let split = |subset: u32| {
        let is_in = |i: usize| subset & 1 << i != 0;
        let part = |wanted| (0..of.len()).filter(|i| is_in(*i) == wanted).map(|i| of[i]).collect();
        (part(true), part(false))
    };
    subsets.map(split).collect()
}

/// Which mini-batches come together is drawn by the seed. Whichever they are, the model is that of steps by a
/// mini-batch of each of three processes: three of seven, another three, and the last one; one of the seven is short.
#[test]
fn a_step_is_that_of_a_mini_batch_of_each_process() {
    let mut db = Database::new();
    rows(&mut db, 6 * 20 + 7, 20);
    let told = db.notices(&["SELECT FROM corgipile_train('packed', label => 'half', features => '{x}', max_epochs => 1, block_size => '8kB',
                                  buffer_size => '100%', workers => 3)"]);
    assert!(told.contains("each step uses 3 compressed mini-batches, one of each process or server"), "{told}");
    let logistic = |z: f64, y: f64| 1.0 / (1.0 + (-z).exp()) - y;
    let linear = |z: f64, y: f64| z - y;
    for (kind, label, l2, derivative) in
        [("logistic", "half", 0.1, logistic as fn(f64, f64) -> f64), ("linear", "target", 0.0, linear)]
    {
        let rows = db.rows(&format!("SELECT batch, {label}::float8, x FROM plain ORDER BY id"), &[]);
        let mut batches: Vec<Vec<Row>> = vec![Vec::new(); 7];
        rows.iter().for_each(|row| batches[row.get::<_, i64>(0) as usize].push((row.get(1), row.get(2))));
        assert_eq!(batches[6].len(), 7);
        for seed in [1, 2, 3] {
            let training = format!(
                "'packed', '{kind}', label => '{label}', learning_rate => 0.1, l2 => {l2}, max_epochs => 1, seed => {seed}"
            );
            let model = trained_by(&mut db, 3, &training);
            assert_eq!(trained_by(&mut db, 3, &training).bits(), model.bits(), "a seed fixes the model");
            let found = model.parameters();
            let mut least = f64::INFINITY;
            for (first, left) in choices(&[0, 1, 2, 3, 4, 5, 6], 3) {
                for (second, last) in choices(&left, 3) {
                    let steps = [&first, &second, &last].map(|of| of.iter().flat_map(|i| &batches[*i]).collect());
                    let expected = simulate(derivative, l2, &steps);
                    let largest = expected.iter().fold(0.0_f64, |most, w| most.max(w.abs()));
                    let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / largest);
                    least = least.min(differences.fold(0.0, f64::max));
                }
            }
            assert!(least < 1e-5, "{kind} {seed}: {least}");
        }
    }
}

/// If each process has one mini-batch, an order is no matter: the model is that of steps by all rows together.
#[test]
fn mini_batches_of_all_processes_are_one_of_a_single_process() {
    let mut db = Database::new();
    rows(&mut db, 47, 16);
    db.run(&format!("CREATE TABLE one AS SELECT * FROM ({PACK} FROM plain) r(half, class, target, amount, x)"));
    for (training, of_adam) in [
        ("'svm', label => 'half', optimizer => 'momentum'", false),
        ("'squared_hinge', label => 'half', l1 => 0.01", false),
        ("'logistic', label => 'half', options => '{\"averaging\": true, \"class_weight\": \"balanced\"}'", false),
        ("'softmax', label => 'class', optimizer => 'adam', l2 => 0.01", true),
        ("'svm_one_vs_rest', label => 'class', class_weight => '{\"1\": 3}'", false),
        ("'huber', label => 'target'", false),
        ("'quantile', label => 'target', options => '{\"quantile\": 0.8}'", false),
        ("'poisson', label => 'amount', learning_rate => 0.02", false),
        ("'logistic', label => 'half', schedule => 'theorem1', options => '{\"mu\": 0.1, \"a\": 5000}'", false),
        ("'mlp', label => 'class', hidden_layer_sizes => '{6,4}'", true),
        ("'mlp', label => 'target', hidden_layer_sizes => '{5}', options => '{\"objective\": \"regression\"}'", true),
    ] {
        let rate = match training {
            _ if training.contains("learning_rate") || training.contains("theorem1") => "",
            _ if of_adam => ", learning_rate => 0.01",
            _ => ", learning_rate => 0.1",
        };
        let training = format!("{training}, max_epochs => 6, seed => 3{rate}");
        let alone = db.trained(&format!("'one', {training}, features => '{{x}}'"));
        let together = trained_by(&mut db, 3, &format!("'packed', {training}"));
        assert_close(&together.parameters(), &alone.parameters(), if of_adam { 5e-4 } else { 1e-5 });
        // as many processes as are asked for, and each mini-batch once
        let tuples: Vec<i64> = db.column(&format!(
            "SELECT tuples FROM corgipile_train('packed', {training}, features => '{{x}}', block_size => '8kB', buffer_size => '100%', workers => 2)"
        ));
        assert_eq!(tuples, [47; 6], "{training}");
    }
}

#[test]
fn processes_do_with_compressed_tables_what_one_does() {
    let mut db = Database::new();
    rows(&mut db, 3011, 25);
    let sizes = "features => '{x}', block_size => '8kB', buffer_size => '20%', workers => 3";
    let training = "'packed', label => 'half', learning_rate => 0.1, seed => 7";
    // to go on
    for more in ["", ", optimizer => 'adam'", ", model => 'mlp', hidden_layer_sizes => '{4}'"] {
        let whole = db.trained(&format!("{training}{more}, {sizes}, max_epochs => 4")).bits();
        let first = db.trained(&format!("{training}{more}, {sizes}, max_epochs => 2")).id;
        assert_eq!(
            db.trained(&format!("'packed', warm_start => '{first}', workers => 3, max_epochs => 2")).bits(),
            whole
        );
    }
    // several points side by side
    let points = ["{\"l2\": 0.1}", "{\"optimizer\": \"momentum\"}", "{\"max_epochs\": 1}"];
    let ids: Vec<i64> = db.column(&format!(
        "SELECT model_id FROM corgipile_train({training}, {sizes}, max_epochs => 2, grid => '[{}]') GROUP BY 1 ORDER BY 1",
        points.join(", ")
    ));
    for (id, point) in ids.into_iter().zip(points) {
        let alone = match point.contains("max_epochs") {
            true => db.trained(&format!("{training}, {sizes}, max_epochs => 1")),
            false => db.trained(&format!("{training}, {sizes}, max_epochs => 2, options => '{point}'")),
        };
        assert_eq!(db.model(id).bits(), alone.bits(), "{point}");
    }
    // the mini-batches that are held out are those of a single process, which judges the model alike
    let held = ", options => '{\"validation_fraction\": 0.2}'";
    let judged = |db: &mut Session, call: &str| -> Vec<(i64, i64, f64, f64)> {
        let call = format!(
            "SELECT model_id, tuples, validation_loss, validation_score FROM corgipile_train({call}) ORDER BY epoch"
        );
        db.rows(&call, &[]).iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
    };
    let together = judged(&mut db, &format!("{training}, {sizes}, max_epochs => 3{held}"));
    let (id, tuples, loss, score) = together[2];
    assert!(tuples < 3011 && tuples > 2000, "{tuples}");
    let again = judged(
        &mut db,
        &format!("'packed', warm_start => '{id}', learning_rate => 1e-30, max_epochs => 1, workers => 1"),
    );
    assert_eq!(again[0].1, tuples, "as many are held out");
    assert!((again[0].2 - loss).abs() < 1e-6 && (again[0].3 - score).abs() < 1e-9, "{again:?} for {together:?}");
    // and say when to stop
    let stops = "'packed', label => 'half', learning_rate => 3, seed => 7, max_epochs => 200, patience => 2";
    let epochs = judged(&mut db, &format!("{stops}, {sizes}{held}"));
    assert!(epochs.len() < 200 && epochs.len() > 2, "{}", epochs.len());
    assert!(db.parallel_workers().is_empty());
    // nothing but empty mini-batches makes no step
    db.run("CREATE TABLE holes AS SELECT * FROM packed; INSERT INTO holes SELECT '{}', '{}', '{}', '{}', 'csr 0x5:' FROM generate_series(1, 40)");
    let epochs =
        db.train(&format!("'holes', label => 'half', learning_rate => 0.1, seed => 7, {sizes}, max_epochs => 2"));
    assert_eq!(epochs.iter().map(|epoch| epoch.tuples).collect::<Vec<_>>(), [3011, 3011]);
}
