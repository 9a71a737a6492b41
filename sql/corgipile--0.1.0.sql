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
    created_at          timestamptz NOT NULL DEFAULT pg_catalog.now(),
    model               text NOT NULL,
    source              text NOT NULL,
    label               text NOT NULL,
    label_type          regtype NOT NULL,
    classes             text[],
    features            text[] NOT NULL,
    feature_kind        text NOT NULL,
    categories          jsonb,
    index_base          int,
    hyperparameters     jsonb NOT NULL,
    weights             real[] NOT NULL,
    intercepts          real[] NOT NULL,
    feature_mean        float8[],
    feature_scale       float8[],
    skipped             bigint NOT NULL,
    preparation_seconds float8 NOT NULL,
    shuffle_bytes       bigint,
    history             json NOT NULL
);

COMMENT ON TABLE corgipile.models IS 'trained models; each is seen, used and deleted by its owner and the members of its owner';
COMMENT ON COLUMN corgipile.models.model IS 'logistic, svm, linear or softmax';
COMMENT ON COLUMN corgipile.models.source IS 'table or query that it was trained on';
COMMENT ON COLUMN corgipile.models.label_type IS 'type of the label column';
COMMENT ON COLUMN corgipile.models.classes IS 'label values, ascending; of two, the first is the negative class; NULL for linear';
COMMENT ON COLUMN corgipile.models.features IS 'names of the feature columns; for sparse ones, that of the indices and that of the values';
COMMENT ON COLUMN corgipile.models.feature_kind IS 'array: elements of one array column; columns: any number of columns; sparse: an array of indices and one of values';
COMMENT ON COLUMN corgipile.models.categories IS 'for each column of categories, its values in the order of their weights';
COMMENT ON COLUMN corgipile.models.index_base IS 'the smallest index of sparse features, 0 or 1';
COMMENT ON COLUMN corgipile.models.weights IS 'one weight per feature, for standardized features if feature_mean is set; for softmax, class after class';
COMMENT ON COLUMN corgipile.models.intercepts IS 'the intercept; for softmax, one per class';
COMMENT ON COLUMN corgipile.models.feature_mean IS 'mean of each feature, if the model was trained on standardized features';
COMMENT ON COLUMN corgipile.models.feature_scale IS 'standard deviation of each feature, 1 where it is constant';
COMMENT ON COLUMN corgipile.models.skipped IS 'rows left out in each epoch because they have NULLs';
COMMENT ON COLUMN corgipile.models.preparation_seconds IS 'time for the pass before the first epoch that learns mean and deviation, classes and categories';
COMMENT ON COLUMN corgipile.models.shuffle_bytes IS 'space that the copy of a full shuffle took; NULL without one';
COMMENT ON COLUMN corgipile.models.history IS 'what corgipile_train() returned, an object per epoch';

ALTER TABLE corgipile.models ENABLE ROW LEVEL SECURITY;
CREATE POLICY models_of_own_roles ON corgipile.models USING (pg_catalog.pg_has_role(owner::pg_catalog.oid, 'USAGE'));
GRANT SELECT, DELETE ON corgipile.models TO PUBLIC;
-- without it nobody but a superuser could run pg_dump
GRANT SELECT ON SEQUENCE corgipile.models_model_id_seq TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('corgipile.models', '');
SELECT pg_catalog.pg_extension_config_dump('corgipile.models_model_id_seq', '');

