-- Models on other servers.

CREATE FUNCTION corgipile.version_id(name text, version int) RETURNS bigint
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_version_id_wrapper';
COMMENT ON FUNCTION corgipile.version_id(text, int) IS 'id of a version of a model; without a version, of the one that the name refers to';

CREATE FUNCTION corgipile.identity(model_id bigint) RETURNS uuid
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'corgipile_identity_wrapper';
COMMENT ON FUNCTION corgipile.identity(bigint) IS 'identity of a model that can be published: it must have a name and be committed';

CREATE FUNCTION corgipile.receive_model(identity uuid, model jsonb, OUT outcome text, OUT model_id bigint, OUT version int)
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'corgipile_receive_model_wrapper';
COMMENT ON FUNCTION corgipile.receive_model(uuid, jsonb) IS 'called by corgipile_publish() on a server that receives a model: stores the model as the caller''s, unless it exists already, and makes its name refer to it';

-- A grant that exists is left alone: publishing a model again changes nothing.
CREATE FUNCTION corgipile.receive_grants(model_id bigint, to_all text[], to_predict text[]) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    role        text;
    privilege   text;
    has         boolean;
    missing     text[] := '{}';
BEGIN
    FOR role, privilege, has IN
        SELECT r.name, r.privilege, r.name = ANY (CASE r.privilege WHEN 'all' THEN m.granted_to ELSE m.predict_granted_to END)
          FROM corgipile.models AS m,
               (SELECT a, 'all' FROM unnest(to_all) AS a UNION ALL SELECT p, 'predict' FROM unnest(to_predict) AS p)
                   AS r(name, privilege)
         WHERE m.model_id = receive_grants.model_id
    LOOP
        IF role <> 'public' AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = role) THEN
            missing := missing || role;
        ELSIF NOT has THEN
            PERFORM @extschema@.corgipile_grant(model_id, role, privilege);
        END IF;
    END LOOP;
    RETURN array_to_string(missing, ', ');
END
$$;
COMMENT ON FUNCTION corgipile.receive_grants(bigint, text[], text[]) IS 'called by corgipile_publish() on a server that receives a model: grants it to the roles that exist there, and returns the names of the others';

