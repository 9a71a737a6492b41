//! The engines, and which of them trains what.

use linear::FastEngine;
use linear::ReferenceEngine;
use loss::engine::Engine;
use loss::{Hyperparameters, Solver};
use network::NetworkEngine;
use newton::NewtonEngine;
use simd::Level;
use tuples::OutOfMemory;

/// The engines. The numbers are those that a saved trainer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// One dense tuple at a time, one output, plain SGD without l1.
    Fast = 0,
    /// All other linear models.
    Reference = 1,
    /// Hidden layers.
    Network = 2,
    /// Newton's method.
    Newton = 3,
}

impl EngineKind {
    /// The engine for these hyperparameters: the fastest that knows them.
    pub(crate) fn new(hyper: &Hyperparameters, sparse: bool) -> EngineKind {
        if hyper.design.is_some() {
            EngineKind::Network
        } else if hyper.solver == Solver::Newton {
            EngineKind::Newton
        } else if FastEngine::supports(hyper, sparse) {
            EngineKind::Fast
        } else {
            EngineKind::Reference
        }
    }

    /// An engine before the first epoch.
    pub(crate) fn engine(
        self,
        hyper: Hyperparameters,
        dim: usize,
        outputs: usize,
        sparse: bool,
        level: Level,
    ) -> Result<Box<dyn Engine>, OutOfMemory> {
        Ok(match self {
            EngineKind::Fast => Box::new(FastEngine::new(hyper, dim, level)),
            EngineKind::Reference => Box::new(ReferenceEngine::new(hyper, dim, outputs, sparse, level)?),
            EngineKind::Network => Box::new(NetworkEngine::new(hyper, dim, outputs, sparse, level)?),
            EngineKind::Newton => Box::new(NewtonEngine::new(hyper, dim, sparse, level)?),
        })
    }
}