CREATE VIEW corgipile.coefficients WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, c.class, f.feature,
           CASE WHEN f.place OPERATOR(pg_catalog.=) 0 THEN a.intercepts[c.output]
                ELSE a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) f.place]
           END AS coefficient,
           a.mean[f.place] AS mean, a.scale[f.place] AS scale
      FROM corgipile.models AS m
     -- Slices are copies in memory: a subscript of the stored array would read all of it for each weight.
     CROSS JOIN LATERAL (
            SELECT m.weights[:] AS weights, m.intercepts[:] AS intercepts,
                   m.feature_mean[:] AS mean, m.feature_scale[:] AS scale,
                   pg_catalog.array_length(m.weights, 1) OPERATOR(pg_catalog./) pg_catalog.array_length(m.intercepts, 1) AS dim
            OFFSET 0
            ) AS a
     CROSS JOIN LATERAL (
            SELECT NULL::pg_catalog.text, 1 WHERE m.model OPERATOR(pg_catalog.<>) 'softmax'
             UNION ALL
            SELECT u.class, u.output FROM pg_catalog.unnest(m.classes) WITH ORDINALITY AS u(class, output)
             WHERE m.model OPERATOR(pg_catalog.=) 'softmax'
            ) AS c(class, output)
     CROSS JOIN LATERAL (
            SELECT '(intercept)', 0
             UNION ALL
            SELECT pg_catalog.format('%s[%s]', m.features[1], i), i FROM pg_catalog.generate_series(1, a.dim) AS i
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'array'
             UNION ALL
            SELECT pg_catalog.format('%s[%s]', m.features[2], (i OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.+) m.index_base), i
              FROM pg_catalog.generate_series(1, a.dim) AS i
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'sparse'
             UNION ALL
            SELECT u.name OPERATOR(pg_catalog.||) COALESCE('=' OPERATOR(pg_catalog.||) v.value, ''),
                   pg_catalog.row_number() OVER (ORDER BY u.i, v.j)
              FROM pg_catalog.unnest(m.features) WITH ORDINALITY AS u(name, i)
              LEFT JOIN LATERAL pg_catalog.jsonb_array_elements_text(m.categories OPERATOR(pg_catalog.->) u.name)
                   WITH ORDINALITY AS v(value, j)
                ON true
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'columns'
            ) AS f(feature, place)
     ORDER BY m.model_id, c.output, f.place;
COMMENT ON VIEW corgipile.coefficients IS 'weights of the models by feature name; class is set for softmax';

CREATE VIEW corgipile.training_history WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, h.epoch, h.loss, h.accuracy, h.learning_rate, h.tuples, h.seconds, h.r2, h.shuffle_seconds
      FROM corgipile.models AS m
     CROSS JOIN LATERAL pg_catalog.json_to_recordset(m.history)
        AS h(epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8,
             shuffle_seconds float8)
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
    options       jsonb  DEFAULT NULL,
    loader        text   DEFAULT 'auto',
    workers       int    DEFAULT 1
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8,
    r2 float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text,
                             int)
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

CREATE FUNCTION corgipile_shuffle_order(
    strategy         text,
    tuples           bigint,
    tuples_per_block int,
    buffer_tuples    bigint,
    seed             bigint,
    epoch            int DEFAULT 1
) RETURNS TABLE ("position" bigint, tuple bigint)
LANGUAGE c IMMUTABLE PARALLEL SAFE COST 1000 ROWS 1000
AS 'MODULE_PATHNAME', 'corgipile_shuffle_order_wrapper';
COMMENT ON FUNCTION corgipile_shuffle_order(text, bigint, int, bigint, bigint, int)
    IS 'the numbers of a table''s tuples in the order in which SGD sees them';

CREATE FUNCTION corgipile_cluster_factor(
    source     text,
    label      text   DEFAULT 'label',
    features   text[] DEFAULT NULL,
    block_size text   DEFAULT 'auto',
    model      text   DEFAULT 'logistic'
) RETURNS float8
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_cluster_factor_wrapper';
COMMENT ON FUNCTION corgipile_cluster_factor(text, text, text[], text, text)
    IS 'how clustered a table is: about 1 if it is shuffled, up to the tuples of a block if it is sorted';

