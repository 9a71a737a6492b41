//! Linear models and feed-forward networks trained by stochastic gradient descent, a tuple or a mini-batch at a time, on dense or sparse
//! [`tuples::Batch`]es.
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
//! - [`ModelParameters`] decides, [`probability`] and [`softmax`] turn decisions into probabilities, [`Evaluation`] judges.
//! - [`ClusterFactor`] says how much a table needs to be shuffled.
//! - [`Moments`] measures the columns and [`Standardizer`] brings them to mean 0 and standard deviation 1.

#![deny(unsafe_code)]

pub mod aggregate;
mod average;
mod cluster;
mod curvature;
mod data_parallel;
mod evaluation;
mod exchange;
mod hyperparameters;
mod kernels;
mod loss;
mod model;
mod moments;
mod network;
mod range;
mod reference;
mod roc;
mod saved;
mod scaler;
mod sparse_moments;
mod stopping;
#[cfg(test)]
mod tests;
mod trainer;
mod variance_sum;

pub use cluster::ClusterFactor;
pub use evaluation::{Confusion, Evaluation, Retrieval};
pub use exchange::{Combine, Exchange};
pub use hyperparameters::{Hyperparameters, InvalidHyperparameter, ModelKind, Optimizer, Schedule, UnknownModel};
pub use loss::{probability, softmax};
pub use model::{ModelParameters, ParametersView};
pub use moments::{Moments, Standardizer, standardize_row};
pub use network::{Activation, Design, Hidden, Network, Output};
pub use range::Range;
pub use roc::{RocAuc, rank_key};
pub use saved::Unfit;
pub use scaler::Scaler;
pub use stopping::{Losses, Stopping};
pub use trainer::{Diverged, EpochReport, Trainer};
