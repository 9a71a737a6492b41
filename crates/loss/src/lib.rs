//! What models minimise, by which hyperparameters, and what their weights decide: all that those who train need, and
//! those who only use a model.
//!
//! - [`ModelKind`] has the losses ([`models`]), [`Design`] the layers of a network, [`Optimizer`] the steps.
//! - [`ModelParameters`] decides, [`probability`] and [`softmax`] turn decisions into probabilities.
//! - [`Standardizer`] brings columns to mean 0 and standard deviation 1.
//! - [`engine::Engine`] is the port to what learns: the crates linear, network and newton have the engines, the crate
//!   sgd their trainer. [`Exchange`] is the port to other processes that learn the same model.

#![deny(unsafe_code)]

pub mod averaging;
pub mod bytes;
mod collinearity;
pub mod design;
pub mod engine;
pub mod exchange;
mod hyperparameters;
mod invalid;
pub mod kernels;
pub mod logarithm;
pub mod math;
pub mod mean;
mod model;
pub mod models;
pub mod optimizers;
pub mod packed;
mod penalized;
mod range;
mod report;
mod scaler;
mod schedules;
mod solver;
mod steps;
pub mod totals;
pub mod variance_sum;
mod view;

pub use collinearity::Collinearity;
pub use design::{Activation, Design, Hidden, Network, Output};
pub use exchange::{Combine, Exchange};
pub use hyperparameters::{Extent, Hyperparameters};
pub use invalid::{InvalidHyperparameter, Parameter};
pub use kernels::RowDecision;
pub use logarithm::{LogTransform, inverse_signed_log};
pub use math::{probability, softmax};
pub use model::ModelParameters;
pub use models::{Link, LossNumber, ModelKind, TargetUnits, Task, UnknownModel};
pub use optimizers::Optimizer;
pub use penalized::Penalized;
pub use range::Range;
pub use report::{Diverged, EpochReport};
pub use scaler::{Scaler, Standardizer, is_coarse, standardize_entries, standardize_row};
pub use schedules::Schedule;
pub use solver::Solver;
pub use steps::Steps;
pub use view::ParametersView;
