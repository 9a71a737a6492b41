//! What is wrong with the arguments of a call.

use super::words::{one_of, singular};
use pg::call::arguments::Unread;
use pg::errors::{Code, Report, did_you_mean};

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
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "Give it only once.")]
    GivenTwice(String),
    #[error("options must be a JSON object")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE =>
        "Write them as '{{\"key\": value, ...}}'; corgipile_options() lists the keys.")]
    OptionsNotAnObject,
    #[error("shuffle strategy {0} cannot read together with other sessions")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use shuffle => 'corgipile' or 'block_only', or leave shared_scan out.")]
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

/// Arguments and options by other names: those of scikit-learn, PyTorch, XGBoost, BigQuery ML and MADlib, and those
/// that they had here before the first release.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "max_epochs",
        &[
            "epochs",
            "n_epochs",
            "num_epochs",
            "num_train_epochs",
            "epoch",
            "iterations",
            "max_iter",
            "max_iterations",
            "n_iter",
        ],
    ),
    (
        "learning_rate",
        &["lr", "eta", "eta0", "step_size", "stepsize", "learn_rate", "learning_rate_init", "initial_learn_rate"],
    ),
    ("schedule", &["lr_schedule", "scheduler", "learning_rate_schedule", "learn_rate_strategy"]),
    ("power", &["power_t"]),
    ("decay", &["gamma", "lr_decay", "learning_rate_decay"]),
    (
        "label",
        &[
            "target",
            "y",
            "labels",
            "dependent",
            "dependent_varname",
            "input_label_cols",
            "label_column",
            "outcome",
            "response",
        ],
    ),
    ("features", &["x", "columns", "feature_columns", "inputs", "independent", "independent_varname", "predictors"]),
    ("weight", &["sample_weight", "sample_weights", "weights", "weight_column", "weight_col"]),
    ("class_weight", &["class_weights", "auto_class_weights"]),
    ("l1", &["l1_reg", "l1_penalty", "l1_regularization", "reg_alpha"]),
    (
        "l2",
        &[
            "alpha",
            "c",
            "lambda",
            "weight_decay",
            "l2_reg",
            "l2_penalty",
            "l2_regularization",
            "reg_lambda",
            "regularization",
        ],
    ),
    ("batch_size", &["batch", "minibatch_size", "mini_batch_size"]),
    ("seed", &["random_state", "random_seed"]),
    ("hidden_layer_sizes", &["hidden_layers", "hidden_units", "hidden", "layers"]),
    ("activation", &["activation_fn"]),
    ("objective", &["task", "problem_type"]),
    ("loss", &["criterion"]),
    ("loss_epsilon", &["delta", "huber_epsilon"]),
    ("quantile", &["tau"]),
    ("optimizer", &["optim"]),
    ("epsilon", &["eps"]),
    ("averaging", &["average"]),
    ("validation_fraction", &["validation_split", "test_size", "eval_fraction", "data_split_eval_fraction"]),
    ("validation_column", &["data_split_col"]),
    ("patience", &["n_iter_no_change", "early_stopping", "early_stopping_rounds"]),
    ("tolerance", &["tol", "min_delta", "min_rel_progress"]),
    ("keep", &["restore_best_weights", "save_best"]),
    ("nulls", &["missing_values", "missing", "na_action", "imputation"]),
    ("handle_unknown", &["unseen"]),
    ("standardize", &["normalize", "normalization", "standardization", "scale", "scaler"]),
    ("transform", &["log_transform", "power_transform"]),
    ("winsorize", &["clip"]),
    ("dimensions", &["n_features", "num_features", "dim"]),
    ("index_base", &["zero_based"]),
    ("hash", &["hash_buckets"]),
    ("statistics", &["prepare"]),
    ("recompute_statistics", &["remeasure"]),
    ("grid", &["param_grid", "param_distributions", "hparams"]),
    ("group_by", &["groups", "grouping_cols", "partition_by"]),
    ("name", &["model_name"]),
    ("warm_start", &["init", "init_model", "resume"]),
    ("shuffle", &["strategy", "order"]),
    ("sample", &["subsample"]),
    ("workers", &["n_jobs", "num_workers", "processes", "threads"]),
    ("prefetch", &["loader"]),
    ("servers", &["nodes"]),
    ("shared_scan", &["share"]),
    ("verbose", &["notice", "verbosity", "progress"]),
    ("probability", &["probabilities"]),
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
pub fn meant(what: &str, given: &str, known: &str) -> String {
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
        Some((here, _)) => format!("Use {here}."),
        None => resembling.unwrap_or_else(|| {
            format!("If it is the column to predict, use label => '{}'.", given.replace('\'', "''"))
        }),
    }
}

/// The option that others call so.
fn meant_elsewhere(what: &str, given: &str) -> Option<&'static str> {
    let given = given.to_lowercase();
    let is_called = |(_, names): &&(&str, &[&str])| names.contains(&given.as_str());
    ELSEWHERE.iter().find(is_called).filter(|_| what == "options").map(|(option, _)| *option)
}
