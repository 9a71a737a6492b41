-- What one does without corgipile: a copy of the table in random order. It takes time and disk, and is out of date with
-- the next INSERT.

SELECT setseed(0.5) \g /dev/null
SELECT clock_timestamp() AS began \gset

CREATE TABLE shuffled AS SELECT * FROM :"table" ORDER BY random();

CREATE TABLE copying AS SELECT extract(epoch FROM clock_timestamp() - :'began') AS seconds;
VACUUM (FREEZE, ANALYZE) shuffled;
