//! How losses are made small.

use serde::{Deserialize, Serialize};

/// How a model's loss is made small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Solver {
    /// Steps along the gradients of a tuple or a mini-batch.
    #[default]
    Sgd,
    /// Steps by gradient and Hessian of all tuples.
    Newton,
}

impl Solver {
    /// Their names, the default first.
    pub const NAMES: [&'static str; 2] = ["sgd", "newton"];

    /// Features that a Hessian may have: of more, its squares take hundreds of megabytes, and steps minutes.
    pub const MAX_FEATURES: usize = 2_000;

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// That of this name.
    pub fn named(name: &str) -> Option<Solver> {
        [Solver::Sgd, Solver::Newton].into_iter().find(|solver| solver.name() == name)
    }
}
