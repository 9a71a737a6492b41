-- Calls every function of the extension with {text}, an expression, for each of its texts, and for all of them. Warns of
-- calls that end with an internal error, and of those that the parser has not understood.
DO $$
DECLARE
    called record;
    arguments text;
    calls int := 0;
    said text;
BEGIN
    FOR called IN
        SELECT p.oid::regproc AS name, p.proargtypes::oid[] AS types, alone
        FROM pg_depend d
        JOIN pg_proc p ON p.oid = d.objid AND d.classid = 'pg_proc'::regclass
        JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
        CROSS JOIN generate_series(-1, p.pronargs - 1) AS alone
        WHERE e.extname = 'corgipile' AND p.prokind = 'f'
            AND p.prorettype <> 'trigger'::regtype AND 'internal'::regtype <> ALL (p.proargtypes::oid[])
            AND (alone = -1 OR p.proargtypes[alone] IN ('text'::regtype, 'text[]'::regtype, 'jsonb'::regtype))
        ORDER BY p.oid, alone
    LOOP
        SELECT string_agg(
            CASE
                WHEN type = 'text'::regtype AND called.alone NOT IN (-1, place - 1) THEN '''m'''
                WHEN type IN ('text[]'::regtype, 'jsonb'::regtype) AND called.alone NOT IN (-1, place - 1) THEN 'NULL'
                WHEN type = 'text'::regtype THEN $q${text}$q$
                WHEN type = 'text[]'::regtype THEN $q$ARRAY[{text}]$q$
                WHEN type = 'jsonb'::regtype THEN $q$jsonb_build_object({text}, {text})$q$
                WHEN type IN ('anyarray'::regtype, 'anycompatiblearray'::regtype) THEN $q$ARRAY[{text}]$q$
                WHEN type IN ('anyelement'::regtype, 'record'::regtype) THEN '(SELECT t FROM t LIMIT 1)'
                WHEN type IN ('anynonarray'::regtype, 'anycompatible'::regtype, '"any"'::regtype) THEN '1::float8'
                WHEN type IN ('bigint'::regtype, 'int'::regtype, 'float8'::regtype, 'real'::regtype) THEN '1'
                WHEN type = 'regclass'::regtype THEN '''t'''
                ELSE 'NULL'
            END || CASE WHEN type IN (SELECT oid FROM pg_type WHERE typtype = 'p') THEN '' ELSE '::' || type::regtype END,
            ', ' ORDER BY place)
        INTO arguments
        FROM unnest(called.types) WITH ORDINALITY AS a (type, place);
        calls := calls + 1;
        BEGIN
            EXECUTE format('SELECT * FROM %s(%s)', called.name, arguments);
        EXCEPTION
            WHEN internal_error THEN
                GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
                RAISE WARNING 'XX000: %(%): %', called.name, arguments, said;
            WHEN syntax_error OR ambiguous_function OR undefined_function THEN
                GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
                RAISE WARNING 'not called: %(%): %', called.name, arguments, said;
            WHEN OTHERS THEN
                NULL;
        END;
    END LOOP;
    RAISE WARNING 'calls: %', calls;
END $$;
