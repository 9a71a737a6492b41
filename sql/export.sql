-- Models as values and as files.

CREATE FUNCTION corgipile_export(model_id bigint) RETURNS jsonb
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_wrapper';
COMMENT ON FUNCTION corgipile_export(bigint) IS 'returns a model as a value, exactly, for corgipile_import() and corgipile_predict() on any server';

CREATE FUNCTION corgipile_export(model_id bigint, format text, prediction text DEFAULT NULL, source text DEFAULT NULL) RETURNS text
LANGUAGE c STABLE PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_as_wrapper';
COMMENT ON FUNCTION corgipile_export(bigint, text, text, text) IS 'returns a model as text: format json as corgipile_export(model_id); format sql as an expression that predicts without the extension';

CREATE FUNCTION corgipile_export_onnx(model_id bigint) RETURNS bytea
LANGUAGE c STABLE STRICT PARALLEL SAFE COST 1000
AS 'MODULE_PATHNAME', 'corgipile_export_onnx_wrapper';
COMMENT ON FUNCTION corgipile_export_onnx(bigint) IS 'returns a model as an ONNX graph, including all feature transformations, for onnxruntime and others';

CREATE FUNCTION corgipile_import(model jsonb, name text DEFAULT NULL) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_import_wrapper';
COMMENT ON FUNCTION corgipile_import(jsonb, text) IS 'stores a model returned by corgipile_export(), under its name or another; returns its id';
