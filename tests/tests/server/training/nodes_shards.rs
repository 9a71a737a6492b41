//! Training on a distributed table of Citus where its shards are. Citus is not in Debian: its catalogs are made here as
//! tables, with what Citus writes into them, and the distributed table has no rows of its own.

use super::nodes::{COLUMNS, Spread, assert_equal, rows};
use corgipile_tests::{Cluster, Database, Model, Session, hooked, skip};

/// Servers in the sequence in which they get shards.
const SERVERS: [&str; 3] = ["east", "north", "south"];

/// How many shards the table has.
const SHARDS: usize = 6;

/// The catalogs of Citus as far as they are read, and the function by which it names shards.
const CATALOGS: &str = "SET allow_system_table_mods = on;
    CREATE TYPE pg_catalog.noderole AS ENUM ('primary', 'secondary', 'unavailable');
    CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass NOT NULL, partmethod \"char\" NOT NULL, partkey text,
        colocationid int NOT NULL DEFAULT 0, repmodel \"char\" NOT NULL DEFAULT 's');
    CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass NOT NULL, shardid bigint NOT NULL,
        shardstorage \"char\" NOT NULL DEFAULT 't', shardminvalue text, shardmaxvalue text);
    CREATE TABLE pg_catalog.pg_dist_placement (placementid bigint NOT NULL, shardid bigint NOT NULL, shardstate int NOT NULL,
        shardlength bigint NOT NULL DEFAULT 0, groupid int NOT NULL);
    CREATE TABLE pg_catalog.pg_dist_node (nodeid int NOT NULL, groupid int NOT NULL, nodename text NOT NULL, nodeport int NOT NULL,
        isactive boolean NOT NULL DEFAULT true, noderole noderole NOT NULL DEFAULT 'primary');
    CREATE FUNCTION pg_catalog.shard_name(object_name regclass, shard_id bigint, skip_qualify_public boolean DEFAULT true)
    RETURNS text LANGUAGE sql STABLE AS $$
        SELECT CASE WHEN nspname = 'public' AND skip_qualify_public THEN '' ELSE quote_ident(nspname) || '.' END
               || quote_ident(relname || '_' || shard_id)
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = object_name $$;
    GRANT SELECT ON pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_node
        TO PUBLIC;
    RESET allow_system_table_mods";

/// A database that is called the same on all servers, and the catalogs, in which `east`, `north` and `south` are nodes.
fn sharded<T>(test: T) -> Option<Spread> {
    let mut spread = Spread::new(test)?;
    let name = spread.nodes.near.name().to_owned();
    let near = spread.near();
    near.run(CATALOGS);
    for server in SERVERS {
        near.run(&format!("ALTER SERVER {server} OPTIONS (SET dbname '{name}')"));
    }
    for (i, cluster) in (1..).zip([&spread.east, &spread.nodes.north, &spread.nodes.south]) {
        cluster.session().run(&format!("CREATE DATABASE {name}"));
        cluster.session_in(&name).run("CREATE EXTENSION corgipile");
        let add = format!("INSERT INTO pg_dist_node VALUES ({i}, {i}, '{}', 5432)", cluster.directory().display());
        spread.nodes.near.run(&add);
    }
    Some(spread)
}

