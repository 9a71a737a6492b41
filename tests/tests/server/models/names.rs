//! What the name of a model means to whom: no one takes another's name, and who means another's model says whose.

use corgipile_tests::{Database, Session};

const FEATURES: &str = "ARRAY[1,2,3]";

/// Trains a model, which no other seed trains alike, and gives its id.
fn train(session: &mut Session, name: &str, seed: i32) -> i64 {
    let name = name.replace('\'', "''");
    session.train(&format!("'t', max_epochs => 1, seed => {seed}, learning_rate => 0.02 * {seed}, name => '{name}'"))[0]
        .model_id
}

/// What a model says, by id or by a name in quotes.
fn ask(model: &str) -> String {
    format!("SELECT corgipile_predict_proba({model}, {FEATURES})")
}

/// What `session` gets for a name is the model with this id.
fn assert_means(session: &mut Session, name: &str, db: &mut Database, id: i64) {
    assert_eq!(session.line(&ask(&format!("'{name}'"))), db.line(&ask(&id.to_string())), "'{name}' means model {id}");
}

/// A table that all may read, and three roles.
fn with_roles() -> (Database, [String; 3]) {
    let mut db = Database::with_small_table(200);
    db.run("GRANT SELECT ON t TO PUBLIC");
    let roles = ["alice", "bob", "carol"].map(|who| db.role(who));
    (db, roles)
}

#[test]
fn a_grant_to_public_takes_nobody_elses_name() {
    let (mut db, [alice, bob, carol]) = with_roles();
    let (mut a, mut b, mut c) = (db.session_as(&alice), db.session_as(&bob), db.session_as(&carol));
    let hers = train(&mut a, "gm", 1);
    a.run(&format!("SELECT corgipile_grant('gm', '{carol}')"));
    assert_means(&mut c, "gm", &mut db, hers);
    let his = train(&mut b, "gm", 2);
    b.run("SELECT corgipile_grant('gm', 'public')");
    // what was granted to carol comes before what was granted to everybody
    assert_means(&mut c, "gm", &mut db, hers);
    assert_means(&mut c, &format!("{bob}.gm"), &mut db, his);
    // and no one stands in for alice
    a.run(&format!("SELECT corgipile_revoke('gm', '{carol}')"));
    c.fails_with(&ask("'gm'"), "42P08").says(&["gm", "owner"]).hints(&["public", &format!("'{bob}.gm'")]);
    c.fails_with(&ask(&format!("'{alice}.gm'")), "42501");
    assert_means(&mut c, &format!("{bob}.gm"), &mut db, his);
    // Where only one role has models of a name, its bare name is enough.
    a.run("SELECT corgipile_rename('gm', 'other')");
    assert_means(&mut c, "gm", &mut db, his);
    // Anyone who else has one makes it uncertain, shown or not; bob himself is never in doubt.
    let own = train(&mut db, "gm", 3);
    c.fails_with(&ask("'gm'"), "42P08");
    assert_means(&mut b, "gm", &mut db, his);
    db.run(&format!("SELECT corgipile_grant({own}, 'public')"));
    let failure = c.fails_with(&ask("'gm'"), "42P08");
    failure.hints(&[&format!("'{bob}.gm'"), "'postgres.gm'"]);
    // one's own is one's own
    let hers = train(&mut c, "gm", 4);
    assert_means(&mut c, "gm", &mut db, hers);
}

