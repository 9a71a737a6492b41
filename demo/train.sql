-- Trains one model and measures it. Training is deterministic: with the same seed, :epochs epochs of it are the first
-- :epochs of any longer one.

SELECT max(model_id) AS model_id, avg(seconds) AS seconds
  FROM corgipile_train(:'source', model => :'model', learning_rate => 0.001, max_epochs => :epochs,
                       shuffle => :'shuffle', seed => 42, options => :'options') \gset

INSERT INTO results
SELECT :'model', :'strategy', :epochs, accuracy.value, :'seconds', coalesce(m.preparation_seconds, 0)
  FROM corgipile_evaluate(:model_id, :'test') accuracy, corgipile.models m
 WHERE accuracy.metric = 'accuracy' AND m.model_id = :model_id;
