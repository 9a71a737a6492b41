//! What an ordinary user creates next to PostgreSQL's own objects, under their names, and who then runs it: no one.
//!
//! Mallory may create in schema public and owns schema mal. She makes functions, operators, types, casts and views that
//! are called like PostgreSQL's own, some with argument types that fit better, and each counts when it is used. A
//! sequence counts, because no rollback takes its numbers back.

use corgipile_tests::{Database, Session, log};
use std::collections::BTreeSet;
use std::path::Path;

/// A database without corgipile, and Mallory in it.
pub struct Trojans {
    pub db: Database,
    pub mallory: String,
}

/// How many names Mallory has made.
pub struct Planted {
    functions: i64,
    operators: i64,
    types: i64,
    casts: i64,
    views: i64,
}

/// Argument types of what may fit better than PostgreSQL's own.
const TYPES: &str =
    "'{int2,int4,int8,float4,float8,numeric,text,name,\"\\\"char\\\"\",varchar,bool,oid,regclass,regtype,regrole,
    regprocedure,jsonb,json,timestamptz,text[],float8[],float4[],int4[],aclitem[],regrole[],oid[],anyelement,anyarray,
    anynonarray,corgipile.sgd_state,corgipile.toc,corgipile.stored_role}'::pg_catalog.text[]";

/// As [`TYPES`], of functions with two arguments.
const FEW_TYPES: &str = "'{int4,int8,float8,text,name,oid,regclass,regrole,regprocedure,jsonb,text[],anyelement,corgipile.stored_role}'::pg_catalog.text[]";

/// In every planting session: Mallory does not step into her own traps.
const SAFE: &str = "SET search_path = pg_catalog";