/// Makes a distributed table with the rows of `base`, and `dealt` with these in the sequence in which nodes take turns.
/// Its shards have numbers from `first` on.
fn distribute(spread: &mut Spread, schema: &str, table: &str, first: usize) {
    let name = spread.nodes.near.name().to_owned();
    let (schema, quoted) = (format!("\"{schema}\""), format!("\"{schema}\".\"{table}\""));
    let with_dropped = COLUMNS.replace("class int", "gone text, class int");
    spread.near().run(&format!(
        "CREATE SCHEMA IF NOT EXISTS {schema};
         CREATE TABLE {quoted} ({with_dropped}); ALTER TABLE {quoted} DROP gone;
         INSERT INTO pg_dist_partition VALUES ('{quoted}', 'h', 'id');
         CREATE TABLE IF NOT EXISTS dealt AS
         SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY id % 3 ORDER BY id % {SHARDS}, id) AS turn FROM base) s
         ORDER BY turn, id % 3",
        columns = "id, half, class, y, a, b, c, cat, v, k, kv, w, held"
    ));
    for shard in 0..SHARDS {
        let (node, id) = (shard % 3, first + shard);
        let far = format!("{table}_{id}");
        let cluster = [&spread.east, &spread.nodes.north, &spread.nodes.south][node];
        cluster
            .session_in(&name)
            .run(&format!("CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE {schema}.\"{far}\" ({COLUMNS})"));
        spread.near().run(&format!(
            "CREATE FOREIGN TABLE loading ({COLUMNS}) SERVER {server}
                 OPTIONS (schema_name '{plain}', table_name '{far}', batch_size '500');
             INSERT INTO loading SELECT * FROM base WHERE id % {SHARDS} = {shard} ORDER BY id;
             DROP FOREIGN TABLE loading;
             INSERT INTO pg_dist_shard VALUES ('{quoted}', {id});
             INSERT INTO pg_dist_placement VALUES ({id}, {id}, 1, 0, {group})",
            server = SERVERS[node],
            plain = schema.trim_matches('"'),
            group = node + 1
        ));
    }
}

/// A training of a source where its rows are.
fn there(near: &mut Session, source: &str, arguments: &str) -> Model {
    near.trained(&format!("{source}, servers => 'auto', {arguments}, seed => 1"))
}

#[test]
fn shards_are_trained_on_where_they_are() {
    let Some(mut spread) = sharded(shards_are_trained_on_where_they_are) else { return };
    distribute(&mut spread, "public", "t", 102_008);
    distribute(&mut spread, "odd schema", "Odd table", 102_108);
    let near = spread.near();
    // a second copy of a shard adds no rows
    near.run("INSERT INTO pg_dist_placement VALUES (9999999, 102008, 1, 0, 2)");
    let in_order = "shuffle => 'no_shuffle', buffer_size => '100%', max_epochs => 4";
    for arguments in [
        "label => 'half', features => '{a,b,cat}', batch_size => 64, l2 => 0",
        "label => 'class', features => '{v}', model => 'softmax', batch_size => 256",
        "label => 'half', features => '{k,kv}', batch_size => 64, learning_rate => 0.01",
        "label => 'y', features => '{a,b}', model => 'linear', batch_size => 64",
    ] {
        let arguments = format!("{arguments}, {in_order}");
        let here = near.trained(&format!("'dealt', {arguments}, seed => 1")).parameters();
        for source in ["'t'", "'\"odd schema\".\"Odd table\"'"] {
            assert_equal(
                [there(near, source, &arguments).parameters(), here.clone()],
                &format!("{source}, {arguments}"),
            );
        }
    }
    // what the source filters and computes is filtered and computed there
    near.run("CREATE VIEW seen AS SELECT id, half, a * 2 AS a2, b, cat FROM t WHERE b > 4");
    for source in [
        "SELECT half, a, b FROM {} WHERE id % 5 > 0 AND cat = 'red'",
        "SELECT half, a + b AS sum, upper(cat) AS cat FROM (SELECT * FROM {} WHERE held) AS s",
        "SELECT half, a FROM {} WHERE v[1] > 0 OR cat IN ('grey', 'it''s')",
        "WITH q AS (SELECT * FROM {} WHERE b > 4) SELECT half, a, b FROM q WHERE id > 9",
        "SELECT * FROM (WITH q AS (SELECT half, a, b FROM {}) TABLE q) s",
    ] {
        let newton = "label => 'half', solver => 'newton'";
        let here = near.trained(&format!("$${}$$, {newton}", source.replace("{}", "dealt"))).parameters();
        let far = there(near, &format!("$${}$$", source.replace("{}", "t")), newton).parameters();
        assert_equal([far, here], source);
    }
    let newton = "label => 'half', features => '{a2,b,cat}', solver => 'newton'";
    let here = near.trained(&format!("'SELECT half, a * 2 AS a2, b, cat FROM dealt WHERE b > 4', {newton}"));
    assert_equal([there(near, "'seen'", newton).parameters(), here.parameters()], "a view");
    // and models are judged there
    near.train("'dealt', label => 'half', features => '{a,b}', name => 'judged', max_epochs => 1");
    let judged = |near: &mut Session, table: &str, more: &str| {
        near.lines(&format!(
            "SELECT metric, round(value::numeric, 9) FROM corgipile_evaluate('judged', '{table}'{more}) WHERE value IS NOT NULL"
        ))
    };
    assert_eq!(judged(near, "t", ", servers => 'east,north,south'"), judged(near, "dealt", ""));
    let plan =
        near.lines("EXPLAIN SELECT * FROM corgipile_train('t', label => 'half', features => '{a}', servers => 'auto')");
    assert!(plan.iter().any(|line| line.contains("east, north, south")), "{plan:#?}");
}

