//! Training on compressed tables where they are: a mini-batch of each server makes a step together with those of the
//! others.

use super::nodes::{Spread, assert_equal};
use super::nodes_evaluation::assert_same;
use corgipile_tests::Session;

const COLUMNS: &str = "half int[], class int[], y real[], dense corgipile.toc, sparse corgipile.toc";

/// The columns of a mini-batch, of rows in this sequence.
fn pack(sequence: &str) -> String {
    format!(
        "array_agg(half ORDER BY {sequence}) AS half, array_agg(class ORDER BY {sequence}) AS class, array_agg(y ORDER BY {sequence}) AS y,
         corgipile_toc(array_agg(ARRAY[a, b, v[1], v[2], id % 3]::float8[] ORDER BY {sequence}), 'den') AS dense,
         corgipile_toc(array_agg((SELECT array_agg(coalesce(kv[array_position(k, j)], 0)::float8 ORDER BY j)
                                  FROM generate_series(1, 14) j) ORDER BY {sequence}), 'csr') AS sparse"
    )
}

/// Compresses the rows of a table on each server, 16 to a mini-batch, and makes `packed_{table}` of them here. Here,
/// `merged_{table}` has the mini-batches in the sequence in which servers take turns, three of them in one.
fn compress(spread: &mut Spread, table: &str) {
    for mut session in spread.sessions() {
        session.run(&format!(
            "CREATE TABLE packed_{table} AS SELECT {} FROM (SELECT *, (row_number() OVER (ORDER BY id) - 1) / 16 AS batch FROM {table}) r
             GROUP BY batch ORDER BY batch",
            pack("id")
        ));
    }
    let near = spread.near();
    for server in ["east", "north", "south"] {
        near.run(&format!(
            "CREATE FOREIGN TABLE packed_{table}_{server} ({COLUMNS}) SERVER {server} OPTIONS (table_name 'packed_{table}')"
        ));
    }
    near.run(&format!(
        "CREATE VIEW packed_{table} AS SELECT * FROM packed_{table}_east UNION ALL SELECT * FROM packed_{table}_north
                                       UNION ALL SELECT * FROM packed_{table}_south;
         CREATE TABLE merged_{table} AS
         WITH dealt AS MATERIALIZED (
             SELECT *, tableoid::regclass::text AS server, (row_number() OVER (PARTITION BY tableoid ORDER BY id) - 1) / 16 AS batch
             FROM {table}),
         places AS (SELECT server, batch, (batch + 0.5::float8) / count(*) OVER (PARTITION BY server) AS place
                     FROM (SELECT DISTINCT server, batch FROM dealt) d),
        turns AS (SELECT server, batch, (row_number() OVER (ORDER BY place, server) - 1) / 3 AS step FROM places)
         SELECT {} FROM dealt JOIN turns USING (server, batch) GROUP BY step ORDER BY step",
        pack("batch, server, id")
    ));
}

/// The same training on nodes and, by mini-batches that are three of theirs, on one server; their parameters.
fn both(near: &mut Session, table: &str, arguments: &str) -> [Vec<f64>; 2] {
    let in_order = format!("{arguments}, shuffle => 'no_shuffle', buffer_size => '100%', seed => 1, max_epochs => 4");
    let there = near.trained(&format!("'packed_{table}', servers => 'east,north,south', {in_order}"));
    let here = near.trained(&format!("'merged_{table}', {in_order}"));
    [there.parameters(), here.parameters()]
}

