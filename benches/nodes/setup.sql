-- See run.

CREATE EXTENSION corgipile;
CREATE EXTENSION postgres_fdw;
CREATE EXTENSION dblink;

-- Narrow rows, whose label depends on all features, and wide ones, which lie out of line as they are.

\echo Making tables of :narrow rows x 28 and :wide rows x 2,000 features ...
SELECT setseed(0.5) \g /dev/null
CREATE TABLE narrow (id int, label smallint, features_v real[]);
INSERT INTO narrow
SELECT i, i % 2, ARRAY(SELECT (random() - 0.55 + i % 2 * 0.1)::real FROM generate_series(1, 28))
  FROM generate_series(0, :narrow - 1) i;
CREATE TABLE wide (id int, label smallint, features_v real[]);
ALTER TABLE wide ALTER features_v SET STORAGE EXTERNAL;
INSERT INTO wide
SELECT i, i % 2, ARRAY(SELECT (random() - 0.51 + i % 2 * 0.02)::real FROM generate_series(1, 2000))
  FROM generate_series(0, :wide - 1) i;

-- Each of them in one part, in two and in three, each part on a server of its own.

SELECT current_setting('unix_socket_directories') AS socket, current_setting('port') AS port, current_database() AS database \gset
SELECT format('CREATE SERVER s%s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, fetch_size ''10000'')',
              i, :'socket', :'port', :'database'),
       format('CREATE USER MAPPING FOR CURRENT_USER SERVER s%s', i)
  FROM generate_series(1, 3) i \gexec
SELECT format('CREATE TABLE %s_%s_%s (id int, label smallint, features_v real[])', t, k, i),
       format('ALTER TABLE %s_%s_%s ALTER features_v SET STORAGE EXTERNAL', t, k, i),
       format('INSERT INTO %s_%s_%s SELECT * FROM %s WHERE id %% %s = %s', t, k, i, t, k, i - 1),
       format('CREATE FOREIGN TABLE far_%s_%s_%s (id int, label smallint, features_v real[]) SERVER s%s OPTIONS (table_name ''%s_%s_%s'')',
              t, k, i, i, t, k, i)
  FROM unnest('{narrow,wide}'::text[]) t, generate_series(1, 3) k, generate_series(1, k) i \gexec
SELECT format('CREATE VIEW far_%s_%s AS %s', t, k, string_agg(format('TABLE far_%s_%s_%s', t, k, i), ' UNION ALL '))
  FROM unnest('{narrow,wide}'::text[]) t, generate_series(1, 3) k, generate_series(1, k) i GROUP BY t, k \gexec
VACUUM (FREEZE, ANALYZE);