#[test]
fn what_shards_cannot_be_asked_for_is_told() {
    let Some(mut spread) = sharded(what_shards_cannot_be_asked_for_is_told) else { return };
    distribute(&mut spread, "public", "t", 102_008);
    let (role, name) = (spread.nodes.near.role("reader"), spread.nodes.near.name().to_owned());
    let near = spread.near();
    near.run(&format!(
        "CREATE VIEW lent AS SELECT * FROM t; ALTER VIEW lent OWNER TO {role}; GRANT SELECT ON t TO {role}"
    ));
    let call = |source: &str| {
        format!(
            "SELECT * FROM corgipile_train($${source}$$, label => 'half', features => '{{a}}', servers => 'east,north,south')"
        )
    };
    let refused = |near: &mut Session, source: &str, why: &str| {
        let failure = near.fails_with(&call(source), "0A000");
        assert!(failure.message.contains(why), "{source}: {failure:#?}");
    };
    for (source, why) in [
        ("SELECT half, a FROM t WHERE a < extract(epoch FROM now())", "what depends on the session or on the time"),
        ("SELECT half, a + random() AS a FROM t", "what depends on the session or on the time"),
        ("SELECT half, (t).a AS a FROM t WHERE t IS NOT NULL", "whole rows, or columns of the system"),
        ("SELECT half, a FROM t WHERE ctid > '(0,1)'", "whole rows, or columns of the system"),
        ("SELECT half, a FROM ONLY t", "only a part of the distributed table is read"),
        ("SELECT half, a FROM t TABLESAMPLE system (50)", "only a part of the distributed table is read"),
        ("lent", "a view reads the distributed table as its owner"),
        ("SELECT half, a FROM t LIMIT 10", "it reads a distributed table, and has LIMIT or OFFSET"),
        ("SELECT half, a FROM t ORDER BY id", "it reads a distributed table, and is sorted"),
        ("SELECT half, max(a) AS a FROM t GROUP BY half, id", "it reads a distributed table, and aggregates"),
        ("SELECT DISTINCT half, a FROM t", "it reads a distributed table, and has DISTINCT"),
        ("SELECT half, rank() OVER (ORDER BY a) AS a FROM t", "and computes window functions"),
        ("SELECT half, unnest(v) AS a FROM t", "and has functions that return sets"),
        ("SELECT half, a FROM t UNION ALL SELECT half, a FROM base", "and has UNION or another set operation"),
        ("SELECT half, a FROM t JOIN base USING (half, a)", "it reads a distributed table, and joins tables"),
        ("WITH q AS (TABLE t), p AS (TABLE base) SELECT half, a FROM q", "and has several WITH queries"),
        ("SELECT half, a FROM t WHERE id IN (SELECT id FROM base)", "and has a subquery outside of FROM"),
        ("SELECT half, a FROM base WHERE id IN (SELECT id FROM t)", "and has a subquery outside of FROM"),
        ("base", "the source is a table of this server"),
    ] {
        refused(near, source, why);
    }
    for source in ["t", "SELECT half, a FROM t WHERE id > 5"] {
        let uda = near.fails_with(
            &format!("SELECT corgipile_train_uda('{source}', label => 'half', features => '{{a}}')"),
            "0A000",
        );
        assert_eq!(uda.message, "corgipile_train_uda() cannot train on a distributed table");
        uda.hints(&["servers => 'auto'", "corgipile_sgd_agg_typed()"]);
    }
    near.fails_with("SELECT corgipile_io_profile('t')", "55000").hints(&["measure one of its shards"]);
    near.run("UPDATE pg_dist_node SET isactive = false WHERE nodeid = 2");
    refused(near, "t", "shard 102009 of Citus is on no node that is active");
    near.run("UPDATE pg_dist_node SET isactive = true, nodeport = 5433 WHERE nodeid = 2");
    refused(near, "t", "and port 5433, into a database of this name");
    near.run("UPDATE pg_dist_node SET nodeport = 5432; ALTER SERVER north OPTIONS (SET dbname 'other')");
    refused(near, "t", "no foreign server of postgres_fdw leads to the node of Citus");
    near.run(&format!("ALTER SERVER north OPTIONS (SET dbname '{name}')"));
    // rows that somebody may not read here, he does not read there
    let near = spread.near();
    near.run(&format!("REVOKE SELECT ON t FROM {role}; GRANT USAGE ON FOREIGN SERVER east, north, south TO {role}"));
    let mut reader = spread.nodes.near.session_as(&role);
    reader.fails_with(&call("t"), "42501");
    reader.run("CREATE TEMP TABLE mine AS SELECT i % 2 AS half, i::real AS a FROM generate_series(1, 100) i");
    reader.train("'mine', label => 'half', name => 'mine', max_epochs => 1");
    reader.fails_with("SELECT * FROM corgipile_evaluate('mine', 't', servers => 'east,north,south')", "42501");
    let near = spread.near();
    near.run(&format!(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON t USING (id > 0); GRANT SELECT ON t TO {role}"
    ));
    refused(&mut spread.nodes.near.session_as(&role), "t", "the distributed table has row security");
    // with 'auto' the rows are fetched here, of which this table has none
    let near = spread.near();
    near.run(&format!("INSERT INTO t {}", rows(50)));
    assert_eq!(
        near.lines(
            "SELECT max(tuples) FROM corgipile_train('SELECT half, a FROM ONLY t', label => 'half', servers => 'auto')"
        ),
        ["50"]
    );
}

