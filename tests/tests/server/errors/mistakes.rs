//! Mistakes that new users make, and what each of them is told: message and hint have to lead to the statement that was
//! meant. What PostgreSQL itself refuses, before corgipile is asked, is here too, so that it is known.

use super::{Case, check};
use corgipile_tests::{Database, is_like};

const SETUP: &str = r#"
    CREATE TABLE passengers (id int PRIMARY KEY, survived boolean, age real, fare float8, sex text, "Class" int,
                             born date, answer text, nothing real, rate real);
    INSERT INTO passengers SELECT i, i % 3 = 0, 20 + i % 40, (i * 37 % 101) / 10.0,
           CASE WHEN i % 2 = 0 THEN 'male' ELSE 'female' END, 1 + i % 3, '1990-01-01'::date + i,
           CASE WHEN i % 3 = 0 THEN 'yes' ELSE 'no' END, NULL, i / 7.0 FROM generate_series(1, 300) i;
    CREATE TABLE "Titanic Data" ("Survived" int, "Age" real, "Fare" real);
    INSERT INTO "Titanic Data" SELECT i % 2, i % 40, i % 7 FROM generate_series(1, 100) i;
    CREATE TABLE empty_table (label int, x real);
    CREATE TABLE constant (label int, x real); INSERT INTO constant SELECT 1, i FROM generate_series(1, 50) i;
    CREATE TABLE vectors (label int, x real[]); INSERT INTO vectors SELECT i % 2, ARRAY[i, i % 3] FROM generate_series(1, 50) i;
    CREATE VIEW private_view AS SELECT * FROM passengers;
    SELECT FROM corgipile_train('passengers', label => 'survived', features => '{age,fare}', name => 'survival', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('passengers', label => 'survived', features => '{age,sex}', name => 'by sex', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('vectors', name => 'arrays', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('passengers', 'linear', label => 'rate', features => '{age,fare}', name => 'rates', max_epochs => 2, seed => 1);
    SELECT FROM corgipile_train('vectors', name => 'dropped', max_epochs => 2, seed => 1);
    SELECT corgipile_drop('dropped');"#;

/// Hints that several mistakes have in common.
const COLUMNS: &str = "The source has the columns id, survived, age, fare, sex, Class, born, answer, nothing, rate.";
const MODELS: &str = "See corgipile.models for the models that you may use.";
const FUNCTION: &str =
    "No function matches the given name and argument types. You might need to add explicit type casts.";
const QUOTES: &str = "a name with blanks or capitals is quoted: '\"My Table\"'.";

/// How the source is named.
const SOURCES: &[Case] = &[
    Case(
        "a table without quotes is a column to SQL",
        "SELECT corgipile_train(passengers, label => 'survived')",
        "42703",
        r#"column "passengers" does not exist"#,
        "",
    ),
    Case(
        "a misspelt table",
        "SELECT corgipile_train('passenger', label => 'survived')",
        "42P01",
        r#"relation "passenger" does not exist"#,
        "Did you mean 'passengers'? A table that is not in the search path needs its schema; {QUOTES}",
    ),
    Case(
        "a misspelt schema",
        "SELECT corgipile_train('publik.passengers', label => 'survived')",
        "42P01",
        r#"relation "publik.passengers" does not exist"#,
        "Did you mean 'passengers'? ...",
    ),
    Case(
        "a table that is not near to any",
        "SELECT corgipile_train('customers_of_2024')",
        "42P01",
        r#"relation "customers_of_2024" does not exist"#,
        "A table that is not in the search path needs its schema; {QUOTES}",
    ),
    Case(
        "a name with a blank without quotes",
        "SELECT corgipile_train('Titanic Data', label => 'Survived')",
        "42602",
        r#"source "Titanic Data" is neither the name of a table nor a query"#,
        "Did you mean '\"Titanic Data\"'? A query begins with SELECT, WITH, VALUES, TABLE or (; {QUOTES}",
    ),
    Case(
        "a name in quotes in the wrong case",
        "SELECT corgipile_train('\"titanic data\"', label => 'Survived')",
        "42P01",
        r#"relation "titanic data" does not exist"#,
        "Did you mean '\"Titanic Data\"'? ...",
    ),
    Case(
        "a qualified name in quotes, misspelt",
        "SELECT corgipile_train('public.\"Titanic_Data\"', label => 'Survived')",
        "42P01",
        r#"relation "public.Titanic_Data" does not exist"#,
        "Did you mean '\"Titanic Data\"'? ...",
    ),
    Case(
        "a command as the source",
        "SELECT corgipile_train('delete from passengers')",
        "42602",
        r#"source "delete from passengers" is neither the name of a table nor a query"#,
        "A query begins with SELECT, WITH, VALUES, TABLE or (; {QUOTES}",
    ),
    Case(
        "a table with a condition behind it",
        "SELECT corgipile_train('passengers WHERE age > 30', label => 'survived')",
        "42602",
        r#"source "passengers WHERE age > 30" is neither the name of a table nor a query"#,
        "A query begins with SELECT, WITH, VALUES, TABLE or (; ...",
    ),
    Case(
        "two statements",
        "SELECT corgipile_train('SELECT * FROM passengers; SELECT 1', label => 'survived')",
        "42601",
        "source must be a table or exactly one SELECT",
        "Give the name of a table or view, or one SELECT, VALUES or WITH query.",
    ),
    Case(
        "a text in the query without quotes",
        "SELECT corgipile_train('SELECT * FROM passengers WHERE sex = male', label => 'survived')",
        "42703",
        r#"column "male" does not exist"#,
        "",
    ),
    Case(
        "a query without the label",
        "SELECT corgipile_train('SELECT age, fare FROM passengers', label => 'survived')",
        "42703",
        r#"column "survived" does not exist in the source"#,
        "The source has the columns age, fare.",
    ),
    Case(
        "an empty table",
        "SELECT corgipile_train('empty_table')",
        "22000",
        "there are no rows to train on",
        "Check the source: its table, and what it leaves out.",
    ),
    Case(
        "a view that may not be read",
        "SET LOCAL ROLE {newcomer}; SELECT corgipile_train('private_view', label => 'survived')",
        "42501",
        "permission denied for view private_view",
        "",
    ),
];

/// Labels.
const LABELS: &[Case] = &[
    Case(
        "no label",
        "SELECT corgipile_train('passengers')",
        "42703",
        r#"column "label" does not exist in the source"#,
        "Say which column to predict: label => '...'. {COLUMNS}",
    ),
    Case(
        "a label without quotes is a column to SQL",
        "SELECT * FROM corgipile_train('passengers', label => survived)",
        "42703",
        r#"column "survived" does not exist"#,
        "",
    ),
    Case(
        "a misspelt label",
        "SELECT corgipile_train('passengers', label => 'survive')",
        "42703",
        r#"column "survive" does not exist in the source"#,
        "Did you mean \"survived\"? {COLUMNS}",
    ),
    Case(
        "a label in another case",
        "SELECT corgipile_train('\"Titanic Data\"', label => 'survived')",
        "42703",
        r#"column "survived" does not exist in the source"#,
        "Did you mean \"Survived\"? The source has the columns Survived, Age, Fare.",
    ),
    Case(
        "the label as the second argument, where the model is",
        "SELECT corgipile_train('passengers', 'survived')",
        "22023",
        r#"unknown model "survived""#,
        "The column to predict is named by label => '...'. Known models are: logistic, svm, linear, softmax, mlp, ...",
    ),
    Case(
        "the label's argument by another name",
        "SELECT corgipile_train('passengers', target => 'survived')",
        "42883",
        "function corgipile_train(unknown, target => unknown) does not exist",
        "{FUNCTION}",
    ),
    Case(
        "three classes for logistic",
        "SELECT corgipile_train('passengers', label => 'Class', features => '{age}')",
        "22000",
        r#"label column "Class" has more than two values (...): a third was found in row ..."#,
        "Models logistic and svm tell exactly two classes apart. For numbers to be predicted say model => 'linear', for more classes \
         model => 'softmax' or 'mlp'; or make two classes of them with a query as source.",
    ),
    Case(
        "a measured number for a classifier",
        "SELECT corgipile_train('passengers', label => 'rate', features => '{age}', model => 'softmax')",
        "22000",
        r#"label column "rate" has more than 20 values that are not all whole, such as ...: one more was found in row ..."#,
        "For numbers to be predicted say model => 'linear' or 'mlp_regression'. If they are classes, cast them to text in a query.",
    ),
    Case(
        "an id as the label",
        "SELECT corgipile_train('passengers', label => 'id', features => '{age}', model => 'softmax')",
        "22000",
        r#"label column "id" has 300 different values in 300 rows"#,
        "For numbers to be predicted say model => 'linear'; a number that identifies rows is no label.",
    ),
    Case(
        "yes and no for a linear regression",
        "SELECT corgipile_train('passengers', label => 'answer', model => 'linear')",
        "42804",
        r#"label column "answer" has type text"#,
        "Model linear predicts a number: its label is a column of numbers, or a boolean. For classes say model => 'logistic', 'softmax' \
         or 'mlp'.",
    ),
    Case(
        "a date as the label",
        "SELECT corgipile_train('passengers', label => 'born', features => '{age}')",
        "42804",
        r#"label column "born" has type date"#,
        "A label is an integer, a number, a boolean, text or an enum.",
    ),
    Case(
        "one class only",
        "SELECT corgipile_train('constant')",
        "22000",
        r#"label column "label" has only one value: 1"#,
        "Models that tell classes apart need rows of two classes or more.",
    ),
    Case(
        "a label that is NULL in all rows",
        "SELECT corgipile_train('passengers', label => 'nothing', features => '{age}')",
        "22000",
        "all 300 rows are left out because they have NULLs",
        "A row needs a label, and a weight and a group if they are asked for; with nulls => 'impute' features may be NULL.",
    ),
];

/// Features.
const FEATURES: &[Case] = &[
    Case(
        "names in one text instead of an array",
        "SELECT corgipile_train('passengers', label => 'survived', features => 'age,fare')",
        "22P02",
        r#"malformed array literal: "age,fare""#,
        "",
    ),
    Case(
        "an array of JSON",
        r#"SELECT corgipile_train('passengers', label => 'survived', features => '["age","fare"]')"#,
        "22P02",
        r#"malformed array literal: "["age","fare"]""#,
        "",
    ),
    Case(
        "names in one element",
        r#"SELECT corgipile_train('passengers', label => 'survived', features => '{"age, fare"}')"#,
        "42703",
        r#"column "age, fare" does not exist in the source"#,
        "Give each name by itself: '{age,fare}'. {COLUMNS}",
    ),
    Case(
        "a misspelt feature",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{age,fares}')",
        "42703",
        r#"column "fares" does not exist in the source"#,
        "Did you mean \"fare\"? {COLUMNS}",
    ),
    Case(
        "a feature in another case",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{age,class}')",
        "42703",
        r#"column "class" does not exist in the source"#,
        "Did you mean \"Class\"? {COLUMNS}",
    ),
    Case(
        "the label among the features",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{age,survived}')",
        "22023",
        r#"invalid value for argument "features": column "survived" is the label"#,
        "A model that knows the answer learns nothing: leave it out, or say another label.",
    ),
    Case(
        "a feature twice",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{age,age}')",
        "22023",
        r#"invalid value for argument "features": column "age" is there twice"#,
        "Name each column once.",
    ),
    Case(
        "no feature",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{}')",
        "22023",
        r#"invalid value for argument "features": it is an empty array"#,
        "Name the feature columns, or leave features out to use all that can be.",
    ),
    Case(
        "all features left out",
        "SELECT corgipile_train('vectors', features => '{-x}')",
        "42703",
        "there are no features in the source",
        "Features are one array of numbers, ...",
    ),
    Case(
        "a star and a name",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{*,age}')",
        "22023",
        r#"invalid value for argument "features": "age" does not go with "*""#,
        "Name all features; or take all columns but some, such as '{*,-id}', or the default without some, such as '{-id}'.",
    ),
    Case(
        "a group that is not there",
        "SELECT corgipile_train('passengers', label => 'survived', group_by => 'gender')",
        "42703",
        r#"column "gender" does not exist in the source"#,
        "{COLUMNS}",
    ),
    Case(
        "the label as the group",
        "SELECT corgipile_train('passengers', label => 'survived', group_by => 'survived')",
        "22023",
        r#"invalid value for argument "group_by": column "survived" is the label"#,
        "",
    ),
];

/// Models, arguments and options.
const OPTIONS: &[Case] = &[
    Case(
        "a model that there is not",
        "SELECT corgipile_train('passengers', label => 'survived', model => 'random_forest')",
        "22023",
        r#"unknown model "random_forest""#,
        "... Known models are: logistic, svm, linear, softmax, mlp, ...",
    ),
    Case(
        "a misspelt model",
        "SELECT corgipile_train('passengers', label => 'survived', model => 'logistc')",
        "22023",
        r#"unknown model "logistc""#,
        "Did you mean \"logistic\"? Known models are: ...",
    ),
    Case(
        "an argument by another library's name",
        "SELECT corgipile_train('passengers', label => 'survived', epochs => 10)",
        "42883",
        "function corgipile_train(unknown, label => unknown, epochs => integer) does not exist",
        "{FUNCTION}",
    ),
    Case(
        "the same in options",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"epochs": 10}')"#,
        "22023",
        r#"unknown option "epochs""#,
        "Did you mean \"max_epochs\"? Known options are: ...",
    ),
    Case(
        "the learning rate by another library's name",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"lr": 0.1}')"#,
        "22023",
        r#"unknown option "lr""#,
        "Did you mean \"learning_rate\"? Known options are: ...",
    ),
    Case(
        "a misspelt option",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"learning_rat": 0.1}')"#,
        "22023",
        r#"unknown option "learning_rat""#,
        "Did you mean \"learning_rate\"? Known options are: ...",
    ),
    Case(
        "an option with a blank",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"batch size": 10}')"#,
        "22023",
        r#"unknown option "batch size""#,
        "Did you mean \"batch_size\"? Known options are: ...",
    ),
    Case(
        "a number as a text",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"learning_rate": "0.1"}')"#,
        "22023",
        r#"option "learning_rate" must be a number, not "0.1""#,
        "",
    ),
    Case(
        "a truth as a text",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"standardize": "yes"}')"#,
        "22023",
        r#"option "standardize" must be true, false or "auto", not "yes""#,
        "",
    ),
    Case(
        "options that are no JSON",
        "SELECT corgipile_train('passengers', label => 'survived', options => 'l2=0.1')",
        "22P02",
        "invalid input syntax for type json",
        "",
    ),
    Case(
        "options in an array",
        "SELECT corgipile_train('passengers', label => 'survived', options => '[{\"l2\": 0.1}]')",
        "22023",
        "options must be a JSON object",
        "Write them as '{\"key\": value, ...}'; corgipile_options() lists the keys.",
    ),
    Case(
        "a negative learning rate",
        "SELECT corgipile_train('passengers', label => 'survived', learning_rate => -0.1)",
        "22023",
        r#"invalid value for argument "learning_rate": must be finite and greater than 0, also in type real"#,
        "Leave it out, and the rows say which is good.",
    ),
    Case(
        "mini-batches of no rows",
        "SELECT corgipile_train('passengers', label => 'survived', batch_size => 0)",
        "22023",
        r#"option "batch_size" must be a whole number from 1 to 1000000, not 0"#,
        "",
    ),
    Case(
        "no epochs",
        "SELECT corgipile_train('passengers', label => 'survived', max_epochs => 0)",
        "22023",
        r#"invalid value for argument "max_epochs": 0 is not in 1 to 1000000"#,
        "",
    ),
    Case(
        "half an epoch",
        "SELECT corgipile_train('passengers', label => 'survived', max_epochs => 1.5)",
        "42883",
        "function corgipile_train(unknown, label => unknown, max_epochs => numeric) does not exist",
        "{FUNCTION}",
    ),
    Case(
        "a fraction in percent",
        "SELECT corgipile_train('passengers', label => 'survived', validation_fraction => 80)",
        "22023",
        r#"option "validation_fraction" must be between 0 and 1, not 80..."#,
        "",
    ),
    Case(
        "a size in words",
        "SELECT corgipile_train('passengers', label => 'survived', buffer_size => '1 gig')",
        "22023",
        r#"invalid value for argument "buffer_size": "1 gig" is not a buffer size"#,
        "Use 'auto', a percentage of the table such as '10%' or a size such as '64MB'. Valid units are %, B, kB, MB, GB and TB.",
    ),
    Case(
        "an optimizer that there is not",
        "SELECT corgipile_train('passengers', label => 'survived', optimizer => 'rmsprop')",
        "22023",
        r#"option "optimizer" must be "sgd", "momentum" or "adam""#,
        "",
    ),
    Case(
        "hidden layers of a model without them",
        "SELECT corgipile_train('passengers', label => 'survived', hidden_layers => '{10}')",
        "22023",
        r#"option "hidden_layers" applies only to model mlp"#,
        "",
    ),
    Case(
        "a layer of no units",
        "SELECT corgipile_train('passengers', label => 'survived', model => 'mlp', hidden_layers => '{0}')",
        "22023",
        r#"option "hidden_layers" must be an array of one to 16 whole numbers from 1 to 134217727, not [0]"#,
        "",
    ),
    Case(
        "a misspelt class",
        r#"SELECT corgipile_train('passengers', label => 'survived', class_weight => '{"true": 2, "flase": 1}')"#,
        "22P02",
        r#"label column "survived" has type boolean, which has no value flase"#,
        "Use labels of the type that the column has.",
    ),
    Case(
        "a grid of one number",
        r#"SELECT corgipile_train('passengers', label => 'survived', grid => '{"l2": 0.1}')"#,
        "22023",
        r#"invalid value for argument "grid": the values of "l2" must be an array"#,
        r#"Write a grid as '{"l2": [0, 0.01]}', or as '[{"l2": 0}, {"l2": 0.01}]'."#,
    ),
    Case(
        "a grid without names",
        "SELECT corgipile_train('passengers', label => 'survived', grid => '[0.1, 0.01]')",
        "22023",
        r#"invalid value for argument "grid": it must be an object of arrays, or an array of objects"#,
        r#"Write a grid as '{"l2": [0, 0.01]}', or as '[{"l2": 0}, {"l2": 0.01}]'."#,
    ),
    Case(
        "a truth as the shuffle",
        "SELECT corgipile_train('passengers', label => 'survived', shuffle => 'true')",
        "22023",
        r#"unknown shuffle strategy "true""#,
        "Known shuffle strategies are: no_shuffle, shuffle_once, epoch_shuffle, sliding_window, mrs, block_only, corgipile.",
    ),
    Case(
        "another library's word for skip",
        "SELECT corgipile_train('passengers', label => 'survived', nulls => 'drop')",
        "22023",
        r#"option "nulls" must be "impute", "skip" or "error""#,
        "",
    ),
];

