//! Linear models and feed-forward networks trained by stochastic gradient descent, a tuple or a mini-batch at a time,
//! on dense or sparse [`tuples::Batch`]es.
//!
//! Guarantees: a model depends on the hyperparameters and the sequence of tuples alone, bit for bit. Neither how the
//! sequence was cut into batches and ranges nor the vector instructions of the machine can be told from it. Swapping
//! the two classes gives exactly the negated model. A model that diverges is an error and never a NaN in a report.
//!
//! It prevents a training run that nobody can reproduce on another machine, or after another choice of the buffer size.
//!
//! - [`Trainer`] learns: epochs of [`learn`](Trainer::learn) between `begin_epoch` and `end_epoch`.
//! - Several trainers in as many processes learn one model together, by an [`Exchange`].
//! - [`aggregate`] does the same row by row, on a state that is one piece of bytes.
//! - [`ModelParameters`] decides, [`probability`] and [`softmax`] turn decisions into probabilities, [`Evaluation`]
//!   measures how good they are.
//! - [`ClusterFactor`] tells how much a table needs to be shuffled.
//! - [`Moments`] measures the columns and [`Standardizer`] brings them to mean 0 and standard deviation 1.

#![deny(unsafe_code)]

pub mod aggregate;
mod average;
mod averaging;
mod bounds;
mod bytes;
mod cluster;
mod collinearity;
pub mod conformal;
pub mod counts;
mod curvature;
mod data_parallel;
mod dealing;
mod design;
mod elsewhere;
mod engine;
mod engines;
mod evaluation;
mod exchange;
mod fast;
mod halting;
mod hyperparameters;
mod importance;
mod invalid;
mod kernels;
mod logarithm;
mod math;
mod mean;
mod model;
mod models;
mod moment;
mod moments;
mod network;
mod newton;
mod optimizers;
mod packed;
mod panel;
pub mod platt;
mod present_moments;
pub mod profile;
mod range;
mod reference;
mod report;
mod roc;
mod saved;
mod scaler;
mod schedules;
mod shapes;
mod solver;
mod sparse_moments;
mod stopping;
mod target;
#[cfg(test)]
mod tests;
mod totals;
mod trainer;
mod variance_sum;
mod zeros;

pub use bounds::{Bounds, Extremes, Outside};
pub use cluster::{ClusterFactor, ClusterSums};
pub use collinearity::Collinearity;
pub use data_parallel::Steps;
pub use dealing::{Load, deal, most_processes};
pub use design::{Activation, Design, Hidden, Network, Output};
pub use elsewhere::Alone;
pub use evaluation::{Confusion, Evaluation, EvaluationSums, Retrieval};
pub use exchange::{Combine, Exchange};
pub use halting::{Halt, Halting, Round, Uniting};
pub use hyperparameters::{Extent, Hyperparameters};
pub use importance::{Drop, Importance};
pub use invalid::{InvalidHyperparameter, Parameter};
pub use logarithm::{LogTransform, inverse_signed_log};
pub use math::{probability, softmax};
pub use model::{ModelParameters, ParametersView};
pub use models::{Link, LossNumber, ModelKind, TargetUnits, Task, UnknownModel};
pub use moments::Moments;
pub use newton::{Estimate, Estimates, Inference, Weighting, two_sided_quantile, two_sided_tail};
pub use optimizers::Optimizer;
pub use panel::Panel;
pub use present_moments::PresentMoments;
pub use range::Range;
pub use report::{Diverged, EpochReport};
pub use roc::{RocAuc, Tied, TiedWriter, rank_key, rank_key_of_f32, read_tied};
pub use saved::{Unfit, initial_state};
pub use scaler::{Scaler, Standardizer, is_coarse, standardize_entries, standardize_row};
pub use schedules::Schedule;
pub use shapes::Shapes;
pub use solver::Solver;
pub use stopping::{Losses, Stopping};
pub use target::{TargetMoments, TargetScale};
pub use trainer::Trainer;
pub use zeros::Zeros;