#[test]
fn nodes_learn_from_compressed_tables_what_one_server_learns_from_mini_batches_of_all() {
    let Some(mut spread) =
        Spread::new(nodes_learn_from_compressed_tables_what_one_server_learns_from_mini_batches_of_all)
    else {
        return;
    };
    spread.by_hash();
    spread.by_range();
    spread.by_label();
    spread.one_empty();
    for table in ["t", "by_range", "by_label", "one_empty"] {
        compress(&mut spread, table);
        let near = spread.near();
        let short: i64 = near.value(&format!("SELECT count(*) FROM packed_{table} WHERE cardinality(half) < 16"));
        assert!(short > 0, "{table}: a mini-batch is short");
        for training in [
            "label => 'half', features => '{dense}', learning_rate => 0.02",
            "label => 'half', features => '{sparse}', learning_rate => 0.1, l2 => 0.01",
            "label => 'half', features => '{sparse}', learning_rate => 0.01, optimizer => 'adam'",
            "label => 'half', features => '{dense}', learning_rate => 0.01, model => 'svm', optimizer => 'momentum', l1 => 0.001",
            "label => 'half', features => '{dense}', learning_rate => 0.02, class_weight => 'balanced', options => '{\"averaging\": true}'",
            "label => 'y', features => '{dense}', learning_rate => 0.01, model => 'linear'",
            "label => 'y', features => '{sparse}', learning_rate => 0.05, model => 'huber'",
            "label => 'half', features => '{sparse}', learning_rate => 0.02, model => 'poisson'",
            "label => 'class', features => '{sparse}', learning_rate => 0.1, model => 'softmax'",
            "label => 'class', features => '{dense}', learning_rate => 0.01, model => 'svm_one_vs_rest'",
            "label => 'half', features => '{sparse}', schedule => 'theorem1', options => '{\"mu\": 0.1, \"a\": 2000}'",
            "label => 'class', features => '{sparse}', learning_rate => 0.1, model => 'mlp', hidden_layer_sizes => '{6}', optimizer => 'sgd'",
            "label => 'y', features => '{sparse}', learning_rate => 0.01, model => 'mlp', hidden_layer_sizes => '{5}', optimizer => 'momentum', options => '{\"objective\": \"regression\"}'",
        ] {
            assert_equal(both(near, table, training), &format!("{table}, {training}"));
        }
    }
    let call = "SELECT FROM corgipile_train('packed_t', label => 'half', features => '{dense}', learning_rate => 0.01, max_epochs => 1, servers => 'auto')";
    let told = spread.nodes.near.notices(&[call]);
    assert!(told.contains("each step uses 3 compressed mini-batches, one of each process or server"), "{told}");
    assert!(!told.contains("are fetched to this server"), "{told}");
    for mut session in spread.sessions() {
        assert_eq!(session.models(), 0, "the model is stored where it was asked for");
    }
}

