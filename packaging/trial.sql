-- A training that must succeed wherever the extension is installed: scripts/image and scripts/rpm run it.
\set QUIET on
\set ON_ERROR_STOP on
CREATE EXTENSION corgipile;
CREATE TABLE points AS SELECT i AS x, i > 1000 AS above FROM generate_series(1, 2000) AS i;
SELECT round(100 * accuracy) AS percent FROM corgipile_train('points', label => 'above', features => '{x}', max_epochs => 5, seed => 1)
 ORDER BY epoch DESC LIMIT 1 \gset
SELECT 1 / (:percent >= 95)::integer \g /dev/null
SELECT extversion FROM pg_extension WHERE extname = 'corgipile' \gset
\echo extension :extversion: trained with an accuracy of :percent %
