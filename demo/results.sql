-- The table and the plot at the end.

CREATE TEMP VIEW orders AS
SELECT * FROM (VALUES (1, 'no_shuffle',   'N', 'N  no shuffle: the order of the table'),
                      (2, 'block_only',   'B', 'B  block only: random blocks'),
                      (3, 'corgipile',    'C', 'C  corgipile: random blocks, shuffled rows'),
                      (4, 'shuffle_once', 'F', 'F  full shuffle: a shuffled copy')) AS _(place, shuffle, letter, name);

\pset footer off

SELECT name AS "order of the rows",
       to_char(max(r2) FILTER (WHERE passes = 1), '990.000') AS "R², 1 pass",
       to_char(max(seconds) FILTER (WHERE passes = 1), '990.0') AS seconds,
       min(passes) FILTER (WHERE converged) AS "passes to converge",
       to_char((array_agg(seconds ORDER BY passes) FILTER (WHERE converged))[1], '990.0') AS seconds,
       pg_size_pretty(max(bytes)) AS "extra disk"
  FROM (SELECT *, r2 > max(r2) OVER () - 0.001 AS converged FROM results) AS results JOIN orders USING (shuffle)
 GROUP BY place, name
 ORDER BY place;

\echo A model has converged when its R² is within 0.001 of the best of all.
\echo
\pset tuples_only on
\pset format unaligned

-- A line for each tenth of R², and in it four places for each number of passes.
SELECT CASE y WHEN 10 THEN 'R²   1.0' WHEN -1 THEN ' below 0' ELSE to_char(y / 10.0, '99990.0') END
       || ' |' || string_agg('  ' || places, '' ORDER BY passes)
  FROM (SELECT y, passes, string_agg(CASE WHEN y > 0 AND r2 >= y / 10.0 - 0.05 OR y < 0 AND r2 < -0.05 THEN letter ELSE ' ' END,
                                     '' ORDER BY place) AS places
          FROM generate_series(-1, 10) AS y, results JOIN orders USING (shuffle)
         WHERE y <> 0
         GROUP BY y, passes) AS cells
 GROUP BY y
 ORDER BY y DESC;
