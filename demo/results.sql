-- The one table that this is all about.

\pset footer off
\pset title 'Accuracy on ':test' after 1, 3 and 20 epochs; what training on ':table' took'

SELECT model, strategy,
       to_char(max(accuracy) FILTER (WHERE epochs = 1), '0.0000') AS "1 epoch",
       to_char(max(accuracy) FILTER (WHERE epochs = 3), '0.0000') AS "3 epochs",
       to_char(max(accuracy) FILTER (WHERE epochs = 20), '0.0000') AS "20 epochs",
       to_char(max(seconds_per_epoch) FILTER (WHERE epochs = 20), '990.0000') AS "s per epoch",
       to_char(max(preparation_seconds) FILTER (WHERE epochs = 20)
               + CASE strategy WHEN 'full_shuffle' THEN (SELECT seconds FROM copying) ELSE 0 END, '990.00')
         AS "s to prepare",
       lpad(CASE strategy WHEN 'full_shuffle' THEN pg_size_pretty(pg_total_relation_size('shuffled')) ELSE '0' END, 10)
         AS "extra disk"
  FROM results
 GROUP BY model, strategy
 ORDER BY model, array_position(ARRAY['no_shuffle', 'block_only', 'corgipile', 'full_shuffle'], strategy);
