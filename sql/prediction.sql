-- Prediction.

-- Not STRICT: nulls and unseen may be NULL. All others give NULL for NULL.
--
-- A row, a value of a type that is not ours and that need not be there (pgvector's), and the only feature are all taken by the
-- functions of anynonarray, which look at the type. For rows there are functions of record with nulls, and with unseen alone, too: with
-- defaults for both they would fit a call with a row alone as well, and PostgreSQL would call none of them. Of one of anynonarray with nulls
-- it would say that it is meant by a call with a number and a text.
CREATE FUNCTION corgipile_predict(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(model_id bigint, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(model_id bigint, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict(name text, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(name text, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(name text, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(name text, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(name text, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(name text, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(name text, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(name text, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(name text, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anyarray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value';

CREATE FUNCTION corgipile_predict(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for sparse features';

CREATE FUNCTION corgipile_predict(model jsonb, features anynonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, anynonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, record, text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for the columns of a row';

CREATE FUNCTION corgipile_predict(model jsonb, features record, unseen varchar) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_label(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anyarray, text, text) IS 'the label that a model gives, as text';

CREATE FUNCTION corgipile_predict_label(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anyarray, anycompatiblearray, text, text) IS 'the label that a model gives, as text, for sparse features';

CREATE FUNCTION corgipile_predict_label(model jsonb, features anynonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, anynonarray) IS 'the label that a model gives, as text, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_label(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, record, text, text) IS 'the label that a model gives, as text, for the columns of a row';

CREATE FUNCTION corgipile_predict_label(model jsonb, features record, unseen varchar) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, record, varchar) IS 'the same with unseen alone';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features anyarray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anyarray, text, text) IS 'the probabilities of the labels, in their ascending order';

CREATE FUNCTION corgipile_predict_proba(model jsonb, indices anyarray, "values" anycompatiblearray, nulls text DEFAULT NULL, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_sparse_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anyarray, anycompatiblearray, text, text) IS 'the probabilities of the labels, in their ascending order, for sparse features';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features anynonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_one_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, anynonarray) IS 'the probabilities of the labels, in their ascending order, for the columns of a row, for a vector or bytes, or for the only feature';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features record, nulls text, unseen text DEFAULT NULL)
RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, record, text, text) IS 'the probabilities of the labels, in their ascending order, for the columns of a row';

CREATE FUNCTION corgipile_predict_proba(model jsonb, features record, unseen varchar) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_row_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, record, varchar) IS 'the same with unseen alone';

-- Features one by one. Of one and of two features there are as many declarations as it takes that no call with an array, two arrays or a
-- row fits them as well: VARIADIC "any" alone would take these, too. Not STRICT: a feature that is NULL is not the same as none.
CREATE FUNCTION corgipile_predict(model_id bigint, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict(text, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature float8) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, float8) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature text) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, text) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, "any", anycompatiblenonarray) IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict(jsonb, "any", "any", "any") IS 'the label that a model gives, as a number; of a linear model, the value, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(text, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature float8) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, float8) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature text) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, text) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, "any", anycompatiblenonarray) IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_label(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_label_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(jsonb, "any", "any", "any") IS 'the label that a model gives, as text, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(name text, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_name_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(text, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature float8) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, float8) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature text) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, text) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature_1 "any", feature_2 anycompatiblenonarray) RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, "any", anycompatiblenonarray) IS 'the probabilities of the labels, in their ascending order, for features one by one';

CREATE FUNCTION corgipile_predict_proba(model jsonb, feature_1 "any", feature_2 "any", VARIADIC features "any") RETURNS float8[]
LANGUAGE c STABLE PARALLEL SAFE COST 10
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_values_by_value_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(jsonb, "any", "any", "any") IS 'the probabilities of the labels, in their ascending order, for features one by one';

-- No rows for a NULL would look like success: it is an error, as where models are trained.
CREATE FUNCTION corgipile_evaluate(
    model_id bigint, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_wrapper';

CREATE FUNCTION corgipile_evaluate(
    name text, source text, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_by_name_wrapper';

CREATE FUNCTION corgipile_evaluate(
    model_id bigint, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_relation_wrapper';

CREATE FUNCTION corgipile_evaluate(
    name text, source regclass, nulls text DEFAULT NULL, unseen text DEFAULT NULL, nodes text DEFAULT NULL
) RETURNS TABLE (metric text, value float8)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 4
AS 'MODULE_PATHNAME', 'corgipile_evaluate_relation_by_name_wrapper';

COMMENT ON FUNCTION corgipile_evaluate(bigint, text, text, text, text)
    IS 'accuracy (R2 of a linear model) and loss of a model on other rows; nodes is off by default, and auto, or names of servers, evaluates where the rows are';
COMMENT ON FUNCTION corgipile_evaluate(text, text, text, text, text)
    IS 'accuracy (R2 of a linear model) and loss of a model on other rows; nodes is off by default, and auto, or names of servers, evaluates where the rows are';
COMMENT ON FUNCTION corgipile_evaluate(bigint, regclass, text, text, text) IS 'the same of a relation that is named by its OID';
COMMENT ON FUNCTION corgipile_evaluate(text, regclass, text, text, text) IS 'the same of a relation that is named by its OID';
