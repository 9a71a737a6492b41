-- Compression.

CREATE TYPE corgipile.toc;

CREATE FUNCTION corgipile.toc_in(cstring) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_in_wrapper';

CREATE FUNCTION corgipile.toc_out(corgipile.toc) RETURNS cstring
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_out_wrapper';

CREATE FUNCTION corgipile.toc_recv(internal) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_recv_wrapper';

CREATE FUNCTION corgipile.toc_send(corgipile.toc) RETURNS bytea
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_send_wrapper';

-- external: what is compressed is not compressed again
CREATE TYPE corgipile.toc (
    INPUT = corgipile.toc_in, OUTPUT = corgipile.toc_out, RECEIVE = corgipile.toc_recv, SEND = corgipile.toc_send,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = external
);
COMMENT ON TYPE corgipile.toc IS 'a compressed mini-batch: a matrix with a row for each tuple';

CREATE FUNCTION corgipile_toc(entries float8[], encoding text DEFAULT 'auto') RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc(float8[], text) IS 'compresses a matrix';

CREATE FUNCTION corgipile_toc_rows(matrix corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_rows_wrapper';
COMMENT ON FUNCTION corgipile_toc_rows(corgipile.toc) IS 'number of rows of a compressed matrix';

CREATE FUNCTION corgipile_toc_columns(matrix corgipile.toc) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_columns_wrapper';
COMMENT ON FUNCTION corgipile_toc_columns(corgipile.toc) IS 'number of columns of a compressed matrix';

CREATE FUNCTION corgipile_toc_encoding(matrix corgipile.toc) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_encoding_wrapper';
COMMENT ON FUNCTION corgipile_toc_encoding(corgipile.toc) IS 'encoding of a compressed matrix: den, csr, cvi, dvi, toc, gzip or snappy';

CREATE FUNCTION corgipile_toc_bytes(matrix corgipile.toc) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_bytes_wrapper';
COMMENT ON FUNCTION corgipile_toc_bytes(corgipile.toc) IS 'size of a compressed matrix in bytes';

CREATE FUNCTION corgipile_toc_ratio(matrix corgipile.toc) RETURNS float8
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_toc_ratio_wrapper';
COMMENT ON FUNCTION corgipile_toc_ratio(corgipile.toc) IS 'compression ratio: rows * columns * 8 bytes, divided by the size of the compressed matrix';

CREATE FUNCTION corgipile_toc_decompress(matrix corgipile.toc) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_decompress_wrapper';
COMMENT ON FUNCTION corgipile_toc_decompress(corgipile.toc) IS 'decompresses a matrix';

CREATE FUNCTION corgipile_toc_element(matrix corgipile.toc, row_number int, column_number int) RETURNS float8
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 100
AS 'MODULE_PATHNAME', 'corgipile_toc_element_wrapper';
COMMENT ON FUNCTION corgipile_toc_element(corgipile.toc, int, int) IS 'an element of a compressed matrix; rows and columns count from 1';

CREATE FUNCTION corgipile_toc_times(matrix corgipile.toc, operand float8[]) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_times_wrapper';
COMMENT ON FUNCTION corgipile_toc_times(corgipile.toc, float8[]) IS 'product of a compressed matrix with a vector or a matrix';

CREATE FUNCTION corgipile_times_toc(operand float8[], matrix corgipile.toc) RETURNS float8[]
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_times_toc_wrapper';
COMMENT ON FUNCTION corgipile_times_toc(float8[], corgipile.toc) IS 'product of a vector or a matrix with a compressed matrix';

CREATE FUNCTION corgipile_toc_scale(matrix corgipile.toc, factor float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_scale_wrapper';
COMMENT ON FUNCTION corgipile_toc_scale(corgipile.toc, float8) IS 'a compressed matrix with each element multiplied by a number';

CREATE FUNCTION corgipile_toc_add(matrix corgipile.toc, summand float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_add_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(corgipile.toc, float8) IS 'a compressed matrix with a number added to each element';

CREATE FUNCTION corgipile_toc_scale(factor float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_scale_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_scale(float8, corgipile.toc) IS 'a compressed matrix with each element multiplied by a number';

CREATE FUNCTION corgipile_toc_add(summand float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_add_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(float8, corgipile.toc) IS 'a compressed matrix with a number added to each element';

CREATE FUNCTION corgipile_toc_add(matrix corgipile.toc, summand float8[]) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_add_array_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(corgipile.toc, float8[]) IS 'sum of a compressed matrix and a matrix of the same shape';

CREATE FUNCTION corgipile_toc_add(summand float8[], matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_add_array_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(float8[], corgipile.toc) IS 'sum of a matrix and a compressed matrix of the same shape';

CREATE FUNCTION corgipile_toc_add(matrix corgipile.toc, summand corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_add_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_add(corgipile.toc, corgipile.toc) IS 'sum of two compressed matrices of the same shape';

CREATE FUNCTION corgipile_toc_subtract(matrix corgipile.toc, subtrahend float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_subtract_wrapper';
COMMENT ON FUNCTION corgipile_toc_subtract(corgipile.toc, float8) IS 'a compressed matrix with a number subtracted from each element';

CREATE FUNCTION corgipile_toc_subtract(minuend float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_subtract_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_subtract(float8, corgipile.toc) IS 'a number minus each element of a compressed matrix';

CREATE FUNCTION corgipile_toc_subtract(matrix corgipile.toc, subtrahend float8[]) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_subtract_array_wrapper';
COMMENT ON FUNCTION corgipile_toc_subtract(corgipile.toc, float8[]) IS 'a compressed matrix minus a matrix of the same shape';

CREATE FUNCTION corgipile_toc_subtract(minuend float8[], matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_subtract_array_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_subtract(float8[], corgipile.toc) IS 'a matrix minus a compressed matrix of the same shape';

CREATE FUNCTION corgipile_toc_subtract(matrix corgipile.toc, subtrahend corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_subtract_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_subtract(corgipile.toc, corgipile.toc) IS 'difference of two compressed matrices of the same shape';

CREATE FUNCTION corgipile_toc_divide(matrix corgipile.toc, divisor float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_divide_wrapper';
COMMENT ON FUNCTION corgipile_toc_divide(corgipile.toc, float8) IS 'a compressed matrix with each element divided by a number';

CREATE FUNCTION corgipile_toc_divide(dividend float8, matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_divide_toc_wrapper';
COMMENT ON FUNCTION corgipile_toc_divide(float8, corgipile.toc) IS 'a number divided by each element of a compressed matrix';

CREATE FUNCTION corgipile_toc_power(matrix corgipile.toc, exponent float8) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_power_wrapper';
COMMENT ON FUNCTION corgipile_toc_power(corgipile.toc, float8) IS 'a compressed matrix with each element raised to a power';

CREATE FUNCTION corgipile_toc_negate(matrix corgipile.toc) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_negate_wrapper';
COMMENT ON FUNCTION corgipile_toc_negate(corgipile.toc) IS 'a compressed matrix with the sign of each element changed';

CREATE FUNCTION corgipile_toc_apply(matrix corgipile.toc, "function" text) RETURNS corgipile.toc
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_apply_wrapper';
COMMENT ON FUNCTION corgipile_toc_apply(corgipile.toc, text) IS 'a compressed matrix with a function applied to each element';

CREATE OPERATOR * (LEFTARG = corgipile.toc, RIGHTARG = float8[], FUNCTION = corgipile_toc_times);
CREATE OPERATOR * (LEFTARG = float8[], RIGHTARG = corgipile.toc, FUNCTION = corgipile_times_toc);
CREATE OPERATOR * (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_scale, COMMUTATOR = *);
CREATE OPERATOR * (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_scale, COMMUTATOR = *);
CREATE OPERATOR + (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR + (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR + (LEFTARG = corgipile.toc, RIGHTARG = float8[], FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR + (LEFTARG = float8[], RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR + (LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_add, COMMUTATOR = +);
CREATE OPERATOR - (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_subtract);
CREATE OPERATOR - (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_subtract);
CREATE OPERATOR - (LEFTARG = corgipile.toc, RIGHTARG = float8[], FUNCTION = corgipile_toc_subtract);
CREATE OPERATOR - (LEFTARG = float8[], RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_subtract);
CREATE OPERATOR - (LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_subtract);
CREATE OPERATOR - (RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_negate);
CREATE OPERATOR / (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_divide);
CREATE OPERATOR / (LEFTARG = float8, RIGHTARG = corgipile.toc, FUNCTION = corgipile_toc_divide);
CREATE OPERATOR ^ (LEFTARG = corgipile.toc, RIGHTARG = float8, FUNCTION = corgipile_toc_power);

-- By their entries, whatever their encoding: for DISTINCT, GROUP BY, UNION, ORDER BY, joins and indexes.
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT *
          FROM (VALUES ('toc_eq', '=', '=', '<>', 'eq', ', HASHES, MERGES', 'are all entries of two matrices equal?'),
                       ('toc_ne', '<>', '<>', '=', 'neq', '', 'do any entries of two matrices differ?'),
                       ('toc_lt', '<', '>', '>=', 'scalarlt', '', 'order of matrices: columns, rows, entries'),
                       ('toc_le', '<=', '>=', '>', 'scalarle', '', 'order of matrices: columns, rows, entries'),
                       ('toc_gt', '>', '<', '<=', 'scalargt', '', 'order of matrices: columns, rows, entries'),
                       ('toc_ge', '>=', '<=', '<', 'scalarge', '', 'order of matrices: columns, rows, entries')
               ) AS v(name, operator, commutator, negator, selectivity, more, comment)
    LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION corgipile.%s(corgipile.toc, corgipile.toc) RETURNS boolean
            LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000 AS ''MODULE_PATHNAME'', ''corgipile_%1$s_wrapper''', f.name);
        EXECUTE pg_catalog.format('COMMENT ON FUNCTION corgipile.%s IS %L', f.name, f.comment);
        EXECUTE pg_catalog.format('CREATE OPERATOR %s (
            LEFTARG = corgipile.toc, RIGHTARG = corgipile.toc, FUNCTION = corgipile.%s, COMMUTATOR = %s, NEGATOR = %s,
            RESTRICT = pg_catalog.%ssel, JOIN = pg_catalog.%5$sjoinsel%s)',
            f.operator, f.name, f.commutator, f.negator, f.selectivity, f.more);
    END LOOP;
END
$$;

CREATE FUNCTION corgipile.toc_cmp(corgipile.toc, corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_cmp_wrapper';
COMMENT ON FUNCTION corgipile.toc_cmp(corgipile.toc, corgipile.toc) IS 'order of matrices: columns, rows, entries';

CREATE FUNCTION corgipile.toc_hash(corgipile.toc) RETURNS int
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_hash_wrapper';
COMMENT ON FUNCTION corgipile.toc_hash(corgipile.toc) IS 'hash of a matrix';

CREATE FUNCTION corgipile.toc_hash_extended(corgipile.toc, bigint) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_toc_hash_extended_wrapper';
COMMENT ON FUNCTION corgipile.toc_hash_extended(corgipile.toc, bigint) IS 'hash of a matrix, with a seed';

CREATE OPERATOR CLASS corgipile.toc_ops DEFAULT FOR TYPE corgipile.toc USING btree AS
    OPERATOR 1 @extschema@.<, OPERATOR 2 @extschema@.<=, OPERATOR 3 @extschema@.=, OPERATOR 4 @extschema@.>=,
    OPERATOR 5 @extschema@.>,
    FUNCTION 1 corgipile.toc_cmp(corgipile.toc, corgipile.toc);
CREATE OPERATOR CLASS corgipile.toc_ops DEFAULT FOR TYPE corgipile.toc USING hash AS
    OPERATOR 1 @extschema@.=,
    FUNCTION 1 corgipile.toc_hash(corgipile.toc),
    FUNCTION 2 corgipile.toc_hash_extended(corgipile.toc, bigint);

CREATE FUNCTION corgipile_compress(
    source      text,
    destination text,
    label       text   DEFAULT 'label',
    features    text[] DEFAULT NULL,
    batch_rows  int    DEFAULT 250,
    encoding    text   DEFAULT 'auto',
    shuffle     text   DEFAULT 'corgipile',
    seed        bigint DEFAULT NULL,
    index_base  int    DEFAULT 1,
    dimensions  int    DEFAULT NULL,
    nulls       text   DEFAULT 'error',
    OUT batches bigint, OUT tuples bigint, OUT bytes bigint, OUT ratio float8, OUT seconds float8, OUT skipped bigint,
    OUT encodings jsonb, OUT shuffle_seed bigint
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000
AS 'MODULE_PATHNAME', 'corgipile_compress_wrapper';
COMMENT ON FUNCTION corgipile_compress(text, text, text, text[], int, text, text, bigint, int, int, text)
    IS 'creates a table of compressed mini-batches from a source';

CREATE FUNCTION corgipile_compression_report(
    source     text,
    label      text   DEFAULT 'label',
    features   text[] DEFAULT NULL,
    batch_rows int    DEFAULT 250,
    shuffle    text   DEFAULT 'corgipile',
    seed       bigint DEFAULT NULL,
    index_base int    DEFAULT 1,
    dimensions int    DEFAULT NULL,
    nulls      text   DEFAULT 'error'
) RETURNS TABLE (
    encoding text, batches bigint, bytes bigint, ratio float8, stored_bytes bigint, stored_ratio float8, seconds float8
)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 1000000 ROWS 8
AS 'MODULE_PATHNAME', 'corgipile_compression_report_wrapper';
COMMENT ON FUNCTION corgipile_compression_report(text, text, text[], int, text, bigint, int, int, text)
    IS 'reports the compressed size of a source''s mini-batches for each encoding';

CREATE FUNCTION corgipile_predict(model_id bigint, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_batch_wrapper';
COMMENT ON FUNCTION corgipile_predict(bigint, corgipile.toc) IS 'predicted labels of the rows of a compressed matrix, as numbers';

CREATE FUNCTION corgipile_predict_label(model_id bigint, features corgipile.toc) RETURNS text[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_label_batch_wrapper';
COMMENT ON FUNCTION corgipile_predict_label(bigint, corgipile.toc) IS 'predicted labels of the rows of a compressed matrix, as text';

CREATE FUNCTION corgipile_predict_proba(model_id bigint, features corgipile.toc) RETURNS float8[]
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 10000
AS 'MODULE_PATHNAME', 'corgipile_predict_proba_batch_wrapper';
COMMENT ON FUNCTION corgipile_predict_proba(bigint, corgipile.toc) IS 'predicted probabilities of the labels for each row of a compressed matrix';
