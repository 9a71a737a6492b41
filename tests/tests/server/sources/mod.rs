//! What can be trained on: relations, queries, and columns of every type.

mod categories;
mod default_features;
mod extremes;
mod features;
mod hashing;
mod labels;
mod nulls;
mod other_extensions;
mod partitions;
mod relations;
mod sparse;
mod transforms;
