//! What becomes of a model after its training: its name, its owner, its form.

use super::{Case, check, database};
use corgipile_tests::stored::DENSE;

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "ModelError::NoModelId",
        "SELECT corgipile_predict(99, ARRAY[1])",
        "42704",
        "model 99 does not exist",
        "See corgipile.models for the models that you may use.",
    ),
    Case(
        "ModelError::NoModelName",
        "SELECT corgipile_predict('nobody', ARRAY[1])",
        "42704",
        r#"model "nobody" does not exist"#,
        "See corgipile.models for the models that you may use.",
    ),
    Case(
        "ModelError::ModelPermission",
        "SET LOCAL ROLE {bob}; SELECT corgipile_predict(4, ARRAY[1, 2, 3])",
        "42501",
        "permission denied for model 4",
        "Its owner can grant it to a role: corgipile_grant(model, role).",
    ),
    Case(
        "ModelError::PredictOnly",
        "SELECT corgipile_grant(4, '{bob}', 'predict'); SET LOCAL ROLE {bob}; SELECT corgipile_export(4)",
        "42501",
        "permission denied for model 4: it was granted for predictions only",
        "To let a role also read the model, its owner calls corgipile_grant(model, role).",
    ),
    Case(
        "ModelError::NoModels",
        "DELETE FROM corgipile.stored_models; SELECT corgipile_predict('nobody', ARRAY[1])",
        "42704",
        r#"model "nobody" does not exist"#,
        "There are no models in this database yet: corgipile_train() stores one. In a restore, models may come after \
         tables that predict: docs/deploy/models.md says how to restore these.",
    ),
    Case(
        "ModelError::NotOwner",
        "SET LOCAL ROLE {bob}; SELECT corgipile_drop(3)",
        "42501",
        "must be owner of the model",
        "Only its owner and members of the owner's role can change a model.",
    ),
    Case(
        "ModelError::NotOwner",
        "SET LOCAL ROLE {bob}; SELECT corgipile_rename('shared', 'mine')",
        "42501",
        "must be owner of the model",
        "Only its owner and members of the owner's role can change a model.",
    ),
    Case(
        "ModelError::OfGroups",
        "SELECT FROM corgipile_train('SELECT *, label AS g FROM t', features => '{a}', group_by => 'g', name => 'gs', max_epochs => 1); SELECT corgipile_export('gs')",
        "0A000",
        r#""gs" is a model for each group of column "g", and this function takes one model"#,
        "Name the model of one group, such as 'gs/0'.",
    ),
    Case(
        "ModelError::NameOfOneModel",
        "SELECT FROM corgipile_train('t', features => '{a}', max_epochs => 1, name => 'gs'); SELECT FROM corgipile_train('SELECT *, label AS g FROM t', features => '{a}', group_by => 'g', name => 'gs', max_epochs => 1); ",
        "42710",
        r#""gs" is the name of one model, and cannot be that of models of groups, too"#,
        "Give another name, or drop or rename the model.",
    ),
    Case(
        "ModelError::NameOfGroups",
        "SELECT FROM corgipile_train('SELECT *, label AS g FROM t', features => '{a}', group_by => 'g', name => 'gs', max_epochs => 1); SELECT FROM corgipile_train('t', features => '{a}', max_epochs => 1, name => 'gs')",
        "42710",
        r#""gs" is the name of the models of groups of column "g""#,
        "Give another name, or drop these models with corgipile_drop('gs').",
    ),
    Case(
        "ModelError::GroupsDiffer",
        "SELECT FROM corgipile_train('SELECT *, label AS g FROM t', features => '{a}', group_by => 'g', name => 'gs', max_epochs => 1); SELECT FROM corgipile_train('SELECT a, b AS label, 2 AS g FROM t', 'linear', features => '{a}', group_by => 'g', name => 'gs', max_epochs => 1); \
         SELECT corgipile_evaluate('gs', 'SELECT *, label AS g FROM t')",
        "0A000",
        r#"model ... "gs/0" and model ... "gs/2" predict other labels, or predict them in another way, and cannot be evaluated together"#,
        "Train all groups again in one call, or evaluate the models of the groups by their own names.",
    ),
    Case(
        "ModelError::ModelExists",
        "SELECT corgipile_rename('m', 'other')",
        "42710",
        r#"a model named "other" already exists"#,
        "Choose another name, or drop the old model.",
    ),
    Case(
        "ModelError::TooLargeForSql",
        r#"SELECT corgipile_import('{"corgipile_model": 1, "model": "linear", "label": "y", "label_type": "float8", "features": ["x"],
                                     "feature_kind": "array", "intercepts": [0]}'
                                   || jsonb_build_object('weights', array_fill(1, ARRAY[1000001])), 'huge');
           SELECT corgipile_export('huge', 'sql')"#,
        "54000",
        r#"model ... has 1000002 numbers and categories, more than the 1000000 of an expression in SQL"#,
        "Export it as json and predict with the Python package, or in another database that has corgipile.",
    ),
    Case(
        "ModelError::HashedInSql",
        r#"SELECT count(*) FROM corgipile_train('SELECT label, a::text AS a FROM t', features => '{a}', max_epochs => 1,
                                                name => 'hashed', options => '{"hash": {"buckets": 16, "columns": ["a"]}}');
           SELECT corgipile_export('hashed', 'sql')"#,
        "0A000",
        "model ... has hashed columns, whose hash SQL cannot compute",
        "Train it with \"hash\": \"off\", or export it as json and predict with the Python package.",
    ),
    Case(
        "ModelError::WordsInExport",
        "SELECT count(*) FROM corgipile_train('SELECT label, to_tsvector(''w'' || a) AS body FROM t', max_epochs => 1, name => 'words');
         SELECT corgipile_export('words', 'sql')",
        "0A000",
        r#"model ... was trained on the words of column "body", which an expression in SQL cannot compute"#,
        "Predict in a database that has corgipile, or train on columns of a query that say whether a word is there.",
    ),
    Case(
        "ModelError::WordsInExport",
        "SELECT count(*) FROM corgipile_train('SELECT label, ARRAY[a::text] AS tags FROM t', max_epochs => 1, name => 'tags');
         SELECT corgipile_export_onnx('tags')",
        "0A000",
        r#"model ... was trained on the words of column "tags", which a graph of ONNX cannot compute"#,
        "Predict in a database that has corgipile, or train on columns of a query that say whether a word is there.",
    ),
    Case(
        "ModelError::NullTextInOnnx",
        r#"SELECT count(*) FROM corgipile_train('SELECT label, CASE WHEN a > 0 THEN U&''\FFFF'' ELSE ''x'' END AS c FROM t',
                                                max_epochs => 1, name => 'odd');
           SELECT corgipile_export_onnx('odd')"#,
        "0A000",
        r#"model ... has a category in column "c" that stands for NULL in ONNX: U+FFFF"#,
        "Train on a query that replaces this category, or export the model as json and predict with the Python package.",
    ),
    Case(
        "ModelError::InvalidModel",
        r#"SELECT corgipile_import(jsonb_set(corgipile_export('m')::jsonb, '{model}', '"forest"'))"#,
        "22023",
        r#"key "model" of the model is "forest", which is unknown"#,
        "Known models are: logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp, mlp_regression, logistic_regression, ...",
    ),
    Case(
        "ModelError::InvalidModel",
        "SELECT corgipile_import(corgipile_export('m') - 'weights')",
        "22023",
        r#"key "weights" of the model is missing"#,
        "corgipile_export() returns such objects; docs/...model-format.md describes them.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT corgipile_import('[]')",
        "22023",
        r#"invalid value for argument "model": it is not a JSON object"#,
        "corgipile_export() returns such objects; docs/...model-format.md describes them.",
    ),
    Case(
        "PredictError::Length",
        "UPDATE corgipile.stored_models SET weights = '{1,2}' WHERE model_id = 1; SELECT corgipile_predict(1, ARRAY[1, 2, 3])",
        "2202E",
        "model 1 ... has 2 features, 3 given",
        "Give each of them. The model's features, in order: ...",
    ),
    Case(
        "ModelError::OwnerNeeded",
        "SELECT corgipile_predict('hers', ARRAY[1, 2, 3])",
        "42P08",
        r#"model "hers" must be named with its owner"#,
        "For a superuser, a name alone refers to the superuser's own models. Write '{alice}.hers'.",
    ),
    Case(
        "ModelError::OwnerNeeded",
        "SET LOCAL ROLE {carol}; SELECT corgipile_predict('open', ARRAY[1, 2, 3])",
        "42P08",
        r#"model "open" must be named with its owner"#,
        "A name alone refers to a model granted to public only while no other role has a model of that name. Write '{alice}.open'.",
    ),
    Case(
        "ModelError::AmbiguousModel",
        "GRANT {alice}, {bob} TO {carol}; SET LOCAL ROLE {carol}; SELECT corgipile_predict('open', ARRAY[1, 2, 3])",
        "42P08",
        r#"there are several models named "open" that you may use"#,
        "Name the owner, too: write '{alice}.open' or '{bob}.open'.",
    ),
    Case(
        "ModelError::NoVersion",
        "SELECT corgipile_deploy('m', 9)",
        "42704",
        r#"version 9 of model "m" does not exist"#,
        "See corgipile.models for the versions that exist.",
    ),
    Case(
        "ModelError::NoVersion",
        "SELECT corgipile_drop('m', 9)",
        "42704",
        r#"version 9 of model "m" does not exist"#,
        "See corgipile.models for the versions that exist.",
    ),
    Case(
        "ArgumentError::NullArgument",
        "SELECT corgipile_rename('m', NULL)",
        "22004",
        r#"argument "new_name" must not be null"#,
        "Give a value that is not NULL.",
    ),
    Case(
        "ModelError::NoModelName",
        "SELECT corgipile_export('nobody')",
        "42704",
        r#"model "nobody" does not exist"#,
        "See corgipile.models for the models that you may use.",
    ),
    Case(
        "ModelError::OwnerNeeded",
        "SET LOCAL ROLE {bob}; SELECT corgipile_train('t', max_epochs => 1, name => '{alice}.m'), corgipile_grant('{alice}.m', 'public'); RESET ROLE; SET LOCAL ROLE {carol}; SELECT corgipile_predict('{alice}.m', ARRAY[1, 2, 3])",
        "42P08",
        "model \"{alice}.m\" must be named with its owner",
        "It begins with the name of a role, so that it reads as a model of that role. Write '{bob}.{alice}.m'.",
    ),
    Case(
        "ModelError::CorruptModel",
        "UPDATE corgipile.stored_models SET features = '{{a,b}}' WHERE model_id = 1; SELECT corgipile_predict(1, ARRAY[1, 2, 3])",
        "XX001",
        "stored model 1 cannot be read: ...",
        "Restore its row of corgipile.stored_models from a backup, or train again.",
    ),
    Case(
        "ModelError::NoModelTable",
        "ALTER TABLE corgipile.stored_models RENAME TO hidden; SELECT corgipile_predict(1, ARRAY[1, 2, 3])",
        "42P01",
        "relation corgipile.stored_models does not exist",
        "Extension corgipile was dropped in the meantime, or its table was renamed.",
    ),
    Case(
        "ModelError::NoModelTable",
        "ALTER TABLE corgipile.stored_models RENAME TO hidden; CREATE VIEW corgipile.stored_models AS SELECT * FROM corgipile.hidden; SELECT corgipile_predict(1, ARRAY[1, 2, 3])",
        "42P01",
        "relation corgipile.stored_models does not exist",
        "Extension corgipile was dropped in the meantime, or its table was renamed.",
    ),
    Case(
        "ModelError::OfAnotherServer",
        "SET LOCAL application_name = 'citus_internal gpid=10000000001'; SELECT corgipile_predict(1, ARRAY[1, 2, 3])",
        "0A000",
        "model 1 cannot be looked up by its id in a part of another server's query",
        "Each server has its own ids. Use the name of a model that corgipile_publish() has sent here, or pass the model as a value: corgipile_export() on the server that runs the query returns it.",
    ),
    Case(
        "ModelError::NotPublished",
        "SET LOCAL application_name = 'citus_internal gpid=10000000001'; SELECT corgipile_predict('m', ARRAY[1, 2, 3])",
        "0A000",
        r#"model "m" was not published to this server, which runs a part of another server's query"#,
        "Publish it with corgipile_publish() on the server that runs the query, or pass the model as a value: corgipile_export() there returns it.",
    ),
    Case(
        "ModelError::WritesForAnother",
        "SET LOCAL application_name = 'citus_internal gpid=10000000001'; SELECT corgipile_drop('m')",
        "0A000",
        "cannot execute changes of models in a part of another server's query",
        "It would be stored on this server only. Call it by itself, on the server where the query begins.",
    ),
    Case(
        "ModelError::PublishedPermission",
        "UPDATE corgipile.stored_models SET published = true WHERE name = 'm'; SET LOCAL ROLE {bob}; \
         SET LOCAL application_name = 'citus_internal gpid=10000000001'; SELECT corgipile_predict('m', ARRAY[1, 2, 3])",
        "42501",
        r#"permission denied for model "m", which was published to this server"#,
        "Grant it where it was trained, with corgipile_grant(model, role), and publish it again.",
    ),
    Case(
        "ModelError::Unnamed",
        "SELECT corgipile.identity(corgipile_import(corgipile_export('m') - 'name'))",
        "55000",
        "model ... has no name",
        "Other servers look up a model by its name: give it one with corgipile_rename().",
    ),
    Case(
        "ModelError::NotCommitted",
        "SELECT corgipile_comment('m', 'new'); SELECT corgipile.identity(corgipile.version_id('m', NULL))",
        "55000",
        r#"model "m" was stored or changed by this transaction"#,
        "Commit first: what is sent to other servers is not rolled back with this transaction.",
    ),
    Case(
        "ModelError::NameTaken",
        "SELECT corgipile_grant('m', 'public'); SET LOCAL ROLE {bob}; SELECT corgipile.receive_model(gen_random_uuid(), corgipile_export('m'))",
        "42710",
        r#"another role has a model named "m" here"#,
        "Rename the model with corgipile_rename() where it was trained, and publish it again.",
    ),
    // The last one: no rollback takes the number of a sequence back.
    Case(
        "ModelError::SequenceBehind",
        "SELECT setval('corgipile.models_model_id_seq', 1, false); SELECT corgipile_train('t', max_epochs => 1)",
        "55000",
        "could not store the model: sequence corgipile.models_model_id_seq returned a model_id that is in use",
        "The sequence is behind the table, as after a restore without it. The tables' owner or a superuser sets it: SELECT setval('corgipile.models_model_id_seq', (SELECT max(model_id) FROM corgipile.stored_models));",
    ),
];

#[test]
fn errors_of_models_say_whose_they_are_and_what_they_are_called() {
    let mut db = database(&[]);
    for name in ["m", "other"] {
        DENSE.store(&mut db, name);
    }
    let roles = ["alice", "bob", "carol"].map(|who| db.role(who));
    let [alice, bob, carol] = &roles;
    db.run(&format!("GRANT SELECT ON t TO {alice}, {bob}"));
    let train = |name: &str| format!("SELECT corgipile_train('t', max_epochs => 1, name => '{name}')");
    let mut session = db.session_as(alice);
    for name in ["shared", "hers", "open"] {
        session.run(&train(name));
    }
    session.run(&format!("SELECT corgipile_grant('shared', '{bob}'), corgipile_grant('open', 'public')"));
    db.session_as(bob).run(&train("open"));
    check(&mut db, CASES, &[("{alice}", alice), ("{bob}", bob), ("{carol}", carol)]);
}
