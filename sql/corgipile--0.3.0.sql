-- corgipile 0.3.0
\echo Use "CREATE EXTENSION corgipile" to load this file. \quit

-- This runs as superuser, and others may create in the schema it installs into, which is searched right behind pg_catalog. An
-- operator or function of theirs is found if its argument types fit better: all that is called here is qualified, and `make
-- lint` checks it. Types have one meaning, pg_catalog's.

CREATE SCHEMA corgipile;
GRANT USAGE ON SCHEMA corgipile TO PUBLIC;
COMMENT ON SCHEMA corgipile IS 'models trained by corgipile';

-- ---------------------------------------------------------------------------------------------------------------- models

-- Users see corgipile.models, a view of it: its columns are what the documents promise, this table may get others.
CREATE TABLE corgipile.stored_models (
    model_id            bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME corgipile.models_model_id_seq) CONSTRAINT models_pkey PRIMARY KEY,
    -- corgipile_predict() searches the index with this collation
    name                text COLLATE "C",
    version             int NOT NULL DEFAULT 1,
    deployed            boolean NOT NULL DEFAULT false,
    -- of versions that were dropped or renamed: kept beside the latest that is left
    last_version        int,
    owner               regrole NOT NULL,
    granted_to          regrole[] NOT NULL DEFAULT '{}',
    created_at          timestamptz NOT NULL DEFAULT pg_catalog.now(),
    comment             text,
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
    feature_fill        real[],
    skipped             bigint NOT NULL,
    imputed             bigint,
    preparation_seconds float8 NOT NULL,
    shuffle_bytes       bigint,
    history             json NOT NULL,
    hidden_layers       int[],
    activation          text,
    output              text,
    training_state      bytea,
    identity            uuid NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
    published           boolean NOT NULL DEFAULT false,
    calibration_rows    bigint,
    calibration_scores  float8[],
    profile             jsonb,
    sigmoid_slopes      float8[],
    sigmoid_offsets     float8[],
    CONSTRAINT models_name_version_key UNIQUE (name, owner, version),
    -- per owner: nobody can keep a model away by giving its identity to one of their own
    CONSTRAINT models_identity_key UNIQUE (identity, owner)
);
CREATE UNIQUE INDEX models_deployed_key ON corgipile.stored_models (name, owner) WHERE deployed;

COMMENT ON TABLE corgipile.stored_models IS 'trained models; see corgipile.models';
COMMENT ON COLUMN corgipile.stored_models.last_version IS 'the greatest version of the name that is no longer there, if it was greater';
COMMENT ON COLUMN corgipile.stored_models.training_state IS 'what corgipile_train() goes on from with warm_start; NULL if it cannot';

ALTER TABLE corgipile.stored_models ENABLE ROW LEVEL SECURITY;
CREATE POLICY models_of_own_roles ON corgipile.stored_models USING (pg_catalog.pg_has_role(owner::pg_catalog.oid, 'USAGE'));
CREATE POLICY models_granted ON corgipile.stored_models FOR SELECT
    USING (EXISTS (SELECT FROM pg_catalog.unnest(granted_to) AS g(role)
                    WHERE g.role::pg_catalog.oid OPERATOR(pg_catalog.=) 0::pg_catalog.oid
                       OR pg_catalog.pg_has_role(g.role::pg_catalog.oid, 'USAGE')));
GRANT SELECT, DELETE ON corgipile.stored_models TO PUBLIC;
-- without it nobody but a superuser could run pg_dump
GRANT SELECT ON SEQUENCE corgipile.models_model_id_seq TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('corgipile.stored_models', '');
SELECT pg_catalog.pg_extension_config_dump('corgipile.models_model_id_seq', '');

CREATE VIEW corgipile.models WITH (security_invoker = true) AS
    SELECT model_id, name, version, deployed, owner, granted_to, created_at, comment, model, source, label, label_type, classes,
           features, feature_kind, categories, index_base, hyperparameters, weights, intercepts, feature_mean, feature_scale,
           skipped, preparation_seconds, shuffle_bytes, history, hidden_layers, activation, output, feature_fill, imputed,
           identity, published, calibration_rows, calibration_scores, profile,
           sigmoid_slopes, sigmoid_offsets
      FROM corgipile.stored_models;

COMMENT ON VIEW corgipile.models IS 'trained models; each is seen and used by its owner, by members of the owner, and by those to whom it was granted';
COMMENT ON COLUMN corgipile.models.model_id IS 'primary key';
COMMENT ON COLUMN corgipile.models.name IS 'perhaps NULL';
COMMENT ON COLUMN corgipile.models.version IS 'counts the models of an owner that have this name, from 1';
COMMENT ON COLUMN corgipile.models.deployed IS 'the name means this version, and not the latest';
COMMENT ON COLUMN corgipile.models.owner IS 'the role that trained it';
COMMENT ON COLUMN corgipile.models.granted_to IS 'roles that may see and use the model; - is everybody';
COMMENT ON COLUMN corgipile.models.created_at IS 'start of the transaction that trained it';
COMMENT ON COLUMN corgipile.models.comment IS 'what corgipile_comment() said of it';
COMMENT ON COLUMN corgipile.models.model IS 'logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp or mlp_regression';
COMMENT ON COLUMN corgipile.models.source IS 'table or query that it was trained on, as given';
COMMENT ON COLUMN corgipile.models.label IS 'the label''s column';
COMMENT ON COLUMN corgipile.models.label_type IS 'type of the label''s column';
COMMENT ON COLUMN corgipile.models.classes IS 'label values, ascending; of two, the first is the negative class; NULL for models that predict numbers';
COMMENT ON COLUMN corgipile.models.features IS 'names of the feature columns; for sparse ones, that of the indices and that of the values, or that of the sparse vectors';
COMMENT ON COLUMN corgipile.models.feature_kind IS 'array: elements of one column of arrays or vectors; columns: any number of columns; sparse: an array of indices and one of values, or sparse vectors';
COMMENT ON COLUMN corgipile.models.categories IS 'for each column of categories, its values in the order of their weights, null for the category of NULLs: {"site": ["harbour", "mine", null]}; or, of hashed columns, the number of buckets that they share: {"url": {"buckets": 262144}}';
COMMENT ON COLUMN corgipile.models.index_base IS 'the smallest index of sparse features, 0 or 1';
COMMENT ON COLUMN corgipile.models.hyperparameters IS 'what it takes to train the model again: arguments, options and their defaults, the seed; and what sizes came to, pages_per_block and buffer_blocks';
COMMENT ON COLUMN corgipile.models.weights IS 'one weight per feature, for standardized features if feature_mean is set; for softmax and one-vs-rest SVMs, class after class; for networks, layer after layer, each output by output, a weight per input';
COMMENT ON COLUMN corgipile.models.intercepts IS 'the intercept; for softmax and one-vs-rest SVMs, one per class; for networks, one per unit, layer after layer';
COMMENT ON COLUMN corgipile.models.feature_mean IS 'mean of each feature, if the model was trained on standardized features; 0 for sparse features and categories; none for buckets';
COMMENT ON COLUMN corgipile.models.feature_scale IS 'standard deviation of each feature, 1 where it is constant and for categories; none for buckets';
COMMENT ON COLUMN corgipile.models.skipped IS 'rows left out in each epoch because they have NULLs';
COMMENT ON COLUMN corgipile.models.feature_fill IS 'for each feature what is put in place of a NULL: its mean in training, before it is transformed and standardized; 0 for categories; none for buckets; NULL if nothing is';
COMMENT ON COLUMN corgipile.models.imputed IS 'rows in which NULLs of features were imputed; NULL if the model does not impute';
COMMENT ON COLUMN corgipile.models.preparation_seconds IS 'time for the pass before the first epoch that learns mean and deviation, classes of softmax and mlp, balanced weights and categories; about 0 without one';
COMMENT ON COLUMN corgipile.models.shuffle_bytes IS 'space that the copy of a full shuffle took; NULL without one';
COMMENT ON COLUMN corgipile.models.history IS 'what corgipile_train() returned, an object per epoch; of a training that went on, with what it had returned before';
COMMENT ON COLUMN corgipile.models.hidden_layers IS 'units of the hidden layers of networks; NULL for all others';
COMMENT ON COLUMN corgipile.models.activation IS 'what hidden units compute: sigmoid, relu or tanh; NULL but for networks';
COMMENT ON COLUMN corgipile.models.output IS 'what the last layer means: sigmoid or softmax, of mlp_regression identity; NULL but for networks';
COMMENT ON COLUMN corgipile.models.identity IS 'what the model is known by on all servers that it was published to; each version has its own';
COMMENT ON COLUMN corgipile.models.published IS 'it was published to this server: parts of other servers'' queries may use it by its name';
COMMENT ON COLUMN corgipile.models.calibration_rows IS 'rows that corgipile_calibrate() was given; NULL before';
COMMENT ON COLUMN corgipile.models.calibration_scores IS 'of these rows, how far the model is from the truth, ascending: the distance, or 1 less the probability of the true label, or the decision against it; of more than 3072 rows those of as many ranks';
COMMENT ON COLUMN corgipile.models.profile IS 'what its features were like in training, or on the rows that corgipile_profile() was given: mean, deviation, missing share and shares between quantiles of each number, rows of each category; NULL if nothing is kept';
COMMENT ON COLUMN corgipile.models.sigmoid_slopes IS 'of an SVM that was trained with probability, one per output: the probability of its class is 1 / (1 + e^(slope * decision + offset)), of several outputs divided by their sum; NULL without';
COMMENT ON COLUMN corgipile.models.sigmoid_offsets IS 'the offsets beside sigmoid_slopes';
GRANT SELECT, DELETE ON corgipile.models TO PUBLIC;

CREATE VIEW corgipile.current_models WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, m.version, m.deployed, m.owner
      FROM corgipile.stored_models AS m
     WHERE NOT EXISTS (SELECT FROM corgipile.stored_models AS o
                        WHERE o.name OPERATOR(pg_catalog.=) m.name AND o.owner OPERATOR(pg_catalog.=) m.owner
                          AND (o.deployed, o.version) OPERATOR(pg_catalog.>) (m.deployed, m.version))
     ORDER BY m.model_id;
COMMENT ON VIEW corgipile.current_models IS 'of each name of each owner the version that it means: the deployed one, else the latest of those that you may see; and the models without a name';
COMMENT ON COLUMN corgipile.current_models.model_id IS 'the model';
COMMENT ON COLUMN corgipile.current_models.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.current_models.version IS 'its version';
COMMENT ON COLUMN corgipile.current_models.deployed IS 'the name means this version, and not the latest';
COMMENT ON COLUMN corgipile.current_models.owner IS 'the role that trained it';

