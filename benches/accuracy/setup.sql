-- What the other scripts of benches/accuracy need.

CREATE EXTENSION corgipile;

CREATE TABLE results (data text, model text, strategy text, seed int, train_accuracy float8, test_accuracy float8);

-- Trains both models on `source` and measures them on `data`_train and `data`_test.
CREATE PROCEDURE measure(data text, strategy text, source text, shuffle text, seed int) LANGUAGE plpgsql AS $$
DECLARE
  kind text;
  id bigint;
BEGIN
  FOREACH kind IN ARRAY ARRAY['logistic', 'svm'] LOOP
    SELECT max(t.model_id) INTO STRICT id
      FROM corgipile_train(source, model => kind, learning_rate => 0.001, max_epochs => 20, shuffle => shuffle,
                           buffer_size => '10%', -- the papers', also of tables that the default holds as a whole
                           seed => seed, options => '{"standardize": true}') t;
    INSERT INTO results
    SELECT data, kind, strategy, seed, train.value, test.value
      FROM corgipile_evaluate(id, data || '_train') train, corgipile_evaluate(id, data || '_test') test
     WHERE train.metric = 'accuracy' AND test.metric = 'accuracy';
  END LOOP;
END $$;

-- The same on a copy of `data`_train in random order, a full shuffle.
CREATE PROCEDURE measure_full_shuffle(data text, seed int) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM setseed(seed / 10.0);
  EXECUTE format('CREATE TABLE shuffled AS SELECT * FROM %I ORDER BY random()', data || '_train');
  CALL measure(data, 'full_shuffle', 'shuffled', 'no_shuffle', seed);
  DROP TABLE shuffled;
END $$;
