//! The schedule theorem1 on compressed mini-batches.

use corgipile_tests::{Database, Session, assert_close, clustered};

#[test]
fn the_rate_of_theorem1_counts_rows_of_mini_batches() {
    let mut db = Database::new();
    clustered(&mut db, "t", 1000);
    db.line("SELECT corgipile_compress('t', 'c', shuffle => 'no_shuffle')");
    let mut rates = |source: &str, more: &str| -> Vec<f64> {
        let options = format!("{{\"schedule\": \"theorem1\", \"l2\": 0.1{more}}}");
        let epochs = db.train(&format!(
            "'{source}', shuffle => 'no_shuffle', buffer_size => '100%', max_epochs => 3, standardize => false, options => '{options}'"
        ));
        epochs.iter().map(|epoch| epoch.learning_rate).collect()
    };
    assert_close(&rates("c", ""), &rates("t", ", \"batch_size\": 250"), 1e-12);
}

/// A table of two classes, whose last feature is the constant 1 of the intercept, and its rows.
fn overlapping(db: &mut Session) -> Vec<(Vec<f64>, f64)> {
    db.run(
        "CREATE TABLE t (label int, x real[]);
         INSERT INTO t SELECT y, ARRAY[y + normal(i, 1), normal(i, 2) - y, normal(i, 3), normal(i, 4)]::real[]
           FROM (SELECT i, (uniform(i, 0) < 0.4)::int AS y FROM generate_series(1, 5000) i) AS labels;
         ANALYZE t",
    );
    let rows = db.rows("SELECT x, 2 * label - 1 FROM t", &[]);
    let row = |row: &postgres::Row| {
        let x: Vec<f32> = row.get(0);
        (x.into_iter().map(f64::from).chain([1.0]).collect(), f64::from(row.get::<_, i32>(1)))
    };
    rows.iter().map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Mean loss of logistic regression with its penalty, and what Newton's method subtracts from the parameters.
fn newton(rows: &[(Vec<f64>, f64)], w: &[f64], l2: f64) -> (f64, Vec<f64>) {
    let (dim, n) = (w.len(), rows.len() as f64);
    let penalty = |j: usize| if j + 1 < dim { l2 } else { 0.0 };
    let mut objective: f64 = (0..dim).map(|j| penalty(j) / 2.0 * w[j] * w[j]).sum();
    // the Hessian with the gradient as its last column
    let mut matrix = vec![vec![0.0; dim + 1]; dim];
    for j in 0..dim {
        (matrix[j][j], matrix[j][dim]) = (penalty(j), penalty(j) * w[j]);
    }
    for (x, y) in rows {
        let margin = y * dot(x, w);
        objective += (-margin).exp().ln_1p() / n;
        let p = 1.0 / (1.0 + margin.exp());
        for i in 0..dim {
            (0..dim).for_each(|j| matrix[i][j] += p * (1.0 - p) * x[i] * x[j] / n);
            matrix[i][dim] -= y * p * x[i] / n;
        }
    }
    for k in 0..dim {
        let pivot: Vec<f64> = matrix[k].iter().map(|a| a / matrix[k][k]).collect();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = row[k];
            row.iter_mut().zip(&pivot).for_each(|(a, b)| *a -= factor * b);
        }
        matrix[k] = pivot;
    }
    (objective, matrix.iter().map(|row| row[dim]).collect())
}

#[test]
fn theorem1_comes_to_the_optimum_whatever_the_mini_batches() {
    let mut db = Database::new();
    let rows = overlapping(&mut db);
    db.line("SELECT corgipile_compress('t', 'c', features => '{x}', batch_rows => 250, seed => 1)");
    let mut optimum = vec![0.0; 5];
    for _ in 0..20 {
        let (_, step) = newton(&rows, &optimum, 0.01);
        optimum.iter_mut().zip(step).for_each(|(w, step)| *w -= step);
    }
    let (least, _) = newton(&rows, &optimum, 0.01);
    let mut gaps = Vec::new();
    for (source, batch, workers) in [("t", "1", 1), ("t", "32", 1), ("t", "250", 1), ("t", "250", 2), ("c", "null", 1)]
    {
        let options =
            format!("jsonb_strip_nulls('{{\"schedule\": \"theorem1\", \"l2\": 0.01, \"batch_size\": {batch}}}')");
        let model = db.trained(&format!(
            "'{source}', features => '{{x}}', max_epochs => 100, buffer_size => '10%', seed => 1, workers => {workers},
             standardize => false, options => {options}"
        ));
        let w: Vec<f64> = model.weights.iter().chain(&model.intercepts).map(|w| f64::from(*w)).collect();
        let gap = newton(&rows, &w, 0.01).0 - least;
        println!("gap to the optimum after 100 epochs, {source}, batch_size {batch}, {workers} processes: {gap:.1e}");
        gaps.push(gap);
    }
    assert!(gaps.iter().all(|gap| *gap < 1e-6), "{gaps:?}");
}
