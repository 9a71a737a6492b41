-- See benches/vectors/run.

\set rounds 5
\set epochs 4

CREATE EXTENSION corgipile;
CREATE EXTENSION vector;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = error;

-- Rows are sums of three out of 500 random vectors, made side by side for each type.

CREATE PROCEDURE pg_temp.make(width int, rows int) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE pool AS SELECT i, ARRAY(SELECT random() - 0.5 + 0 * i FROM generate_series(1, %s))::vector AS v,
                         (SELECT decode(string_agg(lpad(to_hex((random() * 255)::int + 0 * (i + j)), 2, ''0''), ''''), ''hex'')
                            FROM generate_series(1, %1$s) j) AS b
                    FROM generate_series(0, 499) i', width);
  EXECUTE format('CREATE TABLE vectors_%s (label real, x vector)', width);
  EXECUTE format('INSERT INTO vectors_%s
                  SELECT 2 * (n %% 2) - 1, a.v + b.v + c.v FROM generate_series(1, %s) n
                    JOIN pool a ON a.i = n * 7 %% 499 JOIN pool b ON b.i = n * 11 %% 498 JOIN pool c ON c.i = n * 13 %% 497',
                 width, rows);
  EXECUTE format('CREATE TABLE halves_%s (label real, x halfvec); INSERT INTO halves_%1$s SELECT label, x FROM vectors_%1$s', width);
  EXECUTE format('CREATE TABLE reals_%s (label real, x real[]); INSERT INTO reals_%1$s SELECT label, x FROM vectors_%1$s', width);
  EXECUTE format('CREATE TABLE bytes_%s (label real, x bytea);
                  INSERT INTO bytes_%1$s SELECT 2 * (n %% 2) - 1, substr(a.b, 1, %2$s / 2) || substr(c.b, %2$s / 2 + 1)
                    FROM generate_series(1, %3$s) n JOIN pool a ON a.i = n * 7 %% 499 JOIN pool c ON c.i = n * 13 %% 497',
                 width, width, rows);
  DROP TABLE pool;
END $$;

\echo Making 100,000 rows x 768 and 1,000,000 rows x 28 of four types ...
SELECT setseed(0.5) \g /dev/null
CALL pg_temp.make(768, 100000);
CALL pg_temp.make(28, 1000000);
VACUUM (FREEZE, ANALYZE);
VACUUM (FREEZE);

CREATE TEMP TABLE cases AS
SELECT row_number() OVER (ORDER BY rows, kind, cache) AS place, width, rows, type, format('%s_%s', name, width) AS relation,
       format(source, name, width) AS source, cache
  FROM (VALUES (768, 100000), (28, 1000000)) w(width, rows),
       (VALUES (1, 'real[]', 'reals', '%s_%s'), (2, 'vector', 'vectors', '%s_%s'), (3, 'halfvec', 'halves', '%s_%s'),
               (4, 'bytea', 'bytes', '%s_%s'),
               (5, 'vector, by a cast', 'vectors', 'SELECT label, x::real[] AS x FROM %s_%s')) t(kind, type, name, source),
       (VALUES ('off'), ('on')) c(cache);
CREATE TEMP TABLE epochs (place int, epoch int, seconds float8);

CREATE PROCEDURE pg_temp.measure_round(epochs int) LANGUAGE plpgsql AS $$
DECLARE
  c record;
BEGIN
  FOR c IN SELECT * FROM cases ORDER BY place LOOP
    INSERT INTO epochs
    SELECT c.place, t.epoch, t.seconds
      FROM corgipile_train(c.source, 'logistic', features => '{x}', learning_rate => 1e-6, standardize => false, seed => 1,
                           max_epochs => epochs, prefetch => 'off',
                           options => jsonb_build_object('cache', c.cache)) t
     WHERE t.epoch > 1;
  END LOOP;
END $$;

CALL pg_temp.measure_round(2); -- warms the cache and this backend
TRUNCATE epochs;
\echo Measuring :rounds rounds of :epochs epochs ...
SELECT format('CALL pg_temp.measure_round(%s)', :epochs) FROM generate_series(1, :rounds) \gexec

CREATE TEMP VIEW results AS
SELECT c.*, pg_table_size(relation::regclass) AS bytes, min(seconds) AS best,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median, count(*) AS runs
  FROM cases c JOIN epochs e USING (place)
 GROUP BY c.place, c.width, c.rows, c.type, c.relation, c.source, c.cache;

\pset footer off
\echo
\pset title 'Epochs from the second on; MB of the table (10^6 bytes), with what is out of line'
SELECT to_char(rows, 'FM9,999,999') || ' x ' || width AS rows, type, cache, to_char(bytes / 1e6, '9990') AS "MB",
       to_char(best * 1000, '9990.0') AS "best, ms", to_char(median * 1000, '9990.0') AS "median, ms", runs,
       to_char(bytes / median / 1e6, '99990') AS "MB/s", to_char(1.0 * rows * width / median / 1e6, '99990') AS "million numbers/s"
  FROM results ORDER BY place;

\pset tuples_only on
\pset format unaligned
SELECT format('FIGURE %s over real[], %s x %s, seconds of an epoch, %s | %s | %s', r.type, to_char(r.rows, 'FM9,999,999'), r.width,
              CASE r.cache WHEN 'off' THEN 'from the table' ELSE 'from the cache' END, round((r.median / o.median)::numeric, 2),
              CASE WHEN r.cache = 'off' AND (r.type = 'vector' OR r.width = 768 AND r.type <> 'vector, by a cast') THEN '<= 1.05' ELSE '' END)
  FROM results r JOIN results o ON o.width = r.width AND o.cache = r.cache AND o.type = 'real[]'
 WHERE r.type <> 'real[]' ORDER BY r.place;
