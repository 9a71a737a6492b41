-- corgipile: models, and the first part of what CREATE EXTENSION runs.
\echo Use "CREATE EXTENSION corgipile" to load this file. \quit

-- This runs as superuser, and others may create in the schema it installs into, which is searched right behind pg_catalog. An
-- operator or function of theirs is found if its argument types fit better: all that is called here is qualified, and `make
-- lint` checks it. Types have one meaning, pg_catalog's.

CREATE SCHEMA corgipile;
GRANT USAGE ON SCHEMA corgipile TO PUBLIC;
COMMENT ON SCHEMA corgipile IS 'models trained by corgipile';

-- A role: its OID, which is written out as its name and read in as the role of that name; so a dump is right wherever it is
-- restored. A regrole without its role is written as a number, which elsewhere is another role's.
CREATE TYPE corgipile.stored_role;

CREATE FUNCTION corgipile.stored_role_in(cstring) RETURNS corgipile.stored_role
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_stored_role_in_wrapper';

CREATE FUNCTION corgipile.stored_role_out(corgipile.stored_role) RETURNS cstring
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_stored_role_out_wrapper';

CREATE FUNCTION corgipile.stored_role_recv(internal) RETURNS corgipile.stored_role
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_stored_role_recv_wrapper';

CREATE FUNCTION corgipile.stored_role_send(corgipile.stored_role) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_stored_role_send_wrapper';

CREATE TYPE corgipile.stored_role (
    INPUT = corgipile.stored_role_in, OUTPUT = corgipile.stored_role_out,
    RECEIVE = corgipile.stored_role_recv, SEND = corgipile.stored_role_send, LIKE = pg_catalog.text, COLLATABLE = true
);
COMMENT ON TYPE corgipile.stored_role IS 'a role, or the name of a role that does not exist';
CREATE CAST (corgipile.stored_role AS pg_catalog.text) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (pg_catalog.text AS corgipile.stored_role) WITHOUT FUNCTION;

CREATE FUNCTION corgipile.shown_role(role corgipile.stored_role) RETURNS text
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_shown_role_wrapper';
COMMENT ON FUNCTION corgipile.shown_role(corgipile.stored_role) IS 'name of a role; public for all roles; for a dropped role its number; for a role that did not exist when a dump was restored, its name after a question mark';

CREATE FUNCTION corgipile.may_see(owner corgipile.stored_role, granted_to corgipile.stored_role[]) RETURNS boolean
LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'corgipile_may_see_wrapper';
COMMENT ON FUNCTION corgipile.may_see(corgipile.stored_role, corgipile.stored_role[]) IS 'may the current user read a model with this owner and these grants?';

-- Users see corgipile.models, a view of it: its columns are what the documents promise, this table may get others.
CREATE TABLE corgipile.stored_models (
    model_id            bigint GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME corgipile.models_model_id_seq) CONSTRAINT models_pkey PRIMARY KEY,
    -- corgipile_predict() searches the index with this collation
    name                text COLLATE "C",
    version             int NOT NULL DEFAULT 1,
    deployed            boolean NOT NULL DEFAULT false,
    -- of versions that were dropped or renamed: kept with the latest remaining version
    last_version        int,
    owner               corgipile.stored_role COLLATE "C" NOT NULL,
    granted_to          corgipile.stored_role[] COLLATE "C" NOT NULL DEFAULT '{}',
    predict_granted_to  corgipile.stored_role[] COLLATE "C" NOT NULL DEFAULT '{}',
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
    hidden_layer_sizes  int[],
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
    -- per owner: no role can block a model by giving its identity to a model of its own
    CONSTRAINT models_identity_key UNIQUE (identity, owner)
);
CREATE UNIQUE INDEX models_deployed_key ON corgipile.stored_models (name, owner) WHERE deployed;

COMMENT ON TABLE corgipile.stored_models IS 'trained models; see corgipile.models';
COMMENT ON COLUMN corgipile.stored_models.last_version IS 'highest deleted version of the name, if it is higher';
COMMENT ON COLUMN corgipile.stored_models.training_state IS 'state from which corgipile_train() continues with warm_start; NULL if it cannot';

