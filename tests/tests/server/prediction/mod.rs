//! Predictions, and what `corgipile_evaluate()` says of them.

mod evaluate;
mod metrics;
mod predict;
