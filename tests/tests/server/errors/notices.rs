//! What is reported to a user although nothing is wrong: every notice with its hint.

use super::database;

/// Statements, and what psql prints of their notices, where `...` stands for any text.
pub const CASES: &[(&[&str], &str)] = &[
    (
        &["SELECT FROM corgipile_train('SELECT label, a, b, (id % 3 = 0)::int AS flag FROM t', 'logistic', max_epochs => 1)"],
        // of the two numbers a mean square of 1 each, and of the flag 1/3
        "NOTICE:  learning rate 3.003e-1, 2 of 3 features standardized\n",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('SELECT *, label AS g FROM t', 'linear', 'a', '{b}', \
             group_by => 'g', name => 'gs1', max_epochs => 1, unseen_group => 'all'); RESET client_min_messages; \
           SELECT FROM corgipile_train('SELECT *, label AS g FROM t', 'linear', 'a', '{b}', group_by => 'g', name => 'gs1', max_epochs => 1, \
             learning_rate => 0.1)"],
        "...NOTICE:  rows of other groups are still predicted by model ..., of all rows of an earlier training\n\
         HINT:  Drop it by its id with corgipile_drop(), or train with unseen_group => 'all'.\n",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('SELECT *, label AS g FROM t', 'linear', 'a', '{b}', \
             group_by => 'g', name => 'gs2', max_epochs => 1); \
           SELECT FROM corgipile_train('SELECT *, label AS g FROM t WHERE label = 1', 'linear', 'a', '{b}', group_by => 'g', name => 'gs2', \
             max_epochs => 1, unseen_group => 'null'); RESET client_min_messages; SELECT corgipile_deploy('gs2', 2)"],
        "NOTICE:  1 of the groups have no such version, and mean what they meant before\n\
         HINT:  corgipile.models lists the versions of each, under its own name.\n",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('SELECT *, label AS g FROM t', 'linear', 'a', '{b}', \
             group_by => 'g', name => 'gs3', max_epochs => 1, unseen_group => 'null'); RESET client_min_messages; \
           SELECT FROM corgipile_evaluate('gs3', 'SELECT *, label + 1 AS g FROM t')"],
        "NOTICE:  ... rows are of groups that training has not seen, and have no prediction\n\
         HINT:  They are left out. Train with unseen_group => 'all' to predict them by a model of all rows.\n",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('SELECT *, label AS g FROM t', 'linear', 'a', '{b}', \
             group_by => 'g', name => 'gs4', max_epochs => 1); RESET client_min_messages; \
           SELECT FROM corgipile_calibrate('gs4', 'SELECT *, label AS g FROM (SELECT * FROM t WHERE label = 1 LIMIT 5) AS t')"],
        "NOTICE:  1 of 2 groups have no rows, and stay as they were\n\
         HINT:  Each group's model is calibrated with the rows of its group.\n\
         NOTICE:  1 of 2 groups have too few rows for a coverage of 0.9\n\
         HINT:  Each group's model is calibrated with the rows of its group.\n",
    ),
    (
        &["SELECT FROM corgipile_train('t', features => '{a}', max_epochs => 1, learning_rate => 0.1)"],
        "NOTICE:  model logistic: label \"label\" has two classes\n\
         HINT:  Give model to change this: 'linear', for example, predicts the label as a number.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, ARRAY[1, 2] AS k, ARRAY[1, 1] AS v FROM t', features => '{k,v}', model => 'svm',
             max_epochs => 1)"],
        "NOTICE:  learning rate 3.333e-2\n",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('t', 'linear', 'a', '{b}', max_epochs => 1, name => 'same'); \
           RESET client_min_messages; SELECT FROM corgipile_calibrate('same', 't'::text)"],
        "WARNING:  model ... \"same\" was trained on this source\n\
         HINT:  The model fits the rows that it was trained on, or that chose its epochs, better than new rows: ...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, i % 2 + i / 500.0::real AS a FROM generate_series(1, 1000) i', 'svm', \
           features => '{a}', max_epochs => 1, options => '{\"probability\": true}')"],
        "NOTICE:  0.1 of the rows are held out to fit probabilities\n\
         HINT:  Use another validation_fraction, or validation_column, to hold out other rows.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, i % 2 + i / 500.0::real AS a FROM generate_series(1, 1000) i', 'svm', \
           features => '{a}', max_epochs => 1, options => '{\"probability\": true}')"],
        "...NOTICE:  few rows are held out: probabilities are fitted to all rows by cross-fitting with five folds\n\
         HINT:  Use validation_column to fit them to held-out rows only.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, i % 2 + i / 20.0::real AS a, i <= 7 AS held FROM generate_series(1, 40) i', \
           'svm', features => '{a}', max_epochs => 1, options => '{\"probability\": true, \"validation_column\": \"held\"}')"],
        "...NOTICE:  too few rows for reliable probabilities: only 3 rows of a class are held out\n\
         HINT:  Use a larger validation_fraction, or validation_column, to hold out more rows.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, i % 2 + i / 20.0::real AS a, i <= 37 OR i % 80 = 1 AS held, i / 200 AS part \
             FROM generate_series(1, 399) i', 'svm', features => '{a}', max_epochs => 1, group_by => 'part', \
           options => '{\"probability\": true, \"validation_column\": \"held\"}')"],
        "...NOTICE:  too few rows for reliable probabilities, of 1 of 2 models: only 0 rows of a class are held out\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT (i = 3)::int AS label, i AS a FROM generate_series(1, 8) i', 'svm', \
           features => '{a}', seed => 1, max_epochs => 1, options => '{\"probability\": true}')"],
        "...NOTICE:  too few rows for reliable probabilities: a class has only 1 row\n\
         HINT:  All rows are already used: add more rows of that class.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT (i = 3)::int AS label, i AS a FROM generate_series(1, 8) i', 'svm', \
           features => '{a}', seed => 1, max_epochs => 1, options => '{\"probability\": true}')"],
        "...NOTICE:  probabilities are the shares of the classes: the model does not separate a class from the others\n\
         HINT:  Add features that are related to the label, or more rows of each class.\n...",
    ),
    (
        &["SET client_min_messages = error; \
           SELECT FROM corgipile_train('SELECT (i % 3 > 0)::int * (i % 5) AS label, (i % 3)::text AS c FROM generate_series(1, 300) i', \
             'poisson', features => '{c}', solver => 'newton', name => 'endless'); RESET client_min_messages; \
           SELECT FROM corgipile_coefficients('endless', 'SELECT (i % 3 > 0)::int * (i % 5) AS label, (i % 3)::text AS c \
             FROM generate_series(1, 300) i')"],
        "NOTICE:  perfect separation: the coefficients of ... diverge on these rows\n\
         HINT:  Their standard errors are meaningless. If all labels of a category are the same, leave the \
         category out, or train with an l2, such as 0.001.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT (i % 3 > 0)::int * (i % 5) AS label, (i % 3)::text AS c FROM generate_series(1, 300) i', \
             'poisson', features => '{c}', solver => 'newton')"],
        "...WARNING:  the model has not converged\n\
         HINT:  Train more epochs, for example with warm_start. If the loss no longer decreases, a category has only labels \
         of 0: use an l2.\n...",
    ),
    (
        &["SET client_min_messages = error; SELECT FROM corgipile_train('t', 'linear', 'a', '{b}', max_epochs => 1, name => 'few'); \
           RESET client_min_messages; SELECT FROM corgipile_calibrate('few', 'SELECT a, b FROM t LIMIT 8')"],
        "NOTICE:  8 rows are too few for coverages above 0.889\n\
         HINT:  For these coverages, intervals are infinite and sets contain all labels.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, i::text AS c FROM generate_series(1, 10001) i', 'logistic', features => '{c}', \
           max_epochs => 1)"],
        "NOTICE:  columns of more than 10000 categories are hashed into 262144 buckets: c\n\
         HINT:  Set option hash to another number of buckets, or to \"off\" for a weight per category.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, jsonb_build_object(''a'', i, ''b'', ''x'' || i) AS data \
             FROM generate_series(1, 200) i', 'logistic', features => '{data}', max_epochs => 1)"],
        "NOTICE:  keys of data in the first rows: 1 number, 0 categories; left out: b (nearly unique)\n\
         HINT:  To change this, name keys as features: data->price is a number, data->>colour a text.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, ARRAY[''odd'', ''even''] AS tags FROM generate_series(1, 100) i', 'logistic', \
           features => '{tags}', max_epochs => 1)"],
        "NOTICE:  words are hashed into 262144 buckets: tags\n\
         HINT:  Set option hash to another number of buckets.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i / 7.0::real AS label, ARRAY[(i = 5)::int * 9 + i % 2] AS x FROM generate_series(1, 1000) i', \
           'mlp_regression', max_epochs => 1)"],
        // of a feature that is 0 or 1 but once
        "...NOTICE:  values more than 5 standard deviations from the mean of their feature are clipped: 1 in 1000 rows\n\
         HINT:  Predictions do the same. Option winsorize can be another number of deviations, or \"none\".\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, ARRAY[1.7e9::float8 + i, i, 1e9] AS x FROM generate_series(1, 500) i', 'logistic', \
           max_epochs => 1)"],
        // steps of 128 and of 64
        "WARNING:  values are so far from 0 that single precision loses most of their differences: x[1]\n\
         HINT:  Subtract a number near their mean in a query or a view, as in SELECT x - 1700000000 AS x.\n\
         WARNING:  all values are the same in single precision: x[3]\n\
         HINT:  If they differ, subtract a number near their mean in a query or a view; a constant needs no feature.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT (ARRAY[''Yes'', ''no'', ''yes''])[1 + i % 3] AS label, i AS a FROM generate_series(1, 300) i', \
           max_epochs => 1)"],
        "...NOTICE:  classes 'Yes' and 'yes' of label \"label\" differ in case or blanks: lower(trim(label)) has 2 classes\n\
         HINT:  To use an expression, give a query as source, such as 'SELECT expression AS name, ... FROM t'.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, CASE WHEN i % 7 > 0 THEN 1.7e9::float8 + i END AS a, i AS b
             FROM generate_series(1, 500) i', 'logistic', features => '{a,b}', max_epochs => 1)"],
        "WARNING:  values are so far from 0 that single precision loses most of their differences: a\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 2 AS label, exp(i / 20::float8) AS a FROM generate_series(1, 1000) i', 'logistic', max_epochs => 1)"],
        "...NOTICE:  numbers that span orders of magnitude are transformed by sign(x) * ln(1 + |x|): a\n\
         HINT:  Set option transform to an array of columns, or to \"none\", to change this.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'mlp', 'a', '{b}', max_epochs => 1)"],
        "NOTICE:  the network predicts numbers: label \"a\" has many values that are not integers\n\
         HINT:  If its values are classes, cast the label to text in a query.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'logistic', features => '{c}', learning_rate => 9, standardize => false, seed => 1)"],
        "...WARNING:  the model is worse than a constant baseline: its loss is ..., that of the best constant 0...\n\
         HINT:  Use the defaults of learning_rate, standardize and shuffle, or a smaller learning_rate and more \
         epochs; or add features that are related to the label.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT CASE WHEN id % 10 = 0 THEN 2 ELSE label END AS label, a, id % 10 = 0 AS v FROM t', 'softmax', \
           max_epochs => 3, features => '{a}', seed => 1, options => '{\"validation_column\": \"v\"}')"],
        "...WARNING:  label column \"label\" is 2 in no training row\n\
         HINT:  All such rows are held out. Hold out other rows with seed or validation_column, or use a query as source that \
         leaves such rows out.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT CASE WHEN id % 10 = 0 THEN 2 ELSE label END AS label, a, id % 20 = 0 AS v, \
           CASE WHEN id % 4 = 0 THEN ''one'' ELSE ''other'' END AS site FROM t', 'softmax', group_by => 'site', \
           max_epochs => 3, features => '{a}', seed => 1, options => '{\"validation_column\": \"v\"}')"],
        "...WARNING:  label column \"label\" is 2 (group one) in no training row\n\
         HINT:  All such rows are held out. Hold out other rows with seed or validation_column, or use a query as source that \
         leaves such rows out.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT a, b, 100000 + a AS far, 100000 + a + b AS total FROM t', 'linear', 'a', '{far,b,total}', \
           solver => 'newton')"],
        "...NOTICE:  features are nearly linear combinations of others (condition number ... or more): total\n\
         HINT:  The weights of these features, and of the ones they depend on, cannot be interpreted. Leave features out, or train \
         with an l2, such as 0.001.\n",
    ),
    (
        &[
            "SET corgipile.max_buffer_memory = '64kB'",
            "SELECT FROM corgipile_train('t', 'logistic', features => '{c}', max_epochs => 1, block_size => '50MB', seed => 1, learning_rate => 0.1)",
        ],
        "...NOTICE:  blocks have 64kB instead of 50MB, which exceeds corgipile.max_buffer_memory\n\
         HINT:  Raise that setting, or use a smaller block_size.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'logistic', features => '{c}', standardize => false, seed => 1, grid => '{\"learning_rate\": [1e-4, 9]}')"],
        "...WARNING:  1 of 2 models are worse than a constant baseline\n\
         HINT:  See corgipile.training_history for the loss of each.\n",
    ),
    (
        &["SELECT FROM corgipile_search('t', 'linear', features => '{a}', standardize => false, seed => 1, \
           grid => '{\"learning_rate\": [1e-4, 1e3]}')"],
        "...WARNING:  1 of 2 points diverged: {\"learning_rate\":1000}\n\
         HINT:  They are ranked last. Use smaller learning rates.\n...",
    ),
    (
        &["SELECT FROM corgipile_search('SELECT a, 1 AS same FROM t', 'linear', label => 'same', features => '{a}', folds => 2, trials => 1, seed => 1)"],
        "...NOTICE:  R2 is not defined in 2 of 2 folds, whose labels are all the same: points are ranked by their loss\n\
         HINT:  Use fewer folds: each then has more rows.\n...",
    ),
    (
        &["SELECT FROM corgipile_search('t', features => '{a}', max_epochs => 1, folds => 11, seed => 1, trials => 1000)"],
        "...NOTICE:  10 of 11 folds are trained at a time: the models of all points on all folds are too many or too large\n\
         HINT:  The source is read again for each turn. Use fewer points or folds to train all at a time.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, buffer_size => '64kB')"],
        "...NOTICE:  the buffer holds only ... of ... blocks, too few to mix them well: the reported loss and accuracy, \
         computed during the epoch, may differ from the model's\n\
         HINT:  Use a larger buffer_size; '100%' shuffles a small table fully.\n",
    ),
    (
        &["SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, block_size => '64kB', buffer_size => '20%')"],
        "...NOTICE:  the buffer holds only ... of ... blocks, too few to mix them well: the reported loss and accuracy, \
         computed during the epoch, may differ from the model's\n\
         HINT:  Use a smaller block_size, or a larger buffer_size.\n",
    ),
    (
        &[
            "SET corgipile.max_buffer_memory = '64kB'",
            "SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, buffer_size => '100%')",
        ],
        "...NOTICE:  the buffer holds only ... of ... blocks, too few to mix them well: the reported loss and accuracy, \
         computed during the epoch, may differ from the model's\n\
         HINT:  Raise the setting corgipile.max_buffer_memory: it limits the buffer to less than buffer_size.\n",
    ),
    (
        &[
            "SET corgipile.max_buffer_memory = '64kB'",
            "SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, block_size => '16kB', buffer_size => '100%')",
        ],
        "...NOTICE:  the buffer holds only ... of ... blocks, too few to mix them well: the reported loss and accuracy, \
         computed during the epoch, may differ from the model's\n\
         HINT:  Use a smaller block_size, or raise the setting corgipile.max_buffer_memory: it limits the buffer to \
         less than buffer_size.\n",
    ),
    (
        &["SET max_parallel_workers = 0", "SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, workers => 3)"],
        "...NOTICE:  the model is trained by 1 of 3 requested processes: max_parallel_workers is 0\n\
         HINT:  The model depends on the number of workers, which corgipile.models shows.\n",
    ),
    (
        &["SET max_parallel_workers = 0", "SELECT FROM corgipile_search('t', features => '{a}', max_epochs => 1, seed => 1, workers => 3)"],
        "...NOTICE:  the search runs in 1 of 3 processes: max_parallel_workers is 0\n\
         HINT:  The result is the same with any number of workers.\n...",
    ),
    (
        &[
            "SET max_parallel_workers = 0",
            "SELECT FROM corgipile_train('large', 'logistic', max_epochs => 1, prefetch => 'on', buffer_size => '10%',
                 block_size => '8kB')",
        ],
        "...NOTICE:  buffers are not prefetched: max_parallel_workers is 0\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT a.* FROM t a JOIN t b ON a.ctid = b.ctid', 'logistic', max_epochs => 1, shared_scan => true)"],
        "...NOTICE:  the source is not read together with other sessions: the rows are in a spool\n\
         HINT:  The order is that without shared_scan. The view corgipile.stat_shared_scans shows who shares what.\n...",
    ),
    (
        &[
            "SELECT FROM corgipile_train('t', 'logistic', max_epochs => 1, validation_fraction => 0.2, name => 'placed')",
            "SELECT FROM corgipile_train('t', max_epochs => 1, warm_start => 'placed')",
        ],
        "...NOTICE:  rows are held out by their position in the table: model ... may have been trained on rows that have moved since\n\
         HINT:  If the table was changed, mark the rows in a boolean column and name it in validation_column.\n...",
    ),
    (
        &[
            "SELECT FROM corgipile_train('t', 'logistic', max_epochs => 1, name => 'all_rows')",
            "SELECT FROM corgipile_train('SELECT *, a > 0 AS held FROM t', max_epochs => 1, warm_start => 'all_rows',
                 options => '{\"validation_column\": \"held\"}')",
        ],
        "...NOTICE:  no rows were held out when model ... was trained: it may have been trained on the rows held out now\n\
         HINT:  Their loss and score are meaningful only if the rows are new to the model; else train without warm_start.\n...",
    ),
    (
        &[
            "SELECT FROM corgipile_train('t', 'logistic', max_epochs => 1, shared_scan => true, name => 'shared')",
            "SELECT FROM corgipile_train('t', max_epochs => 1, warm_start => 'shared')",
        ],
        "...NOTICE:  model ... was trained with shared_scan: the order of its rows is not reproducible\n\
         HINT:  Training the same epochs again gives another model.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'logistic', max_epochs => 1, options => '{\"verbose\": true}')"],
        "...NOTICE:  epoch 1 of 1: loss ..., accuracy ..., ... tuples/s\n",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'logistic', max_epochs => 2, verbose => true)"],
        "...NOTICE:  epoch 1 of 2: loss ..., accuracy ..., ... tuples/s, ... s left\n\
         NOTICE:  epoch 2 of 2: loss ..., accuracy ..., ... tuples/s\n",
    ),
    (
        &["SELECT FROM corgipile_search('t', features => '{a}', max_epochs => 1, seed => 1, trials => 2, verbose => true)"],
        "...NOTICE:  epoch 1 of 1 of ... models: least loss ..., ... tuples/s\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 5 AS y, i AS x FROM generate_series(1, 100) i', 'poisson', 'y', seed => 1)"],
        "...NOTICE:  solver newton, 1 of 1 features standardized\n...",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'logistic', max_epochs => 2, verbose => true, patience => 5)"],
        "...NOTICE:  epoch 1 of 2: ... tuples/s, at most ... s left\nNOTICE:  epoch 2 of 2: ... tuples/s\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, nullif(id, 1)::real AS a, b FROM t', 'logistic', max_epochs => 1)"],
        "...NOTICE:  NULLs are imputed in 1 of 100 rows (1.0%): a (1, the mean 51)\n\
         HINT:  Predictions impute in the same way. Option nulls can be \"skip\" or \"error\" instead.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, a, ''red'' AS colour, now() AS since FROM t', 'logistic', max_epochs => 1)"],
        "NOTICE:  features: column a; left out: colour (always the same value), since (always the same value)\n\
         HINT:  To change this, name the features; '{*,-id}' uses every possible column except id.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, a, date ''2026-01-01'' + id % 5 AS since FROM t', 'logistic', max_epochs => 1)"],
        "NOTICE:  features: 2 columns; parts: since (year, month, dow)\nHINT:  ...\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, a, date ''2026-01-01'' + id AS since FROM t', 'logistic', max_epochs => 1)"],
        "NOTICE:  features: column a; left out: since (date that rarely recurs: use date_parts for its parts)\nHINT:  ...\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, a, NULL::text AS nothing, CASE WHEN id % 2 = 0 THEN ''note '' || (10 * id + g) END AS note
                                          FROM t, generate_series(1, 4) AS g', 'logistic', max_epochs => 1)"],
        "NOTICE:  features: column a; left out: nothing (no value), note (text, nearly unique); of these, whether they are NULL is \
         a feature: note\nHINT:  ...\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, a FROM t', 'linear', max_epochs => 1)"],
        "NOTICE:  label column \"label\" has only two values, 0 and 1\n\
         HINT:  The model predicts numbers. For two classes and their probabilities, use model => 'logistic'.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT label, nullif(id, 1)::real AS a, b FROM t', 'logistic', max_epochs => 1,
               options => '{\"nulls\": \"skip\"}')"],
        "...NOTICE:  1 of 100 rows (1.0%) are left out because they have NULLs\n",
    ),
    (
        &[
            "SELECT FROM corgipile_train('SELECT id % 2 AS label, ''red'' AS colour, a FROM t', 'logistic', features => '{a,colour}',
               name => 'red', max_epochs => 1)",
            "SELECT FROM corgipile_evaluate('red', 'SELECT id % 2 AS label, a, ''blue'' AS colour FROM t')",
        ],
        "...WARNING:  100 of 100 rows (100.0%) have categories or indices that the model was not trained on\n\
         HINT:  They count as none of the known ones. A column whose values do not recur, such as a key or a time, is no \
         feature: leave it out. corgipile_columns() shows how many distinct values columns have.\n",
    ),
    (
        &["SELECT FROM corgipile_evaluate('red', 'SELECT id % 2 AS label, a, CASE WHEN id % 11 = 0 THEN ''blue'' ELSE ''red'' END AS colour FROM t')"],
        "...NOTICE:  9 of 100 rows (9.0%) have categories or indices that the model was not trained on\n\
         HINT:  They count as none of the known ones; with handle_unknown => 'error' they are an error.\n",
    ),
    (
        &["SELECT FROM corgipile_train($$SELECT label, a, (date '2013-01-01' + id / 20 * 20)::text AS day,
                                               CASE WHEN id % 9 = 0 THEN '?' ELSE (id % 13)::text END AS grade,
                                               CASE WHEN id % 9 = 0 THEN -999 ELSE id % 30 END AS degrees FROM t$$, 'logistic', max_epochs => 1)"],
        "NOTICE:  features: 4 columns; parts: day (text, ymd: year, month, dow); \
         as numbers, though text: grade ('?' 11 times taken as NULL); \
         probably codes: degrees (-999: use NULLIF(degrees, -999))\n\
         HINT:  To use an expression, give a query as source, such as 'SELECT expression AS name, ... FROM t', or name the \
         features; corgipile_columns() describes every column.\n...",
    ),
    (
        &[
            "SET corgipile.keep_versions = 1",
            "SELECT FROM corgipile_train('t', 'logistic', name => 'nightly', features => '{a}', learning_rate => 0.1, max_epochs => 1)",
            "SELECT FROM corgipile_train('t', 'logistic', name => 'nightly', features => '{a}', learning_rate => 0.1, max_epochs => 1)",
        ],
        "...NOTICE:  deleted 1 model replaced by newer ones: version 1 of \"nightly\"\n\
         HINT:  Option keep_versions, or setting corgipile.keep_versions, sets how many are kept; 0 keeps all. Deployed models \
         and models with a comment are kept.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 3 > 0 AS label, ARRAY[i % 5] AS x FROM generate_series(1, 100) i', 'logistic', solver => 'newton',
               max_epochs => 1)"],
        "...WARNING:  the model has not converged\n\
         HINT:  Train more epochs, for example with warm_start. If the loss no longer decreases, some features separate the classes perfectly: use an l2.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i > 0 AS label, ARRAY[i] AS x FROM generate_series(-9, 9) i', 'logistic', solver => 'newton')"],
        "...WARNING:  the model has not converged: perfect separation, the coefficients diverge\n\
         HINT:  Use an l2, such as 0.001, for finite weights; without it the model predicts well, but its weights cannot be interpreted.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 3 > 0 AS label, ARRAY[i % 5] AS x FROM generate_series(1, 100) i', 'logistic', max_epochs => 1,
               name => 'early')",
          "SELECT FROM corgipile_coefficients('early', 'SELECT i % 3 > 0 AS label, ARRAY[i % 5] AS x FROM generate_series(1, 100) i')"],
        "...NOTICE:  the model does not minimize the loss on these rows: ... is ... standard errors from the minimum\n\
         HINT:  Train it with solver => 'newton' on these rows to get the standard errors of the optimum.\n",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 3 AS y, i % 5 AS x, i % 2 + 1 AS w FROM generate_series(1, 100) i', 'linear', 'y',
               solver => 'newton', name => 'weighted', options => '{\"weight\": \"w\"}')",
          "SELECT FROM corgipile_coefficients('weighted', 'SELECT i % 3 AS y, i % 5 AS x, i % 2 + 1 AS w FROM generate_series(1, 100) i')"],
        "...NOTICE:  row weights are used as precisions: only their ratios matter\n\
         HINT:  Give weight_type => 'frequencies' if a row of weight 2 is two rows, or weight_type => 'precisions'.\n",
    ),
    (
        &["CREATE TABLE pages (label text, x real, filler text)",
          "ALTER TABLE pages ALTER filler SET STORAGE plain",
          "INSERT INTO pages SELECT CASE i WHEN 4100 THEN 'c' WHEN 4099 THEN 'b' ELSE 'a' END, i, repeat('x', 5000) FROM generate_series(1, 4200) i",
          "SELECT FROM corgipile_train('pages', 'svm', features => '{x}', seed => 1, max_epochs => 1)"],
        "...NOTICE:  the sample of the rows before the first epoch did not contain a second value of column \"label\": the training begins again with \
         all rows\n\
         HINT:  Use statistics => 'exact' to read all rows before the first epoch.\n...",
    ),
    (
        &["SELECT FROM corgipile_train('SELECT i % 3 > 0 AS label, ARRAY[i % 5] AS x FROM generate_series(1, 100) i', 'logistic', max_epochs => 1,
               name => 'sampled')",
          "SELECT FROM corgipile_importance('sampled', 'SELECT i % 3 > 0 AS label, ARRAY[i % 5] AS x FROM generate_series(1, 100) i',
               max_rows => 10)"],
        "...NOTICE:  10 rows are used, from blocks drawn at random\n\
         HINT:  Set max_rows to use more or fewer.\n",
    ),
    (
        &["SELECT FROM corgipile_train('t', 'linear', label => 'a', features => '{b,c}', max_epochs => 1,
               grid => '{\"learning_rate\": [0.001, 1e30]}')"],
        "WARNING:  ... diverged in epoch 1 and is not stored\n\
         HINT:  Training of the other models continues. Try a smaller learning_rate for this one.\n",
    ),
];

