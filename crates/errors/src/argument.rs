//! What is wrong with the arguments of a call.

use super::words::{one_of, singular};
use pg::call::arguments::Unread;
use pg::errors::{Code, Report, did_you_mean};

/// What is wrong with the arguments of a call.
#[derive(Debug, thiserror::Error, Report)]
pub enum ArgumentError {
    #[error("argument \"{0}\" must not be null")]
    #[report(ERRCODE_NULL_VALUE_NOT_ALLOWED => "Give a value that is not NULL.")]
    NullArgument(&'static str),
    #[error("unknown {} \"{given}\"", singular(what))]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{}Known {what} are: {known}.", meant(what, given, known))]
    /// `what` in the plural
    Unknown { what: &'static str, given: String, known: String },
    #[error("invalid value for argument \"{argument}\": {reason}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => hint.clone())]
    InvalidArgument { argument: &'static str, reason: String, hint: Option<String> },
    #[error("option \"{key}\" {reason}")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE)]
    InvalidOption { key: String, reason: String },
    #[error("option \"{key}\" must be {}", one_of(known))]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => did_you_mean(given, known.iter().copied()))]
    /// none of the words that it may be
    UnknownWord { key: &'static str, given: String, known: Vec<&'static str> },
    #[error("\"{0}\" is given as an argument and in options, with different values")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "Give it once.")]
    GivenTwice(String),
    #[error("options must be a JSON object")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "Write them as '{{\"key\": value, ...}}'; corgipile_options() lists the keys.")]
    OptionsNotAnObject,
    #[error("shuffle strategy {0} cannot read together with other sessions")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile' or 'block_only', or leave share out.")]
    NotShared(&'static str),
}

impl ArgumentError {
    /// The error about an argument whose jsonb cannot be read.
    pub fn unread(argument: &'static str, unread: Unread) -> ArgumentError {
        let Unread { key, reason } = unread;
        match key {
            Some(key) if argument == "options" => ArgumentError::InvalidOption { key, reason: reason.into() },
            Some(key) => ArgumentError::InvalidArgument { argument, reason: format!("\"{key}\" {reason}"), hint: None },
            None => ArgumentError::InvalidArgument { argument, reason: format!("it {reason}"), hint: None },
        }
    }
}

/// Options that are called otherwise elsewhere.
const ELSEWHERE: [(&str, &[&str]); 8] = [
    (
        "max_epochs",
        &["epochs", "n_epochs", "num_epochs", "epoch", "iterations", "max_iter", "max_iterations", "n_iter"],
    ),
    ("learning_rate", &["lr", "eta", "eta0", "step_size", "stepsize", "learn_rate", "learning_rate_init"]),
    ("label", &["target", "y", "dependent", "input_label_cols", "response"]),
    ("l2", &["alpha", "lambda", "weight_decay", "l2_reg", "regularization"]),
    ("batch_size", &["minibatch_size", "mini_batch_size"]),
    ("seed", &["random_state", "random_seed"]),
    ("hidden_layers", &["hidden_layer_sizes", "hidden_units", "layers"]),
    ("validation_fraction", &["validation_split", "test_size", "eval_fraction"]),
];

/// Models that are called otherwise elsewhere, and what to type here.
const MODELS_ELSEWHERE: [(&str, &[&str]); 9] = [
    (
        "model => 'linear', options => '{\"l2\": 0.001}'",
        &["ridge", "ridge_regression", "ridge_regressor", "ridge_cv", "ridgecv", "tikhonov"],
    ),
    ("model => 'linear', options => '{\"l1\": 0.001}'", &["lasso", "lasso_regression", "lasso_cv", "lassocv"]),
    (
        "model => 'linear', options => '{\"l1\": 0.001, \"l2\": 0.001}'",
        &["elastic_net", "elasticnet", "elastic_net_regression", "elasticnetcv"],
    ),
    (
        "model => 'linear'",
        &[
            "ols",
            "lm",
            "linreg",
            "linear_reg",
            "least_squares",
            "ordinary_least_squares",
            "sgd_regressor",
            "sgdregressor",
        ],
    ),
    ("model => 'logistic'", &["logit", "logreg", "logistic_reg", "binary", "sgd_classifier", "sgdclassifier"]),
    ("model => 'softmax'", &["multinomial", "multinom", "maxent", "multiclass"]),
    ("model => 'svm'", &["svc", "linear_svc", "linearsvc", "hinge"]),
    ("model => 'epsilon_insensitive'", &["svr", "linear_svr", "linearsvr"]),
    (
        "model => 'mlp'",
        &["nn", "dnn", "ann", "dnn_classifier", "dnn_regressor", "mlp_classifier", "mlpclassifier", "deep_learning"],
    ),
];

/// What was probably meant by a name that is not known, as a sentence before others.
fn meant(what: &str, given: &str, known: &str) -> String {
    let elsewhere = meant_elsewhere(what, given).filter(|meant| known.split(", ").any(|known| known == *meant));
    let elsewhere = elsewhere.map(|meant| format!("Did you mean \"{meant}\"?"));
    let meant = elsewhere.or_else(|| did_you_mean(given, known.split(", ")));
    let meant = if what == "models" { Some(model_meant(given, meant)) } else { meant };
    meant.map_or_else(String::new, |meant| meant + " ")
}

/// What to type for a model that is not known: what it is called here, or the name that it resembles. The second
/// argument is taken for the model, so that it may have been meant for the label.
fn model_meant(given: &str, resembling: Option<String>) -> String {
    let name = given.to_lowercase().replace([' ', '-'], "_");
    match MODELS_ELSEWHERE.iter().find(|(_, names)| names.contains(&name.as_str())) {
        Some((here, _)) => format!("Say {here}."),
        None => resembling.unwrap_or_else(|| {
            format!("If it is the column to predict, say label => '{}'.", given.replace('\'', "''"))
        }),
    }
}

/// The option that others call so.
fn meant_elsewhere(what: &str, given: &str) -> Option<&'static str> {
    let given = given.to_lowercase();
    let is_called = |(_, names): &&(&str, &[&str])| names.contains(&given.as_str());
    ELSEWHERE.iter().find(is_called).filter(|_| what == "options").map(|(option, _)| *option)
}
