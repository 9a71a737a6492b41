-- What scripts/across-versions takes from version to version. Sums of random numbers would differ: rows are functions of their numbers.
CREATE ROLE alice LOGIN;
CREATE DATABASE models;
ALTER DATABASE models SET corgipile.max_buffer_memory = '8MB';
ALTER ROLE alice SET corgipile.cache_memory = '16MB';
ALTER ROLE alice IN DATABASE models SET corgipile.max_buffer_memory = '4MB';
\c models
SET client_min_messages = warning;
CREATE SCHEMA tools;
GRANT USAGE ON SCHEMA tools TO PUBLIC;
CREATE EXTENSION corgipile SCHEMA tools;
ALTER DATABASE models SET search_path = public, tools;
SET search_path = public, tools;
CREATE TYPE answer AS ENUM ('no', 'yes');
CREATE TABLE t AS
SELECT i AS id, (i % 2)::int AS label, (ARRAY['no', 'yes']::answer[])[1 + i % 2] AS mood, (ARRAY['ant', 'bee', 'cat'])[1 + i % 3] AS animal,
       i % 2 + sin(i * 7.0) AS a, CASE WHEN i % 11 > 0 THEN cos(i * 3.0)::real END AS b, (ARRAY['red', 'green', 'blue'])[1 + i % 3] AS colour,
       ARRAY[i % 2 + sin(i * 5.0), cos(i * 2.0), sin(i)]::real[] AS x, ARRAY[1, 2 + i % 5] AS k, ARRAY[i % 2 + sin(i), 1]::real[] AS v,
       timestamptz '2024-01-01 UTC' + i * interval '7 hours' AS created
  FROM generate_series(1, 600) AS i;
ALTER TABLE t ADD PRIMARY KEY (id);
GRANT SELECT ON t TO alice;
SELECT count(*) FROM corgipile_compress('t', 'compressed', features => '{x}', seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'logistic', features => '{x}', max_epochs => 3, seed => 1, standardize => true);
SELECT count(*) FROM corgipile_train('t', name => 'svm', model => 'svm', label => 'mood', features => '{x}', max_epochs => 3, seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'linear', model => 'linear', label => 'a', features => '{b,colour}', max_epochs => 3, seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'softmax', model => 'softmax', label => 'animal', features => '{a,b,created.month}', max_epochs => 3, seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'sparse', features => '{k,v}', max_epochs => 3, seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'mlp', model => 'mlp', features => '{a,colour,b}', hidden_layer_sizes => '{5,3}', max_epochs => 3, seed => 1);
SELECT count(*) FROM corgipile_train('t', name => 'logistic', features => '{x}', max_epochs => 2, seed => 2, standardize => true);
SELECT corgipile_deploy('logistic', 1), corgipile_grant('logistic', 'alice'), corgipile_comment('logistic', 'kept');
SET ROLE alice;
SELECT count(*) FROM corgipile_train('t', name => 'of alice', features => '{x}', max_epochs => 1, seed => 3);