#[test]
fn nodes_do_with_compressed_tables_what_one_server_does() {
    let Some(mut spread) = Spread::new(nodes_do_with_compressed_tables_what_one_server_does) else { return };
    spread.spread("t", "RANGE (id)", ["FROM (MINVALUE) TO (50)", "FROM (50) TO (900)", "FROM (900) TO (MAXVALUE)"]);
    compress(&mut spread, "t");
    let there = "servers => 'east,north,south'";
    let sizes = "seed => 4, block_size => '8kB', buffer_size => '40%', learning_rate => 0.02";
    for training in [
        "label => 'half', features => '{dense}'",
        "label => 'class', features => '{sparse}', model => 'softmax', optimizer => 'adam'",
        "label => 'class', features => '{dense}', model => 'mlp', hidden_layer_sizes => '{6}'",
        "label => 'half', features => '{sparse}', options => '{\"averaging\": true, \"validation_fraction\": 0.2}'",
    ] {
        // to go on, bit for bit
        let near = spread.near();
        let whole = near.trained(&format!("'packed_t', {training}, {sizes}, {there}, max_epochs => 3")).bits();
        let first = near.train(&format!("'packed_t', {training}, {sizes}, {there}, max_epochs => 1"));
        assert!(first[0].tuples == 1200 || training.contains("validation") && first[0].tuples < 1200, "{training}");
        let first = first[0].model_id;
        let then = near.train(&format!("'packed_t', warm_start => '{first}', {there}, max_epochs => 2"));
        assert_eq!(then.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [2, 3], "{training}");
        assert_eq!(near.model(then[0].model_id).bits(), whole, "{training}");
        // what is on one server makes the steps that it would make there
        let ask = |session: &mut Session, source: &str, nodes: &str| {
            let call = format!(
                "SELECT tuples, loss, validation_loss FROM corgipile_train('{source}', {training}, {sizes}{nodes}, max_epochs => 3) ORDER BY epoch"
            );
            let rows = session.rows(&call, &[]);
            rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect::<Vec<(i64, f64, Option<f64>)>>()
        };
        let [_, mut north, _] = spread.sessions();
        let expected = ask(&mut north, "packed_t", "");
        let found = ask(spread.near(), "packed_t_north", ", servers => 'north'");
        assert_eq!(found.len(), expected.len(), "{training}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.0, "{training}: the same mini-batches are held out");
            assert!((found.1 - expected.1).abs() < 1e-5, "{training}: {found:?} {expected:?}");
            let judged = [found.2, expected.2].map(|loss| loss.unwrap_or_default());
            assert!((judged[0] - judged[1]).abs() < 1e-5, "{training}: {found:?} {expected:?}");
        }
    }
    let near = spread.near();
    // several points side by side
    let training = format!("'packed_t', label => 'half', features => '{{dense}}', {sizes}, {there}, max_epochs => 2");
    let points = ["{\"l2\": 0.1}", "{\"optimizer\": \"momentum\"}"];
    let grid = points.join(", ");
    let ids: Vec<i64> = near
        .column(&format!("SELECT model_id FROM corgipile_train({training}, grid => '[{grid}]') GROUP BY 1 ORDER BY 1"));
    for (id, point) in ids.into_iter().zip(points) {
        let alone = near.trained(&format!("{training}, options => '{point}'"));
        assert_eq!(near.model(id).bits(), alone.bits(), "{point}");
    }
    // what is held out says when to stop
    let stops =
        "label => 'half', features => '{dense}', seed => 4, learning_rate => 3, patience => 2, max_epochs => 200";
    let epochs = near.train(&format!("'packed_t', {stops}, {there}, options => '{{\"validation_fraction\": 0.3}}'"));
    assert!(epochs.len() < 200, "{}", epochs.len());
    // rows of other widths
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE packed_t SET dense = sparse");
    let near = spread.near();
    let call = format!("SELECT corgipile_train('packed_t', label => 'half', features => '{{dense}}', {there})");
    near.rejects(&call, "22000").says(&["compressed rows have 5 numbers on one server and 14 on another"]);
}

#[test]
fn models_are_judged_by_compressed_rows_where_they_are() {
    let Some(mut spread) = Spread::new(models_are_judged_by_compressed_rows_where_they_are) else { return };
    spread.by_hash();
    spread.one_empty();
    compress(&mut spread, "t");
    compress(&mut spread, "one_empty");
    let near = spread.near();
    near.run("CREATE TABLE here AS SELECT * FROM packed_t");
    for (name, arguments) in [
        ("logistic", "label => 'half', features => '{dense}'"),
        ("svm", "label => 'class', features => '{sparse}', model => 'svm_one_vs_rest'"),
        ("softmax", "label => 'class', features => '{dense}', model => 'softmax'"),
        ("linear", "label => 'y', features => '{dense}', model => 'linear'"),
        ("network", "label => 'class', features => '{sparse}', model => 'mlp', hidden_layer_sizes => '{6}'"),
    ] {
        near.train(&format!(
            "'here', {arguments}, learning_rate => 0.01, name => '{name}', max_epochs => 2, seed => 1"
        ));
        for table in ["packed_t", "packed_one_empty"] {
            assert_same(near, name, table, "here", "");
        }
    }
    // a model of rows that are not compressed, whose weights are made for such
    near.run("CREATE TABLE loose AS SELECT half, ARRAY[a, b, v[1], v[2], id % 3]::real[] AS dense FROM base");
    near.train("'loose', label => 'half', features => '{dense}', name => 'loose', max_epochs => 2, seed => 1");
    assert_same(near, "loose", "packed_t", "here", "");
}
