//! What a prediction or an evaluation cannot be made of.

use super::{Case, check, database};
use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Stored, made_here};

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "PredictError::DamagedVector",
        r"SELECT corgipile_predict('dense', '\x03000000'::bytea::vector)",
        "XX001",
        "the vector is damaged or has an unknown layout",
        "Vectors are read in the layout of pgvector up to version 0.8; cast those of a later version to real[].",
    ),
    Case(
        "PredictError::Length",
        "SELECT corgipile_predict('dense', ARRAY[1, 2])",
        "2202E",
        r#"model 1 "dense" has 3 features, 2 given"#,
        "Give each of them. The model's features, in order: x[1], x[2], x[3].",
    ),
    Case(
        "PredictError::Length",
        "SELECT corgipile_predict(corgipile_export('dense'), ARRAY[1, 2])",
        "2202E",
        "the given model has 3 features, 2 given",
        "Give each of them. The model's features, in order: x[1], x[2], x[3].",
    ),
    Case(
        "PredictError::Vector",
        "SELECT count(*) FROM corgipile_train('SELECT label, a, ARRAY[b, a] AS e FROM t', max_epochs => 1, name => 'two');
         SELECT corgipile_predict('two', 1, ARRAY[1, 2, 3])",
        "2202E",
        r#"vectors of column "e" of model ... "two" have 2 elements, 3 given"#,
        "Give a vector as long as those that the model was trained on.",
    ),
    Case(
        "PredictError::Null",
        "SELECT corgipile_predict('dense', ARRAY[1, NULL, 3])",
        "22004",
        r#"feature 2 of model 1 "dense" is NULL"#,
        "The model has no value to replace it: use coalesce(), or train with \"nulls\": \"impute\".",
    ),
    Case(
        "PredictError::NothingToImpute",
        "SELECT corgipile_predict('dense', ARRAY[1, NULL, 3], nulls => 'impute')",
        "0A000",
        r#"model 1 "dense" was not trained with "nulls": "impute", and has no values to replace NULLs"#,
        "Train it with \"nulls\": \"impute\", the default.",
    ),
    Case(
        "PredictError::NotFinite",
        "SELECT corgipile_predict('dense', ARRAY['NaN', '1', '2']::real[])",
        "22003",
        r#"feature 1 of model 1 "dense" is NaN"#,
        "Correct such values, or leave the row out.",
    ),
    Case(
        "PredictError::NotFinite",
        "SELECT corgipile_predict('dense', ARRAY['-Infinity', '1', '2']::real[])",
        "22003",
        r#"feature 1 of model 1 "dense" is -Infinity or out of range"#,
        "Correct such values, or leave the row out.",
    ),
    Case(
        "PredictError::OutOfRange",
        "SELECT corgipile_predict('dense', ARRAY[1, 2, 1e300]::float8[])",
        "22003",
        r#"feature 3 of model 1 "dense" is out of range for type real: 1e300"#,
        "Correct such values, or leave the row out.",
    ),
    Case(
        "PredictError::DecisionOutOfRange",
        "SELECT corgipile_predict('dense', ARRAY[3e38, -3e38, 3e38]::real[])",
        "22003",
        r#"a decision of model 1 "dense" is out of range for type real"#,
        "The features are too large for the model's weights; correct such rows, or leave them out.",
    ),
    Case(
        "PredictError::DecisionOutOfRange",
        "SELECT * FROM corgipile_evaluate('mixed', 'SELECT 1::float8 AS label, 3e38::real AS a, ''low''::text AS level, -3e38::real AS b')",
        "22003",
        r#"a decision of model 3 "mixed" for row number 1 of those evaluated is out of range for type real"#,
        "The features are too large for the model's weights; correct such rows, or leave them out.",
    ),
    Case(
        "PredictError::Text",
        "SELECT corgipile_predict('dense', '1,2,3')",
        "42804",
        r#"model 1 "dense" has several features, but one string was given"#,
        "Write an array as ARRAY[1, 2] or '{1,2}'::real[], or give the values one by one. The model's features, in order: ... To give a \
         row of table t, write t.*: where t has a column t, the name alone is that column.",
    ),
    Case(
        "PredictError::NotANumber",
        "SELECT corgipile_predict('dense', 1, 'two'::text, 3)",
        "22P02",
        r#""two" is given for feature "x[2]" of model 1 "dense", which is a number"#,
        "The model's features, in order: x[1], x[2], x[3]. To give a row of table t, write t.*: where t has a column t, the name alone is \
         that column.",
    ),
    Case(
        "PredictError::OneValue",
        "SELECT corgipile_predict('dense', state) FROM (SELECT 5 AS state, 1 AS a) AS state",
        "2202E",
        r#"model 1 "dense" has 3 features, 1 given"#,
        "Give each of them. The model's features, in order: x[1], x[2], x[3]. To give a row of table t, write t.*: where t has a column t, \
         the name alone is that column.",
    ),
    Case(
        "PredictError::Dimensions",
        "SELECT corgipile_predict('dense', ARRAY[[1, 2, 3]])",
        "2202E",
        "feature array has 2 dimensions",
        "Give an array of one dimension.",
    ),
    Case(
        "PredictError::Type",
        "SELECT corgipile_predict('dense', ARRAY['a', 'b', 'c'])",
        "42804",
        "features must be an array of numbers, not of type text[]",
        "Cast the features, for example to real[].",
    ),
    Case(
        "PredictError::IndexType",
        "SELECT corgipile_predict('sparse', ARRAY[1.5], ARRAY[1])",
        "42804",
        "indices must be an array of integers, not of type numeric[]",
        "Cast the indices, for example to integer[].",
    ),
    Case(
        "PredictError::Lengths",
        "SELECT corgipile_predict('sparse', ARRAY[1, 2], ARRAY[1])",
        "2202E",
        "2 indices given, but 1 values",
        "Give as many values as indices.",
    ),
    Case(
        "PredictError::NullIndex",
        "SELECT corgipile_predict('sparse', ARRAY[1, NULL], ARRAY[1, 2])",
        "22004",
        "index number 2 is NULL",
        "The model has no value to replace it: use coalesce(), or train with \"nulls\": \"impute\".",
    ),
    Case(
        "PredictError::Null",
        "SELECT corgipile_predict('sparse', ARRAY[1, 2], ARRAY[1, NULL])",
        "22004",
        r#"feature 2 of model 2 "sparse" is NULL"#,
        "The model has no value to replace it: use coalesce(), or train with \"nulls\": \"impute\".",
    ),
    Case(
        "PredictError::IndexBelow",
        "SELECT corgipile_predict('sparse', ARRAY[0], ARRAY[1])",
        "2202E",
        "index 0 is less than 1, the model's first index",
        "Indices count from the same base as in training; see option index_base.",
    ),
    Case(
        "PredictError::IndexBeyond",
        "SELECT corgipile_predict('sparse', ARRAY[4], ARRAY[1])",
        "2202E",
        r#"index 4 is beyond 3, the last of model 2 "sparse""#,
        "With handle_unknown => 'ignore' in the call, or in the options of the training, it counts as 0.",
    ),
    Case(
        "PredictError::IndexTwice",
        "SELECT corgipile_predict('sparse', ARRAY[2, 2], ARRAY[1, 1])",
        "2202E",
        "index 2 is given twice",
        "An index may appear only once in a row: add up its values.",
    ),
    Case(
        "PredictError::NeedsRow",
        "SELECT corgipile_predict('mixed', ARRAY[1, 2])",
        "0A000",
        r#"model 3 "mixed" has categories among its features, which an array cannot hold"#,
        "Give a row with the columns a, level, b, as in SELECT corgipile_predict('mixed', t) FROM t, or values in this order: \
         corgipile_predict('mixed', a, level, b).",
    ),
    Case(
        "PredictError::NeedsIndices",
        "SELECT corgipile_predict('sparse', 1, 2)",
        "0A000",
        r#"model 2 "sparse" was trained on indices and values, and 2 plain values are given"#,
        "Give an array of indices and one of values: corgipile_predict('sparse', k, v).",
    ),
    Case(
        "PredictError::NoColumn",
        "SELECT corgipile_predict('mixed', r) FROM (SELECT 1 AS a, 2 AS b) r --)",
        "42703",
        r#"the given row has no column "level", which is a feature of model 3 "mixed""#,
        "The row has the columns a, b. The model's features, in order: a, level, b.",
    ),
    Case(
        "PredictError::NoColumn",
        "SELECT corgipile_predict('mixed', ROW(1, 'low', 2))",
        "42703",
        r#"the given row has no column "a", which is a feature of model 3 "mixed""#,
        "ROW() does not name its columns; give a table's row or a subquery's, as in SELECT corgipile_predict('mixed', t) FROM t; \
         corgipile_predict() takes values in this order, too: corgipile_predict('mixed', a, level, b).",
    ),
    Case(
        "PredictError::ColumnTwice",
        "SELECT corgipile_predict('mixed', r) FROM (SELECT 1 AS a, 2 AS a, 3 AS b, 'low' AS level) r --)",
        "42702",
        r#"the given row has more than one column "a""#,
        "Give the columns of the row different names.",
    ),
    Case(
        "PredictError::Category",
        "SELECT corgipile_predict('mixed', r) FROM (SELECT 1 AS a, 3 AS b, 'tall' AS level) r --)",
        "22023",
        r#"category "tall" of column "level" is unknown to model 3 "mixed""#,
        "With handle_unknown => 'ignore' in the call, or in the options of the training, it counts as 0.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT corgipile_predict('mixed', r) FROM (SELECT now() AS a, 3 AS b, 'low' AS level) r --)",
        "42804",
        r#"feature column "a" has type timestamp with time zone"#,
        "The model was trained on numbers or booleans in this column.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT * FROM corgipile_evaluate('mixed', 'SELECT 1::float8 AS label, ''x''::text AS a, ''low''::text AS level, 1 AS b')",
        "42804",
        r#"feature column "a" has type text"#,
        "The model was trained on numbers in this column.",
    ),
    Case(
        "PredictError::EvaluateTypes",
        "SELECT * FROM corgipile_evaluate('sparse', 'SELECT label, a AS k, b AS v FROM t')",
        "42804",
        r#"the types of the source's feature columns differ from those that model 2 "sparse" was trained on"#,
        "It was trained on indices in column k and values in column v.",
    ),
    Case(
        "SourceError::ColumnType",
        "SELECT * FROM corgipile_evaluate('mixed', 'SELECT a AS label, a, 1 AS level, b FROM t')",
        "42804",
        r#"feature column "level" has type integer"#,
        "The model was trained on categories in this column.",
    ),
    Case(
        "PredictError::TextLabels",
        "SELECT corgipile_predict('softmax', ARRAY[1, 2, 3])",
        "0A000",
        r#"model 4 "softmax" predicts text labels, which are not numbers"#,
        "Use corgipile_predict_label().",
    ),
    Case(
        "PredictError::NoLabels",
        "SELECT corgipile_predict_label('mixed', r) FROM (SELECT 1 AS a, 3 AS b, 'low' AS level) r",
        "0A000",
        r#"model 3 "mixed" is a linear regression, which has no labels"#,
        "Use corgipile_predict(), which returns the value.",
    ),
    Case(
        "PredictError::NoLabels",
        "SELECT corgipile_predict_set('mixed', r) FROM (SELECT 1 AS a, 3 AS b, 'low' AS level) r",
        "0A000",
        r#"model 3 "mixed" is a linear regression, which has no labels"#,
        "Use corgipile_predict(), which returns the value.",
    ),
    Case(
        "PredictError::NoIntervals",
        "SELECT corgipile_predict_interval('dense', ARRAY[1, 2, 3])",
        "0A000",
        r#"model 1 "dense" predicts labels, which have no intervals"#,
        "Use corgipile_predict_set(), which returns the possible labels.",
    ),
    Case(
        "PredictError::NotCalibrated",
        "SELECT corgipile_predict_set('dense', ARRAY[1, 2, 3])",
        "55000",
        r#"model 1 "dense" is not calibrated"#,
        "As its owner, call corgipile_calibrate('dense', ...) with rows that it was not trained on.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT corgipile_predict_set('dense', ARRAY[1, 2, 3], coverage => 90)",
        "22023",
        r#"invalid value for argument "coverage": 90 is not above 0 and below 1"#,
        "With 0.9, intervals and sets contain the true value in nine of ten cases.",
    ),
    Case(
        "TrainingError::NoRows",
        "SELECT corgipile_calibrate('dense', 'SELECT 1 AS label, ARRAY[1, 2, 3] AS x WHERE false')",
        "22000",
        "there are no rows to calibrate with",
        "Check the source: its table and its conditions.",
    ),
    Case(
        "PredictError::DecisionOutOfRange",
        "SELECT corgipile_calibrate('mixed', 'SELECT 1::float8 AS label, 3e38::real AS a, ''low''::text AS level, -3e38::real AS b')",
        "22003",
        r#"a decision of model 3 "mixed" for row number 1 of those evaluated is out of range for type real"#,
        "The features are too large for the model's weights; correct such rows, or leave them out.",
    ),
    Case(
        "ArgumentError::NullArgument",
        "SELECT corgipile_calibrate('dense', NULL::text)",
        "22004",
        r#"argument "source" must not be null"#,
        "Give a value that is not NULL.",
    ),
    Case(
        "PredictError::NoProfile",
        "SELECT * FROM corgipile_drift('dense', 'SELECT ARRAY[1, 2, 3] AS x')",
        "55000",
        r#"model 1 "dense" has no profile of its features to compare with"#,
        "As its owner, call corgipile_profile('dense', ...) with the rows that it was trained on.",
    ),
    Case(
        "PredictError::NotProfiled",
        "SELECT corgipile_profile('sparse', 'SELECT ARRAY[1, 2, 3] AS k, ARRAY[1, 2, 3] AS v')",
        "0A000",
        r#"model 2 "sparse" has sparse features, which have no profile"#,
        "Compare such features by queries, with avg(), stddev() and GROUP BY.",
    ),
    Case(
        "TrainingError::NotOnCompressed",
        "SELECT corgipile_profile('dense', 'SELECT ARRAY[1] AS label, corgipile_toc(ARRAY[[1, 2, 3]]::float8[]) AS x')",
        "0A000",
        "the comparison of features cannot be used with a compressed source",
        "Each of its rows is a whole mini-batch. Train on the table that was compressed.",
    ),
    Case(
        "ArgumentError::NullArgument",
        "SELECT * FROM corgipile_drift(NULL::text, 't'::text)",
        "22004",
        r#"argument "name" must not be null"#,
        "Give a value that is not NULL.",
    ),
    Case(
        "PredictError::NoProbabilities",
        "SELECT corgipile_predict_proba('mixed', r) FROM (SELECT 1 AS a, 3 AS b, 'low' AS level) r",
        "0A000",
        r#"model 3 "mixed" is a linear regression, which has no probabilities"#,
        "Use corgipile_predict(), or train model => 'logistic', 'softmax' or 'mlp'.",
    ),
    Case(
        "PredictError::NoProbabilities",
        "SELECT corgipile_predict_proba('svm', ARRAY[1, 2, 3])",
        "0A000",
        r#"model 5 "svm" is an SVM, which has no probabilities"#,
        "Train it with \"probability\": true, or train model => 'logistic', 'softmax' or 'mlp'.",
    ),
    Case(
        "ArgumentError::NullArgument",
        "SELECT * FROM corgipile_evaluate(NULL::bigint, 't')",
        "22004",
        r#"argument "model_id" must not be null"#,
        "Give a value that is not NULL.",
    ),
    Case(
        "PredictError::NoStandardErrors",
        "SELECT * FROM corgipile_coefficients('svm', 't')",
        "0A000",
        r#"model 5 "svm" has no standard errors: it is an SVM"#,
        "Models logistic, linear and poisson have standard errors if they have at most 2000 features and were trained without class_weight and l1.",
    ),
    Case(
        "PredictError::NoContributions",
        "SELECT e.* FROM t, corgipile_explain('network', t) e",
        "0A000",
        r#"model 6 "network" is a network, whose decisions are not a sum over its features"#,
        "corgipile_importance() shows which of its features matter.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT * FROM corgipile_coefficients('dense', 't', 95)",
        "22023",
        "invalid value for argument \"confidence_level\": 95 is not between 0 and 1",
        "",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT * FROM corgipile_importance('dense', 't', repeats => 0)",
        "22023",
        "invalid value for argument \"repeats\": 0 is not between 1 and 10000",
        "",
    ),
    Case(
        "ArgumentError::NullArgument",
        "SELECT * FROM corgipile_importance(NULL::text, 't')",
        "22004",
        r#"argument "name" must not be null"#,
        "Give a value that is not NULL.",
    ),
];

#[test]
fn errors_of_predictions_name_model_and_feature() {
    let mut db = database(&[]);
    db.run(&made_here());
    let svm = Stored { model: "svm", ..DENSE };
    for (name, model) in [("dense", DENSE), ("sparse", SPARSE), ("mixed", MIXED), ("softmax", SOFTMAX), ("svm", svm)] {
        model.store(&mut db, name);
    }
    db.run("SELECT FROM corgipile_train('t', 'mlp', features => '{a,b}', max_epochs => 1, name => 'network')");
    check(&mut db, CASES, &[]);
}
