//! What is wrong with a state of the aggregate, or what it is given.

use pg::errors::{Code, Report};
use std::borrow::Cow;

/// What is wrong with a state of the aggregate, or what it is given.
#[derive(Debug, thiserror::Error)]
pub enum AggregateError {
    #[error("invalid value for type corgipile.sgd_state: {0}")]
    MalformedState(String),
    #[error("the state is that of an epoch that has not ended")]
    UnfinishedEpoch,
    #[error("the state is not that of an epoch that has begun")]
    NoEpoch,
    #[error("the states are of different trainings")]
    OtherState,
    #[error("the state is for {} features", if *.sparse { "sparse" } else { "dense" })]
    StateKind { sparse: bool },
    #[error("features must be arrays of numbers, not of type {0}")]
    FeatureType(String),
    #[error("{0} cannot be had with an aggregate")]
    NotByAggregate(Cow<'static, str>),
}

impl Report for AggregateError {
    fn sqlstate(&self) -> Code {
        match self {
            AggregateError::MalformedState(_) => Code::ERRCODE_INVALID_TEXT_REPRESENTATION,
            AggregateError::UnfinishedEpoch
            | AggregateError::NoEpoch
            | AggregateError::OtherState
            | AggregateError::StateKind { .. } => Code::ERRCODE_INVALID_PARAMETER_VALUE,
            AggregateError::FeatureType(_) => Code::ERRCODE_DATATYPE_MISMATCH,
            AggregateError::NotByAggregate(_) => Code::ERRCODE_FEATURE_NOT_SUPPORTED,
        }
    }

    fn hint(&self) -> Option<String> {
        let fixed = |s: &str| Some(s.to_owned());
        match self {
            AggregateError::UnfinishedEpoch | AggregateError::NoEpoch => {
                fixed("corgipile_sgd_agg() takes a state of corgipile_sgd_init() or of its own, and ends the epoch.")
            }
            AggregateError::StateKind { sparse: true } => {
                fixed("Give indices and values, or make the state with sparse => false.")
            }
            AggregateError::StateKind { sparse: false } => {
                fixed("Give one array, or make the state with sparse => true.")
            }
            AggregateError::FeatureType(_) => {
                fixed("Dense features are one array of numbers; sparse ones are integers and numbers.")
            }
            AggregateError::NotByAggregate(_) => fixed("Use corgipile_train()."),
            AggregateError::OtherState => fixed("Combine states of one epoch only, which began with the same state."),
            AggregateError::MalformedState(_) => {
                fixed("Give a state of corgipile_sgd_init() or of corgipile_sgd_agg().")
            }
        }
    }
}
