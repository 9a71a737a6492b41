//! What drivers send: a parameter whose type they leave open is a text, so that ids are digits and arrays are literals.
//! The postgres crate asks the server for the types of parameters, as asyncpg and pg8000 do.

use corgipile_tests::Database;
use corgipile_tests::stored::{DENSE, MIXED, SPARSE};

/// The first column of the only row, as text, of a statement whose parameters are texts.
fn ask(db: &mut Database, sql: &str, parameters: &[&str]) -> Option<String> {
    let parameters: Vec<_> = parameters.iter().map(|text| text as &(dyn postgres::types::ToSql + Sync)).collect();
    let rows = db.rows(&format!("SELECT answer::text FROM ({sql}) AS asked(answer)"), &parameters);
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].get(0)
}

#[test]
fn a_text_of_digits_is_an_id_in_every_function_of_a_model() {
    let mut db = Database::with_small_table(200);
    db.run(
        "SELECT corgipile_train('t', max_epochs => 1, seed => 1, name => 'm', features => '{a,b,c}');
         SELECT corgipile_train('t', 'linear', label => 'a', max_epochs => 1, seed => 1, name => 'r', features => '{b,c}');
         CREATE TABLE arrays AS SELECT label, ARRAY[a, b, c] AS x FROM t",
    );
    for (call, id) in [
        ("corgipile_predict($1, ARRAY[1,2,3])", "1"),
        ("corgipile_predict_label($1, ARRAY[1,2,3])", "1"),
        ("corgipile_predict_proba($1, ARRAY[1,2,3])", "1"),
        ("corgipile_predict($1, '{1,2}'::int[], ARRAY[1,2])", "1"),
        ("corgipile_predict_proba($1, 1, 2, 3)", "1"),
        ("(SELECT corgipile_predict_proba($1, t) FROM t WHERE id = 1)", "1"),
        ("(SELECT corgipile_predict_proba($1, t, nulls => 'skip') FROM t WHERE id = 1)", "1"),
        ("corgipile_export($1)", "1"),
        ("corgipile_export($1, 'sql')", "1"),
        ("corgipile_export_onnx($1)", "1"),
        ("(SELECT array_agg(e) FROM corgipile_evaluate($1, 't') e)", "1"),
        ("(SELECT array_agg(e) FROM corgipile_coefficients($1, 't') e)", "2"),
        ("(SELECT array_agg(e) FROM corgipile_importance($1, 't', 1, 1) e)", "1"),
        ("(SELECT array_agg(e) FROM t, corgipile_explain($1, t) e WHERE t.id = 1)", "1"),
        ("corgipile_profile($1, 't')", "1"),
        ("(SELECT array_agg(e) FROM corgipile_drift($1, 't') e)", "1"),
        ("corgipile_calibrate($1, 't')", "2"),
        ("corgipile_calibrate($1, 't')", "1"),
        ("corgipile_predict_interval($1, ARRAY[1,2])", "2"),
        ("corgipile_predict_set($1, ARRAY[1,2,3])", "1"),
    ] {
        let sql = format!("SELECT {call}");
        let by_id = db.line(&format!("SELECT answer::text FROM ({}) AS asked(answer)", sql.replace("$1", id)));
        assert_eq!(ask(&mut db, &sql, &[id]).unwrap_or("NULL".into()), by_id, "{call}");
    }
    for call in ["corgipile.version_id($1, NULL)", "corgipile.version_id($1, 1)", "corgipile_deploy($1, 1)"] {
        assert_eq!(ask(&mut db, &format!("SELECT {call}"), &["2"]).unwrap(), "2", "{call}");
    }
    let warm = "SELECT epoch FROM corgipile_train('t', warm_start => $1, name => 'again', max_epochs => 1)";
    assert_eq!(ask(&mut db, warm, &["1"]).unwrap(), "2");
    for change in ["corgipile_comment($1, 'x')", "corgipile_grant($1, 'public')", "corgipile_rename($1, 'new')"] {
        ask(&mut db, &format!("SELECT {change}"), &["1"]);
    }
    // the name that it has already is no error
    ask(&mut db, "SELECT corgipile_rename($1, 'new')", &["1"]);
    let line = "SELECT name, comment, granted_to FROM corgipile.models WHERE model_id = 1";
    assert_eq!(db.line(line), "new|x|{public}");
    ask(&mut db, "SELECT corgipile_revoke($1, 'public')", &["1"]);
    assert_eq!(db.line(line), "new|x|{}");
    db.fails_with("SELECT corgipile_drop('1', 2)", "42704").says(&["version 2"]);
    // the model, and not all versions of its name
    db.train("'t', max_epochs => 1, name => 'new'");
    assert_eq!(ask(&mut db, "SELECT corgipile_drop($1)", &["1"]).unwrap(), "1");
    assert_eq!(db.line("SELECT array_agg(version) FROM corgipile.models WHERE name = 'new'"), "{2}");
    let gone = db.fails_with("SELECT corgipile_predict('1', ARRAY[1,2,3])", "42704");
    gone.is("42704", "model 1 does not exist", "See corgipile.models for the models that you may use.");
    for no_id in ["-1", "+2", "2.0", " 2", "99999999999999999999"] {
        let failure = db.fails_with(&format!("SELECT corgipile_predict('{no_id}', ARRAY[1,2])"), "42704");
        failure.says(&[&format!("model \"{no_id}\" does not exist")]);
    }
}

