-- See benches/uda/run.

\set rounds 3
\set epochs 5
\set rows 1000000

CREATE EXTENSION IF NOT EXISTS corgipile;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;

\echo Making a table of :rows rows x 28 features ...
SELECT setseed(0.5) \g /dev/null
CREATE TABLE uda AS
SELECT (i * 2 / :rows * 2 - 1)::smallint AS label,
       ARRAY(SELECT (random() + i * 2 / :rows * 0.1)::real FROM generate_series(1, 28)) AS features_v
  FROM generate_series(0, :rows - 1) i;
VACUUM (FREEZE, ANALYZE) uda;
VACUUM (FREEZE) uda;

CREATE TEMP TABLE epochs (model text, path text, shuffle text, seconds float8);

CREATE PROCEDURE pg_temp.measure_round(epochs int, seed bigint) LANGUAGE plpgsql AS $$
DECLARE
  model text;
BEGIN
  FOREACH model IN ARRAY ARRAY['logistic', 'svm'] LOOP
    INSERT INTO epochs SELECT model, 'aggregate', 'no_shuffle', t.seconds
      FROM corgipile_train_uda('uda', model => model, max_epochs => epochs) t;
    INSERT INTO epochs SELECT model, 'operator', 'no_shuffle', t.seconds
      FROM corgipile_train('uda', model => model, shuffle => 'no_shuffle', max_epochs => epochs,
                           learning_rate => 0.01, standardize => false) t;
    INSERT INTO epochs SELECT model, 'operator', 'corgipile', t.seconds
      FROM corgipile_train('uda', model => model, shuffle => 'corgipile', max_epochs => epochs, seed => seed,
                           learning_rate => 0.01, standardize => false) t;
  END LOOP;
END $$;

CALL pg_temp.measure_round(1, 0); -- warms the cache and this backend
TRUNCATE epochs;
DELETE FROM corgipile.stored_models;
\echo Measuring :rounds rounds of :epochs epochs ...
SELECT format('CALL pg_temp.measure_round(%s, %s)', :epochs, round) FROM generate_series(1, :rounds) round \gexec

\pset footer off
\echo
\pset title 'Epoch, ms, and how much longer the aggregate takes'
WITH epoch AS (
  SELECT model, path, shuffle, min(seconds) AS best, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median,
         count(*) AS runs
    FROM epochs GROUP BY model, path, shuffle
)
SELECT e.model, e.path, e.shuffle, to_char(e.best * 1000, '9990.0') AS best, to_char(e.median * 1000, '9990.0') AS median,
       e.runs, to_char(a.best / e.best, '990.00') AS "aggregate/best", to_char(a.median / e.median, '990.00') AS "aggregate/median"
  FROM epoch e JOIN epoch a ON a.model = e.model AND a.path = 'aggregate'
 ORDER BY e.model, e.path, e.shuffle DESC;

-- Both paths have learned the same.
\pset title 'Largest difference between the weights of both paths, without a shuffle, relative to the largest weight'
SELECT u.model, to_char(max(abs(a - b)) / max(abs(b)), '0.0EEEE') AS difference
  FROM corgipile.models u JOIN corgipile.models o ON o.model = u.model,
       unnest(u.weights || u.intercepts, o.weights || o.intercepts) AS w(a, b)
 WHERE u.hyperparameters->>'path' = 'uda' AND NOT o.hyperparameters ? 'path'
       AND o.hyperparameters->>'shuffle' = 'no_shuffle'
 GROUP BY u.model ORDER BY u.model;

\pset tuples_only on
\pset format unaligned
WITH median AS (
  SELECT model, path, shuffle, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds
    FROM epochs GROUP BY model, path, shuffle
)
SELECT format('FIGURE aggregate without a shuffle / operators, %s, %s | %s | >= 10', o.model, o.shuffle,
              round((a.seconds / o.seconds)::numeric, 2))
  FROM median o JOIN median a ON a.model = o.model AND a.path = 'aggregate'
 WHERE o.path = 'operator' ORDER BY o.model, o.shuffle;