CREATE FUNCTION corgipile_io_profile(
    relation       regclass,
    max_block_size text   DEFAULT '50MB',
    max_read       text   DEFAULT '1GB',
    max_seconds    float8 DEFAULT 10
) RETURNS TABLE (
    block_size text, random_mb_per_s float8, sequential_mb_per_s float8, ratio float8, recommended boolean
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 14
AS 'MODULE_PATHNAME', 'corgipile_io_profile_wrapper';
COMMENT ON FUNCTION corgipile_io_profile(regclass, text, text, float8)
    IS 'how fast random blocks of a table are read from disk, over block sizes, against the table in sequence';

-- ------------------------------------------------------------------------------------------------------------- prediction

CREATE FUNCTION corgipile_predict(model_id bigint, features anyarray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_wrapper';

CREATE FUNCTION corgipile_predict(name text, features anyarray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_name_wrapper';

CREATE FUNCTION corgipile_predict(model_id bigint, indices anyarray, "values" anycompatiblearray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_wrapper';

CREATE FUNCTION corgipile_predict(name text, indices anyarray, "values" anycompatiblearray) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_by_name_wrapper';

CREATE FUNCTION corgipile_predict(model_id bigint, "row" record) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_wrapper';

CREATE FUNCTION corgipile_predict(name text, "row" record) RETURNS float8
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_name_wrapper';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anyarray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_wrapper';

CREATE FUNCTION corgipile_predict_label(name text, features anyarray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_name_wrapper';

CREATE FUNCTION corgipile_predict_label(model_id bigint, indices anyarray, "values" anycompatiblearray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_wrapper';

CREATE FUNCTION corgipile_predict_label(name text, indices anyarray, "values" anycompatiblearray) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_by_name_wrapper';

CREATE FUNCTION corgipile_predict_label(model_id bigint, "row" record) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_wrapper';

CREATE FUNCTION corgipile_predict_label(name text, "row" record) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_name_wrapper';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anyarray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_wrapper';

CREATE FUNCTION corgipile_predict_proba(name text, features anyarray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_name_wrapper';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, indices anyarray, "values" anycompatiblearray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_wrapper';

CREATE FUNCTION corgipile_predict_proba(name text, indices anyarray, "values" anycompatiblearray) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_by_name_wrapper';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, "row" record) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_wrapper';

CREATE FUNCTION corgipile_predict_proba(name text, "row" record) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_name_wrapper';

CREATE FUNCTION corgipile_evaluate(model_id bigint, source text) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';

CREATE FUNCTION corgipile_evaluate(name text, source text) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_by_name_wrapper';

COMMENT ON FUNCTION corgipile_predict(bigint, anyarray) IS 'the label that a model gives, as a number; of a linear model, the value';
COMMENT ON FUNCTION corgipile_predict(text, anyarray) IS 'the label that a model gives, as a number; of a linear model, the value';
COMMENT ON FUNCTION corgipile_predict(bigint, anyarray, anycompatiblearray) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';
COMMENT ON FUNCTION corgipile_predict(text, anyarray, anycompatiblearray) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';
COMMENT ON FUNCTION corgipile_predict(bigint, record) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';
COMMENT ON FUNCTION corgipile_predict(text, record) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray) IS 'the label that a model gives, as text';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray) IS 'the label that a model gives, as text';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray, anycompatiblearray) IS 'the label that a model gives, as text, for sparse features';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray, anycompatiblearray) IS 'the label that a model gives, as text, for sparse features';
COMMENT ON FUNCTION corgipile_predict_label(bigint, record) IS 'the label that a model gives, as text, for the columns of a row';
COMMENT ON FUNCTION corgipile_predict_label(text, record) IS 'the label that a model gives, as text, for the columns of a row';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray) IS 'the probabilities of the labels, in their ascending order';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray) IS 'the probabilities of the labels, in their ascending order';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray, anycompatiblearray) IS 'the probabilities of the labels, in their ascending order, for sparse features';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray, anycompatiblearray) IS 'the probabilities of the labels, in their ascending order, for sparse features';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, record) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';
COMMENT ON FUNCTION corgipile_predict_proba(text, record) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';
COMMENT ON FUNCTION corgipile_evaluate(bigint, text) IS 'accuracy (R2 of a linear model) and loss of a model on other rows';
COMMENT ON FUNCTION corgipile_evaluate(text, text) IS 'accuracy (R2 of a linear model) and loss of a model on other rows';

-- -------------------------------------------------------------------------------------------------- training by aggregate

CREATE TYPE corgipile.sgd_state;

CREATE FUNCTION corgipile.sgd_state_in(cstring) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_state_in_wrapper';

