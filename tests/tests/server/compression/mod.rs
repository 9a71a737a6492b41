//! Compressed mini-batches: the type, the tables of them, and training on these.

mod comparisons;
mod compress;
mod theorem1;
mod toc;
mod together;
mod training_compressed;