const SPY: &str = "
    CREATE SEQUENCE mal.calls;
    CREATE FUNCTION mal.spy(what pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_catalog.nextval('mal.calls'::pg_catalog.regclass);
        RAISE LOG 'trojan %', what;
        RETURN true;
    END $$;
    CREATE FUNCTION mal.attempt(ddl pg_catalog.text) RETURNS pg_catalog.int8 LANGUAGE plpgsql SET search_path = pg_catalog AS $$
    BEGIN
        EXECUTE ddl;
        RETURN 1;
    EXCEPTION
        WHEN insufficient_resources THEN RAISE; -- she would plant less than there is to plant
        WHEN OTHERS THEN RETURN 0;
    END $$;
    CREATE FUNCTION mal.body(what pg_catalog.text, has_value pg_catalog.bool) RETURNS pg_catalog.text LANGUAGE sql
        SET search_path = pg_catalog
        AS $$ SELECT format('LANGUAGE plpgsql AS $f$ BEGIN PERFORM mal.spy(%L); RETURN%s; END $f$', what,
                            CASE WHEN has_value THEN ' NULL' ELSE '' END) $$;";

impl Trojans {
    pub fn new() -> Trojans {
        let mut db = Database::empty();
        let mallory = db.role("mallory");
        db.run(&format!("GRANT CREATE ON SCHEMA public TO {mallory}; CREATE SCHEMA mal AUTHORIZATION {mallory}"));
        let mut trojans = Trojans { db, mallory };
        trojans.as_mallory().run(SPY);
        trojans
    }

    pub fn as_mallory(&mut self) -> Session {
        let mut session = self.db.session_as(&self.mallory);
        session.run(SAFE);
        session
    }

    /// Makes what is called like something of PostgreSQL's own.
    pub fn plant(&mut self, schema: &str) -> Planted {
        let mut session = self.as_mallory();
        let mut made =
            |sql: &str| session.value::<i64>(&format!("SELECT coalesce(sum(made), 0)::bigint FROM ({sql}) AS m(made)"));
        let names = names_in_scripts();
        let names = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        let marks = operators_in_scripts();
        let marks = marks.iter().map(|mark| format!("'{mark}'")).collect::<Vec<_>>().join(", ");
        let exact = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION {schema}.%I(%s) RETURNS %s %s', proname,
                        pg_get_function_identity_arguments(oid), pg_get_function_result(oid),
                        mal.body('function ' || oid::regprocedure, NOT proretset AND prorettype <> 'void'::regtype)))
               FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
                              AND prorettype <> ALL ('{{internal,cstring,trigger,event_trigger}}'::regtype[])
                              AND NOT proargtypes::oid[] && '{{internal,cstring}}'::regtype[]::oid[]"
        ));
        let aggregates = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION {schema}.%I(%s) RETURNS %s %s', proname, oidvectortypes(proargtypes),
                        format_type(prorettype, NULL), mal.body('aggregate ' || oid::regprocedure, true)))
               FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('a', 'w')"
        ));
        // that fit better where PostgreSQL's own want another type
        let one = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION {schema}.%I(%s) RETURNS %s %s', name, type, type,
                        mal.body(format('function %s(%s)', name, type), true)))
               FROM (SELECT DISTINCT proname AS name FROM pg_proc
                      WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ({names}) AND pronargs = 1) AS p,
                    unnest({TYPES}) AS type"
        ));
        let two = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION {schema}.%I(%s, %s) RETURNS %s %s', name, l, r, result,
                        mal.body(format('function %s(%s, %s)', name, l, r), true)))
               FROM (SELECT DISTINCT ON (proname) proname AS name, format_type(prorettype, NULL) AS result FROM pg_proc
                      WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ({names}) AND pronargs = 2
                        AND NOT proretset) AS p,
                    unnest({FEW_TYPES}) AS l, unnest({FEW_TYPES}) AS r"
        ));
        let exact_operators = made(&format!(
            "SELECT CASE WHEN made = 1 THEN
                    mal.attempt(format('CREATE OPERATOR {schema}.%s (%s RIGHTARG = %s, FUNCTION = mal.%I)', oprname, leftarg,
                                       rightarg, function)) END
               FROM (SELECT oprname, leftarg, rightarg, function,
                            mal.attempt(format('CREATE OR REPLACE FUNCTION mal.%I(%s) RETURNS %s %s', function, args, result,
                                               mal.body('operator ' || op, true))) AS made
                       FROM (SELECT oprname, 'exact_' || oid AS function, oid::regoperator::text AS op,
                                    format_type(oprresult, NULL) AS result, format_type(oprright, NULL) AS rightarg,
                                    CASE WHEN oprleft <> 0 THEN format('LEFTARG = %s,', format_type(oprleft, NULL)) END AS leftarg,
                                    concat_ws(', ', CASE WHEN oprleft <> 0 THEN format_type(oprleft, NULL) END,
                                              format_type(oprright, NULL)) AS args
                               FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace OFFSET 0) AS o OFFSET 0) AS f"
        ));
        let better_operators = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION mal.%I(%s, %s) RETURNS %s %s', function, l, r, result,
                                       mal.body(format('operator %s(%s, %s)', name, l, r), true)))
                    * mal.attempt(format('CREATE OPERATOR {schema}.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = mal.%I)', name, l, r,
                                         function))
               FROM (SELECT DISTINCT oprname AS name, format('better_{schema}_%s_%s_%s', oprname, l, r) AS function, l, r,
                            CASE WHEN oprname = '||' THEN 'text' WHEN oprname = '->' THEN 'jsonb'
                                 WHEN oprname IN ('+', '-', '*', '/') THEN 'int4' ELSE 'bool' END AS result
                       FROM pg_operator, unnest({TYPES}) AS l, unnest({TYPES}) AS r
                      WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprname IN ({marks})) AS o"
        ));
        let types = made(&format!(
            "SELECT mal.attempt(format('CREATE DOMAIN {schema}.%I AS pg_catalog.%I CHECK (mal.spy(%L))', typname, typname,
                                       'type ' || typname))
               FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'r') AND typname NOT LIKE '\\_%'"
        ));
        let casts = made(&format!(
            "SELECT mal.attempt(format('CREATE FUNCTION mal.{schema}_cast_to(%s, {schema}.mallory) RETURNS %s %s', type, type,
                                       mal.body(format('cast to %s', type), true)))
                    * mal.attempt(format('CREATE FUNCTION mal.{schema}_cast_from(%s) RETURNS {schema}.mallory %s', type,
                                         mal.body(format('cast from %s', type), true)))
                    * mal.attempt(format('CREATE CAST (%s AS {schema}.mallory) WITH FUNCTION mal.{schema}_cast_from(%s) AS IMPLICIT', type, type))
               FROM (SELECT DISTINCT type FROM unnest({TYPES}) AS type WHERE type NOT LIKE 'any%') AS t,
                    mal.attempt('CREATE TYPE {schema}.mallory AS (it pg_catalog.int4)') AS created"
        ));
        let views = made(&format!(
            "SELECT mal.attempt(format('CREATE VIEW {schema}.%I AS SELECT * FROM %s WHERE mal.spy(%L)', relname, oid::regclass,
                                       'view ' || relname))
               FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')"
        ));
        Planted {
            functions: exact + aggregates + one + two,
            operators: exact_operators + better_operators,
            types,
            casts,
            views,
        }
    }

    /// How often something of Mallory's was used until now, and what.
    pub fn calls(&mut self) -> (i64, BTreeSet<String>) {
        let mut session = self.as_mallory();
        let calls: i64 = session.value("SELECT nextval('mal.calls')");
        session.run("SELECT setval('mal.calls', 1, false)");
        let what = log(self.db.name());
        let what = what.iter().filter_map(|line| line.split_once("trojan ")).map(|(_, what)| what.to_owned()).collect();
        (calls - 1, what)
    }

    /// Runs statements of the superuser's, and asserts that they succeed and use nothing of Mallory's.
    pub fn keeps_off(&mut self, sql: &str) {
        if let Err(fault) = self.try_to_keep_off(sql) {
            panic!("{fault}");
        }
    }

    pub fn try_to_keep_off(&mut self, sql: &str) -> Result<(), String> {
        let result = self.db.attempt(sql);
        let (calls, what) = self.calls();
        match result {
            _ if calls > 0 => Err(format!("{sql}\nhas used what Mallory made {calls} times: {what:#?}")),
            Err(failure) => Err(format!("{sql}\n{failure:#?}")),
            Ok(_) => Ok(()),
        }
    }

    /// Asserts that a statement uses something of Mallory's, this many times.
    pub fn falls_for(&mut self, sql: &str, expected: i64) {
        let result = self.db.attempt(sql);
        assert_eq!(self.calls().0, expected, "{sql}: {result:?}");
    }

    /// Models of every kind, in the session's search_path.
    pub fn train(&mut self) {
        for sql in TABLES.iter().chain(TRAININGS) {
            self.keeps_off(sql);
        }
    }

    /// Reads all views of the extension, with Mallory's schema first.
    pub fn read_views(&mut self) {
        let views = "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_depend d ON d.objid = c.oid
                       JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid AND e.extname = 'corgipile'
                      WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'v') ORDER BY 1";
        let mut session = self.db.session();
        session.run(SAFE);
        let views: Vec<String> = session.column(views);
        assert!(views.len() >= 3, "{views:?}");
        for view in views {
            self.keeps_off(&format!("SELECT * FROM corgipile.{view}"));
            self.keeps_off(&format!(
                "SET search_path = mal, public, pg_catalog; SELECT * FROM corgipile.{view}; RESET search_path"
            ));
        }
    }
}

