//! The views of coefficients and histories show the versions that names mean, and those of all versions the others too.

use corgipile_tests::Database;

/// Versions of `m` that a view shows.
fn shown(db: &mut Database, view: &str) -> String {
    db.line(&format!(
        "SELECT coalesce(string_agg(DISTINCT version::text, ',' ORDER BY version::text), 'none') FROM corgipile.{view} WHERE name = 'm'"
    ))
}

#[test]
fn views_show_the_latest_version_or_the_deployed_one() {
    let mut db = Database::with_small_table(100);
    for _ in 0..3 {
        db.run("SELECT corgipile_train('t', max_epochs => 2, name => 'm')");
    }
    let views = ["current_models", "coefficients", "training_history"];
    for (change, expected) in [
        ("SELECT 1", "3"),
        ("SELECT corgipile_deploy('m', 1)", "1"),
        ("SELECT corgipile_deploy('m', 2)", "2"),
        ("SELECT corgipile_drop('m', 2)", "3"),
        ("SELECT corgipile_drop('m', 3)", "1"),
    ] {
        db.run(change);
        for view in views {
            assert_eq!(shown(&mut db, view), expected, "{change}: {view}");
        }
        // what a name means is what is predicted with
        let meant = "SELECT corgipile_export('m')->'weights' = (SELECT corgipile_export(model_id)->'weights'
                       FROM corgipile.current_models WHERE name = 'm')";
        assert_eq!(db.line(meant), "t", "{change}");
    }
}

#[test]
fn all_versions_are_in_views_of_their_own_and_unnamed_models_in_both() {
    let mut db = Database::with_small_table(100);
    for _ in 0..2 {
        db.run("SELECT corgipile_train('t', max_epochs => 2, name => 'm'), corgipile_train('t', max_epochs => 2)");
    }
    for view in ["all_coefficients", "all_training_history"] {
        assert_eq!(shown(&mut db, view), "1,2", "{view}");
    }
    let models =
        |view: &str| format!("SELECT count(DISTINCT model_id), count(*) FROM corgipile.{view} WHERE name IS NULL");
    for view in ["coefficients", "training_history"] {
        assert_eq!(db.line(&models(view)), db.line(&models(&format!("all_{view}"))), "{view}");
    }
    // in the order of the features
    assert_eq!(db.lines("SELECT feature FROM corgipile.coefficients WHERE name = 'm'"), ["(intercept)", "a", "b", "c"]);
    assert_eq!(
        db.lines("SELECT DISTINCT feature_number FROM corgipile.all_coefficients ORDER BY 1"),
        ["0", "1", "2", "3"]
    );
}

#[test]
fn a_name_means_a_version_for_each_owner_and_others_are_not_seen() {
    let mut db = Database::with_small_table(100);
    let (ann, bob) = (db.role("ann"), db.role("bob"));
    db.run("GRANT SELECT ON t TO PUBLIC");
    for role in [&ann, &bob] {
        let mut session = db.session_as(role);
        session.run("SELECT corgipile_train('t', max_epochs => 1, name => 'm')");
        session.run("SELECT corgipile_train('t', max_epochs => 1, name => 'm')");
    }
    let versions = "SELECT string_agg(version::text, ',') FROM corgipile.current_models";
    assert_eq!(db.line(versions), "2,2");
    let mut as_ann = db.session_as(&ann);
    assert_eq!(as_ann.line(versions), "2");
    // of a version that is granted alone the others do not know that there is a later one
    let first: i64 = as_ann.value("SELECT min(model_id) FROM corgipile.models");
    as_ann.run(&format!("SELECT corgipile_grant({first}, 'public')"));
    let mut as_bob = db.session_as(&bob);
    assert_eq!(
        as_bob.line("SELECT string_agg(version::text, ',' ORDER BY version) FROM corgipile.current_models"),
        "1,2"
    );
}

#[test]
fn grid_points_groups_and_sources_are_in_the_history() {
    let mut db = Database::with_small_table(100);
    db.run(
        r#"SELECT corgipile_train('SELECT *, id % 2 AS part FROM t', group_by => 'part', features => '{a,b,c}', max_epochs => 1,
                                  name => 'm', grid => '{"l2": [0, 0.5]}')"#,
    );
    assert_eq!(
        db.lines("SELECT name, group_value, grid_point->'l2' FROM corgipile.training_history ORDER BY name"),
        ["m/0/1|0|0", "m/0/2|0|0.5", "m/1/1|1|0", "m/1/2|1|0.5"]
    );
    let folds = "SELECT count(*) FROM generate_series(0, 2) AS fold,
        LATERAL corgipile_train(format('SELECT label, a, b, id %% 3 = %s AS held_out FROM t', fold), max_epochs => 1,
                                options => '{\"validation_column\": \"held_out\"}')";
    db.run(folds);
    let told =
        "SELECT count(DISTINCT source), count(validation_loss) FROM corgipile.training_history WHERE name IS NULL";
    assert_eq!(db.line(told), "3|3");
}
