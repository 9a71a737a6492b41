-- See benches/epoch/run.

\set rounds 5
\set epochs 5
\set rows 1000000

CREATE EXTENSION corgipile;
CREATE EXTENSION pg_visibility;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;

-- The table, warm and all-visible. The first VACUUM after a load may leave pages that are not, hence two, and a check.

\echo Making a table of :rows rows x 28 features ...
SELECT setseed(0.5) \g /dev/null
CREATE TABLE bench AS
SELECT (i * 2 / :rows)::smallint AS label,
       ARRAY(SELECT (random() + i * 2 / :rows * 0.1)::real FROM generate_series(1, 28)) AS features_v
  FROM generate_series(0, :rows - 1) i;
VACUUM (FREEZE, ANALYZE) bench;
VACUUM (FREEZE) bench;

CREATE PROCEDURE pg_temp.assert_all_visible() LANGUAGE plpgsql AS $$
DECLARE
  pages bigint := pg_relation_size('bench') / current_setting('block_size')::int;
  visible bigint := (SELECT all_visible FROM pg_visibility_map_summary('bench'));
BEGIN
  IF visible <> pages THEN
    RAISE EXCEPTION 'only % of % pages are all-visible', visible, pages;
  END IF;
END $$;
CALL pg_temp.assert_all_visible();

-- The same rows, on pages that are not all-visible.

CREATE TABLE bench_in_doubt AS SELECT * FROM bench;
ANALYZE bench_in_doubt;

-- The measurement. What is called a case is a way to train.

CREATE TEMP TABLE counts (seconds float8);
CREATE TEMP TABLE cases (place int, name text, relation text, buffer_size text, options jsonb);
INSERT INTO cases VALUES
  (1, 'default', 'bench', '10%', '{}'),
  (2, 'cache off', 'bench', '10%', '{"cache": "off"}'),
  (3, 'buffer 100%', 'bench', '100%', '{}'),
  (4, 'not all-visible, default', 'bench_in_doubt', '10%', '{}'),
  (5, 'not all-visible, cache off', 'bench_in_doubt', '10%', '{"cache": "off"}');
CREATE TEMP TABLE epochs (place int, model text, shuffle text, epoch int, seconds float8);

CREATE PROCEDURE pg_temp.measure_count() LANGUAGE plpgsql AS $$
DECLARE
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM count(*) FROM bench;
  INSERT INTO counts VALUES (extract(epoch FROM clock_timestamp() - began));
END $$;

CREATE PROCEDURE pg_temp.measure_round(epochs int, seed bigint) LANGUAGE plpgsql AS $$
DECLARE
  c record;
  model text;
  shuffle text;
BEGIN
  FOR c IN SELECT * FROM cases ORDER BY place LOOP
    FOREACH model IN ARRAY ARRAY['logistic', 'svm'] LOOP
      FOREACH shuffle IN ARRAY ARRAY['corgipile', 'no_shuffle'] LOOP
        CALL pg_temp.measure_count();
        INSERT INTO epochs
        SELECT c.place, model, shuffle, t.epoch, t.seconds
          FROM corgipile_train(c.relation, model => model, shuffle => shuffle, max_epochs => epochs, seed => seed,
                               buffer_size => c.buffer_size, options => c.options) t;
      END LOOP;
    END LOOP;
  END LOOP;
END $$;

CALL pg_temp.measure_round(1, 0); -- warms the cache and this backend
TRUNCATE counts, epochs;
\echo Measuring :rounds rounds of :epochs epochs ...
SELECT format('CALL pg_temp.measure_round(%s, %s)', :epochs, round) FROM generate_series(1, :rounds) round \gexec
CALL pg_temp.assert_all_visible();

\pset footer off
\echo
\pset title 'SELECT count(*), ms'
SELECT to_char(min(seconds) * 1000, '9990.0') AS best,
       to_char(percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) * 1000, '9990.0') AS median,
       count(*) AS runs
  FROM counts;

