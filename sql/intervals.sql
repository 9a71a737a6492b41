-- Intervals and sets.

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_calibrate(
    model_id bigint, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(bigint, text, text, text) IS 'keeps with a model how far it is from the truth on rows that it was not trained on';

CREATE FUNCTION corgipile_calibrate(
    name text, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_by_name_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(text, text, text, text) IS 'keeps with a model how far it is from the truth on rows that it was not trained on';

CREATE FUNCTION corgipile_calibrate(
    model_id bigint, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_relation_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(bigint, regclass, text, text) IS 'the same of a relation that is named by its OID';

CREATE FUNCTION corgipile_calibrate(
    name text, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT tuples bigint, OUT skipped bigint, OUT max_coverage float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000
AS 'MODULE_PATHNAME', 'corgipile_calibrate_relation_by_name_wrapper';
COMMENT ON FUNCTION corgipile_calibrate(text, regclass, text, text) IS 'the same of a relation that is named by its OID';

-- Features one by one are not taken: nobody could tell the coverage from a feature.
CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_interval(
    model_id bigint, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(bigint, text, float8, text, text) IS 'the numbers between which the truth lies with this probability, for an array that is given as a text';

CREATE FUNCTION corgipile_predict_interval(
    name text, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    name text, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    name text, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_interval(
    name text, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(text, text, float8, text, text) IS 'the numbers between which the truth lies with this probability, for an array that is given as a text';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anyarray, float8, text, text) IS 'the numbers between which the truth lies with this probability';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anyarray, anycompatiblearray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, anynonarray, float8, text, text) IS 'the numbers between which the truth lies with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_interval(
    model jsonb, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL,
    OUT low float8, OUT high float8
)
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_interval_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_interval(jsonb, text, float8, text, text) IS 'the numbers between which the truth lies with this probability, for an array that is given as a text';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_set(
    model_id bigint, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(bigint, text, float8, text, text) IS 'the labels among which the true one is with this probability, for an array that is given as a text';

CREATE FUNCTION corgipile_predict_set(
    name text, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    name text, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    name text, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';

CREATE FUNCTION corgipile_predict_set(
    name text, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(text, text, float8, text, text) IS 'the labels among which the true one is with this probability, for an array that is given as a text';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, features anyarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anyarray, float8, text, text) IS 'the labels among which the true one is with this probability';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, indices anyarray, "values" anycompatiblearray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anyarray, anycompatiblearray, float8, text, text) IS 'the labels among which the true one is with this probability, for sparse features';

CREATE FUNCTION corgipile_predict_set(
    model jsonb, features anynonarray, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, anynonarray, float8, text, text) IS 'the labels among which the true one is with this probability, for the columns of a row, or for a vector or bytes';


CREATE FUNCTION corgipile_predict_set(
    model jsonb, features text, coverage float8 DEFAULT 0.9, nulls text DEFAULT NULL, unseen text DEFAULT NULL
) RETURNS text[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_set_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_set(jsonb, text, float8, text, text) IS 'the labels among which the true one is with this probability, for an array that is given as a text';
