//! What is wrong with a state of the aggregate, or what it is given.

use pg::errors::{Code, Report};
use std::borrow::Cow;

/// What is wrong with a state of the aggregate, or what it is given.
#[derive(Debug, thiserror::Error, Report)]
pub enum AggregateError {
    #[error("invalid value for type corgipile.sgd_state: {0}")]
    #[report(ERRCODE_INVALID_TEXT_REPRESENTATION => "Give a state of corgipile_sgd_init() or of corgipile_sgd_agg().")]
    MalformedState(String),
    #[error("the state is that of an epoch that has not ended")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{STATES}")]
    UnfinishedEpoch,
    #[error("the state is not that of an epoch that has begun")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{STATES}")]
    NoEpoch,
    #[error("the states are of different trainings")]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "Combine states of one epoch only, which began with the same state.")]
    OtherState,
    #[error("the state is for {} features", if *.sparse { "sparse" } else { "dense" })]
    #[report(ERRCODE_INVALID_PARAMETER_VALUE => "{}", match sparse {
        true => "Give indices and values, or make the state with sparse => false.",
        false => "Give one array, or make the state with sparse => true.",
    })]
    StateKind { sparse: bool },
    #[error("features must be arrays of numbers, not of type {0}")]
    #[report(ERRCODE_DATATYPE_MISMATCH =>
        "Dense features are one array of numbers; sparse ones are integers and numbers.")]
    FeatureType(String),
    #[error("{0} cannot be had with an aggregate")]
    #[report(ERRCODE_FEATURE_NOT_SUPPORTED => "Use corgipile_train().")]
    NotByAggregate(Cow<'static, str>),
}

/// The hint on a state that does not belong where it is given.
const STATES: &str = "corgipile_sgd_agg() takes a state of corgipile_sgd_init() or of its own, and ends the epoch.";
