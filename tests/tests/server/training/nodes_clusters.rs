//! How clustered tables are that lie on three private servers: as one table is that has the same blocks.

use super::nodes::Spread;
use corgipile_tests::Session;

/// Makes `{name}_here`, with the rows of a spread table in partitions of this server, on the same pages.
fn gather(near: &mut Session, name: &str, partition: &str, bounds: [&str; 3]) {
    near.run(&format!("CREATE TABLE {name}_here (LIKE base) PARTITION BY {partition}"));
    for (server, bounds) in ["east", "north", "south"].iter().zip(bounds) {
        near.run(&format!("CREATE TABLE {name}_here_{server} PARTITION OF {name}_here FOR VALUES {bounds}"));
    }
    near.run(&format!("INSERT INTO {name}_here SELECT * FROM base ORDER BY id"));
}

fn factor(near: &mut Session, source: &str, arguments: &str) -> f64 {
    near.value(&format!("SELECT corgipile_cluster_factor('{source}', {arguments}, block_size => '8kB')"))
}

#[test]
fn blocks_on_servers_differ_as_those_of_one_table() {
    let Some(mut spread) = Spread::new(blocks_on_servers_differ_as_those_of_one_table) else { return };
    let by_hash = [0, 1, 2].map(|i| format!("WITH (MODULUS 3, REMAINDER {i})"));
    let by_label = ["IN (2)", "IN (0)", "IN (1)"];
    let one_empty = ["IN (0, 1)", "IN (7)", "IN (2)"];
    spread.near().run(
        "SELECT corgipile_train('base', 'logistic', 'half', '{a,b}', max_epochs => 2, seed => 1, name => 'trained');
         SELECT corgipile_train('base', 'softmax', 'class', '{a,cat}', max_epochs => 2, seed => 1, name => 'trained on categories')",
    );
    for (name, partition, bounds) in [
        ("t", "HASH (id)", [by_hash[0].as_str(), &by_hash[1], &by_hash[2]]),
        ("by_label", "LIST (class)", by_label),
        ("one_empty", "LIST (class)", one_empty),
    ] {
        spread.spread(name, partition, bounds);
        let near = spread.near();
        gather(near, name, partition, bounds);
        for arguments in [
            "label => 'half', features => '{a,b}'",
            "label => 'half', features => '{a,b,cat}', model => 'svm'",
            "label => 'half', features => '{k,kv}'",
            "label => 'y', features => '{a,b}', model => 'linear'",
            "label => 'class', features => '{a,b,cat}', model => 'softmax'",
            "label => 'class', features => '{v}', model => 'svm_one_vs_rest'",
            "label => 'class', features => '{v}', model => 'svm'",
            "model => 'trained'",
            "model => 'trained on categories'",
        ] {
            let there = factor(near, name, &format!("{arguments}, servers => 'east,north,south'"));
            let here = factor(near, &format!("{name}_here"), arguments);
            assert!((there - here).abs() <= 1e-9 * here, "{name}, {arguments}: {there} {here}");
        }
        // from its definition
        let there = factor(near, name, "label => 'y', features => '{a,b}', model => 'linear', servers => 'auto'");
        let expected: f64 = near.value(&format!(
            "WITH s AS (SELECT avg(y::float8) AS ym, stddev_pop(y::float8) AS ys, avg(a::float8) AS am, stddev_pop(a::float8) AS \"as\",
                               avg(b::float8) AS bm, stddev_pop(b::float8) AS bs FROM {name}_here),
                  r AS (SELECT t.tableoid AS part, (t.ctid::text::point)[0] AS page, (y - ym) / ys AS y, (a - am) / s.\"as\" AS a,
                               (b - bm) / bs AS b FROM {name}_here AS t, s),
                  g AS (SELECT part, page, y AS g0, y * a AS g1, y * b AS g2 FROM r),
                  m AS (SELECT avg(g0) AS m0, avg(g1) AS m1, avg(g2) AS m2, count(*)::float8 AS rows FROM g),
                  l AS (SELECT count(*) AS n, avg(g0) AS l0, avg(g1) AS l1, avg(g2) AS l2 FROM g GROUP BY part, page)
             SELECT rows / (SELECT count(*) FROM l)
                    * (SELECT sum(n * ((l0 - m0) ^ 2 + (l1 - m1) ^ 2 + (l2 - m2) ^ 2)) FROM l)
                    / (SELECT sum((g0 - m0) ^ 2 + (g1 - m1) ^ 2 + (g2 - m2) ^ 2) FROM g) FROM m"
        ));
        assert!((there - expected).abs() <= 1e-6 * expected, "{name}: {there} {expected}");
    }
    // of one server, by its foreign table
    let near = spread.near();
    let arguments = "label => 'half', features => '{a,b}'";
    let there = factor(near, "t_north", &format!("{arguments}, servers => 'north'"));
    let here = factor(near, "t_here_north", arguments);
    assert!((there - here).abs() <= 1e-9 * here, "{there} {here}");
}

#[test]
fn blocks_that_cannot_be_measured_there_are_measured_here_or_are_an_error() {
    let Some(mut spread) = Spread::new(blocks_that_cannot_be_measured_there_are_measured_here_or_are_an_error) else {
        return;
    };
    spread.by_hash();
    let call = |source: &str, nodes: &str| {
        format!(
            "SELECT corgipile_cluster_factor('{source}', label => 'half', features => '{{a,b}}', servers => '{nodes}')"
        )
    };
    let why = "the source is a table of this server";
    let notices = spread.nodes.near.notices(&[&call("base", "auto")]);
    assert!(notices.contains(&format!("the rows are fetched to this server to be measured: {why}\n")), "{notices}");
    let failure = spread.near().fails_with(&call("base", "north"), "0A000");
    assert_eq!(failure.message, format!("the rows cannot be measured where they are: {why}"));
    let empty = call("SELECT * FROM t WHERE id < 0", "auto");
    assert_eq!(spread.near().fails_with(&empty, "22000").message, "there are no rows to measure");
    let one = call("SELECT * FROM t WHERE half = 1", "auto");
    let message = spread.near().fails_with(&one, "22000").message;
    assert_eq!(message, "label column \"half\" has only one value: 1");
    spread.near().fails_with(&call("t", "east,east"), "22023").says(&["servers"]);
    let [_, mut north, _] = spread.sessions();
    north.run("UPDATE t SET a = 'NaN' WHERE id = (SELECT max(id) FROM t)");
    let failure = spread.near().fails_with(&call("t", "auto"), "22003");
    assert!(failure.message.starts_with("server \"north\": "), "{failure:#?}");
    north.run("DROP EXTENSION corgipile");
    let failure = spread.near().fails_with(&call("t", "east,north,south"), "55000");
    assert_eq!(failure.message, "server \"north\": extension corgipile is not installed in its database");
}
