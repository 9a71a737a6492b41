-- Training.

CREATE FUNCTION corgipile_support(internal) RETURNS internal
LANGUAGE c STRICT
AS 'MODULE_PATHNAME', 'corgipile_support_wrapper';
COMMENT ON FUNCTION corgipile_support(internal) IS 'planner support: loads the library before a query is planned, and gives predictions the columns of a row in place of the row';

-- What a training, an evaluation or a measurement on another server calls here. The first stands in a cursor, which keeps what is
-- known between two calls of the second, and reads the rows as the role that is connected.
CREATE FUNCTION corgipile.node_training(task text) RETURNS TABLE (n bigint, bytes bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 1000 SUPPORT @extschema@.corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_node_training_wrapper';
COMMENT ON FUNCTION corgipile.node_training(text) IS 'does this server''s part of functions with servers, such as corgipile_train(); read through a cursor, one row per request';

CREATE FUNCTION corgipile.node_step(request bytea) RETURNS bytea
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_node_step_wrapper';
COMMENT ON FUNCTION corgipile.node_step(bytea) IS 'sets the next request to this server''s part of functions with servers, such as corgipile_train()';

-- Only for the roles of user mappings on other servers: a training there has this server work and keep memory for it.
REVOKE ALL ON FUNCTION corgipile.node_training(text), corgipile.node_step(bytea) FROM PUBLIC;

-- NULL is the default of every argument of those functions that train and shuffle, and means "not given": what it stands for is
-- said once, in crates/options/src/table, and shown by corgipile_options(). Another default could not be told from the same value
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
    prefetch            text    DEFAULT NULL,
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
    hidden_layer_sizes  int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    verbose             boolean DEFAULT NULL,
    shared_scan         boolean DEFAULT NULL,
    servers             text    DEFAULT NULL,
    solver              text    DEFAULT NULL,
    statistics          text    DEFAULT NULL,
    unseen_group        text    DEFAULT NULL,
    positive            text    DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8,
    r2 float8, validation_loss float8, validation_score float8, grid_point jsonb, group_value text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text,
                             int, text, text, jsonb, float8, int, float8, float8, text, text, boolean, text, text, int[],
                             float8, int, boolean, boolean, text, text, text, text, text)
    IS 'trains a model with SGD and stores it; a row per epoch. NULL means the default: as in the training that warm_start names, but for max_epochs, prefetch and workers, or else model auto, by the label, label label, max_epochs auto, shuffle corgipile, block_size auto, buffer_size auto, prefetch auto, workers 1';