-- A detail or a hint that there is not must not be given.
CREATE FUNCTION corgipile.raise_of_server(server text, code text, message text, detail text, hint text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    message := format('server "%s": %s', server, message);
    IF detail <> '' AND hint <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail, HINT = hint;
    ELSIF detail <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = detail;
    ELSIF hint <> '' THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, HINT = hint;
    END IF;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
END
$$;
COMMENT ON FUNCTION corgipile.raise_of_server(text, text, text, text, text) IS 'raises an error of another server';

-- Waits here, because dblink of PostgreSQL 15 and 16 cannot be cancelled while it waits for an answer itself.
CREATE FUNCTION corgipile.answer_of_server(dblink text, server text, connection text, statement text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    result      CONSTANT text := format('SELECT value FROM %I.dblink_get_result($1) AS r(value text)', dblink);
    is_sent     int := 1;
    is_busy     int;
    answer      text;
    nothing     text;
    pause       float8 := 0.0002;
    code        text;
    message     text;
    detail      text;
    hint        text;
BEGIN
    IF statement IS NOT NULL THEN
        EXECUTE format('SELECT %I.dblink_send_query($1, $2)', dblink) INTO is_sent USING connection, statement;
    END IF;
    IF is_sent = 0 THEN
        EXECUTE format('SELECT %I.dblink_error_message($1)', dblink) INTO message USING connection;
        PERFORM corgipile.raise_of_server(server, '08006', message, NULL, NULL);
    END IF;
    LOOP
        EXECUTE format('SELECT %I.dblink_is_busy($1)', dblink) INTO is_busy USING connection;
        EXIT WHEN is_busy = 0;
        PERFORM pg_sleep(pause);
        pause := least(2 * pause, 0.05);
    END LOOP;
    BEGIN
        EXECUTE result INTO answer USING connection;
        -- the end of the answer, without which nothing more can be asked
        EXECUTE result INTO nothing USING connection;
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                                hint = PG_EXCEPTION_HINT;
        PERFORM corgipile.raise_of_server(server, code, message, detail, hint);
    END;
    RETURN answer;
END
$$;
COMMENT ON FUNCTION corgipile.answer_of_server(text, text, text, text) IS 'reply of another server to a statement, or to the one sent before, over a connection of dblink';

CREATE FUNCTION corgipile.hang_up(dblink text, connections text[]) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    connection  text;
BEGIN
    FOREACH connection IN ARRAY connections LOOP
        BEGIN
            EXECUTE format('SELECT %I.dblink_disconnect($1)', dblink) USING connection;
        EXCEPTION WHEN query_canceled OR OTHERS THEN
            NULL; -- it does not exist any more
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION corgipile.hang_up(text, text[]) IS 'closes connections of dblink';

-- In the order of their names: two calls that bring models of one name to several servers wait for each other at the first.
CREATE FUNCTION corgipile.servers_to_publish_to(servers text[]) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    known       text[];
    usable      text[];
    wrong       text;
BEGIN
    SELECT array_agg(s.srvname::text ORDER BY s.srvname),
           array_agg(s.srvname::text ORDER BY s.srvname) FILTER (
               WHERE has_server_privilege(s.oid, 'USAGE')
                 AND EXISTS (SELECT FROM pg_user_mappings AS u
                              WHERE u.srvid = s.oid
                                AND (u.umuser = 0 OR u.umuser = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user))))
      INTO known, usable
      FROM pg_foreign_server AS s
     WHERE EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
                    WHERE d.classid = 'pg_foreign_data_wrapper'::regclass AND d.objid = s.srvfdw AND d.deptype = 'e'
                      AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'postgres_fdw');
    IF servers IS NULL THEN
        IF usable IS NULL THEN
            RAISE EXCEPTION 'there is no server of postgres_fdw that you may use and have a user mapping for'
                USING ERRCODE = 'undefined_object', HINT = 'CREATE SERVER and CREATE USER MAPPING make them.';
        END IF;
        RETURN usable;
    END IF;
    IF cardinality(servers) = 0 OR array_position(servers, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'invalid value for argument "servers": it is empty or has a NULL'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out for all servers that you may use.';
    END IF;
    SELECT s INTO wrong FROM unnest(servers) AS s WHERE known IS NULL OR s <> ALL (known) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no server "%" of postgres_fdw', wrong
            USING ERRCODE = 'undefined_object', HINT = format('Servers are: %s.', coalesce(array_to_string(known, ', '), 'none'));
    END IF;
    RETURN ARRAY(SELECT DISTINCT s COLLATE "C" FROM unnest(servers) AS s ORDER BY 1);
END
$$;
COMMENT ON FUNCTION corgipile.servers_to_publish_to(text[]) IS 'foreign servers that a call of corgipile_publish() uses';

-- All servers store the model before the first one commits: if one fails, none has it. Then all get the
-- COMMIT before the first reply is awaited.
CREATE FUNCTION corgipile.publish(id bigint, identity uuid, model jsonb, servers text[])
RETURNS TABLE (server text, outcome text, model_id bigint, version int)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    dblink      text;
    names       text[];
    connections text[] := '{}';
    received    json[] := '{}';
    users       text[] := '{}';
    call        CONSTANT int := floor(2147483647 * random());
    same        int;
    is_told     boolean := false;
    have        text[] := '{}';
    to_all      text[];
    to_predict  text[];
    missing     text[] := '{}';
    answer      text;
    code        text;
    message     text;
    detail      text;
    hint        text;
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'cannot execute corgipile_publish() in a read-only transaction'
            USING ERRCODE = 'read_only_sql_transaction', HINT = 'Publish from the primary, in a transaction that may write.';
    END IF;
    SELECT n.nspname INTO dblink
      FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'dblink';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'extension dblink is not installed in this database'
            USING ERRCODE = 'object_not_in_prerequisite_state',
                  HINT = 'Run CREATE EXTENSION dblink; it comes with PostgreSQL.';
    END IF;
    names := corgipile.servers_to_publish_to(servers);
    SELECT m.granted_to, m.predict_granted_to INTO to_all, to_predict FROM corgipile.models AS m WHERE m.model_id = id;
    FOREACH server IN ARRAY names LOOP
        BEGIN
            -- a name that no other connection of the session has
            connections := connections || format('corgipile_%s', gen_random_uuid());
            EXECUTE format('SELECT %I.dblink_connect($1, $2)', dblink) USING connections[cardinality(connections)], server;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                                    hint = PG_EXCEPTION_HINT;
            PERFORM corgipile.raise_of_server(server, code, message, detail, hint);
        END;
    END LOOP;
    FOR i IN 1 .. cardinality(names) LOOP
        server := names[i];
        PERFORM corgipile.answer_of_server(dblink, server, connections[i],
                                           'BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE');
        -- Calls on two servers that know the same others by names in another order could wait in a circle.
        PERFORM corgipile.answer_of_server(dblink, server, connections[i], $q$SET LOCAL lock_timeout = '10s'$q$);
        answer := corgipile.answer_of_server(dblink, server, connections[i],
            $q$SELECT extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'corgipile'$q$);
        IF answer IS NULL THEN
            PERFORM corgipile.raise_of_server(server, '55000', 'extension corgipile is not installed in its database', NULL,
                                              'Run CREATE EXTENSION corgipile in that database.');
        END IF;
        -- Each takes the locks of this call up to its own number: those that are taken are of an earlier one that leads to the
        -- same database, for whose transaction it would wait in vain.
        answer := corgipile.answer_of_server(dblink, server, connections[i], format(
            'SELECT pg_catalog.concat(pg_catalog.max(j) FILTER (WHERE NOT pg_catalog.pg_try_advisory_xact_lock(%s, j)), '' '', current_user)
               FROM pg_catalog.generate_series(1, %s) AS j', call, i));
        same := nullif(split_part(answer, ' ', 1), '');
        users := users || substr(answer, strpos(answer, ' ') + 1);
        IF same IS NULL THEN
            answer := corgipile.answer_of_server(dblink, server, connections[i], format(
                'SELECT pg_catalog.row_to_json(r)::pg_catalog.text
                   FROM corgipile.receive_model(%L::pg_catalog.uuid, %L::pg_catalog.jsonb) AS r', identity, model));
            received := received || answer::json;
            answer := corgipile.answer_of_server(dblink, server, connections[i], format(
                'SELECT corgipile.receive_grants(%L::pg_catalog.int8, %L::pg_catalog.text[], %L::pg_catalog.text[])',
                received[i] ->> 'model_id', to_all, to_predict));
            IF answer <> '' THEN
                missing := missing || format('%s on server "%s"', answer, server);
            END IF;
        ELSIF users[i] = users[same] THEN
            received := received || (received[same]::jsonb || '{"outcome": "present"}')::json;
        ELSE
            PERFORM corgipile.raise_of_server(server, '55000',
                format('it leads to the same database as server "%s", as another role', names[same]), NULL,
                'Name one of them in argument servers.');
        END IF;
    END LOOP;
    is_told := true;
    EXECUTE format('SELECT count(%I.dblink_send_query(c, ''COMMIT'')) FROM unnest($1) AS c', dblink) USING connections;
    FOR i IN 1 .. cardinality(names) LOOP
        BEGIN
            answer := corgipile.answer_of_server(dblink, names[i], connections[i]);
            IF answer = 'COMMIT' THEN
                have := have || names[i];
            ELSE
                PERFORM corgipile.raise_of_server(names[i], '40000', 'it has not committed', NULL, NULL);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            -- that of the first is raised when all have answered
            IF code IS NULL THEN
                GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
            END IF;
        END;
    END LOOP;
    IF code IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
    END IF;
    PERFORM corgipile.hang_up(dblink, connections);
    IF cardinality(missing) > 0 THEN
        RAISE NOTICE 'roles to which the model is granted here do not exist there: %', array_to_string(missing, '; ')
            USING HINT = 'Create them there, and publish again.';
    END IF;
    FOR i IN 1 .. cardinality(names) LOOP
        server := names[i];
        outcome := received[i] ->> 'outcome';
        model_id := received[i] ->> 'model_id';
        version := received[i] ->> 'version';
        RETURN NEXT;
    END LOOP;
EXCEPTION WHEN query_canceled OR OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
    PERFORM corgipile.hang_up(dblink, connections);
    IF NOT is_told THEN
        RAISE;
    END IF;
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message,
        DETAIL = format('The model is on these servers: %s; and may be on these: %s.',
                        coalesce(nullif(array_to_string(have, ', '), ''), 'none that is known'),
                        array_to_string(ARRAY(SELECT n FROM unnest(names) AS n WHERE n <> ALL (have)), ', ')),
        HINT = 'Publish it again: where it is, nothing changes.';
END
$$;
COMMENT ON FUNCTION corgipile.publish(bigint, uuid, jsonb, text[]) IS 'publishes a model for corgipile_publish()';

CREATE FUNCTION corgipile_publish(model_id bigint, servers text[] DEFAULT NULL)
RETURNS TABLE (server text, outcome text, remote_model_id bigint, remote_version int)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS 'SELECT p.server, p.outcome, p.model_id, p.version
      FROM corgipile.publish(model_id, corgipile.identity(model_id), @extschema@.corgipile_export(model_id), servers) AS p';
COMMENT ON FUNCTION corgipile_publish(bigint, text[]) IS 'copies a model to other servers, those named or all that you may use, and makes its name refer to it there; returns one row per server';

CREATE FUNCTION corgipile_publish(name text, version int DEFAULT NULL, servers text[] DEFAULT NULL)
RETURNS TABLE (server text, outcome text, remote_model_id bigint, remote_version int)
LANGUAGE sql VOLATILE PARALLEL UNSAFE ROWS 10 SET search_path = pg_catalog, pg_temp
AS 'SELECT p.server, p.outcome, p.remote_model_id, p.remote_version
      FROM @extschema@.corgipile_publish(corgipile.version_id(name, version), servers) AS p';
COMMENT ON FUNCTION corgipile_publish(text, int, text[]) IS 'copies the current version of a model, or another, to other servers, those named or all that you may use, and makes its name refer to it there; returns one row per server';