CREATE VIEW corgipile.all_coefficients WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, c.class, f.feature,
           CASE WHEN f.place OPERATOR(pg_catalog.=) 0 THEN a.intercepts[c.output]
                ELSE a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) f.place]
           END AS coefficient,
           a.mean[f.place] AS mean, a.scale[f.place] AS scale, m.version, c.output, f.place::int AS place,
           CASE WHEN f.place OPERATOR(pg_catalog.=) 0
                THEN a.intercepts[c.output]::pg_catalog.float8 OPERATOR(pg_catalog.-) COALESCE(s.at_zero, 0)
                ELSE a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) f.place]
                     OPERATOR(pg_catalog./) COALESCE(a.scale[f.place], 1)
           END AS per_unit
      FROM corgipile.stored_models AS m
     -- Slices are copies in memory: a subscript of the stored array would read all of it for each weight.
     CROSS JOIN LATERAL (
            SELECT m.weights[:] AS weights, m.intercepts[:] AS intercepts,
                   m.feature_mean[:] AS mean, m.feature_scale[:] AS scale,
                   pg_catalog.array_length(m.weights, 1) OPERATOR(pg_catalog./) pg_catalog.array_length(m.intercepts, 1) AS dim
            OFFSET 0
            ) AS a
     CROSS JOIN LATERAL (
            SELECT NULL::pg_catalog.text, 1 WHERE pg_catalog.cardinality(a.intercepts) OPERATOR(pg_catalog.=) 1
             UNION ALL
            SELECT u.class, u.output FROM pg_catalog.unnest(m.classes) WITH ORDINALITY AS u(class, output)
             WHERE pg_catalog.cardinality(a.intercepts) OPERATOR(pg_catalog.>) 1
            ) AS c(class, output)
     -- What the features' means add to the decision: where a feature is 0, it is not where the standardized one is.
     CROSS JOIN LATERAL (
            SELECT pg_catalog.sum(a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) i]
                                  OPERATOR(pg_catalog.*) a.mean[i] OPERATOR(pg_catalog./) a.scale[i]) AS at_zero
              FROM pg_catalog.generate_series(1, a.dim) AS i
             WHERE a.mean IS NOT NULL
            OFFSET 0
            ) AS s
     CROSS JOIN LATERAL (
            SELECT '(intercept)', 0
             UNION ALL
            SELECT pg_catalog.format('%s[%s]', m.features[1], i), i FROM pg_catalog.generate_series(1, a.dim) AS i
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'array'
             UNION ALL
            SELECT pg_catalog.format('%s[%s]', m.features[pg_catalog.cardinality(m.features)],
                                    (i OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.+) m.index_base), i
              FROM pg_catalog.generate_series(1, a.dim) AS i
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'sparse'
             UNION ALL
            SELECT u.name OPERATOR(pg_catalog.||) COALESCE('=' OPERATOR(pg_catalog.||) v.value,
                                                           CASE WHEN v.j IS NULL THEN '' ELSE ' IS NULL' END),
                   pg_catalog.row_number() OVER (ORDER BY u.i, v.j)
              FROM pg_catalog.unnest(m.features) WITH ORDINALITY AS u(name, i)
              LEFT JOIN LATERAL pg_catalog.jsonb_array_elements_text(
                        CASE WHEN pg_catalog.jsonb_typeof(m.categories OPERATOR(pg_catalog.->) u.name) OPERATOR(pg_catalog.=) 'array'
                            THEN m.categories OPERATOR(pg_catalog.->) u.name END)
                   WITH ORDINALITY AS v(value, j)
                ON true
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'columns'
               AND COALESCE(pg_catalog.jsonb_typeof(m.categories OPERATOR(pg_catalog.->) u.name), 'number') OPERATOR(pg_catalog.<>) 'object'
             UNION ALL
            -- the buckets of hashed columns come last
            SELECT pg_catalog.format('hash[%s]', i OPERATOR(pg_catalog.-) 1), (a.dim OPERATOR(pg_catalog.-) h.buckets) OPERATOR(pg_catalog.+) i
              FROM (SELECT pg_catalog.max((c.value OPERATOR(pg_catalog.->>) 'buckets')::int) AS buckets
                      FROM pg_catalog.jsonb_each(m.categories) AS c(name, value)
                     WHERE pg_catalog.jsonb_typeof(c.value) OPERATOR(pg_catalog.=) 'object') AS h,
                   LATERAL pg_catalog.generate_series(1, h.buckets) AS i
            ) AS f(feature, place)
     -- The weights of hidden layers are no coefficients of features.
     WHERE m.hidden_layers IS NULL
     ORDER BY m.model_id, c.output, f.place;
COMMENT ON VIEW corgipile.all_coefficients IS 'weights of all versions of all models, as in corgipile.coefficients';
COMMENT ON COLUMN corgipile.all_coefficients.model_id IS 'the model';
COMMENT ON COLUMN corgipile.all_coefficients.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.all_coefficients.class IS 'the class that the weight belongs to; NULL but for softmax and one-vs-rest SVMs';
COMMENT ON COLUMN corgipile.all_coefficients.feature IS 'the column, or (intercept); x[1], x[2], ... of an array column x; the column of values and the index of sparse ones; column=value of categories; hash[0], hash[1], ... of the buckets of hashed columns';
COMMENT ON COLUMN corgipile.all_coefficients.coefficient IS 'the weight, or the intercept';
COMMENT ON COLUMN corgipile.all_coefficients.mean IS 'what is taken from the feature before it is multiplied; NULL if features were not standardized';
COMMENT ON COLUMN corgipile.all_coefficients.scale IS 'what the feature is divided by then';
COMMENT ON COLUMN corgipile.all_coefficients.version IS 'the model''s version';
COMMENT ON COLUMN corgipile.all_coefficients.output IS 'the number of the class, from 1; 1 but for softmax and one-vs-rest SVMs';
COMMENT ON COLUMN corgipile.all_coefficients.place IS 'the number of the feature, from 1; 0 for (intercept)';
COMMENT ON COLUMN corgipile.all_coefficients.per_unit IS 'the same in the units of the data';

CREATE VIEW corgipile.coefficients WITH (security_invoker = true) AS
    SELECT a.model_id, a.name, a.class, a.feature, a.coefficient, a.mean, a.scale, a.version, a.per_unit
      FROM corgipile.all_coefficients AS a
     WHERE EXISTS (SELECT FROM corgipile.current_models AS c WHERE c.model_id OPERATOR(pg_catalog.=) a.model_id)
     ORDER BY a.model_id, a.output, a.place;
COMMENT ON VIEW corgipile.coefficients IS 'weights of the models that names mean, and of those without a name, by feature name, of standardized features if there are a mean and a scale: a row per feature, and one for (intercept); with softmax and one-vs-rest SVMs, all that for each class; nothing of networks, whose weights are no coefficients of features';
COMMENT ON COLUMN corgipile.coefficients.model_id IS 'the model';
COMMENT ON COLUMN corgipile.coefficients.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.coefficients.class IS 'the class that the weight belongs to; NULL but for softmax and one-vs-rest SVMs';
COMMENT ON COLUMN corgipile.coefficients.feature IS 'the column, or (intercept); x[1], x[2], ... of an array column x; the column of values and the index of sparse ones; column=value of categories, and column IS NULL; hash[0], hash[1], ... of the buckets of hashed columns';
COMMENT ON COLUMN corgipile.coefficients.coefficient IS 'the weight, or the intercept';
COMMENT ON COLUMN corgipile.coefficients.mean IS 'what is taken from the feature before it is multiplied; NULL if features were not standardized';
COMMENT ON COLUMN corgipile.coefficients.scale IS 'what the feature is divided by then';
COMMENT ON COLUMN corgipile.coefficients.version IS 'the model''s version';
COMMENT ON COLUMN corgipile.coefficients.per_unit IS 'the same in the units of the data: what the decision gains with each unit of the feature, or of its logarithm if it is taken by that; of (intercept), the decision where all features are 0';

CREATE VIEW corgipile.all_training_history WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, h.epoch, h.loss, h.accuracy, h.learning_rate, h.tuples, h.seconds, h.r2, h.shuffle_seconds, m.version,
           h.validation_loss, h.validation_score, m.hyperparameters OPERATOR(pg_catalog.->) 'grid_point' AS grid_point,
           m.hyperparameters OPERATOR(pg_catalog.->>) 'group' AS group_value, m.source
      FROM corgipile.stored_models AS m
     CROSS JOIN LATERAL pg_catalog.json_to_recordset(m.history)
        AS h(epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8,
             shuffle_seconds float8, validation_loss float8, validation_score float8)
     ORDER BY m.model_id, h.epoch;
COMMENT ON VIEW corgipile.all_training_history IS 'what corgipile_train() returned for each epoch of all versions of all models';
COMMENT ON COLUMN corgipile.all_training_history.model_id IS 'the model';
COMMENT ON COLUMN corgipile.all_training_history.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.all_training_history.epoch IS 'from 1';
COMMENT ON COLUMN corgipile.all_training_history.loss IS 'mean loss of the tuples just before they were learned from, plus the penalties at the end of the epoch';
COMMENT ON COLUMN corgipile.all_training_history.accuracy IS 'fraction of tuples classified correctly just before they were learned from; NULL for models that predict numbers';
COMMENT ON COLUMN corgipile.all_training_history.learning_rate IS 'step size in this epoch';
COMMENT ON COLUMN corgipile.all_training_history.tuples IS 'tuples learned from';
COMMENT ON COLUMN corgipile.all_training_history.seconds IS 'time of the epoch, without that of a full shuffle before it';
COMMENT ON COLUMN corgipile.all_training_history.r2 IS 'R2 of the values just before they were learned from; NULL for all but linear';
COMMENT ON COLUMN corgipile.all_training_history.shuffle_seconds IS 'time of the full shuffle before the epoch; 0 without one';
COMMENT ON COLUMN corgipile.all_training_history.version IS 'the model''s version';
COMMENT ON COLUMN corgipile.all_training_history.validation_loss IS 'mean loss of the rows that are held out; NULL without any';
COMMENT ON COLUMN corgipile.all_training_history.validation_score IS 'their accuracy, or R2';
COMMENT ON COLUMN corgipile.all_training_history.grid_point IS 'what the grid said of the model; NULL without a grid';
COMMENT ON COLUMN corgipile.all_training_history.group_value IS 'the group of the model; NULL without group_by';
COMMENT ON COLUMN corgipile.all_training_history.source IS 'table or query that it was trained on, as given: it tells folds apart';

CREATE VIEW corgipile.training_history WITH (security_invoker = true) AS
    SELECT a.model_id, a.name, a.epoch, a.loss, a.accuracy, a.learning_rate, a.tuples, a.seconds, a.r2, a.shuffle_seconds, a.version,
           a.validation_loss, a.validation_score, a.grid_point, a.group_value, a.source
      FROM corgipile.all_training_history AS a
     WHERE EXISTS (SELECT FROM corgipile.current_models AS c WHERE c.model_id OPERATOR(pg_catalog.=) a.model_id)
     ORDER BY a.model_id, a.epoch;
