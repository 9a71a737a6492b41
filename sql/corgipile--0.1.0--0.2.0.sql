-- corgipile 0.1.0 to 0.2.0: also the second half of CREATE EXTENSION
\echo Use "ALTER EXTENSION corgipile UPDATE TO '0.2.0'" to load this file. \quit

-- --------------------------------------------------------------------------------------------------------------- training

-- Another signature is another function. Whoever may execute the old one may execute the new one, and nobody else.
DO $$
BEGIN
    PERFORM pg_catalog.set_config('corgipile_update.acl', COALESCE(p.proacl::text, ''), true)
       FROM pg_catalog.pg_proc AS p
      WHERE p.oid = 'corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text, int)'
                    ::regprocedure;
END
$$;

DROP FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text, int);

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
    workers       int    DEFAULT 1,
    warm_start    text   DEFAULT NULL,
    group_by      text   DEFAULT NULL,
    grid          jsonb  DEFAULT NULL,
    sample        float8 DEFAULT NULL
) RETURNS TABLE (
    model_id bigint, epoch int, loss float8, accuracy float8, learning_rate float8, tuples bigint, seconds float8,
    r2 float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 20 SUPPORT corgipile_support
AS 'MODULE_PATHNAME', 'corgipile_train_wrapper';
COMMENT ON FUNCTION corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text,
                             int, text, text, jsonb, float8)
    IS 'trains a model with SGD and stores it; a row per epoch';

DO $$
DECLARE
    train CONSTANT text := 'corgipile_train(text, text, text, text[], float8, int, text, text, text, bigint, text, jsonb, text, int, text, text, jsonb, float8)';
    old   CONSTANT text := pg_catalog.current_setting('corgipile_update.acl');
    granted RECORD;
BEGIN
    IF old <> '' THEN
        EXECUTE pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', train);
        FOR granted IN
            SELECT grantee, bool_or(is_grantable) AS is_grantable
              FROM pg_catalog.aclexplode(old::aclitem[]) WHERE grantee <> grantor GROUP BY grantee
        LOOP
            EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %s %s', train,
                CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END,
                CASE WHEN granted.is_grantable THEN 'WITH GRANT OPTION' END);
        END LOOP;
    END IF;
END
$$;