/// What is trained on.
const TABLES: &[&str] = &[
    "CREATE TABLE public.numbers AS SELECT i AS id, i % 2 AS label, (i % 2 + i % 7)::pg_catalog.float4 AS a,
            (i % 5)::pg_catalog.float4 AS b, i % 3 AS part FROM pg_catalog.generate_series(1, 300) AS i",
    "CREATE TABLE public.words AS SELECT i AS id, ('{no,yes}'::pg_catalog.text[])[1 + i % 2] AS answer,
            ('{red,green,blue}'::pg_catalog.text[])[1 + i % 3] AS label, (i % 7)::pg_catalog.float4 AS a,
            ('{x,y,z}'::pg_catalog.text[])[1 + i % 3] AS kind FROM pg_catalog.generate_series(1, 300) AS i",
    "CREATE TABLE public.arrays AS SELECT i AS id, i % 2 AS label,
            ARRAY[i % 2, i % 7, i % 5]::pg_catalog.float4[] AS x FROM pg_catalog.generate_series(1, 300) AS i",
    "CREATE TABLE public.sparse AS SELECT i % 2 AS label, ARRAY[1 + i % 2, 3 + i % 7]::pg_catalog.int4[] AS features_k,
            ARRAY[1, 0.5]::pg_catalog.float4[] AS features_v FROM pg_catalog.generate_series(1, 300) AS i",
];

