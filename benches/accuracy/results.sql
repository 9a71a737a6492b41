-- The two tables, and whether their bounds hold (table verdicts).

\pset footer off

CREATE TABLE verdicts AS
WITH bounds (model, bound) AS (VALUES ('logistic', 0.915), ('svm', 0.924))
SELECT 'skin' AS data, model, bool_and(test_accuracy >= bound) AND count(*) = 10 AS passed
  FROM results JOIN bounds USING (model) WHERE data = 'skin' AND strategy = 'corgipile' GROUP BY model
UNION ALL
SELECT data, model, abs(avg(train_accuracy) FILTER (WHERE strategy = 'corgipile')
                        - avg(train_accuracy) FILTER (WHERE strategy = 'full_shuffle')) <= 0.005
  FROM results WHERE data <> 'skin' GROUP BY data, model;

\pset title 'skin, in the order of its file: test accuracy of 10 seeds (bounds for each: logistic 0.915, svm 0.924)'
SELECT r.model,
       to_char(min(test_accuracy) FILTER (WHERE strategy = 'corgipile'), '0.0000') AS "corgipile min",
       to_char(avg(test_accuracy) FILTER (WHERE strategy = 'corgipile'), '0.0000') AS mean,
       to_char(max(test_accuracy) FILTER (WHERE strategy = 'corgipile'), '0.0000') AS max,
       to_char(max(test_accuracy) FILTER (WHERE strategy = 'no_shuffle'), '0.0000') AS no_shuffle,
       CASE WHEN bool_and(passed) THEN 'pass' ELSE 'FAIL' END AS verdict
  FROM results r JOIN verdicts v USING (data, model) WHERE data = 'skin' GROUP BY r.model ORDER BY r.model;

\pset title 'Sorted by label: accuracy, mean of 5 seeds (bound: training accuracy within 0.005 of the full shuffle)'
SELECT data, r.model,
       to_char(avg(train_accuracy) FILTER (WHERE strategy = 'corgipile'), '0.0000') AS "train: corgipile",
       to_char(avg(train_accuracy) FILTER (WHERE strategy = 'full_shuffle'), '0.0000') AS "full shuffle",
       to_char(avg(train_accuracy) FILTER (WHERE strategy = 'corgipile')
               - avg(train_accuracy) FILTER (WHERE strategy = 'full_shuffle'), 'S0.0000') AS difference,
       to_char(avg(train_accuracy) FILTER (WHERE strategy = 'no_shuffle'), '0.0000') AS no_shuffle,
       to_char(avg(test_accuracy) FILTER (WHERE strategy = 'corgipile'), '0.0000') AS "test: corgipile",
       to_char(avg(test_accuracy) FILTER (WHERE strategy = 'full_shuffle'), '0.0000') AS "full shuffle",
       to_char(avg(test_accuracy) FILTER (WHERE strategy = 'no_shuffle'), '0.0000') AS no_shuffle,
       CASE WHEN bool_and(passed) THEN 'pass' ELSE 'FAIL' END AS verdict
  FROM results r JOIN verdicts v USING (data, model) WHERE data <> 'skin' GROUP BY data, r.model ORDER BY data, r.model;