/// Predictions, evaluations and what is done with models.
const MODELS_IN_USE: &[Case] = &[
    Case(
        "a misspelt model to go on with",
        "SELECT corgipile_train('passengers', warm_start => 'survivl')",
        "42704",
        r#"model "survivl" does not exist"#,
        "Did you mean \"survival\"? {MODELS}",
    ),
    Case(
        "a misspelt model",
        "SELECT corgipile_predict('Survivel', p) FROM passengers p LIMIT 1",
        "42704",
        r#"model "Survivel" does not exist"#,
        "Did you mean \"survival\"? {MODELS}",
    ),
    Case(
        "a model that was dropped",
        "SELECT corgipile_predict('dropped', v) FROM vectors v LIMIT 1",
        "42704",
        r#"model "dropped" does not exist"#,
        "{MODELS}",
    ),
    Case(
        "a model without quotes is a column to SQL",
        "SELECT corgipile_predict(survival, p) FROM passengers p LIMIT 1",
        "42703",
        r#"column "survival" does not exist"#,
        "Perhaps you meant to reference the column \"p.survived\".",
    ),
    Case(
        "one of two features",
        "SELECT corgipile_predict('survival', age) FROM passengers LIMIT 1",
        "2202E",
        r#"model ... "survival" has 2 features, 1 given"#,
        "Give each of them. The model's features, in order: age, fare.",
    ),
    Case(
        "an array of one of two features",
        "SELECT corgipile_predict('survival', ARRAY[age]) FROM passengers LIMIT 1",
        "2202E",
        r#"model ... "survival" has 2 features, 1 given"#,
        "Give each of them. The model's features, in order: age, fare.",
    ),
    Case(
        "three features for two",
        "SELECT corgipile_predict('survival', age, fare, sex) FROM passengers LIMIT 1",
        "2202E",
        r#"model ... "survival" has 2 features, 3 given"#,
        "Give each of them. The model's features, in order: age, fare.",
    ),
    Case(
        "a row without one of the features",
        "SELECT corgipile_predict('survival', q) FROM (SELECT age FROM passengers) q LIMIT 1",
        "42703",
        r#"the given row has no column "fare", which is a feature of model ... "survival""#,
        "The row has the columns age. The model's features, in order: age, fare.",
    ),
    Case(
        "an array as a text",
        "SELECT corgipile_predict('survival', '{30,7}')",
        "42804",
        r#"model ... "survival" has several features, and one text is given"#,
        "Write an array as ARRAY[1, 2] or '{1,2}'::real[], or give the values one by one. The model's features, in order: age, fare.",
    ),
    Case(
        "an array where there are texts",
        "SELECT corgipile_predict('by sex', ARRAY[30, 1])",
        "0A000",
        r#"model ... "by sex" has categories among its features, which an array cannot hold"#,
        "Give a row with the columns age, sex, as in SELECT corgipile_predict('by sex', t) FROM t, or values in this order: \
         corgipile_predict('by sex', age, sex).",
    ),
    Case(
        "values in the wrong order",
        "SELECT corgipile_predict('by sex', 'male'::text, 30)",
        "42804",
        r#"feature column "age" has type text"#,
        "The model was trained on numbers or booleans in this column.",
    ),
    Case(
        "no features at all",
        "SELECT corgipile_predict('survival')",
        "42883",
        "function corgipile_predict(unknown) does not exist",
        "{FUNCTION}",
    ),
    Case(
        "probabilities of a regression",
        "SELECT corgipile_predict_proba('rates', p) FROM passengers p LIMIT 1",
        "0A000",
        r#"model ... "rates" is a linear regression, which has no probabilities"#,
        "Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.",
    ),
    Case(
        "an id that there is not",
        "SELECT corgipile_predict(999, p) FROM passengers p LIMIT 1",
        "42704",
        "model 999 does not exist",
        "{MODELS}",
    ),
    Case(
        "an evaluation without the label",
        "SELECT * FROM corgipile_evaluate('survival', 'SELECT age, fare FROM passengers')",
        "42703",
        r#"column "survived" does not exist in the source"#,
        "The source has the columns age, fare.",
    ),
    Case(
        "an evaluation on no rows",
        "SELECT * FROM corgipile_evaluate('survival', 'SELECT * FROM passengers WHERE age > 100')",
        "22000",
        "there are no rows to evaluate on",
        "Check the source: its table, and what it leaves out.",
    ),
    Case(
        "model and table in the wrong order",
        "SELECT * FROM corgipile_evaluate('passengers', 'survival')",
        "42704",
        r#"model "passengers" does not exist"#,
        "{MODELS}",
    ),
    Case(
        "a misspelt model to be dropped",
        "SELECT corgipile_drop('survivl')",
        "42704",
        r#"model "survivl" does not exist"#,
        "Did you mean \"survival\"? {MODELS}",
    ),
    Case(
        "an empty name",
        "SELECT corgipile_rename('survival', '')",
        "22023",
        r#"invalid value for argument "name": its 0 bytes are not in 1 to 1024"#,
        "",
    ),
    Case(
        "a table that is there already",
        "SELECT corgipile_compress('vectors', 'passengers')",
        "42P07",
        r#"relation "passengers" already exists"#,
        "",
    ),
];

