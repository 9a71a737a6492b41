//! Probabilities of SVMs whose rows are on three private servers: those that one server fits to the same decisions.

use super::nodes::Spread;
use super::nodes_together::part;
use corgipile_tests::Session;

/// Asserts that sigmoids are equal but for what a row makes of a model that is decided to be on one side of the margin
/// or the other by rounding.
fn assert_near([there, here]: [Vec<f64>; 2], what: &str) {
    assert_eq!(there.len(), here.len(), "{what}");
    let largest = here.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    let differ = there.iter().zip(&here).any(|(there, here)| (there - here).abs() > 5e-3 * largest);
    assert!(!differ, "{what}:\n{there:?}\n{here:?}");
}

/// How far the derivatives of the cross entropy by slope and offset are from 0, per row that is held out, of a model
/// that tells the label half. Its decisions are what a document gives that says it is a regression.
fn gradients(near: &mut Session, model: i64, rows: &str) -> [f64; 2] {
    near.run(&format!(
        "DROP TABLE IF EXISTS document;
         CREATE TEMP TABLE document AS
         SELECT m - 'classes' - 'sigmoid_slopes' - 'sigmoid_offsets' - 'name' - 'hyperparameters' || jsonb_build_object('model', 'linear') AS m
         FROM corgipile_export({model}) AS m"
    ));
    let row = near.rows(
        &format!("WITH r AS (SELECT corgipile_predict((SELECT m FROM document), base) AS f, half = 1 AS y FROM base WHERE held AND {rows}),
              n AS (SELECT count(*) FILTER (WHERE y) AS own, count(*) FILTER (WHERE NOT y) AS others FROM r),
              p AS (SELECT f, CASE WHEN y THEN (own + 1.0) / (own + 2) ELSE 1.0 / (others + 2) END AS target,
                           1 / (1 + exp(m.sigmoid_slopes[1] * f + m.sigmoid_offsets[1])) AS p
                    FROM r, n, corgipile.models AS m WHERE m.model_id = $1)
         SELECT avg((target - p) * f), avg(target - p) FROM p"),
        &[&model],
    );
    [row[0].get::<_, f64>(0).abs(), row[0].get::<_, f64>(1).abs()]
}

/// Asserts that each model of a training has the best sigmoid for what is held out of its group.
fn assert_fitted(near: &mut Session, training: &str) {
    let models = near.rows(&format!("SELECT DISTINCT group_value, model_id FROM corgipile_train({training})"), &[]);
    for row in models {
        let (group, model): (Option<String>, i64) = (row.get(0), row.get(1));
        let rows = group.map_or_else(|| "true".to_owned(), |group| format!("cat = '{group}'"));
        let gradients = gradients(near, model, &rows);
        assert!(gradients.iter().all(|gradient| *gradient < 1e-6), "{training}, {rows}: {gradients:?}");
    }
}

/// Slopes and offsets of the models of a training, which is like another but for where its rows are.
fn sigmoids(near: &mut Session, source: &str, arguments: &str) -> Vec<f64> {
    let ids: Vec<i64> = near.column(&format!(
        "SELECT DISTINCT model_id FROM corgipile_train('{source}', {arguments}, shuffle => 'no_shuffle', buffer_size => '100%', seed => 1) ORDER BY 1"
    ));
    let of_models =
        "SELECT sigmoid_slopes || sigmoid_offsets FROM corgipile.models WHERE model_id = ANY($1) ORDER BY model_id";
    near.rows(of_models, &[&ids]).iter().flat_map(|row| row.get::<_, Vec<f64>>(0)).collect()
}

#[test]
fn servers_fit_the_probabilities_that_one_server_with_all_rows_fits() {
    let Some(mut spread) = Spread::new(servers_fit_the_probabilities_that_one_server_with_all_rows_fits) else {
        return;
    };
    spread.by_hash();
    spread.by_label();
    spread.one_empty();
    let near = spread.near();
    let svm = "model => 'svm', batch_size => 64, learning_rate => 0.05, max_epochs => 3";
    let held = "\"probability\": true, \"validation_column\": \"held\"";
    let binary = format!("label => 'half', features => '{{a,b}}', {svm}, seed => 1, options => '{{{held}}}'");
    for table in ["t", "by_label", "one_empty"] {
        part(near, table);
        assert_fitted(near, &format!("'{table}', {binary}, servers => 'east,north,south'"));
        assert_fitted(near, &format!("'{table}', {binary}, servers => 'east,north,south', group_by => 'cat'"));
        for (training, models, outputs) in [
            (format!("label => 'half', features => '{{a,b}}', {svm}, options => '{{{held}}}'"), 1, 1),
            (
                format!("label => 'half', features => '{{k,kv}}', {svm}, options => '{{{held}, \"weight\": \"w\"}}'"),
                1,
                1,
            ),
            (
                format!(
                    "label => 'class', features => '{{a,cat}}', {svm}, options => '{{{held}, \"class_weight\": \"balanced\", \"keep\": \"best\"}}'"
                ),
                1,
                3,
            ),
            (
                format!(
                    "label => 'half', features => '{{v}}', {svm}, options => '{{{held}}}', grid => '[{{\"l2\": 0.1}}, {{\"optimizer\": \"momentum\"}}]'"
                ),
                2,
                1,
            ),
        ] {
            let there = sigmoids(near, table, &format!("{training}, servers => 'east,north,south'"));
            let here = sigmoids(near, &format!("{table}_parted"), &training);
            assert_eq!(here.len(), models * 2 * outputs, "{training}");
            assert!(here.iter().any(|number| *number < 0.0), "{here:?}");
            assert_near([there, here], &format!("{table}, {training}"));
        }
    }
    // a group that lies on one server, and a warm start that only fits again
    spread.spread("by_cat", "LIST (cat)", ["IN ('red')", "IN ('green', 'blue')", "IN ('grey')"]);
    let near = spread.near();
    assert_fitted(near, &format!("'by_cat', {binary}, servers => 'auto', group_by => 'cat'"));
    let first = near.train(&format!("'t', {binary}, servers => 'auto'"));
    let call = format!("'t', warm_start => '{}', max_epochs => 1, servers => 'east,north,south'", first[0].model_id);
    let then = near.train(&call)[0].model_id;
    let told = spread.nodes.near.notices(&[&format!("SELECT FROM corgipile_train({call})")]);
    assert!(!told.contains("are fetched to this server"), "{told}");
    let fitted: bool =
        spread.near().value(&format!("SELECT sigmoid_slopes[1] < 0 FROM corgipile.models WHERE model_id = {then}"));
    assert!(fitted);
}

#[test]
fn few_rows_that_servers_hold_out_are_told() {
    let Some(mut spread) = Spread::new(few_rows_that_servers_hold_out_are_told) else { return };
    spread.by_hash();
    let call = "SELECT FROM corgipile_train('SELECT * FROM t WHERE id <= 60', label => 'half', features => '{a,b}', model => 'svm',
                    options => '{\"probability\": true, \"validation_column\": \"held\"}', servers => 'auto', seed => 1)";
    let told = spread.nodes.near.notices(&[call]);
    assert!(told.contains("too few rows for reliable probabilities: only 4 rows of a class are held out"), "{told}");
    let call = call.replace("id <= 60", "NOT held");
    let failure = spread.near().fails_with(&call, "22000");
    assert_eq!(failure.message, "there are no rows to validate on");
}
