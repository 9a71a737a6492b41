-- Drift.

CREATE FUNCTION corgipile_profile(model_id bigint, source text, servers text DEFAULT NULL, extremes boolean DEFAULT false,
                                  OUT tuples bigint, OUT features int)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_profile_wrapper';
COMMENT ON FUNCTION corgipile_profile(bigint, text, text, boolean) IS 'stores statistics of the features of these rows with a model, to compare other rows with; servers is off by default; with auto, or names of servers, the servers compute them; extremes also stores the least and the greatest values';

CREATE FUNCTION corgipile_drift(model_id bigint, source text, servers text DEFAULT NULL)
RETURNS TABLE (
    feature text, verdict text, psi float8, ks float8, mean float8, new_mean float8, stddev float8, new_stddev float8,
    null_fraction float8, new_null_fraction float8, unknown bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 20
AS 'MODULE_PATHNAME', 'corgipile_drift_wrapper';
COMMENT ON FUNCTION corgipile_drift(bigint, text, text) IS 'reports the drift of the features: how these rows differ from the training rows; servers as for corgipile_profile';
