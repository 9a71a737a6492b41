-- See benches/newton/run.

\set rounds 3

CREATE EXTENSION corgipile;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = error;

-- Rows are sums of three out of 500 random vectors.

CREATE PROCEDURE pg_temp.make(width int, rows int) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE pool AS SELECT i, ARRAY(SELECT random() - 0.5 + 0 * i FROM generate_series(1, %s))::real[] AS v
                    FROM generate_series(0, 499) i', width);
  EXECUTE format('CREATE TABLE rows_%s (label real, x real[])', width);
  EXECUTE format('INSERT INTO rows_%s
                  SELECT 2 * (n %% 2) - 1, ARRAY(SELECT a + b + c FROM unnest(p.v, q.v, r.v) u(a, b, c)) FROM generate_series(1, %s) n
                    JOIN pool p ON p.i = n * 7 %% 499 JOIN pool q ON q.i = n * 11 %% 498 JOIN pool r ON r.i = n * 13 %% 497',
                 width, rows);
  DROP TABLE pool;
END $$;

\echo Making 2,000,000 rows x 28 and 200,000 rows x 200 ...
SELECT setseed(0.5) \g /dev/null
CALL pg_temp.make(28, 2000000);
CALL pg_temp.make(200, 200000);
VACUUM (FREEZE, ANALYZE);

CREATE TEMP TABLE measured (width int, what text, nanoseconds float8);

CREATE PROCEDURE pg_temp.measure(width int) LANGUAGE plpgsql AS $$
DECLARE
  start timestamptz := clock_timestamp();
  rows bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM rows_%s', width) INTO rows;
  INSERT INTO measured VALUES (width, 'count(*)', 1e9 * extract(epoch FROM clock_timestamp() - start) / rows);
  INSERT INTO measured
  SELECT width, 'newton, ' || m.model, 1e9 * t.seconds / t.tuples
    FROM (VALUES ('linear'), ('logistic')) m(model),
         LATERAL (SELECT * FROM corgipile_train(format('rows_%s', width), m.model, features => '{x}', solver => 'newton', seed => 1,
                                                prefetch => 'off')) t
   WHERE t.epoch > 1;
END $$;

CALL pg_temp.measure(28);
CALL pg_temp.measure(200);
TRUNCATE measured;
\echo Measuring :rounds rounds ...
SELECT format('CALL pg_temp.measure(%s)', w) FROM generate_series(1, :rounds), unnest(ARRAY[28, 200]) w \gexec

\echo Nanoseconds per row and pass, the least of all passes but the first:
SELECT width AS features, what, round(min(nanoseconds)::numeric, 1) AS nanoseconds FROM measured GROUP BY width, what ORDER BY width, what;