#[test]
fn what_keeps_sessions_from_the_nodes_of_citus_has_citus_fetch_the_rows() {
    let test = what_keeps_sessions_from_the_nodes_of_citus_has_citus_fetch_the_rows;
    let Some(mut spread) = sharded(test) else { return };
    distribute(&mut spread, "public", "t", 102_008);
    let (role, name) = (spread.nodes.near.role("reader"), spread.nodes.near.name().to_owned());
    let address = spread.nodes.north.address(&name);
    // what Citus would fetch are the rows that the table has here
    let near = spread.near();
    near.run(&format!(
        "INSERT INTO t {}; GRANT SELECT ON t TO {role}; GRANT USAGE ON FOREIGN SERVER east, south TO {role}",
        rows(50)
    ));
    let call = |nodes: &str| {
        format!(
            "SELECT tuples FROM corgipile_train('t', label => 'half', features => '{{a,b}}', model => 'logistic', max_epochs => 1,
                 learning_rate => 0.01, batch_size => 100, servers => '{nodes}')"
        )
    };
    let comes_here = |spread: &mut Spread, code: &str, why: &str| {
        let failure = spread.nodes.near.session_as(&role).fails_with(&call("east,north,south"), code);
        assert!(failure.message.starts_with(why), "{failure:#?}");
        assert_eq!(spread.nodes.near.session_as(&role).lines(&call("auto")), ["50"], "{why}");
        let notices = spread.nodes.near.notices(&[&format!("SET ROLE {role}; {}", call("auto"))]);
        assert!(notices.contains(&format!("fetched to this server to be trained on: {why}")), "{notices}");
    };
    for cluster in [&spread.east, &spread.nodes.north, &spread.nodes.south] {
        let mut session = cluster.session_in(&name);
        session.run("CREATE ROLE far LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO far");
        cluster.ask_for_password("far", "secret");
    }
    let map = |spread: &mut Spread, server: &str, password: &str| {
        let options = format!("OPTIONS (user 'far', password '{password}')");
        spread.near().run(&format!(
            "DROP USER MAPPING IF EXISTS FOR {role} SERVER {server}; CREATE USER MAPPING FOR {role} SERVER {server} {options}"
        ));
    };
    map(&mut spread, "east", "secret");
    comes_here(&mut spread, "42501", &format!("server \"north\": role {role} lacks the privilege USAGE on it"));
    spread.near().run(&format!("GRANT USAGE ON FOREIGN SERVER north TO {role}"));
    comes_here(&mut spread, "42704", "server \"north\": you have no user mapping for it");
    map(&mut spread, "north", "wrong");
    map(&mut spread, "south", "secret");
    comes_here(&mut spread, "08001", "server \"north\": could not establish connection");
    map(&mut spread, "north", "secret");
    comes_here(&mut spread, "42501", "server \"east\": role far lacks the privilege");
    for cluster in [&spread.east, &spread.nodes.north, &spread.nodes.south] {
        cluster.session_in(&name).run("GRANT EXECUTE ON FUNCTION corgipile.node_training, corgipile.node_step TO far");
    }
    assert_eq!(spread.nodes.near.session_as(&role).lines(&call("auto")), ["1200"]);
    // of two servers that lead to one node, the one that the user may use is taken
    spread.near().run(&format!("CREATE SERVER also_north FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({address})"));
    assert_eq!(spread.nodes.near.session_as(&role).lines(&call("auto")), ["1200"]);
    // a shard that is not there any more
    spread.nodes.north.session_in(&name).run("DROP TABLE t_102009");
    comes_here(&mut spread, "42P01", "server \"north\": relation \"public.t_102009\" does not exist");
}