pub const TRAININGS: &[&str] = &[
    "SELECT * FROM public.corgipile_train('public.numbers', label => 'label', features => '{a,b}', max_epochs => 2, name => 'plain')",
    "SELECT * FROM public.corgipile_train('public.arrays', features => '{x}', max_epochs => 2, name => 'array')",
    "SELECT * FROM public.corgipile_train('public.sparse', max_epochs => 2, name => 'sparse')",
    "SELECT * FROM public.corgipile_train('public.words', label => 'answer', features => '{a,kind}', max_epochs => 2, name => 'words')",
    "SELECT * FROM public.corgipile_train('public.words', 'softmax', features => '{a,kind}', max_epochs => 2, name => 'colours')",
    "SELECT * FROM public.corgipile_train_uda('public.words', label => 'answer', features => '{a}', max_epochs => 2, name => 'uda')",
    "SELECT * FROM public.corgipile_train_uda('public.words', 'softmax', features => '{a}', max_epochs => 2, name => 'uda3')",
    "SELECT * FROM public.corgipile_train_uda('public.sparse', max_epochs => 2)",
];

/// Calls of all functions of the extension, after [`TRAININGS`], that mean them and nothing else: qualified, and with
/// the very argument types.
pub const CALLS: &[&str] = &[
    "SELECT * FROM public.corgipile_shuffle(NULL::public.numbers)",
    "SELECT public.corgipile_shuffle(NULL::public.words, sample => 0.5)",
    "SELECT * FROM public.corgipile_shuffle_order('corgipile', 100, 10, 30, 1)",
    "SELECT * FROM public.corgipile_columns('public.words', label => 'answer')",
    "SELECT public.corgipile_cluster_factor('public.words', label => 'answer', features => '{a,kind}')",
    "SELECT * FROM public.corgipile_io_profile('public.large', max_read => '1MB', max_seconds => 0.1)",
    "SELECT * FROM public.corgipile_advise('public.large', label => 'label', features => '{x}', max_seconds => 0.1)",
    "SELECT public.corgipile_predict(1, ARRAY[a, b]), public.corgipile_predict('plain', ARRAY[a, b]),
            public.corgipile_predict(1, n), public.corgipile_predict('plain', n),
            public.corgipile_predict_label(1, ARRAY[a, b]), public.corgipile_predict_label('plain', n),
            public.corgipile_predict_proba(1, ARRAY[a, b]), public.corgipile_predict_proba('plain', n) FROM public.numbers AS n",
    "SELECT public.corgipile_predict('sparse', features_k, features_v), public.corgipile_predict_label('sparse', features_k, features_v),
            public.corgipile_predict_proba('sparse', features_k, features_v) FROM public.sparse",
    "SELECT public.corgipile_predict_label('words', w), public.corgipile_predict_proba('words', w),
            public.corgipile_predict_label('colours', w), public.corgipile_predict_label('uda3', ARRAY[a]) FROM public.words AS w",
    "SELECT public.corgipile_predict(public.corgipile_export('sparse'), features_k, features_v) FROM public.sparse",
    "SELECT public.corgipile_predict_label(public.corgipile_export('words'), w) FROM (SELECT id, a, kind FROM public.words) AS w",
    "SELECT public.corgipile_export('words', 'sql', 'label', 'public.words'), public.corgipile_export(1, 'sql', 'value', NULL),
            public.corgipile_export('plain', 'json'), public.corgipile_export_onnx('words'), public.corgipile_export_onnx(1)",
    "SELECT * FROM public.corgipile_evaluate('words', 'public.words') AS a, public.corgipile_evaluate(1, 'public.numbers') AS b",
    "SELECT * FROM public.corgipile_confusion('words', 'public.words') AS a, public.corgipile_confusion(1, 'public.numbers') AS b",
    "SELECT * FROM public.corgipile_curves('words', 'public.words') AS a, public.corgipile_curves(1, 'public.numbers') AS b",
    "SELECT FROM public.corgipile_train('public.numbers', label => 'label', features => '{a}', group_by => 'b', name => 'by b', max_epochs => 1, \
                                       unseen_group => 'all')",
    "SELECT public.corgipile_predict('by b', n), public.corgipile_predict_label('by b', n) FROM public.numbers AS n",
    "SELECT * FROM public.corgipile_evaluate('by b', 'public.numbers')",
    "SELECT public.corgipile_grant('by b', 'public'), public.corgipile_revoke('by b', 'public'), public.corgipile_deploy('by b', 1),
            public.corgipile_rename('by b', 'by c'), public.corgipile_drop('by c')",
    "SELECT * FROM public.corgipile_evaluate('colours', 'SELECT * FROM public.words')",
    "SELECT * FROM public.corgipile_search('public.numbers', label => 'label', features => '{a,b}', trials => 2, folds => 2, max_epochs => 2)",
    "SELECT * FROM public.corgipile_train('public.numbers', 'linear', label => 'a', features => '{b,label}', solver => 'newton', name => 'line')",
    "CALL public.corgipile_train_in_steps('public.numbers', label => 'label', features => '{a,b}', max_epochs => 2, name => 'in steps')",
    "SELECT * FROM public.corgipile_coefficients('line', 'public.numbers') AS a, public.corgipile_coefficients(1, 'public.numbers') AS b",
    "SELECT * FROM public.corgipile_importance('words', 'public.words') AS a, public.corgipile_importance(1, 'public.numbers') AS b",
    "SELECT e.* FROM public.numbers AS n, public.corgipile_explain('plain', n) AS e",
    "SELECT e.* FROM public.words AS w, public.corgipile_explain('words', w, 'public.words') AS e",
    "SELECT * FROM public.corgipile_calibrate('line', 'public.numbers') AS a, public.corgipile_calibrate('words', 'public.words') AS b",
    "SELECT public.corgipile_predict_interval('line', ARRAY[b, label]), public.corgipile_predict_interval('line', n) FROM public.numbers AS n",
    "SELECT public.corgipile_predict_set('words', w) FROM public.words AS w",
    "SELECT corgipile.shown_role(owner) FROM corgipile.stored_models",
    "SELECT * FROM public.corgipile_profile('words', 'public.words') AS a, public.corgipile_profile(1, 'public.numbers') AS b",
    "SELECT * FROM public.corgipile_drift('words', 'public.words') AS a, public.corgipile_drift(1, 'public.numbers') AS b",
    "SELECT public.corgipile_import(public.corgipile_export('words'), 'copy'), public.corgipile_import(public.corgipile_export(1), 'second')",
    "SELECT (public.corgipile_sgd_report(s)).loss, public.corgipile_sgd_weights(s), public.corgipile_sgd_intercepts(s), s
       FROM (SELECT public.corgipile_sgd_agg(public.corgipile_sgd_init('logistic', 3), CASE WHEN label OPERATOR(pg_catalog.=) 1 THEN 1 ELSE -1 END, x) AS s
               FROM public.arrays) AS a",
    "SELECT public.corgipile_sgd_weights(public.corgipile_sgd_agg(public.corgipile_sgd_init('svm', 12, sparse => true),
            '1'::pg_catalog.float8, features_k, features_v)) FROM public.sparse",
    "SELECT public.corgipile_sgd_weights(public.corgipile_sgd_agg_typed(public.corgipile_sgd_init('logistic', 3),
            CASE WHEN label OPERATOR(pg_catalog.=) 1 THEN '1'::pg_catalog.float8 ELSE '-1'::pg_catalog.float8 END, x)) FROM public.arrays",
    "CREATE TABLE public.states AS SELECT public.corgipile_sgd_init('logistic', 3) AS s",
    "COPY public.states TO '/dev/null' (FORMAT binary)",
    "SELECT * FROM corgipile.receive_model(corgipile.identity(corgipile.version_id('plain', NULL)), public.corgipile_export('plain'))",
    "SELECT * FROM corgipile.receive_model('c0ffee00-c0ff-4e00-8000-00c0ffee0000', public.corgipile_export(1))",
    "SELECT corgipile.receive_grants(1, '{public,pg_monitor,none}', '{pg_read_all_data}')",
    "SELECT public.corgipile_deploy('plain', 1)",
    "SELECT public.corgipile_deploy('plain', NULL)",
    "SELECT public.corgipile_comment(1, 'one'), public.corgipile_comment('words', 'some')",
    "SELECT public.corgipile_grant(1, 'public'), public.corgipile_grant('words', 'pg_monitor')",
    "SELECT public.corgipile_revoke(1, 'public'), public.corgipile_revoke('words', 'pg_monitor')",
    "SELECT public.corgipile_rename('copy', 'copies')",
    "SELECT public.corgipile_rename(2, 'renamed')",
    "SELECT public.corgipile_drop(2), public.corgipile_drop('copies'), public.corgipile_drop('plain', 1)",
    "SELECT public.corgipile_grant('words', 'pg_monitor', 'predict'), public.corgipile_reassign_owned('pg_monitor', current_user::pg_catalog.text)",
    "SELECT public.corgipile_drop_owned('pg_monitor')",
    "SELECT corgipile.may_see(owner, granted_to), owner, granted_to, 'pg_monitor'::corgipile.stored_role FROM corgipile.stored_models",
    "SELECT * FROM corgipile.models_to_predict()",
    "INSERT INTO corgipile.stored_models OVERRIDING SYSTEM VALUE SELECT * FROM corgipile.stored_models LIMIT 0",
    "INSERT INTO corgipile.stored_models (name, owner, model, source, label, label_type, features, feature_kind, hyperparameters, weights,
            intercepts, skipped, preparation_seconds, history)
     SELECT 'inserted', owner, model, source, label, label_type, features, feature_kind, hyperparameters, weights, intercepts,
            skipped, preparation_seconds, history FROM corgipile.stored_models LIMIT 1",
    "UPDATE corgipile.stored_models SET comment = 'updated'",
    "BEGIN; SET LOCAL session_replication_role = replica; UPDATE corgipile.stored_models SET comment = 'replicated'; COMMIT",
    "DELETE FROM corgipile.stored_models",
    "SELECT * FROM corgipile.stat_models()",
    "SELECT * FROM public.corgipile_options('mlp') AS a, public.corgipile_options() AS b",
    "SELECT * FROM corgipile.progress()",
    "SELECT * FROM corgipile.shared_scans()",
    "SELECT corgipile.toc_eq(m, m), corgipile.toc_ne(m, m), corgipile.toc_lt(m, m), corgipile.toc_le(m, m), corgipile.toc_gt(m, m),
            corgipile.toc_ge(m, m), corgipile.toc_cmp(m, m), corgipile.toc_hash(m), corgipile.toc_hash_extended(m, 1::bigint)
       FROM (SELECT public.corgipile_toc('{{1,2},{3,4}}') AS m) AS s",
    "SELECT public.corgipile_toc_rows(m), public.corgipile_toc_columns(m), public.corgipile_toc_encoding(m), public.corgipile_toc_bytes(m),
            public.corgipile_toc_ratio(m), public.corgipile_toc_decompress(m), public.corgipile_toc_element(m, 1, 1),
            public.corgipile_toc_times(m, v), public.corgipile_times_toc(v, m), public.corgipile_toc_scale(m, f),
            public.corgipile_toc_scale(f, m), public.corgipile_toc_add(m, f), public.corgipile_toc_add(f, m),
            m OPERATOR(public.*) v, v OPERATOR(public.*) m, m OPERATOR(public.*) f, f OPERATOR(public.*) m,
            m OPERATOR(public.+) f, f OPERATOR(public.+) m, m
       FROM (SELECT public.corgipile_toc('{{1,2},{3,4}}') AS m, '{1,2}'::pg_catalog.float8[] AS v, '2'::pg_catalog.float8 AS f) AS s",
    "SELECT public.corgipile_toc_add(m, a), public.corgipile_toc_add(a, m), public.corgipile_toc_add(m, m),
            public.corgipile_toc_subtract(m, f), public.corgipile_toc_subtract(f, m), public.corgipile_toc_subtract(m, a),
            public.corgipile_toc_subtract(a, m), public.corgipile_toc_subtract(m, m), public.corgipile_toc_divide(m, f),
            public.corgipile_toc_divide(f, m), public.corgipile_toc_power(m, f), public.corgipile_toc_negate(m),
            public.corgipile_toc_apply(m, 'abs'), m OPERATOR(public.+) a, a OPERATOR(public.+) m, m OPERATOR(public.+) m,
            m OPERATOR(public.-) f, f OPERATOR(public.-) m, m OPERATOR(public.-) a, a OPERATOR(public.-) m, m OPERATOR(public.-) m,
            OPERATOR(public.-) m, m OPERATOR(public./) f, f OPERATOR(public./) m, m OPERATOR(public.^) f
       FROM (SELECT public.corgipile_toc('{{1,2},{3,4}}') AS m, '{{1,2},{3,4}}'::pg_catalog.float8[] AS a,
                    '2'::pg_catalog.float8 AS f) AS s",
    "SELECT * FROM public.corgipile_compress('public.arrays', 'public.mini_batches', features => '{x}', batch_rows => 20)",
    "SELECT * FROM public.corgipile_compress('SELECT * FROM public.numbers', 'more', features => '{a,b}')",
    "SELECT * FROM public.corgipile_compression_report('public.arrays', features => '{x}', batch_rows => 100)",
    "SELECT * FROM public.corgipile_train('public.mini_batches', max_epochs => 2, name => 'compressed')",
    "SELECT public.corgipile_predict('compressed', x), public.corgipile_predict_label('compressed', x),
            public.corgipile_predict_proba('compressed', x) FROM public.mini_batches",
    "COPY public.mini_batches TO '/dev/null' (FORMAT binary)",
];