COMMENT ON VIEW corgipile.training_history IS 'what corgipile_train() returned for each epoch of each model that a name means, or that has no name';
COMMENT ON COLUMN corgipile.training_history.model_id IS 'the model';
COMMENT ON COLUMN corgipile.training_history.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.training_history.epoch IS 'from 1';
COMMENT ON COLUMN corgipile.training_history.loss IS 'mean loss of the tuples just before they were learned from, plus the penalties at the end of the epoch';
COMMENT ON COLUMN corgipile.training_history.accuracy IS 'fraction of tuples classified correctly just before they were learned from; NULL for models that predict numbers';
COMMENT ON COLUMN corgipile.training_history.learning_rate IS 'step size in this epoch';
COMMENT ON COLUMN corgipile.training_history.tuples IS 'tuples learned from';
COMMENT ON COLUMN corgipile.training_history.seconds IS 'time of the epoch, without that of a full shuffle before it';
COMMENT ON COLUMN corgipile.training_history.r2 IS 'R2 of the values just before they were learned from; NULL for all but linear';
COMMENT ON COLUMN corgipile.training_history.shuffle_seconds IS 'time of the full shuffle before the epoch; 0 without one';
COMMENT ON COLUMN corgipile.training_history.version IS 'the model''s version';
COMMENT ON COLUMN corgipile.training_history.validation_loss IS 'mean loss of the rows that are held out; NULL without any';
COMMENT ON COLUMN corgipile.training_history.validation_score IS 'their accuracy, or R2';
COMMENT ON COLUMN corgipile.training_history.grid_point IS 'what the grid said of the model; NULL without a grid';
COMMENT ON COLUMN corgipile.training_history.group_value IS 'the group of the model; NULL without group_by';
COMMENT ON COLUMN corgipile.training_history.source IS 'table or query that it was trained on, as given: it tells folds apart';

GRANT SELECT ON corgipile.current_models, corgipile.all_coefficients, corgipile.coefficients, corgipile.all_training_history,
                corgipile.training_history TO PUBLIC;

CREATE FUNCTION corgipile.forget_model() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'corgipile_forget_wrapper';
-- as a trigger of a table of their own it would let anybody take others' models out
REVOKE ALL ON FUNCTION corgipile.forget_model() FROM PUBLIC;
COMMENT ON FUNCTION corgipile.forget_model() IS 'takes what was changed or deleted out of shared memory';
CREATE TRIGGER forget_model AFTER UPDATE OR DELETE ON corgipile.stored_models
    FOR EACH ROW EXECUTE FUNCTION corgipile.forget_model();

-- A version's number is not given again as long as another version of the name is there, and nobody is to wonder what a
-- name means whose deployed version is gone.
CREATE FUNCTION corgipile.keep_versions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone RECORD;
BEGIN
    FOR gone IN
        SELECT o.name, o.owner, max(GREATEST(o.version, o.last_version)) AS version,
               max(o.version) FILTER (WHERE o.deployed) AS deployed,
               (SELECT max(m.version) FROM corgipile.stored_models AS m WHERE m.name = o.name AND m.owner = o.owner) AS latest
          FROM old_models AS o
         WHERE o.name IS NOT NULL
           AND NOT EXISTS (SELECT FROM corgipile.stored_models AS m
                            WHERE m.name = o.name AND m.owner = o.owner AND m.version = o.version)
         GROUP BY o.name, o.owner
    LOOP
        UPDATE corgipile.stored_models AS m SET last_version = GREATEST(m.last_version, gone.version)
         WHERE m.name = gone.name AND m.owner = gone.owner AND m.version = gone.latest AND gone.version > gone.latest;
        IF gone.deployed IS NOT NULL AND gone.latest IS NOT NULL THEN
            RAISE NOTICE 'version % of model "%" was deployed: the name now means the latest, version %',
                gone.deployed, gone.name, gone.latest;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION corgipile.keep_versions() FROM PUBLIC;
COMMENT ON FUNCTION corgipile.keep_versions() IS 'remembers the numbers of versions that are dropped or renamed';
CREATE TRIGGER keep_versions_of_deleted AFTER DELETE ON corgipile.stored_models
    REFERENCING OLD TABLE AS old_models FOR EACH STATEMENT EXECUTE FUNCTION corgipile.keep_versions();
CREATE TRIGGER keep_versions_of_renamed AFTER UPDATE ON corgipile.stored_models
    REFERENCING OLD TABLE AS old_models FOR EACH STATEMENT EXECUTE FUNCTION corgipile.keep_versions();

CREATE FUNCTION corgipile.stat_models() RETURNS TABLE (model_id bigint, bytes bigint, predictions bigint, hits bigint)
LANGUAGE c VOLATILE PARALLEL SAFE ROWS 100
AS 'MODULE_PATHNAME', 'corgipile_stat_models_wrapper';
COMMENT ON FUNCTION corgipile.stat_models() IS 'models in shared memory that you may use; see the view';

CREATE VIEW corgipile.stat_models WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, m.version, s.bytes, s.predictions, s.hits
      FROM (SELECT model_id, pg_catalog.sum(bytes)::bigint AS bytes, pg_catalog.sum(predictions)::bigint AS predictions,
                   pg_catalog.sum(hits)::bigint AS hits
              FROM corgipile.stat_models() GROUP BY model_id) AS s
      JOIN corgipile.stored_models AS m ON m.model_id OPERATOR(pg_catalog.=) s.model_id;
COMMENT ON VIEW corgipile.stat_models IS 'models in shared memory that you may use: their size, and what transactions that have ended used them for since they are there';
COMMENT ON COLUMN corgipile.stat_models.model_id IS 'the model';
COMMENT ON COLUMN corgipile.stat_models.name IS 'its name, perhaps NULL';
COMMENT ON COLUMN corgipile.stat_models.version IS 'its version';
COMMENT ON COLUMN corgipile.stat_models.bytes IS 'shared memory that it takes';
COMMENT ON COLUMN corgipile.stat_models.predictions IS 'predictions from shared memory, by transactions that have ended';
COMMENT ON COLUMN corgipile.stat_models.hits IS 'lookups, one per statement, that found the model in shared memory, by transactions that have ended';
GRANT SELECT ON corgipile.stat_models TO PUBLIC;

-- ------------------------------------------------------------------------------------------------- looking after models

CREATE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_deploy_wrapper';
COMMENT ON FUNCTION corgipile_deploy(text, int) IS 'makes a name mean this version of the model; with NULL, the latest again';

