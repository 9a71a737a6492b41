-- Looking after models.

CREATE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_deploy_wrapper';
COMMENT ON FUNCTION corgipile_deploy(text, int) IS 'makes a name refer to this version of the model; NULL: to the latest version again';

CREATE FUNCTION corgipile_rename(model_id bigint, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_wrapper';
COMMENT ON FUNCTION corgipile_rename(bigint, text) IS 'renames one model; it becomes the latest version of the new name';

CREATE FUNCTION corgipile_rename(name text, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_wrapper';
COMMENT ON FUNCTION corgipile_rename(text, text) IS 'renames all versions of a model';

CREATE FUNCTION corgipile_drop(model_id bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_wrapper';
COMMENT ON FUNCTION corgipile_drop(bigint) IS 'deletes one model';

CREATE FUNCTION corgipile_drop(name text, version int DEFAULT NULL) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_wrapper';
COMMENT ON FUNCTION corgipile_drop(text, int) IS 'deletes a version of a model, or all versions; returns the number of deleted models';

CREATE FUNCTION corgipile_comment(model_id bigint, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_wrapper';
COMMENT ON FUNCTION corgipile_comment(bigint, text) IS 'sets the comment of a model; NULL removes it';

CREATE FUNCTION corgipile_comment(name text, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_wrapper';
COMMENT ON FUNCTION corgipile_comment(text, text) IS 'sets the comment of the version that the name refers to; NULL removes it';

CREATE FUNCTION corgipile_grant(model_id bigint, role text, privilege text DEFAULT 'all') RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_wrapper';
COMMENT ON FUNCTION corgipile_grant(bigint, text, text) IS 'lets a role, or public, read and use one model; with privilege predict, only predict with it';

CREATE FUNCTION corgipile_grant(name text, role text, privilege text DEFAULT 'all') RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_wrapper';
COMMENT ON FUNCTION corgipile_grant(text, text, text) IS 'lets a role, or public, read and use all versions of a model, including future ones; with privilege predict, only predict with them';

CREATE FUNCTION corgipile_revoke(model_id bigint, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_revoke_wrapper';
COMMENT ON FUNCTION corgipile_revoke(bigint, text) IS 'revokes what corgipile_grant() granted';

CREATE FUNCTION corgipile_drop_owned(role text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_owned_wrapper';
COMMENT ON FUNCTION corgipile_drop_owned(text) IS 'deletes all models of a role and revokes what was granted to it; returns the number of deleted models';

CREATE FUNCTION corgipile_reassign_owned(role text, new_role text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_reassign_owned_wrapper';
COMMENT ON FUNCTION corgipile_reassign_owned(text, text) IS 'makes another role the owner of all models of a role; returns their number';
