//! corgipile as its users meet it: through a real server. A file per theme.

mod aggregate;
mod backend;
mod bad_input;
mod cancel;
mod categories;
mod cluster_factor;
mod documents;
mod evaluate;
mod explain;
mod features;
mod labels;
mod model_kinds;
mod models;
mod options;
mod planner;
mod predict;
mod privileges;
mod prototype;
mod real_data;
mod resources;
mod shuffle;
mod sources;
mod sparse;
mod strategies;
mod training;
mod weights;