ALTER TABLE corgipile.stored_models ENABLE ROW LEVEL SECURITY;
CREATE POLICY models_seen ON corgipile.stored_models FOR SELECT USING (corgipile.may_see(owner, granted_to));
-- For views and pg_dump, which could not run without. With any other privilege everybody could lock the table, and stop
-- all predictions with that.
GRANT SELECT ON corgipile.stored_models TO PUBLIC;
GRANT SELECT ON SEQUENCE corgipile.models_model_id_seq TO PUBLIC;

SELECT pg_catalog.pg_extension_config_dump('corgipile.stored_models', '');
SELECT pg_catalog.pg_extension_config_dump('corgipile.models_model_id_seq', '');

CREATE FUNCTION corgipile.models_to_predict()
    RETURNS TABLE (model_id bigint, owner corgipile.stored_role, name text, version int, deployed boolean, created_at timestamptz, comment text,
                   model text, label text, label_type regtype, classes text[], features text[], feature_kind text)
LANGUAGE c STABLE PARALLEL SAFE ROWS 10
AS 'MODULE_PATHNAME', 'corgipile_models_to_predict_wrapper';
COMMENT ON FUNCTION corgipile.models_to_predict() IS 'the models that the current user may predict with but not read; corgipile.models includes them';

CREATE VIEW corgipile.models WITH (security_invoker = true) AS
    SELECT model_id, name, version, deployed, corgipile.shown_role(owner) AS owner,
           ARRAY(SELECT corgipile.shown_role(g.role) FROM pg_catalog.unnest(granted_to) WITH ORDINALITY AS g(role, i) ORDER BY g.i)
               AS granted_to,
           created_at, comment, model, source, label, label_type::pg_catalog.text AS label_type, classes,
           features, feature_kind, categories, index_base, hyperparameters, weights, intercepts, feature_mean, feature_scale,
           skipped, preparation_seconds, shuffle_bytes, history, hidden_layer_sizes, activation, output, feature_fill, imputed,
           identity, published, calibration_rows, calibration_scores, profile,
           sigmoid_slopes, sigmoid_offsets,
           ARRAY(SELECT corgipile.shown_role(g.role) FROM pg_catalog.unnest(predict_granted_to) WITH ORDINALITY AS g(role, i)
                  ORDER BY g.i) AS predict_granted_to
      FROM corgipile.stored_models
     UNION ALL
    SELECT model_id, name, version, deployed, corgipile.shown_role(owner), NULL, created_at, comment, model, NULL, label,
           label_type::pg_catalog.text, classes, features, feature_kind, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
      FROM corgipile.models_to_predict();

