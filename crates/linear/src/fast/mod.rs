//! One dense tuple at a time, one output, plain SGD without l1: what most models are trained with, and what is fastest.

mod engine;
mod learn;
mod loss_accumulator;
mod narrow;
mod state;
mod task;
mod weights;
mod wide;

pub use engine::FastEngine;
