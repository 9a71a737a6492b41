//! What one server can do, several can: held out rows and early stopping, grids, Newton's method, to go on with a
//! model.

use super::nodes::{Spread, assert_equal};
use corgipile_tests::{Session, sample};

/// Makes `{table}_parted`: the rows of a spread table in the sequence in which nodes take turns with those that are not
/// held out, and behind them the others.
pub fn part(near: &mut Session, table: &str) {
    near.run(&format!(
        "CREATE TABLE {table}_parted AS SELECT id, half, class, y, a, b, c, cat, v, k, kv, w, held
         FROM (SELECT *, (row_number() OVER (PARTITION BY tableoid, held ORDER BY id) - 0.5::float8)
                             / count(*) OVER (PARTITION BY tableoid, held) AS turn, tableoid::regclass::text AS server
               FROM {table}) s ORDER BY held, turn, server"
    ));
}

/// The arguments, with some rows held out.
fn with_held(arguments: &str) -> String {
    match arguments.contains("options => '{") {
        true => arguments.replace("options => '{", "options => '{\"validation_column\": \"held\", "),
        false => format!("{arguments}, options => '{{\"validation_column\": \"held\"}}'"),
    }
}

/// The same training on nodes and on one server, in the natural order: parameters, and losses and scores on the held
/// out rows after each epoch.
fn both(near: &mut Session, table: &str, arguments: &str) -> [(Vec<f64>, Vec<[f64; 2]>); 2] {
    let mut train = |source: &str, nodes: &str| {
        let rows = near.rows(
            &format!(
                "SELECT model_id, validation_loss, validation_score FROM corgipile_train('{source}', {arguments},
                     shuffle => 'no_shuffle', buffer_size => '100%', seed => 1{nodes}) ORDER BY epoch"
            ),
            &[],
        );
        let judged = rows.iter().filter_map(|row| Some([row.get::<_, Option<f64>>(1)?, row.get::<_, Option<f64>>(2)?]));
        (near.model(rows[0].get(0)).parameters(), judged.collect())
    };
    [train(table, ", servers => 'east,north,south'"), train(&format!("{table}_parted"), "")]
}

/// Asserts that both learned and judged the same, but for rounding.
fn assert_same([there, here]: [(Vec<f64>, Vec<[f64; 2]>); 2], what: &str) {
    assert_eq!(there.1.len(), here.1.len(), "{what}: as many epochs");
    assert!(!here.1.is_empty(), "{what}: judged");
    for (a, b) in there.1.as_flattened().iter().zip(here.1.as_flattened()) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{what}: {a} {b}");
    }
    assert_equal([there.0, here.0], what);
}

#[test]
fn held_out_rows_judge_on_their_servers_as_on_one() {
    let Some(mut spread) = Spread::new(held_out_rows_judge_on_their_servers_as_on_one) else { return };
    spread.by_hash();
    spread.by_label();
    spread.one_empty();
    for table in ["t", "by_label", "one_empty"] {
        let near = spread.near();
        part(near, table);
        for training in [
            "label => 'half', features => '{a,b}'",
            "label => 'half', features => '{a,b,cat}', class_weight => 'balanced', l2 => 0, options => '{\"keep\": \"best\"}'",
            "label => 'half', features => '{k,kv}', optimizer => 'adam', learning_rate => 0.01",
            "label => 'y', features => '{a,b,c}', model => 'linear'",
            "label => 'y', features => '{a,b,c}', model => 'huber'",
            "label => 'class', features => '{a,b,cat}', model => 'softmax', l2 => 0",
            "label => 'class', features => '{a,b}', model => 'svm', options => '{\"averaging\": true}'",
            "label => 'class', features => '{a,b,c}', model => 'mlp', hidden_layer_sizes => '{6}', learning_rate => 0.01",
        ] {
            let arguments = format!("{}, batch_size => 64, max_epochs => 4", with_held(training));
            assert_same(both(near, table, &arguments), &format!("{table}, {arguments}"));
        }
        let stops = "label => 'half', features => '{a,b}', batch_size => 32, max_epochs => 60, learning_rate => 2, patience => 2";
        let [there, here] = both(near, table, &with_held(stops));
        assert!(here.1.len() < 60, "it stops: {}", here.1.len());
        assert_same([there, here], stops);
    }
    for (which, what) in [("NOT held", "no rows to validate on"), ("held", "no rows to train on")] {
        let call = format!(
            "SELECT corgipile_train('SELECT * FROM t WHERE {which}', label => 'half', features => '{{a,b}}',
                 servers => 'east,north,south', options => '{{\"validation_column\": \"held\"}}')"
        );
        spread.near().rejects(&call, "22000").says(&[what]);
    }
}

