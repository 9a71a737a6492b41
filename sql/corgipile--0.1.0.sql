-- corgipile 0.1.0
\echo Use "CREATE EXTENSION corgipile" to load this file. \quit

CREATE SCHEMA corgipile;
GRANT USAGE ON SCHEMA corgipile TO PUBLIC;
COMMENT ON SCHEMA corgipile IS 'models trained by corgipile';

-- ---------------------------------------------------------------------------------------------------------------- models

CREATE TABLE corgipile.models (
    model_id            bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME corgipile.models_model_id_seq) CONSTRAINT models_pkey PRIMARY KEY,
    -- corgipile_predict() searches the index with this collation
    name                text COLLATE "C" CONSTRAINT models_name_key UNIQUE,
    owner               regrole NOT NULL,
    created_at          timestamptz NOT NULL DEFAULT now(),
    model               text NOT NULL,
    source              text NOT NULL,
    label               text NOT NULL,
    label_type          regtype NOT NULL,
    classes             text[] NOT NULL,
    features            text[] NOT NULL,
    array_features      boolean NOT NULL,
    hyperparameters     jsonb NOT NULL,
    weights             real[] NOT NULL,
    intercept           real NOT NULL,
    feature_mean        float8[],
    feature_scale       float8[],
    skipped             bigint NOT NULL,
    preparation_seconds float8 NOT NULL,
    history             json NOT NULL
);

COMMENT ON TABLE corgipile.models IS 'trained models; each is seen, used and deleted by its owner and the members of its owner';
COMMENT ON COLUMN corgipile.models.model IS 'logistic or svm';
COMMENT ON COLUMN corgipile.models.source IS 'table or query that it was trained on';
COMMENT ON COLUMN corgipile.models.classes IS 'label values, ascending; the first is the negative class';
COMMENT ON COLUMN corgipile.models.features IS 'names of the feature columns';
COMMENT ON COLUMN corgipile.models.array_features IS 'whether the features are the elements of one array column';
COMMENT ON COLUMN corgipile.models.weights IS 'one weight per feature, for standardized features if feature_mean is set';
COMMENT ON COLUMN corgipile.models.feature_mean IS 'mean of each feature, if the model was trained on standardized features';
COMMENT ON COLUMN corgipile.models.feature_scale IS 'standard deviation of each feature, 1 where it is constant';
COMMENT ON COLUMN corgipile.models.skipped IS 'rows left out in each epoch because they have NULLs';
COMMENT ON COLUMN corgipile.models.preparation_seconds IS 'time for the pass that learns mean and deviation';
COMMENT ON COLUMN corgipile.models.history IS 'what corgipile_train() returned, an object per epoch';

ALTER TABLE corgipile.models ENABLE ROW LEVEL SECURITY;
CREATE POLICY models_of_own_roles ON corgipile.models USING (pg_catalog.pg_has_role(owner::oid, 'USAGE'));
GRANT SELECT, DELETE ON corgipile.models TO PUBLIC;
-- without it nobody but a superuser could run pg_dump
GRANT SELECT ON SEQUENCE corgipile.models_model_id_seq TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('corgipile.models', '');
SELECT pg_catalog.pg_extension_config_dump('corgipile.models_model_id_seq', '');

CREATE VIEW corgipile.coefficients WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, c.feature, c.coefficient, c.mean, c.scale
      FROM corgipile.models AS m
     CROSS JOIN LATERAL (
            SELECT CASE WHEN m.array_features THEN pg_catalog.format('%s[%s]', m.features[1], i) ELSE m.features[i] END
                   AS feature,
                   m.weights[i] AS coefficient, m.feature_mean[i] AS mean, m.feature_scale[i] AS scale, i
              FROM pg_catalog.generate_subscripts(m.weights, 1) AS i
             UNION ALL
            SELECT '(intercept)', m.intercept, NULL, NULL, 0
            ) AS c
     ORDER BY m.model_id, c.i;
COMMENT ON VIEW corgipile.coefficients IS 'weights of the models by feature name';

CREATE VIEW corgipile.training_history WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, h.epoch, h.loss, h.accuracy, h.learning_rate, h.tuples, h.seconds
      FROM corgipile.models AS m
     CROSS JOIN LATERAL pg_catalog.json_to_recordset(m.history)
        AS h(epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8)
     ORDER BY m.model_id, h.epoch;
COMMENT ON VIEW corgipile.training_history IS 'what corgipile_train() returned for each epoch of each model';

GRANT SELECT ON corgipile.coefficients, corgipile.training_history TO PUBLIC;

-- --------------------------------------------------------------------------------------------------------------- training

CREATE FUNCTION corgipile_support(internal) RETURNS internal
LANGUAGE c STRICT
AS 'MODULE_PATHNAME', 'corgipile_support_wrapper';
COMMENT ON FUNCTION corgipile_support(internal) IS 'planner support: loads the library before a query is planned';

CREATE FUNCTION corgipile_train(
    source        text,
    model         text   DEFAULT 'logistic',
    label         text   DEFAULT 'label',
    features      text[] DEFAULT NULL,
    learning_rate float8 DEFAULT NULL,
    max_epochs    int    DEFAULT 20,
    shuffle       text   DEFAULT 'corgipile',
    block_size    text   DEFAULT 'auto',
    buffer_size   text   DEFAULT '10%',
    seed          bigint DEFAULT NULL,
    name          text   DEFAULT NULL,
    options       jsonb  DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb)
    IS 'trains a model with SGD and stores it; a row per epoch';

CREATE FUNCTION corgipile_shuffle(
    source      anyelement,
    seed        bigint DEFAULT NULL,
    block_size  text   DEFAULT 'auto',
    buffer_size text   DEFAULT '10%',
    shuffle     text   DEFAULT 'corgipile',
    epoch       int    DEFAULT 1
) RETURNS SETOF anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100000 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_shuffle_wrapper';
COMMENT ON FUNCTION corgipile_shuffle(anyelement, bigint, text, text, text, int)
    IS 'the rows of a table in CorgiPile order';

-- ------------------------------------------------------------------------------------------------------------- prediction

CREATE FUNCTION corgipile_predict(model_id bigint, features anyarray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_wrapper';

CREATE FUNCTION corgipile_predict(name text, features anyarray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_name_wrapper';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anyarray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_wrapper';

CREATE FUNCTION corgipile_predict_label(name text, features anyarray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_name_wrapper';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anyarray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_wrapper';

CREATE FUNCTION corgipile_predict_proba(name text, features anyarray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_name_wrapper';

CREATE FUNCTION corgipile_evaluate(model_id bigint, source text) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';

CREATE FUNCTION corgipile_evaluate(name text, source text) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_by_name_wrapper';

COMMENT ON FUNCTION corgipile_predict(bigint, anyarray) IS 'the label that a model gives, as a number';
COMMENT ON FUNCTION corgipile_predict(text, anyarray) IS 'the label that a model gives, as a number';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray) IS 'the label that a model gives, as text';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray) IS 'the label that a model gives, as text';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray) IS 'the probabilities of the two labels, in their ascending order';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray) IS 'the probabilities of the two labels, in their ascending order';
COMMENT ON FUNCTION corgipile_evaluate(bigint, text) IS 'accuracy and loss of a model on other rows';
COMMENT ON FUNCTION corgipile_evaluate(text, text) IS 'accuracy and loss of a model on other rows';
