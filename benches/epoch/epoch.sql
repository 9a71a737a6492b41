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

-- The measurement.

CREATE TEMP TABLE counts (seconds float8);
CREATE TEMP TABLE epochs (model text, shuffle text, seconds float8);

CREATE PROCEDURE pg_temp.measure_count() LANGUAGE plpgsql AS $$
DECLARE
  began timestamptz := clock_timestamp();
BEGIN
  PERFORM count(*) FROM bench;
  INSERT INTO counts VALUES (extract(epoch FROM clock_timestamp() - began));
END $$;

CREATE PROCEDURE pg_temp.measure_round(epochs int, seed bigint) LANGUAGE plpgsql AS $$
DECLARE
  model text;
  shuffle text;
BEGIN
  FOREACH model IN ARRAY ARRAY['logistic', 'svm'] LOOP
    FOREACH shuffle IN ARRAY ARRAY['corgipile', 'no_shuffle'] LOOP
      CALL pg_temp.measure_count();
      CALL pg_temp.measure_count();
      INSERT INTO epochs
      SELECT model, shuffle, t.seconds
        FROM corgipile_train('bench', model => model, shuffle => shuffle, max_epochs => epochs, seed => seed) t;
    END LOOP;
  END LOOP;
END $$;

CALL pg_temp.measure_round(1, 0); -- warms the cache and this backend
TRUNCATE counts, epochs;
\echo Measuring :rounds rounds of :epochs epochs ...
SELECT format('CALL pg_temp.measure_round(%s, %s)', :epochs, round) FROM generate_series(1, :rounds) round \gexec

\pset footer off
\echo
\pset title 'SELECT count(*), ms'
SELECT to_char(min(seconds) * 1000, '9990.0') AS best,
       to_char(percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) * 1000, '9990.0') AS median,
       count(*) AS runs
  FROM counts;

\pset title 'Epoch, ms, and ratio to count(*)'
WITH count AS (
  SELECT min(seconds) AS best, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median FROM counts
), epoch AS (
  SELECT model, shuffle, min(seconds) AS best, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median,
         count(*) AS runs
    FROM epochs GROUP BY model, shuffle
)
SELECT model, shuffle, to_char(epoch.best * 1000, '9990.0') AS best, to_char(epoch.median * 1000, '9990.0') AS median,
       runs, to_char(epoch.best / count.best, '990.00') AS "best/best",
       to_char(epoch.median / count.median, '990.00') AS "median/median"
  FROM epoch, count ORDER BY model, shuffle;

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
WITH count AS (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median FROM counts),
     epoch AS (SELECT model, shuffle, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median FROM epochs GROUP BY 1, 2)
SELECT format('FIGURE 1 | %s epoch over count(*), 1M x 28, as by default, with the cache | %s | <= 0.8', model,
              round((epoch.median / count.median)::numeric, 2))
  FROM epoch, count WHERE shuffle = 'corgipile'
UNION ALL
SELECT format('FIGURE 2 | %s corgipile over no_shuffle, with the cache | %s | <= 1.05', c.model,
              round((c.median / n.median)::numeric, 2))
  FROM epoch c JOIN epoch n USING (model) WHERE c.shuffle = 'corgipile' AND n.shuffle = 'no_shuffle';
