//! Option `cache`: whether decoded tuples are kept for later epochs.

use choices::choice;
use serde::{Deserialize, Serialize};
use shuffle::Strategy;

choice! {
    /// Whether decoded tuples are to be kept.
    CacheMode {
        /// if they fit into memory, and in files if they are expensive to decode
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

/// What a reader of the same tuples, epoch after epoch, says about keeping them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CachePlan {
    pub mode: CacheMode,
    /// without that of a preparation pass, whose tuples are provisional
    pub epochs: u32,
}

impl CachePlan {
    /// Why nothing can be kept, if that is known beforehand.
    pub fn obstacle(&self, strategy: Strategy) -> Option<&'static str> {
        match self {
            CachePlan { mode: CacheMode::Off, .. } => Some("as asked"),
            CachePlan { epochs: ..=1, .. } => Some("one epoch"),
            _ => strategy.uncacheable(),
        }
    }
}
