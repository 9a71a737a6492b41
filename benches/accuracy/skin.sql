-- The file of skin is sorted by label.

VACUUM (FREEZE, ANALYZE) skin_train;
SELECT format('CALL measure(%L, %L, %L, %L, %s)', 'skin', 'corgipile', 'skin_train', 'corgipile', seed)
  FROM generate_series(1, 10) seed \gexec
CALL measure('skin', 'no_shuffle', 'skin_train', 'no_shuffle', 1);