COMMENT ON VIEW corgipile.models IS 'trained models that the current user owns, through membership of the owner, or was granted; if granted for predictions only, the columns with weights and training data are NULL';
COMMENT ON COLUMN corgipile.models.model_id IS 'primary key';
COMMENT ON COLUMN corgipile.models.name IS 'may be NULL';
COMMENT ON COLUMN corgipile.models.version IS 'version number among the owner''s models of this name, from 1';
COMMENT ON COLUMN corgipile.models.deployed IS 'the name refers to this version instead of the latest';
COMMENT ON COLUMN corgipile.models.owner IS 'the role that trained it; for a dropped role its number; for a role that did not exist when a dump was restored, its name after a question mark';
COMMENT ON COLUMN corgipile.models.granted_to IS 'roles that may read and use the model; public means all roles';
COMMENT ON COLUMN corgipile.models.created_at IS 'start of the transaction that trained it';
COMMENT ON COLUMN corgipile.models.comment IS 'set by corgipile_comment()';
COMMENT ON COLUMN corgipile.models.model IS 'logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp or mlp_regression';
COMMENT ON COLUMN corgipile.models.source IS 'table or query that it was trained on, as given';
COMMENT ON COLUMN corgipile.models.label IS 'label column';
COMMENT ON COLUMN corgipile.models.label_type IS 'type of the label column';
COMMENT ON COLUMN corgipile.models.classes IS 'label values in ascending order; with two classes, the first is the negative one; NULL for models that predict numbers';
COMMENT ON COLUMN corgipile.models.features IS 'names of the feature columns; for sparse features, the columns of indices and values, or of the sparse vectors';
COMMENT ON COLUMN corgipile.models.feature_kind IS 'array: elements of one column of arrays or vectors; columns: any number of columns; sparse: an array of indices and one of values, or sparse vectors';
COMMENT ON COLUMN corgipile.models.categories IS 'for each categorical column, its values in the order of their weights, null for the category of NULLs: {"site": ["harbour", "mine", null]}; for hashed columns, the number of buckets that they share, and whether lexemes of a tsvector or elements of an array are hashed: {"url": {"buckets": 262144}, "body": {"buckets": 262144, "of": "lexemes"}}; for vectors next to other columns, how many elements they have: {"embedding": {"elements": 384}}';
COMMENT ON COLUMN corgipile.models.index_base IS 'the smallest index of sparse features, 0 or 1';
COMMENT ON COLUMN corgipile.models.hyperparameters IS 'what is needed to train the model again: arguments, options with their defaults, and the seed; and the resulting sizes, pages_per_block and buffer_blocks';
COMMENT ON COLUMN corgipile.models.weights IS 'one weight per feature, of standardized features if feature_mean is set; for softmax and one-vs-rest SVMs, class by class; for networks, layer by layer, and within a layer output by output, with a weight per input';
COMMENT ON COLUMN corgipile.models.intercepts IS 'the intercept; for softmax and one-vs-rest SVMs, one per class; for networks, one per unit, layer by layer';
COMMENT ON COLUMN corgipile.models.feature_mean IS 'mean of each feature, if the model was trained on standardized features; 0 for sparse features and categories; no elements for buckets';
COMMENT ON COLUMN corgipile.models.feature_scale IS 'standard deviation of each feature; 1 for constant features and categories; no elements for buckets';
COMMENT ON COLUMN corgipile.models.skipped IS 'rows skipped in each epoch because they have NULLs';
COMMENT ON COLUMN corgipile.models.feature_fill IS 'value that replaces a NULL, for each feature: its mean in training, before it is transformed and standardized; 0 for categories; no elements for buckets; NULL if the model does not impute';
COMMENT ON COLUMN corgipile.models.imputed IS 'rows in which NULLs of features were imputed; NULL if the model does not impute';
COMMENT ON COLUMN corgipile.models.preparation_seconds IS 'time of the pass before the first epoch, which computes means and deviations, classes of softmax and mlp, balanced weights and categories; about 0 without one';
COMMENT ON COLUMN corgipile.models.shuffle_bytes IS 'disk space of the copy that a full shuffle made; NULL without one';
COMMENT ON COLUMN corgipile.models.history IS 'rows returned by corgipile_train(), one object per epoch; after a warm start, with the earlier epochs of the same training';
COMMENT ON COLUMN corgipile.models.hidden_layer_sizes IS 'units of the hidden layers; NULL except for networks';
COMMENT ON COLUMN corgipile.models.activation IS 'activation function of the hidden layers: sigmoid, relu or tanh; NULL except for networks';
COMMENT ON COLUMN corgipile.models.output IS 'output of the last layer: sigmoid or softmax, for mlp_regression identity; NULL except for networks';
COMMENT ON COLUMN corgipile.models.identity IS 'identifies this version on all servers that it was published to';
COMMENT ON COLUMN corgipile.models.published IS 'it was published to this server: queries of other servers may use it by its name here';
COMMENT ON COLUMN corgipile.models.calibration_rows IS 'number of rows given to corgipile_calibrate(); NULL before';
COMMENT ON COLUMN corgipile.models.calibration_scores IS 'nonconformity scores of these rows, ascending: the absolute error, or 1 minus the probability of the true label, or the decision against it; for more than 3072 rows, 3072 quantiles of them';
COMMENT ON COLUMN corgipile.models.profile IS 'what its features were like in training, or on the rows that corgipile_profile() was given: mean, stddev, fraction of NULLs and shares between quantiles of each number, rows of each category; NULL if nothing is kept';
COMMENT ON COLUMN corgipile.models.sigmoid_slopes IS 'for an SVM trained with probability, one per output: the probability of its class is 1 / (1 + e^(slope * decision + offset)), with several outputs divided by their sum; NULL otherwise';
COMMENT ON COLUMN corgipile.models.sigmoid_offsets IS 'offsets that belong to sigmoid_slopes';
COMMENT ON COLUMN corgipile.models.predict_granted_to IS 'roles that may only predict with the model, not read weights and training data; public means all roles';
GRANT SELECT ON corgipile.models TO PUBLIC;

CREATE VIEW corgipile.current_models WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, m.version, m.deployed, corgipile.shown_role(m.owner) AS owner
      FROM corgipile.stored_models AS m
     WHERE NOT EXISTS (SELECT FROM corgipile.stored_models AS o
                        WHERE o.name OPERATOR(pg_catalog.=) m.name AND o.owner OPERATOR(pg_catalog.=) m.owner
                          AND (o.deployed, o.version) OPERATOR(pg_catalog.>) (m.deployed, m.version))
     ORDER BY m.model_id;
