-- See run.

\set rounds 5
\set epochs 4

SET client_min_messages = warning;

-- The measurement: one process and two by turns, so that a change of the machine's speed meets both.

CREATE TEMP TABLE cases (place serial, source text, batch_size int, cache text, rate float8);
INSERT INTO cases (source, batch_size, cache, rate) VALUES
  ('narrow', 256, 'off', 0.5), ('narrow', 256, 'auto', 0.5), ('narrow', 1, 'off', 0.02), ('narrow', 1, 'auto', 0.02),
  ('wide', 256, 'off', 0.01), ('wide', 256, 'auto', 0.01), ('wide', 1, 'off', 0.0005), ('wide', 1, 'auto', 0.0005);
CREATE TEMP TABLE epochs (place int, workers int, epoch int, seconds float8, tuples bigint, model_id bigint);

CREATE PROCEDURE pg_temp.measure(place int, workers int, epochs int, seed bigint) LANGUAGE sql AS $$
  INSERT INTO epochs
  SELECT place, workers, t.epoch, t.seconds, t.tuples, t.model_id
    FROM cases c, LATERAL corgipile_train(c.source, max_epochs => epochs, seed => seed, learning_rate => c.rate,
           options => jsonb_build_object('batch_size', c.batch_size, 'cache', c.cache), workers => workers) t
   WHERE c.place = measure.place
$$;

\echo Measuring ...
SELECT format('CALL pg_temp.measure(%s, %s, %s, %s)', place, workers, :epochs, round)
  FROM generate_series(1, :rounds) round, cases, generate_series(1, 2) workers
 ORDER BY place, round, workers \gexec

DO $$
BEGIN
  IF EXISTS (SELECT FROM epochs e JOIN corgipile.models m USING (model_id)
              WHERE e.workers <> (m.hyperparameters->>'workers')::int) THEN
    RAISE EXCEPTION 'a training ran with fewer processes than were asked for';
  END IF;
END $$;

\echo
\echo Thousand rows per second with one process and with two (medians of the epochs from the second on), by which factor
\echo that is more, first epochs in milliseconds, and accuracy of the last models.
WITH medians AS (
  SELECT place, workers,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY tuples / seconds) FILTER (WHERE epoch > 1) AS rate,
         percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE epoch = 1) AS first,
         max(model_id) AS model_id
    FROM epochs GROUP BY place, workers
), judged AS (
  SELECT m.*, (SELECT value FROM corgipile_evaluate(m.model_id, c.source) WHERE metric = 'accuracy') AS accuracy
    FROM medians m JOIN cases c USING (place)
)
SELECT source, batch_size, cache, round(a.rate / 1000) AS one, round(b.rate / 1000) AS two,
       round((b.rate / a.rate)::numeric, 2) AS factor,
       round(1000 * a.first::numeric, 1) AS first_one, round(1000 * b.first::numeric, 1) AS first_two,
       round(a.accuracy::numeric, 4) AS accuracy_one, round((b.accuracy - a.accuracy)::numeric, 4) AS difference
  FROM cases JOIN judged a USING (place) JOIN judged b USING (place)
 WHERE a.workers = 1 AND b.workers = 2 ORDER BY place;

\pset tuples_only on
\pset format unaligned
CREATE TEMP VIEW rates AS
  SELECT place, workers, percentile_cont(0.5) WITHIN GROUP (ORDER BY tuples / seconds) FILTER (WHERE epoch > 1) AS rate
    FROM epochs GROUP BY place, workers;
SELECT format('HEADLINE Learning from the cache with two processes, %s | %s million rows/s | %s million rows/s, one process | %s',
              CASE source WHEN 'narrow' THEN '1,000,000 rows x 28' ELSE '20,000 rows x 2,000 out of line' END,
              to_char(b.rate / 1e6, 'FM990.00'), to_char(a.rate / 1e6, 'FM990.00'), round((b.rate / a.rate)::numeric, 2))
  FROM cases JOIN rates a USING (place) JOIN rates b USING (place)
 WHERE a.workers = 1 AND b.workers = 2 AND batch_size = 256 AND cache = 'auto' ORDER BY place;
SELECT format('FIGURE rows/s of two processes over one, %s, batch %s, cache %s | %s | >= 1.7', source, batch_size, cache,
              round((b.rate / a.rate)::numeric, 2))
  FROM cases JOIN rates a USING (place) JOIN rates b USING (place)
 WHERE a.workers = 1 AND b.workers = 2 ORDER BY place;
