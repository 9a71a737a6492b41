//! Training: what every model, optimizer and option learns, and every way to ask for it.

mod calls;
mod choices;
mod clipping;
mod groups_and_grids;
mod learning;
mod losses;
mod model_kinds;
mod named_options;
mod networks;
mod newton;
mod nodes;
mod nodes_clusters;
mod nodes_compressed;
mod nodes_evaluation;
mod nodes_faults;
mod nodes_together;
mod options;
mod probabilities;
mod real_data;
mod regression_networks;
mod regressions;
mod sample;
mod search;
mod svm_classes;
mod warm_start;
mod weights;