#[test]
fn a_name_of_digits_is_a_name_to_its_owner_and_takes_no_ids_place() {
    let mut db = Database::with_small_table(100);
    db.run("GRANT SELECT ON t TO PUBLIC");
    let (alice, bob) = (db.role("alice"), db.role("bob"));
    let (mut a, mut b) = (db.session_as(&alice), db.session_as(&bob));
    let id = a.train("'t', max_epochs => 1, name => 'first'")[0].model_id;
    let mut ids = |name: &str| b.train(&format!("'t', max_epochs => 1, name => '{name}'"))[0].model_id;
    let (same, year) = (ids(&id.to_string()), ids("2026"));
    b.run(&format!("SELECT corgipile_grant('{id}', '{alice}'), corgipile_grant('2026', '{alice}')"));
    let version_id = |text: &str| format!("SELECT corgipile.version_id('{text}', NULL)");
    assert_eq!(a.value::<i64>(&version_id(&id.to_string())), id);
    assert_eq!(b.value::<i64>(&version_id(&id.to_string())), same);
    // a model of another role that may be used, where no model has that id
    assert_eq!(a.value::<i64>(&version_id("2026")), year);
    assert_eq!(a.value::<i64>(&version_id(&format!("{bob}.{id}"))), same);
    let own = a.train(&format!("'t', max_epochs => 1, name => '{id}'"))[0].model_id;
    assert_eq!(a.value::<i64>(&version_id(&id.to_string())), own);
    a.fails_with("SELECT corgipile_drop('2026')", "42501");
}