/// Has the other extension of the tests number transactions as Citus does, and give the rows with ids up to 50.
fn transaction_number(library: &str) -> String {
    format!(
        "LOAD '{library}';
         CREATE FUNCTION hooked_ids() RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, 50)';
         CREATE FUNCTION hooked_transaction() RETURNS bigint LANGUAGE c AS '{library}';
         SET allow_system_table_mods = on;
         CREATE FUNCTION pg_catalog.get_current_transaction_id(OUT database_id oid, OUT process_id int,
             OUT initiator_node_identifier int, OUT transaction_number bigint, OUT transaction_stamp timestamptz)
         LANGUAGE sql AS 'SELECT 0::oid, 0, 0, public.hooked_transaction(), NULL::timestamptz';
         RESET allow_system_table_mods"
    )
}

#[test]
fn what_a_transaction_may_have_written_on_nodes_is_read_from_here() {
    let test = what_a_transaction_may_have_written_on_nodes_is_read_from_here;
    let library = match hooked() {
        Ok(library) => library,
        Err(reason) => return skip(test, &reason),
    };
    let Some(mut spread) = sharded(test) else { return };
    // the rows of the shards are on the nodes; those of the table here are what Citus would give of them
    distribute(&mut spread, "public", "hooked_t", 102_008);
    let near = spread.near();
    near.run(&transaction_number(&library.display().to_string()));
    near.run(&format!("INSERT INTO hooked_t {}", rows(50)));
    let call = |nodes: &str, more: &str| {
        format!(
            "SELECT max(tuples) FROM corgipile_train('hooked_t', label => 'half', features => '{{a,b}}', name => 'm',
                                                     max_epochs => 1, servers => '{nodes}'{more})"
        )
    };
    let readers = |nodes: &str| {
        [
            call(nodes, ", batch_size => 64"),
            // this looks at some rows itself before it asks the nodes
            call(nodes, ", batch_size => 64").replace("features => '{a,b}', ", "features => '{a,b,cat}', "),
            format!(
                "SELECT value FROM corgipile_evaluate('m', 'hooked_t', servers => '{nodes}') WHERE metric = 'tuples'"
            ),
            format!("SELECT tuples FROM corgipile_profile('m', 'hooked_t', servers => '{nodes}')"),
        ]
    };
    let factor =
        |nodes: &str| format!("SELECT corgipile_cluster_factor('hooked_t', 'half', '{{a,b}}', servers => '{nodes}')");
    let (there, named) = (near.line(&factor("auto")), "east,north,south");
    for reader in readers(named).iter().chain(&readers("auto")) {
        assert_eq!(near.line(reader), "1200", "{reader}");
    }
    // several trainings of a transaction that has used no node before
    near.run("BEGIN");
    for _ in 0..2 {
        assert_eq!(near.line(&call(named, ", model => 'logistic', learning_rate => 0.1, batch_size => 64")), "1200");
    }
    near.run("ROLLBACK; BEGIN");
    near.run("SELECT count(*) FROM hooked_t");
    for reader in readers("auto") {
        assert_eq!(near.line(&reader), "50", "{reader}");
    }
    assert_ne!(near.line(&factor("auto")), there);
    for reader in readers(named).iter().chain(&[factor(named)]) {
        near.run("SAVEPOINT before");
        let failure = near.fails_with(reader, "0A000");
        near.run("ROLLBACK TO before");
        assert!(failure.message.contains("the transaction has used Citus on several nodes"), "{failure:#?}");
    }
    near.run("ROLLBACK");
    let notices = spread.nodes.near.notices(&[
        &format!("LOAD '{}'", library.display()),
        "BEGIN",
        "SELECT count(*) FROM hooked_t",
        &call("auto", ", batch_size => 64"),
    ]);
    let why = "the rows are fetched to this server to be trained on: the transaction has used Citus on several nodes";
    assert!(notices.contains(why), "{notices}");
    assert_eq!(spread.near().line(&call(named, ", batch_size => 64")), "1200");
}

