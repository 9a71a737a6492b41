//! The engines of linear models: one tuple at a time, or mini-batches, by SGD, momentum or Adam, on dense or sparse
//! tuples; many models side by side; and the aggregate, which does the same row by row.
//!
//! Guarantees: a model depends on the hyperparameters and the sequence of tuples alone, bit for bit. Neither how the
//! sequence was cut into batches and ranges nor the vector instructions of the machine can be told from it.

#![deny(unsafe_code)]

pub mod aggregate;
mod fast;
mod panel;
mod reference;

pub use fast::FastEngine;
pub use panel::Panel;
pub use reference::ReferenceEngine;