-- A training whose model is committed every few epochs. Without SET search_path, which would forbid COMMIT: all names are qualified.
CREATE PROCEDURE corgipile_train_in_steps(
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
    prefetch            text    DEFAULT NULL,
    workers             int     DEFAULT NULL,
    warm_start          text    DEFAULT NULL,
    sample              float8  DEFAULT NULL,
    batch_size          int     DEFAULT NULL,
    l1                  float8  DEFAULT NULL,
    l2                  float8  DEFAULT NULL,
    optimizer           text    DEFAULT NULL,
    schedule            text    DEFAULT NULL,
    standardize         boolean DEFAULT NULL,
    nulls               text    DEFAULT NULL,
    class_weight        text    DEFAULT NULL,
    hidden_layer_sizes  int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    verbose             boolean DEFAULT NULL,
    shared_scan         boolean DEFAULT NULL,
    servers             text    DEFAULT NULL,
    solver              text    DEFAULT NULL,
    statistics          text    DEFAULT NULL,
    epochs_per_step     int     DEFAULT NULL
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    continued pg_catalog.int8;
    done pg_catalog.int4;
    stopped pg_catalog.bool;
    is_step pg_catalog.bool;
    planned pg_catalog.int4 := coalesce(max_epochs, 20);
    epochs pg_catalog.int8;
    last_loss pg_catalog.float8;
BEGIN
    epochs_per_step := coalesce(epochs_per_step, 1);
    IF name IS NULL OR name OPERATOR(pg_catalog.=) '' THEN
        RAISE EXCEPTION 'argument name of corgipile_train_in_steps() is missing'
            USING ERRCODE = 'null_value_not_allowed', HINT = 'Give the model a name, as in name => ''m'': a later call finds the model by it.';
    ELSIF epochs_per_step OPERATOR(pg_catalog.<) 1 THEN
        RAISE EXCEPTION 'argument epochs_per_step of corgipile_train_in_steps() must be at least 1, not %', epochs_per_step USING ERRCODE = 'invalid_parameter_value',
            HINT = 'It is how many epochs are trained before the model is committed.';
    ELSIF options OPERATOR(pg_catalog.?|) '{group_by,grid}' THEN
        RAISE EXCEPTION 'corgipile_train_in_steps() trains one model, without group_by and grid' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Call it once for each group, with a query as source, and for each point.';
    END IF;
    -- an error at once in a transaction block, and not after the first step
    COMMIT;
    LOOP
        continued := NULL; done := 0; stopped := false;
        -- a version that is no step, or that somebody has said something of, stays
        SELECT m.model_id, pg_catalog.json_array_length(m.history), m.hyperparameters OPERATOR(pg_catalog.?) 'stopped',
               m.hyperparameters OPERATOR(pg_catalog.?) 'planned_epochs' AND m.comment IS NULL AND NOT m.deployed
          INTO continued, done, stopped, is_step
          FROM corgipile.models AS m
         WHERE m.name OPERATOR(pg_catalog.=) corgipile_train_in_steps.name AND m.owner OPERATOR(pg_catalog.=) CURRENT_USER
         ORDER BY m.version DESC LIMIT 1;
        done := coalesce(done, 0);
        -- it may have converged, or stopped as patience says
        EXIT WHEN done OPERATOR(pg_catalog.>=) planned OR stopped;
        SELECT pg_catalog.max(t.epoch), (pg_catalog.array_agg(t.loss ORDER BY t.epoch DESC))[1] INTO epochs, last_loss
          FROM @extschema@.corgipile_train(
                   source => corgipile_train_in_steps.source, model => corgipile_train_in_steps.model,
                   label => corgipile_train_in_steps.label, features => corgipile_train_in_steps.features,
                   learning_rate => corgipile_train_in_steps.learning_rate, max_epochs => least(epochs_per_step, planned OPERATOR(pg_catalog.-) done),
                   shuffle => corgipile_train_in_steps.shuffle, block_size => corgipile_train_in_steps.block_size,
                   buffer_size => corgipile_train_in_steps.buffer_size, seed => corgipile_train_in_steps.seed,
                   name => corgipile_train_in_steps.name,
                   options => coalesce(corgipile_train_in_steps.options, '{}') OPERATOR(pg_catalog.||)
                       pg_catalog.jsonb_build_object('planned_epochs', planned, 'recompute_statistics', continued IS NULL),
                   prefetch => corgipile_train_in_steps.prefetch, workers => corgipile_train_in_steps.workers,
                   warm_start => CASE WHEN continued IS NULL THEN corgipile_train_in_steps.warm_start ELSE continued::pg_catalog.text END,
                   sample => corgipile_train_in_steps.sample, batch_size => corgipile_train_in_steps.batch_size,
                   l1 => corgipile_train_in_steps.l1, l2 => corgipile_train_in_steps.l2, optimizer => corgipile_train_in_steps.optimizer,
                   schedule => corgipile_train_in_steps.schedule, standardize => corgipile_train_in_steps.standardize,
                   nulls => corgipile_train_in_steps.nulls, class_weight => corgipile_train_in_steps.class_weight,
                   hidden_layer_sizes => corgipile_train_in_steps.hidden_layer_sizes,
                   validation_fraction => corgipile_train_in_steps.validation_fraction, patience => corgipile_train_in_steps.patience,
                   verbose => corgipile_train_in_steps.verbose, shared_scan => corgipile_train_in_steps.shared_scan,
                   servers => corgipile_train_in_steps.servers, solver => corgipile_train_in_steps.solver,
                   statistics => corgipile_train_in_steps.statistics
               ) AS t;
        IF is_step THEN
            PERFORM @extschema@.corgipile_drop(continued);
        END IF;
        COMMIT;
        RAISE NOTICE 'model % has % of % epochs, loss %', pg_catalog.quote_ident(name), epochs, planned, pg_catalog.round(last_loss::pg_catalog.numeric, 6);
    END LOOP;
    RAISE NOTICE 'model % is trained: % epochs', pg_catalog.quote_ident(name), done;
END
$$;
COMMENT ON PROCEDURE corgipile_train_in_steps(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text, int, text, float8, int, float8, float8, text, text, boolean, text, text, int[], float8, int, boolean, boolean, text, text, text, int)
    IS 'trains as corgipile_train() does and commits the model every epochs_per_step epochs (1 by default). A call with the same name goes on where the last one ended, until max_epochs (20 by default)';

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
    scoring             text    DEFAULT NULL,
    learning_rate       float8  DEFAULT NULL,
    max_epochs          int     DEFAULT NULL,
    shuffle             text    DEFAULT NULL,
    block_size          text    DEFAULT NULL,
    buffer_size         text    DEFAULT NULL,
    seed                bigint  DEFAULT NULL,
    name                text    DEFAULT NULL,
    options             jsonb   DEFAULT NULL,
    prefetch            text    DEFAULT NULL,
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
    hidden_layer_sizes  int[]   DEFAULT NULL,
    validation_fraction float8  DEFAULT NULL,
    patience            int     DEFAULT NULL,
    verbose             boolean DEFAULT NULL,
    shared_scan         boolean DEFAULT NULL
) RETURNS TABLE (
    rank int, grid_point jsonb, mean_test_score float8, std_test_score float8, mean_test_loss float8, fold_scores float8[],
    epochs int, model_id bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_search_wrapper';
COMMENT ON FUNCTION corgipile_search(text, text, text, text[], int, int, text, text, boolean, text, float8, int, text, text,
                              text, bigint, text, jsonb, text, int, text, text, jsonb, float8, int, float8, float8, text,
                              text, boolean, text, text, int[], float8, int, boolean, boolean)
    IS 'finds the best of several trainings by cross-validation in one pass over the rows per epoch, and stores a model that is trained in this way on all rows; a row per point, the best first. The points are those of grid, or trials that are drawn from it, or else from default ranges. NULL means the default: trials 20 without a grid, folds 5, stratify true, scoring accuracy or r2, of quantile and poisson loss, and for all others that of corgipile_train()';

CREATE FUNCTION corgipile_columns(
    source   text,
    label    text   DEFAULT NULL,
    features text[] DEFAULT NULL,
    options  jsonb  DEFAULT NULL
) RETURNS TABLE (
    name text, type text, role text, reason text, null_fraction float8, distinct_values bigint, example text, expression text, based_on text
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 10000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_columns_wrapper';
COMMENT ON FUNCTION corgipile_columns(text, text, text[], jsonb)
    IS 'describes the columns of a table or query as corgipile_train() with these arguments would use them, by a sample of the rows: what each column is, why, and an expression where another value would serve better';

CREATE FUNCTION corgipile_shuffle(
    source      anyelement,
    seed        bigint DEFAULT NULL,
    block_size  text   DEFAULT NULL,
    buffer_size text   DEFAULT NULL,
    shuffle     text   DEFAULT NULL,
    epoch       int    DEFAULT NULL,
    sample      float8 DEFAULT NULL,
    shared_scan boolean DEFAULT NULL
) RETURNS SETOF anyelement
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 100000 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_shuffle_wrapper';
COMMENT ON FUNCTION corgipile_shuffle(anyelement, bigint, text, text, text, int, float8, boolean)
    IS 'returns the rows of a table in CorgiPile order. NULL means the default: a random seed, block_size auto, buffer_size auto, shuffle corgipile, epoch 1, sample 1, shared_scan as the setting corgipile.shared_scan';

CREATE FUNCTION corgipile_options(model text DEFAULT NULL) RETURNS TABLE (
    name text, type text, default_value text, range text, applies_to text, description text
)
LANGUAGE c IMMUTABLE PARALLEL SAFE ROWS 50
AS 'MODULE_PATHNAME', 'corgipile_options_wrapper';
COMMENT ON FUNCTION corgipile_options(text)
    IS 'lists the arguments of corgipile_train() and the keys of its argument options, with their JSON types; with a model, those that apply to it, with its defaults';

CREATE FUNCTION corgipile_shuffle_order(
    shuffle          text,
    tuples           bigint,
    tuples_per_block int,
    buffer_tuples    bigint,
    seed             bigint,
    epoch            int DEFAULT 1
) RETURNS TABLE ("position" bigint, tuple bigint)
LANGUAGE c IMMUTABLE PARALLEL SAFE COST 1000 ROWS 1000
AS 'MODULE_PATHNAME', 'corgipile_shuffle_order_wrapper';
COMMENT ON FUNCTION corgipile_shuffle_order(text, bigint, int, bigint, bigint, int)
    IS 'returns the numbers of a table''s tuples in the order in which SGD reads them';

CREATE FUNCTION corgipile_cluster_factor(
    source     text,
    label      text   DEFAULT NULL,
    features   text[] DEFAULT NULL,
    block_size text   DEFAULT NULL,
    model      text   DEFAULT NULL,
    servers    text   DEFAULT NULL
) RETURNS float8
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_cluster_factor_wrapper';
COMMENT ON FUNCTION corgipile_cluster_factor(text, text, text[], text, text, text)
    IS 'measures how clustered a table is: from about 1 if it is shuffled, to the number of tuples per block if it is sorted. NULL means the default: label label, block_size auto, model auto, servers off';

CREATE FUNCTION corgipile_advise(
    relation    regclass,
    label       text   DEFAULT NULL,
    features    text[] DEFAULT NULL,
    model       text   DEFAULT NULL,
    buffer_size text   DEFAULT '10%',
    max_seconds float8 DEFAULT 10
) RETURNS TABLE (
    block_size text, blocks bigint, buffer_blocks bigint, cluster_factor float8, error_factor float8, epochs float8,
    epoch_seconds float8, seconds float8, recommended boolean
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 14
AS 'MODULE_PATHNAME', 'corgipile_advise_wrapper';
COMMENT ON FUNCTION corgipile_advise(regclass, text, text[], text, text, float8)
    IS 'estimates, for several block sizes, how long a training that reads a table from disk takes: by the speed of the disk, and by how many epochs Theorem 1 of the CorgiPile paper expects. NULL means the default: label label, model auto, buffer_size auto';

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
    IS 'measures how fast random blocks of a table are read from disk for several block sizes, compared with a sequential read';
