//! Three private servers are as one: rows that differ from server to server, what the transaction sees, sessions, and
//! what is reported of the model.

use super::nodes::Spread;

/// The labels are mixed alike on all servers, and a feature says the opposite of them on one of the servers.
#[test]
fn rows_that_differ_from_server_to_server_give_a_model_of_all_of_them() {
    let Some(mut spread) = Spread::new(rows_that_differ_from_server_to_server_give_a_model_of_all_of_them) else {
        return;
    };
    let near = spread.near();
    near.run("UPDATE base SET b = CASE WHEN id % 3 = 0 THEN a ELSE -a END, class = id % 3");
    spread.spread("by_site", "LIST (class)", ["IN (0)", "IN (1)", "IN (2)"]);
    let near = spread.near();
    for (features, least) in [("{b}", 0.53), ("{b,cat}", 0.53), ("{a,b}", 0.64)] {
        let training = format!("label => 'half', features => '{features}', seed => 1, max_epochs => 10");
        let here = near.train(&format!("'base', {training}"));
        let there = near.train(&format!("'by_site', {training}, servers => 'east,north,south'"));
        let [here, there] = [here, there].map(|epochs| {
            let evaluated = near.evaluate(epochs[0].model_id, "base");
            (epochs[9].loss, evaluated.loss, evaluated.accuracy)
        });
        assert!(here.2 > least && there.2 > here.2 - 0.02, "{features}: {there:?}, on one server {here:?}");
        assert!((there.0 - there.1).abs() < 0.02, "{features}: what the epochs say is what the model is: {there:?}");
    }
}

#[test]
fn a_model_that_is_worse_than_a_constant_is_told_of_on_nodes_too() {
    let Some(mut spread) = Spread::new(a_model_that_is_worse_than_a_constant_is_told_of_on_nodes_too) else { return };
    spread.by_hash();
    for (features, is_bad) in [("{a,b}", false), ("{c}", true)] {
        let told = |table: &str, nodes: &str| {
            spread.nodes.near.notices(&[&format!(
                "SELECT FROM corgipile_train('SELECT * FROM {table} WHERE c IS NOT NULL', label => 'half', features => '{features}', seed => 1,
                     standardize => false, learning_rate => 0.01, batch_size => 1000, max_epochs => 3{nodes})"
            )])
        };
        let (there, here) = (told("t", ", servers => 'auto'"), told("base", ""));
        let worse = "is worse than a constant baseline";
        assert_eq!((there.contains(worse), here.contains(worse)), (is_bad, is_bad), "{there}\n{here}");
    }
}

#[test]
fn no_other_session_waits_for_the_end_of_a_training() {
    let Some(mut spread) = Spread::new(no_other_session_waits_for_the_end_of_a_training) else { return };
    spread.by_hash();
    // a session of postgres_fdw would be one that is idle, and be ended
    for mut session in spread.sessions() {
        session.run("ALTER DATABASE postgres SET idle_in_transaction_session_timeout = '500ms'; CREATE ROLE one LOGIN CONNECTION LIMIT 1; GRANT SELECT ON t TO one;
             GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO one");
    }
    let near = spread.near();
    for server in ["east", "north", "south"] {
        near.run(&format!("ALTER USER MAPPING FOR CURRENT_USER SERVER {server} OPTIONS (SET user 'one')"));
    }
    let call = "'t', 'logistic', label => 'half', features => '{a,b}', batch_size => 4, max_epochs => 30, seed => 1, learning_rate => 0.01, servers => 'auto'";
    assert_eq!(near.train(call).len(), 30);
    // what is fetched here after all is read in one session
    near.run("DROP EXTENSION dblink CASCADE");
    assert_eq!(near.train(call).len(), 30);
}

#[test]
fn a_transaction_that_sees_rows_as_they_were_does_not_train_on_later_ones() {
    let Some(mut spread) = Spread::new(a_transaction_that_sees_rows_as_they_were_does_not_train_on_later_ones) else {
        return;
    };
    spread.by_hash();
    let [_, mut north, _] = spread.sessions();
    let call = |nodes: &str| {
        format!(
            "SELECT max(tuples) FROM corgipile_train('t', label => 'half', features => '{{a,b}}', batch_size => 100, max_epochs => 2, servers => '{nodes}')"
        )
    };
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        spread.near().run(&format!("BEGIN ISOLATION LEVEL {level}"));
        assert_eq!(spread.near().line("SELECT count(*) FROM t"), "1200");
        north.run("INSERT INTO t SELECT * FROM t LIMIT 50");
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        let told = spread.nodes.near.notices(&[&begin, "SELECT count(*) FROM t", &call("auto"), "COMMIT"]);
        let why = "the transaction sees rows as of its first statement, which sessions on other servers would not";
        assert!(told.contains(why), "{told}");
        assert_eq!(spread.near().line(&call("auto")), "1200");
        spread.near().run(&format!("ROLLBACK; {begin}; SELECT count(*) FROM t"));
        let failure = spread.near().fails_with(&call("east,north,south"), "0A000");
        assert!(failure.message.contains(why), "{failure:#?}");
        spread.near().run("ROLLBACK");
        north.run("DELETE FROM t WHERE ctid IN (SELECT max(ctid) FROM t GROUP BY id HAVING count(*) > 1)");
    }
    // a statement of its own sees what is there
    spread.near().run("SET default_transaction_isolation = 'repeatable read'");
    assert_eq!(spread.near().line(&call("east,north,south")), "1200");
}
