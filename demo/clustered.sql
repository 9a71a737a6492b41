-- A table as it lies on disk when the classes were loaded one after the other: first all rows of class 0, then all of
-- class 1. The classes differ a little in the mean of every feature. The means are far from zero, as in most real tables,
-- so that the model needs its intercept: what SGD gets wrong first when it sees one class for long.

SELECT setseed(0.5) \g /dev/null

CREATE TABLE clustered AS
SELECT (i / 200000)::smallint AS label,
       ARRAY(SELECT (1 + i / 200000 * effect + 2 * (random() + random() + random() - 1.5))::real
               FROM unnest(effects) effect) AS features_v
  FROM generate_series(0, 399999) i,
       (SELECT array_agg(0.225 * (1 + j % 3) * CASE j % 4 WHEN 3 THEN -1 ELSE 1 END ORDER BY j)
          FROM generate_series(0, 27) j) AS of_class_1(effects);

VACUUM (FREEZE, ANALYZE) clustered;