#[test]
fn a_text_that_begins_as_an_array_is_one_where_the_model_has_numbers() {
    let mut db = Database::with_small_table(200);
    db.run(
        "SELECT corgipile_train('t', max_epochs => 1, seed => 1, name => 'columns', features => '{a,b,c}');
         CREATE TABLE arrays AS SELECT label, a, ARRAY[a, b, c] AS x, ARRAY[b] AS one FROM t;
         SELECT corgipile_train('arrays', max_epochs => 1, seed => 1, name => 'array', features => '{x}');
         SELECT corgipile_train('arrays', 'linear', label => 'a', max_epochs => 1, seed => 1, name => 'r', features => '{x}');
         SELECT corgipile_train('arrays', max_epochs => 1, seed => 1, name => 'one', features => '{one}');
         SELECT corgipile_calibrate('r', 'arrays'), corgipile_calibrate('array', 'arrays')",
    );
    MIXED.store(&mut db, "mixed");
    DENSE.store(&mut db, "dense");
    SPARSE.store(&mut db, "sparse");
    for (function, model, texts, array) in [
        ("corgipile_predict", "columns", &["{1,2.5,3}", "[1, 2.5, 3]", " {1,2.5,3}", "[0:2]={1,2.5,3}"][..], "1,2.5,3"),
        ("corgipile_predict", "array", &["{1,2.5,3}"], "1,2.5,3"),
        ("corgipile_predict_label", "array", &["{1,2.5,3}"], "1,2.5,3"),
        ("corgipile_predict_proba", "array", &["{1,2.5,3}", "[1,2.5,3e0]"], "1,2.5,3"),
        ("corgipile_predict_set", "array", &["{1,2.5,3}", "[1,2.5,3e0]"], "1,2.5,3"),
        ("corgipile_predict_interval", "r", &["{1,2.5,3}", "[1,2.5,3]"], "1,2.5,3"),
        ("corgipile_predict_proba", "columns", &["{1,NULL,3}", "[1, null, 3]"], "1,NULL,3"),
        ("corgipile_predict", "one", &["{2}", "[2]", "2"], "2"),
    ] {
        let id = db.line(&format!("SELECT model_id FROM corgipile.models WHERE name = '{model}'"));
        let expected = db.line(&format!("SELECT {function}('{model}', ARRAY[{array}])::text"));
        for text in texts {
            for model in [model, id.as_str()] {
                let answer = ask(&mut db, &format!("SELECT {function}($1, $2)"), &[model, text]);
                assert_eq!(answer.as_ref(), Some(&expected), "{function}({model}, {text})");
            }
            let others = [id.clone(), format!("corgipile_export({id})"), format!("'{model}'::varchar")];
            for model in others {
                let answer = ask(&mut db, &format!("SELECT {function}({model}, $1)"), &[text]);
                assert_eq!(answer.as_ref(), Some(&expected), "{function}({model}, {text})");
                let answer = db.line(&format!("SELECT {function}({model}, '{text}'::varchar)::text"));
                assert_eq!(answer, expected, "{function}({model}, {text}::varchar)");
            }
        }
    }
    // a model of sparse features takes a dense array of them, too
    let dim: i32 = db.value("SELECT array_length(weights, 1) FROM corgipile.models WHERE name = 'sparse'");
    let text = format!("{{{}}}", vec!["1"; dim as usize].join(","));
    let sparse = format!("SELECT corgipile_predict('sparse', '{text}'::real[])::text");
    assert_eq!(ask(&mut db, "SELECT corgipile_predict('sparse', $1)", &[&text]), Some(db.line(&sparse)));
    // values one by one, of which a driver sends some as texts
    let one = ask(&mut db, "SELECT corgipile_predict('columns', 1, $1::text, 3)", &["2.5"]);
    assert_eq!(one.unwrap(), db.line("SELECT corgipile_predict('columns', ARRAY[1, 2.5, 3])::text"));
    for (model, text, code, says) in [
        ("columns", "{1,2}", "2202E", "2"),
        ("columns", "{1,2,x}", "22P02", "x"),
        ("columns", "{1,2", "22P02", "malformed array literal"),
        ("columns", "{{1,2,3}}", "2202E", "dimension"),
        ("columns", "1,2,3", "42804", "one string was given"),
        ("mixed", "{1,2,3}", "42804", "one string was given"),
    ] {
        db.fails_with(&format!("SELECT corgipile_predict('{model}', '{text}'::text)"), code).says(&[says]);
    }
}

#[test]
fn the_views_show_roles_and_types_as_names() {
    let mut db = Database::with_small_table(100);
    db.run("GRANT SELECT ON t TO PUBLIC; CREATE ROLE \"My Role\" LOGIN");
    let gone = db.role("gone");
    let mut session = db.session_as("My Role");
    session.run(&format!(
        "SELECT corgipile_train('t', max_epochs => 1, name => 'm');
         SELECT corgipile_grant('m', 'My Role'), corgipile_grant('m', '{gone}'), corgipile_grant('m', 'public')"
    ));
    let number = db.line(&format!("SELECT '{gone}'::regrole::oid"));
    assert_eq!(
        db.line("SELECT owner, granted_to, label_type, pg_typeof(owner), pg_typeof(granted_to), pg_typeof(label_type) FROM corgipile.models"),
        format!("My Role|{{\"My Role\",{gone},public}}|integer|text|text[]|text")
    );
    db.run(&format!("DROP ROLE {gone}"));
    assert_eq!(db.line("SELECT granted_to[2] FROM corgipile.models"), number);
    let kinds = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
                  WHERE relkind = 'v' AND relnamespace = 'corgipile'::regnamespace AND atttypid::regtype::text LIKE 'reg%'";
    assert_eq!(db.line(kinds), "0");
    // what is shown is what revoke takes, and a view's rows can still be deleted
    session.run(&format!("SELECT corgipile_revoke('m', '{number}'), corgipile_revoke('m', 'My Role')"));
    assert_eq!(session.line("SELECT granted_to, owner = current_user FROM corgipile.models"), "{public}|t");
    assert_eq!(session.lines("SELECT corgipile_drop(model_id) FROM corgipile.models WHERE owner = 'My Role'"), ["1"]);
    db.run("DROP OWNED BY \"My Role\"; DROP ROLE \"My Role\"");
}