#[test]
fn two_owners_that_a_role_may_mean_are_told_apart_by_their_names() {
    let (mut db, [alice, bob, carol]) = with_roles();
    let (team, readers) = (db.role("team"), db.role("readers"));
    db.run(&format!("GRANT {team} TO {carol}; GRANT {readers} TO {carol}"));
    let (mut a, mut b, mut c) = (db.session_as(&alice), db.session_as(&bob), db.session_as(&carol));
    let first = train(&mut a, "gm", 1);
    a.run(&format!("SELECT corgipile_grant('gm', '{readers}')"));
    assert_means(&mut c, "gm", &mut db, first);
    // granted by name by a second role, and then a third reached as a member: it is never guessed
    train(&mut b, "gm", 2);
    b.run(&format!("SELECT corgipile_grant('gm', '{carol}')"));
    let named = |owner: &str| format!("'{owner}.gm'");
    c.fails_with(&ask("'gm'"), "42P08").says(&["several"]).hints(&[&named(&alice), &named(&bob)]);
    b.run("SELECT corgipile_drop('gm')");
    assert_means(&mut c, "gm", &mut db, first);
    let third = train(&mut db.session_as(&team), "gm", 3);
    c.fails_with(&ask("'gm'"), "42P08").hints(&[&named(&alice), &named(&team)]);
    assert_means(&mut c, &format!("{alice}.gm"), &mut db, first);
    assert_means(&mut c, &format!("{team}.gm"), &mut db, third);
    // A name means the same whatever is done with it.
    c.fails_with("SELECT corgipile_drop('gm')", "42P08").hints(&[&named(&alice), &named(&team)]);
    c.fails_with(&format!("SELECT corgipile_drop({})", named(&alice)), "42501").says(&["owner"]);
    assert_eq!(c.line(&format!("SELECT corgipile_drop({})", named(&team))), "1");
    c.fails_with("SELECT corgipile_drop('gm')", "42501").says(&["owner"]);
}

#[test]
fn a_superuser_finds_his_own_models_and_names_the_owners_of_others() {
    let (mut db, [alice, bob, _]) = with_roles();
    let first = train(&mut db.session_as(&alice), "gm", 1);
    for call in [ask("'gm'"), "SELECT corgipile_drop('gm')".into(), "SELECT corgipile_export('gm')".into()] {
        db.fails_with(&call, "42P08").hints(&["superuser", &format!("'{alice}.gm'")]);
    }
    train(&mut db.session_as(&bob), "gm", 2);
    db.fails_with(&ask("'gm'"), "42P08").hints(&[&format!("'{alice}.gm'"), &format!("'{bob}.gm'")]);
    let mut session = db.session();
    assert_means(&mut session, &format!("{alice}.gm"), &mut db, first);
    let own = train(&mut db, "gm", 3);
    assert_means(&mut session, "gm", &mut db, own);
    db.fails_with(&ask("'nothing'"), "42704");
    db.run(&format!("SELECT corgipile_drop('{alice}.gm'), corgipile_drop('gm')"));
    assert_eq!(db.lines("SELECT owner FROM corgipile.models"), [bob]);
}

