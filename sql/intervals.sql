-- Intervals and sets.

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_calibrate(
    model_id bigint, source text, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(bigint, text, text, text) IS 'calibrates a model for conformal prediction with rows that it was not trained on';

-- Features one by one are not accepted: the coverage would look like a feature.
CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features anycompatible, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL,
    OUT lower float8, OUT upper float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anycompatible, float8, text, text) IS 'prediction interval that contains the true value with this probability, for an array (also as text), a vector or bytes, or the columns of a row';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, indices anyarray, feature_values anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL,
    OUT lower float8, OUT upper float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'prediction interval that contains the true value with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features anycompatible, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anycompatible, float8, text, text) IS 'prediction set of labels that contains the true label with this probability, for an array (also as text), a vector or bytes, or the columns of a row';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, indices anyarray, feature_values anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, handle_unknown text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'prediction set of labels that contains the true label with this probability, for sparse features';
