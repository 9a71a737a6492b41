//! Linear models and feed-forward networks trained by stochastic gradient descent, a tuple or a mini-batch at a time,
//! on dense or sparse [`tuples::Batch`]es.
//!
//! Guarantees: a model depends on the hyperparameters and the sequence of tuples alone, bit for bit. Neither how the
//! sequence was cut into batches and ranges nor the vector instructions of the machine can be told from it. Swapping
//! the two classes gives exactly the negated model. A model that diverges is an error and never a NaN in a report.
//!
//! It prevents a training run that no one can reproduce on another machine, or after another choice of the buffer size.
//!
//! - [`Trainer`] learns, by an engine of [`linear`], [`network`] or [`newton`]: epochs of [`learn`](Trainer::learn)
//!   between `begin_epoch` and `end_epoch`. Hyperparameters and models are those of [`loss`].
//! - Several trainers in as many processes learn one model together, by an [`Exchange`](loss::Exchange).
//! - [`Evaluation`] measures how good decisions and probabilities are.
//! - [`ClusterFactor`] tells how much a table needs to be shuffled.
//! - [`Moments`] measures the columns, for a [`Standardizer`](loss::Standardizer).

#![deny(unsafe_code)]

mod average;
mod bounds;
mod cluster;
pub mod conformal;
pub mod counts;
mod curvature;
mod curves;
mod data_parallel;
mod dealing;
mod elsewhere;
mod engines;
mod evaluation;
mod halting;
mod importance;
mod moment;
mod moments;
pub mod platt;
mod present_moments;
pub mod profile;
mod roc;
mod saved;
mod servers;
mod shapes;
mod sparse_moments;
mod stopping;
mod target;
mod trainer;
mod zeros;

pub use bounds::{Bounds, Extremes, Outside};
pub use cluster::{ClusterFactor, ClusterSums};
pub use curves::{AreaSums, Areas, BINS, CalibrationBin, ClassCurves, CurvePoint, CurvesOfClass};
pub use dealing::{Load, deal, most_processes};
pub use elsewhere::Alone;
pub use evaluation::{Confusion, Evaluation, EvaluationSums, Retrieval};
pub use halting::{Halt, Halting, Round, Uniting};
pub use importance::{Drop, Importance};
pub use moments::Moments;
pub use present_moments::PresentMoments;
pub use roc::{RocAuc, Tied, TiedWriter, rank_key, rank_key_of_f32, read_tied, score_of_key, score_of_key_of_f32};
pub use saved::{Unfit, initial_state};
pub use servers::{Servers, Way};
pub use shapes::Shapes;
pub use stopping::{Losses, Stopping};
pub use target::{TargetMoments, TargetScale};
pub use trainer::Trainer;
pub use zeros::Zeros;

#[cfg(test)]
mod tests;