CREATE TEMP VIEW results AS
WITH count AS (
  SELECT min(seconds) AS best, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median FROM counts
), epoch AS (
  SELECT place, model, shuffle, epoch = 1 AS first, min(seconds) AS best,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median, count(*) AS runs
    FROM epochs GROUP BY place, model, shuffle, epoch = 1
)
SELECT c.place, c.name, model, shuffle, first, epoch.best, epoch.median, runs,
       epoch.best / count.best AS by_best, epoch.median / count.median AS by_median
  FROM epoch JOIN cases c USING (place), count;

\pset title 'Epoch, ms, and ratio to count(*)'
SELECT name, model, shuffle, CASE WHEN first THEN 'first' ELSE 'later' END AS epochs,
       to_char(best * 1000, '9990.0') AS best, to_char(median * 1000, '9990.0') AS median, runs,
       to_char(by_best, '990.00') AS "best/best", to_char(by_median, '990.00') AS "median/median"
  FROM results ORDER BY place, model, shuffle, first;

-- Where the time goes, by EXPLAIN ANALYZE, whose clock costs a little too.

CREATE FUNCTION pg_temp.plan_of(model text, shuffle text, epochs int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE format('EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM corgipile_train(%L, model => %L, shuffle => %L,
                  max_epochs => %s, seed => 1)', 'bench', model, shuffle, epochs) INTO plan;
  RETURN plan;
END $$;

-- A time in a plan, in ns per tuple.
CREATE FUNCTION pg_temp.part(plan jsonb, name text, epochs int, tuples int) RETURNS float8 LANGUAGE sql AS $$
  SELECT jsonb_path_query_first(plan, format('strict $.**.%I', name)::jsonpath)::float8 * 1e6 / epochs / tuples
$$;

\pset title 'Time per tuple, ns'
WITH plans AS MATERIALIZED (
  SELECT model, shuffle, pg_temp.plan_of(model, shuffle, :epochs) AS plan
    FROM unnest(ARRAY['logistic', 'svm']) model, unnest(ARRAY['corgipile', 'no_shuffle']) shuffle
), parts AS (
  SELECT model, shuffle, pg_temp.part(plan, 'Scan Time', :epochs, :rows) AS scan,
         pg_temp.part(plan, 'Decode Time', :epochs, :rows) AS decode,
         pg_temp.part(plan, 'Shuffle Time', :epochs, :rows) AS shuffling,
         pg_temp.part(plan, 'Compute Time', :epochs, :rows) AS compute,
         pg_temp.part(plan, 'Actual Total Time', :epochs, :rows) AS total
    FROM plans
)
SELECT model, shuffle, to_char(scan, '990.0') AS scan, to_char(decode, '990.0') AS decode,
       to_char(shuffling, '990.0') AS shuffle, to_char(compute, '990.0') AS compute,
       to_char(total - scan - decode - shuffling - compute, '990.0') AS rest, to_char(total, '990.0') AS total
  FROM parts ORDER BY model, parts.shuffle;

\pset tuples_only on
\pset format unaligned
SELECT format('HEADLINE %s, logistic regression, 1,000,000 rows x 28 | %s ms | %s ms, SELECT count(*) of the table | %s',
              CASE WHEN first THEN 'First epoch, which fills the cache' ELSE 'Epoch from the second on' END,
              to_char(median * 1000, 'FM9990.0'), to_char(median / by_median * 1000, 'FM9990.0'),
              round((1 / by_median)::numeric, 2))
  FROM results WHERE model = 'logistic' AND shuffle = 'corgipile' AND name = 'default' ORDER BY first;
SELECT format('FIGURE %s epoch over count(*), %s, %s | %s | %s', model, name,
              CASE WHEN first THEN 'first epoch' ELSE 'from the second on' END, round(by_median::numeric, 2),
              CASE WHEN place > 3 THEN '' WHEN place = 3 AND NOT first THEN '<= 0.5' WHEN first THEN '<= 1.1'
                   ELSE '<= 0.8' END)
  FROM results WHERE shuffle = 'corgipile' ORDER BY model, place, first;
SELECT format('FIGURE %s corgipile over no_shuffle, %s | %s | <= 1.05', c.model, c.name,
              round((c.median / n.median)::numeric, 2))
  FROM results c JOIN results n USING (place, model, first)
 WHERE c.shuffle = 'corgipile' AND n.shuffle = 'no_shuffle' AND NOT first AND place <= 2
 ORDER BY c.model, place;