#[test]
fn what_a_fraction_holds_out_is_that_of_the_own_server() {
    let Some(mut spread) = Spread::new(what_a_fraction_holds_out_is_that_of_the_own_server) else { return };
    spread.by_hash();
    for by in ["row", "block"] {
        let training = format!(
            "label => 'half', features => '{{a,b}}', batch_size => 16, max_epochs => 3, seed => 7, block_size => '8kB', buffer_size => '40%',
             standardize => false, learning_rate => 0.01, options => '{{\"validation_fraction\": 0.3, \"validation_by\": \"{by}\"}}'"
        );
        let ask = |session: &mut Session, source: &str, nodes: &str| {
            let call = format!(
                "SELECT tuples, validation_loss, validation_score FROM corgipile_train('{source}', {training}{nodes}) ORDER BY epoch"
            );
            let rows = session.rows(&call, &[]);
            rows.iter().map(|row| (row.get::<_, i64>(0), [row.get::<_, f64>(1), row.get(2)])).collect::<Vec<_>>()
        };
        let there = ask(&mut spread.east.session(), "t", "");
        let here = ask(spread.near(), "t_east", ", servers => 'east'");
        assert_eq!(there.len(), here.len());
        for ((tuples, found), (of_one, expected)) in here.iter().zip(&there) {
            assert_eq!(tuples, of_one, "{by}: the same rows are held out");
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() < 1e-5, "{by}: {a} {b}");
            }
        }
    }
}

#[test]
fn a_training_on_nodes_goes_on_bit_for_bit() {
    let Some(mut spread) = Spread::new(a_training_on_nodes_goes_on_bit_for_bit) else { return };
    // at the end of a buffer, one server has all rows of a mini-batch
    spread.spread("t", "RANGE (id)", ["FROM (MINVALUE) TO (50)", "FROM (50) TO (900)", "FROM (900) TO (MAXVALUE)"]);
    let near = spread.near();
    for training in [
        "label => 'half', features => '{a,b}', batch_size => 16",
        "label => 'half', features => '{a,b}', batch_size => 1",
        "label => 'half', features => '{a,b,cat}', batch_size => 16, l2 => 0, options => '{\"averaging\": true, \"validation_column\": \"held\"}'",
        "label => 'half', features => '{k,kv}', batch_size => 16, optimizer => 'adam', l1 => 0.001",
        "label => 'y', features => '{a,b,c}', model => 'linear', batch_size => 8, optimizer => 'momentum'",
        "label => 'class', features => '{v}', model => 'softmax', batch_size => 8",
        "label => 'class', features => '{a,b,c}', model => 'mlp', hidden_layer_sizes => '{6}', batch_size => 8",
        "label => 'half', features => '{a,b,c}', solver => 'newton', l2 => 0.01",
    ] {
        let rate = if training.contains("newton") { "" } else { ", learning_rate => 0.02" };
        let sizes =
            format!("seed => 4, buffer_size => '40%', block_size => '8kB', servers => 'east,north,south'{rate}");
        let whole = near.trained(&format!("'t', {training}, {sizes}, max_epochs => 3")).bits();
        let first = near.train(&format!("'t', {training}, {sizes}, max_epochs => 1"))[0].model_id;
        let then = near.train(&format!("'t', warm_start => '{first}', servers => 'east,north,south', max_epochs => 2"));
        assert_eq!(then.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [2, 3], "{training}");
        assert_eq!(near.model(then[0].model_id).bits(), whole, "{training}");
        // by this server, and what this server has begun
        let then = near.train(&format!("'t_dealt', warm_start => '{first}', servers => 'off', max_epochs => 1"));
        assert_eq!(then[0].epoch, 2, "{training}");
    }
    // wherever rows are, they may be those that the model was trained on
    for (source, epoch) in [("base", 2), ("SELECT * FROM base WHERE id > 100", 1)] {
        let training = format!("'{source}', label => 'half', features => '{{a,b}}', batch_size => 16, max_epochs => 1");
        let first = near.train(&training)[0].model_id;
        let then = near.train(&format!("'t', warm_start => '{first}', servers => 'east,north,south', max_epochs => 1"));
        assert_eq!((then[0].epoch, then[0].tuples), (epoch, 1200), "{source}");
    }
}

