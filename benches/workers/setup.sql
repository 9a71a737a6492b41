-- See run.

CREATE EXTENSION corgipile;

-- Narrow rows, whose label depends on all features, and wide ones, which lie out of line as they are.

\echo Making tables of :narrow rows x 28 and :wide rows x 2,000 features ...
SELECT setseed(0.5) \g /dev/null
CREATE TABLE narrow AS
SELECT (i * 2 / :narrow)::smallint AS label,
       ARRAY(SELECT (random() - 0.55 + i * 2 / :narrow * 0.1)::real FROM generate_series(1, 28)) AS features_v
  FROM generate_series(0, :narrow - 1) i;
CREATE TABLE wide (label smallint, features_v real[]);
ALTER TABLE wide ALTER features_v SET STORAGE EXTERNAL;
INSERT INTO wide
SELECT (i * 2 / :wide)::smallint,
       ARRAY(SELECT (random() - 0.51 + i * 2 / :wide * 0.02)::real FROM generate_series(1, 2000))
  FROM generate_series(0, :wide - 1) i;
VACUUM (FREEZE, ANALYZE) narrow, wide;
VACUUM (FREEZE) narrow, wide;
