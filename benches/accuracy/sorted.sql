-- One data set (:set), sorted by label on disk, against copies of it in random order.

SELECT :'set' || '_train' AS train, :'set' || '_sorted' AS sorted \gset

CREATE TABLE :sorted AS SELECT * FROM :train ORDER BY label, ctid;
VACUUM (FREEZE, ANALYZE) :sorted;
CALL measure(:'set', 'no_shuffle', :'sorted', 'no_shuffle', 1);
SELECT format('CALL measure(%L, %L, %L, %L, %s)', :'set', 'corgipile', :'sorted', 'corgipile', seed)
  FROM generate_series(1, 5) seed \gexec
SELECT format('CALL measure_full_shuffle(%L, %s)', :'set', seed) FROM generate_series(1, 5) seed \gexec
