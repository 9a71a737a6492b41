//! Small networks, whose numbers stay in the processor's caches, on dense tuples.
//!
//! Guarantees: tuples add to the gradient one after the other, however many are gone through together. So a model is a
//! function of the sequence of tuples, bit for bit, and every processor gives the same bits.
//! It prevents a library for large matrices, which packs what it multiplies, from taking ten times as long as the
//! multiplications of a network of some hundred weights.

mod engine;
mod learn;
mod numbers;
mod panels;
mod pass;
mod products;

pub(super) use numbers::Small;
