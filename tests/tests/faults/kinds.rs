//! The kinds of statements that there are, to be run again and again, and who looks whether they hang.

use corgipile_tests::Cluster;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

/// Seconds: longer than any statement of these takes on a loaded machine.
const PATIENCE: u64 = 60;

/// What is there to be used by the statements.
pub const SETUP: &str = "
    SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, name => 'kept');
    SELECT count(*) FROM corgipile_train('t', 'softmax', 'word', '{x}', max_epochs => 2, seed => 1, name => 'words');
    SELECT count(*) FROM corgipile_train('t', features => '{k,v}', max_epochs => 2, seed => 1, name => 'sparse');
    CREATE TABLE exported AS SELECT corgipile_export('kept') AS model;
    SELECT * FROM corgipile_compress('t', 'c', features => '{x}', batch_rows => 250, seed => 1);
    CREATE TABLE matrices AS SELECT x AS m FROM c LIMIT 4";

/// The kinds of statements: a name, and SQL that may be run again and again.
pub const KINDS: &[(&str, &str)] = &[
    ("core: aggregate", "SELECT count(*), sum(amount) FROM t GROUP BY colour"),
    ("core: sort", "SELECT count(*) FROM (SELECT id FROM t ORDER BY amount OFFSET 0) s"),
    ("train logistic", "SELECT max(epoch) FROM corgipile_train('t', features => '{x}', max_epochs => 3, seed => 1)"),
    (
        "train in a subquery",
        "SELECT max(epoch) FROM corgipile_train('SELECT label, x FROM t WHERE id % 3 > 0', features => '{x}', max_epochs => 2, seed => 1)",
    ),
    (
        "train svm sparse",
        "SELECT max(epoch) FROM corgipile_train('t', 'svm', features => '{k,v}', max_epochs => 2, seed => 1, options => '{\"l1\": 0.001}')",
    ),
    (
        "train softmax words",
        "SELECT max(epoch) FROM corgipile_train('t', 'softmax', 'word', '{x}', max_epochs => 2, seed => 1, options => '{\"class_weight\": \"balanced\"}')",
    ),
    (
        "train linear categories",
        "SELECT max(epoch) FROM corgipile_train('t', 'linear', 'amount', '{colour,class}', max_epochs => 2, seed => 1, options => '{\"standardize\": true}')",
    ),
    (
        "train mlp",
        "SELECT max(epoch) FROM corgipile_train('t', 'mlp', 'class', '{x}', max_epochs => 2, seed => 1, options => '{\"hidden_layer_sizes\": [16, 8], \"optimizer\": \"adam\"}')",
    ),
    (
        "train wide, file cache",
        "SET corgipile.cache_memory = '64kB'; SELECT max(epoch) FROM corgipile_train('wide', features => '{x}', max_epochs => 3, seed => 1, learning_rate => 1e-4, options => '{\"cache\": \"on\"}', buffer_size => '50%'); RESET corgipile.cache_memory",
    ),
    (
        "train validation",
        "SELECT max(epoch) FROM corgipile_train('t', features => '{x}', max_epochs => 3, seed => 1, options => '{\"validation_fraction\": 0.2, \"tolerance\": 0.001, \"patience\": 1}')",
    ),
    (
        "train groups",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, group_by => 'colour')",
    ),
    (
        "train grid",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, grid => '{\"learning_rate\": [0.1, 0.01]}')",
    ),
    (
        "train warm start",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, warm_start => 'kept')",
    ),
    (
        "train theorem1",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, options => '{\"schedule\": \"theorem1\", \"l2\": 0.01, \"batch_size\": 32}')",
    ),
    ("train compressed", "SELECT count(*) FROM corgipile_train('c', max_epochs => 2, seed => 1)"),
    (
        "train partitions",
        "SELECT count(*) FROM corgipile_train('parts', features => '{x}', max_epochs => 2, seed => 1, sample => 0.5, block_size => '8kB')",
    ),
    (
        "train shuffle_once",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, shuffle => 'shuffle_once')",
    ),
    (
        "train mrs",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, shuffle => 'mrs', buffer_size => '10%')",
    ),
    (
        "train loader",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, prefetch => 'on', buffer_size => '20%')",
    ),
    (
        "train workers",
        "SELECT count(*) FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1, workers => 2, buffer_size => '20%')",
    ),
    (
        "explain analyze",
        "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 2, seed => 1)",
    ),
    ("train uda", "SELECT count(*) FROM corgipile_train_uda('t', features => '{x}', max_epochs => 2, seed => 1)"),
    (
        "aggregate",
        "SELECT corgipile_sgd_weights(corgipile_sgd_agg((SELECT corgipile_sgd_init('logistic', 3)), 2 * label - 1, x)) IS NOT NULL FROM t",
    ),
    ("shuffle", "SELECT count(*) FROM corgipile_shuffle(NULL::t, seed => 1, buffer_size => '50%')"),
    ("shuffle sorted", "SELECT count(*) FROM corgipile_shuffle(NULL::t, seed => 1, shuffle => 'epoch_shuffle')"),
    (
        "shuffle order",
        "SELECT count(*) FROM corgipile_shuffle_order('corgipile', tuples => 50000, tuples_per_block => 20, buffer_tuples => 2000, seed => 1)",
    ),
    (
        "compress",
        // rolled back, since PostgreSQL itself cannot be without memory once a commit that drops something is written:
        // CREATE TABLE and DROP TABLE under this test are a PANIC without corgipile
        "BEGIN; SELECT count(*) FROM corgipile_compress('t', 'c2', features => '{x}', batch_rows => 250, seed => 1); ROLLBACK",
    ),
    (
        "compression report",
        "SELECT count(*) FROM corgipile_compression_report('t', features => '{x}', batch_rows => 250)",
    ),
    (
        "matrix",
        "SELECT count(corgipile_toc_decompress(m)), max(length(m::text)), max(length((2 * m)::text)), count(m * ARRAY[1,2,3]::float8[]) FROM matrices",
    ),
    ("predict", "SELECT sum(corgipile_predict('kept', x)) FROM t"),
    (
        "predict label",
        "SELECT count(corgipile_predict_label('words', x)), count(corgipile_predict_proba('words', x)) FROM t",
    ),
    ("predict sparse", "SELECT sum(corgipile_predict('sparse', k, v)) FROM t"),
    ("predict by value", "SELECT sum(corgipile_predict(e.model, x)) FROM t, exported e"),
    ("evaluate", "SELECT count(*) FROM corgipile_evaluate('kept', 't')"),
    ("evaluate words", "SELECT count(*) FROM corgipile_evaluate('words', 't')"),
    (
        "import, rename, drop",
        "BEGIN; SELECT corgipile_import(model, 'again') IS NOT NULL FROM exported; SELECT corgipile_rename('again', 'other'); SELECT corgipile_drop('other'); ROLLBACK",
    ),
    ("export", "SELECT length(corgipile_export('words')::text) > 0"),
    ("export onnx", "SELECT length(corgipile_export_onnx('words')) > 0"),
    ("cluster factor", "SELECT corgipile_cluster_factor('t', features => '{x}')"),
    ("io profile", "SELECT count(*) FROM corgipile_io_profile('t')"),
    (
        "views",
        "SELECT (SELECT count(*) FROM corgipile.models) + (SELECT count(*) FROM corgipile.coefficients) + (SELECT count(*) FROM corgipile.training_history) + (SELECT count(*) FROM corgipile.stat_progress_train)",
    ),
];

/// Ends a server that hangs, so that the test fails and does not hang with it.
pub struct Watch {
    steps: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Watch {
    /// Of this server.
    pub fn over(cluster: &Cluster) -> Watch {
        let (steps, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watch = Watch { steps: Arc::clone(&steps), over: Arc::clone(&over) };
        let pid = cluster.pid().to_string();
        thread::spawn(move || {
            let (mut seen, mut quiet) = (0, 0);
            while !over.load(Ordering::Relaxed) {
                sleep(Duration::from_secs(1));
                let now = steps.load(Ordering::Relaxed);
                quiet = if now == seen { quiet + 1 } else { 0 };
                seen = now;
                if quiet == PATIENCE {
                    let _ = std::process::Command::new("kill").args(["-QUIT", &pid]).status();
                }
            }
        });
        watch
    }

    /// The test goes on.
    pub fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
