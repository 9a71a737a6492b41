-- All that models say, bit for bit: PostgreSQL prints the shortest digits that are read as the same bits.
SET search_path = public, tools;
SET client_min_messages = warning;
SELECT * FROM corgipile.models ORDER BY model_id;
SELECT * FROM corgipile.training_history ORDER BY model_id, epoch;
SELECT last_value, is_called FROM corgipile.models_model_id_seq;
SELECT md5(string_agg(training_state::text, ',' ORDER BY model_id)) FROM corgipile.stored_models;
SELECT id, corgipile_predict('logistic', t), corgipile_predict_proba('logistic', t), corgipile_predict_label('svm', t), corgipile_predict('linear', t),
       corgipile_predict_proba('softmax', t), corgipile_predict_proba('sparse', t), corgipile_predict_proba('mlp', t) FROM t ORDER BY id;
SELECT * FROM corgipile_evaluate('mlp', 't');
SELECT md5(string_agg(c::text, E'\n' ORDER BY c::text)) FROM compressed AS c;
SELECT loss, accuracy FROM corgipile_train('compressed', features => '{x}', max_epochs => 2, seed => 5, name => 'passing');
SELECT corgipile_drop('passing');
SELECT setval('corgipile.models_model_id_seq', (SELECT max(model_id) FROM corgipile.stored_models));
SELECT extname, extversion, extnamespace::regnamespace FROM pg_extension WHERE extname = 'corgipile';