CREATE FUNCTION corgipile.sgd_state_out(corgipile.sgd_state) RETURNS cstring
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_state_out_wrapper';

CREATE FUNCTION corgipile.sgd_state_recv(internal) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_state_recv_wrapper';

CREATE FUNCTION corgipile.sgd_state_send(corgipile.sgd_state) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_state_send_wrapper';

-- external: floats do not compress
CREATE TYPE corgipile.sgd_state (
    INPUT = corgipile.sgd_state_in, OUTPUT = corgipile.sgd_state_out,
    RECEIVE = corgipile.sgd_state_recv, SEND = corgipile.sgd_state_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE corgipile.sgd_state IS 'a model in training, between or within epochs of corgipile_sgd_agg()';

CREATE FUNCTION corgipile_sgd_init(
    model         text,
    dimensions    int,
    learning_rate float8  DEFAULT NULL,
    options       jsonb   DEFAULT NULL,
    classes       int     DEFAULT NULL,
    sparse        boolean DEFAULT false
) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_init_wrapper';
COMMENT ON FUNCTION corgipile_sgd_init(text, int, float8, jsonb, int, boolean)
    IS 'the state before the first epoch of corgipile_sgd_agg()';

CREATE FUNCTION corgipile.sgd_transition(corgipile.sgd_state, corgipile.sgd_state, float8, anyarray)
RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_sgd_transition_wrapper';

CREATE FUNCTION corgipile.sgd_transition(corgipile.sgd_state, corgipile.sgd_state, float8, anyarray, anycompatiblearray)
RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_sgd_transition_sparse_wrapper';

CREATE FUNCTION corgipile.sgd_combine(corgipile.sgd_state, corgipile.sgd_state) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME', 'corgipile_sgd_combine_wrapper';

CREATE FUNCTION corgipile.sgd_final(corgipile.sgd_state) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME', 'corgipile_sgd_final_wrapper';

CREATE AGGREGATE corgipile_sgd_agg(state corgipile.sgd_state, label float8, features anyarray) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg(corgipile.sgd_state, float8, anyarray)
    IS 'the state one epoch of SGD later, having learned from every row';

CREATE AGGREGATE corgipile_sgd_agg(
    state corgipile.sgd_state, label float8, indices anyarray, "values" anycompatiblearray
) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg(corgipile.sgd_state, float8, anyarray, anycompatiblearray)
    IS 'the state one epoch of SGD later, having learned from every sparse row';

CREATE FUNCTION corgipile_sgd_report(
    state corgipile.sgd_state,
    OUT epoch int, OUT loss float8, OUT accuracy float8, OUT learning_rate float8, OUT tuples bigint, OUT r2 float8,
    OUT skipped bigint
)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_report_wrapper';
COMMENT ON FUNCTION corgipile_sgd_report(corgipile.sgd_state) IS 'how the last epoch of a state went';

CREATE FUNCTION corgipile_sgd_weights(state corgipile.sgd_state) RETURNS real[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_weights_wrapper';
COMMENT ON FUNCTION corgipile_sgd_weights(corgipile.sgd_state) IS 'the weights of a state, class by class';

CREATE FUNCTION corgipile_sgd_intercepts(state corgipile.sgd_state) RETURNS real[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_intercepts_wrapper';
COMMENT ON FUNCTION corgipile_sgd_intercepts(corgipile.sgd_state) IS 'the intercepts of a state, one per class or only one';

CREATE FUNCTION corgipile_train_uda(
    source        text,
    model         text   DEFAULT 'logistic',
    label         text   DEFAULT 'label',
    features      text[] DEFAULT NULL,
    learning_rate float8 DEFAULT NULL,
    max_epochs    int    DEFAULT 20,
    shuffle       text   DEFAULT 'no_shuffle',
    seed          bigint DEFAULT NULL,
    name          text   DEFAULT NULL,
    options       jsonb  DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_train_uda_wrapper';
COMMENT ON FUNCTION corgipile_train_uda(text, text, text, text[], float8, int, text, bigint, text, jsonb)
    IS 'trains a model by corgipile_sgd_agg(), a query per epoch, and stores it; a row per epoch';
