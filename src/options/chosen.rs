//! What `options`, and the points of a `grid`, say once they are read.

use super::choices::{CacheMode, ClassWeight, Keep, Nulls, Unseen, Validation};
use serde_json::{Map, Value};
use sgd::{Hyperparameters, Stopping};

/// What `options` say beyond the hyperparameters.
#[derive(Default)]
pub struct Options {
    /// was the size of mini-batches said?
    pub has_batch_size: bool,
    /// learn mean and deviation first, and train on standardized features
    pub standardize: bool,
    pub nulls: Nulls,
    /// column of the rows' weights
    pub weight: Option<String>,
    pub class_weight: Option<ClassWeight>,
    /// what sparse tuples call their first dimension
    pub index_base: Option<u32>,
    /// dimensions of sparse tuples
    pub dimensions: Option<usize>,
    pub unseen: Option<Unseen>,
    /// whether decoded tuples are kept for the next epochs
    pub cache: Option<CacheMode>,
    /// what is held out for validation
    pub validation: Option<Validation>,
    /// when to stop before the last epoch
    pub stopping: Option<Stopping>,
    pub keep: Keep,
    /// tell the client of each epoch
    pub notice: bool,
}

/// What one model is trained with.
#[derive(Debug, Clone)]
pub struct Point {
    pub hyperparameters: Hyperparameters,
    pub max_epochs: u32,
    pub stopping: Option<Stopping>,
    /// what the grid says of it; None without a grid
    pub says: Option<Map<String, Value>>,
}
