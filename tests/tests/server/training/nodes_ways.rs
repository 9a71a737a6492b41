//! Which way several servers train if the call leaves it to `servers => 'auto'`, and what is reported of it.

use super::nodes::Spread;
use corgipile_tests::Session;

const NOTICE: &str = "of the ways to train on 3 servers, the first is taken, by estimates with a round trip of ";

/// What is reported of the ways of a training; empty if nothing is.
fn told(spread: &Spread, arguments: &str) -> String {
    let told = spread.nodes.near.notices(&[&format!("SELECT FROM corgipile_train({arguments}, seed => 1)")]);
    let ways = told.lines().find_map(|line| line.split_once(NOTICE)).map(|(_, ways)| ways.to_owned());
    ways.map(|ways| ways.split_once(": ").expect("ways follow").1.to_owned()).unwrap_or_default()
}

/// The ways without their figures.
fn names(ways: &str) -> Vec<&str> {
    let name = |way| {
        let all = ["Newton's method", "averaging", "mini-batches", "fetching"];
        all.into_iter().find(|name| str::starts_with(way, name)).unwrap_or(way)
    };
    let mut names: Vec<&str> = ways.split(", ").map(name).collect();
    names.sort_unstable();
    names
}

#[test]
fn auto_tells_of_the_ways_that_are_open_and_takes_one() {
    let Some(mut spread) = Spread::new(auto_tells_of_the_ways_that_are_open_and_takes_one) else { return };
    spread.by_hash();
    spread.by_label();
    let auto = "label => 'half', features => '{a,b}', servers => 'auto'";
    for (arguments, open) in [
        (format!("'t', {auto}"), vec!["Newton's method", "averaging", "fetching", "mini-batches"]),
        // a rate is one of SGD
        (format!("'t', {auto}, learning_rate => 0.1"), vec!["averaging", "fetching", "mini-batches"]),
        (format!("'t', {auto}, max_epochs => 2"), vec!["averaging", "fetching", "mini-batches"]),
        (format!("'t', {auto}, l1 => 0.001"), vec!["averaging", "fetching", "mini-batches"]),
        // labels that differ are not averaged, and those of numbers are not known
        ("'by_label', 'softmax', 'class', '{a,b}', servers => 'auto'".to_owned(), vec!["fetching", "mini-batches"]),
        (
            "'t', 'linear', 'y', '{a,b}', servers => 'auto'".to_owned(),
            vec!["Newton's method", "fetching", "mini-batches"],
        ),
        (format!("'t', {auto}, model => 'svm'"), vec!["averaging", "fetching", "mini-batches"]),
        (format!("'t', {auto}, model => 'mlp', max_epochs => 2"), vec!["fetching", "mini-batches"]),
        (format!("'t', {auto}, group_by => 'cat'"), vec!["Newton's method", "averaging", "fetching", "mini-batches"]),
    ] {
        assert_eq!(names(&told(&spread, &arguments)), open, "{arguments}");
    }
    // what the call says is not chosen
    for said in ["batch_size => 1", "batch_size => 100", "solver => 'newton'"] {
        assert_eq!(told(&spread, &format!("'t', {auto}, {said}")), "", "{said}");
    }
    assert_eq!(told(&spread, &format!("'t', {}", auto.replace("auto", "east,north,south"))), "");
    // nor is there anything to choose where each group, or all rows, are on one server
    spread.spread("by_cat", "LIST (cat)", ["IN ('red')", "IN ('green', 'blue')", "IN ('grey')"]);
    for nodes in ["auto", "east,north,south"] {
        let call = format!("'by_cat', {}, group_by => 'cat'", auto.replace("auto", nodes));
        let told = spread.nodes.near.notices(&[&format!("SELECT FROM corgipile_train({call})")]);
        assert!(!told.contains("ways to train") && !told.contains("batch_size is 32"), "{told}");
    }
    assert_eq!(told(&spread, &format!("'t_north', {auto}")), "");
}