/// Messages of other notices, and the tests elsewhere that provoke them.
pub const ELSEWHERE: &[(&str, &str)] = &[
    (
        "rows are read in the order of another extension's scan: the same seed may give another model",
        "other_extensions::a_seed_promises_nothing_where_another_extension_orders_the_rows",
    ),
    (
        "the rows are fetched to this server to be trained on: ...",
        "nodes::rows_that_cannot_be_trained_on_there_come_here_or_are_an_error",
    ),
    (
        "with batch_size 1, each server trains its own model, and the models are averaged after each buffer",
        "nodes::models_of_single_steps_are_averaged_where_labels_are_mixed_alike",
    ),
    (
        "batch_size is ...: with 1, models of servers with different rows would be averaged",
        "nodes::models_of_single_steps_are_averaged_where_labels_are_mixed_alike",
    ),
    (
        "of the ways to train on ... servers, the first is taken, by estimates with a round trip of ... ms: ...",
        "nodes_ways::auto_tells_of_the_ways_that_are_open_and_takes_one",
    ),
    (
        "server \"...\" has no rows of the source",
        "nodes::rows_that_cannot_be_trained_on_there_come_here_or_are_an_error",
    ),
    (
        "each step uses ... compressed mini-batches, one of each process or server",
        "together::a_step_is_that_of_a_mini_batch_of_each_process",
    ),
];

#[test]
fn notices_say_what_to_do() {
    let mut db = database(&[]);
    corgipile_tests::small(&mut db, "large", 5000);
    let mut wrong = Vec::new();
    for (statements, expected) in CASES {
        let told = db.notices(statements);
        if !corgipile_tests::is_like(expected, &told) {
            wrong.push(format!("{statements:?}\n  tells {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
