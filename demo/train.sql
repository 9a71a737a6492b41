-- Trains one model with the defaults of corgipile, evaluates it on the test rows, and prints its R².

SELECT clock_timestamp() AS began \gset

SELECT max(model_id) AS model_id
  FROM corgipile_train('readings', model => 'linear', shuffle => :'shuffle', max_epochs => :passes, seed => 42) \gset

SELECT extract(epoch FROM clock_timestamp() - :'began') AS seconds \gset

INSERT INTO results
SELECT :'shuffle', :passes, r2.value, :seconds, coalesce(m.shuffle_bytes, 0)
  FROM corgipile_evaluate(:model_id, 'test_readings') AS r2, corgipile.models AS m
 WHERE r2.metric = 'r2' AND m.model_id = :model_id
RETURNING to_char(r2, '990.000');