#[test]
fn rows_that_auto_fetches_give_the_model_of_one_server() {
    let Some(mut spread) = Spread::new(rows_that_auto_fetches_give_the_model_of_one_server) else { return };
    spread.by_label();
    // thousands of requests, or a moment for 1,200 rows
    let call = "'by_label', 'softmax', 'class', '{a,b,cat}', name => 'm', max_epochs => 100, l2 => 0";
    let auto = format!("{call}, servers => 'auto'");
    assert!(told(&spread, &auto).starts_with("fetching the rows "), "{}", told(&spread, &auto));
    let near = spread.near();
    let [one, other] = [call, &auto].map(|call| near.trained(&format!("{call}, seed => 3")).bits());
    assert_eq!(one, other);
    let plan = near.lines(&format!("EXPLAIN ANALYZE SELECT * FROM corgipile_train({auto})"));
    assert!(plan.iter().any(|line| line.contains("Servers: none: that takes less time")), "{plan:#?}");
    assert_eq!(near.line("SELECT count(DISTINCT version), max(version) FROM corgipile.models WHERE name = 'm'"), "4|4");
    // and it goes on so: servers that now learned row by row would each learn one class
    let [one, other] = ["", ", servers => 'auto'"].map(|servers| {
        let more = format!("'by_label', warm_start => 'm', max_epochs => 3{servers}");
        near.trained(&more).bits()
    });
    assert_eq!(one, other);
    near.run(
        "CALL corgipile_train_in_steps('by_label', model => 'softmax', label => 'class', features => '{a,b,cat}',
             name => 'steps', max_epochs => 12, epochs_per_step => 4, l2 => 0, seed => 3, servers => 'auto')",
    );
    let [told, real] = [
        "SELECT accuracy FROM corgipile.training_history WHERE name = 'steps' ORDER BY epoch DESC LIMIT 1",
        "SELECT value FROM corgipile_evaluate('steps', 'by_label') WHERE metric = 'accuracy'",
    ]
    .map(|query| near.value::<f64>(query));
    assert!((told - real).abs() < 0.1, "{told} while training, {real} in truth");
}

#[test]
fn a_table_that_the_transaction_has_emptied_is_fetched() {
    let Some(mut spread) = Spread::new(a_table_that_the_transaction_has_emptied_is_fetched) else { return };
    spread.by_hash();
    let near = spread.near();
    near.run("SET statement_timeout = '60s'");
    let train = |servers| {
        format!(
            "SELECT max(tuples) FROM corgipile_train('t', 'logistic', 'half', '{{a,b}}', batch_size => 50,
                                   max_epochs => 2, servers => '{servers}')"
        )
    };
    near.run("BEGIN");
    assert_eq!(near.line(&train("east,north,south")), "1200");
    near.run("TRUNCATE t_east");
    let left = near.line("SELECT count(*) FROM t");
    assert!(left != "1200", "{left}");
    assert_eq!(near.line(&train("auto")), left);
    near.fails_with(&train("east,north,south"), "0A000");
    near.run("ROLLBACK");
}

/// The rows of a large server are mixed with those of a small one to the end of each buffer.
#[test]
fn a_network_learns_from_servers_of_unequal_sizes_as_from_one() {
    let Some(mut spread) = Spread::new(a_network_learns_from_servers_of_unequal_sizes_as_from_one) else { return };
    spread.spread("uneven", "LIST (class)", ["IN (0)", "IN (1)", "IN (2)"]);
    let near = spread.near();
    near.run("DELETE FROM uneven WHERE class > 0 AND id % 4 > 0; CREATE TABLE one AS TABLE uneven");
    let accuracy = |near: &mut Session, source: &str, servers: &str| {
        let call = format!(
            "'{source}', model => 'mlp', label => 'class', features => '{{a,b}}', max_epochs => 20, batch_size => 32,
             seed => 1, servers => '{servers}'"
        );
        let model = near.train(&call)[0].model_id;
        near.value::<f64>(&format!("SELECT value FROM corgipile_evaluate({model}, 'one') WHERE metric = 'accuracy'"))
    };
    let [there, here] =
        [("uneven", "east,north,south"), ("one", "off")].map(|(source, servers)| accuracy(near, source, servers));
    assert!(there > here - 0.02, "{there}, on one server {here}");
}

#[test]
fn what_auto_trains_is_as_good_as_the_model_of_one_server() {
    let Some(mut spread) = Spread::new(what_auto_trains_is_as_good_as_the_model_of_one_server) else { return };
    spread.by_hash();
    spread.by_label();
    let score = |near: &mut Session, table: &str, training: &str| {
        let model = near.train(&format!("'{table}', {training}, seed => 1"))[0].model_id;
        let metric = if training.contains("'y'") { "r2" } else { "accuracy" };
        near.value::<f64>(&format!("SELECT value FROM corgipile_evaluate({model}, 'base') WHERE metric = '{metric}'"))
    };
    for training in [
        "label => 'half', features => '{a,b}'",
        "label => 'half', features => '{a,b}', max_epochs => 1",
        "label => 'class', model => 'softmax', features => '{a,b}'",
        "label => 'y', model => 'linear', features => '{a,b,cat}', l2 => 0",
        "label => 'half', model => 'svm', features => '{a,b}'",
    ] {
        let near = spread.near();
        let here = score(near, "base", training);
        for table in ["t", "by_label"] {
            let there = score(near, table, &format!("{training}, servers => 'auto'"));
            assert!(there > here - 0.02, "{training}, {table}: {there}, on one server {here}");
        }
    }
}