#[test]
fn models_of_a_grid_are_those_of_their_own_calls() {
    let Some(mut spread) = Spread::new(models_of_a_grid_are_those_of_their_own_calls) else { return };
    spread.by_hash();
    let near = spread.near();
    let training = "'t', label => 'half', max_epochs => 3, seed => 5, buffer_size => '40%', block_size => '8kB', learning_rate => 0.02,
                    servers => 'east,north,south'";
    for (features, more) in [("{a,b}", ""), ("{k,kv}", ""), ("{a,b}", "\"validation_column\": \"held\"")] {
        let training = format!("{training}, features => '{features}'");
        let points = [
            r#"{"batch_size": 1}"#,
            r#"{"batch_size": 1, "optimizer": "momentum"}"#,
            r#"{"batch_size": 16, "l2": 0.1}"#,
            r#"{"batch_size": 16, "optimizer": "adam"}"#,
            r#"{"batch_size": 50, "l1": 0.001}"#,
            r#"{"batch_size": 16, "max_epochs": 1}"#,
        ];
        let grid = format!("[{}]", points.join(", "));
        let ids: Vec<i64> = near.column(&format!(
            "SELECT model_id FROM corgipile_train({training}, options => '{{{more}}}', grid => '{grid}') GROUP BY 1 ORDER BY 1"
        ));
        assert_eq!(ids.len(), points.len());
        let with_more =
            |point: &str| if more.is_empty() { point.to_owned() } else { point.replace('{', &format!("{{{more}, ")) };
        for (id, point) in ids.into_iter().zip(points) {
            let alone = match point.contains("max_epochs") {
                true => format!(
                    "{}, options => '{{{more}}}'",
                    training.replace("max_epochs => 3", "max_epochs => 1, batch_size => 16")
                ),
                false => format!("{training}, options => '{}'", with_more(point)),
            };
            assert_eq!(near.model(id).bits(), near.trained(&alone).bits(), "{features}, {point}, {more}");
        }
    }
    // models of the same mini-batches make their steps by one request
    let requests = |near: &mut Session, grid: &str| {
        let plan = near.lines(&format!(
            "EXPLAIN ANALYZE SELECT * FROM corgipile_train({training}, features => '{{a,b}}', batch_size => 16{grid})"
        ));
        let line = plan.iter().find_map(|line| line.trim().strip_prefix("Node Requests: ").map(str::to_owned));
        line.expect("requests are shown").parse::<u32>().expect("a number")
    };
    let alone = requests(near, "");
    assert_eq!(requests(near, ", grid => '{\"l2\": [0, 0.1, 0.2, 0.3]}'"), alone);
    // one of them diverges, and the others are trained
    let told = spread.nodes.near.notices(&[
        "SELECT count(DISTINCT model_id) FROM corgipile_train('t', 'linear', label => 'y', features => '{a,b}', standardize => false,
             servers => 'auto', options => '{\"validation_column\": \"held\"}', max_epochs => 2, grid => '{\"learning_rate\": [1e30, 0.001], \"batch_size\": [8, 16]}')",
    ]);
    assert_eq!(told.matches("diverged").count(), 2, "{told}");
}

#[test]
fn newtons_method_on_nodes_is_that_of_one_server() {
    let Some(mut spread) = Spread::new(newtons_method_on_nodes_is_that_of_one_server) else { return };
    spread.by_hash();
    spread.spread("by_label", "LIST (half)", ["IN (0)", "IN (1)", "IN (7)"]);
    let near = spread.near();
    for table in ["t", "by_label"] {
        for training in [
            "label => 'half', features => '{a,b}'",
            "label => 'half', features => '{a,b,cat}', l2 => 0.01",
            "label => 'half', features => '{k,kv}', l2 => 0.01, options => '{\"weight\": \"w\"}'",
            "label => 'y', features => '{a,b,c}', model => 'linear'",
        ] {
            let train = format!("{training}, solver => 'newton', max_epochs => 20, buffer_size => '40%'");
            let there = near.train(&format!("'{table}', {train}, servers => 'east,north,south'"));
            let here = near.train(&format!("'{table}_dealt', {train}"));
            assert_eq!(there.len(), here.len(), "{table}, {training}: as many passes");
            let [there, here] = [there, here].map(|epochs| near.model(epochs[0].model_id).parameters());
            assert_equal([there, here], &format!("{table}, {training}"));
        }
    }
}

