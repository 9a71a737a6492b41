-- Prediction.

-- Each answer has one C function, which takes features in any form: the types of the arguments say which it is. What PostgreSQL
-- makes of a call is all that the declarations differ in. Not STRICT: a feature that is NULL is a matter for the model. All are
-- declared for a model's name and for the model as a value, too, in variants.sql.
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT answer.*, form.*
          FROM (VALUES ('corgipile_predict', 'float8', 'predicted label as a number; for a linear model, the value'),
                       ('corgipile_predict_label', 'text', 'predicted label as text'),
                       ('corgipile_predict_proba', 'float8[]', 'predicted probabilities of the labels, in ascending order of the labels')
               ) AS answer(name, result, meaning),
               -- a literal or a parameter without a type is a text
               (VALUES ('features text', 'the only feature, or for an array given as text'),
               -- Two or three features of which all but the first are texts are taken for this one, too. Another default than NULL
               -- tells a NULL that is a feature from an argument that is not given.
                       ('features "any", nulls text DEFAULT ''as trained'', handle_unknown text DEFAULT ''as trained''',
                        'an array, a vector or bytes, the columns of a row, or the only feature'),
               -- as are any two features for this one
                       ('indices "any", feature_values "any", nulls text DEFAULT ''as trained'', handle_unknown text DEFAULT ''as trained''',
                        'sparse features'),
               -- it has at least three, as what is behind VARIADIC has no name
                       ('feature_1 "any", feature_2 "any", VARIADIC features "any"', 'features one by one')
               ) AS form(arguments, given)
    LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION %s(model_id bigint, %s) RETURNS %s LANGUAGE c STABLE PARALLEL SAFE COST 10
            SUPPORT corgipile_support AS ''MODULE_PATHNAME'', ''%1$s_wrapper''', f.name, f.arguments, f.result);
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s(model_id bigint, %s) IS %L', f.name,
            pg_catalog.replace(f.arguments, ' DEFAULT ''as trained''', ''), pg_catalog.concat(f.meaning, ', for ', f.given));
    END LOOP;
END
$$;

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_evaluate(
    model_id bigint, source text, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL, servers text DEFAULT NULL,
    positive text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';
COMMENT ON FUNCTION corgipile_evaluate(bigint, text, text, text, text, text)
    IS 'accuracy (for a linear model R2) and loss of a model on other rows; servers is off by default; with auto, or names of servers, the servers evaluate their rows; positive is the label whose precision and recall are returned';

CREATE FUNCTION corgipile_confusion(model_id bigint, source text, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL)
RETURNS TABLE (actual text, predicted text, tuples bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_confusion_wrapper';
COMMENT ON FUNCTION corgipile_confusion(bigint, text, text, text)
    IS 'confusion matrix of a model on other rows: the number of rows for each actual and each predicted label';

CREATE FUNCTION corgipile_curves(
    model_id bigint, source text, positive text DEFAULT NULL, points int DEFAULT NULL, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL
) RETURNS TABLE (curve text, label text, x float8, y float8, threshold float8, tuples bigint)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 600
AS 'MODULE_PATHNAME', 'corgipile_curves_wrapper';
COMMENT ON FUNCTION corgipile_curves(bigint, text, text, int, text, text)
    IS 'points of the curves roc, precision_recall, lift and calibration of a model on other rows; points is 200 by default';