#[test]
fn citus_itself_spreads_a_table_that_is_trained_on_where_it_is() {
    if !Database::new().offers_extension("citus") {
        skip(citus_itself_spreads_a_table_that_is_trained_on_where_it_is, "the server has no extension citus");
        return;
    }
    let [near, first, second] = [(); 3].map(|()| Cluster::new(&["shared_preload_libraries = 'citus'"]));
    let mut session = near.session();
    session.run("CREATE EXTENSION citus; CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink");
    session.run(&format!("SELECT citus_set_coordinator_host('{}', 5432)", near.directory().display()));
    for (server, cluster) in [("first", &first), ("second", &second)] {
        cluster.session().run("CREATE EXTENSION citus");
        session.run(&format!(
            "CREATE SERVER {server} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({});
             CREATE USER MAPPING FOR CURRENT_USER SERVER {server} OPTIONS (user 'postgres');
             SELECT citus_add_node('{}', 5432)",
            cluster.address("postgres"),
            cluster.directory().display()
        ));
    }
    session.run(
        "CREATE TABLE base AS SELECT i AS id, (i % 7 > 2)::int AS half, (i % 7 + i % 5)::real AS a, (i % 11)::real AS b
         FROM generate_series(1, 1200) i;
         CREATE TABLE t (LIKE base);
         SELECT create_distributed_table('t', 'id', shard_count => 6);
         INSERT INTO t SELECT * FROM base",
    );
    let newton = "label => 'half', features => '{a,b}', solver => 'newton'";
    let far = session.trained(&format!("'SELECT * FROM t WHERE id > 100', {newton}, servers => 'first,second'"));
    let here = session.trained(&format!("'SELECT * FROM base WHERE id > 100', {newton}"));
    assert_equal([far.parameters(), here.parameters()], "Citus");
}
