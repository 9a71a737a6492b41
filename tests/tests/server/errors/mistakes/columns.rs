//! Mistakes about the source and its columns.

use crate::errors::Case;

/// How the source is named.
pub const SOURCES: &[Case] = &[
    Case(
        "a table without quotes is a column to SQL",
        "SELECT corgipile_train(passengers, label => 'survived')",
        "42703",
        r#"column "passengers" does not exist"#,
        "",
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
        "a table with a condition behind it",
        "SELECT corgipile_train('passengers WHERE age > 30', label => 'survived')",
        "42602",
        r#"source "passengers WHERE age > 30" is neither the name of a table nor a query"#,
        "A query begins with SELECT, WITH, VALUES, TABLE or (; ...",
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
        "a view that may not be read",
        "SET LOCAL ROLE {newcomer}; SELECT corgipile_train('private_view', label => 'survived')",
        "42501",
        "permission denied for view private_view",
        "",
    ),
];

/// Labels.
pub const LABELS: &[Case] = &[
    Case(
        "no label",
        "SELECT corgipile_train('passengers')",
        "42703",
        r#"column "label" does not exist in the source"#,
        "Name the column to predict: label => '...'. {COLUMNS}",
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
        "If it is the column to predict, use label => 'survived'. Known models are: logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp, ...",
    ),
    Case(
        "the label's argument by another name",
        "SELECT corgipile_train('passengers', target => 'survived')",
        "42883",
        "function corgipile_train(unknown, target => unknown) does not exist",
        "{FUNCTION}",
    ),
];

/// Features.
pub const FEATURES: &[Case] = &[
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
        "Give the names as an array: '{age,fare}'. {COLUMNS}",
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
        "A model that sees the label learns nothing: leave the column out, or use another label.",
    ),
    Case(
        "a feature twice",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{age,age}')",
        "22023",
        r#"invalid value for argument "features": column "age" is named twice"#,
        "Name each column once.",
    ),
    Case(
        "parts that a date has not",
        r#"SELECT corgipile_train('passengers', label => 'survived', options => '{"date_parts": ["weekday"]}')"#,
        "22023",
        r#"option "date_parts" must be true, false, "auto", or an array of "year", "month", "day", "dow", "hour", "doy" and "epoch", not ["weekday"]"#,
        "",
    ),
    Case(
        "no feature",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{}')",
        "22023",
        r#"invalid value for argument "features": it is an empty array"#,
        "Name the feature columns, or leave features out to use all possible columns.",
    ),
    Case(
        "all features left out",
        "SELECT corgipile_train('vectors', features => '{-x}')",
        "42703",
        "the source has no features",
        "Features can be any number of columns of ...",
    ),
    Case(
        "a star and a name",
        "SELECT corgipile_train('passengers', label => 'survived', features => '{*,age}')",
        "22023",
        r#"invalid value for argument "features": "age" cannot be combined with "*""#,
        "Name all features; or use '{*,-id}' for all columns except id, or '{-id}' for the default columns except id.",
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
