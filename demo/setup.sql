-- :rows rows, sorted by the value to predict: the worst order for SGD. And 50,000 other rows, to test the models on.

CREATE EXTENSION corgipile;

SELECT setseed(0.5) \g /dev/null

-- The label is the sum of the features, each times its weight from 1 to 20, and noise.
CREATE FUNCTION draw(rows int) RETURNS TABLE (label real, features real[]) LANGUAGE sql AS $$
  SELECT (SELECT sum(feature * weight) FROM unnest(features) WITH ORDINALITY AS _(feature, weight))
           + 20 * (random() + random() + random()),
         features
    FROM (SELECT ARRAY(SELECT (2 * (random() + random() + random()))::real FROM generate_series(1, 20) WHERE i > 0) AS features
            FROM generate_series(1, rows) AS i OFFSET 0) AS drawn
$$;

CREATE TABLE readings AS SELECT * FROM draw(:rows) ORDER BY label;
CREATE TABLE test_readings AS SELECT * FROM draw(50000);
VACUUM (FREEZE, ANALYZE) readings, test_readings;

CREATE TABLE results (
  shuffle text,
  passes int,
  r2 float8,
  seconds float8,
  bytes bigint,
  PRIMARY KEY (shuffle, passes)
);