COMMENT ON VIEW corgipile.current_models IS 'for each name of each owner the version that it refers to: the deployed one, else the latest that the current user may read; and the models without a name';
COMMENT ON COLUMN corgipile.current_models.deployed IS 'the name refers to this version instead of the latest';
COMMENT ON COLUMN corgipile.current_models.owner IS 'the role that trained it; for a dropped role, its number';

CREATE VIEW corgipile.all_coefficients WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, c.class, f.feature,
           CASE WHEN f.place OPERATOR(pg_catalog.=) 0 THEN a.intercepts[c.output]
                ELSE a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) f.place]
           END AS standardized_coefficient,
           a.mean[f.place] AS mean, a.scale[f.place] AS scale, m.version, c.output AS class_number, f.place::int AS feature_number,
           CASE WHEN f.place OPERATOR(pg_catalog.=) 0
                THEN a.intercepts[c.output]::pg_catalog.float8 OPERATOR(pg_catalog.-) COALESCE(s.at_zero, 0)
                ELSE a.weights[((c.output OPERATOR(pg_catalog.-) 1) OPERATOR(pg_catalog.*) a.dim) OPERATOR(pg_catalog.+) f.place]
                     OPERATOR(pg_catalog./) COALESCE(a.scale[f.place], 1)
           END AS coefficient
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
            -- of a column of categories each value, of one of vectors each element
            SELECT u.name OPERATOR(pg_catalog.||) COALESCE(v.suffix, ''), pg_catalog.row_number() OVER (ORDER BY u.i, v.j)
              FROM pg_catalog.unnest(m.features) WITH ORDINALITY AS u(name, i)
              LEFT JOIN LATERAL (
                    SELECT COALESCE('=' OPERATOR(pg_catalog.||) t.value, ' IS NULL'), t.j
                      FROM pg_catalog.jsonb_array_elements_text(
                                CASE WHEN pg_catalog.jsonb_typeof(m.categories OPERATOR(pg_catalog.->) u.name) OPERATOR(pg_catalog.=) 'array'
                                    THEN m.categories OPERATOR(pg_catalog.->) u.name END)
                           WITH ORDINALITY AS t(value, j)
                     UNION ALL
                    SELECT pg_catalog.format('[%s]', t.j), t.j
                      FROM pg_catalog.generate_series(1, ((m.categories OPERATOR(pg_catalog.->) u.name) OPERATOR(pg_catalog.->>) 'elements')::pg_catalog.int8) AS t(j)
                    ) AS v(suffix, j)
                ON true
             WHERE m.feature_kind OPERATOR(pg_catalog.=) 'columns'
               AND ((m.categories OPERATOR(pg_catalog.->) u.name) OPERATOR(pg_catalog.->>) 'buckets') IS NULL
             UNION ALL
            -- the buckets of hashed columns come last
            SELECT pg_catalog.format('hash[%s]', i OPERATOR(pg_catalog.-) 1), (a.dim OPERATOR(pg_catalog.-) h.buckets) OPERATOR(pg_catalog.+) i
              FROM (SELECT pg_catalog.max((c.value OPERATOR(pg_catalog.->>) 'buckets')::int) AS buckets
                      FROM pg_catalog.jsonb_each(m.categories) AS c(name, value)
                     WHERE pg_catalog.jsonb_typeof(c.value) OPERATOR(pg_catalog.=) 'object') AS h,
                   LATERAL pg_catalog.generate_series(1, h.buckets) AS i
            ) AS f(feature, place)
     -- The weights of hidden layers are no coefficients of features.
     WHERE m.hidden_layer_sizes IS NULL
     ORDER BY m.model_id, c.output, f.place;
