-- See benches/predict/run.

\set rounds 7
\set rows 1000000

CREATE EXTENSION corgipile;
SET client_min_messages = warning;

\echo Making a table of :rows rows x 28 features ...
SELECT setseed(0.5) \g /dev/null
CREATE TABLE bench AS
SELECT (i * 2 / :rows)::smallint AS label,
       ARRAY(SELECT (random() + i * 2 / :rows * 0.1)::real FROM generate_series(1, 28)) AS features_v
  FROM generate_series(0, :rows - 1) i;
VACUUM (FREEZE, ANALYZE) bench;
SELECT model_id AS id FROM corgipile_train('bench', max_epochs => 1, seed => 1) \gset

CREATE TEMP TABLE times (workers int, round int, query text, seconds float8);

-- Runs a query, which has to be parallel if there are workers.
CREATE PROCEDURE pg_temp.measure(workers int, round int, query text) LANGUAGE plpgsql AS $$
DECLARE
  began timestamptz;
  line text;
  gathers boolean := false;
BEGIN
  PERFORM set_config('max_parallel_workers_per_gather', workers::text, false);
  FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
    gathers := gathers OR line LIKE '%Gather%';
  END LOOP;
  IF gathers <> (workers > 0) THEN
    RAISE EXCEPTION 'the plan of % is not one for % workers', query, workers;
  END IF;
  began := clock_timestamp();
  EXECUTE query;
  INSERT INTO times VALUES (workers, round, query, extract(epoch FROM clock_timestamp() - began));
END $$;

\echo Measuring :rounds rounds ...
SELECT format('CALL pg_temp.measure(%s, %s, %L)', workers, round, query)
  FROM generate_series(0, :rounds) round, unnest(ARRAY[0, 2]) workers,
       unnest(ARRAY['SELECT sum(features_v[1]) FROM bench', 'SELECT sum(corgipile_predict(' || :id || ', features_v)) FROM bench']) query
 ORDER BY round, workers, query DESC \gexec

\pset footer off
\echo
CREATE TEMP VIEW kept AS
  SELECT workers, query LIKE '%predict%' AS predicts, min(seconds) * 1000 AS best,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) * 1000 AS median
    FROM times WHERE round > 0 GROUP BY 1, 2;

\pset title 'Prediction, ms, and ratio to sum(features_v[1])'
SELECT p.workers, to_char(s.best, '9990.0') AS "sum, best", to_char(s.median, '9990.0') AS "sum, median",
       to_char(p.best, '9990.0') AS "predict, best", to_char(p.median, '9990.0') AS "predict, median",
       to_char(p.best / s.best, '990.00') AS "best/best", to_char(p.median / s.median, '990.00') AS "median/median"
  FROM kept p JOIN kept s USING (workers) WHERE p.predicts AND NOT s.predicts ORDER BY p.workers;

\pset tuples_only on
\pset format unaligned
SELECT format('HEADLINE Prediction of 1,000,000 rows x 28, %s | %s ms | %s ms, sum(x[1]) of the same rows | %s',
              CASE p.workers WHEN 0 THEN 'one process' ELSE format('%s parallel workers', p.workers) END,
              to_char(p.median, 'FM9990.0'), to_char(s.median, 'FM9990.0'), to_char(s.median / p.median, 'FM990.00'))
  FROM kept p JOIN kept s USING (workers) WHERE p.predicts AND NOT s.predicts ORDER BY p.workers;
SELECT format('FIGURE sum(corgipile_predict(id, x)) over sum(x[1]), 1M x 28, %s workers | %s | <= 2', p.workers,
              to_char(p.median / s.median, 'FM990.00'))
  FROM kept p JOIN kept s USING (workers) WHERE p.predicts AND NOT s.predicts ORDER BY p.workers;