#[test]
fn all_functions_take_the_names_of_others_models_with_their_owners() {
    let (mut db, [alice, _, carol]) = with_roles();
    db.run(&format!("GRANT {alice} TO {carol}"));
    let mut c = db.session_as(&carol);
    train(&mut db.session_as(&alice), "gm", 1);
    train(&mut c, "gm", 2);
    let name = format!("'{alice}.gm'");
    for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
        let by = |name: &str, features: &str| format!("SELECT {function}({name}, {features}) FROM t WHERE id = 1");
        for features in [FEATURES, "'{1,2}'::int[], ARRAY[1,2]", "t"] {
            let id = format!("(SELECT model_id FROM corgipile.models WHERE owner::text = '{alice}')");
            assert_eq!(c.line(&by(&name, features)), c.line(&by(&id, features)), "{function} {features}");
        }
    }
    let accuracy = |name: &str| format!("SELECT array_agg(value) FROM corgipile_evaluate({name}, 't')");
    assert_ne!(c.line(&accuracy(&name)), c.line(&accuracy("'gm'")));
    assert_ne!(
        c.line(&format!("SELECT corgipile_export({name}) ->> 'weights'")),
        c.line("SELECT corgipile_export('gm') ->> 'weights'")
    );
    let theirs = format!(
        "SELECT name, version, deployed, comment, granted_to FROM corgipile.models WHERE owner::text = '{alice}'"
    );
    // what goes on is the trainer's
    c.run(&format!("SELECT FROM corgipile_train('t', warm_start => {name}, max_epochs => 1, name => 'longer')"));
    assert_eq!(c.line("SELECT owner FROM corgipile.models WHERE name = 'longer'"), carol);
    c.run(&format!(
        "SELECT corgipile_deploy({name}, 1), corgipile_comment({name}, 'x'), corgipile_grant({name}, 'public')"
    ));
    assert_eq!(c.line(&theirs), "gm|1|t|x|{public}");
    c.run(&format!("SELECT corgipile_revoke({name}, 'public'), corgipile_rename({name}, 'new')"));
    assert_eq!(c.line(&theirs), "new|1|t|x|{}");
    c.run(&format!("SELECT corgipile_rename('{alice}.new', 'new')"));
    assert_eq!(c.value::<i64>(&format!("SELECT corgipile_drop('{alice}.new', 1)")), 1);
    assert_eq!(c.lines("SELECT name FROM corgipile.models ORDER BY 1"), ["gm", "longer"]);
}

#[test]
fn owners_and_names_are_written_as_in_sql() {
    let (mut db, [alice, ..]) = with_roles();
    // a role that has to be quoted: capitals, a space, a dot and a quote
    let odd = format!("Odd Role.\"{alice}");
    let quoted = format!("\"{}\"", odd.replace('"', "\"\""));
    db.run(&format!("CREATE ROLE {quoted} LOGIN"));
    let mut o = db.session();
    o.run(&format!("SET ROLE {quoted}"));
    let mut superuser = db.session();
    for (seed, name) in (1..).zip(["gm", "Two words", "a.b.c", "it's", "\"in quotes\"", "\"", "sites/harbour", "ä"]) {
        let id = train(&mut o, name, seed);
        let as_it_is = name.replace('\'', "''");
        let in_quotes = format!("\"{}\"", as_it_is.replace('"', "\"\""));
        assert_means(&mut superuser, &format!("{quoted}.{in_quotes}"), &mut db, id);
        if !name.starts_with("\"in") {
            assert_means(&mut superuser, &format!("{quoted}.{as_it_is}"), &mut db, id);
        }
        // what an error proposes can be used as it stands
        let hint = superuser.fails_with(&ask(&format!("'{as_it_is}'")), "42P08").hint;
        let proposed = hint.rsplit("Write ").next().expect("a name").trim_end_matches('.');
        assert_eq!(superuser.line(&ask(proposed)), db.line(&ask(&id.to_string())), "{hint}");
    }
    // an unquoted owner is folded, a model's name never
    let mut a = db.session_as(&alice);
    let id = train(&mut a, "Gm", 9);
    assert_means(&mut superuser, &format!("{}.Gm", alice.to_uppercase()), &mut db, id);
    superuser.fails_with(&ask(&format!("'{alice}.gm'")), "42704").says(&[&format!("{alice}.gm")]);
    superuser.fails_with(&ask(&format!("'\"{}\".Gm'", alice.to_uppercase())), "42704");
    db.run(&format!("DELETE FROM corgipile.stored_models WHERE model_id <> {id}"));
    for nothing in ["", ".", ".gm", "\"", "\"\"", "\"\".gm", "nobody.", "no role.gm", "nobody.gm", "public.gm", "1.gm"]
    {
        superuser.fails_with(&ask(&format!("'{nothing}'")), "42704");
        superuser.fails_with(&ask(&format!("'{alice}.{nothing}'")), "42704");
    }
    db.run(&format!("DELETE FROM corgipile.stored_models; DROP ROLE {quoted}"));
}

