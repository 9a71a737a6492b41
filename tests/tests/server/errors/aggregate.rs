//! What the aggregate refuses.

use super::{Case, check, database};

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "AggregateError::MalformedState",
        "SELECT 'sgd1:AAAA'::corgipile.sgd_state",
        "22P02",
        "invalid value for type corgipile.sgd_state: it is too short",
        "Pass a state returned by corgipile_sgd_init() or corgipile_sgd_agg().",
    ),
    Case(
        "Error::StateTooLarge",
        "SELECT corgipile_sgd_init('svm', 2147483647)",
        "54000",
        "a state of 17179869564 bytes exceeds PostgreSQL's limit for a value",
        "Use fewer features, or corgipile_train().",
    ),
    Case(
        "Error::StateTooLarge",
        r#"SELECT corgipile_sgd_init('svm', 130000000, options => '{"optimizer": "adam"}')"#,
        "54000",
        "a state of 2600000708 bytes exceeds PostgreSQL's limit for a value",
        "Use fewer features, or corgipile_train().",
    ),
    Case(
        "AggregateError::UnfinishedEpoch",
        "SELECT corgipile_sgd_agg(corgipile.sgd_transition(NULL, corgipile_sgd_init('svm', 2), 1, ARRAY[1, 2]), 1, ARRAY[1, 2])",
        "22023",
        "the state belongs to an epoch that has not ended",
        "Pass a state returned by corgipile_sgd_init() or corgipile_sgd_agg(); corgipile_sgd_agg() ends the epoch.",
    ),
    Case(
        "AggregateError::NoEpoch",
        "SELECT corgipile.sgd_final(corgipile_sgd_init('svm', 2))",
        "22023",
        "the state does not belong to an epoch that has begun",
        "Pass a state returned by corgipile_sgd_init() or corgipile_sgd_agg(); corgipile_sgd_agg() ends the epoch.",
    ),
    Case(
        "AggregateError::OtherState",
        "SELECT corgipile.sgd_combine(corgipile.sgd_transition(NULL, corgipile_sgd_init('svm', 2), 1, ARRAY[1, 2]), corgipile.sgd_transition(NULL, corgipile_sgd_init('logistic', 2), 1, ARRAY[1, 2]))",
        "22023",
        "the states belong to different trainings",
        "Combine only states of one epoch that began with the same state.",
    ),
    Case(
        "AggregateError::StateKind",
        "SELECT corgipile_sgd_agg(s, 1, ARRAY[1, 2, 3]) FROM corgipile_sgd_init('svm', 3, sparse => true) s",
        "22023",
        "the state is for sparse features",
        "Pass indices and values, or create the state with sparse => false.",
    ),
    Case(
        "AggregateError::StateKind",
        "SELECT corgipile_sgd_agg(s, 1, ARRAY[1], ARRAY[2]) FROM corgipile_sgd_init('svm', 2) s",
        "22023",
        "the state is for dense features",
        "Pass one array, or create the state with sparse => true.",
    ),
    Case(
        "AggregateError::FeatureType",
        "SELECT corgipile_sgd_agg(s, 1, ARRAY['a', 'b']) FROM corgipile_sgd_init('svm', 2) s",
        "42804",
        "features must be arrays of numbers, not of type text[]",
        "Pass dense features as an array of numbers, sparse features as an array of integers and one of numbers.",
    ),
    Case(
        "AggregateError::FeatureType",
        "SELECT corgipile_sgd_agg(s, 1, ARRAY[1.5], ARRAY[1]) FROM corgipile_sgd_init('svm', 3, sparse => true) s",
        "42804",
        "features must be arrays of numbers, not of type numeric[] and integer[]",
        "Pass dense features as an array of numbers, sparse features as an array of integers and one of numbers.",
    ),
    Case(
        "AggregateError::NotByAggregate",
        "SELECT * FROM corgipile_train_uda('t', 'mlp')",
        "0A000",
        "model mlp cannot be used with the aggregate",
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        r#"SELECT * FROM corgipile_train_uda('words', features => '{a}', options => '{"weight": "w"}')"#,
        "0A000",
        "option weight cannot be used with the aggregate",
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        "SELECT * FROM corgipile_train_uda('words', features => '{a,word}')",
        "0A000",
        "features of text, enums or words cannot be used with the aggregate",
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        r#"SELECT * FROM corgipile_train_uda('t', options => '{"class_weight": "balanced"}')"#,
        "0A000",
        "option class_weight cannot be used with the aggregate",
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        r#"SELECT * FROM corgipile_train_uda('t', options => '{"schedule": "theorem1", "mu": 1}')"#,
        "0A000",
        r#"schedule "theorem1" cannot be used with the aggregate"#,
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        "SELECT * FROM corgipile_train_uda('packed')",
        "0A000",
        "a compressed source cannot be used with the aggregate",
        "Use corgipile_train().",
    ),
    Case(
        "AggregateError::NotByAggregate",
        r#"SELECT corgipile_sgd_init('svm', 2, options => '{"schedule": "theorem1", "mu": 1}')"#,
        "0A000",
        r#"schedule "theorem1" cannot be used with the aggregate"#,
        "Use corgipile_train().",
    ),
    Case(
        "TrainingError::Diverged",
        "SELECT * FROM corgipile_train_uda('t', learning_rate => 1e30, model => 'linear', label => 'a', features => '{b,c}')",
        "22003",
        "training diverged in epoch 1: the loss or a weight is no longer finite",
        r#"Try a smaller learning_rate, or options => '{"standardize": true}'; rescale a label with large values."#,
    ),
    Case(
        "RowFault::IndexBeyond",
        "SELECT corgipile_sgd_agg(s, 1, ARRAY[1, 4], ARRAY[2, 3]) FROM corgipile_sgd_init('svm', 3, sparse => true) s",
        "2202E",
        r#"index 4 of column "indices" is above 3 in row number 1 of the source"#,
        "Raise dimensions, or leave it out.",
    ),
];

const SETUP: &[&str] = &[
    "CREATE TABLE words AS SELECT label, a, 'x'::text AS word, b AS w FROM t",
    "SELECT corgipile_compress('t', 'packed', features => '{a,b}')",
];

#[test]
fn errors_of_the_aggregate_say_what_it_takes() {
    check(&mut database(SETUP), CASES, &[]);
}
