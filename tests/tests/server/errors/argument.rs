//! Arguments and options that cannot be.

use super::{Case, check, database};

/// The errors.
pub const CASES: &[Case] = &[
    Case(
        "ArgumentError::NullArgument",
        "SELECT corgipile_train(NULL)",
        "22004",
        r#"argument "source" must not be null"#,
        "Give a value that is not NULL.",
    ),
    Case(
        "ArgumentError::Unknown",
        "SELECT corgipile_train('t', 'forest')",
        "22023",
        r#"unknown model "forest""#,
        "If it is the column to predict, use label => 'forest'. Known models are: logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp, mlp_regression, logistic_regression, ...",
    ),
    Case(
        "ArgumentError::Unknown",
        "SELECT corgipile_train('t', shuffle => 'riffle')",
        "22023",
        r#"unknown shuffle strategy "riffle""#,
        "Known shuffle strategies are: no_shuffle, shuffle_once, epoch_shuffle, sliding_window, mrs, block_only, corgipile, \
         block_only_stratified, corgipile_simple, corgipile_one_buffer.",
    ),
    Case(
        "ArgumentError::NotShared",
        "SELECT corgipile_train('t', shuffle => 'no_shuffle', shared_scan => true)",
        "0A000",
        "shuffle strategy no_shuffle cannot read together with other sessions",
        "Use shuffle => 'corgipile' or 'block_only', or leave shared_scan out.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT corgipile_train('t', max_epochs => 0)",
        "22023",
        r#"invalid value for argument "max_epochs": 0 is not between 1 and 1000000"#,
        "",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        r#"SELECT corgipile_train('t', solver => 'newton', options => '{"batch_size": 3}')"#,
        "22023",
        r#"invalid value for argument "batch_size": it cannot be combined with solver "newton""#,
        "Leave one of the two out: Newton's method chooses its own steps.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        r#"SELECT corgipile_search('t', 'quantile', label => 'a', features => '{b}', grid => '{"quantile": [0.1, 0.9]}')"#,
        "22023",
        r#"invalid value for argument "grid": its points have different losses, which cannot be compared"#,
        "Run a search for each quantile or loss_epsilon.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT corgipile_search('t', features => '{a,b}', folds_by_time => 'a')",
        "22023",
        r#"invalid value for argument "folds_by_time": column "a" is a feature"#,
        "Name the feature columns in features, without this one.",
    ),
    Case(
        "ArgumentError::InvalidArgument",
        "SELECT corgipile_train('t', buffer_size => 'large')",
        "22023",
        r#"invalid value for argument "buffer_size": "large" is not a buffer size"#,
        "Use 'auto', a percentage of the table such as '10%' or a size such as '64MB'. Valid units are %, B, kB, MB, GB and TB.",
    ),
    Case(
        "ArgumentError::InvalidOption",
        r#"SELECT corgipile_train('t', options => '{"l2": -1}')"#,
        "22023",
        r#"option "l2" must be finite and at least 0, not -1"#,
        "",
    ),
    Case(
        "ArgumentError::Unknown",
        r#"SELECT corgipile_train('t', options => '{"l3": 1}')"#,
        "22023",
        r#"unknown option "l3""#,
        "Known options are: a, activation, ...",
    ),
    Case(
        "ArgumentError::Unknown",
        "SELECT corgipile_train('t', 'softmx')",
        "22023",
        r#"unknown model "softmx""#,
        "Did you mean \"softmax\"? Known models are: logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp, mlp_regression, logistic_regression, ...",
    ),
    Case(
        "ArgumentError::UnknownWord",
        r#"SELECT corgipile_train('t', options => '{"schedule": "constnat"}')"#,
        "22023",
        r#"option "schedule" must be "exponential", "constant", "inverse_scaling" or "theorem1""#,
        "Did you mean \"constant\"?",
    ),
    Case(
        "ArgumentError::UnknownWord",
        r#"SELECT corgipile_train('t', options => '{"cache": "never"}')"#,
        "22023",
        r#"option "cache" must be "auto", "on" or "off""#,
        "",
    ),
    Case(
        "ArgumentError::GivenTwice",
        r#"SELECT corgipile_train('t', l2 => 0.1, options => '{"l2": 0.2}')"#,
        "22023",
        r#""l2" is given as an argument and in options, with different values"#,
        "Give it only once.",
    ),
    Case(
        "ArgumentError::OptionsNotAnObject",
        "SELECT corgipile_train('t', options => '[]')",
        "22023",
        "options must be a JSON object",
        "Write them as '{\"key\": value, ...}'; corgipile_options() lists the keys.",
    ),
    Case(
        "Error::NotARowType",
        "SELECT * FROM corgipile_shuffle(NULL::int)",
        "42804",
        "corgipile_shuffle() needs a table's row type",
        "Call it as SELECT * FROM corgipile_shuffle(NULL::my_table).",
    ),
    Case(
        "Error::NotARowType",
        "SELECT * FROM corgipile_shuffle(NULL::record) AS x(a int)",
        "42804",
        "corgipile_shuffle() needs a table's row type",
        "Call it as SELECT * FROM corgipile_shuffle(NULL::my_table).",
    ),
];

#[test]
fn errors_of_arguments_name_them() {
    check(&mut database(&[]), CASES, &[]);
}