#[test]
fn names_with_dots_stay_their_owners_and_do_not_stand_in_for_others() {
    let (mut db, [alice, bob, carol]) = with_roles();
    let (mut a, mut b, mut c) = (db.session_as(&alice), db.session_as(&bob), db.session_as(&carol));
    let hers = train(&mut a, "gm", 1);
    a.run("SELECT corgipile_grant('gm', 'public')");
    // a model that is named like alice's with her name: granted to everybody, and to carol, it is not taken for alice's
    let like = format!("{alice}.gm");
    train(&mut b, &like, 2);
    b.run(&format!("SELECT corgipile_grant('{like}', 'public'), corgipile_grant('{like}', '{carol}')"));
    assert_means(&mut c, &like, &mut db, hers);
    a.run("SELECT corgipile_drop('gm')");
    c.fails_with(&ask(&format!("'{like}'")), "42P08").hints(&[&format!("'{bob}.{like}'")]);
    // to its owner it is what it is called
    let own = train(&mut b, &like, 3);
    assert_means(&mut b, &like, &mut db, own);
    assert_means(&mut c, &format!("{bob}.{like}"), &mut db, own);
    // a name whose first part is no role is a name
    let dotted = train(&mut b, "fraud.v2", 4);
    b.run(&format!("SELECT corgipile_grant('fraud.v2', '{carol}')"));
    assert_means(&mut b, "fraud.v2", &mut db, dotted);
    assert_means(&mut c, "fraud.v2", &mut db, dotted);
    let number = train(&mut b, "2026.11", 5);
    b.run(&format!("SELECT corgipile_grant('2026.11', '{carol}')"));
    assert_means(&mut c, "2026.11", &mut db, number);
}

#[test]
fn a_number_to_go_on_from_is_an_id_whatever_others_call_their_models() {
    let (db, [alice, bob, _]) = with_roles();
    let (mut a, mut b) = (db.session_as(&alice), db.session_as(&bob));
    let first = train(&mut a, "mine", 1);
    train(&mut b, &first.to_string(), 2);
    b.run(&format!("SELECT corgipile_grant('{first}', 'public')"));
    let id: i64 =
        a.value(&format!("SELECT min(model_id) FROM corgipile_train('t', warm_start => '{first}', max_epochs => 1)"));
    let of = |id: i64| format!("SELECT hyperparameters ->> 'warm_start' FROM corgipile.models WHERE model_id = {id}");
    assert_eq!(a.line(&of(id)), first.to_string());
    // of one's own models a name comes first, as everywhere
    let own = train(&mut a, &first.to_string(), 3);
    let id: i64 =
        a.value(&format!("SELECT min(model_id) FROM corgipile_train('t', warm_start => '{first}', max_epochs => 1)"));
    assert_eq!(a.line(&of(id)), own.to_string());
}

#[test]
fn models_of_a_dropped_owner_are_named_by_its_number() {
    let (mut db, [alice, bob, carol]) = with_roles();
    let (mut a, mut b) = (db.session_as(&alice), db.session_as(&bob));
    let hers = train(&mut a, "gm", 1);
    let his = train(&mut b, "gm", 2);
    a.run(&format!("SELECT corgipile_grant('gm', '{carol}')"));
    b.run(&format!("SELECT corgipile_grant('gm', '{carol}')"));
    drop(a);
    db.run(&format!("DROP ROLE {alice}"));
    let number = db.line(&format!("SELECT owner FROM corgipile.models WHERE model_id = {hers}"));
    let mut c = db.session_as(&carol);
    c.fails_with(&ask("'gm'"), "42P08").hints(&[&format!("'{number}.gm'"), &format!("'{bob}.gm'")]);
    assert_means(&mut c, &format!("{number}.gm"), &mut db, hers);
    assert_means(&mut c, &format!("{bob}.gm"), &mut db, his);
    assert_eq!(db.line(&format!("SELECT corgipile_drop('{number}.gm')")), "1");
}
