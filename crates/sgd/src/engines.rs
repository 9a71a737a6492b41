//! The engines, and which of them trains what.

use simd::Level;
use tuples::OutOfMemory;

use crate::Hyperparameters;
use crate::bytes::Reader;
use crate::engine::Engine;
use crate::fast::FastEngine;
use crate::network::NetworkEngine;
use crate::reference::ReferenceEngine;

/// The engines. The numbers are those that a saved trainer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// One dense tuple at a time, one output, plain SGD without l1.
    Fast = 0,
    /// All other linear models.
    Reference = 1,
    /// Hidden layers.
    Network = 2,
}

impl EngineKind {
    /// The engine for these hyperparameters: the fastest that knows them.
    pub(crate) fn new(hyper: &Hyperparameters, sparse: bool) -> EngineKind {
        if hyper.design.is_some() {
            EngineKind::Network
        } else if FastEngine::supports(hyper, sparse) {
            EngineKind::Fast
        } else {
            EngineKind::Reference
        }
    }

    /// An engine before the first epoch.
    ///
    /// # Errors
    /// [`OutOfMemory`]
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
        })
    }

    /// The engine that was saved, of so many features and outputs, to go on with these hyperparameters;
    /// None if it is not one.
    pub(crate) fn read(
        self,
        from: &mut Reader<'_>,
        hyper: Hyperparameters,
        [dim, outputs]: [usize; 2],
        sparse: bool,
        level: Level,
    ) -> Option<Box<dyn Engine>> {
        Some(match self {
            EngineKind::Fast => Box::new(FastEngine::read(from, hyper, dim, level)?),
            EngineKind::Reference => Box::new(ReferenceEngine::read(from, hyper, [dim, outputs], sparse, level)?),
            EngineKind::Network => Box::new(NetworkEngine::read(from, hyper, [dim, outputs], sparse, level)?),
        })
    }
}
