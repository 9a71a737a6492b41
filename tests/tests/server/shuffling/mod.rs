//! The order of rows: `corgipile_shuffle()`, the strategies, and what is measured to choose one.

mod cluster_factor;
mod io_profile;
mod queries;
mod rows;
mod sharing;
mod strategies;
mod tables;
mod visibility;