#[test]
fn a_mapping_that_needs_no_password_is_told_of() {
    let Some(mut spread) = Spread::new(a_mapping_that_needs_no_password_is_told_of) else { return };
    spread.by_hash();
    let role = spread.nodes.near.role("reader");
    spread
        .near()
        .run(&format!("GRANT SELECT ON t TO {role}; GRANT USAGE ON FOREIGN SERVER east, north, south TO {role}"));
    for (server, cluster) in [("east", &spread.east), ("north", &spread.nodes.north), ("south", &spread.nodes.south)] {
        cluster.session().run("CREATE ROLE far LOGIN; GRANT SELECT ON t TO far");
        spread.nodes.near.run(&format!(
            "CREATE USER MAPPING FOR {role} SERVER {server} OPTIONS (user 'far', password_required 'false')"
        ));
    }
    let call = |nodes: &str| {
        format!(
            "SELECT tuples FROM corgipile_train('t', label => 'half', features => '{{a,b}}', max_epochs => 1, learning_rate => 0.01,
                 batch_size => 100, servers => '{nodes}')"
        )
    };
    let message = "server \"east\": the user mapping has no password";
    let failure = spread.nodes.near.session_as(&role).fails_with(&call("east,north,south"), "2F003");
    assert_eq!(failure.message, message);
    failure.hints(&["password_required applies to postgres_fdw only", "Give the mapping a password"]);
    // postgres_fdw lets it pass, and the rows are fetched here
    let notices = spread.nodes.near.notices(&[&format!("SET ROLE {role}; {}", call("auto"))]);
    assert!(notices.contains(&format!("the rows are fetched to this server to be trained on: {message}")), "{notices}");
    assert!(spread.nodes.near.session_as(&role).lines(&call("auto")) == ["1200"]);
}

#[test]
fn a_model_of_a_group_is_that_of_its_rows_wherever_they_are() {
    let Some(mut spread) = Spread::new(a_model_of_a_group_is_that_of_its_rows_wherever_they_are) else { return };
    spread.by_hash();
    // each server has all rows of a group
    spread.spread("by_group", "LIST (cat)", ["IN ('red')", "IN ('green', 'grey')", "IN ('blue')"]);
    let near = spread.near();
    let sizes = "seed => 3, block_size => '8kB', buffer_size => '40%', servers => 'east,north,south'";
    for table in ["t", "by_group"] {
        for training in [
            "label => 'half', features => '{a,b}', batch_size => 16",
            "label => 'half', features => '{k,kv}', batch_size => 16, optimizer => 'adam'",
            "label => 'class', features => '{a,b}', model => 'softmax', batch_size => 7",
            "label => 'half', features => '{a,b}', solver => 'newton', l2 => 0.01",
        ] {
            let rate = if training.contains("newton") { "" } else { ", learning_rate => 0.05" };
            let training = with_held(&format!("{training}, max_epochs => 3, standardize => false, {sizes}{rate}"));
            let together = near.rows(
                &format!(
                    "SELECT group_value, min(model_id), max(validation_loss) FROM corgipile_train('{table}', {training}, group_by => 'cat')
                     GROUP BY 1 ORDER BY 1"
                ),
                &[],
            );
            assert_eq!(together.len(), 4, "{table}, {training}");
            for row in together {
                let (group, id, loss): (String, i64, f64) = (row.get(0), row.get(1), row.get(2));
                let server = match (table, group.as_str()) {
                    ("t", _) => "east,north,south",
                    (_, "red") => "east",
                    (_, "blue") => "south",
                    _ => "north",
                };
                let of_group = training.replace("east,north,south", server);
                let alone = near.rows(
                    &format!(
                        "SELECT min(model_id), max(validation_loss) FROM corgipile_train('SELECT * FROM {table} WHERE cat = ''{group}''', {of_group})"
                    ),
                    &[],
                );
                assert_equal(
                    [near.model(id).parameters(), near.model(alone[0].get(0)).parameters()],
                    &format!("{table}, {group}, {training}"),
                );
                assert!((loss - alone[0].get::<_, f64>(1)).abs() < 1e-6, "{table}, {group}");
            }
        }
        // one by one, a group that is on one server is trained there whole
        let by_tuple = near.train(&format!(
            "'{table}', label => 'half', features => '{{a,b}}', batch_size => 1, max_epochs => 2, learning_rate => 0.05, group_by => 'cat', {sizes}"
        ));
        assert_eq!(by_tuple.iter().filter(|epoch| epoch.epoch == 1).map(|epoch| epoch.tuples).sum::<i64>(), 1200);
    }
}

