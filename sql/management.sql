-- Looking after models.

CREATE FUNCTION corgipile_deploy(name text, version int) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_deploy_wrapper';
COMMENT ON FUNCTION corgipile_deploy(text, int) IS 'makes a name mean this version of the model; with NULL, the latest again';

CREATE FUNCTION corgipile_rename(model_id bigint, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_wrapper';
COMMENT ON FUNCTION corgipile_rename(bigint, text) IS 'gives one model another name, as the latest version of it';

CREATE FUNCTION corgipile_rename(name text, new_name text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_rename_wrapper';
COMMENT ON FUNCTION corgipile_rename(text, text) IS 'gives all versions of a model another name';

CREATE FUNCTION corgipile_drop(model_id bigint) RETURNS bigint
LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_wrapper';
COMMENT ON FUNCTION corgipile_drop(bigint) IS 'deletes one model';

CREATE FUNCTION corgipile_drop(name text, version int DEFAULT NULL) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_wrapper';
COMMENT ON FUNCTION corgipile_drop(text, int) IS 'deletes a version of a model, or all of them; returns how many';

CREATE FUNCTION corgipile_comment(model_id bigint, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_wrapper';
COMMENT ON FUNCTION corgipile_comment(bigint, text) IS 'says something about a model; NULL: nothing';

CREATE FUNCTION corgipile_comment(name text, comment text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_comment_wrapper';
COMMENT ON FUNCTION corgipile_comment(text, text) IS 'says something about the version that the name means; NULL: nothing';

CREATE FUNCTION corgipile_grant(model_id bigint, role text, privilege text DEFAULT 'all') RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_wrapper';
COMMENT ON FUNCTION corgipile_grant(bigint, text, text) IS 'lets a role, or public, see and use one model; with privilege predict, only predict with it';

CREATE FUNCTION corgipile_grant(name text, role text, privilege text DEFAULT 'all') RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_grant_wrapper';
COMMENT ON FUNCTION corgipile_grant(text, text, text) IS 'lets a role, or public, see and use all versions of a model, also those to come; with privilege predict, only predict with them';

CREATE FUNCTION corgipile_revoke(model_id bigint, role text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_revoke_wrapper';
COMMENT ON FUNCTION corgipile_revoke(bigint, text) IS 'takes back what corgipile_grant() gave';

CREATE FUNCTION corgipile_drop_owned(role text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_drop_owned_wrapper';
COMMENT ON FUNCTION corgipile_drop_owned(text) IS 'deletes all models of a role, and takes back what was granted to it; returns how many there were';

CREATE FUNCTION corgipile_reassign_owned(role text, new_role text) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_reassign_owned_wrapper';
COMMENT ON FUNCTION corgipile_reassign_owned(text, text) IS 'gives all models of a role to another one; returns how many there were';
