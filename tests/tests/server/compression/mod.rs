//! Compressed mini-batches: the type, the tables of them, and training on these.

mod training;
