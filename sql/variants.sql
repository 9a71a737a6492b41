-- Variants of what is declared above, which differ in the type of one argument, or in the rows that they show.

-- What takes a model's id takes its name, too, and predictions and explanations the model as a value. What takes the name of a
-- table, or a query, as a text takes a relation by its OID. Of what is called so, only the extension's own is meant.
DO $$
DECLARE
    variant record;
    declared record;
BEGIN
    FOR variant IN
        VALUES ('source text', 'source regclass', '(train|search|columns|cluster_factor|train_uda|evaluate|confusion|curves|calibrate|profile|drift|coefficients|importance)'),
               ('model_id bigint', 'name text', '(predict.*|export.*|evaluate|confusion|curves|calibrate|profile|drift|coefficients|importance|explain|revoke)'),
               ('model_id bigint', 'model jsonb', '(predict.*|explain)')
    LOOP
        FOR declared IN
            SELECT pg_catalog.pg_get_functiondef(p.oid) AS function, pg_catalog.obj_description(p.oid, 'pg_proc') AS comment,
                   pg_catalog.format('%I(%s)', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid)) AS signature
              FROM pg_catalog.pg_proc AS p
              JOIN pg_catalog.pg_depend AS d ON d.objid OPERATOR(pg_catalog.=) p.oid
              JOIN pg_catalog.pg_extension AS e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
             WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
               AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
               AND e.extname OPERATOR(pg_catalog.=) 'corgipile' AND p.prokind OPERATOR(pg_catalog.=) 'f'
               AND p.proname OPERATOR(pg_catalog.~) pg_catalog.format('^corgipile_%s$', variant.column3)
               AND pg_catalog.pg_get_function_arguments(p.oid) OPERATOR(pg_catalog.~) pg_catalog.format('\m%s\M', variant.column1)
             ORDER BY p.oid
        LOOP
            EXECUTE pg_catalog.regexp_replace(declared.function, 'OR REPLACE (.*?)' OPERATOR(pg_catalog.||) variant.column1,
                                              '\1' OPERATOR(pg_catalog.||) variant.column2);
            EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s IS %L',
                                      pg_catalog.regexp_replace(declared.signature, variant.column1, variant.column2), declared.comment);
        END LOOP;
    END LOOP;
END
$$;

-- Columns of views that say the same as those of another view.
DO $$
DECLARE
    c record;
BEGIN
    FOR c IN
        SELECT v.name, mine.attname, pg_catalog.col_description(other.attrelid, other.attnum) AS comment
          FROM (VALUES ('coefficients', 'all_coefficients'), ('training_history', 'all_training_history'), ('current_models', 'all_coefficients'),
                       ('stat_models', 'all_coefficients'), ('stat_shared_scans', 'stat_progress_train')
               ) AS v(name, other)
          JOIN pg_catalog.pg_attribute AS mine
            ON mine.attrelid OPERATOR(pg_catalog.=) pg_catalog.concat('corgipile.', v.name)::pg_catalog.regclass
          JOIN pg_catalog.pg_attribute AS other
            ON other.attrelid OPERATOR(pg_catalog.=) pg_catalog.concat('corgipile.', v.other)::pg_catalog.regclass
           AND other.attname OPERATOR(pg_catalog.=) mine.attname
         WHERE pg_catalog.col_description(mine.attrelid, mine.attnum) IS NULL
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN corgipile.%I.%I IS %L', c.name, c.attname, c.comment);
    END LOOP;
END
$$;
