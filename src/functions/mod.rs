//! The SQL functions, one file per family. They are declared in sql/.

mod advise;
mod aggregate;
mod calibrate;
mod cluster_factor;
mod coefficients;
mod columns;
mod compress;
mod curves;
mod drift;
mod estimates;
mod evaluate;
mod explain;
mod export;
mod importance;
mod io_profile;
mod management;
mod metrics;
mod model_functions;
mod nodes;
mod options;
mod predict;
mod progress;
mod reading_groups;
mod search;
mod shuffle;
mod shuffle_order;
mod stat_models;
mod stored_roles;
mod toc;
mod toc_elements;
mod train;
mod train_uda;

use ::train::{NodeScan, SearchScan, Sgd};
use pg::call::function::Call;
use pg::executor::custom_scan::CustomScan;
use pg::executor::{FunctionNode, support};
use pg::process::session::Releases;
use pgrx::prelude::*;
use scan::shuffle_scan::ShuffleScan;

/// The planner support function of functions that are nodes, and of those that are given rows.
#[pg_extern(sql = false)]
fn corgipile_support(request: Call<'_>) -> i64 {
    support::answer(request)
}

/// When a session lets go of what functions keep for the next statement.
pub const RELEASES: Releases = Releases {
    of_transaction: || {
        model::end_transaction();
        explain::forget_means();
        predict::forget_groups();
    },
    of_session: model::forget_all,
};

/// The functions that are nodes when they stand in FROM.
pub static NODES: [FunctionNode; 4] = [
    FunctionNode {
        symbol: c"corgipile_train_wrapper",
        address: train::corgipile_train_wrapper,
        methods: Sgd::methods,
        expected: estimates::of_train,
    },
    FunctionNode {
        symbol: c"corgipile_search_wrapper",
        address: search::corgipile_search_wrapper,
        methods: SearchScan::methods,
        expected: estimates::of_search,
    },
    FunctionNode {
        symbol: c"corgipile_shuffle_wrapper",
        address: shuffle::corgipile_shuffle_wrapper,
        methods: ShuffleScan::methods,
        expected: estimates::of_shuffle,
    },
    FunctionNode {
        symbol: c"corgipile_node_training_wrapper",
        address: nodes::corgipile_node_training_wrapper,
        methods: NodeScan::methods,
        expected: estimates::of_node,
    },
];

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
mod tests {
    use pg::testing::{allocated, one, run};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_training_and_predicting_over_and_over_keep_no_memory() {
        run(
            "CREATE TABLE often AS SELECT i % 2 AS label, ARRAY[i % 7, 1]::real[] AS x FROM generate_series(1, 2000) i",
        );
        run("CREATE TABLE often_sparse AS SELECT i % 2 AS label, i % 3 AS class, ARRAY[i % 7 + 1] AS k, ARRAY[i % 5] AS v, 'c' || i % 4 AS c
             FROM generate_series(1, 2000) i");
        let work = || {
            run("SELECT * FROM corgipile_train('often', max_epochs => 2, name => 'kept_m')");
            run("SELECT sum(corgipile_predict('kept_m', x)) FROM often");
            run("SELECT count(*) FROM corgipile_shuffle(NULL::often)");
            run(
                "SELECT * FROM corgipile_train('often_sparse', 'softmax', 'class', '{k,v}', max_epochs => 2, shuffle => 'mrs', name => 'kept_s')",
            );
            run("SELECT sum(corgipile_predict('kept_s', k, v)) FROM often_sparse");
            run("SELECT * FROM corgipile_train('often_sparse', 'linear', 'class', '{c,label}', max_epochs => 2, shuffle => 'epoch_shuffle',
                                               name => 'kept_c')");
            run("SELECT sum(corgipile_predict('kept_c', u)) FROM often_sparse AS u");
            run("SELECT * FROM corgipile_train_uda('often', max_epochs => 2)");
            run("DELETE FROM corgipile.stored_models");
        };
        (0..5).for_each(|_| work());
        let before = allocated();
        (0..40).for_each(|_| work());
        let kept = allocated().saturating_sub(before);
        // a buffer that was kept each time would be 40 times 280 kB
        assert!(kept < 2 << 20, "{kept} bytes kept");
    }

    #[pg_test]
    fn test_a_function_is_a_node_in_from_and_only_if_it_is_ours() {
        run("CREATE TABLE planned AS SELECT i % 2 AS label, ARRAY[i] AS x FROM generate_series(1, 100) i");
        run("CREATE SCHEMA others");
        run("CREATE FUNCTION others.corgipile_train(source text) RETURNS SETOF int LANGUAGE sql AS 'SELECT 1'");
        let top = |query: &str| one::<String>(&format!("EXPLAIN (COSTS OFF) {query}"));
        assert_eq!(top("SELECT * FROM corgipile_train('planned')"), "Custom Scan (CorgiPileSGD)");
        assert_eq!(top("SELECT * FROM corgipile_shuffle(NULL::planned)"), "Custom Scan (CorgiPileShuffle)");
        assert_eq!(top("SELECT corgipile_train('planned')"), "ProjectSet");
        assert!(!top("SELECT * FROM others.corgipile_train('planned')").contains("CorgiPile"));
        assert!(!top("SELECT * FROM planned").contains("CorgiPile"), "tables are read as ever");
    }
}
