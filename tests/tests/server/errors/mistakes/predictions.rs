//! Mistakes about models in use.

use crate::errors::Case;

/// Predictions, evaluations and what is done with models.
pub const MODELS_IN_USE: &[Case] = &[
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
        "three features for two",
        "SELECT corgipile_predict('survival', age, fare, sex) FROM passengers LIMIT 1",
        "2202E",
        r#"model ... "survival" has 2 features, 3 given"#,
        "Give each of them. The model's features, in order: age, fare.",
    ),
    Case(
        "values in the wrong order",
        "SELECT corgipile_predict('by sex', 'male'::text, 30)",
        "42804",
        r#"feature column "sex" has type integer"#,
        "The model was trained on text or an enum in this column.",
    ),
    Case(
        "no features at all",
        "SELECT corgipile_predict('survival')",
        "42883",
        "function corgipile_predict(unknown) does not exist",
        "{FUNCTION}",
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
        "Check the source: its table and its conditions.",
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
        r#"invalid value for argument "name": it has 0 bytes instead of 1 to 1024"#,
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
