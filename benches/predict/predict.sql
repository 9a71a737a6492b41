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
SELECT format('CREATE TABLE bench_columns AS SELECT label, %s FROM bench', string_agg(format('features_v[%s] AS f%1$s', i), ', '))
  FROM generate_series(1, 28) i \gexec
VACUUM (FREEZE, ANALYZE) bench, bench_columns;
SELECT model_id AS id FROM corgipile_train('bench', max_epochs => 1, seed => 1, name => 'm') \gset
SELECT FROM corgipile_train('bench_columns', max_epochs => 1, seed => 1, name => 'c') \g /dev/null

-- What is measured: each query in one process, those of arrays by id in a parallel plan, too.
CREATE TEMP TABLE queries (what text, parallel boolean, query text);
INSERT INTO queries VALUES
  ('sum(x[1])', true, 'SELECT sum(features_v[1]) FROM bench'),
  ('predict(id, x)', true, 'SELECT sum(corgipile_predict(' || :id || ', features_v)) FROM bench'),
  ('predict(name, x)', false, 'SELECT sum(corgipile_predict(''m'', features_v)) FROM bench'),
  ('predict_proba(name, x)', false, 'SELECT sum((corgipile_predict_proba(''m'', features_v))[2]) FROM bench'),
  ('predict_label(name, x)', false, 'SELECT count(corgipile_predict_label(''m'', features_v)) FROM bench'),
  ('sum(f1)', false, 'SELECT sum(f1) FROM bench_columns'),
  ('predict(name, row)', false, 'SELECT sum(corgipile_predict(''c'', b)) FROM bench_columns b'),
  ('train(one epoch, from pages)', false, 'SELECT count(*) FROM corgipile_train(''bench'', max_epochs => 1, seed => 1, options => ''{"cache": "off"}'')'),
  ('evaluate', false, 'SELECT count(*) FROM corgipile_evaluate(''m'', ''bench'')');
INSERT INTO queries SELECT 'predict(name, columns)', false,
       format('SELECT sum(corgipile_predict(''c'', %s)) FROM bench_columns', string_agg('f' || i, ', ' ORDER BY i)) FROM generate_series(1, 28) i;

CREATE TEMP TABLE times (workers int, round int, what text, seconds float8);

-- Runs a query, which has to be parallel if there are workers.
CREATE PROCEDURE pg_temp.measure(workers int, round int, what text, query text) LANGUAGE plpgsql AS $$
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
  INSERT INTO times VALUES (workers, round, what, extract(epoch FROM clock_timestamp() - began));
END $$;

\echo Measuring :rounds rounds ...
SELECT format('CALL pg_temp.measure(%s, %s, %L, %L)', workers, round, what, query)
  FROM generate_series(0, :rounds) round, unnest(ARRAY[0, 2]) workers, queries
 WHERE workers = 0 OR parallel
 ORDER BY round, workers, what DESC \gexec

\pset footer off
\echo
CREATE TEMP VIEW kept AS
  SELECT workers, what, min(seconds) * 1000 AS best, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) * 1000 AS median
    FROM times WHERE round > 0 GROUP BY 1, 2;

-- What is compared with what, and the bound of the issue that asked for it.
CREATE TEMP VIEW ratios AS
  SELECT workers, what, base, bound, b.best AS base_best, b.median AS base_median, k.best, k.median
    FROM (VALUES ('predict(id, x)', 'sum(x[1])', 2.0), ('predict(name, x)', 'sum(x[1])', 1.3), ('predict_proba(name, x)', 'predict(name, x)', 1.5),
                 ('predict_label(name, x)', 'predict(name, x)', 1.5), ('predict(name, row)', 'sum(f1)', 2.5),
                 ('predict(name, columns)', 'sum(f1)', 2.5), ('evaluate', 'train(one epoch, from pages)', 1.5)) AS r (what, base, bound)
    JOIN kept k USING (what) JOIN (SELECT workers, what AS base, best, median FROM kept) b USING (workers, base);

\pset title 'Prediction of 1,000,000 rows, ms, and ratio to another query'
SELECT workers, what, to_char(best, '9990.0') AS "best", to_char(median, '9990.0') AS "median", base,
       to_char(base_best, '9990.0') AS "its best", to_char(base_median, '9990.0') AS "its median",
       to_char(best / base_best, '990.00') AS "best/best", to_char(median / base_median, '990.00') AS "median/median"
  FROM ratios ORDER BY workers, what;

\pset tuples_only on
\pset format unaligned
SELECT format('HEADLINE Prediction of 1,000,000 rows x 28, %s | %s ms | %s ms, sum(x[1]) of the same rows | %s',
              CASE workers WHEN 0 THEN 'one process' ELSE format('%s parallel workers', workers) END,
              to_char(median, 'FM9990.0'), to_char(base_median, 'FM9990.0'), to_char(base_median / median, 'FM990.00'))
  FROM ratios WHERE what = 'predict(id, x)' ORDER BY workers;
SELECT format('FIGURE sum(corgipile_predict(id, x)) over sum(x[1]), 1M x 28, %s workers | %s | <= 2', workers, to_char(median / base_median, 'FM990.00'))
  FROM ratios WHERE what = 'predict(id, x)' ORDER BY workers;
SELECT format('FIGURE %s over %s, 1M x 28 | %s | <= %s', what, base, to_char(median / base_median, 'FM990.00'), bound)
  FROM ratios WHERE what <> 'predict(id, x)' ORDER BY what;