CREATE FUNCTION corgipile_rename(model_id bigint, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_wrapper';
COMMENT ON FUNCTION corgipile_rename(bigint, text) IS 'gives one model another name, as the latest version of it';

CREATE FUNCTION corgipile_rename(name text, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_by_name_wrapper';
COMMENT ON FUNCTION corgipile_rename(text, text) IS 'gives all versions of a model another name';

CREATE FUNCTION corgipile_drop(model_id bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_wrapper';
COMMENT ON FUNCTION corgipile_drop(bigint) IS 'deletes one model';

CREATE FUNCTION corgipile_drop(name text, version int DEFAULT NULL) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_by_name_wrapper';
COMMENT ON FUNCTION corgipile_drop(text, int) IS 'deletes a version of a model, or all of them; returns how many';

CREATE FUNCTION corgipile_comment(model_id bigint, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_wrapper';
COMMENT ON FUNCTION corgipile_comment(bigint, text) IS 'says something about a model; NULL: nothing';

CREATE FUNCTION corgipile_comment(name text, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_by_name_wrapper';
COMMENT ON FUNCTION corgipile_comment(text, text) IS 'says something about the version that the name means; NULL: nothing';

CREATE FUNCTION corgipile_grant(model_id bigint, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_wrapper';
COMMENT ON FUNCTION corgipile_grant(bigint, text) IS 'lets a role, or public, see and use one model';

CREATE FUNCTION corgipile_grant(name text, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_by_name_wrapper';
COMMENT ON FUNCTION corgipile_grant(text, text) IS 'lets a role, or public, see and use all versions of a model, also those to come';

CREATE FUNCTION corgipile_revoke(model_id bigint, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_revoke_wrapper';
COMMENT ON FUNCTION corgipile_revoke(bigint, text) IS 'takes back what corgipile_grant() gave';

CREATE FUNCTION corgipile_revoke(name text, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_revoke_by_name_wrapper';
COMMENT ON FUNCTION corgipile_revoke(text, text) IS 'takes back what corgipile_grant() gave';

-- ------------------------------------------------------------------------------------------------------- models as values

CREATE FUNCTION corgipile_export(model_id bigint) RETURNS jsonb
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_wrapper';
COMMENT ON FUNCTION corgipile_export(bigint) IS 'a model as a value, exactly: for corgipile_import() and corgipile_predict() anywhere';

CREATE FUNCTION corgipile_export(name text) RETURNS jsonb
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_by_name_wrapper';
COMMENT ON FUNCTION corgipile_export(text) IS 'a model as a value, exactly: for corgipile_import() and corgipile_predict() anywhere';

CREATE FUNCTION corgipile_export(model_id bigint, format text, answer text DEFAULT NULL, source text DEFAULT NULL) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_as_wrapper';
COMMENT ON FUNCTION corgipile_export(bigint, text, text, text) IS 'a model as a text: with format json as corgipile_export() without it, with sql as an expression that predicts where there is no corgipile';

CREATE FUNCTION corgipile_export(name text, format text, answer text DEFAULT NULL, source text DEFAULT NULL) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_as_by_name_wrapper';
COMMENT ON FUNCTION corgipile_export(text, text, text, text) IS 'a model as a text: with format json as corgipile_export() without it, with sql as an expression that predicts where there is no corgipile';

CREATE FUNCTION corgipile_export_onnx(model_id bigint) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_onnx_wrapper';
COMMENT ON FUNCTION corgipile_export_onnx(bigint) IS 'a model as a graph of ONNX, with all that is done to its features: for onnxruntime and its likes';

CREATE FUNCTION corgipile_export_onnx(name text) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_onnx_by_name_wrapper';
COMMENT ON FUNCTION corgipile_export_onnx(text) IS 'a model as a graph of ONNX, with all that is done to its features: for onnxruntime and its likes';

CREATE FUNCTION corgipile_import(model jsonb, name text DEFAULT NULL) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_import_wrapper';
COMMENT ON FUNCTION corgipile_import(jsonb, text) IS 'stores a model that corgipile_export() gave, under its name or another; returns its id';

-- ------------------------------------------------------------------------------------------------ models on other servers

CREATE FUNCTION corgipile.version_id(name text, version int) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_version_id_wrapper';
COMMENT ON FUNCTION corgipile.version_id(text, int) IS 'the id of a version of a model; without a version, of that which the name means';

CREATE FUNCTION corgipile.identity(model_id bigint) RETURNS uuid
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_identity_wrapper';
COMMENT ON FUNCTION corgipile.identity(bigint) IS 'the identity of a model that may be published: it has a name, and is committed';

CREATE FUNCTION corgipile.receive_model(identity uuid, model jsonb, OUT outcome text, OUT model_id bigint, OUT version int)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_receive_model_wrapper';
COMMENT ON FUNCTION corgipile.receive_model(uuid, jsonb) IS 'what corgipile_publish() calls on a server that gets a model: it is stored as yours, unless it is there already, and its name means it';

-- A detail or a hint that there is not must not be given.
CREATE FUNCTION corgipile.raise_of_server(server text, code text, message text, detail text, hint text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    message := format('server "%s": %s', server, message);
    IF detail <> '' AND hint <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail, HINT = hint;
    ELSIF detail <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail;
    ELSIF hint <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, HINT = hint;
    END IF;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
END
$$;
COMMENT ON FUNCTION corgipile.raise_of_server(text, text, text, text, text) IS 'raises an error of another server';

-- Waits here, because dblink of PostgreSQL 15 and 16 cannot be cancelled while it waits for an answer itself.
CREATE FUNCTION corgipile.answer_of_server(dblink text, server text, connection text, statement text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    result      CONSTANT text := format('SELECT value FROM %I.dblink_get_result($1) AS r(value text)', dblink);
    is_sent     int := 1;
    is_busy     int;
    answer      text;
    nothing     text;
    pause       float8 := 0.0002;
    code        text;
    message     text;
    detail      text;
    hint        text;
BEGIN
    IF statement IS NOT NULL THEN
        EXECUTE format('SELECT %I.dblink_send_query($1, $2)', dblink) INTO is_sent USING connection, statement;
    END IF;
    IF is_sent = 0 THEN
        EXECUTE format('SELECT %I.dblink_error_message($1)', dblink) INTO message USING connection;
        PERFORM corgipile.raise_of_server(server, '08006', message, NULL, NULL);
    END IF;
    LOOP
        EXECUTE format('SELECT %I.dblink_is_busy($1)', dblink) INTO is_busy USING connection;
        EXIT WHEN is_busy = 0;
        PERFORM pg_sleep(pause);
        pause := least(2 * pause, 0.05);
    END LOOP;
    BEGIN
        EXECUTE result INTO answer USING connection;
        -- the end of the answer, without which nothing more can be asked
        EXECUTE result INTO nothing USING connection;
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                                hint = PG_EXCEPTION_HINT;
        PERFORM corgipile.raise_of_server(server, code, message, detail, hint);
    END;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION corgipile.answer_of_server(text, text, text, text) IS 'what another server answers to a statement, or to the one that it was sent, over a connection of dblink';

CREATE FUNCTION corgipile.hang_up(dblink text, connections text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    connection  text;
BEGIN
    FOREACH connection IN ARRAY connections LOOP
        BEGIN
            EXECUTE format('SELECT %I.dblink_disconnect($1)', dblink) USING connection;
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            NULL; -- there is none, or it is gone
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION corgipile.hang_up(text, text[]) IS 'ends connections of dblink';

-- In the order of their names: two calls that bring models of one name to several servers wait for each other at the first.
CREATE FUNCTION corgipile.servers_to_publish_to(servers text[]) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known       text[];
    usable      text[];
    wrong       text;
BEGIN
    SELECT array_agg(s.srvname::text ORDER BY s.srvname),
           array_agg(s.srvname::text ORDER BY s.srvname) FILTER (
               WHERE has_server_privilege(s.oid, 'USAGE')
                 AND EXISTS (SELECT FROM pg_user_mappings AS u
                              WHERE u.srvid = s.oid
                                AND (u.umuser = 0 OR u.umuser = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user))))
      INTO known, usable
      FROM pg_foreign_server AS s
     WHERE EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
                    WHERE d.classid = 'pg_foreign_data_wrapper'::regclass AND d.objid = s.srvfdw AND d.deptype = 'e'
                      AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'postgres_fdw');
    IF servers IS NULL THEN
        IF usable IS NULL THEN
            RAISE EXCEPTION 'there is no server of postgres_fdw that you may use and have a user mapping for'
                USING ERRCODE = 'undefined_object', HINT = 'CREATE SERVER and CREATE USER MAPPING make them.';
        END IF;
        RETURN usable;
    END IF;
    IF cardinality(servers) = 0 OR array_position(servers, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'invalid value for argument "servers": it is empty or has a NULL'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out for all servers that you may use.';
    END IF;
    SELECT s INTO wrong FROM unnest(servers) AS s WHERE known IS NULL OR s <> ALL (known) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no server "%" of postgres_fdw', wrong
            USING ERRCODE = 'undefined_object', HINT = format('Servers are: %s.', coalesce(array_to_string(known, ', '), 'none'));
    END IF;
    RETURN ARRAY(SELECT DISTINCT s COLLATE "C" FROM unnest(servers) AS s ORDER BY 1);
END
$$;
COMMENT ON FUNCTION corgipile.servers_to_publish_to(text[]) IS 'the foreign servers that a call of corgipile_publish() means';

-- All servers store the model before the first one commits: if one has anything against it, none has it. Then all are told to
-- commit before the first one is waited for.
CREATE FUNCTION corgipile.publish(identity uuid, model jsonb, servers text[])
RETURNS TABLE (server text, outcome text, model_id bigint, version int)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    dblink      text;
    names       text[];
    connections text[] := '{}';
    received    json[] := '{}';
    users       text[] := '{}';
    call        CONSTANT int := floor(2147483647 * random());
    same        int;
    is_told     boolean := false;
    have        text[] := '{}';
    answer      text;
    code        text;
    message     text;
    detail      text;
    hint        text;
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'cannot execute corgipile_publish() in a read-only transaction'
            USING ERRCODE = 'read_only_sql_transaction', HINT = 'Publish from the primary, in a transaction that may write.';
    END IF;
    SELECT n.nspname INTO dblink
      FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'dblink';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'extension dblink is not installed in this database'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'CREATE EXTENSION dblink; it is one of the modules that come with PostgreSQL.';
    END IF;
    names := corgipile.servers_to_publish_to(servers);
    FOREACH server IN ARRAY names LOOP
        BEGIN
            -- a name that no other connection of the session has
            connections := connections || format('corgipile_%s', gen_random_uuid());
            EXECUTE format('SELECT %I.dblink_connect($1, $2)', dblink) USING connections[cardinality(connections)], server;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                                    hint = PG_EXCEPTION_HINT;
            PERFORM corgipile.raise_of_server(server, code, message, detail, hint);
        END;
    END LOOP;
    FOR i IN 1 .. cardinality(names) LOOP
        server := names[i];
        PERFORM corgipile.answer_of_server(dblink, server, connections[i],
                                           'BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE');
        -- Calls on two servers that know the same others by names in another order could wait in a circle.
        PERFORM corgipile.answer_of_server(dblink, server, connections[i], $q$SET LOCAL lock_timeout = '10s'$q$);
        answer := corgipile.answer_of_server(dblink, server, connections[i],
            $q$SELECT extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'corgipile'$q$);
        IF answer IS NULL THEN
            PERFORM corgipile.raise_of_server(server, '55000', 'extension corgipile is not installed in its database', NULL,
                                              'CREATE EXTENSION corgipile there.');
        END IF;
        -- Each takes the locks of this call up to its own number: those that are taken are of an earlier one that leads to the
        -- same database, for whose transaction it would wait in vain.
        answer := corgipile.answer_of_server(dblink, server, connections[i], format(
            'SELECT pg_catalog.concat(pg_catalog.max(j) FILTER (WHERE NOT pg_catalog.pg_try_advisory_xact_lock(%s, j)), '' '', current_user)
               FROM pg_catalog.generate_series(1, %s) AS j', call, i));
        same := nullif(split_part(answer, ' ', 1), '');
        users := users || substr(answer, strpos(answer, ' ') + 1);
        IF same IS NULL THEN
            answer := corgipile.answer_of_server(dblink, server, connections[i], format(
                'SELECT pg_catalog.row_to_json(r)::pg_catalog.text
                   FROM corgipile.receive_model(%L::pg_catalog.uuid, %L::pg_catalog.jsonb) AS r', identity, model));
            received := received || answer::json;
        ELSIF users[i] = users[same] THEN
            received := received || (received[same]::jsonb || '{"outcome": "present"}')::json;
        ELSE
            PERFORM corgipile.raise_of_server(server, '55000',
                format('it leads to the same database as server "%s", as another role', names[same]), NULL,
                'Name one of them in argument servers.');
        END IF;
    END LOOP;
    is_told := true;
    EXECUTE format('SELECT count(%I.dblink_send_query(c, ''COMMIT'')) FROM unnest($1) AS c', dblink) USING connections;
    FOR i IN 1 .. cardinality(names) LOOP
        BEGIN
            answer := corgipile.answer_of_server(dblink, names[i], connections[i]);
            IF answer = 'COMMIT' THEN
                have := have || names[i];
            ELSE
                PERFORM corgipile.raise_of_server(names[i], '40000', 'it has not committed', NULL, NULL);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            -- that of the first is raised when all have answered
            IF code IS NULL THEN
                GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
            END IF;
        END;
    END LOOP;
    IF code IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
    END IF;
    PERFORM corgipile.hang_up(dblink, connections);
    FOR i IN 1 .. cardinality(names) LOOP
        server := names[i];
        outcome := received[i] ->> 'outcome';
        model_id := received[i] ->> 'model_id';
        version := received[i] ->> 'version';
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    PERFORM corgipile.hang_up(dblink, connections);
    IF NOT is_told THEN
        RAISE;
    END IF;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message,
        DETAIL = format('The model is on these servers: %s; and may be on these: %s.',
                        coalesce(nullif(array_to_string(have, ', '), ''), 'none that is known'),
                        array_to_string(ARRAY(SELECT n FROM unnest(names) AS n WHERE n <> ALL (have)), ', ')),
        HINT = 'Publish it again: where it is, nothing changes.';
END
$$;
COMMENT ON FUNCTION corgipile.publish(uuid, jsonb, text[]) IS 'what corgipile_publish() does with a model';

CREATE FUNCTION corgipile_publish(model_id bigint, servers text[] DEFAULT NULL)
RETURNS TABLE (server text, outcome text, remote_model_id bigint, remote_version int)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS 'SELECT p.server, p.outcome, p.model_id, p.version
      FROM corgipile.publish(corgipile.identity(model_id), @extschema@.corgipile_export(model_id), servers) AS p';
COMMENT ON FUNCTION corgipile_publish(bigint, text[]) IS 'brings a model to other servers, those named or all that you may use, and has its name mean it there; a row per server';

CREATE FUNCTION corgipile_publish(name text, version int DEFAULT NULL, servers text[] DEFAULT NULL)
RETURNS TABLE (server text, outcome text, remote_model_id bigint, remote_version int)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS 'SELECT p.server, p.outcome, p.remote_model_id, p.remote_version
      FROM @extschema@.corgipile_publish(corgipile.version_id(name, version), servers) AS p';
COMMENT ON FUNCTION corgipile_publish(text, int, text[]) IS 'brings the version that a name means, or another, to other servers, those named or all that you may use, and has its name mean it there; a row per server';

-- --------------------------------------------------------------------------------------------------------------- training

CREATE FUNCTION corgipile_support(internal) RETURNS internal
LANGUAGE c STRICT
AS 'MODULE_PATHNAME', 'corgipile_support_wrapper';
COMMENT ON FUNCTION corgipile_support(internal) IS 'planner support: loads the library before a query is planned';

-- What a training, an evaluation or a measurement on another server calls here. The first stands in a cursor, which keeps what is
-- known between two calls of the second, and reads the rows as the role that is connected.
CREATE FUNCTION corgipile.node_training(task text) RETURNS TABLE (n bigint, bytes bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000 SUPPORT @extschema@.corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_node_training_wrapper';
COMMENT ON FUNCTION corgipile.node_training(text) IS 'what functions with nodes, such as corgipile_train(), have a cursor for on another server: its part of the work; a row per request';

CREATE FUNCTION corgipile.node_step(request bytea) RETURNS bytea
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_node_step_wrapper';
COMMENT ON FUNCTION corgipile.node_step(bytea) IS 'what functions with nodes, such as corgipile_train(), ask that part on another server for';

-- NULL is the default of every argument of those functions that train and shuffle, and means "not given": what it stands for is
-- said once, in src/options/table, and shown by corgipile_options(). Another default could not be told from the same value
-- given explicitly, which holds in a warm start too.
CREATE FUNCTION corgipile_train(
    source              text,
    model               text    DEFAULT NULL,
    label               text    DEFAULT NULL,
    features            text[]  DEFAULT NULL,
    learning_rate       float8  DEFAULT NULL,
    max_epochs          int     DEFAULT NULL,
    shuffle             text    DEFAULT NULL,
    block_size          text    DEFAULT NULL,
    buffer_size         text    DEFAULT NULL,
    seed                bigint  DEFAULT NULL,
    name                text    DEFAULT NULL,
    options             jsonb   DEFAULT NULL,
    loader              text    DEFAULT NULL,
    workers             int     DEFAULT NULL,
    warm_start          text    DEFAULT NULL,
    group_by            text    DEFAULT NULL,
    grid                jsonb   DEFAULT NULL,
    sample              float8  DEFAULT NULL,
    batch_size          int     DEFAULT NULL,
    l1                  float8  DEFAULT NULL,
    l2                  float8  DEFAULT NULL,
    optimizer           text    DEFAULT NULL,
    schedule            text    DEFAULT NULL,
    standardize         boolean DEFAULT NULL,
    nulls               text    DEFAULT NULL,
    class_weight        text    DEFAULT NULL,
    hidden_layers       int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    notice              boolean DEFAULT NULL,
    share               boolean DEFAULT NULL,
    nodes               text    DEFAULT NULL,
    solver              text    DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8,
    r2 float8, validation_loss float8, validation_score float8, grid_point jsonb, group_value text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text,
                             int, text, text, jsonb, float8, int, float8, float8, text, text, boolean, text, text, int[],
                             float8, int, boolean, boolean, text, text)
    IS 'trains a model with SGD and stores it; a row per epoch. NULL means the default: as in the training that warm_start names, but for max_epochs, loader and workers, or else model logistic, label label, max_epochs auto, shuffle corgipile, block_size auto, buffer_size auto, loader auto, workers 1';

CREATE FUNCTION corgipile_train(
    source              regclass,
    model               text    DEFAULT NULL,
    label               text    DEFAULT NULL,
    features            text[]  DEFAULT NULL,
    learning_rate       float8  DEFAULT NULL,
    max_epochs          int     DEFAULT NULL,
    shuffle             text    DEFAULT NULL,
    block_size          text    DEFAULT NULL,
    buffer_size         text    DEFAULT NULL,
    seed                bigint  DEFAULT NULL,
    name                text    DEFAULT NULL,
    options             jsonb   DEFAULT NULL,
    loader              text    DEFAULT NULL,
    workers             int     DEFAULT NULL,
    warm_start          text    DEFAULT NULL,
    group_by            text    DEFAULT NULL,
    grid                jsonb   DEFAULT NULL,
    sample              float8  DEFAULT NULL,
    batch_size          int     DEFAULT NULL,
    l1                  float8  DEFAULT NULL,
    l2                  float8  DEFAULT NULL,
    optimizer           text    DEFAULT NULL,
    schedule            text    DEFAULT NULL,
    standardize         boolean DEFAULT NULL,
    nulls               text    DEFAULT NULL,
    class_weight        text    DEFAULT NULL,
    hidden_layers       int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    notice              boolean DEFAULT NULL,
    share               boolean DEFAULT NULL,
    nodes               text    DEFAULT NULL,
    solver              text    DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8,
    r2 float8, validation_loss float8, validation_score float8, grid_point jsonb, group_value text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(regclass, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text,
                             int, text, text, jsonb, float8, int, float8, float8, text, text, boolean, text, text, int[],
                             float8, int, boolean, boolean, text, text)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_search(
    source              text,
    model               text    DEFAULT NULL,
    label               text    DEFAULT NULL,
    features            text[]  DEFAULT NULL,
    trials              int     DEFAULT NULL,
    folds               int     DEFAULT NULL,
    folds_by            text    DEFAULT NULL,
    folds_by_time       text    DEFAULT NULL,
    stratify            boolean DEFAULT NULL,
    score               text    DEFAULT NULL,
    learning_rate       float8  DEFAULT NULL,
    max_epochs          int     DEFAULT NULL,
    shuffle             text    DEFAULT NULL,
    block_size          text    DEFAULT NULL,
    buffer_size         text    DEFAULT NULL,
    seed                bigint  DEFAULT NULL,
    name                text    DEFAULT NULL,
    options             jsonb   DEFAULT NULL,
    loader              text    DEFAULT NULL,
    workers             int     DEFAULT NULL,
    warm_start          text    DEFAULT NULL,
    group_by            text    DEFAULT NULL,
    grid                jsonb   DEFAULT NULL,
    sample              float8  DEFAULT NULL,
    batch_size          int     DEFAULT NULL,
    l1                  float8  DEFAULT NULL,
    l2                  float8  DEFAULT NULL,
    optimizer           text    DEFAULT NULL,
    schedule            text    DEFAULT NULL,
    standardize         boolean DEFAULT NULL,
    nulls               text    DEFAULT NULL,
    class_weight        text    DEFAULT NULL,
    hidden_layers       int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    notice              boolean DEFAULT NULL,
    share               boolean DEFAULT NULL
) RETURNS TABLE (
    rank int, grid_point jsonb, score float8, score_deviation float8, loss float8, fold_scores float8[], epochs int,
    model_id bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_search_wrapper';
COMMENT ON FUNCTION corgipile_search(text, text, text, text[], int, int, text, text, boolean, text, float8, int, text, text,
                              text, bigint, text, jsonb, text, int, text, text, jsonb, float8, int, float8, float8, text,
                              text, boolean, text, text, int[], float8, int, boolean, boolean)
    IS 'finds the best of several trainings by cross-validation in one pass over the rows per epoch, and stores a model that is trained in this way on all rows; a row per point, the best first. The points are those of grid, or trials that are drawn from it, or else from default ranges. NULL means the default: trials 20 without a grid, folds 5, stratify true, score accuracy or r2, of quantile and poisson loss, and for all others that of corgipile_train()';

CREATE FUNCTION corgipile_search(
    source              regclass,
    model               text    DEFAULT NULL,
    label               text    DEFAULT NULL,
    features            text[]  DEFAULT NULL,
    trials              int     DEFAULT NULL,
    folds               int     DEFAULT NULL,
    folds_by            text    DEFAULT NULL,
    folds_by_time       text    DEFAULT NULL,
    stratify            boolean DEFAULT NULL,
    score               text    DEFAULT NULL,
    learning_rate       float8  DEFAULT NULL,
    max_epochs          int     DEFAULT NULL,
    shuffle             text    DEFAULT NULL,
    block_size          text    DEFAULT NULL,
    buffer_size         text    DEFAULT NULL,
    seed                bigint  DEFAULT NULL,
    name                text    DEFAULT NULL,
    options             jsonb   DEFAULT NULL,
    loader              text    DEFAULT NULL,
    workers             int     DEFAULT NULL,
    warm_start          text    DEFAULT NULL,
    group_by            text    DEFAULT NULL,
    grid                jsonb   DEFAULT NULL,
    sample              float8  DEFAULT NULL,
    batch_size          int     DEFAULT NULL,
    l1                  float8  DEFAULT NULL,
    l2                  float8  DEFAULT NULL,
    optimizer           text    DEFAULT NULL,
    schedule            text    DEFAULT NULL,
    standardize         boolean DEFAULT NULL,
    nulls               text    DEFAULT NULL,
    class_weight        text    DEFAULT NULL,
    hidden_layers       int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    notice              boolean DEFAULT NULL,
    share               boolean DEFAULT NULL
) RETURNS TABLE (
    rank int, grid_point jsonb, score float8, score_deviation float8, loss float8, fold_scores float8[], epochs int,
    model_id bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_search_wrapper';
COMMENT ON FUNCTION corgipile_search(regclass, text, text, text[], int, int, text, text, boolean, text, float8, int, text, text,
                              text, bigint, text, jsonb, text, int, text, text, jsonb, float8, int, float8, float8, text,
                              text, boolean, text, text, int[], float8, int, boolean, boolean)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_shuffle(
    source      anyelement,
    seed        bigint DEFAULT NULL,
    block_size  text   DEFAULT NULL,
    buffer_size text   DEFAULT NULL,
    shuffle     text   DEFAULT NULL,
    epoch       int    DEFAULT NULL,
    sample      float8 DEFAULT NULL,
    share       boolean DEFAULT NULL
) RETURNS SETOF anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100000 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_shuffle_wrapper';
COMMENT ON FUNCTION corgipile_shuffle(anyelement, bigint, text, text, text, int, float8, boolean)
    IS 'the rows of a table in CorgiPile order. NULL means the default: seed drawn, block_size auto, buffer_size auto, shuffle corgipile, epoch 1, sample 1, share as the setting corgipile.share';

CREATE FUNCTION corgipile_options(model text DEFAULT NULL) RETURNS TABLE (
    name text, type text, "default" text, range text, applies_to text, description text
)
LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 50
AS 'MODULE_PATHNAME', 'corgipile_options_wrapper';
COMMENT ON FUNCTION corgipile_options(text)
    IS 'the arguments of corgipile_train(), and the keys of its argument options, whose types are those of JSON; with a model, those that apply to it, with its defaults';

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
    label      text   DEFAULT NULL,
    features   text[] DEFAULT NULL,
    block_size text   DEFAULT NULL,
    model      text   DEFAULT NULL,
    nodes      text   DEFAULT NULL
) RETURNS float8
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_cluster_factor_wrapper';
COMMENT ON FUNCTION corgipile_cluster_factor(text, text, text[], text, text, text)
    IS 'how clustered a table is: about 1 if it is shuffled, up to the tuples of a block if it is sorted. NULL means the default: label label, block_size auto, model logistic, nodes off';

CREATE FUNCTION corgipile_cluster_factor(
    source     regclass,
    label      text   DEFAULT NULL,
    features   text[] DEFAULT NULL,
    block_size text   DEFAULT NULL,
    model      text   DEFAULT NULL,
    nodes      text   DEFAULT NULL
) RETURNS float8
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_cluster_factor_wrapper';
COMMENT ON FUNCTION corgipile_cluster_factor(regclass, text, text[], text, text, text)
    IS 'the same of a relation that is named by its OID';

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

-- --------------------------------------------------------------------------------------------------------------- progress

CREATE FUNCTION corgipile.progress(
    OUT pid int, OUT datid oid, OUT usesysid oid, OUT relid oid, OUT epoch int, OUT epochs int, OUT blocks_done bigint,
    OUT blocks_total bigint, OUT loss float8, OUT tuples bigint, OUT tuples_per_second float8, OUT started_at timestamptz,
    OUT estimated_end timestamptz
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'corgipile_progress_wrapper';
COMMENT ON FUNCTION corgipile.progress() IS 'the trainings that run now; those of others only for members of pg_read_all_stats';

CREATE VIEW corgipile.stat_progress_train AS
    SELECT p.pid, p.datid, d.datname, p.usesysid, pg_catalog.pg_get_userbyid(p.usesysid) AS usename,
           CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() THEN p.relid::pg_catalog.regclass END AS relation,
           p.epoch, p.epochs, p.blocks_done, p.blocks_total, p.loss, p.tuples, p.tuples_per_second, p.started_at,
           p.estimated_end
      FROM corgipile.progress() AS p
      LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) p.datid;
COMMENT ON VIEW corgipile.stat_progress_train IS 'a row for each corgipile_train(), corgipile_search() and corgipile_train_uda() that runs now in the server, up to 64 of them; a search is shown as one training of all points, and then as that of the best';
COMMENT ON COLUMN corgipile.stat_progress_train.pid IS 'process that trains';
COMMENT ON COLUMN corgipile.stat_progress_train.datid IS 'its database';
COMMENT ON COLUMN corgipile.stat_progress_train.datname IS 'name of its database';
COMMENT ON COLUMN corgipile.stat_progress_train.usesysid IS 'the session''s user';
COMMENT ON COLUMN corgipile.stat_progress_train.usename IS 'name of the session''s user';
COMMENT ON COLUMN corgipile.stat_progress_train.relation IS 'the source; NULL of a query, or in another database';
COMMENT ON COLUMN corgipile.stat_progress_train.epoch IS 'the epoch under way, 0 before the first one';
COMMENT ON COLUMN corgipile.stat_progress_train.epochs IS 'how many epochs there are to be';
COMMENT ON COLUMN corgipile.stat_progress_train.blocks_done IS 'blocks of this epoch that were read; of several processes, each has its share';
COMMENT ON COLUMN corgipile.stat_progress_train.blocks_total IS 'blocks of an epoch';
COMMENT ON COLUMN corgipile.stat_progress_train.loss IS 'of the last epoch that has ended';
COMMENT ON COLUMN corgipile.stat_progress_train.tuples IS 'of all epochs, up to those of the buffer that is being learned from, with those held out';
COMMENT ON COLUMN corgipile.stat_progress_train.tuples_per_second IS 'since the first epoch began, of the buffers that have been learned from';
COMMENT ON COLUMN corgipile.stat_progress_train.started_at IS 'when the training began';
COMMENT ON COLUMN corgipile.stat_progress_train.estimated_end IS 'if the other buffers take as long as those that have been learned from; NULL before there is one. To score what is held out comes on top in the first epoch';
GRANT SELECT ON corgipile.stat_progress_train TO PUBLIC;

-- --------------------------------------------------------------------------------------------------------- reading groups

CREATE FUNCTION corgipile.reading_groups(
    OUT pid int, OUT datid oid, OUT usesysid oid, OUT relid oid, OUT reading_group int, OUT epoch bigint, OUT blocks bigint,
    OUT blocks_remaining bigint, OUT blocks_drawn bigint, OUT blocks_followed bigint, OUT blocks_taken bigint, OUT bytes_saved bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'corgipile_reading_groups_wrapper';
COMMENT ON FUNCTION corgipile.reading_groups() IS 'the members of reading groups; those of others only for members of pg_read_all_stats';

CREATE VIEW corgipile.stat_reading_groups AS
    SELECT g.pid, g.datid, d.datname, g.usesysid, pg_catalog.pg_get_userbyid(g.usesysid) AS usename,
           CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() THEN g.relid::pg_catalog.regclass END AS relation,
           g.reading_group, g.epoch, g.blocks, g.blocks_remaining, g.blocks_drawn, g.blocks_followed, g.blocks_taken, g.bytes_saved
      FROM corgipile.reading_groups() AS g
      LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) g.datid;
COMMENT ON VIEW corgipile.stat_reading_groups IS 'a row for each process that reads with share now in the server, up to 128 of them in 16 groups';
COMMENT ON COLUMN corgipile.stat_reading_groups.pid IS 'process that reads';
COMMENT ON COLUMN corgipile.stat_reading_groups.datid IS 'its database';
COMMENT ON COLUMN corgipile.stat_reading_groups.datname IS 'name of its database';
COMMENT ON COLUMN corgipile.stat_reading_groups.usesysid IS 'the session''s user';
COMMENT ON COLUMN corgipile.stat_reading_groups.usename IS 'name of the session''s user';
COMMENT ON COLUMN corgipile.stat_reading_groups.relation IS 'what is read, of a partition the partitioned table; NULL in another database';
COMMENT ON COLUMN corgipile.stat_reading_groups.reading_group IS 'number of the group: its members read the same blocks of the same table';
COMMENT ON COLUMN corgipile.stat_reading_groups.epoch IS 'the epoch under way, 0 of the pass before the first one';
COMMENT ON COLUMN corgipile.stat_reading_groups.blocks IS 'blocks of an epoch';
COMMENT ON COLUMN corgipile.stat_reading_groups.blocks_remaining IS 'those of them that are still to be drawn';
COMMENT ON COLUMN corgipile.stat_reading_groups.blocks_drawn IS 'in all epochs, blocks that the process has drawn by itself';
COMMENT ON COLUMN corgipile.stat_reading_groups.blocks_followed IS 'in all epochs, blocks that another member had drawn before';
COMMENT ON COLUMN corgipile.stat_reading_groups.blocks_taken IS 'blocks, whole or in part, that were taken decoded from another member';
COMMENT ON COLUMN corgipile.stat_reading_groups.bytes_saved IS 'bytes of the table that were not read for these';
GRANT SELECT ON corgipile.stat_reading_groups TO PUBLIC;

-- ------------------------------------------------------------------------------------------------------------- prediction

-- Not STRICT: nulls and unseen may be NULL. All others give NULL for NULL.
--
-- A row, a value of a type that is not ours and that need not be there (pgvector's), and the only feature are all taken by the
-- functions of anynonarray, which look at the type. For rows there are functions of record with nulls, and with unseen alone, too: with
-- defaults for both they would fit a call with a row alone as well, and PostgreSQL would call none of them. Of one of anynonarray with nulls
-- it would say that it is meant by a call with a number and a text.
CREATE FUNCTION corgipile_predict(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(model_id bigint, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(model_id bigint, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict(name text, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(name text, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(name text, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(name text, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(name text, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(name text, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(model jsonb, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(model jsonb, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(model jsonb, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(model jsonb, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, record, varchar) IS 'the same with unseen alone';

-- Features one by one. Of one and of two features there are as many declarations as it takes that no call with an array, two arrays or a
-- row fits them as well: VARIADIC "any" alone would take these, too. Not STRICT: a feature that is NULL is not the same as none.
CREATE FUNCTION corgipile_predict(model_id bigint, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_evaluate(
    model_id bigint, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';

CREATE FUNCTION corgipile_evaluate(
    name text, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_by_name_wrapper';

CREATE FUNCTION corgipile_evaluate(
    model_id bigint, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_relation_wrapper';

CREATE FUNCTION corgipile_evaluate(
    name text, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_relation_by_name_wrapper';

COMMENT ON FUNCTION corgipile_evaluate(bigint, text, text, text, text)
    IS 'accuracy (R2 of a linear model) and loss of a model on other rows; nodes is off by default, and auto, or names of servers, evaluates where the rows are';
COMMENT ON FUNCTION corgipile_evaluate(text, text, text, text, text)
    IS 'accuracy (R2 of a linear model) and loss of a model on other rows; nodes is off by default, and auto, or names of servers, evaluates where the rows are';
COMMENT ON FUNCTION corgipile_evaluate(bigint, regclass, text, text, text) IS 'the same of a relation that is named by its OID';
COMMENT ON FUNCTION corgipile_evaluate(text, regclass, text, text, text) IS 'the same of a relation that is named by its OID';

-- -------------------------------------------------------------------------------------------------- explaining models

CREATE FUNCTION corgipile_coefficients(model_id bigint, source text, level float8 DEFAULT NULL)
RETURNS TABLE (feature text, coefficient float8, std_error float8, statistic float8, p_value float8, lower float8, upper float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_coefficients_wrapper';
COMMENT ON FUNCTION corgipile_coefficients(bigint, text, float8)
    IS 'weights of a model in the units of the data, with standard errors, tests and confidence intervals on these rows; level is 0.95 by default';

CREATE FUNCTION corgipile_coefficients(model_id bigint, source regclass, level float8 DEFAULT NULL)
RETURNS TABLE (feature text, coefficient float8, std_error float8, statistic float8, p_value float8, lower float8, upper float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_coefficients_relation_wrapper';
COMMENT ON FUNCTION corgipile_coefficients(bigint, regclass, float8)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_coefficients(name text, source text, level float8 DEFAULT NULL)
RETURNS TABLE (feature text, coefficient float8, std_error float8, statistic float8, p_value float8, lower float8, upper float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_coefficients_by_name_wrapper';
COMMENT ON FUNCTION corgipile_coefficients(text, text, float8)
    IS 'weights of a model in the units of the data, with standard errors, tests and confidence intervals on these rows; level is 0.95 by default';

CREATE FUNCTION corgipile_coefficients(name text, source regclass, level float8 DEFAULT NULL)
RETURNS TABLE (feature text, coefficient float8, std_error float8, statistic float8, p_value float8, lower float8, upper float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_coefficients_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_coefficients(text, regclass, float8)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_importance(model_id bigint, source text, repeats int DEFAULT NULL, seed bigint DEFAULT NULL, max_rows int DEFAULT NULL)
RETURNS TABLE (feature text, importance float8, deviation float8, effect float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_importance_wrapper';
COMMENT ON FUNCTION corgipile_importance(bigint, text, int, bigint, int)
    IS 'by how much the score of a model drops when a column is permuted, over 5 repeats of 100000 rows unless it is said; and how far the decision varies with it';

CREATE FUNCTION corgipile_importance(model_id bigint, source regclass, repeats int DEFAULT NULL, seed bigint DEFAULT NULL, max_rows int DEFAULT NULL)
RETURNS TABLE (feature text, importance float8, deviation float8, effect float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_importance_relation_wrapper';
COMMENT ON FUNCTION corgipile_importance(bigint, regclass, int, bigint, int)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_importance(name text, source text, repeats int DEFAULT NULL, seed bigint DEFAULT NULL, max_rows int DEFAULT NULL)
RETURNS TABLE (feature text, importance float8, deviation float8, effect float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_importance_by_name_wrapper';
COMMENT ON FUNCTION corgipile_importance(text, text, int, bigint, int)
    IS 'by how much the score of a model drops when a column is permuted, over 5 repeats of 100000 rows unless it is said; and how far the decision varies with it';

CREATE FUNCTION corgipile_importance(name text, source regclass, repeats int DEFAULT NULL, seed bigint DEFAULT NULL, max_rows int DEFAULT NULL)
RETURNS TABLE (feature text, importance float8, deviation float8, effect float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_importance_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_importance(text, regclass, int, bigint, int)
    IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_explain(model_id bigint, features record, source text DEFAULT NULL)
RETURNS TABLE (feature text, class text, contribution float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_explain_wrapper';
COMMENT ON FUNCTION corgipile_explain(bigint, record, text)
    IS 'what each column of a row adds to the decision of a linear model beside what it adds on average: over the rows of source, or else over those of the training, as far as features are standardized';

CREATE FUNCTION corgipile_explain(name text, features record, source text DEFAULT NULL)
RETURNS TABLE (feature text, class text, contribution float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_explain_by_name_wrapper';
COMMENT ON FUNCTION corgipile_explain(text, record, text)
    IS 'what each column of a row adds to the decision of a linear model beside what it adds on average: over the rows of source, or else over those of the training, as far as features are standardized';

CREATE FUNCTION corgipile_explain(model jsonb, features record, source text DEFAULT NULL)
RETURNS TABLE (feature text, class text, contribution float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_explain_by_value_wrapper';
COMMENT ON FUNCTION corgipile_explain(jsonb, record, text)
    IS 'what each column of a row adds to the decision of a linear model beside what it adds on average: over the rows of source, or else over those of the training, as far as features are standardized';

-- ------------------------------------------------------------------------------------------------- intervals and sets

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_calibrate(
    model_id bigint, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(bigint, text, text, text) IS 'keeps with a model how far it is from the truth on rows that it was not trained on';

CREATE FUNCTION corgipile_calibrate(
    name text, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_by_name_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(text, text, text, text) IS 'keeps with a model how far it is from the truth on rows that it was not trained on';

CREATE FUNCTION corgipile_calibrate(
    model_id bigint, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_relation_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(bigint, regclass, text, text) IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_calibrate(
    name text, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(text, regclass, text, text) IS 'the same of a relation that is named by its OID';

-- Features one by one are not taken: nobody could tell the coverage from a feature.
CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_interval(
    name text, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    name text, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    name text, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_set(
    name text, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    name text, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    name text, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';

-- ------------------------------------------------------------------------------------------------------------ drift

CREATE FUNCTION corgipile_profile(model_id bigint, source text, nodes text DEFAULT NULL, OUT tuples bigint, OUT features int)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_profile_wrapper';
COMMENT ON FUNCTION corgipile_profile(bigint, text, text) IS 'keeps with a model what the features of these rows are like, to compare others with; nodes is off by default, and auto, or names of servers, measures where the rows are';

CREATE FUNCTION corgipile_profile(name text, source text, nodes text DEFAULT NULL, OUT tuples bigint, OUT features int)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_profile_by_name_wrapper';
COMMENT ON FUNCTION corgipile_profile(text, text, text) IS 'keeps with a model what the features of these rows are like, to compare others with; nodes is off by default, and auto, or names of servers, measures where the rows are';

CREATE FUNCTION corgipile_profile(model_id bigint, source regclass, nodes text DEFAULT NULL, OUT tuples bigint, OUT features int)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_profile_relation_wrapper';
COMMENT ON FUNCTION corgipile_profile(bigint, regclass, text) IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_profile(name text, source regclass, nodes text DEFAULT NULL, OUT tuples bigint, OUT features int)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_profile_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_profile(text, regclass, text) IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_drift(model_id bigint, source text, nodes text DEFAULT NULL)
RETURNS TABLE (
    feature text, verdict text, psi float8, ks float8, mean float8, new_mean float8, deviation float8, new_deviation float8,
    missing float8, new_missing float8, unseen bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_drift_wrapper';
COMMENT ON FUNCTION corgipile_drift(bigint, text, text) IS 'how far the features of these rows are from those that the model has learned from; nodes as for corgipile_profile';

CREATE FUNCTION corgipile_drift(name text, source text, nodes text DEFAULT NULL)
RETURNS TABLE (
    feature text, verdict text, psi float8, ks float8, mean float8, new_mean float8, deviation float8, new_deviation float8,
    missing float8, new_missing float8, unseen bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_drift_by_name_wrapper';
COMMENT ON FUNCTION corgipile_drift(text, text, text) IS 'how far the features of these rows are from those that the model has learned from; nodes as for corgipile_profile';

CREATE FUNCTION corgipile_drift(model_id bigint, source regclass, nodes text DEFAULT NULL)
RETURNS TABLE (
    feature text, verdict text, psi float8, ks float8, mean float8, new_mean float8, deviation float8, new_deviation float8,
    missing float8, new_missing float8, unseen bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_drift_relation_wrapper';
COMMENT ON FUNCTION corgipile_drift(bigint, regclass, text) IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_drift(name text, source regclass, nodes text DEFAULT NULL)
RETURNS TABLE (
    feature text, verdict text, psi float8, ks float8, mean float8, new_mean float8, deviation float8, new_deviation float8,
    missing float8, new_missing float8, unseen bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_drift_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_drift(text, regclass, text) IS 'the same of a relation that is named by its OID';

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
    sparse        boolean DEFAULT NULL
) RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_init_wrapper';
COMMENT ON FUNCTION corgipile_sgd_init(text, int, float8, jsonb, int, boolean)
    IS 'the state before the first epoch of corgipile_sgd_agg(). NULL means the default: features that are not sparse';

CREATE FUNCTION corgipile.sgd_transition(corgipile.sgd_state, corgipile.sgd_state, float8, anyarray)
RETURNS corgipile.sgd_state
LANGUAGE c IMMUTABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_sgd_transition_wrapper';

CREATE FUNCTION corgipile.sgd_transition(corgipile.sgd_state, corgipile.sgd_state, float8, anynonarray)
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

CREATE AGGREGATE corgipile_sgd_agg(state corgipile.sgd_state, label float8, features anynonarray) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg(corgipile.sgd_state, float8, anynonarray)
    IS 'the state one epoch of SGD later, having learned from every vector';

CREATE AGGREGATE corgipile_sgd_agg(
    state corgipile.sgd_state, label float8, indices anyarray, "values" anycompatiblearray
) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg(corgipile.sgd_state, float8, anyarray, anycompatiblearray)
    IS 'the state one epoch of SGD later, having learned from every sparse row';

-- For databases that split an aggregate over several servers: Citus compares the types of the arguments with those that are
-- declared, so that none is anyarray to it. These are no overloads of corgipile_sgd_agg(), because a value that PostgreSQL would
-- cast by itself, such as a vector of pgvector to real[], would fit them as well as the others, which is an error.
CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features smallint[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, smallint[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features int[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, int[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features bigint[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, bigint[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features real[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, real[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features float8[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, float8[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, features numeric[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, numeric[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, indices int[], "values" real[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, int[], real[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers, for sparse rows';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, indices int[], "values" float8[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, int[], float8[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers, for sparse rows';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, indices bigint[], "values" real[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, bigint[], real[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers, for sparse rows';

CREATE AGGREGATE corgipile_sgd_agg_typed(state corgipile.sgd_state, label float8, indices bigint[], "values" float8[]) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile_sgd_agg_typed(corgipile.sgd_state, float8, bigint[], float8[])
    IS 'corgipile_sgd_agg() for databases that split an aggregate over several servers, for sparse rows';

-- For corgipile_train_uda(). Beside corgipile_sgd_agg() others may have put an aggregate whose argument types fit better than
-- anyarray; in this schema nobody creates anything.
CREATE AGGREGATE corgipile.sgd_agg(state corgipile.sgd_state, label float8, features anyarray) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile.sgd_agg(corgipile.sgd_state, float8, anyarray) IS 'corgipile_sgd_agg() for corgipile_train_uda()';

CREATE AGGREGATE corgipile.sgd_agg(state corgipile.sgd_state, label float8, features anynonarray) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile.sgd_agg(corgipile.sgd_state, float8, anynonarray)
    IS 'corgipile_sgd_agg() for corgipile_train_uda()';

CREATE AGGREGATE corgipile.sgd_agg(
    state corgipile.sgd_state, label float8, indices anyarray, "values" anycompatiblearray
) (
    SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state,
    COMBINEFUNC = corgipile.sgd_combine, FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE
);
COMMENT ON AGGREGATE corgipile.sgd_agg(corgipile.sgd_state, float8, anyarray, anycompatiblearray)
    IS 'corgipile_sgd_agg() for corgipile_train_uda()';

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
    model         text   DEFAULT NULL,
    label         text   DEFAULT NULL,
    features      text[] DEFAULT NULL,
    learning_rate float8 DEFAULT NULL,
    max_epochs    int    DEFAULT NULL,
    shuffle       text   DEFAULT NULL,
    seed          bigint DEFAULT NULL,
    name          text   DEFAULT NULL,
    options       jsonb  DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_train_uda_wrapper';
COMMENT ON FUNCTION corgipile_train_uda(text, text, text, text[], float8, int, text, bigint, text, jsonb)
    IS 'trains a model by corgipile_sgd_agg(), a query per epoch, and stores it; a row per epoch. NULL means the default: model logistic, label label, max_epochs 20, shuffle no_shuffle';

CREATE FUNCTION corgipile_train_uda(
    source        regclass,
    model         text   DEFAULT NULL,
    label         text   DEFAULT NULL,
    features      text[] DEFAULT NULL,
    learning_rate float8 DEFAULT NULL,
    max_epochs    int    DEFAULT NULL,
    shuffle       text   DEFAULT NULL,
    seed          bigint DEFAULT NULL,
    name          text   DEFAULT NULL,
    options       jsonb  DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_train_uda_wrapper';
COMMENT ON FUNCTION corgipile_train_uda(regclass, text, text, text[], float8, int, text, bigint, text, jsonb)
    IS 'the same of a relation that is named by its OID';

-- ------------------------------------------------------------------------------------------------------------ compression

CREATE TYPE corgipile.toc;

CREATE FUNCTION corgipile.toc_in(cstring) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_in_wrapper';

CREATE FUNCTION corgipile.toc_out(corgipile.toc) RETURNS cstring
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_out_wrapper';

CREATE FUNCTION corgipile.toc_recv(internal) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_recv_wrapper';

CREATE FUNCTION corgipile.toc_send(corgipile.toc) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_send_wrapper';

-- external: what is compressed is not compressed again
CREATE TYPE corgipile.toc (
    INPUT = corgipile.toc_in, OUTPUT = corgipile.toc_out, RECEIVE = corgipile.toc_recv, SEND = corgipile.toc_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE corgipile.toc IS 'a compressed mini-batch: a matrix with a row for each tuple';

CREATE FUNCTION corgipile_toc(entries float8[], encoding text DEFAULT 'auto') RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc(float8[], text) IS 'compresses a matrix';

CREATE FUNCTION corgipile_toc_rows(matrix corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_rows_wrapper';
COMMENT ON FUNCTION corgipile_toc_rows(corgipile.toc) IS 'rows of a compressed matrix';

CREATE FUNCTION corgipile_toc_columns(matrix corgipile.toc) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_columns_wrapper';
COMMENT ON FUNCTION corgipile_toc_columns(corgipile.toc) IS 'columns of a compressed matrix';

CREATE FUNCTION corgipile_toc_encoding(matrix corgipile.toc) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_encoding_wrapper';
COMMENT ON FUNCTION corgipile_toc_encoding(corgipile.toc) IS 'how a matrix is compressed: den, csr, cvi, dvi, toc, gzip or snappy';

CREATE FUNCTION corgipile_toc_bytes(matrix corgipile.toc) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_bytes_wrapper';
COMMENT ON FUNCTION corgipile_toc_bytes(corgipile.toc) IS 'bytes that a compressed matrix takes';

CREATE FUNCTION corgipile_toc_ratio(matrix corgipile.toc) RETURNS float8
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_ratio_wrapper';
COMMENT ON FUNCTION corgipile_toc_ratio(corgipile.toc) IS 'rows times columns times 8 bytes, over the bytes of a compressed matrix';

CREATE FUNCTION corgipile_toc_decompress(matrix corgipile.toc) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_decompress_wrapper';
COMMENT ON FUNCTION corgipile_toc_decompress(corgipile.toc) IS 'the matrix as it was';

CREATE FUNCTION corgipile_toc_element(matrix corgipile.toc, "row" int, "column" int) RETURNS float8
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME', 'corgipile_toc_element_wrapper';
COMMENT ON FUNCTION corgipile_toc_element(corgipile.toc, int, int) IS 'an element of a compressed matrix; rows and columns count from 1';

CREATE FUNCTION corgipile_toc_times(matrix corgipile.toc, "with" float8[]) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_times_wrapper';
COMMENT ON FUNCTION corgipile_toc_times(corgipile.toc, float8[]) IS 'product of a compressed matrix with a vector or a matrix';

CREATE FUNCTION corgipile_times_toc("with" float8[], matrix corgipile.toc) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_times_toc_wrapper';
COMMENT ON FUNCTION corgipile_times_toc(float8[], corgipile.toc) IS 'product of a vector or a matrix with a compressed matrix';

CREATE FUNCTION corgipile_toc_scale(matrix corgipile.toc, factor float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_scale_wrapper';
COMMENT ON FUNCTION corgipile_toc_scale(corgipile.toc, float8) IS 'a compressed matrix with each element multiplied by a number';

CREATE FUNCTION corgipile_toc_add(matrix corgipile.toc, summand float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_add_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(corgipile.toc, float8) IS 'a compressed matrix with a number added to each element';

CREATE FUNCTION corgipile_toc_scale(factor float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_scale_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_scale(float8, corgipile.toc) IS 'a compressed matrix with each element multiplied by a number';

CREATE FUNCTION corgipile_toc_add(summand float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_add_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(float8, corgipile.toc) IS 'a compressed matrix with a number added to each element';

CREATE OPERATOR * (LEFTARG = corgipile.toc, RIGHTARG = float8[], FUNCTION = corgipile_toc_times);
CREATE OPERATOR * (LEFTARG = float8[], RIGHTARG = corgipile.toc, FUNCTION = corgipile_times_toc);
CREATE OPERATOR * (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_scale, COMMUTATOR = *);
CREATE OPERATOR * (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_scale, COMMUTATOR = *);
CREATE OPERATOR + (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR + (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_add, COMMUTATOR = +);

-- By their entries, whatever their encoding: for DISTINCT, GROUP BY, UNION, ORDER BY, joins and indexes.
CREATE FUNCTION corgipile.toc_eq(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_eq_wrapper';
COMMENT ON FUNCTION corgipile.toc_eq(corgipile.toc, corgipile.toc) IS 'are all entries of two matrices equal?';

CREATE FUNCTION corgipile.toc_ne(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_ne_wrapper';
COMMENT ON FUNCTION corgipile.toc_ne(corgipile.toc, corgipile.toc) IS 'is any entry of two matrices different?';

CREATE FUNCTION corgipile.toc_lt(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_lt_wrapper';
COMMENT ON FUNCTION corgipile.toc_lt(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_le(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_le_wrapper';
COMMENT ON FUNCTION corgipile.toc_le(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_gt(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_gt_wrapper';
COMMENT ON FUNCTION corgipile.toc_gt(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_ge(corgipile.toc, corgipile.toc) RETURNS boolean
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_ge_wrapper';
COMMENT ON FUNCTION corgipile.toc_ge(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_cmp(corgipile.toc, corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_cmp_wrapper';
COMMENT ON FUNCTION corgipile.toc_cmp(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_hash(corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_hash_wrapper';
COMMENT ON FUNCTION corgipile.toc_hash(corgipile.toc) IS 'hash of a matrix';

CREATE FUNCTION corgipile.toc_hash_extended(corgipile.toc, bigint) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_hash_extended_wrapper';
COMMENT ON FUNCTION corgipile.toc_hash_extended(corgipile.toc, bigint) IS 'hash of a matrix, with a seed';

CREATE OPERATOR = (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_eq, COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = pg_catalog.eqsel, JOIN = pg_catalog.eqjoinsel, HASHES, MERGES
);
CREATE OPERATOR <> (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_ne, COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = pg_catalog.neqsel, JOIN = pg_catalog.neqjoinsel
);
CREATE OPERATOR < (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_lt, COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = pg_catalog.scalarltsel, JOIN = pg_catalog.scalarltjoinsel
);
CREATE OPERATOR <= (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_le, COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = pg_catalog.scalarlesel, JOIN = pg_catalog.scalarlejoinsel
);
CREATE OPERATOR > (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_gt, COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = pg_catalog.scalargtsel, JOIN = pg_catalog.scalargtjoinsel
);
CREATE OPERATOR >= (
    LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.toc_ge, COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = pg_catalog.scalargesel, JOIN = pg_catalog.scalargejoinsel
);

CREATE OPERATOR CLASS corgipile.toc_ops DEFAULT FOR TYPE corgipile.toc USING btree AS
    OPERATOR 1 @extschema@.<, OPERATOR 2 @extschema@.<=, OPERATOR 3 @extschema@.=, OPERATOR 4 @extschema@.>=,
    OPERATOR 5 @extschema@.>,
    FUNCTION 1 corgipile.toc_cmp(corgipile.toc, corgipile.toc);
CREATE OPERATOR CLASS corgipile.toc_ops DEFAULT FOR TYPE corgipile.toc USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 corgipile.toc_hash(corgipile.toc),
    FUNCTION 2 corgipile.toc_hash_extended(corgipile.toc, bigint);

CREATE FUNCTION corgipile_compress(
    source      text,
    destination text,
    label       text   DEFAULT 'label',
    features    text[] DEFAULT NULL,
    batch_rows  int    DEFAULT 250,
    encoding    text   DEFAULT 'auto',
    "order"     text   DEFAULT 'corgipile',
    seed        bigint DEFAULT NULL,
    index_base  int    DEFAULT 1,
    dimensions  int    DEFAULT NULL,
    nulls       text   DEFAULT 'error',
    OUT batches bigint, OUT tuples bigint, OUT bytes bigint, OUT ratio float8, OUT seconds float8, OUT skipped bigint,
    OUT encodings jsonb, OUT order_seed bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_compress_wrapper';
COMMENT ON FUNCTION corgipile_compress(text, text, text, text[], int, text, text, bigint, int, int, text)
    IS 'writes a table of compressed mini-batches';

CREATE FUNCTION corgipile_compression_report(
    source     text,
    label      text   DEFAULT 'label',
    features   text[] DEFAULT NULL,
    batch_rows int    DEFAULT 250,
    "order"    text   DEFAULT 'no_shuffle',
    seed       bigint DEFAULT NULL,
    index_base int    DEFAULT 1,
    dimensions int    DEFAULT NULL,
    nulls      text   DEFAULT 'error'
) RETURNS TABLE (
    encoding text, batches bigint, bytes bigint, ratio float8, stored_bytes bigint, stored_ratio float8, seconds float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 8
AS 'MODULE_PATHNAME', 'corgipile_compression_report_wrapper';
COMMENT ON FUNCTION corgipile_compression_report(text, text, text[], int, text, bigint, int, int, text)
    IS 'what each encoding would make of mini-batches of a table';

CREATE FUNCTION corgipile_predict(model_id bigint, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_toc_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix, as numbers';

CREATE FUNCTION corgipile_predict(name text, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_toc_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix, as numbers';

CREATE FUNCTION corgipile_predict(model jsonb, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_toc_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix, as numbers';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features corgipile.toc) RETURNS text[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_label_toc_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix';

CREATE FUNCTION corgipile_predict_label(name text, features corgipile.toc) RETURNS text[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_label_toc_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix';

CREATE FUNCTION corgipile_predict_label(model jsonb, features corgipile.toc) RETURNS text[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_label_toc_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, corgipile.toc) IS 'the labels that a model gives to the rows of a compressed matrix';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_toc_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, corgipile.toc) IS 'the probabilities of the labels for each row of a compressed matrix';

CREATE FUNCTION corgipile_predict_proba(name text, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_toc_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, corgipile.toc) IS 'the probabilities of the labels for each row of a compressed matrix';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_toc_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, corgipile.toc) IS 'the probabilities of the labels for each row of a compressed matrix';
