-- Training by aggregate.

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
COMMENT ON TYPE corgipile.sgd_state IS 'state of a model in training, between or within epochs of corgipile_sgd_agg()';

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
    IS 'returns the state before the first epoch of corgipile_sgd_agg(). NULL means the default: dense features';

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

-- corgipile_sgd_agg_typed() is for databases that split an aggregate over several servers: Citus compares the types of the arguments
-- with those that are declared, so that none is anyarray to it. These are no overloads of corgipile_sgd_agg(), because a value
-- that PostgreSQL would cast by itself, such as a vector of pgvector to real[], would fit them as well as the others, which is an
-- error. corgipile.sgd_agg() is for corgipile_train_uda(): another role may have created an aggregate corgipile_sgd_agg() whose
-- argument types fit better than anyarray, but no other role can create anything in schema corgipile.
DO $$
DECLARE
    agg record;
BEGIN
    FOR agg IN
        SELECT a.name, f.features, a.comment
          FROM (VALUES ('corgipile_sgd_agg', 'returns the state after one more epoch of SGD over all rows', false),
                       ('corgipile.sgd_agg', 'corgipile_sgd_agg() for corgipile_train_uda()', false),
                       ('corgipile_sgd_agg_typed', 'corgipile_sgd_agg() for databases that split an aggregate over several servers', true)
               ) AS a(name, comment, typed)
          JOIN (VALUES (false, 'features anyarray'), (false, 'features anynonarray'), (false, 'indices anyarray, feature_values anycompatiblearray'),
                       (true, 'features smallint[]'), (true, 'features int[]'), (true, 'features bigint[]'), (true, 'features real[]'),
                       (true, 'features float8[]'), (true, 'features numeric[]'), (true, 'indices int[], feature_values real[]'),
                       (true, 'indices int[], feature_values float8[]'), (true, 'indices bigint[], feature_values real[]'),
                       (true, 'indices bigint[], feature_values float8[]')
               ) AS f(typed, features) ON f.typed OPERATOR(pg_catalog.=) a.typed
    LOOP
        EXECUTE pg_catalog.format('CREATE AGGREGATE %s(state corgipile.sgd_state, label float8, %s) (
            SFUNC = corgipile.sgd_transition, STYPE = corgipile.sgd_state, COMBINEFUNC = corgipile.sgd_combine,
            FINALFUNC = corgipile.sgd_final, FINALFUNC_MODIFY = READ_ONLY, PARALLEL = SAFE)', agg.name, agg.features);
        EXECUTE pg_catalog.format('COMMENT ON AGGREGATE %s(state corgipile.sgd_state, label float8, %s) IS %L', agg.name, agg.features, agg.comment);
    END LOOP;
END
$$;

CREATE FUNCTION corgipile_sgd_report(
    state corgipile.sgd_state,
    OUT epoch int, OUT loss float8, OUT accuracy float8, OUT learning_rate float8, OUT tuples bigint, OUT r2 float8,
    OUT skipped bigint
)
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_report_wrapper';
COMMENT ON FUNCTION corgipile_sgd_report(corgipile.sgd_state) IS 'loss and other results of a state''s last epoch';

CREATE FUNCTION corgipile_sgd_weights(state corgipile.sgd_state) RETURNS real[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_weights_wrapper';
COMMENT ON FUNCTION corgipile_sgd_weights(corgipile.sgd_state) IS 'weights of a state, class by class';

CREATE FUNCTION corgipile_sgd_intercepts(state corgipile.sgd_state) RETURNS real[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_sgd_intercepts_wrapper';
COMMENT ON FUNCTION corgipile_sgd_intercepts(corgipile.sgd_state) IS 'intercepts of a state: one per class, or one';

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
    IS 'trains a model with the aggregate corgipile_sgd_agg(), one query per epoch, stores it and returns one row per epoch. NULL means the default: model logistic, label label, max_epochs 20, shuffle no_shuffle';
