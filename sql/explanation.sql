-- Explaining models.

CREATE FUNCTION corgipile_coefficients(model_id bigint, source text, confidence_level float8 DEFAULT NULL, weight_type text DEFAULT NULL)
RETURNS TABLE (feature text, coefficient float8, std_error float8, statistic float8, p_value float8, lower float8, upper float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_coefficients_wrapper';
COMMENT ON FUNCTION corgipile_coefficients(bigint, text, float8, text)
    IS 'coefficients of a model in the units of the data, with standard errors, tests and confidence intervals on these rows; confidence_level is 0.95 by default; row weights are precisions (the default) or frequencies';

CREATE FUNCTION corgipile_importance(model_id bigint, source text, repeats int DEFAULT NULL, seed bigint DEFAULT NULL, max_rows int DEFAULT NULL)
RETURNS TABLE (feature text, importance float8, stddev float8, effect float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_importance_wrapper';
COMMENT ON FUNCTION corgipile_importance(bigint, text, int, bigint, int)
    IS 'permutation importance: the decrease of a model''s score when a column is permuted, by default over 5 repeats of 100000 rows; and how much the decision varies with the column';

CREATE FUNCTION corgipile_explain(model_id bigint, features record, source text DEFAULT NULL)
RETURNS TABLE (feature text, class text, contribution float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_explain_wrapper';
COMMENT ON FUNCTION corgipile_explain(bigint, record, text)
    IS 'contribution of each column of a row to the decision of a linear model, relative to its average: over the rows of source, or else over the training rows if features are standardized';
