//! The columns of the matrix: what a call may ask for, a line each.

use super::call::Call;

/// Name and arguments. `+features` adds columns to the default ones. Two features whose arguments contradict each other
/// are no pair.
const FEATURES: &[(&str, &str)] = &[
    // models
    ("logistic", r#"{"model": "logistic", "label": "kind"}"#),
    ("svm", r#"{"model": "svm", "label": "kind", "loss": "hinge"}"#),
    ("svm of three", r#"{"model": "svm", "label": "triple"}"#),
    ("squared hinge", r#"{"model": "svm", "label": "kind", "loss": "squared_hinge"}"#),
    ("linear", r#"{"model": "linear", "label": "number"}"#),
    ("softmax", r#"{"model": "softmax", "label": "triple"}"#),
    ("poisson", r#"{"model": "poisson", "label": "count"}"#),
    ("quantile", r#"{"model": "quantile", "label": "number"}"#),
    ("epsilon_insensitive", r#"{"model": "epsilon_insensitive", "label": "number", "loss_epsilon": 0.1}"#),
    ("huber", r#"{"model": "huber", "label": "number"}"#),
    ("mlp", r#"{"model": "mlp", "label": "kind", "hidden_layer_sizes": [4]}"#),
    ("mlp of three", r#"{"model": "mlp", "label": "triple", "hidden_layer_sizes": [4]}"#),
    ("mlp_regression", r#"{"model": "mlp_regression", "label": "number", "hidden_layer_sizes": [4]}"#),
    // solvers, optimizers, rates
    ("newton", r#"{"solver": "newton"}"#),
    ("sgd", r#"{"solver": "sgd", "optimizer": "sgd"}"#),
    ("momentum", r#"{"optimizer": "momentum"}"#),
    ("adam", r#"{"optimizer": "adam"}"#),
    ("a given rate", r#"{"learning_rate": 0.02}"#),
    ("constant", r#"{"schedule": "constant"}"#),
    ("inverse_scaling", r#"{"schedule": "inverse_scaling"}"#),
    ("theorem1", r#"{"schedule": "theorem1", "mu": 0.1}"#),
    ("mini-batches", r#"{"batch_size": 16}"#),
    ("averaging", r#"{"averaging": true}"#),
    ("no averaging", r#"{"averaging": false}"#),
    ("bounded steps", r#"{"bounded_steps": true}"#),
    ("unbounded steps", r#"{"bounded_steps": false}"#),
    ("l1", r#"{"l1": 0.02}"#),
    ("l2", r#"{"l2": 0.05}"#),
    // values
    ("standardized", r#"{"standardize": true}"#),
    ("not standardized", r#"{"standardize": false}"#),
    ("logarithms", r#"{"transform": "log"}"#),
    ("clip", r#"{"winsorize": 1.5}"#),
    ("impute", r#"{"nulls": "impute", "+features": ["holes"]}"#),
    ("skip", r#"{"nulls": "skip", "+features": ["holes"]}"#),
    ("categories", r#"{"+features": ["site"]}"#),
    ("hash", r#"{"hash": {"buckets": 16, "columns": ["word"]}, "+features": ["word"]}"#),
    ("date parts", r#"{"date_parts": true, "+features": ["day"]}"#),
    ("array", r#"{"features": ["x"]}"#),
    ("sparse", r#"{"features": ["k", "v"]}"#),
    ("compressed", r#"{"source": "packed", "features": ["x"]}"#),
    ("query", r#"{"source": "query"}"#),
    // weights
    ("weight", r#"{"weight": "w"}"#),
    ("class_weight", r#"{"label": "kind", "class_weight": {"yes": 3}}"#),
    ("balanced", r#"{"class_weight": "balanced"}"#),
    // validation
    ("validation_fraction", r#"{"validation_fraction": 0.25}"#),
    ("validation_column", r#"{"validation_column": "held"}"#),
    ("keep best", r#"{"keep": "best"}"#),
    ("patience", r#"{"patience": 2, "tolerance": 0.02}"#),
    ("probability", r#"{"model": "svm", "probability": true}"#),
    // order and processes
    ("no_shuffle", r#"{"shuffle": "no_shuffle"}"#),
    ("shuffle_once", r#"{"shuffle": "shuffle_once"}"#),
    ("epoch_shuffle", r#"{"shuffle": "epoch_shuffle"}"#),
    ("sliding_window", r#"{"shuffle": "sliding_window"}"#),
    ("mrs", r#"{"shuffle": "mrs"}"#),
    ("block_only", r#"{"shuffle": "block_only"}"#),
    ("small buffer", r#"{"buffer_size": "20%"}"#),
    ("sample", r#"{"sample": 0.6}"#),
    ("worker", r#"{"prefetch": "on"}"#),
    ("workers", r#"{"workers": 2}"#),
    ("cache", r#"{"cache": "on"}"#),
    // several models
    ("groups", r#"{"group_by": "site"}"#),
    ("grid", r#"{"grid": [{"l2": 0.01}, {"l2": 0.2, "max_epochs": 3}]}"#),
];

/// Two features that a call has, or one twice, and the call.
pub struct Pair {
    /// Where they are in the list.
    pub places: [usize; 2],
    pub names: [&'static str; 2],
    pub call: Call,
}

/// All pairs that do not contradict each other, and each feature alone.
pub fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, (first, arguments)) in FEATURES.iter().enumerate() {
        let call = Call::new().with(arguments).expect("a feature does not contradict the defaults");
        for (j, (second, arguments)) in FEATURES.iter().enumerate().skip(i) {
            if let Some(call) = call.with(arguments) {
                pairs.push(Pair { places: [i, j], names: [first, second], call });
            }
        }
    }
    pairs
}

/// How many features there are.
pub const COUNT: usize = FEATURES.len();