#[test]
fn every_group_goes_on_from_one_model_wherever_its_rows_are() {
    let Some(mut spread) = Spread::new(every_group_goes_on_from_one_model_wherever_its_rows_are) else { return };
    spread.by_hash();
    spread.spread("by_group", "LIST (cat)", ["IN ('red')", "IN ('green', 'grey')", "IN ('blue')"]);
    let near = spread.near();
    let sizes =
        "seed => 3, block_size => '8kB', buffer_size => '40%', standardize => false, servers => 'east,north,south'";
    for table in ["t", "by_group"] {
        for training in [
            "label => 'half', features => '{a,b}', batch_size => 16, learning_rate => 0.05",
            "label => 'half', features => '{k,kv}', batch_size => 16, optimizer => 'adam', learning_rate => 0.05",
            "label => 'class', features => '{a,b}', model => 'softmax', batch_size => 7, learning_rate => 0.05",
            "label => 'half', features => '{a,b}', solver => 'newton', l2 => 0.01",
        ] {
            let training = with_held(&format!("{training}, max_epochs => 2, {sizes}"));
            let first = near.train(&format!("'{table}', {training}"))[0].model_id;
            let together = near.rows(
                &format!(
                    "SELECT group_value, min(model_id), min(epoch), max(validation_loss)
                     FROM corgipile_train('{table}', warm_start => '{first}', group_by => 'cat', servers => 'east,north,south', max_epochs => 2)
                     GROUP BY 1 ORDER BY 1"
                ),
                &[],
            );
            assert_eq!(together.len(), 4, "{table}, {training}");
            for row in together {
                let (group, id, epoch, loss): (String, i64, i32, f64) =
                    (row.get(0), row.get(1), row.get(2), row.get(3));
                assert_eq!(epoch, 1, "other rows, another training: {table}, {training}");
                let alone = near.rows(
                    &format!(
                        "SELECT min(model_id), max(validation_loss) FROM corgipile_train('SELECT * FROM {table} WHERE cat = ''{group}''',
                             warm_start => '{first}', servers => 'auto', max_epochs => 2)"
                    ),
                    &[],
                );
                assert_equal(
                    [near.model(id).parameters(), near.model(alone[0].get(0)).parameters()],
                    &format!("{table}, {group}, {training}"),
                );
                assert!((loss - alone[0].get::<_, f64>(1)).abs() < 1e-6, "{table}, {group}, {training}");
            }
        }
    }
}

/// The epochs of each group: their numbers, losses, and losses on held out rows; and the bits of its model.
type OfGroups = Vec<(String, Vec<(i32, f64, Option<f64>)>, Vec<u32>)>;

/// Trains a model for each group, or one without a group.
fn of_groups(near: &mut Session, arguments: &str) -> OfGroups {
    let rows = near.rows(
        &format!(
            "SELECT coalesce(group_value, ''), min(model_id), array_agg(epoch ORDER BY epoch), array_agg(loss ORDER BY epoch),
                    array_agg(validation_loss ORDER BY epoch) FROM corgipile_train({arguments}) GROUP BY 1, model_id ORDER BY 1, 2"
        ),
        &[],
    );
    let of_group = |row: &postgres::Row| {
        let (epochs, losses): (Vec<i32>, Vec<f64>) = (row.get(2), row.get(3));
        let judged: Vec<Option<f64>> = row.get(4);
        let epochs = epochs.into_iter().zip(losses).zip(judged).map(|((epoch, loss), judged)| (epoch, loss, judged));
        (row.get(0), epochs.collect(), near.model(row.get(1)).bits())
    };
    rows.iter().map(of_group).collect()
}