#[test]
fn mistakes_of_new_users_are_answered_with_what_to_do() {
    let mut db = Database::new();
    db.run(SETUP);
    let newcomer = db.role("newcomer");
    let names = [
        ("{newcomer}", newcomer.as_str()),
        ("{COLUMNS}", COLUMNS),
        ("{MODELS}", MODELS),
        ("{FUNCTION}", FUNCTION),
        ("{QUOTES}", QUOTES),
    ];
    let all = [SOURCES, LABELS, FEATURES, OPTIONS, MODELS_IN_USE];
    let count: usize = all.iter().map(|cases| cases.len()).sum();
    assert!(count >= 60, "{count} mistakes");
    for cases in all {
        check(&mut db, cases, &names);
    }
}

#[test]
fn what_only_looks_like_a_mistake_is_none() {
    let mut db = Database::new();
    db.run(SETUP);
    for call in [
        "'SELECT * FROM passengers;', label => 'survived', features => '{age}'",
        "'  select * from passengers -- all of them', label => 'survived', features => '{age}'",
        "'public.passengers', label => 'survived', features => '{age}'",
        "'\"Titanic Data\"', label => 'Survived'",
        "'public.\"Titanic Data\"', label => 'Survived', features => '{Age}'",
        "'Passengers', label => 'survived', features => '{age,Class}'",
        "'passengers', model => 'Logistic', label => 'survived', features => '{age,sex}'",
        "'passengers', 'LOGISTIC_REGRESSION', label => 'survived', features => '{age}'",
        "'passengers', label => 'answer', features => '{nothing,age}'",
    ] {
        db.train(&format!("{call}, max_epochs => 1, seed => 1"));
    }
    let told = db.notices(&[
        "SELECT FROM corgipile_train('passengers', label => 'survived', features => '{nothing,age}', max_epochs => 1, seed => 1)",
    ]);
    assert!(
        is_like("NOTICE:  NULLs are imputed in 300 of 300 rows (100.0%): nothing (all of them, 0)\n...", &told),
        "{told}"
    );
    assert_eq!(db.line("SELECT corgipile_predict('survival', passengers.*) IN (0, 1) FROM passengers LIMIT 1"), "t");
}
