//! What is stopped at random moments.

/// What is stopped: statements, how many models they store, and do they start workers?
pub struct Statement {
    pub sql: &'static str,
    pub models: i64,
    pub workers: bool,
}

const fn statement(models: i64, sql: &'static str) -> Statement {
    Statement { sql, models, workers: false }
}

const fn with_workers(models: i64, sql: &'static str) -> Statement {
    Statement { sql, models, workers: true }
}

/// Trainings of all kinds, predictions, and writing of models.
pub const STATEMENTS: &[Statement] = &[
    statement(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 40)"),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 15, options => '{\"cache\": \"off\"}')",
    ),
    statement(1, "SELECT corgipile_train('t', 'svm', label => 'word', features => '{amount, colour}', max_epochs => 6)"),
    statement(
        1,
        "SET LOCAL corgipile.cache_memory = '64kB';
         SELECT * FROM corgipile_train('t', features => '{k,v}', max_epochs => 6,
                                       options => '{\"cache\": \"on\", \"standardize\": true}')",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('SELECT t.label, u.x FROM t JOIN t u USING (id)', max_epochs => 8,
                                       options => '{\"batch_size\": 32, \"optimizer\": \"adam\"}')",
    ),
    statement(
        2,
        "SELECT corgipile_train('t', features => '{x}', max_epochs => 4, shuffle => 'shuffle_once');
         SELECT corgipile_train('t', features => '{x}', max_epochs => 3, shuffle => 'epoch_shuffle')",
    ),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 4, shuffle => 'mrs');
         SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 4, shuffle => 'sliding_window')",
    ),
    statement(1, "SELECT * FROM corgipile_train('wide', 'softmax', features => '{x}', max_epochs => 8)"),
    statement(1, "SELECT * FROM corgipile_train_uda('t', features => '{x}', max_epochs => 4)"),
    statement(
        1,
        "DROP TABLE IF EXISTS pg_temp.packed;
         SELECT corgipile_compress('t', 'pg_temp.packed', features => '{x}', batch_rows => 20);
         SELECT * FROM corgipile_train('pg_temp.packed', max_epochs => 20);
         SELECT * FROM corgipile_compression_report('t', features => '{x}')",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', 'mlp', features => '{x}', max_epochs => 3,
                                       options => '{\"hidden_layer_sizes\": [20, 10]}')",
    ),
    statement(0, "SELECT * FROM corgipile_evaluate('kept', 't'); SELECT * FROM corgipile_cluster_factor('t')"),
    statement(0, "SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t) s, generate_series(1, 5)"),
    statement(0, "SELECT sum(corgipile_predict('kept', x)) FROM t, generate_series(1, 4)"),
    statement(0, "SELECT sum(corgipile_predict('rows', t)) FROM t, generate_series(1, 2)"),
    statement(
        12,
        "DO $$ BEGIN
             FOR i IN 1..12 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'written ' || i);
             END LOOP;
         END $$",
    ),
    statement(
        0,
        "DO $$ BEGIN
             FOR i IN 1..12 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide LIMIT 50', max_epochs => 1, name => 'gone');
                 PERFORM corgipile_predict('gone', x) FROM wide WHERE id = i;
                 DELETE FROM corgipile.stored_models WHERE name = 'gone';
             END LOOP;
         END $$",
    ),
    statement(
        3,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10,
                                       grid => '{\"learning_rate\": [0.1, 0.01, 0.001]}')",
    ),
    statement(3, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10, group_by => 'class')"),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 15, warm_start => 'kept');
         SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 15, buffer_size => '30%',
                                       options => '{\"validation_fraction\": 0.2, \"patience\": 20}')",
    ),
    statement(
        3,
        "DO $$ BEGIN
             FOR i IN 1..3 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'versions');
             END LOOP;
             FOR i IN 1..20 LOOP
                 PERFORM corgipile_deploy('versions', 1 + i % 3);
                 PERFORM corgipile_comment('versions', repeat('x', i * 100));
                 PERFORM corgipile_grant('versions', 'public');
                 PERFORM corgipile_rename('versions', 'other');
                 PERFORM corgipile_predict('other', x) FROM wide WHERE id = i;
                 PERFORM corgipile_rename('other', 'versions');
                 PERFORM corgipile_revoke('versions', 'public');
             END LOOP;
             FOR i IN 1..3 LOOP
                 PERFORM corgipile_train('SELECT label, x FROM wide', max_epochs => 1, name => 'gone');
             END LOOP;
             PERFORM corgipile_drop('gone', 2);
             PERFORM corgipile_drop('gone');
         END $$",
    ),
    statement(
        1,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 40, sample => 0.3, block_size => '8kB',
                                       options => '{\"cache\": \"off\"}')",
    ),
    statement(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 10, shuffle => 'epoch_shuffle',
                                       options => '{\"validation_fraction\": 0.3}');
         SELECT * FROM corgipile_train('SELECT label, x, id % 4 = 0 AS test FROM t', features => '{x}', max_epochs => 10,
                                       options => '{\"validation_column\": \"test\", \"keep\": \"best\"}')",
    ),
    statement(
        12,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 4, name => 'groups', group_by => 'colour',
                                       grid => '{\"l2\": [0, 0.1]}');
         SELECT * FROM corgipile_train('t', warm_start => 'kept', max_epochs => 4, group_by => 'colour',
                                       grid => '{\"l2\": [0, 0.1]}')",
    ),
    statement(
        10,
        "DO $$ BEGIN
             FOR i IN 1..10 LOOP
                 PERFORM corgipile_import(corgipile_export(CASE i % 2 WHEN 0 THEN 'kept' ELSE 'rows' END), 'copy ' || i);
             END LOOP;
         END $$",
    ),
    statement(
        0,
        "SELECT sum(corgipile_predict(m, x)) FROM t, (SELECT corgipile_export('kept') AS m OFFSET 0) e, generate_series(1, 3)",
    ),
    statement(
        0,
        "DO $$ BEGIN
             FOR i IN 1..30 LOOP
                 UPDATE corgipile.stored_models SET intercepts = ARRAY[i] WHERE name IN ('kept', 'rows');
                 PERFORM sum(corgipile_predict('kept', x)) FROM t WHERE id % 50 = i;
             END LOOP;
             RAISE 'undone' USING ERRCODE = 'P0001';
         EXCEPTION WHEN SQLSTATE 'P0001' THEN NULL;
         END $$",
    ),
    with_workers(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 30, prefetch => 'on')"),
    with_workers(
        3,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 8, prefetch => 'on',
                                       grid => '{\"learning_rate\": [0.1, 0.01, 0.001]}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('t', features => '{k,v}', max_epochs => 12, prefetch => 'on',
                                       options => '{\"cache\": \"off\", \"batch_size\": 16}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('SELECT t.label, u.x FROM t JOIN t u USING (id)', max_epochs => 12,
                                       prefetch => 'on', shuffle => 'epoch_shuffle')",
    ),
    with_workers(1, "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 30, workers => 2)"),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('t', 'softmax', label => 'class', features => '{colour, amount}', max_epochs => 3,
                                       workers => 3, options => '{\"batch_size\": 64}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 20, workers => 2, sample => 0.5,
                                       block_size => '8kB', buffer_size => '30%')",
    ),
    with_workers(
        2,
        "SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 8, prefetch => 'on', name => 'half',
                                       options => '{\"validation_fraction\": 0.2, \"optimizer\": \"adam\"}');
         SELECT * FROM corgipile_train('t', warm_start => 'half', max_epochs => 8, prefetch => 'on')",
    ),
    statement(
        1,
        "SELECT count(*), sum(id) FROM corgipile_shuffle(NULL::t, shared_scan => true, block_size => '8kB') s, generate_series(1, 3);
         SELECT * FROM corgipile_train('t', features => '{x}', max_epochs => 20, shared_scan => true, block_size => '8kB',
                                       buffer_size => '10%', options => '{\"cache\": \"off\"}')",
    ),
    with_workers(
        1,
        "SELECT * FROM corgipile_train('parts', features => '{x}', max_epochs => 12, shared_scan => true, workers => 2,
                                       block_size => '8kB', buffer_size => '30%')",
    ),
    with_workers(
        0,
        "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
         SELECT sum(corgipile_predict('kept', t.x)) FROM t, generate_series(1, 8)",
    ),
];