#[test]
fn a_group_that_lies_whole_on_one_server_is_trained_there() {
    let Some(mut spread) = Spread::new(a_group_that_lies_whole_on_one_server_is_trained_there) else { return };
    spread.spread("by_group", "LIST (cat)", ["IN ('red')", "IN ('green', 'grey')", "IN ('blue')"]);
    // two of four lie on two servers
    let of_row = "(CASE cat WHEN 'red' THEN 0 WHEN 'green' THEN 1 ELSE 1 + id % 3 / 2 END)";
    spread.spread("mixed", &format!("LIST ({of_row})"), ["IN (0)", "IN (1)", "IN (2)"]);
    let near = spread.near();
    let sizes = "seed => 3, block_size => '8kB', buffer_size => '40%', standardize => false";
    let trainings = [
        "label => 'half', features => '{a,b}', batch_size => 16",
        "label => 'half', features => '{a,b}', batch_size => 1, optimizer => 'momentum'",
        "label => 'half', features => '{k,kv}', batch_size => 16, optimizer => 'adam', l1 => 0.001",
        "label => 'half', features => '{k,kv}', batch_size => 1, l1 => 0.001",
        "label => 'class', features => '{a,b}', model => 'softmax', batch_size => 7, options => '{\"keep\": \"best\"}'",
        "label => 'half', features => '{a,b}', model => 'svm', batch_size => 8, options => '{\"averaging\": true}'",
        "label => 'y', features => '{a,b}', model => 'linear', batch_size => 50",
        "label => 'half', features => '{v}', batch_size => 16, schedule => 'theorem1', options => '{\"mu\": 0.1, \"a\": 100}'",
        "label => 'class', features => '{a,b}', model => 'mlp', hidden_layer_sizes => '{5}', batch_size => 8",
        "label => 'half', features => '{k,kv}', model => 'mlp', hidden_layer_sizes => '{5}', batch_size => 8",
        "label => 'half', features => '{a,b}', batch_size => 16, patience => 1, max_epochs => 12, learning_rate => 2",
        "label => 'half', features => '{a,b}', solver => 'newton', l2 => 0.01",
    ];
    for (i, (training, holds_out)) in trainings.iter().flat_map(|of| [(of, false), (of, true)]).enumerate() {
        let rate = match training {
            _ if training.contains("newton") || training.contains("theorem1") || training.contains("rate") => "",
            _ => ", learning_rate => 0.02",
        };
        let epochs = if training.contains("max_epochs") { "" } else { ", max_epochs => 3" };
        let training = format!("{training}, {sizes}{rate}{epochs}");
        let training = if holds_out { with_held(&training) } else { training };
        // in a sample, each training with one table, and with held-out rows with the other one
        let tables = ["by_group", "mixed"];
        for table in tables.into_iter().skip(sample(0, (i + i / 2) % 2)).step_by(sample(1, 2)) {
            let together =
                of_groups(near, &format!("'{table}', {training}, group_by => 'cat', servers => 'east,north,south'"));
            assert_eq!(together.iter().map(|of| of.0.as_str()).collect::<Vec<_>>(), ["blue", "green", "grey", "red"]);
            for (group, epochs, bits) in together {
                let (part, servers) = match (table, group.as_str()) {
                    (_, "red") => ("_east", "east"),
                    (_, "green") | ("by_group", "grey") => ("_north", "north"),
                    ("by_group", _) => ("_south", "south"),
                    _ => ("", "east,north,south"),
                };
                let source = format!("SELECT * FROM {table}{part} WHERE cat = ''{group}''");
                // without groups, every step is asked for
                let alone = of_groups(near, &format!("'{source}', {training}, servers => '{servers}'"));
                let what = format!("{table}, {group}, {training}");
                assert_eq!((alone.len(), &alone[0].1), (1, &epochs), "{what}");
                assert_eq!(alone[0].2, bits, "{what}");
            }
        }
    }
    // and goes on from what came of it
    let training = format!(
        "label => 'half', features => '{{k,kv}}', batch_size => 16, optimizer => 'adam', learning_rate => 0.02, {sizes}"
    );
    let train = |epochs: u32, name: &str| {
        format!(
            "'by_group', {training}, group_by => 'cat', max_epochs => {epochs}, name => '{name}', servers => 'auto'"
        )
    };
    let whole = of_groups(near, &train(4, "whole"));
    of_groups(near, &train(2, "half"));
    for (group, epochs, bits) in whole {
        let goes_on = format!("'by_group', warm_start => 'half/{group}', max_epochs => 2, servers => 'auto'");
        let then = of_groups(near, &goes_on);
        assert_eq!((&then[0].0, &then[0].1[..]), (&group, &epochs[2..]));
        assert_eq!(then[0].2, bits, "{group}");
    }
    // one request for a buffer, however many steps there are
    let requests = |near: &mut Session, table: &str, batch_size: u32| {
        let plan = near.lines(&format!(
            "EXPLAIN ANALYZE SELECT * FROM corgipile_train('{table}', label => 'half', features => '{{a,b}}', learning_rate => 0.02,
                 max_epochs => 2, {sizes}, batch_size => {batch_size}, group_by => 'cat', servers => 'auto')"
        ));
        let line = plan.iter().find_map(|line| line.trim().strip_prefix("Node Requests: ").map(str::to_owned));
        line.expect("requests are shown").parse::<u32>().expect("a number")
    };
    let few = requests(near, "by_group", 64);
    assert_eq!(requests(near, "by_group", 2), few);
    assert!(few < 30, "{few}");
    assert!(requests(near, "mixed", 2) > 300);
    // points side by side with groups, of which one diverges, and a group that is held out
    let [_, _, mut south] = spread.sessions();
    south.run("UPDATE by_group SET held = true WHERE cat = 'blue'");
    let call = format!(
        "SELECT string_agg(DISTINCT group_value || ' ' || (grid_point->>'batch_size'), ',' ORDER BY group_value || ' ' || (grid_point->>'batch_size'))
         FROM corgipile_train('by_group', 'linear', label => 'y', features => '{{a,b}}', {sizes}, max_epochs => 2, group_by => 'cat', servers => 'auto',
             options => '{{\"validation_column\": \"held\"}}', grid => '[{{\"batch_size\": 1, \"learning_rate\": 1e30}}, {{\"batch_size\": 1, \"learning_rate\": 0.001}}, {{\"batch_size\": 8, \"learning_rate\": 0.001}}]')"
    );
    let told = spread.nodes.near.notices(&[&call]);
    assert_eq!(told.matches("diverged").count(), 3, "{told}");
    assert_eq!(spread.near().line(&call), "green 1,green 8,grey 1,grey 8,red 1,red 8");
}

