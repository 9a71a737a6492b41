//! What is wrong with a state of the aggregate, or what it is given.

use pg::errors::{Code, Report};
use std::borrow::Cow;

#[derive(Debug, thiserror::Error, Report)]
pub enum AggregateError {
    #[error("invalid value for type corgipile.sgd_state: {0}")]
    #[report(ERRCODE_INVALID_TEXT_REPRESENTATION => "Pass a state returned by corgipile_sgd_init() or corgipile_sgd_agg().")]
    MalformedState(String),
    #[error("corgipile_train_uda() cannot train on a distributed table")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED =>
        "Call corgipile_train(), with servers => 'auto' to train where the rows are, or \
         corgipile_sgd_agg_typed(), which Citus runs on each node.")]
    Distributed,
    #[error("the state belongs to an epoch that has not ended")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{STATES}")]
    UnfinishedEpoch,
    #[error("the state does not belong to an epoch that has begun")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{STATES}")]
    NoEpoch,
    #[error("the states belong to different trainings")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "Combine only states of one epoch that began with the same state.")]
    OtherState,
    #[error("the state is for {} features", if *.sparse { "sparse" } else { "dense" })]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{}", match sparse {
        true => "Pass indices and values, or create the state with sparse => false.",
        false => "Pass one array, or create the state with sparse => true.",
    })]
    StateKind { sparse: bool },
    #[error("features must be arrays of numbers, not of type {0}")]
    #[report(ERRCODE_DATATYPE_MISMATCH =>
        "Pass dense features as an array of numbers, sparse features as an array of integers and one of numbers.")]
    FeatureType(String),
    #[error("{0} cannot be used with the aggregate")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile_train().")]
    NotByAggregate(Cow<'static, str>),
}

/// The hint on a state that does not belong where it is given.
const STATES: &str =
    "Pass a state returned by corgipile_sgd_init() or corgipile_sgd_agg(); corgipile_sgd_agg() ends the epoch.";
