-- Training.

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