/// Calls that send models to this database itself, as the server `here` of postgres_fdw.
pub const PUBLISHING: &[&str] = &[
    "SELECT * FROM public.corgipile_publish('plain')",
    "SELECT * FROM public.corgipile_publish((SELECT pg_catalog.max(model_id) FROM corgipile.models WHERE name OPERATOR(pg_catalog.=) 'words'),
                                            servers => '{here}')",
];

/// Functions of the extension that are called by another name: by the aggregate, a type, a trigger or the planner.
pub const INDIRECT: &[&str] = &[
    // by trainings on other servers: training/nodes.rs
    "node_step",
    "node_training",
    // by PUBLISHING, where there is dblink
    "answer_of_server",
    "corgipile_publish",
    "hang_up",
    "publish",
    "raise_of_server",
    "servers_to_publish_to",
    "corgipile_support",
    "forget_model",
    "keep_versions",
    "not_replicated",
    "stored_role_in",
    "stored_role_out",
    "stored_role_recv",
    "stored_role_send",
    "sgd_agg",
    "sgd_combine",
    "sgd_final",
    "sgd_state_in",
    "sgd_state_out",
    "sgd_state_recv",
    "sgd_state_send",
    "sgd_transition",
    "toc_in",
    "toc_out",
    "toc_recv",
    "toc_send",
];

/// The text of all scripts.
fn scripts() -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql");
    let files = std::fs::read_dir(&directory).expect("there are scripts");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a script can be read");
    files.map(|file| read(&file.expect("a script").path())).collect()
}

/// Everything in the scripts that may be the name of a function.
fn names_in_scripts() -> BTreeSet<String> {
    let scripts = scripts();
    let words = scripts.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Everything in the scripts that may be an operator.
fn operators_in_scripts() -> BTreeSet<String> {
    let scripts = scripts();
    let marks = scripts.split(|c: char| !"+-*/<>=~!@#%^&|`?".contains(c));
    marks.filter(|mark| !mark.is_empty()).map(str::to_owned).collect()
}

impl Planted {
    pub fn assert_many(&self) {
        let Planted { functions, operators, types, casts, views } = *self;
        println!("{functions} functions, {operators} operators, {types} types, {casts} casts, {views} views");
        assert!(functions > 3000 && operators > 5000, "{functions} functions, {operators} operators");
        assert!(types > 50 && casts > 20 && views > 100, "{types} types, {casts} casts, {views} views");
    }
}