COMMENT ON VIEW corgipile.all_coefficients IS 'coefficients of all versions of all models, as in corgipile.coefficients';
COMMENT ON COLUMN corgipile.all_coefficients.model_id IS 'the model';
COMMENT ON COLUMN corgipile.all_coefficients.name IS 'name of the model; may be NULL';
COMMENT ON COLUMN corgipile.all_coefficients.class IS 'class of the weight; NULL except for softmax and one-vs-rest SVMs';
COMMENT ON COLUMN corgipile.all_coefficients.feature IS 'name of the column, or (intercept); x[1], x[2], ... for a column x of arrays or vectors; value column and index for sparse features; column=value for categories, and column IS NULL; hash[0], hash[1], ... for buckets of hashed columns';
COMMENT ON COLUMN corgipile.all_coefficients.standardized_coefficient IS 'the weight, or the intercept, of the features as the model was trained on them: standardized if there are a mean and a scale';
COMMENT ON COLUMN corgipile.all_coefficients.mean IS 'mean that is subtracted from the feature first; NULL if features were not standardized';
COMMENT ON COLUMN corgipile.all_coefficients.scale IS 'standard deviation that the feature is then divided by';
COMMENT ON COLUMN corgipile.all_coefficients.version IS 'version of the model';
COMMENT ON COLUMN corgipile.all_coefficients.class_number IS 'number of the class, from 1; always 1 except for softmax and one-vs-rest SVMs';
COMMENT ON COLUMN corgipile.all_coefficients.feature_number IS 'number of the feature, from 1; 0 for (intercept)';
COMMENT ON COLUMN corgipile.all_coefficients.coefficient IS 'the weight in the units of the data: what the decision gains with each unit of the feature, or of its logarithm if it is taken by that; of (intercept), the decision where all features are 0';

CREATE VIEW corgipile.coefficients WITH (security_invoker = true) AS
    SELECT a.model_id, a.name, a.class, a.feature, a.standardized_coefficient, a.mean, a.scale, a.version, a.coefficient
      FROM corgipile.all_coefficients AS a
     WHERE EXISTS (SELECT FROM corgipile.current_models AS c WHERE c.model_id OPERATOR(pg_catalog.=) a.model_id)
     ORDER BY a.model_id, a.class_number, a.feature_number;
COMMENT ON VIEW corgipile.coefficients IS 'coefficients of the current version of each model, by feature name; of standardized features if mean and scale are not NULL: one row per feature, and one for (intercept); for softmax and one-vs-rest SVMs, for each class; networks have no coefficients';

CREATE VIEW corgipile.all_training_history WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, h.epoch, h.loss, h.accuracy, h.learning_rate, h.tuples, h.seconds, h.r2, h.shuffle_seconds, m.version,
           h.validation_loss, h.validation_score, m.hyperparameters OPERATOR(pg_catalog.->) 'grid_point' AS grid_point,
           m.hyperparameters OPERATOR(pg_catalog.->>) 'group' AS group_value, m.source
      FROM corgipile.stored_models AS m
     CROSS JOIN LATERAL pg_catalog.json_to_recordset(m.history)
        AS h(epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8, r2 float8,
             shuffle_seconds float8, validation_loss float8, validation_score float8)
     ORDER BY m.model_id, h.epoch;
COMMENT ON VIEW corgipile.all_training_history IS 'rows returned by corgipile_train() for each epoch of all versions of all models';
COMMENT ON COLUMN corgipile.all_training_history.model_id IS 'the model';
COMMENT ON COLUMN corgipile.all_training_history.name IS 'name of the model; may be NULL';
COMMENT ON COLUMN corgipile.all_training_history.epoch IS 'from 1';
COMMENT ON COLUMN corgipile.all_training_history.loss IS 'mean loss of the tuples, each computed just before the model was updated with it, plus the penalties at the end of the epoch';
COMMENT ON COLUMN corgipile.all_training_history.accuracy IS 'fraction of tuples classified correctly, each just before the model was updated with it; NULL for models that predict numbers';
COMMENT ON COLUMN corgipile.all_training_history.learning_rate IS 'step size in this epoch';
COMMENT ON COLUMN corgipile.all_training_history.tuples IS 'training tuples';
COMMENT ON COLUMN corgipile.all_training_history.seconds IS 'time of the epoch, without a full shuffle before it';
COMMENT ON COLUMN corgipile.all_training_history.r2 IS 'R2 of the predictions, each made just before the model was updated; NULL except for model linear';
COMMENT ON COLUMN corgipile.all_training_history.shuffle_seconds IS 'time of the full shuffle before the epoch; 0 without one';
COMMENT ON COLUMN corgipile.all_training_history.version IS 'version of the model';
COMMENT ON COLUMN corgipile.all_training_history.validation_loss IS 'mean loss of the held-out rows; NULL without any';
COMMENT ON COLUMN corgipile.all_training_history.validation_score IS 'accuracy, or R2, of the held-out rows';
COMMENT ON COLUMN corgipile.all_training_history.grid_point IS 'the grid''s values for the model; NULL without a grid';
COMMENT ON COLUMN corgipile.all_training_history.group_value IS 'the group of the model; NULL without group_by';
COMMENT ON COLUMN corgipile.all_training_history.source IS 'table or query that it was trained on, as given; distinguishes folds';

