//! Compressed mini-batches: the type, the tables of them, and training on these.

mod compress;
mod theorem1;
mod toc;
mod training_compressed;
