//! Predictions, and what `corgipile_evaluate()` says of them.

mod arrays;
mod clients;
mod conformal;
mod drift;
mod evaluate;
mod explain;
mod metrics;
mod named_columns;
mod other_servers;
mod spread_rows;
mod statements;
mod values;