#[test]
fn values_that_are_equal_are_one_group_whatever_each_server_calls_it() {
    let Some(mut spread) = Spread::new(values_that_are_equal_are_one_group_whatever_each_server_calls_it) else {
        return;
    };
    for (mut session, group) in spread.sessions().into_iter().zip(["1.0", "1.00", "2"]) {
        session.run(&format!(
            "CREATE TABLE named AS SELECT CASE WHEN i % 4 = 0 THEN 3 ELSE {group} END::numeric AS site, i % 2 AS half, normal(i, 1)::real AS a
             FROM generate_series(1, 200) i"
        ));
    }
    let near = spread.near();
    for server in ["east", "north", "south"] {
        near.run(&format!("CREATE FOREIGN TABLE named_{server} (site numeric, half int, a real) SERVER {server} OPTIONS (table_name 'named')"));
    }
    near.run("CREATE VIEW named AS SELECT * FROM named_east UNION ALL SELECT * FROM named_north UNION ALL SELECT * FROM named_south");
    let first = near.train(
        "'named_east', label => 'half', features => '{a}', learning_rate => 0.1, max_epochs => 1, batch_size => 8",
    )[0]
    .model_id;
    for begin in [
        "label => 'half', features => '{a}', learning_rate => 0.1, batch_size => 8".to_owned(),
        format!("warm_start => '{first}'"),
    ] {
        let found = near.lines(&format!(
            "SELECT round(group_value::numeric), tuples FROM corgipile_train('named', {begin}, max_epochs => 1, group_by => 'site', servers => 'auto') ORDER BY 1"
        ));
        assert_eq!(found, ["1|300", "2|150", "3|150"], "{begin}");
    }
}
