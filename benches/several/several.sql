\pset footer off
CREATE EXTENSION IF NOT EXISTS corgipile;
SET client_min_messages = warning;

DO 'BEGIN PERFORM setseed(0.5); END';
CREATE TABLE several AS
SELECT i AS id, i % 10 AS grp, (random() < 0.5)::int AS label, ARRAY(SELECT random() + i * 0 FROM generate_series(1, 28))::real[] AS x
  FROM generate_series(1, 300000) i;
VACUUM ANALYZE several;

CREATE TABLE took (what text, several float8, alone float8);

-- Each in turns, so that a slow moment of the machine meets both.
DO $$
DECLARE
    points CONSTANT jsonb := '[{"learning_rate": 0.1}, {"learning_rate": 0.03}, {"learning_rate": 0.01}, {"learning_rate": 0.003},
        {"learning_rate": 0.1, "l2": 0.0001}, {"learning_rate": 0.03, "l2": 0.0001}, {"learning_rate": 0.01, "l2": 0.0001},
        {"learning_rate": 0.003, "l2": 0.0001}]';
    kept text;
    point jsonb;
    start timestamptz;
    several float8;
BEGIN
    PERFORM count(*) FROM several;
    FOREACH kept IN ARRAY ARRAY['auto', 'off'] LOOP
        FOR repetition IN 1 .. 3 LOOP
            start := clock_timestamp();
            PERFORM FROM corgipile_train('several', features => '{x}', max_epochs => 5, seed => 1, grid => points,
                                         options => jsonb_build_object('cache', kept), prefetch => 'off');
            several := extract(epoch FROM clock_timestamp() - start);
            start := clock_timestamp();
            FOR point IN SELECT * FROM jsonb_array_elements(points) LOOP
                PERFORM FROM corgipile_train('several', features => '{x}', max_epochs => 5, seed => 1,
                                             learning_rate => (point ->> 'learning_rate')::float8, prefetch => 'off',
                                             options => jsonb_build_object('cache', kept) || point - 'learning_rate');
            END LOOP;
            INSERT INTO took VALUES (format('grid of 8 points, cache %s', kept), several, extract(epoch FROM clock_timestamp() - start));

            start := clock_timestamp();
            PERFORM FROM corgipile_train('several', features => '{x}', max_epochs => 5, seed => 1, group_by => 'grp',
                                         options => jsonb_build_object('cache', kept), prefetch => 'off');
            several := extract(epoch FROM clock_timestamp() - start);
            start := clock_timestamp();
            FOR i IN 0 .. 9 LOOP
                PERFORM FROM corgipile_train(format('SELECT * FROM several WHERE grp = %s', i), features => '{x}', max_epochs => 5,
                                             seed => 1, options => jsonb_build_object('cache', kept), prefetch => 'off');
            END LOOP;
            INSERT INTO took VALUES (format('10 groups, cache %s', kept), several, extract(epoch FROM clock_timestamp() - start));
        END LOOP;
    END LOOP;
END
$$;

CREATE VIEW medians AS
SELECT what, percentile_cont(0.5) WITHIN GROUP (ORDER BY several) AS several,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY alone) AS alone,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY several / alone) AS ratio
  FROM took GROUP BY what;

SELECT what AS "300,000 x 28, logistic, 5 epochs", round(several::numeric, 3) AS "seconds of one call",
       round(alone::numeric, 3) AS "seconds of as many calls", round(ratio::numeric, 2) AS ratio
  FROM medians ORDER BY what;

\pset tuples_only on
\pset format unaligned
SELECT format('HEADLINE Training %s in one call, 300,000 rows x 28, 5 epochs | %s s | %s s, a call for each | %s',
              replace(replace(what, ', cache auto', ''), 'grid', 'a grid'), round(several::numeric, 3), round(alone::numeric, 3),
              round((1 / ratio)::numeric, 1))
  FROM medians WHERE what LIKE '%cache auto' ORDER BY what;
SELECT format('FIGURE one call over as many calls, %s, 300k x 28 | %s | <= 1', what, round(ratio::numeric, 3))
  FROM medians ORDER BY what;