CREATE VIEW corgipile.training_history WITH (security_invoker = true) AS
    SELECT a.model_id, a.name, a.epoch, a.loss, a.accuracy, a.learning_rate, a.tuples, a.seconds, a.r2, a.shuffle_seconds, a.version,
           a.validation_loss, a.validation_score, a.grid_point, a.group_value, a.source
      FROM corgipile.all_training_history AS a
     WHERE EXISTS (SELECT FROM corgipile.current_models AS c WHERE c.model_id OPERATOR(pg_catalog.=) a.model_id)
     ORDER BY a.model_id, a.epoch;
COMMENT ON VIEW corgipile.training_history IS 'rows returned by corgipile_train() for each epoch of the current version of each model';

GRANT SELECT ON corgipile.current_models, corgipile.all_coefficients, corgipile.coefficients, corgipile.all_training_history,
                corgipile.training_history TO PUBLIC;

CREATE FUNCTION corgipile.forget_model() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'corgipile_forget_wrapper';
-- as a trigger of a table of their own it would let anybody take others' models out
REVOKE ALL ON FUNCTION corgipile.forget_model() FROM PUBLIC;
COMMENT ON FUNCTION corgipile.forget_model() IS 'removes changed and deleted models from shared memory';
CREATE TRIGGER forget_model AFTER UPDATE OR DELETE ON corgipile.stored_models
    FOR EACH ROW EXECUTE FUNCTION corgipile.forget_model();

-- A subscriber of a publication FOR ALL TABLES has models of its own under the same ids: it takes no others'.
CREATE FUNCTION corgipile.not_replicated() RETURNS trigger
LANGUAGE c
AS 'MODULE_PATHNAME', 'corgipile_not_replicated_wrapper';
REVOKE ALL ON FUNCTION corgipile.not_replicated() FROM PUBLIC;
COMMENT ON FUNCTION corgipile.not_replicated() IS 'skips rows from logical replication';
CREATE TRIGGER not_replicated BEFORE INSERT OR UPDATE OR DELETE ON corgipile.stored_models
    FOR EACH ROW EXECUTE FUNCTION corgipile.not_replicated();
ALTER TABLE corgipile.stored_models ENABLE REPLICA TRIGGER not_replicated;

-- The number of a version is not reused while another version of the name exists, and a name always has a defined
-- meaning after its deployed version is deleted.
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
        -- of a name that is gone there is nothing to remember
        CONTINUE WHEN gone.latest IS NULL;
        UPDATE corgipile.stored_models AS m SET last_version = GREATEST(m.last_version, gone.version)
         WHERE m.name = gone.name AND m.owner = gone.owner AND m.version = gone.latest AND gone.version > gone.latest;
        IF gone.deployed IS NOT NULL THEN
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
COMMENT ON FUNCTION corgipile.stat_models() IS 'models in shared memory that the current user may use; see the view';

CREATE VIEW corgipile.stat_models WITH (security_invoker = true) AS
    SELECT m.model_id, m.name, m.version, s.bytes, s.predictions, s.hits
      FROM (SELECT model_id, pg_catalog.sum(bytes)::bigint AS bytes, pg_catalog.sum(predictions)::bigint AS predictions,
                   pg_catalog.sum(hits)::bigint AS hits
              FROM corgipile.stat_models() GROUP BY model_id) AS s
      JOIN corgipile.stored_models AS m ON m.model_id OPERATOR(pg_catalog.=) s.model_id;
COMMENT ON VIEW corgipile.stat_models IS 'models in shared memory that the current user may use: their size, and their use by completed transactions since they were loaded';
COMMENT ON COLUMN corgipile.stat_models.bytes IS 'size in shared memory';
COMMENT ON COLUMN corgipile.stat_models.predictions IS 'predictions from shared memory by completed transactions';
COMMENT ON COLUMN corgipile.stat_models.hits IS 'lookups, one per statement, that found the model in shared memory, by completed transactions';
GRANT SELECT ON corgipile.stat_models TO PUBLIC;
